// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * replication_receive.c - blocks, bans and push-downs of other nodes; see replication.h.
 *
 * A message is signed, so it is from a node of this cluster; its content is checked all the same,
 * and this node's protected addresses are never dropped for another node. For blocks the order of
 * the data path ensures that (exempt and failsafe come first); bans and push-downs are checked
 * here.
 */
#include "control/replication/replication_private.h"

#include <errno.h>
#include <string.h>

#include "lib/clock.h"
#include "control/running/live.h"
#include "control/running/rules.h"
#include "packet/host/ifaces.h"
#include "lib/log.h"
#include "conf/config_text.h"

#define RATE_COUNT_MAX 1000000000000ULL
#define RATE_PERIOD_MAX_NS (366 * 86400 * SL_NS_PER_SEC)

/* One entry of a message. */
struct message {
	struct replication *s;
	enum replication_kind kind;
	const char *node;
	const json_t *what;
	struct sl_prefix prefix;
	u64 at_us, now_us;
};

static u64 message_u64(const json_t *what, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(what, key));

	return value > 0 ? (u64)value : 0;
}

static const char *message_text(const json_t *what, const char *key)
{
	const char *text = json_string_value(json_object_get(what, key));

	return text ? text : "";
}

static const char *prefix_text(const struct message *h, char buf[SL_PREFIX_TEXT])
{
	return sl_prefix_format(&h->prefix, buf, SL_PREFIX_TEXT);
}

/* ------------------------------------------------------------------ blocks */

static void receive_block(const struct message *h)
{
	const char *reason = message_text(h->what, "reason");
	struct replication_item *item;
	char text[SL_PREFIX_TEXT];
	enum replication_news news;

	if (block_check_width(&h->prefix, NULL) < 0)
		return;
	news = replication_receive(&h->s->table, REPLICATION_BLOCK, &h->prefix, h->node, h->at_us,
				   &item);
	if (news == REPLICATION_GONE)
		replication_publish_gone(
			h->s, REPLICATION_BLOCK, &h->prefix,
			replication_find(&h->s->table, REPLICATION_BLOCK, &h->prefix)->gone_us);
	if (news != REPLICATION_NEW && news != REPLICATION_KNOWN)
		return;
	item->hold_ns = clock_mono_ns() + REPLICATION_BLOCK_HOLD_NS;
	item->until_ns = replication_ns_of(h->now_us, message_u64(h->what, "until_us"));
	if (news == REPLICATION_KNOWN)
		return;
	item->reason[0] = '\0';
	if (strlen(reason) < sizeof(item->reason) && config_text_printable(reason, strlen(reason)))
		strcpy(item->reason, reason);
	h->s->changed = h->s->unsaved = true;
	log_info("block %s added by node %s", prefix_text(h, text), h->node);
}

/* Our own block, withdrawn on another node: a live change as if made here. */
static void unblock_ours(const struct message *h)
{
	struct nodes *nodes = h->s->nodes;
	char text[SL_PREFIX_TEXT], when[32];
	struct change change;
	struct sl_err err;
	json_t *op;
	int r;

	clock_format_utc(clock_utc_ns(), when, sizeof(when));
	op = json_pack("{s:s, s:s, s:s, s:i, s:i}", "op", "block del", "prefix",
		       prefix_text(h, text), "when", when, "uid", 0, "pid", 0);
	r = op ? change_begin(nodes->running, &change, &err)
	       : sl_err_set(&err, ENOMEM, "out of memory");
	if (!r) {
		r = change_do(&change, nodes->running, op, &err);
		if (!r)
			r = change_commit(nodes->running, &change, &err);
		change_end(&change);
	}
	json_decref(op);
	if (r < 0)
		log_error("block %s withdrawn by node %s, but it stays: %s", text, h->node,
			  err.message);
	else
		log_info("block %s withdrawn by node %s", text, h->node);
}

static void receive_unblock(const struct message *h)
{
	struct replication *s = h->s;
	struct replication_item *item = replication_withdraw(&s->table, REPLICATION_BLOCK,
							     &h->prefix, h->at_us, clock_mono_ns());

	s->unsaved = true;
	if (!item || item->at_us > h->at_us)
		return;
	if (item->theirs) {
		replication_end_theirs(&s->table, item);
		s->changed = true;
	} else if (item->ours) {
		replication_end_ours(&s->table, item);
		unblock_ours(h);
	}
}

/* ------------------------------------------------------------------ bans */

static struct sl_ban_key ban_key_of(const struct sl_prefix *prefix)
{
	return (struct sl_ban_key){ .addr = prefix->addr,
				    .family = prefix->family,
				    .len = prefix->len };
}

static bool is_looked_for(const struct nodes *nodes, const struct sl_prefix *prefix)
{
	const struct sl_rules *rules =
		nodes->running->packets->dp->ops->rules(nodes->running->packets->dp);

	for (u32 i = 0; rules && i < SL_BAN_LENGTHS; i++)
		if (rules->ban_len[prefix->family][i] == prefix->len)
			return true;
	return false;
}

