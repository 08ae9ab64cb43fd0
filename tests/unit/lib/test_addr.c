// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prefixes: text to struct and back, containment; and the form of an error. */
#include "lib/test.h"
#include "lib/addr.h"
#include "lib/err.h"
#include "lib/rng.h"

static struct sl_prefix prefix_of(const char *text)
{
	struct sl_prefix prefix;
	const char *reason;

	if (sl_prefix_parse(text, &prefix, &reason))
		fail_msg("%s: %s", text, reason);
	return prefix;
}

TEST(test_parse)
{
	static const struct {
		const char *text;
		struct sl_prefix prefix;
		const char *back;
	} good[] = {
		{ "192.0.2.1", { { 0xc000020100000000, 0 }, SL_V4, 32 }, "192.0.2.1" },
		{ "192.0.2.0/24", { { 0xc000020000000000, 0 }, SL_V4, 24 }, "192.0.2.0/24" },
		{ "192.0.2.1/32", { { 0xc000020100000000, 0 }, SL_V4, 32 }, "192.0.2.1" },
		{ "0.0.0.0/0", { { 0, 0 }, SL_V4, 0 }, "0.0.0.0/0" },
		{ "::/0", { { 0, 0 }, SL_V6, 0 }, "::/0" },
		{ "::1", { { 0, 1 }, SL_V6, 128 }, "::1" },
		{ "2001:DB8:0:0:0:0:0:0/32",
		  { { 0x20010db800000000, 0 }, SL_V6, 32 },
		  "2001:db8::/32" },
		{ "2001:db8::1:0:0:1/128",
		  { { 0x20010db800000000, 0x0001000000000001 }, SL_V6, 128 },
		  "2001:db8::1:0:0:1" },
		{ "fe80::/65", { { 0xfe80000000000000, 0 }, SL_V6, 65 }, "fe80::/65" },
	};
	char buf[SL_PREFIX_TEXT];
	size_t i;

	for (i = 0; i < COUNT(good); i++) {
		struct sl_prefix prefix = prefix_of(good[i].text);

		assert_true(sl_prefix_equal(&prefix, &good[i].prefix));
		assert_string_equal(sl_prefix_format(&prefix, buf, sizeof(buf)), good[i].back);
	}
}

TEST(test_refuse)
{
	static const struct {
		const char *text, *reason; /* a part of it */
	} bad[] = {
		{ "", "not an address" },
		{ "localhost", "not an address" },
		{ "192.0.2", "not an address" },
		{ "192.0.2.256", "not an address" },
		{ "192.0.02.1", "not an address" },
		{ " 192.0.2.1", "not an address" },
		{ "192.0.2.1 ", "not an address" },
		{ "fe80::1%eth0", "not an address" },
		{ "2001:db8:::1", "not an address" },
		{ "/24", "not an address" },
		{ "192.0.2.0/33", "/0 to /32" },
		{ "192.0.2.0/", "/0 to /32" },
		{ "192.0.2.0/+4", "/0 to /32" },
		{ "192.0.2.0/08", "/0 to /32" },
		{ "192.0.2.0/24 ", "/0 to /32" },
		{ "192.0.2.0/255.255.255.0", "/0 to /32" },
		{ "192.0.2.0/99999999999999999999", "/0 to /32" },
		{ "::/129", "/0 to /128" },
		{ "192.0.2.1/24", "host bits" },
		{ "2001:db8::1/64", "host bits" },
		{ "2001:db8:0:0:8000::/64", "host bits" },
		{ "128.0.0.0/0", "host bits" },
		{ "1111111111111111111111111111111111111111111111111111.1", "not an address" },
	};
	size_t i;

	for (i = 0; i < COUNT(bad); i++) {
		struct sl_prefix prefix = { { 1, 2 }, 3, 4 };
		const char *reason = "";

		if (sl_prefix_parse(bad[i].text, &prefix, &reason) != -EINVAL ||
		    !strstr(reason, bad[i].reason))
			fail_msg("\"%s\": \"%s\"", bad[i].text, reason);
		assert_true(prefix.addr.hi == 1 && prefix.len == 4); /* untouched */
	}
}

TEST(test_contains)
{
	static const struct {
		const char *outer, *inner;
		bool contains;
	} cases[] = {
		{ "192.0.2.0/24", "192.0.2.7", true },
		{ "192.0.2.0/24", "192.0.3.7", false },
		{ "192.0.2.0/24", "192.0.2.0/24", true },
		{ "192.0.2.0/24", "192.0.0.0/16", false },
		{ "0.0.0.0/0", "255.255.255.255", true },
		{ "0.0.0.0/0", "::/0", false },
		{ "::/0", "0.0.0.0", false },
		{ "2001:db8::/65", "2001:db8::1", true },
		{ "2001:db8::/65", "2001:db8:0:0:8000::", false },
	};
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		struct sl_prefix outer = prefix_of(cases[i].outer);
		struct sl_prefix inner = prefix_of(cases[i].inner);

		assert_int_equal(sl_prefix_contains(&outer, &inner), cases[i].contains);
	}
}

TEST(test_random_back)
{
	int i;

	rng_start(__func__);
	for (i = 0; i < 20000; i++) {
		struct sl_prefix prefix = { .family = i & 1 }, back;
		char buf[SL_PREFIX_TEXT];

		/* :: abbreviates runs of zeros */
		prefix.addr.hi = rng() & (rng() % 3 ? ~0ULL : 0xffff0000ffffULL);
		if (prefix.family == SL_V4)
			prefix.addr.hi &= 0xffffffff00000000;
		else
			prefix.addr.lo = rng() % 3 ? rng() : 0;
		prefix.len = rng() % (prefix.family == SL_V4 ? 33 : 129);
		prefix.addr = sl_addr_mask(prefix.addr, prefix.len);
		back = prefix_of(sl_prefix_format(&prefix, buf, sizeof(buf)));
		assert_true(sl_prefix_equal(&prefix, &back));
	}
}

TEST(test_err)
{
	struct sl_err err;
	char buf[64];

	assert_int_equal(sl_err_at(&err, EINVAL, "a.yaml", 3, 7, "bad %d", 5), -EINVAL);
	assert_string_equal(sl_err_format(&err, buf, sizeof(buf)), "a.yaml:3:7: bad 5");
	sl_err_at(&err, EINVAL, "a.yaml", 0, 0, "gone");
	assert_string_equal(sl_err_format(&err, buf, sizeof(buf)), "a.yaml: gone");
	assert_int_equal(sl_err_set(&err, ENOENT, "no"), -ENOENT);
	assert_string_equal(sl_err_format(&err, buf, sizeof(buf)), "no");
	assert_int_equal(sl_err_set(NULL, ENOMEM, "nobody asked"), -ENOMEM);
	sl_err_set(&err, EINVAL, "%1000s", "cut");
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
}

TEST_MAIN
