// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * override_edit.c - live changes to overrides. An insertion into a list of 100000 moves the rest:
 * 3 MB at most, a fraction of the cost of compiling them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/pair.h"
#include "config/limit_types.h"
#include "config/override.h"

static struct override_def *find(struct limit_def *limit, const struct sl_prefix *src)
{
	size_t at = override_place(limit, src);

	if (at == limit->override_count || !sl_prefix_equal(&limit->override[at].src, src))
		return NULL;
	return &limit->override[at];
}

static int refuse(const struct limit_def *limit, const struct sl_prefix *src, struct sl_err *err,
		  const char *words)
{
	char text[SL_PREFIX_TEXT];

	return sl_err_set(err, EINVAL, "limit \"%s\": override %s: %s", limit->name,
			  sl_prefix_format(src, text, sizeof(text)), words);
}

static const struct key rates_rows[] = {
	{ "rate", KEY(struct rates, rate), &type_rates, .flags = KEY_NEEDED },
	{ "burst", KEY(struct rates, burst), &type_bursts },
};

static int check_pairs(struct reader *r, const struct yaml_node *node, void *section)
{
	return check_bursts(r, section);
}

const struct keys override_rates_keys = KEYS(struct rates, rates_rows, .check = check_pairs,
					     .example = "rate='5000 packets/s' burst=9000");

int policy_override_rates(const struct limit_def *limit, const struct sl_prefix *src,
			  char *const *pairs, size_t count, struct rates *ret, struct sl_err *err)
{
	const struct override_def *now = override_find(limit, src);
	char subject[SL_NAME_MAX + SL_PREFIX_TEXT + 32], text[SL_PREFIX_TEXT];
	struct reader r = { .file = "", .err = err, .subject = subject };
	bool has_rate = now && !now->derived;

	memset(ret, 0, sizeof(*ret));
	if (has_rate)
		*ret = limit->override_rates[now->rates];
	for (size_t i = 0; i < count; i++)
		has_rate |= strncmp(pairs[i], "burst", 5);
	if (!has_rate)
		return refuse(limit, src, err, "there is none yet, so it needs rate=RATE");
	snprintf(subject, sizeof(subject), "limit \"%s\": override %s", limit->name,
		 sl_prefix_format(src, text, sizeof(text)));
	return pairs_read(&r, &override_rates_keys, ret, pairs, count);
}

static struct limit_def *limit_of(struct policy *policy, const char *name, struct sl_err *err)
{
	struct limit_def *limit = policy_find_limit(policy, name);

	if (!limit)
		sl_err_set(err, ENOENT, "no limit \"%.63s\"", name);
	return limit;
}

int policy_override_set(struct policy *policy, const char *name, const struct sl_prefix *src,
			char *const *pairs, size_t count, struct sl_err *err)
{
	struct limit_def *limit = limit_of(policy, name, err);
	struct override_def new = { .src = *src }, *now;
	char reason[OVERRIDE_REASON];
	struct rates rates;
	size_t at;
	u32 number = 0;
	int rc;

	if (!limit)
		return -ENOENT;
	if (!(limit->per & SL_PER_SOURCE))
		return refuse(limit, src, err,
			      "the limit does not count per source; accepted: "
			      "overrides where per has source");
	rc = policy_override_rates(limit, src, pairs, count, &rates, err);
	if (rc)
		return rc;
	if (override_rates_check(limit, &rates, reason))
		return refuse(limit, src, err, reason);
	/* For one, to hash all would take longer. */
	while (number < limit->override_rates_count &&
	       memcmp(&limit->override_rates[number], &rates, sizeof(rates)))
		number++;
	if (number == limit->override_rates_count &&
	    append(limit->override_rates, limit->override_rates_count, rates))
		return sl_err_no_memory(err);
	new.rates = number;
	now = find(limit, src);
	if (now) {
		new.hides = now->hides || now->csv;
		*now = new;
		override_rates_tidy(limit);
		return 0;
	}
	at = override_place(limit, src);
	return insert_at(limit->override, limit->override_count, at, new) ? sl_err_no_memory(err)
									  : 0;
}

int policy_override_del(struct policy *policy, const char *name, const struct sl_prefix *src,
			struct sl_err *err)
{
	struct limit_def *limit = limit_of(policy, name, err);
	struct override_def *now = limit ? find(limit, src) : NULL;

	if (!limit)
		return -ENOENT;
	if (!now || now->removed) {
		char text[SL_PREFIX_TEXT];

		return sl_err_set(err, ENOENT, "limit \"%s\" has no override for %s", limit->name,
				  sl_prefix_format(src, text, sizeof(text)));
	}
	if (now->csv || now->hides) {
		now->line = 0;
		now->csv = false;
		now->hides = true;
		now->removed = true;
		now->rates = 0;
		return 0;
	}
	remove_at(limit->override, limit->override_count, now - limit->override);
	return 0;
}

bool override_keep(const struct limit_def *limit, const struct sl_prefix *src,
		   struct override_kept *ret)
{
	const struct override_def *now = find((struct limit_def *)limit, src);

	ret->had = now;
	ret->def = now ? *now : (struct override_def){ .src = *src, .removed = true };
	return limit->override_rates_count + 1 <= override_rates_most(limit);
}

int override_restore(struct limit_def *limit, const struct override_kept *kept)
{
	struct override_def *now = find(limit, &kept->def.src);

	if (now && kept->had)
		*now = kept->def;
	else if (now)
		remove_at(limit->override, limit->override_count, now - limit->override);
	else if (kept->had)
		return insert_at(limit->override, limit->override_count,
				 override_place(limit, &kept->def.src), kept->def);
	return 0;
}
