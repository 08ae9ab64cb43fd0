#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# js.sh - the npm packages of the tests (tests/js/package.json), into build/js. Versions are
# exact there; nothing is installed where they are in place already.

set -u
cd "$(dirname "$0")/.." || exit 1

want=tests/js/package.json
have=build/js/package.json
[ -d build/js/node_modules ] && cmp -s $want $have && exit 0
mkdir -p build/js
cp $want $have.new
cd build/js || exit 1
mv package.json.new package.json
# npm tries for minutes where nobody answers.
npm view "$(jq -r '.dependencies | keys[0]' package.json)" version --fetch-retries=0 --fetch-timeout=10000 > npm.log 2>&1 || {
	echo "js: $(npm config get registry) does not answer: name a registry with 'npm config set registry URL'" >&2
	rm -f package.json
	exit 1
}
for try in 1 2 3; do
	npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts && exit 0
	echo "js: npm install failed, try $try" >&2
	sleep 2
done
rm -f package.json
exit 1
