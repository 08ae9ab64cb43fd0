// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_store_redis.c - the cluster store in Redis: a request is one execution of charge.lua,
 * whose first comment describes the arguments and the reply.
 *
 * A reply is untrusted input. One of another form counts as none (CLUSTER_STORE_DOWN). Its numbers
 * are only the state of a limit, and their readers clamp them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/redis/redis.h"
#include "cluster/quota/cluster_store_redis.h"
#include "cluster/quota/cluster_store_settle.h"
#include "cluster/quota/defer_store.h"
#include "lib/clock.h"
#include "lua/charge.h"
#include "sluice/key.h"
#include "limiter/algorithm.h"

/* numkeys, keys, a verb and its queues, two names of this node, and the arguments of each
 * bucket. A window of a calendar has one key, no refused ones and no queue. */
#define BUCKET_ARGS 14
#define ARGS_MAX (5 + CLUSTER_STORE_BUCKETS_MAX * (4 + BUCKET_ARGS))
_Static_assert(ARGS_MAX + 2 <= REDIS_ARGS_MAX, "the largest request is one command");

#define KEY_BYTES_MAX 256 /* prefix, tag, key, kind */
#define OWN_BYTES_MAX 17  /* longer names of nodes are hashed */
#define RATES 64
#define QUEUE_MAX SL_BIT(20)
#define COST_MAX SL_BIT(48)
#define COST_AT 3 /* of a bucket's arguments */

#define OP_MORE 32
#define OP_EDGE 64
#define OP_REFUSED 128
#define OP_ROUND_UP 256
#define OP_CALENDAR 512
#define FLAG_OVER 1
#define FLAG_LATE 2
#define FLAG_MORE 4

struct cluster_store_redis {
	struct cluster_store base;
	struct redis *redis;
	struct redis_script script;
	char *prefix;
	char own[OWN_BYTES_MAX + 1], lease[OWN_BYTES_MAX + 1];
	u32 pending;
	bool freed, can_defer;
	s64 ahead_us; /* Redis' time - monotonic time, by the last reply; 0: this machine's UTC */
	/* Limits met before: by a hash of the def. */
	struct {
		struct spec_def def;
		struct cluster_store_rate rate;
	} rates[RATES];
	/* The command under construction. */
	const char *argv[ARGS_MAX];
	size_t len[ARGS_MAX];
	int argc;
	char text[CLUSTER_STORE_BUCKETS_MAX * (2 * KEY_BYTES_MAX + (2 + BUCKET_ARGS) * 21)];
	size_t used;
};

static struct cluster_store_redis *redis_store_of(struct cluster_store *base)
{
	return (struct cluster_store_redis *)base;
}

static int rate_of(struct cluster_store_redis *store, const struct spec_def *def,
		   struct cluster_store_rate *ret)
{
	u64 bucket_state[sizeof(*def) / sizeof(u64)], hash = 0;
	u32 slot;
	int err;

	memcpy(bucket_state, def, sizeof(bucket_state));
	for (u32 i = 0; i < sizeof(bucket_state) / sizeof(*bucket_state); i++)
		hash = (hash ^ bucket_state[i]) * 0x9e3779b97f4a7c15ULL;
	slot = (hash >> 32) % RATES;
	if (memcmp(&store->rates[slot].def, def, sizeof(*def))) {
		struct cluster_store_rate rate;

		err = cluster_store_rate_make(def, &rate);
		if (err)
			return err;
		store->rates[slot].def = *def;
		store->rates[slot].rate = rate;
	}
	*ret = store->rates[slot].rate;
	return 0;
}

/* ------------------------------------------------------------------ commands */

static void add(struct cluster_store_redis *store, const char *text, size_t len)
{
	store->argv[store->argc] = text;
	store->len[store->argc++] = len;
}

static void put_number(struct cluster_store_redis *store, int place, u64 number)
{
	char digits[20], *at = digits + sizeof(digits), *to = store->text + store->used;
	size_t len;

	do {
		*--at = '0' + number % 10;
		number /= 10;
	} while (number);
	len = digits + sizeof(digits) - at;
	memcpy(to, at, len);
	store->used += len;
	store->argv[place] = to;
	store->len[place] = len;
}

static void add_number(struct cluster_store_redis *store, u64 number)
{
	put_number(store, store->argc++, number);
}

/* PREFIX{TAG}KEY and a letter for the kind of state: a key is never read as another kind. */
static void add_key(struct cluster_store_redis *store, const struct cluster_store_bucket *b,
		    const char *kind)
{
	char *to = store->text + store->used;
	int len = snprintf(to, KEY_BYTES_MAX, "%s{%016llx}%016llx%s", store->prefix, b->tag, b->key,
			   kind);

	store->used += len;
	add(store, to, len);
}

