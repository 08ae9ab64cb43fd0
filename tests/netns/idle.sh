#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# idle.sh - with an interface, a daemon without traffic wakes up twice a second, to read events, and a few
# times more. (Without one: tests/http/idle.sh.)

. "$(dirname "$0")/../lib/netns.sh"
lab_begin idle
lab_link 0
daemon_start <<'YAML'
interfaces: [{name: s0}]
limits:
  - {name: flood, rate: 1000 packets/s, per: source}
YAML
check_true "it is quiet after the start" wait_for 20 daemon_quiet 3
check "wake-ups in 5 s without traffic" "$(daemon_wakeups 5)" 10 40
lab_done
