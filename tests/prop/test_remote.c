// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Three nodes that share limits over one store in memory, with calls at random.
 *
 * One after the other: each is decided as by one node that has the limits alone, with the
 * same remaining units, on any node; where refused ones count, once other nodes could know of them.
 * All at once, with replies that are late or never come, clients that disconnect and nodes that are
 * cut off: never more than a limit passes, and when all is quiet exactly the passed requests are
 * charged, in each of a request's buckets.
 */
#include "unit/request/engine/remote_rig.h"
#include "lib/rng.h"
#include "lib/cluster_store_memory.h"

#define NODES 3
#define CALLERS 40

static struct cluster_store_memory *memory;
static struct cluster_store *way[NODES];
static struct rig_node node[NODES];
static struct rig_caller caller[CALLERS];

static const char alone[] =
	"domain: api\ndescriptors:\n"
	"  - {key: fixed, limits: ['7 requests/m']}\n"
	"  - {key: slide, limits: ['10 requests/m'], algorithm: sliding-window}\n"
	"  - {key: token, limits: ['2 requests/s'], algorithm: token-bucket, burst: 5}\n"
	"  - {key: leaky, limits: ['4 requests/s'], algorithm: leaky-bucket}\n"
	"  - {key: first, limits: ['6 requests/m'], window: first-request}\n"
	"  - {key: log, limits: ['8 requests/m'], algorithm: sliding-log}\n"
	"  - {key: two, limits: ['5 requests/m', {name: long, rate: 20 requests/h}]}\n";

static char shared[4096];

/* Each rule of `rules` with these keys as well. */
static void add_keys(const char *rules, const char *keys, char *ret)
{
	const char *at = rules;

	*ret = 0;
	for (const char *end; (end = strstr(at, "}\n")); at = end + 2)
		sprintf(ret + strlen(ret), "%.*s, %s}\n", (int)(end - at), at, keys);
}

static int begin(void **state)
{
	static const char *const name[NODES] = { "a", "b", "c" };

	/* The same, of all nodes. */
	add_keys(alone, "scope: cluster, on_store_failure: closed", shared);
	rig_time_start();
	assert_int_equal(cluster_store_memory_new(&memory), 0);
	for (int i = 0; i < NODES; i++) {
		assert_int_equal(cluster_store_memory_node(memory, name[i], &way[i]), 0);
		rig_node_open(&node[i], way[i]);
		quotas_set_nodes(node[i].ledger->quotas, NODES);
	}
	return 0;
}

static int end(void **state)
{
	for (int i = 0; i < NODES; i++) {
		assert_int_equal(node[i].engine.pending, 0);
		way[i]->ops->free(way[i]);
		rig_node_close(&node[i]);
	}
	cluster_store_memory_free(memory);
	rig_end();
	return 0;
}

static void pass_us(u64 us)
{
	rig_pass(us * 1000);
	rig_time.mono_ns += us * 1000;
	rig_time.utc_ns += us * 1000;
	cluster_store_memory_set_time(memory, rig_time.utc_ns / 1000);
	cluster_store_memory_run(memory);
}

/* ---------------------------------------------------------------- one after the other */

static const char *const text[] = { ITEMS("fixed=a", "slide=a", "token=a", "leaky=a", "first=a",
					  "log=a", "two=a", "fixed=b;slide=a", "token=b;two=b",
					  "log=b;fixed=a;first=b", "two=b;leaky=a;fixed=b") };
#define TEXTS COUNT(text)

/* Random requests, of which each is decided by one node with the rules `one`, and by one of three
 * that share `all`. */
static void play_one_by_one(const char *one, const char *all)
{
	u32 passed = 0, refused = 0, soft = 0;

	rng_start("test_remote");
	rig_open(one, 10000);
	cluster_store_memory_set_delay(memory, 0);
	/*
	 * The store's clock is known to a microsecond. At half a millisecond no part of a window of
	 * a minute before is a whole number of requests, where that would make one of difference.
	 */
	pass_us(500);
	for (int i = 0; i < 6000; i++) {
		const char *what = text[rng_below(TEXTS)];
		u64 hits = 1 + !rng_below(5);
		struct rig_caller *who = &caller[0];
		enum response_code code;

		pass_us(rng_below(10) ? 1000 * rng_below(300) : 1000 * rng_below(20000));
		rig_now = rig_time;
		rig_load(one);
		code = allowed_hits(what, hits) ? RESPONSE_OK : RESPONSE_OVER_LIMIT;
		rig_load(all);
		rig_send_hits(&node[rng_below(NODES)], who, what, hits);
		cluster_store_memory_run(memory);
		assert_true(who->answered);
		if (who->response.code != code)
			fail_msg("call %d, %s: %d is not %d", i, what, who->response.code, code);
		for (u32 k = 0; code == RESPONSE_OK && k < who->request.count; k++) {
			const struct response_status *is = &who->response.status[k],
						     *be = &rig_answer.status[k];

			if (is->remaining != be->remaining || is->soft != be->soft)
				fail_msg("call %d, %s: %llu left, soft %d is not %llu, %d", i, what,
					 is->remaining, is->soft, be->remaining, be->soft);
			soft += is->soft;
		}
		passed += code == RESPONSE_OK;
		refused += code != RESPONSE_OK;
	}
	assert_true(passed > 500 && refused > 500);
	assert_true(!strstr(one, "soft") == !soft);
}

