#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Rules as their operator sees them: read and watched, also through a swapped symbolic link; a bad file
# keeps the old ones; live changes, of a rule and of one value, of a domain and its default, over a restart, saved, and withdrawn;
# each time with an unaffected neighbour.

. "$(dirname "$0")/../lib/http.sh"
http_begin rules "$@"

# passes WHO RULE-KEY MOST: how many of MOST+1 pass.
passes() {
	http_passed $(($2 + 1)) api "$1"
}

http_rules api <<'YAML'
  # a comment, which save keeps
  - key: user
    limits: ['3 requests/d']
    overrides: [{value: acme, limits: ['5 requests/d']}]
    overrides_file: plans.csv
  - {key: other, limits: ['2 requests/d']}
YAML
printf 'value,limits\ncorp,4 requests/d\nfirm,4 requests/d\n' > "$RULES/plans.csv"
http_daemon <<'YAML'
  state: {users: 10K}
YAML

check_is "the rule's limit" "$(passes user=one 3)" 3
check_is "a value's own limit" "$(passes user=acme 5)" 5
check_is "a value's own limit from the overrides file" "$(passes user=corp 4)" 4
check_is "rule list" "$(ctl rule list -o json | jq -r '.rules | map(.rule) | join(" ")')" "api/user api/other"
check_is "rule list counts overrides" "$(ctl rule list -o json | jq -r '.rules[0].overrides')" 3
check_true "rule show is YAML of the rule" grep -q "rate: 3 requests/d" <(ctl rule show api/user)
check_is "rule show of an unknown rule fails" "$(ctl rule show api/nobody > /dev/null 2>&1; echo $?)" 1

# ---- live, of a rule

ctl rule set api/other limits='4 requests/d' > "$LAB/set" || not_ok "rule set"
check_is "rule set holds" "$(passes other=one 4)" 4
check_is "the other rule is unchanged" "$(passes user=two 3)" 3
check_is "a bad change is refused" "$(ctl rule set api/other burst=5 2>&1 | grep -c 'algorithm is fixed-window')" 1
check_is "it changes nothing" "$(passes other=two 4)" 4
check_is "rule set of an unknown rule fails" "$(ctl rule set api/gone limits='1 requests/d' > /dev/null 2>&1; echo $?)" 1

# ---- live, of a value

ctl user set api/user bob limits='6 requests/d' > /dev/null
ctl user block api/user eve > /dev/null
ctl user exempt api/user root > /dev/null
ctl user unset api/user acme > /dev/null
ctl user unset api/user firm > /dev/null
check_is "user set" "$(passes user=bob 6)" 6
check_is "user block" "$(http_check api user=eve)" 429
check_is "user exempt" "$(http_passed 20 api user=root)" 20
check_is "user unset of the rule file's" "$(passes user=acme 3)" 0	# it had used five
check_is "user unset of a value of the overrides file" "$(passes user=firm 3)" 3
check_is "a neighbour of all these" "$(passes user=three 3)" 3
check_is "user unset of a value without limits of its own fails" "$(ctl user unset api/user nobody 2>&1 | grep -c 'no limits of its own')" 1
ctl user block api/user soon --for 3s > /dev/null
check_is "status counts live changes" "$(ctl status -o json | jq .live_changes)" 7
check_is "diff shows them" "$(ctl diff | grep -c -E 'user (set|block|exempt|unset)|rule set')" 7
blocked() { [ "$(http_check api user=soon)" = 200 ]; }
wait_for 10 blocked && ok "a block for a time ends" || not_ok "a block for a time ends"
check_is "it is no live change any more" "$(ctl status -o json | jq .live_changes)" 6
check_is "the changes are audited" "$(grep -c -E '"command": ?"(user|rule) ' "$LAB/state/audit.log")" 10

# ---- over a restart

daemon_kill KILL
daemon_run
check_is "live changes after a restart" "$(ctl status -o json | jq .live_changes)" 6
check_is "a rule's change holds" "$(passes other=three 4)" 4
check_is "a value's change holds" "$(http_check api user=eve)" 429

# ---- files change

