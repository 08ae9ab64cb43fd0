/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bytes.h - text as a pointer and a length: never terminated, any value. */
#ifndef SLUICE_BYTES_H
#define SLUICE_BYTES_H

#include <stddef.h>

struct bytes {
	const char *at;
	size_t len;
};

#define BYTES_OF(literal) ((struct bytes){ literal, sizeof(literal) - 1 })

#endif
