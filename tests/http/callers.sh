#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Rights of callers: tokens (also replaced while the daemon runs), uids, certificates, domains; TLS off
# loopback; configurations that `check` refuses.

. "$(dirname "$0")/../lib/http.sh"
http_begin callers "$@"

ip addr add 192.0.2.1/32 dev lo
FAR=https://192.0.2.1:8443
cd "$LAB" || exit 1

# make_cert NAME CN ISSUER
make_cert() {
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" \
		-subj "/CN=$2" 2> /dev/null || exit 1
	openssl x509 -req -in "$1.csr" -CA "$3.crt" -CAkey "$3.key" -CAcreateserial -days 2 -out "$1.crt" \
		-extfile <(echo subjectAltName=IP:192.0.2.1) 2> /dev/null || exit 1
}
for ca in ca other; do
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout $ca.key \
		-out $ca.crt -subj "/CN=$ca" 2> /dev/null || exit 1
done
make_cert server sluice ca
make_cert edge edge ca
make_cert stranger stranger ca
make_cert forged edge other

echo 0123456789abcdef-one > token-one
echo 0123456789abcdef-two > token-two
http_rules api <<'YAML'
domain: api
descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 100000}}]
YAML
http_rules shop <<'YAML'
domain: shop
descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 100000}}]
YAML
http_daemon <<YAML
  listen: [127.0.0.1:8180, {address: 'unix:$UNIX', mode: 0666}, 192.0.2.1:8443]
  tls: {cert: $LAB/server.crt, key: $LAB/server.key, client_ca: $LAB/ca.crt}
  callers:
    - {name: one, token_file: $LAB/token-one, domains: [api], may: [check]}
    - {name: two, token_file: $LAB/token-two, may: [check, report]}
    - {name: edge, cert_cn: edge, domains: [shop], may: [check]}
    - {name: nobody, uid: 65534, may: [check]}
YAML

# as TOKEN|"" DOMAIN [CURL OPTIONS]: a check's status
as() {
	local auth=()

	[ -z "$1" ] || auth=(-H "Authorization: Bearer $1")
	HTTP_OPTIONS=("${auth[@]}" "${@:3}")
	http_check "$2" user=bob
	HTTP_OPTIONS=()
}
# far_check as above, over TLS
far() {
	URL=$FAR as "$1" "$2" --cacert ca.crt "${@:3}"
}
reports() {
	request -H "Authorization: Bearer $1" -d "[$(check_body "$2" user=bob)]" /v1/report
}

check_is "a token" "$(as 0123456789abcdef-one api)" 200
check_is "a token, in another domain than its own" "$(as 0123456789abcdef-one shop)" 403
check_is "a token, in a domain that does not exist" "$(as 0123456789abcdef-one '')" 400
check_is "a token for all domains" "$(as 0123456789abcdef-two shop)" 200
check_is "no token on loopback is refused once there are callers" "$(as '' api)" 401
check_is "WWW-Authenticate asks for a token" "$(header WWW-Authenticate)" Bearer
check_is "half a token" "$(as 0123456789abcdef api)" 401
check_is "a token with more behind it" "$(as 0123456789abcdef-one-two api)" 401
check_is "a token with the right to report" "$(reports 0123456789abcdef-two api)" 202
check_is "a token without it" "$(reports 0123456789abcdef-one api)" 403
check_is "health needs no token" "$(request /readyz)" 200

check_is "a uid on the Unix socket" "$(setpriv --reuid 65534 --clear-groups curl -s -o /dev/null \
	-w '%{http_code}' --unix-socket "$UNIX" -d "$(check_body api user=bob)" http://s/v1/check)" 200
check_is "another uid" "$(as '' api --unix-socket "$UNIX")" 401
check_is "a token over the Unix socket" "$(as 0123456789abcdef-one api --unix-socket "$UNIX")" 200

check_is "over TLS a token" "$(far 0123456789abcdef-one api)" 200
check_is "over TLS without a token" "$(far '' shop)" 401
check_is "a client certificate" "$(far '' shop --cert edge.crt --key edge.key)" 200
check_is "a client certificate, in another domain" "$(far '' api --cert edge.crt --key edge.key)" 403
check_is "a certificate of no caller" "$(far '' shop --cert stranger.crt --key stranger.key)" 403
check_is "a certificate of another CA" "$(far '' shop --cert forged.crt --key forged.key)" 000
check_is "TLS 1.1 is too old" "$(far 0123456789abcdef-one api --tls-max 1.1)" 000
check_is "without TLS there is no response" "$(URL=http://192.0.2.1:8443 as 0123456789abcdef-one api)" 000

# ---------------------------------------------------------------- changed while it runs

echo 0123456789abcdef-new > token-new && mv token-new token-one
new_token() { [ "$(as 0123456789abcdef-new api)" = 200 ]; }
check_true "a replaced token file is read within seconds" wait_for 5 new_token
check_is "the old token is refused" "$(as 0123456789abcdef-one api)" 401
make_cert next sluice other
cat next.key > server.key && cat next.crt > server.crt
other_ca() { [ "$(URL=$FAR as 0123456789abcdef-new api --cacert other.crt)" = 200 ]; }
check_true "so is a replaced certificate" wait_for 6 other_ca
sed -i 's/may: \[check\]}/may: [report]}/' "$CONFIG"
check_true "reload" ctl reload
check_is "a right that a reload removes" "$(as 0123456789abcdef-new api)" 403
check_is "other rights stay" "$(reports 0123456789abcdef-new api)" 202
sed -i "s|token-two|token-gone|" "$CONFIG"
ctl reload > "$LAB/out" 2>&1
check_is "a missing token file is refused" "$(grep -c token-gone "$LAB/out")" 1
check_is "the old configuration stays" "$(as 0123456789abcdef-two shop)" 200

# ---------------------------------------------------------------- configurations that check refuses

refused() {
	http_config
	"$BIN/sluicectl" check "$CONFIG" > "$LAB/out" 2>&1
	[ $? = 1 ] && grep -q "192.0.2.1:8181.*$1" "$LAB/out"
}
check_true "off loopback without TLS" refused tls <<YAML
  listen: [192.0.2.1:8181]
  callers: [{name: one, token_file: $LAB/token-one, may: [check]}]
YAML
check_true "off loopback without callers" refused callers <<YAML
  listen: [{address: 192.0.2.1:8181, insecure: true}]
YAML

lab_done