cat > "$RULES/bad.yaml" <<'YAML'
domain: bad
descriptors: [{key: x, limit: 3}]
YAML
failed() { [ "$(metric sluice_config_last_reload_success)" = 0 ]; }
wait_for 10 failed && ok "a bad file is noticed" || not_ok "a bad file is noticed"
check_is "the old rules stay in force" "$(http_check api user=eve)" 429
check_is "reload names the place" "$(ctl reload 2>&1 | grep -c 'bad.yaml:2:24: rule "bad/x": unknown key "limit"')" 1
check_is "a live change that needs the files is refused meanwhile" "$(ctl rule set api/user limits='4 requests/m' > /dev/null 2>&1; echo $?)" 1
check_is "one of a rule's keys reads no file" "$(ctl rule set api/user shadow_mode=true > /dev/null; http_check api user=eve)" 200
check_is "nor does taking it back" "$(ctl rule set api/user shadow_mode= > /dev/null; http_check api user=eve)" 429
check_is "nor one of its limits" "$(ctl rule set api/other limits='2 requests/d' > /dev/null; http_passed 4 api other=low)" 2
ctl rule set api/other limits='4 requests/d' > /dev/null
check_is "nor one of a value" "$(ctl user block api/user x > /dev/null; http_check api user=x)" 429
check_is "nor taking it back" "$(ctl user unset api/user x > /dev/null; http_check api user=x)" 200
ctl user block api/user x --for 1s > /dev/null
free_again() { [ "$(http_check api user=x)" = 200 ]; }
wait_for 10 free_again && ok "nor its end" || not_ok "nor its end"
sed -i 's/corp,4/corp,5/' "$RULES/plans.csv"
sed -i 's/# a comment/# another comment/' "$RULES/api.yaml"
check_is "diff shows the files that were not read" "$(ctl diff -o json | jq -r '.differing | map(.file + ": " + .why) | join(", ")')" \
	"$RULES/api.yaml: changed since it was read, $RULES/plans.csv: changed since it was read, $RULES/bad.yaml: is new"
differ() { [ "$(metric sluice_files_differing)" = "$1" ]; }
check_true "so does the metric" wait_for 5 differ 3
sed -i 's/# another comment/# a comment/' "$RULES/api.yaml"
check_true "not one that is as it was" wait_for 5 differ 2
rm "$RULES/bad.yaml"
good() { [ "$(metric sluice_config_last_reload_success)" = 1 ]; }
wait_for 10 good && ok "so is its removal" || not_ok "so is its removal"
check_true "no file differs any more" wait_for 5 differ 0

http_rules more <<'YAML'
domain: more
descriptors: [{key: x, limits: ['1 requests/d']}]
YAML
there() { ctl rule show more/x > /dev/null 2>&1; }
wait_for 10 there && ok "a new file is read without a reload" || not_ok "a new file is read without a reload"

# ---- save

ctl save > /dev/null || not_ok "save"
check_is "after save nothing is live" "$(ctl status -o json | jq .live_changes)" 0
check_true "the old file is kept as .bak" grep -q "acme" "$RULES/api.yaml.bak"
check_is "save changes only the lines of the changes" "$(diff "$RULES/api.yaml.bak" "$RULES/api.yaml")" "6c6,10
<     overrides: [{value: acme, limits: ['5 requests/d']}]
---
>     overrides:
>       - {value: bob, limits: [6 requests/d]}
>       - {value: eve, block: true}
>       - {value: root, unlimited: true}
>       - {value: firm, removed: true}
8c12
<   - {key: other, limits: ['2 requests/d']}
---
>   - {key: other, limits: ['4 requests/d']}"
check_is "saved: of a rule" "$(passes other=four 4)" 4
check_is "saved: block" "$(http_check api user=eve)" 429
check_is "saved: exempt" "$(http_passed 20 api user=root)" 20
check_is "saved: unset" "$(ctl rule show api/user | grep -c -E 'acme|firm.*removed')" 1
check_is "saved: a neighbour" "$(passes user=five 3)" 3
check_is "check counts rules" "$("$BIN/sluicectl" check "$CONFIG" -o json | jq .rules)" 3
check_is "rule test" "$("$BIN/sluicectl" rule test -c "$CONFIG" --domain api --entries user=bob -o json |
	jq -r '"\(.rule) \(.override) \(.limits[0].rate)"')" "api/user true 6 requests/d"
