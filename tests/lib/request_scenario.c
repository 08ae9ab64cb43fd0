// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* request_scenario.c - see request_scenario.h. */
#include "lib/request_scenario.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ACCEPTED                                                                                   \
	"nodes, at, stream, cut, redis, total, candidate, rules, repeat, end, virtual or real, as in tests/lib/request_scenario.h"
#define LINE_MAX_BYTES 512

struct reader {
	FILE *in;
	int line;
	struct request_scenario *s;
	struct request_step step;
	s64 last_ns;	    /* the time of the step before */
	s64 turns, turn_ns; /* of `repeat`; no turns: outside */
	size_t turn_begin;  /* its first step */
};

static bool take_node(struct reader *r, const char **at, u32 *ret)
{
	char name[16];

	if (!take_word(at, name, sizeof(name)))
		return false;
	for (*ret = 0; *ret < r->s->nodes; (*ret)++)
		if (!strcmp(r->s->node[*ret], name))
			return true;
	return false;
}

/* [node NAME] */
static bool take_where(struct reader *r, const char **at)
{
	if (!take_literal(at, "node"))
		return true;
	if (take_literal(at, "any")) {
		r->step.node = SCENARIO_ANY;
		return true;
	}
	return take_node(r, at, &r->step.node);
}

/* user=bob;path=/x [hits N] */
static bool take_request(struct reader *r, const char **at)
{
	if (!take_word(at, r->step.descriptor, sizeof(r->step.descriptor)) ||
	    !strchr(r->step.descriptor, '='))
		return false;
	r->step.has_hits = take_literal(at, "hits");
	return !r->step.has_hits || take_number(at, &r->step.hits);
}

/* allow N, deny N, or both */
static bool take_verdicts(struct reader *r, const char **at)
{
	bool allow = take_literal(at, "allow");

	if (allow && !take_range(at, &r->step.expected))
		return false;
	if (take_literal(at, "deny"))
		return take_range(at, &r->step.denied);
	return allow;
}

static bool read_at(struct reader *r, const char *at)
{
	if (!take_time(&at, &r->step.at_ns) || !take_where(r, &at))
		return false;
	if (take_literal(&at, "report")) {
		r->step.kind = STEP_REPORT;
		return take_request(r, &at) && r->step.has_hits &&
		       (!take_literal(&at, "ago") || take_time(&at, &r->step.ago_ns)) && at_end(at);
	}
	if (!take_request(r, &at))
		return false;
	r->step.times = take_count(&at);
	if (take_literal(&at, "left")) {
		r->step.kind = STEP_LEFT;
		return take_range(&at, &r->step.expected) && at_end(at);
	}
	r->step.kind = STEP_AT;
	if (!take_verdicts(r, &at))
		return false;
	if (!take_literal(&at, "retry"))
		return at_end(at);
	if (take_literal(&at, "never"))
		r->step.retry_ns = SCENARIO_NEVER;
	else if (!take_time(&at, &r->step.retry_ns))
		return false;
	return at_end(at);
}

static bool read_stream(struct reader *r, const char *at)
{
	r->step.kind = STEP_STREAM;
	return take_time(&at, &r->step.at_ns) && take_time(&at, &r->step.end_ns) &&
	       take_literal(&at, "every") && take_time(&at, &r->step.every_ns) &&
	       r->step.every_ns > 0 && take_where(r, &at) && take_request(r, &at) &&
	       take_verdicts(r, &at) && at_end(at);
}

static bool read_cut(struct reader *r, const char *at)
{
	r->step.kind = STEP_CUT;
	return take_node(r, &at, &r->step.node) &&
	       take_times(&at, &r->step.at_ns, &r->step.end_ns) && at_end(at);
}

static bool read_redis(struct reader *r, const char *at)
{
	if (take_literal(&at, "lose")) {
		r->step.kind = STEP_LOSE;
		if (take_time(&at, &r->step.at_ns))
			return at_end(at);
		r->step.kind = STEP_LOSING;
	} else if (take_literal(&at, "slow")) {
		r->step.kind = STEP_SLOW;
		if (!take_time(&at, &r->step.delay_ns) || r->step.delay_ns <= 0)
			return false;
	} else if (take_literal(&at, "kill")) {
		r->step.kind = STEP_KILL;
	} else if (take_literal(&at, "stop")) {
		r->step.kind = STEP_STOP;
	} else {
		return false;
	}
	return take_times(&at, &r->step.at_ns, &r->step.end_ns) && at_end(at);
}

static bool read_total(struct reader *r, const char *at)
{
	r->step.kind = STEP_TOTAL;
	return take_request(r, &at) && take_verdicts(r, &at) && at_end(at);
}

static bool read_candidate(struct reader *r, const char *at)
{
	char name[64];

	r->step.kind = STEP_TOTAL;
	if (!take_word(&at, name, sizeof(name)))
		return false;
	snprintf(r->step.descriptor, sizeof(r->step.descriptor), SCENARIO_CANDIDATE "%s", name);
	return take_verdicts(r, &at) && at_end(at);
}

static bool read_rules(struct reader *r, const char *at)
{
	bool varies;

	r->step.kind = STEP_RULES;
	if (r->turns)
		return false;
	r->step.rules = scenario_text(r->in, &r->line, NULL, NULL, &varies);
	return r->step.rules && at_end(at);
}

static const struct {
	const char *word;
	bool (*read)(struct reader *r, const char *at);
} steps[] = {
	{ "at", read_at },	 { "stream", read_stream }, { "cut", read_cut },
	{ "redis", read_redis }, { "total", read_total },   { "candidate", read_candidate },
	{ "rules", read_rules },
};

