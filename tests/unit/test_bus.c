// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_bus.c - messages between nodes: what is signed, what is refused, and three nodes over one
 * stream. Redis is a list in this process here; its client's functions are this file's.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster/bus.h"

#define START_US 1800000000000000ULL

/* ------------------------------------------------------------------ a stream in memory */

#define ENTRIES_MAX 4000
#define PENDING_MAX 64

struct entry {
	u64 ms, seq;
	char *text, *signature;
	size_t size, signature_size;
};

static struct {
	struct entry entry[ENTRIES_MAX];
	u32 count;
	u64 ahead_us;			/* of this machine's UTC */
	bool down, broken;
} store;

struct redis {
	struct pending {
		char name[8], text[BUS_BATCH_MAX + 1];
		u8 signature[BUS_SIGNATURE];
		size_t size;
		u64 ms, seq;
		struct redis_handler handler;
	} pending[PENDING_MAX];
	u32 count;
};

static u64 utc_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (u64)ts.tv_sec * 1000000 + (u64)ts.tv_nsec / 1000;
}

static u64 store_us(void)
{
	return utc_us() + store.ahead_us;
}

static void store_add(const char *text, size_t size, const void *signature, size_t signature_size)
{
	struct entry *e = &store.entry[store.count], *last = store.count ? e - 1 : NULL;

	assert_true(store.count < ENTRIES_MAX);
	store.count++;
	*e = (struct entry){ .ms = store_us() / 1000, .size = size,
			     .signature_size = signature_size };
	if (last && last->ms >= e->ms) {
		e->ms = last->ms;
		e->seq = last->seq + 1;
	}
	e->text = malloc(size + 1);
	e->signature = malloc(signature_size + 1);
	memcpy(e->text, text, size);
	memcpy(e->signature, signature, signature_size);
}

static void store_clear(void)
{
	for (u32 i = 0; i < store.count; i++) {
		free(store.entry[i].text);
		free(store.entry[i].signature);
	}
	store.count = 0;
}

u32 redis_place(const struct redis *redis, const char *key, size_t len)
{
	assert_string_equal(key, "t:{bus}");
	return 0;
}

bool redis_up(const struct redis *redis, u32 place)
{
	return !store.down;
}

int redis_send(struct redis *redis, const struct redis_command *command,
	       struct redis_handler handler)
{
	struct pending *p = &redis->pending[redis->count++];

	assert_true(redis->count <= PENDING_MAX);
	memset(p, 0, sizeof(*p));
	p->handler = handler;
	snprintf(p->name, sizeof(p->name), "%s", command->argv[0]);
	if (!strcmp(p->name, "XADD")) {
		p->size = command->len[7];
		memcpy(p->text, command->argv[7], p->size);
		assert_int_equal(command->len[9], BUS_SIGNATURE);
		memcpy(p->signature, command->argv[9], BUS_SIGNATURE);
	} else if (!strcmp(p->name, "XREAD")) {
		assert_int_equal(sscanf(command->argv[5], "%llu-%llu", &p->ms, &p->seq), 2);
	}
	return 0;
}

static redisReply *string(const char *text, size_t len)
{
	redisReply *r = calloc(1, sizeof(*r));

	r->type = REDIS_REPLY_STRING;
	r->str = malloc(len + 1);
	memcpy(r->str, text, len);
	r->str[len] = '\0';
	r->len = len;
	return r;
}

static redisReply *array(size_t count)
{
	redisReply *r = calloc(1, sizeof(*r));

	r->type = REDIS_REPLY_ARRAY;
	r->elements = count;
	r->element = calloc(count + 1, sizeof(r->element[0]));
	return r;
}

static redisReply *text_of(const char *text)
{
	return string(text, strlen(text));
}

static redisReply *entry_reply(const struct entry *e)
{
	redisReply *r = array(2), *fields = array(4);
	char id[48];

	snprintf(id, sizeof(id), "%llu-%llu", e->ms, e->seq);
	r->element[0] = text_of(id);
	r->element[1] = fields;
	fields->element[0] = text_of("m");
	fields->element[1] = string(e->text, e->size);
	fields->element[2] = text_of("s");
	fields->element[3] = string(e->signature, e->signature_size);
	return r;
}