TEST_WITH(test_one_by_one, begin, end)
{
	play_one_by_one(alone, shared);
}

/* The excess, and the time for which it may last, are one for all nodes. */
static void play_soft(const char *throttle)
{
	char one[4096], all[4096];

	add_keys(alone, throttle, one);
	add_keys(shared, throttle, all);
	play_one_by_one(one, all);
}

TEST_WITH(test_soft, begin, end)
{
	play_soft("throttle: {soft: 40%}");
}

TEST_WITH(test_soft_for, begin, end)
{
	play_soft("throttle: {soft: 40%, for: 7s}");
}

/* ---------------------------------------------------------------- all at once */

static u64 window_of(u32 n)
{
	return rig_time.utc_ns / (60 * SEC) * 2 + n;
}

/* Of two users of "fixed": requests that passed in this window. */
static struct {
	u64 window, passed;
} count[2];

static void count_passed(struct rig_caller *who, u32 n, u64 hits)
{
	if (count[n].window != window_of(n))
		count[n] = (typeof(count[0])){ .window = window_of(n) };
	count[n].passed += hits;
	assert_true(count[n].passed <= 7);
}

struct flight {
	u32 user, node;
	u64 hits;
	bool used, cancelled;
};

static struct flight flight[CALLERS];

static void land(int i)
{
	struct flight *f = &flight[i];

	if (!f->used || !caller[i].answered)
		return;
	f->used = false;
	if (!f->cancelled && caller[i].response.code == RESPONSE_OK)
		count_passed(&caller[i], f->user, f->hits);
}

static void take_off(int i)
{
	static const char *const pair[] = { "fixed=a;slide=a", "fixed=b;slide=b" };
	struct flight *f = &flight[i];

	*f = (struct flight){ .used = true,
			      .user = rng_below(2),
			      .node = rng_below(NODES),
			      .hits = 1 + !rng_below(4) };
	rig_send_hits(&node[f->node], &caller[i], pair[f->user], f->hits);
	land(i);
}

/* So much of the window is left that nothing ends during the check. */
static void into_window(void)
{
	u64 left_ns = 60 * SEC - rig_time.utc_ns % (60 * SEC);

	if (left_ns < 20 * SEC)
		pass_us(left_ns / 1000 + 1000);
}

static u64 used_of(u32 user)
{
	struct rig_caller *who = &caller[CALLERS - 1];

	for (int n = 0; n < NODES; n++) {
		rig_send_hits(&node[n], who, user ? "fixed=b" : "fixed=a", 0);
		for (int k = 0; k < 10 && !who->answered; k++)
			pass_us(1000);
		assert_true(who->answered);
	}
	return 7 - who->response.status[0].remaining;
}

TEST_WITH(test_at_once, begin, end)
{
	u64 quiet_ok = 0;

	rng_start("test_remote");
	rig_load(shared);
	pass_us(1000);
	for (int round = 0; round < 1500; round++) {
		into_window();
		cluster_store_memory_set_delay(memory, 500 + rng_below(3000));
		for (int step = 0; step < 30; step++) {
			int i = rng_below(CALLERS - 1);

			if (!flight[i].used)
				take_off(i);
			else if (!flight[i].cancelled && !rng_below(4)) {
				flight[i].cancelled = true;
				remote_cancel(caller[i].remote);
				flight[i].used = false;
				caller[i].answered = true;
			}
			if (!rng_below(3))
				pass_us(rng_below(2000));
			for (int k = 0; k < CALLERS; k++)
				land(k);
		}
		/* All have their responses: the charges equal the passed requests. */
		for (int k = 0; k < 20; k++)
			pass_us(1000);
		for (int k = 0; k < CALLERS; k++) {
			land(k);
			assert_false(flight[k].used);
		}
		for (u32 user = 0; user < 2; user++) {
			if (count[user].window != window_of(user))
				continue;
			assert_int_equal(used_of(user), count[user].passed);
			quiet_ok++;
		}
		if (!rng_below(3))
			pass_us(1000000 * rng_below(60));
	}
	assert_true(quiet_ok > 500);
}

