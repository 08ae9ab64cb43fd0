// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * replication_publish.c - finds and publishes entries that began on this node; see replication.h.
 *
 * The data path adds and removes bans without an event: the map is read every sync interval, less
 * often if that takes long. Blocks are scanned when the rules change; push-downs are a short list.
 * Each entry carries the time when it began, so that its message is the same each time.
 */
#include "control/replication/replication_private.h"

#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"

#define IN_A_MESSAGE 100 /* of the longest there are, below 64 KiB */
#define BANS_SHARE 50	 /* reading them takes at most a fiftieth of a CPU */

/* ------------------------------------------------------------------ messages */

static const char *const kind_message[REPLICATION_KIND_COUNT] = {
	[REPLICATION_BLOCK] = "blocks",
	[REPLICATION_BAN] = "bans",
	[REPLICATION_PUSH] = "pushes",
};

static void flush(struct replication *s, enum replication_kind kind)
{
	struct replication_out *out = &s->out[kind];
	json_t *body;

	if (!out->add && !out->del)
		return;
	body = json_pack("{s:o, s:o}", "add", out->add ? out->add : json_array(), "del",
			 out->del ? out->del : json_array());
	*out = (struct replication_out){ NULL, NULL };
	if (cluster_send(s->nodes->cluster, kind_message[kind], body, REPLICATION_VALID_NS) < 0)
		log_error("cluster: cannot publish changes of %s: out of memory",
			  kind_message[kind]);
}

void replication_flush(struct replication *s)
{
	for (u32 kind = 0; kind < REPLICATION_KIND_COUNT; kind++)
		flush(s, kind);
}

static void publish(struct replication *s, enum replication_kind kind, json_t **list, json_t *what)
{
	if (!*list)
		*list = json_array();
	json_array_append_new(*list, what);
	if (json_array_size(*list) >= IN_A_MESSAGE)
		flush(s, kind);
}

static json_t *about(const struct sl_prefix *prefix, u64 at_us)
{
	char text[SL_PREFIX_TEXT];

	return json_pack("{s:s, s:I}", "source", sl_prefix_format(prefix, text, sizeof(text)),
			 "at_us", (json_int_t)at_us);
}

void replication_publish_gone(struct replication *s, enum replication_kind kind,
			      const struct sl_prefix *prefix, u64 at_us)
{
	publish(s, kind, &s->out[kind].del, about(prefix, at_us));
}

/* ------------------------------------------------------------------ ended entries */

struct ending {
	struct replication *s;
	enum replication_kind kind;
	u64 now_us;
};

static void end_unseen(struct replication_item *item, void *arg)
{
	struct ending *e = arg;
	struct replication *s = e->s;

	if (item->kind != e->kind || !item->ours || item->round == s->round)
		return;
	replication_end_ours(&s->table, item);
	/* An expiry is the same on all nodes; only that of a push-down is known to this node
	 * alone. */
	if (item->kind == REPLICATION_BAN ||
	    (item->kind == REPLICATION_BLOCK && item->until_ns <= clock_mono_ns()))
		return;
	if (item->kind == REPLICATION_BLOCK) {
		replication_withdraw(&s->table, item->kind, &item->prefix, e->now_us,
				     clock_mono_ns());
		item->gone_here = true;
		s->unsaved = true;
		replication_publish_gone(s, item->kind, &item->prefix, e->now_us);
	} else {
		json_t *what = about(&item->prefix, item->at_us);

		json_object_set_new(what, "ended", json_true());
		publish(s, item->kind, &s->out[item->kind].del, what);
	}
}

static void end_all_unseen(struct replication *s, enum replication_kind kind, u64 now_us)
{
	struct ending ending = { s, kind, now_us };

	if (s->table.ours[kind])
		replication_each(&s->table, end_unseen, &ending, clock_mono_ns());
}

/* Marks the entry as seen; true if it must be published. */
static bool seen(struct replication *s, struct replication_item *item, bool new, u64 digest,
		 u64 now_us, bool all)
{
	bool other = item->digest != digest;

	if (other && !new && item->kind == REPLICATION_BLOCK)
		item->at_us = now_us;
	item->round = s->round;
	item->digest = digest;
	return new || other || all;
}

static u64 mix(u64 sum, u64 value)
{
	sum = (sum ^ value) * 0x9e3779b97f4a7c15ULL;
	return sum ^ sum >> 29;
}

