// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_history.c - the history on disk, by a clock of the test's: what is answered of a source,
 * what was in force, what may be missing; its bounds under a flood; a crash; a file that is no
 * history.
 */
#include <sys/stat.h>

#include "lib/test.h"
#include "lib/temp_dir.h"
#include "packet/observe/history.h"

#define SECOND SL_NS_PER_SEC
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define SIZE 8000000
#define BEGIN (1772366400ULL * SECOND) /* 2026-03-01 12:00:00 UTC */

static struct history *history;
static u64 now;

static struct sl_prefix prefix(const char *text)
{
	struct sl_prefix ret;
	const char *reason;

	assert_int_equal(sl_prefix_parse(text, &ret, &reason), 0);
	return ret;
}

static void begin(void)
{
	history_open(temp_dir, SIZE, 7 * DAY, now, &history);
	assert_non_null(history);
}

static void end(void)
{
	history_close(history, now);
	history = NULL;
}

static int make(void **state)
{
	now = BEGIN;
	return temp_dir_make(state);
}

static void note(enum observed_kind kind, const char *source, const char *limit, u64 packets)
{
	struct observed event = {
		.kind = kind, .utc_ns = now, .packets = packets, .reason = "over", .verdict = "drop"
	};

	event.has_source = source;
	if (source)
		event.source = prefix(source);
	snprintf(event.name, sizeof(event.name), "%s", limit);
	history_note(history, &event);
}

/* The time goes on, second by second where it is short. */
static void pass(u64 ns)
{
	u64 step = ns < HOUR ? SECOND : 30 * SECOND;

	for (u64 until = now + ns; now < until; now += step)
		history_tick(history, now);
}

static json_t *ask(const char *who, const char *value, u64 from, u64 to)
{
	struct history_query query = { .rule = who, .value = value, .from_ns = from, .to_ns = to };
	struct sl_err err;
	json_t *result;

	if (!value)
		query.source = prefix(who);
	assert_int_equal(history_read(history, &query, &result, &err), 0);
	return result;
}

/* "KIND:NAME:PACKETS ..." of an array, and whether something may be missing. */
static const char *answer(const char *who, const char *value, const char *part, u64 from, u64 to)
{
	json_t *result = ask(who, value, from, to), *event;
	const char *why = json_string_value(json_object_get(result, "not_recorded"));
	static char text[4096];
	size_t i, used = 0;

	text[0] = '\0';
	json_array_foreach(json_object_get(result, part), i, event) {
		const char *name =
			json_string_value(json_object_get(event, value ? "rule" : "limit"));
		json_int_t packets = json_integer_value(json_object_get(event, "packets"));

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:%s:%lld",
					 i ? " " : "",
					 json_string_value(json_object_get(event, "kind")),
					 name ? name : "", packets ? packets : 1);
	}
	if (why)
		snprintf(text + used, sizeof(text) - used, "%s(%.12s)", used ? " " : "", why);
	json_decref(result);
	return text;
}

/* The events of a source, or a value, in the minute that begins `minute` minutes after BEGIN. */
static const char *source_at(const char *source, int minute)
{
	u64 from = BEGIN + minute * (s64)MINUTE;

	return answer(source, NULL, "events", from, from + MINUTE);
}

static const char *value_at(const char *rule, const char *value, int minute)
{
	u64 from = BEGIN + minute * (s64)MINUTE;

	return answer(rule, value, "events", from, from + MINUTE);
}

