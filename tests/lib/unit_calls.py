# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""unit_calls.py UNIT - the system calls that SystemCallFilter= of a unit file leaves, one a line."""
import re
import subprocess
import sys

listing = subprocess.run(["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True,
                         env={"SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "cat", "PATH": "/usr/bin:/bin"}).stdout
sets, name = {}, None
for line in re.sub(r"\x1b\[[0-9;]*m", "", listing).splitlines():
    if line.startswith("@"):
        name = line.strip()
        sets[name] = []
    elif name and line.startswith("    ") and not line.strip().startswith("#"):
        sets[name].append(line.strip())


def expand(word):
    return set().union(*map(expand, sets[word])) if word.startswith("@") else {word}


allowed = expand("@default")
for line in open(sys.argv[1]):
    if line.startswith("SystemCallFilter="):
        words = line.strip().split("=", 1)[1]
        calls = set().union(*map(expand, words.lstrip("~").split()))
        allowed = allowed - calls if words.startswith("~") else allowed | calls
print("\n".join(sorted(allowed)))
