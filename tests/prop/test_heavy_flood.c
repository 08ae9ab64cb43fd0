// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_heavy_flood.c - the step of bpf/heavy.h under floods, against exact counts: who is on top,
 * and the bound packets <= sent <= packets + missed where every packet is a sample.
 */
#include <math.h>
#include <stdlib.h>

#include "lib/test.h"
#include "lib/rng.h"
#include "packet/dataplane/sim_env.h"
#include "packet/host/heavy.h"
#include "bpf/heavy.h"

#define CPUS 2
#define START (100 * SL_HEAVY_WINDOW_NS)

/* Of sim_env.h: a packet's way goes on nowhere here. */
__attribute__((unused)) static int sim_stage(env_ctx *ctx, enum sl_stage stage)
{
	return ctx && stage ? ENV_DROP : ENV_PASS;
}

static struct dp *dp;
static struct evaluation ev[CPUS]; /* each has its own */
static struct heavy_source *found;
static size_t found_count;

static void begin(void)
{
	assert_int_equal(dp_sim_open(64, CPUS, 1, &dp), 0);
	sim = (struct dp_sim *)dp;
	memset(ev, 0, sizeof(ev));
}

static void end(void)
{
	free(found);
	found = NULL;
	dp->ops->close(dp);
}

/* A dropped packet of 100 bytes. */
static void meet(u32 cpu, u32 address, u64 at_ns)
{
	struct packet *pkt = &ev[cpu].pkt;

	sim_cpu = &sim->cpu[cpu];
	sim->mono_ns = at_ns;
	pkt->now.mono_ns = 0;
	pkt->flags = PKT_ADDR;
	pkt->family = SL_V4;
	pkt->length = 100;
	pkt->src = (struct sl_addr){ (u64)address << 32, 0 };
	if (heavy_is_due(&ev[cpu], SL_ACT_DROP))
		heavy_note(&ev[cpu], SL_ACT_DROP);
}

static int by_dropped(const void *a, const void *b)
{
	u64 x = ((const struct heavy_source *)a)->of[SL_HEAVY_DROPPED].packets;
	u64 y = ((const struct heavy_source *)b)->of[SL_HEAVY_DROPPED].packets;

	return (x < y) - (x > y);
}

static int by_prefix(const void *a, const void *b)
{
	return sl_prefix_compare(&((const struct heavy_source *)a)->source,
				 &((const struct heavy_source *)b)->source);
}

static void look(u64 at_ns)
{
	u64 span;

	assert_int_equal(heavy_read(dp, at_ns, &found, &found_count, &span), 0);
	qsort(found, found_count, sizeof(*found), by_dropped);
}

static u32 address_of(const struct heavy_source *source)
{
	return (u32)(source->source.addr.hi >> 32);
}

/* -------------------------------------------------------------- a million sources by Zipf's law */

#define SOURCES 1000000
#define FLOOD 40000000 /* seven seconds of 5.8M packets/s */

/* Walker's alias method (1977): `other` in place of a source, with 1 - keep / 2^32. */
static u32 *keep, *other;

static void alias_make(void)
{
	double *p = malloc(SOURCES * sizeof(*p)), sum = 0;
	u32 *small = malloc(SOURCES * sizeof(*small)), *large = malloc(SOURCES * sizeof(*large));
	u32 smalls = 0, larges = 0, i;

	keep = malloc(SOURCES * sizeof(*keep));
	other = malloc(SOURCES * sizeof(*other));
	for (i = 0; i < SOURCES; i++)
		sum += 1.0 / (i + 1);
	for (i = 0; i < SOURCES; i++) {
		p[i] = SOURCES / sum / (i + 1);
		if (p[i] < 1)
			small[smalls++] = i;
		else
			large[larges++] = i;
		keep[i] = ~0U;
		other[i] = i;
	}
	while (smalls && larges) {
		u32 s = small[--smalls], l = large[larges - 1];

		keep[s] = (u32)(p[s] * 4294967295.0);
		other[s] = l;
		p[l] -= 1 - p[s];
		if (p[l] < 1) {
			larges--;
			small[smalls++] = l;
		}
	}
	free(p);
	free(small);
	free(large);
}

static const u32 *sent_by;

static int by_sent(const void *a, const void *b)
{
	u32 x = sent_by[*(const u32 *)a], y = sent_by[*(const u32 *)b];

	return (x < y) - (x > y);
}

TEST(heaviest_hundred_of_a_million)
{
	u32 *sent = calloc(SOURCES, sizeof(*sent)), *order = malloc(SOURCES * sizeof(*order));
	u32 wrong = 0, hundredth, i;

	rng_start("test_heavy_flood");
	alias_make();
	begin();
	for (i = 0; i < FLOOD; i++) {
		u64 random = rng();
		u32 source = (u32)((random >> 32) * SOURCES >> 32);

		if ((u32)random > keep[source])
			source = other[source];
		sent[source]++;
		/* An order that an address does not show. */
		meet((u32)(random >> 7) & 1, source * 2654435761U, START + (u64)i * 170);
	}
	look(START + (u64)FLOOD * 170);
	for (i = 0; i < SOURCES; i++)
		order[i] = i;
	sent_by = sent;
	qsort(order, SOURCES, sizeof(*order), by_sent);
	hundredth = sent[order[99]];
	assert_true(found_count >= 100);
	for (i = 0; i < 100; i++)
		/* 2654435761 * 244002641 = 1 modulo 2^32. */
		wrong += sent[address_of(&found[i]) * 244002641U] < hundredth;
	print_message("%u of the first 100 are not of the heaviest 100\n", wrong);
	assert_in_range(wrong, 0, 5);
	end();
	free(sent);
	free(order);
	free(keep);
	free(other);
}

