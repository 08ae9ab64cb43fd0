// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ask() and held answers: two workers, a clock of our own, and in place of the decision core a
 * leaky bucket per key of one request each 200 ms. SLUICE_SEED repeats the random schedule.
 * It is over 500 lines because what stands in for clock, rules and callers is of no other use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <stdbool.h>

#include "../../user/http/wait.c"
#include "rng.h"

#define MS 1000000ULL
#define KEYS 4
#define MAX 4000

/* ---------------------------------------------------------------- what wait.c stands on */

static u64 now_ns;
static int in_rules;

/* Rules of the moment: an interval, how long and how many may wait; one bucket per key. */
static struct {
	u64 interval_ns, wait_ns, queue;
	u64 tat[KEYS];
	u64 salt;		/* a rule's other buckets, after a reload */
	u64 charged;
} rule;

const struct ruleset *rules_enter(void)
{
	in_rules++;
	return NULL;
}

void rules_leave(void)
{
	in_rules--;
}

struct sl_now store_now(struct store *store)
{
	return (struct sl_now){ .mono_ns = now_ns, .utc_ns = now_ns };
}

/* A call wants of the key at_utc_ns, and of the one above it too where has_source is set. */
static void decide_call(const struct call *call, struct sl_now now, struct answer *ret,
			struct decide_wait *wait)
{
	u64 hits = call->descriptor->hits;

	assert_int_equal(in_rules, 1);
	*ret = (struct answer){ .code = CALL_OK, .count = 1 };
	wait->key = 0;
	wait->wait_ns = 0;
	for (u32 i = 0; i < 1 + (u32)call->has_source; i++) {
		u64 at = call->at_utc_ns + i, key = 1 + at + rule.salt;
		u64 before = wait->ahead ? wait->ahead(wait->arg, key) : 0;
		u64 wait_ns = before * rule.interval_ns;

		if (rule.tat[at] > now.mono_ns)
			wait_ns += rule.tat[at] - now.mono_ns;
		if (!before && rule.tat[at] <= now.mono_ns)
			continue;
		ret->code = CALL_OVER_LIMIT;
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
	if (ret->code != CALL_OK || call->peek)
		return;
	for (u32 i = 0; i < 1 + (u32)call->has_source; i++) {
		u64 *tat = &rule.tat[call->at_utc_ns + i];

		*tat = (*tat > now.mono_ns ? *tat : now.mono_ns) + hits * rule.interval_ns;
	}
	rule.charged += hits;
}

/*
 * Where somebody else has to be asked: what is refused for those ahead is refused at once, the rest
 * decided when far_answer() says.
 */
struct remote {
	const struct call *call;	/* NULL: nobody waits for it */
	remote_done_fn done;
	void *arg;
};

static bool far;
static struct remote *asked[MAX];
static int asked_first, asked_end, cancelled_far;

static bool is_ahead(const struct call *call, const struct decide_wait *wait)
{
	for (u32 i = 0; i < 1 + (u32)call->has_source; i++)
		if (wait->ahead(wait->arg, 1 + call->at_utc_ns + i + rule.salt))
			return true;
	return false;
}

struct remote *remote_decide(struct worker *worker, const struct ruleset *rules,
			     const struct call *call, struct sl_now now, struct answer *ret,
			     struct decide_wait *wait)
{
	struct remote *remote;

