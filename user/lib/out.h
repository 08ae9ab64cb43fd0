/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * out.h - writes text into a buffer of the caller's, for responses.
 *
 * As with snprintf(), the length includes text that does not fit, so the caller can allocate
 * enough. Numbers are written without a format string: every decision writes a dozen.
 */
#ifndef SLUICE_OUT_H
#define SLUICE_OUT_H

#include <string.h>

#include "lib/bytes.h"
#include "sluice/types.h"

struct out {
	char *at;
	size_t size;
	size_t len; /* may be above size: the length without a bound */
};

static inline void out_begin(struct out *out, char *buf, size_t size)
{
	*out = (struct out){ .at = buf, .size = size };
}

static inline void out_char(struct out *out, char c)
{
	if (out->len < out->size)
		out->at[out->len] = c;
	out->len++;
}

/* out_bytes() of what may not fit: as much as does. */
void out_bytes_cut(struct out *out, const char *bytes, size_t len);

/* A literal that fits is copied without a call. */
static inline void out_bytes(struct out *out, const char *bytes, size_t len)
{
	if (out->len + len < out->size)
		memcpy(out->at + out->len, bytes, len);
	else
		out_bytes_cut(out, bytes, len);
	out->len += len;
}

static inline void out_text(struct out *out, const char *text)
{
	out_bytes(out, text, strlen(text));
}

/* So many hexadecimal digits. */
static inline void out_hex(struct out *out, u64 value, int digits)
{
	while (digits--)
		out_char(out, "0123456789abcdef"[value >> (4 * digits) & 15]);
}

#define U64_DIGITS_MAX 20

/* Two digits at a time: half the divisions. */
static inline void out_u64(struct out *out, u64 value)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char digits[2 * U64_DIGITS_MAX];
	size_t n = U64_DIGITS_MAX;

	for (; value > 9; value /= 100) {
		n -= 2;
		memcpy(digits + n, pairs + 2 * (value % 100), 2);
	}
	if (value || n == U64_DIGITS_MAX)
		digits[--n] = (char)('0' + value);
	/* With room for the longest number a copy of its length takes no call. */
	if (out->len + U64_DIGITS_MAX < out->size) {
		memcpy(out->at + out->len, digits + n, U64_DIGITS_MAX);
		out->len += U64_DIGITS_MAX - n;
	} else {
		out_bytes(out, digits + n, U64_DIGITS_MAX - n);
	}
}

/*
 * Terminates; text that did not fit is cut, between two characters. Returns the buffer, which
 * must hold one byte.
 */
const char *out_end(struct out *out);
/* Text inside the quotes of a JSON string; must be valid UTF-8. */
void out_json(struct out *out, const char *text);
/*
 * A string of RFC 9651 with its quotes. It has printable ASCII only: other bytes become
 * %XX. Text above `max` characters is truncated, with a '~' at the end.
 */
void out_sf_string(struct out *out, const char *text, size_t max);

#endif
