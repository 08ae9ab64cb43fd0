#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# docs.sh - README and docs/ match the program:
#
#   - every configuration shown is valid; README's runs in a lab and does what README states
#   - every sluicectl line in a code block is one that the CLI accepts; those of README,
#     configuration.md and operations.md are run, and exit as stated ("# exit 4")
#   - `make run` and `make run IFACE=` work, `make install` installs, other make targets exist
#   - every file and test named exists, every link and anchor leads somewhere
#   - packet-walk.md has every reason, abi.md every pinned map, with its size
#
# In a code block "# README: lab" in the first line puts it into README's lab.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin docs
cd "$REPO" || exit 1

# Extracts from the documents: DIR/rules/* (rules of the HTTP tier), DIR/yaml/* (fenced blocks; a
# document's indented ones, which may need each other, all together), DIR/lines (FILE<tab>LINE of code),
# DIR/make, and DIR/wrong.
python3 - "$LAB/parts" <<'PY' || not_ok "the documents cannot be taken apart"
import glob, os, re, sys

out = sys.argv[1]
os.makedirs(out + "/yaml")
documents = ["README.md"] + sorted(glob.glob("docs/*.md") + glob.glob("docs/decisions/*.md"))
generated = {"docs/performance.md"}		# by make bench-report
lines, targets, wrong = [], set(), []
tests = "".join(open(f).read() for f in glob.glob("tests/**/*.[ch]", recursive=True) +
		glob.glob("bpf/*.h"))

def slug(heading):
	heading = re.sub(r"[`*]", "", heading.strip().lower())
	return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")

def anchors(path):
	fenced, found = False, set()
	for line in open(path):
		fenced ^= line.startswith("```")
		if not fenced and line.startswith("#"):
			found.add(slug(line.lstrip("#")))
	return found

def blocks(text):
	"""(info, code) of fenced blocks, ("", code) of indented ones, (None, prose) of the rest."""
	info, code, prose, inside = None, [], [], False
	indented, previous = [], ""
	for line in text.split("\n"):
		if line.startswith("```"):
			if inside:
				yield info, "\n".join(code) + "\n"
			inside, info, code = not inside, line[3:].strip() or "text", []
		elif inside:
			code.append(line)
		elif line.startswith("    ") and (indented or not previous.strip()):
			indented.append(line[4:])
		elif indented and not line.strip():
			indented.append("")
		else:
			if indented:
				yield "", "\n".join(indented).rstrip() + "\n"
				indented = []
			prose.append(line)
		previous = line
	if indented:
		yield "", "\n".join(indented).rstrip() + "\n"
	yield None, "\n".join(prose)

for document in documents:
	name = document.replace("/", "-")[:-3]
	together, count, rules = "", 0, 0
	text = open(document).read()
	for info, code in blocks(text):
		if info is None:
			prose = code
			continue
		yaml = re.match(r"(#.*\n)*[a-z_]+:(\s|$)", code)
		if info == "yaml" and re.search(r"^domain:", code, re.M):	# of the HTTP tier
			rules += 1
			os.makedirs("%s/rules/%s.%d" % (out, name, rules))
			open("%s/rules/%s.%d/rules.yaml" % (out, name, rules), "w").write(code)
		elif info == "yaml":
			count += 1
			marked = "lab-" if code.startswith("# README: lab") else ""
			open("%s/yaml/%s%s.%d.yaml" % (out, marked, name, count), "w").write(code)
		elif info == "" and yaml:
			together += code
		else:
			for line in code.split("\n"):
				lines.append((document, line.strip()))
			targets |= set(re.findall(r"\bmake ([a-z][a-z-]+)", code))
	if together:
		open("%s/yaml/%s.yaml" % (out, name), "w").write(together)
	for span in re.findall(r"`([^`\n]+)`", prose):
		targets |= set(re.findall(r"^(?:sudo )?make ([a-z][a-z-]+)", span))
		if re.match(r"(bpf|user|include|tests|scripts|docs)/[\w./*\[\]{},-]+$", span):
			if "{" not in span and not glob.glob(span) and span not in generated:
				wrong.append("%s: there is no %s" % (document, span))
		elif re.match(r"test_\w+$", span) and not re.search(r"\b%s\b" % span, tests):
			if not glob.glob("tests/**/%s.c" % span, recursive=True):
				wrong.append("%s: there is no test %s" % (document, span))
	for target in re.findall(r"\]\(([^)\s]+)\)", prose):
		if re.match(r"[a-z]+:", target):
			continue
		path, _, anchor = target.partition("#")
		path = os.path.normpath(os.path.join(os.path.dirname(document), path)) if path else document
		if path in generated and not os.path.exists(path):
			print("# %s is not there yet: it is made by make bench-report" % path)
		elif not os.path.exists(path):
			wrong.append("%s: a link to %s, which is not there" % (document, path))
		elif anchor and anchor not in anchors(path):
			wrong.append("%s: %s has no heading #%s" % (document, path, anchor))

