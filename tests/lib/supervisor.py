# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""supervisor.py - what systemd does for a service of Type=notify with FileDescriptorStoreMax.

    supervisor.py [--unit ADDRESS:PORT=NAME]... -- COMMAND...

Runs COMMAND with NOTIFY_SOCKET, keeps the descriptors it sends (FDSTORE=1, FDNAME), forgets those
it names (FDSTOREREMOVE=1), and passes all of them to the next run (LISTEN_FDS, LISTEN_PID,
LISTEN_FDNAMES). --unit: a socket unit's, bound here. Reads commands from standard input, a line
each, and answers each by a line when it is done:

    start       runs it; answers "ready" when it has said READY=1, or "ended"
    stop SIGNAL sends it and waits for the end; answers "ended STATUS SECONDS"
    store       answers the names of what is kept, in order
    quit
"""
import array
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time


class Supervisor:
    def __init__(self, command):
        self.command = command
        self.kept = []          # (name, fd)
        self.child = None
        self.ready = False
        self.directory = tempfile.mkdtemp()
        self.path = os.path.join(self.directory, "notify")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.path)

    def unit(self, address, name):
        host, port = address.rsplit(":", 1)
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, int(port)))
        listening.listen(16)
        self.kept.append((name, listening.detach()))

    def read_replies(self):
        fds = array.array("i")
        data, ancillary, _, _ = self.notify.recvmsg(4096, socket.CMSG_SPACE(64 * 4))
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(content[:len(content) - len(content) % 4])
        said = dict(line.split("=", 1) for line in data.decode().split("\n") if "=" in line)
        name = said.get("FDNAME", "stored")
        if said.get("READY") == "1":
            self.ready = True
        if said.get("FDSTOREREMOVE") == "1":
            for kept in [kept for kept in self.kept if kept[0] == name]:
                os.close(kept[1])
                self.kept.remove(kept)
        for fd in fds:
            same = [kept for kept in self.kept if os.fstat(kept[1]).st_ino == os.fstat(fd).st_ino]
            if said.get("FDSTORE") == "1" and not same:
                self.kept.append((name, fd))
            else:
                os.close(fd)

    def listen(self, seconds):
        while select.select([self.notify], [], [], seconds)[0]:
            self.read_replies()
            seconds = 0

    def start(self):
        fds = [os.dup(fd) for _, fd in self.kept]
        top = 3 + len(fds)
        # Out of the way of the numbers that they are to have.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, top + 50) for fd in fds]

        def prepare():
            for number, fd in enumerate(high):
                os.dup2(fd, 3 + number, inheritable=True)

        environment = dict(os.environ, NOTIFY_SOCKET=self.path)
        # The pid is only known in the child: a shell puts it there and becomes the daemon.
        command = ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"] + self.command
        if fds:
            environment["LISTEN_FDS"] = str(len(fds))
            environment["LISTEN_FDNAMES"] = ":".join(name for name, _ in self.kept)
        self.ready = False
        self.child = subprocess.Popen(command, env=environment, close_fds=False, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, preexec_fn=prepare)
        for fd in fds + high:
            os.close(fd)
        deadline = time.monotonic() + 20
        while not self.ready and self.child.poll() is None and time.monotonic() < deadline:
            self.listen(0.01)
        return "ready" if self.ready else "ended"

    def stop(self, name):
        begin = time.monotonic()
        self.child.send_signal(getattr(signal, "SIG" + name))
        while self.child.poll() is None:
            self.listen(0.005)
        self.listen(0)
        status, self.child = self.child.returncode, None
        return "ended %d %.3f" % (status, time.monotonic() - begin)

    def run(self):
        for line in sys.stdin:
            words = line.split()
            if words[0] == "start":
                answer = self.start()
            elif words[0] == "stop":
                answer = self.stop(words[1])
            elif words[0] == "store":
                self.listen(0)
                answer = " ".join(sorted(name for name, _ in self.kept))
            else:
                break
            print(answer, flush=True)

    def end(self):
        if self.child:
            self.child.kill()
            self.child.wait()
        os.unlink(self.path)
        os.rmdir(self.directory)


def main():
    arguments = sys.argv[1:]
    split = arguments.index("--")
    supervisor = Supervisor(arguments[split + 1:])
    for argument in arguments[:split]:
        if argument.startswith("--unit="):
            supervisor.unit(*argument[len("--unit="):].split("="))
    try:
        supervisor.run()
    finally:
        supervisor.end()


main()
