#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
scaling.py - the tables of docs/scaling.md and of its decision, from the unit costs below.

    scaling.py write             replaces the tables
    scaling.py check             exit 1 if they are not current (make lint)
    scaling.py simulate NODES [MOST]  runs tests/bench/nodes for the rows of SIMULATED with at most
                                 so many nodes; exit 1 if a result differs from what is recorded here

Nothing here is measured: UNITS and SIMULATED record what was, with its place.
"""
import math
import re
import subprocess
import sys

PAGES = ("docs/scaling.md", "docs/decisions/0046-scaling.md")

# All measured. name: (value, unit, what it is, how it was found)
UNITS = {
    "nginx_check": (7.5, "us of CPU", "`/nginx/check`, kernel's TCP included",
                    "`scripts/bench-http.sh`: one worker, one CPU"),
    "v1_check": (10.2, "us of CPU", "`/v1/check`", "the same"),
    "grpc": (4.6, "us of CPU", "gRPC, 100 streams a connection", "`scripts/bench-grpc.sh`"),
    "v1_bytes": (738, "bytes", "`/v1/check` on the wire, both ways, headers of TCP and Ethernet too",
                 "counters of `lo`, wrk"),
    "user": (23.5, "bytes", "a user in the HTTP tier's table", "`tests/bench/decide.c`, 10M users"),
    "source": (32, "bytes", "a source in the packet tier's table",
               "`table.buckets: 100M`: 3.2 GB, started in 6 s"),
    "refused": (38, "ns of CPU", "a refused packet of a busy source, over bare XDP_DROP",
                "`tests/bench/cost.c`"),
    "passed": (137, "ns of CPU", "a passed packet of a busy source, over the same", "`tests/bench/cost.c`"),
    "cold": (370, "ns of CPU", "a packet of 16M random sources, over the same", "`scripts/bench.sh`"),
    "strict": (11.0, "us of Redis", "a bucket in a command of its own (fixed window)",
               "`scripts/bench-redis.sh`"),
    "flushed": (9.1, "us of Redis", "a bucket in a command of up to 256",
                "`scripts/bench-shares.sh`"),
    "bucket_bytes": (265, "bytes", "a bucket between node and Redis, both ways", "counters of `lo`"),
    "bucket_memory": (170, "bytes", "a bucket in Redis", "[cluster.md](../cluster.md)"),
    "batch": (0.6, "us of Redis", "one node's heartbeat, read by one node", "redis-benchmark: XREAD of 1000"),
    "batch_bytes": (249, "bytes", "the same on the wire", "three idle nodes, `INFO`"),
}

# (consistency, nodes, keys, decisions a second of each node, seconds, interval in ms): buckets a decision
SIMULATED = {
    ("lease", 10, 2000, 200, 20, 3000): 0.594,
    ("lease", 100, 2000, 200, 20, 3000): 0.600,
    ("lease", 1000, 2000, 200, 20, 3000): 0.601,
    ("write_back", 10, 2000, 200, 20, 1000): 0.637,
    ("write_back", 100, 2000, 200, 20, 1000): 0.643,
    ("write_back", 1000, 2000, 200, 20, 1000): 0.643,
    ("lease", 1, 20000, 10000, 100, 10000): 0.221,
    ("write_back", 1, 20000, 10000, 100, 10000): 0.163,
}
SEED = 2026

USERS = 100e6
LOADS = (3e6, 10e6, 15e6)
BUSY = 0.6		# of a CPU, a server of Redis or a link: the rest is for peaks
NODE_CPUS = 64
LINK_BITS = 100e9
MAXCLIENTS = 10000


def unit(name):
    return UNITS[name][0]


def ranks(keys):
    """(rank, how many keys it stands for): the first thousand, then a hundred bins for each factor of ten."""
    at = 1
    while at <= keys:
        end = at + 1 if at <= 1000 else min(int(at * 10 ** 0.01) + 1, int(keys) + 1)
        yield (at + end - 1) / 2, end - at
        at = end


def buckets_per_decision(consistency, rate, keys, interval):
    """
    Of a node that gets `rate` decisions a second over keys by Zipf's law. write_back: one flush for
    each interval in which the key was used. lease: two commands (acquire, and return of what is
    left) for each lease, never more than one a decision.
    """
    total = sum(n / k for k, n in ranks(keys))
    sent = 0
    for k, n in ranks(keys):
        each = rate / k / total
        if consistency == "write_back":
            sent += n * (1 - math.exp(-each * interval)) / interval
        else:
            sent += n * min(each, 2 * each / (1 + each * interval))
    return sent / rate


def number(x):
    """Two digits that count."""
    if x == 0:
        return "0"
    digits = max(0, 1 - math.floor(math.log10(abs(x))))
    x = round(x, 1 - math.floor(math.log10(abs(x))))
    return f"{x:,.{digits}f}" if digits else f"{x:,.0f}"


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|---" + "|---:" * (len(head) - 1) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def units_table():
    yield "| measured | cost | by |"
    yield "|---|---:|---|"
    for value, what, name, source in UNITS.values():
        yield f"| {name} | {value:g} {what} | {source} |"


def simulated_table():
    def rows():
        for (consistency, nodes, keys, rate, _, interval), got in SIMULATED.items():
            yield (f"{consistency}, {interval / 1000:g} s", f"{nodes}", f"{keys:,}", f"{rate:,}", f"{got:.3f}",
                   f"{buckets_per_decision(consistency, rate, keys, interval / 1000):.3f}")
    return table(("simulated", "nodes", "keys", "decisions/s a node", "buckets a decision", "by the formula"), rows())


def redis_rows():
    total = sum(n / k for k, n in ranks(USERS))
    modes = (("strict", None, None, "strict"), ("lease 10 s, 1000 nodes", "lease", 1000, "strict"),
             ("lease 10 s, by user", "lease", 1, "strict"), ("write_back 1 s, 1000 nodes", "write_back", 1000, "flushed"),
             ("write_back 10 s, by user", "write_back", 1, "flushed"))
    for name, consistency, nodes, cost in modes:
        cells = []
        for load in LOADS:
            interval = 1 if "1 s" in name else 10
            per = 1 if not consistency else buckets_per_decision(consistency, load / nodes, USERS, interval)
            servers = math.ceil(load * per * unit(cost) / 1e6 / BUSY)
            cells.append(f"{per:.2f}, {servers:,}, {number(load * per * unit('bucket_bytes') * 8 / 1e9)}")
        yield (name, *cells)
    yield ("strict: the hottest user's server, of what it can do",
           *(f"{load / total * unit('strict') / 1e6:.1f} times" for load in LOADS))
    yield ("memory of all servers", *(f"{number(USERS * unit('bucket_memory') / 1e9)} GB" for _ in LOADS))


def requests_table():
    def cpus(name):
        return tuple(number(load * unit(name) / 1e6) for load in LOADS)

    def nodes(cores):
        return tuple(str(math.ceil(load * unit("v1_check") / 1e6 / cores / BUSY)) for load in LOADS)
    rows = [
        ("CPUs, `/nginx/check`", *cpus("nginx_check")),
        ("CPUs, `/v1/check`", *cpus("v1_check")),
        ("CPUs, gRPC", *cpus("grpc")),
        (f"nodes of {NODE_CPUS} CPUs, {BUSY:.0%} busy, `/v1/check`", *nodes(NODE_CPUS)),
        ("nodes of 8 CPUs", *nodes(8)),
        ("network of all nodes, Gbit/s, `/v1/check`", *(number(load * unit("v1_bytes") * 8 / 1e9) for load in LOADS)),
        ("memory of a node that sees all users", *(f"{number(USERS * unit('user') / 1e9)} GB" for _ in LOADS)),
    ]
    return table(("requests a second", *(f"{load / 1e6:.0f}M" for load in LOADS)), rows + list(redis_rows()))


def packets_table():
    wire = {"3M": 3e6, "10M": 10e6, "15M": 15e6, "100 Gbit/s, 1500 bytes": LINK_BITS / 8 / (1500 + 38),
            "100 Gbit/s, 64 bytes": LINK_BITS / 8 / (64 + 20)}
    rows = [("millions of packets a second", *(f"{pps / 1e6:.1f}" for pps in wire.values()))]
    for name, text in (("refused", "CPUs, all refused, busy sources"), ("passed", "CPUs, all passed, busy sources"),
                       ("cold", "CPUs, random sources")):
        rows.append((text, *(number(pps * unit(name) / 1e9) for pps in wire.values())))
    return table(("packets a second", *wire), rows)


def ends_table():
    total = sum(n / k for k, n in ranks(USERS))
    squared = BUSY * 1e6 / unit("batch")
    rows = [
        (f"a node of {NODE_CPUS} CPUs, `/v1/check`", "CPU",
         f"{number(NODE_CPUS * BUSY / unit('v1_check'))}M requests/s"),
        ("its link of 100 Gbit/s", "network", f"{number(LINK_BITS * BUSY / 8 / unit('v1_bytes') / 1e6)}M requests/s"),
        ("strict, users by Zipf's law", "the hottest user's server of Redis",
         f"{number(BUSY / unit('strict') * total)}M requests/s in all"),
        ("one key, strict", "its server of Redis", f"{number(BUSY * 1000 / unit('strict'))}k requests/s"),
        ("messages between nodes, `sync: 100ms`", "the stream's server of Redis", f"{math.sqrt(squared * 0.1):.0f} nodes"),
        ("with `sync: 1s`", "the same", f"{math.sqrt(squared):.0f} nodes"),
        ("with `sync: 10s`", "the same", f"{math.sqrt(squared * 10):.0f} nodes"),
        (f"a server of Redis with `maxclients {MAXCLIENTS}`",
         "connections", f"{MAXCLIENTS // (8 + 1):,} nodes of 8 workers, {MAXCLIENTS // (NODE_CPUS + 1)} of {NODE_CPUS}"),
        ("100 Gbit/s of 64 bytes, random sources", "CPU",
         f"{number(LINK_BITS / 8 / 84 * unit('cold') / 1e9)} of {NODE_CPUS} CPUs, without the driver"),
    ]
    yield "| where | what ends first | at (derived) |"
    yield "|---|---|---:|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


TABLES = {"units": units_table, "simulated": simulated_table, "requests": requests_table, "packets": packets_table,
          "ends": ends_table}


def current(text):
    def fill(match):
        return match[1] + "\n" + "\n".join(TABLES[match[2]]()) + "\n\n<!--end-->"
    return re.sub(r"(<!--scaling:(\w+)-->\n)(.*?)<!--end-->", fill, text, flags=re.S)


def simulate(program, most):
    stale = False
    for (consistency, nodes, keys, rate, seconds, interval), recorded in SIMULATED.items():
        if nodes > most:
            continue
        line = subprocess.run([program, consistency, str(nodes), str(keys), str(rate * nodes), str(seconds), str(interval)],
                              capture_output=True, text=True, check=True, env={"SLUICE_SEED": str(SEED)}).stdout
        got = float(line.split()[-1])
        agrees = abs(got - recorded) <= 0.005
        stale |= not agrees
        print(f"{line.strip()}{'' if agrees else f': scaling.py has {recorded}'}", flush=True)
    return stale


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "simulate" and len(sys.argv) in (3, 4):
        sys.exit(simulate(sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else 1000))
    if what not in ("write", "check") or len(sys.argv) != 2:
        sys.exit(__doc__)
    for page in PAGES:
        with open(page, encoding="utf-8") as file:
            text = file.read()
        new = current(text)
        if what == "write":
            with open(page, "w", encoding="utf-8") as file:
                file.write(new)
        elif new != text:
            line = next((i for i, (a, b) in enumerate(zip(text.split("\n"), new.split("\n")), 1) if a != b), 1)
            sys.exit(f"{page}:{line}: not what tests/bench/scaling.py derives: make scaling")


if __name__ == "__main__":
    main()