TEST_WITH(an_ordinary_customer_is_answered, make, temp_dir_drop)
{
	begin();
	pass(10 * MINUTE);
	note(OBSERVED_OVER, "198.51.100.7", "web", 1);
	for (int i = 0; i < 5; i++)
		note(OBSERVED_DROP, "198.51.100.7", "web", 1);
	note(OBSERVED_DROP, "198.51.100.8", "dns", 3);
	pass(30 * MINUTE);
	note(OBSERVED_RELEASED, "198.51.100.7", "web", 1);
	pass(20 * HOUR);
	end();
	pass(0);
	begin();
	assert_string_equal(source_at("198.51.100.7", 10), "over:web:1 drop:web:5");
	assert_string_equal(source_at("198.51.100.8", 10), "drop:dns:3");
	assert_string_equal(source_at("198.51.100.9", 10), "");
	/* In force in between, and no longer after the end. */
	assert_string_equal(
		answer("198.51.100.7", NULL, "in_force", BEGIN + 20 * MINUTE, BEGIN + 21 * MINUTE),
		"over:web:1");
	assert_string_equal(
		answer("198.51.100.7", NULL, "in_force", BEGIN + 50 * MINUTE, BEGIN + 51 * MINUTE),
		"");
	/* Before the begin. */
	assert_string_equal(source_at("198.51.100.7", -60), "(the history )");
	end();
}

TEST_WITH(prefixes_hold_their_addresses, make, temp_dir_drop)
{
	begin();
	pass(MINUTE);
	note(OBSERVED_BAN, "198.51.100.0/24", "web", 1);
	note(OBSERVED_BLOCK, "2001:db8::/32", "", 1);
	note(OBSERVED_OVER, "198.51.100.0", "web", 1);
	pass(2 * MINUTE);
	assert_string_equal(answer("198.51.100.7", NULL, "events", BEGIN, now), "ban:web:1");
	assert_string_equal(answer("198.51.100.0", NULL, "events", BEGIN, now),
			    "ban:web:1 over:web:1");
	assert_string_equal(answer("2001:db8:1::9", NULL, "in_force", BEGIN + 2 * MINUTE, now),
			    "block::1");
	assert_string_equal(answer("198.51.101.7", NULL, "events", BEGIN, now), "");
	/* Not IPv4's of the same bits. */
	assert_string_equal(answer("32.1.13.184", NULL, "events", BEGIN, now), "");
	end();
}

TEST_WITH(values_of_rules, make, temp_dir_drop)
{
	struct observed event = {
		.kind = OBSERVED_REFUSED, .name = "api/user", .value = "bob", .packets = 1
	};

	begin();
	pass(MINUTE);
	event.utc_ns = now;
	history_note(history, &event);
	history_note(history, &event); /* the same again: one row */
	pass(MINUTE);
	assert_string_equal(answer("api/user", "bob", "events", BEGIN, now), "refused:api/user:1");
	assert_string_equal(answer("api/user", "eve", "events", BEGIN, now), "");
	assert_string_equal(answer("api/other", "bob", "events", BEGIN, now), "");
	end();
}

static u64 file_size(const char *name)
{
	struct stat st;

	return stat(temp_path(name), &st) ? 0 : (u64)st.st_size;
}

/* What was refused and not recorded is counted by rule and minute. */
TEST_WITH(what_is_left_out_is_named, make, temp_dir_drop)
{
	char rule[32];

	begin();
	pass(10 * MINUTE);
	history_left_out(history, OBSERVED_REFUSED, "api/user", 5400);
	/* Of the minute in progress, too. */
	assert_string_equal(answer("api/user", "bob", "events", now - MINUTE, now),
			    "(at most 100 )");
	pass(10 * MINUTE);
	assert_string_equal(value_at("api/user", "bob", 10), "(at most 100 )");
	/* Not of another rule, nor of another minute, nor of sources. */
	assert_string_equal(value_at("api/other", "bob", 10), "");
	assert_string_equal(value_at("api/user", "bob", 13), "");
	assert_string_equal(source_at("198.51.100.7", 10), "");
	/* More rules than names in a minute: those without a name count for all. */
	for (int i = 0; i < 1000; i++) {
		snprintf(rule, sizeof(rule), "api/%d", i);
		history_left_out(history, OBSERVED_REFUSED, rule, 1);
	}
	history_left_out(history, OBSERVED_OVER, NULL, 3);
	pass(2 * MINUTE);
	assert_string_equal(value_at("api/other", "bob", 20), "(at most 100 )");
	assert_string_equal(source_at("198.51.100.7", 20), "(more was ref)");
	end();
}

