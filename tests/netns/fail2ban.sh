#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# fail2ban.sh - Debian's fail2ban with docs/examples/fail2ban reads failed logins from a log, and the
# source's packets stop: IPv4 and IPv6, beside a source with one failure less. Banned twice, unbanned
# twice, and beside a block by hand, which stays. Without sluiced the bans are nftables'.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin fail2ban
lab_link 0
command -v fail2ban-server > /dev/null || { skip "needs fail2ban"; lab_done; }

daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
limits: [{name: all, rate: 1M packets/s}]
YAML

F2B=$LAB/fail2ban
mkdir -p "$F2B/filter.d" "$F2B/action.d"
mkdir "$F2B/jail.d"
cp "$REPO/docs/examples/fail2ban/action.d/sluice.conf" /etc/fail2ban/action.d/nftables.conf "$F2B/action.d/"
cp "$REPO/docs/examples/fail2ban/jail.d/sluice.conf" "$F2B/jail.d/"
cat > "$F2B/action.d/sluice.local" <<CONF
[Init]
sluicectl = $BIN/sluicectl -s $SOCKET
CONF
cat > "$F2B/filter.d/login.conf" <<'CONF'
[Definition]
failregex = ^ login failed from <HOST>$
CONF
# As in Debian's jail.conf.
cat > "$F2B/jail.conf" <<CONF
[DEFAULT]
banaction = iptables-multiport
action_ = %(banaction)s[port="%(port)s", protocol="%(protocol)s"]
action = %(action_)s

[login]
enabled = true
filter = login
backend = polling
logpath = $LAB/logins
maxretry = 3
findtime = 10m
bantime = 1h
port = 22
protocol = tcp
CONF
cat > "$F2B/fail2ban.conf" <<CONF
[Definition]
loglevel = INFO
logtarget = $F2B/log
syslogsocket = auto
socket = $F2B/socket
pidfile = $F2B/pid
dbfile = $F2B/bans.sqlite
dbpurgeage = 1d
CONF
: > "$LAB/logins"
f2b() {
	fail2ban-client -c "$F2B" "$@" 2>> "$F2B/out"
}
"${IN_S[@]}" fail2ban-server -f -c "$F2B" > "$F2B/out" 2>&1 &
started
SERVER=$!
wait_for 20 f2b ping > "$LAB/out" || not_ok "fail2ban does not start: $(tail -n 3 "$F2B/out" "$F2B/log")"

arrivals_count
# fails SOURCE N: lines of its failed logins.
fails() {
	for _ in $(seq "$2"); do date "+%Y-%m-%d %H:%M:%S login failed from $1"; done >> "$LAB/logins"
}
blocked() {
	ctl -o json block list | jq -e --arg p "$1" '.entries[] | select(.prefix | startswith($p))'
}
gone() { ! blocked "$1"; }

fails 10.1.1.2 2
fails 10.1.1.3 3
fails 2001:db8:70:1::3 3
check_true "three failures: blocked" wait_for 20 blocked 10.1.1.3 > "$LAB/out"
check_true "and over IPv6" wait_for 20 blocked 2001:db8:70:1::3 > "$LAB/out"
check_is "its packets" "$(of_ten 10.1.1.3)" 0
check_is "its packets over IPv6" "$(of_ten 2001:db8:70:1::3 --dst $SERVER6)" 0
check_is "two failures" "$(of_ten 10.1.1.2)" 10
check_is "the reason" "$(blocked 10.1.1.3 | jq -r .reason)" "fail2ban login"
check "for an hour" "$(blocked 10.1.1.3 | jq '.left_ns / 1e9 | floor')" 3400 3600

f2b set login banip 10.1.1.4 > "$LAB/out"
check_true "banned by hand" wait_for 20 blocked 10.1.1.4 > "$LAB/out"
f2b set login unbanip 10.1.1.4 > "$LAB/out"
check_true "unbanned" wait_for 20 gone 10.1.1.4
check_is "its packets again" "$(of_ten 10.1.1.4)" 10

# The block is lost and the ban is not, and the other way round: no error in either.
ctl block del 10.1.1.3 > "$LAB/out"
f2b set login unbanip 10.1.1.3 2001:db8:70:1::3 > "$LAB/out"
check_true "unbanned over IPv6" wait_for 20 gone 2001:db8:70:1::3
ctl block add 10.1.1.5 --for 1h --reason "fail2ban login" > "$LAB/out"
f2b set login banip 10.1.1.5 > "$LAB/out"
check_true "a ban renews the block" wait_for 20 grep -q 'Ban 10.1.1.5' "$F2B/log"

ctl block add 10.1.1.6 --reason "by hand" > "$LAB/out"
f2b set login banip 10.1.1.6 > "$LAB/out"
f2b set login unbanip 10.1.1.6 > "$LAB/out"
check_true "unban of an address blocked by hand" wait_for 20 grep -q 'Unban 10.1.1.6' "$F2B/log"
f2b set login banip 10.1.1.7 > "$LAB/out"
check_true "whatever came before it is done" wait_for 20 blocked 10.1.1.7 > "$LAB/out"
check_is "the block by hand stays" "$(blocked 10.1.1.6 | jq -r .reason)" "by hand"
check_is "fail2ban reports no error" "$(grep -c ERROR "$F2B/log")" 0

# in_nft ADDRESS: nftables has the ban.
in_nft() { on_server nft list set inet f2b-table addr-set-login | grep -qw "$1"; }
not_in_nft() { ! in_nft "$1"; }
check_true "nftables has the bans, too" in_nft 10.1.1.7
daemon_kill TERM
f2b set login banip 10.1.1.8 > "$LAB/out"
check_true "without sluiced: nftables has the ban" wait_for 20 in_nft 10.1.1.8
check_true "and the log the error" wait_for 20 grep -q "sluicectl: .*$SOCKET" "$F2B/log"
f2b set login unbanip 10.1.1.8 > "$LAB/out"
check_true "unbanned there" wait_for 20 not_in_nft 10.1.1.8
f2b stop > "$LAB/out"
wait $SERVER
lab_done
