# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""connections.py NAME ... - clients that only hold connections, and one that asks beside them.

    address HOST PORT PROTOCOL N BOUND   N connections from one address: at most BOUND stay, and
                                         another address is served
    spread HOST PORT PROTOCOL N BOUND    N from many addresses: one that goes on asking stays, and a
                                         new one is served
    bodies HOST PORT TOKEN               a large report with the token, while 50 clients without one are
                                         in the middle of larger ones
    handshake HOST PORT                  a TLS client that sends a byte each 0.2 s: until it is closed

Prints "ok", or what went otherwise.
"""
import socket
import sys
import time

SETTINGS = b"\0\0\0\4\0\0\0\0\0"
ASK = {
    "http": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "metrics": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "grpc": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS,
    "spoe": b"\xff\xff\xff\xff",  # a frame beyond all bounds: it gets an error
}


def connect(host, port, source=None):
    return socket.create_connection((host, port), timeout=20, source_address=(source, 0) if source else None)


def again(protocol, number):
    """What a client that is known already asks: of gRPC a request of its own stream."""
    if protocol == "grpc":
        return b"\0\0\6\1\5" + (2 * number + 1).to_bytes(4, "big") + b"\x82\x86\x84\x41\1x"
    return ASK[protocol]


def served(connection, protocol, number=None):
    try:
        connection.sendall(ASK[protocol] if number is None else again(protocol, number))
        return bool(connection.recv(4096))
    except OSError:
        return False


def is_open(connection):
    try:
        connection.setblocking(False)
        return bool(connection.recv(65536))
    except BlockingIOError:
        return True
    except OSError:
        return False


def wait_until(condition):
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def address(host, port, protocol, count, bound):
    held = [connect(host, port, "192.0.2.2") for _ in range(count)]
    if not served(connect(host, port, "192.0.2.3"), protocol):
        return "another address is not served"
    if not wait_until(lambda: sum(map(is_open, held)) <= bound):
        return "%d of %d stay" % (sum(map(is_open, held)), count)
    if sum(map(is_open, held)) < bound // 2:
        return "only %d stay" % sum(map(is_open, held))
    return "ok"


def spread(host, port, protocol, count, bound):
    asker, held = connect(host, port, "192.0.2.3"), []
    if protocol != "spoe" and not served(asker, protocol):
        return "the first is not served"
    for i in range(count):
        if protocol != "spoe" and i % 20 == 0:
            # Once the newest is answered all of them have been accepted: none waits in the queue.
            if held and not served(held[-1], protocol):
                return "the newest was closed after %d" % i
            if not served(asker, protocol, i):
                return "one that asks was closed after %d" % i
        held.append(connect(host, port, "192.0.2.%d" % (10 + i % 200)))
    if not served(connect(host, port, "192.0.2.4"), protocol):
        return "a new one is not served"
    if not wait_until(lambda: sum(map(is_open, held)) <= bound):
        return "%d of %d stay" % (sum(map(is_open, held)), count)
    return "ok"


def handshake(host, port):
    connection = connect(host, port)
    record = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)
    for byte in record:
        try:
            connection.sendall(bytes([byte]))
        except OSError:
            return "ok"
        time.sleep(0.2)
        if not is_open(connection):
            return "ok"
        connection.setblocking(True)
    return "still open after %d bytes" % len(record)


def report(host, port, token, size, missing=0):
    connection = connect(host, port, "192.0.2.3" if token else "192.0.2.2")
    item = b'{"domain":"api","descriptors":[{"entries":[{"key":"user","value":"bob"}]}]}'
    body = b"[" + item + b" " * (size - len(item) - 2) + b"]"
    head = "POST /v1/report HTTP/1.1\r\nHost: 192.0.2.1\r\nContent-Length: %d\r\n%s\r\n" % (
        size, "X-Sluice-Token: %s\r\n" % token if token else "")
    connection.sendall(head.encode() + body[:size - missing])
    return connection


def bodies(host, port, token):
    held = [report(host, port, None, 4 << 20, 1) for _ in range(50)]
    answer = report(host, port, token, 1 << 20).recv(4096)
    if not answer.startswith(b"HTTP/1.1 202"):
        return "with the token: %s" % answer[:20]
    held[0].sendall(b"]")
    answer = held[0].recv(4096)
    return "ok" if answer.startswith(b"HTTP/1.1 401") else "without: %s" % answer[:20]


run = {"address": address, "bodies": bodies, "spread": spread, "handshake": handshake}[sys.argv[1]]
print(run(sys.argv[2], int(sys.argv[3]), *[int(a) if a.isdigit() else a for a in sys.argv[4:]]))
