// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * history_db.c - see history_db.h; why SQLite: docs/decisions/0041-history.md.
 *
 * With write-ahead logging and synchronous=NORMAL a crash, of the machine too, leaves the last
 * checkpoint and every whole transaction behind it. The main thread writes: at most a few rows a
 * second; a checkpoint syncs about once in 1 MB of them.
 */
#include "packet/observe/history_db.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/clock.h"
#include "lib/file.h"
#include "lib/log.h"
#include "packet/observe/history_answer.h"

#define FILE_NAME "events.db"
#define LAYOUT 3
#define LAYOUT_UNNAMED 1  /* left_out had no names */
#define LAYOUT_UNMARKED 2 /* all figures were estimates */
#define PAGE 4096
#define LOG_PAGES 256 /* of the write-ahead log, between checkpoints */
#define READ_BEFORE_NS                                                                             \
	(86400ULL * SL_NS_PER_SEC) /* what is in force began at most so long before */
#define READ_ROWS 2000
#define READ_NS SL_NS_PER_SEC /* the main thread reads no longer */
#define READ_STEPS 10000      /* of SQLite's machine between two looks at the clock: some 0.1 ms */
#define MS 1000000ULL

enum statement {
	ADD,
	LEFT_OUT,
	RUNS,
	BEGIN,
	COMMIT,
	TOO_OLD,
	DROP_OLDEST,
	OF_SOURCE,
	OF_VALUE,
	HEAVIEST,
	READ_LEFT_OUT,
	READ_RUNS,
	STATEMENTS,
};

static const char *const text[] = {
	[ADD] = "INSERT INTO event VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)",
	[LEFT_OUT] =
		"INSERT INTO left_out VALUES(?1,?2,?3,?4) ON CONFLICT(at,kind,name) DO UPDATE SET "
		"count=count+?3",
	[RUNS] = "UPDATE run SET ended=?1 WHERE rowid=?2",
	[BEGIN] = "BEGIN",
	[COMMIT] = "COMMIT",
	[TOO_OLD] = "DELETE FROM event WHERE at<?1",
	[DROP_OLDEST] =
		"DELETE FROM event WHERE rowid IN (SELECT rowid FROM event ORDER BY rowid LIMIT ?1)",
	[OF_SOURCE] =
		"SELECT at,kind,addr,len,name,value,reason,verdict,packets,detail,estimated FROM event "
		"WHERE at>=?1 AND at<?2 AND addr IN (SELECT value FROM masked) AND (at>=?6 OR kind NOT IN"
		"(?7,?8)) ORDER BY at LIMIT ?3",
	[OF_VALUE] =
		"SELECT at,kind,addr,len,name,value,reason,verdict,packets,detail,estimated FROM event "
		"WHERE at>=?1 AND at<?2 AND value IN (?4,?9) AND name=?5 ORDER BY at LIMIT ?3",
	/* A row of traffic has "N passed, N dropped, N bytes": a cast reads the digits that a text
	   begins with. Its drops are sampled; those of the minutes count more exactly, where there
	   are any. */
	[HEAVIEST] =
		"SELECT addr,len,iif(max(kind=?4),sum(iif(kind=?4,packets,0)),"
		"sum(cast(substr(detail,instr(detail,', ')+2) AS INTEGER))) AS dropped,"
		"sum(iif(kind=?5,cast(detail AS INTEGER),0)) AS passed,"
		"sum(iif(kind=?5,cast(substr(detail,instr(detail,'dropped, ')+9) AS INTEGER),0)) AS bytes,"
		"group_concat(DISTINCT iif(kind=?4,coalesce(name,reason),NULL)),"
		"max(iif(kind=?4,estimated,0)) OR NOT max(kind=?4) FROM event "
		"WHERE at>=?1 AND at<?2 AND kind IN (?4,?5) GROUP BY +addr,len "
		"ORDER BY CASE ?6 WHEN 0 THEN dropped WHEN 1 THEN passed ELSE bytes END DESC LIMIT ?3",
	[READ_LEFT_OUT] =
		"SELECT kind,sum(count) FROM left_out WHERE at>=?1 AND at<?2 AND (?3 IS NULL OR name"
		" IS NULL OR name IN ('',?3)) GROUP BY kind",
	[READ_RUNS] = "SELECT began,ended FROM run WHERE began<?2 AND ended>=?1 ORDER BY began",
};
SL_STATIC_ASSERT(sizeof(text) / sizeof(text[0]) == STATEMENTS, "a text for each");