/* ------------------------------------------------------------------ blocks */

/* Prefix -> time of the block, from the live changes that a daemon finds at its start. */
static json_t *blocked_when(const struct nodes *nodes)
{
	json_t *when = json_object(), *op;
	size_t i;

	json_array_foreach(nodes->running->live, i, op) {
		const char *name = json_string_value(json_object_get(op, "op"));
		const char *prefix = json_string_value(json_object_get(op, "prefix"));

		if (name && prefix && !strcmp(name, "block add"))
			json_object_set(when, prefix, json_object_get(op, "when"));
	}
	return when;
}

static u64 parse_when(const json_t *when, u64 otherwise_us)
{
	const char *text = json_string_value(when);
	struct tm tm = { 0 };

	if (!text || !strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm))
		return otherwise_us;
	return (u64)timegm(&tm) * 1000000;
}

static void look_at_block(struct replication *s, const struct list_entry *entry, const json_t *when,
			  u64 now_us, bool all)
{
	struct replication_item *item;
	char text[SL_PREFIX_TEXT];
	u64 digest, at_us = now_us;
	bool new;
	json_t *what;

	if (when)
		at_us = parse_when(
			json_object_get(when, sl_prefix_format(&entry->prefix, text, sizeof(text))),
			now_us);
	item = replication_ours(&s->table, REPLICATION_BLOCK, &entry->prefix, at_us, &new);
	if (!item)
		return;
	/* Withdrawn here and added again: `when` has whole seconds. */
	if (new && item->gone_here && item->at_us <= item->gone_us)
		item->at_us = item->gone_us + 1;
	digest = mix(1, entry->until_utc_ns);
	for (const char *c = entry->reason; *c; c++)
		digest = mix(digest, (u8)*c);
	item->until_ns = entry->until_utc_ns ? entry->until_utc_ns - clock_utc_offset_ns()
					     : REPLICATION_FOREVER;
	if (!seen(s, item, new, digest, now_us, all))
		return;
	what = about(&entry->prefix, item->at_us);
	json_object_set_new(what, "until_us",
			    json_integer((json_int_t)replication_us_of(now_us, item->until_ns)));
	json_object_set_new(what, "reason", json_string(entry->reason));
	publish(s, REPLICATION_BLOCK, &s->out[REPLICATION_BLOCK].add, what);
}

static void publish_blocks(struct replication *s, u64 now_us, bool all)
{
	const struct list_def *list = &s->nodes->running->policy->list[LIST_BLOCK];
	u64 now_utc_ns = clock_utc_ns();
	json_t *when = NULL;

	if (s->generation == s->nodes->running->generation && !all)
		return;
	if (!s->looked)
		when = blocked_when(s->nodes);
	s->looked = true;
	s->generation = s->nodes->running->generation;
	s->round++;
	for (size_t i = 0; i < list->count; i++) {
		const struct list_entry *entry = &list->entry[i];

		if (!entry->pos.line && !entry->from && !entry->derived &&
		    (!entry->until_utc_ns || entry->until_utc_ns > now_utc_ns) &&
		    block_check_width(&entry->prefix, NULL) == 0)
			look_at_block(s, entry, when, now_us, all);
	}
	json_decref(when);
	end_all_unseen(s, REPLICATION_BLOCK, now_us);
}

/* ------------------------------------------------------------------ bans */

static void look_at_ban(struct replication *s, const struct dp_ban *ban, u64 now_us, bool all)
{
	struct sl_prefix prefix = { .addr = ban->key.addr,
				    .family = (u8)ban->key.family,
				    .len = (u8)ban->key.len };
	struct replication_item *item = replication_find(&s->table, REPLICATION_BAN, &prefix);
	json_t *what;
	bool new;

	/* Unchanged: another node's ban. With another end: the data path banned the source here. */
	if (item && item->theirs && item->given_ns == ban->state.until_ns)
		return;
	item = replication_ours(&s->table, REPLICATION_BAN, &prefix, 0, &new);
	if (!item)
		return;
	if (!new && item->digest == ban->state.until_ns && !all) {
		item->round = s->round;
		return;
	}
	if (new || item->digest != ban->state.until_ns)
		item->at_us = replication_us_of(now_us, ban->state.since_ns);
	item->until_ns = ban->state.until_ns;
	seen(s, item, new, ban->state.until_ns, now_us, all);
	what = about(&prefix, item->at_us);
	json_object_set_new(what, "until_us",
			    json_integer((json_int_t)replication_us_of(now_us, item->until_ns)));
	json_object_set_new(what, "limit",
			    json_string(bans_limit(s->nodes->running->packets, ban)));
	json_object_set_new(what, "level", json_integer((json_int_t)ban->state.level));
	publish(s, REPLICATION_BAN, &s->out[REPLICATION_BAN].add, what);
}

