#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server of bounded concurrency, and clients that give up.

    overload.py server PORT SLOTS MS QUEUE   each request takes MS, SLOTS at a time, the others wait in
                                             order, QUEUE of them; further ones get 503. It does not
                                             find out that a client has given up
    overload.py best URL SLOTS SECONDS       SLOTS clients, each with one request after the other
    overload.py offer URL SECONDS SKIP TIMEOUT_MS CLASS=RATE...
                                             RATE requests a second at random times, whatever becomes of
                                             them. Counts those sent after SKIP seconds

best and offer print a line of JSON: by class {"sent", "good", "refused", "late"}: good are 200 within
TIMEOUT_MS.
"""
import asyncio
import json
import random
import sys
import time
import urllib.parse


async def serve(port, slots, ms, queue):
    waiting = asyncio.Queue()

    async def slot():
        while True:
            writer = await waiting.get()
            await asyncio.sleep(ms / 1000)
            respond(writer, "200 OK")

    def respond(writer, status):
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        writer.close()

    async def accept(reader, writer):
        try:
            await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            return
        if waiting.qsize() >= queue:
            respond(writer, "503 Full")
        else:
            waiting.put_nowait(writer)

    server = await asyncio.start_server(accept, "127.0.0.1", port, backlog=1024)
    await asyncio.gather(server.serve_forever(), *(slot() for _ in range(slots)))


async def status_of(host, port, path, name):
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nX-Class: {name}\r\n"
                     "Connection: close\r\n\r\n".encode())
        line = await reader.readline()
        return int(line.split()[1]) if line else 0
    finally:
        writer.close()


async def send(url, name, timeout_s, count):
    count["sent"] += 1
    try:
        status = await asyncio.wait_for(status_of(url.hostname, url.port, url.path, name), timeout_s)
    except (asyncio.TimeoutError, OSError):
        status = 0
    count["good" if status == 200 else "refused" if status == 429 else "late"] += 1


def new_count():
    return {"sent": 0, "good": 0, "refused": 0, "late": 0}


async def best(url, slots, seconds):
    count = new_count()
    end = time.monotonic() + seconds

    async def client():
        while time.monotonic() < end:
            await send(url, "normal", 10, count)

    await asyncio.gather(*(client() for _ in range(slots)))
    print(json.dumps({"all": count}))


async def offer(url, seconds, skip, timeout_s, rates):
    counts = {name: new_count() for name in rates}
    begin = time.monotonic()
    tasks = set()

    async def arrivals(name, rate):
        at = begin
        while True:
            at += random.expovariate(rate)
            if at >= begin + seconds:
                return
            await asyncio.sleep(max(0, at - time.monotonic()))
            count = counts[name] if at >= begin + skip else new_count()
            task = asyncio.create_task(send(url, name, timeout_s, count))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    await asyncio.gather(*(arrivals(name, rate) for name, rate in rates.items()))
    while tasks:
        await asyncio.wait(tasks)
    print(json.dumps(counts))


def main():
    what, where, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    if what == "server":
        asyncio.run(serve(int(where), *map(int, rest)))
    url = urllib.parse.urlsplit(where)
    if what == "best":
        asyncio.run(best(url, int(rest[0]), float(rest[1])))
    elif what == "offer":
        rates = {name: float(rate) for name, rate in (arg.split("=") for arg in rest[3:])}
        asyncio.run(offer(url, float(rest[0]), float(rest[1]), float(rest[2]) / 1000, rates))


main()
