// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests that need the cluster store: the commands, the order of replies, refunds and
 * unflushed units; each kind of rule and of request. Without a reply of the store:
 * test_remote_unavailable.c.
 */
#include "remote_far.h"

/* ---------------------------------------------------------------- commands and replies */

RIG_TEST(test_strict)
{
	struct rig_caller *who = go(0, "user=bob");

	assert_false(who->answered);
	assert_int_equal(far.end, 1);
	assert_int_equal(far.in_flight[0]->bucket[0].cost, 1);
	assert_int_equal(remaining("user=bob"), 2);
	/* Another node took one. */
	*far_used(far.in_flight[0]->bucket[0].key) = 1;
	far_answer(0);
	is(who, RESPONSE_OK);
	assert_int_equal(who->response.status[0].remaining, 1);
	assert_int_equal(who->response.policy[0].q, 3);
	assert_int_equal(who->response.policy[0].r, 1);
	assert_int_equal(remaining("user=bob"), 1);
	/* Two at once, and one is left. */
	go(0, "user=bob");
	go(1, "user=bob");
	far_answer_all();
	is(&caller[0], RESPONSE_OK);
	is(&caller[1], RESPONSE_OVER_LIMIT);
	assert_int_equal(far_sum(), 3);
	assert_int_equal(done("user=al"), RESPONSE_OK);
	assert_int_equal(caller[0].response.status[0].remaining, 2);
}

/* Two at once, one unit is left, and Redis gets the second, a retry, first: that one passes. */
RIG_TEST(test_overtaken)
{
	for (int log = 0; log < 2; log++) {
		const char *what = log ? "log=bob" : "user=bob";

		while (go(0, what), remaining(what))
			far_answer_all();
		assert_false(go(1, what)->answered);
		far_answer(1);
		is(&caller[1], RESPONSE_OK);
		far_answer_all();
		is(&caller[0], RESPONSE_OVER_LIMIT);
	}
	assert_int_equal(flushed(), 0);
	assert_int_equal(far_sum(), 3 + 4);
}

/* A refused key costs no round trip, but for one a second. */
RIG_TEST(test_refusal_cache)
{
	assert_int_equal(done("user=bob"), RESPONSE_OK);
	all_used(3);
	assert_int_equal(done("user=bob"), RESPONSE_OVER_LIMIT);
	assert_int_equal(far.commands, 2);
	for (int i = 0; i < 100; i++)
		is(go(0, "user=bob"), RESPONSE_OVER_LIMIT);
	is_near(caller[0].response.retry_after_ns, 59 * SEC);
	assert_int_equal(far.commands, 2);
	later(999 * MS);
	is(go(0, "user=bob"), RESPONSE_OVER_LIMIT);
	later(MS);
	assert_int_equal(done("user=bob"), RESPONSE_OVER_LIMIT);
	assert_int_equal(far.commands, 3);
	/* Another node refunded some. */
	all_used(1);
	is(go(0, "user=bob"), RESPONSE_OVER_LIMIT);
	later(1001 * MS);
	assert_int_equal(done("user=bob"), RESPONSE_OK);
	assert_int_equal(caller[0].response.status[0].remaining, 1);
	assert_int_equal(done("user=bob"), RESPONSE_OK);
	assert_int_equal(far_sum(), 3);
}

/* What was refused while a command was on its way counts in its reply, too. */
RIG_TEST(test_count_all)
{
	struct rig_caller *who;

	assert_int_equal(done("all=bob"), RESPONSE_OK);
	all_used(5);
	who = go(0, "all=bob");
	rig_send_hits(&node, &caller[1], "all=bob", 8);
	far_answer(1);
	is(&caller[1], RESPONSE_OVER_LIMIT);
	assert_int_equal(remaining("all=bob"), 0);
	far_answer(0);
	is(who, RESPONSE_OK);
	assert_int_equal(remaining("all=bob"), 0);
}