	if (!far || is_ahead(call, wait)) {
		decide_call(call, now, ret, wait);
		return NULL;
	}
	remote = calloc(1, sizeof(*remote));
	remote->call = call;
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
	assert_non_null(remote->call);
	remote->call = NULL;
	cancelled_far++;
}

/* The next one has its answer. */
static void far_answer(void)
{
	struct remote *remote = asked[asked_first++ % MAX];
	struct decide_wait wait = { .ahead = NULL };
	struct answer ret;

	if (remote->call) {
		rules_enter();
		decide_call(remote->call, store_now(NULL), &ret, &wait);
		remote->done(remote->arg, &ret, &wait);
		rules_leave();
	}
	free(remote);
}

static int observed;

void observe(struct worker *worker, const struct call *call, const struct answer *answer,
	     u64 took_ns)
{
	assert_int_equal(in_rules, 1);
	observed++;
}

/* ---------------------------------------------------------------- callers */

static struct http_tier tier;
static struct worker workers[2];

struct caller {
	struct call_descriptor descriptor;
	struct call call;
	struct waiting *waiting;
	bool answered, cancelled;
	enum call_code code;
	u64 asked_ns, answered_ns, waited_ns, retry_after_ns;
	int order;
};

static struct caller caller[MAX];
static int callers, answers;

static void answered(const struct call *call, const struct answer *answer, void *arg)
{
	struct caller *who = arg;

	assert_int_equal(in_rules, 1);
	assert_ptr_equal(call, &who->call);
	assert_false(who->answered || who->cancelled);
	who->answered = true;
	who->waiting = NULL;
	who->code = answer->code;
	who->answered_ns = now_ns;
	who->waited_ns = answer->waited_ns;
	who->retry_after_ns = answer->retry_after_ns;
	who->order = answers++;
}

static struct caller *ask_of(u32 worker, u64 key, u64 hits, u64 max_wait_ns, bool both, bool peek)
{
	struct caller *who = &caller[callers++];

