// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * history.c - see history.h: what is recorded, and when. history_db.c has the database.
 *
 * The minute in progress is in memory: the heaviest of its sources by Space-Saving (sluice/heavy.h),
 * over the drops that were reported.
 */
#include "packet/observe/history.h"

#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "packet/observe/history_db.h"

#define MINUTE_NS (60 * SL_NS_PER_SEC)
#define HOUR_NS (60 * MINUTE_NS)
#define SOURCES 256		/* of a minute */
#define HEAVIEST 10
#define SEEN_BITS 12
#define AGAIN_NS (10 * MINUTE_NS)	/* the same first refusal is one row in this time */

/* What a source was refused by in this minute. */
struct minute_source {
	struct sl_prefix source;
	char name[OBSERVE_NAME];
	const char *reason;
	u64 packets, missed;		/* at least; and at most so many more */
	u64 first_utc_ns;
};

struct seen {
	u64 hash, at_ns;
};

/* A kind's part of the rows, so that a flood of one leaves room for the others. */
enum part {
	PART_DROPS,
	PART_REFUSALS,
	PART_CHANGES,
	PARTS,
};
static const double part_share[PARTS] = { 0.5, 0.3, 0.2 };

struct budget {
	double rows;
	u64 filled_ns;
};

struct history {
	struct history_db *db;
	double budget_max, budget_per_ns;
	struct budget budget[PARTS];
	u64 minute_ns;				/* begin of the minute in progress */
	struct minute_source minute[SOURCES];
	size_t sources;
	u64 reported, not_reported;		/* drops of the minute: as events, and not */
	u64 left_out[OBSERVED_KINDS];		/* of the minute */
	struct seen seen[1 << SEEN_BITS];
	struct history_stats stats;
};

/* ------------------------------------------------------------------ the budget */

static enum part part_of(enum observed_kind kind)
{
	if (kind == OBSERVED_DROP)
		return PART_DROPS;
	return kind == OBSERVED_OVER || kind == OBSERVED_REFUSED || kind == OBSERVED_RELEASED ?
		PART_REFUSALS : PART_CHANGES;
}

/* Takes a row, where more than `reserve` of the part's are left. */
static bool take_row(struct history *h, enum part part, double reserve, u64 now_ns)
{
	struct budget *b = &h->budget[part];

	if (now_ns > b->filled_ns)
		b->rows += (double)(now_ns - b->filled_ns) * h->budget_per_ns * part_share[part];
	if (b->rows > h->budget_max * part_share[part])
		b->rows = h->budget_max * part_share[part];
	b->filled_ns = now_ns;
	if (b->rows - 1 < h->budget_max * part_share[part] * reserve)
		return false;
	b->rows -= 1;
	return true;
}

static void write_row(struct history *h, const struct observed *event, double reserve)
{
	if (!take_row(h, part_of(event->kind), reserve, event->utc_ns)) {
		h->left_out[event->kind]++;
		h->stats.left_out++;
	} else if (history_db_add(h->db, event) < 0) {
		h->stats.errors++;
	} else {
		h->stats.rows++;
	}
}

/* ------------------------------------------------------------------ the minute */

static u64 hash_of(const struct observed *event)
{
	u64 hash = event->source.addr.hi * 0x9e3779b97f4a7c15ULL ^ event->source.addr.lo ^ event->kind;

	for (const char *c = event->name; *c; c++)
		hash = (hash ^ (u8)*c) * 0x100000001b3ULL;
	hash = (hash ^ 0xff) * 0x100000001b3ULL;
	for (const char *c = event->value; *c; c++)
		hash = (hash ^ (u8)*c) * 0x100000001b3ULL;
	return hash ^ hash >> 32;
}

/* Whether the same was recorded a short while ago. */
static bool is_known(struct history *h, const struct observed *event)
{
	u64 hash = hash_of(event);
	struct seen *seen = &h->seen[hash & ((1 << SEEN_BITS) - 1)];

	if (seen->hash == hash && event->utc_ns - seen->at_ns < AGAIN_NS)
		return true;
	*seen = (struct seen){ hash, event->utc_ns };
	return false;
}

/* The source's place in the minute: its own, a free one, or the lightest's, whose count it inherits. */
static struct minute_source *place_of(struct history *h, const struct observed *event)
{
	struct minute_source *lightest = &h->minute[0], *at;
	u64 missed;