static const char schema[] =
	"CREATE TABLE IF NOT EXISTS event(at INTEGER, kind INTEGER, addr BLOB, len INTEGER, name TEXT,"
	" value TEXT, reason TEXT, verdict TEXT, packets INTEGER, detail TEXT, estimated INTEGER);"
	"CREATE INDEX IF NOT EXISTS event_addr ON event(addr, at) WHERE addr IS NOT NULL;"
	"CREATE INDEX IF NOT EXISTS event_value ON event(value, at) WHERE value IS NOT NULL;"
	"CREATE TABLE IF NOT EXISTS left_out(at INTEGER, kind INTEGER, count INTEGER, name TEXT);"
	"CREATE UNIQUE INDEX IF NOT EXISTS left_out_at ON left_out(at, kind, name);"
	"CREATE TABLE IF NOT EXISTS run(began INTEGER, ended INTEGER);"
	"CREATE TEMP TABLE masked(value BLOB);"
	"PRAGMA user_version=3;";

struct history_db {
	sqlite3 *sql;
	sqlite3_stmt *statement[STATEMENTS];
	u64 age_ns, pages, oldest_ns;
	s64 stepped_ns;		     /* history_db_step() */
	sqlite3_int64 run;	     /* this daemon's row */
	bool in_transaction, failed; /* a failure was logged */
	u64 read_until_ns;	     /* CLOCK_MONOTONIC */
};

/* ------------------------------------------------------------------ statements */

static int failed(struct history_db *db, const char *what)
{
	if (!db->failed)
		log_error("history: cannot %s " FILE_NAME
			  ": %s; limits stay in force, events are not recorded",
			  what, sqlite3_errmsg(db->sql));
	db->failed = true;
	return -EIO;
}

/* Runs a bound statement that returns no rows, and readies it again. */
static int run(struct history_db *db, enum statement which)
{
	int rc = sqlite3_step(db->statement[which]);

	sqlite3_reset(db->statement[which]);
	sqlite3_clear_bindings(db->statement[which]);
	if (rc != SQLITE_DONE && rc != SQLITE_ROW)
		return failed(db, "write");
	db->failed = false;
	return 0;
}

static void bind_u64(struct history_db *db, enum statement which, int at, u64 value)
{
	sqlite3_bind_int64(db->statement[which], at, (sqlite3_int64)value);
}

static void bind_text(struct history_db *db, enum statement which, int at, const char *value)
{
	if (value && value[0])
		sqlite3_bind_text(db->statement[which], at, value, -1, SQLITE_TRANSIENT);
}

/* The family, then the address in network order: its texts would not sort. */
static void address_bytes(const struct sl_prefix *prefix, u32 len, u8 *bytes)
{
	struct sl_addr addr = sl_addr_mask(prefix->addr, len);

	bytes[0] = prefix->family;
	for (int i = 0; i < 8; i++) {
		bytes[1 + i] = (u8)(addr.hi >> (56 - 8 * i));
		bytes[9 + i] = (u8)(addr.lo >> (56 - 8 * i));
	}
}

static int begin(struct history_db *db)
{
	int r = db->in_transaction ? 0 : run(db, BEGIN);

	db->in_transaction = !r;
	return r;
}

int history_db_add(struct history_db *db, const struct observed *event)
{
	char hash[VALUE_HASH_TEXT];
	u8 addr[17];

	if (begin(db) < 0)
		return -EIO;
	bind_u64(db, ADD, 1, event->utc_ns / MS);
	bind_u64(db, ADD, 2, event->kind);
	if (event->has_source) {
		address_bytes(&event->source, event->source.len, addr);
		sqlite3_bind_blob(db->statement[ADD], 3, addr, sizeof(addr), SQLITE_TRANSIENT);
		bind_u64(db, ADD, 4, event->source.len);
	}
	bind_text(db, ADD, 5, event->name);
	bind_text(db, ADD, 6, observed_value(event, hash));
	bind_text(db, ADD, 7, event->reason);
	bind_text(db, ADD, 8, event->verdict);
	bind_u64(db, ADD, 9, event->packets);
	bind_text(db, ADD, 10, event->detail);
	bind_u64(db, ADD, 11, event->estimated);
	return run(db, ADD);
}

