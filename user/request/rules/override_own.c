// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override_own.c - `overrides` of a rule, and what they share with those of a file: equal limits
 * are kept once, and an address is replaced by its group.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "request/rules/override_private.h"
#include "conf/config_text.h"
#include "conf/pair.h"
#include "limiter/algorithm.h"

/* ---- distinct limits ---- */

static u64 mix(u64 hash, const void *bytes, size_t len)
{
	return hash_bytes(hash_seed(), hash, bytes, len);
}

/* Field by field: padding has no meaning. */
static u64 hash_limit(u64 hash, const struct rule_limit *limit)
{
	const struct throttle_def *t = &limit->terms.throttle;
	u64 words[] = {
		limit->terms.rates.rate[0].count,
		limit->terms.rates.rate[0].period_ns,
		limit->terms.calendar ? limit->terms.calendar->id : 0,
		limit->terms.rates.burst[0],
		limit->terms.algorithm,
		limit->terms.first_request,
		limit->terms.round_up,
		limit->terms.buckets,
		limit->terms.count,
		limit->none,
		limit->terms.cluster,
		t->kind,
		t->soft_permille,
		t->soft_for_ns,
		t->ceiling_percent,
		t->cpu_percent,
		t->link_percent,
		t->load_signal_percent,
	};

	hash = mix(hash, words, sizeof(words));
	hash = mix(hash, t->load_signal, strlen(t->load_signal));
	return mix(hash, limit->name ? limit->name : "", limit->name ? strlen(limit->name) : 0);
}

u64 override_hash_limits(const struct rule_limit *limit, u32 count, bool unlimited)
{
	u64 hash = count << 1 | unlimited;

	for (u32 i = 0; i < count; i++)
		hash = hash_limit(hash, &limit[i]);
	return hash;
}

/* By a keyed hash of all fields; two that differ collide with probability 2^-64. */
int override_intern(struct making *m, const struct rule_limit *limit, u32 count, bool unlimited,
		    u32 *ret)
{
	u64 hash = override_hash_limits(limit, count, unlimited);
	struct override_table *table = m->table;
	struct override_limits *made;

	if (numbers_find(&table->made, hash, ret))
		return 0;
	if (++m->draft->b->set->private->override_limits > OVERRIDE_LIMITS_MAX)
		return -E2BIG;
	made = arena_alloc(override_arena(table), sizeof(*made) + count * sizeof(*limit));
	*ret = table->limits_count;
	if (!made || append(table->limits, table->limits_count, made))
		return -ENOMEM;
	made->unlimited = unlimited;
	made->limit_count = count;
	made->limit = (struct rule_limit *)(made + 1);
	if (count)
		memcpy(made->limit, limit, count * sizeof(*limit));
	return numbers_add(&table->made, hash, *ret);
}

/* ---- one limit ---- */

const struct rule_limit *override_enforced_limit(const struct draft *draft, u32 i)
{
	for (u32 k = 0; k < draft->rule.limit_count; k++)
		if (draft->limit[k].mode == SL_MODE_ENFORCE && !i--)
			return &draft->limit[k];
	return NULL;
}

int override_default_limit(struct making *m, u32 i, struct rule_limit *ret)
{
	const struct draft *draft = m->draft;
	const struct rule_limit *from = override_enforced_limit(draft, i);
	bool own = from;

	from = own ? from : &draft->defaults;
	*ret = *from;
	ret->terms.rates.burst[0] = 0;
	if (!ret->terms.calendar)
		ret->terms.calendar = draft->defaults.terms.calendar;
	ret->none = false;
	if (own)
		ret->name = arena_text(override_arena(m->table), from->name, strlen(from->name));
	else
		ret->name = limit_default_name(m->draft, override_arena(m->table), i + 1);
	return ret->name ? 0 : -ENOMEM;
}

/* Nothing passes. */
int override_blocked_limit(struct making *m, struct rule_limit *ret)
{
	int rc = override_default_limit(m, 0, ret);

	ret->none = true;
	ret->terms.rates.rate[0].count = 0;
	return rc;
}

/* ---- those in the rule file ---- */

struct own_reading {
	struct making *m;
	struct bytes value;
	const struct yaml_node *value_at;
	struct rule_limit limit[RULE_LIMITS_MAX];
	u32 limit_count;
	bool block, unlimited, removed;
};

static int own_value_read(struct reader *r, const char *text, const struct key *key, void *into)
{
	struct own_reading *own = into;

	own->value = (struct bytes){ text, strlen(text) };
	own->value_at = r->at;
	return 0;
}

