#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Asks /v1/check for some users at the same time, one call of each after the other:

    load.py SECONDS PAUSE_MS DOMAIN KEY=VALUE...

and says for each, on a line of its own: KEY=VALUE N P50 P99 MAX STATUS:N... (milliseconds).
"""

import asyncio
import collections
import json
import sys
import time

WHERE = ("127.0.0.1", 8180)


def request(domain, entry):
    key, value = entry.split("=", 1)
    body = json.dumps({"domain": domain, "descriptors": [{"entries": [{"key": key, "value": value}]}]})
    return (f"POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1:8180\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()


async def answer(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    for line in head[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            await reader.readexactly(int(value))
    return head[0].split()[1]


async def user(end, pause, domain, entry):
    text, took, status = request(domain, entry), [], collections.Counter()
    reader, writer = await asyncio.open_connection(*WHERE)
    while time.monotonic() < end:
        begun = time.perf_counter()
        writer.write(text)
        status[await asyncio.wait_for(answer(reader), 20)] += 1
        took.append((time.perf_counter() - begun) * 1000)
        await asyncio.sleep(pause)
    writer.close()
    took.sort()
    at = [took[min(len(took) - 1, int(len(took) * part))] for part in (0.5, 0.99, 1)]
    print(entry, len(took), *(f"{ms:.1f}" for ms in at), *(f"{s}:{n}" for s, n in sorted(status.items())))


async def main():
    seconds, pause, domain, *entries = sys.argv[1:]
    end = time.monotonic() + float(seconds)
    await asyncio.gather(*(user(end, float(pause) / 1000, domain, entry) for entry in entries))


asyncio.run(main())