walk = open("docs/packet-walk.md").read().split("## Every reason")[1]
names = open("user/packet/dataplane/names.c").read()
names = set(re.findall(r'"(\w+)"', names[names.index("reasons[]"):names.index("};")]))
named = set(re.findall(r"`(\w+)`", "".join(line.split(":")[0] for line in walk.split("\n")
					   if line.startswith("- `"))))
for name in sorted(names ^ named):
	wrong.append("docs/packet-walk.md: reason %s: %s" % (name, "is missing" if name in names else
							     "there is none"))
open(out + "/wrong", "w").write("".join(line + "\n" for line in wrong))
open(out + "/make", "w").write("".join(t + "\n" for t in sorted(targets)))
open(out + "/lines", "w").write("".join("%s\t%s\n" % line for line in lines))
PY

while IFS= read -r line; do
	not_ok "$line"
done < "$LAB/parts/wrong"
check_is "files, tests, links and reasons that do not exist" "$(wc -l < "$LAB/parts/wrong")" 0

# ---------------------------------------------------------------- configurations

mkdir "$LAB/checked"
cp docs/examples/bad.txt "$LAB/checked/"
cp docs/examples/bad.txt "$LAB/"
for yaml in docs/examples/*.yaml "$LAB"/parts/yaml/*.yaml; do
	# Prometheus's: tests/make/alerts.sh.
	[ "${yaml##*/}" = alerts.yaml ] && continue
	# Envoy's own (tests/http/envoy.sh).
	[[ $yaml == */envoy*.yaml ]] && continue
	# The rules are those of the examples, wherever their configuration installs them.
	sed "s|/etc/sluice/rules.d|$PWD/docs/examples/rules.d|" "$yaml" > "$LAB/checked/${yaml##*/}"
	"$BIN/sluicectl" check "$LAB/checked/${yaml##*/}" > "$LAB/out" 2>&1
	status=$?
	check_is "${yaml##*/}: $(head -n 1 "$LAB/out" | cut -c1-200): exit" $status 0
done

for rules in "$PWD/docs/examples/rules.d" "$LAB"/parts/rules/*; do
	# Rule files with other files: tests/unit/request/rules/test_rule_docs.c.
	grep -q overrides_file: "$rules"/*.yaml && continue
	echo "http: {listen: [127.0.0.1:8180], rules: $rules}" > "$LAB/rules.yaml"
	"$BIN/sluicectl" check "$LAB/rules.yaml" > "$LAB/out" 2>&1
	status=$?
	check_is "rules ${rules##*/}: $(head -n 1 "$LAB/out" | cut -c1-200): exit" $status 0
done

# ---------------------------------------------------------------- lines

