#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# deb_inside.sh - the packages, in a root that may be changed (scripts/distro.sh deb): built, checked by
# lintian; installed, limiting packets of a wire, upgraded while they come, removed, purged.

. "$(dirname "$0")/../tests/lib/netns.sh"
lab_begin deb
cd "$REPO" || exit 1

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
check_is "four packages, and their symbols" "$(find "$LAB/$old" -name '*.deb' ! -name '*-dbgsym*' | wc -l)" 4
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
check_true "the installed configuration is good" sluicectl check /etc/sluice/sluice.yaml
check_is "every limit of it is in shadow mode" "$(grep -c 'mode: shadow' /etc/sluice/sluice.yaml)" \
	"$(grep -c -- '- name:' /etc/sluice/sluice.yaml)"
route=$(ip -o route show default | awk '{ for (i = 1; i < NF; i++) if ($i == "dev") { print $(i + 1); exit } }')
check_true "it names the interface of the default route (${route:-none}), and the installation says so" \
	grep -qE "${route:-no default route}.*(shadow mode|name the interfaces)" "$LAB/apt"
printf '#include <sluice.h>\nint main(void) { return !sluice_try; }\n' > "$LAB/use.c"
# shellcheck disable=SC2046
check_true "a program compiles and links with the library" gcc -o "$LAB/use" "$LAB/use.c" $(pkg-config --cflags --libs sluice)
check_true "and runs" "$LAB/use"

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

# Upgraded while packets come, to a version whose program is loaded anew.
sed -i "s/^VERSION := .*/VERSION := $new/" Makefile
sed -i "1s/($old)/($new)/" debian/changelog
make all > build.log 2>&1 || not_ok "the next version does not build"
packages "$new"
sink_start s0
blast_bg "$LAB/flood" --dst $SERVER4 --dport 80 --src 10.1.1.1 --count 100000 --pps 10000
apt-get -q install -y "$LAB/$new"/{sluice,libsluice0,libsluice-dev,sluice-doc}_*.deb > "$LAB/apt" 2>&1 || not_ok "upgrade"
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
apt-get -q purge -y sluice sluice-doc libsluice-dev libsluice0 > "$LAB/apt" 2>&1 || not_ok "apt-get purge"
find / -xdev \( -path /proc -o -path /sys -o -path /src -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg \
	-o -path /var/log -o -path /tmp \) -prune -o -type f -print | sort > "$LAB/after"
check_true "nor the configuration" test ! -e /etc/sluice
check_is "purged: no file is left" "$(comm -13 "$LAB/before" "$LAB/after" | grep -c sluice)" 0
lab_done
