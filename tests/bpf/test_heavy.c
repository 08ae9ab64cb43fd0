// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_heavy.c - who sends: the counts of heavy sources are exact while few packets come, turn with
 * the windows, and name the limit. Who is heaviest in a flood: tests/prop/test_heavy_flood.c.
 */
#include <stdlib.h>

#include "lib/case.h"
#include "packet/host/heavy.h"

#define SECOND 1000000000ULL

static struct heavy_source *source;
static size_t count;
static u64 span_ns;

static void look(struct target *t)
{
	free(source);
	assert_int_equal(heavy_read(target_dp(t), target_mono(t), &source, &count, &span_ns), 0);
}

/* The entry of a prefix, or NULL. */
static const struct heavy_source *find(const char *prefix)
{
	char text[SL_PREFIX_TEXT];

	for (size_t i = 0; i < count; i++)
		if (!strcmp(sl_prefix_format(&source[i].source, text, sizeof(text)), prefix))
			return &source[i];
	return NULL;
}

static u64 packets(const char *prefix, enum sl_heavy_list list)
{
	const struct heavy_source *found = find(prefix);

	return found ? found->of[list].packets : 0;
}

CASE_TEST(counts_are_exact_below_the_sampling)
{
	static const struct frame_spec one = { .src = "198.51.100.1", .dport = 80 };
	static const struct frame_spec other = { .src = "198.51.100.2", .dport = 9 };
	static const struct frame_spec syn = {
		.src = "198.51.100.3", .proto = 6, .dport = 9, .tcp_flags = 0x02
	};

	case_policy(t, "limits: [{name: web, match: {dport: 80}, rate: 1 packets/h, burst: 10}]\n");
	assert_int_equal(case_send(t, &one, 1000), 10);
	assert_int_equal(case_send(t, &other, 700), 700);
	assert_int_equal(case_send(t, &syn, 5), 5);
	look(t);
	assert_int_equal(count, 3);
	assert_int_equal(packets("198.51.100.1", SL_HEAVY_DROPPED), 990);
	assert_int_equal(packets("198.51.100.1", SL_HEAVY_PASSED), 10);
	assert_int_equal(packets("198.51.100.2", SL_HEAVY_PASSED), 700);
	assert_int_equal(packets("198.51.100.2", SL_HEAVY_DROPPED), 0);
	assert_int_equal(find("198.51.100.1")->limit_id, target_image(t)->rules->limits[0].slot);
	assert_int_equal(find("198.51.100.1")->reason, SL_R_OVER);
	assert_int_equal(find("198.51.100.2")->limit_id, 0);
	assert_int_equal(find("198.51.100.3")->of[SL_HEAVY_PASSED].opened, 5);
	assert_int_equal(find("198.51.100.2")->of[SL_HEAVY_PASSED].opened, 0);
	assert_int_equal(find("198.51.100.1")->of[SL_HEAVY_DROPPED].missed, 0);
}

/* Addresses of one /64 are one source; IPv4 addresses are not merged with IPv6 of the same bits. */
CASE_TEST(a_64_is_one_source)
{
	static const struct frame_spec a = { .src = "2001:db8:1:2::1" },
				       b = { .src = "2001:db8:1:2:ffff::9" },
				       c = { .src = "2001:db8:1:3::1" },
				       v4 = { .src = "32.1.13.184" };

	case_policy(t, "limits: []\n");
	case_send(t, &a, 20);
	case_send(t, &b, 30);
	case_send(t, &c, 7);
	case_send(t, &v4, 3);
	look(t);
	assert_int_equal(packets("2001:db8:1:2::/64", SL_HEAVY_PASSED), 50);
	assert_int_equal(packets("2001:db8:1:3::/64", SL_HEAVY_PASSED), 7);
	assert_int_equal(packets("32.1.13.184", SL_HEAVY_PASSED), 3);
	assert_int_equal(count, 3);
}

/* What is older than the window before this one is not there any more. */
CASE_TEST(windows_turn)
{
	static const struct frame_spec a = { .src = "198.51.100.1" };
	u64 start;

	case_policy(t, "limits: []\n");
	start = (target_mono(t) / SL_HEAVY_WINDOW_NS + 1) * SL_HEAVY_WINDOW_NS - target_mono(t);
	target_set_time(t, start + SECOND);
	case_send(t, &a, 10);
	look(t);
	assert_int_equal(packets("198.51.100.1", SL_HEAVY_PASSED), 10);
	assert_int_equal(span_ns / SECOND, (SL_HEAVY_WINDOW_NS + SECOND) / SECOND);
	target_set_time(t, start + SL_HEAVY_WINDOW_NS + SECOND);
	look(t);
	assert_int_equal(packets("198.51.100.1", SL_HEAVY_PASSED), 10);
	case_send(t, &a, 5);
	look(t);
	assert_int_equal(packets("198.51.100.1", SL_HEAVY_PASSED), 15);
	target_set_time(t, start + 2 * SL_HEAVY_WINDOW_NS + SECOND);
	look(t);
	assert_int_equal(packets("198.51.100.1", SL_HEAVY_PASSED), 5);
	target_set_time(t, start + 4 * SL_HEAVY_WINDOW_NS);
	look(t);
	assert_int_equal(count, 0);
}

/* Beyond the exact part: the estimate is near, and what is missed is bounded. */
CASE_TEST(sampling_is_unbiased)
{
	static const struct frame_spec a = { .src = "198.51.100.1" }, b = { .src = "198.51.100.2" };
	const u64 sent = 600000;
	u64 found;

	case_policy(t, "limits: []\n");
	for (u32 i = 0; i < 60; i++) {
		case_send(t, &a, sent / 60 * 3 / 4);
		case_send(t, &b, sent / 60 / 4);
	}
	look(t);
	/* 3 of 4 of about 32k samples: five standard deviations are below 2%. */
	found = packets("198.51.100.1", SL_HEAVY_PASSED);
	assert_in_range(found, sent * 3 / 4 * 97 / 100, sent * 3 / 4 * 103 / 100);
	found = packets("198.51.100.2", SL_HEAVY_PASSED);
	assert_in_range(found, sent / 4 * 95 / 100, sent / 4 * 105 / 100);
}

int main(void)
{
	return case_main("heavy sources");
}