static redisReply *read_reply(u64 ms, u64 seq)
{
	u32 from = 0, count;
	redisReply *r, *stream;

	while (from < store.count && (store.entry[from].ms < ms ||
				      (store.entry[from].ms == ms && store.entry[from].seq <= seq)))
		from++;
	count = store.count - from < 64 ? store.count - from : 64;
	r = count ? array(1) : calloc(1, sizeof(*r));
	if (!count) {
		r->type = REDIS_REPLY_NIL;
		return r;
	}
	stream = r->element[0] = array(2);
	stream->element[0] = text_of("t:{bus}");
	stream->element[1] = array(count);
	for (u32 i = 0; i < count; i++)
		stream->element[1]->element[i] = entry_reply(&store.entry[from + i]);
	return r;
}

static redisReply *answer(const struct pending *p)
{
	char words[48];
	redisReply *r;

	if (!strcmp(p->name, "TIME")) {
		u64 now = store_us();

		r = array(2);
		snprintf(words, sizeof(words), "%llu", now / 1000000);
		r->element[0] = text_of(words);
		snprintf(words, sizeof(words), "%llu", now % 1000000);
		r->element[1] = text_of(words);
		return r;
	}
	if (!strcmp(p->name, "XADD")) {
		store_add(p->text, p->size, p->signature, BUS_SIGNATURE);
		snprintf(words, sizeof(words), "%llu-%llu", store.entry[store.count - 1].ms,
			 store.entry[store.count - 1].seq);
		return text_of(words);
	}
	return store.broken ? text_of("nonsense") : read_reply(p->ms, p->seq);
}

static void redis_run(struct redis *redis)
{
	while (redis->count) {
		struct pending p = redis->pending[0];
		redisReply *reply = store.down ? NULL : answer(&p);

		memmove(&redis->pending[0], &redis->pending[1],
			--redis->count * sizeof(redis->pending[0]));
		p.handler.done(p.handler.arg, reply ? REPLY_OK : REPLY_DOWN, reply);
		if (reply)
			freeReplyObject(reply);
	}
}

/* ------------------------------------------------------------------ a node */

struct node {
	struct cluster_def def;
	struct cluster_keys keys;
	struct redis redis;
	struct bus *bus;
	struct bus_peers *peers;
	u32 heard, joined;
	char last[160];			/* "a: block 1" */
};

static void on_hear(void *arg, const struct bus_head *head, json_t *message,
		    const struct bus_time *now)
{
	struct node *node = arg;
	const json_t *body;
	const char *kind;
	u64 until_us;

	node->heard++;
	assert_true(bus_message_read(message, &kind, &until_us, &body));
	assert_true(until_us > now->store_us);
	snprintf(node->last, sizeof(node->last), "%s: %s %d", head->node, kind,
		 (int)json_integer_value(json_object_get(body, "n")));
	json_decref(message);
}

static void on_joined(void *arg, const char *name)
{
	((struct node *)arg)->joined++;
}

static struct node *node_new(const char *name, u8 secret)
{
	struct node *node = calloc(1, sizeof(*node));
	struct bus_world world = { on_hear, on_joined, node };

	node->def = (struct cluster_def){ .node = strdup(name), .sync_ns = 100000000 };
	node->def.redis.prefix = strdup("t:");
	memset(node->keys.signature, secret, sizeof(node->keys.signature));
	assert_int_equal(bus_peers_new(&node->peers), 0);
	assert_int_equal(bus_new(&node->def, &node->keys, &node->redis, node->peers, &world,
				 &node->bus), 0);
	return node;
}

static void node_free(struct node *node)
{
	store.down = true;
	redis_run(&node->redis);
	store.down = false;
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
	bus_say(node->bus, kind, body, bus_mono_ns() + valid_ns);
}

static u64 refused(const struct node *node, enum bus_verdict verdict)
{
	struct bus_stats stats;

	bus_stats(node->bus, &stats);
	return stats.refused[verdict];
}

/* The first tick asks for the time, the second finds where the stream ends. */
static void settle(struct node *node)
{
	tick(node);
	tick(node);
	tick(node);
}

static int clear(void **state)
{
	store_clear();
	store.ahead_us = 0;
	store.down = store.broken = false;
	return 0;
}

