# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# proxy.sh - real proxies from docs/examples in front of tests/http/application.py, and attacks by clients
# that all of them withstand. On top of http.sh:
#
#     application_start           port 8000, as the examples have it
#     nginx_start NAME PORT [SED] docs/examples/NAME; SED changes it further
#     caddy_start NAME PORT [SED]
#     haproxy_start NAME PORT [GLOBAL LINE...]
#     haproxy_kinds PORT
#     proxy_limits PORT           of 5 for an API key exactly 5, then 429 with every header
#     proxy_left_alone OPEN CLOSED  sluiced stands still, stops and comes back, behind these two ports
#     proxy_client_bytes PORT     whatever a client sends, a refusal stays a refusal and nothing is an error

application_start() {
	python3 "$REPO/tests/http/application.py" 8000 > "$LAB/application.log" 2>&1 &
	started
	wait_for 10 request http://127.0.0.1:8000/ || not_ok "the application does not start"
}

ODD='a\x01\x7f'		# control characters, which Go's servers refuse themselves
# proxy_keys nginx|caddy|haproxy: its file of keys. All but those that begin with "i" are known, each of the
# user whose name it is; HAProxy has a list.
proxy_keys() {
	local port i

	mkdir -p "$LAB/keys"
	# shellcheck disable=SC2059
	odd=$(printf "$ODD"'\xff\xfe\xc3(%%zz%%00%%0d%%0aX-Sluice-V-user:%%20fresh')
	long=$(head -c 60000 /dev/zero | tr '\0' p)
	case $1 in
	nginx) echo '"~^(?s)[^i][^,]*$" $http_x_api_key;' ;;
	caddy) echo '"~^((?s)[^i][^,]*)$" "${1}"' ;;
	haproxy) for i in mallory una two many some few reload somebody; do
			echo "$i $i"
		done
		for port in 80{80..84} 8090 8091 8100; do
			for i in bob eve pat {1..12} "$odd"; do	# no line may be as long as HAProxy's buffer
				echo "$i-$port $i-$port"
			done
		done ;;
	esac
}

nginx_start() {
	local dir=$LAB/nginx-$2

	mkdir -p "$dir"
	proxy_keys nginx > "$dir/keys.map"
	# The example, but for the port, paths that need root, room for what the tests send, and time: this
	# machine may stand still for longer than the example waits.
	sed -e "${3:-}" -e "s|listen 80;|listen $2;|
		s|_timeout [0-9]*ms;|_timeout 2s;|
		s|/etc/nginx/sluice/|$dir/|
		s|^http {|&\n\taccess_log off;\n\tlarge_client_header_buffers 8 128k;\n\tclient_body_temp_path $dir/body;\n\tproxy_temp_path $dir/proxy;\n\tfastcgi_temp_path $dir/f;\n\tuwsgi_temp_path $dir/u;\n\tscgi_temp_path $dir/s;|" \
		"$REPO/docs/examples/$1" > "$dir/nginx.conf"
	nginx -p "$dir" -c "$dir/nginx.conf" -e "$dir/error.log" \
		-g "daemon off; master_process off; pid $dir/pid;" 2> "$dir/stderr" &
	started
	wait_for 10 request "http://127.0.0.1:$2/" || not_ok "$1: nginx does not start: $(tail -n 2 "$dir"/*err*)"
}

caddy_start() {
	local dir=$LAB/caddy-$2

	mkdir -p "$dir"
	proxy_keys caddy > "$dir/sluice-keys"
	{
		printf '{\n\tadmin off\n\tauto_https off\n}\n'
		sed -e "${3:-}" -e "s|^:80 {|http://:$2 {|; s|_timeout [0-9]*ms|_timeout 2s|; s|/etc/caddy/|$dir/|" \
			"$REPO/docs/examples/$1"
	} > "$dir/Caddyfile"
	XDG_CONFIG_HOME=$dir XDG_DATA_HOME=$dir caddy run --config "$dir/Caddyfile" --adapter caddyfile \
		2> "$dir/log" &
	started
	wait_for 10 request "http://127.0.0.1:$2/" || not_ok "$1: Caddy does not start: $(tail -n 2 "$dir/log")"
}

# haproxy_start NAME PORT [GLOBAL LINE...]: the example, but for ports, and time for a machine that
# stalls. $HAPROXY_ARGS replaces the arguments of its SPOE message.
haproxy_start() {
	local dir=$LAB/haproxy-$2 line global=

	for line in "${@:3}"; do global="$global\n\t$line"; done
	mkdir -p "$dir"
	sed "s|bind :80$|bind 127.0.0.1:$2|; s|/etc/haproxy/|$dir/|; s|^global|&$global|; s|connect 20ms|connect 1s|" \
		"$REPO/docs/examples/$1" > "$dir/haproxy.cfg"
	proxy_keys haproxy > "$dir/sluice-keys.map"
	sed "s|hello 500ms|hello 2s|; s|processing 500ms|processing 1s|; s|/etc/haproxy/|$dir/|g${HAPROXY_ARGS:+
		s/^\tmessages .*/\tmessages known/; s/^\targs .*/\targs $HAPROXY_ARGS/}" \
		"$REPO/docs/examples/haproxy-spoe.conf" > "$dir/haproxy-spoe.conf"
	haproxy -db -f "$dir/haproxy.cfg" > "$dir/log" 2>&1 &
	started
	HAPROXY=$!
	wait_for 10 request "http://127.0.0.1:$2/" || not_ok "$1: HAProxy does not start: $(tail -n 2 "$dir/log")"
}

