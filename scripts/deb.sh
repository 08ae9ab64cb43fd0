#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# deb.sh build   Debian packages of this tree, on this system, into build/deb/
# deb.sh test    in the root of SUITE (scripts/distro.sh): builds the packages, and an upgrade of them;
#                lintian; installs, limits packets of a wire, upgrades while they come, removes, purges
#
# The packages are described in scripts/debian, which a copy of the tree has as debian/, where dpkg looks.

set -u
cd "$(dirname "$0")/.." || exit 1
OUT=$PWD/build/deb

fail() {
	echo "deb: $*" >&2
	exit 1
}

build() {
	local missing

	command -v dpkg-buildpackage > /dev/null && command -v dh > /dev/null || {
		[ "$(id -u)" = 0 ] || fail "needs the packages debhelper and dpkg-dev"
		apt-get -q update && apt-get -q install -y --no-install-recommends debhelper dpkg-dev ||
			fail "debhelper and dpkg-dev cannot be installed"
	} > /dev/null
	scripts/deps.sh build || fail "what building needs cannot be installed"
	missing=$(dpkg-checkbuilddeps scripts/debian/control 2>&1) || {
		# shellcheck disable=SC2086
		apt-get -q install -y --no-install-recommends ${missing##*: } > /dev/null ||
			fail "cannot be installed: ${missing##*: }"
	}
	rm -rf "$OUT"
	mkdir -p "$OUT/src"
	scripts/tree.sh "$OUT/src"
	mv "$OUT/src/scripts/debian" "$OUT/src/debian"
	(cd "$OUT/src" && dpkg-buildpackage -b -us -uc) > "$OUT/log" 2>&1 || {
		tail -20 "$OUT/log"
		fail "the packages cannot be built: build/deb/log"
	}
	ls "$OUT"/*.deb
}

case ${1:-} in
build) build ;;
test) exec scripts/distro.sh deb ;;
*)
	echo "usage: deb.sh build|test" >&2
	exit 2
	;;
esac
