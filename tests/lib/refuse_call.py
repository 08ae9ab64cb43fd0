#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""refuse_call.py bpf|perf_event_open ERRNO COMMAND... - runs COMMAND where that system call fails with ERRNO, as a
seccomp filter of a container, or a kernel without it, makes it fail."""
import ctypes
import errno
import os
import platform
import struct
import sys

NUMBER = {"x86_64": {"bpf": 321, "perf_event_open": 298}, "aarch64": {"bpf": 280, "perf_event_open": 241}}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2

number = NUMBER[platform.machine()][sys.argv[1]]
refused = getattr(errno, sys.argv[2])
program = b"".join(struct.pack("HBBI", *line) for line in (
    (0x20, 0, 0, 0),                        # load the call's number
    (0x15, 0, 1, number),                   # this one: the next line, else the one after it
    (0x06, 0, 0, 0x00050000 | refused),     # fails
    (0x06, 0, 0, 0x7fff0000)))              # is allowed
text = ctypes.create_string_buffer(program, len(program))


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or \
        libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(Program(len(program) // 8, ctypes.addressof(text))), 0, 0):
    sys.exit("refuse_call: %s" % os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[3], sys.argv[3:])