static void publish_bans(struct replication *s, u64 now_us, bool all)
{
	u64 now_ns = clock_mono_ns(), from_ns = clock_cpu_ns();
	struct dp_ban *ban;
	size_t count;

	if (s->nodes->running->packets->absent || (now_ns < s->bans_ns && !all) ||
	    s->nodes->running->packets->dp->ops->hash_all(s->nodes->running->packets->dp, DP_BANS,
							  &ban, &count) < 0)
		return;
	s->round++;
	for (size_t i = 0; i < count; i++)
		if (ban[i].state.until_ns > now_ns)
			look_at_ban(s, &ban[i], now_us, all);
	free(ban);
	end_all_unseen(s, REPLICATION_BAN, now_us);
	s->bans_ns = now_ns + (clock_cpu_ns() - from_ns) * BANS_SHARE;
}

/* ------------------------------------------------------------------ push-downs */

static void look_at_push(struct replication *s, const struct push_entry *entry, u64 now_us,
			 bool all)
{
	const struct push_step *step = &entry->steps[entry->step];
	u64 now_ns = clock_mono_ns(), digest, until_ns = now_ns + PUSH_LEASE_NS;
	u64 max_ns = entry->began_ns + entry->def.max_ns;
	struct replication_item *item;
	json_t *what;
	bool new;

	item = replication_ours(&s->table, REPLICATION_PUSH, &entry->group,
				replication_us_of(now_us, entry->began_ns), &new);
	if (!item)
		return;
	digest = mix(mix(mix(1, step->kind), entry->rate.count), entry->rate.period_ns);
	if (!seen(s, item, new, digest, now_us, all))
		return;
	item->until_ns = until_ns < max_ns ? until_ns : max_ns;
	what = about(&entry->group, item->at_us);
	json_object_set_new(what, "until_us",
			    json_integer((json_int_t)replication_us_of(now_us, item->until_ns)));
	json_object_set_new(what, "step", json_string(push_kind_name(step->kind)));
	json_object_set_new(what, "count", json_integer((json_int_t)entry->rate.count));
	json_object_set_new(what, "period_ns", json_integer((json_int_t)entry->rate.period_ns));
	json_object_set_new(what, "rule", json_string(entry->rule));
	publish(s, REPLICATION_PUSH, &s->out[REPLICATION_PUSH].add, what);
}

static void publish_pushes(struct replication *s, u64 now_us, bool all)
{
	const struct push *push = s->nodes->push;
	const struct push_entry *entry;

	if (!push)
		return;
	s->round++;
	for (u32 i = 0; (entry = push_at(push, i)) != NULL; i++)
		if (entry->used && !entry->shadow && !entry->node[0])
			look_at_push(s, entry, now_us, all);
	end_all_unseen(s, REPLICATION_PUSH, now_us);
}

/* ------------------------------------------------------------------ the tick */

/* A node that was unavailable may still have the entry without publishing it. */
static void publish_gone_again(struct replication_item *item, void *arg)
{
	if (item->gone_us && item->gone_here && !item->gone_untimed)
		replication_publish_gone(arg, item->kind, &item->prefix, item->gone_us);
}

void replication_publish_all(struct replication *s, u64 now_us)
{
	u64 now_ns = clock_mono_ns(), since_ns = now_ns - s->all_ns;
	bool all =
		since_ns >= REPLICATION_AGAIN_NS || (s->joined && since_ns >= REPLICATION_JOIN_NS);

	if (all && s->joined)
		replication_each(&s->table, publish_gone_again, s, now_ns);
	if (all) {
		s->all_ns = now_ns;
		s->joined = false;
	}
	publish_blocks(s, now_us, all);
	publish_bans(s, now_us, all);
	publish_pushes(s, now_us, all);
	replication_flush(s);
}
