/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Changes of whole files: apply, confirm, rollback, what a killed daemon leaves, the audit log. */
#include "daemon_rig.h"

#define ALL "limits: [{name: all, rate: 10 packets/s, burst: 10, accounting: exact}]\n"
#define FIVE "limits: [{name: all, rate: 5 packets/s, burst: 5, accounting: exact}]\n"
#define TWENTY "limits: [{name: all, rate: 20 packets/s, burst: 20, accounting: exact}]\n"
#define SET(rate) "{\"command\":\"limit set\",\"args\":{\"name\":\"all\",\"pairs\":[\"rate=" \
	rate " packets/s\",\"burst=" rate "\"]}}"

/* A request as a line, to be freed. */
static char *request(const char *command, json_t *args)
{
	json_t *json = json_pack("{s:s, s:o}", "command", command, "args", args);
	char *line = json_dumps(json, 0);

	assert_non_null(line);
	json_decref(json);
	return line;
}

/* As rig_write() would have it in the file. */
static char *whole(const struct rig *rig, const char *text)
{
	char *all;

	assert_true(asprintf(&all, "state_dir: %s\ncontrol: {socket: %s/control.sock}\n%s", rig->dir,
			     rig->dir, text) > 0);
	return all;
}

static char *apply_line(const struct rig *rig, const char *text, const char *confirm,
			bool discard_live)
{
	char *all = whole(rig, text);
	json_t *args = json_pack("{s:s, s:s, s:b}", "path", "/lab/other.yaml", "text", all,
				 "discard_live", discard_live);

	if (confirm)
		json_object_set_new(args, "confirm", json_string(confirm));
	free(all);
	return request("apply", args);
}

static void apply(struct rig *rig, const char *text, const char *confirm)
{
	char *line = apply_line(rig, text, confirm, false);

	rig_do(rig, line);
	free(line);
}

/* The result of a request that is done, to be freed. */
static json_t *result_of(struct rig *rig, const char *line)
{
	json_t *answer = rig_ask(rig, &rig_root, line), *result;

	if (!json_is_true(json_object_get(answer, "ok")))
		fail_msg("%s: %s", line, json_dumps(answer, 0));
	result = json_incref(json_object_get(answer, "result"));
	json_decref(answer);
	return result;
}

static u64 rate_of(const struct rig *rig)
{
	const struct limit_def *def = policy_find_limit(rig->d->running, "all");

	return def ? def->rates.rate[0].count : 0;
}

/* The rate in the model, and that packets meet it: a source of its own each time. */
static void check_rate(struct rig *rig, u64 rate)
{
	static u8 source;

	assert_int_equal(rate_of(rig), rate);
	assert_int_equal(rig_passed(rig, ++source, 50, clock_mono_ns()), rate);
}

/* ------------------------------------------------------------------ apply */

static void test_apply_takes_the_files_place(void **state)
{
	struct rig rig;
	json_t *status;

	rig_open(&rig, ALL);
	apply(&rig, FIVE, NULL);
	check_rate(&rig, 5);
	status = result_of(&rig, "{\"command\":\"status\"}");
	assert_string_equal(json_string_value(json_object_get(json_object_get(status, "applied"),
							      "file")), "/lab/other.yaml");
	assert_true(json_is_null(json_object_get(status, "pending")));
	json_decref(status);
	/* Also for the next daemon, until the file is read again. */
	rig_restart(&rig);
	check_rate(&rig, 5);
	rig_restart(&rig);
	check_rate(&rig, 5);
	rig_do(&rig, "{\"command\":\"reload\"}");
	check_rate(&rig, 10);
	rig_restart(&rig);
	check_rate(&rig, 10);
	assert_false(rig.d->source.applied);
	rig_close(&rig);
}

static void test_save_writes_what_was_applied(void **state)
{
	struct rig rig;

	rig_open(&rig, ALL);
	apply(&rig, FIVE, NULL);
	rig_do(&rig, SET("7"));
	rig_do(&rig, "{\"command\":\"save\"}");
	assert_false(rig.d->source.applied);
	assert_int_equal(json_array_size(rig.d->live), 0);
	rig_restart(&rig);
	check_rate(&rig, 7);
	rig_close(&rig);
}

