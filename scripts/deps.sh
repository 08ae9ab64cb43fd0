#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# deps.sh - the packages that sluice is built, tried and tested with.
#
#   deps.sh [build|run|test]    installs what is missing for `make`, `make run`, or everything (test).
#                               As root, with apt; elsewhere it names what is missing. Starts no service.
#   deps.sh check build|tests   installs nothing: names what is missing to compile the programs, or their
#                               tests too, and the command that installs it; exit 1. make runs this first.
#
# A package is there if what is used of it is found: a program, a pkg-config module, a header, a Python
# module. CC, CLANG, BPFTOOL and PKG_CONFIG in the environment are those of the Makefile.

set -u
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

CC=${CC:-gcc} CC=${CC#ccache } CC=${CC%% *}
PKG_CONFIG=${PKG_CONFIG:-pkg-config}

# PACKAGE program NAME | header FILE | python MODULE | module NAME,... HEADER
BUILD="
gcc program $CC
make program make
clang program ${CLANG:-clang}
bpftool program ${BPFTOOL:-bpftool}
pkg-config program $PKG_CONFIG
protobuf-c-compiler program protoc-c
libc6-dev header stdio.h
linux-libc-dev header linux/bpf.h
zlib1g-dev header zlib.h
libhttp-parser-dev header http_parser.h
libbpf-dev module libbpf bpf/libbpf.h
libxdp-dev module libxdp xdp/libxdp.h
libevent-dev module libevent,libevent_pthreads,libevent_openssl event2/event.h
libssl-dev module openssl openssl/ssl.h
libyaml-dev module yaml-0.1 yaml.h
libjansson-dev module jansson jansson.h
libsystemd-dev module libsystemd systemd/sd-daemon.h
libncurses-dev module ncursesw curses.h
libpcap-dev header pcap/pcap.h
libcap-dev module libcap sys/capability.h
libseccomp-dev module libseccomp seccomp.h
liburcu-dev module liburcu urcu.h
libnghttp2-dev module libnghttp2 nghttp2/nghttp2.h
libprotobuf-c-dev module libprotobuf-c protobuf-c/protobuf-c.h
libhiredis-dev module hiredis hiredis/hiredis.h
libsqlite3-dev module sqlite3 sqlite3.h"
# Compiled into the tests.
TESTS="
libcmocka-dev header cmocka.h"
# The labs of make run.
RUN="
ethtool program ethtool
iproute2 program ip
jq program jq
procps program ps
util-linux program nsenter
python3 program python3
curl program curl
nginx program nginx"
# llvm: llvm-symbolizer, for names in what the fuzzers report.
TEST="
diffutils program cmp
clang-format program clang-format
nftables program nft
wireguard-tools program wg
tcpdump program tcpdump
tshark program tshark
tmux program tmux
zsh program zsh
python3-yaml python yaml
prometheus program promtool
chromium program chromium
openssh-server program sshd
openssh-client program ssh
haproxy program haproxy
fail2ban program fail2ban-server
caddy program caddy
nodejs program node
npm program npm
nghttp2-client program h2load
wrk program wrk
openssl program openssl
systemd program systemd-analyze
redis-server program redis-server
redis-sentinel program redis-sentinel
redis-tools program redis-cli
llvm program llvm-symbolizer"

# Those of the arguments that no directory of the compiler has.
headers_missing() {
	local header dir

	if command -v "$CC" > /dev/null; then
		for header in "$@"; do
			printf '#if !__has_include(<%s>)\nmissing "%s"\n#endif\n' "$header" "$header"
		done | "$CC" ${CPPFLAGS:-} -E -P -x c - 2> /dev/null | sed -n 's/^missing "\(.*\)"$/\1/p'
		return
	fi
	for header in "$@"; do
		for dir in /usr/include "/usr/include/$(uname -m)-linux-gnu" /usr/local/include; do
			[ -e "$dir/$header" ] && continue 2
		done
		echo "$header"
	done
}

# look LIST: packages of it that are missing go into $missing, a line of why for each into $why.
missing= why=
look() {
	local package kind name header headers=() packages=() absent module modules=none

	if command -v "$PKG_CONFIG" > /dev/null; then
		# All at once, as is usual; else each.
		name=$(awk '$2 == "module" { gsub(",", " ", $3); print $3 }' <<< "$1")
		modules=each
		"$PKG_CONFIG" --exists $name 2> /dev/null && modules=all
	fi
	while read -r package kind name header; do
		case $kind in
		program)
			command -v "$name" > /dev/null && continue
			# Asked for by name: CC=tcc is no package's.
			[ "$package" = gcc ] && package=$CC
			miss "$package" "there is no program $name"
			;;
		python)
			/usr/bin/python3 -c "import $name" 2> /dev/null || miss "$package" "python3 has no module $name"
			;;
		module)
			[ $modules = all ] && continue
			if [ $modules = none ]; then
				headers+=("$header") packages+=("$package")
				continue
			fi
			for module in ${name//,/ }; do
				"$PKG_CONFIG" --exists "$module" 2> /dev/null && continue
				miss "$package" "pkg-config finds no $module"
				break
			done
			;;
		header)
			headers+=("$name") packages+=("$package")
			;;
		esac
	done <<< "${1#$'\n'}"
	[ ${#headers[@]} = 0 ] && return
	absent=" $(headers_missing "${headers[@]}" | tr '\n' ' ')"
	for i in "${!headers[@]}"; do
		[[ $absent == *" ${headers[i]} "* ]] && miss "${packages[i]}" "there is no header <${headers[i]}>"
	done
}

miss() {
	missing+=" $1"
	why+="$1 is missing: $2"$'\n'
}

mode=install
[ "${1:-}" = check ] && mode=check && shift
case ${1:-test} in
build) want=$BUILD ;;
tests) want=$BUILD$TESTS ;;
run) want=$BUILD$RUN ;;
test) want=$BUILD$TESTS$RUN$TEST ;;
*)
	echo "usage: deps.sh [build|run|test] | check build|tests" >&2
	exit 2
	;;
esac
look "$want"
[ -z "$missing" ] && exit 0

if [ $mode = check ] || [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
	printf '%s' "$why" >&2
	if command -v apt-get > /dev/null; then
		echo "Install what is missing with: apt-get install$missing (or: sudo make deps)" >&2
	else
		echo "Install the packages of this system that have what Debian has in:$missing" >&2
	fi
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
# Only of what was installed here: a machine that has an sshd keeps it.
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
for server in nginx haproxy caddy redis-server redis-sentinel; do
	case " $missing " in
	*" $server "*) leave_off $server ;;
	esac
done
case " $missing " in
*" openssh-server "*)
	leave_off ssh
	rm -f /etc/systemd/system/sshd.service
	;;
esac

missing= why=
hash -r
look "$want"
[ -z "$missing" ] && exit 0
printf 'deps: installed, but still: %s' "$why" >&2
exit 1
