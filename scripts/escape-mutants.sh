#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# escape-mutants.sh [NAME...] - puts faults of the past back, each into a copy of bpf/, and runs
# tests/escape/escape.sh over it: Linux must see every one of them. The faults are the lines of
# tests/escape/mutants: a name, the case class or flood that is about it, a file, a sed command
# that brings the fault back. Some 20 s for each. Exit 1 where one is not found.

set -u
cd "$(dirname "$0")/.." || exit 1
tree=$PWD/build/mutants
failed=0

rm -rf "$tree"
mkdir -p "$tree/build"
git ls-files -z bpf include user tests scripts Makefile |
	xargs -0 cp -a --parents -t "$tree" || exit 1
# What is compiled already stays so: only what includes bpf/ is made again.
cp -a build/bpf build/user build/proto build/lua build/lib*.a "$tree/build/" || exit 1
mkdir -p "$tree/build/tests"
cp -a build/tests/lib build/tests/escape "$tree/build/tests/" || exit 1

while IFS='|' read -r name class file edit <&3; do
	[[ $name == \#* || -z $name ]] && continue
	[ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
	cp "bpf/$file" "$tree/bpf/$file"
	sed -i -E "$edit" "$tree/bpf/$file"
	if cmp -s "bpf/$file" "$tree/bpf/$file"; then
		echo "not ok - $name: the edit changes nothing of bpf/$file"
		failed=1
		continue
	fi
	if ! make -C "$tree" -j"$(nproc)" ${CC:+CC="$CC"} build/tests/escape/escape > "$tree/log" 2>&1; then
		tail -n 5 "$tree/log"
		echo "not ok - $name: it does not compile"
		failed=1
	elif from=$SECONDS && SLUICE_BUILD=$tree/build ESCAPE_ARGS="--class $class" \
		timeout 60 bash tests/escape/escape.sh > "$tree/log" 2>&1; then
		echo "not ok - $name: not found by the cases '$class'"
		failed=1
	elif ! found=$(grep -E -m 1 ': (delivered over a limit|not delivered)|flood .* passed' "$tree/log"); then
		tail -n 5 "$tree/log"
		echo "not ok - $name: the run failed without a find"
		failed=1
	else
		echo "$found"
		echo "ok - $name: found in $((SECONDS - from)) s"
	fi
	cp "bpf/$file" "$tree/bpf/$file"
done 3< tests/escape/mutants
exit $failed
