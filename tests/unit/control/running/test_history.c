// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rollback, recovery after kill -9, diff FILE, and the audit log. */
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#include "lib/rng.h"
#include "txn_rig.h"

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
RIG_TEST(test_ten_rollbacks)
{
	char text[256], line[256];
	json_t *list;

	rig_open(&rig, ALL);
	for (u64 i = 1; i <= 13; i++) {
		if (i % 2) {
			snprintf(
				line, sizeof(line),
				"limit set {'name':'all','pairs':['rate=%llu packets/s','burst=%llu']}",
				20 + i, 20 + i);
			rig_do(&rig, line);
		} else {
			snprintf(text, sizeof(text),
				 "limits: [{name: all, rate: %llu packets/s, "
				 "burst: %llu, accounting: exact}]\n",
				 20 + i, 20 + i);
			rig_do(&rig, apply_line(&rig, text, NULL, true));
		}
		check_rate(&rig, 20 + i);
		if (i == 7)
			rig_restart(&rig);
	}
	assert_int_equal(files_in(&rig, "state-"), 10);
	assert_true(files_in(&rig, "text-") <= 7);
	list = result_of(&rig, "rollback list");
	assert_int_equal(count_at(list, "changes"), 10);
	assert_string_equal(text_at(list, "changes.0.what"),
			    "limit set all rate=33 packets/s burst=33");
	json_decref(list);
	for (u64 i = 12; i >= 3; i--) {
		rig_do(&rig, "rollback");
		check_rate(&rig, 20 + i);
		if (i % 3 == 0)
			rig_restart(&rig);
		assert_int_equal(rate_of(&rig), 20 + i);
	}
	rig_refused(&rig, &rig_root, "rollback", "no change left");
}

RIG_TEST(test_rollback_of_reload_and_save)
{
	rig_open(&rig, ALL);
	rig_write(&rig, FIVE);
	rig_do(&rig, "reload");
	rig_do(&rig, "reload"); /* of the same: no change */
	check_rate(&rig, 5);
	rig_do(&rig, SET("7"));
	rig_do(&rig, "save");
	check_rate(&rig, 7);
	rig_do(&rig, "rollback");
	check_rate(&rig, 7);
	assert_int_equal(json_array_size(rig.d->running.live), 1);
	rig_do(&rig, "rollback");
	check_rate(&rig, 5);
	rig_do(&rig, "rollback");
	check_rate(&rig, 10);
	/* The file on disk differs; that is left to a reload. */
	assert_true(rig.d->running.source.applied);
	rig_restart(&rig);
	check_rate(&rig, 10);
}

/* A start with an edited file is a change, too. */
RIG_TEST(test_rollback_of_a_start)
{
	rig_open(&rig, ALL);
	rig_write(&rig, FIVE);
	rig_restart(&rig);
	check_rate(&rig, 5);
	rig_restart(&rig);
	rig_do(&rig, "rollback");
	check_rate(&rig, 10);
	rig_refused(&rig, &rig_root, "rollback", "no change left");
}

/* And so is one with another file. */
RIG_TEST(test_rollback_to_another_file)
{
	char other[128];

	rig_open(&rig, ALL);
	snprintf(other, sizeof(other), "%s", rig.path);
	snprintf(rig.path, sizeof(rig.path), "%s/other.yaml", rig.dir);
	rig_write(&rig, FIVE);
	rig_restart(&rig);
	check_rate(&rig, 5);
	rig_do(&rig, "rollback");
	check_rate(&rig, 10);
	assert_true(rig.d->running.source.applied);
	assert_string_equal(rig.d->running.source.path, other);
	assert_in_range(rig.d->running.source.at_utc_ns, clock_utc_ns() - 60 * SL_NS_PER_SEC,
			clock_utc_ns());
}

/* A timed block that has ended does not come back. */
RIG_TEST(test_rollback_leaves_the_past)
{
	json_t *op;

	rig_open(&rig, ALL);
	rig_do(&rig, "block add {'prefix':'192.0.2.1','for':'1h'}");
	rig_do(&rig, SET("7"));
	op = json_array_get(rig.d->running.live, 0);
	json_object_set_new(op, "until_utc_ns", json_integer(1000));
	rig_do(&rig, SET("8"));
	rig_do(&rig, "rollback");
	assert_int_equal(json_array_size(rig.d->running.live), 1);
	check_rate(&rig, 7);
}

