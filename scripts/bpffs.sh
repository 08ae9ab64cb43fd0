#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# bpffs.sh - mounts the BPF file system on /sys/fs/bpf where it is not (containers, minimal
# systems; systemd mounts it). Pins live there.

[ "$(stat -f -c %T /sys/fs/bpf 2> /dev/null)" = bpf_fs ] && exit 0
exec mount -t bpf bpf /sys/fs/bpf
