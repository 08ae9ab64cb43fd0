#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# deb_inside.sh - the packages, in a root that may be changed (scripts/distro.sh deb): built, checked by
# lintian; installed, limiting packets of a wire, upgraded while they come, removed, purged.

. "$(dirname "$0")/../tests/lib/netns.sh"
lab_begin deb
cd "$REPO" || exit 1
mv scripts/debian debian

# packages VERSION: into $LAB/VERSION.
packages() {
	mkdir -p "$LAB/$1"
	rm -f ../*.deb debian/files
	dpkg-buildpackage -b -nc -us -uc > "$LAB/$1/log" 2>&1 || {
		tail -20 "$LAB/$1/log"
		not_ok "dpkg-buildpackage of $1"
		lab_done
		exit 1
	}
	mv ../*.deb ../*.changes ../*.buildinfo "$LAB/$1/"
}
old=$(sed -n 's/^VERSION := //p' Makefile)
new=$(awk -F. '{ print $1 "." $2 "." $3 + 1 }' <<< "$old")
packages "$old"
check_is "five packages, and their symbols" "$(find "$LAB/$old" -name '*.deb' ! -name '*-dbgsym*' | wc -l)" 5
lintian --fail-on error "$LAB/$old"/*.changes > "$LAB/lintian" 2>&1
check_is "lintian: no error" $? 0
sed 's/^/# /' "$LAB/lintian"

find / -xdev \( -path /proc -o -path /sys -o -path /src -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg \
	-o -path /var/log \) -prune -o -type f -print | sort > "$LAB/before"
export DEBIAN_FRONTEND=noninteractive
apt-get -q install -y "$LAB/$old"/{sluice,libsluice0,libsluice-dev,sluice-doc}_*.deb > "$LAB/apt" 2>&1 || {
	tail "$LAB/apt"
	not_ok "apt-get install"
}
check_is "the version" "$(sluicectl version)" "sluicectl $old"
check_true "the manual page" test -e /usr/share/man/man8/sluicectl.8.gz
check_true "the unit" grep -q ^ExecStart=/usr/sbin/sluiced /lib/systemd/system/sluiced.service
check_true "completion" test -e /usr/share/bash-completion/completions/sluicectl
check_true "alerts and the dashboard" test -e /usr/share/sluice/prometheus/alerts.yaml -a -e /usr/share/sluice/grafana/sluice.json
check_true "nginx's snippets" test -e /usr/share/sluice/nginx-http.conf
check_true "Debian's web server may ask" grep -q 'http.sock., group: www-data' /etc/sluice/sluice.yaml
check_true "the installed configuration is good" sluicectl check /etc/sluice/sluice.yaml
check_is "every limit of it is in shadow mode" "$(grep -c 'mode: shadow' /etc/sluice/sluice.yaml)" \
	"$(grep -c -- '- name:' /etc/sluice/sluice.yaml)"
check_true "it serves metrics and the status page on loopback" grep -qx 'metrics: {listen: 127.0.0.1:9810}' /etc/sluice/sluice.yaml
route=$(ip -o route show default | awk '{ for (i = 1; i < NF; i++) if ($i == "dev") { print $(i + 1); exit } }')
check_true "it names the interface of the default route (${route:-none}), and the installation says so" \
	grep -qE "${route:-no default route}.*(shadow mode|name the interfaces)" "$LAB/apt"
printf '#include <sluice.h>\nint main(void) { return !sluice_try; }\n' > "$LAB/use.c"
# shellcheck disable=SC2046
check_true "a program compiles and links with the library" gcc -o "$LAB/use" "$LAB/use.c" $(pkg-config --cflags --libs sluice)
check_true "and runs" "$LAB/use"
# Without zlib1g-dev, for instance.
# shellcheck disable=SC2046
check_true "statically it needs nothing but libc" gcc -static -o "$LAB/alone" "$LAB/use.c" \
	$(pkg-config --static --cflags --libs sluice | tee "$LAB/libs")
check_true "no other library is named" eval '! grep -qE " -l(z|event|ssl)" "$LAB/libs"'

# The installed programs, as the unit starts them.
lab_link 0
BIN_BUILT=$BIN
BIN=/usr/sbin
ctl() {
	sluicectl -s "$SOCKET" "$@"
}
daemon_start <<'YAML'
interfaces: [{name: s0, mode: native}]
limits:
  - {name: web, match: {dport: 80}, rate: 10 packets/h, burst: 100}
YAML
BIN=$BIN_BUILT
sink_start s0
blast "$LAB/sent" --dst $SERVER4 --dport 80 --src 10.1.1.1 --count 60 --pps 2000
check_is "installed: below the limit all pass" "$(sink_stop s0; packets_passed s0 10.1.1.1)" 60

# bans: the SSH brute force of the next address ends in a block. As on a machine: fail2ban's own files.
fails() {
	for _ in {1..6}; do
		date "+%b %e %H:%M:%S host sshd[99]: Failed password for root from $1 port 40000 ssh2"
	done >> /var/log/auth.log
}
blocked() { ctl -o json block list | jq -e --arg p "$1" '.entries[] | select(.prefix | startswith($p))' > "$LAB/block"; }
in_nft() { on_server nft list set inet f2b-table addr-set-sshd 2> "$LAB/out" | grep -qw "$1"; }
apt-get -q install -y "$LAB/$old"/sluice-fail2ban_*.deb > "$LAB/apt" 2>&1 || not_ok "apt-get install sluice-fail2ban"
check_true "apt-get install sluice-fail2ban: fail2ban is there" command -v fail2ban-server > "$LAB/out"
# Of an earlier run in this root.
rm -rf /var/log/fail2ban.log /var/lib/fail2ban/*
touch /var/log/auth.log
mkdir -p /run/fail2ban
printf '[sshd]\nbackend = polling\nlogpath = /var/log/auth.log\n' > /etc/fail2ban/jail.d/test.local
printf '[Init]\nsluicectl = /usr/bin/sluicectl -s %s\n' "$SOCKET" > /etc/fail2ban/action.d/sluice.local
"${IN_S[@]}" fail2ban-server -f > "$LAB/fail2ban" 2>&1 &
started
FAIL2BAN=$!
wait_for 20 fail2ban-client ping > "$LAB/out" || not_ok "fail2ban: $(tail -n 3 "$LAB/fail2ban" /var/log/fail2ban.log)"
fails 10.1.1.66
wait_for 30 blocked 10.1.1.66 || not_ok "fail2ban: $(tail -n 9 /var/log/fail2ban.log)"
check_is "fail2ban of this Debian: SSH brute force is blocked" "$(jq -r .reason "$LAB/block")" "fail2ban sshd"
check "for its ban's time" "$(jq '.left_ns / 1e9 | floor' "$LAB/block")" 1 600
check_is "no error" "$(grep -c ERROR /var/log/fail2ban.log)" 0
daemon_kill TERM
fails 10.1.1.67
check_true "without sluiced nftables has the ban" wait_for 30 in_nft 10.1.1.67
errors() { grep 'ERROR.*Failed to execute ban' /var/log/fail2ban.log; }
check_true "and the log the error" wait_for 30 errors > "$LAB/out"
mv /usr/bin/sluicectl /usr/bin/sluicectl.away
fails 10.1.1.68
check_true "without the package sluice, too" wait_for 30 in_nft 10.1.1.68
fail2ban-client set sshd unbanip 10.1.1.68 > "$LAB/out"
gone_in_nft() { ! in_nft 10.1.1.68; }
check_true "whose action has ended" wait_for 30 gone_in_nft
check_is "without an error" "$(errors | wc -l)" 1
mv /usr/bin/sluicectl.away /usr/bin/sluicectl
fail2ban-client stop > "$LAB/out"
wait $FAIL2BAN
rm /etc/fail2ban/jail.d/test.local /etc/fail2ban/action.d/sluice.local /var/log/auth.log
BIN=/usr/sbin
daemon_run
BIN=$BIN_BUILT
ctl block del 10.1.1.66 > "$LAB/out"

# Upgraded while packets come, to a version whose program is loaded anew.
sed -i "s/^VERSION := .*/VERSION := $new/" Makefile
sed -i "1s/($old)/($new)/" debian/changelog
make all > build.log 2>&1 || not_ok "the next version does not build"
packages "$new"
sink_start s0
blast_bg "$LAB/flood" --dst $SERVER4 --dport 80 --src 10.1.1.1 --count 100000 --pps 10000
apt-get -q install -y "$LAB/$new"/{sluice,libsluice0,libsluice-dev,sluice-doc,sluice-fail2ban}_*.deb > "$LAB/apt" 2>&1 || not_ok "upgrade"
check_is "upgraded" "$(sluicectl version)" "sluicectl $new"
daemon_kill TERM
BIN=/usr/sbin
daemon_run
BIN=$BIN_BUILT
check_is "the next daemon runs" "$(ctl status -o json | jq -r .version)" "$new"
blast_wait
sink_stop s0
check_is "before, during and after the upgrade the limit held: the rest of the burst" \
	"$(packets_passed s0 10.1.1.1)" 40

# Removed: nothing stays on the interface, nothing is pinned.
daemon_kill TERM
mkdir -p /etc/sluice
cp "$CONFIG" /etc/sluice/sluice.yaml
"${IN_S[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q remove -y sluice > "$LAB/apt" 2>&1 || not_ok "apt-get remove"
check_true "no XDP program is left" eval '! on_server ip link show s0 | grep -q xdp'
check_true "no pin is left" test ! -e "$PIN"
check_true "the configuration stays" test -e /etc/sluice/sluice.yaml
apt-get -q purge -y sluice-fail2ban sluice sluice-doc libsluice-dev libsluice0 > "$LAB/apt" 2>&1 || not_ok "apt-get purge"
find / -xdev \( -path /proc -o -path /sys -o -path /src -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg \
	-o -path /var/log -o -path /tmp \) -prune -o -type f -print | sort > "$LAB/after"
check_true "nor the configuration" test ! -e /etc/sluice
check_is "purged: no file is left" "$(comm -13 "$LAB/before" "$LAB/after" | grep -c sluice)" 0
lab_done
