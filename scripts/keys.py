#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
keys.py - the keys of the configuration in the documents, from their rows (user/conf/key.h).

    keys.py write SLUICECTL   replaces each table between its markers
    keys.py check SLUICECTL   FILE: words for each that is not current; exit 1 if any

Markers: <!--list:NAME--> and <!--end-->; in manual pages .\\" mdoc:NAME and
.\\" end. `sluicectl help --keys` prints the tables.
"""
import re
import subprocess
import sys

FILES = ["docs/configuration.md", "docs/cluster.md", "docs/http-rules.md", "docs/man/sluice.yaml.5",
         "docs/man/sluice.rules.5"]
MARKED = re.compile(r'^((?:<!--|\.\\" )((?:list|mdoc):\w+)(?:-->)?\n)(.*?)^((?:<!--|\.\\" )end(?:-->)?\n)',
                    re.S | re.M)


def tables(sluicectl):
    """The printed tables by their name, "list:http"."""
    text = subprocess.run([sluicectl, "help", "--keys"], capture_output=True, text=True,
                          check=True).stdout
    parts = re.split(r"^@(\S+)\n", text, flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("write", "check"):
        sys.exit(__doc__)
    known = tables(sys.argv[2])
    stale = False
    for path in FILES:
        with open(path, encoding="utf-8") as file:
            text = file.read()

        def current(match):
            # Markdown has a blank line between a marker and a table or list.
            blank = "" if match[2].startswith("mdoc") else "\n"
            return match[1] + blank + known[match[2]] + blank + match[4]

        new = MARKED.sub(current, text)
        if new == text:
            continue
        stale = True
        if sys.argv[1] == "check":
            print(f"{path}:1: a table of keys is not that of the rows: run make man")
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(new)
    sys.exit(stale and sys.argv[1] == "check")


main()
