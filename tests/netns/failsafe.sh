#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# failsafe.sh - login sessions survive a block. A real sshd in the lab and a session to it from the
# client: it goes on under a block of everything, and under one of exactly its address, while a
# new connection from there does not get in. A connection that was not logged in when the
# block came is dropped, too. Failsafe ports escape the wide block and not the
# narrow one. Reasons are counted exactly.
# Then a session that began after the rules, on a failsafe port, while forged segments use up the
# share of packets without a socket, and under a ban; and path-MTU messages: forged ones are limited,
# one for a socket here gets through and is applied.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin failsafe
command -v /usr/sbin/sshd > /dev/null || {
	not_ok "no sshd: scripts/deps.sh installs openssh-server"
	lab_done
}
lab_link 0
CLIENT4=10.1.0.2
ip -n "$NS_C" addr add $CLIENT4/16 dev c0
PORT=2022

daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
failsafe: [22/tcp]
limits:
  - {name: all, rate: 1000 packets/s}
YAML

# Frames from the client that passed XDP, and of these TCP to sshd.
on_server nft -f - <<NFT
table netdev seen {
	counter passed {}
	counter ssh {}
	chain in {
		type filter hook ingress device s0 priority 0;
		ether saddr $MAC_C counter name passed
		ether saddr $MAC_C tcp dport $PORT counter name ssh
	}
}
NFT
seen() {
	nft_packets netdev seen "$1"
}

# ---------------------------------------------------------------- sshd and a session

ssh-keygen -q -t ed25519 -N '' -f "$LAB/host"
ssh-keygen -q -t ed25519 -N '' -f "$LAB/key"
mkdir -p /run/sshd
cat > "$LAB/sshd_config" <<-CONF
	Port $PORT
	ListenAddress 0.0.0.0
	HostKey $LAB/host
	AuthorizedKeysFile $LAB/key.pub
	PidFile none
	StrictModes no
	UsePAM no
	PasswordAuthentication no
	KbdInteractiveAuthentication no
	PermitRootLogin prohibit-password
CONF
"${IN_S[@]}" /usr/sbin/sshd -D -e -f "$LAB/sshd_config" 2> "$LAB/sshd.log" &
started
disown
connects() {
	on_client timeout 3 bash -c "exec 3<> /dev/tcp/$SERVER4/$PORT" 2> /dev/null
}
check_true "sshd answers" wait_for 10 connects

mkfifo "$LAB/in"
session_start() {
	"${IN_C[@]}" ssh -F none -i "$LAB/key" -p $PORT -o BatchMode=yes \
		-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
		root@$SERVER4 cat < "$LAB/in" > "$LAB/out" 2> "$LAB/ssh.log" &
	started
	SSH=$!
	disown $SSH
	exec 7> "$LAB/in"
}
session_start

# say TEXT: sends it through the session, and waits for its echo.
said=0
say() {
	said=$((said + 1))
	echo "$said" >&7
	check_true "$1" wait_for "${2:-10}" grep -qx "$said" "$LAB/out"
}
say "a session is up" 20
SPORT=$(on_client ss -tnpH | awk -v pid="pid=$SSH," 'index($0, pid) { n = split($4, a, ":"); print a[n] }')
check "its port" "$SPORT" 1 65535

sessions() {
	ctl -o json status | jq .sessions
}

# Connected, and never logs in: it is no session.
on_client bash -c "exec 3<> /dev/tcp/$SERVER4/$PORT; read -r -u 3; echo up > '$LAB/idle'; read -r -t 60 -u 3" &
started
disown
check_true "another connection is open, not logged in" wait_for 10 test -s "$LAB/idle"

