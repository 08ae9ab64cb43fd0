// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rule_limit.c - `limits` of a rule, and what must fit together in the limits of a rule. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/limit_types.h"
#include "config/read.h"
#include "request/rules/rule_keys.h"
#include "request/rules/rule_private.h"
#include "limiter/algorithm.h"
#include "limiter/params.h"

#define LIMIT_NAME_MAX 64

const struct name http_algo_names[] = {
/* clang-format off */
#define NAME(id, row, text, kind) { text, id },
	/* clang-format on */
	ALGORITHMS_OF_REQUESTS(NAME)
#undef NAME
		{ NULL, 0 },
};

/* ---- limits ---- */

/* An element being read: the rows are those of its first member. */
struct element {
	struct rule_limit limit;
	struct arena *arena;
	u64 given;
};

static int limit_name_read(struct reader *r, const char *text, const struct key *key, void *into)
{
	struct element *element = into;

	if (strlen(text) > LIMIT_NAME_MAX || strpbrk(text, "\"\\"))
		return key_refuse_text(r, key);
	for (const char *c = text; *c; c++)
		if (*c < 0x20 || *c > 0x7e)
			return key_refuse_text(r, key);
	element->limit.name = arena_text(element->arena, text, strlen(text));
	return element->limit.name ? 0 : read_no_memory(r);
}

static void write_limit_name(struct writer *w, const void *from)
{
	fprintf(w->out, "'%s'", ((const struct rule_limit *)from)->name);
}

static int requests_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	return read_requests(r, text, key_field(key, section));
}

static void requests_write(struct writer *w, const struct key *key, const void *section)
{
	char text[64];

	fputs(rate_format(key_field_of(key, section), text, sizeof(text)), w->out);
}

static const struct key_type type_requests = {
	.name = "rate",
	.text = requests_read,
	.accepts = REQUESTS,
	.write = requests_write,
};

/* Of the zone; the unit is that of the rate (limit_terms_settle_calendar()). */
static int calendar_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	const struct calendar **calendar = key_field(key, section);
	struct sl_err why;

	return calendar_open(text, CALENDAR_MONTH, calendar, &why)
		       ? text_fail(r, ": %s", why.message)
		       : 0;
}

static void calendar_write(struct writer *w, const struct key *key, const void *section)
{
	const struct calendar *const *calendar = key_field_of(key, section);

	write_text(w->out, (*calendar)->zone);
}

const struct key_type type_calendar = {
	.name = "text",
	.size = sizeof(struct calendar *),
	.text = calendar_read,
	.accepts = "UTC, or a time zone, as Europe/Berlin",
	.write = calendar_write,
};

#define LIMIT(field) KEY(struct rule_limit, field)

static const struct name http_mode_names[] = {
	{ "enforce", SL_MODE_ENFORCE },
	{ "shadow", SL_MODE_SHADOW },
	{ NULL, 0 },
};

