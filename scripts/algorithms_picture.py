#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
algorithms_picture.py PROGRAM [check] - docs/pictures/algorithms.svg: what each algorithm lets through over time.

PROGRAM (build/tests/bench/plot) steps the real algorithms. check: exit 1 where the picture is another.
"""
import os
import subprocess
import sys

PICTURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "pictures", "algorithms.svg")
LEFT, SECOND, END_S, TOP, ROW = 24, 22, 40, 84, 62
WIDTH = LEFT + SECOND * END_S + 76

STYLE = """
    .paper { fill: #ffffff }
    .grid { stroke: #c3cad2; stroke-width: 1 }
    .base { stroke: #57606a; stroke-width: 1 }
    .offered { stroke: #57606a; stroke-width: 1.6 }
    .passed { stroke: #2b7a46; stroke-width: 3 }
    .refused { stroke: #c0392b; stroke-width: 1.4 }
    text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
    .name { font-weight: 600; font-size: 14px; stroke: #ffffff; stroke-width: 4; paint-order: stroke }
    .small { font-size: 12px; fill: #4c545d }
    .middle { text-anchor: middle }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117 }
      .grid { stroke: #3d444d }
      .base, .offered { stroke: #9198a1 }
      .passed { stroke: #4fbf77 }
      .refused { stroke: #ff8b7e }
      text { fill: #f0f3f6 }
      .small { fill: #b5bdc6 }
      .name { stroke: #0d1117 }
    }
"""


def ticks(times, style, y, height):
    path = " ".join(f"M{LEFT + ms * SECOND / 1000:.1f} {y} v{-height}" for ms in times)
    return f'  <path class="{style}" fill="none" d="{path}"/>'


def draw(rows):
    height = TOP + ROW * len(rows) + 34
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title desc">'
    yield '  <title id="title">What each algorithm lets through of the same requests</title>'
    yield ('  <desc id="desc">Ten requests each ten seconds. A burst of 16 comes before the end of a window, then a pause, '
           'then about three a second.')
    for name, sent in rows.items():
        yield f"    {name}: {sum(ok for _, ok in sent)} of {len(sent)} pass."
    yield "  </desc>"
    yield f"  <style>{STYLE}  </style>"
    yield f'  <rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>'
    for second in range(0, END_S + 1, 10):
        x = LEFT + second * SECOND
        yield f'  <path class="grid" d="M{x} 30 V{height - 30}"/>'
        yield f'  <text class="small middle" x="{x}" y="{height - 12}">{second} s</text>'
    first = next(iter(rows.values()))
    yield f'  <text class="name" x="{LEFT + 4}" y="24">requests: 10 each 10 s are allowed</text>'
    yield ticks([ms for ms, _ in first], "offered", 58, 18)
    yield f'  <path class="base" d="M{LEFT} 58 H{LEFT + SECOND * END_S}"/>'
    yield f'  <text class="small" x="{LEFT + SECOND * END_S + 10}" y="58">{len(first)} sent</text>'
    for i, (name, sent) in enumerate(rows.items()):
        y = TOP + ROW * (i + 1) - 16
        passed = [ms for ms, ok in sent if ok]
        yield f'  <text class="name" x="{LEFT + 4}" y="{y - 26}">{name}</text>'
        yield ticks([ms for ms, ok in sent if not ok], "refused", y, 6)
        yield ticks(passed, "passed", y, 22)
        yield f'  <path class="base" d="M{LEFT} {y} H{LEFT + SECOND * END_S}"/>'
        yield f'  <text class="small" x="{LEFT + SECOND * END_S + 10}" y="{y}">{len(passed)} pass</text>'
    yield "</svg>"


def main():
    lines = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.splitlines()
    rows = {}
    for line in lines:
        name, ms, passed = line.split("\t")
        rows.setdefault(name, []).append((int(ms), passed == "1"))
    text = "\n".join(draw(rows)) + "\n"
    if sys.argv[2:] == ["check"]:
        with open(PICTURE, encoding="utf-8") as file:
            if file.read() != text:
                sys.exit("docs/pictures/algorithms.svg is not what the algorithms let through now: make pictures")
        return
    with open(PICTURE, "w", encoding="utf-8") as file:
        file.write(text)


main()