static void add_keys(struct cluster_store_redis *store, const struct cluster_store_request *request)
{
	static const char *const suffix[] = {
		[STATE_DEBT] = "b", [STATE_WINDOW] = "w",   [STATE_SLIDING] = "s",
		[STATE_LOG] = "l",  [STATE_ANCHORED] = "f",
	};
	u32 keys = request->count;

	for (u32 i = 0; i < request->count; i++)
		keys += algorithm_is_log(request->bucket[i].def.algo);
	add_number(store, keys);
	for (u32 i = 0; i < request->count; i++) {
		const struct cluster_store_bucket *b = &request->bucket[i];

		add_key(store, b, suffix[algorithm_kind(b->def.algo)]);
		if (algorithm_is_log(b->def.algo))
			add_key(store, b, "lz");
	}
}

/* The window by Redis' time, as it was at the last reply: its number, and where it begins and ends.
 */
static void add_calendar(struct cluster_store_redis *store, const struct calendar *calendar)
{
	u64 mono_ns = clock_mono_ns(), begin_ns, end_ns;
	u64 utc_ns = store->ahead_us ? mono_ns + store->ahead_us * 1000 : clock_utc_ns();

	add_number(store, calendar_window(calendar, utc_ns, &begin_ns, &end_ns));
	add_number(store, begin_ns / 1000);
	add_number(store, end_ns / 1000);
}

static void add_bucket(struct cluster_store_redis *store, const struct cluster_store_bucket *b,
		       const struct cluster_store_rate *rate)
{
	u64 capacity = rate->capacity, twice = 2 * capacity;
	bool more = b->want || b->returned || b->spent || b->lease_us || b->window || b->debt;
	bool refused = b->refused || b->refusal_counts;
	u64 edge = algorithm_is_bucket(b->def.algo) ? b->keep_us : rate->mult, cost = b->cost;

	/* Sums of these numbers stay exact in the script: a capacity is below 2^46. */
	if (b->kind == CLUSTER_STORE_CHARGE && cost > capacity)
		cost = capacity + 1;
	cost = cost < COST_MAX ? cost : COST_MAX;
	add_number(store, b->kind + 4 * algorithm_kind(b->def.algo) + (more ? OP_MORE : 0) +
				  (edge ? OP_EDGE : 0) + (refused ? OP_REFUSED : 0) +
				  (rate->round_up ? OP_ROUND_UP : 0) +
				  (rate->calendar ? OP_CALENDAR : 0));
	add_number(store, capacity);
	add_number(store, algorithm_is_bucket(rate->algo) ? rate->mult : rate->period_us);
	add_number(store, cost);
	add_number(store, b->hold < capacity ? b->hold : capacity);
	if (edge)
		add_number(store, edge < SL_BIT(50) ? edge : SL_BIT(50));
	if (rate->calendar)
		add_calendar(store, rate->calendar);
	if (refused) {
		add_number(store, b->refused < capacity ? b->refused : capacity);
		add_number(store, b->refused_us < SL_BIT(52) ? b->refused_us : 0);
	}
	if (!more)
		return;
	add_number(store, b->window < SL_BIT(52) ? b->window : 0);
	add_number(store, b->want < capacity ? b->want : capacity);
	add_number(store, b->returned < twice ? b->returned : twice);
	add_number(store, b->spent < COST_MAX ? b->spent : COST_MAX);
	add_number(store, b->lease_us < SL_BIT(50) ? b->lease_us : SL_BIT(50));
	add_number(store, b->least < capacity ? b->least : capacity);
	add_number(store, cluster_store_most_debt(rate, b->debt));
}

static bool is_queued(const struct cluster_store_bucket *b)
{
	return b->queued && b->kind == CLUSTER_STORE_CHARGE;
}

static u32 count_queued(const struct cluster_store_request *request)
{
	u32 count = 0;

	for (u32 i = 0; i < request->count; i++)
		count += is_queued(&request->bucket[i]);
	return count;
}

/* The names of a node, and the buckets. `queued`: where defer.lua finds the keys and costs of
 * these. */
static int add_buckets(struct cluster_store_redis *store,
		       const struct cluster_store_request *request, const char *own,
		       const char *lease, int queued)
{
	struct cluster_store_rate rate;
	int names = store->argc, err;
	u32 key = 1;

	add(store, own, strlen(own));
	add(store, lease, strlen(lease));
	for (u32 i = 0; i < request->count; i++) {
		const struct cluster_store_bucket *b = &request->bucket[i];

		err = rate_of(store, &b->def, &rate);
		if (err)
			return err;
		if (queued && is_queued(b)) {
			put_number(store, queued++, key);
			put_number(store, queued++, store->argc - names + 1 + COST_AT);
		}
		add_bucket(store, b, &rate);
		key += 1 + algorithm_is_log(b->def.algo);
	}
	return 0;
}

