// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * replication.c - see replication.h: the tick, and other nodes' blocks in the running policy.
 *
 * They are derived entries of the policy (as the overrides of budgets are): no live changes, in no
 * history and in no saved file. They are put in force at once, unless that would take more than a
 * quarter of the time: then several together.
 */
#include "control/replication/replication_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "control/running/entries.h"
#include "control/running/rules.h"
#include "lib/log.h"

/* Installing takes at most a quarter of the time; one takes about 75 ms, mostly in the kernel. */
#define INSTALL_SHARE 4
#define AHEAD_NS (5 * SL_NS_PER_SEC) /* saved up over at most five seconds */

u64 replication_us_of(u64 now_us, u64 mono_ns)
{
	u64 mono_now_ns = clock_mono_ns();

	if (mono_ns == REPLICATION_FOREVER)
		return 0;
	return mono_ns > mono_now_ns ? now_us + (mono_ns - mono_now_ns) / 1000
				     : now_us - (mono_now_ns - mono_ns) / 1000;
}

u64 replication_ns_of(u64 now_us, u64 us)
{
	if (!us)
		return REPLICATION_FOREVER;
	return clock_mono_ns() + (us > now_us ? (us - now_us) * 1000 : 0);
}

/* ------------------------------------------------------------------ blocks in the policy */

struct gathered {
	struct list_entry *entry;
	size_t count;
	u64 mono_ns, utc_ns;
};

static void gather(struct replication_item *item, void *arg)
{
	struct gathered *g = arg;
	struct list_entry *entry = &g->entry[g->count];

	if (item->kind != REPLICATION_BLOCK || !item->theirs || item->until_ns <= g->mono_ns)
		return;
	*entry = (struct list_entry){ .prefix = item->prefix };
	if (item->until_ns != REPLICATION_FOREVER)
		entry->until_utc_ns = g->utc_ns + (item->until_ns - g->mono_ns);
	memcpy(entry->reason, item->reason, sizeof(entry->reason));
	g->count++;
}

static void replication_derive(struct running_part *part, struct policy *policy)
{
	struct gathered g = { .mono_ns = clock_mono_ns(), .utc_ns = clock_utc_ns() };
	struct replication_table *table = &((struct replication *)part)->table;

	policy_list_underive(policy);
	if (!table->theirs[REPLICATION_BLOCK])
		return;
	g.entry = calloc(table->theirs[REPLICATION_BLOCK], sizeof(*g.entry));
	if (!g.entry) {
		log_error("cluster: out of memory: blocks of other nodes are not in force");
		return;
	}
	replication_each(table, gather, &g, g.mono_ns);
	if (policy_list_derive(policy, LIST_BLOCK, g.entry, g.count) < 0)
		log_error("cluster: out of memory: some blocks of other nodes are not in force");
	free(g.entry);
}

static int install(struct nodes *nodes, struct sl_err *err)
{
	struct running *run = nodes->running;

	replication_derive(&nodes->replication->part, run->policy);
	return entries_narrow(run, run->policy, run->pending.deadline_ns, err);
}

static void on_replication_install(evutil_socket_t fd, short what, void *arg)
{
	struct replication *s = arg;
	u64 begun_ns = clock_mono_ns(), now_ns;
	struct sl_err err;

	if (s->nodes->running->packets->stopping)
		return;
	if (s->changed && install(s->nodes, &err) < 0)
		log_error("cluster: cannot apply blocks of other nodes, they are not in force: %s",
			  err.message);
	else if (!s->changed && s->lengths)
		rules_refresh(s->nodes->running);
	s->changed = s->lengths = false;
	now_ns = clock_mono_ns();
	s->paid_ns = (s->paid_ns > begun_ns ? s->paid_ns : begun_ns) +
		     INSTALL_SHARE * (now_ns - begun_ns);
}

void replication_install_soon(struct replication *s)
{
	u64 now_ns = clock_mono_ns();
	u64 wait_us = s->paid_ns > now_ns + AHEAD_NS ? (s->paid_ns - now_ns - AHEAD_NS) / 1000 : 0;
	struct timeval in = { .tv_sec = (time_t)(wait_us / 1000000),
			      .tv_usec = (suseconds_t)(wait_us % 1000000) };

	if (!event_pending(s->install, EV_TIMEOUT, NULL))
		event_add(s->install, &in);
}

/* ------------------------------------------------------------------ expiry */

static void expire(struct replication_item *item, void *arg)
{
	struct replication *s = arg;
	u64 now_ns = clock_mono_ns();

	if (!item->theirs || (now_ns < item->hold_ns && now_ns < item->until_ns))
		return;
	/* The data path enforces the block's own end; this one is no longer published by any
	 * node. */
	if (item->kind == REPLICATION_BLOCK)
		s->changed = true;
	replication_end_theirs(&s->table, item);
	s->unsaved = true;
}