void history_db_add_left_out(struct history_db *db, u64 minute_ns, enum observed_kind kind,
			     const char *name, u64 count)
{
	if (begin(db) < 0)
		return;
	bind_u64(db, LEFT_OUT, 1, minute_ns / MS);
	bind_u64(db, LEFT_OUT, 2, kind);
	bind_u64(db, LEFT_OUT, 3, count);
	sqlite3_bind_text(db->statement[LEFT_OUT], 4, name, -1, SQLITE_TRANSIENT);
	run(db, LEFT_OUT);
}

void history_db_commit(struct history_db *db)
{
	if (db->in_transaction && run(db, COMMIT) < 0 && !sqlite3_get_autocommit(db->sql))
		sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL, NULL);
	db->in_transaction = false;
}

/* ------------------------------------------------------------------ bounds */

static u64 pragma(struct history_db *db, const char *what)
{
	sqlite3_stmt *statement;
	u64 value = 0;

	if (sqlite3_prepare_v2(db->sql, what, -1, &statement, NULL) != SQLITE_OK)
		return 0;
	if (sqlite3_step(statement) == SQLITE_ROW)
		value = (u64)sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return value;
}

static void find_oldest(struct history_db *db)
{
	db->oldest_ns = pragma(db, "SELECT min(began) FROM run") * MS;
}

/* Where the file is nine tenths full the oldest tenth of its rows makes room, and is no longer
 * known. */
static void make_room(struct history_db *db)
{
	u64 rows = pragma(db, "SELECT count(*) FROM event"), kept;

	if (pragma(db, "PRAGMA page_count") - pragma(db, "PRAGMA freelist_count") <
	    db->pages * 9 / 10)
		return;
	bind_u64(db, DROP_OLDEST, 1, rows / 10 + 1);
	run(db, DROP_OLDEST);
	kept = pragma(db, "SELECT min(at) FROM event");
	if (kept) {
		char sql[256];

		snprintf(sql, sizeof(sql),
			 "DELETE FROM left_out WHERE at<%llu; DELETE FROM run WHERE "
			 "ended<%llu; UPDATE run SET began=%llu WHERE began<%llu",
			 kept, kept, kept, kept);
		sqlite3_exec(db->sql, sql, NULL, NULL, NULL);
	}
}

void history_db_step(struct history_db *db, s64 step_ns)
{
	db->stepped_ns += step_ns;
}

void history_db_minute(struct history_db *db, u64 now_utc_ns)
{
	u64 kept_ns = db->age_ns + (db->stepped_ns > 0 ? (u64)db->stepped_ns : 0);
	u64 least = now_utc_ns > kept_ns ? (now_utc_ns - kept_ns) / MS : 0;
	char sql[256];

	bind_u64(db, RUNS, 1, now_utc_ns / MS);
	bind_u64(db, RUNS, 2, (u64)db->run);
	run(db, RUNS);
	bind_u64(db, TOO_OLD, 1, least);
	run(db, TOO_OLD);
	snprintf(sql, sizeof(sql),
		 "DELETE FROM left_out WHERE at<%llu; DELETE FROM run WHERE ended<%llu; "
		 "UPDATE run SET began=%llu WHERE began<%llu",
		 least, least, least, least);
	sqlite3_exec(db->sql, sql, NULL, NULL, NULL);
	make_room(db);
	find_oldest(db);
}

/* ------------------------------------------------------------------ opening */

static int prepare(struct history_db *db)
{
	for (int i = 0; i < STATEMENTS; i++)
		if (sqlite3_prepare_v2(db->sql, text[i], -1, &db->statement[i], NULL) != SQLITE_OK)
			return -EIO;
	return 0;
}

static void discard(struct history_db *db)
{
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(db->statement[i]);
	sqlite3_close(db->sql);
	free(db);
}

