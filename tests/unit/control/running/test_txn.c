// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Whole files through the daemon's commands: apply, and its reversal unless confirmed. */
#include "txn_rig.h"
#include "conf/config_text.h"

/* ------------------------------------------------------------------ apply */

RIG_TEST(test_apply_takes_the_files_place)
{
	rig_open(&rig, ALL);
	apply(&rig, FIVE, NULL);
	check_rate(&rig, 5);
	rig_expect(&rig, "status", "applied.file=/lab/other.yaml, pending=none");
	/* Also for the next daemon, until the file is read again. */
	rig_restart(&rig);
	check_rate(&rig, 5);
	rig_restart(&rig);
	check_rate(&rig, 5);
	rig_do(&rig, "reload");
	check_rate(&rig, 10);
	rig_restart(&rig);
	check_rate(&rig, 10);
	assert_false(rig.d->running.source.applied);
}

RIG_TEST(test_save_writes_what_was_applied)
{
	rig_open(&rig, ALL);
	apply(&rig, FIVE, NULL);
	rig_do(&rig, SET("7"));
	rig_do(&rig, "save");
	assert_false(rig.d->running.source.applied);
	assert_int_equal(json_array_size(rig.d->running.live), 0);
	rig_restart(&rig);
	check_rate(&rig, 7);
}

/* The rig's lines of the file, if they are there: where its socket and its state are. */
static size_t rig_lines(const char *text)
{
	const char *end = !strncmp(text, "state_dir", 9) ? strstr(text, "control.sock}\n") : NULL;

	return end ? (size_t)(end - text) + strlen("control.sock}\n") : 0;
}

static void check_file(const struct rig *rig, const char *wanted)
{
	struct sl_err err;
	size_t size;
	char *text;

	assert_int_equal(config_text_read(rig->path, true, &text, &size, &err), 0);
	assert_string_equal(text + rig_lines(text), wanted);
	free(text);
}

static void put_file(const struct rig *rig, const char *text)
{
	struct sl_err err;
	size_t size;
	char *now;
	FILE *out;

	assert_int_equal(config_text_read(rig->path, true, &now, &size, &err), 0);
	out = fopen(rig->path, "w");
	fprintf(out, "%.*s%s", (int)rig_lines(now), now, text);
	fclose(out);
	free(now);
}

/* The file's words or, of what was applied, those; of a file that is broken by now, none. */
RIG_TEST(test_save_keeps_the_text)
{
	static const char own[] = "# Ours\n" ALL "table:   {buckets: 1M} # so many\n";

	rig_open(&rig, own);
	rig_do(&rig, "save");
	check_file(&rig, own);
	rig_do(&rig, SET("7"));
	put_file(&rig, "# Mine\n" ALL);
	rig_do(&rig, "save");
	check_file(
		&rig,
		"# Mine\nlimits: [{name: all, rate: 7 packets/s, burst: 7, accounting: exact}]\n");
	apply(&rig, "# Applied\n" FIVE, NULL);
	rig_do(&rig, "block add {'prefix':'192.0.2.99'}");
	rig_do(&rig, "save");
	check_file(&rig, "# Applied\n" FIVE "block: [192.0.2.99]\n");
	put_file(&rig, "# Broken\nlimits: {\n");
	rig_do(&rig, "save");
	rig_restart(&rig);
	check_rate(&rig, 5);
	assert_true(rig_packet(&rig, 99, clock_mono_ns()));
}

RIG_TEST(test_apply_keeps_live_changes)
{
	json_t *result;

	rig_open(&rig, ALL);
	rig_do(&rig, SET("7"));
	rig_do(&rig, "block add {'prefix':'192.0.2.99'}");
	apply(&rig, FIVE, NULL);
	check_rate(&rig, 7);
	/* One that no longer applies is reported; the others stay. */
	result = result_of(&rig, apply_line(&rig, "limits: [{name: other, rate: 3 packets/s}]\n",
					    NULL, false));
	json_expect(result, "apply", "dropped=1, dropped.0~limit set all");
	json_decref(result);
	assert_int_equal(json_array_size(rig.d->running.live), 1);
	assert_true(rig_packet(&rig, 99, clock_mono_ns()));
	assert_false(rig_packet(&rig, 98, clock_mono_ns()));
	rig_do(&rig, apply_line(&rig, FIVE, NULL, true));
	assert_int_equal(json_array_size(rig.d->running.live), 0);
	assert_false(rig_packet(&rig, 99, clock_mono_ns()));
}