/* Lines that are no steps. */
static bool read_nodes(struct request_scenario *s, const char *at)
{
	for (s->nodes = 0; !at_end(at); s->nodes++)
		if (s->nodes == SCENARIO_NODES ||
		    !take_word(&at, s->node[s->nodes], sizeof(s->node[0])))
			return false;
	return s->nodes > 0;
}

/* Requests are in order of time; faults may be anywhere. */
static bool is_in_order(struct reader *r)
{
	if (step_is_fault(&r->step) || r->step.kind == STEP_TOTAL || r->step.kind == STEP_RULES)
		return true;
	if (r->step.at_ns < r->last_ns)
		return false;
	r->last_ns = r->step.at_ns;
	return true;
}

static void add_step(struct request_scenario *s, struct request_step step)
{
	struct request_step *grown = reallocarray(s->step, s->count + 1, sizeof(*s->step));

	if (!grown)
		abort();
	s->step = grown;
	s->step[s->count++] = step;
}

/* N every TIME */
static bool read_repeat(struct reader *r, const char *at)
{
	r->turn_begin = r->s->count;
	return !r->turns && take_number(&at, &r->turns) && r->turns > 0 &&
	       take_literal(&at, "every") && take_time(&at, &r->turn_ns) && r->turn_ns > 0 &&
	       at_end(at);
}

/* Adds the steps of the other turns. */
static bool read_end(struct reader *r, const char *at)
{
	size_t end = r->s->count;

	if (!r->turns)
		return false;
	for (s64 turn = 1; turn < r->turns; turn++)
		for (size_t i = r->turn_begin; i < end; i++) {
			r->step = r->s->step[i];
			r->step.at_ns += turn * r->turn_ns;
			r->step.end_ns += r->step.end_ns ? turn * r->turn_ns : 0;
			if (!is_in_order(r))
				return false;
			add_step(r->s, r->step);
		}
	r->turns = 0;
	return at_end(at);
}

/* [every TIME] */
static bool read_real(struct request_scenario *s, const char *at)
{
	s->is_real = true;
	return at_end(at) || (take_literal(&at, "every") && take_time(&at, &s->every_ns) &&
			      s->every_ns > 0 && at_end(at));
}

static bool read_line(struct reader *r, const char *at)
{
	struct request_scenario *s = r->s;
	bool is_virtual = take_literal(&at, "virtual");

	if (!is_virtual && take_literal(&at, "real"))
		return read_real(s, at);
	if (!is_virtual && !s->count && take_literal(&at, "nodes"))
		return read_nodes(s, at);
	if (!is_virtual && take_literal(&at, "repeat"))
		return read_repeat(r, at);
	if (!is_virtual && take_literal(&at, "end"))
		return read_end(r, at);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		if (!take_literal(&at, steps[i].word))
			continue;
		r->step = (struct request_step){ .line = r->line,
						 .times = 1,
						 .retry_ns = -1,
						 .expected = { 0, UINT64_MAX },
						 .denied = { 0, UINT64_MAX },
						 .is_virtual = is_virtual };
		if (!steps[i].read(r, at) || !is_in_order(r))
			return false;
		add_step(s, r->step);
		return true;
	}
	return false;
}

/* Reads the lines that `line` stands for: of its first {a,b} one for each word. */
static bool read_lines(struct reader *r, const char *line)
{
	const char *open = strchr(line, '{'), *close = open ? strchr(open, '}') : NULL;
	char one[LINE_MAX_BYTES];
	size_t length;

	if (!open)
		return read_line(r, line);
	if (!close)
		return false;
	for (const char *word = open + 1; word <= close; word += length + 1) {
		length = strcspn(word, ",}");
		snprintf(one, sizeof(one), "%.*s%.*s%s", (int)(open - line), line, (int)length,
			 word, close + 1);
		if (!read_lines(r, one))
			return false;
	}
	return true;
}

static bool take_domain(struct request_scenario *s)
{
	const char *at = strstr(s->rules, "domain:");

	return at && (sscanf(at, "domain: name: %63s", s->domain) == 1 ||
		      sscanf(at, "domain: %63s", s->domain) == 1);
}

bool request_scenario_read(const char *path, const char *consistency, struct request_scenario *ret,
			   char *error, size_t size)
{
	struct reader r = { .in = fopen(path, "r"), .s = ret };
	char line[LINE_MAX_BYTES];
	bool fine = true;

	*ret = (struct request_scenario){ .node = { "a" }, .nodes = 1 };
	if (!r.in) {
		snprintf(error, size, "%s: %s", path, strerror(errno));
		return false;
	}
	ret->rules = scenario_text(r.in, &r.line, "CONSISTENCY", consistency, &ret->varies);
	if (!ret->rules) {
		snprintf(error, size, "%s: no line \"---\" behind the rules", path);
		fine = false;
	}
	if (fine && !take_domain(ret)) {
		snprintf(error, size, "%s: no line \"domain: NAME\" in the rules", path);
		fine = false;
	}
	while (fine && scenario_line(r.in, &r.line, line, sizeof(line))) {
		fine = read_lines(&r, line);
		if (!fine)
			snprintf(error, size, "%s:%d: found \"%s\"; accepted: " ACCEPTED, path,
				 r.line, line);
	}
	fclose(r.in);
	if (fine && r.turns) {
		snprintf(error, size, "%s:%d: no line \"end\" behind \"repeat\"", path, r.line);
		fine = false;
	}
	if (!fine)
		request_scenario_clear(ret);
	return fine;
}

void request_scenario_clear(struct request_scenario *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->step[i].rules);
	free(s->step);
	free(s->rules);
	*s = (struct request_scenario){ .count = 0 };
}
