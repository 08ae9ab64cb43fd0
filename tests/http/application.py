#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""application.py PORT - what stands behind a proxy: 200 with the headers it got as JSON, or the
status that X-Answer asks for; not before the file that X-Hold names is gone."""
import http.client
import http.server
import json
import os
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1       # a response in one segment

    def do_GET(self):
        length = int(self.headers.get("Content-Length") or 0)
        while os.path.exists(self.headers.get("X-Hold") or "/nowhere"):
            time.sleep(0.02)
        got = {"keys": self.headers.get_all("X-API-Key"), "method": self.command, "path": self.path[:200], "body": len(self.rfile.read(length)),
               "headers": {name.lower(): value[:200] for name, value in self.headers.items()}}
        body = json.dumps(got).encode()
        self.send_response(int(self.headers.get("X-Answer") or 200))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_GET

    def log_message(self, *args):
        pass


http.client._MAXHEADERS = 1000


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