# haproxy_kinds PORT: sends each kind of tests/http/kinds.yaml, whose value is in a header X-KIND.
haproxy_kinds() {
	local kind descriptors=0 HAPROXY_ARGS='domain=str(kinds)'

	for kind in token-bucket leaky-bucket fixed-window first-request sliding-window sliding-log \
		interval-bucket window-counters several several-buckets candidate counted; do
		HAPROXY_ARGS="$HAPROXY_ARGS d$((++descriptors))_$kind=req.fhdr(x-$kind)"
	done
	haproxy_start haproxy.cfg "$1"
}

# The rules of the examples' tests, with limits that refill only within a day.
proxy_rules() {
	http_rules api <<'YAML'
  - key: source
    limits: ['1000 requests/d']
    algorithm: token-bucket
    burst: 1000
  - key: guest
    limits: ['5 requests/d']
    algorithm: token-bucket
    burst: 5
  - key: user
    limits: ['5 requests/d']
    algorithm: token-bucket
    burst: 5
    descriptors:
      - key: path
        value: /search
        ignore: [case, trailing-slash, params]
        limits: ['2 requests/d']
        algorithm: token-bucket
        burst: 2
YAML
}

# through PORT USER [CURL OPTIONS] PATH: prints the status
through() {
	local port=$1 user=$2

	shift 2
	set -- "${@:1:$#-1}" "http://127.0.0.1:$port${*: -1}"
	request --path-as-is -H "X-API-Key: $user" "$@"
}

# used KEY=VALUE...: what is left of a limit, asked without charging
left() {
	request -d "$(check_body api "$@" --peek true)" /v1/check > /dev/null
	jq '.statuses[0].remaining' "$LAB/body"
}

