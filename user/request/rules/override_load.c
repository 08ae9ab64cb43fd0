// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override_load.c - `overrides_file` of a rule: lines VALUE,LIMIT[,LIMIT...] (override_lines.h),
 * and what it shares with `overrides`.
 *
 * If neither the file nor the rule's own limits have changed the table of the previous rule set
 * is reused: a live change does not read a million lines.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/limit_types.h"
#include "config/override_lines.h"
#include "request/rules/override_private.h"
#include "request/rules/rule_keys.h"
#include "conf/config_text.h"
#include "limiter/algorithm.h"

#define LIMITS_ACCEPTED                                                                            \
	"NUMBER requests/PERIOD, NUMBER requests/PERIOD burst N, concurrency N, block or unlimited"

#define OVERRIDES_SHOWN 16

/* ---- a line of the file ---- */

struct file_making {
	struct making m;
	struct override_lines lines;
	struct override_key key; /* of the value of this line */
};

/* "1000 requests/m" or "1000 requests/m burst 50". */
static int parse_limit(struct making *m, const char *text, struct rule_limit *limit,
		       const char **ret_reason)
{
	const char *burst = strstr(text, " burst ");
	size_t len = burst ? (size_t)(burst - text) : strlen(text);
	char rate[80];

	*ret_reason = "accepted: " LIMITS_ACCEPTED;
	if (len >= sizeof(rate))
		return -EINVAL;
	memcpy(rate, text, len);
	rate[len] = 0;
	if (requests_parse(rate, &limit->terms.rates.rate[0], ret_reason))
		return -EINVAL;
	*ret_reason =
		"a rate, but the rule's limit in its place is a concurrency; accepted: concurrency NUMBER";
	if (limit->terms.rates.rate[0].unit == RATE_IN_FLIGHT)
		limit_set_concurrency(&limit->terms);
	else if (limit->terms.algorithm == SL_ALGO_CONCURRENCY)
		return -EINVAL;
	limit_terms_drop(&limit->terms, 0);
	if (limit_terms_settle_calendar(&limit->terms, ret_reason))
		return -EINVAL;
	if (!burst)
		return 0;
	if (count_parse(burst + 7, &limit->terms.rates.burst[0], ret_reason))
		return -EINVAL;
	*ret_reason = "burst is given, but only a token-bucket has one";
	if (!algorithms[limit->terms.algorithm]->default_burst)
		return -EINVAL;
	*ret_reason = "a burst of 0; accepted: 1 or more";
	return limit->terms.rates.burst[0] ? 0 : -EINVAL;
}

/* Parses the limits of a line; changes a copy of its text. */
static int parse_plan(void *arg, char *text, int line, size_t column, u32 *ret)
{
	struct file_making *f = arg;
	struct making *m = &f->m;
	struct rule_limit limit[RULE_LIMITS_MAX];
	bool block, unlimited = false;
	const char *reason, *start = text;
	struct sl_err why;
	u32 count = 0;
	int rc = 0;

	do {
		char *field = override_field(&text, ',');
		size_t at = column + (field - start);

		if (count == RULE_LIMITS_MAX)
			return override_line_fail(&f->lines, line, at,
						  "found one limit more than %d; accepted: up to "
						  "%d",
						  RULE_LIMITS_MAX, RULE_LIMITS_MAX);
		block = !strcmp(field, "block");
		unlimited = !strcmp(field, "unlimited");
		if ((block || unlimited) && (count || *text))
			return override_line_fail(&f->lines, line, at,
						  "found %s beside limits; accepted: %s alone",
						  field, field);
		if (unlimited)
			break;
		rc = block ? override_blocked_limit(m, &limit[count])
			   : override_default_limit(m, count, &limit[count]);
		if (!rc && !block && parse_limit(m, field, &limit[count], &reason))
			return override_line_fail(&f->lines, line, at, "found \"%.*s\": %s",
						  (int)config_text_cut(field, 60), field, reason);
		if (!rc && check_limit_bounds(&limit[count], &m->draft->rule, &why))
			return override_line_fail(&f->lines, line, at, "found \"%.*s\": %s",
						  (int)config_text_cut(field, 60), field,
						  why.message);
		count++;
	} while (!rc && *text);
	if (!rc)
		rc = override_intern(m, limit, count, unlimited, ret);
	if (rc == -E2BIG)
		return override_line_fail(&f->lines, line, column,
					  "found more than %d different limits of values; "
					  "accepted: fewer",
					  OVERRIDE_LIMITS_MAX);
	return rc ? read_no_memory(m->r) : 0;
}

static int is_line_of(void *arg, struct bytes value, int line, size_t column)
{
	const struct file_making *f = arg;
	const struct rule *rule = &f->m.draft->rule;
	struct override_key key;

	return !override_key_read(rule, value, &key, NULL) && key.hash == f->key.hash ? line : 0;
}

