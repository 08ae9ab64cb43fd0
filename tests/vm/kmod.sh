#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# kmod.sh depmod|modprobe ARGS... - kmod from where setup.sh unpacked it.
VM=$(dirname "$(readlink -f "$0")")/../../build/vm
export LD_LIBRARY_PATH=$VM/libkmod/lib/x86_64-linux-gnu:$VM/libkmod/usr/lib/x86_64-linux-gnu
exec -a "$1" "$VM/kmod/bin/kmod" "${@:2}"
