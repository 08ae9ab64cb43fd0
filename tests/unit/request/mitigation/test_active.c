// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The users with the most requests: a flood of names displaces none of them, and windows end. */
#include "lib/test.h"
#include "request/mitigation/active.h"

#define S SL_NS_PER_SEC

static struct refusal_note note_of(u64 who, const char *value, u32 stands_for)
{
	struct refusal_note note = { .who = who,
				     .stands_for = stands_for,
				     .value_len = (u32)strlen(value) };

	memcpy(note.value, value, strlen(value) + 1);
	return note;
}

static struct active *active_new(void)
{
	struct active *active = test_calloc(1, sizeof(*active));

	active->window_ns = 5 * S;
	return active;
}

static const struct active_user *find(struct active *active, const char *value, u64 now_ns,
				      u64 *ret_span)
{
	static const struct active_user *user[ACTIVE_ROOM];
	u32 found = active_read(active, user, ret_span, now_ns);

	for (u32 i = 0; i < found; i++)
		if (user[i]->value_len == strlen(value) &&
		    !memcmp(user[i]->value, value, strlen(value)))
			return user[i];
	return NULL;
}

TEST(test_flood_of_names)
{
	struct active *active = active_new();
	struct refusal_note bob = note_of(1, "bob", 1), eve = note_of(2, "eve", 1);
	struct active_count sum;
	u64 span;

	for (u32 i = 0; i < 200000; i++) {
		struct refusal_note other = note_of(1000 + i, "invented", 1);

		active_add(active, &other, i % 2, "api/user", 100 * S);
		if (i % 100 == 0)
			active_add(active, &bob, false, "api/user", 100 * S);
		if (i % 50 == 0)
			active_add(active, &eve, true, "api/user", 100 * S);
	}
	assert_non_null(find(active, "bob", 101 * S, &span));
	sum = active_sum(find(active, "bob", 101 * S, &span));
	assert_true(sum.passed <= 2000 && sum.passed + sum.missed >= 2000);
	assert_int_equal(sum.refused, 0);
	sum = active_sum(find(active, "eve", 101 * S, &span));
	assert_true(sum.refused <= 4000 && sum.refused + sum.missed >= 4000);
	/* At most the 512th part of all. */
	assert_true(sum.missed <= 206000 / ACTIVE_ROOM + 1);
	test_free(active);
}

TEST(test_windows)
{
	struct active *active = active_new();
	struct refusal_note bob = note_of(1, "bob", 10), eve = note_of(2, "eve", 1);
	u64 span;

	active_add(active, &bob, false, "api/user", 100 * S);
	assert_string_equal(find(active, "bob", 100 * S, &span)->rule, "api/user");
	assert_int_equal(span, S);
	active_add(active, &eve, true, "api/user", 104 * S);
	/* The next window: both are of the one before. */
	active_add(active, &eve, true, "api/user", 107 * S);
	assert_int_equal(active_sum(find(active, "bob", 107 * S, &span)).passed, 10);
	assert_int_equal(active_sum(find(active, "eve", 107 * S, &span)).refused, 2);
	assert_int_equal(span, 7 * S);
	/* And the one after that: bob is gone. */
	assert_null(find(active, "bob", 111 * S, &span));
	assert_int_equal(active_sum(find(active, "eve", 111 * S, &span)).refused, 1);
	assert_int_equal(span, 6 * S);
	/* Nothing for a while. */
	assert_null(find(active, "eve", 200 * S, &span));
	test_free(active);
}

/* As sources.c has it for refusals: the length of a window is the table's own. */
TEST(test_long_windows)
{
	struct active *active = active_new();
	struct refusal_note eve = note_of(2, "eve", 1);
	u64 span;

	active->window_ns = 300 * S;
	active_add(active, &eve, true, "api/user", 100 * S);
	assert_int_equal(active_sum(find(active, "eve", 690 * S, &span)).refused, 1);
	assert_int_equal(span, 590 * S);
	assert_null(find(active, "eve", 700 * S, &span));
	test_free(active);
}

TEST(test_long_value)
{
	struct active *active = active_new();
	struct refusal_note note = note_of(1, "0123456789", 1);
	u64 span;

	memset(note.value, 'x', sizeof(note.value));
	note.value_len = 500;
	active_add(active, &note, true, "api/user", S);
	note = note_of(2, "short", 1);
	active_add(active, &note, true, "api/user", S);
	assert_false(find(active, "short", S, &span)->cut);
	note = note_of(1, "ignored", 1);
	active_add(active, &note, true, "api/user", S);
	assert_null(find(active, "ignored", S, &span));
	test_free(active);
}

TEST_MAIN
