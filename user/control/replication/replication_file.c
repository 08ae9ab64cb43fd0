// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * replication_file.c - state_dir/replicated.json: other nodes' entries and withdrawals, over a
 * restart; see replication.h. Written at most once a second. A damaged file is renamed: the other
 * nodes publish everything again.
 */
#include "control/replication/replication_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/file.h"
#include "lib/log.h"
#include "conf/config_text.h"

#define REPLICATION_FILE_NAME "replicated.json"

static const char *const kind_key[REPLICATION_KIND_COUNT] = { "block", "ban", "push" };

/* ------------------------------------------------------------------ writing */

struct writing {
	json_t *entries;
	u64 mono_ns, utc_ns;
};

static json_t *saved_utc(const struct writing *w, u64 mono_ns)
{
	return json_integer(mono_ns == REPLICATION_FOREVER
				    ? 0
				    : (json_int_t)(w->utc_ns + (mono_ns - w->mono_ns)));
}

static void add_item(struct replication_item *item, void *arg)
{
	struct writing *w = arg;
	char text[SL_PREFIX_TEXT];
	json_t *entry;

	if (!item->theirs && !item->gone_us)
		return;
	entry = json_pack("{s:s, s:s}", "kind", kind_key[item->kind], "source",
			  sl_prefix_format(&item->prefix, text, sizeof(text)));
	if (item->theirs) {
		json_object_set_new(entry, "node", json_string(item->node));
		json_object_set_new(entry, "at_us", json_integer((json_int_t)item->at_us));
		json_object_set_new(entry, "until_utc_ns", saved_utc(w, item->until_ns));
		json_object_set_new(entry, "hold_utc_ns", saved_utc(w, item->hold_ns));
		json_object_set_new(entry, "given_ns", json_integer((json_int_t)item->given_ns));
		json_object_set_new(entry, "reason", json_string(item->reason));
	}
	if (item->gone_us) {
		json_object_set_new(entry, "gone_us", json_integer((json_int_t)item->gone_us));
		json_object_set_new(entry, "gone_here", json_boolean(item->gone_here));
		json_object_set_new(entry, "gone_untimed", json_boolean(item->gone_untimed));
		json_object_set_new(entry, "gone_utc_ns", saved_utc(w, item->gone_ns));
	}
	json_array_append_new(w->entries, entry);
}

void replication_file_write(struct replication *s)
{
	struct writing w = { json_array(), clock_mono_ns(), clock_utc_ns() };
	json_t *file = json_pack("{s:i, s:o}", "version", FILE_VERSION, "entries", w.entries);
	char *path = file_join(s->nodes->running->state_dir, REPLICATION_FILE_NAME), *text = NULL;
	struct sl_err err;
	int r;

	replication_each(&s->table, add_item, &w, w.mono_ns);
	text = file ? json_dumps(file, JSON_COMPACT) : NULL;
	r = path && text ? file_replace(path, NULL, text, strlen(text), 0640, &err)
			 : sl_err_set(&err, ENOMEM, "out of memory");
	if (r < 0 && !s->store_failed)
		log_error(
			"cluster: cannot save other nodes' blocks, bans and push-downs, a restart would lose them: %s",
			err.message);
	s->store_failed = r < 0;
	/* Tried again when there is space. */
	s->unsaved = r < 0;
	s->saved_ns = w.mono_ns;
	json_decref(file);
	free(text);
	free(path);
}

/* ------------------------------------------------------------------ reading */

static u64 saved_u64(const json_t *entry, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(entry, key));

	return value > 0 ? (u64)value : 0;
}

static u64 saved_mono(const json_t *entry, const char *key)
{
	u64 utc_ns = saved_u64(entry, key), now_utc_ns = clock_utc_ns();

	if (!utc_ns)
		return REPLICATION_FOREVER;
	return utc_ns > now_utc_ns ? clock_mono_ns() + (utc_ns - now_utc_ns) : 0;
}

/* A past moment on this boot's clock; if before the boot: the boot. */
static u64 saved_past(const json_t *entry, const char *key)
{
	u64 now_utc_ns = clock_utc_ns(), now_ns = clock_mono_ns(), utc_ns = saved_u64(entry, key);
	u64 age_ns = now_utc_ns > utc_ns ? now_utc_ns - utc_ns : 0;

	return now_ns > age_ns ? now_ns - age_ns : 0;
}

static void read_theirs(struct replication *s, const json_t *entry, enum replication_kind kind,
			const struct sl_prefix *prefix)
{
	const char *node = json_string_value(json_object_get(entry, "node"));
	const char *reason = json_string_value(json_object_get(entry, "reason"));
	u64 until_ns = saved_mono(entry, "until_utc_ns"),
	    hold_ns = saved_mono(entry, "hold_utc_ns");
	struct replication_item *item;

	if (!node || !*node || strlen(node) > CLUSTER_NODE_MAX || !until_ns || !hold_ns ||
	    replication_receive(&s->table, kind, prefix, node, saved_u64(entry, "at_us"), &item) !=
		    REPLICATION_NEW)
		return;
	item->until_ns = until_ns;
	/* Counted from now: the others may have been unavailable as long as this node. */
	item->hold_ns =
		kind == REPLICATION_BLOCK ? clock_mono_ns() + REPLICATION_BLOCK_HOLD_NS : hold_ns;
	item->given_ns = saved_u64(entry, "given_ns");
	if (reason && strlen(reason) < sizeof(item->reason) &&
	    config_text_printable(reason, strlen(reason)))
		strcpy(item->reason, reason);
}

static void read_saved(struct replication *s, const json_t *entry)
{
	const char *name = json_string_value(json_object_get(entry, "kind")), *reason;
	const char *text = json_string_value(json_object_get(entry, "source"));
	u64 gone_us = saved_u64(entry, "gone_us");
	struct replication_item *item = NULL;
	struct sl_prefix prefix;
	u32 kind = 0;

	while (name && kind < REPLICATION_KIND_COUNT && strcmp(kind_key[kind], name) != 0)
		kind++;
	if (!name || kind == REPLICATION_KIND_COUNT || !text ||
	    sl_prefix_parse(text, &prefix, &reason) < 0)
		return;
	if (gone_us)
		item = replication_withdraw(&s->table, kind, &prefix, gone_us, clock_mono_ns());
	if (item) {
		item->gone_ns = saved_past(entry, "gone_utc_ns");
		item->gone_here = json_is_true(json_object_get(entry, "gone_here"));
		item->gone_untimed = json_is_true(json_object_get(entry, "gone_untimed"));
		s->untimed |= item->gone_untimed;
	}
	read_theirs(s, entry, kind, &prefix);
}

void replication_file_read(struct replication *s)
{
	json_t *file = file_load_json(
		       s->nodes->running->state_dir, REPLICATION_FILE_NAME,
		       "entries of other nodes are missing until these publish them again"),
	       *entry;
	size_t i;

	json_array_foreach(json_object_get(file, "entries"), i, entry)
		read_saved(s, entry);
	json_decref(file);
}
