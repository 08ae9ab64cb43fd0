#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# libsluice.sh - libsluice as a program finds it: installed, with pkg-config, shared and static; the examples of
# libsluice(3); from Python through ctypes; and 64 threads under ThreadSanitizer. Needs no root.

. "$(dirname "$0")/../lib/plain.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL

install_() {
	make DESTDIR="$dir/stage" PREFIX=/usr LIBDIR=/usr/lib install > "$dir/out" 2>&1
}

is "make install" install_
lib=$dir/stage/usr/lib
export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir/stage LD_LIBRARY_PATH=$lib
is "only sluice_* is visible" test -z "$(nm -D --defined-only "$lib/libsluice.so.0" | awk '$2 == "T"' | grep -v ' sluice_')"
is "nor in the archive" test -z "$(nm -g --defined-only "$lib/libsluice.a" | awk '$2 == "T"' | grep -v ' sluice_')"

# The example of the manual page, its 25 calls cut short by a faster rate.
# example NUMBER: prints it
example() {
	awk -v n="$1" '/^\.Bd -literal/ { show = ++seen == n; next } /^\.Ed/ { show = 0 } show { gsub(/\\en/, "\\n"); print }' \
		docs/man/libsluice.3
}
example 1 > "$dir/example.c"
example 2 | sed "s|/run/sluice/http.sock|$dir/absent.sock|" > "$dir/client.c"
cflags=$(pkg-config --cflags sluice) libs=$(pkg-config --libs sluice)
# shellcheck disable=SC2086
is "the example compiles" cc -Wall -Wextra -Werror -o "$dir/shared" "$dir/example.c" $cflags $libs
# Nothing but libc: libsluice-dev needs no other package.
alone=$(pkg-config --static --libs sluice)
is "pkg-config --static names no other library" test -z "$(tr ' ' '\n' <<< "$alone" | grep -vE '^(-L.*|-lsluice|-lm|-lpthread)$')"
# shellcheck disable=SC2086
is "and statically" cc -Wall -static -o "$dir/static" "$dir/example.c" $cflags $alone
# shellcheck disable=SC2086
is "the client's example compiles" cc -Wall -Wextra -Werror -o "$dir/asks" "$dir/client.c" $cflags $libs
"$dir/asks" > "$dir/out"
is "without a daemon it fails open, and says so" prints '^yes, without a decision: No such file or directory$'
is "the header is C++ as well" clang -Wall -Wextra -Werror -fsyntax-only -x c++ user/client/sluice.h
for kind in shared static; do
	"$dir/$kind" > "$dir/out"
	is "$kind: 25 calls" test "$(wc -l < "$dir/out")" = 25
done

cat > "$dir/limiter.py" << 'END'
import ctypes
import signal
import time

lib = ctypes.CDLL("libsluice.so.0")


class Config(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("algorithm", ctypes.c_int), ("flags", ctypes.c_uint32),
                ("units", ctypes.c_uint64), ("interval_ns", ctypes.c_uint64),
                ("burst", ctypes.c_uint64), ("buckets", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


class Result(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("admitted", ctypes.c_int), ("reserved", ctypes.c_uint32),
                ("remaining", ctypes.c_uint64),
                ("reset_ns", ctypes.c_uint64), ("retry_after_ns", ctypes.c_uint64)]


config = Config(size=ctypes.sizeof(Config), units=50, interval_ns=10**9, burst=5)
limiter, result = ctypes.c_void_p(), Result(size=ctypes.sizeof(Result))
assert lib.sluice_limiter_new(ctypes.byref(config), ctypes.byref(limiter), None, 0) == 0
units = ctypes.c_uint64
for n in range(5):
    assert lib.sluice_try(limiter, units(1), ctypes.byref(result)) == 0 and result.admitted
assert lib.sluice_try(limiter, units(5), ctypes.byref(result)) != 0
assert 0 < result.retry_after_ns <= 10**8, result.retry_after_ns
begin = time.monotonic()
for n in range(20):
    assert lib.sluice_acquire(limiter, units(1)) == 0
took = time.monotonic() - begin
assert took > 0.35, took
assert lib.sluice_wait(limiter, units(5), units(time.monotonic_ns() + 10**6)) < 0
lib.sluice_limiter_free(limiter)
# Control-C while it waits.
config = Config(size=ctypes.sizeof(Config), units=1, interval_ns=30 * 10**9)
assert lib.sluice_limiter_new(ctypes.byref(config), ctypes.byref(limiter), None, 0) == 0
assert lib.sluice_acquire(limiter, units(1)) == 0
begin = time.monotonic()
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    lib.sluice_acquire(limiter, units(1))
    assert False, "not interrupted"
except KeyboardInterrupt:
    signal.setitimer(signal.ITIMER_REAL, 0)
assert time.monotonic() - begin < 20
print("20 acquisitions at 50/s")
END
is "from Python" python3 "$dir/limiter.py"

# The sources of the library and 64 threads, all under ThreadSanitizer; without it a million acquisitions.
# shellcheck disable=SC2046
is "compiles with ThreadSanitizer" cc -std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=thread -Iinclude -Iuser -I. \
	-o "$dir/acquire" tests/bench/acquire.c $(make -s client-sources) \
	-lz -lm -lpthread
is "64 threads, no race, none early" "$dir/acquire" 64 30000 20000
# shellcheck disable=SC2046
is "and the client's tests" cc -std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=thread -Iinclude -Iuser -Itests -I. \
	-o "$dir/client" tests/unit/client/test_client.c tests/lib/test.c $(make -s client-sources) \
	-lcmocka -lz -lm -lpthread
client() {
	"$dir/client" > "$dir/out" 2>&1
}
is "16 threads of one client, no race" client
is "a million acquisitions, none early, in no more time than due" build/tests/bench/acquire 64 1000000 100000
exit $failed