# probe WORDS COUNT REASON VERDICT OPTIONS...: COUNT frames, all counted under both.
probe() {
	local words=$1 count=$2 reason=$3 verdict=$4 before passed want=0

	shift 4
	before=$(metric sluice_packets_total reason="$reason" verdict="$verdict")
	passed=$(seen passed)
	blast "$LAB/probe" --count "$count" --dst $SERVER4 --proto tcp --flags 2 "$@"
	settle s0
	check_is "$words: counted as $reason, $verdict" \
		$(($(metric sluice_packets_total reason="$reason" verdict="$verdict") - before)) "$count"
	# The session's own frames may pass beside them.
	[ "$verdict" = drop ] || want=$count
	check "$words: arrived" $(($(seen passed) - passed)) $want $((want + 5))
}

# by_session WORDS: the session's traffic passes for that reason, each frame counted.
by_session() {
	local counted arrived

	counted=$(metric sluice_packets_total reason=session verdict=pass)
	arrived=$(seen ssh)
	say "$1"
	say "$1, and goes on"
	settle s0
	check "$1: frames for that reason" \
		$(($(metric sluice_packets_total reason=session verdict=pass) - counted)) 2 1000
	check_is "$1: as many as arrived for sshd" \
		$(($(seen ssh) - arrived - $(metric sluice_packets_total reason=session verdict=pass) + counted)) 0
}

# ---------------------------------------------------------------- a block of everything

ctl block add 0.0.0.0/0 --force > "$LAB/said" || not_ok "block add 0.0.0.0/0: $(cat "$LAB/said")"
check_is "sessions found when the block was applied" "$(sessions)" 1
check_is "the metric" "$(metric sluice_login_sessions)" 1
check_true "status counts them" grep -q '^sessions *1 ' <(ctl status)
by_session "under a block of everything the session goes on"
check_true "a new connection does not get in" test "$(connects; echo $?)" = 124
probe "a SYN of its address from another port" 20 block drop --src $CLIENT4 --sport 33 --dport $PORT
probe "of another address from the session's port" 20 block drop --src 10.1.0.3 --sport "$SPORT" --dport $PORT
probe "from its address and port to another one" 20 block drop --src $CLIENT4 --sport "$SPORT" --dport 23
probe "a failsafe port escapes so wide a block" 20 failsafe pass --src 10.1.0.3 --dport 22
probe "another port does not" 20 block drop --src 10.1.0.3 --dport 23

# ---------------------------------------------------------------- a block of exactly its address

ctl block del 0.0.0.0/0 > /dev/null || not_ok "block del 0.0.0.0/0"
check_true "without the block other connections are accepted again" connects
ctl block add $CLIENT4 > "$LAB/said" || not_ok "block add $CLIENT4: $(cat "$LAB/said")"
by_session "under a block of exactly its address the session goes on"
check_true "a new connection from there does not get in" test "$(connects; echo $?)" = 124
probe "a failsafe port does not escape that" 20 block drop --src $CLIENT4 --dport 22
probe "a neighbour is not touched" 20 within pass --src 10.1.0.3 --dport 23

# ---------------------------------------------------------------- without the daemon, and after

daemon_kill KILL
say "the daemon killed: the session goes on"
daemon_run
check_is "the next daemon finds the session" "$(sessions)" 1
by_session "and it goes on"
kill $SSH
gone() {
	# Sessions are looked up whenever rules are applied.
	ctl reload > /dev/null && [ "$(sessions)" = 0 ]
}
check_true "a session that ended is not found any more" wait_for 10 gone

# ---------------------------------------------------------------- a session on a failsafe port

# No limit lets anything through, and a source that is refused twice is banned.
exec 7>&-
config_write "$CONFIG" <<-YAML
	interfaces: [{name: s0, mode: native}]
	failsafe: [$PORT/tcp]
	limits:
	  - {name: all, rate: 1 packets/h, ban: {after: 1 drops/m, for: 1h, spoofable: yes}}
YAML
ctl block del $CLIENT4 > /dev/null || not_ok "block del $CLIENT4"
ctl reload > "$LAB/said" || not_ok "reload: $(cat "$LAB/said")"
session_start
say "a session that began after the rules" 20
check_is "it is not known as a session" "$(sessions)" 0
blast "$LAB/ban" --count 10 --src $CLIENT4 --dst $SERVER4 --proto udp --dport 9
check_true "its address is banned" wait_for 10 grep -q $CLIENT4 <(ctl ban list)
say "and the session goes on"