static void test_apply_keeps_live_changes(void **state)
{
	struct rig rig;
	json_t *result;
	char *line;

	rig_open(&rig, ALL);
	rig_do(&rig, SET("7"));
	rig_do(&rig, "{\"command\":\"block add\",\"args\":{\"prefix\":\"192.0.2.99\"}}");
	apply(&rig, FIVE, NULL);
	check_rate(&rig, 7);
	/* One that no longer applies is told; the others stay. */
	line = apply_line(&rig, "limits: [{name: other, rate: 3 packets/s}]\n", NULL, false);
	result = result_of(&rig, line);
	free(line);
	assert_int_equal(json_array_size(json_object_get(result, "dropped")), 1);
	assert_non_null(strstr(json_string_value(json_array_get(json_object_get(result, "dropped"),
								0)), "limit set all"));
	json_decref(result);
	assert_int_equal(json_array_size(rig.d->live), 1);
	assert_true(rig_packet(&rig, 99, clock_mono_ns()));
	assert_false(rig_packet(&rig, 98, clock_mono_ns()));
	line = apply_line(&rig, FIVE, NULL, true);
	rig_do(&rig, line);
	free(line);
	assert_int_equal(json_array_size(rig.d->live), 0);
	assert_false(rig_packet(&rig, 99, clock_mono_ns()));
	rig_close(&rig);
}

static void test_apply_refusals(void **state)
{
	struct rig rig;
	json_t *answer;
	char *line;

	rig_open(&rig, ALL);
	line = apply_line(&rig, "limits: [{name: all, rate: none}]\n", NULL, false);
	answer = rig_ask(&rig, &rig_root, line);
	assert_string_equal(json_string_value(json_object_get(json_object_get(answer, "error"),
							      "file")), "/lab/other.yaml");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(answer, "error"),
							    "line")), 3);
	json_decref(answer);
	rig_refused(&rig, &rig_root, line, "rate");
	free(line);
	line = apply_line(&rig, FIVE, "61m", false);
	rig_refused(&rig, &rig_root, line, "1s to 1h");
	free(line);
	line = apply_line(&rig, FIVE, "900ms", false);
	rig_refused(&rig, &rig_root, line, "1s to 1h");
	rig_refused(&rig, &rig_reader, line, "control.group");
	free(line);
	rig_refused(&rig, &rig_root, "{\"command\":\"apply\",\"args\":{\"path\":\"/a\"}}", "'text'");
	rig_refused(&rig, &rig_root, "{\"command\":\"confirm\"}", "nothing to confirm");
	rig_refused(&rig, &rig_root, "{\"command\":\"rollback\"}", "no change left");
	check_rate(&rig, 10);
	rig_close(&rig);
}

static void test_keys_that_take_a_restart_are_told(void **state)
{
	struct rig rig;
	json_t *result, *notes;
	char *line;

	rig_open(&rig, ALL);
	line = apply_line(&rig, "metrics: {listen: 127.0.0.1:9811}\npin_dir: /sys/fs/bpf/x\n" FIVE,
			  NULL, false);
	result = result_of(&rig, line);
	notes = json_object_get(result, "notes");
	assert_int_equal(json_array_size(notes), 2);
	assert_non_null(strstr(json_string_value(json_array_get(notes, 0)), "metrics.listen"));
	assert_non_null(strstr(json_string_value(json_array_get(notes, 1)), "pin_dir"));
	json_decref(result);
	free(line);
	rig_close(&rig);
}

/* The text that was applied cannot be read any more: better the file than nothing. */
static void test_a_lost_text_leaves_the_file(void **state)
{
	char path[160];
	struct rig rig;

	rig_open(&rig, ALL);
	apply(&rig, FIVE, NULL);
	snprintf(path, sizeof(path), "%s/history/text-%u.yaml", rig.dir, rig.d->source.number);
	assert_int_equal(unlink(path), 0);
	rig_restart(&rig);
	check_rate(&rig, 10);
	rig_close(&rig);
}

/* ------------------------------------------------------------------ confirm */