TWO_KEYS=429		# what becomes of a request with two keys
proxy_limits() {
	local port=$1 user=bob-$1 name i from statuses=

	for i in 1 2 3; do
		statuses="$statuses $(through "$port" "$user" /page)"
	done
	check_is "port $port: 3 of 5 pass" "$statuses" " 200 200 200"
	check_is "RateLimit on a request that passes" "$(header RateLimit | grep -c '"user";r=2;t=')" 1
	check_is "RateLimit-Policy, the binding one first" "$(header RateLimit-Policy | head -c 12)" '"user";q=5;w'
	check_is "X-RateLimit-Limit and -Remaining" "$(header X-RateLimit-Limit) $(header X-RateLimit-Remaining)" "5 2"
	check_is "no Retry-After on a request that passes" "$(header Retry-After)$(header X-RateLimit-Retry-After)" ""
	check_is "the application got the request" "$(jq -r .path "$LAB/body")" /page
	check_is "/v1/check has the same count" "$(left user="$user")" 2
	check_is "a POST is checked like a GET" "$(through "$port" "$user" -d "$(printf '%5000d' 0)" /post)" 200
	check_is "its body arrives" "$(jq -r '.method, .body' "$LAB/body" | paste -sd' ')" "POST 5000"
	through "$port" "$user" /page > "$LAB/out"
	check_is "the sixth is refused" "$(through "$port" "$user" /page)" 429
	for name in RateLimit RateLimit-Policy X-RateLimit-Limit X-RateLimit-Remaining X-RateLimit-Reset \
		X-RateLimit-Retry-After Retry-After; do
		check_true "with $name" test -n "$(header $name)"
	done
	check "Retry-After: a fifth of a day and a tenth at most" "$(header Retry-After)" 17000 19010
	check_is "the response is a problem document" "$(header Content-Type)" application/problem+json
	check_is "its type is that of rate limits" "$(jq -r .type "$LAB/body")" \
		"https://iana.org/assignments/http-problem-types#quota-exceeded"
	check_is "another user passes" "$(through "$port" "eve-$port" /page)" 200
	# Invented keys and none are the guests of an address, who share 5.
	from="--interface 127.1.${port:0:2}.${port:2}"
	check_is "port $port: invented keys and none are guests" "$(for i in 1 2 3; do
		through "$port" "invented-$i" $from /; printf ' '; request $from "http://127.0.0.1:$port/"; printf ' '; done)" \
		"200 200 200 200 200 429 "
	check_is "who are limited as no user is" "$(header RateLimit-Policy | grep -o '"[a-z/]*"' | sort | xargs)" "guest source"
	check_is "a second key gains nothing" "$(through "$port" invented -H "X-API-Key: bob-$port" $from /)" "$TWO_KEYS"
	check_is "nor does one before it" "$(through "$port" "bob-$port" -H "X-API-Key: invented" $from /)" "$TWO_KEYS"
	check_is "another address passes" "$(request --interface 127.2.2.2 "http://127.0.0.1:$port/")" 200
	[ "$TWO_KEYS" = 403 ] ||
		check_is "the application gets one key" "$(through "$port" "eve-$port" -H 'X-API-Key: other' \
			--interface 127.3.3.3 /) $(jq '.keys | length' "$LAB/body")" "200 1"
	check_is "the application's own 403" "$(through "$port" "eve-$port" -H 'X-Answer: 403' /)" 403
	check_is "the application's own 500" "$(through "$port" "eve-$port" -H 'X-Answer: 500' /)" 500
}

# proxy_pair PORT PORT: limits, paths and hostile bytes through two proxies that share sluiced.
proxy_pair() {
	local port

	for port; do
		proxy_limits "$port"
		proxy_paths "$port"
	done
	proxy_client_bytes "$1"
	check_is "both proxies and /v1/check have one count" \
		"$(through "$2" mallory /) $(http_check api user=mallory)" "429 429"
}

# proxy_undecided OPEN CLOSED: ports of proxies with an unknown token. No decision is made.
proxy_undecided() {
	check_is "no decision: open" "$(through "$1" una /)" 200
	check_is "no decision: closed" "$(through "$2" una /)" 503
	check_is "with Retry-After" "$(header Retry-After)" 1
}

proxy_left_alone() {
	local open=$1 closed=$2

	refused() { [ "$(through "$open" "bob-$open" /) $(through "$closed" "bob-$closed" /)" = "429 429" ]; }
	stand_still "$DAEMON_PID"
	check_is "sluiced stands still: open" "$(through "$open" "bob-$open" -d body /)" 200
	check_is "the body arrives" "$(jq -r .body "$LAB/body")" 4
	check_is "sluiced stands still: closed" "$(through "$closed" "bob-$closed" /)" 503
	kill -CONT "$DAEMON_PID"
	check_true "resumed: refused again" wait_for 5 refused

	daemon_kill TERM
	check_is "sluiced stopped: open" "$(through "$open" "bob-$open" /)" 200
	check_is "the request arrives" "$(jq -r .path "$LAB/body")" /
	check_is "sluiced stopped: closed" "$(through "$closed" "eve-$closed" /)" 503
	check_is "with Retry-After" "$(header Retry-After)" 1
	daemon_run
	check_true "started again: refused as before" wait_for 5 refused
}

