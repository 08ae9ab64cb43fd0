// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* out.c - see out.h: the end, and the two ways to quote. */
#include "lib/out.h"

static const char hex[] = "0123456789abcdef";

void out_bytes_cut(struct out *out, const char *bytes, size_t len)
{
	size_t room = out->len < out->size ? out->size - out->len : 0;

	if (room)
		memcpy(out->at + out->len, bytes, len < room ? len : room);
}

const char *out_end(struct out *out)
{
	size_t end = out->len;

	if (end >= out->size) {
		end = out->size - 1;
		while (end && ((unsigned char)out->at[end] & 0xc0) == 0x80)
			end--;
	}
	out->at[end] = 0;
	return out->at;
}

void out_json(struct out *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\') {
			out_char(out, '\\');
			out_char(out, c);
		} else if (c < 0x20 || c == 0x7f) {
			out_text(out, "\\u00");
			out_char(out, hex[c >> 4]);
			out_char(out, hex[c & 15]);
		} else {
			out_char(out, c);
		}
	}
}

void out_sf_string(struct out *out, const char *text, size_t max)
{
	size_t used = 0;

	out_char(out, '"');
	for (; *text; text++) {
		unsigned char c = *text;
		size_t takes = c < 0x20 || c > 0x7e ? 3 : c == '"' || c == '\\' ? 2 : 1;

		/* Room is kept for the '~', unless this is the last one. */
		if (used + takes + !!text[1] > max) {
			out_char(out, '~');
			break;
		}
		used += takes;
		if (takes == 3) {
			out_char(out, '%');
			out_char(out, hex[c >> 4]);
			out_char(out, hex[c & 15]);
			continue;
		}
		if (takes == 2)
			out_char(out, '\\');
		out_char(out, c);
	}
	out_char(out, '"');
}