RIG_TEST(test_apply_refusals)
{
	json_t *response;
	const char *line;

	rig_open(&rig, ALL);
	line = apply_line(&rig, "limits: [{name: all, rate: none}]\n", NULL, false);
	response = rig_command(&rig, &rig_root, line);
	json_expect(response, line, "error.file=/lab/other.yaml, error.line=3");
	json_decref(response);
	rig_refused(&rig, &rig_root, line, "rate");
	rig_refused(&rig, &rig_root, apply_line(&rig, FIVE, "61m", false), "1s to 1h");
	line = apply_line(&rig, FIVE, "900ms", false);
	rig_refused(&rig, &rig_root, line, "1s to 1h");
	rig_refused(&rig, &rig_reader, line, "control.group");
	rig_refused(&rig, &rig_root, "apply {'path':'/a'}", "'text'");
	rig_refused(&rig, &rig_root, "confirm", "nothing to confirm");
	rig_refused(&rig, &rig_root, "rollback", "no change left");
	check_rate(&rig, 10);
}

RIG_TEST(test_keys_that_need_a_restart_are_listed)
{
	json_t *result;
	const char *line;

	rig_open(&rig, ALL);
	line = apply_line(&rig, "metrics: {listen: 127.0.0.1:9811}\npin_dir: /sys/fs/bpf/x\n" FIVE,
			  NULL, false);
	result = result_of(&rig, line);
	json_expect(result, line, "notes=2, notes.0~metrics.listen, notes.1~pin_dir");
	json_decref(result);
}

/* The applied text cannot be read any more: the file is better than nothing. */
RIG_TEST(test_a_lost_text_leaves_the_file)
{
	char path[160];

	rig_open(&rig, ALL);
	apply(&rig, FIVE, NULL);
	snprintf(path, sizeof(path), "%s/history/text-%u.yaml", rig.dir,
		 rig.d->running.source.number);
	assert_int_equal(unlink(path), 0);
	rig_restart(&rig);
	check_rate(&rig, 10);
}

/* ------------------------------------------------------------------ confirm */

RIG_TEST(test_unconfirmed_goes_back)
{
	rig_open(&rig, ALL);
	rig_do(&rig, SET("7"));
	apply(&rig, FIVE, "60s");
	assert_int_equal(rate_of(&rig), 7); /* the live change is on top */
	rig_do(&rig, "rollback");
	assert_false(pending_is(&rig.d->running));
	check_rate(&rig, 7);
	rig_do(&rig, "rollback");
	check_rate(&rig, 10);

	apply(&rig, FIVE, "1h");
	check_rate(&rig, 5);
	pending_check(&rig.d->running);
	assert_true(pending_is(&rig.d->running));
	let_time_pass(&rig);
	assert_false(pending_is(&rig.d->running));
	check_rate(&rig, 10);
	rig_refused(&rig, &rig_root, "confirm", "nothing to confirm");
	rig_restart(&rig);
	check_rate(&rig, 10);
	rig_refused(&rig, &rig_root, "rollback", "no change left");
}

/* By the clock, whatever the daemon does meanwhile, or without one. */
RIG_TEST(test_the_data_path_goes_back_alone)
{
	u64 now = clock_mono_ns(), later = now + 61 * SL_NS_PER_SEC;

	rig_open(&rig, ALL);
	apply(&rig, FIVE, "60s");
	assert_int_equal(rig_passed(&rig, 1, 50, now), 5);
	rules_refresh(&rig.d->running);
	rules_refresh(&rig.d->running);
	dp_sweep(rig.dp, clock_now(clock_utc_offset_ns()));
	assert_int_equal(rig_passed(&rig, 2, 50, now), 5);
	assert_int_equal(rig_passed(&rig, 2, 50, later), 10);
	rig_restart(&rig);
	rig_restart(&rig);
	assert_int_equal(rig_passed(&rig, 3, 50, now), 5);
	assert_int_equal(rig_passed(&rig, 3, 50, later), 10);
	rig_do(&rig, "confirm");
	assert_int_equal(rig_passed(&rig, 4, 50, later), 5);
	apply(&rig, TWENTY, "60s");
	rig_do(&rig, "rollback");
	assert_int_equal(rig_passed(&rig, 5, 50, later), 5);
	assert_int_equal(rig_passed(&rig, 6, 50, later + 3600 * SL_NS_PER_SEC), 5);
}

