/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* history_db.h - the database of history.h, private to it. */
#ifndef SLUICE_OBSERVE_HISTORY_DB_H
#define SLUICE_OBSERVE_HISTORY_DB_H

#include "packet/observe/history.h"

/* Of the file, for a row with its part of the indices; measured. */
#define HISTORY_ROW_BYTES 160

struct history_db;

/* NULL, and it was logged. */
struct history_db *history_db_open(const char *state_dir, u64 size, u64 age_ns, u64 now_utc_ns);
void history_db_close(struct history_db *db, u64 now_utc_ns);

/* A row of the transaction in progress. 0 or -EIO. */
int history_db_add(struct history_db *db, const struct observed *event);
/* Adds to the count of that minute, kind and name. */
void history_db_add_left_out(struct history_db *db, u64 minute_ns, enum observed_kind kind,
			     const char *name, u64 count);
void history_db_commit(struct history_db *db);
/* Records that the daemon still runs; removes rows that are too old, or do not fit. */
void history_db_minute(struct history_db *db, u64 now_utc_ns);
/*
 * UTC was set. By so much as it is ahead of where it would be, rows are kept longer until the file
 * is opened again: a clock that is wrong for a while deletes none.
 */
void history_db_step(struct history_db *db, s64 step_ns);

int history_db_read(struct history_db *db, const struct history_query *query, json_t **ret,
		    struct sl_err *err);
int history_db_heaviest(struct history_db *db, const struct history_heaviest *query, json_t **ret,
			struct sl_err *err);
void history_db_size(struct history_db *db, u64 *ret_bytes, u64 *ret_oldest_utc_ns);

#endif
