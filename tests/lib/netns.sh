# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# netns.sh - a lab for scenarios: a client and a server namespace joined by veths, a sluiced of
# its own in the server's, traffic tools in both.
#
#     . tests/lib/netns.sh
#     lab_begin NAME              skips where not root; from here on everything is undone at exit
#     lab_link 0 [QUEUES]         c0 in the client's namespace, s0 in the server's
#     daemon_start <<'YAML' ...   limits and lists; interfaces, paths and metrics are added
#     sink_start s0; blast ...; sink_stop; check ...
#     lab_done
#
# Namespaces are entered by nsenter: "ip netns exec" remounts /sys and hides bpffs. Names are
# the process's, so that labs run beside each other. Nothing sleeps for a fixed time; waits are
# for conditions, with a deadline.
#
# A scenario ends with lab_done; one that stops before (set -e, a signal) has failed.

set -u
# The distribution's programs first: a version manager's python3 takes half a second to start.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BIN=${SLUICE_BUILD:-$REPO/build}
TOOLS=${SLUICE_TOOLS:-$BIN/tests}
MAC_C=02:00:00:00:00:01
MAC_S=02:00:00:00:00:02
SERVER4=10.1.0.1
SERVER6=2001:db8:1::1

LAB_ENDED=0
LAB_FAILED=0
LAB_PIDS=()
DAEMON_PID=

# ---------------------------------------------------------------- results

ok() {
	echo "ok - $LAB_NAME: $1"
}

not_ok() {
	LAB_FAILED=$((LAB_FAILED + 1))
	echo "not ok - $LAB_NAME: $1"
}

skip() {
	echo "skip - $LAB_NAME: $1"
}

# check WORDS VALUE LEAST MOST: numbers, decimals too. A missing value is a failure.
check() {
	if awk -v v="$2" -v l="$3" -v m="$4" 'BEGIN {
		exit !(v ~ /^-?[0-9.]+(e[+-]?[0-9]+)?$/ && v + 0 >= l + 0 && v + 0 <= m + 0) }'; then
		ok "$1 ($2 in [$3, $4])"
	else
		not_ok "$1: $2 is not in [$3, $4]"
	fi
}

# check_is WORDS VALUE EXPECTED
check_is() {
	if [ "$2" = "$3" ]; then
		ok "$1 ($2)"
	else
		not_ok "$1: '$2' is not '$3'"
	fi
}

# check_true WORDS COMMAND...
check_true() {
	local words=$1

	shift
	if "$@"; then
		ok "$words"
	else
		not_ok "$words: failed: $*"
	fi
}

# results FILE...: "ok - NAME" and "not ok - NAME" lines of a program that checks by itself.
results() {
	local line

	while IFS= read -r line; do
		case $line in
		"ok - "*) ok "${line#ok - }" ;;
		*) not_ok "${line#not ok - }" ;;
		esac
	done < <(cat "$@")
}

calc() {
	awk "BEGIN { printf \"%.6f\", ($*) }"
}

floor() {
	awk "BEGIN { printf \"%d\", ($*) }"
}

# CLOCK_MONOTONIC, on a machine that was never suspended.
now() {
	awk '{ print $1 }' /proc/uptime
}

# elapsed FROM SECONDS: whether they have.
elapsed() {
	awk -v t="$(now)" -v from="$1" -v d="$2" 'BEGIN { exit !(t >= from + d) }'
}