/* As if the time were up, as far as the daemon is concerned. */
static void let_time_pass(struct rig *rig)
{
	assert_true(pending_is(rig->d));
	rig->d->pending.deadline_ns = clock_mono_ns();
	pending_check(rig->d);
}

static void test_unconfirmed_goes_back(void **state)
{
	struct rig rig;

	rig_open(&rig, ALL);
	rig_do(&rig, SET("7"));
	apply(&rig, FIVE, "60s");
	assert_int_equal(rate_of(&rig), 7);	/* the live change is on top */
	rig_do(&rig, "{\"command\":\"rollback\"}");
	assert_false(pending_is(rig.d));
	check_rate(&rig, 7);
	rig_do(&rig, "{\"command\":\"rollback\"}");
	check_rate(&rig, 10);

	apply(&rig, FIVE, "1h");
	check_rate(&rig, 5);
	pending_check(rig.d);
	assert_true(pending_is(rig.d));
	let_time_pass(&rig);
	assert_false(pending_is(rig.d));
	check_rate(&rig, 10);
	rig_refused(&rig, &rig_root, "{\"command\":\"confirm\"}", "nothing to confirm");
	rig_restart(&rig);
	check_rate(&rig, 10);
	rig_refused(&rig, &rig_root, "{\"command\":\"rollback\"}", "no change left");
	rig_close(&rig);
}

static void test_confirmed_stays(void **state)
{
	struct rig rig;

	rig_open(&rig, ALL);
	apply(&rig, FIVE, "60s");
	rig_do(&rig, "{\"command\":\"confirm\"}");
	assert_false(pending_is(rig.d));
	pending_check(rig.d);
	check_rate(&rig, 5);
	rig_restart(&rig);
	check_rate(&rig, 5);
	rig_do(&rig, "{\"command\":\"rollback\"}");
	check_rate(&rig, 10);
	rig_close(&rig);
}

static void test_pending_refuses_changes(void **state)
{
	static const char *const lines[] = {
		SET("7"),
		"{\"command\":\"limit add\",\"args\":{\"yaml\":\"name: more\\nrate: 1 packets/s\"}}",
		"{\"command\":\"limit del\",\"args\":{\"name\":\"all\"}}",
		"{\"command\":\"block add\",\"args\":{\"prefix\":\"10.0.0.1\"}}",
		"{\"command\":\"exempt add\",\"args\":{\"prefix\":\"10.0.0.1\"}}",
		"{\"command\":\"reload\"}",
		"{\"command\":\"save\"}",
	};
	struct rig rig;
	char *line;

	rig_open(&rig, ALL);
	apply(&rig, FIVE, "60s");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		rig_refused(&rig, &rig_root, lines[i], "sluicectl confirm");
		rig_refused(&rig, &rig_root, lines[i], "sluicectl rollback");
	}
	line = apply_line(&rig, TWENTY, NULL, false);
	rig_refused(&rig, &rig_root, line, "sluicectl confirm");
	free(line);
	/* Nor does it lose what it may go back to by what sluiced does on its own. */
	rules_refresh(rig.d);
	rules_expire(rig.d);
	assert_true(pending_is(rig.d));
	check_rate(&rig, 5);
	let_time_pass(&rig);
	check_rate(&rig, 10);
	rig_do(&rig, SET("7"));
	rig_close(&rig);
}

/* kill -9 while it waits, and a new daemon before and after the deadline. */
static void test_pending_over_a_restart(void **state)
{
	struct rig rig;

	rig_open(&rig, ALL);
	apply(&rig, FIVE, "1h");
	rig_restart(&rig);
	assert_true(pending_is(rig.d));
	check_rate(&rig, 5);
	rig_refused(&rig, &rig_root, SET("7"), "sluicectl confirm");
	let_time_pass(&rig);
	check_rate(&rig, 10);

	apply(&rig, FIVE, "1h");
	rig_restart(&rig);
	rig_do(&rig, "{\"command\":\"confirm\"}");
	check_rate(&rig, 5);

	apply(&rig, TWENTY, "1s");
	check_rate(&rig, 20);
	rig.d->pending.deadline_ns = clock_mono_ns();
	assert_int_equal(rules_store(rig.d, &rig.d->source, rig.d->live, rig.d->history_top,
				     rig.d->pending.deadline_ns, clock_utc_ns(), NULL), 0);
	rig_restart(&rig);
	assert_false(pending_is(rig.d));
	check_rate(&rig, 5);
	rig_do(&rig, "{\"command\":\"rollback\"}");
	check_rate(&rig, 10);
	rig_close(&rig);
}

