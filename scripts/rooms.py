#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
rooms.py - the rooms of user/ and which room may include which.

    rooms.py check   every include that the table does not allow, and every unit test outside its
                     room's folder: FILE:LINE: words; exit 1 where any
    rooms.py         the graph of rooms, from the code: ROOM -> ROOM and the number of includes

A room is a folder under user/. All rooms may include lib/ and include/sluice/.
"""
import collections
import os
import re
import subprocess
import sys

EDGES_MAX = 45
TABLE = {
    "lib": "",
    "conf": "",
    "limiter": "",
    "counters": "limiter",
    "config": "conf limiter",
    "packet/compile": "config limiter",
    "packet/dataplane": "packet/compile config limiter bpf",
    "packet/host": "packet/dataplane packet/compile config limiter",
    "packet/observe": "",
    "packet/explain": "packet/dataplane packet/compile config",
    "request/rules": "conf config limiter",
    "cluster/redis": "config",
    "cluster/quota": "cluster/redis counters limiter",
    "request/engine": "request/rules counters limiter cluster/quota",
    "request/server": "request/engine request/rules cluster/quota counters config",
    "request/frontends/http1": "request/server request/engine request/rules",
    "request/frontends/grpc": "request/server request/engine request/rules",
    "request/frontends/spoe": "request/server request/engine request/rules",
    "request/frontends/syslog": "request/server request/engine request/rules",
    "request/mitigation": "request/rules request/engine config",
    "cluster/bus": "cluster/redis cluster/quota counters config",
}
ABOVE = " ".join(room for room in TABLE if not re.match("lib|request/(server|frontends)", room))
TABLE["control/running"] = ABOVE
TABLE["control/replication"] = ABOVE + " control/running"
TABLE["control/mitigation"] = ABOVE + " control/running"
TABLE["control/elastic"] = ABOVE + " control/running"
TABLE["control/metrics"] = TABLE["control/elastic"] + \
    " control/elastic control/replication control/mitigation"
TABLE["command"] = ""
TABLE["control/commands"] = TABLE["control/metrics"] + " command"
TABLE["daemon"] = " ".join(TABLE)
TABLE["client"] = "limiter"
# Joins the two tiers, as control does; so it counts as that does.
TABLE["replay"] = "conf config limiter counters packet/compile packet/dataplane request/rules request/engine " \
    "request/frontends/syslog"
TABLE["cli"] = "command conf config request/rules packet/compile replay"

# What is generated has the room of its source.
GENERATED = {"proto": "request/frontends/grpc", "lua": "cluster/quota", "bpf": "bpf", "page": "daemon",
             "version.h": "lib"}


def room_of(path):
    folder = os.path.dirname(path)
    while folder and folder not in TABLE:
        folder = os.path.dirname(folder)
    return folder or GENERATED.get(path.split("/")[0])


def includes():
    """Yields (file, line number, room, included file, its room) of every include between rooms."""
    files = subprocess.run(["git", "ls-files", "user"], capture_output=True, text=True,
                           check=True).stdout.split()
    for path in files:
        if not path.endswith((".c", ".h")):
            continue
        here = room_of(path[len("user/"):])
        with open(path, encoding="utf-8") as text:
            for number, line in enumerate(text, 1):
                match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
                if not match or match[1].startswith("sluice/"):
                    continue
                there = room_of(match[1])
                if here is None or there != here:
                    yield path, number, here, match[1], there


def unit_tests():
    """Yields the unit tests that are in no room's folder, nor in one that holds rooms."""
    for path in subprocess.run(["git", "ls-files", "tests/unit"], capture_output=True, text=True,
                               check=True).stdout.split():
        room = os.path.dirname(path)[len("tests/unit/"):]
        if not any(name == room or name.startswith(room + "/") for name in TABLE) or not room:
            yield path


def check():
    found = 0
    for path in unit_tests():
        print(f"{path}:1: in no room's folder under tests/unit/")
        found += 1
    for path, number, here, target, there in includes():
        if here is None:
            print(f"{path}:{number}: in no room of scripts/rooms.py")
            found += 1
        elif there != "lib" and there not in TABLE[here].split():
            print(f"{path}:{number}: {here} may not include {target} ({there})")
            found += 1
    if edges(graph()) > EDGES_MAX:
        print(f"scripts/rooms.py:1: {edges(graph())} edges between rooms; at most {EDGES_MAX}")
        found += 1
    return 1 if found else 0


def graph():
    return collections.Counter((here, there) for _, _, here, _, there in includes())


def edges(counts):
    """Without those to lib and those from control, daemon, replay, cli and client."""
    return sum(there not in ("lib", "bpf") and not re.match("control|daemon|replay|cli|client", str(here))
               for here, there in counts)


def show():
    for (here, there), count in sorted(graph().items(), key=str):
        print(f"{here} -> {there}: {count}")
    print(f"{edges(graph())} edges, without those to lib and those from control, daemon and cli")
    return 0


if __name__ == "__main__":
    sys.exit(check() if sys.argv[1:] == ["check"] else show())
