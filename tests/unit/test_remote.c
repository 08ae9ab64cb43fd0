// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls that ask the store of all nodes: who is asked for what, in which order answers come, what
 * is given back, what each on_store_failure does, what is owed. The store is one of fixed
 * windows that answers when the test says.
 *
 * It is over 500 lines because a store that answers by hand is of no other use.
 */
#include "remote_rig.h"

/* ---------------------------------------------------------------- a store that answers by hand */

#define FAR 64

static struct {
	struct shared shared;
	u32 places;			/* tags take them in turn, as they come */
	bool down[2], refuses[2];
	u64 tag[FAR];
	u32 tags;
	struct { u64 key, used, own; } count[FAR];
	struct shared_ask *asked[FAR];
	int end;
	int asks, backs;
} far;

static u32 far_place(struct shared *shared, u64 tag)
{
	u32 i;

	for (i = 0; i < far.tags && far.tag[i] != tag; i++)
		;
	if (i == far.tags)
		far.tag[far.tags++] = tag;
	assert_true(far.tags < FAR);
	return i % far.places;
}

static int far_ask(struct shared *shared, struct shared_ask *ask)
{
	u32 place = far_place(shared, ask->bucket[0].tag);

	assert_true(ask->count >= 1 && ask->deadline_ns == 5 * MS);
	for (u32 i = 1; i < ask->count; i++)
		assert_int_equal(far_place(shared, ask->bucket[i].tag), place);
	assert_false(far.down[place]);
	if (far.refuses[place])
		return -ENOBUFS;
	far.asks++;
	far.backs += ask->bucket[0].kind == SHARED_BACK;
	assert_true(far.end < FAR);
	far.asked[far.end++] = ask;
	return 0;
}

static bool far_up(struct shared *shared, u32 place)
{
	return !far.down[place];
}

static const struct shared_ops far_ops = { .place = far_place, .ask = far_ask, .up = far_up };

static typeof(far.count[0]) *far_count(u64 key)
{
	int i;

	for (i = 0; far.count[i].key && far.count[i].key != key; i++)
		;
	assert_true(i < FAR - 1);
	far.count[i].key = key;
	return &far.count[i];
}

static u64 *far_used(u64 key)
{
	return &far_count(key)->used;
}

/* Whatever was asked for is used so much, the most of it by other nodes. */
static void all_used(u64 used)
{
	for (int i = 0; far.count[i].key; i++)
		far.count[i].used = used;
}

static u64 far_sum(void)
{
	u64 sum = 0;

	for (int i = 0; far.count[i].key; i++)
		sum += far.count[i].used;
	return sum;
}

static void far_charge(struct shared_ask *ask)
{
	u64 left_ns = 60 * SEC - rig_time.utc_ns % (60 * SEC);

	ask->passed = true;
	ask->now_us = rig_time.utc_ns / 1000;
	for (u32 i = 0; i < ask->count; i++) {
		struct shared_bucket *b = &ask->bucket[i];

		b->over = b->kind == SHARED_TAKE &&
			  *far_used(b->key) + b->cost + b->hold > b->def.count * b->def.scale;
		b->wait_ns = b->over ? left_ns : 0;
		ask->passed &= !b->over;
	}
	for (u32 i = 0; i < ask->count; i++) {
		struct shared_bucket *b = &ask->bucket[i];
		typeof(far.count[0]) *count = far_count(b->key);
		s64 cost = b->kind == SHARED_BACK ? -(s64)b->cost :
			   b->kind == SHARED_FORCE || ask->passed ? (s64)b->cost : 0;

		/* Never below unused. */
		count->used = (s64)count->used + cost > 0 ? count->used + cost : 0;
		count->own = (s64)count->own + cost > 0 ? count->own + cost : 0;
		b->state = (struct shared_state){
			.used = count->used, .own = count->own,
			.window = rig_time.utc_ns / b->def.period_ns,
		};
	}
}

static struct shared_ask *far_take(int n)
{
	struct shared_ask *ask = far.asked[n];

	assert_true(n < far.end);
	memmove(&far.asked[n], &far.asked[n + 1], (--far.end - n) * sizeof(far.asked[0]));
	return ask;
}

