// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_saved.c - the file, live.json and the history, by random commands, restarts and failing
 * writes: what is in force is in force after a restart, after save and reload; a rollback has what
 * was in force before; what is refused changes nothing.
 */
#include <fcntl.h>
#include <sys/syscall.h>

#include "lib/daemon_rig.h"
#include "lib/policy_text.h"
#include "lib/rng.h"

static const char file_text[] =
	"sets: {s0: [10.0.0.1, 10.0.0.2], s1: [10.0.0.3]}\n"
	"block: ['@s1', 10.0.0.4]\n"
	"exempt: [10.0.0.5]\n"
	"limits:\n"
	"- {name: l0, match: {src: '@s0'}, rate: 100 packets/s}\n"
	"- {name: l1, match: {dport: 53}, rate: [100 packets/s, 1000 packets/h],\n"
	"   overrides: [{src: 10.0.0.6, rate: [200 packets/s, 3000 packets/h]}]}\n";

/* ------------------------------------------------------------------ writes that fail */

static int fail_at;   /* the write that fails, counted down; 0: none */
static bool fail_all; /* and those after it */
static int failed;

static bool fails(int error)
{
	if (!fail_at || (fail_at > 1 && fail_at--))
		return false;
	if (!fail_all)
		fail_at = 0;
	failed++;
	errno = error;
	return true;
}

ssize_t write(int fd, const void *data, size_t size)
{
	if (fd > 2 && fails(ENOSPC))
		return -1;
	return syscall(SYS_write, fd, data, size);
}

/* Files survive the test's own restarts without it. */
int fsync(int fd)
{
	return fails(EIO) ? -1 : 0;
}

