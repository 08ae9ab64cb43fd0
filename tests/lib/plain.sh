# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# plain.sh - results of scenarios without a lab: $dir is theirs, $dir/out the output of the command under test.

set -u
cd "$(dirname "$0")/../.." || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

# is WORDS COMMAND...
is() {
	if "${@:2}"; then
		echo "ok - $(basename "$0" .sh): $1"
	else
		echo "not ok - $(basename "$0" .sh): $1: $(head -c 600 "$dir/out" | tr '\n' '|')"
		failed=1
	fi
}
no() {
	! "$@"
}
prints() {
	grep -qE -- "$1" "$dir/out"
}