/* A wait by the store's clock, which is known to less than a microsecond. */
static void is_near(u64 ns, u64 expected)
{
	assert_in_range(ns, expected - 1000, expected + 1000);
}

/* The n-th of those that are out is answered. */
static void far_answer(int n)
{
	struct shared_ask *ask = far_take(n);

	far_charge(ask);
	ask->done(ask, SHARED_DONE);
}

static void far_answer_all(void)
{
	while (far.end)
		far_answer(0);
}

/* ---------------------------------------------------------------- a node */

static struct rig_node node;
static struct rig_caller caller[8];

static const char rules[] =
	"domain: api\ndescriptors:\n"
	"  - {key: user, limits: ['3 requests/m'], scope: cluster}\n"
	"  - {key: plan, limits: ['5 requests/m'], scope: cluster}\n"
	"  - {key: path, limits: ['4 requests/m']}\n"
	"  - {key: two, limits: ['3 requests/m', {name: long, rate: 9 requests/h, scope: node}],"
	" scope: cluster}\n"
	"  - {key: open, limits: ['3 requests/m'], scope: cluster, on_store_failure: open}\n"
	"  - {key: closed, limits: ['3 requests/m'], scope: cluster, on_store_failure: closed}\n"
	"  - {key: error, limits: ['3 requests/m'], scope: cluster, on_store_failure: error}\n"
	"  - {key: shadow, limits: ['2 requests/m'], scope: cluster, shadow_mode: true}\n"
	"  - {key: quota, limits: ['2 requests/m'], scope: cluster, quota_mode: true}\n"
	"  - {key: log, limits: ['4 requests/m'], algorithm: sliding-log, scope: cluster}\n"
	"  - {key: patient, limits: ['2 requests/m'], scope: cluster, on_limit: {wait: 90s, queue: 9}}\n"
	"  - {key: later, limits: ['8 requests/m'], scope: cluster, consistency: {write_back: 1s}}\n";

static int begin(void **state)
{
	memset(&far, 0, sizeof(far));
	far.shared.ops = &far_ops;
	far.places = 1;
	rig_time_start();
	rig_node_open(&node, &far.shared);
	rig_load(rules);
	return 0;
}

static int end(void **state)
{
	far_answer_all();
	assert_int_equal(node.shared.asking, 0);
	assert_int_equal(rig_in_rules, 0);
	rig_node_close(&node);
	rig_end();
	return 0;
}

static void later(u64 ns)
{
	rig_time.mono_ns += ns;
	rig_time.utc_ns += ns;
}

static struct rig_caller *go(int n, const char *text)
{
	rig_ask_hits(&node, &caller[n], text, 1);
	return &caller[n];
}

/* Asked, answered, and its verdict. */
static enum call_code done(const char *text)
{
	go(0, text);
	far_answer_all();
	assert_true(caller[0].answered);
	return caller[0].answer.code;
}

static void is(const struct rig_caller *who, enum call_code code)
{
	assert_true(who->answered);
	assert_int_equal(who->answer.code, code);
}

/* What this node knows of it, by one who charges nothing and asks nobody. */
static u64 remaining(const char *text)
{
	struct rig_caller *who = &caller[7];
	struct answer answer;

	who->call = rig_call(who->descriptor, text);
	who->call.peek = true;
	decide(node.tier.store, rig_rules, &who->call, rig_time, &answer, NULL);
	return answer.status[0].remaining;
}

/* What is due to be told to the store, as hits; it hears of it. */
static s64 told(void)
{
	struct share_due due[8];
	struct shared_ask ask = { .passed = true };
	s64 sum = 0;
	u32 count;

	later(10 * SEC);
	while ((count = shares_due(node.shared.shares, due, 8, rig_time))) {
		for (u32 i = 0; i < count; i++) {
			sum += due[i].bucket.kind == SHARED_BACK ? -(s64)due[i].bucket.cost :
								   (s64)due[i].bucket.cost;
			ask.bucket = &due[i].bucket;
			ask.count = 1;
			far_charge(&ask);
			remote_told(node.tier.store, node.shared.shares, &due[i], &ask,
				    SHARED_DONE, rig_time);
		}
	}
	return sum;
}

