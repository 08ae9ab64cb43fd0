// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* request_scenario.c - see request_scenario.h. */
#include "lib/request_scenario.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ACCEPTED "nodes, at, stream, cut, redis, total, rules or real, as in tests/lib/request_scenario.h"

struct reader {
	FILE *in;
	int line;
	struct request_scenario *s;
	struct request_step step;
	s64 last_ns;			/* the time of the step before */
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

static bool take_allowed(struct reader *r, const char **at)
{
	return take_literal(at, "allow") && take_range(at, &r->step.expected);
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
	if (!take_allowed(r, &at))
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
	       take_allowed(r, &at) && at_end(at);
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
		return take_time(&at, &r->step.at_ns) && at_end(at);
	}
	r->step.kind = STEP_STOP;
	return take_literal(&at, "stop") && take_times(&at, &r->step.at_ns, &r->step.end_ns) &&
	       at_end(at);
}

static bool read_total(struct reader *r, const char *at)
{
	r->step.kind = STEP_TOTAL;
	return take_request(r, &at) && take_allowed(r, &at) && at_end(at);
}

static bool read_rules(struct reader *r, const char *at)
{
	bool varies;

	r->step.kind = STEP_RULES;
	r->step.rules = scenario_text(r->in, &r->line, NULL, NULL, &varies);
	return r->step.rules && at_end(at);
}

static const struct {
	const char *word;
	bool (*read)(struct reader *r, const char *at);
} steps[] = {
	{ "at", read_at }, { "stream", read_stream }, { "cut", read_cut },
	{ "redis", read_redis }, { "total", read_total }, { "rules", read_rules },
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

static bool read_line(struct reader *r, const char *at)
{
	struct request_scenario *s = r->s;
	struct request_step *grown;

	if (take_literal(&at, "real")) {
		s->is_real = true;
		return at_end(at);
	}
	if (!s->count && take_literal(&at, "nodes"))
		return read_nodes(s, at);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		if (!take_literal(&at, steps[i].word))
			continue;
		r->step = (struct request_step){ .line = r->line, .times = 1, .retry_ns = -1 };
		if (!steps[i].read(r, at) || !is_in_order(r))
			return false;
		grown = reallocarray(s->step, s->count + 1, sizeof(*s->step));
		if (!grown)
			abort();
		s->step = grown;
		s->step[s->count++] = r->step;
		return true;
	}
	return false;
}

static bool take_domain(struct request_scenario *s)
{
	static const char key[] = "domain: ";
	const char *at = strstr(s->rules, key);

	return at && sscanf(at + strlen(key), "%63s", s->domain) == 1;
}

bool request_scenario_read(const char *path, const char *consistency, struct request_scenario *ret,
			   char *error, size_t size)
{
	struct reader r = { .in = fopen(path, "r"), .s = ret };
	char line[512];
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
		fine = read_line(&r, line);
		if (!fine)
			snprintf(error, size, "%s:%d: found \"%s\"; accepted: " ACCEPTED, path, r.line,
				 line);
	}
	fclose(r.in);
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
