// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* request_scenario_print.c - the steps of a scenario for tests/cluster/scenarios.sh. */
#include "lib/request_scenario.h"

static void print_range(const struct scenario_range *range)
{
	if (range->most == UINT64_MAX)
		printf(" - -");
	else
		printf(" %llu %llu", range->least, range->most);
}

static void print_step(const struct request_scenario *s, const struct request_step *step,
		       const char *what, s64 at_ns)
{
	char hits[32] = "";

	if (step->has_hits)
		snprintf(hits, sizeof(hits), "#%lld", step->hits);
	printf("%s %d %lld %s %s%s %llu %lld", what, step->line, at_ns / 1000000,
	       step->node == SCENARIO_ANY ? "any" : s->node[step->node],
	       step->descriptor[0] ? step->descriptor : "-", hits, step->times,
	       step->delay_ns / 1000000);
	print_range(&step->expected);
	print_range(&step->denied);
	printf("\n");
}

/* Prints faults that begin or end after *from_ns, up to `until_ns`, in order of time. */
static void print_faults(const struct request_scenario *s, s64 *from_ns, s64 until_ns)
{
	static const char *const begin[] = { [STEP_CUT] = "cut", [STEP_LOSE] = "lose",
					      [STEP_LOSING] = "losing", [STEP_STOP] = "stop",
					      [STEP_KILL] = "kill", [STEP_SLOW] = "slow" };
	static const char *const end[] = { [STEP_CUT] = "end-cut", [STEP_LOSING] = "end-losing",
					    [STEP_STOP] = "end-stop", [STEP_KILL] = "end-kill",
					    [STEP_SLOW] = "end-slow" };

	for (;;) {
		s64 next_ns = INT64_MAX;

		for (size_t i = 0; i < s->count; i++) {
			const struct request_step *step = &s->step[i];

			if (step_is_fault(step) && step->at_ns > *from_ns && step->at_ns < next_ns)
				next_ns = step->at_ns;
			if (step_is_fault(step) && step->end_ns > *from_ns && step->end_ns < next_ns)
				next_ns = step->end_ns;
		}
		if (next_ns == INT64_MAX || next_ns > until_ns)
			return;
		for (size_t i = 0; i < s->count; i++) {
			const struct request_step *step = &s->step[i];

			if (step_is_fault(step) && step->at_ns == next_ns)
				print_step(s, step, begin[step->kind], next_ns);
			if (step_is_fault(step) && step->kind != STEP_LOSE && step->end_ns == next_ns)
				print_step(s, step, end[step->kind], next_ns);
		}
		*from_ns = next_ns;
	}
}

/* Steps that scenarios.sh cannot play. */
static bool is_only_virtual(const struct request_scenario *s, const struct request_step *step)
{
	return step->kind == STEP_STREAM || step->kind == STEP_RULES || step->retry_ns >= 0 || step->ago_ns ||
	       (step->node == SCENARIO_ANY && step->times % s->nodes);
}

int request_scenario_print(const char *path, const char *consistency)
{
	static const char *const names[] = {
		[STEP_AT] = "at", [STEP_TOTAL] = "total", [STEP_LEFT] = "left", [STEP_REPORT] = "report",
	};
	struct request_scenario s;
	char error[512];
	s64 faults_ns = -1, now_ns = 0;

	if (!request_scenario_read(path, consistency, &s, error, sizeof(error))) {
		fprintf(stderr, "%s\n", error);
		return 2;
	}
	if (!s.is_real)
		return 1;
	printf("%s---\n%d %s", s.rules, s.varies, s.domain);
	for (u32 n = 0; n < s.nodes; n++)
		printf(" %s", s.node[n]);
	printf("\n");
	for (size_t i = 0; i < s.count; i++) {
		const struct request_step *step = &s.step[i];

		if (is_only_virtual(&s, step)) {
			fprintf(stderr, "%s:%d: found in a real one; accepted: at without retry and ago, left, "
				"report, faults, total\n", path, step->line);
			return 2;
		}
		if (step_is_fault(step))
			continue;
		now_ns = step->kind == STEP_TOTAL ? now_ns : step->at_ns;
		print_faults(&s, &faults_ns, now_ns);
		print_step(&s, step, names[step->kind], now_ns);
	}
	print_faults(&s, &faults_ns, INT64_MAX - 1);
	request_scenario_clear(&s);
	return 0;
}
