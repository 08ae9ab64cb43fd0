// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_tally.c - counts of sources in bounded memory against exact ones, and outcomes over time. */
#include "lib/rng.h"
#include "lib/test.h"
#include "replay/tally.h"
#include "replay/timeline.h"

#define ALL (TALLY_SETS * TALLY_WAYS)

static double by_count(const struct tally_entry *entry, const void *arg)
{
	return (double)entry->count;
}

static struct tally_entry *send(struct tally *tally, u32 source, u64 second)
{
	return tally_source(tally, (struct sl_addr){ .hi = (u64)source << 32 }, SL_V4, 100, second);
}

TEST(a_few_sources_are_counted_exactly)
{
	struct tally *tally = tally_new(false);
	struct tally_entry *top[3];

	for (u32 i = 0; i < 5000; i++)
		for (u32 k = 0; k <= i % 7; k++)
			send(tally, i + 1, 0);
	assert_int_equal(tally_subjects(tally), 5000);
	assert_int_equal(tally_replaced(tally), 0);
	assert_int_equal(tally_top(tally, by_count, NULL, top, 3), 3);
	for (u32 i = 0; i < 3; i++) {
		assert_int_equal(top[i]->count, 7);
		assert_int_equal(top[i]->bytes, 700);
		assert_int_equal(top[i]->missed, 0);
	}
	tally_free(tally);
}

/* 20 heavy sources among two million of one packet each. */
TEST(heavy_sources_stay_and_the_bound_holds)
{
	struct tally *tally = tally_new(false);
	struct tally_entry *top[20];
	u32 heavy = 0;

	for (u32 i = 0; i < 2000000; i++) {
		send(tally, 1000 + i, 0);
		if (i % 40 == 0)
			send(tally, 1 + i / 40 % 20, 0);
	}
	assert_true(tally_replaced(tally) > 0);
	assert_int_equal(tally_subjects(tally), ALL);
	assert_int_equal(tally_top(tally, by_count, NULL, top, 20), 20);
	for (u32 i = 0; i < 20; i++) {
		u32 source = top[i]->source.addr.hi >> 32;

		assert_in_range(source, 1, 20);
		heavy |= 1U << source;
		assert_true(top[i]->count <= 2500 && top[i]->count + top[i]->missed >= 2500);
		assert_true(top[i]->missed < 200);
	}
	assert_int_equal(heavy, 0x1ffffe);
	tally_free(tally);
}

TEST(the_fullest_second)
{
	struct tally *tally = tally_new(false);
	struct tally_entry *entry = NULL;
	static const u32 rate[] = { 3, 9, 5 };

	for (u32 second = 0; second < 3; second++)
		for (u32 i = 0; i < rate[second]; i++)
			entry = send(tally, 7, second);
	assert_int_equal(entry->peak, 9);
	assert_int_equal(entry->count, 17);
	tally_free(tally);
}

/* Of a value that a client chose, a label is text and of bounded length; the rest still separates
 * two. */
TEST(labels_are_text)
{
	struct tally *tally = tally_new(true);
	char text[200];
	struct tally_entry *a, *b;

	memset(text, 'x', sizeof(text));
	text[1] = '\n';
	text[2] = '\xff';
	a = tally_value(tally, (struct bytes){ text, sizeof(text) }, 0);
	text[199] = 'y';
	b = tally_value(tally, (struct bytes){ text, sizeof(text) }, 0);
	assert_ptr_not_equal(a, b);
	assert_string_equal(tally_label(tally, a), tally_label(tally, b));
	assert_int_equal(strlen(tally_label(tally, a)), TALLY_LABEL - 1);
	assert_memory_equal(tally_label(tally, a), "x??x", 4);
	tally_free(tally);
}

TEST(a_timeline_keeps_its_sums_however_long)
{
	struct timeline line;
	u64 sent = 0, found = 0, ns = 0;

	rng_start("timeline");
	timeline_begin(&line, SL_NS_PER_SEC / 100);
	for (u32 i = 0; i < 10000; i++) {
		timeline_at(&line, ns)[i % 2][OUTCOME_REFUSED]++;
		sent++;
		ns += rng_below(1ULL << (10 + i / 250));
	}
	for (u32 i = 0; i < TIMELINE_BINS; i++)
		for (u32 k = 0; k < REPLAY_SIDES; k++)
			found += line.count[i][k][OUTCOME_REFUSED];
	assert_int_equal(found, sent);
	assert_in_range(line.bins, TIMELINE_BINS / 2, TIMELINE_BINS);
	assert_true(line.step_ns * line.bins >= ns / 2);
}

TEST_MAIN
