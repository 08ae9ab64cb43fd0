// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* request_scenario_print.c - the steps of a scenario for tests/cluster/scenarios.sh. */
#include "lib/request_scenario.h"

static void print_step(const struct request_scenario *s, const struct request_step *step,
		       const char *what, s64 at_ns)
{
	printf("%s %d %lld %s %s %lld %llu %llu %llu\n", what, step->line, at_ns / 1000000,
	       step->node == SCENARIO_ANY ? "any" : s->node[step->node],
	       step->descriptor[0] ? step->descriptor : "-", step->has_hits ? step->hits : 1LL,
	       step->times, step->expected.least, step->expected.most);
}

/* Prints faults that begin or end up to `until_ns` and were not printed yet. */
static void print_faults(const struct request_scenario *s, s64 *from_ns, s64 until_ns)
{
	static const char *const begin[] = { [STEP_CUT] = "cut", [STEP_LOSE] = "lose", [STEP_STOP] = "stop" };
	static const char *const end[] = { [STEP_CUT] = "end-cut", [STEP_STOP] = "end-stop" };

	for (;;) {
		const struct request_step *first = NULL;
		s64 at_ns = until_ns;
		bool ends = false;

		for (size_t i = 0; i < s->count; i++) {
			const struct request_step *step = &s->step[i];

			if (!step_is_fault(step))
				continue;
			if (step->at_ns > *from_ns && step->at_ns <= at_ns) {
				first = step;
				at_ns = step->at_ns;
				ends = false;
			}
			if (step->kind != STEP_LOSE && step->end_ns > *from_ns && step->end_ns <= at_ns) {
				first = step;
				at_ns = step->end_ns;
				ends = true;
			}
		}
		if (!first)
			return;
		print_step(s, first, ends ? end[first->kind] : begin[first->kind], at_ns);
		*from_ns = at_ns;
	}
}

int request_scenario_print(const char *path, const char *consistency)
{
	static const char *const names[] = {
		[STEP_AT] = "at", [STEP_LEFT] = "left", [STEP_REPORT] = "report", [STEP_TOTAL] = "total",
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

		if (step->kind == STEP_STREAM || step->kind == STEP_RULES) {
			fprintf(stderr, "%s:%d: a real one has no streams and no other rules\n", path,
				step->line);
			return 2;
		}
		if (step_is_fault(step))
			continue;
		now_ns = step->kind == STEP_TOTAL ? now_ns : step->at_ns;
		print_faults(&s, &faults_ns, now_ns);
		print_step(&s, step, names[step->kind], now_ns);
	}
	request_scenario_clear(&s);
	return 0;
}
