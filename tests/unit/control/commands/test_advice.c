// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_advice.c - the sentence about a limit, by its numbers. */
#include "lib/test.h"
#include "control/commands/advice.h"

/* A limit that refused half of its packets, or a tenth; those who were refused, and compared. */
#define HALF .passed = 500, .refused = 500
#define STRICT HALF, .live = 100, .over = 40
#define TENTH .passed = 900, .refused = 100
#define COMPARED(n) .seen = n, .compared = n

static const struct {
	struct limit_numbers n;
	const char *words; /* that the sentence has */
} cases[] = {
	{ { 0 }, "No packets have met it" },
	{ { .passed = 500 }, "none of 500 packets" },
	{ { .passed = 500, .near = 3 }, "3 sources used 80%" },
	{ { STRICT }, "40 of 100 sources are over it: it is too strict" },
	{ { STRICT, .shadow = true }, "it would be too strict" },
	/* Of few sources a share says nothing; of many a small one is an attack's. */
	{ { HALF, .live = 10, .over = 10 }, "50.00% were refused" },
	{ { HALF, .live = 1000, .over = 40 }, "50.00% were refused" },
	/* Where it is known what each source sent, the advice goes by that. */
	{ { STRICT, COMPARED(9), .within = 9, .burst = 6 },
	  "bursts; a token bucket with a burst of 6 would have refused none." },
	{ { STRICT, COMPARED(9), .far_above = 9 }, "stopping floods" },
	{ { TENTH, COMPARED(4), .within = 3, .no_burst = true },
	  "3 of 4 refused sources sent no more in 1m than the rate gives: it refuses bursts." },
	{ { TENTH, COMPARED(4), .within = 3, .burst = 7, .estimated = true },
	  "about 7 would have refused none of these." },
	{ { TENTH, COMPARED(4), .just_above = 3, .most_just = 1.25 },
	  "3 of 4 refused sources sent less than 1.5 times what the rate gives in 1m, the most 1.25 times" },
	{ { TENTH, COMPARED(4), .far_above = 3 }, "3 of 4 refused sources sent more than twice" },
	{ { TENTH, COMPARED(4), .far_above = 3, .refusing = 4, .all = 100, .heaviest = 90 },
	  "One of the sources has 90%" },
	/* It has no others. */
	{ { TENTH, COMPARED(1), .far_above = 1, .refusing = 1, .all = 100, .heaviest = 100 },
	  "1 of 1 refused sources sent more than twice" },
	{ { TENTH, .no_values = true, .no_buckets = true, .refusing = 1, .all = 100,
	    .heaviest = 100 },
	  "is not known: detailed_metric" },
	{ { TENTH, .common = true, .seen = 30, .refusing = 30, .all = 100, .heaviest = 90 },
	  "one bucket for all" },
	{ { TENTH, .seen = 3 }, "lately of 3 sources; its buckets are not one for each" },
	{ { TENTH, .is_window = true, .near = 7 }, "sliding-window or token-bucket" },
	{ { TENTH }, "10.00% were refused; nobody was lately" },
	{ { TENTH, .shadow = true }, "10.00% would have been refused" },
};

TEST(the_first_case_that_holds)
{
	char text[256];

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct limit_numbers n = cases[i].n;

		n.unit = "packets";
		n.who = "sources";
		n.period_ns = 60 * SL_NS_PER_SEC;
		advice(&n, text, sizeof(text));
		if (!strstr(text, cases[i].words))
			fail_msg("'%s' has no '%s'", text, cases[i].words);
	}
}

/*
 * The limit is 2 requests a second with a burst of 2. Each user sends all of its requests at once,
 * once in a minute. `burst` is the least with which a full token bucket would have refused none of
 * them.
 */
static const struct {
	u64 users, sent, capacity;
	bool windows;
	u64 within, just_above, far_above, burst;
} crowds[] = {
	{ 30, 6, 2, false, 30, 0, 0, 6 }, /* a flash sale */
	{ 30, 6, 2, true, 30, 0, 0, 6 },
	{ 30, 120, 2, false, 30, 0, 0, 120 }, /* just what the rate gives */
	{ 25, 150, 2, false, 0, 25, 0, 0 },   /* too strict */
	{ 25, 180, 2, false, 0, 0, 0, 0 },    /* neither */
	{ 3, 60000, 2, false, 0, 0, 3, 0 },   /* a flood */
};

TEST(those_who_were_refused)
{
	for (size_t i = 0; i < COUNT(crowds); i++) {
		struct limit_numbers n = { .who = "users" };

		for (u64 k = 0; k < crowds[i].users; k++)
			limit_numbers_add(
				&n, &(struct refused_one){ .period_ns = 60 * SL_NS_PER_SEC,
							   .given = 120,
							   .sent = (double)crowds[i].sent,
							   .sent_known = crowds[i].sent,
							   .refused_known = crowds[i].sent -
									    crowds[i].capacity,
							   .capacity = crowds[i].capacity,
							   .is_bucket = !crowds[i].windows });
		assert_int_equal(n.within, crowds[i].within);
		assert_int_equal(n.just_above, crowds[i].just_above);
		assert_int_equal(n.far_above, crowds[i].far_above);
		assert_int_equal(n.burst, crowds[i].burst);
	}
}

/* A full token bucket with the burst that the advice names passes all that a random sender
 * sends. */
TEST(the_burst_refuses_none)
{
	u64 seed = 88172645463325252ULL;

	for (int round = 0; round < 200; round++) {
		u64 at[64], capacity = 1 + round % 7, refused = 0, passed = 0, tokens = capacity,
			    last = 0;
		struct limit_numbers n = { .who = "users" };

		/* The rate is one unit a tick. */
		for (int i = 0; i < 64; i++) {
			seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
			at[i] = (i ? at[i - 1] : 0) + seed % 8 / 6 * (seed >> 32) % 4;
			tokens =
				tokens + at[i] - last < capacity ? tokens + at[i] - last : capacity;
			last = at[i];
			passed += tokens > 0;
			refused += !tokens;
			tokens -= tokens > 0;
		}
		if (!refused)
			continue;
		limit_numbers_add(&n, &(struct refused_one){ .given = 1000,
							     .sent = 64,
							     .sent_known = passed + refused,
							     .refused_known = refused,
							     .capacity = capacity,
							     .is_bucket = true });
		tokens = n.burst;
		last = 0;
		for (int i = 0; i < 64; i++) {
			tokens = tokens + at[i] - last < n.burst ? tokens + at[i] - last : n.burst;
			last = at[i];
			assert_true(tokens > 0);
			tokens--;
		}
	}
}

/* The longest one is not cut. */
TEST(fits)
{
	struct limit_numbers n = { .unit = "requests",
				   .who = "sources",
				   .passed = ~0ULL >> 1,
				   .refused = ~0ULL >> 2,
				   .near = ~0ULL,
				   .live = ~0ULL,
				   .seen = ~0ULL >> 2,
				   .compared = ~0ULL >> 2,
				   .just_above = ~0ULL >> 2,
				   .most_just = 1.49 };
	char text[256];

	for (int i = 0; i < 8; i++) {
		n.shadow = i & 1;
		n.is_window = i & 2;
		n.within = i & 4 ? ~0ULL >> 2 : 0;
		n.burst = ~0ULL >> 2;
		advice(&n, text, sizeof(text));
		assert_in_range(strlen(text), 10, 220);
		assert_int_equal(text[strlen(text) - 1], '.');
	}
}

TEST_MAIN
