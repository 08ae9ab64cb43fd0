// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_networks.c - networks.h: floods by their network, their neighbors not; and over random
 * sources the definition itself, computed from every prefix that there is.
 */
#include <stdlib.h>

#include "lib/test.h"
#include "lib/rng.h"
#include "lib/networks.h"

#define ROWS 20000

static struct networks_row row[ROWS];
static size_t rows;
static struct network found[NETWORKS_MAX];
static size_t count;

static int by_source(const void *a, const void *b)
{
	return sl_prefix_compare(&((const struct networks_row *)a)->source,
				 &((const struct networks_row *)b)->source);
}

/* `sources` of a prefix at equal distances, each with so much. */
static void add(const char *text, u32 sources, u64 each)
{
	struct sl_prefix prefix;
	const char *reason;
	u8 longest;

	assert_int_equal(sl_prefix_parse(text, &prefix, &reason), 0);
	longest = prefix.family == SL_V4 ? 32 : 64;
	for (u32 i = 0; i < sources; i++) {
		u64 step = ((u64)i << (longest - prefix.len)) / sources;

		assert_in_range(rows, 0, ROWS - 1);
		row[rows++] = (struct networks_row){
			.amount = { each },
			.source = { { prefix.addr.hi | step << (64 - longest), 0 },
				    prefix.family,
				    longest }
		};
	}
}

static void find(void)
{
	qsort(row, rows, sizeof(*row), by_source);
	count = networks_find(row, rows, found);
}

/* The texts of what was found, longest first. */
static const char *names(void)
{
	static char all[4096];
	char text[SL_PREFIX_TEXT];

	all[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		strcat(all, i ? " " : "");
		strcat(all, sl_prefix_format(&found[i].prefix, text, sizeof(text)));
	}
	return all;
}

TEST(a_spoofed_network_is_named_and_its_neighbors_are_not)
{
	static const struct {
		const char *flood, *named;
	} cases[] = {
		{ "10.7.0.0/16", "10.7.0.0/16" },
		{ "10.7.3.0/24", "10.7.3.0/24" },
		{ "10.0.0.0/8", "10.0.0.0/8" },
		{ "10.7.16.0/20", "10.7.16.0/20" },
		{ "10.16.0.0/12", "10.16.0.0/12" },
		{ "2001:db8:7::/48", "2001:db8:7::/48" },
		{ "2001:db8:7:100::/56", "2001:db8:7:100::/56" },
		{ "2001:db8::/32", "2001:db8::/32" },
		{ "2001:db8:7:8000::/49", "2001:db8:7:8000::/49" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		rows = 0;
		add(cases[i].flood, 256, 20);
		/* Neighbors: next to it, in the same /8 or /32, and far away. */
		add("10.8.0.0/24", 10, 20);
		add("10.7.200.0/24", 10, 2);
		add("2001:db8:8::/56", 10, 20);
		add("198.51.100.0/24", 10, 5);
		find();
		/* A /8 contains the neighbors, too. */
		assert_string_equal(names(), cases[i].named);
		assert_in_range(found[0].sources, 256, 276);
		assert_in_range(found[0].amount[0], 256 * 20, 256 * 20 + 10 * 22);
	}
}

TEST(a_heavy_source_counts_for_itself_alone)
{
	rows = 0;
	add("10.7.3.4/32", 1, 60000);
	add("10.7.0.0/16", 4000, 10);
	find();
	assert_string_equal(names(), "10.7.3.4 10.7.0.0/16");
	assert_int_equal(found[1].amount[0], 40000);
	assert_int_equal(found[1].sources, 4000);
	/* The whole Internet: no network of it has a tenth. */
	rows = 0;
	add("0.0.0.0/0", 4000, 10);
	find();
	assert_int_equal(count, 0);
	/* Nothing at all. */
	rows = 0;
	find();
	assert_int_equal(count, 0);
}

/* Each measure has its own tenth: few connections among many packets. */
TEST(any_measure_names)
{
	rows = 0;
	add("192.0.2.0/24", 200, 100000);
	add("10.7.0.0/16", 1000, 0);
	for (size_t i = 0; i < rows; i++)
		row[i].amount[3] = row[i].amount[0] ? 0 : 3;
	find();
	assert_string_equal(names(), "192.0.2.0/24 10.7.0.0/16");
}

/* By the definition, over every prefix of the lengths; without narrowing, which keeps 95% at
 * least. */
TEST(random_sources_by_the_definition)
{
	static const u8 lengths[] = { 32, 24, 16, 8 };

	rng_start("random_sources_by_the_definition");
	for (u32 round = 0; round < 200; round++) {
		u64 total = 0, named = 0;
		size_t singles = 0;

		rows = 0;
		for (u32 i = 0; i < 300; i++) {
			/* Few values of each byte, so that prefixes are shared. */
			u64 hi = (u64)(10 + rng_below(2)) << 56 | rng_below(3) << 48 |
				 rng_below(4) << 40 | (u64)i << 32;

			row[rows] = (struct networks_row){
				.source = { { hi & 0xffffffff00000000, 0 }, SL_V4, 32 },
				.amount = { rng_magnitude(12) }
			};
			total += row[rows++].amount[0];
		}
		qsort(row, rows, sizeof(*row), by_source);
		for (size_t i = 0, kept = 0; i < 300; i++) {
			if (kept && sl_prefix_equal(&row[kept - 1].source, &row[i].source))
				row[kept - 1].amount[0] += row[i].amount[0];
			else
				row[kept++] = row[i];
			rows = kept;
		}
		find();
		for (size_t i = 0; i < count; i++) {
			assert_true(found[i].amount[0] * 10 >= total * 95 / 100);
			singles += found[i].prefix.len == 32;
			named += found[i].amount[0];
		}
		assert_true(named <= total);
		assert_in_range(count, 0, 10);
		/* No prefix of the four lengths has a tenth that is not named. */
		for (size_t level = 0; level < 4; level++)
			for (size_t i = 0; i < rows; i++) {
				struct sl_addr net =
					sl_addr_mask(row[i].source.addr, lengths[level]);
				u64 left = 0;

				for (size_t k = 0; k < rows; k++)
					if (!row[k].network &&
					    sl_addr_mask(row[k].source.addr, lengths[level]).hi ==
						    net.hi)
						left += row[k].amount[0];
				assert_true(left * 10 < total);
			}
		/* And what is named sums to its rows. */
		for (size_t i = 0; i < count; i++) {
			u64 sum = 0;

			for (size_t k = 0; k < rows; k++) {
				sum += row[k].network == i + 1 ? row[k].amount[0] : 0;
				assert_true(row[k].network != i + 1 ||
					    sl_prefix_contains(&found[i].prefix, &row[k].source));
			}
			assert_int_equal(sum, found[i].amount[0]);
		}
		assert_in_range(singles, 0, count);
	}
}

TEST_MAIN
