#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# node.sh - the npm packages of the tests (tests/node/package.json), into build/node. Versions are
# exact there; nothing is installed where they are in place already.

set -u
cd "$(dirname "$0")/.." || exit 1

want=tests/node/package.json
have=build/node/package.json
[ -d build/node/node_modules ] && cmp -s $want $have && exit 0
mkdir -p build/node
cp $want $have.new
cd build/node || exit 1
mv package.json.new package.json
for try in 1 2 3; do
	npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts && exit 0
	echo "node: npm install failed, try $try" >&2
	sleep 2
done
rm -f package.json
exit 1
