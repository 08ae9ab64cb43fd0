// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * history.c - see history.h: what is recorded, and when. history_db.c has the database.
 *
 * The minute in progress is in memory: the heaviest of its sources by Space-Saving
 * (sluice/heavy.h), over the drops that were reported.
 */
#include "packet/observe/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "packet/observe/history_db.h"

#define MINUTE_NS (60 * SL_NS_PER_SEC)
#define HOUR_NS (60 * MINUTE_NS)
#define SOURCES 256 /* of a minute */
#define HEAVIEST 10
#define SEEN_BITS 12
#define LEFT_OUT_NAMES 8 /* of a minute; further ones are counted without their name */
#define TRAFFIC_LEAST 60 /* packets in a minute */

/* What a source was refused by in this minute. */
struct minute_source {
	struct sl_prefix source;
	char name[OBSERVE_NAME];
	const char *reason;
	u64 packets, missed; /* at least; and at most so many more */
	u64 noted;	     /* since the last history_scale(), not in `packets` yet */
	u64 first_utc_ns;
	u16 counter;
	bool estimated;
};

/* What a source sent in this minute. */
struct minute_traffic {
	struct history_traffic sum;
	u64 missed; /* inherited, as above: packets */
};

struct left_out {
	enum observed_kind kind;
	char name[OBSERVE_NAME]; /* "": of others */
	u64 count;
};

struct seen {
	u64 hash, at_ns;
};

/* A kind's part of the rows, so that a flood of one leaves room for the others. */
enum part {
	PART_DROPS,
	PART_REFUSALS,
	PART_CHANGES,
	PART_TRAFFIC,
	PARTS,
};
static const double part_share[PARTS] = { 0.4, 0.25, 0.15, 0.2 };

struct budget {
	double rows;
	u64 filled_ns;
};

struct history {
	struct history_db *db;
	double budget_max, budget_per_ns;
	struct budget budget[PARTS];
	u64 minute_ns; /* begin of the minute in progress */
	struct minute_source minute[SOURCES];
	size_t sources;
	struct minute_traffic traffic[SOURCES];
	size_t senders;
	struct left_out
		left_out[LEFT_OUT_NAMES + OBSERVED_KINDS]; /* of the minute; not written yet */
	size_t left_outs;
	struct seen seen[1 << SEEN_BITS];
	struct history_stats stats;
};

/* ------------------------------------------------------------------ the budget */

static enum part part_of(enum observed_kind kind)
{
	if (kind == OBSERVED_DROP)
		return PART_DROPS;
	if (kind == OBSERVED_TRAFFIC)
		return PART_TRAFFIC;
	return kind == OBSERVED_OVER || kind == OBSERVED_REFUSED || kind == OBSERVED_RELEASED
		       ? PART_REFUSALS
		       : PART_CHANGES;
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

static struct left_out *left_out_of(struct history *h, enum observed_kind kind, const char *name)
{
	size_t named = 0;

	for (size_t i = 0; i < h->left_outs; i++) {
		if (h->left_out[i].kind == kind && !strcmp(h->left_out[i].name, name))
			return &h->left_out[i];
		named += h->left_out[i].name[0] != '\0';
	}
	if (name[0] && named == LEFT_OUT_NAMES)
		return left_out_of(h, kind, "");
	h->left_out[h->left_outs] = (struct left_out){ .kind = kind };
	snprintf(h->left_out[h->left_outs].name, OBSERVE_NAME, "%s", name);
	return &h->left_out[h->left_outs++];
}

void history_left_out(struct history *h, enum observed_kind kind, const char *name, u64 count)
{
	if (!h)
		return;
	left_out_of(h, kind, name ? name : "")->count += count;
	h->stats.left_out += count;
}

/* Each second, so that a crash loses no more of it. */
static void write_left_out(struct history *h)
{
	for (size_t i = 0; i < h->left_outs; i++) {
		if (h->left_out[i].count)
			history_db_add_left_out(h->db, h->minute_ns, h->left_out[i].kind,
						h->left_out[i].name, h->left_out[i].count);
		h->left_out[i].count = 0;
	}
}

static void write_row(struct history *h, const struct observed *event, double reserve)
{
	if (!take_row(h, part_of(event->kind), reserve, event->utc_ns)) {
		history_left_out(h, event->kind, event->name, 1);
	} else if (history_db_add(h->db, event) < 0) {
		h->stats.errors++;
	} else {
		h->stats.rows++;
	}
}

/* ------------------------------------------------------------------ the minute */

static u64 hash_of(const struct observed *event)
{
	u64 hash = hash_bytes(hash_seed(), event->kind, &event->source.addr,
			      sizeof(event->source.addr));

	hash = hash_bytes(hash_seed(), hash, event->name, strlen(event->name));
	return hash_bytes(hash_seed(), hash, event->value, strlen(event->value));
}

/* Whether the same was recorded a short while ago. */
static bool is_known(struct history *h, const struct observed *event)
{
	u64 hash = hash_of(event);
	struct seen *seen = &h->seen[hash & ((1 << SEEN_BITS) - 1)];

	if (seen->hash == hash && event->utc_ns - seen->at_ns < HISTORY_AGAIN_NS)
		return true;
	*seen = (struct seen){ hash, event->utc_ns };
	return false;
}

static u64 drops_rank(const struct minute_source *at)
{
	return at->packets + at->noted + at->missed;
}

/* The source's place in the minute: its own, a free one, or the lightest's, whose count it
 * inherits. */
static struct minute_source *place_of(struct history *h, const struct observed *event)
{
	struct minute_source *lightest = &h->minute[0], *at;
	u64 missed;

