#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A TCP proxy that makes a slow network: proxy.py LISTEN TARGET CONTROL (each HOST:PORT).

A line "delay MS" to CONTROL delays each direction at once, for connections that are there, too; order and
throughput stay as they are. "delay MS MS" is at random between the two, so that one connection overtakes
another. The answer is "ok".
"""

import asyncio
import collections
import random
import socket
import sys

AHEAD = 1 << 20  # bytes on their way in one direction


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


class Proxy:
    def __init__(self, target):
        self.target = target
        self.least = self.most = 0

    async def accept(self, reader, writer):
        other = None
        try:
            other_reader, other = await asyncio.open_connection(*self.target)
            for w in (writer, other):
                w.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ways = [asyncio.ensure_future(self.way(reader, other)),
                    asyncio.ensure_future(self.way(other_reader, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            pass
        finally:
            for w in (writer, other):
                if w:
                    w.close()

    async def way(self, reader, writer):
        """One direction: who reads stamps what came, who writes waits for its time."""
        loop = asyncio.get_running_loop()
        queue, news, room = collections.deque(), asyncio.Event(), asyncio.Event()
        size = 0
        room.set()

        async def read():
            nonlocal size
            data = b"-"
            while data:
                await room.wait()
                data = await reader.read(65536)
                queue.append((loop.time() + random.random() * (self.most - self.least), data))
                size += len(data)
                if size > AHEAD:
                    room.clear()
                news.set()

        reading = asyncio.ensure_future(read())
        try:
            while True:
                while not queue:
                    news.clear()
                    if reading.done():
                        return
                    await asyncio.wait([asyncio.ensure_future(news.wait()), reading],
                                       return_when=asyncio.FIRST_COMPLETED)
                came, data = queue.popleft()
                while (left := came + self.least - loop.time()) > 0:
                    await asyncio.sleep(min(left, 0.05))
                if not data:
                    return
                size -= len(data)
                if size <= AHEAD:
                    room.set()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            reading.cancel()

    async def control(self, reader, writer):
        while line := (await reader.readline()).decode().split():
            self.least, self.most = float(line[1]) / 1000, float(line[-1]) / 1000
            writer.write(b"ok\n")
            await writer.drain()
        writer.close()


async def main():
    listen, target, control = map(address, sys.argv[1:4])
    proxy = Proxy(target)
    servers = [await asyncio.start_server(proxy.accept, *listen, reuse_address=True),
               await asyncio.start_server(proxy.control, *control, reuse_address=True)]
    await asyncio.gather(*(server.serve_forever() for server in servers))


asyncio.run(main())
