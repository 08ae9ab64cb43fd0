/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* json_at.h - values of a JSON document by their path: int_at(response, "result.limits.0.used"). */
#ifndef TESTS_LIB_JSON_AT_H
#define TESTS_LIB_JSON_AT_H
#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* NULL: there is none. Members go by their names, elements by their numbers. */
static inline json_t *json_at(const json_t *json, const char *path)
{
	char name[64];

	for (size_t len; json && *path; path += len + (path[len] == '.')) {
		len = strcspn(path, ".");
		if (len >= sizeof(name))
			return NULL;
		memcpy(name, path, len);
		name[len] = 0;
		json = json_is_array(json) && isdigit((unsigned char)*name)
			       ? json_array_get(json, strtoul(name, NULL, 10))
			       : json_object_get(json, name);
	}
	return (json_t *)json;
}

static inline json_int_t int_at(const json_t *json, const char *path)
{
	return json_integer_value(json_at(json, path));
}

static inline const char *text_at(const json_t *json, const char *path)
{
	return json_string_value(json_at(json, path));
}

static inline bool true_at(const json_t *json, const char *path)
{
	return json_is_true(json_at(json, path));
}

static inline size_t count_at(const json_t *json, const char *path)
{
	return json_array_size(json_at(json, path));
}

#endif
