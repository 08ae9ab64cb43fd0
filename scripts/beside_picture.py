#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
beside_picture.py [check] - docs/pictures/beside.svg: cost beside other limiters, from docs/pictures/beside.tsv.

scripts/bench-beside.sh measures and writes that file. check: exit 1 where the picture is another.
"""
import math
import os
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "pictures")
PICTURE, RESULTS = os.path.join(FOLDER, "beside.svg"), os.path.join(FOLDER, "beside.tsv")
LEFT, WIDTH, RIGHT = 64, 430, 240
TOP, HEIGHT = 52, 230
BARS_TOP, BAR = TOP + HEIGHT + 96, 30
LEAST, MOST = 1, 100		# of the packets' axis

PACKETS = (("sluice", "sluice", "ours"), ("walk", "XDP, walks its rules (stand-in)", "walk"),
           ("nft", "nft, dynamic sets", "nft"), ("iptables", "iptables, hashlimit", "iptables"))
REQUESTS = (("nginx", "nginx limit_req, in its own process"), ("haproxy", "HAProxy stick table, in its own process"),
            ("sluice-nginx", "sluice /nginx/check"), ("sluice-v1", "sluice /v1/check"),
            ("node", "Node.js, rate-limiter-flexible, Redis"))

STYLE = """
    .paper { fill: #ffffff }
    .grid { stroke: #c3cad2; stroke-width: 1 }
    .line { fill: none; stroke-width: 2.4 }
    .spread { stroke-width: 1.2 }
    .ours { stroke: #2b7a46 }
    .walk { stroke: #9a6700 }
    .nft { stroke: #0969da }
    .iptables { stroke: #c0392b }
    .bar { fill: #8c959f }
    .mine { fill: #2b7a46 }
    text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
    .name { font-weight: 600; font-size: 14px }
    .small { font-size: 12px; fill: #4c545d }
    .middle { text-anchor: middle }
    .end { text-anchor: end }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117 }
      .grid { stroke: #3d444d }
      .ours { stroke: #4fbf77 }
      .walk { stroke: #d8a527 }
      .nft { stroke: #58a6ff }
      .iptables { stroke: #ff8b7e }
      .bar { fill: #6e7681 }
      .mine { fill: #4fbf77 }
      text { fill: #f0f3f6 }
      .small { fill: #b5bdc6 }
    }
"""


def read():
    runs = {}
    with open(RESULTS, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                what, name, limits, *figures = line.split()
                runs.setdefault((what, name), {})[int(limits)] = tuple(map(float, figures))
    return runs


def packets(runs):
    counts = sorted(runs["packet", "sluice"])

    def x(limits):
        return LEFT + WIDTH * counts.index(limits) / (len(counts) - 1)

    def y(times):
        times = min(max(times, LEAST), MOST)
        return TOP + HEIGHT * (1 - math.log(times / LEAST) / math.log(MOST / LEAST))
    yield '  <text class="name" x="20" y="26">A refused packet: time of the frame, as a multiple of bare XDP_DROP</text>'
    for times in (1, 2, 5, 10, 20, 50, 100):
        yield f'  <path class="grid" d="M{LEFT} {y(times):.1f} H{LEFT + WIDTH}"/>'
        yield f'  <text class="small end" x="{LEFT - 8}" y="{y(times) + 4:.1f}">{times:g}</text>'
    for limits in counts:
        yield f'  <text class="small middle" x="{x(limits):.1f}" y="{TOP + HEIGHT + 20}">{limits}</text>'
    yield f'  <text class="small middle" x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 40}">limits; the last one matches</text>'
    below = 0
    for key, label, style in sorted(PACKETS, key=lambda p: -runs["packet", p[0]][counts[-1]][0]):
        points = runs["packet", key]
        path = " L".join(f"{x(n):.1f} {y(points[n][0]):.1f}" for n in counts)
        yield f'  <path class="line {style}" d="M{path}"/>'
        for n in counts:
            yield f'  <path class="spread {style}" d="M{x(n):.1f} {y(points[n][1]):.1f} V{y(points[n][2]):.1f}"/>'
        below = max(y(points[counts[-1]][0]) + 4, below + 17)
        # Two lines may be one upon the other: the label has the color, too.
        yield f'  <path class="line {style}" d="M{LEFT + WIDTH + 10} {below - 4:.1f} h14"/>'
        yield f'  <text class="small" x="{LEFT + WIDTH + 30}" y="{below:.1f}">{label}</text>'


def requests(runs):
    scale = (WIDTH - 150) / 3
    yield f'  <text class="name" x="20" y="{BARS_TOP - 16}">A request: CPU time of the server, as a multiple of nginx limit_req</text>'
    for i, (key, label) in enumerate(r for r in REQUESTS if ("request", r[0]) in runs):
        times = runs["request", key][1][0]
        at = BARS_TOP + i * BAR
        style = "mine" if key.startswith("sluice") else "bar"
        yield f'  <text class="small end" x="276" y="{at + 15}">{label}</text>'
        yield f'  <rect class="{style}" x="284" y="{at + 2}" width="{min(times, 3) * scale:.1f}" height="18" rx="2"/>'
        yield f'  <text class="small" x="{292 + min(times, 3) * scale:.1f}" y="{at + 15}">{times:.2f}{" (cut)" if times > 3 else ""}</text>'


def draw(runs):
    width, height = LEFT + WIDTH + RIGHT, BARS_TOP + BAR * len(REQUESTS) + 12
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title desc">'
    yield '  <title id="title">Cost of a refused packet and of a request beside other limiters</title>'
    yield '  <desc id="desc">'
    for (what, name), points in runs.items():
        yield f"    {what}, {name}: " + ", ".join(f"{f[0]} with {n} limits" if what == "packet" else f"{f[0]}" for n, f in points.items())
    yield "  </desc>"
    yield f"  <style>{STYLE}  </style>"
    yield f'  <rect class="paper" width="{width}" height="{height}" rx="8"/>'
    yield from packets(runs)
    yield from requests(runs)
    yield "</svg>"


def main():
    text = "\n".join(draw(read())) + "\n"
    if sys.argv[1:] == ["check"]:
        with open(PICTURE, encoding="utf-8") as file:
            if file.read() != text:
                sys.exit("docs/pictures/beside.svg is not what docs/pictures/beside.tsv has: make pictures")
        return
    with open(PICTURE, "w", encoding="utf-8") as file:
        file.write(text)


main()
