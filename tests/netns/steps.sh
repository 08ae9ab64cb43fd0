#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# steps.sh - docs/decisions/0077-steps.md: the commands of sluice and of nft are run, and as many as its table, and
# that of docs/tour.md, have.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin steps
lab_link 0
PAGE=$REPO/docs/decisions/0077-steps.md
daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
limits: [{name: web, match: {dport: 80}, rate: 10 packets/s}]
YAML
mkdir "$LAB/bin"
printf '#!/bin/sh\nexec "%s" -s "%s" "$@"\n' "$BIN/sluicectl" "$SOCKET" > "$LAB/bin/sluicectl"
chmod +x "$LAB/bin/sluicectl"
for ((i = 0; i < 20000; i++)); do
	echo "100.$((64 + i / 65536)).$((i / 256 % 256)).$((i % 256))"
done > "$LAB/feed.txt"
cp "$CONFIG" "$LAB/new.yaml"

# block KIND: lines "TASK<tab>COMMAND".
block() {
	awk -v kind="$1" '$0 == "```" kind { on = 1; next } /^```/ { on = 0 }
		on && /^# / { task = $2; next } on { print task "\t" $0 }' "$PAGE"
}
# table TASK: "SLUICE BEST LAST": of its row.
table() {
	awk -F' *[|] *' -v task="$1" '$2 == task { gsub("[*]", ""); print $4, $5, $6 }' "$PAGE"
}
# run_block KIND COMMAND...: each of its commands.
run_block() {
	local task command

	while IFS=$'\t' read -r task command; do
		(cd "$LAB" && STATE=$LAB/state PATH=$LAB/bin:$PATH "${@:2}" bash -c "$command") > "$LAB/out" 2>&1 < /dev/null ||
			not_ok "$1, task $task: $command: $(tail -n 2 "$LAB/out")"
	done < <(block "$1")
}
run_block sluice "${IN_S[@]}"
"${IN_C[@]}" nft 'add table inet t; add chain inet t in { type filter hook input priority 0; };
	add set inet t blocked { type ipv4_addr; flags timeout; }; add set inet t feed { type ipv4_addr; }' || not_ok "nft does not work"
run_block nft "${IN_C[@]}"
for kind in sluice nft; do
	for task in $(block $kind | cut -f1 | uniq); do
		count=$(block $kind | grep -c "^$task	")
		read -r ours best peer <<< "$(table "$task")"
		case $kind in
		sluice) check_is "task $task: so many commands" "$ours" "$count" ;;
		nft) [[ $peer != nft* ]] || check_is "task $task: of nft" "$best" "$count" ;;
		esac
	done
done
check_is "all 25 tasks are there" "$(grep -cE '^\| [0-9]+ \|' "$PAGE")" 25
check_is "the tour has the same numbers, in this order" \
	"$(sed -n '/^## In how many steps/,$p' "$REPO/docs/tour.md" | grep -oE '[0-9]+/([0-9]+|-)' | xargs)" \
	"$(awk -F' *[|] *' '$2 ~ /^[0-9]+$/ { gsub("[*]", ""); print $4 "/" $5 }' "$PAGE" | xargs)"
lab_done
