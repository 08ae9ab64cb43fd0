# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
libsluice.py - libsluice's client and its limiter from Python, through ctypes.

    libsluice.py LIBRARY UNIX-SOCKET    reads commands, prints a line for each:
        check USER HITS SECONDS [retry] [closed]   CODE ADMITTED REMAINING RETRY-AFTER-S TOOK-S
        report USER HITS                  CODE
        both USER                         waits for 3 units of a limiter here, then checks: CODE TOOK-S
        fork USER TIMES                   this process and a child check at once, TIMES each, and report once
                                          each: those that were admitted, of another user in the child
"""
import ctypes
import errno
import os
import sys
import time
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p


def struct(name, **fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


Config = struct("Config", size=c_size_t, algorithm=c_int, flags=c_uint32, units=c_uint64,
                interval_ns=c_uint64, burst=c_uint64, buckets=c_uint32, reserved=c_uint32)
Result = struct("Result", size=c_size_t, admitted=c_int, reserved=c_uint32, remaining=c_uint64, reset_ns=c_uint64, retry_after_ns=c_uint64)
ClientConfig = struct("ClientConfig", size=c_size_t, address=c_char_p, token=c_char_p, flags=c_uint32,
                      retry_percent=c_uint32, retry_burst=c_uint32, reserved=c_uint32,
                      timeout_ns=c_uint64, backoff_ns=c_uint64, breaker_ns=c_uint64)
Entry = struct("Entry", size=c_size_t, key=c_char_p, value=c_char_p, value_size=c_size_t)
Descriptor = struct("Descriptor", size=c_size_t, entries=POINTER(Entry), entry_count=c_size_t, hits=c_int64)
Request = struct("Request", size=c_size_t, domain=c_char_p, descriptors=POINTER(Descriptor),
                 descriptor_count=c_size_t, source=c_char_p, deadline_ns=c_uint64, flags=c_uint32,
                 status=c_uint32, latency_ns=c_uint64, id=c_char_p)
RETRY_REFUSED = 2
lib = ctypes.CDLL(sys.argv[1])
client, closed, limiter = c_void_p(), c_void_p(), c_void_p()
config = ClientConfig(size=ctypes.sizeof(ClientConfig), address=f"unix:{sys.argv[2]}".encode(),
                      retry_burst=40)
assert lib.sluice_client_open(byref(config), byref(client)) == 0
config.flags = 1
assert lib.sluice_client_open(byref(config), byref(closed)) == 0
config = Config(size=ctypes.sizeof(Config), units=10, interval_ns=10**9, burst=1)
assert lib.sluice_limiter_new(byref(config), byref(limiter), None, 0) == 0


def request(user, hits, seconds=5.0, flags=0):
    entry = Entry(size=ctypes.sizeof(Entry), key=b"user", value=user.encode())
    descriptor = Descriptor(size=ctypes.sizeof(Descriptor), entries=ctypes.pointer(entry), entry_count=1, hits=hits)
    return Request(size=ctypes.sizeof(Request), domain=b"api", descriptors=ctypes.pointer(descriptor),
                   descriptor_count=1, flags=flags,
                   deadline_ns=time.monotonic_ns() + int(seconds * 1e9))


def name(code):
    return errno.errorcode[-code] if code else "0"


def admitted_of(user, times):
    result, admitted = Result(size=ctypes.sizeof(Result)), 0
    for _ in range(times):
        code = lib.sluice_client_check(client, byref(request(user, 1)), byref(result))
        admitted += not code and result.remaining == times - admitted - 1
    assert not lib.sluice_client_report(client, byref(request("forked", 1)))
    return admitted


for line in sys.stdin:
    command, user, *more = line.split()
    begun, result = time.monotonic(), Result(size=ctypes.sizeof(Result))
    if command == "check":
        flags = RETRY_REFUSED if "retry" in more else 0
        code = lib.sluice_client_check(closed if "closed" in more else client, byref(request(user, int(more[0]), float(more[1]), flags)),
                                       byref(result))
        print(name(code), result.admitted, result.remaining, result.retry_after_ns / 1e9,
              time.monotonic() - begun, flush=True)
    elif command == "fork":
        pid = os.fork()
        if not pid:
            os._exit(admitted_of(user + "-child", int(more[0])))
        print(admitted_of(user, int(more[0])), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    elif command == "report":
        print(name(lib.sluice_client_report(client, byref(request(user, int(more[0]))))), flush=True)
    else:
        for _ in range(3):
            assert lib.sluice_acquire(limiter, c_uint64(1)) == 0
        code = lib.sluice_client_check(client, byref(request(user, 1)), None)
        print(name(code), time.monotonic() - begun, flush=True)
lib.sluice_limiter_free(limiter)
lib.sluice_client_close(client)
