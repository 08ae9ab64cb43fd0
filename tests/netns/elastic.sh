#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# elastic.sh - an elastic limit rises to its ceiling while resources are free, is back at its
# rate within a second when they are not, and rises again after. By a load signal, which the
# test sets itself, measured behind XDP; by the CPUs with burners on all of them, read from the
# metric. A load signal that has expired and a daemon that was killed mean the plain limit. Beside
# it a limit that is not elastic never changes.
#
# The load signal is set over HTTP with a token, and by sluicectl.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin elastic
lab_link 0
METRICS_LISTEN=0.0.0.0:9810
METRICS_MORE="token_file: $LAB/token"
echo 0123456789abcdef-lab > "$LAB/token"

RATE=1000
daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
limits:
  - {name: signal, match: {src: 10.1.1.0/24}, rate: $RATE packets/s, burst: 100,
     throttle: {elastic: 200%, while: {load_signal: {api-load: 60%}}}}
  - {name: plain, match: {src: 10.1.2.0/24}, rate: $RATE packets/s, burst: 100}
  - {name: cpu, match: {src: 10.1.3.0/24}, rate: $RATE packets/s, burst: 100,
     throttle: {elastic: 300%, while: {cpu: 90%}}}
YAML

# put FROM NAME BODY: prints the status code.
put() {
	"on_$1" bash -c '
		exec 3<> "/dev/tcp/$1/9810" && printf "PUT /v1/load-signals/%s HTTP/1.1\r\nHost: lab\r\n$4Content-Length: %d\r\nConnection: close\r\n\r\n%s" \
			"$2" "${#3}" "$3" >&3 && head -1 <&3 | cut -d" " -f2' \
		- "${HOST:-127.0.0.1}" "$2" "$3" "${HEADER-$TOKEN}"
}
TOKEN='X-Sluice-Token: 0123456789abcdef-lab\r\n'

scale() {
	metrics | awk -v name="sluice_elastic_scale_ratio{limit=\"$1\"}" '$1 == name { print $2 }'
}

scale_is() {
	awk -v v="$(scale "$1")" -v l="$2" -v m="$3" 'BEGIN { exit !(v != "" && v >= l && v <= m) }'
}

# ---------------------------------------------------------------- setting a load signal

check_is "PUT of a load signal" "$(put server api-load '{"value":0.95,"for":"5m"}')" 200
check_is "a name that no rule uses" "$(put server other '{"value":0.1}')" 404
check_is "no name" "$(put server '' '{"value":0.1}')" 404
check_is "not JSON" "$(put server api-load 'value=1')" 400
check_is "a negative value" "$(put server api-load '{"value":-1}')" 400
check_is "a value that is text" "$(put server api-load '{"value":"0.1"}')" 400
check_is "an unknown member" "$(put server api-load '{"value":0.1,"fro":"1s"}')" 400
check_is "an invalid time" "$(put server api-load '{"value":0.1,"for":"soon"}')" 400
# The connection may be closed before all of it was sent, and then the response is lost.
code=$(put server api-load "{\"value\":0.1,\"for\":\"$(printf '%05000d' 1)s\"}" 2> /dev/null)
check_is "a body that is too long" "${code:-413}" 413
check_is "from this host without the token: another user, a web page, a reverse proxy" \
	"$(HEADER='' put server api-load '{"value":0.1}')" 401
ip -n "$NS_C" addr add 10.1.9.9/16 dev c0
check_is "from another host" "$(HOST=$SERVER4 HEADER='' put client api-load '{"value":0.1}')" 401
check_is "over a local address that is not loopback" \
	"$(HOST=$SERVER4 HEADER='' put server api-load '{"value":0.1}')" 401
from_other() {
	HOST=$SERVER4 HEADER="$1\r\n" put client api-load "${2-"{\"value\":0.1}"}"
}
check_is "from another host with another token" "$(from_other 'X-Sluice-Token: 0123456789abcdef-lax')" 401
check_is "from another host with a part of the token" "$(from_other 'X-Sluice-Token: 0123456789abcdef')" 401
check_is "from another host with no JSON" \
	"$(from_other 'X-Sluice-Token: 0123456789abcdef-lab' 'value=1')" 400