int rename(const char *from, const char *to)
{
	return fails(EIO) ? -1 : (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

/* ------------------------------------------------------------------ what is in force */

static char *in_force(const struct rig *rig)
{
	return policy_lines(rig->d->running.policy);
}

static char log_of_commands[1 << 20];

static void assert_same(const char *what, const char *want, const char *got)
{
	size_t size = strlen(log_of_commands);

	if (strcmp(want, got) == 0)
		return;
	fprintf(stderr, "...%s", log_of_commands + (size > 3000 ? size - 3000 : 0));
	fail_msg("%.60s: before:\n%s\nafter:\n%s", what, want, got);
}

/* ------------------------------------------------------------------ random commands */

#define SETS 3
#define LIMITS 4
#define SOURCES 8

static json_t *any_source(void)
{
	return json_sprintf("10.0.0.%llu", 1 + rng_below(SOURCES));
}

static json_t *any_name(const char *what, u64 below)
{
	return json_sprintf("%s%llu", what, rng_below(below));
}

static json_t *command(const char *command, json_t *args)
{
	return json_pack("{s:s, s:o}", "command", command, "args", args);
}

static json_t *random_set(void)
{
	json_t *prefixes = json_array();
	u64 of = rng() & rng();

	for (u32 i = 1; i <= SOURCES; i++)
		if (of >> i & 1)
			json_array_append_new(prefixes, json_sprintf("10.0.0.%u", i));
	return command(RNG_ANY("set add", "set del", "set del", "set replace"),
		       json_pack("{s:o, s:o}", "name", any_name("s", SETS), "prefixes", prefixes));
}

static json_t *random_limit(void)
{
	json_t *name = any_name("l", LIMITS);
	char yaml[200];

	switch (rng_below(6)) {
	case 0:
		return command("limit del", json_pack("{s:o}", "name", name));
	case 1:
		snprintf(
			yaml, sizeof(yaml), "name: %s\n%s", json_string_value(name),
			RNG_ANY("rate: 3 packets/s\n",
				"rate: 3 packets/s\noverrides: [{src: 10.0.0.7, rate: 9 packets/s}]\n",
				"match: {src: '@s0'}\nrate: 4 packets/s\n",
				"match: {src: '@s2'}\nrate: [5 packets/s, 50 packets/h]\n"));
		json_decref(name);
		return command("limit add", json_pack("{s:s}", "yaml", yaml));
	default:
		return command(
			"limit set",
			json_pack("{s:o, s:[s]}", "name", name, "pairs",
				  RNG_ANY("match.src=10.0.0.0/8", "match.src=@s0", "match.src=@s1",
					  "match.src=@s2", "match.src=", "rate=7 packets/s",
					  "rate=7 packets/s,70 packets/h", "burst=9", "burst=",
					  "mode=shadow", "algorithm=fixed-window", "algorithm=")));
	}
}

static json_t *random_override(void)
{
	json_t *args = json_pack("{s:o, s:o}", "name", any_name("l", LIMITS), "src", any_source());

	if (!rng_below(3))
		return command("override del", args);
	json_object_set_new(
		args, "pairs",
		json_pack("[s, s]", RNG_ANY("rate=20 packets/s", "rate=20 packets/s,90 packets/h"),
			  RNG_ANY("burst=", "burst=", "burst=8")));
	return command("override set", args);
}

static json_t *random_entry(void)
{
	json_t *prefix = rng_below(3) ? any_source() : json_sprintf("@s%llu", rng_below(SETS));
	json_t *args = json_pack("{s:o, s:s, s:b}", "prefix", prefix, "reason", RNG_ANY("", "why"),
				 "force", 1);

	if (!rng_below(4))
		json_object_set_new(args, "for", json_string(RNG_ANY("1h", "2d")));
	return command(RNG_ANY("block add", "block del", "exempt add", "exempt del"), args);
}

static json_t *random_change(void)
{
	static json_t *(*const make[])(void) = { random_set,   random_set,	random_limit,
						 random_limit, random_override, random_entry };

	return make[rng_below(6)]();
}

/* ------------------------------------------------------------------ and what they must do */

#define TOP_MAX 4096

struct storm {
	char *before[TOP_MAX]; /* what a rollback to the state has in force */
	bool edited;	       /* the file is not what was in force last */
	bool full;	       /* writes fail at times */
	u32 done, refused, undone, saves, unsaved;
};

static void note_command(const char *text)
{
	size_t used = strlen(log_of_commands);

	if (used + strlen(text) + 2 < sizeof(log_of_commands))
		sprintf(log_of_commands + used, "%s\n", text);
}

static void remember(struct storm *storm, u32 top, char *text)
{
	assert_true(top < TOP_MAX);
	free(storm->before[top]);
	storm->before[top] = text;
}

static char *file_now(void)
{
	char *text = calloc(1, 65536);
	FILE *in = fopen(rig.path, "r");

	assert_non_null(in);
	assert_true(fread(text, 1, 65535, in) > 0);
	fclose(in);
	return text;
}

/* Sends a command; true where it is done. What is refused has changed nothing. */
static bool send_command(struct storm *storm, json_t *request, json_t **ret)
{
	struct running *run = &rig.d->running;
	char *line = json_dumps(request, 0), *before = in_force(&rig), *after, *file = file_now(),
	     *file_after;
	json_t *live = json_deep_copy(run->live), *answer;
	u32 top = run->history_top;
	bool ok;

	note_command(line);
	failed = 0;
	fail_at = storm->full && !rng_below(3) ? 1 + rng_below(24) : 0;
	fail_all = fail_at && rng_below(2);
	answer = rig_command(&rig, &rig_root, line);
	fail_at = 0;
	if (failed)
		note_command(fail_all ? "  writes failed" : "  a write failed");
	ok = true_at(answer, "ok");
	note_command(ok ? "  done" : text_at(answer, "error.message"));
	/* In force, and not saved: the daemon tries again each second. */
	if (run->unwritten_why[0]) {
		assert_true(ok && json_at(answer, "result.unsaved"));
		assert_int_equal(run->history_top, top);
		storm->unsaved++;
		rules_write(run);
		assert_false(run->unwritten);
		assert_int_equal(run->history_top, top + 1);
	}
	after = in_force(&rig);
	if (!ok) {
		assert_same(line, before, after);
		/*
		 * If the disk fails in the middle of save, its text stays in force: as applied, or
		 * as the file's own if the file has it already.
		 */
		if (!strstr(line, "\"save\"") || run->history_top != top + 1) {
			assert_true(json_equal(live, run->live));
			assert_int_equal(top, run->history_top);
		}
		file_after = file_now();
		assert_same(line, file, file_after);
		free(file_after);
	} else if (run->history_top == top) {
		assert_same(line, before, after);
	}
	storm->done += ok;
	storm->refused += !ok;
	if (run->history_top == top + 1)
		remember(storm, top + 1, before);
	else
		free(before);
	if (ret)
		*ret = json_incref(json_object_get(answer, "result"));
	free(after);
	free(file);
	free(line);
	json_decref(answer);
	json_decref(live);
	json_decref(request);
	return ok;
}

static void restart(struct storm *storm)
{
	char *before = in_force(&rig), *after;
	json_t *live = json_deep_copy(rig.d->running.live);
	u32 top = rig.d->running.history_top;
	bool applied = rig.d->running.source.applied;

	note_command("restart");
	rig_restart(&rig);
	after = in_force(&rig);
	if (!storm->edited || applied) {
		assert_same("restart", before, after);
		if (!json_equal(live, rig.d->running.live) && !storm->edited)
			fail_msg("live changes: %s\nafter a restart: %s\n%s", json_dumps(live, 0),
				 json_dumps(rig.d->running.live, 0), log_of_commands);
	}
	if (rig.d->running.history_top == top + 1)
		remember(storm, top + 1, before);
	else
		free(before);
	free(after);
	json_decref(live);
	if (!applied)
		storm->edited = false;
}

static void rollback(struct storm *storm)
{
	u32 top = rig.d->running.history_top;
	json_t *result;
	char *after;

	if (!send_command(storm, command("rollback", json_object()), &result))
		return;
	storm->undone++;
	after = in_force(&rig);
	assert_int_equal(rig.d->running.history_top, top - 1);
	assert_non_null(storm->before[top]);
	assert_same("rollback", storm->before[top], after);
	assert_int_equal(json_array_size(json_at(result, "dropped")), 0);
	free(after);
	json_decref(result);
}

static void save(struct storm *storm)
{
	char *before = in_force(&rig), *after;

	if (send_command(storm, command("save", json_object()), NULL)) {
		after = in_force(&rig);
		assert_same("save", before, after);
		assert_int_equal(json_array_size(rig.d->running.live), 0);
		assert_false(rig.d->running.source.applied);
		storm->edited = false;
		storm->saves++;
		free(after);
	}
	free(before);
}

static void reload(struct storm *storm)
{
	bool applied = rig.d->running.source.applied;
	char *before = in_force(&rig), *after;
	json_t *result;

	if (send_command(storm, command("reload", json_object()), &result)) {
		after = in_force(&rig);
		if (!applied && !storm->edited) {
			assert_same("reload", before, after);
			assert_int_equal(json_array_size(json_at(result, "dropped")), 0);
		}
		storm->edited = false;
		free(after);
		json_decref(result);
	}
	free(before);
}

static void apply(struct storm *storm)
{
	static const char *const texts[] = {
		"limits: [{name: l0, rate: 5 packets/s}]\n",
		"sets: {s0: [10.0.0.9], s2: [10.0.0.1]}\nlimits: [{name: l2, match: {src: '@s0'}, rate: 9 packets/s}]\n",
		file_text,
	};
	char *text;
	json_t *args;

	assert_true(asprintf(&text, "state_dir: %s\ncontrol: {socket: %s/control.sock}\n%s",
			     rig.dir, rig.dir, texts[rng_below(3)]) > 0);
	args = json_pack("{s:s, s:s, s:b}", "path", "/lab/other.yaml", "text", text, "discard_live",
			 rng_below(2));
	if (rng_below(2))
		json_object_set_new(args, "confirm", json_string("1h"));
	send_command(storm, command("apply", args), NULL);
	free(text);
}

static void step(struct storm *storm)
{
	u64 n = rng_below(100);

	if (n < 70)
		send_command(storm, random_change(), NULL);
	else if (n < 76)
		rollback(storm);
	else if (n < 80)
		save(storm);
	else if (n < 84)
		reload(storm);
	else if (n < 86)
		apply(storm);
	else if (n < 90)
		send_command(storm, command("confirm", json_object()), NULL);
	else
		restart(storm);
}

static void storm_end(struct storm *storm)
{
	for (u32 i = 0; i < TOP_MAX; i++)
		free(storm->before[i]);
	rig_close(&rig);
}

static void random_commands(u32 rounds, bool full)
{
	for (u32 round = 0; round < rounds; round++) {
		struct storm storm = { .full = full };

		log_of_commands[0] = '\0';
		rig_open(&rig, file_text);
		log_open("test", LOG_LEVEL_ERROR - 1);
		for (u32 i = 0; i < 300; i++)
			step(&storm);
		assert_true(storm.done > 50);
		storm_end(&storm);
	}
}

RIG_TEST(test_random_commands)
{
	rng_start("saved");
	random_commands(3, false);
}

RIG_TEST(test_random_commands_and_failing_writes)
{
	rng_start("saved, with failing writes");
	random_commands(3, true);
}

/* A save that was undone is in the file still: the live changes apply to it, and a reload has the
 * same in force. */
RIG_TEST(test_a_save_is_undone)
{
	rng_start("a save is undone");
	for (u32 round = 0; round < 20; round++) {
		struct storm storm = { .done = 0 };
		char *before, *after;
		u32 top;

		log_of_commands[0] = '\0';
		rig_open(&rig, file_text);
		log_open("test", LOG_LEVEL_ERROR - 1);
		for (u32 i = 0; i < 25; i++)
			send_command(&storm, random_change(), NULL);
		before = in_force(&rig);
		top = rig.d->running.history_top;
		save(&storm);
		/* A save that had nothing to write is not in the history: a rollback undoes what
		 * was before it. */
		if (!json_array_size(rig.d->running.live) && rig.d->running.history_top > top) {
			rollback(&storm);
			rig_restart(&rig);
			after = in_force(&rig);
			assert_same("save, rollback, restart", before, after);
			free(after);
			rig_do(&rig, "reload");
			after = in_force(&rig);
			assert_same("save, rollback, reload", before, after);
			free(after);
		}
		free(before);
		storm_end(&storm);
	}
}

/* ------------------------------------------------------------------ each write */

static void apply_to_confirm(void)
{
	char *line;

	assert_true(
		asprintf(&line,
			 "apply {'path': '/lab/other.yaml', "
			 "'text': 'state_dir: %s\\nlimits: [{name: l0, rate: 5 packets/s}]\\n', "
			 "'confirm': '1h'}",
			 rig.dir) > 0);
	rig_do(&rig, line);
	free(line);
}

/* As if the daemon were killed before each of the writes of a save: the changes are in force, and
 * none twice. */
RIG_TEST(test_a_save_that_ends_early)
{
	bool done = false;

	for (int n = 1; !done; n++) {
		char *before, *after;
		json_t *live, *record;
		struct sl_err err;

		rig_open(&rig, file_text);
		log_open("test", LOG_LEVEL_ERROR - 1);
		rig_do(&rig, "limit add {'yaml': 'name: l2\\nrate: 3 packets/s'}");
		rig_do(&rig, "limit del {'name': 'l1'}");
		before = in_force(&rig);
		failed = 0;
		fail_at = n;
		fail_all = true;
		json_decref(rig_command(&rig, &rig_root, "save"));
		fail_at = 0;
		done = !failed;
		assert_int_equal(live_load(rig.dir, &live, &record, &err), 0);
		rig_restart(&rig);
		after = in_force(&rig);
		assert_same("restart", before, after);
		free(after);
		/* Either the list or the text has them: what the list has still applies. */
		assert_true(json_equal(live, rig.d->running.live));
		json_decref(live);
		json_decref(record);
		assert_int_equal(json_array_size(rig.d->running.live),
				 policy_find_limit(rig.d->running.file, "l2") ? 0 : 2);
		if (done)
			assert_false(rig.d->running.source.applied);
		/* It is undone all the same, or saved. */
		rig_do(&rig, n % 2 ? "rollback" : "save");
		if (!(n % 2)) {
			rig_restart(&rig);
			after = in_force(&rig);
			assert_same("save", before, after);
			assert_int_equal(json_array_size(rig.d->running.live), 0);
			free(after);
		}
		free(before);
		rig_close(&rig);
	}
}

/* Reverted rules stay so where live.json still has them, and with it the changes that were there
 * before. */
RIG_TEST(test_a_rollback_that_is_not_written)
{
	char *before, *after;

	for (int reload = 0; reload < 3; reload++) {
		rig_open(&rig, file_text);
		log_open("test", LOG_LEVEL_ERROR - 1);
		rig_do(&rig, "limit del {'name': 'l1'}");
		before = in_force(&rig);
		apply_to_confirm();
		fail_at = 1;
		fail_all = true;
		rig_do(&rig, "rollback");
		assert_true(rig.d->running.unwritten);
		rules_expire(&rig.d->running);
		assert_true(rig.d->running.unwritten);
		fail_at = 0;
		if (reload == 1)
			rig_do(&rig, "reload");
		if (reload == 2)
			rules_expire(&rig.d->running);
		assert_int_equal(rig.d->running.unwritten, !reload);
		rig_restart(&rig);
		assert_false(pending_is(&rig.d->running));
		after = in_force(&rig);
		assert_same("rollback", before, after);
		assert_int_equal(json_array_size(rig.d->running.live), 1);
		free(before);
		free(after);
		rig_close(&rig);
	}
}

/* What pending rules would revert to cannot be read: they do not become permanent by that. */
RIG_TEST(test_pending_without_a_way_back)
{
	char path[96];

	rig_open(&rig, file_text);
	log_open("test", LOG_LEVEL_ERROR - 1);
	apply_to_confirm();
	snprintf(path, sizeof(path), "%s/history/state-%u.json", rig.dir,
		 rig.d->running.history_top);
	assert_int_equal(unlink(path), 0);
	rig_restart(&rig);
	assert_false(pending_is(&rig.d->running));
	assert_false(rig.d->running.source.applied);
	assert_non_null(policy_find_limit(rig.d->running.policy, "l1"));
}

TEST_MAIN