static const struct key rule_limit_rows[] = {
	{ "rate", LIMIT(terms.rates.rate[0]), &type_requests, .flags = KEY_NEEDED,
	  .help = "needed; also `concurrency 20`, see [below](#requests-in-flight)" },
	{ "name", LIMIT(name), .text = limit_name_read, .write = write_limit_name,
	  .accepted = "1 to 64 characters of ASCII without quotes, \\ and control characters",
	  .help = "of its policy in headers; default the rule's path, for the second limit `PATH-2`" },
	{ "algorithm", LIMIT(terms.algorithm), &type_enum, .names = http_algo_names,
	  .help = ALGORITHMS_OF_REQUESTS(ALGORITHM_HELP) "default `fixed-window`, see "
							 "[algorithms](algorithms.md)" },
	{ "window", LIMIT(terms.first_request), &type_enum, .names = window_names,
	  .help = "of a fixed window: `aligned` to UTC, or from the `first-request` on" },
	{ "buckets", LIMIT(terms.buckets), &type_number, .least = 2, .most = 240,
	  .accepted = "2 to 240",
	  .help = "of window-counters: the buckets of a window, 2 to 240; default 60" },
	{ "rounding", LIMIT(terms.round_up), &type_enum, .names = rounding_names,
	  .help = "of a sliding window's [estimate](algorithms.md#sliding-window): `down` (default) or `up`" },
	{ "calendar", LIMIT(terms.calendar), &type_calendar,
	  .help = "a time zone, [for the edges of windows](#calendars)" },
	{ "burst", LIMIT(terms.rates.burst[0]), &type_count, .least = 1, .most = ~0ULL,
	  .accepted = "1 or more",
	  .help = "of a token bucket: requests at once; default one second's worth, at least one; of "
		  "an interval bucket one refill" },
	{ "throttle", LIMIT(terms.throttle), &type_throttle,
	  .help = "`hard`, `{soft: 10%, for: 30s}` or `{elastic: 200%, while: {cpu: 70%}}`, as in the "
		  "packet tier" },
	{ "count", LIMIT(terms.count), &type_enum, .names = http_count_names,
	  .help = "`admitted` (default); `all`: requests that it refuses count, too, so a client "
		  "that does not slow down stays out; `debt`: also above the limit, for [costs that are "
		  "known after the response](#a-cost-known-after-the-response)" },
	{ "scope", LIMIT(terms.cluster), &type_enum, .names = scope_names,
	  .help = "`node`, or `cluster`: all nodes together" },
	{ "mode", LIMIT(mode), &type_enum, .names = http_mode_names,
	  .help = "`enforce` (default), or `shadow`: a candidate, see "
		  "[below](#a-candidate-beside-the-limit)" },
};
const struct keys rule_limit_keys =
	KEYS(struct rule_limit, rule_limit_rows, .given = offsetof(struct element, given),
	     .elsewhere = keys_of_packets);

/* Of a mapping, or of a text (NULL: a mapping). */
static int read_element(struct reader *r, const struct yaml_node *map, const char *text,
			struct element *ret)
{
	if (!text)
		return keys_read(r, map, &rule_limit_keys, ret);
	ret->given = 1ULL << RULE_LIMIT_RATE;
	return read_requests(r, text, &ret->limit.terms.rates.rate[0]);
}

void limit_set_concurrency(struct limit_terms *terms)
{
	*terms = (struct limit_terms){
		.algorithm = SL_ALGO_CONCURRENCY,
		.rates = { .rate = { terms->rates.rate[0] }, .count = 1 },
	};
}

/* It has no other keys of a limit, and takes none from the rule, but the scope must not be the
 * cluster's. */
static int settle_concurrency(struct reader *r, const struct yaml_node *at, u64 given,
			      const struct rule_limit *defaults, struct rule_limit *limit)
{
	for (size_t i = 0; i < rule_limit_keys.count; i++) {
		const char *name = rule_limit_keys.key[i].name;

		if (given >> i & 1 && i != RULE_LIMIT_RATE && strcmp(name, "name") &&
		    strcmp(name, "mode") && strcmp(name, "scope"))
			return read_fail(
				r, at, EINVAL,
				"%s is given, but this is a concurrency; accepted with it: "
				"name, mode",
				name);
	}
	keys_inherit(&rule_limit_keys, given, limit, defaults);
	if (limit->terms.cluster)
		return read_fail(
			r, at, EINVAL,
			"scope is cluster, but requests in flight are counted on each "
			"node; accepted: scope: node for it, and scope: cluster in the other limits");
	limit_set_concurrency(&limit->terms);
	return 0;
}

static int concurrency_read(struct reader *r, const char *text, const struct key *key,
			    void *section)
{
	const char *reason;

	return concurrency_parse(text, key_field(key, section), &reason)
		       ? text_fail(r, ": %s", reason)
		       : 0;
}

static void concurrency_write(struct writer *w, const struct key *key, const void *section)
{
	char text[64];

	rate_format(key_field_of(key, section), text, sizeof(text));
	fputs(strchr(text, ' ') + 1, w->out);
}

const struct key_type type_rule_concurrency = {
	.name = "number",
	.size = sizeof(struct rate),
	.text = concurrency_read,
	.write = concurrency_write,
	.accepts = "NUMBER, or NUMBER for PERIOD",
};

