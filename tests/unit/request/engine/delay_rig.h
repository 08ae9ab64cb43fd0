/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * delay_rig.h - the surroundings of delay.c, for its tests: two workers, a clock of our own, and in
 * place of the decision core a leaky bucket per key of one request each 200 ms, here (at once) or
 * in the cluster store (when far_answer() is called). Include first: delay.c is compiled into the
 * test.
 */
#ifndef SLUICE_TESTS_DELAY_RIG_H
#define SLUICE_TESTS_DELAY_RIG_H
#include "lib/test.h"

/* The test's rules need no RCU. */
#define SLUICE_LIB_PUBLISH_H
static int in_rules;
#define publish_read_lock() ((void)in_rules++)
#define publish_read_unlock(pointer) ((void)in_rules--)
#define publish_get(pointer) (*(pointer))
#define publish_swap(pointer, next) (*(pointer))
static inline void rcu_register_thread(void)
{
}
static inline void rcu_unregister_thread(void)
{
}

#include "lib/rng.h"
#include "request/engine/decide_private.h"
#include "request/engine/delay_private.h"
#include "request/engine/observe.h"

#define MS 1000000ULL
#define KEYS 4
#define MAX 4000

/* ---------------------------------------------------------------- the surroundings of delay.c */

static u64 now_ns;
static struct engine engine;
static struct engine_thread workers[2];

/* The test's rules: an interval, how long and how many may wait; one bucket per key. */
static struct {
	u64 interval_ns, wait_ns, queue;
	u64 tat[KEYS];
	u64 salt; /* a rule's other buckets, after a reload */
	u64 charged;
} rule;

static struct sl_now rig_store_now(struct counters *counters)
{
	return (struct sl_now){ .mono_ns = now_ns, .utc_ns = now_ns };
}

/* A request needs of the key at_utc_ns, and of the one above it too where has_source is set. */
static inline void decide_call(const struct request *request, struct sl_now now,
			       struct response *ret, struct decide_delay *wait)
{
	u64 hits = request->descriptor->hits;

	assert_int_equal(in_rules, 1);
	*ret = (struct response){ .code = RESPONSE_OK, .count = 1 };
	wait->key = 0;
	wait->wait_ns = 0;
	for (u32 i = 0; i < 1 + (u32)request->has_source; i++) {
		u64 at = request->at_utc_ns + i, key = 1 + at + rule.salt;
		u64 before = wait->ahead ? wait->ahead(wait->arg, key) : 0;
		u64 wait_ns = before * rule.interval_ns;

		if (rule.tat[at] > now.mono_ns)
			wait_ns += rule.tat[at] - now.mono_ns;
		if (!before && rule.tat[at] <= now.mono_ns)
			continue;
		ret->code = RESPONSE_OVER_LIMIT;
		if (ret->retry_after_ns < wait_ns)
			ret->retry_after_ns = wait_ns;
		if (wait_ns < wait->wait_ns)
			continue;
		wait->key = rule.wait_ns ? key : 0;
		wait->rule_id = 7;
		wait->hits = hits;
		wait->before = before;
		wait->wait_ns = wait_ns;
		wait->limit_ns = rule.wait_ns;
		wait->queue = rule.queue;
	}
	if (ret->code != RESPONSE_OK || request->peek)
		return;
	for (u32 i = 0; i < 1 + (u32)request->has_source; i++) {
		u64 *tat = &rule.tat[request->at_utc_ns + i];

		*tat = (*tat > now.mono_ns ? *tat : now.mono_ns) + hits * rule.interval_ns;
	}
	rule.charged += hits;
}

/*
 * Decided elsewhere: what is refused for those ahead is refused at once, the rest
 * decided when far_answer() is called.
 */
struct remote {
	const struct request *request; /* NULL: nobody waits for it */
	remote_done_fn done;
	void *arg;
};

static bool far;
static struct remote *asked[MAX];
static int asked_first, asked_end, cancelled_far;

static inline bool is_ahead(const struct request *request, const struct decide_delay *wait)
{
	for (u32 i = 0; i < 1 + (u32)request->has_source; i++)
		if (wait->ahead(wait->arg, 1 + request->at_utc_ns + i + rule.salt))
			return true;
	return false;
}

struct decision *decision_begin(const struct ledger *ledger, const struct request *request,
				struct sl_now now)
{
	static struct decision decision;

	decision.request = request;
	decision.now = now;
	return &decision;
}

bool decide_here(struct decision *d, const struct ruleset *rules, struct response *ret,
		 struct decide_delay *wait)
{
	if (far && !is_ahead(d->request, wait))
		return false;
	decide_call(d->request, d->now, ret, wait);
	return true;
}

struct remote *remote_send(struct engine_thread *thread, const struct ruleset *rules,
			   const struct decision *d, struct response *ret,
			   struct decide_delay *ret_wait)
{
	struct remote *remote = calloc(1, sizeof(*remote));

	remote->request = d->request;
	asked[asked_end++ % MAX] = remote;
	return remote;
}

void remote_on(struct remote *remote, remote_done_fn done, void *arg)
{
	remote->done = done;
	remote->arg = arg;
}

void remote_cancel(struct remote *remote)
{
	assert_non_null(remote->request);
	remote->request = NULL;
	cancelled_far++;
}

