// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rates, durations, counts and times: accepted text, refused text, and back to text. */
#include "lib/test.h"
#include "lib/units.h"
#include "lib/rng.h"

#define SEC SL_NS_PER_SEC

TEST(test_counts)
{
	static const struct {
		const char *text;
		u64 value;
	} good[] = { ITEMS({ "0", 0 }, { "1", 1 }, { "2000", 2000 }, { "10K", 10000 },
			   { "1M", 1000000 }, { "2G", 2000000000 }, { "1.5K", 1500 },
			   { "0.5M", 500000 }, { "2.000", 2 }, { "0.000000001G", 1 },
			   { "18446744073709551615", ~0ULL }) };
	static const char *const bad[] = { ITEMS(
		"", " 1", "1 ", "-1", "+1", "1k", "1KK", "1.", ".5", "1.5", "0.0005K", "1e3",
		"0x10", "1_000", "18446744073709551616", "18446744073709552K", "1.0000000001G",
		"99999999999999999999", "K", "1M1") };
	const char *reason;
	u64 value;
	size_t i;

	for (i = 0; i < COUNT(good); i++) {
		assert_int_equal(count_parse(good[i].text, &value, &reason), 0);
		assert_true(value == good[i].value);
	}
	for (i = 0; i < COUNT(bad); i++) {
		value = 42;
		reason = NULL;
		if (!count_parse(bad[i], &value, &reason))
			fail_msg("\"%s\" was read as %llu", bad[i], value);
		assert_true(value == 42);
		assert_non_null(reason);
	}
}

TEST(test_durations)
{
	static const struct {
		const char *text;
		u64 ns;
		const char *back;
	} good[] = { ITEMS({ "10s", 10 * SEC, "10s" }, { "5m", 300 * SEC, "5m" },
			   { "1h30m", 5400 * SEC, "1h30m" }, { "2d", 172800 * SEC, "2d" },
			   { "100ms", SEC / 10, "100ms" }, { "90s", 90 * SEC, "1m30s" },
			   { "0s", 0, "0s" }, { "24h", 86400 * SEC, "1d" }, { "1us", 1000, "1us" },
			   { "1s1ns", SEC + 1, "1s1ns" }) };
	static const char *const bad[] = {
		"",	   "10",   "s",	   "10x",  "10 s", "-1s",
		"1.5s",	   "1m1h", "1s1s", "1h30", "10S",  "99999999999999999999s",
		"213504d", "1sm",
	};
	const char *reason;
	char buf[64];
	u64 ns;
	size_t i;

	for (i = 0; i < COUNT(good); i++) {
		assert_int_equal(duration_parse(good[i].text, &ns, &reason), 0);
		assert_true(ns == good[i].ns);
		assert_string_equal(duration_format(ns, buf, sizeof(buf)), good[i].back);
	}
	for (i = 0; i < COUNT(bad); i++) {
		reason = NULL;
		if (!duration_parse(bad[i], &ns, &reason))
			fail_msg("\"%s\" was read as %llu ns", bad[i], ns);
		assert_non_null(reason);
	}
}

TEST(test_rates)
{
	static const struct {
		const char *text;
		struct rate rate;
		const char *back;
	} good[] = {
		{ "1000 packets/s", { 1000, SEC, RATE_PACKETS }, "1000 packets/s" },
		{ "1 packet/s", { 1, SEC, RATE_PACKETS }, "1 packet/s" },
		{ "1 packets/s", { 1, SEC, RATE_PACKETS }, "1 packet/s" },
		{ "1.5K bytes/m", { 1500, 60 * SEC, RATE_BYTES }, "1500 bytes/m" },
		{ "10M bits/s", { 10000000, SEC, RATE_BITS }, "10M bits/s" },
		{ "1G bit/s", { 1000000000, SEC, RATE_BITS }, "1G bits/s" },
		{ "100 connections/10s",
		  { 100, 10 * SEC, RATE_CONNECTIONS },
		  "100 connections/10s" },
		{ "5 packets/d", { 5, 86400 * SEC, RATE_PACKETS }, "5 packets/d" },
		{ "5 packets/1h30m", { 5, 5400 * SEC, RATE_PACKETS }, "5 packets/1h30m" },
		{ "5 packets/60m", { 5, 3600 * SEC, RATE_PACKETS }, "5 packets/h" },
		{ "5 packets/100ms", { 5, SEC / 10, RATE_PACKETS }, "5 packets/100ms" },
	};
	static const struct {
		const char *text, *reason; /* a part of it */
	} bad[] = {
		{ "", "not a rate" },
		{ "fast", "not a rate" },
		{ "1000", "not a rate" },
		{ "1000packets/s", "not a rate" },
		{ "1000 packets", "not a rate" },
		{ "1000 pakets/s", "unknown unit; accepted: packets, bytes, bits, connections" },
		{ "1000 packetss/s", "unknown unit" },
		{ "1000 /s", "unknown unit" },
		{ "10 requests/m", "HTTP tier" },
		{ "1000 packets/", "bad period" },
		{ "1000 packets/x", "bad period" },
		{ "1000 packets/month", "bad period" },
		{ "1000 packets/s ", "bad period" },
		{ "1000 packets/9999us", "too short" },
		{ "1000 packets/ms", "too short" },
		{ "1000 packets/0s", "too short" },
		{ "0 packets/s", "rate of 0" },
		{ "1.5 packets/s", "not a whole number" },
		{ "99999999999999999999 packets/s", "too large" },
		{ "1000 pps", "did you mean '1000 packets/s'" },
		{ "1000pps", "did you mean '1000 packets/s'" },
		{ "2K pps", "did you mean '2K packets/s'" },
		{ "1.5Mpps", "did you mean '1.5M packets/s'" },
		{ "10Mbps", "did you mean '10M bits/s'" },
		{ "10 Mbit/s", "did you mean '10M bits/s'" },
		{ "5 MB/s", "did you mean '5M bytes/s'" },
	};
	const char *reason;
	struct rate rate;
	char buf[64];
	size_t i;

	for (i = 0; i < COUNT(good); i++) {
		assert_int_equal(rate_parse(good[i].text, &rate, &reason), 0);
		assert_true(rate.count == good[i].rate.count &&
			    rate.period_ns == good[i].rate.period_ns &&
			    rate.unit == good[i].rate.unit);
		assert_string_equal(rate_format(&rate, buf, sizeof(buf)), good[i].back);
	}
	for (i = 0; i < COUNT(bad); i++) {
		reason = "";
		if (!rate_parse(bad[i].text, &rate, &reason) || !strstr(reason, bad[i].reason))
			fail_msg("\"%s\": reason \"%s\", wanted \"%s\"", bad[i].text, reason,
				 bad[i].reason);
	}
}

