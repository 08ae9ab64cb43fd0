#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# release.sh VERSION - raises the version: in the Makefile, from which the programs have it, and in
# scripts/debian/changelog, once all tests pass on Debian 12 and 13, with the packages and the image of a
# container. docs/CHANGELOG.md must have a part for it already. Commits nothing.

set -u
cd "$(dirname "$0")/.." || exit 1
new=${1:-}
old=$(sed -n 's/^VERSION := //p' Makefile)

fail() {
	echo "release: $*" >&2
	exit 1
}

[[ $new =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "NEW must be a version such as 0.2.0, not '$new'; this is $old"
[ "$new" != "$old" ] && [ "$(printf '%s\n' "$old" "$new" | sort -V | tail -1)" = "$new" ] ||
	fail "$new is not above $old"
grep -qx "## $new" docs/CHANGELOG.md || fail "docs/CHANGELOG.md has no part '## $new': write first what changed"
make --no-print-directory distro-test test-deb test-container || fail "the tests failed; the version is still $old"
sed -i "s/^VERSION := .*/VERSION := $new/" Makefile
{
	printf 'sluice (%s) unstable; urgency=medium\n\n  * See docs/CHANGELOG.md.\n\n -- %s  %s\n\n' "$new" \
		"$(sed -n 's/^Maintainer: //p' scripts/debian/control)" "$(date -R)"
	cat scripts/debian/changelog
} > scripts/debian/changelog.new && mv scripts/debian/changelog.new scripts/debian/changelog
echo "$old -> $new: Makefile, scripts/debian/changelog; commit them and tag v$new"
