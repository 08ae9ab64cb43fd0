#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
fields.py - the fields in the texts of user/command/rows.h that no code writes: FILE: words; exit 1
where any.

A reply has the member "key" only if the string "key" stands in the code of the daemon or, for a
command that needs no daemon, of sluicectl. Whether the reply of this command has it, a test with a
real reply shows: sluicectl prints "(missing:key)" for one that is missing (user/cli/expand.c).
"""
import pathlib
import re
import subprocess
import sys

STRING = r'"(?:[^"\\]|\\.)*"'
NAME = r"[a-z][a-z0-9_]*"
FIELD = re.compile(rf"\$({NAME}(?:[.+/]{NAME})*)")

rows = subprocess.run(["gcc", "-E", "-P", "-D_GNU_SOURCE", "-Iinclude", "-Iuser", "user/command/command.c"],
                      capture_output=True, text=True, check=True).stdout
rows = rows[rows.index("const struct command commands[] ="):]
rows = rows[:rows.index("const size_t command_count")]
fields = set()
for kind, text in re.findall(rf"\.(of|when|line|cell|none) = \(?((?:{STRING}\s*)+)", rows):
    text = "".join(part[1:-1] for part in re.findall(STRING, text))
    for path in [text] if kind in ("of", "when") else FIELD.findall(text):
        fields.update(re.findall(NAME, path))

code = "".join(file.read_text() for file in pathlib.Path("user").rglob("*.[ch]")
               if file.parent.name != "command")
written = set(re.findall(rf'"({NAME})\\?"', code))
missing = sorted(fields - written)
for field in missing:
    print(f"user/command/rows.h: no code writes the member '{field}'")
if len(fields) < 150:
    print(f"scripts/fields.py: {len(fields)} fields were found: are the rows read?")
sys.exit(bool(missing) or len(fields) < 150)
