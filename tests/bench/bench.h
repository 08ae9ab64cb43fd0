/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bench.h - how the programs here end on an error, and read a clock. */
#ifndef SLUICE_TESTS_BENCH_H
#define SLUICE_TESTS_BENCH_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/err.h"
#include "sluice/types.h"

/* `err` may be NULL: errno. */
static inline _Noreturn void die(const char *what, const struct sl_err *err)
{
	char text[1024];

	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		err ? sl_err_format(err, text, sizeof(text)) : strerror(errno));
	exit(1);
}

static inline u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SL_NS_PER_SEC + ts.tv_nsec;
}

#endif
