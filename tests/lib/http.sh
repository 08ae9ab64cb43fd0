# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# http.sh - a lab for the HTTP tier alone: a network namespace of its own (so ports are free, and
# the same in every scenario), a sluiced without interfaces in it, curl. Needs no root where users
# may create namespaces.
#
#     . tests/lib/http.sh
#     http_begin NAME "$@"        starts the script again inside the namespace
#     http_rules api <<'YAML'     rules.d/api.yaml
#     http_daemon <<'YAML'        the lines below `http:`, indented by two; $HTTP_TOP has others.
#                                 `listen` ($URL and $UNIX) and `rules` are added where missing
#     check_is "..." "$(http_check api user=bob)" 200
#     lab_done
#
# Results, metrics, ctl, wait_for, started: as in netns.sh, which this uses. Ports: 8180
# HTTP, 8181 gRPC, 8182 SPOE, 8183 syslog, 9810 metrics.

. "$(dirname "${BASH_SOURCE[0]}")/netns.sh"

IN_S=() IN_C=()
URL=http://127.0.0.1:8180

http_begin() {
	local as_root=

	LAB_NAME=$1
	shift
	if [ "${HTTP_INSIDE:-}" != $PPID ]; then
		[ "$(id -u)" = 0 ] || as_root=-r
		if ! unshare $as_root -n true 2> /dev/null; then
			skip "needs root (a network namespace)"
			exit 0
		fi
		# A process between us and it, so that the inner script can find out by its parent.
		HTTP_INSIDE=$$ unshare $as_root -n -- bash "$0" "$@"
		exit
	fi
	unset HTTP_INSIDE
	LAB=$(mktemp -d "${TMPDIR:-/tmp}/sluice-$LAB_NAME.XXXXXX") || exit 1
	SOCKET=$LAB/control.sock
	PIN=$LAB/pin
	CONFIG=$LAB/sluice.yaml
	UNIX=$LAB/http.sock
	RULES=$LAB/rules
	mkdir "$RULES"
	chmod 755 "$LAB"
	trap http_end EXIT
	trap 'exit 130' INT TERM HUP
	ip link set lo up || exit 1
	utc_room 3600 60
}

http_end() {
	lab_stop $?
	lab_leave
}

# http_rules NAME < YAML: replaced whole, as an editor does it. Text without a `domain` is the
# descriptors of the domain NAME.
http_rules() {
	local text

	text=$(cat)
	grep -q '^domain:' <<< "$text" || text=$(printf 'domain: %s\ndescriptors:\n%s' "$1" "$text")
	printf '%s\n' "$text" > "$LAB/new-rules" && mv "$LAB/new-rules" "$RULES/$1.yaml"
}

# http_config < YAML
http_config() {
	local text

	text=$(cat)
	{
		printf '%s\n' "${HTTP_TOP:-}"
		echo "http:"
		grep -q '^  listen:' <<< "$text" || echo "  listen: [127.0.0.1:8180, unix:$UNIX]"
		grep -q '^  rules:' <<< "$text" || echo "  rules: $RULES"
		printf '%s\n' "$text"
	} | config_write "$CONFIG"
}

http_daemon() {
	http_config
	daemon_run
}

# request [CURL OPTIONS] URL-OR-PATH: prints the status; $LAB/body and $LAB/headers have the rest.
request() {
	local args=("$@")

	case ${args[-1]} in
	/*) args[-1]=$URL${args[-1]} ;;
	esac
	"${IN_S[@]}" curl -s -m 20 -o "$LAB/body" -D "$LAB/headers" -w '%{http_code}' "${args[@]}"
}

# header NAME: of the last request().
header() {
	tr -d '\r' < "$LAB/headers" | awk -v name="$1" 'BEGIN { n = tolower(name) ":" }
		tolower(substr($0, 1, length(n))) == n { sub(/^[^:]*: */, ""); print; exit }'
}

# check_body DOMAIN [KEY=VALUE...] [--MEMBER JSON]...: a call for /v1/check with one descriptor.
check_body() {
	local domain=$1 entries='[]' more='{}'

	shift
	while [ $# -gt 0 ]; do
		case $1 in
		--*)
			more=$(jq -c --arg k "${1#--}" --argjson v "$2" '.[$k] = $v' <<< "$more")
			shift
			;;
		*) entries=$(jq -c --arg k "${1%%=*}" --arg v "${1#*=}" \
			'. + [{key: $k, value: $v}]' <<< "$entries") ;;
		esac
		shift
	done
	jq -nc --arg d "$domain" --argjson e "$entries" --argjson m "$more" \
		'{domain: $d, descriptors: [{entries: $e}]} + $m'
}

# http_check DOMAIN KEY=VALUE...: one request; prints the status.
http_check() {
	request -d "$(check_body "$@")" "${HTTP_OPTIONS[@]}" /v1/check
}
HTTP_OPTIONS=()

# http_passed COUNT DOMAIN KEY=VALUE...: how many of COUNT are allowed.
http_passed() {
	local count=$1 body i

	shift
	body=$(check_body "$@")
	for ((i = 0; i < count; i++)); do
		request -d "$body" "${HTTP_OPTIONS[@]}" /v1/check
		echo
	done | grep -c '^200$'
}
