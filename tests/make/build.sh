#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# build.sh - the build itself: missing packages are named, all of them, before anything is compiled; a change
# of flags compiles again, none does not; what is shown. In a build directory of its own. Needs no root.

. "$(dirname "$0")/../lib/plain.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL CI WERROR V CFLAGS CPPFLAGS
object=$dir/build/user/lib/units.o

make_() {
	make B="$dir/build" "$@" > "$dir/out" 2>&1
}

is "fails without packages" no make_ PKG_CONFIG_LIBDIR=/nonexistent CLANG=clang-none all
for package in libbpf-dev libxdp-dev libevent-dev libhiredis-dev; do
	is "names $package" prints "^$package is missing: pkg-config finds no [a-z]+$"
done
is "names a program" prints '^clang is missing: there is no program clang-none$'
is "names the command that installs them" prints '^Install .*: apt-get install .*clang.* libbpf-dev libxdp-dev .*make deps|^Install the packages'
is "names nothing that is there" no prints '^(gcc|make|zlib1g-dev|libc6-dev) is missing'
is "compiles nothing" no prints '^(CC|CLANG|LD) '

# Headers, by a compiler that finds only ours; and without pkg-config libraries by their headers.
is "fails without headers" no make_ CPPFLAGS='-nostdinc -Iinclude' PKG_CONFIG=pkg-config-none "$object"
is "names a header's package" prints '^libhttp-parser-dev is missing: there is no header <http_parser.h>$'
is "names a library's package" prints '^libyaml-dev is missing: there is no header <yaml.h>$'
is "names pkg-config" prints '^pkg-config is missing'
is "but not what only tests need" no prints '^libcmocka-dev'
is "which these name" no make_ CPPFLAGS='-nostdinc -Iinclude' "$dir/build/tests/unit/lib/test_units.o"
is "by its package" prints '^libcmocka-dev is missing: there is no header <cmocka.h>$'

is "an object compiles" make_ "$object"
is "shown in a line" prints '^CC      user/lib/units.c$'
is "and not as a command" no prints '-o '
is "make again" make_ "$object"
is "makes nothing" no prints 'units'
is "with other flags" make_ CFLAGS='-O1 -g' "$object"
is "compiles again" prints '^CC      user/lib/units.c$'
is "with other flags of the preprocessor" make_ CFLAGS='-O1 -g' CPPFLAGS=-DOTHER V=1 "$object"
is "compiles again, with V=1 by a command that is shown" prints '-DOTHER .*-O1 -g .*-c -o .*units.o user/lib/units.c'
is "WERROR=1 alone" make_ CFLAGS='-O1 -g' CPPFLAGS=-DOTHER WERROR=1 "$object"
is "makes nothing" no prints 'units'
is "a warning passes" make_ CFLAGS=-Wlarger-than=1 "$object"
is "and is shown" prints 'warning:'
rm -f "$object"
CI=true is "with CI=true it does not" no make_ CFLAGS=-Wlarger-than=1 "$object"
is "it is an error" prints 'error:.*Werror'

# How many jobs: 3 that wait for each other end only where 3 run at once.
cat > "$dir/jobs.mk" <<'MAKE'
include Makefile
jobs: FORCE
	@echo "jobs$(filter -j%,$(MAKEFLAGS))"
MAKE
is "makes as many at once as there are processors" make_ -f "$dir/jobs.mk" jobs
is "(as in MAKEFLAGS)" prints "^jobs-j$(nproc)$"
is "makes as many as -j states" make_ -f "$dir/jobs.mk" -j3 jobs
is "(3)" prints '^jobs-j3$'
MAKEFLAGS=-j5 is "in the environment, too" make_ -f "$dir/jobs.mk" jobs
is "(5)" prints '^jobs-j5$'

# What `make deb` and other Debians build: the tree, as git has it or as an unpacked archive.
mkdir -p "$dir/archive/build" "$dir/copy"
scripts/tree.sh "$dir/archive"
touch "$dir/archive/build/object.o"
is "a copy of an archive without git" "$dir/archive/scripts/tree.sh" "$dir/copy"
is "has its files, and nothing built" diff -r --exclude=build "$dir/archive" "$dir/copy"
is "(nothing built)" no test -e "$dir/copy/build"
[ $failed = 0 ]