	for (size_t i = 0; i < h->sources; i++) {
		at = &h->minute[i];
		if (sl_prefix_equal(&at->source, &event->source) && at->reason == event->reason &&
		    !strcmp(at->name, event->name))
			return at;
		if (at->packets + at->missed < lightest->packets + lightest->missed)
			lightest = at;
	}
	missed = h->sources < SOURCES ? 0 : lightest->packets + lightest->missed;
	at = h->sources < SOURCES ? &h->minute[h->sources++] : lightest;
	*at = (struct minute_source){ .source = event->source, .reason = event->reason,
				      .first_utc_ns = event->utc_ns, .missed = missed };
	memcpy(at->name, event->name, sizeof(at->name));
	return at;
}

static int by_packets(const void *pa, const void *pb)
{
	const struct minute_source *a = pa, *b = pb;

	return (a->packets < b->packets) - (a->packets > b->packets);
}

/* Writes the minute: a row for each source, the heaviest first; light ones leave half of the budget. */
static void end_minute(struct history *h, u64 now_utc_ns)
{
	double scale = h->reported ? 1 + (double)h->not_reported / (double)h->reported : 1;

	qsort(h->minute, h->sources, sizeof(h->minute[0]), by_packets);
	for (size_t i = 0; i < h->sources; i++) {
		const struct minute_source *from = &h->minute[i];
		struct observed event = { .kind = OBSERVED_DROP, .has_source = true,
					  .source = from->source, .reason = from->reason,
					  .utc_ns = from->first_utc_ns,
					  .packets = (u64)((double)from->packets * scale + 0.5) };

		memcpy(event.name, from->name, sizeof(event.name));
		write_row(h, &event, i < HEAVIEST ? 0 : 0.5);
	}
	/* More sources than places: most of the light ones are not there. */
	if (h->sources == SOURCES)
		h->left_out[OBSERVED_DROP] += h->minute[SOURCES - 1].missed;
	for (int kind = 0; kind < OBSERVED_KINDS; kind++)
		if (h->left_out[kind])
			history_db_add_left_out(h->db, h->minute_ns, (enum observed_kind)kind, h->left_out[kind]);
	memset(h->left_out, 0, sizeof(h->left_out));
	h->sources = 0;
	h->reported = h->not_reported = 0;
	h->minute_ns = now_utc_ns - now_utc_ns % MINUTE_NS;
}

/* ------------------------------------------------------------------ the interface */

void history_open(const char *state_dir, u64 size, u64 age_ns, u64 now_utc_ns, struct history **ret)
{
	struct history *h = size ? calloc(1, sizeof(*h)) : NULL;

	*ret = NULL;
	if (!h)
		return;
	h->db = history_db_open(state_dir, size, age_ns, now_utc_ns);
	if (!h->db) {
		free(h);
		return;
	}
	h->budget_per_ns = (double)size / HISTORY_ROW_BYTES / (double)age_ns;
	h->budget_max = h->budget_per_ns * (double)(24 * HOUR_NS);
	if (h->budget_max > (double)size / HISTORY_ROW_BYTES / 2)
		h->budget_max = (double)size / HISTORY_ROW_BYTES / 2;
	for (int part = 0; part < PARTS; part++)
		h->budget[part] = (struct budget){ h->budget_max * part_share[part], now_utc_ns };
	h->minute_ns = now_utc_ns - now_utc_ns % MINUTE_NS;
	*ret = h;
}

void history_close(struct history *h, u64 now_utc_ns)
{
	if (!h)
		return;
	end_minute(h, now_utc_ns);
	history_db_close(h->db, now_utc_ns);
	free(h);
}

void history_note(struct history *h, const struct observed *event)
{
	struct minute_source *at;

	if (!h)
		return;
	if (event->kind == OBSERVED_DROP) {
		at = place_of(h, event);
		at->packets += event->packets;
	} else if ((event->kind != OBSERVED_OVER && event->kind != OBSERVED_REFUSED) ||
		   !is_known(h, event)) {
		write_row(h, event, 0);
	}
}

void history_scale(struct history *h, u64 reported, u64 not_reported)
{
	if (!h)
		return;
	h->reported += reported;
	h->not_reported += not_reported;
}

void history_tick(struct history *h, u64 now_utc_ns)
{
	if (!h)
		return;
	/* UTC may have been set back. */
	if (now_utc_ns < h->minute_ns || now_utc_ns - h->minute_ns >= MINUTE_NS) {
		end_minute(h, now_utc_ns);
		history_db_minute(h->db, now_utc_ns);
	}
	history_db_commit(h->db);
}

int history_read(struct history *h, const struct history_query *query, json_t **ret,
		 struct sl_err *err)
{
	return history_db_read(h->db, query, ret, err);
}

void history_stats(struct history *h, struct history_stats *ret)
{
	*ret = (struct history_stats){ 0 };
	if (!h)
		return;
	*ret = h->stats;
	history_db_size(h->db, &ret->bytes, &ret->oldest_utc_ns);
}