/* ------------------------------------------------------------------ over the stream */

static void test_everybody_hears(void **state)
{
	struct node *a = node_new("a", 1), *b = node_new("b", 1), *c = node_new("c", 1);
	struct node *n[] = { a, b, c };

	for (int i = 0; i < 3; i++)
		settle(n[i]);
	for (int i = 0; i < 3; i++)
		tick(n[i]);
	assert_int_equal(a->joined, 2);
	assert_int_equal(b->joined, 2);
	assert_int_equal(bus_peers_alive(c->peers, bus_mono_ns()), 2);
	say(a, "block", 7, SL_NS_PER_SEC);
	say(a, "ban", 8, SL_NS_PER_SEC);
	bus_flush(a->bus);
	redis_run(&a->redis);
	tick(b);
	tick(c);
	tick(a);
	assert_int_equal(a->heard, 0);
	assert_int_equal(b->heard, 2);
	assert_int_equal(c->heard, 2);
	assert_string_equal(b->last, "a: ban 8");
	/* Once. */
	tick(b);
	assert_int_equal(b->heard, 2);
	/* The last words: it is gone at once. */
	bus_goodbye(a->bus);
	redis_run(&a->redis);
	tick(b);
	assert_int_equal(bus_peers_alive(b->peers, bus_mono_ns()), 1);
	for (int i = 0; i < 3; i++)
		node_free(n[i]);
}

static void test_strangers_change_nothing(void **state)
{
	struct node *a = node_new("a", 1), *b = node_new("b", 1), *evil = node_new("a", 2);
	u8 nothing[BUS_SIGNATURE] = { 0 };
	struct entry *e;
	u32 before;

	settle(b);
	settle(evil);
	say(evil, "block", 1, SL_NS_PER_SEC);
	tick(evil);
	store_add("{}", 2, nothing, sizeof(nothing));
	store_add("x", 1, "", 0);
	tick(b);
	assert_int_equal(b->heard, 0);
	assert_true(refused(b, BUS_FORGED) >= 3);
	assert_int_equal(bus_peers_alive(b->peers, bus_mono_ns()), 0);
	/* A good one: changed, cut, said once more, and in another cluster of the same secret. */
	settle(a);
	say(a, "block", 2, SL_NS_PER_SEC);
	tick(a);
	before = store.count - 1;
	tick(b);
	assert_int_equal(b->heard, 1);
	e = &store.entry[before];
	store_add(e->text, e->size, e->signature, e->signature_size);
	tick(b);
	assert_int_equal(b->heard, 1);
	assert_int_equal(refused(b, BUS_REPEATED), 1);
	store_add(e->text, e->size - 1, e->signature, e->signature_size);
	store_add(e->text, e->size, e->signature, e->signature_size - 1);
	e->text[e->size / 2] ^= 1;
	store_add(e->text, e->size, e->signature, e->signature_size);
	tick(b);
	assert_int_equal(b->heard, 1);
	/* Its next one is heard: nothing of that harmed a. */
	say(a, "block", 3, SL_NS_PER_SEC);
	tick(a);
	tick(b);
	assert_string_equal(b->last, "a: block 3");
	node_free(a);
	node_free(b);
	node_free(evil);
}

static void test_restarted_nodes_are_newer(void **state)
{
	struct node *a = node_new("a", 1), *b = node_new("b", 1), *again;

	settle(a);
	settle(b);
	say(a, "block", 1, SL_NS_PER_SEC);
	tick(a);
	tick(b);
	assert_int_equal(b->heard, 1);
	/* The store's clock goes back: what its stream has of before says how new is new. */
	again = node_new("a", 1);
	store.ahead_us -= 2000000;
	settle(again);
	say(again, "block", 2, SL_NS_PER_SEC * 10);
	tick(again);
	tick(b);
	assert_int_equal(b->heard, 2);
	assert_string_equal(b->last, "a: block 2");
	/* The older one is still there: the newer one notices, the others hear only that. */
	say(a, "block", 3, SL_NS_PER_SEC * 10);
	tick(a);
	tick(b);
	tick(again);
	tick(again);
	assert_int_equal(b->heard, 2);
	struct bus_stats stats;

	bus_stats(again->bus, &stats);
	assert_true(stats.twice);
	node_free(a);
	node_free(b);
	node_free(again);
}

