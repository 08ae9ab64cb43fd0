#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# mark.sh - the mark reader: others may have an ingress qdisc while nothing marks packets. It comes with the first
# push-down or limit that does, outlives the daemon, is put back when others detach it or called lost, and goes with the last
# limit, also with one that could come back. nft counts the marks. Under Linux 6.1 (tests/vm) it is a tc filter.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin mark
lab_link 0
lab_link 1
write() {
	config_write "$1" <<-YAML
	interfaces: [{name: s0}, {name: s1, on_removed: alarm}]
	limits:
	  - {name: $2, match: {src: 10.0.0.0/8}, rate: 1 packets/m, burst: 1, action: tag, tag: {dscp: cs1}}
	  - {name: shadow, match: {dport: 9}, rate: 1 packets/m, mode: shadow, action: tag, tag: {mark: 8}}
	http: {listen: ['unix:$LAB/http.sock'], rules: $LAB/rules.d, push_down: {max_share: 100%, min_requests: 1}}
	YAML
}
mkdir "$LAB/rules.d"
cat > "$LAB/rules.d/api.yaml" <<'YAML'
domain: api
descriptors:
  - {key: user, limits: ['1 requests/h'], push_down: {after: 5 rejections/10s, steps: [tag], step: 60s, down: 60s, max: 2m}}
YAML
write "$CONFIG" slow
write "$LAB/unmarked.yaml" other
daemon_run
on_server nft 'add table inet seen; add counter inet seen marked; add counter inet seen any
	add chain inet seen in { type filter hook prerouting priority raw; }
	add rule inet seen in iif lo accept; add rule inet seen in counter name any
	add counter inet seen pushed; add rule inet seen in meta mark 0x51 ip saddr 10.1.9.9 counter name pushed
	add rule inet seen in meta mark 7 counter name marked; add rule inet seen in drop'

# probe WORDS N SRC LEAST MOST [DEST]: of 50 frames through cN all arrive, so many of them marked.
probe() {
	local all marked

	all=$(nft_packets inet seen any) marked=$(nft_packets inet seen marked)
	blast "$LAB/probe" --interface "c$2" --src "$3" --dst "${6:-10.$(($2 + 1)).0.1}" --count 50 --pps 5000
	settle "s$2"
	check_is "$1: arrived" $(($(nft_packets inet seen any) - all)) 50
	check "$1: marked" $(($(nft_packets inet seen marked) - marked)) "$4" "$5"
}
tc_s() {
	nsenter --net=/run/netns/"$NS_S" tc "$@"
}
# A filter after which tc reads no other.
ENDS=(bpf bytecode '1,6 0 0 4294967295' classid 1:1)
# qdiscs N: for ingress, on sN.
qdiscs() {
	tc_s qdisc show dev "s$1" | grep -cE '^qdisc (ingress|clsact)'
}
# has N STATE: the reader's, in status.
has() {
	[ "$(ctl -o json status | jq -r ".interfaces[$1].mark_reader")" = "$2" ]
}
# detach N: as another tool would.
detach() {
	if [ -e "$PIN/mark_reader_$1" ]; then
		bpftool link detach pinned "$PIN/mark_reader_$1"
	else
		tc_s qdisc del dev "s$1" clsact
	fi
}
lost() {
	[ "$(metric sluice_interface_program_lost_total cause=mark_reader interface="s$1")" = "$2" ]
}

# ---- nothing marks
check_true "no limit marks: there is no reader" has 0 unused
check_is "and no qdisc" "$(qdiscs 0)" 0
check_true "others add theirs" tc_s qdisc add dev s0 ingress
check_true "and remove it" tc_s qdisc del dev s0 ingress
probe "tagged without a mark" 0 10.1.1.1 0 0

# ---- a push-down
ABUSER=10.1.9.9
pushed() {
	ctl -o json pushdowns list | jq -e --arg s $ABUSER '.pushdowns[] | select(.source == $s and .step == "tag")'
}
# A segment of an established connection, and refusals.
blast "$LAB/probe" --proto tcp --flags 16 --src $ABUSER --dst $SERVER4 --count 1
curl -s --unix-socket "$LAB/http.sock" -H "X-Sluice-Source: $ABUSER" -H 'X-Sluice-V-User: mallory' \
	"http://localhost/nginx/check?domain=api&d=user#[1-20]" > /dev/null
