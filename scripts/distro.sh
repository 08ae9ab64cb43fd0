#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# distro.sh COMMAND - the same on another Debian, in a root of its own under build/distro/:
#
#   base        makes that root, as small as Debian's is (debootstrap)
#   root        makes that root, with what building needs
#   prepare     and with what smoke and deb install
#   smoke       builds there, loads the programs within the verifier's budget, tests what depends on
#               libraries, and runs tests/netns/smoke.sh
#   deb         builds the Debian packages there, installs, upgrades and removes them (scripts/deb_inside.sh)
#   test        all tests
#   compilers   compiles bpf/ with each clang that this system and that one have, and loads what they
#               make, within the verifier's budget
#
# SUITE (trixie) is the other Debian. It comes from where this system's own packages come from, has a
# copy of the tree in /src, and a process, mount and bpf file system of its own: nothing is left of a
# run but the root, which the next one uses again. The kernel is this one. Needs root.

set -u
cd "$(dirname "$0")/.." || exit 1

SUITE=${SUITE:-trixie}
ROOT=${ROOT:-$PWD/build/distro/$SUITE}
JOBS=${JOBS:-$(nproc)}
COMPILERS="14 16 17 18 19"
BPF_CFLAGS="-O2 -g -target bpf -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Wno-unused-function
	-Iinclude -I. -I/usr/include/$(uname -m)-linux-gnu"

fail() {
	echo "distro: $*" >&2
	exit 1
}

# Where apt has this system's packages from: Debian's own, not updates or others.
mirror() {
	apt-get indextargets --format '$(ORIGIN) $(LABEL) $(COMPONENT) $(CODENAME) $(REPO_URI)' \
		'Created-By: Packages' |
		awk '$1 == "Debian" && $2 == "Debian" && $3 == "main" && $4 !~ /-/ { print $5; exit }'
}

# inside SHELL-TEXT: in /src there, with file systems that go when it ends.
inside() {
	# shellcheck disable=SC2016
	unshare --mount --pid --fork --kill-child bash -c '
		set -e
		mount --bind "$0" "$0"
		mount -t proc proc "$0/proc"
		mount --rbind /sys "$0/sys"
		mount --make-rslave "$0/sys"
		mount -t bpf bpf "$0/sys/fs/bpf"
		mount --rbind /dev "$0/dev"
		mount -t tmpfs tmpfs "$0/run"
		mount -t tmpfs tmpfs "$0/tmp"
		mkdir -p "$0/run/lock"
		exec chroot "$0" bash -c "cd /src && $1"' "$ROOT" "$1"
}

make_base() {
	local from

	[ "$(id -u)" = 0 ] || fail "needs root"
	if ! command -v debootstrap > /dev/null; then
		apt-get -q update && apt-get -q install -y --no-install-recommends debootstrap ||
			fail "debootstrap cannot be installed"
	fi
	if [ ! -e "$ROOT/made" ]; then
		from=$(mirror)
		[ -n "$from" ] || fail "apt has no Debian mirror"
		rm -rf "$ROOT"
		mkdir -p "$ROOT"
		debootstrap --variant=minbase --include=ca-certificates "$SUITE" "$ROOT" "$from" \
			> "$ROOT.log" 2>&1 || { tail -5 "$ROOT.log"; fail "no $SUITE from $from"; }
		apt-config dump | grep '^Acquire::https\?::Proxy' > "$ROOT/etc/apt/apt.conf.d/90host"
		cp /etc/resolv.conf "$ROOT/etc/resolv.conf" 2> /dev/null
		mkdir -p "$ROOT/src"
		touch "$ROOT/made"
	fi
}

make_root() {
	make_base
	find "$ROOT/src" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
	scripts/tree.sh "$ROOT/src"
	inside "scripts/deps.sh build" > "$ROOT.log" 2>&1 ||
		{ tail -20 "$ROOT.log"; fail "packages cannot be installed"; }
}

