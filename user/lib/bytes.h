/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bytes.h - text as a pointer and a length: never terminated, any value. */
#ifndef SLUICE_BYTES_H
#define SLUICE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct bytes {
	const char *at;
	size_t len;
};

static inline bool bytes_same(struct bytes a, struct bytes b)
{
	return a.len == b.len && (!a.len || !memcmp(a.at, b.at, a.len));
}

static inline bool bytes_equal(struct bytes bytes, const char *text)
{
	return bytes_same(bytes, (struct bytes){ text, strlen(text) });
}

/* What may stand around a header's value (RFC 9110, 5.6.3). */
static inline int is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline struct bytes bytes_trim(struct bytes text)
{
	while (text.len && is_blank(text.at[0])) {
		text.at++;
		text.len--;
	}
	while (text.len && is_blank(text.at[text.len - 1]))
		text.len--;
	return text;
}

#define BYTES_OF(literal) ((struct bytes){ literal, sizeof(literal) - 1 })

#endif
