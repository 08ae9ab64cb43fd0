// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* permit.c - see permit.h. */
#include "request/rules/permit.h"

#include "lib/out.h"
#include "request/rules/request_text.h"

#define DIGITS 16

const char *permit_format(const struct permit *permit, char *buf, size_t size)
{
	struct out out;

	out_begin(&out, buf, size);
	if (permit->count)
		out_hex(&out, permit->at_ns, 16);
	for (u32 i = 0; i < permit->count; i++)
		out_hex(&out, permit->key[i], 16);
	return out_end(&out);
}

static bool read_hex(const char *text, u64 *ret)
{
	u64 number = 0;

	for (u32 i = 0; i < DIGITS; i++) {
		int digit = hex_digit((unsigned char)text[i]);

		if (digit < 0)
			return false;
		number = number << 4 | (u64)digit;
	}
	*ret = number;
	return true;
}

bool permit_parse(struct bytes text, struct permit *ret)
{
	u32 count = (u32)(text.len / DIGITS) - 1;
	struct permit permit = { .count = count };

	if (text.len % DIGITS || text.len < 2 * DIGITS ||
	    text.len > DIGITS * (PERMIT_UNITS_MAX + 1) || !read_hex(text.at, &permit.at_ns))
		return false;
	for (u32 i = 0; i < count; i++)
		if (!read_hex(text.at + DIGITS * (i + 1), &permit.key[i]))
			return false;
	*ret = permit;
	return true;
}
