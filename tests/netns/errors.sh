#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# errors.sh - the CLI's exit codes, and bad files (of all kinds: test_policy_errors.c): each gives FILE:LINE:COLUMN,
# a message that names the bad input, and exit 1; a daemon whose reload fails keeps its rules.
# `check` is run as a user without rights: it needs neither root nor a daemon.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin errors
lab_link 0
chmod 755 "$LAB"

as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}
# The programs may lie where other users have no access.
install -m 755 "$BIN/sluicectl" "$LAB/sluicectl"

# refuse NAME LINE COLUMN TEXT < FILE: LINE and COLUMN as regular expressions; the message must
# contain TEXT.
refuse() {
	local name=$1 file=$LAB/$1.yaml status message

	cat > "$file"
	chmod 644 "$file"
	message=$(as_nobody "$LAB/sluicectl" check "$file" 2>&1)
	status=$?
	check_is "$name: exit" $status 1
	if [[ $message =~ ^$file:$2:$3:\  ]] && [[ $message == *$4* ]]; then
		ok "$name: $(tr '\n' ' ' <<< "${message#"$LAB/"}" | cut -c1-160)"
	else
		not_ok "$name: want $name.yaml:$2:$3: ... $4 ..., got: $(cut -c1-300 <<< "$message")"
	fi
}

# ---------------------------------------------------------------- check

cat > "$LAB/good.yaml" <<'YAML'
interfaces: [{name: s0}]
limits:
  - {name: per-source, match: {src: 10.0.0.0/8}, rate: 1000 packets/s, burst: 2000}
YAML
chmod 644 "$LAB/good.yaml"
as_nobody "$LAB/sluicectl" check "$LAB/good.yaml" > "$LAB/out" 2>&1
check_is "a good file: exit" $? 0

# A cluster limit without a cluster is valid, and noted: one line for each.
mkdir "$LAB/rules"
cat > "$LAB/rules/r.yaml" <<'YAML'
domain: api
descriptors:
  - {key: user, limits: 5 requests/m, consistency: {lease: 100ms}}
  - {key: other, limits: 5 requests/m}
YAML
cat > "$LAB/alone.yaml" <<YAML
limits:
  - {name: a, rate: 1000 packets/s, scope: cluster}
  - {name: b, rate: 1000 packets/s}
http: {rules: $LAB/rules}
YAML
{
	cat "$LAB/alone.yaml"
	echo "cluster: {redis: {urls: ['redis://10.0.0.5']}, secret_file: /k}"
} > "$LAB/together.yaml"
for name in alone together; do
	[ $name = alone ] && noted=2 || noted=0
	chmod -R a+rX "$LAB/$name.yaml" "$LAB/rules"
	as_nobody "$LAB/sluicectl" check "$LAB/$name.yaml" > "$LAB/out" 2>&1
	check_is "$name: exit" $? 0
	check_is "$name: limits that are noted to count on this node alone" \
		"$(grep -c '^note: .*scope is cluster.* this node alone' "$LAB/out")" "$noted"
done

refuse unknown-key 3 5 ratee <<'YAML'
limits:
  - name: a
    ratee: 10 packets/s
YAML
refuse empty '[01]' '[01]' '' < /dev/null
head -c 4096 /dev/urandom | refuse binary '[0-9]+' '[0-9]+' ''
{
	echo "block:"
	awk 'BEGIN { for (i = 0; i < 99998; i++)
		printf "  - 20.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }'
	echo "  - 300.1.1.1"
} > "$LAB/long"
begin=$SECONDS
refuse 100k-lines 100000 5 300.1.1.1 < "$LAB/long"
check "seconds for 100k lines" $((SECONDS - begin)) 0 5
as_nobody "$LAB/sluicectl" check "$LAB/missing.yaml" > "$LAB/out" 2>&1
check_is "a missing file: exit" $? 1
check_true "the message names it" grep -q missing.yaml "$LAB/out"

# ---------------------------------------------------------------- exit codes

code() {
	local words=$1 want=$2

	shift 2
	"$BIN/sluicectl" "$@" > "$LAB/out" 2> "$LAB/err"
	check_is "$words: exit" $? "$want"
	[ "$want" = 0 ] || check_true "$words: an error on stderr" test -s "$LAB/err"
}
code "no command" 2
code "an unknown command" 2 fly
code "an unknown option" 2 --nonsense
code "limit set without a pair" 2 limit set a
code "no daemon" 3 -s "$LAB/nobody.sock" status

daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
limits:
  - {name: a, rate: 10 packets/s, burst: 20}
YAML
code "status" 0 -s "$SOCKET" status
code "a limit that is not there" 1 -s "$SOCKET" limit show b
code "a bad value" 1 -s "$SOCKET" limit set a rate=fast
code "a bad key" 1 -s "$SOCKET" limit set a colour=red
code "a bad prefix" 1 -s "$SOCKET" block add 1.2.3.4.5
code "the second of two pairs is bad" 1 -s "$SOCKET" limit set a burst=30 rate=fast
check_is "the first file was not applied" \
	"$(ctl limit show a -o json | jq -r '[.. | .burst? // empty][0]')" 20
code "an interface that is not there" 1 -s "$SOCKET" attach nosuch0

# ---------------------------------------------------------------- a bad reload

generation=$(metric sluice_rules_generation)
cp "$CONFIG" "$LAB/kept"
for bad in unknown-key empty binary 100k-lines; do
	cp "$LAB/$bad.yaml" "$CONFIG"
	code "reload of $bad" 1 -s "$SOCKET" reload
done
check_true "the last error names file, line and column" \
	grep -qE "sluice\.yaml:100000:5: " "$LAB/err"
check_is "no rule set was applied" "$(metric sluice_rules_generation)" "$generation"
check_is "the metric shows the failure" "$(metric sluice_config_last_reload_success)" 0
kill -HUP "$DAEMON_PID"
logged() {
	[ "$(grep -c 'sluice.yaml:100000:5' "$LAB/daemon.log")" -gt 0 ]
}
check_true "SIGHUP: refused and logged" wait_for 5 logged
check_is "the limit is unchanged" "$(ctl limit show a -o json | jq -r '[.. | .burst? // empty][0]')" 20
cp "$LAB/kept" "$CONFIG"
code "reload of the good file" 0 -s "$SOCKET" reload
check_is "the metric shows the success" "$(metric sluice_config_last_reload_success)" 1

# ---------------------------------------------------------------- files that differ from what is in force

# differ COUNT [PATTERN]: how many files differ by status and the metric; what diff prints, and its exit code.
differ() {
	check_is "$1 files differ: status, diff" "$(ctl status -o json | jq '.differing | length') $(ctl diff > "$LAB/diff"
		echo $?)" "$1 $(($1 ? 4 : 0))"
	check_true "the metric, too" wait_for 5 differ_metric "$1"
	check_true "diff prints: ${2:-nothing more}" grep -qE "${2:-no live changes}" "$LAB/diff"
}
differ_metric() {
	[ "$(metric sluice_files_differing)" = "$1" ]
}
differ_doctor() {
	ctl doctor -o json -c "$CONFIG" | jq -r '.checks[] | select(.check == "last reload") | .level'
}
printf '192.0.2.1\n' > "$LAB/some.txt"
printf '192.0.2.1,10 packets/s\n' > "$LAB/rates.csv"
sed -i '/^limits:/,$d' "$CONFIG"
cat >> "$CONFIG" <<-YAML
	sets: {some: {file: some.txt}}
	block: ['@some']
	limits: [{name: a, rate: 10 packets/s, burst: 20, per: [source], overrides_file: rates.csv}]
