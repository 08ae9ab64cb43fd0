// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The first of each kind and minute is logged, and no text of a client's keeps another frontend's
 * out. */
#include "lib/test.h"
#include "request/engine/engine.h"

static struct undecided undecided;

static bool logged(enum request_api api, u32 reason, const char *detail, u64 second)
{
	return undecided_log(&undecided, api, reason, "a test", detail,
			     (1000 + second) * SL_NS_PER_SEC);
}

TEST(test_minute)
{
	memset(&undecided, 0, sizeof(undecided));
	for (u64 second = 0; second < 300; second++) {
		assert_int_equal(logged(API_NGINX, UNDECIDED_UNREADABLE, "limit", second),
				 second % 60 == 0);
		assert_int_equal(logged(API_NGINX, UNDECIDED_UNREADABLE, "domain", second),
				 second % 60 == 0);
		assert_int_equal(logged(API_SPOE, UNDECIDED_UNREADABLE, "limit", second),
				 second % 60 == 0);
		assert_int_equal(logged(API_NGINX, UNDECIDED_CALLER, "limit", second),
				 second % 60 == 0);
	}
}

TEST(test_flood)
{
	u32 lines = 0;
	char text[32];

	memset(&undecided, 0, sizeof(undecided));
	for (u32 i = 0; i < 100000; i++) {
		snprintf(text, sizeof(text), "%u", i);
		lines += logged(API_NGINX, UNDECIDED_UNREADABLE, text, i / 1700);
	}
	assert_int_equal(lines, UNDECIDED_KINDS + 1);
	assert_true(logged(API_NGINX, UNDECIDED_CALLER, "token", 59));
	assert_true(logged(API_GRPC, UNDECIDED_COUNT, "beyond", 59));
	assert_false(logged(API_NGINX, UNDECIDED_UNREADABLE, "another", 59));
	assert_true(logged(API_NGINX, UNDECIDED_UNREADABLE, "another", 60));
}

TEST_MAIN
