// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a store's reply to commands for all kinds of limits: either a reply or an error;
 * the bucket state made of it is within the bounds of the limit's steps, and is flushed and
 * restored within them.
 *
 * A first byte says what is asked; the rest is the reply. Commands of deferred requests get the
 * same replies, in time and late.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "user/cluster/redis/redis_reader.c"
#include "user/cluster/quota/defer_store.h"
#include "user/cluster/quota/quota_private.h"
#include "user/cluster/quota/cluster_store_redis.c"
#include "lib/redis_asked.h"

static void on_outcome(struct cluster_store_request *ask, enum cluster_store_outcome outcome)
{
	*(enum cluster_store_outcome *)ask->arg = outcome;
}

static void flush(struct quotas *quotas, const struct cluster_store_request *ask, struct sl_now now)
{
	struct quota_due due[4];
	u64 unsent;
	u32 count = quotas_due(quotas, due, 4, now);

	for (u32 i = 0; i < count; i++) {
		assert(due[i].bucket.spent <= 2 * QUOTA_COUNT_MAX);
		due[i].bucket.state = ask->bucket->state;
		quotas_flushed(quotas, &due[i], ask, CLUSTER_STORE_DONE, now, &unsent);
	}
}

static void ask_once(struct quotas *quotas, struct cluster_store *counters, u8 what,
		     const redisReply *reply, struct sl_now now)
{
	struct spec_def def = { .count = what & 1 ? 1000000 : 10,
				.period_ns = SL_NS_PER_SEC << (what >> 5),
				.scale = 1,
				.ceiling_percent = 100,
				.algo = (what >> 1) % 6 };
	enum cluster_store_outcome outcome = CLUSTER_STORE_DOWN;
	struct quota_ref ref = { .key = 1 + def.algo,
				 .tag = 1,
				 .def = &def,
				 .every_ns = SL_NS_PER_SEC,
				 .consistency = what >> 6 };
	struct cluster_store_bucket bucket = { .key = ref.key,
					       .tag = 1,
					       .def = def,
					       .cost = 1,
					       .kind = what % 3,
					       .queued = what & 4 };
	struct cluster_store_request ask = {
		.bucket = &bucket, .count = 1, .done = on_outcome, .arg = &outcome
	};
	struct spec spec;

	if (ref.consistency > CONSISTENCY_WRITE_BACK)
		ref.consistency = CONSISTENCY_LEASE;
	quota_acquire(quotas, &ref, 1, now);
	quota_prepare(quotas, &ref, &bucket, now);
	assert(!counters->ops->send(counters, &ask));
	asked.done(asked.arg, REPLY_OK, reply);
	quota_complete(quotas, &ref, &bucket, &ask, outcome, now);
	if (outcome != CLUSTER_STORE_DONE)
		return;
	assert(bucket.granted <= bucket.want);
	assert(!spec_make_def(&def, &spec, NULL));
	if (def.algo != SL_ALGO_SLIDING_LOG) {
		u64 bucket_state = cluster_store_bucket_state(
			&spec, &bucket.state, quota_unflushed(quotas, ref.key), now);
		struct spec_view view;

		spec_view_init(&view, &spec, 0, 0);
		spec_charge(&view, bucket_state, now, 1);
	}
	flush(quotas, &ask, now);
}

/* ------------------------------------------------------------------ requests for later */

static u32 calls_done, calls_ended;

static void on_call_done(struct defer_call *call)
{
	calls_done++;
}

/* The numbers are those that a page, a metric and a response may show. */
static void on_call_ended(struct defer_call *call)
{
	calls_ended++;
	assert(call->status < DEFER_STATUS_COUNT);
	assert(call->status != DEFER_WAITING || call->number[0] > 0);
	for (u32 i = 0; i < DEFER_NUMBER_COUNT && call->status != DEFER_FAILED; i++)
		assert((s64)call->number[i] >= 0 ||
		       (call->status == DEFER_OK && call->number[i] == ~0ULL &&
			(i == DEFER_NEXT_US || i == DEFER_AOF)));
}

static void defer_once(struct cluster_store *counters, u8 what, const redisReply *reply)
{
	struct defer_queue queue = { "api/user", 100, SL_NS_PER_SEC, 3, SL_NS_PER_SEC };
	struct defer_call call = { .done = on_call_done, .ended = on_call_ended, .ticket = "x" };

	calls_done = calls_ended = 0;
	if (what & 1)
		assert(!defer_store_poll(counters, &queue, true, &call));
	else
		assert(!defer_store_look(counters, &queue, 1000, &call));
	if (what & 2) {
		asked.done(asked.arg, REPLY_LATE, NULL);
		assert(call.late && call.status == DEFER_FAILED && !calls_ended);
		asked.late(asked.arg, REPLY_OK, reply);
	} else {
		asked.done(asked.arg, REPLY_OK, reply);
	}
	assert(calls_done == 1 && calls_ended == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_now now = { 1000 * SL_NS_PER_SEC, 1790000000ULL * SL_NS_PER_SEC };
	struct redis_conn conn = { 0 };
	redisReader *reader = redis_reader_new(&conn);
	struct cluster_store *counters = NULL;
	struct quotas *quotas = NULL;
	void *reply = NULL;

	if (size < 2 || quotas_new(0, &quotas) ||
	    cluster_store_redis_new((struct redis *)&asked, "p:", "a", &counters))
		goto out;
	redisReaderFeed(reader, (const char *)data + 1, size - 1);
	while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
		for (u8 kind = 0; kind < 3; kind++)
			ask_once(quotas, counters, data[0] + kind, reply, now);
		defer_once(counters, data[0], reply);
		freeReplyObject(reply);
		reply = NULL;
		conn.object_count = 0;
		now.mono_ns += SL_NS_PER_SEC / 3;
		now.utc_ns += SL_NS_PER_SEC / 3;
	}
out:
	if (counters)
		counters->ops->free(counters);
	quotas_free(quotas);
	redisReaderFree(reader);
	return 0;
}