static void test_emptied_stream(void **state)
{
	struct node *a = node_new("a", 1), *b = node_new("b", 1);

	settle(a);
	settle(b);
	store_clear();
	/* Begun anew by a server whose clock stands behind. */
	store.ahead_us -= 20000000;
	tick(b);
	say(a, "block", 1, SL_NS_PER_SEC * 60);
	tick(a);
	tick(b);
	tick(b);
	tick(b);
	assert_int_equal(b->heard, 1);
	node_free(a);
	node_free(b);
}

static void test_store_away(void **state)
{
	struct node *a = node_new("a", 1), *b = node_new("b", 1);
	struct bus_stats stats;

	settle(a);
	settle(b);
	store.down = true;
	say(a, "short", 1, 1);
	say(a, "long", 2, SL_NS_PER_SEC * 60);
	for (int i = 0; i < 5; i++) {
		tick(a);
		tick(b);
	}
	bus_stats(a->bus, &stats);
	assert_true(stats.trouble[0]);
	store.down = false;
	tick(a);
	tick(b);
	assert_int_equal(b->heard, 1);
	assert_string_equal(b->last, "a: long 2");
	bus_stats(a->bus, &stats);
	assert_int_equal(stats.dropped, 1);
	tick(a);
	bus_stats(a->bus, &stats);
	assert_string_equal(stats.trouble, "");
	/* Answers of another kind end nothing, and it finds its way again. */
	store.broken = true;
	for (int i = 0; i < 5; i++)
		tick(b);
	store.broken = false;
	say(a, "block", 3, SL_NS_PER_SEC);
	tick(a);
	tick(b);
	assert_string_equal(b->last, "a: block 3");
	node_free(a);
	node_free(b);
}

static void test_much_at_once(void **state)
{
	struct node *a = node_new("a", 1), *b = node_new("b", 1);

	settle(a);
	settle(b);
	for (int i = 0; i < 3000; i++)
		say(a, "block", i, SL_NS_PER_SEC * 60);
	for (int i = 0; i < 4; i++)
		tick(a);
	tick(b);
	tick(b);
	assert_int_equal(b->heard, 3000);
	for (int i = 0; i < 6000; i++)
		say(a, "block", i, SL_NS_PER_SEC * 60);
	for (int i = 0; i < 6; i++)
		tick(a);
	tick(b);
	/* The newest of them. */
	assert_int_equal(b->heard, 3000 + 4096);
	assert_string_equal(b->last, "a: block 5999");
	node_free(a);
	node_free(b);
}

/* ------------------------------------------------------------------ one batch */

static struct cluster_keys key_of(u8 fill)
{
	struct cluster_keys keys = { 0 };

	memset(keys.signature, fill, sizeof(keys.signature));
	return keys;
}

static enum bus_verdict open_text(const char *text, json_t **ret)
{
	struct cluster_keys keys = key_of(1);
	u8 signature[BUS_SIGNATURE];
	struct bus_head head;
	enum bus_verdict verdict;

	assert_int_equal(bus_sign(&keys, "t:", text, strlen(text), signature), 0);
	verdict = bus_batch_open(&keys, "t:", text, strlen(text), signature, sizeof(signature),
				 &head, ret);
	if (verdict == BUS_GOOD)
		json_decref(*ret);
	return verdict;
}

static void test_signed_nonsense(void **state)
{
#define HEAD "\"boot_us\":1,\"number\":1,\"sent_us\":1,\"sync_us\":1,\"version\":\"1\""
	json_t *messages;

	assert_int_equal(open_text("{\"node\":\"a\"," HEAD ",\"messages\":[]}", &messages), BUS_GOOD);
	assert_int_equal(open_text("{\"node\":\"a\n\"," HEAD ",\"messages\":[]}", &messages),
			 BUS_MALFORMED);
	assert_int_equal(open_text("{\"node\":\"a b\"," HEAD ",\"messages\":[]}", &messages),
			 BUS_MALFORMED);
	assert_int_equal(open_text("{\"node\":\"\"," HEAD ",\"messages\":[]}", &messages),
			 BUS_MALFORMED);
	assert_int_equal(open_text("{\"node\":\"a\",\"node\":\"b\"," HEAD ",\"messages\":[]}",
				   &messages), BUS_MALFORMED);
	assert_int_equal(open_text("{\"node\":\"a\"," HEAD ",\"messages\":{}}", &messages),
			 BUS_MALFORMED);
	assert_int_equal(open_text("{\"node\":\"a\",\"boot_us\":-1}", &messages), BUS_MALFORMED);
	assert_int_equal(open_text("[]", &messages), BUS_MALFORMED);
	assert_int_equal(open_text("", &messages), BUS_MALFORMED);
#undef HEAD
}

