// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_out.c - numbers of every length, and text that does not fit. */
#include "lib/out.h"
#include "lib/rng.h"
#include "lib/test.h"
#include "lib/visible.h"

static void assert_number(u64 value)
{
	char got[24], want[24];
	struct out out;

	out_begin(&out, got, sizeof(got));
	out_u64(&out, value);
	assert_int_equal(out.len, snprintf(want, sizeof(want), "%llu", value));
	assert_string_equal(out_end(&out), want);
}

TEST(test_numbers)
{
	u64 power = 1;

	for (u64 value = 0; value < 1100; value++)
		assert_number(value);
	for (u32 digits = 0; digits < 20; digits++, power *= 10) {
		assert_number(power - 1);
		assert_number(power);
		assert_number(power + 1);
	}
	assert_number(~0ULL);
	rng_start("out");
	for (u32 i = 0; i < 10000; i++)
		assert_number(rng_magnitude(64));
}

static void assert_visible(const char *text, const char *line, const char *json)
{
	char *got = visible_new(text, VISIBLE_LINE);

	assert_string_equal(got, line);
	free(got);
	got = visible_new(text, VISIBLE_JSON);
	assert_string_equal(got, json);
	free(got);
}

/* Nothing that a terminal obeys, and no two texts that look the same. */
TEST(test_visible)
{
	char bytes[40];
	struct out out;

	assert_visible("plain \u00e9\u20ac\U0001f600", "plain \u00e9\u20ac\U0001f600",
		       "plain \u00e9\u20ac\U0001f600");
	assert_visible("\x1b[31m", "\\x1b[31m", "\\u001b[31m");
	assert_visible("\\x1b[31m", "\\\\x1b[31m", "\\x1b[31m");
	assert_visible("a\xc2\x9b"
		       "31m\xc2\x9d",
		       "a\\u009b31m\\u009d", "a\\u009b31m\\u009d");
	assert_visible("\xe2\x80\xae"
		       "cba\xe2\x81\xa6",
		       "\\u202ecba\\u2066", "\\u202ecba\\u2066");
	assert_visible("a\nb\x7f", "a\\x0ab\\x7f", "a\nb\\u007f");
	assert_visible("\xff\xc3", "\\xff\\xc3", "\\xff\\xc3");
	assert_visible("\U000e0041", "\\U000e0041", "\\udb40\\udc41");
	/* Bytes that are not UTF-8, carried by JSON. */
	out_begin(&out, bytes, sizeof(bytes));
	out_utf8(&out, "\xff\0\xc3\xa9", 4);
	assert_visible(out_end(&out), "\\xff\\x00\u00e9", "\\udbff\\udfff\\udbff\\udf00\u00e9");
}

TEST(test_cut)
{
	char got[4];
	struct out out;

	out_begin(&out, got, sizeof(got));
	out_u64(&out, 12345);
	assert_int_equal(out.len, 5);
	assert_string_equal(out_end(&out), "123");
}

/* Into `size` bytes of many: as if there were more, and nothing is written behind them. */
static void assert_within(size_t size, size_t before, u64 value, size_t text)
{
	static const char filler[] = "abcdefghijklmnopqrstuvwxyz";
	char got[128], want[128];
	struct out out;

	memset(got, '!', sizeof(got));
	out_begin(&out, got, size);
	out_bytes(&out, filler, before);
	out_u64(&out, value);
	out_bytes(&out, filler, text);
	assert_int_equal(out.len, snprintf(want, sizeof(want), "%.*s%llu%.*s", (int)before, filler,
					   value, (int)text, filler));
	assert_memory_equal(got, want, out.len < size ? out.len : size);
	for (size_t i = size; i < sizeof(got); i++)
		assert_int_equal(got[i], '!');
}

TEST(test_edges)
{
	u64 value = 7;

	for (u32 digits = 1; digits <= 20; digits++, value = value * 10 + 1)
		for (size_t size = 0; size < 48; size++)
			for (size_t before = 0; before < 12; before++)
				for (size_t text = 0; text < 4; text++)
					assert_within(size, before, value, text);
}

TEST_MAIN
