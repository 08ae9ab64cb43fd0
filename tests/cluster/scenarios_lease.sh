#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# scenarios_lease.sh [FILE...] - those of scenarios.sh that vary by consistency, with leases of a second.
CONSISTENCY='{lease: 1s}' exec bash "$(dirname "$0")/scenarios.sh" "$@"
