/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * json_text.h - JSON text from untrusted sources to jansson's tree.
 *
 * Two things jansson leaves open:
 *
 * - "{}," is three bytes of text and 350 of tree. So the text is scanned first: depth and the
 * number of values are bounded before anything is built.
 *   - Values are bytes that clients of our callers chose. A caller that puts them into JSON as
 *     they are sends bytes that are no UTF-8; one that decodes them first (Python's
 *     surrogateescape, UTF-16 cut in two) sends half a surrogate pair. To jansson that is an
 *     error, and an error is what a client must not be able to make. Such bytes are carried
 *     through as private characters, and json_text_bytes() restores the bytes.
 */
#ifndef SLUICE_HTTP_JSON_TEXT_H
#define SLUICE_HTTP_JSON_TEXT_H

#include <jansson.h>

#include "request/rules/request.h"
#include "lib/err.h"

struct json_bounds {
	u32 depth;  /* of nested objects and arrays */
	u32 values; /* members and items in all */
};

struct json_text {
	json_t *root;  /* an object or an array */
	bool repaired; /* strings hold what json_text_bytes() has to restore */
};

/*
 * 0; -EINVAL; or -E2BIG for more values than `bounds` permits, or a number beyond 64 bits. The
 * message repeats nothing of the text. The caller owns ret->root.
 */
int json_text_load(const char *text, size_t len, const struct json_bounds *bounds,
		   struct json_text *ret, struct sl_err *err);
/* A string's bytes, restored in place: call it once for each string. */
struct bytes json_text_bytes(const struct json_text *text, json_t *string);

/*
 * The items of an array that is too long to be a tree at once. json_items_begin() checks that
 * the text is an array and closes what it opens; then json_items_next() gives the text of one
 * item after the other, false behind the last. Items may still be no JSON.
 */
struct json_items {
	const char *at, *end;
	u64 count; /* items, known from the start */
};
int json_items_begin(const char *text, size_t len, struct json_items *ret, struct sl_err *err);
bool json_items_next(struct json_items *items, struct bytes *ret);

/* The kind of a value for errors: "a number", "an object". NULL: "nothing". */
const char *json_kind(const json_t *value);

#endif