	for (size_t i = 0; i < h->sources; i++) {
		at = &h->minute[i];
		if (sl_prefix_equal(&at->source, &event->source) && at->reason == event->reason &&
		    !strcmp(at->name, event->name))
			return at;
		if (drops_rank(at) < drops_rank(lightest))
			lightest = at;
	}
	missed = h->sources < SOURCES ? 0 : drops_rank(lightest);
	at = h->sources < SOURCES ? &h->minute[h->sources++] : lightest;
	*at = (struct minute_source){ .source = event->source,
				      .reason = event->reason,
				      .first_utc_ns = event->utc_ns,
				      .missed = missed,
				      .counter = event->counter };
	memcpy(at->name, event->name, sizeof(at->name));
	return at;
}

static int by_packets(const void *pa, const void *pb)
{
	const struct minute_source *a = pa, *b = pb;

	return (a->packets < b->packets) - (a->packets > b->packets);
}

/* ------------------------------------------------------------------ who sent */

static u64 traffic_rank(const struct minute_traffic *at)
{
	return at->sum.passed + at->sum.dropped + at->missed;
}

static struct minute_traffic *traffic_of(struct history *h, const struct sl_prefix *source)
{
	struct minute_traffic *lightest = &h->traffic[0];
	u64 missed;

	for (size_t i = 0; i < h->senders; i++) {
		if (sl_prefix_equal(&h->traffic[i].sum.source, source))
			return &h->traffic[i];
		if (traffic_rank(&h->traffic[i]) < traffic_rank(lightest))
			lightest = &h->traffic[i];
	}
	missed = h->senders < SOURCES ? 0 : traffic_rank(lightest);
	if (h->senders < SOURCES)
		lightest = &h->traffic[h->senders++];
	*lightest = (struct minute_traffic){ .sum.source = *source, .missed = missed };
	return lightest;
}

void history_look(struct history *h, const struct history_traffic *traffic, size_t count)
{
	for (size_t i = 0; h && i < count; i++) {
		struct minute_traffic *at = traffic_of(h, &traffic[i].source);

		at->sum.passed += traffic[i].passed;
		at->sum.dropped += traffic[i].dropped;
		at->sum.bytes += traffic[i].bytes;
	}
}

static int by_traffic(const void *pa, const void *pb)
{
	const struct minute_traffic *a = pa, *b = pb;
	u64 x = a->sum.passed + a->sum.dropped, y = b->sum.passed + b->sum.dropped;

	return (x < y) - (x > y);
}

/* What the rows of drops of the same source state: 0 if there are none. */
static u64 drops_of(const struct history *h, const struct sl_prefix *source, bool *ret_estimated)
{
	u64 sum = 0;

	*ret_estimated = false;
	for (size_t i = 0; i < h->sources; i++)
		if (sl_prefix_contains(source, &h->minute[i].source)) {
			sum += h->minute[i].packets;
			*ret_estimated |= h->minute[i].estimated;
		}
	return sum;
}

/* To three digits: looks sample, and a minute does not end with one. */
static u64 rounded(u64 value)
{
	u64 unit = 1;

	while (value / unit >= 1000)
		unit *= 10;
	return (value + unit / 2) / unit * unit;
}

/*
 * The heaviest of the minute, each only where the heavier ones of the minutes to come have room,
 * too. What is left out is not counted: those are the lighter ones.
 */
static void end_traffic(struct history *h)
{
	qsort(h->traffic, h->senders, sizeof(h->traffic[0]), by_traffic);
	for (size_t i = 0; i < h->senders && i < HEAVIEST; i++) {
		const struct history_traffic *sum = &h->traffic[i].sum;
		bool estimated;
		u64 drops = drops_of(h, &sum->source, &estimated), passed = rounded(sum->passed);
		u64 dropped = !drops ? rounded(sum->dropped) : estimated ? rounded(drops) : drops;
		struct observed event = { .kind = OBSERVED_TRAFFIC,
					  .has_source = true,
					  .source = sum->source,
					  .utc_ns = h->minute_ns,
					  .packets = passed + dropped,
					  .estimated = true };

		if (event.packets < TRAFFIC_LEAST ||
		    !take_row(h, PART_TRAFFIC, (double)i / HEAVIEST, h->minute_ns + MINUTE_NS))
			break;
		snprintf(event.detail, sizeof(event.detail),
			 "%llu passed, %llu dropped, %llu bytes", passed, dropped,
			 rounded(sum->bytes));
		if (history_db_add(h->db, &event) < 0)
			h->stats.errors++;
		else
			h->stats.rows++;
	}
	h->senders = 0;
}

/* Writes the minute: a row for each source, the heaviest first; light ones leave half of the
 * budget. */
static void end_minute(struct history *h, u64 now_utc_ns)
{
	for (size_t i = 0; i < h->sources; i++) {
		h->minute[i].packets += h->minute[i].noted;
		h->minute[i].noted = 0;
	}
	qsort(h->minute, h->sources, sizeof(h->minute[0]), by_packets);
	for (size_t i = 0; i < h->sources; i++) {
		const struct minute_source *from = &h->minute[i];
		struct observed event = { .kind = OBSERVED_DROP,
					  .has_source = true,
					  .source = from->source,
					  .reason = from->reason,
					  .utc_ns = from->first_utc_ns,
					  .packets = from->packets,
					  .estimated = from->estimated };

		memcpy(event.name, from->name, sizeof(event.name));
		write_row(h, &event, i < HEAVIEST ? 0 : 0.5);
	}
	/* More sources than places: most of the light ones are not there. */
	if (h->sources == SOURCES && h->minute[SOURCES - 1].missed)
		history_left_out(h, OBSERVED_DROP, NULL, h->minute[SOURCES - 1].missed);
	end_traffic(h);
	write_left_out(h);
	h->left_outs = 0;
	h->sources = 0;
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
		at->noted += event->packets;
		at->estimated |= event->packets > 1;
	} else if ((event->kind != OBSERVED_OVER && event->kind != OBSERVED_REFUSED) ||
		   !is_known(h, event)) {
		write_row(h, event, 0);
	}
}