/* The same refusal is one row in ten minutes: in these, the answer is not that there was none. */
TEST_WITH(a_refusal_that_goes_on, make, temp_dir_drop)
{
	struct observed event = {
		.kind = OBSERVED_REFUSED, .name = "api/user", .value = "bob", .packets = 1
	};

	begin();
	pass(15 * MINUTE);
	event.utc_ns = now;
	history_note(history, &event);
	pass(30 * MINUTE);
	assert_string_equal(value_at("api/user", "bob", 15), "refused:api/user:1");
	assert_string_equal(value_at("api/user", "bob", 20), "(refused by r)");
	assert_string_equal(value_at("api/user", "bob", 14), "");
	assert_string_equal(value_at("api/user", "bob", 26), "");
	assert_string_equal(value_at("api/user", "eve", 20), "");
	end();
}

static void look(const char *source, u64 passed)
{
	struct history_traffic traffic = { .source = prefix(source),
					   .passed = passed,
					   .bytes = 100 * passed };

	history_look(history, &traffic, 1);
}

/* Heavy sources by minute, also those that pass: in bounded rows, and no hindrance to other
 * answers. */
TEST_WITH(heavy_sources_by_minute, make, temp_dir_drop)
{
	struct history_stats stats;
	json_t *result;
	char text[32];

	begin();
	pass(MINUTE);
	note(OBSERVED_BLOCK, "203.0.113.1", "", 1);
	for (int minute = 0; minute < 20 * 60; minute++) {
		for (int i = 0; i < 300; i++) {
			snprintf(text, sizeof(text), "10.%d.%d.%d", minute & 255, i >> 8, i & 255);
			look(text, 61);
		}
		look("203.0.113.1", 500);
		look("203.0.113.1", 400);
		look("203.0.113.2", 59);
		for (int limit = 0; limit < 3; limit++) {
			snprintf(text, sizeof(text), "limit%d", limit);
			note(OBSERVED_DROP, "203.0.113.1", text, 100);
		}
		pass(MINUTE);
	}
	assert_string_equal(source_at("203.0.113.1", 61),
			    "drop:limit0:100 drop:limit1:100 drop:limit2:100 traffic::1200");
	/* The heaviest one has a row even where the budget is used up, in two of three minutes at
	 * least. */
	assert_non_null(strstr(answer("203.0.113.1", NULL, "events", now - 3 * MINUTE, now),
			       "traffic::1200"));
	/* What began before thousands of rows is in force still. */
	assert_string_equal(answer("203.0.113.1", NULL, "in_force", now - MINUTE, now), "block::1");
	assert_string_equal(answer("203.0.113.2", NULL, "events", BEGIN, now), "");
	result = ask("10.0.0.5", NULL, BEGIN, now);
	assert_true(json_is_true(json_object_get(result, "nothing")));
	json_decref(result);
	history_stats(history, &stats);
	assert_int_equal(stats.errors, 0);
	assert_in_range(stats.rows, 4000, 10000);
	end();
}

/* "SOURCE:DROPPED:PASSED:BYTES:BY ..." of the minutes `from` to `to` after BEGIN. */
static const char *heaviest(enum history_order by, u32 count, int from, int to)
{
	struct history_heaviest query = { .from_ns = BEGIN + from * (s64)MINUTE,
					  .to_ns = BEGIN + to * (s64)MINUTE,
					  .by = by,
					  .count = count };
	static char text[4096];
	json_t *result, *source;
	size_t i, used = 0;
	struct sl_err err;

	assert_int_equal(history_heaviest(history, &query, &result, &err), 0);
	text[0] = '\0';
	json_array_foreach(json_object_get(result, "sources"), i, source) {
		const char *limits = json_string_value(json_object_get(source, "by"));

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:%lld:%lld:%lld:%s",
					 i ? " " : "",
					 json_string_value(json_object_get(source, "source")),
					 json_integer_value(json_object_get(source, "dropped")),
					 json_integer_value(json_object_get(source, "passed")),
					 json_integer_value(json_object_get(source, "bytes")),
					 limits ? limits : "-");
	}
	if (json_object_get(result, "not_recorded"))
		snprintf(text + used, sizeof(text) - used, " (missing)");
	json_decref(result);
	return text;
}