/* -EPROTO: the file is no database, broken, or of another layout. */
static int open_file(struct history_db *db, const char *path, u64 now_utc_ns)
{
	mode_t mask = umask(0177);
	char sql[256];
	int rc = sqlite3_open_v2(path, &db->sql,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
					 SQLITE_OPEN_NOFOLLOW,
				 NULL);
	u64 layout;

	if (rc == SQLITE_OK) {
		snprintf(
			sql, sizeof(sql),
			"PRAGMA page_size=%d; PRAGMA journal_mode=WAL; PRAGMA synchronous="
			"NORMAL; PRAGMA wal_autocheckpoint=%d; PRAGMA journal_size_limit=%d; PRAGMA "
			"cache_size=-256; PRAGMA temp_store=MEMORY; PRAGMA max_page_count=%llu",
			PAGE, LOG_PAGES, LOG_PAGES * PAGE, db->pages);
		rc = sqlite3_exec(db->sql, sql, NULL, NULL, NULL);
	}
	layout = rc == SQLITE_OK ? pragma(db, "PRAGMA user_version") : 0;
	if (layout == LAYOUT_UNNAMED) {
		rc = sqlite3_exec(db->sql, "ALTER TABLE left_out ADD COLUMN name TEXT", NULL, NULL,
				  NULL);
		layout = LAYOUT_UNMARKED;
	}
	if (rc == SQLITE_OK && layout == LAYOUT_UNMARKED) {
		rc = sqlite3_exec(db->sql,
				  "ALTER TABLE event ADD COLUMN estimated INTEGER DEFAULT 1", NULL,
				  NULL, NULL);
		layout = LAYOUT;
	}
	if (rc == SQLITE_OK && (!layout || layout == LAYOUT))
		rc = sqlite3_exec(db->sql, schema, NULL, NULL, NULL);
	if (rc == SQLITE_OK && (!layout || layout == LAYOUT) && !prepare(db)) {
		snprintf(sql, sizeof(sql), "INSERT INTO run VALUES(%llu,%llu)", now_utc_ns / MS,
			 now_utc_ns / MS);
		rc = sqlite3_exec(db->sql, sql, NULL, NULL, NULL);
		db->run = sqlite3_last_insert_rowid(db->sql);
	}
	umask(mask);
	if (rc == SQLITE_NOTADB || rc == SQLITE_CORRUPT || (layout && layout != LAYOUT))
		return -EPROTO;
	return rc == SQLITE_OK && db->statement[STATEMENTS - 1] ? 0 : -EIO;
}

struct history_db *history_db_open(const char *state_dir, u64 size, u64 age_ns, u64 now_utc_ns)
{
	char *path = file_join(state_dir, FILE_NAME);
	struct history_db *db = NULL;
	int r = -ENOMEM;

	for (int tries = 0; path && tries < 2; tries++) {
		db = calloc(1, sizeof(*db));
		if (!db)
			break;
		db->age_ns = age_ns;
		/* The log beside it counts, too. */
		db->pages = size / PAGE - 2 * LOG_PAGES;
		r = open_file(db, path, now_utc_ns);
		if (!r)
			break;
		if (r != -EPROTO || tries)
			failed(db, "open");
		discard(db);
		db = NULL;
		if (r != -EPROTO)
			break;
		file_put_aside(state_dir, FILE_NAME, "not a history of this version",
			       "the history of events begins now");
	}
	free(path);
	if (db)
		find_oldest(db);
	return db;
}

void history_db_close(struct history_db *db, u64 now_utc_ns)
{
	if (!db)
		return;
	history_db_commit(db);
	bind_u64(db, RUNS, 1, now_utc_ns / MS);
	bind_u64(db, RUNS, 2, (u64)db->run);
	run(db, RUNS);
	discard(db);
}

/* ------------------------------------------------------------------ reading */

static int is_late(void *arg)
{
	const struct history_db *db = arg;

	return clock_mono_ns() >= db->read_until_ns;
}

static void read_begin(struct history_db *db)
{
	history_db_commit(db);
	db->read_until_ns = clock_mono_ns() + READ_NS;
	sqlite3_progress_handler(db->sql, READ_STEPS, is_late, db);
}

