#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# last.py - the last request of a limit, sent to two nodes at once: how many of the two pass?
#
#     last.py SOCKET SOCKET DOMAIN KEY TIMES BEFORE
#
# TIMES values of KEY, each new: BEFORE requests on the first node, then one on each node, both written before
# either response is read, the two nodes first in turn. Prints "PASSED TIMES" for each number that passed, and of
# other statuses than 200 and 429 "status N TIMES".

import collections
import json
import socket
import sys


class Node:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(path)
        self.text = b""

    def ask(self, body):
        head = "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.socket.sendall(head.encode() + body)

    def status(self):
        while b"\r\n\r\n" not in self.text:
            self.more()
        head, _, rest = self.text.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                      if line.lower().startswith(b"content-length:"))
        while len(rest) < length:
            self.more()
            rest = self.text.partition(b"\r\n\r\n")[2]
        self.text = rest[length:]
        return int(head.split()[1])

    def more(self):
        got = self.socket.recv(65536)
        if not got:
            sys.exit("a node closed the connection")
        self.text += got


def main():
    nodes = [Node(path) for path in sys.argv[1:3]]
    domain, key, times, before = sys.argv[3], sys.argv[4], int(sys.argv[5]), int(sys.argv[6])
    passed, others = collections.Counter(), collections.Counter()
    for n in range(times):
        entry = {"key": key, "value": "last%d" % n}
        body = json.dumps({"domain": domain, "descriptors": [{"entries": [entry]}]}).encode()
        for _ in range(before):
            nodes[0].ask(body)
            others[nodes[0].status()] += 1
        pair = nodes if n % 2 else nodes[::-1]
        for node in pair:
            node.ask(body)
        got = [node.status() for node in pair]
        others.update(got)
        passed[got.count(200)] += 1
    for number, count in sorted(passed.items()):
        print(number, count)
    for status, count in sorted(others.items()):
        if status not in (200, 429):
            print("status", status, count)


main()
