// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * user_bans.c - see user_bans.h. The message:
 *
 *     {"rule": "api/login", "values": [["16 hexadecimal digits", refusals, until_us, level], ...]}
 *
 * until_us is Redis' time, 0: no ban. Keys are hashes with a seed of the cluster; values stay
 * unknown.
 */
#include "control/replication/user_bans.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/replication/resets.h"
#include "lib/log.h"
#include "request/engine/ban_outbox.h"
#include "request/engine/engine.h"

#define KIND "user_bans"
#define VALID_NS (60 * SL_NS_PER_SEC)
#define IN_A_MESSAGE 1000 /* below 64 KiB */
#define ACTIVE 4096	  /* bans of this node that are published again */
#define REFUSALS_MAX 1000000

struct active {
	u64 key; /* 0: free */
	u64 rule_id, state;
	u32 rule_index;
};

struct user_bans {
	struct event *tick;
	u32 at; /* the next place in active */
	struct active active[ACTIVE];
};

/* What is being written. */
struct message {
	struct nodes *nodes;
	const struct rule *rule;
	json_t *values;
};

static const struct engine *engine_of(const struct nodes *nodes)
{
	return nodes->running->requests.engine;
}

/* ------------------------------------------------------------------ out */

static void send_message(struct message *m)
{
	if (!m->values)
		return;
	if (cluster_send(m->nodes->cluster, KIND,
			 json_pack("{s:o, s:o}", "rule",
				   json_sprintf("%s/%s", m->rule->domain, m->rule->path), "values",
				   m->values),
			 VALID_NS) < 0)
		log_error("cluster: cannot publish refusals and bans of %s/%s: out of memory",
			  m->rule->domain, m->rule->path);
	m->values = NULL;
}

/* Rules may have changed since: NULL if this one has gone. */
static const struct rule *rule_at(const struct nodes *nodes, u32 index, u64 id)
{
	const struct ruleset *rules = nodes->running->requests.rules;

	return index < rules->rule_count && rules->rule[index]->id == id ? rules->rule[index]
									 : NULL;
}

static void write_value(struct message *m, const struct rule *rule, u64 key, u32 refusals,
			u64 state)
{
	u64 left_ns =
		ban_left_ns(state, counters_now(engine_of(m->nodes)->ledger.counters).mono_ns);
	u64 now_us, until_us = 0;

	if (left_ns && cluster_now(m->nodes->cluster, &now_us))
		until_us = now_us + left_ns / 1000;
	if (m->rule != rule || json_array_size(m->values) == IN_A_MESSAGE)
		send_message(m);
	m->rule = rule;
	if (!m->values)
		m->values = json_array();
	json_array_append_new(m->values, json_pack("[o, I, I, i]", json_sprintf("%016llx", key),
						   (json_int_t)refusals, (json_int_t)until_us,
						   (int)ban_level(state)));
}

static void remember(struct user_bans *bans, const struct ban_outbox_item *item)
{
	struct active *active = NULL;

	for (u32 i = 0; i < ACTIVE && !active; i++)
		if (bans->active[i].key == item->key)
			active = &bans->active[i];
	if (!active)
		active = &bans->active[bans->at++ % ACTIVE];
	*active = (struct active){ item->key, item->rule_id, item->state, item->rule_index };
}

static void on_user_bans_tick(evutil_socket_t fd, short what, void *arg)
{
	struct nodes *nodes = arg;
	struct message m = { .nodes = nodes };
	const struct ban_outbox_item *item;
	u32 count = ban_outbox_take(engine_of(nodes)->ledger.bans, &item);

	for (u32 i = 0; i < count; i++) {
		const struct rule *rule = rule_at(nodes, item[i].rule_index, item[i].rule_id);

		if (!rule)
			continue;
		write_value(&m, rule, item[i].key, item[i].offenses, item[i].state);
		if (item[i].state)
			remember(nodes->user_bans, &item[i]);
	}
	send_message(&m);
}

static void on_user_bans_joined(void *arg, const char *node)
{
	struct nodes *nodes = arg;
	struct message m = { .nodes = nodes };
	u64 now_ns = counters_now(engine_of(nodes)->ledger.counters).mono_ns;

	for (u32 i = 0; i < ACTIVE; i++) {
		struct active *active = &nodes->user_bans->active[i];
		const struct rule *rule = rule_at(nodes, active->rule_index, active->rule_id);

		if (active->key && rule && ban_left_ns(active->state, now_ns))
			write_value(&m, rule, active->key, 0, active->state);
		else
			active->key = 0;
	}
	send_message(&m);
}

/* ------------------------------------------------------------------ in */

static bool read_value(const json_t *json, u64 now_us, struct decide_ban *ret)
{
	json_int_t refusals, until_us, level;
	const char *key;

	if (json_unpack((json_t *)json, "[s, I, I, I]", &key, &refusals, &until_us, &level) ||
	    !reset_key_read(key, &ret->key) || refusals < 0 || refusals > REFUSALS_MAX ||
	    until_us < 0 || level < 0 || level >= BAN_LEVELS)
		return false;
	ret->offenses = (u64)refusals;
	ret->left_ns = (u64)until_us > now_us ? ((u64)until_us - now_us) * 1000 : 0;
	ret->level = (u32)level;
	return true;
}

static void on_user_bans(void *arg, const struct cluster_message *message)
{
	const char *name = json_string_value(json_object_get(message->body, "rule"));
	const json_t *values = json_object_get(message->body, "values");
	struct nodes *nodes = arg;
	const struct rule *rule = name ? ruleset_find(nodes->running->requests.rules, name) : NULL;
	struct decide_ban ban;
	u64 now_us;

	if (!rule || !rule->ban.after || !cluster_now(nodes->cluster, &now_us))
		return;
	for (size_t i = 0; i < json_array_size(values) && i < IN_A_MESSAGE; i++)
		if (read_value(json_array_get(values, i), now_us, &ban))
			decide_ban_receive(&engine_of(nodes)->ledger, rule, &ban);
}

/* ------------------------------------------------------------------ start and end */

void user_bans_forget(struct nodes *nodes, u64 key)
{
	for (u32 i = 0; nodes->user_bans && i < ACTIVE; i++)
		if (nodes->user_bans->active[i].key == key)
			nodes->user_bans->active[i].key = 0;
}

int user_bans_start(struct nodes *nodes, struct sl_err *err)
{
	u64 sync_us = cluster_def(nodes->cluster)->sync_ns / 1000;
	struct timeval period = { .tv_sec = (time_t)(sync_us / 1000000),
				  .tv_usec = (suseconds_t)(sync_us % 1000000) };

	if (!engine_of(nodes) || !engine_of(nodes)->ledger.bans)
		return 0;
	nodes->user_bans = calloc(1, sizeof(*nodes->user_bans));
	if (nodes->user_bans)
		nodes->user_bans->tick =
			event_new(nodes->base, -1, EV_PERSIST, on_user_bans_tick, nodes);
	if (!nodes->user_bans || !nodes->user_bans->tick ||
	    event_add(nodes->user_bans->tick, &period) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	cluster_on(nodes->cluster, KIND, on_user_bans, nodes);
	cluster_on_join(nodes->cluster, on_user_bans_joined, nodes);
	return 0;
}

void user_bans_close(struct nodes *nodes)
{
	if (!nodes->user_bans)
		return;
	if (nodes->user_bans->tick)
		event_free(nodes->user_bans->tick);
	free(nodes->user_bans);
	nodes->user_bans = NULL;
}