/* `rc` of the last step; frees *ret on failure. */
static int read_end(struct history_db *db, int rc, json_t **ret, struct sl_err *err)
{
	if (rc == SQLITE_DONE)
		return 0;
	json_decref(*ret);
	*ret = NULL;
	if (rc == SQLITE_INTERRUPT)
		return sl_err_set(
			err, ETIMEDOUT,
			"the history has too much of that time: reading it takes longer "
			"than 1 s; accepted: a shorter time, or sqlite3 on a copy of state_dir/" FILE_NAME);
	return sl_err_set(err, EIO, "cannot read the history: %s", sqlite3_errmsg(db->sql));
}

static void copy_text(char *to, size_t size, sqlite3_stmt *row, int column)
{
	const char *value = (const char *)sqlite3_column_text(row, column);

	snprintf(to, size, "%s", value ? value : "");
}

/* An address and its length, in two columns; false: there is none. */
static bool read_source(sqlite3_stmt *row, int column, struct sl_prefix *ret)
{
	const u8 *addr = sqlite3_column_blob(row, column);

	*ret = (struct sl_prefix){ 0 };
	if (!addr || sqlite3_column_bytes(row, column) != 17)
		return false;
	ret->family = addr[0];
	ret->len = (u8)sqlite3_column_int(row, column + 1);
	for (int i = 0; i < 8; i++) {
		ret->addr.hi = ret->addr.hi << 8 | addr[1 + i];
		ret->addr.lo = ret->addr.lo << 8 | addr[9 + i];
	}
	return true;
}

/* The row as an event; its reason and verdict are in `words`. */
static void read_row(sqlite3_stmt *row, struct observed *ret, char words[2][32])
{
	memset(ret, 0, sizeof(*ret));
	ret->utc_ns = (u64)sqlite3_column_int64(row, 0) * MS;
	ret->kind = (enum observed_kind)sqlite3_column_int(row, 1);
	ret->has_source = read_source(row, 2, &ret->source);
	copy_text(ret->name, sizeof(ret->name), row, 4);
	copy_text(ret->value, sizeof(ret->value), row, 5);
	copy_text(words[0], 32, row, 6);
	copy_text(words[1], 32, row, 7);
	ret->reason = words[0];
	ret->verdict = words[1];
	ret->packets = (u64)sqlite3_column_int64(row, 8);
	copy_text(ret->detail, sizeof(ret->detail), row, 9);
	ret->estimated = ret->packets > 1 && sqlite3_column_int(row, 10);
}

/* The prefixes that hold the source, one of each length, for OF_SOURCE. */
static void list_prefixes(struct history_db *db, const struct sl_prefix *source)
{
	sqlite3_stmt *add;
	u8 addr[17];

	sqlite3_exec(db->sql, "DELETE FROM masked", NULL, NULL, NULL);
	if (sqlite3_prepare_v2(db->sql, "INSERT INTO masked VALUES(?1)", -1, &add, NULL) !=
	    SQLITE_OK)
		return;
	for (u32 len = 0; len <= source->len; len++) {
		address_bytes(source, len, addr);
		sqlite3_bind_blob(add, 1, addr, sizeof(addr), SQLITE_TRANSIENT);
		sqlite3_step(add);
		sqlite3_reset(add);
	}
	sqlite3_finalize(add);
}

static void read_gaps(struct history_db *db, struct history_answer *answer)
{
	sqlite3_stmt *row = db->statement[READ_LEFT_OUT];

	/* Found by an index: what was read within the time is not given up for these. */
	sqlite3_progress_handler(db->sql, 0, NULL, NULL);
	bind_u64(db, READ_LEFT_OUT, 1, answer->query->from_ns / MS - 60000);
	bind_u64(db, READ_LEFT_OUT, 2, answer->query->to_ns / MS);
	if (answer->query->value)
		bind_text(db, READ_LEFT_OUT, 3, answer->query->rule);
	while (sqlite3_step(row) == SQLITE_ROW)
		history_answer_left_out(answer, (enum observed_kind)sqlite3_column_int(row, 0),
					(u64)sqlite3_column_int64(row, 1));
	sqlite3_reset(row);
	sqlite3_clear_bindings(row);
	row = db->statement[READ_RUNS];
	bind_u64(db, READ_RUNS, 1, (answer->query->from_ns - RUN_SLACK_NS) / MS);
	bind_u64(db, READ_RUNS, 2, answer->query->to_ns / MS);
	while (sqlite3_step(row) == SQLITE_ROW)
		history_answer_run(answer, (u64)sqlite3_column_int64(row, 0) * MS,
				   (u64)sqlite3_column_int64(row, 1) * MS);
	sqlite3_reset(row);
}

