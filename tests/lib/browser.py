#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
browser.py - a page in headless Chromium: prints what an expression is in it, as JSON.

    browser.py URL WIDTH light|dark EXPRESSION [PICTURE.png]

It is evaluated once #main is shown, and again until it is not null, for ten seconds. Speaks the DevTools
protocol over a pipe: no WebSocket, no port.
"""
import base64
import json
import os
import subprocess
import sys
import tempfile
import time


class Browser:
    def __init__(self, profile):
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()

        def ends():
            # Chromium reads from 3 and writes to 4.
            a, b = os.dup(to_read), os.dup(back_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--remote-debugging-pipe", "--user-data-dir=" + profile],
            preexec_fn=ends, close_fds=False, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        os.close(to_read)
        os.close(back_write)
        self.buffer, self.number, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.buffer:
                data = os.read(self.back, 1 << 20)
                if not data:
                    sys.exit("chromium has ended")
                self.buffer += data
            text, self.buffer = self.buffer.split(b"\0", 1)
            reply = json.loads(text)
            if reply.get("id") == self.number:
                if "error" in reply:
                    sys.exit(f"{method}: {reply['error']}")
                return reply["result"]

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            sys.exit(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")


def main():
    url, width, scheme, expression = sys.argv[1:5]
    with tempfile.TemporaryDirectory(prefix="sluice-browser.", ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        try:
            browser.call("Emulation.setDeviceMetricsOverride", width=int(width), height=900,
                         deviceScaleFactor=1, mobile=False)
            browser.call("Emulation.setEmulatedMedia",
                         features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.call("Page.navigate", url=url)
            value, end = None, time.monotonic() + 10
            while value is None and time.monotonic() < end:
                time.sleep(0.1)
                if browser.value("!!document.querySelector('#main:not([hidden])')"):
                    value = browser.value(expression)
            print(json.dumps(value))
            if sys.argv[5:]:
                picture = browser.call("Page.captureScreenshot", captureBeyondViewport=True)
                with open(sys.argv[5], "wb") as file:
                    file.write(base64.b64decode(picture["data"]))
        finally:
            browser.process.kill()
            browser.process.wait()


main()
