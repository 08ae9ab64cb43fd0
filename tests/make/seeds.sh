#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# seeds.sh - scripts/seeds.sh in a tree of its own, with programs that fail for one seed, crash, or ignore their
# seed: which runs it makes, what it prints, and that it fails. Needs no root.

. "$(dirname "$0")/../lib/plain.sh"
mkdir -p "$dir/scripts" "$dir/tests/unit" "$dir/tests/prop" "$dir/tests/bpf" "$dir/build/tests/unit" "$dir/build/tests/prop"
cp scripts/seeds.sh "$dir/scripts/"

# program NAME SCRIPT: a random test; each run is noted.
program() {
	echo 'int main(void) { rng_start("x"); }' > "$dir/tests/$1.c"
	printf '#!/bin/sh\necho "%s $SLUICE_SEED" >> "%s/ran"\n%s\n' "$1" "$dir" "$2" > "$dir/build/tests/$1"
	chmod +x "$dir/build/tests/$1"
}
PRINTS='echo "# x: SLUICE_SEED=$SLUICE_SEED"'
# seeds LIST [ARGUMENT...]
seeds() {
	printf '%s\n' "$1" > "$dir/tests/seeds.txt"
	rm -f "$dir/ran"
	"$dir/scripts/seeds.sh" "${@:2}" > "$dir/out" 2>&1
}
runs_of() {
	grep -c "^$1 " "$dir/ran"
}
took() {
	[ "$(grep "^$1 " "$dir/ran" | cut -d' ' -f2 | xargs)" = "$2" ]
}

program unit/test_a "$PRINTS"
program prop/test_b "$PRINTS"
echo 'int main(void) { }' > "$dir/tests/unit/test_plain.c"
LIST='# a comment
all 3

only prop/test_b 1    # 35
also prop/test_b 4
also prop/test_b 1927711963248829288'
is "all pass" seeds "$LIST"
is "the seeds of all" took unit/test_a "2 3 4"
is "fewer of one, and those that failed once" took prop/test_b "2 4 1927711963248829288"
is "its last line" prints '^6 runs of 2 random tests, 0 failed$'
is "only those whose path contains a word" seeds "$LIST" prop
is "others do not run" [ "$(runs_of unit/test_a)" = 0 ]
is "so many seeds" seeds "$LIST" prop 4
is "and those that failed once" took prop/test_b "2 3 4 5 4 1927711963248829288"

is "no test of this name" no seeds "$LIST" nothing
is "a list that names a test that is gone" no seeds "$LIST
also unit/test_gone 7"
is "it is named" prints 'there is no tests/unit/test_gone.c'
is "one that is not random" no seeds "all 2
only unit/test_plain 1"
is "a word that the list does not know" no seeds "all 2
never unit/test_a 1"
is "a list without a count" no seeds "only unit/test_a 1"

program prop/test_b "$PRINTS; [ \$SLUICE_SEED != 4 ]"
is "one seed fails" no seeds "$LIST"
is "the test and its seed are printed" prints '^not ok - seeds: SLUICE_SEED=4 build/tests/prop/test_b: exit 1$'
is "others still run" prints '^6 runs of 2 random tests, 1 failed$'
program prop/test_b "$PRINTS; kill -SEGV \$\$"
is "a crash" no seeds "$LIST"
is "is a failure of each seed" prints '^6 runs of 2 random tests, 3 failed$'
program prop/test_b ""
is "a program that does not take its seed" no seeds "$LIST"
is "is one, too" prints 'SLUICE_SEED=2 build/tests/prop/test_b: it did not print this seed$'
rm "$dir/build/tests/prop/test_b"
is "a program that is not built" no seeds "$LIST"
is "it is named" prints 'build/tests/prop/test_b is not built'
exit $failed
