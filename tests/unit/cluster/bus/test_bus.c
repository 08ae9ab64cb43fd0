// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_bus.c - three nodes over one stream: which messages each receives, and which are refused. */
#include <unistd.h>

#include "lib/test.h"
#include "lib/json_at.h"
#include "unit/cluster/bus/bus_store.h"

/* ------------------------------------------------------------------ a node */

struct node {
	struct cluster_def def;
	struct cluster_keys keys;
	struct redis redis;
	struct bus *bus;
	struct bus_peers *peers;
	u32 received, joined;
	char last[160]; /* "a: block 1" */
};

static void on_receive(void *arg, const struct bus_head *head, json_t *message,
		       const struct bus_time *now)
{
	struct node *node = arg;
	const json_t *body;
	const char *kind;
	u64 until_us;

	node->received++;
	assert_true(bus_message_read(message, &kind, &until_us, &body));
	assert_true(until_us > now->store_us);
	snprintf(node->last, sizeof(node->last), "%s: %s %d", head->node, kind,
		 (int)int_at(body, "n"));
	json_decref(message);
}

static void on_joined(void *arg, const char *name)
{
	((struct node *)arg)->joined++;
}

static struct node *node_new(const char *name, u8 secret)
{
	struct node *node = calloc(1, sizeof(*node));
	struct bus_callbacks world = { on_receive, on_joined, node };

	node->def = (struct cluster_def){ .node = strdup(name), .sync_ns = 100000000 };
	node->def.redis.prefix = strdup("t:");
	memset(node->keys.signature, secret, sizeof(node->keys.signature));
	assert_int_equal(bus_peers_new(&node->peers), 0);
	assert_int_equal(
		bus_new(&node->def, &node->keys, &node->redis, node->peers, &world, &node->bus), 0);
	return node;
}

static void node_free(struct node *node)
{
	counters.down = true;
	redis_run(&node->redis);
	counters.down = false;
	bus_free(node->bus);
	bus_peers_free(node->peers);
	free(node->def.node);
	free(node->def.redis.prefix);
	free(node);
}

static void tick(struct node *node)
{
	bus_tick(node->bus);
	redis_run(&node->redis);
}

static void say(struct node *node, const char *kind, int n, u64 valid_ns)
{
	char *body;

	assert_true(asprintf(&body, "{\"n\":%d}", n) > 0);
	bus_publish(node->bus, kind, body, clock_mono_ns() + valid_ns);
}

static u64 refused(const struct node *node, enum bus_verdict verdict)
{
	struct bus_stats stats;

	bus_stats(node->bus, &stats);
	return stats.refused[verdict];
}

/* The first tick reads the time, the second finds the end of the stream. */
static void settle(struct node *node)
{
	tick(node);
	tick(node);
	tick(node);
}

static struct node *a, *b; /* of the test that runs */

static int set_up(void **state)
{
	counters_clear();
	counters.ahead_us = 0;
	counters.down = counters.broken = false;
	counters.until_ms = counters.kept = 0;
	a = node_new("a", 1);
	b = node_new("b", 1);
	return 0;
}

static int tear_down(void **state)
{
	node_free(a);
	node_free(b);
	return 0;
}

#define BUS_TEST(test) TEST_WITH(test, set_up, tear_down)

/* From a to b, and how many b has received by then. */
static u32 received(const char *kind, int n, u64 valid_ns)
{
	say(a, kind, n, valid_ns);
	tick(a);
	tick(b);
	return b->received;
}

/* ------------------------------------------------------------------ over the stream */

