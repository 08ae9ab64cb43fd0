#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# run.sh KERNEL SCRIPT - runs SCRIPT as root under another kernel, in qemu without hardware
# support, and ends with its status: 124 after TIMEOUT seconds, 126 where the machine died.
#
# KERNEL is a directory of setup.sh's. The machine's root is this one's, read-only, under a
# tmpfs: the tests use what is installed here, and no change of theirs stays. There is no
# network but what SCRIPT makes. SMP=N: so many CPUs, 2 without. Boots in 5 to 10 seconds.
#
# BOOT=SCRIPT2: SCRIPT is the first process, and goes on as systemd; the program is installed under
# /run/out/installed; eth0 is a virtio card, and SCRIPT2 runs in a network namespace of its own, where
# the other end is tap0.

set -u
HERE=$(dirname "$(readlink -f "$0")")
VM=$(readlink -f "$HERE/../../build/vm")
KERNEL=$(readlink -f "${1:?KERNEL}")
SCRIPT=$(readlink -f "${2:?SCRIPT}")
VERSION=$(basename "$KERNEL")
: "${TIMEOUT:=600}"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir -p "$WORK"/first/{bin,dev,proc,sys,modules,lower,upper,new} "$WORK/out"

# ---- the first root: loads what 9p and overlay need, and goes over to the shared one
cp "$VM/busybox/bin/busybox" "$WORK/first/bin/"
for module in virtio_pci 9pnet_virtio 9p overlay; do
	"$HERE/kmod.sh" modprobe -d "$KERNEL" -S "$VERSION" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
	name=$(basename "${file%.xz}")
	case $file in
	*.xz) xz -dc "$file" ;;
	*) cat "$file" ;;
	esac > "$WORK/first/modules/$name"
	echo "$name" >> "$WORK/first/modules/order"
done
cat > "$WORK/first/init" << 'END'
#!/bin/busybox sh
b=/bin/busybox
share() {
	$b mount -t 9p -o "trans=virtio,version=9p2000.L,msize=512000,$1" "$2" "$3"
}
$b mount -t devtmpfs dev /dev
$b mount -t proc proc /proc
for m in $($b cat /modules/order); do
	$b insmod "/modules/$m"
done
share ro,cache=loose root /lower
$b mount -t tmpfs tmpfs /upper
$b mkdir /upper/files /upper/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /new
$b mount -t sysfs sys /new/sys
$b mount -t proc proc /new/proc
$b mount --move /dev /new/dev
$b mount -t tmpfs tmpfs /new/run
$b mkdir -p /new/run/out /new/run/netns
share cache=none out /new/run/out
$b cp /second /new/run/second
$b umount /proc
exec $b switch_root /new /bin/bash /run/second
END
cat > "$WORK/first/second" << 'END'
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LANG=C.UTF-8
mkdir -p /dev/pts /dev/shm /usr/lib/modules
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t bpf bpf /sys/fs/bpf
mount -t tracefs tracefs /sys/kernel/tracing
mount --bind "$vm_kernel/lib/modules" /usr/lib/modules
for module in veth sch_ingress cls_bpf; do
	"$vm_here/kmod.sh" modprobe "$module"
done
ip link set lo up
cd /
[ -z "$vm_boot" ] || exec bash "$vm_script"
setsid -w bash "$vm_script" < /dev/null
echo $? > /run/out/status
sync
echo o > /proc/sysrq-trigger
sleep 60
END
chmod +x "$WORK/first/init"
(cd "$WORK/first" && find . | "$VM/busybox/bin/busybox" cpio -o -H newc 2> /dev/null |
	gzip -1) > "$WORK/initrd"

# ---- the machine
card=() outside=(env)
if [ -n "${BOOT:-}" ]; then
	make -s -C "$HERE/../.." install DESTDIR="$WORK/out/installed" > /dev/null || exit 125
	card=(-netdev tap,id=n0,ifname=tap0,script=no,downscript=no,vhost=off,queues=2
		-device virtio-net-pci,netdev=n0,romfile=,mq=on,vectors=6,mac=52:54:00:00:00:01)
	# shellcheck disable=SC2016
	outside=(unshare -n bash -c 'ip tuntap add tap0 mode tap multi_queue vnet_hdr; ip link set tap0 up
		bash "$0" & flood=$!; "$@"; status=$?; kill $flood; wait; exit $status' "$(readlink -f "$BOOT")")
fi
"${outside[@]}" timeout -k 5 "$TIMEOUT" qemu-system-x86_64 -M q35 -accel tcg,thread=multi,tb-size=512 \
	-cpu max,la57=off -smp "${SMP:-2}" -m 2048 -nodefaults -no-user-config -display none -monitor none \
	-serial stdio -no-reboot -kernel "$KERNEL/boot/vmlinuz-$VERSION" -initrd "$WORK/initrd" \
	-append "console=ttyS0 quiet panic=-1 mitigations=off net.ifnames=0 vm_boot=${BOOT:+1} vm_kernel=$KERNEL vm_here=$HERE vm_script=$SCRIPT" \
	-virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
	-virtfs "local,path=$WORK/out,mount_tag=out,security_model=none,multidevs=remap" "${card[@]}" \
	< /dev/null | tr -d '\r'
status=${PIPESTATUS[0]}
[ ! -f "$WORK/out/said" ] || cat "$WORK/out/said"
[ -f "$WORK/out/status" ] && exit "$(cat "$WORK/out/status")"
[ "$status" = 124 ] || [ "$status" = 137 ] && exit 124
exit 126
