#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# container.sh - docs/examples/Containerfile, built by buildah on a base image made here (debootstrap), and run:
# without root, it answers requests, refuses those over a limit, and keeps counts over a restart. Needs root;
# everything is under build/container, removed at the end.

. "$(dirname "$0")/../tests/lib/netns.sh"
lab_begin container
cd "$REPO" || exit 1

OUT=$PWD/build/container
buildah() {
	command buildah --root "$OUT/storage" --runroot "$OUT/run" --storage-driver vfs "$@"
}
fail() {
	not_ok "$*"
	lab_done
	exit 1
}
command -v buildah > /dev/null && command -v debootstrap > /dev/null ||
	apt-get -q install -y --no-install-recommends buildah debootstrap > "$LAB/apt" 2>&1 ||
	fail "buildah and debootstrap cannot be installed"
[ -n "$(ls build/deb/sluice_*.deb 2> /dev/null)" ] || make deb > "$LAB/deb" 2>&1 || fail "make deb"
rm -rf "$OUT"
mkdir -p "$OUT"
SUITE=bookworm ROOT=$OUT/base scripts/distro.sh base || fail "no base"
base=$(buildah from scratch)
buildah add -q "$base" "$OUT/base" / > /dev/null && buildah commit -q "$base" base > /dev/null || fail "the base image"
buildah bud -q --format docker --isolation chroot --build-arg BASE=localhost/base -t sluice -f docs/examples/Containerfile . \
	> "$LAB/bud" 2>&1 || { tail "$LAB/bud"; fail "the image cannot be built"; }
ok "the image is built"
check_is "it has a health check" "$(buildah inspect --type image sluice | jq -c .Docker.config.Healthcheck.Test)" \
	'["CMD","/usr/bin/sluicectl","status"]'
box=$(buildah from sluice)
image=$(buildah mount "$box")
check "its size, KiB" "$(du -sk "$image" | cut -f1)" 1000 30720
check_is "no shell, no systemd" "$(ls "$image/bin" "$image/usr/bin/sh" "$image/lib/systemd" 2> /dev/null)" ""

# Runs the entry point in the lab's network, as the image's user.
run() {
	"${IN_S[@]}" "$(command -v buildah)" --root "$OUT/storage" --runroot "$OUT/run" --storage-driver vfs \
		run --isolation chroot --cap-drop all "$box" -- /usr/sbin/sluiced -c /etc/sluice/sluice.yaml \
		>> "$LAB/daemon.log" 2>&1 &
	RUNNING=$!
	disown $RUNNING
	wait_for 10 on_server curl -s -o /dev/null http://127.0.0.1:8180/v1/check || fail "it does not answer"
}
stop() {
	pkill -TERM -P "$(pgrep -P $RUNNING | head -1)" -f sluiced
	wait_for 10 bash -c "! kill -0 $RUNNING 2> /dev/null"
}
# login COUNT: how many are allowed of one address, whose limit is 20 in 10 minutes
login() {
	for ((i = 0; i < $1; i++)); do
		on_server curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8180/v1/check -d \
			'{"domain":"login","descriptors":[{"entries":[{"key":"source","value":"198.51.100.7"}]}]}'
	done | grep -c 200
}
lab_link 0
run
check_is "it runs as sluice" "$(ps -o uid= -p "$(pgrep -f '^/usr/sbin/sluiced -c /etc/sluice' | head -1)" | xargs)" \
	"$(sed -n 's/^sluice:x:\([0-9]*\):.*/\1/p' "$image/etc/passwd")"
check_true "the health check is content" buildah run --isolation chroot "$box" -- /usr/bin/sluicectl status
check_is "20 of 25 requests are allowed" "$(login 25)" 20
stop
run
check_is "and after a restart none" "$(login 5)" 0
stop
rm -rf "$OUT"
lab_done
