#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# steps.sh - docs/decisions/0077-steps.md: the commands of sluice and of nft are run, and as many as its table
# has. Of 12 scripts/deb_inside.sh runs the command, on each Debian.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin steps
lab_link 0
PAGE=$REPO/docs/decisions/0077-steps.md
mkdir "$LAB/rules.d"
daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
limits: [{name: web, match: {dport: 80}, rate: 10 packets/s}]
$(sed -n '/^http:/,/^$/p' "$REPO/docs/examples/first-run.yaml" |
	sed "s|/run/sluice/http.sock|$LAB/http.sock|; s|/etc/sluice/rules.d|$LAB/rules.d|")
YAML
mkdir "$LAB/bin"
printf '#!/bin/sh\nexec "%s" -s "%s" "$@"\n' "$BIN/sluicectl" "$SOCKET" > "$LAB/bin/sluicectl"
chmod +x "$LAB/bin/sluicectl"
for ((i = 0; i < 20000; i++)); do
	echo "100.$((64 + i / 65536)).$((i / 256 % 256)).$((i % 256))"
done > "$LAB/feed.txt"
cp "$CONFIG" "$LAB/new.yaml"

# An nginx that is there, with one site; what the administrator types into it, and the nginx of $LAB.
site() {
	cat <<CONF
${1:-}
server {
	listen 8080;
	${2:-}
	location / {
		${3:-}
		try_files /none /origin;
	}
	location = /origin {
		return 200;
	}
}
CONF
}
cat > "$LAB/nginx.conf" <<CONF
user www-data;
error_log $LAB/nginx.log;
pid $LAB/nginx.pid;
events {}
http {
	access_log off;
	$(for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $LAB/nginx.$kind;"; done)
	include $LAB/site;
}
CONF
site > "$LAB/site"
for part in http server location; do
	sed "s|unix:/run/sluice/http.sock|unix:$LAB/http.sock|; s|_timeout [0-9]*ms;|_timeout 2s;|" \
		"$REPO/docs/examples/snippets/nginx-$part.conf" > "$LAB/nginx-$part.conf"
done
# shellcheck disable=SC2016
site "include $LAB/nginx-http.conf; map \$http_x_api_key \$user { default ''; eve eve; carl carl; }" \
	"include $LAB/nginx-server.conf; set \$sluice_user \$user; set \$sluice_check domain=api&d=user&limit=10/d;" \
	"include $LAB/nginx-location.conf;" > "$LAB/typed"
printf '#!/bin/sh\ncp "%s" "$1"\n' "$LAB/typed" > "$LAB/bin/editor"
printf '#!/bin/sh\nexec %s -p "%s" -c "%s" -e "%s" "$@"\n' "$(command -v nginx)" "$LAB" "$LAB/nginx.conf" "$LAB/nginx.log" \
	> "$LAB/nginx.sh"
chmod +x "$LAB/bin/editor" "$LAB/nginx.sh"
chmod 711 "$LAB"
on_server ip link set lo up
on_server "$LAB/nginx.sh" -g "daemon off;" 2> "$LAB/out" &
started
keyed() {
	on_server curl -s -o "$LAB/body" -w '%{http_code}\n' -H "X-API-Key: $1" http://127.0.0.1:8080/
}
wait_for 10 keyed bob > "$LAB/out" || not_ok "nginx does not start: $(tail -n 2 "$LAB/nginx.log")"
ln -s "$LAB/nginx.sh" "$LAB/bin/nginx"

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
limited() { [ "$(keyed eve)" = 429 ]; }
check_true "task 21: the limit comes with nginx's new workers" wait_for 10 limited
check_is "task 21: ten of an API key pass, not an eleventh" "$(for _ in {1..11}; do keyed carl; done | sort | uniq -c | xargs)" \
	"10 200 1 429"
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
lab_done