# verdicts REASON...: packets counted under it, dropped or not.
verdicts() {
	local reason sum=0

	for reason; do
		sum=$((sum + $(metric sluice_packets_total reason="$reason")))
	done
	echo $sum
}
# own LIMIT: packets that passed within a limit of the order's own.
own() {
	metric sluice_limit_packets_total limit="@$1" verdict=pass
}
# most RATE FILE: what a rate allows in the time of a blast, and a second for the burst.
most() {
	calc "$1 * (2 + $(field "$2" end) - $(field "$2" start))"
}
before=$(verdicts over ban within)
blast_bg "$LAB/flood" --time 5 --pps 20000 --src 198.18.0.0/15 --dst $SERVER4 --proto tcp --flags 16 \
	--dport $PORT
flooded() {
	[ $(($(verdicts over ban within) - before)) -gt 10000 ]
}
check_true "forged segments use up their share" wait_for 10 flooded
say "the session goes on while they are held"
say "and on"
blast_wait
settle s0
check "forged segments that passed as failsafe" "$(own failsafe_tcp)" 10000 "$(most 10000 "$LAB/flood")"
check "segments of the session" "$(own failsafe_socket)" 10 1000

# ---------------------------------------------------------------- path-MTU messages

# needed PORT: frag-needed, next hop 1300, for UDP from the server's port to the client's 5555.
needed() {
	python3 - "$1" $MAC_S $MAC_C <<-'PY'
		import socket, struct, sys
		def checksum(data):
		    s = sum(struct.unpack('!%dH' % (len(data) // 2), data))
		    s = (s & 0xffff) + (s >> 16)
		    return ~(s + (s >> 16)) & 0xffff
		def ip(proto, src, dst, length):
		    h = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + length, 1, 0x4000, 64, proto, 0,
		                    socket.inet_aton(src), socket.inet_aton(dst))
		    return h[:10] + struct.pack('!H', checksum(h)) + h[12:]
		port = int(sys.argv[1])
		to, by = (bytes.fromhex(mac.replace(':', '')) for mac in sys.argv[2:])
		quote = ip(17, '10.1.0.1', '10.1.0.2', 1400) + struct.pack('!HHHH', port, 5555, 1400, 0)
		icmp = struct.pack('!BBHHH', 3, 4, 0, 0, 1300) + quote
		icmp = icmp[:2] + struct.pack('!H', checksum(icmp)) + icmp[4:]
		print((to + by + b'\x08\x00' + ip(1, '10.1.0.9', '10.1.0.1', len(icmp)) + icmp).hex())
	PY
}
believed() {
	ip -n "$NS_S" route get $CLIENT4 | grep -q 'mtu 1300'
}
on_server bash -c "exec 3<> /dev/udp/$CLIENT4/5555; ss -unH > '$LAB/udp'; exec sleep 120" &
started
disown
check_true "a UDP socket is open" wait_for 10 grep -q :5555 "$LAB/udp"
UDP=$(grep -o ':[0-9]* *[0-9.]*:5555' "$LAB/udp" | grep -o '^:[0-9]*' | tr -d :)
passed=$(verdicts path_mtu)
dropped=$(verdicts path_mtu_over)
blast "$LAB/forged" --count 20000 --raw "$(needed $((UDP ^ 1)))"
settle s0
passed=$(($(verdicts path_mtu) - passed))
check_is "each forged one is counted" \
	$((passed + $(verdicts path_mtu_over) - dropped)) "$(field "$LAB/forged" sent)"
check "of these passed" $passed 1000 "$(most 1000 "$LAB/forged")"
check_true "none was applied" eval '! believed'
blast "$LAB/needed" --count 1 --raw "$(needed "$UDP")"
check_true "one for the socket is applied" wait_for 10 believed
check_is "it is counted apart" "$(own path_mtu_socket)" 1
lab_done
