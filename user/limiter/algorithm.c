// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* algorithm.c - the table of algorithms: see algorithm.h. */
#include "limiter/algorithm.h"

const struct algorithm *const algorithms[SL_ALGO_COUNT] = {
#define ROW(id, row, name, kind) [id] = &algorithm_##row,
	ALGORITHMS(ROW)
};

const char *algorithm_name(enum sl_algo algo)
{
	static const char *const names[SL_ALGO_COUNT] = {
#define NAME(id, row, name, kind) [id] = name,
		ALGORITHMS(NAME)
	};

	return algo < SL_ALGO_COUNT ? names[algo] : "unknown";
}
