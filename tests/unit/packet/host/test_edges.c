// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What passes around the edges of windows of packet limits, to the packet: sources that send at
 * chosen times, with the readings as the daemon's timer makes them.
 */
#include "lib/daemon_rig.h"
#include "packet/host/edges.h"

#define SEC SL_NS_PER_SEC
#define TEN                                                                                        \
	"limits: [{name: w, rate: 10 packets/16s, algorithm: fixed-window, accounting: exact}]\n"

/* A monotonic time at which a window of 16 s begins, some minutes from now. */
static u64 edge_ns(void)
{
	u64 offset = rig.dp->ops->state(rig.dp)->utc_offset_ns,
	    utc = clock_mono_ns() + offset + 300 * SEC;

	return utc / (16 * SEC) * (16 * SEC) - offset;
}

static const struct sl_limit *limit_of(u32 index)
{
	return &rig.d->running.image->rules->limits[index];
}

static u64 peak(void)
{
	return edges_peak(&rig.d->packets, limit_of(0));
}

static u64 due;

/* The timer, up to a time. */
static void until(u64 ns)
{
	u64 offset = rig.dp->ops->state(rig.dp)->utc_offset_ns, wait;

	for (; due <= ns; due += wait) {
		wait = edges_tick(&rig.d->packets, (struct sl_now){ due, due + offset });
		assert_int_not_equal(wait, 0);
	}
}

RIG_TEST(test_across_an_edge)
{
	u64 edge, at;

	rig_open(&rig, TEN);
	edge = edge_ns();
	due = edge - 20 * SEC;
	until(edge - 3 * SEC);
	assert_int_equal(peak(), 0);
	at = edge - 2 * SEC;
	assert_int_equal(rig_passed(&rig, 1, 15, at), 10);
	/* The neighbor stays within it. */
	assert_int_equal(rig_passed(&rig, 2, 3, at), 3);
	until(edge + SEC);
	assert_int_equal(peak(), 1000);
	assert_int_equal(rig_passed(&rig, 1, 7, edge + SEC), 7);
	assert_int_equal(rig_passed(&rig, 2, 3, edge + SEC), 3);
	until(edge + 3 * SEC);
	assert_int_equal(peak(), 1700);
	/* A window's length after the first ten nothing of them counts any more. */
	until(edge + 15 * SEC);
	assert_int_equal(rig_passed(&rig, 1, 9, edge + 15 * SEC), 3);
	until(edge + 40 * SEC);
	assert_int_equal(peak(), 1700);
}

/* At the last moment and at once behind the edge. */
RIG_TEST(test_at_the_edge)
{
	u64 edge;

	rig_open(&rig, TEN);
	edge = edge_ns();
	due = edge - 20 * SEC;
	until(edge - 2 * SEC);
	/* It is in the sample since a packet of before. */
	assert_int_equal(rig_passed(&rig, 1, 1, edge - 2 * SEC), 1);
	until(edge - 3000000);
	assert_int_equal(rig_passed(&rig, 1, 9, edge - 2500000), 9);
	until(edge - 1);
	assert_int_equal(rig_passed(&rig, 1, 10, edge), 10);
	until(edge + 2 * SEC);
	assert_int_equal(peak(), 2000);
}

/* A source that sends evenly gets no more than its limit within a window. */
RIG_TEST(test_even)
{
	u64 edge;

	rig_open(&rig, TEN);
	edge = edge_ns();
	due = edge;
	for (u64 at = edge; at < edge + 200 * SEC; at += 1600000000) {
		until(at);
		assert_int_equal(rig_passed(&rig, 1, 1, at), 1);
	}
	until(edge + 220 * SEC);
	assert_in_range(peak(), 800, 1000);
}

/* From the first packet on; another limit, and one that was changed, begin anew. */
RIG_TEST(test_first_request_and_changes)
{
	u64 edge;

	rig_open(
		&rig,
		"limits: [{name: w, rate: 10 packets/16s, algorithm: fixed-window, window: first-request, "
		"accounting: exact}]\n");
	edge = edge_ns();
	due = edge;
	assert_int_equal(rig_passed(&rig, 1, 1, edge + 5 * SEC), 1);
	until(edge + 18 * SEC);
	assert_int_equal(rig_passed(&rig, 1, 12, edge + 18 * SEC), 9);
	until(edge + 21 * SEC + SEC / 2);
	assert_int_equal(rig_passed(&rig, 1, 12, edge + 22 * SEC), 10);
	until(edge + 24 * SEC);
	assert_int_equal(peak(), 1900);
	rig_do(&rig, "limit set {'name':'w','pairs':['rate=20 packets/16s']}");
	assert_int_equal(peak(), 0);
}

RIG_TEST(test_not_measured)
{
	struct sl_now now = { clock_mono_ns(), 0 };

	rig_open(
		&rig,
		"limits: [{name: w, rate: 10 packets/16s, algorithm: sliding-window}, {name: s, rate: 10 packets/16s, "
		"algorithm: fixed-window, mode: shadow}]\n");
	assert_int_equal(edges_tick(&rig.d->packets, now), 0);
	assert_null(rig.d->packets.edges);
}

/* Many sources, some of which find no place: the others are measured. */
RIG_TEST(test_many_sources)
{
	u64 edge;

	rig_open(&rig, TEN);
	edge = edge_ns();
	due = edge - 20 * SEC;
	until(edge - 4 * SEC);
	for (u32 host = 0; host < 200; host++)
		rig_passed(&rig, host, 10, edge - 3 * SEC);
	until(edge + SEC);
	for (u32 host = 0; host < 200; host++)
		rig_passed(&rig, host, 10, edge + SEC);
	until(edge + 3 * SEC);
	assert_int_equal(peak(), 2000);
}

TEST_MAIN