	assert_true(callers < MAX);
	*who = (struct caller){
		.descriptor = { .hits = hits },
		.call = { .count = 1, .at_utc_ns = key, .max_wait_ns = max_wait_ns,
			  .has_source = both, .peek = peek },
		.asked_ns = now_ns,
	};
	who->call.descriptor = &who->descriptor;
	who->waiting = ask(&workers[worker], &who->call, answered, who);
	assert_int_equal(!!who->waiting, !who->answered);
	return who;
}

static struct caller *ask_one(u32 worker)
{
	return ask_of(worker, 0, 1, NEVER, false, false);
}

static void cancel(struct caller *who)
{
	who->cancelled = true;
	ask_cancel(who->waiting);
	who->waiting = NULL;
}

/* Mail, and the mail that this leads to. */
static void deliver(void)
{
	struct waits *waits = tier.waits;

	do {
		for (u32 i = 0; i < 2; i++)
			event_base_loop(workers[i].base, EVLOOP_NONBLOCK);
	} while (!TAILQ_EMPTY(&waits->worker[0].mail) || !TAILQ_EMPTY(&waits->worker[1].mail));
}

/* Mail is delivered; then time passes up to `to`, from one timer to the next, `late` after it. */
static void pass(u64 to_ns, u64 late_ns)
{
	for (;;) {
		u64 next_ns = NEVER;

		deliver();
		for (u32 i = 0; i < 2; i++) {
			struct wait_heap *heap = &tier.waits->worker[i].heap;

			if (heap->count && heap->at[0]->at_ns < next_ns)
				next_ns = heap->at[0]->at_ns;
		}
		if (next_ns + late_ns > to_ns || next_ns == NEVER)
			break;
		if (now_ns < next_ns + late_ns)
			now_ns = next_ns + late_ns;
		for (u32 i = 0; i < 2; i++)
			if (own_of(&workers[i])->timer)
				waits_run(&workers[i]);
	}
	now_ns = to_ns;
}

static int begin_with(u64 max_waiting)
{
	rule = (typeof(rule)){ .interval_ns = 200 * MS, .wait_ns = 2000 * MS, .queue = 10 };
	now_ns = 1000000 * MS;
	callers = answers = observed = 0;
	asked_first = asked_end = cancelled_far = 0;
	far = false;
	tier = (struct http_tier){ .worker = workers, .worker_count = 2 };
	tier.waits = waits_new(2, max_waiting);
	assert_non_null(tier.waits);
	for (u32 i = 0; i < 2; i++)
		workers[i] = (struct worker){ .tier = &tier, .index = i,
					      .base = event_base_new() };
	return 0;
}

static int begin(void **state)
{
	return begin_with(100);
}

static int end(void **state)
{
	assert_int_equal(in_rules, 0);
	waits_free(tier.waits);
	for (u32 i = 0; i < 2; i++)
		event_base_free(workers[i].base);
	return 0;
}

static void is_answered(struct caller *who, enum call_code code, u64 after_ns)
{
	assert_true(who->answered);
	assert_int_equal(who->code, code);
	assert_int_equal(who->answered_ns - who->asked_ns, after_ns);
	assert_int_equal(who->waited_ns, after_ns);
}

/* ---------------------------------------------------------------- tests */

static void test_at_once(void **state)
{
	is_answered(ask_one(0), CALL_OK, 0);
	assert_int_equal(observed, 1);
	assert_int_equal(waits_total(tier.waits), 0);
	/* A rule that lets nobody wait. */
	rule.wait_ns = 0;
	is_answered(ask_one(0), CALL_OVER_LIMIT, 0);
	/* Without a tier's waits nothing is held either. */
	rule.wait_ns = 2000 * MS;
	waits_free(tier.waits);
	tier.waits = NULL;
	is_answered(ask_one(0), CALL_OVER_LIMIT, 0);
}

static void rule_waiting(void *arg, u64 rule_id, u64 count)
{
	assert_int_equal(rule_id, 7);
	*(u64 *)arg += count;
}

/* Of eleven at once the k-th is answered after k x 200 ms; one more is beyond the queue. */
static void test_in_order(void **state)
{
	struct caller *one[12], *neighbour;
	u64 waiting = 0;

	for (int i = 0; i < 12; i++)
		one[i] = ask_one(i % 2);
	assert_int_equal(waits_total(tier.waits), 10);
	waits_each(tier.waits, rule_waiting, &waiting);
	assert_int_equal(waiting, 10);
	is_answered(one[0], CALL_OK, 0);
	is_answered(one[11], CALL_OVER_LIMIT, 0);
	assert_int_equal(one[11]->retry_after_ns, 11 * 200 * MS);
	neighbour = ask_of(1, 2, 1, NEVER, false, false);
	is_answered(neighbour, CALL_OK, 0);
	pass(now_ns + 3000 * MS, 0);
	for (int i = 1; i < 11; i++)
		is_answered(one[i], CALL_OK, i * 200 * MS);
	assert_int_equal(rule.charged, 12);
	assert_int_equal(waits_total(tier.waits), 0);
	assert_int_equal(observed, 13);
}

/* Timers that come 15 ms late move no one after them. */
static void test_late_timers(void **state)
{
	struct caller *one[11];

	for (int i = 0; i < 11; i++)
		one[i] = ask_one(i % 2);
	pass(now_ns + 2200 * MS, 15 * MS);
	for (int i = 1; i < 10; i++)
		is_answered(one[i], CALL_OK, i * 200 * MS + 15 * MS);
	/* The last one's time was up at 2 s; it was due by then, and late is not its fault. */
	is_answered(one[10], CALL_OK, 2015 * MS);
}

static void test_cancel_moves_up(void **state)
{
	struct caller *one[11];
	int place = 1;

	for (int i = 0; i < 11; i++)
		one[i] = ask_one(i % 2);
	/* In the middle, the last, and the first of them while its timer runs. */
	cancel(one[5]);
	cancel(one[10]);
	pass(now_ns + 100 * MS, 0);
	cancel(one[1]);
	assert_int_equal(waits_total(tier.waits), 7);
	pass(now_ns + 3000 * MS, 0);
	for (int i = 2; i < 10; i++)
		if (i != 5)
			is_answered(one[i], CALL_OK, place++ * 200 * MS);
	assert_int_equal(rule.charged, 8);
	/* Its place in the queue is free at once. */
	one[0] = ask_one(0);
	one[1] = ask_one(1);
	cancel(one[1]);
	assert_int_equal(waits_total(tier.waits), 0);
}

/* Nobody passes the queue, whether it would wait or not, also when the bucket has room again. */
static void test_nobody_overtakes(void **state)
{
	struct caller *waits, *hasty, *looks, *behind;

	ask_one(0);
	waits = ask_one(0);
	now_ns += 250 * MS;		/* due, but its timer was not served yet */
	hasty = ask_of(1, 0, 1, 0, false, false);
	is_answered(hasty, CALL_OVER_LIMIT, 0);
	assert_int_equal(hasty->retry_after_ns, 200 * MS);
	looks = ask_of(1, 0, 1, NEVER, false, true);
	is_answered(looks, CALL_OVER_LIMIT, 0);
	behind = ask_one(1);
	assert_false(behind->answered);
	pass(now_ns, 0);
	is_answered(waits, CALL_OK, 250 * MS);
	assert_false(behind->answered);
	pass(now_ns + 1000 * MS, 0);
	is_answered(behind, CALL_OK, 180 * MS);	/* as of 20 ms back at most */
}

static void test_bounds(void **state)
{
	struct caller *one;

	/* The caller's own patience: 500 ms are enough for two in the queue. */
	ask_one(0);
	for (int i = 0; i < 2; i++)
		assert_false(ask_of(0, 0, 1, 500 * MS, false, false)->answered);
	one = ask_of(0, 0, 1, 500 * MS, false, false);
	is_answered(one, CALL_OVER_LIMIT, 0);
	assert_int_equal(one->retry_after_ns, 600 * MS);
	/* The rule's: ten may queue, but the wait is over before. */
	rule.wait_ns = 700 * MS;
	assert_false(ask_one(0)->answered);
	is_answered(ask_one(0), CALL_OVER_LIMIT, 0);
	pass(now_ns + 3000 * MS, 0);
	assert_int_equal(rule.charged, 4);

	/* All waiters of the tier. */
	end(state);
	begin_with(3);
	for (u64 key = 0; key < 3; key++)
		for (int i = 0; i < 2; i++)
			ask_of(key & 1, key, 1, NEVER, false, false);
	assert_int_equal(waits_total(tier.waits), 3);
	is_answered(ask_one(0), CALL_OVER_LIMIT, 0);
	pass(now_ns + 200 * MS, 0);
	assert_int_equal(waits_total(tier.waits), 0);
	assert_false(ask_one(0)->answered);
	pass(now_ns + 200 * MS, 0);
}

/* Somebody who is not held back (a report) takes what was waited for: time runs out. */
static void test_time_is_up(void **state)
{
	struct caller *one, *two;

	ask_one(0);
	one = ask_of(0, 0, 1, 250 * MS, false, false);
	two = ask_of(1, 0, 1, 450 * MS, false, false);
	rule.tat[0] += 100 * MS;
	pass(now_ns + 1000 * MS, 0);
	/* Known when it was due: it would not fit in time. */
	is_answered(one, CALL_OVER_LIMIT, 200 * MS);
	assert_int_equal(one->retry_after_ns, 100 * MS);
	is_answered(two, CALL_OK, 300 * MS);
	/* One that is not the first of its queue. */
	ask_one(0);
	one = ask_one(0);
	two = ask_of(1, 0, 1, 450 * MS, false, false);
	rule.tat[0] += 400 * MS;
	pass(now_ns + 3000 * MS, 0);
	is_answered(one, CALL_OK, 600 * MS);
	is_answered(two, CALL_OVER_LIMIT, 450 * MS);
}

static void test_reload(void **state)
{
	struct caller *one[6];
	u64 begin_ns = now_ns;

	/* Faster: from then on each 50 ms. */
	for (int i = 0; i < 5; i++)
		one[i] = ask_one(i % 2);
	pass(now_ns + 100 * MS, 0);
	rule.interval_ns = 50 * MS;
	rule.tat[0] = begin_ns + 100 * MS;
	waits_recheck(tier.waits);
	pass(now_ns + 1000 * MS, 0);
	for (int i = 1; i < 5; i++)
		is_answered(one[i], CALL_OK, (100 + (i - 1) * 50) * MS);

	/* Other buckets: the queue moves over, in its order. */
	rule.interval_ns = 200 * MS;
	for (int i = 0; i < 5; i++)
		one[i] = ask_one(i % 2);
	rule.salt = 100;
	waits_recheck(tier.waits);
	one[5] = ask_one(0);
	pass(now_ns + 2000 * MS, 0);
	for (int i = 1; i < 5; i++) {
		is_answered(one[i], CALL_OK, i * 200 * MS);
	}
	assert_true(one[5]->answered);

	/* No waiting any more: refused at once; no rule any more: passed at once. */
	for (int i = 0; i < 3; i++)
		one[i] = ask_one(i % 2);
	rule.wait_ns = 0;
	waits_recheck(tier.waits);
	pass(now_ns, 0);
	is_answered(one[1], CALL_OVER_LIMIT, 0);
	is_answered(one[2], CALL_OVER_LIMIT, 0);
	rule.wait_ns = 2000 * MS;
	for (int i = 0; i < 3; i++)
		one[i] = ask_one(i % 2);
	rule.interval_ns = rule.tat[0] = 0;
	waits_recheck(tier.waits);
	pass(now_ns, 0);
	is_answered(one[1], CALL_OK, 0);
	is_answered(one[2], CALL_OK, 0);
}

static void test_drain(void **state)
{
	struct caller *one[5];

	for (int i = 0; i < 5; i++)
		one[i] = ask_one(i % 2);
	waits_drain(tier.waits);
	pass(now_ns, 0);
	for (int i = 1; i < 5; i++)
		is_answered(one[i], CALL_OVER_LIMIT, 0);
	is_answered(ask_one(1), CALL_OVER_LIMIT, 0);
	assert_int_equal(waits_total(tier.waits), 0);
}

/* Two buckets of one call: it waits for the later one, and comes back to its place. */
static void test_two_buckets(void **state)
{
	struct caller *both, *upper, *lower;

	ask_of(0, 0, 1, NEVER, false, false);
	ask_of(0, 1, 3, NEVER, false, false);	/* the upper one: 600 ms */
	both = ask_of(0, 0, 1, NEVER, true, false);
	lower = ask_of(1, 0, 1, NEVER, false, false);
	upper = ask_of(1, 1, 1, NEVER, false, false);
	pass(now_ns + 3000 * MS, 0);
	is_answered(lower, CALL_OK, 200 * MS);
	is_answered(both, CALL_OK, 600 * MS);
	is_answered(upper, CALL_OK, 800 * MS);
}

/* ---------------------------------------------------------------- answers that come from afar */

static void test_far(void **state)
{
	struct caller *passes, *waits, *refused, *neighbour;

	far = true;
	passes = ask_one(0);
	waits = ask_one(1);
	refused = ask_of(0, 0, 1, 0, false, false);
	neighbour = ask_of(0, 2, 1, 0, false, false);
	now_ns += 3 * MS;
	assert_false(passes->answered || waits->answered || refused->answered);
	for (int i = 0; i < 4; i++)
		far_answer();
	/* Whoever was not held has not waited, though it took a while. */
	assert_true(passes->answered && passes->code == CALL_OK && !passes->waited_ns);
	assert_true(neighbour->answered && neighbour->code == CALL_OK);
	assert_true(refused->answered && refused->code == CALL_OVER_LIMIT);
	assert_int_equal(refused->retry_after_ns, 200 * MS);
	assert_false(waits->answered);
	assert_int_equal(waits_total(tier.waits), 1);
	/* It tries again when it is due, that is, asks again. */
	pass(now_ns + 199 * MS, 0);
	assert_int_equal(asked_first, asked_end);
	pass(now_ns + 10 * MS, 0);
	assert_int_equal(asked_end - asked_first, 1);
	/* While it does, nobody passes it, and nothing else of its queue asks. */
	assert_false(ask_one(0)->answered);
	is_answered(ask_of(0, 0, 1, 0, false, false), CALL_OVER_LIMIT, 0);
	pass(now_ns + 100 * MS, 0);
	assert_int_equal(asked_end - asked_first, 1);
	far_answer();
	is_answered(waits, CALL_OK, 312 * MS);
	assert_int_equal(rule.charged, 3);
	/* The next of the queue is told, and asks. */
	pass(now_ns, 0);
	assert_int_equal(asked_end - asked_first, 1);
	far_answer();
	pass(now_ns + 200 * MS, 0);
	far_answer();
	assert_int_equal(waits_total(tier.waits), 0);
	assert_int_equal(rule.charged, 4);
}

/* Somebody else, elsewhere, was faster: back to the same place, and again. */
static void test_far_refused(void **state)
{
	struct caller *first, *second;

	ask_one(0);
	first = ask_one(0);
	second = ask_one(1);
	far = true;
	pass(now_ns + 200 * MS, 0);
	rule.tat[0] = now_ns + 150 * MS;
	far_answer();
	assert_false(first->answered || second->answered);
	pass(now_ns + 149 * MS, 0);
	assert_int_equal(asked_first, asked_end);
	pass(now_ns + 1 * MS, 0);
	far_answer();
	is_answered(first, CALL_OK, 350 * MS);
	pass(now_ns, 0);
	far_answer();
	pass(now_ns + 200 * MS, 0);
	far_answer();
	is_answered(second, CALL_OK, 550 * MS);
}

static void test_far_cancel(void **state)
{
	struct caller *fresh, *first, *second;

	far = true;
	fresh = ask_one(0);
	cancel(fresh);
	assert_int_equal(cancelled_far, 1);
	far_answer();
	assert_int_equal(rule.charged, 0);
	far = false;
	ask_one(0);
	first = ask_one(0);
	second = ask_one(1);
	far = true;
	pass(now_ns + 200 * MS, 0);
	/* The first asks; it goes, and the second is told at once. */
	cancel(first);
	assert_int_equal(cancelled_far, 2);
	pass(now_ns, 0);
	assert_int_equal(asked_end - asked_first, 2);
	far_answer();
	far_answer();
	is_answered(second, CALL_OK, 200 * MS);
	assert_int_equal(rule.charged, 2);
	assert_int_equal(waits_total(tier.waits), 0);
}

/* Told to try again (rules changed, the tier drains) while it asks: it does so afterwards. */
static void test_far_told(void **state)
{
	struct caller *first, *second;

	ask_one(0);
	first = ask_one(0);
	second = ask_one(1);
	far = true;
	pass(now_ns + 200 * MS, 0);
	waits_recheck(tier.waits);
	pass(now_ns, 0);
	assert_int_equal(asked_end - asked_first, 1);
	rule.tat[0] = now_ns + 500 * MS;
	far_answer();
	pass(now_ns, 0);
	assert_int_equal(asked_end - asked_first, 1);
	waits_drain(tier.waits);
	pass(now_ns, 0);
	is_answered(second, CALL_OVER_LIMIT, 200 * MS);
	assert_false(first->answered);
	far_answer();
	is_answered(first, CALL_OVER_LIMIT, 200 * MS);
	assert_int_equal(waits_total(tier.waits), 0);
}

/* As test_random(), but those in flight may be overtaken. */
static void test_far_random(void **state)
{
	u64 begin_ns, passed[KEYS] = { 0 };

	rng_start("test_wait");
	far = true;
	rule.queue = 20;
	begin_ns = now_ns;
	while (callers < MAX - 10) {
		u64 dice = rng_below(100);

		if (dice < 40)
			ask_of(rng_below(2), rng_below(KEYS - 1), 1,
			       dice < 10 ? 0 : dice < 30 ? 700 * MS : NEVER, false, false);
		else if (dice < 45 && callers > 10 && caller[callers - dice % 10 - 1].waiting)
			cancel(&caller[callers - dice % 10 - 1]);
		else if (dice < 46)
			waits_recheck(tier.waits);
		else if (dice < 80 && asked_first < asked_end)
			far_answer();
		else if (dice >= 90)
			pass(now_ns + rng_below(200) * MS, rng_below(20) * MS);
	}
	for (int i = 0; i < 1000; i++) {
		while (asked_first < asked_end)
			far_answer();
		pass(now_ns + 5 * MS, 0);
	}
	for (int i = 0; i < callers; i++) {
		struct caller *who = &caller[i];

		assert_int_equal(who->answered, !who->cancelled);
		if (who->answered && who->code == CALL_OK)
			passed[who->call.at_utc_ns]++;
	}
	for (int key = 0; key < KEYS - 1; key++) {
		assert_true(passed[key] <= (now_ns - begin_ns) / (200 * MS) + 1);
		assert_true(passed[key] >= 50);
	}
	assert_int_equal(waits_total(tier.waits), 0);
}

/*
 * A random schedule: order of arrival per key holds among those of one key, what passes is what
 * the rate lets pass, everybody is answered within its time, and nothing is left over.
 */
static void test_random(void **state)
{
	u64 begin_ns, passed[KEYS] = { 0 };
	int last[KEYS];

	rng_start("test_wait");
	rule.queue = 20;
	begin_ns = now_ns;
	while (callers < MAX - 10) {
		u64 dice = rng_below(100);

		if (dice < 70)
			ask_of(rng_below(2), rng_below(KEYS - 1), 1,
			       dice < 10 ? 0 : dice < 30 ? 700 * MS : NEVER, false, dice == 50);
		else if (dice < 80 && callers > 10 && caller[callers - dice % 10 - 1].waiting)
			cancel(&caller[callers - dice % 10 - 1]);
		else if (dice < 82)
			waits_recheck(tier.waits);
		else
			pass(now_ns + rng_below(400) * MS, rng_below(20) * MS);
	}
	pass(now_ns + 5000 * MS, 0);
	for (int key = 0; key < KEYS; key++)
		last[key] = -1;
	for (int i = 0; i < callers; i++) {
		struct caller *who = &caller[i];
		u64 key = who->call.at_utc_ns;

		assert_int_equal(who->answered, !who->cancelled);
		if (!who->answered || who->call.peek)
			continue;
		assert_true(who->waited_ns <= 2021 * MS);
		assert_true(who->waited_ns <= who->call.max_wait_ns + 21 * MS ||
			    who->call.max_wait_ns == NEVER);
		if (who->code != CALL_OK)
			continue;
		assert_true(who->order > last[key]);
		last[key] = who->order;
		passed[key]++;
	}
	for (int key = 0; key < KEYS - 1; key++) {
		assert_true(passed[key] <= (now_ns - begin_ns) / (200 * MS) + 1);
		assert_true(passed[key] >= 100);
	}
	assert_int_equal(waits_total(tier.waits), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_at_once), TEST(test_in_order), TEST(test_late_timers),
		TEST(test_cancel_moves_up), TEST(test_nobody_overtakes), TEST(test_bounds),
		TEST(test_time_is_up), TEST(test_reload), TEST(test_drain),
		TEST(test_two_buckets), TEST(test_random), TEST(test_far), TEST(test_far_refused),
		TEST(test_far_cancel), TEST(test_far_told), TEST(test_far_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