# The rule of a path holds for every spelling of the path, and for those that the application takes for it.
proxy_paths() {
	local port=$1 statuses= path

	for path in /search '/%73earch?q=1' '//search' '/a/../search' '/./search?/' '/search' /SEARCH /search/ \
		'/search;x' '/a/..;x/Search%2f'; do
		statuses="$statuses $(through "$port" "pat-$port" "$path")"
	done
	check_is "port $port: of /search 2 pass, in any spelling" "$statuses" " 200 200 429 429 429 429 429 429 429 429"
	check_is "another path passes" "$(through "$port" "pat-$port" /find)" 200
}

# A refused client does not get through by what it sends, and no other client is harmed by it.
proxy_client_bytes() {
	local port=$1 before after options words n=0

	for i in 1 2 3 4 5 6; do through "$port" mallory /; done > "$LAB/out"
	before=$(left source=127.0.0.1)
	head -c 60000 /dev/zero | tr '\0' p > "$LAB/long"
	{
		echo "X-Sluice-V-user: fresh"; echo "X-Sluice-V-source: 192.0.2.1"
		echo "X-Sluice-Source: 192.0.2.1"; echo "X-Sluice-Token: wrong"; echo "X-Sluice-Wait: soon"
		echo "X-Sluice-Uri: /x"
	} > "$LAB/sluice-headers"
	for i in $(seq 100); do echo "Cookie: c$i=$i"; done > "$LAB/cookies"
	while IFS='|' read -r words options; do
		# shellcheck disable=SC2086
		eval "set -- $options"
		check_is "port $port: $words, refused" "$(through "$port" mallory "$@")" 429
		n=$((n + 1))
		check_is "port $port: $words, another user" "$(through "$port" "$n-$port" "$@")" 200
	done <<-CASES
		X-Sluice-*|-H @"$LAB/sluice-headers" /
		X-Forwarded-*|-H 'X-Forwarded-For: 192.0.2.1' -H 'X-Forwarded-Uri: /x' -H 'X-Forwarded-Method: X' -H 'X-Forwarded-Host: x' /
		an Origin|-H 'Origin: http://a.example' /
		an Authorization|-H 'Authorization: Bearer wrong' /
		a Host|-H 'Host: a.example' /
		a path of 60 KiB|/"\$(cat "$LAB/long")"
		a query of 60 KiB|/?"\$(cat "$LAB/long")"
		100 cookies|-H @"$LAB/cookies" /
		a cookie of 60 KiB|-H "Cookie: c=\$(cat "$LAB/long")" /
		odd bytes in a header|-H X-Odd:"$odd" -A "$odd" /
		a path that would end a header|'/a%0d%0aX-Sluice-V-user:%20fresh%0d%0aX-API-Key:%20fresh'
		odd bytes in a path|/'%ff%fe%c3%28%7f%0a%0d%5c%22'
	CASES
	after=$(left source=127.0.0.1)
	check "port $port: the address had its 12 allowed counted" $((before - after)) 12 12
	check_is "port $port: no other address was charged" "$(left source=192.0.2.1)" 1000
	# An API key of odd bytes is a key like any other: five pass, and there is no error.
	words=
	for i in 1 2 3 4 5 6; do words="$words $(through "$port" "$odd-$port" /)"; done
	check_is "port $port: a key of odd bytes" "$words" " 200 200 200 200 200 429"
	words=
	for i in 1 2 3 4 5 6; do words="$words $(through "$port" "$long-$port" --interface 127.4.4.4 /)"; done
	check_is "port $port: a key of 60 KiB" "$words" " 200 200 200 200 200 429"
	check_is "no response contains it" "$(grep -c ppppp "$LAB/headers" "$LAB/body" | grep -vc ':0')" 0
}
