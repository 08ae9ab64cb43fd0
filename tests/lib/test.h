/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * test.h - a test program: the headers that every test needs, and tests that are in the program
 * once they are written. They run in the order of the file.
 *
 *     TEST(a_refused_request_is_not_charged)
 *     {
 *             ...
 *     }
 *
 *     TEST_MAIN
 */
#ifndef TESTS_LIB_TEST_H
#define TESTS_LIB_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Short items of an array, which stand in lines and not below each other. */
#define ITEMS(...) __VA_ARGS__

/* With a fixture, as of cmocka: `set_up` and `tear_down` may be NULL. */
#define TEST_WITH(test, set_up, tear_down)                                                         \
	static void test(void **state);                                                            \
	__attribute__((constructor)) static void test##_add(void)                                  \
	{                                                                                          \
		test_add(__LINE__, (struct CMUnitTest){ #test, test, set_up, tear_down, NULL });   \
	}                                                                                          \
	static void test(void **state)
#define TEST(test) TEST_WITH(test, NULL, NULL)

#define TEST_MAIN                                                                                  \
	int main(void)                                                                             \
	{                                                                                          \
		return test_run(NULL, NULL);                                                       \
	}

void test_add(int line, struct CMUnitTest test);
/* Runs the tests added; returns how many failed. The functions are cmocka's group fixtures, or
 * NULL. */
int test_run(CMFixtureFunction set_up, CMFixtureFunction tear_down);
/* The same of a group by another name than the program's. */
int test_run_as(const char *group);

#endif