int draft_add_concurrency(struct reader *r, struct draft *draft)
{
	const struct yaml_node *at = yaml_node_find(draft->map, "concurrency");
	u32 i = draft->rule.limit_count;

	if (!draft->concurrency.count)
		return 0;
	if (draft->rule.unlimited)
		return read_fail(
			r, at, EINVAL,
			"concurrency is given, but this is unlimited; accepted: one of them");
	if (i == RULE_LIMITS_MAX)
		return read_fail(
			r, at, EINVAL,
			"concurrency is one limit more than %d; accepted with it: up to %d",
			RULE_LIMITS_MAX, RULE_LIMITS_MAX - 1);
	draft->limit[i] = (struct rule_limit){ .of_key = true };
	draft->limit[i].terms.rates.rate[0] = draft->concurrency;
	draft->limit_given[i] = 1ULL << RULE_LIMIT_RATE;
	draft->limit_at[i] = at ? at->value : NULL;
	draft->rule.limit_count++;
	return 0;
}

void draft_take_concurrency(struct draft *draft)
{
	u32 last = draft->rule.limit_count;

	memset(&draft->concurrency, 0, sizeof(draft->concurrency));
	if (!last || !draft->limit[last - 1].of_key)
		return;
	draft->concurrency = draft->limit[last - 1].terms.rates.rate[0];
	draft->rule.limit_count--;
}

/* Keys that it does not set are as in `defaults`, as far as its algorithm has them. */
static int settle_element(struct reader *r, const struct yaml_node *at, u64 given,
			  const struct rule_limit *defaults, struct rule_limit *limit)
{
	u32 terms = limit_terms_given_rows(&rule_limit_keys, given);
	const char *reason;
	int rc;

	if (limit->terms.rates.rate[0].unit == RATE_IN_FLIGHT)
		return settle_concurrency(r, at, given, defaults, limit);
	if (defaults->terms.algorithm == SL_ALGO_CONCURRENCY)
		return read_fail(
			r, at, EINVAL,
			"this is a rate, but the rule's limit in its place is a "
			"concurrency; accepted: concurrency NUMBER here, in the order of the rule");
	keys_inherit(&rule_limit_keys, given, limit, defaults);
	limit->terms.rates.count = 1;
	limit_terms_drop(&limit->terms, terms);
	rc = limit_terms_check(r, at, terms, &limit->terms, &limit->terms.algorithm, 1,
			       http_algo_names);
	if (!rc && limit_terms_settle_calendar(&limit->terms, &reason))
		rc = read_fail(r, at && at->kind == YAML_MAP ? yaml_node_find(at, "calendar") : at,
			       EINVAL, "%s", reason);
	return rc;
}

int read_limit_element(struct reader *r, const struct yaml_node *map, const char *text,
		       const struct rule_limit *defaults, struct rule_limit *ret,
		       struct arena *arena)
{
	struct element element = { .arena = arena };
	int rc = read_element(r, map, text, &element);

	*ret = element.limit;
	return rc ? rc : settle_element(r, map, element.given, defaults, ret);
}

static int add_limit(struct reader *r, const struct yaml_node *at, const char *text,
		     struct draft *draft)
{
	struct element element = { .arena = build_arena(draft->b) };
	u32 i = draft->rule.limit_count;
	int rc;

	if (i == RULE_LIMITS_MAX)
		return read_fail(r, at, EINVAL, "found one limit more than %d; accepted: up to %d",
				 RULE_LIMITS_MAX, RULE_LIMITS_MAX);
	rc = read_element(r, at, text, &element);
	draft->limit[i] = element.limit;
	draft->limit_given[i] = element.given;
	draft->limit_at[i] = at;
	if (!rc)
		draft->rule.limit_count++;
	return rc;
}

int limits_begin(struct reader *r, size_t count, const struct key *key, void *section)
{
	return count ? 0 : text_refuse(r, "a list of limits, as ['10 requests/m']");
}

static int limit_text_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	return add_limit(r, r->at, text, section);
}

static int limit_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		      void *section)
{
	return add_limit(r, node, NULL, section);
}

bool has_common_limit(const struct rule_limit *limit, u32 count)
{
	for (u32 i = 0; i < count; i++)
		if (limit[i].terms.cluster)
			return true;
	return false;
}

void write_limit_element(struct writer *w, const struct rule_limit *limit, u64 given)
{
	char text[64];

	if (given != 1ULL << RULE_LIMIT_RATE)
		keys_write_flow(w, &rule_limit_keys, limit, given);
	else
		write_text(w->out, rate_format(&limit->terms.rates.rate[0], text, sizeof(text)));
}

