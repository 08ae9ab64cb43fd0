/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_private.h - one call that asks: what remote.c (asks) and remote_settle.c (words) share.
 *
 * It has all of the call that it needs but the call itself, which may be gone before the last
 * answer is there. Words are looked up anew by their keys whenever they are locked.
 */
#ifndef SLUICE_HTTP_REMOTE_PRIVATE_H
#define SLUICE_HTTP_REMOTE_PRIVATE_H

#include "request/engine/decide_private.h"
#include "request/engine/remote.h"

/* One that was charged here, or is asked for. */
struct remote_bucket {
	struct quota_ref ref;		/* shared; its def is word->def */
	struct counters_ref *bucket_state, *own;	/* own NULL: none */
	struct cluster_store_bucket *requested;	/* NULL: it is not asked for */
	struct remote_request *cluster_request;
	struct decide_result *result;
	u64 cost, hold;
	u32 hold_permille, group;
	enum store_failure on_failure;
	bool shared, needs_store, covered, retries;
	bool over, failed;		/* failed: nobody answered, and the rule refuses that */
	bool unflushed;			/* let through without the store's word */
	bool back;			/* to be given back there */
};

struct remote_part {
	bool shadow, quota;
	bool over;
	enum response_code failed;		/* RESPONSE_OK, RESPONSE_CLOSED, RESPONSE_ERROR */
	u32 count;
	u16 bucket[RULE_LIMITS_MAX * RULE_PREFIXES_MAX];	/* of the remote's */
};

enum remote_request_state { REMOTE_SENT, REMOTE_DONE, REMOTE_LATE, REMOTE_DOWN };

/* Buckets of one place that go all or none: those of enforced parts, or of one other part. */
struct remote_request {
	struct cluster_store_request cluster_request; /* first: all that the store hands back */
	struct remote *remote;
	u32 place, group;
	enum remote_request_state state;
};

struct remote {
	struct engine_thread *thread;
	struct cluster_store *shared;	/* the way to the store; NULL: none, or too many ask */
	const struct request *request;	/* NULL: nobody waits for the answer */
	remote_done_fn done;
	void *arg;
	struct sl_now now;		/* when it was charged here */
	bool peek;			/* charges nothing */
	bool settled;
	bool through;			/* ... and was let through */
	bool quota_watched;		/* a part with quota_mode only watches: it has quota left */
	u32 open;			/* asks that nobody answered yet, not even with LATE */
	u32 left;			/* ... and those whose answer is late */
	u32 bucket_count, request_count, part_count, result_count;
	struct remote_bucket *bucket;
	struct remote_request *cluster_request;
	struct cluster_store_bucket *requested;
	struct remote_part *part;
	struct decide_result *result;
	struct counters_ref *bucket_state;		/* all of them, to lock them by */
	u32 state_count;
};

/* All have answered or failed: the verdict, and the words that go with it. */
enum response_code remote_settle(struct remote *remote, struct sl_now now);
/* An answer that came after the verdict; what it charged of a refused call is marked `back`. */
void remote_settle_late(struct remote *remote, struct remote_request *cluster_request,
			enum cluster_store_outcome outcome, struct sl_now now);

static inline const struct ledger *ledger_of(const struct remote *remote)
{
	return &remote->thread->engine->ledger;
}

/* The time for its windows. */
static inline struct sl_now remote_time(const struct remote *remote, const struct remote_bucket *b,
					struct sl_now now)
{
	return b->shared ? counters_shared_now(ledger_of(remote)->counters, now) : now;
}

#endif
