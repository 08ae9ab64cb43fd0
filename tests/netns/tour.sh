#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# tour.sh - docs/tour.md: its commands are run in their order, on a daemon and real packets, and print what the
# page shows: each line of a ```text block after a command is in its output, numbers, dates and blanks aside.
# They are tried until they do, for ten seconds at most. A comment <!--traffic: OPTIONS--> starts a stream of
# frames. A line's "# exit 0 or 1" is what it may exit with. Nothing of the page is rewritten: its interface and
# its paths are there.

. "$(dirname "$0")/../lib/netns.sh"
lab_begin tour
lab_link 0
ip -n "$NS_S" link set s0 down
ip -n "$NS_S" link set s0 name eth0 up

mkdir "$LAB/bin" "$LAB/etc"
CONFIG=$LAB/etc/sluice.yaml
# installed COMMAND: the lab's files are /etc/sluice and /var/lib/sluice to it.
installed() {
	"${IN_S[@]}" unshare --mount bash -c '
		lab=$1; shift
		for dir in /etc /var/lib; do
			mkdir -p "$lab/over$dir/up/sluice" "$lab/over$dir/work"
			mount -t overlay overlay -o "lowerdir=$dir,upperdir=$lab/over$dir/up,workdir=$lab/over$dir/work" $dir || exit 99
		done
		mount --bind "$lab/etc" /etc/sluice && mount --bind "$lab/state" /var/lib/sluice || exit 99
		exec "$@"' -- "$LAB" "$@"
}
cat > "$LAB/bin/sluicectl" <<SH
#!/bin/bash
exec "$BIN/sluicectl" -s "$SOCKET" "\$@"
SH
cat > "$LAB/bin/pidof" <<SH
#!/bin/bash
cat "$LAB/pid"
SH
chmod +x "$LAB"/bin/*
PATH=$LAB/bin:$PATH
for ((i = 0; i < 20000; i++)); do
	echo "100.$((64 + i / 65536)).$((i / 256 % 256)).$((i % 256))"
done > "$LAB/feed.txt"

# steps: the page as lines "KIND TEXT": traffic, sh (a line), text (a line), end (of a block).
steps() {
	awk '
	/^<!--traffic: /	{ sub(/^<!--traffic: /, ""); sub(/-->$/, ""); print "traffic " $0 }
	/^```(sh|text)$/	{ kind = substr($0, 4); next }
	/^```/			{ if (kind) print "end " kind; kind = ""; next }
	kind			{ print kind " " $0 }' "$REPO/docs/tour.md"
}

# pattern LINE: it as a regular expression for grep -E
pattern() {
	sed -E 's/[][().*+?{}|^$\\]/\\&/g
		s/[0-9-]+T[0-9:]+Z/@DATE@/g
		s/[0-9][0-9,]*(\\\.[0-9]+)*[kMG]?((ms|us|s|m|h)[0-9]*s?)?/@NUMBER@/g
		s/@DATE@/[-0-9T:Z]+/g
		s/@NUMBER@/[0-9.,kMGmuhs]+/g
		s/ +/ +/g' <<< "$1"
}

# The lines of `shown` that are not in the output of `lines`.
missing() {
	local line

	while IFS= read -r line; do
		grep -qE -- "$(pattern "$line")" "$LAB/out" || echo "$line"
	done <<< "$shown"
}
run_lines() {
	local line words code expected

	: > "$LAB/out"
	while IFS= read -r line; do
		words=${line%%  *#*}
		expected=0
		[[ $line =~ \#\ exit\ ([0-9](\ or\ [0-9])*) ]] && expected=${BASH_REMATCH[1]// or /|}
		(cd "$LAB" && installed env PATH="$PATH" bash -c "$words") >> "$LAB/out" 2>&1
		code=$?
		[[ $code =~ ^($expected)$ ]] || echo "$words: exit $code: $(tail -n 2 "$LAB/out")" >> "$LAB/failed"
	done <<< "$lines"
}
block() {
	local first=${lines%%$'\n'*} i

	[ -n "$lines" ] || return
	for ((i = 0; i < 20; i++)); do
		rm -f "$LAB/failed"
		run_lines
		[ -n "$shown" ] && [ -n "$(missing)" ] || break
		sleep 0.5
	done
	if [ -s "$LAB/failed" ]; then
		not_ok "$(cat "$LAB/failed")"
	elif [ -n "$shown" ] && [ -n "$(missing)" ]; then
		not_ok "$first: not printed: $(missing); but: $(head -n 12 "$LAB/out" | cut -c1-200)"
	else
		ok "$first"
	fi
	lines= shown=
}

daemon_start < <(sed -n '/^# tour$/,/^```$/p' "$REPO/docs/tour.md" | sed '/^```$/d')
echo "$DAEMON_PID" > "$LAB/pid"
cp "$CONFIG" "$LAB/new.yaml"
cp "$CONFIG" "$LAB/sluice.yaml"
# A capture without packets.
printf '\xd4\xc3\xb2\xa1\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0' > "$LAB/attack.pcap"
arrivals_count 0 eth0
lines= shown= after=
while read -r kind text; do
	case $kind in
	traffic)
		block
		blast_stop
		# shellcheck disable=SC2086
		blast_bg "$LAB/sent" --dst $SERVER4 $text
		;;
	sh)
		[ "$after" != text ] || block
		lines+=${lines:+$'\n'}$text
		;;
	text) shown+=${shown:+$'\n'}$text ;;
	end) [ "$after" = sh ] || block ;;
	esac
	[ "$kind" = end ] || after=$kind
done < <(steps)
block
seen=$(arrived 0)
blast_wait
settle eth0
check "the daemon is dead: passed of the rest of 20,000 packets, at 1000 a second and a burst of 2000" \
	$(($(arrived 0) - seen)) 500 6200
lab_done