check_is "rule test shows what a burst means" "$("$BIN/sluicectl" rule test -c <(printf '%s' 'domain: b
descriptors: [{key: k, limits: 100 requests/m, algorithm: token-bucket}]') --domain b --entries k=1 |
	sed -n 's/^limit *//p')" "k: 100 requests/m, token-bucket, burst 1: at most 1 at once, then one each 0.6 s"
check_is "rule test of a descriptor that no rule matches" "$("$BIN/sluicectl" rule test -c "$CONFIG" --domain api --entries no=1)" "no rule matches: the request passes"
check_is "rule test of an address" "$("$BIN/sluicectl" rule test -c "$RULES" --domain api --entries other=2001:db8::1 |
	grep -c 'other=2001:db8::/64')" 1

# ---- a whole domain, and its default

http_rules whole <<'YAML'
# kept
domain: {name: whole, limits: 12 requests/d}
default:
  limits: [5 requests/d]	# a path
descriptors: [{key: user, limits: ['9 requests/d']}]
YAML
whole() { ctl rule show whole/default > /dev/null 2>&1; }
wait_for 10 whole && ok "a file with domain and default is read" || not_ok "a file with domain and default is read"
check_is "the default" "$(http_passed 9 whole path=/a)" 5
check_is "rule set of the default" "$(ctl rule set whole/default limits='6 requests/d' > /dev/null; http_passed 9 whole path=/a)" 1
check_is "user show of the default" "$(ctl user show whole/default path=/a -o json | jq -c '[.limits[0].remaining, .over]')" "[0,false]"
check_is "... of a domain" "$(ctl user show whole/domain -o json | jq '.limits[0].remaining')" 6
check_is "... without a value" "$(ctl user show whole/user 2>&1 | grep -c 'VALUE is missing')" 1
check_is "the domain refuses a user" "$(http_passed 9 whole user=bob)" 6
check_is "the response names it" "$(http_check whole user=bob > /dev/null; jq -c '[.domain.rule, .domain.code, .statuses[0].code]' "$LAB/body")" \
	'["whole/domain","OVER_LIMIT","OK"]'
check_is "so does its header" "$(header ratelimit | cut -d';' -f1,2)" '"domain";r=0'
check_is "metrics count its refusals" "$(metric sluice_decisions_total rule=domain verdict=over_limit)" 4
check_is "user reset of a domain" "$(ctl user reset whole/domain > /dev/null; http_passed 9 whole user=bob)" 3
check_is "rule set of a domain" "$(ctl rule set whole/domain limits='1 requests/d' > /dev/null; http_passed 9 whole user=al)" 0
check_is "a neighbour: another domain" "$(passes user=six 3)" 3
check_is "rule test shows the domain's" "$("$BIN/sluicectl" rule test -c "$CONFIG" --domain whole --entries path=/a | grep -c -E 'whole/(default|domain)')" 2
ctl save > /dev/null || not_ok "save"
check_is "save writes both in their places" "$(cat "$RULES/whole.yaml")" "# kept
domain: {name: whole, limits: 1 request/d}
default:
  limits: ['6 requests/d']	# a path
descriptors: [{key: user, limits: ['9 requests/d']}]"
rm "$RULES/whole.yaml"

http_rules log <<'YAML'
domain: log
descriptors: [{key: x, limits: ['1000 requests/h'], algorithm: sliding-log}]
YAML
check_is "check prints the memory of a sliding-log" "$("$BIN/sluicectl" check "$CONFIG" |
	grep -c '8032 bytes per key; http.state.log_memory has room for 7968 such keys')" 1
rm "$RULES/log.yaml"

# ---- rollback

ctl user block api/user seven > /dev/null
check_is "blocked" "$(http_check api user=seven)" 429
ctl rollback > /dev/null
check_is "rollback removes the block" "$(http_check api user=seven)" 200

# ---- withdrawn, discarded, and restored if not confirmed