BUS_TEST(test_all_nodes_receive)
{
	struct node *c = node_new("c", 1);
	struct node *n[] = { a, b, c };

	for (int i = 0; i < 3; i++)
		settle(n[i]);
	for (int i = 0; i < 3; i++)
		tick(n[i]);
	assert_int_equal(a->joined, 2);
	assert_int_equal(b->joined, 2);
	assert_int_equal(bus_peers_alive(c->peers, clock_mono_ns()), 2);
	say(a, "block", 7, SL_NS_PER_SEC);
	say(a, "ban", 8, SL_NS_PER_SEC);
	bus_flush(a->bus);
	redis_run(&a->redis);
	tick(b);
	tick(c);
	tick(a);
	assert_int_equal(a->received, 0);
	assert_int_equal(b->received, 2);
	assert_int_equal(c->received, 2);
	assert_string_equal(b->last, "a: ban 8");
	/* Once. */
	tick(b);
	assert_int_equal(b->received, 2);
	/* The last message: it is gone at once. */
	bus_goodbye(a->bus);
	redis_run(&a->redis);
	tick(b);
	assert_int_equal(bus_peers_alive(b->peers, clock_mono_ns()), 1);
	node_free(c);
}

BUS_TEST(test_strangers_change_nothing)
{
	struct node *evil = node_new("a", 2);
	u8 nothing[BUS_SIGNATURE] = { 0 };
	struct bus_stats stats;
	struct entry *e;
	u32 before;

	settle(b);
	settle(evil);
	say(evil, "block", 1, SL_NS_PER_SEC);
	tick(evil);
	counters_add("{}", 2, nothing, sizeof(nothing));
	counters_add("x", 1, "", 0);
	tick(b);
	assert_int_equal(b->received, 0);
	assert_true(refused(b, BUS_FORGED) >= 3);
	tick(b);
	bus_stats(b->bus, &stats);
	assert_true(stats.strangers);
	assert_int_equal(bus_peers_alive(b->peers, clock_mono_ns()), 0);
	/* A valid one: changed, cut, repeated, and in another cluster with the same secret. */
	settle(a);
	say(a, "block", 2, SL_NS_PER_SEC);
	tick(a);
	before = counters.count - 1;
	tick(b);
	assert_int_equal(b->received, 1);
	e = &counters.entry[before];
	counters_add(e->text, e->size, e->signature, e->signature_size);
	tick(b);
	assert_int_equal(b->received, 1);
	assert_int_equal(refused(b, BUS_REPEATED), 1);
	counters_add(e->text, e->size - 1, e->signature, e->signature_size);
	counters_add(e->text, e->size, e->signature, e->signature_size - 1);
	e->text[e->size / 2] ^= 1;
	counters_add(e->text, e->size, e->signature, e->signature_size);
	tick(b);
	assert_int_equal(b->received, 1);
	/* Its next message is received: no harm was done to a. */
	received("block", 3, SL_NS_PER_SEC);
	assert_string_equal(b->last, "a: block 3");
	node_free(evil);
}

BUS_TEST(test_restarted_nodes_are_newer)
{
	struct node *again;

	settle(a);
	settle(b);
	assert_int_equal(received("block", 1, SL_NS_PER_SEC), 1);
	/* The store's clock goes back: the times in its stream decide which message is new. */
	again = node_new("a", 1);
	counters.ahead_us -= 2000000;
	settle(again);
	say(again, "block", 2, SL_NS_PER_SEC * 10);
	tick(again);
	tick(b);
	assert_int_equal(b->received, 2);
	assert_string_equal(b->last, "a: block 2");
	/* The older one still runs: the newer one reports it, the others receive only that one. */
	received("block", 3, SL_NS_PER_SEC * 10);
	tick(again);
	tick(again);
	assert_int_equal(b->received, 2);
	struct bus_stats stats;

	bus_stats(again->bus, &stats);
	assert_true(stats.twice);
	node_free(again);
}

