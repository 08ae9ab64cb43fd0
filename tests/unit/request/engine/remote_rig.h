/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_rig.h - calls that ask the store of all nodes, with time as a variable: a node is a local
 * store, its shares and a worker that is none. Include first: remote.c is compiled into the test,
 * on its clock.
 */
#ifndef SLUICE_TESTS_REMOTE_RIG_H
#define SLUICE_TESTS_REMOTE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "request/engine/remote_private.h"

static struct sl_now rig_time;
static struct sl_now rig_store_now(struct store *store)
{
	return rig_time;
}

#define store_now rig_store_now
#include "request/engine/remote.c"
#include "request/engine/remote_settle.c"
#undef store_now

#define ask rig_ask		/* ask.h has another */
#include "lib/decide_rig.h"
#undef ask

/* Rules of the moment: what has none of another thread needs no RCU. */
static int rig_in_rules;

const struct ruleset *rules_enter(void)
{
	rig_in_rules++;
	return rig_rules;
}

void rules_leave(void)
{
	rig_in_rules--;
}

struct rig_node {
	struct http_tier tier;
	struct http_def def;
	struct tier_shared shared;
	struct worker worker;
};

static const struct sl_seed rig_seed = { 1, 2 };

static void rig_node_open(struct rig_node *node, struct shared *way)
{
	struct sl_err err = { 0 };

	*node = (struct rig_node){ .def = { .max_waiting = 100 } };
	if (store_open(NULL, 10000, 1 << 20, &node->tier.store, &err))
		fail_msg("%s", err.message);
	assert_int_equal(shares_new(4096, &node->shared.shares), 0);
	node->shared.recall = recall_new();
	node->shared.deadline_ns = 5 * MS;
	store_share(node->tier.store, rig_seed, node->shared.shares);
	node->tier.started = &node->def;
	node->tier.shared = &node->shared;
	node->worker = (struct worker){ .tier = &node->tier, .shared = way };
}

static void rig_node_close(struct rig_node *node)
{
	store_close(node->tier.store);
	recall_free(node->shared.recall);
	shares_free(node->shared.shares);
}

static void rig_time_start(void)
{
	rig_time = (struct sl_now){ .mono_ns = 1000 * SEC, .utc_ns = RIG_UTC + SEC };
}

/* One who asks. */
struct rig_caller {
	struct call_descriptor descriptor[CALL_DESCRIPTORS_MAX];
	struct call call;
	struct remote *remote;
	struct answer answer;
	struct decide_wait wait;
	bool answered;
};

static void rig_answered(void *arg, struct answer *answer, const struct decide_wait *wait)
{
	struct rig_caller *who = arg;

	assert_int_equal(rig_in_rules, 1);
	assert_false(who->answered);
	who->answered = true;
	who->remote = NULL;
	who->answer = *answer;
	who->wait = *wait;
}

/* As it is; what is in `who->call` already is what is asked. */
static void rig_go(struct rig_node *node, struct rig_caller *who)
{
	who->answered = false;
	who->wait = (struct decide_wait){ .ahead = NULL };
	who->remote = remote_decide(&node->worker, rules_enter(), &who->call, rig_time,
				    &who->answer, &who->wait);
	rules_leave();
	who->answered = !who->remote;
	if (who->remote)
		remote_on(who->remote, rig_answered, who);
}

static void rig_ask_hits(struct rig_node *node, struct rig_caller *who, const char *text, u64 hits)
{
	who->call = rig_call(who->descriptor, text);
	for (u32 i = 0; i < who->call.count; i++)
		who->descriptor[i].hits = hits;
	rig_go(node, who);
}

#endif