/* ------------------------------------------------------------------ killed in the middle */

/* A state was written, and its change was not. */
RIG_TEST(test_killed_before_the_record)
{
	struct change change = { .what = "never" };
	struct sl_err err;
	u32 number;

	rig_open(&rig, ALL);
	rig_do(&rig, SET("7"));
	assert_int_equal(history_text_keep(rig.dir, FIVE, strlen(FIVE), &number, &err), 0);
	assert_int_equal(rules_note_before(&rig.d->running, &change, &err), 0);
	rig_restart(&rig);
	check_rate(&rig, 7);
	assert_int_equal(files_in(&rig, "state-"), 1);
	assert_int_equal(files_in(&rig, "text-"), 1);
	rig_do(&rig, "rollback");
	check_rate(&rig, 10);
}

/* A change in a process of its own, ended by SIGKILL at some point; true if it was done. */
static bool killed_at(struct rig *rig, const char *line, u64 after_us)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		json_t *response = rig_command(rig, &rig_root, line);

		_exit(true_at(response, "ok") ? 0 : 1);
	}
	usleep((useconds_t)after_us);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFEXITED(status);
}

/* kill -9 at any moment: the next daemon is at the state before or after, and can go back. */
RIG_TEST(test_killed_anywhere)
{
	u64 rates[100] = { 10 };
	size_t count = 1; /* of rates: those that the rollbacks restore */
	int cut = 0, done = 0;
	json_t *list;
	size_t left;

	rng_start("killed anywhere");
	rig_open(&rig, ALL);
	for (u64 i = 0; i < 60; i++) {
		u64 rate = 20 + i, kind = rng_below(3);
		const char *line;
		char text[128];
		bool finished;

		snprintf(text, sizeof(text),
			 kind ? "limits: [{name: all, rate: %llu packets/s}]\n"
			      : "rate=%llu packets/s",
			 rate);
		if (kind)
			line = apply_line(&rig, text, kind == 1 ? "1h" : NULL, true);
		else
			line = request("limit set",
				       json_pack("{s:s, s:[s]}", "name", "all", "pairs", text));
		finished = killed_at(&rig, line, rng_below(60000));
		rig_restart(&rig);
		if (rate_of(&rig) == rate)
			rates[count++] = rate;
		else if (finished || rate_of(&rig) != rates[count - 1])
			fail_msg("%llu after %llu, not %llu", rate_of(&rig), rates[count - 1],
				 rate);
		finished ? done++ : cut++;
		if (pending_is(&rig.d->running) && rng_below(2))
			rig_do(&rig, "confirm");
		else if (pending_is(&rig.d->running) || (count > 1 && !rng_below(4))) {
			killed_at(&rig, "rollback", rng_below(60000));
			rig_restart(&rig);
			if (pending_is(&rig.d->running))
				rig_do(&rig, "confirm");
			if (rate_of(&rig) == rates[count - 2])
				count--;
			assert_int_equal(rate_of(&rig), rates[count - 1]);
		}
	}
	print_message("%d changes were cut short, %d were done\n", cut, done);
	/* Each remaining state is one of those before. */
	list = result_of(&rig, "rollback list");
	for (left = count_at(list, "changes"); left; left--) {
		assert_true(count > 1);
		rig_do(&rig, "rollback");
		assert_int_equal(rate_of(&rig), rates[--count - 1]);
	}
	json_decref(list);
}

