// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* visible.c - see visible.h. */
#include "lib/visible.h"

#include <stdbool.h>
#include <stdlib.h>

#define LONGEST 4 /* bytes of output for one of input, at most: \xNN */

size_t utf8_decode(const unsigned char *p, size_t size, u32 *ret)
{
	static const u32 least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len, i;
	u32 c = p[0];

	if (c < 0x80)
		len = 1;
	else if (c >= 0xc2 && c < 0xe0)
		len = 2;
	else if (c >= 0xe0 && c < 0xf0)
		len = 3;
	else if (c >= 0xf0 && c < 0xf5)
		len = 4;
	else
		return 0;
	if (len > size)
		return 0;
	if (len > 1)
		c &= 0x7f >> len;
	for (i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*ret = c;
	return len;
}

#define BYTES 0x10ff00

void out_utf8(struct out *out, const char *bytes, size_t len)
{
	const unsigned char *p = (const unsigned char *)bytes, *end = p + len;
	size_t n;
	u32 c;

	for (; p < end; p += n) {
		n = utf8_decode(p, (size_t)(end - p), &c);
		if (n && c) {
			out_bytes(out, (const char *)p, n);
			continue;
		}
		n = 1;
		out_text(out, "\xf4\x8f");
		out_char(out, (char)(0xbc + (*p >> 6)));
		out_char(out, (char)(0x80 + (*p & 0x3f)));
	}
}

static bool is_visible(u32 c)
{
	static const struct {
		u32 from, to;
	} hidden[] = {
		{ 0, 0x1f },	    { 0x7f, 0x9f }, /* controls */
		{ 0xad, 0xad },	    { 0x61c, 0x61c },	   { 0x180e, 0x180e },
		{ 0x200b, 0x200f }, /* of no width, directions */
		{ 0x2028, 0x202e }, /* line separators, embeddings, overrides */
		{ 0x2060, 0x206f }, /* isolates */
		{ 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff },	   { 0xfff0, 0xfffb },
		{ 0xfffe, 0xffff }, { 0xe0000, 0x10ffff }, /* tags, selectors, private planes */
	};

	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (c >= hidden[i].from && c <= hidden[i].to)
			return false;
	return true;
}

static void out_code(struct out *out, const char *before, u32 value, int digits)
{
	out_text(out, before);
	out_hex(out, value, digits);
}

static void out_unit(struct out *out, u32 c, enum visible form)
{
	if ((c < 0x80 || c >= BYTES) && form != VISIBLE_JSON)
		out_code(out, "\\x", c & 0xff, 2);
	else if (c < 0x10000)
		out_code(out, "\\u", c, 4);
	else if (form != VISIBLE_JSON)
		out_code(out, "\\U", c, 8);
	else {
		out_code(out, "\\u", 0xd7c0 + (c >> 10), 4);
		out_code(out, "\\u", 0xdc00 + (c & 0x3ff), 4);
	}
}

void out_visible(struct out *out, const char *text, size_t len, enum visible form)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;
	size_t n;
	u32 c;

	for (; p < end; p += n) {
		n = utf8_decode(p, (size_t)(end - p), &c);
		if (!n) {
			n = 1;
			out_code(out, "\\x", *p, 2);
		} else if (form == VISIBLE_LINE && c == '\\') {
			out_text(out, "\\\\");
		} else if (is_visible(c) || (form != VISIBLE_LINE && (c == '\n' || c == '\t'))) {
			out_bytes(out, (const char *)p, n);
		} else {
			out_unit(out, c, form);
		}
	}
}

char *visible_new(const char *text, enum visible form)
{
	size_t len = strlen(text), size = LONGEST * len + 1;
	char *buf = malloc(size);
	struct out out;

	if (!buf)
		return NULL;
	out_begin(&out, buf, size);
	out_visible(&out, text, len, form);
	out_end(&out);
	return buf;
}
