#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# doctor.sh - sluicectl doctor: what is wrong is found, what is not is not; its exit status; the command that
# it names mends it; without a daemon and without root it says what it could not look at.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin doctor
lab_link 0
lab_link 1

# doctor STATUS [OPTIONS]: in the server's namespace; $LAB/out, $LAB/json. STATUS of the host alone may be
# 0 or 1 (NTP): it is compared only where it is 2.
doctor() {
	local expected=$1 status

	shift
	on_server "$BIN/sluicectl" -s "$SOCKET" doctor "$@" -o json > "$LAB/json"
	status=$?
	case $expected in
	2) check_is "exit status: bad" $status 2 ;;
	*) check "exit status: nothing is bad" $status 0 1 ;;
	esac
	check_is "the exit status is that of the counts" $status \
		"$(jq 'if .bad > 0 then 2 elif .warn > 0 then 1 else 0 end' "$LAB/json")"
}
# level CHECK [INTERFACE]; found CHECK [INTERFACE]; mend CHECK [INTERFACE]
result() {
	jq -r --arg check "$2" --arg interface "${3:-}" \
		"[.checks[] | select(.check == \$check and (.interface // \"\") == \$interface) | $1][0] // \"none\"" "$LAB/json"
}
level() {
	result .level "$@"
}
found() {
	result .found "$@"
}
mend() {
	result .mend "$@"
}

# ---- no daemon, a file
cat > "$LAB/empty.yaml" <<'YAML'
interfaces: []
limits: [{name: web, match: {dport: 80}, rate: 10 packets/s}]
YAML
doctor 2 -c "$LAB/empty.yaml"
check_is "no daemon" "$(level daemon)" bad
check_is "limits without an interface" "$(level interfaces)" bad
check_is "the kernel is new enough" "$(level kernel)" ok
check_is "bpf() works" "$(level 'bpf()')" ok
check_is "bpffs" "$(level bpffs)" ok
check_is "every result has its words" "$(jq '[.checks[] | select(.found == "" or .why == "" or .level == "")] | length' "$LAB/json")" 0
echo 'limits: [{nmae: web}]' > "$LAB/wrong.yaml"
doctor 2 -c "$LAB/wrong.yaml"
check_is "a file with an error" "$(level configuration)" bad
check_true "its place" grep -q 'wrong.yaml:1:' <<< "$(found configuration)"

# ---- queues: the command that it names is run
echo 'interfaces: [{name: s1}]' > "$LAB/one.yaml"
on_client ethtool -L c1 tx 1 2> /dev/null
on_server ethtool -L s1 rx 1
doctor 2 -c "$LAB/one.yaml"
if [ "$(nproc)" -gt 1 ]; then
	check_is "one queue for several CPUs" "$(level queues s1)" warn
	on_server $(mend queues s1)
	doctor 2 -c "$LAB/one.yaml"
fi
check_is "a queue for each CPU, or as many as there can be" "$(level queues s1)" ok
check_is "no other program" "$(level 'other programs' s1)" ok
ip -n "$NS_S" link set s1 mtu 9000
doctor 2 -c "$LAB/one.yaml"
check_is "a large MTU" "$(level MTU s1)" warn
on_server $(mend MTU s1)
doctor 2 -c "$LAB/one.yaml"
check_is "mended" "$(level MTU s1)" ok
check_is "a driver with native XDP" "$(level driver s1)" ok
ip -n "$NS_S" tuntap add tun0 mode tun && ip -n "$NS_S" tuntap add tap0 mode tap || not_ok "no tun"
echo 'interfaces: [{name: tun0}, {name: tap0}]' > "$LAB/tun.yaml"
doctor 2 -c "$LAB/tun.yaml"
check_is "a tap has native XDP" "$(level driver tap0) $(found driver tap0)" "ok tun, which has native XDP"
check_true "a tun none" grep -q 'without native XDP' <<< "$(found driver tun0)"
echo 'interfaces: [{name: nix0}]' > "$LAB/nix.yaml"
doctor 2 -c "$LAB/nix.yaml"
check_is "an interface that does not exist" "$(level attached nix0)" warn
check_is "has no more checks" "$(jq '[.checks[] | select(.interface == "nix0")] | length' "$LAB/json")" 1

# ---- a daemon in which nothing is wrong
on_server sh -c 'ip link add br0 type bridge; ip link add v1 type veth peer name v2; ethtool -K v2 tso off'
daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}, {name: s1, mode: generic}, {name: br0, mode: generic}, {name: tap0},
             {name: tun0}, {name: v1, mode: generic}]
table: {buckets: 64K}
limits:
  - {name: web, match: {dport: 80}, rate: 10 packets/s}
YAML
doctor 0
check_is "the daemon" "$(level daemon)" ok
check_is "native" "$(level attached s0)" ok
check_is "generic" "$(level attached s1)" warn
check_is "frames of 64 KB in native mode" "$(level 'LRO, GRO' s0)" ok
check_true "a veth in generic mode gets those of its peer" grep -q 'its peer, in another network namespace, may use TSO' <<< "$(found 'LRO, GRO' s1)"
check_is "but not without TSO" "$(level 'LRO, GRO' v1)" ok
check_is "a bridge, a tap, a tun" "$(level 'LRO, GRO' br0) $(level 'LRO, GRO' tap0) $(level 'LRO, GRO' tun0)" "warn warn warn"
check_is "generic mode is a tun's only one" "$(level attached tun0) $(level driver tun0)" "ok ok"
on_server ethtool -K v2 tso on
doctor 0
check_is "a peer with TSO" "$(level 'LRO, GRO' v1)" warn
on_server $(mend 'LRO, GRO' v1 | sed 's/.*or: //')
doctor 0
check_is "mended" "$(level 'LRO, GRO' v1)" ok
check_is "the table" "$(level table)" ok
check_is "the file" "$(level configuration)" ok
check_is "the reload" "$(level 'last reload')" ok
COLUMNS=80 on_server "$BIN/sluicectl" -s "$SOCKET" doctor > "$LAB/out"
check_is "no line beyond 80 columns, but commands" "$(awk 'length > 80 && !/^        Do:/' "$LAB/out" | wc -l)" 0
check_is "no color in a pipe" "$(grep -c $'\033' "$LAB/out")" 0

# ---- what goes wrong while it runs
ctl limit set web rate='20 packets/s' > /dev/null
doctor 0
check_is "live changes that are not saved" "$(level 'last reload')" warn
ip -n "$NS_S" link set s1 xdpgeneric off
wait_for 5 eval '[ "$(ctl status -o json | jq -r ".interfaces[] | select(.name == \"s1\").state")" != removed ]'
echo 'nonsense: 1' >> "$CONFIG"
ctl reload > /dev/null 2>&1
doctor 2
check_is "a reload that failed" "$(level 'last reload')" bad
check_is "and the file" "$(level configuration)" bad
check_is "the innocent interface" "$(level attached s0)" ok

# ---- without root
cp "$BIN/sluicectl" "$LAB/sluicectl"
chmod 755 "$LAB" "$LAB/sluicectl"
on_server setpriv --reuid 65534 --regid 65534 --clear-groups "$LAB/sluicectl" -s "$SOCKET" doctor -o json > "$LAB/json"
check "without root it ends as usual" $? 0 2
check_is "bpf() could not be tried" "$(level 'bpf()')" unknown
check_is "the daemon was not to be asked" "$(level daemon)" unknown
check_is "the kernel was looked at" "$(level kernel)" ok
daemon_kill TERM
lab_done