/* After another boot the time of day counts, and never more than an hour. */
static void test_deadline_over_a_boot(void **state)
{
	u64 now = clock_mono_ns(), utc = clock_utc_ns(), mono, back;
	json_t *json = pending_to_json(now + 5 * SL_NS_PER_SEC, utc + 5 * SL_NS_PER_SEC);

	assert_true(pending_from_json(json, &mono, &back));
	assert_int_equal(mono, now + 5 * SL_NS_PER_SEC);
	json_object_set_new(json, "boot_id", json_string("another"));
	json_object_set_new(json, "deadline_ns", json_integer(7));
	assert_true(pending_from_json(json, &mono, &back));
	assert_in_range(mono, now + 4 * SL_NS_PER_SEC, now + 6 * SL_NS_PER_SEC);
	json_object_set_new(json, "deadline_utc_ns", json_integer((json_int_t)(utc - 1)));
	assert_true(pending_from_json(json, &mono, &back));
	assert_true(mono <= clock_mono_ns());
	/* A clock that went back by years does not make it wait for years. */
	json_object_set_new(json, "deadline_utc_ns",
			    json_integer((json_int_t)(utc + 86400 * SL_NS_PER_SEC)));
	assert_true(pending_from_json(json, &mono, &back));
	assert_true(mono <= clock_mono_ns());
	json_decref(json);
	assert_false(pending_from_json(NULL, &mono, &back));
}

static u64 counted(struct rig *rig)
{
	struct limit_view view[SL_ROW_FURTHER];
	struct sl_limit_stats stats;

	assert_true(view_limits(rig->d, view) > 0);
	assert_int_equal(state_limit_stats(rig->d, "all", view[0].slot, &stats), 0);
	return stats.packets[SL_LV_PASS] + stats.packets[SL_LV_DROP];
}

/* The limit is in another slot while it waits: there, on the way back, and confirmed. */
static void test_counters_go_on(void **state)
{
	static const char window[] = "limits: [{name: all, rate: 5 packets/s, algorithm: "
				     "fixed-window, accounting: exact}]\n";
	u64 now = clock_mono_ns();
	struct rig rig;

	rig_open(&rig, ALL);
	rig_passed(&rig, 1, 50, now);
	assert_int_equal(counted(&rig), 50);
	apply(&rig, window, "1h");
	assert_int_equal(counted(&rig), 50);
	assert_int_equal(rig_passed(&rig, 2, 50, now), 5);
	assert_int_equal(counted(&rig), 100);
	rig_restart(&rig);
	assert_int_equal(counted(&rig), 100);
	let_time_pass(&rig);
	assert_int_equal(counted(&rig), 100);
	/* Who was over its limit is so still. */
	assert_int_equal(rig_passed(&rig, 1, 50, now), 0);
	assert_int_equal(counted(&rig), 150);
	apply(&rig, window, "1h");
	rig_passed(&rig, 3, 10, now);
	rig_do(&rig, "{\"command\":\"confirm\"}");
	assert_int_equal(counted(&rig), 160);
	rig_restart(&rig);
	assert_int_equal(counted(&rig), 160);
	rig_close(&rig);
}

/* ------------------------------------------------------------------ rollback */

static size_t files_in(const struct rig *rig, const char *kind)
{
	char path[128];
	struct dirent *entry;
	size_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/history", rig->dir);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += !strncmp(entry->d_name, kind, strlen(kind));
	closedir(dir);
	return count;
}

