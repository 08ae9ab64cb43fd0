# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""abuse.py PORT IDLE CONTROL - broken and hostile HTTP clients, and one that just asks.

Prints JSON: how long the innocent one's requests took, p50 and p99 in ms, without and with each
kind of abuse beside it; which answers the abusers got; how many idle connections stood. With
ABUSE_ROUNDS=n p99 alone, without and with in turns, medians of n.

Clients are on other machines; here they share its CPUs with the daemon. So that what is measured is
the daemon's part, the innocent one always gets a CPU at once (where that is allowed), and abusers
only have what nobody else wants.
"""
import json
import multiprocessing
import os
import resource
import socket
import statistics
import sys
import time

PORT, IDLE = int(sys.argv[1]), int(sys.argv[2])
BODY = json.dumps({"domain": "api", "descriptors": [{"entries": [{"key": "user", "value": "innocent"}]}]})
REQUEST = ("POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)).encode()
HEAD = b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\n"


def connect():
    connection = socket.create_connection(("127.0.0.1", PORT), timeout=20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def status(connection):
    data = b""
    try:
        while b"\r\n" not in data:
            piece = connection.recv(4096)
            if not piece:
                break
            data += piece
    except (ConnectionError, socket.timeout):
        pass
    return int(data[9:12]) if data[:5] == b"HTTP/" else 0


def innocent(seconds):
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass
    try:
        return measure(seconds)
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def measure(seconds):
    connection, took, end = connect(), [], time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.perf_counter()
        connection.sendall(REQUEST)
        data = connection.recv(65536)
        if not data.startswith(b"HTTP/1.1 200"):
            raise SystemExit("the innocent client got %r" % data[:40])
        took.append((time.perf_counter() - begin) * 1000)
        time.sleep(0.002)
    took.sort()
    return {"n": len(took), "p50": round(took[len(took) // 2], 3), "p99": round(took[len(took) * 99 // 100], 3)}


def once(data, half_close=False):
    """One connection that says `data`; the status it gets."""
    connection = connect()
    try:
        connection.sendall(data)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
    except ConnectionError:
        pass
    code = status(connection)
    connection.close()
    return code


MALFORMED = {
    "garbage": (b"\x00\xff\xfe garbage\r\n\r\n", 400),
    "tls": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 64, 400),
    "no_host": (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    "no_json": (HEAD + b"Content-Length: 1\r\n\r\n{", 400),
    "deep_json": (HEAD + b"Content-Length: 40000\r\n\r\n" + b"[" * 40000, 400),
    "bad_chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    "two_lengths": (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    "smuggled": (HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "long_target": (b"GET /" + b"a" * 300000 + b" HTTP/1.1\r\n", 431),
    "long_header": (HEAD + b"X: " + b"a" * 300000 + b"\r\n\r\n", 431),
    "many_headers": (HEAD + b"X: a\r\n" * 500 + b"\r\n", 431),
    "long_body": (HEAD + b"Content-Length: 99999999\r\n\r\n" + b"a" * 1000, 429),
    "long_chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + (b"ffff\r\n" + b"a" * 65535 + b"\r\n") * 80, 429),
}


def flood(stop):
    while not stop.is_set():
        for data, _ in MALFORMED.values():
            try:
                once(data)
            except OSError:
                pass


def slow(stop):
    """Some hundred that say a byte at a time, for ever: each gets ten seconds."""
    connections = []
    while not stop.is_set():
        while len(connections) < 300:
            connections.append(connect())
        alive = []
        for connection in connections:
            try:
                connection.sendall(b"G")
                alive.append(connection)
            except OSError:
                connection.close()
        connections = alive
        stop.wait(0.2)


def greedy(stop):
    """Asks and does not read."""
    while not stop.is_set():
        connection = connect()
        connection.settimeout(1)
        try:
            while not stop.is_set():
                connection.sendall(REQUEST * 100)
        except OSError:
            pass
        connection.close()


def churn(stop):
    """Connects and goes, with and without half a request."""
    while not stop.is_set():
        for data in (b"", b"POST /v1/ch", REQUEST[:-5]):
            try:
                connection = connect()
                connection.sendall(data)
                connection.close()
            except OSError:
                pass


def busy(stop):
    """No abuse at all, only a process that wants a CPU: what the others are to be compared with."""
    while not stop.is_set():
        sum(range(1000))


def reload(stop):
    """The daemon's own chores: reloads over the control socket, and scrapes."""
    while not stop.is_set():
        control = socket.socket(socket.AF_UNIX)
        control.connect(sys.argv[3])
        control.sendall(b'{"command": "reload", "args": {}}\n')
        if b'"ok":true' not in control.recv(65536).replace(b" ", b""):
            raise SystemExit("reload failed")
        control.close()
        metrics = socket.create_connection(("127.0.0.1", 9810))
        metrics.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        while metrics.recv(65536):
            pass
        metrics.close()


def as_abuser(run, stop):
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    run(stop)


def idle(stop):
    """Ten thousand connections, or as many as were asked for, that say nothing."""
    connections = [connect() for _ in range(IDLE)]
    stop.wait()
    for connection in connections:
        connection.close()


def beside(run, seconds=1.5):
    stop = multiprocessing.Event()
    process = multiprocessing.Process(target=as_abuser, args=(run, stop), daemon=True)
    process.start()
    time.sleep(1 if run is idle else 0.3)
    try:
        return innocent(seconds)
    finally:
        stop.set()
        process.join(10)
        process.kill()


def pairs(run, rounds):
    """p99 without and with it, in turns: the medians, and how they compare."""
    quiet, with_it = [], []
    for _ in range(rounds):
        quiet.append(innocent(1.5)["p99"])
        with_it.append(beside(run)["p99"])
    quiet, with_it = statistics.median(quiet), statistics.median(with_it)
    return {"quiet": quiet, "with": with_it, "ratio": round(with_it / quiet, 2)}


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    if "ABUSE_ROUNDS" in os.environ:
        rounds = int(os.environ["ABUSE_ROUNDS"])
        print(json.dumps({run.__name__: pairs(run, rounds) for run in (busy, flood, slow, greedy, churn, reload, idle)}))
        return
    result = {"quiet": innocent(1.5)}
    result["answers"] = {name: once(data) for name, (data, _) in MALFORMED.items()}
    result["wrong"] = sorted(name for name, (_, code) in MALFORMED.items() if result["answers"][name] != code)
    result["half_closed"] = once(REQUEST, half_close=True)
    for run in (busy, flood, slow, greedy, churn, reload):
        result[run.__name__] = beside(run)
    standing = [connect() for _ in range(IDLE)]
    result["with_idle"] = innocent(1.5)
    result["idle"] = sum(1 for connection in standing[::100] if open_still(connection)) * 100
    print(json.dumps(result))


def open_still(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


main()
