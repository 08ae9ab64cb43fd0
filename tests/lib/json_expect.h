/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * json_expect.h - what a JSON document must have, as one text:
 *
 *     json_expect(response, line, "result.count=2, result.sets.0.name=bad,
 * result.sets.1.age_ns=any");
 *
 * PATH=TEXT; the text of an array is the number of its elements, `none` is null or missing, and
 * `any` is all but that. PATH~TEXT: a part of it. No text contains a comma.
 */
#ifndef TESTS_LIB_JSON_EXPECT_H
#define TESTS_LIB_JSON_EXPECT_H

#include "lib/test.h"
#include "lib/json_at.h"

/* The text of a value, in `buf` where it is a number. */
static inline const char *json_as_text(const json_t *json, char *buf, size_t size)
{
	if (!json || json_is_null(json))
		return "none";
	if (json_is_string(json))
		return json_string_value(json);
	if (json_is_boolean(json))
		return json_is_true(json) ? "true" : "false";
	snprintf(buf, size, "%lld",
		 json_is_integer(json) ? (long long)json_integer_value(json)
		 : json_is_array(json) ? (long long)json_array_size(json)
				       : 0);
	return buf;
}

static inline const char *json_text_at(const json_t *json, const char *path, char *buf, size_t size)
{
	return json_as_text(json_at(json, path), buf, size);
}

typedef const char *json_text_of(const json_t *json, const char *path, char *buf, size_t size);

/* `of` is for the message; `text_of` is json_text_at, or knows more. */
static inline void json_expect_as(const json_t *json, const char *of, const char *wants,
				  json_text_of *text_of)
{
	char *copy = strdup(wants), *rest = copy, *want;

	while ((want = strsep(&rest, ","))) {
		char buf[200], *path = want + strspn(want, " "), *text = path + strcspn(path, "=~");
		bool part = *text == '~';
		const char *found;

		*text++ = 0;
		found = text_of(json, path, buf, sizeof(buf));
		if (!strcmp(text, "any") ? !strcmp(found, "none")
		    : part		 ? !strstr(found, text)
					 : strcmp(found, text))
			fail_msg("%s: %s is \"%s\", not \"%s\"", of, path, found, text);
	}
	free(copy);
}

static inline void json_expect(const json_t *json, const char *of, const char *wants)
{
	json_expect_as(json, of, wants, json_text_at);
}

#endif
