// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_explain_stores.c - explain stores nothing: all state of the data plane is the same before
 * and after a thousand calls about sources of every kind.
 */
#include <stdlib.h>

#include "explain_kinds.h"

struct stored {
	u32 sets, cpus;
	struct sl_set *table;
	struct sl_limit_id_info *slots;
	struct sl_state state;
	struct sl_limit_stats *limit;
	struct sl_iface_stats iface[TARGET_IFACES];
	struct sl_global_stats global;
	u64 *lease; /* of the keys printed, a bucket state for each CPU */
	struct dp_ban *ban;
	size_t bans;
	struct sl_ban_filter filter;
	struct sl_seen *seen;
	struct dp_push_entry *push;
	size_t pushes;
	struct sl_push_now push_now;
	struct sl_established *established;
};

static void *copy_of(const void *from, size_t size)
{
	void *to = malloc(size);

	assert_non_null(to);
	memcpy(to, from, size);
	return to;
}

static void read_stored(struct target *t, const u64 *key, u32 keys, struct stored *ret)
{
	struct dp *dp = target_dp(t);

	memset(ret, 0, sizeof(*ret));
	ret->table = dp->table;
	ret->sets = dp->table_sets;
	ret->table = copy_of(ret->table, ret->sets * sizeof(*ret->table));
	ret->slots = copy_of(dp->slots, SL_LIMIT_IDS * sizeof(*ret->slots));
	ret->state = *dp->state;
	ret->limit = calloc(SL_LIMIT_IDS, sizeof(*ret->limit));
	for (u32 i = 0; i < SL_LIMIT_IDS; i++)
		dp->ops->limit_stats(dp, i, &ret->limit[i]);
	for (u32 i = 0; i < TARGET_IFACES; i++)
		dp->ops->iface_stats(dp, i, &ret->iface[i]);
	dp->ops->global_stats(dp, &ret->global);
	assert_int_equal(dp->ops->hash_all(dp, DP_BANS, &ret->ban, &ret->bans), 0);
	ret->filter = *dp->ban_filter;
	ret->seen = copy_of(dp->shadow_seen, SL_LIMIT_IDS * sizeof(*ret->seen));
	assert_int_equal(dp->ops->hash_all(dp, DP_PUSHES, &ret->push, &ret->pushes), 0);
	ret->push_now = *dp->push_now;
	ret->established =
		copy_of(dp->established, SL_ESTABLISHED_SETS * sizeof(*ret->established));
	ret->cpus = dp->cpus;
	ret->lease = calloc(keys * ret->cpus, sizeof(u64));
	for (u32 i = 0; i < keys; i++)
		dp->ops->lease(dp, key[i], &ret->lease[i * ret->cpus]);
}

static void free_stored(struct stored *s)
{
	free(s->table);
	free(s->slots);
	free(s->limit);
	free(s->lease);
	free(s->ban);
	free(s->seen);
	free(s->push);
	free(s->established);
}

static void assert_same(const struct stored *a, const struct stored *b, u32 keys)
{
	assert_memory_equal(a->table, b->table, a->sets * sizeof(*a->table));
	assert_memory_equal(a->slots, b->slots, SL_LIMIT_IDS * sizeof(*a->slots));
	assert_memory_equal(&a->state, &b->state, sizeof(a->state));
	assert_memory_equal(a->limit, b->limit, SL_LIMIT_IDS * sizeof(*a->limit));
	assert_memory_equal(a->iface, b->iface, sizeof(a->iface));
	assert_memory_equal(&a->global, &b->global, sizeof(a->global));
	assert_int_equal(a->bans, b->bans);
	assert_true(a->bans > 0);
	assert_memory_equal(a->ban, b->ban, a->bans * sizeof(*a->ban));
	assert_memory_equal(a->seen, b->seen, SL_LIMIT_IDS * sizeof(*a->seen));
	assert_memory_equal(&a->filter, &b->filter, sizeof(a->filter));
	assert_int_equal(a->pushes, b->pushes);
	assert_true(a->pushes > 0);
	assert_memory_equal(a->push, b->push, a->pushes * sizeof(*a->push));
	assert_memory_equal(&a->push_now, &b->push_now, sizeof(a->push_now));
	assert_memory_equal(a->established, b->established,
			    SL_ESTABLISHED_SETS * sizeof(*a->established));
	assert_memory_equal(a->lease, b->lease, keys * a->cpus * sizeof(u64));
}

#define SOURCES 200

CASE_TEST(nothing_is_stored)
{
	static struct sent s[SOURCES];
	static struct predicted predicted;
	struct stored before, after;
	u64 key[SOURCES] = { 0 };
	u32 leased = 0;

	rng_state = case_seed();
	case_policy(t, "%s", rules);
	assert_int_equal(dp_push_watch(target_dp(t), true), 0);
	for (u32 i = 0; i < SOURCES; i++) {
		const struct kind *kind = &kinds[i % COUNT(kinds)];

		make_packet(kind, &s[i]);
		s[i].spec.src = s[i].src;
		send_before(t, kind, &s[i]);
		predict(t, &s[i].packet, 0, &predicted);
		if (predicted.limits)
			key[i] = predicted.limit[0].meter[0].key;
		leased += predicted.limits && predicted.limit[0].meter[0].leased;
	}
	assert_true(leased > 0);
	read_stored(t, key, SOURCES, &before);
	for (u32 i = 0; i < 1000; i++) {
		struct explain_packet packet = s[i % SOURCES].packet;

		packet.tcp_flags = i % 3 ? packet.tcp_flags : FRAME_ACK;
		predict(t, &packet, i % target_cpus(t), &predicted);
	}
	read_stored(t, key, SOURCES, &after);
	assert_same(&before, &after, SOURCES);
	free_stored(&before);
	free_stored(&after);
}

int main(void)
{
	return case_main("explain stores nothing");
}