static void limits_lines(struct writer *w, const struct key *key, const void *section)
{
	const struct draft *draft = section;

	if (draft->rule.envoy)
		return;
	write_begin(w);
	fputs("limits:\n", w->out);
	for (u32 i = 0; i < draft->rule.limit_count && !draft->limit[i].of_key; i++) {
		fprintf(w->out, "%*s- ", w->indent + 2, "");
		write_limit_element(w, &draft->limit[i], draft->limit_given[i]);
		fputc('\n', w->out);
	}
}

/* A rate_limit is in the same array. */
static void limits_clear(const struct key *key, void *section)
{
	struct draft *draft = section;

	if (!draft->rule.envoy)
		draft->rule.limit_count = 0;
}

const struct key_type type_rule_limits = {
	.name = "list",
	.items = limits_begin,
	.text = limit_text_read,
	.read = limit_read,
	.accepts = REQUESTS,
	.lines = limits_lines,
	.clear = limits_clear,
};

/* ---- all of a rule's ---- */

/* A name for headers: the path, of characters that need no escape there. */
char *limit_default_name(struct draft *draft, struct arena *arena, u32 number)
{
	char name[LIMIT_NAME_MAX + 16];
	size_t len;

	if (draft->rule.name)
		len = snprintf(name, LIMIT_NAME_MAX + 1, "%s", draft->rule.name);
	else
		len = snprintf(name, LIMIT_NAME_MAX + 1, "%s", draft->b->path);
	if (len > LIMIT_NAME_MAX)
		len = LIMIT_NAME_MAX;
	for (size_t i = 0; i < len; i++)
		if (name[i] < 0x20 || name[i] > 0x7e || strchr("\"\\", name[i]))
			name[i] = '?';
	if (!number)
		len += snprintf(name + len, sizeof(name) - len, "-concurrency");
	else if (number > 1)
		len += snprintf(name + len, sizeof(name) - len, "-%u", number);
	return arena_text(arena, name, len);
}

static bool name_taken(const struct draft *draft, u32 i)
{
	for (u32 k = 0; k < draft->rule.limit_count; k++)
		if (k != i && draft->limit[k].name &&
		    !strcmp(draft->limit[k].name, draft->limit[i].name))
			return true;
	return false;
}

static int name_limits(struct reader *r, struct draft *draft)
{
	for (u32 i = 0; i < draft->rule.limit_count; i++)
		if (draft->limit[i].name && name_taken(draft, i))
			return read_fail(r, draft->limit_at[i], EINVAL,
					 "found the name \"%s\" "
					 "again; accepted: each limit of a rule its own",
					 draft->limit[i].name);
	for (u32 i = 0; i < draft->rule.limit_count; i++) {
		u32 number = draft->limit[i].of_key ? 0 : i + 1;

		if (draft->limit[i].name)
			continue;
		do {
			draft->limit[i].name =
				limit_default_name(draft, build_arena(draft->b), number++);
			if (!draft->limit[i].name)
				return read_no_memory(r);
		} while (name_taken(draft, i));
	}
	return 0;
}

static int check_modes(struct reader *r, const struct draft *draft)
{
	bool enforced = !draft->rule.limit_count;

	for (u32 i = 0; i < draft->rule.limit_count; i++)
		enforced |= draft->limit[i].mode == SL_MODE_ENFORCE;
	return enforced ? 0
			: read_fail(r, draft->map, EINVAL,
				    "every limit has mode: shadow; accepted: one that is "
				    "enforced beside them, or shadow_mode: true of the rule");
}

/* At least one limit must use what the rule has for all. */
static int check_defaults(struct reader *r, const struct draft *draft)
{
	enum sl_algo algorithm[RULE_LIMITS_MAX];
	bool calendar = !draft->defaults.terms.calendar;

	for (u32 i = 0; i < draft->rule.limit_count; i++) {
		algorithm[i] = draft->limit[i].terms.algorithm;
		calendar |= draft->limit[i].terms.calendar != NULL;
	}
	if (!calendar)
		return read_fail(
			r, yaml_node_find(draft->map, "calendar"), EINVAL,
			"calendar is given, but no limit is a fixed window of requests/day, week, month or year; accepted with it: such a limit");
	return limit_terms_check(
		r, draft->map, limit_terms_given_rows(draft_keys(draft), draft->given),
		&draft->defaults.terms, algorithm, draft->rule.limit_count, http_algo_names);
}