/* Nothing can be written: refused, and unchanged. */
RIG_TEST(test_state_not_writable)
{
	char history[160], record[160];
	const char *line;
	json_t *response;

	rig_open(&rig, ALL);
	snprintf(history, sizeof(history), "%s/history/state-1.json.new", rig.dir);
	assert_int_equal(mkdir(history, 0700), 0);
	line = apply_line(&rig, FIVE, NULL, false);
	/* Either is written when the rules were in force for a moment. */
	response = rig_command(&rig, &rig_root, line);
	assert_false(true_at(response, "ok"));
	assert_non_null(strstr(text_at(response, "error.message"), "state-1.json"));
	json_decref(response);
	check_rate(&rig, 10);
	assert_int_equal(rmdir(history), 0);
	snprintf(record, sizeof(record), "%s/live.json.new", rig.dir);
	assert_int_equal(mkdir(record, 0700), 0);
	response = rig_command(&rig, &rig_root, line);
	assert_false(true_at(response, "ok"));
	json_decref(response);
	check_rate(&rig, 10);
	assert_int_equal(rmdir(record), 0);
	rig_restart(&rig);
	check_rate(&rig, 10);
	rig_refused(&rig, &rig_root, "rollback", "no change left");
}

/* ------------------------------------------------------------------ diff FILE */

RIG_TEST(test_diff_file)
{
	json_t *args, *result;
	const char *line;
	char *all;

	rig_open(&rig, ALL);
	rig_do(&rig, SET("7"));
	all = whole(&rig, "# a comment is no difference\nlimits:\n- {burst: 7, name: all, rate: 7 "
			  "packets/s, accounting: exact}\n");
	args = json_pack("{s:s, s:s}", "path", "/lab/other.yaml", "text", all);
	line = request("diff", args);
	result = result_of(&rig, line);
	assert_string_equal(text_at(result, "running"), text_at(result, "file"));
	json_decref(result);
	/* The files named in it would be read with sluiced's rights. */
	rig_refused(&rig, &rig_reader, line, "control.group");
	free(all);
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

RIG_TEST(test_audit)
{
	json_t *lines;

	rig_open(&rig, ALL);
	rig_do(&rig, SET("7"));
	rig_refused(&rig, &rig_reader, "reload", "control.group");
	rig_refused(&rig, &rig_root, "limit del {'name':'no'}", "no");
	rig_do(&rig, "status");
	apply(&rig, FIVE, "1h");
	let_time_pass(&rig);
	lines = audit_lines(&rig, "audit.log");
	assert_int_equal(json_array_size(lines), 6);
	json_expect(
		lines, "audit.log",
		"0.command=start, 1.command=limit set, 1.user=root, 1.pid=1, "
		"1.args.name=all, 1.generation.0=1, 1.generation.1=2, 1.ok=true, 2.uid=1000, "
		"2.error~control.group, 3.error~no, 4.command=apply, 5.command=revert, 5.uid=none");
	json_decref(lines);
}

/* Long arguments are cut between two characters, and the log is renamed at its size. */
RIG_TEST(test_audit_is_bounded)
{
	char *text = malloc(3 << 20), path[128];
	json_t *lines, *args;
	struct stat st;

	rig_open(&rig, ALL);
	memset(text, 'x', 3 << 20);
	for (size_t i = 1; i + 1 < 100000; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[100001] = '\0';
	args = json_pack("{s:s}", "text", text);
	audit_write(&rig.d->running, &(struct actor){ 0, 1 }, "apply", args, 1, NULL);
	json_decref(args);
	lines = audit_lines(&rig, "audit.log");
	assert_int_equal(json_array_size(lines), 2);
	assert_in_range(strlen(text_in(lines, 1, "args")), 4000, 4200);
	assert_non_null(strstr(text_in(lines, 1, "args"), " bytes)"));
	json_decref(lines);
	snprintf(path, sizeof(path), "%s/audit.log", rig.dir);
	for (int i = 1; i <= 6; i++) {
		assert_int_equal(truncate(path, 4 << 20), 0);
		audit_write(&rig.d->running, NULL, "start", NULL, 1, NULL);
		assert_int_equal(stat(path, &st), 0);
		assert_in_range(st.st_size, 1, 500);
	}
	snprintf(path, sizeof(path), "%s/audit.log.4", rig.dir);
	assert_int_equal(stat(path, &st), 0);
	snprintf(path, sizeof(path), "%s/audit.log.5", rig.dir);
	assert_int_not_equal(stat(path, &st), 0);
	free(text);
}

TEST_MAIN