int history_db_read(struct history_db *db, const struct history_query *query, json_t **ret,
		    struct sl_err *err)
{
	enum statement which = query->value ? OF_VALUE : OF_SOURCE;
	sqlite3_stmt *row = db->statement[which];
	u64 first = query->from_ns > READ_BEFORE_NS ? query->from_ns - READ_BEFORE_NS : 0;
	struct history_answer answer;
	char hash[VALUE_HASH_TEXT];
	struct observed event;
	char words[2][32];
	int rc;

	read_begin(db);
	history_answer_begin(&answer, query, db->oldest_ns);
	if (!query->value)
		list_prefixes(db, &query->source);
	bind_u64(db, which, 1, first / MS);
	bind_u64(db, which, 2, query->to_ns / MS);
	bind_u64(db, which, 3, READ_ROWS);
	if (query->value) {
		bind_text(db, which, 4, query->value);
		bind_text(db, which, 9, value_hash(query->value, strlen(query->value), hash));
		bind_text(db, which, 5, query->rule);
	}
	/* Of the time before, what may still be in force: not the minutes. */
	bind_u64(db, which, 6, query->from_ns / MS);
	bind_u64(db, which, 7, OBSERVED_DROP);
	bind_u64(db, which, 8, OBSERVED_TRAFFIC);
	while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
		read_row(row, &event, words);
		if (query->value || sl_prefix_contains(&event.source, &query->source))
			history_answer_event(&answer, &event);
	}
	sqlite3_reset(row);
	sqlite3_clear_bindings(row);
	read_gaps(db, &answer);
	*ret = history_answer_end(&answer);
	return read_end(db, rc, ret, err);
}

int history_db_heaviest(struct history_db *db, const struct history_heaviest *query, json_t **ret,
			struct sl_err *err)
{
	const struct history_query times = { .from_ns = query->from_ns, .to_ns = query->to_ns };
	sqlite3_stmt *row = db->statement[HEAVIEST];
	json_t *sources = json_array();
	struct history_answer answer;
	char text[SL_PREFIX_TEXT];
	struct sl_prefix source;
	int rc;

	read_begin(db);
	history_answer_begin(&answer, &times, db->oldest_ns);
	bind_u64(db, HEAVIEST, 1, query->from_ns / MS);
	bind_u64(db, HEAVIEST, 2, query->to_ns / MS);
	bind_u64(db, HEAVIEST, 3, query->count);
	bind_u64(db, HEAVIEST, 4, OBSERVED_DROP);
	bind_u64(db, HEAVIEST, 5, OBSERVED_TRAFFIC);
	bind_u64(db, HEAVIEST, 6, query->by);
	while ((rc = sqlite3_step(row)) == SQLITE_ROW)
		if (read_source(row, 0, &source))
			json_array_append_new(
				sources,
				json_pack("{s:s, s:I, s:b, s:I, s:I, s:s?}", "source",
					  sl_prefix_format(&source, text, sizeof(text)), "dropped",
					  (json_int_t)sqlite3_column_int64(row, 2), "estimated",
					  sqlite3_column_int(row, 6), "passed",
					  (json_int_t)sqlite3_column_int64(row, 3), "bytes",
					  (json_int_t)sqlite3_column_int64(row, 4), "by",
					  (const char *)sqlite3_column_text(row, 5)));
	sqlite3_reset(row);
	sqlite3_clear_bindings(row);
	read_gaps(db, &answer);
	*ret = history_answer_end(&answer);
	for (const char *const *other =
		     (const char *const[]){ "events", "in_force", "nothing", NULL };
	     *other; other++)
		json_object_del(*ret, *other);
	json_object_set_new(*ret, "sources", sources);
	return read_end(db, rc, ret, err);
}

void history_db_size(struct history_db *db, u64 *ret_bytes, u64 *ret_oldest_utc_ns)
{
	*ret_bytes = pragma(db, "PRAGMA page_count") * PAGE;
	*ret_oldest_utc_ns = db->oldest_ns;
}
