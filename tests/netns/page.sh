#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# page.sh - the status page in headless Chromium: its values are those of the metrics, nothing of it is an
# error, nothing that a client sent becomes a part of the page, nothing is cut off at 500 pixels.
# PAGE_PICTURES=DIR keeps screenshots.

. "$(dirname "$0")/../lib/netns.sh"
. "$(dirname "$0")/../lib/parts.sh"
lab_begin page
lab_link 0
URL=http://127.0.0.1:9810
rules_of_users
sed -i 's/{key: user, /&values: plain, /' "$LAB/rules/api.yaml"
echo '  - {key: token, rate_limit: {unit: hour, requests_per_unit: 5}}' >> "$LAB/rules/api.yaml"

daemon_start <<YAML
interfaces: [{name: s0, mode: native}]
limits:
  - {name: web, match: {dport: 80}, rate: 10 packets/h, burst: 10}
  - {name: dns, match: {dport: 53}, rate: 10 packets/h, burst: 10, mode: shadow}
  - {name: scan, match: {dport: 22}, rate: 10 packets/h, burst: 10, ban: {after: 50 drops/m, for: 10m, spoofable: true}}
sets: {bad: [198.51.100.0/24, 203.0.113.7]}
block: ['@bad']
http: {listen: [127.0.0.1:8180], rules: $LAB/rules}
YAML
ctl feed report bad --source https://lists.example/bad > /dev/null
ctl feed report bad --error 'status 404' > /dev/null

# ask VALUE [KEY]: one request of a user, or of another key's value.
ask() {
	on_server curl -s -o /dev/null -H 'Content-Type: application/json' -d "$(jq -nc --arg value "$1" --arg key "${2:-user}" \
		'{domain: "api", descriptors: [{entries: [{key: $key, value: $value}]}]}')" \
		http://127.0.0.1:8180/v1/check
}
# get [CURL OPTIONS] PATH: the status; $LAB/body, $LAB/headers.
get() {
	local args=("$@")

	args[-1]=$URL${args[-1]}
	on_server curl -s -m 10 -o "$LAB/body" -D "$LAB/headers" -w '%{http_code}' "${args[@]}"
}

blast "$LAB/sent" --dst $SERVER4 --src 10.1.1.1 --count 3000 --pps 20000 --dport 80
blast "$LAB/sent" --dst $SERVER4 --src 10.1.2.1 --count 700 --pps 20000 --dport 53
blast "$LAB/sent" --dst $SERVER4 --src 10.1.3.1 --count 500 --pps 20000 --dport 9
blast "$LAB/sent" --dst $SERVER4 --src 10.1.4.1 --count 200 --pps 20000 --dport 22
EVIL='<img src=x onerror="document.title=1">'
# Turned around by U+202E it would read "bob,exe.gpj"; what is not seen is written out.
TURNED=$'bob\u202ejpg.exe\a'
SECRET='token-<b>quince</b>'
for _ in 1 2 3 4 5 6 7 8; do
	ask "$EVIL"
	ask "$TURNED"
	ask "$SECRET" token
	ask bob
done
ask carol

# ---- who gets it, and how
check_is "a browser gets the page" "$(get -H 'Accept: text/html' /)" 200
check_true "as HTML" grep -qi '^content-type: text/html' "$LAB/headers"
check_true "whose policy allows nothing from elsewhere" \
	grep -qi "^content-security-policy: default-src 'none'; script-src 'self'" "$LAB/headers"
check_is "nothing of it is from elsewhere" "$(grep -cE '(src|href)="?(https?:)?//' "$LAB/body")" 0
check_is "another client gets text" "$(get /)" 200
check_true "as before" grep -q '^sluiced ' "$LAB/body"
check_is "a name that resolves to this host is refused" "$(get -H 'Host: evil.example' /status.json)" 403
check_is "the values are JSON" "$(get /status.json && jq -e .limits "$LAB/body" > /dev/null && echo good)" 200good
check_is "two requests in a second get the same document" "$(for _ in 1 2 3; do
	get /status.json > /dev/null; jq -r .now "$LAB/body"; done | sort -u | wc -l | awk '{ print $1 <= 2 }')" 1

# ---- in the browser
browser() {
	on_server timeout 60 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
		--user-data-dir="$LAB/chromium" --no-first-run --hide-scrollbars --enable-logging=stderr \
		--virtual-time-budget=1500 --window-size=1280,800 "$@" "$URL/"
}
# shown SECTION NAME COLUMN: a cell of the page, by its row's first cell.
shown() {
	python3 - "$LAB/dom" "$@" <<'PY'
import sys
from html.parser import HTMLParser
class Page(HTMLParser):
    section, rows, cell = None, [], None
    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "section":
            self.section = attrs["id"]
        if tag == "tr":
            self.rows.append((self.section, []))
        if tag in ("td", "th"):
            self.rows[-1][1].append("")
            self.cell = True
    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cell = False
    def handle_data(self, data):
        if self.cell:
            self.rows[-1][1][-1] += data
page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
head = None
for section, cells in page.rows:
    if section != "s-" + sys.argv[2]:
        continue
    if head is None:
        head = cells
    elif cells[0] == sys.argv[3] or sys.argv[3] in cells[:2]:
        print(cells[head.index(sys.argv[4])].replace(",", ""))
        break
PY
}
if ! command -v chromium > /dev/null; then
	skip "chromium is not installed"
	lab_done
