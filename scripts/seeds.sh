#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# seeds.sh [PATTERN [COUNT]] - runs each random test with the seeds that tests/seeds.txt lists.
#
# A random test is a tests/{unit,prop,bpf}/**/test_NAME.c that reads SLUICE_SEED. PATTERN: those whose path
# contains it. COUNT: seeds 2 to COUNT + 1, whatever the list has; 1 is the seed of `make test` in CI.
# One test's seeds run one after the other, so that no test runs beside itself.
#
# Each failure is printed with its test and seed; a run that does not print its seed did not take it, and
# has failed. Last line: "N runs of N random tests, N failed"; exit 0 only where none failed.
# As another user than root tests skip what needs root. WIDTH: how many tests run at a time.

set -u
cd "$(dirname "$0")/.." || exit 1
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
list=tests/seeds.txt
pattern=${1:-} count=${2:-}
: "${TEST_TIMEOUT:=400}" "${WIDTH:=$(nproc)}"

die() {
	echo "not ok - seeds: $*" >&2
	exit 1
}

# run_seeds TEST SEED...: one after the other; what failed is printed at once, and counted in $out.
run_seeds() {
	local program=build/tests/$1 log=$out/${1//\//_} seed status why begin=$SECONDS

	for seed in "${@:2}"; do
		SLUICE_SEED=$seed timeout -k 20 "$TEST_TIMEOUT" "$program" > "$log" 2>&1
		status=$?
		why=
		if [ $status != 0 ]; then
			why="exit $status"
		elif ! grep -q "SLUICE_SEED=$seed\$" "$log" && ! grep -q '^\[  SKIPPED \]' "$log"; then
			why="it did not print this seed"
		fi
		echo "$1" >> "$log.runs"
		[ -n "$why" ] || continue
		echo "$1" >> "$log.failed"
		{
			echo "not ok - seeds: SLUICE_SEED=$seed $program: $why"
			grep -aE '^\[  FAILED  \]|^\[   LINE   \]|ERROR' "$log" | head -n 10
			tail -n 15 "$log"
		} > "$log.why"
		cat "$log.why"
	done
	echo "# $1: $((SECONDS - begin)) s, seeds: $(tr ' ' '\n' <<< "${*:2}" | awk '
		NR == 1 { first = last = $1; next }
		$1 == last + 1 { last = $1; next }
		{ printf "%s", first == last ? first " " : first " to " last " "; first = last = $1 }
		END { print first == last ? first : first " to " last }')"
}
if [ "${1:-}" = --test ]; then
	out=$2
	run_seeds "${@:3}"
	exit 0
fi
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT

declare -A only=() also=()
all=0
while read -r verb test seeds _; do
	case $verb in
	'' | '#'*) continue ;;
	all) all=$test; continue ;;
	esac
	[ -f "tests/$test.c" ] || die "$list: there is no tests/$test.c"
	case $verb in
	only) only[$test]=$seeds ;;
	also) also[$test]+=" $seeds" ;;
	*) die "$list: '$verb' is not all, only or also" ;;
	esac
done < "$list"
[ "$all" -gt 0 ] 2> /dev/null || die "$list: no line 'all COUNT'"

tests=$(grep -rlE --include='test_*.c' 'rng_start\(|case_seed\(|getenv\("SLUICE_SEED"\)' tests/{unit,prop,bpf} |
	sed 's|^tests/||; s|\.c$||' | sort)
[ -n "$tests" ] || die "no random test found"
for test in "${!only[@]}" "${!also[@]}"; do
	grep -qxF "$test" <<< "$tests" || die "$list: tests/$test.c is not random"
done

# The list's order: those with "only" are the longest, and begin.
for test in $(awk '$1 == "only" { print $2 }' "$list") $tests; do
	[[ $test == *$pattern* ]] && echo "$test"
done | awk '!seen[$0]++' > "$out/tests"
[ -s "$out/tests" ] || die "no random test matches '$pattern'"
begin=$SECONDS
while read -r test; do
	[ -x "build/tests/$test" ] || die "build/tests/$test is not built (make tests)"
	echo "$test" $(seq 2 $((1 + ${count:-${only[$test]:-$all}}))) ${also[$test]:-}
done < "$out/tests" > "$out/jobs"
xargs -a "$out/jobs" -P "$WIDTH" -L 1 "$0" --test "$out"
ran=$(cat "$out"/*.runs 2> /dev/null | wc -l)
failed=$(cat "$out"/*.failed 2> /dev/null | wc -l)
wanted=$(awk '{ n += NF - 1 } END { print n }' "$out/jobs")
[ "$ran" = "$wanted" ] || die "$ran of $wanted runs ended"
echo "$((SECONDS - begin)) s"
echo "$ran runs of $(wc -l < "$out/jobs") random tests, $failed failed"
[ "$failed" = 0 ]
