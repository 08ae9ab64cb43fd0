// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* request_rules.c - see request_rules.h. Readers take no lock: a slot is written when its rule is
 * whole. */
#include "request/engine/request_rules.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"

#define SLOTS (4 * REQUEST_RULES_MAX) /* a quarter is used: a look ends */
#define NAME_SIZE 512

struct request_rule {
	struct rule rule;
	struct rule_limit limit;
	struct rule_entry entry[REQUEST_ENTRIES_MAX];
	char domain[NAME_SIZE], path[NAME_SIZE], keys[NAME_SIZE];
};

struct request_rules {
	pthread_mutex_t lock; /* to add one */
	struct request_rule *slot[SLOTS];
	u32 count; /* of `of`, the last of which is @other/requests */
	struct request_rule of[REQUEST_RULES_MAX];
};

struct request_rules *request_rules_new(void)
{
	return calloc(1, sizeof(struct request_rules));
}

void request_rules_free(struct request_rules *rules)
{
	free(rules);
}

/* ------------------------------------------------------------------ names */

/* Appends printable ASCII without what separates parts of names and values; false: it is not, or
 * has no room. */
static bool put(char *name, size_t *len, struct bytes text, const char *without)
{
	if (*len + text.len + 2 > NAME_SIZE)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.at[i];

		if (c <= ' ' || c > '~' || strchr(without, c))
			return false;
		name[(*len)++] = c;
	}
	name[*len] = '\0';
	return true;
}

static bool make_path(const struct request_descriptor *descriptor, char *path)
{
	const char *unit = descriptor->limit_unit < REQUEST_UNIT_COUNT
				   ? request_units[descriptor->limit_unit].name
				   : NULL;
	size_t len = 0;

	for (u32 i = 0; i < descriptor->count; i++) {
		if (!put(path, &len, descriptor->entry[i].key, "/=@,\"\\"))
			return false;
		path[len++] = i + 1 < descriptor->count ? '/' : '@';
	}
	return unit && descriptor->count && !descriptor->beyond &&
	       put(path, &len, (struct bytes){ unit, strlen(unit) }, "");
}

/* ------------------------------------------------------------------ the table */

static struct request_rule *find(const struct request_rules *rules, u64 id, u32 *ret_slot)
{
	struct request_rule *found;

	for (*ret_slot = (u32)id % SLOTS;; *ret_slot = (*ret_slot + 1) % SLOTS) {
		found = __atomic_load_n(&rules->slot[*ret_slot], __ATOMIC_ACQUIRE);
		if (!found || found->rule.id == id)
			return found;
	}
}

static void fill(struct request_rule *one, u32 index, u64 id, enum rule_place place)
{
	struct rule *rule = &one->rule;

	rule->domain = one->domain;
	rule->path = rule->name = one->path;
	rule->file = "";
	rule->index = rule->metric = REQUEST_RULE_BIT | index;
	rule->id = id;
	rule->place = place;
	rule->entry = one->entry;
	rule->limit = &one->limit;
	rule->limit_count = 1;
	rule->priority = PRIORITY_NORMAL;
	one->limit.name = one->path;
	one->limit.mode = SL_MODE_ENFORCE;
	one->limit.terms.algorithm = SL_ALGO_FIXED_WINDOW;
	one->limit.terms.rates.count = 1;
	one->limit.terms.rates.rate[0] =
		(struct rate){ .unit = RATE_REQUESTS, .count = 1, .period_ns = SL_NS_PER_SEC };
}

static void fill_entries(struct request_rule *one, const struct request_descriptor *descriptor)
{
	size_t len = 0;

	for (u32 i = 0; i < descriptor->count; i++) {
		one->entry[i].key = one->keys + len;
		put(one->keys, &len, descriptor->entry[i].key, "");
		len++;
	}
	one->rule.depth = descriptor->count;
	one->rule.key = one->entry[descriptor->count - 1].key;
	one->rule.unit = descriptor->limit_unit;
	one->limit.terms.rates.rate[0].period_ns = request_units[descriptor->limit_unit].ns;
}

/* The last place is that of all others; `domain` NULL. */
static struct request_rule *add(struct request_rules *rules, const char *domain, const char *path,
				u64 id, const struct request_descriptor *descriptor)
{
	struct request_rule *one;
	u32 slot;

	pthread_mutex_lock(&rules->lock);
	one = find(rules, id, &slot);
	if (!one && rules->count < REQUEST_RULES_MAX - (domain != NULL)) {
		one = &rules->of[rules->count];
		snprintf(one->domain, sizeof(one->domain), "%s", domain ? domain : "@other");
		snprintf(one->path, sizeof(one->path), "%s", domain ? path : "requests");
		fill(one, rules->count, id, domain ? RULE_OF_REQUEST : RULE_DEFAULT);
		if (domain)
			fill_entries(one, descriptor);
		__atomic_store_n(&rules->count, rules->count + 1, __ATOMIC_RELEASE);
		__atomic_store_n(&rules->slot[slot], one, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&rules->lock);
	return one;
}

static struct request_rule *find_or_add(struct request_rules *rules, const char *domain,
					const char *path,
					const struct request_descriptor *descriptor)
{
	struct request_rule *one;
	u64 id;
	u32 slot;

	id = hash_bytes(hash_seed(),
			domain ? hash_bytes(hash_seed(), 0, domain, strlen(domain)) : 0, path,
			strlen(path));
	id = id ? id : 1;
	one = find(rules, id, &slot);
	return one || (domain &&
		       __atomic_load_n(&rules->count, __ATOMIC_ACQUIRE) >= REQUEST_RULES_MAX - 1)
		       ? one
		       : add(rules, domain, path, id, descriptor);
}

const struct rule *request_rule_of(struct request_rules *rules, struct bytes domain,
				   const struct request_descriptor *descriptor)
{
	char name[NAME_SIZE], path[NAME_SIZE];
	struct request_rule *one = NULL;
	size_t len = 0;

	if (put(name, &len, domain, "\"\\") && make_path(descriptor, path))
		one = find_or_add(rules, name, path, descriptor);
	if (!one)
		one = find_or_add(rules, NULL, "", NULL);
	/* Written only when it changes: the line is shared by all threads. */
	if (one && __atomic_load_n(&one->limit.terms.rates.rate[0].count, __ATOMIC_RELAXED) !=
			   descriptor->limit_requests)
		__atomic_store_n(&one->limit.terms.rates.rate[0].count, descriptor->limit_requests,
				 __ATOMIC_RELAXED);
	return one ? &one->rule : NULL;
}

u32 request_rules_count(const struct request_rules *rules)
{
	return rules ? __atomic_load_n(&rules->count, __ATOMIC_ACQUIRE) : 0;
}

const struct rule *request_rule_at(const struct request_rules *rules, u32 i)
{
	return &rules->of[i].rule;
}

const struct rule *request_rule_index(const struct request_rules *rules, u32 index)
{
	index ^= REQUEST_RULE_BIT;
	return index < request_rules_count(rules) ? &rules->of[index].rule : NULL;
}

const struct rule *request_rule_find(const struct request_rules *rules, const char *name)
{
	u32 count = request_rules_count(rules);

	for (u32 i = 0; i < count; i++) {
		const struct rule *rule = &rules->of[i].rule;
		size_t len = strlen(rule->domain);

		if (!strncmp(name, rule->domain, len) && name[len] == '/' &&
		    !strcmp(name + len + 1, rule->path))
			return rule;
	}
	return NULL;
}
