#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# escape-coverage.sh [PERCENT] - the frames of tests/escape through dp_sim: how many of the branches
# of bpf/parse.h, bpf/fragment.h and its memory they take. Exit 1 below PERCENT (95). With SHOW=1 those that
# are not taken. Needs build/tests/escape/escape; a few seconds.
#
# Stages are inlined many times, and gcov counts each copy; so the attribute is taken out of the
# preprocessed source first. Checks that only the verifier needs (a global function's argument, a map
# that is always there) are no branches of ours. Nor are those that need what the judge does not have, and
# tests/bpf has: an interface without an Ethernet header, a limit per dport, login sessions ($elsewhere).

set -u
cd "$(dirname "$0")/.." || exit 1
least=${1:-95}
out=$PWD/build/coverage
source=user/packet/dataplane/dp_sim.c
failed=0

rm -rf "$out"
mkdir -p "$out"
elsewhere='s/if \(env_link\(\) == SL_LINK_IP\)/if (0)/; s/env_link\(\) != SL_LINK_ETHERNET \|\| //
	s/\(\(rules->dims & [^&]*\) && \(u16\)\(own >> 32\) != \(u16\)\(like >> 32\)\) \|\|//
	s/\(\(rules->dims & [^&]*\) && ev->pkt\.proto == [^)]*\) \|\|//'
gcc -E -std=gnu11 -D_GNU_SOURCE -DSLUICE_VERSION='""' -Iinclude -Iuser -I. -Ibuild "$source" |
	sed -E 's/__attribute__ *\(\( *(__)?always_inline(__)? *\)\)//g; s/if \(!rules \|\| !ev\)/if (0)/; '"$elsewhere"'; s/if \(!(pkt|set)( \|\| |\))/if (0\2/; s/if \(push && /if (/; s/return state \? (map_fragment_set.*) :/return 1 ? \1 :/' > "$out/dp_sim.i" || exit 1
gcc -std=gnu11 -w -O0 -g --coverage -c -o "$out/dp_sim.o" "$out/dp_sim.i" || exit 1
gcc --coverage -o "$out/escape" build/tests/escape/escape.o "$out/dp_sim.o" build/tests/libtests.a \
	build/libsluiced.a build/libsluice.a ${ESCAPE_LIBS:?} -lcmocka || exit 1
SLUICE_SEED=${SLUICE_SEED:-1} "$out/escape" --sim || exit 1
# From here: gcov reads the sources, and writes beside where it stands.
gcov -b -o "$out" dp_sim.o > "$out/gcov" 2> /dev/null || exit 1
mv -- *.gcov "$out/"
for file in bpf/parse.h bpf/fragment.h bpf/fragment_memory.h; do
	taken=$(awk -v file="File '$file'" '$0 == file { here = 1 }
		here && /^Taken at least once/ { sub(/.*:/, ""); sub(/%.*/, ""); print; exit }' "$out/gcov")
	if awk -v t="$taken" -v l="$least" 'BEGIN { exit !(t != "" && t + 0 >= l) }'; then
		echo "ok - $file: $taken % of the branches"
	else
		echo "not ok - $file: $taken % of the branches, not $least"
		failed=1
	fi
	[ "${SHOW:-}" = 1 ] && awk '!/^(branch|call|function)/ { line = $0 }
		/^branch .*(never executed|taken 0)/ { print line; print "\t" $0 }' "$out/${file##*/}.gcov"
done
exit $failed