YAML
differ 1 "^$CONFIG: changed since it was read"
code "reload of files that name others" 0 -s "$SOCKET" reload
differ 0
touch "$CONFIG" "$LAB/some.txt"
differ 0
printf '192.0.2.2\n' > "$LAB/some.txt"		# of the same size, perhaps at the same time
differ 1 "^$LAB/some.txt: changed since it was read"
printf '192.0.2.1,20 packets/s\n' > "$LAB/rates.csv"
differ 2 "^$LAB/rates.csv: changed"
check_true "status prints them" grep -qE "^DIFFERS +$LAB/rates.csv: changed" <(ctl status)
check_is "what is in force is unchanged" "$(for source in 192.0.2.1 192.0.2.2; do
	ctl explain $source -o json | jq -r .verdict.reason
done | paste -sd,)" block,within
rm "$LAB/some.txt"
differ 2 "^$LAB/some.txt: No such file"
check_is "doctor warns" "$(differ_doctor)" warn
printf '192.0.2.1\n' > "$LAB/some.txt"
printf '192.0.2.1,10 packets/s\n' > "$LAB/rates.csv"
differ 0
check_is "doctor is content" "$(differ_doctor)" ok
cp "$CONFIG" "$LAB/kept"
sed -i 's/burst: 20/burst: 30/' "$CONFIG"
code "apply of the file that changed" 0 -s "$SOCKET" apply "$CONFIG"
differ 0
code "apply of another" 0 -s "$SOCKET" apply "$LAB/kept"
differ 1 "^$CONFIG: another text was applied instead"
code "rollback" 0 -s "$SOCKET" rollback
differ 0
sed -i 's/^metrics: {/&max_values: 7, /; s/^table:.*//; $a table: {buckets: 5000}' "$CONFIG"
code "reload of a setting that needs a restart" 0 -s "$SOCKET" reload
differ 1 "^$CONFIG: table.buckets has changed: it takes effect when"

if command -v promtool > /dev/null; then
	metrics | sed '1,/^$/d' > "$LAB/page"
	check_true "promtool accepts /metrics" sh -c "promtool check metrics < '$LAB/page' 2>&1"
else
	skip "promtool is not installed"
fi
lab_done