fi
sleep 1.1	# the document is of the last second
browser --dump-dom > "$LAB/dom" 2> "$LAB/console"
metrics > "$LAB/metrics"
check_is "a built-in limit that no packet met is not shown" "$(shown limits @essential PASSED)" ""
for limit in web dns scan; do
	shadow=$(metric sluice_limit_packets_total limit=$limit verdict=shadow)
	check_is "$limit: passed, as the metrics" "$(shown limits $limit PASSED)" \
		$(($(metric sluice_limit_packets_total limit=$limit verdict=pass) + shadow))
	check_is "$limit: dropped, and above it in shadow mode" "$(shown limits $limit DROPPED) $(shown limits $limit SHADOW)" \
		"$(metric sluice_limit_packets_total limit=$limit verdict=drop) $shadow"
done
check_is "the rule: allowed" "$(shown rules api/user OK)" \
	"$(metric sluice_decisions_total domain=api rule=user verdict=ok)"
check_is "and refused" "$(shown rules api/user 'OVER LIMIT')" 9
check_is "packets that the interface dropped" "$(shown interfaces s0 DROPPED)" \
	"$(metric sluice_packets_total interface=s0 verdict=drop)"
check_is "a set, its size and origin" "$(shown feeds @bad PREFIXES) $(shown feeds @bad FROM)" "2 https://lists.example/bad"
check_true "when it was checked, and its failure" grep -qE '^[0-9]+ s ago: status 404$' <<< "$(shown feeds @bad FAILED)"
check_true "its age" grep -qE '^[0-9]+ s$' <<< "$(shown feeds @bad CHECKED)"
check_is "a ban" "$(shown bans 10.1.4.1 LIMIT)" scan
check_is "a user" "$(shown users bob REFUSED)" 3
check_is "a user's name is text" "$(shown users "$EVIL" REFUSED)" 3
check_is "and made no element" "$(grep -c '<img' "$LAB/dom")" 0
check_is "what would turn the text around is written out" "$(shown users 'bob\u202ejpg.exe\x07' REFUSED)" 3
check_is "and not in the page" "$(grep -cP '\x{202e}|\x07' "$LAB/dom")" 0
check_true "of a rule that does not say 'values: plain' the hash is shown" \
	grep -qE '^hash:[0-9a-f]{16}$' <<< "$(shown users api/token VALUE)"
get /status.json > /dev/null
check_is "its value is nowhere" "$(cat "$LAB/dom" "$LAB/body" | grep -c quince)" 0
check_true "the title is unchanged" grep -q '<title>sluice</title>' "$LAB/dom"
check_is "the console has no error" "$(grep -c 'CONSOLE' "$LAB/console")" 0
check_true "the running rules" grep -q 'requests_per_unit' "$LAB/dom"
check_is "all sections of this node are there" "$(python3 - "$LAB/dom" <<'PY'
import re, sys
text = open(sys.argv[1]).read()
print(*[s for s, hidden in re.findall(r'<section id="s-(\w+)"( hidden="")?>', text) if not hidden and s != "events"])
PY
)" "traffic limits rules sources users blocks bans pushdowns feeds interfaces reasons running"
check_is "a set that is blocked" "$(shown blocks '@bad, 2 prefixes' FROM)" set

# ---- pictures in both schemes, and who sends, while packets come
blast_bg "$LAB/flood" --dst $SERVER4 --dport 80 --src 10.1.1.1 --count 400000 --pps 20000
heaviest() {
	[ "$(get /status.json)" = 200 ] && [ "$(jq -r '.sources.sources[0].limit' "$LAB/body")" = web ]
}
check_true "the source of a flood, by its limit" wait_for 5 heaviest
sampled() {
	[ "$(get /status.json)" = 200 ] &&
		[ "$(jq '.limits[] | select(.name == "web").samples.refused | length > 2 and max > 100' "$LAB/body")" = true ]
}
check_true "its samples" wait_for 10 sampled
# browse WIDTH SCHEME EXPRESSION [PICTURE]
browse() {
	on_server timeout 60 python3 "$REPO/tests/lib/browser.py" "$URL/" "$@"
}
AXES='[...document.querySelectorAll("#traffic text")].map((t) => t.textContent).sort().join(" ")'
check_true "the chart's axes: seconds before now, packets a second" \
	grep -qE '^"-120 s -30 s -60 s -90 s 0 [0-9.]+k? [0-9.]+k? now"$' <<< "$(browse 1280 light "$AXES")"
