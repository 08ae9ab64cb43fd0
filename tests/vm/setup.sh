#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# setup.sh - what run.sh needs, under build/vm: qemu (installed where it is missing), and
# Debian's kernels, busybox and kmod, downloaded and unpacked there, not installed.
#
#     setup.sh [VERSION...]     such as 6.1.0-56-amd64; without: the newest 6.1 and 6.12
#
# Prints the directory of each kernel. Needs root, and apt's network.

set -eu
cd "$(dirname "$0")/../.."
VM=$PWD/build/vm
mkdir -p "$VM/deb" "$VM/kernel"

# Old versions leave the archive: ask for what there is now.
newest() {
	apt-cache search --names-only "^linux-image-$1.*-amd64\$" | awk '{ print $1 }' |
		sed -n 's/^linux-image-\(.*[0-9]\(+deb[0-9]*\)\?-amd64\)$/\1/p' | sort -V | tail -1
}

# unpack PACKAGE DIRECTORY
unpack() {
	[ -d "$2" ] && return
	(cd "$VM/deb" && apt-get -qq -o APT::Sandbox::User=root download "$1")
	mkdir -p "$2.new"
	dpkg -x "$(ls -t "$VM/deb/$1"_*.deb | head -1)" "$2.new"
	mv "$2.new" "$2"
}

if ! command -v qemu-system-x86_64 > /dev/null; then
	DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
		qemu-system-x86 >&2
fi
unpack busybox-static "$VM/busybox" >&2
unpack kmod "$VM/kmod" >&2
unpack libkmod2 "$VM/libkmod" >&2

[ $# -gt 0 ] || set -- "$(newest '6\.1\.0-')" "$(newest '6\.12\.')"
for version in "$@"; do
	unpack "linux-image-$version" "$VM/kernel/$version" >&2
	[ -f "$VM/kernel/$version/lib/modules/$version/modules.dep" ] ||
		tests/vm/kmod.sh depmod -b "$VM/kernel/$version" "$version" >&2
	echo "$VM/kernel/$version"
done