/* ------------------------------------------------------------------ spoofed sources */

TEST(offenders_among_spoofed_sources)
{
	const u32 offenders = 10, flood = 16000000;

	rng_start("test_heavy_flood");
	begin();
	for (u32 i = 0; i < flood; i++) {
		u64 random = rng();
		/* Each of the ten sends one of a thousand packets. */
		u32 who = (u32)(random >> 32) % 1000;

		meet((u32)(random >> 9) & 1,
		     who < offenders ? 0x0a000001 + who : (u32)random | 1U << 31,
		     START + (u64)i * 170);
	}
	look(START + (u64)flood * 170);
	for (u32 i = 0; i < offenders; i++) {
		assert_in_range(address_of(&found[i]), 0x0a000001, 0x0a000001 + offenders - 1);
		/* 16,000 packets, of which the sample sees 1/64: within five standard
		 * deviations. */
		assert_in_range(found[i].of[SL_HEAVY_DROPPED].packets, 10000, 22000);
	}
	/* The heaviest of the others had a few samples at most. */
	assert_true(found[offenders].of[SL_HEAVY_DROPPED].packets < 2000);
	end();
}

/* ------------------------------------------------------------------ the bound */

/* While each packet is a sample: packets <= sent <= packets + missed of every entry. */
TEST(bound_holds_without_sampling)
{
	enum { RANGE = 3000 };
	static u32 sent[RANGE];

	rng_start("test_heavy_flood");
	for (u32 round = 0; round < 50; round++) {
		u64 at = START + round * 7 * SL_HEAVY_WINDOW_NS;

		begin();
		memset(sent, 0, sizeof(sent));
		for (u32 i = 0; i < SL_HEAVY_EXACT - 1; i++) {
			u32 source = (u32)(pow(RANGE, (double)(rng() >> 11) / (1ULL << 53)) - 1);

			sent[source]++;
			meet(0, source, at);
		}
		look(at);
		for (size_t i = 0; i < found_count; i++) {
			const struct heavy_count *c = &found[i].of[SL_HEAVY_DROPPED];
			u32 truth = sent[address_of(&found[i])];

			assert_true(c->packets <= truth && truth <= c->packets + c->missed);
			assert_int_equal(c->bytes, c->packets * 100);
		}
		end();
	}
}

/* ------------------------------------------------------------------ a spoofed network */

/*
 * For a minute: packets + missed of all entries are what came in the two windows, so what was
 * missed long ago is forgotten; and a network that sends a part of a flood of spoofed addresses has
 * that part of them.
 */
TEST(a_spoofed_network_is_found_by_what_it_sends)
{
	const u64 window = SL_HEAVY_WINDOW_NS, each = window / 4000;
	struct network network[NETWORKS_MAX];
	struct networks_row *row;
	int count;

	rng_start("test_heavy_flood");
	begin();
	for (u64 at = START; at < START + 14 * window; at += each) {
		u32 random = (u32)rng();

		/* Three of ten packets are of a /16, almost two of 192.0.2.7, the others from
		 * anywhere. */
		meet(0,
		     rng_below(10) < 3 ? 10U << 24 | 7U << 16 | (random & 0xffff)
		     : rng_below(4)    ? random
				       : 0xc0000207,
		     at);
	}
	look(START + 14 * window - 1);
	{
		u64 sum = 0;

		for (size_t i = 0; i < found_count; i++)
			sum += found[i].of[SL_HEAVY_DROPPED].packets +
			       found[i].of[SL_HEAVY_DROPPED].missed;
		assert_in_range(sum, 7990, 8010);
	}
	assert_false(heavy_is_exact(found, found_count));
	qsort(found, found_count, sizeof(*found), by_prefix);
	count = heavy_networks(found, found_count, network, &row);
	assert_int_equal(count, 2);
	assert_int_equal(network[0].prefix.addr.hi >> 32, 0xc0000207);
	assert_in_range(network[0].amount[HEAVY_DROPPED], 1150, 1650);
	assert_int_equal(network[1].prefix.addr.hi >> 32, 0x0a070000);
	assert_int_equal(network[1].prefix.len, 16);
	assert_in_range(network[1].amount[HEAVY_DROPPED], 2000, 2800);
	assert_in_range(network[1].amount[HEAVY_BYTES], 200000, 280000);
	free(row);
	end();
}

/* Few are exact, and stay so. */
TEST(few_sources_of_a_network_are_exact)
{
	struct network network[NETWORKS_MAX];
	struct networks_row *row;

	begin();
	for (u32 i = 0; i < 2000; i++)
		meet(i & 1, (i % 10 ? 10U << 24 | 7U << 16 : 198U << 24) | i % 200, START + i);
	look(START + 5000);
	assert_true(heavy_is_exact(found, found_count));
	qsort(found, found_count, sizeof(*found), by_prefix);
	assert_int_equal(heavy_networks(found, found_count, network, &row), 2);
	assert_int_equal(network[0].amount[HEAVY_DROPPED] + network[1].amount[HEAVY_DROPPED], 2000);
	assert_int_equal(network[0].sources + network[1].sources, 200);
	free(row);
	end();
}

TEST_MAIN
