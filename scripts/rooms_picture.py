#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
rooms_picture.py - docs/pictures/rooms.svg: the table of scripts/rooms.py, drawn.

    rooms_picture.py         writes the picture
    rooms_picture.py check   exit 1 where the picture is not that of the table

Only where a room stands, and what it is, is written here; its uses and the arrows are taken from the table. An
arrow is left out where a longer way leads to the same room. It fails on a room without a place, and on
an arrow that would cross a box.
"""
import importlib.machinery
import importlib.util
import os
import sys
import textwrap
from xml.sax.saxutils import escape

sys.dont_write_bytecode = True	# of rooms.py, beside it
HERE = os.path.dirname(os.path.abspath(__file__))
PICTURE = os.path.join(HERE, "..", "docs", "pictures", "rooms.svg")

WIDTH, HEIGHT = 1080, 1154
BOX = 78
FRONTENDS = "request/frontends/*"

# room: (x, y, width, what it is)
PLACE = {
    "daemon": (20, 20, 590, "processes, privileges, loops, timers; joins everything"),
    "command": (630, 20, 110, "commands"),
    "replay": (750, 20, 110, "captures, logs"),
    "cli": (870, 20, 190, "sluicectl"),
    "control/commands": (32, 199, 300, "control socket, rights, audit log"),
    "control/metrics": (32, 289, 300, "exposition, status page"),
    "control/replication": (390, 154, 300, "blocks, bans, push-downs of other nodes"),
    "control/mitigation": (390, 244, 300, "joins the tiers: budgets, push-downs"),
    "control/elastic": (390, 334, 300, "joins the tiers: elastic limits"),
    "control/running": (748, 244, 300, "live changes, history, confirm"),
    "packet/observe": (32, 470, 286, "events and their history"),
    "packet/explain": (32, 564, 142, "what would happen"),
    "packet/host": (188, 564, 130, "this host: bans"),
    "packet/dataplane": (32, 664, 206, "maps, programs, interfaces"),
    "bpf": (262, 664, 56, ""),
    "packet/compile": (32, 758, 286, "configuration to image"),
    FRONTENDS: (362, 470, 376, "http1, grpc, spoe, syslog: decode, decide, encode"),
    "request/server": (362, 564, 180, "workers, listeners, TLS"),
    "request/mitigation": (558, 564, 180, "users behind addresses"),
    "request/engine": (362, 664, 376, "one decision: collect, decide, delay"),
    "request/rules": (362, 758, 376, "rule files to a rule set that never changes"),
    "cluster/bus": (782, 564, 266, "members, signed messages"),
    "cluster/quota": (782, 664, 266, "strict, lease, write_back over Redis"),
    "cluster/redis": (782, 758, 130, "the client"),
    "config": (32, 878, 880, "the model of sluice.yaml and its checks; overrides of both tiers"),
    "counters": (928, 878, 120, "counter table"),
    "conf": (32, 978, 420, "syntax: YAML with positions, reading, writing"),
    "client": (468, 978, 144, "libsluice"),
    "limiter": (628, 978, 420, "the algorithms in user space"),
    "lib": (32, 1078, 1016, ""),
}
# (x, y, width, height, name, line of text)
ZONES = [
    (20, 122, 1040, 302, "control: the running configuration, and what joins the two tiers",
     "may include all below, but request/server and the frontends"),
    (20, 440, 310, 408, "packet tier", "never includes the request tier"),
    (350, 440, 400, 408, "request tier", ""),
    (770, 440, 290, 408, "many nodes", ""),
    (20, 866, 1040, 268, "", ""),
]

STYLE = """
    .paper { fill: #ffffff }
    .zone { fill: #f4f6f8; stroke: #c3cad2 }
    .box { fill: #ffffff; stroke: #57606a; stroke-width: 1.4 }
    .packet { fill: #ddf0e3; stroke: #2b7a46 }
    .request { fill: #dfeafc; stroke: #2f62b5 }
    .cluster { fill: #f3e6fb; stroke: #7d3fae }
    .control { fill: #fdf0d5; stroke: #96660a }
    .arrow { fill: none; stroke: #3d444d; stroke-width: 1.5 }
    .head { fill: #3d444d }
    text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; text-anchor: middle }
    .name { font-weight: 600; font-size: 14px }
    .small { font-size: 11px; fill: #4c545d }
    .left { text-anchor: start }
    .right { text-anchor: end }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117 }
      .zone { fill: #161b22; stroke: #3d444d }
      .box { fill: #0d1117; stroke: #9198a1 }
      .packet { fill: #12331f; stroke: #4fbf77 }
      .request { fill: #132b52; stroke: #78a9f7 }
      .cluster { fill: #35194a; stroke: #c890f0 }
      .control { fill: #3d2c08; stroke: #d9a441 }
      .arrow { stroke: #b5bdc6 }
      .head { fill: #b5bdc6 }
      text { fill: #f0f3f6 }
      .small { fill: #b5bdc6 }
    }
"""


def table():
    """The table of rooms.py, with the four frontends as one: {room: set of rooms}."""
    loader = importlib.machinery.SourceFileLoader("rooms", os.path.join(HERE, "rooms.py"))
    rooms = importlib.util.module_from_spec(importlib.util.spec_from_loader("rooms", loader))
    loader.exec_module(rooms)
    found = {"bpf": set()}
    for room, uses in rooms.TABLE.items():
        name = FRONTENDS if room.startswith("request/frontends/") else room
        uses = {FRONTENDS if use.startswith("request/frontends/") else use for use in uses.split()}
        if found.setdefault(name, uses) != uses:
            sys.exit(f"rooms_picture.py: {room} may include something else than other frontends")
    return found


def below_control(rooms):
    return {room for room in rooms if not room.startswith("control/") and
            room not in ("daemon", "replay", "cli", "client", "command", "lib", "bpf", "request/server", FRONTENDS)}


def uses_text(room, rooms):
    uses = rooms[room]
    if room in ("lib", "bpf"):
        return ""
    if room == "daemon":
        return "includes all rooms"
    if room == "replay":
        return "joins the tiers"
    if room.startswith("control/"):
        if not below_control(rooms) <= uses:
            sys.exit(f"rooms_picture.py: {room} may not include all that the picture says of control")
        uses = uses - below_control(rooms)
    tier = room.split("/")[0] + "/"
    short = [use[len(tier):] if use.startswith(tier) else use for use in sorted(uses, key=list(PLACE).index)]
    return "includes " + ", ".join(short) if uses else ""


def arrows(rooms):
    """What each room includes, without what it includes through others; of control only control."""
    for room in PLACE:
        if room in ("daemon", "replay", "cli", "lib", "bpf"):
            continue
        uses = {use for use in rooms[room] if use != "lib"}
        if room.startswith("control/"):
            uses = {use for use in uses if use.startswith("control/")}
        for use in sorted(uses, key=list(PLACE).index):
            if not any(use in rooms[other] for other in uses if other != use):
                yield room, use


def height(room):
    # Five lines need a taller box.
    return {"lib": 44, "daemon": 86, "command": 86, "replay": 86, "cli": 86, "packet/explain": 84, "packet/host": 84,
            "request/server": 84, "request/mitigation": 84, "cluster/bus": 84}.get(room, BOX)


def line_between(room, use):
    """From the edge of one box to the next: down where they stand above each other, else to the side."""
    x, y, width, _ = PLACE[room]
    to_x, to_y, to_width, _ = PLACE[use]
    left, right = max(x, to_x), min(x + width, to_x + to_width)
    if to_y >= y + height(room) and right - left > 20:
        middle = (left + right) // 2
        return middle, y + height(room), middle, to_y
    if to_x < x + width:
        sys.exit(f"rooms_picture.py: no way to draw {room} -> {use}")
    from_y, at_y = y + height(room) // 2, to_y + height(use) // 2
    aside = 0 if from_y == at_y else 16 if from_y < at_y else -16
    return x + width, from_y + aside, to_x, at_y - aside


def crosses(line, room):
    x1, y1, x2, y2 = line
    x, y, width, _ = PLACE[room]
    return x1 < x + width and x2 > x and min(y1, y2) < y + height(room) and max(y1, y2) > y


def kind(room):
    return {"packet": "packet", "bpf": "packet", "request": "request", "cluster": "cluster",
            "control": "control"}.get(room.split("/")[0], "")


def box(room, rooms):
    x, y, width, what = PLACE[room]
    middle = x + width // 2
    yield f'  <rect class="box {kind(room)}" x="{x}" y="{y}" width="{width}" height="{height(room)}" rx="6"/>'
    lines = [("name", room + "/" if room != FRONTENDS else room)]
    if room == "lib":
        lines = [("name", "lib/"), ("small", "errors, units, addresses, clocks, log, hash table; every room may include it, and include/sluice/")]
    if what:
        lines.append(("", what))
    uses = uses_text(room, rooms)
    # 11 px of a sans-serif font: 6 px a letter, rounded up
    lines += [("small", line) for line in textwrap.wrap(uses, (width - 8) // 6, break_on_hyphens=False)]
    pitch = {"name": 18, "": 16, "small": 13}
    for _, line in lines[1:2] if what else []:
        if len(line) * 7.2 > width:
            sys.exit(f"rooms_picture.py: '{line}' is too long for its box")
    at = y + (height(room) - sum(pitch[style] for style, _ in lines)) // 2
    if at < y + 5:
        sys.exit(f"rooms_picture.py: {room} has too many lines")
    for style, line in lines:
        at += pitch[style]
        yield f'  <text class="{style}" x="{middle}" y="{at - 4}">{escape(line)}</text>'


def draw():
    rooms = table()
    if set(rooms) != set(PLACE):
        sys.exit(f"rooms_picture.py: rooms without a place, or places without a room: {set(rooms) ^ set(PLACE)}")
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="title desc">',
        '  <title id="title">The rooms of user/, and which may include which</title>',
        '  <desc id="desc">Made by scripts/rooms_picture.py from the table of scripts/rooms.py; each box names what it includes.</desc>',
        f"  <style>{STYLE}  </style>",
        '  <defs>',
        '    <marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">',
        '      <path class="head" d="M0 0 L10 5 L0 10 z"/>',
        '    </marker>',
        '  </defs>',
        f'  <rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
    ]
    for x, y, width, tall, name, words in ZONES:
        out.append(f'  <rect class="zone" x="{x}" y="{y}" width="{width}" height="{tall}" rx="8"/>')
        if name:
            out.append(f'  <text class="name left" x="{x + 12}" y="{y + 21}">{escape(name)}</text>')
        if words:
            at = (f'x="{x + width - 12}" y="{y + 21}"', "right") if width > 500 else (f'x="{x + 12}" y="{y + 40}"', "left")
            out.append(f'  <text class="small {at[1]}" {at[0]}>{escape(words)}</text>')
    for room, use in arrows(rooms):
        line = line_between(room, use)
        for other in PLACE:
            if other not in (room, use) and crosses(line, other):
                sys.exit(f"rooms_picture.py: {room} -> {use} would cross {other}")
        out.append('  <path class="arrow" d="M%d %d L%d %d" marker-end="url(#head)"/>' % line)
    # daemon and control stand above all others
    for x1, y1, y2 in ((385, 106, 122), (175, 424, 440), (550, 424, 440), (915, 424, 440)):
        out.append(f'  <path class="arrow" d="M{x1} {y1} L{x1} {y2}" marker-end="url(#head)"/>')
    for room in PLACE:
        out += box(room, rooms)
    return "\n".join(out) + "\n</svg>\n"


def main():
    picture = draw()
    if sys.argv[1:] == ["check"]:
        with open(PICTURE, encoding="utf-8") as text:
            if text.read() != picture:
                print("docs/pictures/rooms.svg is not the table's picture: run scripts/rooms_picture.py")
                return 1
        return 0
    with open(PICTURE, "w", encoding="utf-8") as text:
        text.write(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