/* --------------------------------------------------------------- one node, a store that forgets */

static const struct {
	const char *name;
	u64 capacity, interval_us; /* interval: of a bucket how long a request counts */
	bool first;
} forgets[] = {
	{ "fixed", 40, 0, false },
	{ "first", 40, 0, true },
	{ "token", 40, 1500000, false },
};
#define FORGETS COUNT(forgets)
static const char *const how[] = { "strict", "{write_back: 200ms}" };
#define HOWS COUNT(how)

/* ---------------------------------------------------------------- refused ones count */

static bool is_timed(const char *what)
{
	return !strncmp(what, "log", 3) || !strncmp(what, "counters", 8);
}

/*
 * Several in a row on one node, which knows what it refused; others know after QUOTA_REFUSED_NS. Of
 * one limit: of several the first counts that refuses by what this node knows.
 */
TEST_WITH(test_count_all, begin, end)
{
	static const char rules[] =
		"domain: api\ndescriptors:\n"
		"  - {key: slide, limits: ['10 requests/m'], algorithm: sliding-window%s}\n"
		"  - {key: token, limits: ['2 requests/s'], algorithm: token-bucket, burst: 5%s}\n"
		"  - {key: leaky, limits: ['4 requests/s'], algorithm: leaky-bucket%s}\n"
		"  - {key: log, limits: ['8 requests/m'], algorithm: sliding-log%s}\n"
		"  - {key: counters, limits: ['8 requests/m'], algorithm: window-counters%s}\n";
	static const char *const who_asks[] = { "slide=a", "token=a", "leaky=a", "log=a",
						"counters=a" };
	static const char all[] = ", count: all", all_shared[] = ", count: all, scope: cluster";
	char one[2048], three[2048];
	struct rig_caller *who = &caller[0];
	u32 passed = 0, refused = 0;

	rng_start("test_remote");
	snprintf(one, sizeof(one), rules, all, all, all, all, all);
	snprintf(three, sizeof(three), rules, all_shared, all_shared, all_shared, all_shared,
		 all_shared);
	rig_open(one, 10000);
	cluster_store_memory_set_delay(memory, 0);
	pass_us(500);
	for (int i = 0; i < 2000; i++) {
		const char *what = who_asks[rng_below(COUNT(who_asks))];
		u32 of = rng_below(NODES), times = 1 + rng_below(8);

		for (u64 left = QUOTA_REFUSED_NS / 1000 +
				1000 * rng_below(rng_below(4) ? 600 : 40000),
			 step;
		     left; left -= step) {
			step = left > 200000 ? 200000 : left > 50000 ? 50000 : left;
			pass_us(step);
			for (u32 n = 0; n < NODES; n++)
				rig_flush(&node[n], SEC);
			cluster_store_memory_run(memory);
		}
		for (u32 k = 0; k < times; k++) {
			u64 hits = 1 + !rng_below(5);
			enum response_code code;

			/* Refusals that are sent together have the time of the last: a log would
			 * last a little longer. */
			pass_us(is_timed(what) ? 0 : 1000 * rng_below(3));
			rig_now = rig_time;
			rig_load(one);
			code = allowed_hits(what, hits) ? RESPONSE_OK : RESPONSE_OVER_LIMIT;
			rig_load(three);
			rig_send_hits(&node[of], who, what, hits);
			cluster_store_memory_run(memory);
			assert_true(who->answered);
			if (who->response.code != code)
				fail_msg("call %d, %s at %llu on %u: %d is not %d", i, what,
					 rig_time.utc_ns, of, who->response.code, code);
			/* The first is by a reply of Redis; later ones are by what this node
			 * knows. */
			if (is_timed(what) &&
			    (who->response.retry_after_ns > rig_answer.retry_after_ns + MS ||
			     (!k && who->response.retry_after_ns + MS < rig_answer.retry_after_ns)))
				fail_msg("call %d, %s at %llu on %u: retry after %llu is not %llu",
					 i, what, rig_time.utc_ns, of, who->response.retry_after_ns,
					 rig_answer.retry_after_ns);
			passed += code == RESPONSE_OK;
			refused += code != RESPONSE_OK;
		}
	}
	assert_int_equal(rig_flushing, 0);
	fprintf(stderr, "# %u passed, %u refused\n", passed, refused);
	assert_true(passed > 1000 && refused > 1000);
}

