#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# replay.sh - sluicectl replay foresees what the daemon does: packets are captured on the sender's side,
# and of each source as many pass there, within 1 %, as behind the daemon with the same configuration.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin replay
lab_link 0

daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
limits:
  - {name: web, match: {dport: 80}, rate: 300 packets/s, burst: 300}
  - {name: bulk, match: {dport: 81}, rate: 40K bytes/s, burst: 40K}
  - {name: net, match: {dport: 82}, rate: 200 packets/s, burst: 200, prefix: {ipv6: 48}}
  - {name: window, match: {dport: 83}, rate: 400 packets/h, algorithm: fixed-window}
  - name: hammer
    match: {dport: 84}
    rate: 100 packets/s
    burst: 400
    ban: {after: 300 drops/5s, for: 1h, spoofable: true}
YAML

"${IN_C[@]}" tcpdump -i c0 -Q out -nn -U -s 128 -B 16384 --immediate-mode --time-stamp-precision nano \
	-w "$LAB/sent.pcap" 2> "$LAB/tcpdump.log" &
started
TCPDUMP=$!
wait_for 5 grep -q 'listening on' "$LAB/tcpdump.log" || not_ok "tcpdump does not start"
sink_start s0

send() {
	blast_bg "$LAB/$1" --tapped --dst $SERVER4 --length 100 --time 2 "${@:2}"
}
utc_room 3600 10
send above --src 10.1.1.1 --pps 1500 --dport 80
send below --src 10.1.1.2 --pps 200 --dport 80
send bulk --src 10.1.2.1 --pps 1000 --dport 81
send v6a --src 2001:db8:70:1::1 --dst $SERVER6 --pps 300 --dport 82
send v6b --src 2001:db8:70:2::1 --dst $SERVER6 --pps 300 --dport 82
send window --src 10.1.3.1 --pps 400 --dport 83
send banned --src 10.1.4.1 --pps 1000 --dport 84
send other --src 10.1.9.1 --pps 500 --dport 9
blast_wait
sink_stop s0

# ---- suggest: of live traffic, while the daemon still has it
cp "$CONFIG" "$LAB/suggested.yaml"
ctl suggest --for 1s --share 0% --write "$LAB/suggested.yaml" -o json > "$LAB/live" || not_ok "suggest fails"

sent_all() {
	local name sum=0

	for name in above below bulk v6a v6b window banned other; do
		sum=$((sum + $(field "$LAB/$name" sent)))
	done
	[ "$(tcpdump -nn -r "$LAB/sent.pcap" udp 2> /dev/null | wc -l)" = $sum ]
}
check_true "tcpdump has all that was sent" wait_for 5 sent_all
kill -TERM $TCPDUMP
wait $TCPDUMP

# Without a daemon and without rights; the programs may lie where other users have no access.
install -m 755 "$BIN/sluicectl" "$LAB/sluicectl"
replay() {
	setpriv --reuid 65534 --regid 65534 --clear-groups "$LAB/sluicectl" replay "$@"
}
chmod -R a+rX "$LAB"
replay "$LAB/sent.pcap" -c "$CONFIG" --count 100 -o json > "$LAB/report" || not_ok "replay fails"

# foreseen SOURCE: how many of it pass.
foreseen() {
	jq --arg who "$1" '.heaviest[] | select(.who == $who) | .passed' "$LAB/report"
}
# A source may pass 1 % more or less; the least of them passes 300.
within() {
	local real

	real=$(packets_passed s0 "$2")
	check "$1: $2 foreseen" "$(foreseen "$2")" "$(calc "$real * 0.99")" "$(calc "$real * 1.01")"
}
within "over its rate" 10.1.1.1
check_is "a neighbor within its rate: all" "$(foreseen 10.1.1.2)" "$(field "$LAB/below" sent)"
within "over its bytes" 10.1.2.1
check_is "over its window" "$(foreseen 10.1.3.1)" 400
within "banned" 10.1.4.1
check_is "no limit" "$(foreseen 10.1.9.1)" "$(field "$LAB/other" sent)"
together() {
	echo $(($1 + $2))
}
v6=$(together "$(packets_passed s0 2001:db8:70:1::1)" "$(packets_passed s0 2001:db8:70:2::1)")
check "a prefix group of two sources" "$(together "$(foreseen 2001:db8:70:1::1)" "$(foreseen 2001:db8:70:2::1)")" \
	"$(calc "$v6 * 0.99")" "$(calc "$v6 * 1.01")"

