/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * visible.h - untrusted text for a terminal, a log or a page: what a reader sees is what the text
 * has.
 *
 * A terminal obeys control characters, those of U+0080 to U+009F too (U+009B begins a sequence as
 * ESC [ does), and bidi controls show characters in another order than they have. Such characters,
 * bytes that are not UTF-8, and characters without a glyph are written as \xNN (a byte) or \uNNNN;
 * so a backslash is doubled, and \x1b that was typed is another text than an escape.
 */
#ifndef SLUICE_LIB_VISIBLE_H
#define SLUICE_LIB_VISIBLE_H

#include "lib/out.h"

enum visible {
	VISIBLE_LINE,
	VISIBLE_TEXT, /* YAML, to be copied: newlines, tabs and backslashes stay */
	VISIBLE_JSON, /* JSON as text: \uNNNN alone, which means the same; backslashes and newlines
			 stay */
};

/* The length of the character at `p`, which is stored in *ret; 0 if it is not UTF-8. */
size_t utf8_decode(const unsigned char *p, size_t size, u32 *ret);
/*
 * Bytes as UTF-8 without NUL: 0 and those that are not UTF-8 become U+10FF00 + byte, which
 * out_visible() shows as \xNN.
 */
void out_utf8(struct out *out, const char *bytes, size_t len);
void out_visible(struct out *out, const char *text, size_t len, enum visible form);
/* The same in new memory; NULL: none is left. */
char *visible_new(const char *text, enum visible form);

#endif
