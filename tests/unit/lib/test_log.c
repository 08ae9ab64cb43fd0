// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The texts of an outage: each is logged once, and a peer that invents texts does not fill the
 * log. */
#include <stdio.h>

#include "lib/log.h"
#include "lib/test.h"

TEST(test_texts)
{
	struct log_texts texts = {};
	char text[20];
	u32 logged = 0;

	for (u32 round = 0; round < 3; round++) {
		assert_int_equal(log_texts_add(&texts, "refused"), !round);
		assert_int_equal(log_texts_add(&texts, ""), !round);
	}
	for (u32 i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "refused %u", i);
		logged += log_texts_add(&texts, text);
	}
	assert_int_equal(logged, LOG_TEXTS_MAX - 2);
	/* The next outage. */
	texts.count = 0;
	assert_true(log_texts_add(&texts, "refused"));
}

TEST_MAIN