# dropped LIMIT: by the daemon; and foreseen.
dropped() {
	ctl -o json stats | jq --arg name "$1" '.limits[] | select(.name == $name) | .packets.drop'
}
for limit in web bulk net window hammer; do
	real=$(dropped $limit)
	check "limit $limit drops" "$(jq --arg name $limit '.limits[] | select(.name == $name) | .refused' "$LAB/report")" \
		"$(calc "$real * 0.99")" "$(calc "$real * 1.01")"
done
check_is "a ban" "$(jq -c '[.limits[] | .bans]' "$LAB/report")" "[0,0,0,0,1]"
check_is "as the daemon's" "$(ctl -o json ban list | jq '.bans | length')" 1

# ---- another configuration: whom it hurts, and whom it spares
config_write "$LAB/other.yaml" <<'YAML'
interfaces: [{name: s0, mode: native}]
limits:
  - {name: web, match: {dport: 80}, rate: 100 packets/s, burst: 100}
YAML
chmod a+r "$LAB/other.yaml"
replay "$LAB/sent.pcap" -c "$CONFIG" --compare "$LAB/other.yaml" -o json > "$LAB/compare"
check_is "newly refused first" "$(jq -r '[.hurt[].who] | sort | join(" ")' "$LAB/compare")" "10.1.1.1 10.1.1.2"
check_is "spared" "$(jq -r '[.spared[].who] | sort | join(" ")' "$LAB/compare")" \
	"10.1.2.1 10.1.3.1 10.1.4.1 2001:db8:70:1::1 2001:db8:70:2::1"
COLUMNS=80 replay "$LAB/sent.pcap" -c "$CONFIG" --compare "$LAB/other.yaml" > "$LAB/text"
check_is "text of at most 80 columns" "$(awk 'length > 80' "$LAB/text" | grep -vc "█\|$LAB")" 0
check_true "the tables are there" grep -q "Refused more with the other configuration" "$LAB/text"

# ---- no column of zeros: in text, also through a pipe, and in the page
# zeros: the columns of numbers of a page or text whose every figure is 0 or "-".
cat > "$LAB/zeros.py" <<'PY'
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
if "<table" in text:
    rows = [[[re.sub("<.*?>", "", c).strip() for c in re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row)]
             for row in re.findall("<tr>(.*?)</tr>", table)] for table in re.findall("(?s)<table>(.*?)</table>", text)]
else:
    rows = [[re.split(r"  +", line.strip()) for line in block.splitlines() if "  " in line]
            for block in re.findall(r"(?m)^(?:LIMIT|WHO) .*\n(?:.+\n)*", text)]
assert len(rows) > 2 and all(len(table) > 1 for table in rows)
print(*(head for table in rows for head, *figures in zip(*table) if head and set(figures) <= {"0", "-", "0.0 %", "0.0%"}))
PY
no_zeros() {
	replay "$LAB/sent.pcap" -c "$1" "${@:2}" --html "$LAB/report.html" > "$LAB/text"
	check_is "no column of zeros: ${*:2}" "$(python3 "$LAB/zeros.py" "$LAB/text") $(python3 "$LAB/zeros.py" "$LAB/report.html")" " "
}
chmod 1777 "$LAB"
no_zeros "$CONFIG"
check_true "what there is is there" grep -q 'MODE .*PASSED .*REFUSED .*BANS' "$LAB/text"
check_is "and what there is not, not" "$(grep -cE 'TAGGED|SHADOW|DELAYED' "$LAB/text")" 0
no_zeros "$CONFIG" --compare "$LAB/other.yaml"
no_zeros "$LAB/other.yaml"
rm "$LAB/report.html"