ctl user set api/user eight limits='9 requests/d' > /dev/null
ctl user set api/user eight limits='8 requests/d' > /dev/null
check_is "the last change holds" "$(passes user=eight 8)" 8
check_is "it is one change" "$(ctl status -o json | jq .live_changes)" 1
ctl user unset api/user eight > /dev/null
check_is "unset removes the change" "$(ctl status -o json | jq .live_changes)" 0
ctl user block api/user nine > /dev/null
ctl apply "$CONFIG" --discard-live --confirm 2s > /dev/null
check_is "apply --discard-live discards it" "$(http_check api user=nine --peek true)" 200
nine() { [ "$(http_check api user=nine --peek true)" = 429 ]; }
wait_for 10 nine && ok "an unconfirmed discard is reverted" || not_ok "an unconfirmed discard is reverted"
ctl apply "$CONFIG" --discard-live > /dev/null
check_is "a confirmed discard stays" "$(http_check api user=nine --peek true)" 200

# ---- a rule of several keys: README's

http_rules api <<'YAML'
  - key: user
    limits: ['50 requests/m', {name: daily, rate: 1000 requests/d}]
    descriptors:
      - {key: path, value: /search, limits: ['20 requests/m']}
      - {key: path, value: '/img/*', limits: ['20 requests/m']}
      - {key: path, value: '*.php', share_threshold: true, limits: ['20 requests/m']}
  - key: source
    descriptors: [{key: path, value: /login, limits: ['20 requests/m']}]
YAML
SEARCH=api/user/path=/search
several() { ctl rule show $SEARCH > /dev/null 2>&1; }
wait_for 10 several || not_ok "rules of several keys"
utc_room 60 20
# may USER PATH: the status of a request of a user for a path, with the descriptors of README.
may() {
	request -d "$(jq -nc --arg u "$1" --arg p "$2" '{domain: "api", descriptors: [{entries: [{key: "user", value: $u}]},
		{entries: [{key: "user", value: $u}, {key: "path", value: $p}]}]}')" /v1/check
}
# More than twenty users are active by now, as many as the list has without --count.
listed() { ctl user list --rule "$SEARCH" --count 100 -o json | jq -r .users[].value; }
is_listed() { listed | grep -xF "$1" > "$LAB/out"; }
may 'a,"b"' /search > /dev/null
may bob /search > /dev/null
check_true "user list has all values" wait_for 5 is_listed bob,/search
check_true "... in quotes where a value has a comma" wait_for 5 is_listed '"a,""b""",/search'
for value in bob,/search '"a,""b""",/search' eve; do
	check_true "user block $value" ctl user block $SEARCH "$value"
done
check_is "they are refused from the next request on" "$(may bob /search) $(may 'a,"b"' /search) $(may eve /search)" "429 429 429"
check_is "other users are not" "$(may al /search) $(may a /search) $(may /search /search)" "200 200 200"
check_is "nor are their other paths" "$(may bob /) $(may 'a,"b"' /x) $(may eve /searching)" "200 200 200"
check_is "nor they, without a path" "$(http_check api user=bob)" 200
check_is "user show" "$(ctl user show $SEARCH bob,/search -o json | jq -c '[.value, .over]') $(ctl user show $SEARCH bob -o json | jq .over)" \
	'["bob,/search",true] true'