# lines DOCUMENT COMMAND: its lines that begin with it ("$ " and sudo aside), without comments after
# two blanks; then a tab and the valid exit codes.
lines() {
	awk -F'\t' -v document="$1" -v command="$2" '
		$1 != document { next }
		{ line = $2; sub(/^\$ /, "", line); sub(/^sudo /, "", line) }
		index(line, command " ") != 1 { next }
		{ codes = "0"
		  if (match(line, /[ ]+# .*$/)) {
			if (match(line, /# exit [0-9]/)) codes = substr(line, RSTART + 7, 1)
			else if (match(line, /exit [0-9]/)) codes = "0 " substr(line, RSTART + 5, 1)
			sub(/[ ]+# .*$/, "", line) }
		  print line "\t" codes }' "$LAB/parts/lines"
}

# run_line LINE CODES...: without a shell's expansions: words as xargs splits them.
run_line() {
	local line=$1 words status

	shift
	mapfile -d '' words < <(xargs printf '%s\0' <<< "${line#sluicectl }")
	"$BIN/sluicectl" -s "$SOCKET" "${words[@]}" > "$LAB/out" 2>&1
	status=$?
	if [[ " $* " == *" $status "* ]]; then
		ok "$line (exit $status)"
	else
		not_ok "$line: exit $status, not $*: $(head -c 300 "$LAB/out")"
	fi
}

# Without a daemon: 3, or of check 1; 2, but of doctor, would be an unknown command.
for document in README.md docs/*.md; do
	while IFS=$'\t' read -r line _; do
		codes=(0 1 3)
		[ "$line" != "sluicectl doctor" ] || codes=(2)
		run_line "$line" "${codes[@]}"
	done < <(lines "$document" sluicectl)
done

while read -r target; do
	make -n "$target" > "$LAB/out" 2>&1 || not_ok "make $target: $(tail -n 1 "$LAB/out")"
done < "$LAB/parts/make"
check "make targets named" "$(wc -l < "$LAB/parts/make")" 5 50

lab_link 0
# Only if the build is complete: this is not the place to make one. (make -q always finds something to do:
# files that hold the flags, written where they changed.)
if make -n all > "$LAB/out" 2>&1 && ! grep -q ' -o build/' "$LAB/out"; then
	make install DESTDIR="$LAB/tree" > "$LAB/out" 2>&1 || not_ok "make install: $(tail -n 3 "$LAB/out")"
	check_true "make install: sluiced" "$LAB/tree/usr/sbin/sluiced" --version
	"$LAB/tree/usr/share/sluice/first_run.sh" "$LAB/tree/usr/share/sluice/first-run.yaml" "$LAB/first.yaml" > "$LAB/out"
	check_true "make install: the first configuration: $(head -n 1 "$LAB/out")" \
		"$LAB/tree/usr/bin/sluicectl" check "$LAB/first.yaml"
	on_client ip route add default dev c0
	on_client "$LAB/tree/usr/share/sluice/first_run.sh" "$LAB/tree/usr/share/sluice/first-run.yaml" "$LAB/second.yaml" \
		> "$LAB/out"
	check_true "it limits the interface of the default route, in shadow mode" grep -q 'limits c0 in shadow mode' "$LAB/out"
	check_true "which it names" grep -qx 'interfaces: \[{name: c0}\]' "$LAB/second.yaml"
	on_client ip route del default dev c0
	# As it is installed, with state and control socket of its own.
	{ cat "$LAB/second.yaml"; printf 'control: {socket: %s}\nstate_dir: %s\npin_dir: %s\n' "$LAB/first.sock" \
		"$LAB/first" "$PIN-first"; } > "$LAB/third.yaml"
	mkdir "$LAB/first"
	on_client unshare --mount bash -c 'mount -t tmpfs tmpfs /run && mkdir /run/sluice && exec "$@"' -- \
		"$LAB/tree/usr/sbin/sluiced" -c "$LAB/third.yaml" > "$LAB/first.log" 2>&1 &
	started
	first=$!
	served() { on_client curl -s "http://127.0.0.1:9810/$1" | grep -q "$2"; }
	check_true "it serves metrics on loopback" wait_for 10 served metrics '^sluice_interface_info{interface="c0"'
	check_true "and the status page" served '' '^sluiced '
	# A real Prometheus, with the alerts that were installed beside it.
	cat > "$LAB/prometheus.yaml" <<YAML
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [$LAB/tree/usr/share/sluice/prometheus/alerts.yaml]
scrape_configs: [{job_name: sluice, static_configs: [{targets: ['127.0.0.1:9810']}]}]
YAML
	on_client prometheus --config.file="$LAB/prometheus.yaml" --storage.tsdb.path="$LAB/tsdb" --log.level=error \
		--web.listen-address=127.0.0.1:9090 > "$LAB/prometheus.log" 2>&1 &
	started
	disown
	# asked QUERY VALUE: the sum of what it answers.
	asked() {
		[ "$(on_client curl -s --get --data-urlencode "query=sum($1)" http://127.0.0.1:9090/api/v1/query |
			jq -r '.data.result[0].value[1] // 0')" = "$2" ]
	}
	rules_of() { on_client curl -s http://127.0.0.1:9090/api/v1/rules | jq -r "[.data.groups[].rules[]$1] | length"; }
	all_run() { [ "$(rules_of '')" -gt 10 ] && [ "$(rules_of '| select(.health == "ok")')" = "$(rules_of '')" ]; }
	check_true "Prometheus scrapes it" wait_for 20 asked 'up{job="sluice"}' 1
	check_true "the interface is attached" wait_for 10 asked sluice_interfaces_attached 1
	check_true "all alerts are evaluated" wait_for 20 all_run
	check_true "and none fires" asked 'ALERTS{alertstate="firing"}' 0
	"$BIN/sluicectl" -s "$LAB/first.sock" detach --all > "$LAB/out" 2>&1 || not_ok "detach: $(cat "$LAB/out" "$LAB/first.log")"
	wait $first
	make uninstall DESTDIR="$LAB/tree" > "$LAB/out" 2>&1
	check_is "make uninstall: files left but those of /etc/sluice" "$(find "$LAB/tree" -type f ! -path "*/etc/sluice/*" | wc -l)" 0
else
	skip "make install: the build is not up to date"
fi

# ---------------------------------------------------------------- README's lab

daemon_start < <(sed 's/eth0/s0/' "$LAB"/parts/yaml/lab-README.1.yaml)
on_server nft -f - <<NFT
table netdev seen {
	counter passed {}
	counter cs1 {}
	chain in {
		type filter hook ingress device s0 priority 0;
		ether saddr != $MAC_C accept
		ip dscp cs1 counter name cs1
		counter name passed drop
	}
}
NFT
seen() {
	nft_packets netdev seen "$1"
}
# probe WORDS LEAST MOST OPTIONS...: of the frames that blast sends, so many arrive.
probe() {
	local words=$1 least=$2 most=$3 before

	shift 3
	before=$(seen passed)
	blast "$LAB/probe" --dst $SERVER4 "$@"
	settle s0
	check "$words: arrived of $(field "$LAB/probe" sent)" $(($(seen passed) - before)) "$least" "$most"
}
syn="--proto tcp --flags 2"
# shellcheck disable=SC2086
{
	probe "per-source: 3 s of ten times the rate" 4850 5100 --src 10.1.1.2 --pps 10000 --time 3
	probe "per-source: its neighbour" 500 500 --src 10.1.1.3 --count 500 --pps 900
	charged=$(metric sluice_limit_packets_total limit=per-source)
	probe "new-connections: 500 at once" 50 60 --src 10.1.1.4 --count 500 --dport 80 $syn
	check "dropped packets are charged to neither" \
		$(($(metric sluice_limit_packets_total limit=per-source) - charged)) 50 60
	probe "new-connections: no SYN" 500 500 --src 10.1.1.5 --count 500 --dport 80 --proto tcp --flags 16
	probe "block" 0 0 --src 198.51.100.9 --count 100
	probe "beside the block" 100 100 --src 198.51.101.9 --count 100
	probe "failsafe: 500 at once" 100 115 --src 10.1.1.6 --count 500 --dport 22 $syn
	probe "failsafe: of a source over its limit" 50 50 --src 10.1.1.2 --count 50 --dport 22 $syn
	before=$(seen cs1)
	probe "heavy-udp: all pass" 3590 3601 --src 10.1.1.7 --pps 900 --time 4 --length 1400
	tagged=$(($(seen cs1) - before))
	# 4 s and the burst are 1785 frames of 1400, of 3600; 1% of the burst is in leases.
	check "heavy-udp: above 500 kB/s marked CS1" $tagged 1740 1860
	check_is "they are counted" "$(metric sluice_limit_packets_total limit=heavy-udp verdict=tag)" $tagged
}

while IFS=$'\t' read -r line codes; do
	# shellcheck disable=SC2086
	run_line "$line" $codes
done < <(lines README.md sluicectl)

# ---------------------------------------------------------------- abi.md

bpftool map show > /dev/null 2>&1 || skip "bpftool cannot list maps"
# Each by its name; where "(ENTRIES x BYTES)" follows it, with that size.
abi=$(tr -s ' \n' ' ' < docs/abi.md)
sizes=0
for pin in "$PIN"/*; do
	name=${pin##*/}
	if ! [[ $abi == *"\`$name\`"* ]]; then
		not_ok "abi.md does not have the pinned map $name"
		continue
	fi
	[[ $abi =~ \`$name\`\ \(([0-9]+|sets)\ x\ ([0-9]+)\) ]] || continue
	entries=${BASH_REMATCH[1]} value=${BASH_REMATCH[2]}
	read -r real_entries real_value < <(bpftool -j map show pinned "$pin" |
		jq -r '"\(.max_entries) \(.bytes_value)"')
	[ "$entries" != sets ] || entries=$real_entries
	check_is "abi.md: entries and bytes of $name" "$entries $value" "$real_entries $real_value"
	sizes=$((sizes + 1))
done
check "abi.md: maps whose size it has" $sizes 28 60

# ---------------------------------------------------------------- the other documents' lines

ctl detach --all > "$LAB/out" 2>&1 || not_ok "detach --all: $(cat "$LAB/out")"
wait_for 10 daemon_gone || not_ok "sluiced does not end on detach --all"
check_is "pins left by detach --all" "$(ls "$PIN" 2> /dev/null | wc -l)" 0
rm -rf "$LAB/state"
daemon_start < "$LAB/parts/yaml/docs-configuration.yaml"
# The files that these lines name.
cp "$LAB/parts/yaml/docs-configuration.yaml" "$LAB/new.yaml"
echo "203.0.113.7 # seen twice" > "$LAB/feed.txt"
cat > "$LAB/rules.yaml" <<'YAML'
{domain: api, descriptors: [{key: source, rate_limit: {unit: minute, requests_per_unit: 10}}]}
YAML
echo '192.0.2.7 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 5' > "$LAB/access.log"
# A capture without packets.
printf '\xd4\xc3\xb2\xa1\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0' > "$LAB/attack.pcap"
cd "$LAB" || exit 1
for document in docs/configuration.md docs/operations.md; do
	while IFS=$'\t' read -r line codes; do
		[[ $line == "sluicectl check "* ]] && continue
		# shellcheck disable=SC2086
		run_line "$line" $codes
	done < <(lines $document sluicectl)
done
cd "$REPO" || exit 1
daemon_kill TERM

# ---------------------------------------------------------------- make run

if scripts/run.sh > "$LAB/run" 2>&1; then
	ok "make run: the lab ($(grep -c '^ok - ' "$LAB/run") checks)"
else
	not_ok "make run: $(grep '^not ok' "$LAB/run" | head -n 3)"
fi
on_server nft delete table netdev seen
# What it printed before has the words that are waited for.
: > "$LAB/run"
IFACE=s0 "${IN_S[@]}" bash scripts/run.sh > "$LAB/run" 2>&1 &
started
RUN=$!
wait_for 20 grep -q 'Ctrl-C' "$LAB/run" || not_ok "make run IFACE=s0: $(tail -n 3 "$LAB/run")"
check_is "make run IFACE=s0: attached" \
	"$(ip -n "$NS_S" -j link show s0 | jq '[.[] | select(.xdp)] | length')" 1
kill -TERM $RUN
wait $RUN
check_is "make run IFACE=s0: ended with" $? 0
check_is "make run IFACE=s0: XDP programs left" \
	"$(ip -n "$NS_S" -j link show s0 | jq '[.[] | select(.xdp)] | length')" 0
lab_done