static int add_own_limit(struct reader *r, const struct yaml_node *at, const char *text,
			 struct own_reading *own)
{
	struct rule_limit defaults;
	struct sl_err why;
	u32 i = own->limit_count;
	int rc;

	if (i == RULE_LIMITS_MAX)
		return read_fail(r, at, EINVAL, "found one limit more than %d; accepted: up to %d",
				 RULE_LIMITS_MAX, RULE_LIMITS_MAX);
	if (override_default_limit(own->m, i, &defaults))
		return read_no_memory(r);
	rc = read_limit_element(r, at, text, &defaults, &own->limit[i],
				override_arena(own->m->table));
	if (!rc && own->limit[i].mode == SL_MODE_SHADOW)
		rc = read_fail(r, at, EINVAL,
			       "found mode: shadow in an override; accepted: enforce");
	if (!rc && check_limit_bounds(&own->limit[i], &own->m->draft->rule, &why))
		rc = read_fail(r, at, EINVAL, "%s", why.message);
	if (!rc)
		own->limit_count++;
	return rc;
}

static int own_limit_text_read(struct reader *r, const char *text, const struct key *key,
			       void *section)
{
	return add_own_limit(r, r->at, text, section);
}

static int own_limit_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			  void *section)
{
	return add_own_limit(r, node, NULL, section);
}

static const struct key_type type_own_limits = {
	.name = "list",
	.items = limits_begin,
	.text = own_limit_text_read,
	.read = own_limit_read,
	.accepts = REQUESTS,
};

/* One limit in short. */
static int own_rate_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	struct own_reading *own = section;

	if (own->limit_count)
		return read_fail(r, r->at, EINVAL,
				 "found rate beside limits; accepted: one of them");
	return add_own_limit(r, r->at, text, own);
}

static int own_rate_map(struct reader *r, const struct yaml_node *node, void *into)
{
	struct own_reading *own = into;

	if (own->limit_count)
		return read_fail(r, node, EINVAL,
				 "found rate beside limits; accepted: one of them");
	return add_own_limit(r, node, NULL, own);
}

static int own_burst_read(struct reader *r, const char *text, const struct key *key, void *into)
{
	struct own_reading *own = into;
	struct sl_err why;
	u64 burst;
	int rc = read_count(r, text, &burst);

	if (rc)
		return rc;
	if (own->limit_count != 1 || !algorithms[own->limit[0].terms.algorithm]->default_burst ||
	    !burst)
		return text_refuse(r, "1 or more, beside one rate of a token-bucket");
	own->limit[0].terms.rates.burst[0] = burst;
	if (check_limit_bounds(&own->limit[0], &own->m->draft->rule, &why))
		return read_fail(r, r->at, EINVAL, "%s", why.message);
	return 0;
}

#define OWN(field) KEY(struct own_reading, field)

static const struct key own_rows[] = {
	{ "value", OWN(value), .text = own_value_read, .flags = KEY_NEEDED,
	  .accepted = "a value, as acme" },
	{ "limits", OWN(limit_count), &type_own_limits },
	{ "rate", OWN(limit_count), .text = own_rate_read, .read = own_rate_map,
	  .accepted = REQUESTS },
	{ "burst", OWN(limit), .text = own_burst_read, .accepted = "a count, as 2000, 10K or 1M" },
	{ "block", OWN(block), &type_yaml_bool },
	{ "unlimited", OWN(unlimited), &type_yaml_bool },
	{ "removed", OWN(removed), &type_yaml_bool },
};

static const struct keys override_own_keys =
	KEYS(struct own_reading, own_rows,
	     .example = "limits='1000 requests/m', or rate='1000 requests/m' and burst=50");

struct own_making {
	struct making m;
	struct override_index *index;
	bool live; /* replaces one that is there */
};

static int add_own(struct own_making *making, const struct own_reading *own,
		   const struct override_limits *limits)
{
	struct override_index *index = making->index;
	struct making *m = &making->m;
	const struct yaml_node *at = own->value_at;
	char *value;
	struct override_key key;
	struct sl_err why;
	u32 known;

	if (override_key_read(&m->draft->rule, own->value, &key, &why))
		return read_fail(m->r, at, EINVAL, "%s", why.message);
	if (override_table_find(m->table, key.hash, &known)) {
		if (!making->live)
			return read_fail(m->r, at, EINVAL,
					 "found %s again, first in line %d; "
					 "accepted: each value once",
					 read_found(m->r, at), index->own_list[known].line);
		index->own_list[known].limits = limits;
		index->own_list[known].live = true;
		index->own_list[known].other_text |=
			strcmp(index->own_list[known].value, own->value.at) != 0;
		return 0;
	}
	if (own->removed && !override_table_find(index->file, key.hash, &known))
		return read_fail(m->r, at, EINVAL, "%s has no limits of its own", own->value.at);
	value = arena_text(override_arena(m->table), own->value.at, own->value.len);
	if (!value || override_table_add(m->table, &key, index->own_count) ||
	    append(index->own_list, index->own_count,
		   (struct override_own){
			   .value = value,
			   .limits = limits,
			   .live = making->live,
			   .in_file = !making->live,
			   .file_limits = making->live ? NULL : limits,
			   .line = at ? at->line : 0,
		   }))
		return read_no_memory(m->r);
	return 0;
}