static int redis_store_make(struct cluster_store_redis *store,
			    const struct cluster_store_request *request, u32 queued)
{
	int at = 0;

	store->argc = 0;
	store->used = 0;
	add_keys(store, request);
	if (queued) {
		add(store, "charge", 6);
		add_number(store, queued);
		at = store->argc;
		store->argc += 2 * queued;
	}
	return add_buckets(store, request, store->own, store->lease, at);
}

int cluster_store_redis_args(struct cluster_store *base,
			     const struct cluster_store_request *request,
			     struct cluster_store_args *ret)
{
	struct cluster_store_redis *store = redis_store_of(base);
	int err = cluster_store_request_check(request);

	if (err)
		return err;
	store->argc = 0;
	store->used = 0;
	add_keys(store, request);
	err = add_buckets(store, request, "o*deferred", "l*deferred", 0);
	*ret = (struct cluster_store_args){ store->argv, store->len, store->argc };
	return err;
}

/* ------------------------------------------------------------------ replies */

static bool number_at(const redisReply *reply, size_t at, u64 *ret)
{
	if (at >= reply->elements || reply->element[at]->type != REDIS_REPLY_INTEGER ||
	    reply->element[at]->integer < 0)
		return false;
	*ret = reply->element[at]->integer;
	return true;
}

static bool read_bucket(const redisReply *reply, size_t *at, struct cluster_store_raw *raw)
{
	u64 flags;

	if (!number_at(reply, *at, &flags) || !number_at(reply, *at + 1, &raw->used) ||
	    !number_at(reply, *at + 2, &raw->before) || !number_at(reply, *at + 3, &raw->window) ||
	    !number_at(reply, *at + 4, &raw->own))
		return false;
	raw->over = flags & FLAG_OVER;
	raw->late = flags & FLAG_LATE;
	*at += 5;
	if (!(flags & FLAG_MORE))
		return true;
	if (!number_at(reply, *at, &raw->held) || !number_at(reply, *at + 1, &raw->granted) ||
	    !number_at(reply, *at + 2, &raw->excess) || !number_at(reply, *at + 3, &raw->fits_us))
		return false;
	*at += 4;
	return true;
}

/* The wait of a bucket with a queue is that of all in it. */
static bool read_queue(struct cluster_store_bucket *b, const redisReply *reply, size_t *at)
{
	u64 ahead, each_ns = b->def.count ? b->def.period_ns / b->def.count : 0;

	if (!number_at(reply, (*at)++, &ahead))
		return false;
	if (b->over && ahead && b->wait_ns != ~0ULL)
		b->wait_ns += (ahead < QUEUE_MAX ? ahead : QUEUE_MAX) * each_ns;
	return true;
}

static bool read_reply(struct cluster_store_redis *store, struct cluster_store_request *request,
		       const redisReply *reply)
{
	bool queued = store->can_defer && count_queued(request);
	u64 passed, now_us;
	size_t at = 2;

	if (reply->type != REDIS_REPLY_ARRAY || !number_at(reply, 0, &now_us))
		return false;
	store->ahead_us = (s64)(now_us - clock_mono_ns() / 1000);
	if (!number_at(reply, 1, &passed))
		return false;
	for (u32 i = 0; i < request->count; i++) {
		struct cluster_store_bucket *b = &request->bucket[i];
		struct cluster_store_raw raw = { 0 };
		struct cluster_store_rate rate;

		if (!read_bucket(reply, &at, &raw) || rate_of(store, &b->def, &rate))
			return false;
		if (raw.granted > b->want)
			raw.granted = b->want;
		cluster_store_settle(b, &rate, &raw, now_us);
	}
	for (u32 i = 0; i < request->count; i++)
		if (queued && is_queued(&request->bucket[i]) &&
		    !read_queue(&request->bucket[i], reply, &at))
			return false;
	request->now_us = now_us;
	request->passed = passed;
	return at == reply->elements;
}

static void redis_store_unref(struct cluster_store_redis *store)
{
	if (store->pending || !store->freed)
		return;
	free(store->prefix);
	free(store);
}

static enum cluster_store_outcome outcome_of(struct cluster_store_redis *store,
					     struct cluster_store_request *request,
					     enum redis_outcome outcome, const redisReply *reply)
{
	request->passed = false;
	if (outcome == REPLY_OK && read_reply(store, request, reply))
		return CLUSTER_STORE_DONE;
	return CLUSTER_STORE_DOWN;
}

