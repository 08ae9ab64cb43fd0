// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* feeds.c - see feeds.h. */
#include "control/running/feeds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config_text.h"
#include "control/running/entries.h"
#include "control/running/running.h"
#include "lib/clock.h"
#include "lib/file.h"
#include "lib/json.h"
#include "lib/log.h"

#define FEEDS_FILE "feeds.json"

struct feeds {
	struct feed feed[FEEDS_MAX];
	size_t count;
	bool dirty;
};

static const char *const kind_name[FEED_KINDS] = { "set", "origin" };

const char *feed_kind_name(enum feed_kind kind)
{
	return kind_name[kind];
}

/* ------------------------------------------------------------------ the table */

static struct feed *find(struct feeds *feeds, enum feed_kind kind, const char *name)
{
	for (size_t i = 0; feeds && i < feeds->count; i++)
		if (feeds->feed[i].kind == kind && !strcmp(feeds->feed[i].name, name))
			return &feeds->feed[i];
	return NULL;
}

static u64 latest_ns(const struct feed *feed)
{
	u64 at = feed->changed_utc_ns;

	at = feed->checked_utc_ns > at ? feed->checked_utc_ns : at;
	return feed->failed_utc_ns > at ? feed->failed_utc_ns : at;
}

/* Its place: its own, a new one, or that of the feed that has the oldest news. */
static struct feed *place(struct feeds *feeds, enum feed_kind kind, const char *name)
{
	struct feed *feed = find(feeds, kind, name);

	if (feed)
		return feed;
	if (feeds->count < FEEDS_MAX) {
		feed = &feeds->feed[feeds->count++];
	} else {
		feed = &feeds->feed[0];
		for (size_t i = 1; i < FEEDS_MAX; i++)
			if (latest_ns(&feeds->feed[i]) < latest_ns(feed))
				feed = &feeds->feed[i];
	}
	*feed = (struct feed){ .kind = kind };
	snprintf(feed->name, sizeof(feed->name), "%s", name);
	return feed;
}

const struct feed *feeds_find(const struct running *run, enum feed_kind kind, const char *name)
{
	return find(run->feeds, kind, name);
}

size_t feeds_count(const struct running *run)
{
	return run->feeds ? run->feeds->count : 0;
}

const struct feed *feeds_at(const struct running *run, size_t at)
{
	return &run->feeds->feed[at];
}

size_t feed_prefixes(const struct running *run, const struct feed *feed)
{
	const struct set_def *set;

	if (feed->kind == FEED_ORIGIN)
		return entries_of_origin(run, feed->name);
	set = policy_find_set(run->policy, feed->name);
	return set ? set->count : 0;
}

/* ------------------------------------------------------------------ the file */

static u64 time_of(const json_t *json, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(json, key));

	return value > 0 ? (u64)value : 0;
}

static void text_of(const json_t *json, const char *key, char *buf, size_t size)
{
	const char *text = json_string_value(json_object_get(json, key));

	snprintf(buf, size, "%s", text ? text : "");
}

static void load(struct feeds *feeds, const char *state_dir)
{
	json_t *file = file_load_json(state_dir, FEEDS_FILE,
				      "the age of sets and feeds is not known"),
	       *item;
	size_t i;

	json_array_foreach(json_object_get(file, "feeds"), i, item) {
		const char *name = json_string_value(json_object_get(item, "name"));
		const char *kind = json_string_value(json_object_get(item, "kind"));
		struct feed *feed;

		if (!name || !kind)
			continue;
		feed = place(feeds, !strcmp(kind, kind_name[FEED_ORIGIN]) ? FEED_ORIGIN : FEED_SET,
			     name);
		feed->changed_utc_ns = time_of(item, "changed_ns");
		feed->checked_utc_ns = time_of(item, "checked_ns");
		feed->failed_utc_ns = time_of(item, "failed_ns");
		text_of(item, "source", feed->source, sizeof(feed->source));
		text_of(item, "error", feed->error, sizeof(feed->error));
	}
	json_decref(file);
}