/* Passed requests of a limit: of a window since it began, of a bucket those that have not
 * drained. */
static struct {
	double level;
	u64 at_us, begin;
} passed_of[FORGETS][HOWS];
static u64 losses;

/* Of a user of the window from the first request: it ends before that does. */
static u64 life(void)
{
	return rig_time.utc_ns / (50 * SEC);
}

static void note_passed(u32 limit, u32 by, u64 hits)
{
	typeof(passed_of[0][0]) *p = &passed_of[limit][by];
	u64 at_us = rig_time.utc_ns / 1000,
	    begin = forgets[limit].first ? life() : at_us / 60000000;

	if (forgets[limit].interval_us) {
		p->level -= (double)(at_us - p->at_us) / forgets[limit].interval_us;
		if (p->level < 0)
			p->level = 0;
		p->at_us = at_us;
	} else if (begin != p->begin) {
		p->begin = begin;
		p->level = 0;
	}
	p->level += hits;
	/* A bucket's times are in microseconds. */
	if (p->level > forgets[limit].capacity + 0.1)
		fail_msg("%s %s: %.2f of %llu", forgets[limit].name, how[by], p->level,
			 forgets[limit].capacity);
}

/* A server does one after the other: none of its replies are of one microsecond. */
static void run_us(u64 us)
{
	for (u64 step; us; us -= step) {
		step = us < 5 ? us : 5;
		pass_us(step);
		cluster_store_memory_set_delay(memory, 200 + rng_below(4000));
	}
}

TEST_WITH(test_forgets, begin, end)
{
	u64 passed = 0, refused = 0;
	char rules[2048] = "domain: api\ndescriptors:\n";

	rng_start("test_remote");
	for (u32 by = 0; by < HOWS; by++)
		for (u32 i = 0; i < FORGETS; i++)
			sprintf(rules + strlen(rules),
				"  - {key: %s%u, limits: ['40 requests/m'], %s, "
				"scope: cluster, on_store_failure: local, consistency: %s}\n",
				forgets[i].name, by,
				forgets[i].first	 ? "window: first-request"
				: forgets[i].interval_us ? "algorithm: token-bucket, burst: 40"
							 : "algorithm: fixed-window",
				how[by]);
	rig_load(rules);
	memset(passed_of, 0, sizeof(passed_of));
	losses = 0;
	quotas_set_nodes(node[0].ledger->quotas, 1);
	for (u64 step = 0, cut_until = 0; step < 20000; step++) {
		u32 limit = rng_below(FORGETS), by = rng_below(HOWS);
		u64 hits = 1 + !rng_below(5) * rng_below(4);
		struct rig_caller *who = &caller[0];
		u64 born = (rig_time.utc_ns + 20 * MS) / (10 * SEC);
		char what[48];

		if (!rng_below(500)) {
			cluster_store_memory_lose(memory);
			losses++;
		}
		/* It was restarted: gone for a while, and back empty. */
		if (!cut_until && !rng_below(1500)) {
			cluster_store_memory_cut(way[0], true);
			cut_until = rig_time.mono_ns + rng_below(2000) * MS;
		} else if (cut_until && rig_time.mono_ns > cut_until) {
			cluster_store_memory_lose(memory);
			losses++;
			cluster_store_memory_cut(way[0], false);
			cut_until = 0;
		}
		sprintf(what, "%s%u=a%llu", forgets[limit].name, by,
			forgets[limit].first ? life() : 0);
		rig_send_hits(&node[0], who, what, hits);
		/* Other requests come and due flushes are sent while the reply is on its way. */
		for (u32 k = 0; !who->answered || !rng_below(8); k++) {
			run_us(rng_below(400));
			if (!rng_below(10))
				rig_flush(&node[0], SEC);
			if (!rng_below(2000)) {
				cluster_store_memory_lose(memory);
				losses++;
			}
		}
		passed += who->response.code == RESPONSE_OK;
		refused += who->response.code == RESPONSE_OVER_LIMIT;
		/* Near a window's end: the node knows the store's clock to a round trip. */
		if (who->response.code == RESPONSE_OK && born == rig_time.utc_ns / (10 * SEC))
			note_passed(limit, by, hits);
		rig_flush(&node[0], SEC);
		run_us(rng_below(20) ? rng_below(5000) : rng_below(300000));
	}
	cluster_store_memory_cut(way[0], false);
	for (u32 i = 0; i < 4000; i++) {
		run_us(1000);
		if (i < 2500)
			rig_flush(&node[0], SEC);
	}
	assert_int_equal(rig_flushing, 0);
	assert_true(passed > 300 && refused > 300 && losses > 20);
}

TEST_MAIN
