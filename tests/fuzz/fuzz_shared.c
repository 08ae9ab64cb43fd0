// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as what a store answers to asks of all kinds of limits: taken for an answer or for none;
 * what is learnt of it is a word that the limit's steps read, and is told again and put back within bounds.
 *
 * A first byte says what is asked; the rest is the reply.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "user/cluster/redis/redis_reader.c"
#include "user/cluster/quota/share_private.h"
#include "user/cluster/quota/shared_redis.c"

static struct redis_handler asked;

int redis_send(struct redis *redis, const struct redis_command *command, struct redis_handler handler)
{
	asked = handler;
	return 0;
}

u32 redis_place(const struct redis *redis, const char *key, size_t len)
{
	return 0;
}

bool redis_up(const struct redis *redis, u32 place)
{
	return true;
}

void redis_script_init(struct redis_script *script, const char *text)
{
}

static void on_outcome(struct shared_ask *ask, enum shared_outcome outcome)
{
	*(enum shared_outcome *)ask->arg = outcome;
}

static void tell(struct shares *shares, const struct shared_ask *ask, struct sl_now now)
{
	struct share_due due[4];
	u64 unsent;
	u32 count = shares_due(shares, due, 4, now);

	for (u32 i = 0; i < count; i++) {
		assert(due[i].bucket.spent <= 2 * SHARE_COUNT_MAX);
		due[i].bucket.state = ask->bucket->state;
		shares_told(shares, &due[i], ask, SHARED_DONE, now, &unsent);
	}
}

static void ask_once(struct shares *shares, struct shared *store, u8 what, const redisReply *reply,
		     struct sl_now now)
{
	struct spec_def def = { .count = what & 1 ? 1000000 : 10, .period_ns = SL_NS_PER_SEC << (what >> 5),
				.scale = 1, .ceiling_percent = 100, .algo = (what >> 1) % 6 };
	enum shared_outcome outcome = SHARED_DOWN;
	struct share_ref ref = { .key = 1 + def.algo, .tag = 1, .def = &def, .every_ns = SL_NS_PER_SEC,
				 .consistency = what >> 6 };
	struct shared_bucket bucket = { .key = ref.key, .tag = 1, .def = def, .cost = 1,
					.kind = what % 3 };
	struct shared_ask ask = { .bucket = &bucket, .count = 1, .done = on_outcome, .arg = &outcome };
	struct spec spec;

	if (ref.consistency > CONSISTENCY_WRITE_BACK)
		ref.consistency = CONSISTENCY_LEASE;
	share_take(shares, &ref, 1, now);
	share_ask(shares, &ref, &bucket, now);
	assert(!store->ops->ask(store, &ask));
	asked.done(asked.arg, REPLY_OK, reply);
	share_answered(shares, &ref, &bucket, &ask, outcome, now);
	if (outcome != SHARED_DONE)
		return;
	assert(bucket.granted <= bucket.want);
	assert(!spec_make_def(&def, &spec, NULL));
	if (def.algo != HTTP_SLIDING_LOG) {
		u64 word = shared_word(&spec, &bucket.state, share_unsent(shares, ref.key), now);
		struct spec_view view;

		spec_view_init(&view, &spec, 0, 0);
		spec_take(&view, word, now, 1);
		shared_state_of(&spec, word, now);
	}
	tell(shares, &ask, now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_now now = { 1000 * SL_NS_PER_SEC, 1790000000ULL * SL_NS_PER_SEC };
	struct redis_conn conn = { 0 };
	redisReader *reader = redis_reader_new(&conn);
	struct shared *store = NULL;
	struct shares *shares = NULL;
	void *reply = NULL;

	if (size < 2 || shares_new(0, &shares) || shared_redis_new(NULL, "p:", "a", &store))
		goto out;
	redisReaderFeed(reader, (const char *)data + 1, size - 1);
	while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
		for (u8 kind = 0; kind < 3; kind++)
			ask_once(shares, store, data[0] + kind, reply, now);
		freeReplyObject(reply);
		reply = NULL;
		conn.object_count = 0;
		now.mono_ns += SL_NS_PER_SEC / 3;
		now.utc_ns += SL_NS_PER_SEC / 3;
	}
out:
	if (store)
		store->ops->free(store);
	shares_free(shares);
	redisReaderFree(reader);
	return 0;
}