static void test_prefixes_are_clusters(void **state)
{
	struct cluster_keys keys = key_of(1);
	u8 one[BUS_SIGNATURE], other[BUS_SIGNATURE];

	assert_int_equal(bus_sign(&keys, "t:", "x", 1, one), 0);
	assert_int_equal(bus_sign(&keys, "t", ":x", 2, other), 0);
	assert_memory_not_equal(one, other, sizeof(one));
	assert_int_equal(bus_sign(&keys, "u:", "x", 1, other), 0);
	assert_memory_not_equal(one, other, sizeof(one));
}

/* ------------------------------------------------------------------ numbers and times */

struct note_case {
	const char *node;
	u64 boot_us, number;
	s64 sent_us, now_us;		/* of START_US */
	enum bus_verdict wanted;
	bool joined;
};

static void test_numbers(void **state)
{
	static const struct note_case cases[] = {
		{ "a", 10, 1, 0, 0, BUS_GOOD, true },
		{ "a", 10, 2, 100, 100, BUS_GOOD, false },
		{ "a", 10, 2, 100, 200, BUS_REPEATED, false },
		{ "a", 10, 1, 100, 300, BUS_REPEATED, false },
		{ "b", 10, 1, 100, 300, BUS_GOOD, true },
		{ "a", 9, 100, 300, 300, BUS_REPEATED, false },
		{ "a", 10, 4, 300, 400, BUS_GOOD, false },	/* 3 was lost: so be it */
		{ "a", 10, 3, 300, 400, BUS_REPEATED, false },	/* and is too late now */
		{ "a", 11, 1, 400, 400, BUS_GOOD, true },	/* another daemon */
		{ "a", 11, 2, 400 + 5000001, 400, BUS_AHEAD, false },
		{ "a", 11, 2, 400 + 4000000, 400, BUS_GOOD, false },
		{ "a", 11, 3, 400, 400 + 30000001, BUS_OLD, false },
		{ "a", 11, 3, 30000400, 30000400, BUS_GOOD, true },	/* it was away */
	};
	struct bus_peers *peers;
	bool joined, twice;

	assert_int_equal(bus_peers_new(&peers), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct note_case *c = &cases[i];
		struct bus_head head = { .boot_us = c->boot_us, .number = c->number,
					 .sent_us = START_US + (u64)c->sent_us, .sync_us = 100000 };
		struct bus_time now = { .store_us = START_US + (u64)c->now_us,
					.mono_ns = 60 * SL_NS_PER_SEC + (u64)c->now_us * 1000,
					.own_utc_us = START_US + (u64)c->now_us };
		enum bus_verdict verdict;

		strcpy(head.node, c->node);
		strcpy(head.version, "1");
		verdict = bus_peers_note(peers, &head, &now, &joined, &twice);
		if (verdict != c->wanted || joined != c->joined)
			fail_msg("case %zu: %s, joined %d", i, bus_verdict_name(verdict), joined);
	}
	bus_peers_free(peers);
}

/* A store that lies about the time does not make old batches fresh again. */
static void test_lying_clock(void **state)
{
	struct bus_head head = { .node = "a", .boot_us = 1, .number = 1, .sent_us = START_US };
	struct bus_time now = { .store_us = START_US, .mono_ns = 60 * SL_NS_PER_SEC,
				.own_utc_us = START_US + 3601ULL * 1000000 };
	struct bus_peers *peers;
	bool joined, twice;

	assert_int_equal(bus_peers_new(&peers), 0);
	assert_int_equal(bus_peers_note(peers, &head, &now, &joined, &twice), BUS_OLD);
	now.own_utc_us = START_US;
	assert_int_equal(bus_peers_note(peers, &head, &now, &joined, &twice), BUS_GOOD);
	bus_peers_free(peers);
}

