/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_far.h - a node (remote_rig.h) and its cluster store, one of fixed windows whose
 * replies the test sends, or does not. Include first.
 */
#ifndef SLUICE_TESTS_REMOTE_FAR_H
#define SLUICE_TESTS_REMOTE_FAR_H

#include "remote_rig.h"

/* --------------------------------------------------------- a store whose replies the test sends */

#define FAR 64

static struct {
	struct cluster_store base;
	u32 servers; /* tags take them in turn, as they come */
	bool down[2], refuses[2];
	u64 tag[FAR];
	u32 tags;
	struct {
		u64 key, used, own;
	} count[FAR];
	struct cluster_store_request *in_flight[FAR];
	int end;
	int commands, refunds;
} far;

static inline u32 far_slot(struct cluster_store *base, u64 tag)
{
	u32 i;

	for (i = 0; i < far.tags && far.tag[i] != tag; i++)
		;
	if (i == far.tags)
		far.tag[far.tags++] = tag;
	assert_true(far.tags < FAR);
	return i % far.servers;
}

static inline int far_ask(struct cluster_store *base, struct cluster_store_request *cluster_request)
{
	u32 place = far_slot(base, cluster_request->bucket[0].tag);

	assert_true(cluster_request->count >= 1 && cluster_request->deadline_ns == 5 * MS);
	for (u32 i = 1; i < cluster_request->count; i++)
		assert_int_equal(far_slot(base, cluster_request->bucket[i].tag), place);
	assert_false(far.down[place]);
	if (far.refuses[place])
		return -ENOBUFS;
	far.commands++;
	far.refunds += cluster_request->bucket[0].kind == CLUSTER_STORE_REFUND;
	assert_true(far.end < FAR);
	far.in_flight[far.end++] = cluster_request;
	return 0;
}

static inline bool far_up(struct cluster_store *base, u32 place)
{
	return !far.down[place];
}

static const struct cluster_store_ops far_ops = { .slot_of = far_slot,
						  .send = far_ask,
						  .up = far_up };

static inline typeof(far.count[0]) *far_count(u64 key)
{
	int i;

	for (i = 0; far.count[i].key && far.count[i].key != key; i++)
		;
	assert_true(i < FAR - 1);
	far.count[i].key = key;
	return &far.count[i];
}

static inline u64 *far_used(u64 key)
{
	return &far_count(key)->used;
}

/* So much of every bucket is used, the most of it by other nodes. */
static inline void all_used(u64 used)
{
	for (int i = 0; far.count[i].key; i++)
		far.count[i].used = used;
}

static inline u64 far_sum(void)
{
	u64 sum = 0;

	for (int i = 0; far.count[i].key; i++)
		sum += far.count[i].used;
	return sum;
}

static inline void far_charge(struct cluster_store_request *cluster_request)
{
	u64 left_ns = 60 * SEC - rig_time.utc_ns % (60 * SEC);

	cluster_request->passed = true;
	cluster_request->now_us = rig_time.utc_ns / 1000;
	for (u32 i = 0; i < cluster_request->count; i++) {
		struct cluster_store_bucket *b = &cluster_request->bucket[i];

		b->over = b->kind == CLUSTER_STORE_CHARGE &&
			  *far_used(b->key) + b->cost + b->hold > b->def.count * b->def.scale;
		b->wait_ns = b->over ? left_ns : 0;
		cluster_request->passed &= !b->over;
	}
	for (u32 i = 0; i < cluster_request->count; i++) {
		struct cluster_store_bucket *b = &cluster_request->bucket[i];
		typeof(far.count[0]) *count = far_count(b->key);
		s64 cost = b->kind == CLUSTER_STORE_REFUND ? -(s64)b->cost
			   : b->kind == CLUSTER_STORE_FORCE || cluster_request->passed
				   ? (s64)b->cost
				   : 0;

		/* Never below unused. */
		count->used = (s64)count->used + cost > 0 ? count->used + cost : 0;
		count->own = (s64)count->own + cost > 0 ? count->own + cost : 0;
		b->state = (struct cluster_store_state){
			.used = count->used,
			.own = count->own,
			.window = rig_time.utc_ns / b->def.period_ns,
		};
	}
}