/* A value whose keys were read. */
static int finish_own(struct own_making *making, struct own_reading *own,
		      const struct yaml_node *node)
{
	struct reader *r = making->m.r;
	u32 number;
	int rc;

	if (own->block + own->unlimited + own->removed + !!own->limit_count != 1)
		return read_fail(r, node, EINVAL,
				 "accepted: one of limits, rate, block: true, "
				 "unlimited: true and (where overrides_file has it) removed: true");
	if (own->removed)
		return add_own(making, own, NULL);
	if (own->block) {
		if (override_blocked_limit(&making->m, own->limit))
			return read_no_memory(r);
		own->limit_count = 1;
	}
	rc = override_intern(&making->m, own->limit, own->limit_count, own->unlimited, &number);
	if (rc == -E2BIG)
		return read_fail(r, node, EINVAL,
				 "found more than %d different limits of values; "
				 "accepted: fewer",
				 OVERRIDE_LIMITS_MAX);
	if (rc)
		return read_no_memory(r);
	return add_own(making, own, making->m.table->limits[number]);
}

static int item_own(struct reader *r, const struct yaml_node *node, void *into)
{
	struct own_making *making = into;
	struct own_reading own = { .m = &making->m };
	int rc = keys_read(r, node, &override_own_keys, &own);

	return rc ? rc : finish_own(making, &own, node);
}

static const struct key own_item = { .read = item_own };

static int load_edit(struct own_making *making, const struct rule_edit *edit)
{
	struct reader *r = making->m.r;
	struct own_reading own = {
		.m = &making->m,
		.value = { edit->value, strlen(edit->value) },
		.removed = edit->what == EDIT_UNSET,
		.block = edit->what == EDIT_BLOCK,
		.unlimited = edit->what == EDIT_EXEMPT,
	};
	int rc = 0;

	for (size_t i = 0; i < edit->pair_count; i++)
		if (!strncmp(edit->pair[i], "value=", 6))
			return read_fail(r, NULL, EINVAL, "value: it is given before the pairs");
	if (edit->what == EDIT_SET)
		rc = pairs_read(r, &override_own_keys, &own, (char *const *)edit->pair,
				edit->pair_count);
	return rc ? rc : finish_own(making, &own, NULL);
}

/* Live ones; one that does not apply gets a reason and is left out. */
static void load_live(struct own_making *making)
{
	struct reader *r = making->m.r;
	struct sl_err *err = r->err, why;
	struct rule_edit *edit;
	size_t at = 0;

	making->live = true;
	while ((edit = next_edit(making->m.draft->b, &at))) {
		if (!edit->value)
			continue;
		r->err = &why;
		edit->applied = !load_edit(making, edit);
		r->err = err;
		strcpy(r->path, "overrides");
		if (!edit->applied)
			snprintf(edit->reason, sizeof(edit->reason), "%.*s",
				 (int)config_text_cut(why.message, sizeof(edit->reason) - 1),
				 why.message);
	}
}

int override_load_edit(struct making *m, struct override_index *index, const struct rule_edit *edit)
{
	struct own_making making = { .m = *m, .index = index, .live = true };

	return load_edit(&making, edit);
}

static bool is_changed_live(const struct build *b)
{
	const struct rule_edit *edit;
	size_t at = 0;

	while ((edit = next_edit(b, &at)))
		if (edit->value)
			return true;
	return false;
}

int override_load_own(struct reader *r, struct draft *draft, struct override_index *index)
{
	struct own_making making = { .m = { .r = r, .draft = draft }, .index = index };
	int rc = 0;

	making.m.table = index->own = override_table_new();
	if (!index->own)
		return read_no_memory(r);
	if (draft->overrides)
		rc = read_each(r, draft->overrides, &own_item, &making);
	if (!rc)
		load_live(&making);
	return rc;
}

bool override_wanted(const struct draft *draft)
{
	return draft->overrides || draft->overrides_file || is_changed_live(draft->b);
}
