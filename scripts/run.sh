#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# run.sh - `make run`: the labs of packets and of requests; with IFACE=eth0 in the environment, the limiter on that interface
# with docs/examples/quickstart.yaml, in the foreground until Ctrl-C, then detached.

set -u
cd "$(dirname "$0")/.." || exit 1
if [ -z "${IFACE:-}" ]; then
	SLUICE_SEEN=$(mktemp) || exit 1
	export SLUICE_SEEN
	trap 'rm -f "$SLUICE_SEEN"' EXIT
	scripts/lab.sh && scripts/lab_http.sh
	status=$?
	printf '\n== seen\n'
	cat "$SLUICE_SEEN"
	[ $status = 0 ] || { echo "a check failed: see 'not ok' above" >&2; exit $status; }
	printf '\n== next\n'
	echo "sudo make run IFACE=eth0                              limit a real interface until Ctrl-C"
	echo "build/sluicectl check docs/examples/quickstart.yaml   check a configuration; then write your own"
	echo "sudo make install                                     docs/operations.md has the rest"
	exit 0
fi

if [ "$(id -u)" != 0 ]; then
	echo "run it as root" >&2
	exit 1
fi
if [ ! -e "/sys/class/net/$IFACE" ] && ! ip link show dev "$IFACE" > /dev/null 2>&1; then
	echo "no interface $IFACE; there are: $(ip -br link | awk '{ printf "%s ", $1 }')" >&2
	exit 1
fi
scripts/bpffs.sh || exit 1

dir=$(mktemp -d) || exit 1
pin=/sys/fs/bpf/sluice-run
config=$dir/sluice.yaml
socket=$dir/control.sock
example=docs/examples/quickstart.yaml

# The example attaches to nothing: IFACE is put in; sockets, state and pins are this run's own.
sed -E "s/^interfaces: .*/interfaces: [{name: '$IFACE'}]/; /^(control|state_dir|pin_dir):/d" \
	"$example" > "$config"
cat >> "$config" <<-YAML
control: {socket: $socket}
state_dir: $dir/state
pin_dir: $pin
YAML
if ! grep -q "^interfaces: \[{name: '$IFACE'}\]" "$config"; then
	echo "$example has no line 'interfaces: ...' to put $IFACE in" >&2
	exit 1
fi

# Another sluiced of this host may have it.
if ss -Hltn 'sport = :9810' 2> /dev/null | grep -q .; then
	sed -i '/^metrics:/d' "$config"
	echo "port 9810 is in use: no metrics and no status page here"
fi

daemon=
clean() {
	trap - EXIT INT TERM
	if [ -n "$daemon" ]; then
		echo "detaching $IFACE"
		build/sluicectl -s "$socket" detach "$IFACE"
		status=$?
		kill -TERM "$daemon" 2> /dev/null
		wait "$daemon" 2> /dev/null
	fi
	rm -rf "$pin" "$dir"
	exit "${status:-1}"
}
trap clean EXIT
trap 'exit 0' INT TERM

mkdir -p "$dir/state"
# In a process group of its own: Ctrl-C is for this script, which detaches first.
set -m
build/sluiced -c "$config" &
daemon=$!
set +m
for _ in $(seq 200); do
	build/sluicectl -s "$socket" status > /dev/null 2>&1 && break
	kill -0 $daemon 2> /dev/null || { wait $daemon; daemon=; exit 1; }
	sleep 0.05
done
build/sluicectl -s "$socket" status
echo
echo "sluice limits what $IFACE receives, by $example. In another terminal:"
echo "    build/sluicectl -s $socket stats"
echo "    build/sluicectl -s $socket limit list"
echo "Ctrl-C stops it and takes it off."
wait $daemon
daemon=
echo "sluiced ended by itself; taking the limits off needs it to run" >&2
exit 1
