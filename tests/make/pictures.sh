#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# pictures.sh - drawn pictures are those of the code: what each algorithm lets through. Needs no root.

. "$(dirname "$0")/../lib/plain.sh"

draws() {
	python3 scripts/algorithms_picture.py "$@" > "$dir/out" 2>&1
}

is "algorithms.svg is what the algorithms let through" draws build/tests/bench/plot check
build/tests/bench/plot | sed '0,/1$/s//0/' > "$dir/lines"
printf '#!/bin/sh\ncat %s\n' "$dir/lines" > "$dir/other"
chmod +x "$dir/other"
is "another verdict is found" no draws "$dir/other" check
is "with the command that draws it" prints 'make pictures'
is "beside.svg is what was measured" python3 scripts/beside_picture.py check
[ $failed = 0 ]