static void put_ban(const struct message *h, struct replication_item *item)
{
	struct nodes *nodes = h->s->nodes;
	struct dp_ban ban = { .key = ban_key_of(&h->prefix) };
	struct sl_ban_state before;
	u64 now_ns = clock_mono_ns(), level = message_u64(h->what, "level");
	char text[SL_PREFIX_TEXT];

	/* A longer ban by this node's data path takes precedence. */
	if (nodes->running->packets->dp->ops->hash_get(nodes->running->packets->dp, DP_BANS,
						       &ban.key, &before) == 0 &&
	    before.until_ns >= item->until_ns)
		return;
	ban.state.since_ns = h->now_us > h->at_us && (h->now_us - h->at_us) * 1000 < now_ns
				     ? now_ns - (h->now_us - h->at_us) * 1000
				     : now_ns;
	ban.state.until_ns = item->until_ns;
	ban.state.slot = bans_limit_id(nodes->running->packets, message_text(h->what, "limit"));
	ban.state.level = level < SL_BAN_LEVELS ? (u32)level : SL_BAN_LEVELS - 1;
	if (dp_ban_insert(nodes->running->packets->dp, &ban) < 0)
		return;
	item->given_ns = item->until_ns;
	nodes->running->packets->bans.read_at_ns = 0;
	h->s->lengths |= !is_looked_for(nodes, &h->prefix);
	log_info("ban of %s added by node %s", prefix_text(h, text), h->node);
}

static void receive_ban(const struct message *h)
{
	struct replication *s = h->s;
	struct replication_item *item;
	enum replication_news news;
	u64 until_us = message_u64(h->what, "until_us");

	if (s->nodes->running->packets->absent || until_us <= h->now_us ||
	    block_check_width(&h->prefix, NULL) < 0 ||
	    protect_has(s->nodes->running->packets, &h->prefix) ||
	    protect_is_exempt(s->nodes->running->policy, &h->prefix))
		return;
	/* Of two bans the longer one counts. */
	item = replication_find(&s->table, REPLICATION_BAN, &h->prefix);
	if (item && item->ours && replication_ns_of(h->now_us, until_us) > item->until_ns)
		replication_end_ours(&s->table, item);
	news = replication_receive(&s->table, REPLICATION_BAN, &h->prefix, h->node, h->at_us,
				   &item);
	if (news == REPLICATION_GONE)
		replication_publish_gone(
			s, REPLICATION_BAN, &h->prefix,
			replication_find(&s->table, REPLICATION_BAN, &h->prefix)->gone_us);
	if (news != REPLICATION_NEW && news != REPLICATION_KNOWN)
		return;
	if (news == REPLICATION_NEW)
		item->until_ns = replication_ns_of(h->now_us, until_us);
	item->hold_ns = item->until_ns;
	if (news == REPLICATION_KNOWN)
		return;
	s->unsaved = true;
	put_ban(h, item);
}

/* Begin of a ban in force that is in no table yet: it is older than this daemon. */
static u64 ban_began_us(const struct message *h)
{
	const struct sl_ban_key key = ban_key_of(&h->prefix);
	struct sl_ban_state state;

	if (h->s->nodes->running->packets->dp->ops->hash_get(h->s->nodes->running->packets->dp,
							     DP_BANS, &key, &state) < 0)
		return 0;
	return replication_us_of(h->now_us, state.since_ns);
}

static void receive_unban(const struct message *h)
{
	struct replication *s = h->s;
	struct replication_item *item = replication_withdraw(&s->table, REPLICATION_BAN, &h->prefix,
							     h->at_us, clock_mono_ns());

	s->unsaved = true;
	if (!item || s->nodes->running->packets->absent)
		return;
	/* A ban that the data path set later is another one. */
	if ((item->ours || item->theirs ? item->at_us : ban_began_us(h)) > h->at_us)
		return;
	replication_end_ours(&s->table, item);
	replication_end_theirs(&s->table, item);
	if (bans_end(s->nodes->running->packets, &h->prefix) > 0)
		log_info("ban withdrawn by node %s", h->node);
}

/* ------------------------------------------------------------------ push-downs */

static bool read_push(const struct message *h, u64 until_us, struct push_message *ret)
{
	const char *name = message_text(h->what, "step");
	u64 count = message_u64(h->what, "count"), period_ns = message_u64(h->what, "period_ns");
	u32 kind = 0;

	while (kind < SL_PUSH_COUNT && strcmp(push_kind_name(kind), name) != 0)
		kind++;
	if (kind == SL_PUSH_COUNT)
		return false;
	*ret = (struct push_message){ .group = h->prefix,
				      .step.kind = kind,
				      .node = h->node,
				      .rule = message_text(h->what, "rule"),
				      .until_ns = replication_ns_of(h->now_us, until_us) };
	if (kind != SL_PUSH_LIMIT)
		return true;
	ret->step.rate =
		(struct rate){ .count = count, .period_ns = period_ns, .unit = RATE_PACKETS };
	return count && count <= RATE_COUNT_MAX && period_ns >= RATE_PERIOD_MIN_NS &&
	       period_ns <= RATE_PERIOD_MAX_NS;
}

