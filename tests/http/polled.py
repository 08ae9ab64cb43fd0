#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""polled.py PORT FILE - what a daemon polls: /metrics has the number in FILE, /json has it as a
member, and every other path one kind of response that is none."""
import http.server
import sys
import time

BAD = {
    "/not-json": b"load=3",
    "/text": b'{"queue": {"used": "much"}}',
    "/other": b'{"queue": {"free": 1}}',
    "/negative": b'{"queue": {"used": -1}}',
    "/nan": b'{"queue": {"used": "NaN"}}',
    "/infinite": b'{"queue": {"used": "inf"}}',
    "/deep": b"[" * 100000,
    "/empty": b"",
    "/large": b'{"queue": {"used": 1}, "rest": "' + b"x" * 1000000 + b'"}',
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.split("?")[0]
        body, status = BAD.get(path, b'{"queue": {"used": 1}}'), 200
        with open(sys.argv[2], encoding="ascii") as file:
            number = file.read().strip()
        if path == "/hang":
            time.sleep(60)
        if path == "/trickle":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n")
            for byte in body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(0.3)
            return
        if path == "/close":
            return
        if path == "/garbage":
            self.wfile.write(b"\0\1\2\3" * 5000)
            return
        if path == "/head":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100000 + b"\r\n\r\n")
            return
        if path == "/metrics":
            body = f"queue_used {number}\nqueue_of{{a=\"1\"}} 1\nqueue_of{{a=\"2\"}} 2\n".encode()
        elif path == "/json":
            body = f'{{"pools": [{{"busy": 0}}, {{"busy": {number}}}]}}'.encode()
        elif path == "/moved":
            status = 302
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        if status == 302:
            self.send_header("Location", "/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