/* Two servers, and a limit of this node: one refuses, the others are refunded. */
RIG_TEST(test_all_or_none)
{
	far.servers = 2;
	assert_int_equal(done("user=bob;plan=free;path=/x"), RESPONSE_OK);
	assert_int_equal(far.commands, 2);
	assert_int_equal(far_sum(), 2);
	go(0, "user=bob;plan=free;path=/x");
	assert_int_equal(far.end, 2);
	assert_int_equal(remaining("path=/x"), 2);
	*far_used(far.in_flight[1]->bucket[0].key) = 5;
	/* In either order of replies, no response before both. */
	far_answer(1);
	assert_false(caller[0].answered);
	far_answer(0);
	is(&caller[0], RESPONSE_OVER_LIMIT);
	assert_false(caller[0].response.status[0].over);
	assert_true(caller[0].response.status[1].over);
	assert_int_equal(caller[0].response.retry_after_ns, 59 * SEC);
	assert_int_equal(far.refunds, 1);
	assert_int_equal(remaining("path=/x"), 3);
	assert_int_equal(remaining("user=bob"), 2);
	far_answer_all();
	assert_int_equal(far_sum(), 1 + 5);
	assert_int_equal(remaining("user=bob"), 2);
	/* Refused here: no command. */
	far.commands = 0;
	for (int i = 0; i < 4; i++)
		go(1, "path=/y");
	is(go(0, "user=bob;path=/y"), RESPONSE_OVER_LIMIT);
	assert_int_equal(far.commands, 0);
}

/* Limits of one key go together, in one command. */
RIG_TEST(test_one_slot)
{
	far.servers = 2;
	rig_load("domain: api\ndescriptors:\n"
		 "  - {key: user, scope: cluster, limits: ['3 requests/m',"
		 " {name: more, rate: 4 requests/m}]}\n");
	go(0, "user=bob");
	assert_int_equal(far.end, 1);
	assert_int_equal(far.in_flight[0]->count, 2);
	assert_int_equal(far.in_flight[0]->bucket[0].tag, far.in_flight[0]->bucket[1].tag);
	far_answer_all();
	is(&caller[0], RESPONSE_OK);
	assert_int_equal(caller[0].response.policy_count, 2);
	assert_int_equal(done("user=bob"), RESPONSE_OK);
	assert_int_equal(done("user=bob"), RESPONSE_OK);
	assert_int_equal(done("user=bob"), RESPONSE_OVER_LIMIT);
	assert_int_equal(far_sum(), 6);
}

/* --------------------------------------------------------- clients that disconnect, and changes */

RIG_TEST(test_cancel)
{
	struct cluster_store_request *cluster_request;

	go(0, "user=bob;path=/x");
	assert_int_equal(remaining("path=/x"), 3);
	remote_cancel(caller[0].remote);
	far_answer(0);
	assert_false(caller[0].answered);
	assert_int_equal(far.refunds, 1);
	far_answer_all();
	assert_int_equal(far_sum(), 0);
	assert_int_equal(remaining("path=/x"), 4);
	assert_int_equal(remaining("user=bob"), 3);
	/* And one whose reply is late. */
	go(0, "user=bob");
	remote_cancel(caller[0].remote);
	far_late(0, &cluster_request);
	far_charge(cluster_request);
	cluster_request->late(cluster_request, CLUSTER_STORE_DONE);
	far_answer_all();
	assert_int_equal(far_sum(), 0);
	assert_false(caller[0].answered);
}

/* A unit of concurrency is taken before Redis decides, and released if it refuses or the client
 * goes. */