/* The line where a value with this hash comes first: for the error about the second. */
static int first_line(struct file_making *f)
{
	struct sl_err ignored;
	struct reader r = { .err = &ignored, .subject = "" };
	struct override_lines again = f->lines;
	int line;

	again.r = &r;
	again.began = false;
	again.key = is_line_of;
	again.plan = NULL;
	again.add = NULL;
	memset(&again.plans, 0, sizeof(again.plans));
	line = override_lines_read(&again);
	return line > 0 ? line : 0;
}

static int read_value(void *arg, struct bytes value, int line, size_t column)
{
	struct file_making *f = arg;
	const struct rule *rule = &f->m.draft->rule;
	struct sl_err why;
	u32 known;

	if (override_key_read(rule, value, &f->key, &why))
		return override_line_fail(&f->lines, line, column, "%s", why.message);
	if (override_table_find(f->m.table, f->key.hash, &known))
		return override_line_fail(&f->lines, line, 0,
					  "found a value again, first in line "
					  "%d; accepted: each value once",
					  first_line(f));
	return 0;
}

static int add_value(void *arg, u32 number)
{
	struct file_making *f = arg;

	return override_table_add(f->m.table, &f->key, number) ? read_no_memory(f->m.r) : 0;
}

/* ---- the file ---- */

/* Of all that the limits of a value, and their checks, depend on. */
static u64 rule_hash(const struct draft *draft)
{
	const struct rule *rule = &draft->rule;
	const char *name = rule->name ? rule->name : draft->b->path;
	u64 hash = override_hash_limits(draft->limit, rule->limit_count, false);
	u64 words[] = { rule->consistency, rule->consistency_ns, rule->wait_ns, 0, 0 };

	for (u32 i = 0; i < rule->limit_count; i++)
		words[3] |= (u64)draft->limit[i].mode << 8 * i;
	for (u32 i = 0; i < rule->depth; i++)
		words[4] |= (u64)rule->entry[i].ignore << 4 * i;
	hash ^= override_hash_limits(&draft->defaults, 1, true);
	hash = hash_bytes(hash_seed(), hash, words, sizeof(words));
	hash = hash_bytes(hash_seed(), hash, name, strlen(name));
	hash = hash_bytes(hash_seed(), hash, rule->prefix.count, sizeof(rule->prefix.count));
	hash = hash_bytes(hash_seed(), hash, rule->prefix.len, sizeof(rule->prefix.len));
	return hash_bytes(hash_seed(), hash, rule->prefix.scale, sizeof(rule->prefix.scale));
}

/* The previous rule set's table, if it would come out the same. */
static struct override_table *same_as_before(struct draft *draft, const char *path,
					     const u64 file_id[4])
{
	const struct ruleset *old = draft->b->old;
	const struct rule *rule = NULL;
	struct override_table *table;
	char *name;

	if (!old || asprintf(&name, "%s/%s", draft->b->domain, draft->b->path) < 0)
		return NULL;
	rule = ruleset_find(old, name);
	free(name);
	table = rule && rule->overrides ? rule->overrides->file : NULL;
	if (!table || strcmp(table->path, path) || rule->overrides->rule_hash != rule_hash(draft) ||
	    memcmp(table->file_id, file_id, sizeof(table->file_id)))
		return NULL;
	table->users++;
	return table;
}

static int make_table(struct file_making *f, const u64 file_id[4])
{
	struct making *m = &f->m;
	int rc = override_lines_read(&f->lines);

	m->table->digest = f->lines.digest;
	m->table->path = strdup(f->lines.file);
	memcpy(m->table->file_id, file_id, sizeof(m->table->file_id));
	return !rc && !m->table->path ? read_no_memory(m->r) : rc;
}

static int load_file(struct reader *r, struct draft *draft, struct override_index *index)
{
	struct file_making f = {
		.m = { .r = r, .draft = draft },
		.lines = { .r = r,
			   .header = { "value", "limit" },
			   .arg = &f,
			   .key = read_value,
			   .plan = parse_plan,
			   .add = add_value,
			   .form = "VALUE,LIMIT[,LIMIT...], "
				   "and values with commas in quotes" },
	};
	u64 file_id[4] = { 0 };
	const char *text = draft->overrides_file->text;
	struct stat st;
	char *path;
	int rc = 0;

	if (!text[0] || yaml_node_is_null(draft->overrides_file))
		return read_refuse(r, draft->overrides_file,
				   "the path of a file with lines VALUE,LIMIT");
	path = config_text_beside(draft->b->file, text);
	index->file_text = strdup(text);
	if (!path || !index->file_text) {
		free(path);
		return read_no_memory(r);
	}
	if (!stat(path, &st)) {
		file_id[0] = st.st_dev;
		file_id[1] = st.st_ino;
		file_id[2] = st.st_size;
		file_id[3] = st.st_mtim.tv_sec * SL_NS_PER_SEC + st.st_mtim.tv_nsec;
	}
	f.lines.file = path;
	index->file = same_as_before(draft, path, file_id);
	if (index->file) {
		draft->b->set->private->override_limits += index->file->limits_count;
	} else {
		index->file = f.m.table = override_table_new();
		rc = f.m.table ? make_table(&f, file_id) : read_no_memory(r);
	}
	if (!rc)
		rc = build_note_file(draft->b, path, index->file->digest);
	free(path);
	return rc;
}