check_true "a source is tagged" wait_for 5 pushed
check_true "the reader is there" has 0 attached
blast "$LAB/probe" --src $ABUSER --dst $SERVER4 --count 10
settle s0
check "marked" "$(nft_packets inet seen pushed)" 10 10
check_true "it is cleared" ctl pushdowns clear $ABUSER
check_true "and the reader goes" wait_for 15 has 0 unused

# ---- a live change
check_true "a limit marks from now on" ctl limit set slow tag.mark=7
check_true "the reader is there" has 0 attached
probe "marked at once" 0 10.1.1.2 49 49
probe "on the other interface, too" 1 10.2.1.2 49 49
probe "the neighbor" 0 2001:db8:9::9 0 0 $SERVER6
if [ -e "$PIN/mark_reader_0" ]; then
	check_is "without a qdisc" "$(qdiscs 0)" 0
	check_true "others add theirs all the same" tc_s qdisc add dev s0 clsact
	check_true "and a filter" tc_s filter add dev s0 ingress "${ENDS[@]}"
	probe "marked before it" 0 10.1.1.3 49 49
	check_true "they remove it" tc_s qdisc del dev s0 clsact
	probe "marked without it" 0 10.1.1.4 49 49
fi

# ---- detached by others
detach 0
check_true "detached: noticed" wait_for 5 lost 0 1
check_true "and attached again" has 0 attached
probe "marked again" 0 10.1.1.5 49 49
detach 1
check_true "on_removed: alarm: noticed" wait_for 5 has 1 lost
check_is "the metric" "$(metric sluice_interface_marks_lost interface=s1) $(metric sluice_interface_marks_lost)" "1 1"
check_is "doctor" "$(on_server "$BIN/sluicectl" -s "$SOCKET" doctor -o json |
	jq -r '.checks[] | select(.check == "marks") | .interface + " " + .level' | paste -sd,)" "s0 ok,s1 bad"
check_true "in the log" grep -q 's1: .*detached by others.*: packets that limits tag get NO MARK' "$LAB/daemon.log"
probe "lost" 1 10.2.1.3 0 0
check_true "attach" ctl attach s1
probe "attach puts it back" 1 10.2.1.4 49 49

# ---- without the daemon
daemon_kill KILL
probe "killed" 0 10.1.1.6 49 49
daemon_run
check_true "the next one finds it" has 0 attached
check_is "in place" "$(metric sluice_interface_program_lost_total)" 0
daemon_kill TERM
probe "stopped" 0 10.1.1.7 49 49
daemon_run

# ---- the last limit that marks
check_true "a file without marks, unconfirmed" ctl apply --confirm 5m "$LAB/unmarked.yaml"
check_true "the reader stays for the rules that may come back" sh -c "sleep 1.2; '$BIN/sluicectl' -s '$SOCKET' -o json status |
	jq -e '.interfaces[0].mark_reader == \"attached\"' > /dev/null"
check_true "confirmed" ctl confirm
check_true "then it goes" wait_for 5 has 0 unused
check_is "its qdisc, too" "$(qdiscs 0) $(qdiscs 1)" "0 0"
check_is "nothing is pinned" "$(ls "$PIN" | grep -c mark_reader)" 0
ctl limit set other tag.mark=7 > /dev/null
tc_s qdisc add dev s1 clsact 2> /dev/null
check_true "others' filter in the qdisc" tc_s filter add dev s1 egress "${ENDS[@]}"
check_true "detach" ctl detach s1
check_is "leaves it" "$(tc_s filter show dev s1 egress | grep -c bytecode)" 1
daemon_kill TERM
daemon_purge
check_is "after --purge no link and no qdisc is left" "$(bpftool link show pinned "$PIN/mark_reader_0" 2> /dev/null | wc -l) $(qdiscs 0)" "0 0"
probe "nor a mark" 0 10.1.1.8 0 0
lab_done