/* On a node without an HTTP tier, which has no profile of the source. */
static void put_push(struct nodes *nodes, const struct push_message *message)
{
	u64 most_ns = clock_mono_ns() + PUSH_LEASE_NS;
	struct dp_push push = { .src = message->group,
				.kind = message->step.kind,
				.note = PUSH_NOTE_THEIRS,
				.rate = message->step.rate,
				.until_ns =
					message->until_ns < most_ns ? message->until_ns : most_ns };

	if (!protect_has(nodes->running->packets, &message->group) &&
	    !protect_is_exempt(nodes->running->policy, &message->group))
		ifaces_put_push(nodes->running->packets, &push);
}

static void receive_push(const struct message *h)
{
	u64 until_us = message_u64(h->what, "until_us");
	struct replication *s = h->s;
	struct push_message message;
	struct replication_item *item;
	enum replication_news news;

	if (until_us <= h->now_us || block_check_width(&h->prefix, NULL) < 0 ||
	    !read_push(h, until_us, &message) || s->nodes->running->packets->absent)
		return;
	news = replication_receive(&s->table, REPLICATION_PUSH, &h->prefix, h->node, h->at_us,
				   &item);
	if (news == REPLICATION_GONE)
		replication_publish_gone(
			s, REPLICATION_PUSH, &h->prefix,
			replication_find(&s->table, REPLICATION_PUSH, &h->prefix)->gone_us);
	if (news != REPLICATION_NEW && news != REPLICATION_KNOWN)
		return;
	item->until_ns = item->hold_ns = message.until_ns;
	if (s->nodes->push)
		push_receive(s->nodes->push, &message, clock_mono_ns());
	else
		put_push(s->nodes, &message);
}

static void receive_push_end(const struct message *h)
{
	bool ended = json_is_true(json_object_get(h->what, "ended"));
	struct replication *s = h->s;
	struct replication_item *item;

	/* Expired there: it ends on the nodes that received it from that node. */
	if (ended) {
		item = replication_find(&s->table, REPLICATION_PUSH, &h->prefix);
		if (!item || !item->theirs || strcmp(item->node, h->node) != 0)
			return;
	} else {
		item = replication_withdraw(&s->table, REPLICATION_PUSH, &h->prefix, h->at_us,
					    clock_mono_ns());
		s->unsaved = true;
		if (!item || ((item->ours || item->theirs) && item->at_us > h->at_us))
			return;
	}
	replication_end_ours(&s->table, item);
	replication_end_theirs(&s->table, item);
	if (s->nodes->push)
		push_end(s->nodes->push, &h->prefix, ended, clock_mono_ns());
	else
		dp_push_del(s->nodes->running->packets->dp, &h->prefix);
}

/* ------------------------------------------------------------------ messages */

static void receive_list(struct replication *s, enum replication_kind kind,
			 const struct cluster_message *message, const char *key,
			 void (*handle)(const struct message *h))
{
	struct message h = { .s = s,
			     .kind = kind,
			     .node = message->node,
			     .now_us = (message->sent_utc_ns + message->age_ns) / 1000 };
	const char *reason;
	json_t *what;
	size_t i;

	json_array_foreach(json_object_get(message->body, key), i, what) {
		h.what = what;
		h.at_us = message_u64(what, "at_us");
		/* No entry begins in the future: it could not be withdrawn. */
		if (!h.at_us || h.at_us > h.now_us + SL_NS_PER_SEC / 1000 ||
		    sl_prefix_parse(message_text(what, "source"), &h.prefix, &reason) < 0)
			continue;
		handle(&h);
	}
}

static void receive_message(struct replication *s, enum replication_kind kind,
			    const struct cluster_message *message,
			    void (*add)(const struct message *h),
			    void (*del)(const struct message *h))
{
	replication_time_known(s);
	receive_list(s, kind, message, "del", del);
	receive_list(s, kind, message, "add", add);
	replication_flush(s);
	if (s->changed || s->lengths)
		replication_install_soon(s);
}

static void on_blocks(void *arg, const struct cluster_message *message)
{
	receive_message(arg, REPLICATION_BLOCK, message, receive_block, receive_unblock);
}

static void on_bans(void *arg, const struct cluster_message *message)
{
	receive_message(arg, REPLICATION_BAN, message, receive_ban, receive_unban);
}

static void on_pushes(void *arg, const struct cluster_message *message)
{
	receive_message(arg, REPLICATION_PUSH, message, receive_push, receive_push_end);
}

void replication_listen(struct replication *s)
{
	cluster_on(s->nodes->cluster, "blocks", on_blocks, s);
	cluster_on(s->nodes->cluster, "bans", on_bans, s);
	cluster_on(s->nodes->cluster, "pushes", on_pushes, s);
}