/* Who was heavy in a time: drops and traffic of its minutes summed up, and of no other minute. */
TEST_WITH(the_heaviest_of_a_time, make, temp_dir_drop)
{
	begin();
	pass(10 * MINUTE + 2 * SECOND);
	note(OBSERVED_OVER, "203.0.113.1", "web", 1);
	for (int minute = 0; minute < 2; minute++) {
		note(OBSERVED_DROP, "203.0.113.1", "web", 100);
		note(OBSERVED_DROP, "203.0.113.1", "dns", 50);
		note(OBSERVED_DROP, "203.0.113.2", "", 120);
		note(OBSERVED_DROP, "2001:db8::/64", "web", 7);
		look("203.0.113.1", 300);
		look("203.0.113.3", 500);
		pass(MINUTE);
	}
	note(OBSERVED_DROP, "203.0.113.9", "web", 1000);
	pass(MINUTE);
	assert_string_equal(
		heaviest(HISTORY_BY_DROPS, 20, 10, 12),
		"203.0.113.1:300:600:60000:web,dns 203.0.113.2:240:0:0:over 2001:db8::/64:14:0:0:web "
		"203.0.113.3:0:1000:100000:-");
	assert_string_equal(heaviest(HISTORY_BY_PASSES, 2, 10, 12),
			    "203.0.113.3:0:1000:100000:- 203.0.113.1:300:600:60000:web,dns");
	assert_string_equal(heaviest(HISTORY_BY_DROPS, 1, 11, 12),
			    "203.0.113.1:150:300:30000:web,dns");
	assert_string_equal(heaviest(HISTORY_BY_DROPS, 9, 12, 13), "203.0.113.9:1000:0:0:web");
	assert_string_equal(heaviest(HISTORY_BY_BITS, 9, 5, 6), "");
	assert_string_equal(heaviest(HISTORY_BY_BITS, 9, -60, -59), " (missing)");
	end();
}

/* Files of earlier layouts are taken on; their figures are estimates. */
TEST_WITH(an_earlier_layout_is_kept, make, temp_dir_drop)
{
	static const char *const before[] = {
		"ALTER TABLE event DROP COLUMN estimated; DROP INDEX left_out_at; ALTER TABLE left_out DROP COLUMN name; "
		"PRAGMA user_version=1",
		"ALTER TABLE event DROP COLUMN estimated; PRAGMA user_version=2",
	};
	char command[512];
	json_t *result;

	for (size_t i = 0; i < COUNT(before); i++) {
		u64 from = now;

		begin();
		pass(MINUTE);
		note(OBSERVED_OVER, "198.51.100.7", "web", 1);
		note(OBSERVED_DROP, "198.51.100.8", "web", 7);
		pass(2 * MINUTE);
		end();
		snprintf(command, sizeof(command),
			 "python3 -c \"import sqlite3; d = sqlite3.connect('%s/events.db'); "
			 "d.executescript('%s')\"",
			 temp_dir, before[i]);
		assert_int_equal(system(command), 0);
		begin();
		history_left_out(history, OBSERVED_REFUSED, "api/user", 3);
		pass(2 * MINUTE);
		assert_string_equal(answer("198.51.100.7", NULL, "events", from, from + 2 * MINUTE),
				    "over:web:1");
		assert_string_equal(answer("api/user", "bob", "events", now - 2 * MINUTE, now),
				    "(at most 100 )");
		result = ask("198.51.100.8", NULL, from, from + 2 * MINUTE);
		assert_true(json_is_true(json_object_get(
			json_array_get(json_object_get(result, "events"), 0), "estimated")));
		json_decref(result);
		end();
		assert_int_equal(file_size("events.db.bad"), 0);
		now += HOUR;
	}
}

