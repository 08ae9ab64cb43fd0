// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * json_text.c - see json_text.h.
 *
 * A byte b that is not UTF-8 is carried as U+10FF00 + b, the end of a private plane: F4 8F BE 80
 * to F4 8F BF BF. Half a surrogate pair U+DC80 to U+DCFF is what Python makes of such a byte, and
 * becomes the same byte here; other halves become U+FFFD.
 */
#include "request/rules/json_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config_text.h"
#include "request/rules/request_text.h"
#include "lib/out.h"

/* The code unit of "\uXXXX" at `at`, or -1. */
static int escaped_unit(const unsigned char *at, const unsigned char *end)
{
	int unit = 0, i, digit;

	if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
		return -1;
	for (i = 2; i < 6; i++) {
		digit = hex_digit(at[i]);
		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

enum piece { PIECE_GOOD, PIECE_BYTE, PIECE_HALF };

/* One piece of a string at `at`: its length, and what is wrong with it. */
static size_t string_piece(const unsigned char *at, const unsigned char *end, enum piece *ret)
{
	size_t n;
	int unit, low;
	u32 code;

	*ret = PIECE_GOOD;
	if (*at == '\\') {
		unit = escaped_unit(at, end);
		if (unit < 0xd800 || unit > 0xdfff)
			return end - at < 2 ? 1 : 2; /* "\u" then goes on as four letters */
		low = escaped_unit(at + 6, end);
		if (unit < 0xdc00 && low >= 0xdc00 && low <= 0xdfff)
			return 12;
		*ret = PIECE_HALF;
		return 6;
	}
	n = at[0] < 0x80 ? 1 : utf8_decode(at, end - at, &code);
	if (n)
		return n;
	*ret = PIECE_BYTE;
	return 1;
}

struct scan {
	u64 values, depth_most;
	size_t bad;	   /* pieces to be repaired */
	const char *wrong; /* NULL: brackets and strings are closed */
};

/* Scans text without allocating: braces, commas and the inside of strings. */
static void scan_text(const unsigned char *at, const unsigned char *end, struct scan *ret)
{
	enum piece piece;
	u64 depth = 0;

	memset(ret, 0, sizeof(*ret));
	while (at < end) {
		unsigned char c = *at++;

		if (c == '"') {
			while (at < end && *at != '"') {
				at += string_piece(at, end, &piece);
				ret->bad += piece != PIECE_GOOD;
			}
			if (at++ >= end)
				ret->wrong = "a string that does not end";
		} else if (c == '{' || c == '[') {
			ret->values++;
			if (++depth > ret->depth_most)
				ret->depth_most = depth;
		} else if (c == '}' || c == ']') {
			if (!depth--) {
				ret->wrong = "a bracket too many";
				return;
			}
		} else if (c == ',') {
			ret->values++;
		}
	}
	if (depth && !ret->wrong)
		ret->wrong = "a bracket that is not closed";
}

static void put_byte(struct out *out, unsigned char byte)
{
	static const char lead[] = "\xf4\x8f";

	out_bytes(out, lead, 2);
	out_char(out, byte < 0xc0 ? (char)0xbe : (char)0xbf);
	out_char(out, (char)(0x80 | (byte & 0x3f)));
}

static void repair(const unsigned char *at, const unsigned char *end, struct out *out)
{
	bool inside = false;
	enum piece piece;
	size_t n;
	int unit;

	for (; at < end; at += n) {
		n = 1;
		piece = PIECE_GOOD;
		if (*at == '"')
			inside = !inside;
		else if (inside)
			n = string_piece(at, end, &piece);
		unit = piece == PIECE_HALF ? escaped_unit(at, end) : 0;
		if (piece == PIECE_GOOD)
			out_bytes(out, (const char *)at, n);
		else if (piece == PIECE_BYTE)
			put_byte(out, *at);
		else if (unit >= 0xdc80 && unit <= 0xdcff)
			put_byte(out, unit & 0xff);
		else
			out_text(out, "\\ufffd");
	}
}

int json_text_load(const char *text, size_t len, const struct json_bounds *bounds,
		   struct json_text *ret, struct sl_err *err)
{
	const unsigned char *at = (const unsigned char *)text;
	struct scan scan;
	struct out out;
	json_error_t why;
	char *copy = NULL;
	size_t size;

	/* An empty body may have no address. */
	if (!len)
		at = (const unsigned char *)"";
	scan_text(at, at + len, &scan);
	if (scan.wrong)
		return sl_err_set(err, EINVAL, "the body is no JSON: %s", scan.wrong);
	if (scan.depth_most > bounds->depth)
		return sl_err_set(err, EINVAL, "the body is nested deeper than %u", bounds->depth);
	if (scan.values > bounds->values)
		return sl_err_set(err, E2BIG, "a body of more than %u members and items",
				  bounds->values);
	if (scan.bad) {
		size = len + 3 * scan.bad;
		copy = malloc(size);
		if (!copy)
			return sl_err_set(err, ENOMEM, "out of memory");
		out_begin(&out, copy, size);
		repair(at, at + len, &out);
		text = copy;
		len = out.len;
	}
	ret->repaired = scan.bad > 0;
	ret->root = json_loadb(text, len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
	free(copy);
	if (ret->root)
		return 0;
	/* jansson's own message quotes the text. */
	if (json_error_code(&why) == json_error_duplicate_key)
		return sl_err_set(err, EINVAL, "line %d: a member is there twice", why.line);
	if (json_error_code(&why) == json_error_out_of_memory)
		return sl_err_set(err, ENOMEM, "out of memory");
	if (json_error_code(&why) == json_error_numeric_overflow)
		return sl_err_set(err, E2BIG, "line %d: a number too large", why.line);
	return sl_err_set(err, EINVAL, "the body is no JSON: line %d, column %d", why.line,
			  why.column);
}

struct bytes json_text_bytes(const struct json_text *text, json_t *string)
{
	struct bytes ret = { json_string_value(string), json_string_length(string) };
	char *to = (char *)ret.at; /* the tree's own memory, which we may change */
	size_t i = 0;

	if (!text->repaired)
		return ret;
	while (i < ret.len) {
		const unsigned char *c = (const unsigned char *)ret.at + i;

		if (ret.len - i >= 4 && c[0] == 0xf4 && c[1] == 0x8f && (c[2] & 0xfe) == 0xbe) {
			*to++ = (c[2] == 0xbe ? 0x80 : 0xc0) | (c[3] & 0x3f);
			i += 4;
		} else {
			*to++ = ret.at[i++];
		}
	}
	ret.len = to - ret.at;
	return ret;
}

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
		at++;
	return at;
}

/* The end of the item that begins at `at`: its comma, or the end. Brackets and strings match. */
static const char *item_end(const char *at, const char *end)
{
	enum piece piece;
	u64 depth = 0;

	for (; at < end; at++) {
		if (*at == '"') {
			for (at++; at < end && *at != '"';)
				at += string_piece((const unsigned char *)at,
						   (const unsigned char *)end, &piece);
		} else if (*at == '{' || *at == '[') {
			depth++;
		} else if (*at == '}' || *at == ']') {
			depth -= !!depth;
		} else if (*at == ',' && !depth) {
			break;
		}
	}
	return at;
}

int json_items_begin(const char *text, size_t len, struct json_items *ret, struct sl_err *err)
{
	const char *at = text, *end = text + len, *next;
	struct scan scan;
	u64 count = 0;

	scan_text((const unsigned char *)text, (const unsigned char *)end, &scan);
	if (scan.wrong)
		return sl_err_set(err, EINVAL, "the body is no JSON: %s", scan.wrong);
	at = skip_space(at, end);
	while (end > at && skip_space(end - 1, end) == end)
		end--;
	if (end - at < 2 || *at != '[' || end[-1] != ']')
		return sl_err_set(err, EINVAL, "the body is no array");
	at++;
	end--;
	if (skip_space(at, end) < end) {
		for (next = at; next < end; next = item_end(next, end) + 1)
			count++;
		/* "[1,]": the empty text after the last comma is an item, too, and not JSON. */
		count += next == end;
	}
	*ret = (struct json_items){ .at = at, .end = end, .count = count };
	return 0;
}

bool json_items_next(struct json_items *items, struct bytes *ret)
{
	const char *next;

	if (!items->count)
		return false;
	items->count--;
	next = item_end(items->at, items->end);
	*ret = (struct bytes){ items->at, next - items->at };
	items->at = next < items->end ? next + 1 : next;
	return true;
}

const char *json_kind(const json_t *value)
{
	switch (value ? json_typeof(value) : JSON_NULL) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	default:
		return value ? "null" : "nothing";
	}
}