RIG_TEST(test_in_flight)
{
	rig_load("domain: api\ndescriptors:\n"
		 "  - {key: user, limits: ['3 requests/m'], scope: cluster}\n"
		 "  - {key: flight, concurrency: 2}\n");
	go(0, "user=bob;flight=x");
	assert_int_equal(remaining("flight=x"), 1);
	*far_used(far.in_flight[0]->bucket[0].key) = 3;
	far_answer(0);
	is(&caller[0], RESPONSE_OVER_LIMIT);
	assert_int_equal(caller[0].response.permit.count, 0);
	assert_int_equal(remaining("flight=x"), 2);
	go(0, "user=al;flight=x");
	remote_cancel(caller[0].remote);
	assert_int_equal(remaining("flight=x"), 2);
	far_answer_all();
	assert_int_equal(done("user=al;flight=x"), RESPONSE_OK);
	assert_int_equal(caller[0].response.permit.count, 1);
	assert_int_equal(remaining("flight=x"), 1);
	assert_int_equal(decide_release(node.ledger, &caller[0].response.permit, rig_time), 1);
	assert_int_equal(remaining("flight=x"), 2);
}

RIG_TEST(test_rules_change)
{
	go(0, "user=bob;plan=free");
	rig_load("domain: api\ndescriptors:\n"
		 "  - {key: user, limits: ['30 requests/m'], scope: cluster}\n"
		 "  - {key: plan, limits: ['7 requests/m']}\n");
	far_answer_all();
	is(&caller[0], RESPONSE_OK);
	assert_int_equal(caller[0].response.status[0].remaining, 29);
	assert_int_equal(caller[0].response.status[1].remaining, 7);
	go(0, "user=bob");
	rig_load("domain: other\ndescriptors: []\n");
	far_answer_all();
	is(&caller[0], RESPONSE_OK);
	assert_null(caller[0].response.status[0].rule);
}

/* A window ends while the reply is on its way: nothing of the next one is refunded. */
RIG_TEST(test_window_ends)
{
	later(58 * SEC + 999 * MS);
	go(0, "user=bob;path=/x");
	later(2 * MS);
	assert_int_equal(go(1, "path=/x")->response.code, RESPONSE_OK);
	remote_cancel(caller[0].remote);
	far_answer_all();
	assert_int_equal(remaining("path=/x"), 3);
}

RIG_TEST(test_room)
{
	node.engine.max_delayed = 2;
	go(0, "user=a");
	go(1, "closed=b");
	is(go(2, "closed=c"), RESPONSE_CLOSED);
	is(go(3, "user=d"), RESPONSE_OK);
	assert_int_equal(far.end, 2);
	far_answer_all();
	assert_int_equal(done("closed=c"), RESPONSE_OK);
}

/* ---------------------------------------------------------------- kinds of rules and requests */

RIG_TEST(test_shadow)
{
	for (int i = 0; i < 4; i++)
		assert_int_equal(done("shadow=bob;user=bob"),
				 i < 3 ? RESPONSE_OK : RESPONSE_OVER_LIMIT);
	/* The third was over for the rule in shadow, and charged there no more, nor later. */
	assert_int_equal(far_sum(), 3 + 2);
	assert_int_equal(flushed(), 0);
	assert_int_equal(done("shadow=al"), RESPONSE_OK);
	all_used(9);
	assert_int_equal(done("shadow=al"), RESPONSE_OK);
	assert_true(caller[0].response.status[0].shadow);
	far.down[0] = true;
	is(go(0, "shadow=eve"), RESPONSE_OK);
}

RIG_TEST(test_quota)
{
	/* Two quotas: each is charged as long as it has room, and one with room is enough. */
	assert_int_equal(done("quota=a;quota=b"), RESPONSE_OK);
	assert_int_equal(far_sum(), 2);
	go(0, "quota=a;quota=b");
	*far_used(far.in_flight[0]->bucket[0].key) = 2;
	far_answer_all();
	is(&caller[0], RESPONSE_OK);
	assert_true(caller[0].response.status[0].over);
	assert_false(caller[0].response.status[1].over);
	assert_int_equal(far_sum(), 4);
	assert_int_equal(done("quota=a;quota=b"), RESPONSE_OVER_LIMIT);
	assert_int_equal(far_sum(), 4);
}

