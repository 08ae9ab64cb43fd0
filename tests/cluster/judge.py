# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What drive's answers say of limits that nodes have in common, counted here and nowhere else.

    judge.py INTERVAL_US FIRST_US LAST_US LIMITS < ANSWERS

LIMITS has a line for each of drive's: "KIND COUNT CAPACITY PERIOD_S", KIND window (all of the answers
are in one) or bucket. Prints for each

    ALLOWED REFUSED OTHER EXCESS MOST OUTSIDE

OTHER: no 200 and no 429. EXCESS: how many more were allowed than the limit can have let through,
whatever the order in which what was on its way at the same time was charged. MOST: what one node
allowed within INTERVAL_US, at most. OUTSIDE: how many were sent before FIRST_US or answered after
LAST_US.
"""
import bisect
import sys


def excess_window(allowed, count):
    return max(0, len(allowed) - count)


def excess_bucket(allowed, capacity, per_us):
    """Of any stretch of time: what it allowed, less what fills a bucket and flows in."""
    worst = 0
    for begin, _, _ in allowed:
        inside = sorted(end for start, end, _ in allowed if start >= begin)
        for k, end in enumerate(inside, 1):
            worst = max(worst, k - capacity - (end - begin) * per_us)
    return int(worst)


def most_of_a_node(allowed, interval_us):
    most = 0
    for node in {node for _, _, node in allowed}:
        times = sorted(end for _, end, n in allowed if n == node)
        for i, begin in enumerate(times):
            most = max(most, bisect.bisect_left(times, begin + interval_us) - i)
    return most


def main():
    interval_us, first_us, last_us = (int(a) for a in sys.argv[1:4])
    limits = [line.split() for line in open(sys.argv[4])]
    lines = [[] for _ in limits]
    for answer in sys.stdin:
        line, node, sent, answered, status = (int(n) for n in answer.split())
        lines[line].append((sent, answered, node, status))
    for (kind, count, capacity, period_s), answers in zip(limits, lines):
        allowed = [(sent, at, node) for sent, at, node, status in answers if status == 200]
        refused = sum(1 for a in answers if a[3] == 429)
        outside = sum(1 for a in answers if a[0] < first_us or a[1] >= last_us)
        if kind == "bucket":
            excess = excess_bucket(allowed, int(capacity), int(count) / (int(period_s) * 1e6))
        else:
            excess = excess_window(allowed, int(count))
        print(len(allowed), refused, len(answers) - len(allowed) - refused, excess,
              most_of_a_node(allowed, interval_us), outside)


main()
