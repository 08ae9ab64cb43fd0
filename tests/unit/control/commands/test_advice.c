// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_advice.c - the sentence about a limit, by its numbers. */
#include "lib/test.h"
#include "control/commands/advice.h"

static const struct {
	struct limit_numbers n;
	const char *words;	/* that the sentence has */
} cases[] = {
	{ { 0 }, "No packets have met it" },
	{ { .passed = 500 }, "none of 500 packets" },
	{ { .passed = 500, .near = 3 }, "3 sources used 80%" },
	{ { .passed = 500, .refused = 500, .live = 100, .over = 40 }, "40 of 100 sources are over it: it is too strict" },
	{ { .passed = 500, .refused = 500, .live = 100, .over = 40, .shadow = true }, "it would be too strict" },
	/* Of few sources a share says nothing; of many a small one is an attack's. */
	{ { .passed = 500, .refused = 500, .live = 10, .over = 10 }, "50.00% were refused" },
	{ { .passed = 500, .refused = 500, .live = 1000, .over = 40 }, "50.00% were refused" },
	{ { .passed = 900, .refused = 100, .seen = 4, .just_above = 3 }, "3 of 4 refused sources sent less than 1.5" },
	{ { .passed = 900, .refused = 100, .seen = 4, .far_above = 3 }, "3 of 4 refused sources sent more than twice" },
	{ { .passed = 900, .refused = 100, .seen = 4, .far_above = 3, .all = 100, .heaviest = 90 },
	  "One of the sources has 90%" },
	{ { .passed = 900, .refused = 100, .seen = 4, .just_above = 3, .all = 100, .heaviest = 90 },
	  "less than 1.5" },
	{ { .passed = 900, .refused = 100, .is_window = true, .near = 7 }, "sliding-window or token-bucket" },
	{ { .passed = 900, .refused = 100 }, "10.00% were refused; nobody was in the last seconds" },
	{ { .passed = 900, .refused = 100, .shadow = true }, "10.00% would have been refused" },
};

TEST(the_first_case_that_holds)
{
	char text[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct limit_numbers n = cases[i].n;

		n.unit = "packets";
		n.who = "sources";
		advice(&n, text, sizeof(text));
		if (!strstr(text, cases[i].words))
			fail_msg("'%s' has no '%s'", text, cases[i].words);
	}
}

/* The longest one is not cut. */
TEST(fits)
{
	struct limit_numbers n = { .unit = "requests", .who = "sources", .passed = ~0ULL >> 1, .refused = ~0ULL >> 2,
				   .near = ~0ULL, .live = ~0ULL, .seen = ~0ULL >> 2, .just_above = ~0ULL >> 2 };
	char text[256];

	for (int i = 0; i < 8; i++) {
		n.shadow = i & 1;
		n.is_window = i & 2;
		n.over = i & 4 ? ~0ULL >> 2 : 0;
		advice(&n, text, sizeof(text));
		assert_in_range(strlen(text), 10, 220);
		assert_int_equal(text[strlen(text) - 1], '.');
	}
}

TEST_MAIN
