// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* request_scenario_print.c - the steps of a scenario for tests/cluster/scenarios.sh. */
#include "lib/request_scenario.h"

#include <string.h>

static void print_range(const struct scenario_range *range)
{
	if (range->most == UINT64_MAX)
		printf(" - -");
	else
		printf(" %llu %llu", range->least, range->most);
}

/* "a=1,b=2;c=3" as the members of /v1/check, without a blank. */
static void print_body(const struct request_scenario *s, const struct request_step *step)
{
	char hits[32] = "", before = '[';

	if (step->has_hits)
		snprintf(hits, sizeof(hits), ",\"hits\":%lld", step->hits);
	printf(" {\"domain\":\"%s\",\"descriptors\":", s->domain);
	for (const char *at = step->descriptor; *at;) {
		int key = strcspn(at, "="), value = at[key] ? strcspn(at + key + 1, ",;") : 0;
		char end = at[key] ? at[key + 1 + value] : '\0';

		if (before != ',')
			printf("%c{\"entries\":[", before == '[' ? '[' : ',');
		printf("%s{\"key\":\"%.*s\",\"value\":\"%.*s\"}", before == ',' ? "," : "", key, at,
		       value, at + key + 1);
		if (end != ',')
			printf("]%s}", hits);
		before = end;
		at += key + !!at[key] + value + !!end;
	}
	printf("]}");
}

static void print_step(const struct request_scenario *s, const struct request_step *step,
		       const char *what, s64 at_ns)
{
	bool requests = strchr(step->descriptor, '=');
	u64 times = step->times;

	printf("%s %d %lld %s %s", what, step->line, at_ns / 1000000,
	       step->node == SCENARIO_ANY ? "any" : s->node[step->node],
	       step->descriptor[0] ? step->descriptor : "-");
	if (requests)
		print_body(s, step);
	else
		printf(" -");
	if (step->kind == STEP_STREAM)
		times = (step->end_ns - step->at_ns + step->every_ns - 1) / step->every_ns;
	printf(" %llu %lld", times, (step->delay_ns + step->ago_ns + step->every_ns) / 1000000);
	if (step->retry_ns < 0 || step->retry_ns == SCENARIO_NEVER)
		printf(" %s", step->retry_ns < 0 ? "-" : "never");
	else
		printf(" %lld", step->retry_ns / 1000000);
	print_range(&step->expected);
	print_range(&step->denied);
	printf("\n");
}

/* A fault or a stream: it begins and ends. */
static bool has_end(const struct request_step *step)
{
	return step_is_fault(step) || step->kind == STEP_STREAM;
}

/* Prints faults and streams that begin or end after *from_ns, up to `until_ns`, in order of
 * time. */
static void print_faults(const struct request_scenario *s, s64 *from_ns, s64 until_ns)
{
	static const char *const begin[] = {
		[STEP_CUT] = "cut",	 [STEP_LOSE] = "lose", [STEP_LOSING] = "losing",
		[STEP_STOP] = "stop",	 [STEP_KILL] = "kill", [STEP_SLOW] = "slow",
		[STEP_STREAM] = "stream"
	};
	static const char *const end[] = {
		[STEP_CUT] = "end-cut",	  [STEP_LOSING] = "end-losing", [STEP_STOP] = "end-stop",
		[STEP_KILL] = "end-kill", [STEP_SLOW] = "end-slow",	[STEP_STREAM] = "end-stream"
	};

	for (;;) {
		s64 next_ns = INT64_MAX;

		for (size_t i = 0; i < s->count; i++) {
			const struct request_step *step = &s->step[i];

			if (has_end(step) && step->at_ns > *from_ns && step->at_ns < next_ns)
				next_ns = step->at_ns;
			if (has_end(step) && step->end_ns > *from_ns && step->end_ns < next_ns)
				next_ns = step->end_ns;
		}
		if (next_ns == INT64_MAX || next_ns > until_ns)
			return;
		for (size_t i = 0; i < s->count; i++) {
			const struct request_step *step = &s->step[i];

			if (has_end(step) && step->at_ns == next_ns)
				print_step(s, step, begin[step->kind], next_ns);
			if (has_end(step) && step->kind != STEP_LOSE && step->end_ns == next_ns)
				print_step(s, step, end[step->kind], next_ns);
		}
		*from_ns = next_ns;
	}
}

/* Steps that scenarios.sh cannot play. */
static bool is_only_virtual(const struct request_scenario *s, const struct request_step *step)
{
	return strpbrk(step->descriptor, "\"\\") ||
	       (step->node == SCENARIO_ANY && step->kind == STEP_AT && step->times % s->nodes);
}

static int print_steps(const struct request_scenario *s, const char *path)
{
	static const char *const names[] = {
		[STEP_AT] = "at",	  [STEP_TOTAL] = "total", [STEP_LEFT] = "left",
		[STEP_REPORT] = "report", [STEP_RULES] = "rules",
	};
	s64 faults_ns = -1, now_ns = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct request_step *step = &s->step[i];

		if (is_only_virtual(s, step)) {
			fprintf(stderr,
				"%s:%d: found in a real one; accepted: values without quotes, of "
				"`node any` a multiple of the nodes\n",
				path, step->line);
			return 2;
		}
		if (step_is_fault(step))
			continue;
		if (step->kind == STEP_STREAM)
			now_ns = step->end_ns > now_ns ? step->end_ns : now_ns;
		else if (step->kind != STEP_TOTAL && step->kind != STEP_RULES)
			now_ns = step->at_ns;
		print_faults(s, &faults_ns, now_ns);
		if (step->kind != STEP_STREAM)
			print_step(s, step, names[step->kind], now_ns);
	}
	print_faults(s, &faults_ns, INT64_MAX - 1);
	return 0;
}

int request_scenario_print(const char *path, const char *consistency)
{
	struct request_scenario s;
	char error[512];
	size_t kept = 0;
	int status = 1;

	if (!request_scenario_read(path, consistency, &s, error, sizeof(error))) {
		fprintf(stderr, "%s\n", error);
		return 2;
	}
	for (size_t i = 0; i < s.count; i++)
		if (!s.step[i].is_virtual)
			s.step[kept++] = s.step[i];
	s.count = kept;
	if (s.is_real) {
		printf("%s---\n%d %lld", s.rules, s.varies, s.every_ns / 1000000);
		for (u32 n = 0; n < s.nodes; n++)
			printf(" %s", s.node[n]);
		printf("\n");
		status = print_steps(&s, path);
	}
	request_scenario_clear(&s);
	return status;
}
