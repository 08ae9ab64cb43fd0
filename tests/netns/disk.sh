#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# disk.sh - sluiced with a state_dir that is full, that cannot be written to, and whose files
# are broken or of another layout: it logs that, starts all the same, limits hold, and the contents of
# the other files are kept. Once there is room again, everything is written.

# Mounts of its own, which end with the script.
[ "$(id -u)" != 0 ] || [ "${DISK_INSIDE:-}" = $PPID ] || exec env DISK_INSIDE=$$ unshare -m bash -c 'bash "$@"; exit' - "$0" "$@"

. "$(dirname "$0")/../lib/netns.sh"
lab_begin disk
lab_link 0

mkdir "$LAB/rules" "$LAB/state"
cat > "$LAB/rules/api.yaml" <<'YAML'
domain: api
descriptors: [{key: user, rate_limit: {unit: year, requests_per_unit: 3}}]
YAML
config_write "$CONFIG" <<YAML
interfaces: [{name: s0, mode: native}]
table: {buckets: 10K}
limits:
  - {name: banned, match: {src: 10.1.2.0/24}, rate: 10 packets/m, burst: 10, accounting: exact,
     ban: {after: 5 drops/10s, for: 1h, max: 1h, spoofable: yes}}
http:
  listen: [127.0.0.1:8180]
  rules: $LAB/rules
  state: {users: 10K, log_memory: 1M}
  workers: 1
YAML

# ask COUNT USER: how many of them pass.
ask() {
	on_server curl -s -m 5 -o /dev/null -w '%{http_code}\n' \
		-d '{"domain":"api","descriptors":[{"entries":[{"key":"user","value":"'"$2"'"}]}]}' \
		"http://127.0.0.1:8180/v1/check#[1-$1]" | grep -c 200
}

# Without power: no pins, nothing attached.
power_cut() {
	[ -z "$DAEMON_PID" ] || daemon_kill KILL
	daemon_purge
}

again() {
	: > "$LAB/daemon.log"
	daemon_run
}

said() {
	grep -q "$1" "$LAB/daemon.log"
}

# what_is: live changes, blocks, active bans, units that bob has left of three
what_is() {
	echo "$(ctl -o json status | jq .live_changes)" \
		"$(ctl -o json block list | jq '.entries | length')" \
		"$(ctl -o json ban list | jq '[.bans[] | select(.active)] | length')" "$(ask 3 bob)"
}

# ---------------------------------------------------------------- files that are broken, or of another layout

daemon_run
ctl block add 10.9.9.9 > /dev/null
blast "$LAB/sent" --src 10.1.2.1 --dst $SERVER4 --count 30
check_is "three of bob's" "$(ask 5 bob)" 3
check_is "all state is there" "$(what_is)" "1 1 1 0"
daemon_kill TERM
cp -a "$LAB/state" "$LAB/good"

# broken FILE COMMAND WHAT-IS TEXT: after a reboot that file alone is missing.
broken() {
	power_cut
	rm -rf "$LAB/state"
	cp -a "$LAB/good" "$LAB/state"
	(cd "$LAB/state" && eval "$2")
	again
	check_is "$1 after '$2'" "$(what_is)" "$3"
	check_true "it is logged" said "$4"
	check_true "the file is kept" test -e "$LAB/state/$1.bad"
}
another='echo "{\"version\": 7}" >'
broken bans.json 'truncate -s -9 bans.json' "1 1 0 0" "the bans from before are lost"
broken bans.json "$another bans.json" "1 1 0 0" "bans.json: has version 7"
broken live.json "$another live.json" "0 0 1 0" "live.json: has version 7"
broken state.json 'echo [] > state.json' "1 1 1 0" "state.json: not an object"
broken http.state 'truncate -s -9 http.state' "1 1 1 3" "http.state was truncated or extended"

# ---------------------------------------------------------------- a disk that is full

power_cut
rm -rf "$LAB/state"
cp -a "$LAB/good" "$LAB/state"
again
mkdir "$LAB/disk"
daemon_kill TERM
mount -t tmpfs -o size=8m none "$LAB/disk" || exit 1
cp -a --sparse=never "$LAB/state/." "$LAB/disk"
mount --bind "$LAB/disk" "$LAB/state" || exit 1
head -c 16M /dev/zero > "$LAB/disk/filler" 2> /dev/null