RIG_TEST(test_peek)
{
	assert_int_equal(done("user=bob"), RESPONSE_OK);
	all_used(2);
	caller[0].request = rig_request(caller[0].descriptor, "user=bob");
	caller[0].request.peek = true;
	rig_go(&node, &caller[0]);
	assert_int_equal(far.end, 1);
	assert_int_equal(far.in_flight[0]->bucket[0].cost, 0);
	far_answer_all();
	is(&caller[0], RESPONSE_OK);
	assert_int_equal(caller[0].response.status[0].remaining, 1);
	assert_int_equal(far_sum(), 2);
	caller[0].descriptor[0].hits = 2;
	rig_go(&node, &caller[0]);
	/* Two do not fit here: once a second the store is tried all the same. */
	far_answer_all();
	is(&caller[0], RESPONSE_OVER_LIMIT);
	/* A look, hits 0. */
	rig_send_hits(&node, &caller[0], "user=bob", 0);
	far_answer_all();
	is(&caller[0], RESPONSE_OK);
	assert_int_equal(far_sum(), 2);
	/* Without a reply, the local knowledge. */
	far.down[0] = true;
	rig_send_hits(&node, &caller[0], "closed=bob", 0);
	is(&caller[0], RESPONSE_OK);
	assert_int_equal(caller[0].response.status[0].remaining, 3);
}

RIG_TEST(test_report)
{
	caller[0].request = rig_request(caller[0].descriptor, "user=bob");
	caller[0].request.report = true;
	caller[0].descriptor[0].hits = 2;
	rig_go(&node, &caller[0]);
	is(&caller[0], RESPONSE_OK);
	assert_int_equal(far.commands, 0);
	assert_int_equal(remaining("user=bob"), 1);
	assert_int_equal(flushed(), 2);
	assert_int_equal(done("user=bob"), RESPONSE_OK);
	assert_int_equal(caller[0].response.status[0].remaining, 0);
	/* A refund. */
	caller[0].request.report = true;
	caller[0].descriptor[0].refund = true;
	rig_go(&node, &caller[0]);
	assert_int_equal(remaining("user=bob"), 1);
	assert_int_equal(flushed(), -1);
	assert_int_equal(far_sum(), 2);
}

/* Of a log only the store has all entries; its refusal is remembered with its wait. */
RIG_TEST(test_log)
{
	assert_int_equal(done("log=bob"), RESPONSE_OK);
	assert_int_equal(caller[0].response.status[0].remaining, 3);
	all_used(3);
	assert_int_equal(done("log=bob"), RESPONSE_OK);
	assert_int_equal(caller[0].response.status[0].remaining, 0);
	assert_int_equal(done("log=bob"), RESPONSE_OVER_LIMIT);
	assert_int_equal(caller[0].response.retry_after_ns, 59 * SEC);
	far.commands = 0;
	later(900 * MS);
	is(go(0, "log=bob"), RESPONSE_OVER_LIMIT);
	assert_int_equal(caller[0].response.retry_after_ns, 59 * SEC - 900 * MS);
	/* Though this node alone has charged but two. */
	assert_int_equal(caller[0].response.status[0].remaining, 0);
	assert_int_equal(far.commands, 0);
	later(101 * MS);
	all_used(2);
	assert_int_equal(done("log=bob"), RESPONSE_OK);
	/* Two of its own and this one: a third of four is one, and that is used up. */
	quotas_set_nodes(node.ledger->quotas, 3);
	far.down[0] = true;
	assert_int_equal(go(0, "log=al")->response.code, RESPONSE_OK);
	assert_int_equal(go(0, "log=al")->response.code, RESPONSE_OVER_LIMIT);
}

