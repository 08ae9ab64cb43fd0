#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# release.sh VERSION - raises the version: in the Makefile, from which the programs have it, and in
# debian/changelog. CHANGELOG.md must have a part for it already. Commits nothing.

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
grep -qx "## $new" CHANGELOG.md || fail "CHANGELOG.md has no part '## $new': write first what changed"
sed -i "s/^VERSION := .*/VERSION := $new/" Makefile
{
	printf 'sluice (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n\n' "$new" \
		"$(sed -n 's/^Maintainer: //p' debian/control)" "$(date -R)"
	cat debian/changelog
} > debian/changelog.new && mv debian/changelog.new debian/changelog
echo "$old -> $new: Makefile, debian/changelog; commit them and tag v$new"
