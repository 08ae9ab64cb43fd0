/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * history.h - events on disk, for the question why a source was refused yesterday:
 * state_dir/events.db, a database of SQLite of a fixed size and age.
 *
 * Kept are state changes, the first refusal of a source by a limit or of a value by a rule, and of
 * each minute which sources were dropped by what, and which sent most, the heaviest first. A budget
 * of rows bounds the rate: what it holds in `age` is what `size` has room for, and a day's part of
 * it may be used at once. What is left out is counted by limit and minute, and so are the times at
 * which the daemon ran: so an answer is either "it was not refused" or "not recorded".
 *
 * Rows are committed each second; a crash loses what is newer, never what is older.
 */
#ifndef SLUICE_OBSERVE_HISTORY_H
#define SLUICE_OBSERVE_HISTORY_H

#include "packet/observe/observe.h"

/* the same first refusal is one row in this time   \ */
#define HISTORY_AGAIN_NS (600 * SL_NS_PER_SEC)

struct history;

struct history_query {
	struct sl_prefix source;  /* or, with `value`: */
	const char *rule, *value; /* NULL: of the source */
	u64 from_ns, to_ns;	  /* UTC */
};

struct history_stats {
	u64 rows;	   /* written since the start */
	u64 left_out;	   /* events without a row, for the budget */
	u64 errors;	   /* rows that could not be written */
	u64 bytes;	   /* of the file and its log */
	u64 oldest_utc_ns; /* 0: empty */
};

/*
 * Opens or makes it. A file of another layout or that is broken is renamed to events.db.bad and
 * logged; one that cannot be opened is logged, and *ret is NULL: limits do not depend on it.
 */
void history_open(const char *state_dir, u64 size, u64 age_ns, u64 now_utc_ns,
		  struct history **ret);
void history_close(struct history *h, u64 now_utc_ns);

void history_note(struct history *h, const struct observed *event);
/*
 * Drops that were noted since the last call stand for factor[event.counter] times as many: for
 * those that were not sampled, or above events.rate. `estimated`: there were such.
 */
void history_scale(struct history *h, const double *factor, bool estimated);
/* `count` drops of a counter without an event: of those sources that it dropped in this minute. */
void history_add(struct history *h, u16 counter, u64 count);
/* Events that were not noted; of a limit or rule, NULL: not known. */
void history_left_out(struct history *h, enum observed_kind kind, const char *name, u64 count);

/*
 * A look at the heaviest sources: what each sent since the last look. The heaviest of the looks of
 * a minute become rows.
 */
struct history_traffic {
	struct sl_prefix source;
	u64 passed, dropped, bytes; /* packets, and the bytes of both */
};
void history_look(struct history *h, const struct history_traffic *traffic, size_t count);

/* Each second: commits, ends the minute, removes what is too old. */
void history_tick(struct history *h, u64 now_utc_ns);
/* UTC was set, by step_ns. */
void history_step(struct history *h, s64 step_ns);

/*
 * {"events": in the time asked for, "in_force": begun before it and not ended, "nothing": no
 * refusal is among them, "not_recorded": why something may be missing}. -EIO with
 * err.
 */
int history_read(struct history *h, const struct history_query *query, json_t **ret,
		 struct sl_err *err);

/* Who sent, or was dropped, most in a time. */
enum history_order {
	HISTORY_BY_DROPS,
	HISTORY_BY_PASSES,
	HISTORY_BY_BITS,
};
struct history_heaviest {
	u64 from_ns, to_ns; /* UTC, whole minutes */
	enum history_order by;
	u32 count; /* at most so many */
};

/*
 * {"sources": [{"source", "dropped", "estimated": so is `dropped`, "passed", "bytes": always are,
 * "by"}], "not_recorded", "from", "to"}: the sums of the minutes that are over, of the sources that
 * were recorded. Reads the whole file: 30 ms at 32 MB for a minute, 0.3 s for a day of 29,000 rows.
 */
int history_heaviest(struct history *h, const struct history_heaviest *query, json_t **ret,
		     struct sl_err *err);
void history_stats(struct history *h, struct history_stats *ret);

#endif