/* Another node refunds all of a log that this node's own requests fill. */
RIG_TEST(test_own_log)
{
	for (u32 i = 0; i < 4; i++)
		assert_int_equal(done("log=bob"), RESPONSE_OK);
	far.commands = 0;
	assert_int_equal(done("log=bob"), RESPONSE_OVER_LIMIT);
	is(go(0, "log=bob"), RESPONSE_OVER_LIMIT);
	assert_int_equal(far.commands, 1);
	all_used(0);
	later(1001 * MS);
	for (u32 i = 0; i < 4; i++)
		assert_int_equal(done("log=bob"), RESPONSE_OK);
	assert_int_equal(far.commands, 5);
	assert_int_equal(done("log=bob"), RESPONSE_OVER_LIMIT);
}

/* A refusal with a possible wait has it in the result: when, and for which bucket. */
RIG_TEST(test_delay)
{
	assert_int_equal(done("patient=bob"), RESPONSE_OK);
	all_used(2);
	assert_int_equal(done("patient=bob"), RESPONSE_OVER_LIMIT);
	assert_int_not_equal(caller[0].wait.key, 0);
	assert_int_equal(caller[0].wait.wait_ns, 59 * SEC);
	assert_int_equal(caller[0].wait.limit_ns, 90 * SEC);
	assert_int_equal(caller[0].wait.hits, 1);
}

/*
 * write_back sends no command for a key of which it had a reply within the interval; while the
 * store is unavailable its rule decides.
 */
RIG_TEST(test_write_back)
{
	quotas_set_nodes(node.ledger->quotas, 2);
	assert_int_equal(done("later=bob"), RESPONSE_OK);
	for (int i = 0; i < 5; i++)
		is(go(0, "later=bob"), RESPONSE_OK);
	assert_int_equal(caller[0].response.status[0].remaining, 2);
	assert_int_equal(far.commands, 1);
	assert_int_equal(flushed(), 5);
	assert_int_equal(far_sum(), 6);
	assert_int_equal(remaining("later=bob"), 2);
	is(go(0, "later=bob"), RESPONSE_OK);
	assert_int_equal(far.commands, 1);
	/* With another that refuses it is not charged. */
	assert_int_equal(done("user=bob"), RESPONSE_OK);
	*far_used(far.count[1].key) = 3;
	go(0, "later=bob;user=bob");
	far_answer_all();
	is(&caller[0], RESPONSE_OVER_LIMIT);
	assert_int_equal(remaining("later=bob"), 1);
	assert_int_equal(flushed(), 1);
	far.down[0] = true;
	for (int i = 0; i < 4; i++)
		is(go(0, "later=al"), RESPONSE_OK);
	is(go(0, "later=al"), RESPONSE_OVER_LIMIT);
}

/*
 * A flush is overdue, so a request sends a command; its reply is read after that of the flush,
 * which the store handled later. The reply is old: the bucket state has the flushed units.
 */