/* Files, live changes, a save and a reload in turn; each rollback undoes one. */
static void test_ten_rollbacks(void **state)
{
	char text[256], line[256];
	json_t *list;
	struct rig rig;

	rig_open(&rig, ALL);
	for (u64 i = 1; i <= 13; i++) {
		if (i % 2) {
			snprintf(line, sizeof(line), "{\"command\":\"limit set\",\"args\":{\"name\":"
				 "\"all\",\"pairs\":[\"rate=%llu packets/s\",\"burst=%llu\"]}}",
				 20 + i, 20 + i);
			rig_do(&rig, line);
		} else {
			char *apply = NULL;

			snprintf(text, sizeof(text), "limits: [{name: all, rate: %llu packets/s, "
				 "burst: %llu, accounting: exact}]\n", 20 + i, 20 + i);
			apply = apply_line(&rig, text, NULL, true);
			rig_do(&rig, apply);
			free(apply);
		}
		check_rate(&rig, 20 + i);
		if (i == 7)
			rig_restart(&rig);
	}
	assert_int_equal(files_in(&rig, "state-"), 10);
	assert_true(files_in(&rig, "text-") <= 7);
	list = result_of(&rig, "{\"command\":\"rollback list\"}");
	assert_int_equal(json_array_size(json_object_get(list, "changes")), 10);
	assert_string_equal(json_string_value(json_object_get(json_array_get(
		json_object_get(list, "changes"), 0), "what")),
		"limit set all rate=33 packets/s burst=33");
	json_decref(list);
	for (u64 i = 12; i >= 3; i--) {
		rig_do(&rig, "{\"command\":\"rollback\"}");
		check_rate(&rig, 20 + i);
		if (i % 3 == 0)
			rig_restart(&rig);
		assert_int_equal(rate_of(&rig), 20 + i);
	}
	rig_refused(&rig, &rig_root, "{\"command\":\"rollback\"}", "no change left");
	rig_close(&rig);
}

static void test_rollback_of_reload_and_save(void **state)
{
	struct rig rig;

	rig_open(&rig, ALL);
	rig_write(&rig, FIVE);
	rig_do(&rig, "{\"command\":\"reload\"}");
	rig_do(&rig, "{\"command\":\"reload\"}");	/* of the same: no change */
	check_rate(&rig, 5);
	rig_do(&rig, SET("7"));
	rig_do(&rig, "{\"command\":\"save\"}");
	check_rate(&rig, 7);
	rig_do(&rig, "{\"command\":\"rollback\"}");
	check_rate(&rig, 7);
	assert_int_equal(json_array_size(rig.d->live), 1);
	rig_do(&rig, "{\"command\":\"rollback\"}");
	check_rate(&rig, 5);
	rig_do(&rig, "{\"command\":\"rollback\"}");
	check_rate(&rig, 10);
	/* The file on disk says otherwise; that is for a reload. */
	assert_true(rig.d->source.applied);
	rig_restart(&rig);
	check_rate(&rig, 10);
	rig_close(&rig);
}

/* A start with an edited file is a change, too. */
static void test_rollback_of_a_start(void **state)
{
	struct rig rig;

	rig_open(&rig, ALL);
	rig_write(&rig, FIVE);
	rig_restart(&rig);
	check_rate(&rig, 5);
	rig_restart(&rig);
	rig_do(&rig, "{\"command\":\"rollback\"}");
	check_rate(&rig, 10);
	rig_refused(&rig, &rig_root, "{\"command\":\"rollback\"}", "no change left");
	rig_close(&rig);
}

/* A timed block that has ended does not come back. */
static void test_rollback_leaves_the_past(void **state)
{
	struct rig rig;
	json_t *op;

	rig_open(&rig, ALL);
	rig_do(&rig, "{\"command\":\"block add\",\"args\":{\"prefix\":\"192.0.2.1\",\"for\":\"1h\"}}");
	rig_do(&rig, SET("7"));
	op = json_array_get(rig.d->live, 0);
	json_object_set_new(op, "until_utc_ns", json_integer(1000));
	rig_do(&rig, SET("8"));
	rig_do(&rig, "{\"command\":\"rollback\"}");
	assert_int_equal(json_array_size(rig.d->live), 1);
	check_rate(&rig, 7);
	rig_close(&rig);
}

/* ------------------------------------------------------------------ killed in the middle */

