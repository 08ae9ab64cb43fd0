#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test.sh [PATTERN] - runs every test that is built, or those whose path matches PATTERN.
#
# Programs: of each tests/{unit,prop,bpf}/**/test_NAME.c the one in build/, in cmocka's own output ("[       OK ]",
# "[  FAILED  ]", "[  SKIPPED ]"; cmocka 1.1.5's TAP prints skips as failures). Scenarios:
# tests/{netns,http,cluster,escape,make}/*.sh, which print "ok - NAME", "not ok - NAME: why", "skip - NAME: why".
# Everything printed is shown. A test program that dies, that runs out of time, or that ran
# fewer tests than it announced counts as a failure, and so does running nothing at all.
# Last line: "N passed, N failed, N skipped"; exit 0 only where none failed.
#
# Up to three files that failed are run again, each with the machine to itself. One that passes then
# counts as passed and is listed under "unsteady": a defect of the code, the bound or the test, to be
# traced, but not one that this change is known to have brought. Programs only with a given SLUICE_SEED.
#
# CI=true: a test skipped for want of root counts as failed. SLUICE_SEED is passed on.

set -u
cd "$(dirname "$0")/.." || exit 1
# The distribution's programs first: a version manager's python3 takes half a second to start.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

pattern=${1:-}
: "${TEST_TIMEOUT:=400}"
passed=0 failed=0 skipped=0
declare -A failures=() failed_of=() # by file: what failed, a line each; how many
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT

# fail FILE COUNT [WHY]: so many of its tests failed, or what else is wrong with it.
fail() {
	failed=$((failed + $2))
	failures[$1]="${failures[$1]:-}  $1: ${3:-$2}"$'\n'
	failed_of[$1]=$((${failed_of[$1]:-0} + $2))
}

# Counts of a cmocka program: "ok failed skipped announced rootskips" over its groups. Results
# are those between "Running N test(s)" and "N test(s) run", so that the summary, which lists
# failures once more, is not counted.
count_cmocka() {
	awk '
	# "[==========] Running 3 test(s).", "[==========] 3 test(s) run."; 1.1.7 puts the name of the group before.
	/^\[==========\] (.*: )?Running [0-9]+ test/	{ running = 1; announced += $(NF - 1) }
	/^\[==========\] (.*: )?[0-9]+ test\(s\) run/	{ running = 0 }
	/^\[ RUN      \]/		{ root = 0 }
	/needs? root|requires? root|not root/	{ root = 1 }
	!running			{ next }
	/^\[       OK \]/		{ ok++ }
	/^\[  FAILED  \]/		{ bad++ }
	/^\[  SKIPPED \]/		{ skip++; rootskip += root; root = 0 }
	END { print ok + 0, bad + 0, skip + 0, announced + 0, rootskip + 0 }' "$1"
}

log_of() {
	echo "$out/${1//\//_}"
}