/* ---------------------------------------------------------------- asked and answered */

static void test_strict(void **state)
{
	struct rig_caller *who = go(0, "user=bob");

	assert_false(who->answered);
	assert_int_equal(far.end, 1);
	assert_int_equal(far.asked[0]->bucket[0].cost, 1);
	assert_int_equal(remaining("user=bob"), 2);
	/* Somebody elsewhere took one. */
	*far_used(far.asked[0]->bucket[0].key) = 1;
	far_answer(0);
	is(who, CALL_OK);
	assert_int_equal(who->answer.status[0].remaining, 1);
	assert_int_equal(who->answer.policy[0].q, 3);
	assert_int_equal(who->answer.policy[0].r, 1);
	assert_int_equal(remaining("user=bob"), 1);
	/* Two at once, and one is left. */
	go(0, "user=bob");
	go(1, "user=bob");
	far_answer_all();
	is(&caller[0], CALL_OK);
	is(&caller[1], CALL_OVER_LIMIT);
	assert_int_equal(far_sum(), 3);
	assert_int_equal(done("user=al"), CALL_OK);
	assert_int_equal(caller[0].answer.status[0].remaining, 2);
}

/* Whoever is refused costs no round trip, but for one a second. */
static void test_recall(void **state)
{
	assert_int_equal(done("user=bob"), CALL_OK);
	all_used(3);
	assert_int_equal(done("user=bob"), CALL_OVER_LIMIT);
	assert_int_equal(far.asks, 2);
	for (int i = 0; i < 100; i++)
		is(go(0, "user=bob"), CALL_OVER_LIMIT);
	is_near(caller[0].answer.retry_after_ns, 59 * SEC);
	assert_int_equal(far.asks, 2);
	later(999 * MS);
	is(go(0, "user=bob"), CALL_OVER_LIMIT);
	later(MS);
	assert_int_equal(done("user=bob"), CALL_OVER_LIMIT);
	assert_int_equal(far.asks, 3);
	/* Another node gave something back. */
	all_used(1);
	is(go(0, "user=bob"), CALL_OVER_LIMIT);
	later(1001 * MS);
	assert_int_equal(done("user=bob"), CALL_OK);
	assert_int_equal(caller[0].answer.status[0].remaining, 1);
	assert_int_equal(done("user=bob"), CALL_OK);
	assert_int_equal(far_sum(), 3);
}

/* Two places, and a limit of this node: one refuses, the others are given back. */
static void test_all_or_none(void **state)
{
	far.places = 2;
	assert_int_equal(done("user=bob;plan=free;path=/x"), CALL_OK);
	assert_int_equal(far.asks, 2);
	assert_int_equal(far_sum(), 2);
	go(0, "user=bob;plan=free;path=/x");
	assert_int_equal(far.end, 2);
	assert_int_equal(remaining("path=/x"), 2);
	*far_used(far.asked[1]->bucket[0].key) = 5;
	/* Whichever comes first, nobody is answered before both. */
	far_answer(1);
	assert_false(caller[0].answered);
	far_answer(0);
	is(&caller[0], CALL_OVER_LIMIT);
	assert_false(caller[0].answer.status[0].over);
	assert_true(caller[0].answer.status[1].over);
	assert_int_equal(caller[0].answer.retry_after_ns, 59 * SEC);
	assert_int_equal(far.backs, 1);
	assert_int_equal(remaining("path=/x"), 3);
	assert_int_equal(remaining("user=bob"), 2);
	far_answer_all();
	assert_int_equal(far_sum(), 1 + 5);
	assert_int_equal(remaining("user=bob"), 2);
	/* Refused here: nobody is asked. */
	far.asks = 0;
	for (int i = 0; i < 4; i++)
		go(1, "path=/y");
	is(go(0, "user=bob;path=/y"), CALL_OVER_LIMIT);
	assert_int_equal(far.asks, 0);
}

