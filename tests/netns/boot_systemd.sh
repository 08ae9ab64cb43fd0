#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# boot_systemd.sh - a real boot of systemd in namespaces of its own, over a copy-on-write root of this machine's files,
# with the unit as it is installed: a flood comes in from before the boot, and of a limit of ten an hour ten
# packets pass. (The same in a virtual machine, with a virtio card and other kernels: make vmtest.)

. "$(dirname "$0")/../lib/netns.sh"
lab_begin boot_systemd
[ -x /lib/systemd/systemd ] && grep -qw overlay /proc/filesystems || {
	skip "needs systemd and overlayfs"
	lab_done
	exit 0
}
OUT=$LAB/out
mkdir -p "$OUT"
make -s -C "$REPO" install DESTDIR="$OUT/installed" > "$LAB/install" 2>&1 || {
	not_ok "make install"
	cat "$LAB/install"
}

# The wire: its end in the machine is down until systemd-networkd brings it up.
lab_link 0
ip -n "$NS_S" addr flush dev s0
ip -n "$NS_S" link set s0 down
flood() {
	until on_client "$TOOLS/netns/blast" --interface c0 --mac $MAC_S --src 192.0.2.9 --dst 192.0.2.2 --proto udp \
		--dport "$1" --pps 1000 --time 120 > /dev/null 2>&1; do
		sleep 0.02
	done
}
for port in 9 10; do
	flood $port &
	started
	disown $!
done

# The machine's processes are in a cgroup of their own, in each hierarchy that systemd may use.
groups=()
for root in /sys/fs/cgroup/{systemd,unified,.}; do
	[ ! -w $root/cgroup.procs ] || groups+=("$root/$LAB_ID")
done
mkdir -p "${groups[@]}"
# shellcheck disable=SC2016
boot='
	set -e
	trap "" INT
	out=$1 repo=$2
	root=$out/root
	mkdir "$root"
	mount -t tmpfs tmpfs "$root"
	mkdir "$root"/{files,work,new}
	mount -t overlay -o "lowerdir=/,upperdir=$root/files,workdir=$root/work" overlay "$root/new"
	root=$root/new
	mount -t proc proc "$root/proc"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
	mount -t bpf bpf "$root/sys/fs/bpf"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs tmpfs "$root/run"
	mkdir "$root/run/out"
	mount --bind "$out" "$root/run/out"
	mkdir -p "$root$repo"
	mount --bind "$repo" "$root$repo"
	cd "$root"
	pivot_root . mnt
	umount -l /mnt
	export PATH=/usr/sbin:/usr/bin:/sbin:/bin
	bash "$repo/tests/lib/boot_prepare.sh" s0
	exec env -i container=sluice PATH=$PATH /lib/systemd/systemd --unit=boot.target --show-status=0'
(
	for group in "${groups[@]}"; do
		echo $BASHPID > "$group/cgroup.procs"
	done
	exec "${IN_S[@]}" unshare --mount --propagation private --pid --fork --kill-child --ipc --uts --cgroup --mount-proc \
		bash -c "$boot" - "$OUT" "$REPO" > "$LAB/boot" 2>&1
) &
BOOT=$!
started
wait_for 90 bash -c "! kill -0 $BOOT 2> /dev/null"
for group in "${groups[@]}"; do
	find "$group" -depth -type d -exec rmdir {} + 2> /dev/null
done
cat "$LAB/boot"
[ -s "$OUT/said" ] && cat "$OUT/said" || not_ok "nothing was judged"
check_is "every line of the judge" "$(cat "$OUT/status" 2> /dev/null)" 0
lab_done