/* A state that was written, and the change it goes with was not. */
static void test_killed_before_the_record(void **state)
{
	struct change change = { .what = "never" };
	struct sl_err err;
	struct rig rig;
	u32 number;

	rig_open(&rig, ALL);
	rig_do(&rig, SET("7"));
	assert_int_equal(history_text_keep(rig.dir, FIVE, strlen(FIVE), &number, &err), 0);
	assert_int_equal(rules_note_before(rig.d, &change, &err), 0);
	rig_restart(&rig);
	check_rate(&rig, 7);
	assert_int_equal(files_in(&rig, "state-"), 1);
	assert_int_equal(files_in(&rig, "text-"), 1);
	rig_do(&rig, "{\"command\":\"rollback\"}");
	check_rate(&rig, 10);
	rig_close(&rig);
}

/* Nothing can be written: refused, and as it was. */
static void test_nothing_to_write_to(void **state)
{
	char history[160], record[160];
	struct rig rig;
	char *line;

	rig_open(&rig, ALL);
	snprintf(history, sizeof(history), "%s/history/state-1.json.new", rig.dir);
	assert_int_equal(mkdir(history, 0700), 0);
	line = apply_line(&rig, FIVE, NULL, false);
	rig_refused(&rig, &rig_root, line, "state-1.json");
	check_rate(&rig, 10);
	assert_int_equal(rmdir(history), 0);
	/* The last step of all; the rules were in force for a moment. */
	snprintf(record, sizeof(record), "%s/live.json.new", rig.dir);
	assert_int_equal(mkdir(record, 0700), 0);
	assert_false(json_is_true(json_object_get(rig_ask(&rig, &rig_root, line), "ok")));
	check_rate(&rig, 10);
	assert_int_equal(rmdir(record), 0);
	free(line);
	rig_restart(&rig);
	check_rate(&rig, 10);
	rig_refused(&rig, &rig_root, "{\"command\":\"rollback\"}", "no change left");
	rig_close(&rig);
}

/* ------------------------------------------------------------------ diff FILE */

static void test_diff_file(void **state)
{
	struct rig rig;
	json_t *args, *result;
	char *line, *all;

	rig_open(&rig, ALL);
	rig_do(&rig, SET("7"));
	all = whole(&rig, "# a comment is no difference\nlimits:\n- {burst: 7, name: all, rate: 7 "
			  "packets/s, accounting: exact}\n");
	args = json_pack("{s:s, s:s}", "path", "/lab/other.yaml", "text", all);
	line = request("diff", args);
	result = result_of(&rig, line);
	assert_string_equal(json_string_value(json_object_get(result, "running")),
			    json_string_value(json_object_get(result, "file")));
	json_decref(result);
	/* What the file names would be read with sluiced's rights. */
	rig_refused(&rig, &rig_reader, line, "control.group");
	free(line);
	free(all);
	rig_close(&rig);
}

/* ------------------------------------------------------------------ audit */

/* The lines of a file of the log, as an array. */
static json_t *audit_lines(const struct rig *rig, const char *name)
{
	char path[128], *line = NULL;
	json_t *lines = json_array();
	size_t size = 0;
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
	in = fopen(path, "r");
	assert_non_null(in);
	while (getline(&line, &size, in) > 0) {
		json_t *json = json_loads(line, 0, NULL);

		if (!json)
			fail_msg("not JSON: %s", line);
		json_array_append_new(lines, json);
	}
	free(line);
	fclose(in);
	return lines;
}

static const char *text_in(const json_t *lines, size_t i, const char *key)
{
	return json_string_value(json_object_get(json_array_get(lines, i), key));
}