check_is "... of a neighbor" "$(ctl user show $SEARCH al,/search -o json | jq -c '[.over, .limits[0].remaining]')" "[false,19]"
check_is "user reset" "$(ctl user reset $SEARCH al,/search > /dev/null; ctl user show $SEARCH al,/search -o json | jq .limits[0].remaining)" 20
was_refused() { ctl why $SEARCH "$1" | grep -q refused; }
check_true "why" wait_for 5 was_refused bob,/search
check_true "... with quotes" wait_for 5 was_refused '"a,""b""",/search'
hash=$(ctl user show $SEARCH bob,/search -o json | jq -r .hash)
check_is "by its hash" "$(ctl user show $SEARCH "$hash" -o json | jq -r .value)" bob,/search
# refused RULE VALUE WORDS: by block, set and exempt, and it changes nothing.
refused() {
	local before after

	before=$(ctl status -o json | jq .live_changes)
	check_true "block $1 $2" grep -qF -- "$3" <(ctl user block "$1" "$2" 2>&1)
	check_true "set $1 $2" grep -qF -- "$3" <(ctl user set "$1" "$2" limits='1 requests/d' 2>&1)
	check_true "exempt $1 $2" grep -qF -- "$3" <(ctl user exempt "$1" "$2" 2>&1)
	after=$(ctl status -o json | jq .live_changes)
	check_is "... nothing changed" "$after" "$before"
}
refused $SEARCH bob,/x "which is not for /search; accepted: USER,/search"
refused $SEARCH a,b,/search "3 values for 2 keys; accepted: USER,/search"
refused 'api/user/path=/img/*' bob "1 value for 2 keys; accepted: USER,PATH"
refused 'api/user/path=/img/*' bob,/search "requests meet $SEARCH"
refused 'api/user/path=*.php' bob,/a.php "accepted: USER,*.php"
ctl user block 'api/user/path=/img/*' bob,/img/1 > /dev/null || not_ok "user block of a pattern"
ctl user block 'api/user/path=*.php' 'bob,*.php' > /dev/null || not_ok "user block of a shared pattern"
ctl user block api/source/path=/login 192.0.2.0/24 > /dev/null || not_ok "user block of a network"
check_is "a pattern: this value, not others" "$(may bob /img/1) $(may bob /img/2) $(may al /img/1)" "429 200 200"
check_is "a shared pattern: all of this user's" "$(may bob /a.php) $(may bob /b.php) $(may al /a.php)" "429 429 200"
check_is "a network: its addresses" "$(http_check api source=192.0.2.7 path=/login) $(http_check api source=192.0.3.7 path=/login)" "429 200"
long=$(printf 'x%.0s' {1..80})
may "$long" /search > /dev/null
cut() { listed | grep '^xx.*[.][.][.]$' > "$LAB/cut"; }
check_true "a long value is cut in the list" wait_for 5 cut
refused $SEARCH "$(cat "$LAB/cut")" "which is cut; accepted: the whole value"

# As an earlier version stored it: `eve` for all her searches, and a value that no request had.
daemon_kill KILL
jq -c '(.changes[] | select(.value == "eve,/search")).value = "eve" |
	.changes += [.changes[0] | .value = "/old,/old,/old"]' "$LAB/state/live.json" > "$LAB/live" && cp "$LAB/live" "$LAB/state/live.json"
daemon_run
check_is "after a restart" "$(may bob /search) $(may 'a,"b"' /search) $(may eve /search)" "429 429 429"
check_is "... the neighbors" "$(may al /search) $(may bob /x) $(may eve /x)" "200 200 200"
check_is "what can match no request is dropped, with the reason" \
	"$(grep -c 'no longer applies and was dropped:.*3 values for 2 keys; accepted: USER,/search' "$LAB/daemon.log")" 1
ctl user unset $SEARCH eve > /dev/null || not_ok "user unset of what an earlier version stored"
ctl user unset $SEARCH '"a,""b""",/search' > /dev/null || not_ok "user unset"
check_is "unset releases them" "$(may eve /search) $(may 'a,"b"' /search) $(may bob /search)" "200 200 429"
ctl save > /dev/null || not_ok "save of values of several keys"
check_is "saved" "$(grep -c "value: 'bob,/search'" "$RULES/api.yaml")" 1
daemon_kill KILL
daemon_run
check_is "... as they were" "$(may eve /search) $(may bob /search) $(may al /search) $(may bob /img/1)" "200 429 200 429"
# ---- spellings of one value

http_rules spell <<'YAML'
  - {key: path, value: '/foo*', share_threshold: true, limits: 1000 requests/d}
  - {key: path, ignore: [case, trailing-slash, params], limits: 3 requests/d, values: plain}
