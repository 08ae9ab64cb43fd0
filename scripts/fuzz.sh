#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# fuzz.sh PROGRAM - runs one fuzzer of build/fuzz for FUZZ_TIME seconds, from its corpus under
# tests/fuzz/corpus and what earlier runs found. Shows what it said where it failed.

set -u
cd "$(dirname "$0")/.." || exit 1
name=${1##*/} dir=${1%/*}
mkdir -p "$dir/corpus/$name"
corpus=("$dir/corpus/$name")
[ ! -d "tests/fuzz/corpus/$name" ] || corpus+=("tests/fuzz/corpus/$name")
if "$1" -max_total_time="${FUZZ_TIME:-30}" -print_final_stats=1 -artifact_prefix="$dir/" \
	"${corpus[@]}" > "$dir/$name.log" 2>&1; then
	echo "ok - $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$dir/$name.log") inputs"
else
	tail -n 60 "$dir/$name.log"
	echo "not ok - $name"
	exit 1
fi
