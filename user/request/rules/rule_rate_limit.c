// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rule_rate_limit.c - rate_limit of a rule: the limit as envoyproxy/ratelimit has it. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "request/rules/rule_keys.h"
#include "request/rules/rule_private.h"

#define UNITS "second, minute, hour, day, week, month, year"

static int key_unit(struct reader *r, const struct yaml_node *node, void *into)
{
	struct draft *draft = into;

	if (yaml_node_is_null(node) || (node->kind == YAML_TEXT && !node->text[0]))
		return 0; /* ignored */
	for (enum request_unit unit = REQUEST_UNIT_SECOND;
	     unit < REQUEST_UNIT_COUNT && node->kind == YAML_TEXT; unit++) {
		if (strcasecmp(node->text, request_units[unit].name))
			continue;
		draft->rule.unit = unit;
		draft->limit[0].terms.rates.rate[0].period_ns = request_units[unit].ns;
		return 0;
	}
	return read_refuse(r, node, UNITS);
}

static void write_unit(struct writer *w, const void *from)
{
	enum request_unit unit = ((const struct draft *)from)->rule.unit;

	if (unit)
		fputs(request_units[unit].name, w->out);
}

static int copy_text(struct reader *r, struct draft *draft, const struct yaml_node *node,
		     char **ret)
{
	*ret = arena_text(build_arena(draft->b), node->text, strlen(node->text));
	return *ret ? 0 : read_no_memory(r);
}

static int key_rule_name(struct reader *r, const struct yaml_node *node, void *into)
{
	struct draft *draft = into;

	if (node->kind != YAML_TEXT)
		return read_refuse(r, node, "a name");
	if (yaml_node_is_null(node) || !node->text[0])
		return 0;
	return copy_text(r, draft, node, &draft->rule.name);
}

static void write_rule_name(struct writer *w, const void *from)
{
	write_text(w->out, ((const struct draft *)from)->rule.name);
}

static int key_replaced(struct reader *r, const struct yaml_node *node, void *into)
{
	struct draft *draft = into;

	if (node->kind != YAML_TEXT || yaml_node_is_null(node) || !node->text[0])
		return read_refuse(r, node, "the name of another rate_limit");
	if (draft->rule.name && !strcmp(node->text, draft->rule.name))
		return read_fail(r, node, EINVAL, "found %s, its own name; accepted: another's",
				 read_found(r, node));
	return copy_text(r, draft, node, &draft->rule.replaces[draft->rule.replaces_count++]);
}

static const struct key replaces_keys[] = { { "name", .read = key_replaced } };

static int key_replaces(struct reader *r, const struct yaml_node *node, void *into)
{
	struct draft *draft = into;
	int rc = 0;

	if (yaml_node_is_null(node))
		return 0;
	if (node->kind != YAML_LIST)
		return read_refuse(r, node, "a list of names, as [{name: other}]");
	draft->rule.replaces =
		arena_alloc(build_arena(draft->b), (node->count + 1) * sizeof(char *));
	if (!draft->rule.replaces)
		return read_no_memory(r);
	for (const struct yaml_node *item = node->first; item && !rc; item = item->next) {
		rc = read_map(r, item, replaces_keys, ARRAY_SIZE(replaces_keys), draft);
		if (!rc)
			rc = read_require(r, item, "name");
	}
	return rc;
}

static void write_replaces(struct writer *w, const void *from)
{
	const struct rule *rule = &((const struct draft *)from)->rule;

	for (u32 i = 0; i < rule->replaces_count; i++) {
		fputs(i ? ", {name: " : "[{name: ", w->out);
		write_text(w->out, rule->replaces[i]);
		fputc('}', w->out);
	}
	fputc(']', w->out);
}

/* `name` comes before the keys that must not name it. */
static const struct key rate_limit_rows[] = {
	{ "unit", DRAFT(rule.unit), .read = key_unit, .write = write_unit,
	  .help = "`second`, `minute`, `hour`, `day`, `week` (begins on Thursday), `month` (30 days), "
		  "`year` (365); windows begin at round times of UTC, or by a [calendar](#calendars)" },
	{ "requests_per_unit", DRAFT(limit[0].terms.rates.rate[0].count), &type_number, .most = ~0U,
	  .accepted = "a whole number, 0 to 4294967295",
	  .help = "0 to 4294967295; 0 (or no such key) refuses all" },
	{ "unlimited", DRAFT(rule.unlimited), &type_yaml_bool,
	  .help = "`true`: no limit, and no `unit`" },
	{ "name", DRAFT(rule.name), .read = key_rule_name, .write = write_rule_name,
	  .help = "for `replaces` of other limits" },
	{ "replaces", DRAFT(rule.replaces_count), .read = key_replaces, .write = write_replaces,
	  .help = "`[{name: N}]`: if a request meets both, N neither counts nor decides" },
};
const struct keys rate_limit_keys = KEYS(struct draft, rate_limit_rows);

static void rate_limit_clear(const struct key *key, void *section)
{
	struct draft *draft = section;

	if (draft->rule.envoy)
		draft->rule.limit_count = 0;
	draft->rule.envoy = draft->rule.unlimited = false;
	draft->rule.unit = 0;
	draft->rule.name = NULL;
	draft->rule.replaces_count = 0;
}

static int rate_limit_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			   void *section)
{
	struct draft *draft = section;
	struct rule_limit *limit = draft->limit;
	int rc;

	if (yaml_node_is_null(node))
		return 0;
	memset(limit, 0, sizeof(*limit));
	limit->terms.rates.rate[0].unit = RATE_REQUESTS;
	rc = keys_read(r, node, &rate_limit_keys, draft);
	if (rc)
		return rc;
	if (draft->rule.unlimited && draft->rule.unit)
		return read_fail(r, yaml_node_find(node, "unit"), EINVAL,
				 "found a unit, but it is "
				 "unlimited; accepted: one of them");
	if (!draft->rule.unlimited && !draft->rule.unit)
		return read_fail(r, node, EINVAL, "key \"unit\" is missing; accepted: " UNITS);
	draft->rule.envoy = true;
	if (draft->rule.unlimited)
		return 0;
	limit->none = !limit->terms.rates.rate[0].count;
	draft->limit_at[0] = node;
	draft->limit_given[0] = 1ULL << RULE_LIMIT_RATE;
	draft->rule.limit_count = 1;
	return 0;
}

static void rate_limit_write(struct writer *w, const struct key *key, const void *section)
{
	const struct draft *draft = section;
	/* A limit of 0 is written, too. */
	struct draft unlike = { .limit[0].terms.rates.rate[0].count =
					draft->rule.unlimited ? 0 : ~0ULL };

	keys_write_flow(w, &rate_limit_keys, draft,
			keys_unlike(w, &rate_limit_keys, draft, &unlike));
}

const struct key_type type_rule_rate_limit = {
	.name = "mapping",
	.read = rate_limit_read,
	.write = rate_limit_write,
	.clear = rate_limit_clear,
};