/* ---- both ---- */

static int overrides_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			  void *section)
{
	((struct draft *)section)->overrides = yaml_node_is_null(node) ? NULL : node;
	return 0;
}

/* The keys of its i-th limit that are not as in the rule's i-th. */
static u64 own_given(const struct draft *draft, const struct rule_limit *limit, u32 i)
{
	struct rule_limit unlike = { .terms.algorithm = SL_ALGO_COUNT };

	if (limit->terms.algorithm == SL_ALGO_CONCURRENCY)
		return 1ULL << RULE_LIMIT_RATE;
	if (i < draft->rule.limit_count)
		unlike = draft->limit[i];
	else if (has_common_limit(draft->limit, draft->rule.limit_count))
		unlike.terms.cluster = !limit->terms.cluster;
	unlike.terms.rates.burst[0] = 0;
	if (!limit->terms.calendar)
		unlike.terms.calendar = NULL;
	unlike.name = limit->name;
	return keys_unlike(NULL, &rule_limit_keys, limit, &unlike);
}

static void write_own(struct writer *w, const struct draft *draft, const char *value,
		      const struct override_limits *limits)
{
	fprintf(w->out, "%*s- {value: ", w->indent + 2, "");
	write_text(w->out, value);
	if (!limits) {
		fputs(", removed: true}\n", w->out);
	} else if (limits->unlimited) {
		fputs(", unlimited: true}\n", w->out);
	} else if (limits->limit[0].none) {
		fputs(", block: true}\n", w->out);
	} else {
		fputs(", limits: [", w->out);
		for (u32 i = 0; i < limits->limit_count; i++) {
			fputs(i ? ", " : "", w->out);
			write_limit_element(w, &limits->limit[i],
					    own_given(draft, &limits->limit[i], i));
		}
		fputs("]}\n", w->out);
	}
}

static bool is_in_overrides_file(const struct rule *rule, const char *value)
{
	struct override_key key;
	u32 known;

	return !override_key_read(rule, (struct bytes){ value, strlen(value) }, &key, NULL) &&
	       override_table_find(rule->overrides->file, key.hash, &known);
}

void override_write_own(struct writer *w, const struct draft *draft, bool live, u32 most)
{
	const struct override_index *index = draft->rule.overrides;
	u32 count = 0;

	for (u32 i = 0; index && i < index->own_count; i++) {
		const struct override_own *own = &index->own_list[i];

		/* one that was removed is written where the file beside still has it */
		if (live ? !own->limits && !is_in_overrides_file(&draft->rule, own->value)
			 : !own->in_file)
			continue;
		if (!count++) {
			write_begin(w);
			fputs("overrides:\n", w->out);
		}
		if (count <= most)
			write_own(w, draft, own->value, live ? own->limits : own->file_limits);
	}
	if (count > most)
		fprintf(w->out, "%*s# and %u more\n", w->indent + 2, "", count - most);
}

static void overrides_lines(struct writer *w, const struct key *key, const void *section)
{
	override_write_own(w, section, true, OVERRIDES_SHOWN);
}

const struct key_type type_rule_overrides = {
	.name = "list",
	.read = overrides_read,
	.lines = overrides_lines,
};

int read_rule_overrides_file(struct reader *r, const struct yaml_node *node, void *into)
{
	((struct draft *)into)->overrides_file = node;
	return 0;
}

void write_rule_overrides_file(struct writer *w, const void *from)
{
	const struct draft *draft = from;

	write_text(w->out, draft->overrides_file_text);
	fprintf(w->out, "	# %u values", draft->rule.overrides->file->values.count);
}

/* Those of a rule in force, which depend on what is as before. */
static int keep_overrides(struct reader *r, struct draft *draft)
{
	draft->rule.overrides = override_index_copy(draft->overrides_now);
	return draft->rule.overrides ? 0 : read_no_memory(r);
}

static bool are_all_live(const struct override_index *index)
{
	for (u32 i = 0; i < index->own_count; i++)
		if (index->own_list[i].in_file)
			return false;
	return !index->file;
}

int load_rule_overrides(struct reader *r, struct draft *draft)
{
	const struct override_index *now = draft->overrides_now;
	size_t path_len = strlen(r->path);
	struct override_index *index;
	int rc = 0;

	if (now && now->rule_hash == rule_hash(draft))
		return keep_overrides(r, draft);
	if (now && !are_all_live(now))
		return -ENOENT;
	if (!override_wanted(draft))
		return 0;
	index = draft->rule.overrides = calloc(1, sizeof(*index));
	if (!index)
		return read_no_memory(r);
	index->rule_hash = rule_hash(draft);
	/* The file first: entries beside it may be about its values. */
	if (draft->overrides_file) {
		strcpy(r->path, "overrides_file");
		rc = load_file(r, draft, index);
	}
	if (!rc) {
		strcpy(r->path, "overrides");
		rc = override_load_own(r, draft, index);
	}
	if (!rc)
		r->path[path_len] = 0;
	return rc;
}