/* Limits of one key go together, in one ask. */
static void test_one_slot(void **state)
{
	far.places = 2;
	rig_load("domain: api\ndescriptors:\n"
		 "  - {key: user, scope: cluster, limits: ['3 requests/m',"
		 " {name: more, rate: 4 requests/m}]}\n");
	go(0, "user=bob");
	assert_int_equal(far.end, 1);
	assert_int_equal(far.asked[0]->count, 2);
	assert_int_equal(far.asked[0]->bucket[0].tag, far.asked[0]->bucket[1].tag);
	far_answer_all();
	is(&caller[0], CALL_OK);
	assert_int_equal(caller[0].answer.policy_count, 2);
	assert_int_equal(done("user=bob"), CALL_OK);
	assert_int_equal(done("user=bob"), CALL_OK);
	assert_int_equal(done("user=bob"), CALL_OVER_LIMIT);
	assert_int_equal(far_sum(), 6);
}

/* ---------------------------------------------------------------- the store does not answer */

static void far_late(int n, struct shared_ask **ret)
{
	*ret = far_take(n);
	(*ret)->done(*ret, SHARED_LATE);
}

/* Over by what is known here, and the store away when it is asked again: over still, open or not. */
static void test_recall_away(void **state)
{
	static const char *const who[] = { "user=bob", "open=bob", "closed=bob", "error=bob" };
	struct shared_ask *ask;

	for (u32 i = 0; i < sizeof(who) / sizeof(who[0]); i++) {
		assert_int_equal(done(who[i]), CALL_OK);
		all_used(3);
		assert_int_equal(done(who[i]), CALL_OVER_LIMIT);
		later(1001 * MS);
		go(0, who[i]);
		assert_int_equal(caller[0].answered, 0);
		far_late(0, &ask);
		is(&caller[0], CALL_OVER_LIMIT);
		assert_true(caller[0].answer.retry_after_ns > 30 * SEC);
		ask->late(ask, SHARED_DOWN);
		is(go(0, who[i]), CALL_OVER_LIMIT);
	}
}

static void test_contracts(void **state)
{
	static const struct { const char *text; enum call_code code; } of[] = {
		{ "user=bob", CALL_OK }, { "open=bob", CALL_OK }, { "closed=bob", CALL_CLOSED },
		{ "error=bob", CALL_ERROR }, { "closed=bob;user=al", CALL_CLOSED },
		{ "error=bob;closed=al", CALL_ERROR }, { "open=al;error=bob", CALL_ERROR },
	};
	struct shared_ask *ask;

	for (int down = 0; down < 2; down++) {
		far.down[0] = down;
		for (u32 i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
			go(0, of[i].text);
			assert_int_equal(caller[0].answered, down);
			if (!down) {
				far_late(0, &ask);
				is(&caller[0], of[i].code);
				ask->late(ask, SHARED_DOWN);
			}
			is(&caller[0], of[i].code);
			assert_true(caller[0].answer.status[0].away);
			if (of[i].code != CALL_OK)
				assert_int_equal(caller[0].answer.retry_after_ns, SEC);
		}
	}
	/* It cannot be asked although it is up. */
	far.down[0] = false;
	far.refuses[0] = true;
	is(go(0, "closed=eve"), CALL_CLOSED);
	assert_int_equal(far_sum(), 0);
}

/* A refusal wins over what the others' rules say. */
static void test_refusal_wins(void **state)
{
	struct shared_ask *ask;

	far.places = 2;
	go(0, "user=bob;error=bob");
	assert_int_equal(far.end, 2);
	*far_used(far.asked[0]->bucket[0].key) = 3;
	far_late(1, &ask);
	far_answer(0);
	is(&caller[0], CALL_OVER_LIMIT);
	/* It was charged after all: given back. */
	far_charge(ask);
	assert_int_equal(far_sum(), 4);
	ask->late(ask, SHARED_DONE);
	assert_int_equal(far.backs, 1);
	far_answer_all();
	assert_int_equal(far_sum(), 3);
	assert_int_equal(told(), 0);
}