static inline struct cluster_store_request *far_take(int n)
{
	struct cluster_store_request *cluster_request = far.in_flight[n];

	assert_true(n < far.end);
	memmove(&far.in_flight[n], &far.in_flight[n + 1],
		(--far.end - n) * sizeof(far.in_flight[0]));
	return cluster_request;
}

/* A wait by the store's clock, which is known to less than a microsecond. */
static inline void is_near(u64 ns, u64 expected)
{
	assert_in_range(ns, expected - 1000, expected + 1000);
}

/* The n-th command in flight gets its reply. */
static inline void far_answer(int n)
{
	struct cluster_store_request *cluster_request = far_take(n);

	far_charge(cluster_request);
	cluster_request->done(cluster_request, CLUSTER_STORE_DONE);
}

static inline void far_answer_all(void)
{
	while (far.end)
		far_answer(0);
}

/* The n-th command in flight is late: the caller gets that, and the outcome later. */
static inline void far_late(int n, struct cluster_store_request **ret)
{
	*ret = far_take(n);
	(*ret)->done(*ret, CLUSTER_STORE_LATE);
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
	"  - {key: all, limits: ['9 requests/m'], algorithm: sliding-window, scope: cluster, count: all}\n"
	"  - {key: later, limits: ['8 requests/m'], scope: cluster, consistency: {write_back: 1s}}\n";

static inline int begin(void **state)
{
	memset(&far, 0, sizeof(far));
	far.base.ops = &far_ops;
	far.servers = 1;
	rig_time_start();
	rig_node_open(&node, &far.base);
	rig_load(rules);
	return 0;
}

static inline int end(void **state)
{
	far_answer_all();
	assert_int_equal(node.engine.pending, 0);
	assert_int_equal(rig_in_rules, 0);
	rig_node_close(&node);
	rig_end();
	return 0;
}

static inline void later(u64 ns)
{
	rig_time.mono_ns += ns;
	rig_time.utc_ns += ns;
}

static inline struct rig_caller *go(int n, const char *text)
{
	rig_send_hits(&node, &caller[n], text, 1);
	return &caller[n];
}

/* Sent, with a reply, and its verdict. */
static inline enum response_code done(const char *text)
{
	go(0, text);
	far_answer_all();
	assert_true(caller[0].answered);
	return caller[0].response.code;
}

static inline void is(const struct rig_caller *who, enum response_code code)
{
	assert_true(who->answered);
	assert_int_equal(who->response.code, code);
}

/* This node's knowledge of a bucket, read without a charge and without a command. */
static inline u64 remaining(const char *text)
{
	struct rig_caller *who = &caller[7];
	struct response response;

	who->request = rig_request(who->descriptor, text);
	who->request.peek = true;
	decide(node.ledger, rig_rules, &who->request, rig_time, &response, NULL);
	return response.status[0].remaining;
}

/* The due flush, in hits; it arrives in the store. */
static inline s64 flushed(void)
{
	struct quota_due due[8];
	struct cluster_store_request cluster_request = { .passed = true };
	s64 sum = 0;
	u32 count;

	later(10 * SEC);
	while ((count = quotas_due(node.ledger->quotas, due, 8, rig_time))) {
		for (u32 i = 0; i < count; i++) {
			sum += due[i].bucket.kind == CLUSTER_STORE_REFUND ? -(s64)due[i].bucket.cost
									  : (s64)due[i].bucket.cost;
			cluster_request.bucket = &due[i].bucket;
			cluster_request.count = 1;
			far_charge(&cluster_request);
			quota_flushed(node.ledger->counters, node.ledger->quotas, &due[i],
				      &cluster_request, CLUSTER_STORE_DONE, rig_time);
		}
	}
	return sum;
}

#define RIG_TEST(name) TEST_WITH(name, begin, end)

#endif