static int check_one_form(struct reader *r, const struct draft *draft)
{
	const struct yaml_node *limits = yaml_node_find(draft->map, "limits");

	if (!draft_given(draft, "limits") || !draft_given(draft, "rate_limit"))
		return 0;
	return read_fail(r, limits ? limits->value : NULL, EINVAL,
			 "limits: found limits beside "
			 "rate_limit; accepted: one of them");
}

/* As the decision core uses it, at one length of the prefix hierarchy. */
static int check_step(const struct limit_terms *terms, u32 scale, struct sl_err *err)
{
	const struct throttle_def *throttle = &terms->throttle;
	struct spec_def def = {
		.count = terms->rates.rate[0].count,
		.period_ns = terms->rates.rate[0].period_ns,
		.burst = terms->rates.burst[0],
		.scale = scale,
		.ceiling_percent = 100,
		.algo = algorithm_anchored(terms->algorithm, terms->first_request),
		.buckets = terms->buckets,
		.round_up = terms->round_up,
	};
	const char *reason;
	struct spec spec;
	int rc;

	if (terms->calendar) {
		def.period_ns = terms->calendar->window_ns;
		def.calendar = terms->calendar->id;
	}
	if (throttle->kind == THROTTLE_ELASTIC)
		def.ceiling_percent = throttle->ceiling_percent;
	rc = spec_make_def(&def, &spec, err);
	if (!rc && throttle->kind == THROTTLE_ELASTIC &&
	    params_check_floor(&spec.params, throttle->floor_percent, &reason))
		rc = sl_err_set(err, ERANGE, "%s", reason);
	if (rc || throttle->kind != THROTTLE_SOFT)
		return rc;
	def.soft_permille = throttle->soft_permille;
	return spec_make_def(&def, &spec, err);
}

int check_limit_bounds(const struct rule_limit *limit, const struct rule *rule, struct sl_err *err)
{
	int rc = limit->none ? 0 : check_limit_scope(limit, rule, err);
	struct sl_err why;

	if (!rc && !limit->none)
		rc = check_step(&limit->terms, 1, err);

	for (int family = 0; !limit->none && family < SL_FAMILY_COUNT; family++)
		for (u32 i = 0; i < rule->prefix.count[family] && !rc; i++) {
			rc = check_step(&limit->terms, rule->prefix.scale[family][i], &why);
			if (rc)
				sl_err_set(err, -rc,
					   "with prefix /%u, which has %u times the limit: %s",
					   rule->prefix.len[family][i],
					   rule->prefix.scale[family][i], why.message);
		}
	return rc;
}

int check_rule_limits(struct reader *r, struct draft *draft)
{
	struct sl_err why;
	int rc = check_one_form(r, draft);

	imply_scope(draft);
	for (u32 i = 0; i < draft->rule.limit_count && !rc; i++)
		rc = settle_element(r, draft->limit_at[i], draft->limit_given[i], &draft->defaults,
				    &draft->limit[i]);
	if (!rc)
		rc = check_defaults(r, draft);
	if (!rc)
		rc = check_modes(r, draft);
	if (!rc)
		rc = check_prefix_scales(r, &draft->rule.prefix);
	if (!rc)
		rc = check_rule_scope(r, draft);
	if (!rc)
		rc = name_limits(r, draft);
	if (!rc && draft->rule.ban.after && (draft->rule.wait_ns || draft->rule.defer.max))
		rc = read_fail(r, yaml_node_find(draft->map, "ban"), EINVAL,
			       "ban counts refusals, but "
			       "on_limit %s instead; accepted with it: on_limit: refuse",
			       draft->rule.wait_ns ? "delays" : "defers");
	for (u32 i = 0; i < draft->rule.limit_count && !rc; i++)
		if (check_limit_bounds(&draft->limit[i], &draft->rule, &why))
			rc = read_fail(r, draft->limit_at[i], EINVAL, "%s", why.message);
	return rc;
}
