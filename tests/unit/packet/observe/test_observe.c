// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_observe.c - the events in memory: a flood of one class leaves the latest of the others. */
#include "lib/test.h"


#include "packet/observe/observe.h"

static struct observe *observe;

static int teardown(void **state)
{
	observe_close(observe);
	observe = NULL;
	return 0;
}

static size_t count_of(const json_t *list, const char *kind)
{
	const json_t *event;
	size_t i, count = 0;

	json_array_foreach(list, i, event)
		count += !strcmp(json_string_value(json_object_get(event, "kind")), kind);
	return count;
}

static void flood(enum observed_kind kind, u32 count)
{
	struct sl_prefix source;
	const char *reason;

	assert_int_equal(sl_prefix_parse("198.51.100.7", &source, &reason), 0);
	for (u32 i = 0; i < count; i++)
		observe_tell(observe, kind, &source, "web", NULL, NULL);
}

TEST_WITH(test_latest, NULL, teardown)
{
	struct sl_err err;
	json_t *list, *event;
	json_int_t before = 0;
	size_t i;

	assert_int_equal(observe_open("/nonexistent", 0, 0, &observe, &err), 0);
	list = observe_latest(observe);
	assert_int_equal(json_array_size(list), 0);
	json_decref(list);
	flood(OBSERVED_BLOCK, 1);
	flood(OBSERVED_OVER, 3);
	flood(OBSERVED_BAN, 1);
	flood(OBSERVED_DROP, 2 * OBSERVE_KEPT);
	flood(OBSERVED_UNBAN, 1);
	list = observe_latest(observe);
	assert_int_equal(count_of(list, "drop"), OBSERVE_LATEST);
	assert_int_equal(count_of(list, "over"), 3);
	assert_int_equal(count_of(list, "block"), 1);
	assert_int_equal(count_of(list, "ban"), 1);
	assert_int_equal(json_array_size(list), OBSERVE_LATEST + 6);
	json_array_foreach(list, i, event) {
		json_int_t seq = json_integer_value(json_object_get(event, "seq"));

		assert_true(seq > before);
		before = seq;
	}
	json_decref(list);

	flood(OBSERVED_OVER, 2 * OBSERVE_LATEST);
	flood(OBSERVED_REFUSED, OBSERVE_LATEST - 1);
	list = observe_latest(observe);
	assert_int_equal(count_of(list, "over"), 1);
	assert_int_equal(count_of(list, "refused"), OBSERVE_LATEST - 1);
	assert_int_equal(count_of(list, "unban"), 1);
	json_decref(list);
}

TEST(test_none)
{
	json_t *none = observe_latest(NULL);

	assert_true(json_is_null(none));
}

TEST_MAIN
