// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_scenario.c - runs tests/scenario/NAME.scn on both data planes. A file is a
 * configuration and then steps, in order of time; '#' begins a comment:
 *
 *     limits: [{name: web, match: {dport: 80}, accounting: ACCOUNTING, rate: 10 packets/s}]
 *     ---
 *     at 1.5s  src 192.0.2.1 dport 80  x100  pass 10
 *     stream 2s 10s every 1ms  src 192.0.2.1 dport 80  pass 79..81
 *     stream 2s 10s every 1s   src 192.0.2.2 dport 80  pass 8
 *     set web rate=100 packets/s
 *     utc -5s
 *     count web pass 99 drop 10..20
 *
 * `at` sends copies of a packet at one instant. Streams on consecutive lines run together, the
 * first packet at the first time given, the last before the second. Packets are described by
 * the words of lib/frame.h, and `cpu N` or `cpu any`, which takes turns. The expectation is a
 * number or a range. Where ACCOUNTING is in the configuration, the file is run with `percpu`
 * and with `exact`, and must hold for both.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/case.h"
#include "lib/scenario.h"

#define SCENARIOS "tests/scenario"
#define STREAMS_MAX 16
#define FILES_MAX 64

/* A packet sent over and over. */
struct stream {
	struct frame frame;
	u64 next_ns, end_ns, every_ns;
	u32 cpu;
	bool any_cpu;
	struct scenario_range pass;
	u64 passed, sent;
	int line;
};

struct scenario {
	struct target *t;
	const char *path;
	int line;
	int failures;
	struct stream *stream; /* STREAMS_MAX of them: lines that run together */
	u32 streams;
};

static void complain(struct scenario *s, int line, const char *words, const char *rest)
{
	print_error("%s: %s:%d: %s: %s\n", target_name(s->t), s->path, line, words, rest);
	s->failures++;
}

/* The packet's words, and on which CPU. */
static bool take_packet(struct scenario *s, const char **at, struct stream *st)
{
	struct frame_words words;
	char cpu[16];
	int used;

	frame_words_parse(&words, at);
	if (!frame_words_build(&words, &st->frame))
		return false;
	if (sscanf(*at, " cpu %15s%n", cpu, &used) == 1) {
		*at += used;
		st->any_cpu = !strcmp(cpu, "any");
		st->cpu = st->any_cpu ? 0 : (u32)atoi(cpu) % target_cpus(s->t);
	}
	return true;
}

static void send_one(struct scenario *s, struct stream *st)
{
	int passed = target_flood(s->t, st->cpu, 0, &st->frame, 1);

	if (passed < 0)
		complain(s, st->line, "not run", strerror(-passed));
	else
		st->passed += passed;
	st->sent++;
	if (st->any_cpu)
		st->cpu = (st->cpu + 1) % target_cpus(s->t);
}

static void check_passed(struct scenario *s, const struct stream *st)
{
	char words[128];

	if (in_range(&st->pass, st->passed))
		return;
	snprintf(words, sizeof(words), "%llu of %llu passed, expected %llu to %llu", st->passed,
		 st->sent, st->pass.least, st->pass.most);
	complain(s, st->line, "packets", words);
}

/* ------------------------------------------------------------------ steps */

/* The streams collected so far, packet by packet in the order of time. */
static void run_streams(struct scenario *s)
{
	u32 i;

	for (;;) {
		struct stream *first = NULL;

		for (i = 0; i < s->streams; i++) {
			struct stream *st = &s->stream[i];

			if (st->next_ns < st->end_ns && (!first || st->next_ns < first->next_ns))
				first = st;
		}
		if (!first)
			break;
		target_set_time(s->t, first->next_ns);
		send_one(s, first);
		first->next_ns += first->every_ns;
	}
	for (i = 0; i < s->streams; i++)
		check_passed(s, &s->stream[i]);
	s->streams = 0;
}

static bool step_stream(struct scenario *s, const char *at)
{
	struct stream *st = &s->stream[s->streams];
	s64 from, to, every;

	if (s->streams == STREAMS_MAX)
		return false;
	if (!take_time(&at, &from) || !take_time(&at, &to) || !take_literal(&at, "every") ||
	    !take_time(&at, &every) || every <= 0 || from < (s64)target_time(s->t))
		return false;
	*st = (struct stream){ .next_ns = from, .end_ns = to, .every_ns = every, .line = s->line };
	if (!take_packet(s, &at, st) || !take_literal(&at, "pass") || !take_range(&at, &st->pass))
		return false;
	s->streams++;
	return at_end(at);
}

static bool step_at(struct scenario *s, const char *at)
{
	static struct stream st;
	u64 times;
	s64 when;

	st = (struct stream){ .line = s->line };
	if (!take_time(&at, &when) || when < (s64)target_time(s->t) || !take_packet(s, &at, &st))
		return false;
	times = take_count(&at);
	if (!take_literal(&at, "pass") || !take_range(&at, &st.pass) || !at_end(at))
		return false;
	target_set_time(s->t, when);
	while (times--)
		send_one(s, &st);
	check_passed(s, &st);
	return true;
}

