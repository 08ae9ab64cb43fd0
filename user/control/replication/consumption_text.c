// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* consumption_text.c - see consumption_text.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/replication/consumption_text.h"

/* Largest age of a report's beginning: older use no longer counts in any bucket. */
#define AGE_MS_MAX 60000
#define NS_PER_MS 1000000ULL
#define UNITS_MAX (SL_BIT(46) - 1)	/* no bucket holds more */
#define PER_SOURCE 3

/* ------------------------------------------------------------------ writing */

static int by_group(const void *a, const void *b)
{
	const struct dp_consumption_report *x = a, *y = b;

	return x->group < y->group ? -1 : x->group > y->group;
}

static json_t *limit_to_json(const struct dp_consumption *consumption, u32 group)
{
	char text[24];
	u64 kind;
	const char *name = dp_consumption_name(consumption, group, &kind);

	snprintf(text, sizeof(text), "%016llx", kind);
	return json_pack("{s:s, s:s, s:[]}", "meter", name, "kind", text, "used");
}

static void add_source(json_t *used, const struct dp_consumption_report *told, u64 mono_ns)
{
	u64 units = told->units < UNITS_MAX ? told->units : UNITS_MAX;

	json_array_append_new(used, json_integer((json_int_t)told->hash));
	json_array_append_new(used, json_integer((json_int_t)units));
	json_array_append_new(used, json_integer((json_int_t)((mono_ns - told->since_ns) / NS_PER_MS)));
}

json_t *consumption_to_json(const struct dp_consumption *consumption,
			    const struct dp_consumption_report *told, u32 count, u64 mono_ns)
{
	struct dp_consumption_report *sorted = calloc(count + 1, sizeof(*sorted));
	json_t *limits = json_array(), *limit = NULL;

	if (!sorted || !limits)
		goto out;
	memcpy(sorted, told, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_group);
	for (u32 i = 0; i < count; i++) {
		if (!i || sorted[i].group != sorted[i - 1].group) {
			limit = limit_to_json(consumption, sorted[i].group);
			json_array_append_new(limits, limit);
		}
		add_source(json_object_get(limit, "used"), &sorted[i], mono_ns);
	}
	free(sorted);
	return json_pack("{s:o}", "limits", limits);
out:
	free(sorted);
	json_decref(limits);
	return NULL;
}

/* ------------------------------------------------------------------ reading */

/* A whole number from 0 to `most`. */
static bool read_number(const json_t *array, size_t at, u64 most, u64 *ret)
{
	const json_t *json = json_array_get(array, at);

	if (!json_is_integer(json) || json_integer_value(json) < 0 ||
	    (u64)json_integer_value(json) > most)
		return false;
	*ret = (u64)json_integer_value(json);
	return true;
}

static int find_limit(const struct dp_consumption *consumption, const json_t *limit, bool *ret_good)
{
	const char *row = json_string_value(json_object_get(limit, "meter"));
	const char *text = json_string_value(json_object_get(limit, "kind"));
	char *end;
	u64 kind;

	*ret_good = row && text && strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;
	if (!*ret_good)
		return -1;
	kind = strtoull(text, &end, 16);
	return dp_consumption_find(consumption, row, kind);
}

void consumption_read(struct dp_consumption *consumption, const json_t *body, u64 age_ns,
		      struct sl_now now, struct consumption_received *received)
{
	const json_t *limits = json_object_get(body, "limits"), *limit;
	size_t i, sources = 0;

	if (!json_is_array(limits)) {
		received->bad++;
		return;
	}
	json_array_foreach((json_t *)limits, i, limit) {
		const json_t *used = json_object_get(limit, "used");
		struct dp_consumption_report told;
		u64 age_ms;
		bool good;
		int group = find_limit(consumption, limit, &good);

		if (!good || !json_is_array(used) || json_array_size(used) % PER_SOURCE) {
			received->bad++;
			continue;
		}
		received->unknown += group < 0;
		for (size_t k = 0; group >= 0 && k < json_array_size(used); k += PER_SOURCE) {
			if (!read_number(used, k, SL_KEY_HASH_MASK, &told.hash) ||
			    !read_number(used, k + 1, UNITS_MAX, &told.units) ||
			    !read_number(used, k + 2, AGE_MS_MAX, &age_ms) ||
			    sources++ >= CONSUMPTION_REPORT_MAX) {
				received->bad++;
				break;
			}
			told.group = (u32)group;
			age_ms = age_ms * NS_PER_MS + age_ns;
			told.since_ns = now.mono_ns > age_ms ? now.mono_ns - age_ms : 0;
			told.until_ns = now.mono_ns > age_ns ? now.mono_ns - age_ns : 0;
			dp_consumption_charge(consumption, &told, now);
			received->charged++;
		}
	}
}
