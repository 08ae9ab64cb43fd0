#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Elastic limits of the cluster: each of three nodes scales by its own signal. Together they admit what
# the node of the largest scale may, and no more, whichever node is asked first; when they shrink, what
# was used stays used: of a window the count, of a bucket the share. A limit that shrank to a quarter
# keeps three eighths of that for critical requests.

. "$(dirname "$0")/../lib/redis.sh"
cluster_begin elastic "$@"

http_rules api <<'YAML'
  - {key: window, scope: cluster, limits: [100 requests/h],
     throttle: &elastic {elastic: 200%, floor: 25%, while: {load_signal: load}}}
  - {key: sliding, scope: cluster, algorithm: sliding-window, limits: [100 requests/h], throttle: *elastic}
  - {key: log, scope: cluster, algorithm: sliding-log, limits: [100 requests/h], throttle: *elastic}
  - {key: first, scope: cluster, window: first-request, limits: [100 requests/h], throttle: *elastic}
  - {key: bucket, scope: cluster, algorithm: token-bucket, burst: 100, limits: [100 requests/h], throttle: *elastic}
  - {key: lease, consistency: {lease: 1s}, limits: [100 requests/h], throttle: *elastic}
  - {key: back, consistency: {write_back: 200ms}, limits: [100 requests/h], throttle: *elastic}
  - {key: hard, scope: cluster, limits: [100 requests/h]}
  - {key: class, value: critical, priority: critical}
YAML
WINDOWS="window sliding log first"
STRICT="$WINDOWS bucket"

redis_start main
for name in a b c; do node_start $name; done
ready() { [ "$(for n in a b c; do node $n metric sluice_store_up; done | xargs)" = "1 1 1" ]; }
check_true "the nodes have a store" wait_for 10 ready

# scales A B C: the scale of each node.
SCALES=
scales_are() {
	[ "$(for n in a b c; do
		node $n metrics | awk '/^sluice_http_elastic_scale_ratio.*rule="window"/ { print $2 }'
	done | xargs)" = "$SCALES" ]
}
# signals A B C: its load, or "-" to let the value expire.
signals() {
	local name

	for name in a b c; do
		if [ "$1" = - ]; then
			node $name ctl load-signal set load 1 --for 1ms > /dev/null
		else
			node $name ctl load-signal set load "$1" --for 1h > /dev/null
		fi
		shift
	done
}

# As many(), with a second descriptor.
critical_many() {
	local body

	body=$(check_body "$2" "$3" | jq -c '.descriptors += [{entries: [{key: "class", value: "critical"}]}]')
	"${IN_S[@]}" curl -s -m 60 -o /dev/null -w '%{http_code}\n' -d "$body" "$URL/v1/check#[1-$1]" | grep -c '^200$'
}

# asked KEY VALUE NODE...: 250 requests to each node, one after the other; prints how many passed in all.
asked() {
	local key=$1 value=$2 name sum=0

	shift 2
	for name; do
		sum=$((sum + $(node "$name" "${critical:+critical_}many" 250 api "$key=$value")))
	done
	echo $sum
}

SCALES="1 1 1"
check_true "no signal: each at its rate" wait_for 15 scales_are
for key in $STRICT; do check "$key: 1, 1, 1" "$(asked $key one a b c)" 100 101; done

signals 0.1 0.1 0.1
SCALES="2 2 2"
check_true "free: up to the ceiling" wait_for 20 scales_are
for key in $STRICT; do
	[ $key = bucket ] || check "$key: 2, 2, 2, after 100" "$(asked $key one c b a)" 99 102
	check "$key: 2, 2, 2" "$(spread 100 api $key=two)" 200 202
	check "$key: and no more" "$(spread 10 api $key=two)" 0 1
done
# A node that has sent its last request still holds up to a quarter of the limit; when its lease has
# ended the others have that, too.
leased=$(spread 120 api lease=two)
check "lease: 2, 2, 2, less what nodes hold" "$leased" 150 202
the_rest() { leased=$((leased + $(spread 10 api lease=two))) && [ $leased -ge 198 ]; }
check_true "the rest when those leases have ended" wait_for 10 the_rest
check "and no more" $((leased + $(spread 10 api lease=two))) 198 202
check "write_back: 2, 2, 2, and what each admits within the interval" "$(spread 120 api back=two)" 190 360
check_is "the limit that is not elastic" "$(spread 50 api hard=two)" 100

# The first node fills its share; one of a larger scale still has room; the sum is the largest scale's.
signals 0.1 - -
SCALES="2 1 1"
check_true "one is free" wait_for 10 scales_are
for key in $STRICT; do
	[ $key = bucket ] || check "$key: 1 first, then 2" "$(asked $key three b a c)" 200 202
	check "$key: 2 first, then 1" "$(asked $key four a c b)" 200 202
	check "$key: 1 alone" "$(asked $key five c b)" 100 101
	check "$key: what was used at 2" "$(asked $key two b c a)" 0 1
done

signals 100 100 -
SCALES="0.25 0.25 1"
check_true "two are over, to the floor" wait_for 20 scales_are
for key in $STRICT; do
	check "$key: a quarter, but for what is kept" "$(asked $key six a b)" 16 17
	check "$key: critical requests have all of it" "$(critical=1 asked $key six b a)" 8 10
	[ $key = bucket ] || check "$key: on the third node the rest" "$(asked $key six c)" 73 76
	check "$key: what was used before is used" "$(asked $key five a b c)" 0 1
done

# ---------------------------------------------------------------- without Redis

redis_kill main
down() { [ "$(for n in a b c; do node $n metric sluice_store_up; done | xargs)" = "0 0 0" ]; }
check_true "Redis is gone" wait_for 15 down
check "each by its part of its own scale" "$(spread 100 api window=seven)" 40 68
lab_done
