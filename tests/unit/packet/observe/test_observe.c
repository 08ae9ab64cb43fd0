// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_observe.c - the events in memory: a flood of one kind leaves the others. */
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

static json_t *list_of(int kind, u64 after, size_t count)
{
	const struct observe_filter filter = { .kind = kind, .after = after, .count = count };

	return observe_read(observe, &filter);
}

static long long number(const json_t *result, const char *key)
{
	return json_integer_value(json_object_get(result, key));
}

/* Each has a room of its own; the answer is from when on all of a kind are kept. */
TEST_WITH(test_kinds_keep_their_room, NULL, teardown)
{
	static const int rare[] = { OBSERVED_BLOCK, OBSERVED_BAN, OBSERVED_PUSHDOWN,
				    OBSERVED_CHANGE };
	const char *began;
	struct sl_err err;
	json_t *first, *list;

	assert_int_equal(observe_open("/nonexistent", 0, 0, &observe, &err), 0);
	first = list_of(OBSERVED_CHANGE, 0, 1000);
	began = json_string_value(json_object_get(first, "kept_since"));
	assert_non_null(began);
	for (size_t i = 0; i < COUNT(rare); i++)
		flood((enum observed_kind)rare[i], 1);
	flood(OBSERVED_DROP, 20000);
	flood(OBSERVED_OVER, 5000);
	flood(OBSERVED_RELEASED, 5000);
	flood(OBSERVED_REFUSED, 5000);
	for (size_t i = 0; i < COUNT(rare); i++) {
		list = list_of(rare[i], 0, 1000);
		assert_int_equal(json_array_size(json_object_get(list, "events")), 1);
		assert_string_equal(json_string_value(json_object_get(list, "kept_since")), began);
		json_decref(list);
	}
	/* One more change than there is room: the first is gone, and the answer begins after it. */
	flood(OBSERVED_CHANGE, 128);
	list = list_of(OBSERVED_CHANGE, 0, 1);
	assert_string_not_equal(json_string_value(json_object_get(list, "kept_since")), began);
	json_decref(list);
	list = list_of(OBSERVED_CHANGE, 0, 1000);
	assert_int_equal(json_array_size(json_object_get(list, "events")), 128);
	json_decref(list);
	json_decref(first);
}

/* A reader gets each once, in order; of another kind's flood it misses nothing. */
TEST_WITH(test_readers, NULL, teardown)
{
	json_t *list, *event, *events;
	struct sl_err err;
	long long after;
	size_t i;

	assert_int_equal(observe_open("/nonexistent", 0, 0, &observe, &err), 0);
	flood(OBSERVED_BLOCK, 3);
	list = list_of(-1, 0, 2);
	after = number(list, "next");
	assert_int_equal(after, 3);
	json_decref(list);
	for (int n = 0; n < 100; n++) {
		flood(OBSERVED_DROP, 2);
		flood(OBSERVED_CHANGE, 1);
	}
	for (long long seen = 0; seen < 300;) {
		list = list_of(-1, (u64)after, 7);
		events = json_object_get(list, "events");
		assert_int_equal(number(list, "missed"), 0);
		json_array_foreach(events, i, event)
			assert_int_equal(number(event, "seq"), after + 1 + (long long)i);
		seen += (long long)json_array_size(events);
		after = number(list, "next");
		json_decref(list);
	}
	assert_int_equal(after, 303);
	flood(OBSERVED_DROP, 2000);
	flood(OBSERVED_CHANGE, 1);
	list = list_of(OBSERVED_CHANGE, (u64)after, 10);
	assert_int_equal(number(list, "missed"), 0);
	assert_int_equal(json_array_size(json_object_get(list, "events")), 1);
	json_decref(list);
	list = list_of(OBSERVED_DROP, (u64)after, 10);
	assert_int_equal(number(list, "missed"), 2000 - 1024);
	json_decref(list);
	/* A number of a daemon before this one. */
	list = list_of(OBSERVED_BLOCK, 1 << 30, 10);
	assert_int_equal(json_array_size(json_object_get(list, "events")), 3);
	json_decref(list);
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
	flood(OBSERVED_REFUSED, 2 * OBSERVE_LATEST);
	flood(OBSERVED_UNBAN, 1);
	list = observe_latest(observe);
	assert_int_equal(count_of(list, "drop"), OBSERVE_LATEST);
	assert_int_equal(count_of(list, "refused"), OBSERVE_LATEST);
	assert_int_equal(count_of(list, "over"), 3);
	assert_int_equal(count_of(list, "block"), 1);
	assert_int_equal(count_of(list, "ban"), 1);
	assert_int_equal(json_array_size(list), 2 * OBSERVE_LATEST + 6);
	json_array_foreach(list, i, event) {
		json_int_t seq = json_integer_value(json_object_get(event, "seq"));

		assert_true(seq > before);
		before = seq;
	}
	json_decref(list);
}

TEST(test_none)
{
	json_t *none = observe_latest(NULL);

	assert_true(json_is_null(none));
}

TEST_MAIN
