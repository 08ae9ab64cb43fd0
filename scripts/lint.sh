#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# lint.sh - the rules of the house that a script can check:
#
#   - who may include what: include/ only itself; bpf/ that, linux/, bpf/ and stddef.h (a
#     compiler's own header); rooms of user/ what scripts/rooms.py allows; only
#     user/packet/dataplane/dp_bpf*, dp_attach* libbpf, libxdp or a skeleton; of user/cli only
#     check* more than lib/, command/ and itself
#   - C is as clang-format 14 formats it (where that version is installed)
#   - a file has at most 1,500 lines; a function over 70 says why: a comment with "over 70 lines" in
#     the 12 lines above it
#   - no retired term: scripts/terms.py
#   - README and docs/*.md but the changelog have at most 30,000 words (wc -w)
#   - each field that a row of user/command/rows.h names is written somewhere: scripts/fields.py
#   - the tables of keys in the documents are those of the rows: scripts/keys.py (if sluicectl is built)
#   - the calls of each BPF program fit into 512 bytes of stack, as Linux 6.1 counts: scripts/stack.py
#     (of those that are built)
#   - the tables of docs/scaling.md and its decision are those that tests/bench/scaling.py derives
#   - every source file names its licence
#   - no machine's own paths
#
# Exit 1 where any is broken; every finding is FILE:LINE: words.

set -u
cd "$(dirname "$0")/.." || exit 1

found=0
say() {
	echo "$*"
	found=$((found + 1))
}

# check_includes "FILES" "ALLOWED REGEX" WORDS: every #include must match the regex.
check_includes() {
	local file line target

	for file in $1; do
		[ -f "$file" ] || continue
		while IFS=: read -r line target; do
			[[ $target =~ $2 ]] || say "$file:$line: includes $target: $3"
		done < <(sed -nE 's/^[ \t]*#[ \t]*include[ \t]*([<"][^>"]*[>"]).*/\1/; t p; d; :p =;p' "$file" |
			 paste -d: - -)
	done
}

check_includes "$(echo include/sluice/*.h)" '^"([a-z0-9_]+\.h|sluice/[a-z0-9_]+\.h)"$' \
	"include/ includes only itself"
check_includes "$(echo bpf/*.h bpf/*.c)" '^(<(linux|bpf|xdp)/[a-z0-9_/]+\.h>|<stddef\.h>|"(sluice|bpf)/[a-z0-9_]+\.h"|"[a-z0-9_]+\.h")$' \
	"bpf/ includes include/, itself, linux/ and bpf/"
check_includes "$(echo user/cli/*.[ch])" '^(<[a-z0-9_/.-]+>|"(lib|cli|command)/[a-z0-9_]+\.h"|"[a-z0-9_]+\.h"|"[a-z0-9_/]+\.h")$' \
	"cli/ sees lib/ and command/ only"

for file in $(ls user/cli/*.[ch] 2> /dev/null); do
	case $file in
	user/cli/check* | user/cli/replay.c | user/cli/suggest.c) continue ;;
	esac
	while IFS= read -r line; do
		say "$file:$line: only cli/check, cli/replay and cli/suggest may see more than lib/, command/ and cli/"
	done < <(grep -nE '#[ \t]*include[ \t]*"' "$file" | grep -vE '"((lib|cli|command)/)?[a-z0-9_]+\.h"')
done

while IFS= read -r line; do
	file=${line%%:*}
	case $file in
	user/packet/dataplane/dp_bpf*.[ch] | user/packet/dataplane/dp_attach*.[ch]) continue ;;
	esac
	say "$line: only dp_bpf and dp_attach see libbpf, libxdp or a skeleton"
done < <(grep -nEr --include='*.[ch]' '#[ \t]*include[ \t]*([<"](bpf|xdp)/(bpf|libbpf|btf|libxdp|xsk)[a-z0-9_]*\.h|.*\.skel\.h)' user)

while IFS= read -r line; do
	say "$line"
done < <(python3 scripts/rooms.py check 2>&1 || echo "scripts/rooms.py failed"
	 python3 scripts/rooms_picture.py check 2>&1)

while IFS= read -r line; do
	say "$line"
done < <(python3 scripts/terms.py 2>&1)

while IFS= read -r line; do
	say "$line"
done < <(python3 scripts/fields.py 2>&1)

words=$(cat README.md $(ls docs/*.md | grep -v CHANGELOG) | wc -w)
[ "$words" -le 30000 ] || say "docs/: $words words; 30,000 are enough: say each thing once"

if [ -x build/sluicectl ]; then
	while IFS= read -r line; do
		say "$line"
	done < <(python3 scripts/keys.py check build/sluicectl 2>&1)
fi
while IFS= read -r line; do
	say "$line"
done < <(python3 tests/bench/scaling.py check 2>&1)

objects=$(ls build/bpf/*.bpf.o 2> /dev/null)
if [ -n "$objects" ]; then
	while IFS= read -r line; do
		say "$line"
	done < <(python3 scripts/stack.py check $objects 2>&1)
fi

sources=$(find include bpf user tests \( -name '*.c' -o -name '*.h' \) | sort)
for file in $sources; do
	lines=$(wc -l < "$file")
	[ "$lines" -le 1500 ] || say "$file:1: $lines lines; a file has at most 1,500"
done

case $(clang-format --version 2> /dev/null) in
*' 14.'*)
	while IFS=: read -r file line rest; do
		say "$file:$line: not as clang-format has it: clang-format -i $file"
	done < <(clang-format --dry-run $sources 2>&1 | grep 'clang-format-violations')
	;;
*) echo "lint: not checked: the format of C files, which takes clang-format 14" ;;
esac

# A function: "{" alone in column one, to "}" in column one.
for file in $sources; do
	while IFS= read -r line; do
		say "$line"
	done < <(awk -v file="$file" '
		{ text[NR % 16] = $0 }
		/^{$/ { start = NR; reason = 0
			for (i = NR - 12; i < NR; i++)
				if (i > 0 && text[i % 16] ~ /over 70 lines/)
					reason = 1 }
		/^}/ && start {
			if (NR - start - 1 > 70 && !reason)
				printf "%s:%d: a function of %d lines and no reason given (a comment above it with '\''over 70 lines'\'')\n", file, start, NR - start - 1
			start = 0 }' "$file")
done

for file in $sources $(ls scripts/*.sh tests/{netns,http,cluster,lib,make}/*.sh Makefile scripts/*.mk 2> /dev/null); do
	head -3 "$file" | grep -q 'SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause' ||
		say "$file:1: no SPDX licence line"
done

while IFS= read -r line; do
	say "$line: a path of one machine"
done < <(git grep -nE '/(home|work|root|Users)/[a-z]' -- . ':!scripts/lint.sh' ':!docs/decisions' | cut -d: -f1,2)

if [ "$found" -gt 0 ]; then
	echo "lint: $found findings"
	exit 1
fi
echo "lint: ok"