blast_stop

# ---- a flood of sources, after changes: these stay among the events
ctl block add 203.0.113.66 --for 1h --reason flood > /dev/null
ctl limit set web rate='20 packets/h' > /dev/null
blast "$LAB/sent" --dst $SERVER4 --src 10.1.5.1 --count 200 --pps 20000 --dport 22
blast "$LAB/sent" --dst $SERVER4 --dport 80 --src 10.1.128.0/18 --count 300000 --pps 50000
events_over() { [ "$(ctl -o json events list --kind over | jq '.events | length')" -gt 15 ]; }
check_true "a flood of sources is in the events" wait_for 10 events_over
sleep 1.1	# the document is of the last second
browser --dump-dom > "$LAB/dom" 2> "$LAB/console"
check_is "the flood is a row, of more than one source" \
	"$(python3 - "$LAB/dom" <<'PY'
import re, sys
rows = re.findall(r'<tr>(.*?)</tr>', open(sys.argv[1]).read().split('id="s-events"')[1].split("</section>")[0])
drops = [r for r in rows if ">drop<" in r and ">web<" in r]
print(len(drops), len(re.findall(r">\d+ sources<", "".join(drops))))
PY
)" "1 1"
check_is "the block is still there" "$(shown events block SOURCE)" 203.0.113.66
check_true "the ban" test -n "$(shown events ban SOURCE)"
check_is "and the change, in words" "$(shown events change WHY)" "limit set by uid 0: web rate=20 packets/h"
check_is "and the block" "$(shown events block WHY)" "block add by uid 0: 203.0.113.66 for 1h reason flood"
check_is "no event is written as JSON" "$(sed 's/.*id="s-events"//' "$LAB/dom" | grep -cE '\{&quot;|\{"|\["')" 0
check_is "the block is in the list" "$(shown blocks 203.0.113.66 FROM), $(shown blocks 203.0.113.66 REASON)" "live, flood"
check_true "and its end" grep -qE '^(59 min|1 h)' <<< "$(shown blocks 203.0.113.66 LEFT)"
check_is "the flood's network" "$(shown networks 10.1.128.0/18 'TO BLOCK IT')" "sluicectl block add 10.1.128.0/18 --for 10m"

# Every text of a table is within its section and the window, and has its heading.
LOST='[...document.querySelectorAll("section:not([hidden]) :is(td, svg, h2, summary)")].filter((e) => {
	const r = e.getBoundingClientRect(), s = e.closest("section").getBoundingClientRect();
	const said = e.textContent || e.tagName === "svg";
	return said && (!r.width || r.left < s.left || r.right > s.right + 1 || s.right > innerWidth ||
		(innerWidth < 600 && e.scrollWidth > e.clientWidth + 1 && e.tagName === "TD"));
}).map((e) => e.closest("section").id + ": " + e.textContent)
	.concat([...document.querySelectorAll(".cards td:not(:first-child):not(:empty)")].filter((e) =>
		getComputedStyle(e, "::before").content.length < 4).map((e) => "no heading: " + e.textContent))
	.concat(document.scrollingElement.scrollWidth > innerWidth ? ["the window"] : [])
	.concat(document.querySelectorAll("td").length < 50 ? ["most of the page"] : [])'
for width in 500 950 ${PAGE_PICTURES:+1280}; do
	for scheme in light ${PAGE_PICTURES:+dark}; do
		check_is "nothing is cut off at $width pixels, $scheme" \
			"$(browse $width $scheme "$LOST" ${PAGE_PICTURES:+"$PAGE_PICTURES/page-$width-$scheme.png"})" "[]"
	done
done

# ---- with a token file, everybody needs the token
echo 0123456789abcdef0123 > "$LAB/token"
rest=$(sed -n '/^interfaces/,$p' "$CONFIG")
METRICS_MORE="token_file: $LAB/token" config_write "$CONFIG" <<< "$rest"
ctl reload > /dev/null
check_is "no token" "$(get /status.json)" 401
check_is "another token" "$(get -H 'Authorization: Bearer 0123456789abcdefffff' /status.json)" 401
check_is "the token" "$(get -H 'Authorization: Bearer 0123456789abcdef0123' /status.json)" 200
check_is "as a password" "$(get -u admin:0123456789abcdef0123 -H 'Accept: text/html' /)" 200
check_is "another password" "$(get -u admin:0123456789abcdef012 -H 'Accept: text/html' /)" 401
check_is "metrics need none" "$(get /metrics)" 200
daemon_kill TERM
check_true "with both tiers it says at its exit which limits hold" \
	grep -q 'exiting; packet limits stay in force; no request gets a decision' "$LAB/daemon.log"
lab_done