static void test_crowds_and_floods(void **state)
{
	struct bus_head head = { .boot_us = 1, .sync_us = 100000, .sent_us = START_US };
	struct bus_time now = { .store_us = START_US, .mono_ns = 60 * SL_NS_PER_SEC,
				.own_utc_us = START_US };
	struct bus_peers *peers;
	bool joined, twice;
	u32 good = 0;

	assert_int_equal(bus_peers_new(&peers), 0);
	for (u32 i = 0; i < 2 * BUS_BATCHES_PER_S; i++) {
		strcpy(head.node, "flood");
		head.number++;
		good += bus_peers_note(peers, &head, &now, &joined, &twice) == BUS_GOOD;
	}
	assert_in_range(good, 50, BUS_BATCHES_PER_S + 1);
	for (u32 i = 0; i < BUS_PEERS_MAX; i++) {
		snprintf(head.node, sizeof(head.node), "node-%u", i);
		assert_int_equal(bus_peers_note(peers, &head, &now, &joined, &twice),
				 i < BUS_PEERS_MAX - 1 ? BUS_GOOD : BUS_CROWD);
	}
	/* Who does not live makes room. */
	now.mono_ns += 5 * SL_NS_PER_SEC;
	now.store_us += 5000000;
	head.sent_us = now.store_us;
	assert_int_equal(bus_peers_note(peers, &head, &now, &joined, &twice), BUS_GOOD);
	assert_int_equal(bus_peers_alive(peers, now.mono_ns), 1);
	bus_peers_free(peers);
}

/* ------------------------------------------------------------------ keys */

static int keys_of(const char *text, size_t size, mode_t mode, struct cluster_keys *ret,
		   struct sl_err *err)
{
	char path[] = "/tmp/bus-test-XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	fchmod(fd, mode);
	close(fd);
	r = cluster_keys_read(path, ret, err);
	unlink(path);
	return r;
}

static void test_keys(void **state)
{
	static const char secret[] = "0123456789abcdef0123456789abcdef";
	struct cluster_keys one, same, other;
	struct sl_err err;
	char big[5000];

	assert_int_equal(keys_of(secret, 32, 0600, &one, &err), 0);
	assert_int_equal(keys_of("0123456789abcdef0123456789abcdef\r\n", 34, 0640, &same, &err), 0);
	assert_memory_equal(&one, &same, sizeof(one));
	assert_int_equal(keys_of("1123456789abcdef0123456789abcdef", 32, 0600, &other, &err), 0);
	assert_memory_not_equal(one.signature, other.signature, 32);
	assert_int_not_equal(one.seed.k0, other.seed.k0);
	assert_memory_not_equal(&one.seed, one.signature, sizeof(one.seed));
	assert_int_equal(keys_of(secret, 31, 0600, &other, &err), -EINVAL);
	assert_non_null(strstr(err.message, "has 31 bytes; at least 32"));
	assert_int_equal(keys_of("0123456789abcdef0123456789abcde\n", 32, 0600, &other, &err), -EINVAL);
	assert_int_equal(keys_of(secret, 32, 0644, &other, &err), -EPERM);
	assert_non_null(strstr(err.message, "has mode 0644"));
	memset(big, 'x', sizeof(big));
	assert_int_equal(keys_of(big, sizeof(big), 0600, &other, &err), -EINVAL);
	assert_int_equal(cluster_keys_read("/nonexistent/key", &other, &err), -ENOENT);
	assert_int_equal(cluster_keys_read("/dev/zero", &other, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_everybody_hears, clear),
		cmocka_unit_test_setup(test_strangers_change_nothing, clear),
		cmocka_unit_test_setup(test_restarted_nodes_are_newer, clear),
		cmocka_unit_test_setup(test_emptied_stream, clear),
		cmocka_unit_test_setup(test_store_away, clear),
		cmocka_unit_test_setup(test_much_at_once, clear),
		cmocka_unit_test(test_signed_nonsense),
		cmocka_unit_test(test_prefixes_are_clusters),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_lying_clock),
		cmocka_unit_test(test_crowds_and_floods),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