/* The next one gets its response. */
static inline void far_answer(void)
{
	struct remote *remote = asked[asked_first++ % MAX];
	struct decide_delay wait = { .ahead = NULL };
	struct response ret;

	if (remote->request) {
		engine_rules_enter(&engine);
		decide_call(remote->request, rig_store_now(NULL), &ret, &wait);
		remote->done(remote->arg, &ret, &wait);
		engine_rules_leave(&engine);
	}
	free(remote);
}

static int observed;
static int beyond;

static void rig_observe_beyond(struct engine_thread *thread, const struct request *request)
{
	beyond++;
}

static void rig_observe(struct engine_thread *thread, const struct request *request,
			const struct response *response, u64 took_ns)
{
	assert_int_equal(in_rules, 1);
	observed++;
}

#define counters_now rig_store_now
#define observe rig_observe
#define observe_beyond rig_observe_beyond
#include "request/engine/delay.c"
#include "request/engine/engine.c"
#undef counters_now
#undef observe
#undef observe_beyond

/* ---------------------------------------------------------------- callers */

struct caller {
	struct request_descriptor descriptor;
	struct request request;
	struct delayed *delayed;
	bool answered, cancelled;
	enum response_code code;
	u64 asked_ns, answered_ns, delayed_ns, retry_after_ns;
	int order;
};

static struct caller caller[MAX];
static int callers, answers;

static inline void answered(const struct request *request, const struct response *response,
			    void *arg)
{
	struct caller *who = arg;

	assert_int_equal(in_rules, 1);
	assert_ptr_equal(request, &who->request);
	assert_false(who->answered || who->cancelled);
	who->answered = true;
	who->delayed = NULL;
	who->code = response->code;
	who->answered_ns = now_ns;
	who->delayed_ns = response->delayed_ns;
	who->retry_after_ns = response->retry_after_ns;
	who->order = answers++;
}

static inline struct caller *ask_of(u32 worker, u64 key, u64 hits, u64 max_wait_ns, bool both,
				    bool peek)
{
	struct caller *who = &caller[callers++];

	assert_true(callers < MAX);
	*who = (struct caller){
		.descriptor = { .hits = hits },
		.request = { .count = 1,
			     .at_utc_ns = key,
			     .max_wait_ns = max_wait_ns,
			     .has_source = both,
			     .peek = peek },
		.asked_ns = now_ns,
	};
	who->request.descriptor = &who->descriptor;
	who->delayed = request_submit(&workers[worker], &who->request, answered, who);
	assert_int_equal(!!who->delayed, !who->answered);
	return who;
}

static inline struct caller *ask_one(u32 worker)
{
	return ask_of(worker, 0, 1, NEVER, false, false);
}

static inline void cancel(struct caller *who)
{
	who->cancelled = true;
	request_cancel(who->delayed);
	who->delayed = NULL;
}

/* Mail, and the mail that this leads to. */
static inline void deliver(void)
{
	struct delays *delays = engine.delays;

	do {
		for (u32 i = 0; i < 2; i++)
			event_base_loop(workers[i].base, EVLOOP_NONBLOCK);
	} while (!TAILQ_EMPTY(&delays->worker[0].mail) || !TAILQ_EMPTY(&delays->worker[1].mail));
}

/* Mail is delivered; then time passes up to `to`, from one timer to the next, `late` after it. */
static inline void pass(u64 to_ns, u64 late_ns)
{
	for (;;) {
		u64 next_ns = NEVER;

		deliver();
		for (u32 i = 0; i < 2; i++) {
			struct timer_heap *heap = &engine.delays->worker[i].heap;

			if (heap->count && heap->at[0]->at_ns < next_ns)
				next_ns = heap->at[0]->at_ns;
		}
		if (next_ns + late_ns > to_ns || next_ns == NEVER)
			break;
		if (now_ns < next_ns + late_ns)
			now_ns = next_ns + late_ns;
		for (u32 i = 0; i < 2; i++)
			if (own_of(&workers[i])->timer)
				delays_run(&workers[i]);
	}
	now_ns = to_ns;
}

static inline int begin_with(u64 max_delayed)
{
	rule = (typeof(rule)){ .interval_ns = 200 * MS, .wait_ns = 2000 * MS, .queue = 10 };
	now_ns = 1000000 * MS;
	callers = answers = observed = 0;
	asked_first = asked_end = cancelled_far = 0;
	far = false;
	engine = (struct engine){ .thread = workers, .thread_count = 2 };
	engine.delays = delays_new(2, max_delayed);
	assert_non_null(engine.delays);
	for (u32 i = 0; i < 2; i++)
		workers[i] = (struct engine_thread){ .engine = &engine,
						     .index = i,
						     .base = event_base_new() };
	return 0;
}

static inline int begin(void **state)
{
	return begin_with(100);
}

static inline int end(void **state)
{
	assert_int_equal(in_rules, 0);
	delays_free(engine.delays);
	for (u32 i = 0; i < 2; i++)
		event_base_free(workers[i].base);
	return 0;
}

static inline void is_answered(struct caller *who, enum response_code code, u64 after_ns)
{
	assert_true(who->answered);
	assert_int_equal(who->code, code);
	assert_int_equal(who->answered_ns - who->asked_ns, after_ns);
	assert_int_equal(who->delayed_ns, after_ns);
}

#define RIG_TEST(name) TEST_WITH(name, begin, end)

#endif