# start_each WIDTH FILE...: so many at a time. What each says is kept, and shown in their order.
start_each() {
	printf '%s\n' "${@:2}" | xargs -n 1 -P "$1" bash -c '
		log=$0/${2//\//_} run=("$2") TIMEFORMAT="%0R s, %0U + %0S s of CPU"
		[[ $2 != *.sh ]] || run=(bash "$2")
		{ time timeout -k 20 "$1" "${run[@]}" > "$log" 2>&1; } 2> "$log.took"
		echo $? > "$log.ended"
		mv "$log.ended" "$log.status"' "$out" "$TEST_TIMEOUT" &
}

# show FILE: waits for its end; $log and $status are those of the caller.
show() {
	log=$(log_of "$1")
	echo "== $1"
	until [ -e "$log.status" ]; do
		sleep 0.1
	done
	cat "$log"
	status=$(< "$log.status")
	tell_long "$1" "$(< "$log.took")"
}

judge_program() {
	local program=$1 log status ok bad skip announced rootskip

	show "$program"
	read -r ok bad skip announced rootskip < <(count_cmocka "$log")
	if [ "${CI:-}" = true ] && [ "$rootskip" -gt 0 ]; then
		echo "not ok - $program: $rootskip skipped for want of root, and CI=true"
		skip=$((skip - rootskip))
		bad=$((bad + rootskip))
	fi
	passed=$((passed + ok))
	skipped=$((skipped + skip))
	[ "$bad" -gt 0 ] && fail "$program" "$bad"
	# Failures outside the counts: a crash, a time-out, a failed fixture, no tests.
	if [ "$announced" = 0 ]; then
		echo "not ok - $program: it announced no test (exit $status)"
		fail "$program" 1 "no test"
	elif [ $((ok + bad + skip)) -ne "$announced" ]; then
		echo "not ok - $program: ended after $((ok + bad + skip)) of $announced tests (exit $status)"
		fail "$program" 1 "died (exit $status)"
	elif [ "$status" != 0 ] && [ "$bad" = 0 ]; then
		echo "not ok - $program: exit $status though no test failed"
		fail "$program" 1 "exit $status"
	fi
}

judge_scenario() {
	local script=$1 log status ok bad skip rootskip

	show "$script"
	ok=$(grep -c '^ok - ' "$log")
	bad=$(grep -c '^not ok - ' "$log")
	skip=$(grep -c '^skip - ' "$log")
	rootskip=$(grep -c '^skip - .*needs root' "$log")
	if [ "${CI:-}" = true ] && [ "$rootskip" -gt 0 ]; then
		echo "not ok - $script: skipped for want of root, and CI=true"
		skip=$((skip - rootskip))
		bad=$((bad + rootskip))
	fi
	passed=$((passed + ok))
	skipped=$((skipped + skip))
	[ "$bad" -gt 0 ] && fail "$script" "$bad"
	if [ $((ok + bad + skip)) = 0 ]; then
		echo "not ok - $script: it ran no test (exit $status)"
		fail "$script" 1 "no test"
	elif [ "$status" != 0 ] && [ "$bad" = 0 ]; then
		echo "not ok - $script: exit $status though no test failed"
		fail "$script" 1 "exit $status"
	fi
}

# What takes long is shown, so that it can be made shorter. $2: "SECONDS s, ...".
tell_long() {
	[ "${2%% *}" -lt 5 ] || echo "# $1: $2"
}

# run_each WIDTH JUDGE FILE...: those whose path matches the pattern.
run_each() {
	local file files=()

	for file in "${@:3}"; do
		[[ -f $file && $file == *$pattern* ]] || continue
		[[ -x $file || $file == *.sh ]] && files+=("$file")
	done
	[ ${#files[@]} = 0 ] && return
	start_each "$1" "${files[@]}"
	for file in "${files[@]}"; do
		"$2" "$file"
	done
}

begin=$SECONDS
# Most programs compute, a few wait for the kernel. Scenarios wait most of their time, each in namespaces
# of its own: four at a time, the longest first. Those that flood, take a core or run at real-time
# priority have the machine for themselves.
alone='/(escape|netns/elastic|flood|hold|loop|survive|faults)\.sh$'
scenarios=$(ls -S tests/{cluster,netns,http,escape,make}/*.sh)
long=$(grep -E '/(docs|txn|failover|scenarios)\.sh$' <<< "$scenarios")
# By their sources: a program whose source was moved or removed is not run.
run_each 3 judge_program $(find tests/{unit,prop,bpf} -name 'test_*.c' | sort | sed 's|^|build/|; s|\.c$||')
run_each 1 judge_scenario $(grep -E "$alone" <<< "$scenarios")
run_each 4 judge_scenario $long $(grep -vE "$alone" <<< "$scenarios" | grep -vxF "$long")

if [ $((passed + failed + skipped)) = 0 ]; then
	echo "not ok - no test ran"
	fail "all" 1 "no test ran"
fi
# again FILE: alone. If all passes now, it was unsteady.
again() {
	local first=${failures[$1]} count=${failed_of[$1]} judge=judge_program before=$passed before_skipped=$skipped

	[[ $1 != *.sh ]] || judge=judge_scenario
	rm -f "$(log_of "$1")"*
	unset "failures[$1]" "failed_of[$1]"
	failed=$((failed - count))
	echo "== once more, alone: $1"
	pattern=$1
	run_each 1 $judge "$1"
	passed=$before skipped=$before_skipped
	if [ -z "${failures[$1]:-}" ]; then
		passed=$((passed + count))
		unsteady+="$first"
	fi
}
unsteady=
[ ${#failures[@]} -gt 3 ] || for file in "${!failures[@]}"; do
	# With a random seed a second run is another test.
	[[ $file == *.sh || ( -x $file && -n ${SLUICE_SEED:-} ) ]] && again "$file"
done

[ -n "$unsteady" ] && printf '\nunsteady, passed when run again:\n%s' "$unsteady"
[ ${#failures[@]} = 0 ] || { printf '\nfailed:\n' && printf '%s' "${failures[@]}"; }
echo "$((SECONDS - begin)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