again
check_is "with a full disk nothing is lost" "$(what_is)" "1 1 1 0"
check_true "it is logged" said "No space left on device: limits are in force"
# A change is in force, also where nothing can be written; each answer has that it is not saved.
dropped_of() { # SOURCE: packets of five that are dropped as blocked
	local before

	before=$(metric sluice_packets_total verdict=drop reason=block)
	blast "$LAB/sent" --src "$1" --dst $SERVER4 --count 5
	settle s0
	echo $(($(metric sluice_packets_total verdict=drop reason=block) - before))
}
unsaved() { [ "$(metric sluice_state_unsaved)" = "$1" ]; }
check_is "its neighbor passes" "$(dropped_of 10.9.9.7)" 0
check_true "a block is accepted" ctl block add 10.9.9.8
check_true "a change of a limit, too" ctl limit set banned burst=11
check_true "and entries of an origin" ctl block load - --origin feed <<< 10.9.9.6
check_true "as not yet saved" grep -q 'NOT SAVED YET (.*No space left' <(ctl block add 10.9.9.5)
check_is "they are in force" "$(dropped_of 10.9.9.8) $(dropped_of 10.9.9.6) $(dropped_of 10.9.9.7)" "5 5 0"
check_true "status has it" grep -q '^NOT SAVED .*No space left' <(ctl status)
check_is "so has doctor" "$(ctl doctor -o json | jq -r '.checks[] | select(.check == "state").level')" bad
check_true "and a metric" unsaved 1
power_cut
again
check_is "what was reported as not saved is gone after a reboot, and no more" "$(what_is)" "1 1 1 0"
check_true "which is still known" unsaved 1
check_true "again" ctl block add 10.9.9.8 --reason one
check_true "and another" ctl block load - --origin feed <<< 10.9.9.6
rm "$LAB/disk/filler"
check_true "with room it is saved by itself" wait_for 10 unsaved 0
check_is "which is the end of it in doctor" "$(ctl doctor -o json | jq -r '.checks[] | select(.check == "state").level')" ok
check_true "and can be rolled back like any other" grep -q 'block add 10.9.9.8' <(ctl rollback list)
power_cut
again
check_is "after a reboot both are in force" "$(dropped_of 10.9.9.8) $(dropped_of 10.9.9.6) $(dropped_of 10.9.9.7)" "5 5 0"
check_true "rolled back" ctl rollback
check_true "withdrawn" ctl block withdraw feed
check_is "all is as before" "$(what_is) $(dropped_of 10.9.9.8)" "1 1 1 0 0"
head -c 16M /dev/zero > "$LAB/disk/filler" 2> /dev/null
power_cut
again

# Without room for its file a daemon keeps users' counts in memory until its next start, and reports it.
not_kept() { [ "$(ctl -o json status | jq -r '.not_kept // ""')" = "$1" ]; }
power_cut
rm "$LAB/disk/filler" "$LAB/disk/http.state" "$LAB/disk/history/"*
head -c 16M /dev/zero > "$LAB/disk/filler" 2> /dev/null
again
check_true "users' counts are in memory" said "counts of users are kept in memory only"
check_is "they hold" "$(ask 5 bob)" 3
check_is "no partial file stays on the disk" "$(find "$LAB/disk" -name '*.new' | wc -l)" 0
check_true "status has it" grep -q '^NOT KEPT .*http.state could not be written at the start' <(ctl status)
check_true "and the metric" unsaved 1
rm "$LAB/disk/filler"
daemon_kill KILL
again
check_true "after a start with room it is over" not_kept ""
check_is "bob has his three again" "$(what_is)" "1 1 1 3"

# ---------------------------------------------------------------- deleted under the daemon

check_true "nothing is missing" unsaved 0
rm "$LAB/state/live.json"
check_true "status has the deleted file" wait_for 10 not_kept "live.json was deleted by another process"
check_true "and the metric" unsaved 1
check_is "and doctor" "$(ctl doctor -o json | jq -r '.checks[] | select(.check == "state").level')" bad
check_true "it is logged" said "live.json was deleted by another process"
check_true "it is not written again" test ! -e "$LAB/state/live.json"
check_true "a change is accepted" ctl block add 10.9.9.8
check_true "and writes it" wait_for 10 not_kept ""
rm "$LAB/state/http.state"
check_true "the file of users' counts, too" wait_for 10 not_kept "http.state was deleted or replaced by another process"
check_is "whose counts hold" "$(ask 3 bob)" 0
daemon_kill KILL
again
check_is "of a deleted file they are lost at the next start, and nothing else is" "$(what_is)" "2 2 1 3"
check_true "a rollback is accepted" ctl rollback
check_is "then the changes are as before" "$(what_is)" "1 1 1 0"

# ---------------------------------------------------------------- a read-only state_dir

daemon_kill TERM
mount -o remount,ro "$LAB/disk" && mount -o remount,ro,bind "$LAB/state" || exit 1
again
check_is "with a read-only state_dir nothing is lost" "$(what_is)" "1 1 1 0"
check_true "it is logged" said "Read-only file system: limits are in force"
check_is "a second daemon is refused there, too" \
	"$(on_server "$BIN/sluiced" -c "$CONFIG" 2>&1 | grep -c "another sluiced is running")" 1
daemon_kill TERM
umount "$LAB/state" "$LAB/disk"
lab_done
