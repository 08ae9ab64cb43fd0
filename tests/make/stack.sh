#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# stack.sh - scripts/stack.py: chains of calls of known size, and what is too large by one byte or frame.

. "$(dirname "$0")/../lib/netns.sh"
LAB_NAME=stack
cd "$REPO" || exit 1
LAB=$(mktemp -d) || exit 1
trap 'rm -rf "$LAB"' EXIT

# chain NAME SIZE...: NAME.o, a program that calls functions with frames of so many bytes.
chain() {
	local name=$1 i=0 size

	shift
	{
		echo "#define CALLED __attribute__((noinline))"
		echo "CALLED int call_$#(char *p) { asm volatile(\"\" : : \"r\"(p) : \"memory\"); return *p; }"
		for size in $(printf '%s\n' "$@" | tac); do
			i=$((i + 1))
			echo "CALLED int call_$(($# - i))(char *p) { char here[$size]; here[0] = *p;" \
				"return call_$(($# - i + 1))(here) + here[1]; }"
		done
		echo "__attribute__((section(\"xdp\"))) int program(void *ctx) { return call_0(ctx); }"
	} > "$LAB/$name.c"
	clang -O2 -target bpf -mcpu=v3 -c "$LAB/$name.c" -o "$LAB/$name.o"
}

refuses() { ! python3 scripts/stack.py check "$LAB/$1.o" > "$LAB/found"; }

# The program and the last function take 32 each, though they use none.
chain fits 224 224 || exit 1
check_true "a chain of 512 bytes" python3 scripts/stack.py check "$LAB/fits.o"
check_is "its size" "$(python3 scripts/stack.py show "$LAB/fits.o" | grep -o 'stack of [0-9]* in [0-9]* frames')" \
	"stack of 512 in 4 frames"
chain over 224 232
check_true "a byte more, rounded up" refuses over
check_is "where" "$(sed 's/.*): //' "$LAB/found")" \
	"program 32 -> call_0 224 -> call_1 256 -> call_2 32"
chain eight 8 8 8 8 8 8
check_true "eight frames" python3 scripts/stack.py check "$LAB/eight.o"
chain nine 8 8 8 8 8 8 8
check_true "nine frames" refuses nine
check_true "the programs of this build" python3 scripts/stack.py check build/bpf/*.bpf.o
[ $LAB_FAILED = 0 ]