# install PACKAGE...: there.
install() {
	inside "dpkg -s $* > /dev/null 2>&1 || {
		apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y \
			--no-install-recommends $*; }" > "$ROOT.log" 2>&1 ||
		{ tail -20 "$ROOT.log"; fail "cannot be installed: $*"; }
}

SMOKE_NEEDS="libcmocka-dev iproute2 jq curl procps"
DEB_NEEDS="build-essential debhelper lintian iproute2 jq curl procps libcmocka-dev"

smoke() {
	make_root
	# shellcheck disable=SC2086
	install $SMOKE_NEEDS
	inside "
		make -j$JOBS all build/tests/netns/{blast,sink,scrape} build/tests/bpf/test_budget \
			build/tests/unit/cluster/redis/test_redis{_reader,_slots} build/tests/unit/request/frontends/test_frontends \
			> build.log 2>&1 || { tail -30 build.log; exit 1; }
		export CI=true
		scripts/test.sh test_budget && scripts/test.sh unit/ && scripts/test.sh smoke" ||
		fail "$SUITE: failed"
	echo "$SUITE: $(inside 'gcc -dumpversion; clang -dumpversion' | paste -sd' '): ok"
}

# object VERSION: compiles with clang VERSION of this system or of that one; 2: neither has it.
object() {
	local out=build/distro/clang-$1.bpf.o

	if ! command -v "clang-$1" > /dev/null && inside "apt-cache show clang-$1" > /dev/null 2>&1; then
		install "clang-$1"
		inside "clang-$1 $(echo $BPF_CFLAGS) -c -o sluice.bpf.o bpf/sluice.bpf.c" &&
			mv "$ROOT/src/sluice.bpf.o" "$out"
		return
	fi
	command -v "clang-$1" > /dev/null ||
		apt-get -q install -y --no-install-recommends "clang-$1" > "$ROOT.log" 2>&1 || return 2
	"clang-$1" $BPF_CFLAGS -c -o "$out" bpf/sluice.bpf.c
}

compilers() {
	local version objects= failed=0

	make_root
	make -s -j"$JOBS" build/tests/bpf/test_budget > build/distro/make.log 2>&1 ||
		{ tail -20 build/distro/make.log; fail "test_budget does not build"; }
	for version in $COMPILERS; do
		object "$version"
		case $? in
		0) ;;
		2)
			echo "skip - clang-$version: neither system has it"
			continue
			;;
		*)
			echo "not ok - clang-$version does not compile bpf/"
			failed=1
			continue
			;;
		esac
		echo "ok - clang-$version compiles bpf/"
		objects="$objects build/distro/clang-$version.bpf.o"
	done
	[ -z "$objects" ] || SLUICE_BPF=${objects# } build/tests/bpf/test_budget || failed=1
	[ $failed = 0 ] || fail "a compiler failed"
}

# What is built is taken from the last build there: -nc.
deb() {
	make_root
	# shellcheck disable=SC2086
	install $DEB_NEEDS
	inside "
		make -j$JOBS all build/tests/netns/{blast,sink,scrape} > build.log 2>&1 ||
			{ tail -30 build.log; exit 1; }
		scripts/deb_inside.sh" || fail "$SUITE: packages failed"
}

case ${1:-} in
base) make_base ;;
root) make_root ;;
prepare)
	make_root
	# shellcheck disable=SC2086
	install $SMOKE_NEEDS $DEB_NEEDS
	;;
smoke) smoke ;;
test)
	make_root
	# The packages of npm are the same there, and npm's registry is this system's.
	scripts/js.sh || fail "the packages of npm cannot be installed"
	mkdir -p "$ROOT/src/build"
	cp -a build/js "$ROOT/src/build/"
	inside "CI=${CI:-} make test" || fail "$SUITE: tests failed"
	;;
deb) deb ;;
compilers) compilers ;;
*)
	echo "usage: distro.sh base|root|prepare|smoke|deb|test|compilers" >&2
	exit 2
	;;
esac
