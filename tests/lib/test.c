// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test.c - see test.h. */
#include "lib/test.h"

#define TESTS_MAX 128

static struct CMUnitTest tests[TESTS_MAX];
static int line_of[TESTS_MAX];
static size_t count;

/* Constructors run in any order: sorted by line. */
void test_add(int line, struct CMUnitTest test)
{
	size_t at = count++;

	if (count > TESTS_MAX)
		abort();
	for (; at && line_of[at - 1] > line; at--) {
		tests[at] = tests[at - 1];
		line_of[at] = line_of[at - 1];
	}
	tests[at] = test;
	line_of[at] = line;
}

int test_run(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	return _cmocka_run_group_tests("tests", tests, count, set_up, tear_down);
}

int test_run_as(const char *group)
{
	return _cmocka_run_group_tests(group, tests, count, NULL, NULL);
}