/* How many packets a source's first event has, and whether that is an estimate. */
static void first_event(const char *source, json_int_t packets, bool estimated)
{
	json_t *result = ask(source, NULL, BEGIN, now);
	json_t *first = json_array_get(json_object_get(result, "events"), 0);

	assert_int_equal(json_integer_value(json_object_get(first, "packets")), packets);
	assert_int_equal(json_is_true(json_object_get(first, "estimated")), estimated);
	json_decref(result);
}

/* Drops that were no event: each second by its counter, so that one's flood adds nothing to
 * another. */
TEST_WITH(counters_scale_their_own, make, temp_dir_drop)
{
	struct observed event = {
		.kind = OBSERVED_DROP, .packets = 1, .has_source = true, .reason = "over"
	};
	double factor[8] = { 0 };

	begin();
	for (u16 second = 0; second < 10; second++)
		for (u16 counter = 1; counter <= 2; counter++) {
			event.source = prefix(counter == 1 ? "198.51.100.1" : "198.51.100.2");
			event.utc_ns = now + 1;
			event.counter = counter;
			for (int i = 0; i < 3; i++)
				history_note(history, &event);
			factor[counter] = counter == 1 ? 1 : 1000.0 / 3;
			if (counter == 2) {
				history_scale(history, factor, second == 4);
				pass(SECOND);
			}
			event.packets = 1;
		}
	history_add(history, 2, 77);
	pass(MINUTE);
	first_event("198.51.100.1", 30, true);
	first_event("198.51.100.2", 10077, true);
	/* What every event stands for itself alone is exact. */
	event.source = prefix("198.51.100.3");
	event.utc_ns = now + 1;
	for (int i = 0; i < 3; i++)
		history_note(history, &event);
	history_scale(history, (double[8]){ 1, 1, 1 }, false);
	pass(2 * MINUTE);
	first_event("198.51.100.3", 3, false);
	end();
}

TEST_WITH(a_time_without_daemon_is_named, make, temp_dir_drop)
{
	begin();
	pass(10 * MINUTE);
	end();
	now += HOUR;
	begin();
	pass(10 * MINUTE);
	assert_string_equal(source_at("198.51.100.7", 30), "(sluiced did )");
	assert_string_equal(source_at("198.51.100.7", 5), "");
	assert_string_equal(source_at("198.51.100.7", 75), "");
	end();
}

/*
 * A flood of sources that are each refused once, for hours, and before it a customer: the file
 * stays below its size, what is left out is reported, a later ban is recorded, and the heaviest is.
 */
TEST_WITH(a_flood_stays_within_size, make, temp_dir_drop)
{
	struct history_stats stats;
	json_t *heaviest;
	char text[32];
	u32 source = 0;

	begin();
	pass(2 * MINUTE);
	note(OBSERVED_OVER, "192.0.2.7", "web", 1);
	for (int minute = 0; minute < 30; minute++) {
		for (int i = 0; i < 20000; i++, source++) {
			snprintf(text, sizeof(text), "10.%u.%u.%u", source >> 16 & 255,
				 source >> 8 & 255, source & 255);
			note(OBSERVED_OVER, text, "web", 1);
			note(OBSERVED_DROP, text, "web", 1);
			if (i % 20 == 0)
				note(OBSERVED_DROP, "203.0.113.1", "web", 1);
		}
		pass(MINUTE);
	}
	note(OBSERVED_BAN, "203.0.113.1", "web", 1);
	pass(10 * MINUTE);
	history_stats(history, &stats);
	assert_in_range(file_size("events.db") + file_size("events.db-wal"), 1, SIZE);
	assert_true(stats.left_out > 500000);
	assert_int_equal(stats.errors, 0);
	assert_in_range(stats.rows, 2000, SIZE / 100);
	assert_string_equal(answer("192.0.2.7", NULL, "events", BEGIN, BEGIN + 3 * MINUTE),
			    "over:web:1 (more was ref)");
	assert_non_null(strstr(answer("203.0.113.1", NULL, "events", BEGIN + 3 * MINUTE, now),
			       "ban:web:1"));
	/* About 1000 packets a minute, in at least two of three minutes. */
	heaviest = ask("203.0.113.1", NULL, BEGIN + 2 * MINUTE, now);
	assert_in_range(json_array_size(json_object_get(heaviest, "events")), 20, 32);
	assert_in_range(json_integer_value(json_object_get(
				json_array_get(json_object_get(heaviest, "events"), 1), "packets")),
			900, 1000);
	json_decref(heaviest);
	end();
}