/* A live change: NAME KEY=VALUE to the end of the line. */
static bool step_set(struct scenario *s, const char *at)
{
	struct sl_err err = { .message = "" };
	char name[SL_NAME_MAX], pair[256], words[900];
	char *pairs[1] = { pair };

	if (sscanf(at, " %63s %255[^\n]", name, pair) != 2)
		return false;
	if (policy_limit_set(target_policy_of(s->t), name, pairs, 1, &err) ||
	    target_apply(s->t, &err))
		complain(s, s->line, "refused", sl_err_format(&err, words, sizeof(words)));
	return true;
}

static bool step_utc(struct scenario *s, const char *at)
{
	s64 ns;

	if (!take_time(&at, &ns) || !at_end(at))
		return false;
	target_step_utc(s->t, ns);
	return true;
}

static bool step_count(struct scenario *s, const char *at)
{
	struct sl_limit_stats stats;
	char name[SL_NAME_MAX], words[128];
	int used;
	u32 v;

	if (sscanf(at, " %63s%n", name, &used) != 1 || target_limit_stats(s->t, name, &stats))
		return false;
	at += used;
	while (!at_end(at)) {
		struct scenario_range range;

		for (v = 0; v < SL_LV_COUNT; v++)
			if (take_literal(&at, limit_verdict_name(v)))
				break;
		if (v == SL_LV_COUNT || !take_range(&at, &range))
			return false;
		if (in_range(&range, stats.packets[v]))
			continue;
		snprintf(words, sizeof(words), "%s is %llu, expected %llu to %llu",
			 limit_verdict_name(v), stats.packets[v], range.least, range.most);
		complain(s, s->line, name, words);
	}
	return true;
}

static const struct {
	const char *word;
	bool (*step)(struct scenario *s, const char *at);
} steps[] = {
	{ "at", step_at },
	{ "set", step_set },
	{ "utc", step_utc },
	{ "count", step_count },
};

static void run_line(struct scenario *s, char *line)
{
	const char *at = line;
	u32 i;

	if (take_literal(&at, "stream")) {
		if (!step_stream(s, at))
			complain(s, s->line, "not understood", line);
		return;
	}
	run_streams(s);
	for (i = 0; i < COUNT(steps); i++) {
		if (!take_literal(&at, steps[i].word))
			continue;
		if (!steps[i].step(s, at))
			complain(s, s->line, "not understood", line);
		return;
	}
	complain(s, s->line, "not understood", line);
}

/* ------------------------------------------------------------------ files */

static bool run_file(struct scenario *s, const char *accounting)
{
	FILE *in = fopen(s->path, "r");
	char buf[512], *config;
	bool varies;

	if (!in)
		fail_msg("cannot open %s", s->path);
	target_reset(s->t);
	s->line = 0;
	config = scenario_text(in, &s->line, "ACCOUNTING", accounting, &varies);
	if (!config)
		fail_msg("%s: no line '---'", s->path);
	case_policy(s->t, "%s", config);
	free(config);
	while (scenario_line(in, &s->line, buf, sizeof(buf)))
		run_line(s, buf);
	run_streams(s);
	fclose(in);
	if (s->failures)
		print_error("%s: accounting: %s\n", s->path, varies ? accounting : "as written");
	return varies;
}

static void scenario(void **state)
{
	struct scenario s = { .path = *state, .t = case_target(state) };

	s.stream = calloc(STREAMS_MAX, sizeof(*s.stream));
	assert_non_null(s.stream);
	if (run_file(&s, "percpu"))
		run_file(&s, "exact");
	free(s.stream);
	assert_int_equal(s.failures, 0);
	assert_int_equal(target_errors(s.t), 0);
}

static int is_scenario(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && !strcmp(dot, ".scn");
}

/* An argument is one file to run; else all of them. */
int main(int argc, char **argv)
{
	struct dirent **found;
	int i, n;

	if (argc > 1) {
		test_add(0, (struct CMUnitTest){ argv[1], scenario, NULL, NULL, argv[1] });
		return case_main("scenario");
	}
	n = scandir(SCENARIOS, &found, is_scenario, alphasort);
	if (n <= 0 || n > FILES_MAX) {
		fprintf(stderr, "%d scenarios in %s: run this from the top directory\n", n,
			SCENARIOS);
		return 1;
	}
	for (i = 0; i < n; i++) {
		char *path;

		if (asprintf(&path, "%s/%s", SCENARIOS, found[i]->d_name) < 0)
			return 1;
		test_add(i, (struct CMUnitTest){ path, scenario, NULL, NULL, path });
		free(found[i]);
	}
	free(found);
	return case_main("scenario");
}
