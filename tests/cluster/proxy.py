#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A TCP proxy that makes a bad network: proxy.py LISTEN TARGET CONTROL (each HOST:PORT).

A line to CONTROL changes it at once, for connections that are there, too; the answer is a line that
begins with "ok" or "error":

    delay MS        each direction; order and throughput stay as they are
    bandwidth N     bytes a second, each direction of each connection; 0: no limit
    blackhole on    nothing goes through any more, and nothing is said (off: goes on, nothing is lost)
    cut             connections that are there end with a reset
    refuse on       new ones are refused, those that are there are cut (off: as before)
    pass            all of this undone
    count           "ok ACCEPTED OPEN BYTES": connections so far, and now; bytes to the target
"""

import asyncio
import collections
import socket
import struct
import sys

AHEAD = 1 << 20  # bytes on their way in one direction


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


class Proxy:
    def __init__(self, listen, target):
        self.listen, self.target = listen, target
        self.delay = self.bandwidth = 0
        self.open = asyncio.Event()
        self.open.set()
        self.writers = set()
        self.accepted = self.bytes = 0
        self.server = None

    async def start(self):
        if not self.server:
            self.server = await asyncio.start_server(self.accept, *self.listen, reuse_address=True)

    async def stop(self):
        if self.server:
            self.server.close()
            self.server = None
        self.cut()

    def cut(self):
        for writer in list(self.writers):
            sock = writer.get_extra_info("socket")
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
            writer.transport.abort()

    async def accept(self, reader, writer):
        self.accepted += 1
        self.writers.add(writer)
        other = None
        try:
            other_reader, other = await asyncio.open_connection(*self.target)
            self.writers.add(other)
            for w in (writer, other):
                w.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ways = [asyncio.ensure_future(self.way(reader, other, True)),
                    asyncio.ensure_future(self.way(other_reader, writer, False))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            pass
        finally:
            for w in (writer, other):
                if w:
                    self.writers.discard(w)
                    w.close()

    async def way(self, reader, writer, counted):
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
                queue.append((loop.time(), data))
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
                while (left := came + self.delay - loop.time()) > 0:
                    await asyncio.sleep(min(left, 0.05))
                await self.open.wait()
                if not data:
                    return
                size -= len(data)
                if size <= AHEAD:
                    room.set()
                if counted:
                    self.bytes += len(data)
                step = max(1, int(self.bandwidth / 50)) if self.bandwidth else len(data)
                for i in range(0, len(data), step):
                    writer.write(data[i:i + step])
                    await writer.drain()
                    if self.bandwidth:
                        await asyncio.sleep(step / self.bandwidth)
        except OSError:
            pass
        finally:
            reading.cancel()

    async def command(self, word, value):
        if word == "delay":
            self.delay = float(value) / 1000
        elif word == "bandwidth":
            self.bandwidth = float(value)
        elif word == "blackhole":
            (self.open.clear if value == "on" else self.open.set)()
        elif word == "cut":
            self.cut()
        elif word == "refuse":
            await (self.stop() if value == "on" else self.start())
        elif word == "pass":
            self.delay = self.bandwidth = 0
            self.open.set()
            await self.start()
        elif word != "count":
            return "error: delay, bandwidth, blackhole, cut, refuse, pass or count"
        return f"ok {self.accepted} {len(self.writers) // 2} {self.bytes}"

    async def control(self, reader, writer):
        while line := (await reader.readline()).decode().split():
            try:
                answer = await self.command(line[0], line[1] if len(line) > 1 else "on")
            except ValueError as e:
                answer = f"error: {e}"
            writer.write(answer.encode() + b"\n")
            await writer.drain()
        writer.close()


async def main():
    listen, target, control = map(address, sys.argv[1:4])
    proxy = Proxy(listen, target)
    await proxy.start()
    server = await asyncio.start_server(proxy.control, *control, reuse_address=True)
    await server.serve_forever()


asyncio.run(main())