RIG_TEST(test_old_reply)
{
	struct quota_due due[8];
	struct cluster_store_request *old, telling = { .bucket = &due[0].bucket, .count = 1 };

	assert_int_equal(done("later=bob"), RESPONSE_OK);
	for (int i = 0; i < 3; i++)
		is(go(0, "later=bob"), RESPONSE_OK);
	later(2 * SEC);
	go(1, "later=bob");
	assert_int_equal(far.end, 1);
	old = far_take(0);
	far_charge(old);
	later(MS);
	assert_int_equal(quotas_due(node.ledger->quotas, due, 8, rig_time), 1);
	far_charge(&telling);
	quota_flushed(node.ledger->counters, node.ledger->quotas, &due[0], &telling,
		      CLUSTER_STORE_DONE, rig_time);
	assert_int_equal(far_sum(), 5);
	old->done(old, CLUSTER_STORE_DONE);
	is(&caller[1], RESPONSE_OK);
	assert_int_equal(remaining("later=bob"), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(done("later=bob"), RESPONSE_OK);
	assert_int_equal(done("later=bob"), RESPONSE_OVER_LIMIT);
	flushed();
	assert_int_equal(far_sum(), 8);
}

/* And the other way round: the flush was handled first, and its reply is read last. */
RIG_TEST(test_old_flush)
{
	struct quota_due due[8];
	struct cluster_store_request telling = { .bucket = &due[0].bucket, .count = 1 };

	assert_int_equal(done("later=bob"), RESPONSE_OK);
	is(go(0, "later=bob"), RESPONSE_OK);
	later(SEC);
	assert_int_equal(quotas_due(node.ledger->quotas, due, 8, rig_time), 1);
	far_charge(&telling);
	/* Without a reply for too long. */
	later(50 * MS);
	assert_int_equal(done("later=bob"), RESPONSE_OK);
	assert_int_equal(done("later=bob"), RESPONSE_OK);
	assert_int_equal(far_sum(), 4);
	quota_flushed(node.ledger->counters, node.ledger->quotas, &due[0], &telling,
		      CLUSTER_STORE_DONE, rig_time);
	assert_int_equal(remaining("later=bob"), 4);
}

/* An operator's reset goes to the store; other nodes' charges are forgotten with it. */
RIG_TEST(test_reset)
{
	struct decide_reset reset;
	const struct rule *rule;

	assert_int_equal(done("user=bob"), RESPONSE_OK);
	all_used(3);
	assert_int_equal(done("user=bob"), RESPONSE_OVER_LIMIT);
	assert_int_equal(done("user=al"), RESPONSE_OK);
	rule = ruleset_find(rig_rules, "api/user");
	assert_int_equal(
		decide_reset(node.ledger, rig_rules, rule, (struct bytes){ "bob", 3 }, &reset), 0);
	/* Its bucket states of all nodes, and of this one alone. */
	assert_int_equal(reset.count, 2);
	assert_int_equal(remaining("user=bob"), 3);
	assert_int_equal(flushed(), -6);
	/* The store refunds no more than there is: the neighbour's one is left. */
	assert_int_equal(far_sum(), 1);
	assert_int_equal(remaining("user=al"), 2);
}

/* Another node's: known units are forgotten, unflushed ones never are, and the store is read at
 * once. */
RIG_TEST(test_forget)
{
	struct decide_reset strict, later;

	assert_int_equal(done("log=al"), RESPONSE_OK);
	assert_int_equal(decide_reset(node.ledger, rig_rules, ruleset_find(rig_rules, "api/user"),
				      (struct bytes){ "bob", 3 }, &strict),
			 0);
	assert_int_equal(decide_reset(node.ledger, rig_rules, ruleset_find(rig_rules, "api/later"),
				      (struct bytes){ "bob", 3 }, &later),
			 0);
	flushed();
	assert_int_equal(later.count, 2);
	for (int i = 0; i < 3; i++)
		assert_int_equal(done("later=bob"), RESPONSE_OK);
	assert_int_equal(done("later=al"), RESPONSE_OK);
	is(go(0, "later=al"), RESPONSE_OK);
	assert_int_equal(far.commands, 2);
	assert_int_equal(remaining("later=bob"), 5);
	for (u32 i = 0; i < later.count; i++)
		decide_forget(node.ledger, later.key[i]);
	assert_int_equal(remaining("later=bob"), 8);
	assert_int_equal(remaining("later=al"), 6);
	assert_int_equal(flushed(), 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(done("user=bob"), RESPONSE_OK);
	assert_int_equal(done("user=bob"), RESPONSE_OVER_LIMIT);
	all_used(0);
	is(go(0, "user=bob"), RESPONSE_OVER_LIMIT);
	for (u32 i = 0; i < strict.count; i++)
		decide_forget(node.ledger, strict.key[i]);
	assert_int_equal(done("user=bob"), RESPONSE_OK);
	assert_int_equal(caller[0].response.status[0].remaining, 2);
}

TEST_MAIN