/* This node's share, while nobody else can say; the bucket of the whole is not closed by it. */
static void test_local_share(void **state)
{
	u32 passed = 0;

	rig_load("domain: api\ndescriptors:\n"
		 "  - {key: user, limits: ['300 requests/m'], scope: cluster}\n");
	shares_set_nodes(node.shared.shares, 3);
	far.down[0] = true;
	for (int i = 0; i < 300; i++) {
		go(0, "user=bob");
		assert_true(caller[0].answered);
		passed += caller[0].answer.code == CALL_OK;
	}
	assert_in_range(passed, 90, 100);
	is(&caller[0], CALL_OVER_LIMIT);
	assert_int_equal(caller[0].answer.retry_after_ns, 59 * SEC);
	assert_int_equal(go(0, "user=al")->answer.code, CALL_OK);
	/* It comes back, and is told of them; then the whole counts. */
	far.down[0] = false;
	assert_int_equal(told(), passed + 1);
	assert_int_equal(far_sum(), passed + 1);
	assert_int_equal(done("user=bob"), CALL_OK);
	assert_int_equal(caller[0].answer.status[0].remaining, 300 - passed - 1);
}

/* The door is open: what went through it does not close it, and all of it is owed. */
static void test_open(void **state)
{
	far.down[0] = true;
	for (int i = 0; i < 20; i++)
		is(go(0, "open=bob"), CALL_OK);
	far.down[0] = false;
	assert_int_equal(told(), 20);
	assert_int_equal(done("open=bob"), CALL_OVER_LIMIT);
}

/* Late answers of what was let through: owed where it was not charged, and only there. */
static void test_late(void **state)
{
	struct shared_ask *ask;

	go(0, "open=bob");
	far_late(0, &ask);
	is(&caller[0], CALL_OK);
	far_charge(ask);
	ask->late(ask, SHARED_DONE);
	assert_int_equal(far.end, 0);
	assert_int_equal(told(), 0);
	assert_int_equal(remaining("open=bob"), 2);

	/* Refused too late. */
	go(0, "open=bob");
	all_used(3);
	far_late(0, &ask);
	is(&caller[0], CALL_OK);
	far_charge(ask);
	assert_false(ask->passed);
	ask->late(ask, SHARED_DONE);
	assert_int_equal(told(), 1);
	assert_int_equal(far_sum(), 4);

	/* Nobody will ever know. */
	go(0, "open=al");
	far_late(0, &ask);
	ask->late(ask, SHARED_DOWN);
	assert_int_equal(told(), 1);
}

/* ---------------------------------------------------------------- who goes away, what changes */

static void test_cancel(void **state)
{
	struct shared_ask *ask;

	go(0, "user=bob;path=/x");
	assert_int_equal(remaining("path=/x"), 3);
	remote_cancel(caller[0].remote);
	far_answer(0);
	assert_false(caller[0].answered);
	assert_int_equal(far.backs, 1);
	far_answer_all();
	assert_int_equal(far_sum(), 0);
	assert_int_equal(remaining("path=/x"), 4);
	assert_int_equal(remaining("user=bob"), 3);
	/* And one whose answer is late. */
	go(0, "user=bob");
	remote_cancel(caller[0].remote);
	far_late(0, &ask);
	far_charge(ask);
	ask->late(ask, SHARED_DONE);
	far_answer_all();
	assert_int_equal(far_sum(), 0);
	assert_false(caller[0].answered);
}

static void test_rules_change(void **state)
{
	go(0, "user=bob;plan=free");
	rig_load("domain: api\ndescriptors:\n"
		 "  - {key: user, limits: ['30 requests/m'], scope: cluster}\n"
		 "  - {key: plan, limits: ['7 requests/m']}\n");
	far_answer_all();
	is(&caller[0], CALL_OK);
	assert_int_equal(caller[0].answer.status[0].remaining, 29);
	assert_int_equal(caller[0].answer.status[1].remaining, 7);
	go(0, "user=bob");
	rig_load("domain: other\ndescriptors: []\n");
	far_answer_all();
	is(&caller[0], CALL_OK);
	assert_null(caller[0].answer.status[0].rule);
}

/* A window ends while the answer is on its way: nothing of the next one is taken back. */
static void test_window_ends(void **state)
{
	later(58 * SEC + 999 * MS);
	go(0, "user=bob;path=/x");
	later(2 * MS);
	assert_int_equal(go(1, "path=/x")->answer.code, CALL_OK);
	remote_cancel(caller[0].remote);
	far_answer_all();
	assert_int_equal(remaining("path=/x"), 3);
}