# wait_for SECONDS COMMAND...: until it succeeds. They are seconds of a machine without other load: while n
# processes are ready to run on each CPU, a second counts as 1/n.
wait_for() {
	local left_us=$(($1 * 1000000 + 1000000)) at_us=${EPOCHREALTIME//[!0-9]/} before_us running

	shift
	until "$@" > /dev/null 2>&1; do
		[ $left_us -gt 0 ] || return 1
		sleep 0.05
		before_us=$at_us
		at_us=${EPOCHREALTIME//[!0-9]/}
		read -r _ _ _ running _ < /proc/loadavg
		running=${running%/*}
		left_us=$((left_us - (at_us - before_us) * CPUS / (running > CPUS ? running : CPUS)))
	done
}
CPUS=$(nproc)

# stand_still PID: it is stopped when this returns; SIGSTOP alone may still be on its way to a thread.
stand_still() {
	kill -STOP "$1"
	wait_for 5 is_stopped "$1" || not_ok "process $1 does not stop"
}
is_stopped() {
	[ -z "$(grep -L '^State:.T' /proc/"$1"/task/*/status)" ]
}

# ---------------------------------------------------------------- the lab

lab_begin() {
	LAB_NAME=$1
	if [ "$(id -u)" != 0 ]; then
		skip "needs root (namespaces, XDP)"
		LAB_ENDED=1
		exit 0
	fi
	LAB=$(mktemp -d "${TMPDIR:-/tmp}/sluice-$LAB_NAME.XXXXXX") || exit 1
	LAB_ID=slt$$
	NS_C=$LAB_ID-c
	NS_S=$LAB_ID-s
	IN_C=(nsenter --net=/run/netns/"$NS_C")
	IN_S=(nsenter --net=/run/netns/"$NS_S")
	PIN=/sys/fs/bpf/$LAB_ID
	SOCKET=$LAB/control.sock
	CONFIG=$LAB/sluice.yaml
	trap lab_end EXIT
	trap 'exit 130' INT TERM HUP
	"$REPO/scripts/bpffs.sh" || exit 1
	ip netns add "$NS_C" && ip netns add "$NS_S" || exit 1
	ip -n "$NS_S" link set lo up
	ip -n "$NS_C" link set lo up
}

# Whatever happened: processes, namespaces, pins, files.
lab_end() {
	lab_stop $?
	local pid ns

	for ns in "$NS_C" "$NS_S"; do
		for pid in $(ip netns pids "$ns" 2> /dev/null); do
			kill -KILL "$pid" 2> /dev/null
		done
		ip netns del "$ns" 2> /dev/null
	done
	lab_leave "$PIN"
}

# lab_stop STATUS: the first part of every lab's end; an end that comes too early is a failure.
lab_stop() {
	local pid

	trap - EXIT INT TERM HUP
	if [ $LAB_ENDED = 0 ]; then
		not_ok "stopped before its end (exit $1)"
		lab_log
	fi
	for pid in "${LAB_PIDS[@]}" $DAEMON_PID; do
		kill -KILL "$pid" 2> /dev/null
	done
}

# lab_leave FILE...: the last part.
lab_leave() {
	wait 2> /dev/null
	rm -rf "$LAB" "$@"
	# Explicit: a bare exit in a trap has the status from before it.
	[ $LAB_FAILED = 0 ] && [ $LAB_ENDED = 1 ] && exit 0
	exit 1
}

lab_log() {
	[ -s "$LAB/daemon.log" ] && { echo "--- sluiced said:"; tail -n 30 "$LAB/daemon.log"; }
}

lab_done() {
	LAB_ENDED=1
	[ $LAB_FAILED = 0 ] || lab_log
	exit
}

on_client() {
	"${IN_C[@]}" "$@"
}

on_server() {
	"${IN_S[@]}" "$@"
}

# After "${IN_S[@]}" COMMAND > FILE &, where $! is the command itself (of a function in the
# background it would be a shell around it): it ends with the lab.
started() {
	LAB_PIDS+=($!)
}

# After it "${OTHERWISE[@]}" COMMAND runs with answers of another machine (preload/otherwise.c).
otherwise_build() {
	gcc -shared -fPIC -o "$LAB/otherwise.so" "$REPO/tests/lib/preload/otherwise.c" || not_ok "otherwise.c does not compile"
	OTHERWISE=(env LD_PRELOAD="$LAB/otherwise.so")
}

# lab_link N [QUEUES] [MTU]: cN and sN. The client side speaks no IPv6 of its own, so that
# nothing but what a test sends reaches sN; raw frames need no addresses there.
lab_link() {
	local n=$1 queues=${2:-2} mtu=${3:-1500}

	ip -n "$NS_C" link add "c$n" address $MAC_C mtu "$mtu" \
		numtxqueues "$queues" numrxqueues "$queues" type veth \
		peer name "s$n" address $MAC_S mtu "$mtu" \
		numtxqueues "$queues" numrxqueues "$queues" netns "$NS_S" || exit 1
	on_client sh -c "echo 1 > /proc/sys/net/ipv6/conf/c$n/disable_ipv6"
	on_server sh -c "echo 0 > /proc/sys/net/ipv6/conf/s$n/accept_dad"
	ip -n "$NS_S" addr add "10.$((n + 1)).0.1/16" dev "s$n"
	ip -n "$NS_S" addr add "2001:db8:$((n + 1))::1/48" dev "s$n" nodad
	ip -n "$NS_C" link set "c$n" up
	ip -n "$NS_S" link set "s$n" up
}

# ---------------------------------------------------------------- the daemon

# config_write FILE < YAML: the keys of every configuration here, and standard input.
config_write() {
	{
		cat <<-YAML
		control: {socket: $SOCKET${CONTROL_MORE:+, $CONTROL_MORE}}
		metrics: {listen: ${METRICS_LISTEN:-127.0.0.1:9810}${METRICS_MORE:+, $METRICS_MORE}}
		state_dir: $LAB/state
		pin_dir: $PIN
		YAML
		cat
	} > "$1"
}

daemon_run() {
	mkdir -p "$LAB/state"
	"${IN_S[@]}" "$BIN/sluiced" -c "$CONFIG" >> "$LAB/daemon.log" 2>&1 &
	DAEMON_PID=$!
	disown $DAEMON_PID
	if ! wait_for "${DAEMON_WAIT:-10}" ctl status; then
		not_ok "sluiced does not answer"
		lab_log
		LAB_ENDED=1
		exit 1
	fi
}

# daemon_start < YAML (interfaces: included)
daemon_start() {
	config_write "$CONFIG"
	daemon_run
}

# Voluntary context switches of the daemon so far: its threads and children.
daemon_switches() {
	cat /proc/"$DAEMON_PID"/task/*/status $(pgrep -P "$DAEMON_PID" | sed 's,.*,/proc/&/status,') |
		awk '$1 == "voluntary_ctxt_switches:" { sum += $2 } END { print sum }'
}

# daemon_wakeups SECONDS: prints how often it woke up in them.
daemon_wakeups() {
	local before

	before=$(daemon_switches)
	sleep "$1"
	echo $(($(daemon_switches) - before))
}

# daemon_quiet MOST: true if it wakes up at most so often in half a second.
daemon_quiet() {
	[ "$(daemon_wakeups 0.5)" -le "$1" ]
}

# utc_room PERIOD ROOM: waits until at least ROOM of a window of UTC (both in seconds) are to come,
# so that what follows is all in one window. Every scenario of http.sh has a minute of its hour, and day.
utc_room() {
	local left=$(($1 - $(date +%s) % $1))

	[ "$left" -gt "$2" ] || sleep "$left"
}

# daemon_kill SIGNAL: waits until it is gone.
daemon_kill() {
	kill "-$1" "$DAEMON_PID"
	wait_for 10 daemon_gone || not_ok "sluiced does not end on SIG$1"
	DAEMON_PID=
}

# A killed process whose first thread has ended may have threads that have not, and so its locks.
daemon_gone() {
	! kill -0 "$DAEMON_PID" 2> /dev/null || { grep -q '^State:.*Z' "/proc/$DAEMON_PID/status" &&
		[ "$(ls "/proc/$DAEMON_PID/task" | wc -l)" = 1 ]; }
}

ctl() {
	"$BIN/sluicectl" -s "$SOCKET" "$@"
}

# The metrics page.
metrics() {
	on_server "$TOOLS/netns/scrape"
}

# metric NAME [LABEL=VALUE...]: the sum of the series that have all these labels; 0 if none.
metric() {
	on_server "$TOOLS/netns/scrape" "$@"
}

# daemon_purge: takes the programs off and removes the pins.
daemon_purge() {
	on_server "$BIN/sluiced" -c "$CONFIG" --purge 2> "$LAB/purge" || not_ok "purge: $(cat "$LAB/purge")"
}

# banned SOURCE: in force now, by the list.
banned() {
	ctl -o json ban list | jq -e --arg s "$1" '.bans[] | select(.source == $s and .active)' > /dev/null
}

# ---------------------------------------------------------------- traffic

# nft_packets FAMILY TABLE COUNTER: its packets, in the server's namespace.
nft_packets() {
	on_server nft -j list counter "$@" 2> /dev/null | jq '.nftables[] | .counter? // empty | .packets'
}

# arrivals_count [N [NAME]]: counts and drops frames of the client behind sN's XDP, which may have another
# name; arrived [N]: how many so far.
arrivals_count() {
	local n=${1:-0}

	on_server nft "add table netdev seen$n; add counter netdev seen$n passed;
		add chain netdev seen$n in { type filter hook ingress device ${2:-s$n} priority 0; };
		add rule netdev seen$n in ether saddr $MAC_C counter name passed drop" || not_ok "nft on s$n"
}

arrived() {
	nft_packets netdev "seen${1:-0}" passed
}

# blast OUT [OPTIONS]: from the client through c0, in the foreground. Prints nothing; OUT gets
# the tool's JSON.
blast() {
	blast_bg "$@"
	blast_end ${BLASTS[-1]}
	unset 'BLASTS[-1]'
}

# In the background; $BLAST is its process.
blast_bg() {
	local out=$1

	shift
	"${IN_C[@]}" "$TOOLS/netns/blast" --interface c0 --mac $MAC_S --mac-src $MAC_C "$@" > "$out" &
	started
	BLAST=$!
	BLASTS+=($BLAST)
}

# of_ten SOURCE [OPTIONS]: how many of ten frames to the server arrive, by arrivals_count.
of_ten() {
	local before

	before=$(arrived)
	blast "$LAB/ten" --dst $SERVER4 --length 100 --count 10 --pps 1000 --src "$@"
	settle s0
	echo $(($(arrived) - before))
}

# flood_bg OUT [OPTIONS]: millions a second, in the background.
flood_bg() {
	local out=$1

	shift
	"${IN_C[@]}" "$TOOLS/bench/livegen" --interface c0 --mac $MAC_S --mac-src $MAC_C \
		--dst $SERVER4 "$@" > "$out" &
	started
	BLAST=$!
	BLASTS+=($BLAST)
}
BLASTS=()

blast_end() {
	wait "$1" || not_ok "a traffic tool failed (exit $?)"
}

# Until every blast_bg and flood_bg is done.
blast_wait() {
	local pid

	for pid in "${BLASTS[@]}"; do
		blast_end "$pid"
	done
	BLASTS=()
}

# Ends them now: each still writes its JSON.
blast_stop() {
	[ ${#BLASTS[@]} = 0 ] || kill -TERM "${BLASTS[@]}" 2> /dev/null
	blast_wait
}

# field FILE NAME: of a tool's JSON.
field() {
	jq -r ".$2 // empty" "$1"
}

# sink_start DEV [OPTIONS]: into $LAB/sink.DEV.
sink_start() {
	local dev=$1

	shift
	rm -f "$LAB/sink.$dev.sources"
	"${IN_S[@]}" "$TOOLS/netns/sink" --interface "$dev" --log "$LAB/sink.$dev" "$@" \
		> "$LAB/sink.$dev.json" 2> "$LAB/sink.$dev.ready" &
	started
	SINK_PID=$!
	wait_for 5 grep -q ready "$LAB/sink.$dev.ready" || not_ok "sink does not start"
}

# Ends the sink once nothing more arrives; a frame lost by it is a failure of the test.
sink_stop() {
	settle "$1"
	kill -TERM $SINK_PID
	wait $SINK_PID
	[ "$(field "$LAB/sink.$1.json" lost)" = 0 ] || not_ok "the sink lost frames"
	# Each source's packets, bytes, first and last time.
	awk -F'\t' '{ if (!n[$2]++) first[$2] = $1
			bytes[$2] += $5; last[$2] = $1 }
		END { for (src in n) print src, n[src], bytes[src], first[src], last[src] }' \
		"$LAB/sink.$1" > "$LAB/sink.$1.sources"
}

rx_packets() {
	ip -n "$NS_S" -j -s link show "$1" | jq '.[0].stats64.rx.packets'
}

# Waits until the receiver's counters stand still: three equal readings, since on a busy machine its
# softirq may not run for 50 ms.
settle() {
	local before after same=0

	before=$(rx_packets "$1")
	for _ in $(seq 100); do
		sleep 0.05
		after=$(rx_packets "$1")
		[ "$before" = "$after" ] && same=$((same + 1)) || same=0
		[ $same = 2 ] && return
		before=$after
	done
	not_ok "traffic does not settle on $1"
}

# ring_drops DEV: frames that the receiving veth's ring dropped: sent, never judged.
ring_drops() {
	on_server ethtool -S "$1" | awk '/rx_queue_[0-9]+_drops/ { n += $2 } END { print n + 0 }'
}

# passed DEV SRC [FROM TO]: frames of a source that the sink saw, in a time; "packets bytes".
# Without a time, once the sink was stopped.
passed() {
	if [ $# = 2 ] && [ -e "$LAB/sink.$1.sources" ]; then
		awk -v src="$2" '$1 == src { n = $2; bytes = $3 }
			END { print n + 0, bytes + 0 }' "$LAB/sink.$1.sources"
	else
		awk -F'\t' -v src="$2" -v from="${3:-0}" -v to="${4:-1e18}" '
			$2 == src && $1 >= from && $1 < to { n++; bytes += $5 }
			END { print n + 0, bytes + 0 }' "$LAB/sink.$1"
	fi
}

packets_passed() {
	passed "$@" | cut -d' ' -f1
}

# pass_times DEV SRC: "first last", once the sink was stopped; 0 0 where none passed.
pass_times() {
	awk -v src="$2" '$1 == src { first = $4; last = $5 }
		END { printf "%.6f %.6f\n", first, last }' "$LAB/sink.$1.sources"
}

# mid_second: a CLOCK_MONOTONIC in 2 to 3 s that is half-way between two UTC seconds: for tools
# that are to start together (--at), away from the edges of windows.
mid_second() {
	awk -v utc="$(date +%s.%N)" -v mono="$(now)" 'BEGIN {
		at = int(utc) + 2.5
		printf "%.3f", mono + at - utc }'
}