YAML
spells() { ctl rule show spell/path > /dev/null 2>&1; }
wait_for 10 spells || not_ok "rules of spellings"
spelled() {
	for path; do request -H "X-Sluice-Uri: $path" '/nginx/check?domain=spell&d=path'; echo; done | grep -c 204
}
mapfile -t spellings < <(for i in {1..10}; do printf '/page;%s\n/PaGe/;%s\n/pag%%45?%s\n/x;%s/..;/page\n' $i $i $i $i; done)
check_is "40 spellings are one budget" "${#spellings[@]} $(spelled "${spellings[@]}")" "40 3"
check_is "another path has its own" "$(spelled /other /Other/ /OTHER /other)" 3
one_row() { [ "$(ctl user list --rule spell/path -o json | jq -r '[.users[].value] | sort | join(" ")')" = "/other /page" ]; }
check_true "user list shows one of each" wait_for 10 one_row
check_is "user show of any spelling" "$(ctl user show spell/path '/PAGE;x' -o json | jq '.limits[0].remaining')" 0
ctl user exempt spell/path /PAGE/ > /dev/null
check_is "a live change of one spelling is of all" "$(spelled /page /Page/ '/page;x')" 3
check_is "withdrawn with another" "$(ctl user unset spell/path /Page > /dev/null; spelled /page)" 0
ctl rule set spell/path ignore=case > /dev/null
check_is "what is ignored changes live" "$(spelled /page /PAGE; spelled /PAGE/)" "0
1"
http_rules notes <<'YAML'
  - {key: a, limits: 100 requests/m, algorithm: token-bucket}
  - {key: b, limits: 100 requests/m, algorithm: token-bucket, burst: 100}
  - {key: c, limits: 100 requests/s, algorithm: token-bucket}
  - {key: d, limits: 1000000 requests/h, algorithm: window-counters}
  - {key: e, limits: 500 requests/h, algorithm: sliding-log}
YAML
"$BIN/sluicectl" check "$CONFIG" > "$LAB/notes"
check_is "check notes a burst that is not written, and no other" \
	"$(grep -o 'notes/.": token-bucket of .*, burst [0-9]*: at most [0-9]* at once' "$LAB/notes")" \
	'notes/a": token-bucket of 100 requests/m without a burst has one second'"'"'s worth, burst 1: at most 1 at once'
check_is "check computes the memory of each algorithm" "$(grep -o 'notes/.": [a-z-]* stores .* bytes per key' "$LAB/notes" | paste -sd';')" \
	'notes/d": window-counters stores 60 counts: up to 496 bytes per key;notes/e": sliding-log stores every request: up to 4032 bytes per key'
check_is "check notes that /foo* meets more than /foo" \
	"$("$BIN/sluicectl" check "$CONFIG" | grep -c 'spell/path=/foo\*": .* as /foox; .* write /foo/\*\*')" 1

# ---- every command of the documentation, as written there

http_rules api < <(sed -n '/^domain: api/,/^```/p' "$REPO/docs/http-rules.md" | sed '/^```/,$d')
documented() { ctl rule show api/user | grep -q 'unit: minute, requests_per_unit: 10'; }
wait_for 10 documented || not_ok "the documentation's first file"
ctl rule set api/user rate_limit= limits='5 requests/m' > /dev/null || not_ok "rate_limit into limits"
commands=0
while IFS= read -r line; do
	commands=$((commands + 1))
	line=${line//\/etc\/sluice\/sluice.yaml/$CONFIG}
	( sluicectl() { ctl "$@"; }; eval "$line" ) > "$LAB/out" 2>&1 || not_ok "$line: $(cat "$LAB/out")"
done < <(grep -h '^    sluicectl ' "$REPO/docs/http-rules.md")
check "commands of the documentation" $commands 8 20
check_is "the commands did what the documentation states" "$(ctl rule show api/user | grep -c -E '20 requests/m|900 requests/h|soft: 10%|mallory.*block|monitoring.*unlimited')" 4

# ---- a swapped symbolic link, as Kubernetes does it

mkdir "$RULES/..one" "$RULES/..two"
mv "$RULES/more.yaml" "$RULES/..one/"
sed 's/1 req/2 req/' "$RULES/..one/more.yaml" > "$RULES/..two/more.yaml"
ln -s ..one "$RULES/..data"
ln -s ..data/more.yaml "$RULES/more.yaml"
wait_for 10 there
ln -s ..two "$RULES/..next" && mv -T "$RULES/..next" "$RULES/..data"
two() { ctl rule show more/x | grep -q "rate: 2 requests/d"; }
wait_for 10 two && ok "a swapped symbolic link is noticed" || not_ok "a swapped symbolic link is noticed"
lab_done