static void test_room(void **state)
{
	node.def.max_waiting = 2;
	go(0, "user=a");
	go(1, "closed=b");
	is(go(2, "closed=c"), CALL_CLOSED);
	is(go(3, "user=d"), CALL_OK);
	assert_int_equal(far.end, 2);
	far_answer_all();
	assert_int_equal(done("closed=c"), CALL_OK);
}

/* ---------------------------------------------------------------- kinds of rules and calls */

static void test_shadow(void **state)
{
	for (int i = 0; i < 4; i++)
		assert_int_equal(done("shadow=bob;user=bob"), i < 3 ? CALL_OK : CALL_OVER_LIMIT);
	/* The third was over for the shadow, and charged there no more. */
	assert_int_equal(far_sum(), 3 + 2);
	assert_int_equal(done("shadow=al"), CALL_OK);
	all_used(9);
	assert_int_equal(done("shadow=al"), CALL_OK);
	assert_true(caller[0].answer.status[0].shadow);
	far.down[0] = true;
	is(go(0, "shadow=eve"), CALL_OK);
}

static void test_quota(void **state)
{
	/* Two quotas: each takes calls as long as it has room, and one with room is enough. */
	assert_int_equal(done("quota=a;quota=b"), CALL_OK);
	assert_int_equal(far_sum(), 2);
	go(0, "quota=a;quota=b");
	*far_used(far.asked[0]->bucket[0].key) = 2;
	far_answer_all();
	is(&caller[0], CALL_OK);
	assert_true(caller[0].answer.status[0].over);
	assert_false(caller[0].answer.status[1].over);
	assert_int_equal(far_sum(), 4);
	assert_int_equal(done("quota=a;quota=b"), CALL_OVER_LIMIT);
	assert_int_equal(far_sum(), 4);
}

static void test_peek(void **state)
{
	assert_int_equal(done("user=bob"), CALL_OK);
	all_used(2);
	caller[0].call = rig_call(caller[0].descriptor, "user=bob");
	caller[0].call.peek = true;
	rig_go(&node, &caller[0]);
	assert_int_equal(far.end, 1);
	assert_int_equal(far.asked[0]->bucket[0].cost, 0);
	far_answer_all();
	is(&caller[0], CALL_OK);
	assert_int_equal(caller[0].answer.status[0].remaining, 1);
	assert_int_equal(far_sum(), 2);
	caller[0].descriptor[0].hits = 2;
	rig_go(&node, &caller[0]);
	/* Two do not fit, says this node: once a second it asks all the same. */
	far_answer_all();
	is(&caller[0], CALL_OVER_LIMIT);
	/* A look, hits 0. */
	rig_ask_hits(&node, &caller[0], "user=bob", 0);
	far_answer_all();
	is(&caller[0], CALL_OK);
	assert_int_equal(far_sum(), 2);
	/* Where nobody answers, what is known. */
	far.down[0] = true;
	rig_ask_hits(&node, &caller[0], "closed=bob", 0);
	is(&caller[0], CALL_OK);
	assert_int_equal(caller[0].answer.status[0].remaining, 3);
}

static void test_report(void **state)
{
	caller[0].call = rig_call(caller[0].descriptor, "user=bob");
	caller[0].call.report = true;
	caller[0].descriptor[0].hits = 2;
	rig_go(&node, &caller[0]);
	is(&caller[0], CALL_OK);
	assert_int_equal(far.asks, 0);
	assert_int_equal(remaining("user=bob"), 1);
	assert_int_equal(told(), 2);
	assert_int_equal(done("user=bob"), CALL_OK);
	assert_int_equal(caller[0].answer.status[0].remaining, 0);
	/* A refund. */
	caller[0].call.report = true;
	caller[0].descriptor[0].refund = true;
	rig_go(&node, &caller[0]);
	assert_int_equal(remaining("user=bob"), 1);
	assert_int_equal(told(), -1);
	assert_int_equal(far_sum(), 2);
}