RIG_TEST(test_confirmed_stays)
{
	rig_open(&rig, ALL);
	apply(&rig, FIVE, "60s");
	rig_do(&rig, "confirm");
	assert_false(pending_is(&rig.d->running));
	pending_check(&rig.d->running);
	check_rate(&rig, 5);
	rig_restart(&rig);
	check_rate(&rig, 5);
	rig_do(&rig, "rollback");
	check_rate(&rig, 10);
}

RIG_TEST(test_pending_refuses_changes)
{
	static const char *const lines[] = {
		SET("7"),
		"limit add {'yaml':'name: more\\nrate: 1 packets/s'}",
		"limit del {'name':'all'}",
		"block add {'prefix':'10.0.0.1'}",
		"exempt add {'prefix':'10.0.0.1'}",
		"reload",
		"save",
	};

	rig_open(&rig, ALL);
	apply(&rig, FIVE, "60s");
	for (size_t i = 0; i < COUNT(lines); i++) {
		rig_refused(&rig, &rig_root, lines[i], "sluicectl confirm");
		rig_refused(&rig, &rig_root, lines[i], "sluicectl rollback");
	}
	rig_refused(&rig, &rig_root, apply_line(&rig, TWENTY, NULL, false), "sluicectl confirm");
	/* Nor is the state for a rollback lost by changes of sluiced itself. */
	rules_refresh(&rig.d->running);
	rules_expire(&rig.d->running);
	assert_true(pending_is(&rig.d->running));
	check_rate(&rig, 5);
	let_time_pass(&rig);
	check_rate(&rig, 10);
	rig_do(&rig, SET("7"));
}

/* kill -9 while it waits, and a new daemon before and after the deadline. */
RIG_TEST(test_pending_over_a_restart)
{
	rig_open(&rig, ALL);
	apply(&rig, FIVE, "1h");
	rig_restart(&rig);
	assert_true(pending_is(&rig.d->running));
	check_rate(&rig, 5);
	rig_refused(&rig, &rig_root, SET("7"), "sluicectl confirm");
	let_time_pass(&rig);
	check_rate(&rig, 10);

	apply(&rig, FIVE, "1h");
	rig_restart(&rig);
	rig_do(&rig, "confirm");
	check_rate(&rig, 5);

	apply(&rig, TWENTY, "1s");
	check_rate(&rig, 20);
	rig.d->running.pending.deadline_ns = clock_mono_ns();
	assert_int_equal(rules_store(&rig.d->running, &rig.d->running.source, rig.d->running.live,
				     rig.d->running.history_top, rig.d->running.pending.deadline_ns,
				     clock_utc_ns(), NULL),
			 0);
	rig_restart(&rig);
	assert_false(pending_is(&rig.d->running));
	check_rate(&rig, 5);
	rig_do(&rig, "rollback");
	check_rate(&rig, 10);
}

/* After another boot the time of day counts, and never more than an hour. */
TEST(test_deadline_over_a_boot)
{
	u64 now = clock_mono_ns(), utc = clock_utc_ns(), mono, back;
	json_t *json = pending_to_json(now + 5 * SL_NS_PER_SEC, utc + 5 * SL_NS_PER_SEC, 7);

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
	return rig_counted(rig, SL_LV_PASS) + rig_counted(rig, SL_LV_DROP);
}

/* The limit is in another slot while it waits: there, on the way back, and confirmed. */
RIG_TEST(test_counters_go_on)
{
	static const char window[] = "limits: [{name: all, rate: 5 packets/s, algorithm: "
				     "fixed-window, accounting: exact}]\n";
	u64 now = clock_mono_ns();

	/* Sweeps use the real clock: a bucket that is full again within a second is freed. */
	rig_open(&rig, "limits: [{name: all, rate: 10 packets/h, burst: 10, accounting: exact}]\n");
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
	/* A source over its limit still is. */
	assert_int_equal(rig_passed(&rig, 1, 50, now), 0);
	assert_int_equal(counted(&rig), 150);
	apply(&rig, window, "1h");
	rig_passed(&rig, 3, 10, now);
	rig_do(&rig, "confirm");
	assert_int_equal(counted(&rig), 160);
	rig_restart(&rig);
	assert_int_equal(counted(&rig), 160);
}

TEST_MAIN
