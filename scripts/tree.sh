#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# tree.sh DIR - copies this tree into DIR, as what is built elsewhere: what git knows and does not ignore, or
# in an unpacked archive everything but build/. Times are kept, so that make builds what changed.

set -u
cd "$(dirname "$0")/.." || exit 1
if [ "$(git rev-parse --show-toplevel 2> /dev/null)" = "$PWD" ]; then
	git ls-files -z -co --exclude-standard | while IFS= read -r -d '' file; do
		[ -e "$file" ] && printf '%s\0' "$file"
	done
else
	find . -path ./build -prune -o ! -type d -print0
fi | tar -c --null -T - | tar -x --no-same-owner -C "$1"