static void on_replication_tick(evutil_socket_t fd, short what, void *arg)
{
	struct replication *s = arg;
	u64 now_ns = clock_mono_ns(), now_us;

	if (now_ns - s->expired_ns >= SL_NS_PER_SEC) {
		replication_each(&s->table, expire, s, now_ns);
		s->expired_ns = now_ns;
	}
	replication_time_known(s);
	if (cluster_now(s->nodes->cluster, &now_us))
		replication_publish_all(s, now_us);
	if (s->changed || s->lengths)
		replication_install_soon(s);
	if (s->unsaved && now_ns - s->saved_ns >= SL_NS_PER_SEC)
		replication_file_write(s);
}

/* ------------------------------------------------------------------ commands */

const char *replication_node(const struct nodes *nodes, enum replication_kind kind,
			     const struct sl_prefix *prefix)
{
	const struct replication_item *item =
		nodes->replication ? replication_find(&nodes->replication->table, kind, prefix)
				   : NULL;

	return item && item->theirs ? item->node : NULL;
}

void replication_count(const struct nodes *nodes, enum replication_kind kind, u32 *ret_ours,
		       u32 *ret_theirs)
{
	*ret_ours = nodes->replication ? nodes->replication->table.ours[kind] : 0;
	*ret_theirs = nodes->replication ? nodes->replication->table.theirs[kind] : 0;
}

void replication_withdrawn(struct nodes *nodes, enum replication_kind kind,
			   const struct sl_prefix *prefix)
{
	struct replication *s = nodes->replication;
	struct replication_item *item;
	u64 now_us;
	bool timed;

	if (!s || !nodes->cluster)
		return;
	timed = cluster_now(nodes->cluster, &now_us);
	item = replication_withdraw(&s->table, kind, prefix, timed ? now_us : 1, clock_mono_ns());
	if (item) {
		replication_end_ours(&s->table, item);
		replication_end_theirs(&s->table, item);
		item->gone_here = true;
		item->gone_untimed |= !timed;
	}
	s->unsaved = true;
	s->untimed |= !timed;
	if (timed)
		replication_publish_gone(s, kind, prefix, now_us);
	replication_flush(s);
}

static void withdraw_now(struct replication_item *item, void *arg)
{
	struct replication *s = arg;
	u64 now_us;

	if (!item->gone_untimed || !cluster_now(s->nodes->cluster, &now_us))
		return;
	item->gone_untimed = false;
	item->gone_us = now_us;
	replication_publish_gone(s, item->kind, &item->prefix, now_us);
}

void replication_time_known(struct replication *s)
{
	u64 now_us;

	if (!s->untimed || !cluster_now(s->nodes->cluster, &now_us))
		return;
	s->untimed = false;
	replication_each(&s->table, withdraw_now, s, clock_mono_ns());
}

bool replication_unblock(struct nodes *nodes, const struct sl_prefix *prefix)
{
	if (!replication_node(nodes, REPLICATION_BLOCK, prefix))
		return false;
	replication_withdrawn(nodes, REPLICATION_BLOCK, prefix);
	nodes->replication->changed = true;
	on_replication_install(-1, 0, nodes->replication);
	return true;
}

/* ------------------------------------------------------------------ start and exit */

static const struct running_part_ops replication_ops = { .derive = replication_derive };

int replication_open(struct nodes *nodes, struct sl_err *err)
{
	struct replication *s;

	if (!nodes->running->file->cluster)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return sl_err_set(err, ENOMEM, "out of memory");
	s->nodes = nodes;
	s->part.ops = &replication_ops;
	nodes->replication = s;
	replication_file_read(s);
	running_join(nodes->running, &s->part);
	return 0;
}

static void on_node_joined(void *arg, const char *node)
{
	log_info("cluster: node %s joined", node);
	((struct replication *)arg)->joined = true;
}

int replication_start(struct nodes *nodes, struct sl_err *err)
{
	struct replication *s = nodes->replication;
	u64 sync_us = cluster_def(nodes->cluster)->sync_ns / 1000;
	struct timeval period = { .tv_sec = (time_t)(sync_us / 1000000),
				  .tv_usec = (suseconds_t)(sync_us % 1000000) };

	s->tick = event_new(nodes->base, -1, EV_PERSIST, on_replication_tick, s);
	s->install = event_new(nodes->base, -1, 0, on_replication_install, s);
	if (!s->tick || !s->install || event_add(s->tick, &period) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	cluster_on_join(nodes->cluster, on_node_joined, s);
	replication_listen(s);
	return 0;
}

void replication_outdated(struct nodes *nodes)
{
	if (nodes->replication)
		nodes->replication->unsaved = true;
}

void replication_close(struct nodes *nodes)
{
	struct replication *s = nodes->replication;

	if (!s)
		return;
	if (s->unsaved && s->tick)
		replication_file_write(s);
	if (s->tick)
		event_free(s->tick);
	if (s->install)
		event_free(s->install);
	for (u32 kind = 0; kind < REPLICATION_KIND_COUNT; kind++) {
		json_decref(s->out[kind].add);
		json_decref(s->out[kind].del);
	}
	running_leave(nodes->running, &s->part);
	replication_table_clear(&s->table);
	free(s);
	nodes->replication = NULL;
}