static void on_done(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct cluster_store_request *request = arg;
	struct cluster_store_redis *store = request->private;

	if (outcome == REPLY_LATE) {
		request->done(request, CLUSTER_STORE_LATE);
		return;
	}
	store->pending--;
	request->done(request, outcome_of(store, request, outcome, reply));
	redis_store_unref(store);
}

static void on_late(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct cluster_store_request *request = arg;
	struct cluster_store_redis *store = request->private;

	store->pending--;
	outcome = (enum redis_outcome)outcome_of(store, request, outcome, reply);
	if (request->late)
		request->late(request, (enum cluster_store_outcome)outcome);
	redis_store_unref(store);
}

/* ------------------------------------------------------------------ the operations */

static u32 redis_store_slot(struct cluster_store *base, u64 tag)
{
	char text[KEY_BYTES_MAX];
	int len = snprintf(text, sizeof(text), "%s{%016llx}", redis_store_of(base)->prefix, tag);

	return redis_slot_of(redis_store_of(base)->redis, text, len);
}

static int redis_store_request(struct cluster_store *base, struct cluster_store_request *request)
{
	struct redis_handler handler = { .done = on_done, .late = on_late, .arg = request };
	struct cluster_store_redis *store = redis_store_of(base);
	u32 queued = store->can_defer ? count_queued(request) : 0;
	struct redis_command command = {
		.script = queued ? defer_script() : &store->script,
		.argv = store->argv,
		.len = store->len,
		.deadline_ns = request->deadline_ns,
		.durable = true,
	};
	int err = cluster_store_request_check(request);

	if (!err)
		err = redis_store_make(store, request, queued);
	if (err)
		return err;
	command.slot = redis_store_slot(base, request->bucket[0].tag);
	command.argc = store->argc;
	request->private = store;
	err = redis_send(store->redis, &command, handler);
	store->pending += !err;
	return err;
}

static bool redis_store_up(struct cluster_store *base, u32 slot)
{
	return redis_up(redis_store_of(base)->redis, slot);
}

/* The client completes requests on their way; the last one frees the store. */
static void redis_store_free(struct cluster_store *base)
{
	struct cluster_store_redis *store = redis_store_of(base);

	store->freed = true;
	redis_store_unref(store);
}

static const struct cluster_store_ops ops = {
	.slot_of = redis_store_slot,
	.send = redis_store_request,
	.up = redis_store_up,
	.free = redis_store_free,
};

/* Each node has a field in each key, so a long name is replaced by its 64-bit hash. */
static void name_node(char *to, char kind, const char *node)
{
	struct sl_seed seed = { 0x736c75696365, 0x6e6f6465 };
	struct sl_sip sip;
	u64 bucket_state;

	if (strlen(node) < OWN_BYTES_MAX) {
		snprintf(to, OWN_BYTES_MAX + 1, "%c%s", kind, node);
		return;
	}
	sl_sip_start(&sip, seed);
	for (size_t len = strlen(node); len; len -= len < 8 ? len : 8) {
		bucket_state = 0;
		memcpy(&bucket_state, node, len < 8 ? len : 8);
		sl_sip_add(&sip, bucket_state);
		node += len < 8 ? len : 8;
	}
	snprintf(to, OWN_BYTES_MAX + 1, "%c%016llx", kind, sl_sip_finish(&sip));
}

bool cluster_store_redis_single(const struct cluster_store *store)
{
	return store->ops == &ops && ((const struct cluster_store_redis *)store)->can_defer;
}

struct redis *cluster_store_redis_client(struct cluster_store *store)
{
	return redis_store_of(store)->redis;
}

const char *cluster_store_redis_prefix(const struct cluster_store *store)
{
	return ((const struct cluster_store_redis *)store)->prefix;
}

int cluster_store_redis_new(struct redis *redis, const char *prefix, const char *node,
			    struct cluster_store **ret)
{
	struct cluster_store_redis *store;

	if (strlen(prefix) > KEY_BYTES_MAX - 40 || !*node)
		return -EINVAL;
	store = calloc(1, sizeof(*store));
	if (!store)
		return -ENOMEM;
	store->prefix = strdup(prefix);
	if (!store->prefix) {
		free(store);
		return -ENOMEM;
	}
	store->base.ops = &ops;
	store->redis = redis;
	store->can_defer = redis && redis_is_single(redis) && defer_script();
	name_node(store->own, 'o', node);
	name_node(store->lease, 'l', node);
	redis_script_init(&store->script, charge_lua);
	*ret = &store->base;
	return 0;
}