void history_scale(struct history *h, const double *factor, bool estimated)
{
	for (size_t i = 0; h && i < h->sources; i++) {
		struct minute_source *at = &h->minute[i];

		if (!at->noted)
			continue;
		at->packets += (u64)((double)at->noted * factor[at->counter] + 0.5);
		at->estimated |= estimated;
		at->noted = 0;
	}
}

void history_add(struct history *h, u16 counter, u64 count)
{
	u64 sum = 0;

	for (size_t i = 0; h && i < h->sources; i++)
		sum += h->minute[i].counter == counter ? h->minute[i].packets : 0;
	for (size_t i = 0; sum && i < h->sources; i++) {
		struct minute_source *at = &h->minute[i];

		if (at->counter != counter)
			continue;
		at->packets += (u64)((double)count * (double)at->packets / (double)sum + 0.5);
		at->estimated = true;
	}
}

void history_step(struct history *h, s64 step_ns)
{
	if (!h)
		return;
	for (int part = 0; part < PARTS; part++)
		h->budget[part].filled_ns += (u64)step_ns;
	history_db_step(h->db, step_ns);
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
	write_left_out(h);
	history_db_commit(h->db);
}

int history_read(struct history *h, const struct history_query *query, json_t **ret,
		 struct sl_err *err)
{
	write_left_out(h);
	return history_db_read(h->db, query, ret, err);
}

int history_heaviest(struct history *h, const struct history_heaviest *query, json_t **ret,
		     struct sl_err *err)
{
	write_left_out(h);
	return history_db_heaviest(h->db, query, ret, err);
}

void history_stats(struct history *h, struct history_stats *ret)
{
	*ret = (struct history_stats){ 0 };
	if (!h)
		return;
	*ret = h->stats;
	history_db_size(h->db, &ret->bytes, &ret->oldest_utc_ns);
}