/* Every written value is read back unchanged. */
TEST(test_random_back)
{
	int i;

	rng_start(__func__);
	for (i = 0; i < 20000; i++) {
		struct rate rate, back;
		const char *reason;
		char buf[128];
		u64 ns;

		rate.count = (rng() >> (rng() % 63)) | 1;
		if (i % 3 == 0)
			rate.count = rate.count % 1000 * 1000000 + 1000000;
		rate.period_ns = SEC + (rng() >> (4 + rng() % 28));
		if (i % 2)
			rate.period_ns -= rate.period_ns % SEC;
		rate.unit = rng() % RATE_UNIT_COUNT;
		rate_format(&rate, buf, sizeof(buf));
		if (rate_parse(buf, &back, &reason))
			fail_msg("\"%s\": %s", buf, reason);
		assert_true(back.count == rate.count && back.period_ns == rate.period_ns &&
			    back.unit == rate.unit);

		ns = rng() % (500ULL * 365 * 86400 * SEC);
		utc_format(ns, buf, sizeof(buf));
		assert_int_equal(utc_parse(buf, &rate.count, &reason), 0);
		assert_true(rate.count == ns);
	}
}

TEST(test_times)
{
	static const char *const bad[] = { ITEMS(
		"", "2030-01-31", "2030-01-31T12:00:00", "2030-01-31T12:00:00+01:00",
		"2030-02-30T12:00:00Z", "2030-13-01T12:00:00Z", "1969-12-31T23:59:59Z",
		"9999-01-01T00:00:00Z", "2030-01-31T12:00:00Zx", " 2030-01-31T12:00:00Z",
		"2030-01-31T12:00:60Z", "2030-01-31T12:00:00.Zx") };
	const char *reason;
	char buf[64];
	size_t i;
	u64 ns;

	assert_int_equal(utc_parse("1970-01-01T00:00:01Z", &ns, &reason), 0);
	assert_true(ns == SEC);
	assert_int_equal(utc_parse("2030-01-31T12:00:00.5Z", &ns, &reason), 0);
	assert_true(ns == 1896091200ULL * SEC + SEC / 2);
	assert_string_equal(utc_format(ns, buf, sizeof(buf)), "2030-01-31T12:00:00.500000000Z");
	for (i = 0; i < COUNT(bad); i++) {
		if (!utc_parse(bad[i], &ns, &reason))
			fail_msg("\"%s\" was read", bad[i]);
	}
}

TEST(test_drops)
{
	static const char *const bad[] = { ITEMS(
		"", "drops/s", "5", "5 drops", "5drops/s", "0 drops/s", "5 packets/s", "5 drops/",
		"5 drops/10ms", "5 drops /s", "1.5 drops/s", "5 dropss/s") };
	const char *reason = NULL;
	u64 count = 7, period = 7;
	size_t i;

	assert_int_equal(drops_parse("1.5K drops/10s", &count, &period, &reason), 0);
	assert_int_equal(count, 1500);
	assert_int_equal(period, 10 * SL_NS_PER_SEC);
	assert_int_equal(drops_parse("1 drop/m", &count, &period, &reason), 0);
	assert_int_equal(count, 1);
	assert_int_equal(period, 60 * SL_NS_PER_SEC);
	for (i = 0; i < COUNT(bad); i++) {
		reason = NULL;
		if (!drops_parse(bad[i], &count, &period, &reason) || !reason)
			fail_msg("\"%s\" accepted, or without a reason", bad[i]);
	}
	assert_int_equal(count, 1);
}

TEST(test_percents)
{
	static const char *const bad[] = {
		"",    "%",	"10",  "10 %", "10.%",	    ".5%",
		"-1%", "0.05%", "1.%", "10%%", "99999999%", "18446744073709551626%",
	};
	u32 value = 7;
	size_t i;

	assert_int_equal(percent_parse("10%", &value), 0);
	assert_int_equal(value, 100);
	assert_int_equal(percent_parse("0.1%", &value), 0);
	assert_int_equal(value, 1);
	assert_int_equal(percent_parse("9999999.9%", &value), 0);
	assert_int_equal(value, 99999999);
	assert_int_equal(factor_parse("2", &value), 0);
	assert_int_equal(value, 200);
	assert_int_equal(factor_parse("1.25", &value), 0);
	assert_int_equal(value, 125);
	assert_int_equal(factor_parse("1.5", &value), 0);
	assert_int_equal(value, 150);
	assert_int_not_equal(factor_parse("1.255", &value), 0);
	assert_int_not_equal(factor_parse("2%", &value), 0);
	for (i = 0; i < COUNT(bad); i++)
		if (!percent_parse(bad[i], &value))
			fail_msg("\"%s\" accepted", bad[i]);
	assert_int_equal(value, 150);
}

TEST_MAIN