static void save(struct running *run)
{
	json_t *list = json_array(), *file;
	struct sl_err err;
	char *text, *path;

	for (size_t i = 0; i < run->feeds->count; i++) {
		const struct feed *feed = &run->feeds->feed[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:s}", "name",
						feed->name, "kind", kind_name[feed->kind],
						"changed_ns", json_u64(feed->changed_utc_ns),
						"checked_ns", json_u64(feed->checked_utc_ns),
						"failed_ns", json_u64(feed->failed_utc_ns),
						"source", feed->source, "error", feed->error));
	}
	file = json_pack("{s:i, s:o}", "version", FILE_VERSION, "feeds", list);
	text = json_dumps(file, JSON_INDENT(1));
	path = file_join(run->state_dir, FEEDS_FILE);
	if (text && path && file_replace(path, NULL, text, strlen(text), 0600, &err) < 0)
		log_warn("the age of sets and feeds is not written: %s", err.message);
	run->feeds->dirty = false;
	json_decref(file);
	free(text);
	free(path);
}

void feeds_start(struct running *run)
{
	run->feeds = calloc(1, sizeof(*run->feeds));
	if (run->feeds)
		load(run->feeds, run->state_dir);
}

void feeds_tick(struct running *run)
{
	if (run->feeds && run->feeds->dirty)
		save(run);
}

void feeds_step(struct running *run, s64 step_ns)
{
	for (size_t i = 0; i < feeds_count(run); i++) {
		u64 *at[] = { &run->feeds->feed[i].changed_utc_ns,
			      &run->feeds->feed[i].checked_utc_ns,
			      &run->feeds->feed[i].failed_utc_ns };

		for (size_t k = 0; k < sizeof(at) / sizeof(at[0]); k++)
			if (*at[k])
				*at[k] += (u64)step_ns;
		run->feeds->dirty = true;
	}
	feeds_tick(run);
}

void feeds_free(struct running *run)
{
	feeds_tick(run);
	free(run->feeds);
	run->feeds = NULL;
}

/* ------------------------------------------------------------------ news of them */

void feeds_changed(struct running *run, enum feed_kind kind, const char *name)
{
	if (!run->feeds)
		return;
	place(run->feeds, kind, name)->changed_utc_ns = clock_utc_ns();
	run->feeds->dirty = true;
}

void feeds_forget(struct running *run, enum feed_kind kind, const char *name)
{
	struct feed *feed = find(run->feeds, kind, name);

	if (!feed)
		return;
	*feed = run->feeds->feed[--run->feeds->count];
	run->feeds->dirty = true;
}

static int check_text(const char *what, const char *text, size_t room, struct sl_err *err)
{
	if (!text || (strlen(text) < room && config_text_printable(text, strlen(text))))
		return 0;
	return sl_err_set(err, EINVAL,
			  "invalid '%s'; accepted: up to %zu bytes of text on one line", what,
			  room - 1);
}

int feeds_report(struct running *run, enum feed_kind kind, const char *name, const char *source,
		 const char *error, struct sl_err *err)
{
	struct feed *feed;
	int r = 0;

	if (kind == FEED_SET && !policy_find_set(run->policy, name))
		return sl_err_set(err, ENOENT,
				  "there is no set '%.63s'; sluicectl set list shows all sets",
				  name);
	if (kind == FEED_ORIGIN && (!name[0] || strlen(name) >= ENTRY_ORIGIN_MAX ||
				    name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.")]))
		return sl_err_set(err, EINVAL,
				  "invalid origin '%.80s': accepted: 1 to %d characters of a-z, "
				  "0-9, '-', '_' and '.'",
				  name, ENTRY_ORIGIN_MAX - 1);
	r = check_text("source", source, sizeof(feed->source), err);
	if (!r)
		r = check_text("error", error, sizeof(feed->error), err);
	if (r < 0 || !run->feeds)
		return r;
	feed = place(run->feeds, kind, name);
	if (source)
		snprintf(feed->source, sizeof(feed->source), "%s", source);
	snprintf(feed->error, sizeof(feed->error), "%s", error ? error : "");
	feed->failed_utc_ns = error ? clock_utc_ns() : 0;
	if (!error)
		feed->checked_utc_ns = clock_utc_ns();
	save(run);
	return 0;
}
