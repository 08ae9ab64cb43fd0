/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* spec_def.h - a limit in one line: SPEC_DEF(TOKEN_BUCKET, 100, 60 * SEC, .burst = 20). */
#ifndef SLUICE_TESTS_SPEC_DEF_H
#define SLUICE_TESTS_SPEC_DEF_H

#include "limiter/spec.h"

#define SPEC_DEF(kind, units, ns, ...)                                                             \
	{                                                                                          \
		.algo = SL_ALGO_##kind, .count = units, .period_ns = ns, .scale = 1,               \
		.ceiling_percent = 100, __VA_ARGS__                                                \
	}

#endif
