#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# deps.sh - what building and testing need. Installs only what is missing, and only as root on a
# machine with apt; elsewhere it names what is missing and fails. Starts no service.
#
#   deps.sh           what `make`, `make test` and `make run` need
#   deps.sh build     what `make` alone needs

set -u

BUILD="gcc make clang llvm bpftool pkg-config libc6-dev linux-libc-dev libelf-dev zlib1g-dev
	libbpf-dev libxdp-dev libevent-dev libyaml-dev libjansson-dev libsystemd-dev
	libncurses-dev libcap-dev libseccomp-dev libssl-dev liburcu-dev libhttp-parser-dev
	libnghttp2-dev libhiredis-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler"
TEST="diffutils libcmocka-dev liblua5.1-0-dev nftables tcpdump ethtool iproute2 jq procps util-linux python3 python3-yaml prometheus
	openssh-server openssh-client nginx haproxy caddy nodejs npm nghttp2-client wrk curl openssl redis-server redis-sentinel redis-tools"

want="$BUILD"
[ "${1:-}" = build ] || want="$BUILD $TEST"

if ! command -v dpkg-query > /dev/null; then
	missing=
	for tool in gcc clang bpftool pkg-config; do
		command -v "$tool" > /dev/null || missing="$missing $tool"
	done
	[ -z "$missing" ] && exit 0
	echo "deps: not a Debian system and missing:$missing; needed are the equivalents of:" $want >&2
	exit 1
fi

installed() {
	dpkg-query -W -f='${Status}' "$1" 2> /dev/null | grep -q 'ok installed'
}

missing=
for package in $want; do
	# Of prometheus only promtool is used.
	[ "$package" = prometheus ] && command -v promtool > /dev/null && continue
	# Node.js from elsewhere brings its own npm, which Debian's does not go with.
	case $package in
	nodejs) command -v node > /dev/null && continue ;;
	npm) command -v npm > /dev/null && continue ;;
	esac
	installed "$package" || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" != 0 ]; then
	echo "deps: missing:$missing" >&2
	echo "deps: run as root, or: apt-get install$missing" >&2
	exit 1
fi

echo "deps: installing$missing"
# A package that brings a daemon (prometheus, openssh-server) must not start it: policy-rc.d says
# no to every invoke-rc.d. It is put there only where there is none, and only for the time of this.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	trap 'rm -f $policy' EXIT
	printf '#!/bin/sh\nexit 101\n' > $policy
	chmod 755 $policy
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -q update && apt-get -q install -y --no-install-recommends $missing || exit 1

# deb-systemd-helper enables what it does not start: not at the next boot either.
# Only of what was installed here: who has an sshd keeps it.
leave_off() {
	for unit in "$@"; do
		[ -d /run/systemd/system ] && systemctl disable --now "$unit" > /dev/null 2>&1
		rm -f "/etc/systemd/system/multi-user.target.wants/$unit.service" \
			"/etc/systemd/system/sockets.target.wants/$unit.socket"
	done
}
case " $missing " in
*" prometheus "*) leave_off prometheus prometheus-node-exporter ;;
esac
for server in nginx haproxy caddy; do
	case " $missing " in
	*" $server"*) leave_off $server ;;
	esac
done
case " $missing " in
*" openssh-server "*)
	leave_off ssh
	rm -f /etc/systemd/system/sshd.service
	;;
esac
exit 0
