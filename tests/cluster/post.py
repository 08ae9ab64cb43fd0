#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sends the requests of scenarios.sh, which would take longer to start a program for each than it has.

Each line of standard input is SOCKET COUNT PATH BODY: that many requests on one connection to a Unix socket.
Prints for each line how many had status 200 and 429, the last refusal's Retry-After (-: none), the last body."""

import http.client
import socket
import sys


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def send(path, count, target, body):
    connection = Connection(path)
    passed = refused = 0
    retry, text = "-", ""
    for _ in range(int(count)):
        connection.request("POST", target, body)
        response = connection.getresponse()
        text = response.read().decode().replace("\n", " ")
        passed += response.status == 200
        if response.status == 429:
            refused += 1
            retry = response.headers.get("Retry-After", "-")
    connection.close()
    return f"{passed} {refused} {retry} {text}"


for line in sys.stdin:
    try:
        print(send(*line.rstrip("\n").split(" ", 3)), flush=True)
    except (OSError, http.client.HTTPException) as error:
        print("failed failed -", error, flush=True)