/* Of a log only the store knows all; what it refused is recalled with its wait. */
static void test_log(void **state)
{
	assert_int_equal(done("log=bob"), CALL_OK);
	assert_int_equal(caller[0].answer.status[0].remaining, 3);
	all_used(3);
	assert_int_equal(done("log=bob"), CALL_OK);
	assert_int_equal(caller[0].answer.status[0].remaining, 0);
	assert_int_equal(done("log=bob"), CALL_OVER_LIMIT);
	assert_int_equal(caller[0].answer.retry_after_ns, 59 * SEC);
	far.asks = 0;
	later(900 * MS);
	is(go(0, "log=bob"), CALL_OVER_LIMIT);
	assert_int_equal(caller[0].answer.retry_after_ns, 59 * SEC - 900 * MS);
	assert_int_equal(far.asks, 0);
	later(101 * MS);
	all_used(2);
	assert_int_equal(done("log=bob"), CALL_OK);
	/* Two of its own and this one: a third of four is one, and that is used up. */
	shares_set_nodes(node.shared.shares, 3);
	far.down[0] = true;
	assert_int_equal(go(0, "log=al")->answer.code, CALL_OK);
	assert_int_equal(go(0, "log=al")->answer.code, CALL_OVER_LIMIT);
}

/* A refusal that may be waited for is told as one: when, and for which bucket. */
static void test_wait(void **state)
{
	assert_int_equal(done("patient=bob"), CALL_OK);
	all_used(2);
	assert_int_equal(done("patient=bob"), CALL_OVER_LIMIT);
	assert_int_not_equal(caller[0].wait.key, 0);
	assert_int_equal(caller[0].wait.wait_ns, 59 * SEC);
	assert_int_equal(caller[0].wait.limit_ns, 90 * SEC);
	assert_int_equal(caller[0].wait.hits, 1);
}

/* What is written back asks nobody; while the store is away its rule says what holds. */
static void test_write_back(void **state)
{
	shares_set_nodes(node.shared.shares, 2);
	/* The store's clock is known from its first answer. */
	assert_int_equal(done("log=al"), CALL_OK);
	for (int i = 0; i < 6; i++)
		is(go(0, "later=bob"), CALL_OK);
	assert_int_equal(caller[0].answer.status[0].remaining, 2);
	assert_int_equal(far.asks, 1);
	assert_int_equal(told(), 6);
	assert_int_equal(far_sum(), 1 + 6);
	assert_int_equal(remaining("later=bob"), 2);
	is(go(0, "later=bob"), CALL_OK);
	/* With another that refuses it is not charged. */
	assert_int_equal(done("user=bob"), CALL_OK);
	*far_used(far.count[2].key) = 3;
	go(0, "later=bob;user=bob");
	far_answer_all();
	is(&caller[0], CALL_OVER_LIMIT);
	assert_int_equal(remaining("later=bob"), 1);
	assert_int_equal(told(), 1);
	far.down[0] = true;
	for (int i = 0; i < 4; i++)
		is(go(0, "later=al"), CALL_OK);
	is(go(0, "later=al"), CALL_OVER_LIMIT);
}

/* An operator's reset goes to the store; other nodes' charges are forgotten with it. */
static void test_reset(void **state)
{
	const struct rule *rule;

	assert_int_equal(done("user=bob"), CALL_OK);
	all_used(3);
	assert_int_equal(done("user=bob"), CALL_OVER_LIMIT);
	assert_int_equal(done("user=al"), CALL_OK);
	rule = ruleset_find(rig_rules, "api/user");
	assert_int_equal(decide_reset(node.tier.store, rig_rules, rule,
				      (struct bytes){ "bob", 3 }), 0);
	assert_int_equal(remaining("user=bob"), 3);
	assert_int_equal(told(), -6);
	/* The store takes no more than there is: the neighbour's one is left. */
	assert_int_equal(far_sum(), 1);
	assert_int_equal(remaining("user=al"), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_strict), TEST(test_recall), TEST(test_recall_away), TEST(test_all_or_none),
		TEST(test_one_slot),
		TEST(test_contracts), TEST(test_refusal_wins), TEST(test_local_share),
		TEST(test_open), TEST(test_late), TEST(test_cancel), TEST(test_rules_change),
		TEST(test_window_ends), TEST(test_room), TEST(test_shadow), TEST(test_quota),
		TEST(test_peek), TEST(test_report), TEST(test_log), TEST(test_wait),
		TEST(test_write_back), TEST(test_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