check_is "refused requests changed nothing" "$(ctl -o json load-signal list | jq '.load_signals[0].value')" 0.95
check_is "from another host with the token" "$(from_other 'X-Sluice-Token: 0123456789abcdef-lab')" 200
check_is "as a bearer token" "$(from_other 'Authorization: Bearer 0123456789abcdef-lab')" 200
check_is "it is set" "$(ctl -o json load-signal list | jq '.load_signals[0].value')" 0.1
echo 0123456789abcdef-new > "$LAB/token"
check_is "with a token that was replaced" "$(from_other 'X-Sluice-Token: 0123456789abcdef-lab')" 401
check_is "with the new one" "$(from_other 'X-Sluice-Token: 0123456789abcdef-new')" 200
rm "$LAB/token"
check_is "without the file" "$(from_other 'X-Sluice-Token: 0123456789abcdef-new')" 503
echo 0123456789abcdef-lab > "$LAB/token"
ip -n "$NS_C" addr del 10.1.9.9/16 dev c0
check_is "sluicectl load-signal set" "$(ctl load-signal set api-load 70% --for 5m)" "api-load is 0.7 for 5m"
check_is "sluicectl load-signal set of an unknown name fails" "$(ctl load-signal set other 0.7 2> /dev/null; echo $?)" 1
check_is "sluicectl load-signal set without a number fails" "$(ctl load-signal set api-load high 2> /dev/null; echo $?)" 2

# ---------------------------------------------------------------- by a load signal

sink_start s0
blast_bg "$LAB/signal" --src 10.1.1.1 --dst $SERVER4 --pps $((RATE * 4)) --time 120
blast_bg "$LAB/plain" --src 10.1.2.1 --dst $SERVER4 --pps $((RATE * 4)) --time 120
blast_bg "$LAB/within" --src 10.1.1.2 --dst $SERVER4 --pps $((RATE / 2)) --time 120

# span NAME SECONDS: notes a time from now on, to be measured at the end.
span() {
	eval "$1=$(now)"
	wait_for 10 elapsed "${!1}" "$2"
	eval "$1_end=$(now)"
}

wait_for 10 test -s "$LAB/sink.s0"
wait_for 5 scale_is signal 1 1
span busy 2
ctl load-signal set api-load 0.1 --for 5m > /dev/null
check_true "a low load signal: up to the ceiling" wait_for 10 scale_is signal 2 2
check_true "limit show has the scale" grep -q 'scale now 2.00 of 2.00: free' <(ctl limit show signal)
span free 2
check_is "PUT: busy" "$(put server api-load '{"value":0.6,"for":"5m"}')" 200
down=$(now)
wait_for 5 elapsed "$down" 1
check_true "within a second back at the limit" scale_is signal 1 1
check_true "limit show has the reason" grep -q 'load signal api-load 60% of 60%' <(ctl limit show signal)
span again 2
put server api-load '{"value":0,"for":"5m"}' > /dev/null
check_true "up again" wait_for 10 scale_is signal 2 2
killed=$(now)
daemon_kill KILL
wait_for 10 elapsed "$killed" 3
span dead 2
blast_stop
sink_stop s0

# A span's rate is exact to a burst, a twentieth here (of elastic limits twice that), since a sender that
# stood still meets a full bucket, and to the edges of time.
rate_in() {
	local from=$3 to=$3_end

	calc "$(packets_passed s0 "$2" "${!from}" "${!to}") / (${!to} - ${!from})"
}
check "busy: its rate" "$(rate_in signal 10.1.1.1 busy)" $((RATE * 94 / 100)) $((RATE * 106 / 100))
check "free: its ceiling" "$(rate_in signal 10.1.1.1 free)" $((RATE * 188 / 100)) $((RATE * 212 / 100))
check "busy again: its rate" "$(rate_in signal 10.1.1.1 again)" $((RATE * 94 / 100)) $((RATE * 106 / 100))
check "killed -9, three seconds later: its rate" "$(rate_in signal 10.1.1.1 dead)" \
	$((RATE * 94 / 100)) $((RATE * 106 / 100))
for name in busy free again dead; do
	check "the limit that is not elastic, $name" "$(rate_in plain 10.1.2.1 $name)" \
		$((RATE * 94 / 100)) $((RATE * 106 / 100))
done
check_is "the neighbour within its rate lost nothing" "$(packets_passed s0 10.1.1.2)" "$(field "$LAB/within" sent)"

# ---------------------------------------------------------------- by the CPUs

echo 0123456789abcdef-lab > "$LAB/token"
daemon_run
put server api-load '{"value":0,"for":"2s"}' > /dev/null
expired() {
	grep -q 'load signal api-load not set' <(ctl limit show signal)
}
check_true "a load signal expires" wait_for 5 expired
check_true "and the limit is what it is without one" scale_is signal 1 1
if wait_for 25 scale_is cpu 3 3; then
	ok "idle CPUs: up to the ceiling"
	burners=()
	for _ in $(seq "$(nproc)"); do
		timeout 6 sh -c 'while :; do :; done' &
		burners+=($!)
		started
	done
	burning=$(now)
	check_true "busy CPUs: back at the limit" wait_for 2 scale_is cpu 1 1
	check "seconds until then" "$(calc "$(now) - $burning")" 0 1.6
	kill "${burners[@]}" 2> /dev/null
	wait "${burners[@]}" 2> /dev/null
else
	skip "this machine is too busy for CPUs to be free: $(ctl limit show cpu | head -1)"
fi
lab_done