static void test_audit(void **state)
{
	struct rig rig;
	json_t *lines, *line;

	rig_open(&rig, ALL);
	rig_do(&rig, SET("7"));
	rig_refused(&rig, &rig_reader, "{\"command\":\"reload\"}", "control.group");
	rig_refused(&rig, &rig_root, "{\"command\":\"limit del\",\"args\":{\"name\":\"no\"}}", "no");
	rig_do(&rig, "{\"command\":\"status\"}");
	apply(&rig, FIVE, "1h");
	let_time_pass(&rig);
	lines = audit_lines(&rig, "audit.log");
	assert_int_equal(json_array_size(lines), 6);
	assert_string_equal(text_in(lines, 0, "command"), "start");
	line = json_array_get(lines, 1);
	assert_string_equal(text_in(lines, 1, "command"), "limit set");
	assert_string_equal(text_in(lines, 1, "user"), "root");
	assert_int_equal(json_integer_value(json_object_get(line, "pid")), 1);
	assert_string_equal(json_string_value(json_object_get(json_object_get(line, "args"),
							      "name")), "all");
	assert_int_equal(json_integer_value(json_array_get(json_object_get(line, "generation"), 0)),
			 1);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(line, "generation"), 1)),
			 2);
	assert_true(json_is_true(json_object_get(line, "ok")));
	assert_int_equal(json_integer_value(json_object_get(json_array_get(lines, 2), "uid")), 1000);
	assert_non_null(strstr(text_in(lines, 2, "error"), "control.group"));
	assert_non_null(strstr(text_in(lines, 3, "error"), "no"));
	assert_string_equal(text_in(lines, 4, "command"), "apply");
	assert_string_equal(text_in(lines, 5, "command"), "revert");
	assert_null(json_object_get(json_array_get(lines, 5), "uid"));
	json_decref(lines);
	rig_close(&rig);
}

/* Long arguments are cut between two characters, and the log is renamed at its size. */
static void test_audit_is_bounded(void **state)
{
	char *text = malloc(3 << 20), path[128];
	json_t *lines, *args;
	struct stat st;
	struct rig rig;

	rig_open(&rig, ALL);
	memset(text, 'x', 3 << 20);
	for (size_t i = 1; i + 1 < 100000; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[100001] = '\0';
	args = json_pack("{s:s}", "text", text);
	audit_write(rig.d, &rig_root, "apply", args, 1, NULL);
	json_decref(args);
	lines = audit_lines(&rig, "audit.log");
	assert_int_equal(json_array_size(lines), 2);
	assert_in_range(strlen(text_in(lines, 1, "args")), 4000, 4200);
	assert_non_null(strstr(text_in(lines, 1, "args"), " bytes)"));
	json_decref(lines);
	snprintf(path, sizeof(path), "%s/audit.log", rig.dir);
	for (int i = 1; i <= 6; i++) {
		assert_int_equal(truncate(path, 4 << 20), 0);
		audit_write(rig.d, NULL, "start", NULL, 1, NULL);
		assert_int_equal(stat(path, &st), 0);
		assert_in_range(st.st_size, 1, 500);
	}
	snprintf(path, sizeof(path), "%s/audit.log.4", rig.dir);
	assert_int_equal(stat(path, &st), 0);
	snprintf(path, sizeof(path), "%s/audit.log.5", rig.dir);
	assert_int_not_equal(stat(path, &st), 0);
	free(text);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_apply_takes_the_files_place),
		cmocka_unit_test(test_save_writes_what_was_applied),
		cmocka_unit_test(test_apply_keeps_live_changes),
		cmocka_unit_test(test_apply_refusals),
		cmocka_unit_test(test_keys_that_take_a_restart_are_told),
		cmocka_unit_test(test_a_lost_text_leaves_the_file),
		cmocka_unit_test(test_unconfirmed_goes_back),
		cmocka_unit_test(test_confirmed_stays),
		cmocka_unit_test(test_pending_refuses_changes),
		cmocka_unit_test(test_pending_over_a_restart),
		cmocka_unit_test(test_deadline_over_a_boot),
		cmocka_unit_test(test_counters_go_on),
		cmocka_unit_test(test_ten_rollbacks),
		cmocka_unit_test(test_rollback_of_reload_and_save),
		cmocka_unit_test(test_rollback_of_a_start),
		cmocka_unit_test(test_rollback_leaves_the_past),
		cmocka_unit_test(test_killed_before_the_record),
		cmocka_unit_test(test_nothing_to_write_to),
		cmocka_unit_test(test_diff_file),
		cmocka_unit_test(test_audit),
		cmocka_unit_test(test_audit_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