/* Weeks: what is older than `age` is gone, and reported so; the size stays. */
TEST_WITH(old_rows_go, make, temp_dir_drop)
{
	begin();
	note(OBSERVED_OVER, "198.51.100.7", "web", 1);
	pass(8 * DAY);
	assert_string_equal(source_at("198.51.100.7", 0), "(the history )");
	assert_string_equal(answer("198.51.100.7", NULL, "events", now - DAY, now - DAY + MINUTE),
			    "");
	end();
}

/* The clock is set: nine days ahead are no reason to delete seven days; what is that old by then
 * is. */
TEST_WITH(a_clock_that_is_set_deletes_nothing, make, temp_dir_drop)
{
	begin();
	note(OBSERVED_OVER, "198.51.100.7", "web", 1);
	pass(2 * MINUTE);
	for (int i = 0; i < 2; i++) {
		history_step(history, 9 * (s64)DAY);
		now += 9 * DAY;
		pass(2 * MINUTE);
		assert_string_equal(source_at("198.51.100.7", 0), "over:web:1");
		history_step(history, -9 * (s64)DAY);
		now -= 9 * DAY;
		note(OBSERVED_OVER, "198.51.100.8", "web", 1);
		pass(2 * MINUTE);
		assert_string_equal(source_at("198.51.100.7", 0), "over:web:1");
	}
	assert_non_null(
		strstr(answer("198.51.100.8", NULL, "events", BEGIN, BEGIN + HOUR), "over:web:1"));
	now += 8 * DAY;
	pass(2 * MINUTE);
	assert_null(strstr(source_at("198.51.100.7", 0), "over:web:1"));
	end();
}

/* As after kill -9 and a torn write: the files as they are now, the log cut in the middle. */
TEST_WITH(a_torn_tail_is_dropped, make, temp_dir_drop)
{
	char command[512];

	begin();
	note(OBSERVED_OVER, "198.51.100.7", "web", 1);
	pass(5 * SECOND);
	note(OBSERVED_OVER, "198.51.100.8", "web", 1);
	pass(5 * SECOND);
	snprintf(command, sizeof(command),
		 "mkdir %s/copy && cp %s/events.db* %s/copy/ && rm %s/copy/events.db-shm && "
		 "truncate -s -100 %s/copy/events.db-wal",
		 temp_dir, temp_dir, temp_dir, temp_dir, temp_dir);
	assert_int_equal(system(command), 0);
	end();
	snprintf(command, sizeof(command), "rm %s/events.db* && mv %s/copy/* %s/", temp_dir,
		 temp_dir, temp_dir);
	assert_int_equal(system(command), 0);
	begin();
	assert_string_equal(source_at("198.51.100.7", 0), "over:web:1");
	note(OBSERVED_OVER, "198.51.100.9", "web", 1);
	pass(5 * SECOND);
	assert_string_equal(source_at("198.51.100.9", 0), "over:web:1");
	end();
}

TEST_WITH(what_is_no_history_is_put_aside, make, temp_dir_drop)
{
	struct stat st;

	temp_put("events.db",
		 "this is no database, but long enough to be taken for one, and it is not");
	begin();
	note(OBSERVED_OVER, "198.51.100.7", "web", 1);
	pass(5 * SECOND);
	assert_string_equal(source_at("198.51.100.7", 0), "over:web:1");
	assert_true(file_size("events.db.bad") > 0);
	assert_int_equal(stat(temp_path("events.db"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	end();
}

TEST_MAIN
