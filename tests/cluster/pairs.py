#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two requests at once for each of many users: pairs.py SOCKET ROUNDS DOMAIN KEY...

The connections to the Unix socket are spread over the workers; 16 users at a time, each of them on two connections.
Prints the statuses that the pairs had, and how many of them: "200,429 3000"."""

import collections
import json
import random
import socket
import sys

AT_ONCE = 16
path, rounds, domain, *keys = sys.argv[1:]


def connect():
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    connection.connect(path)
    return connection


def request(key, user):
    body = json.dumps({"domain": domain, "descriptors": [{"entries": [{"key": key, "value": user}]}]})
    return f"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def status(connection):
    """Of the next response, which is read whole."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, body = data.split(b"\r\n\r\n", 1)
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    while len(body) < length:
        body += connection.recv(65536)
    return int(head.split()[1])


connections = [connect() for _ in range(4 * AT_ONCE)]
seen = collections.Counter()
for first in range(0, int(rounds), AT_ONCE):
    random.shuffle(connections)
    users = range(first, min(first + AT_ONCE, int(rounds)))
    pairs = [connections[2 * i:2 * i + 2] for i in range(len(users))]
    sends = [(connection, request(keys[user % len(keys)], f"user{user}"))
             for user, pair in zip(users, pairs) for connection in pair]
    random.shuffle(sends)
    for connection, data in sends:
        connection.sendall(data)
    for pair in pairs:
        seen[",".join(map(str, sorted(map(status, pair))))] += 1
print(*(f"{statuses} {count}" for statuses, count in sorted(seen.items())))