# ---- the page: whole, of one file, and a browser shows it
replay "$LAB/sent.pcap" -c "$CONFIG" --compare "$LAB/other.yaml" --html "$LAB/none/report.html" > "$LAB/out" 2>&1
check_is "a page that cannot be written: the exit status" $? 1
chmod 1777 "$LAB"
replay "$LAB/sent.pcap" -c "$CONFIG" --compare "$LAB/other.yaml" --html "$LAB/report.html" > "$LAB/out"
check_is "a page: its elements are closed, it loads nothing" "$(python3 - "$LAB/report.html" <<'PY'
import html.parser, sys
stack, bad = [], []
class Page(html.parser.HTMLParser):
    def handle_starttag(self, tag, attrs):
        if tag not in ("meta",):
            stack.append(tag)
        bad.extend(value for name, value in attrs if name in ("src", "href") or name.startswith("on"))
    def handle_startendtag(self, tag, attrs):
        pass
    def handle_endtag(self, tag):
        if not stack or stack.pop() != tag:
            bad.append(tag)
page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
print(stack + bad)
PY
)" "[]"
if command -v chromium > /dev/null; then
	chromium --headless --no-sandbox --disable-gpu --user-data-dir="$LAB/chromium" --window-size=1280,800 \
		--dump-dom "file://$LAB/report.html" > "$LAB/dom" 2> "$LAB/err"
	check_true "a browser shows the sources" grep -q '<td>2001:db8:70:1::1</td>' "$LAB/dom"
	check "bars of the chart" "$(grep -c '<rect class=' "$LAB/dom")" 60 400
fi

# ---- what cannot be read
head -c 20000 "$LAB/sent.pcap" > "$LAB/cut.pcap"
replay "$LAB/cut.pcap" -c "$CONFIG" -o json > "$LAB/cut" 2> "$LAB/err"
check_is "a damaged capture: the exit status" $? 1
check_true "the place of the damage" grep -q 'cut.pcap: damaged behind packet [0-9]*, at byte 20000' "$LAB/err"
check "what was before it" "$(jq .count "$LAB/cut")" 100 300
replay "$CONFIG" -c "$CONFIG" 2> "$LAB/err"
check_true "no capture" grep -q 'neither a capture (pcap, pcapng) nor an access log\|no http: section' "$LAB/err"
replay "$LAB/sent.pcap" -c "$CONFIG" --filter 'nonsense or' 2> "$LAB/err"
check_true "a bad filter" grep -q "filter 'nonsense or'" "$LAB/err"
replay "$LAB/sent.pcap" -c "$CONFIG" --interface nix 2> "$LAB/err"
check_true "an unknown interface" grep -q "no interface 'nix'" "$LAB/err"
gzip "$LAB/cut.pcap"
replay - -c "$CONFIG" --filter 'src host 10.1.1.2' -o json < "$LAB/cut.pcap.gz" 2> /dev/null |
	jq -r '[.heaviest[].who] | join(" ")' > "$LAB/filtered"
check_is "compressed, on standard input, filtered" "$(cat "$LAB/filtered")" 10.1.1.2

# ---- what suggest found
group() {
	jq ".groups[] | select(.group == \"$2\") | .$3" "$LAB/$1"
}
# 3000 packets of the heaviest, as a mean of 4.3 to 8.6 s; each source is one, of IPv6 each /64.
check "live: sources" "$(group live source subjects)" 8 12
check "live: the heaviest" "$(group live source most)" 300 750
ctl suggest --from "$LAB/sent.pcap" --share 20% -o json > "$LAB/suggested"
check_is "of a capture: sources" "$(group suggested source subjects)" 8
check "the fullest second of the heaviest" "$(group suggested source most)" 1000 1800
check "the limit touches at most a fifth" "$(group suggested source touched)" 0 0.2
before=$(ctl -o json stats | jq '[.limits[].packets.drop] | add')
cp "$LAB/suggested.yaml" "$CONFIG"
ctl reload > "$LAB/out" || not_ok "reload: $(cat "$LAB/out")"
check_is "the limits of a suggestion, in force in shadow mode" \
	"$(ctl -o json limit list | jq -c '[.limits[] | select(.name | startswith("suggested")) | .mode] | unique')" '["shadow"]'
blast "$LAB/more" --dst $SERVER4 --src 10.1.9.1 --count 20000 --pps 20000 --dport 9
check_is "they drop nothing" "$(ctl -o json stats | jq '[.limits[].packets.drop] | add')" "$before"
check "what they would drop is counted" \
	"$(ctl -o json stats | jq '[.limits[] | select(.name == "suggested-source") | .packets.shadow] | add')" 1 20000
ctl suggest --share 90% 2> "$LAB/err"
check_is "a share that is refused" $? 2
lab_done