/* Of two with one name the others receive the newer one; when that ends, the older one again. */
BUS_TEST(test_twins)
{
	struct node *twin;
	struct bus_stats stats;

	settle(a);
	settle(b);
	/* A second later: a node knows the store's clock only to half a round trip, which may be
	 * long here. */
	counters.ahead_us += 1000000;
	twin = node_new("a", 1);
	settle(twin);
	tick(b);
	assert_int_equal(received("block", 1, SL_NS_PER_SEC * 10), 0);
	tick(a);
	bus_stats(a->bus, &stats);
	assert_true(stats.twice);
	bus_goodbye(twin->bus);
	redis_run(&twin->redis);
	tick(a);
	tick(b);
	assert_int_equal(bus_peers_alive(b->peers, clock_mono_ns()), 0);
	assert_int_equal(received("block", 2, SL_NS_PER_SEC * 10), 1);
	assert_string_equal(b->last, "a: block 2");
	assert_int_equal(bus_peers_alive(b->peers, clock_mono_ns()), 1);
	node_free(twin);
}

/* A node without the store for a moment receives the messages of that time afterwards. */
BUS_TEST(test_cut_off)
{
	settle(a);
	settle(b);
	tick(b);
	b->redis.away = true;
	say(a, "block", 1, SL_NS_PER_SEC * 10);
	tick(a);
	/* Longer than the time that is still read after a jump to the stream's end. */
	usleep(1200000);
	for (int i = 0; i < 20; i++)
		tick(b);
	assert_int_equal(b->received, 0);
	b->redis.away = false;
	tick(b);
	assert_int_equal(b->received, 1);
	assert_string_equal(b->last, "a: block 1");
}

BUS_TEST(test_emptied_stream)
{
	settle(a);
	settle(b);
	counters_clear();
	/* Created anew by a server whose clock is behind. */
	counters.ahead_us -= 20000000;
	tick(b);
	received("block", 1, SL_NS_PER_SEC * 60);
	tick(b);
	tick(b);
	assert_int_equal(b->received, 1);
}

/* It exists as long as nodes write, and two minutes more; that costs a command in ten seconds. */
BUS_TEST(test_stream_ends)
{
	settle(a);
	assert_in_range(counters.until_ms, store_us() / 1000 + 110000, store_us() / 1000 + 120001);
	assert_int_equal(counters.kept, 1);
	for (int i = 0; i < 50; i++)
		tick(a);
	assert_int_equal(counters.kept, 1);
	counters.ahead_us += 11000000;
	tick(a);
	assert_int_equal(counters.kept, 2);
	assert_in_range(counters.until_ms, store_us() / 1000 + 110000, store_us() / 1000 + 120001);
}

BUS_TEST(test_store_unavailable)
{
	struct bus_stats stats;

	settle(a);
	settle(b);
	counters.down = true;
	say(a, "short", 1, 1);
	say(a, "long", 2, SL_NS_PER_SEC * 60);
	for (int i = 0; i < 5; i++) {
		tick(a);
		tick(b);
	}
	bus_stats(a->bus, &stats);
	assert_true(stats.error[0]);
	counters.down = false;
	tick(a);
	tick(b);
	assert_int_equal(b->received, 1);
	assert_string_equal(b->last, "a: long 2");
	bus_stats(a->bus, &stats);
	assert_int_equal(stats.dropped, 1);
	tick(a);
	bus_stats(a->bus, &stats);
	assert_string_equal(stats.error, "");
	/* Replies of another kind end nothing, and the bus recovers. */
	counters.broken = true;
	for (int i = 0; i < 5; i++)
		tick(b);
	counters.broken = false;
	received("block", 3, SL_NS_PER_SEC);
	assert_string_equal(b->last, "a: block 3");
}

BUS_TEST(test_much_at_once)
{
	settle(a);
	settle(b);
	for (int i = 0; i < 3000; i++)
		say(a, "block", i, SL_NS_PER_SEC * 60);
	for (int i = 0; i < 4; i++)
		tick(a);
	tick(b);
	tick(b);
	assert_int_equal(b->received, 3000);
	for (int i = 0; i < 6000; i++)
		say(a, "block", i, SL_NS_PER_SEC * 60);
	for (int i = 0; i < 6; i++)
		tick(a);
	tick(b);
	/* The newest of them. */
	assert_int_equal(b->received, 3000 + 4096);
	assert_string_equal(b->last, "a: block 5999");
}

TEST_MAIN
