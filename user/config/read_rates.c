// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * read_rates.c - the rates of a limit and its prefix hierarchy: rate and burst, prefix and
 * prefix_scale, each a value or a list of up to four.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "limiter/params.h"
#include "config/limit_types.h"
#include "config/override.h"
#include "limiter/algorithm.h"

#define SCALE_MAX 65536

/* ---- rate, burst ---- */

const char *rates_format(const struct rates *rates, char *buf, size_t size)
{
	size_t used = 0;
	char text[96];

	buf[0] = 0;
	for (u8 i = 0; i < rates->count && used < size; i++)
		used += snprintf(buf + used, size - used, "%s%s", i ? ", " : "",
				 rate_format(&rates->rate[i], text, sizeof(text)));
	return buf;
}

void rates_add(struct rates *rates, const struct rate *rate)
{
	struct rate *to = &rates->rate[rates->count++];

	to->count = rate->count;
	to->period_ns = rate->period_ns;
	to->unit = rate->unit;
}

static int refuse_more(struct reader *r, const struct yaml_node *node, size_t most,
		       const char *what)
{
	return read_fail(r, node, EINVAL, "found one %s more than %zu; accepted: up to %zu", what,
			 most, most);
}

static int item_rate(struct reader *r, const struct yaml_node *node, void *into)
{
	struct rates *rates = into;
	struct rate rate;
	int rc;

	if (rates->count == RATES_MAX)
		return refuse_more(r, node, RATES_MAX, "rate");
	rc = read_rate(r, node, &rate);
	if (!rc)
		rates_add(rates, &rate);
	return rc;
}

static int read_rates(struct reader *r, const struct yaml_node *node, struct rates *rates)
{
	if (node->kind == YAML_LIST && !node->count)
		return read_refuse(r, node, "NUMBER[K|M|G] UNIT/PERIOD, or a list of up to four");
	rates->count = 0;
	return read_each(r, node, item_rate, rates);
}

/* `rate` is read before, so the number of rates is known. */
static int read_bursts(struct reader *r, const struct yaml_node *node, struct rates *rates)
{
	const struct yaml_node *item = node->kind == YAML_LIST ? node->first : node;
	size_t count = node->kind == YAML_LIST ? node->count : 1;
	u64 burst;
	size_t i;
	int rc;

	/* Without a rate the key is refused later, as others that need one. */
	if (!rates->count)
		return 0;
	if (count != rates->count)
		return read_fail(r, node, EINVAL, "found %s of %zu for %u rate%s; accepted: a burst "
				 "for each rate, in their order, or no burst at all",
				 node->kind == YAML_LIST ? "a list" : "one burst, a list", count,
				 rates->count, rates->count == 1 ? "" : "s");
	for (i = 0; i < count; i++, item = item->next) {
		rc = read_count(r, item, &burst);
		if (rc)
			return rc;
		if (!burst)
			return read_refuse(r, item, "1 or more");
		rates->burst[i] = burst;
	}
	return 0;
}

/* The struct that the field is in. */
static const struct rates *rates_at(const struct key *key, const void *section)
{
	return (const void *)((const char *)key_field_of(key, section) - key->type->variant);
}

static int rate_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		     void *section)
{
	return read_rates(r, node, (struct rates *)rates_at(key, section));
}

static void rate_write(struct writer *w, const struct key *key, const void *section)
{
	const struct rates *rates = rates_at(key, section);
	char text[RATES_MAX * 96];

	fprintf(w->out, rates->count > 1 ? "[%s]" : "%s", rates_format(rates, text, sizeof(text)));
}

static bool rate_equal(const struct key *key, const void *a, const void *b)
{
	char x[RATES_MAX * 96], y[RATES_MAX * 96];

	return !strcmp(rates_format(rates_at(key, a), x, sizeof(x)),
		       rates_format(rates_at(key, b), y, sizeof(y)));
}

static void rate_clear(const struct key *key, void *section)
{
	struct rates *rates = (struct rates *)rates_at(key, section);

	memset(rates->rate, 0, sizeof(rates->rate));
	rates->count = 0;
}

const struct key_type type_rates = {
	.name = "rate", .variant = offsetof(struct rates, rate), .read = rate_read,
	.write = rate_write, .clear = rate_clear, .equal = rate_equal,
	.takes_list = type_takes_list,
};

static int burst_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		      void *section)
{
	return read_bursts(r, node, (struct rates *)rates_at(key, section));
}

static void burst_write(struct writer *w, const struct key *key, const void *section)
{
	const struct rates *rates = rates_at(key, section);

	for (u8 i = 0; i < rates->count; i++)
		fprintf(w->out, "%s%llu", i ? ", " : rates->count > 1 ? "[" : "", rates->burst[i]);
	if (rates->count > 1)
		fputc(']', w->out);
}

const struct key_type type_bursts = {
	.name = "count", .variant = offsetof(struct rates, burst), .read = burst_read,
	.write = burst_write, .takes_list = type_takes_list,
};

/* The value of the i-th of a key that takes one or a list; NULL: of a live change. */
static const struct yaml_node *item_at(const struct yaml_node *key, size_t i)
{
	const struct yaml_node *item = key ? key->value : NULL;

	if (!item || item->kind != YAML_LIST)
		return item;
	for (item = item->first; i; i--)
		item = item->next;
	return item;
}

static int check_rate(struct reader *r, const struct yaml_node *map, const struct limit_def *limit,
		      size_t i)
{
	const struct yaml_node *rate = item_at(yaml_node_find(map, "rate"), i);
	const struct yaml_node *burst = item_at(yaml_node_find(map, "burst"), i);
	const struct rate *found = &limit->terms.rates.rate[i];
	u64 units = limit->terms.rates.burst[i];
	struct sl_params params;
	const char *reason;
	char text[96];

	if (found->unit == RATE_CONNECTIONS && !match_possible(&limit->match, SL_V4, PROTO_TCP) &&
	    !match_possible(&limit->match, SL_V6, PROTO_TCP))
		return read_fail(r, rate, EINVAL, "rate counts connections, which are TCP's, but "
				 "match leaves TCP out; accepted with it: packets, bytes, bits");
	if (params_compile(limit->terms.algorithm, found, 0, 0, &params, &reason) ||
	    params_divide(&params, limit->terms.buckets, limit_ceiling(limit), &reason) ||
	    params_anchor(&params, limit->terms.first_request, limit_ceiling(limit), &reason))
		return rate ? read_fail(r, rate, EINVAL, "rate: found %s: %s", read_found(r, rate),
					reason)
			    : read_fail(r, rate, EINVAL, "rate: found \"%s\": %s",
					rate_format(found, text, sizeof(text)), reason);
	if (units && params_compile(limit->terms.algorithm, found, units, 0, &params, &reason))
		return burst ? read_fail(r, burst, EINVAL, "burst: found %s: %s",
					 read_found(r, burst), reason)
			     : read_fail(r, burst, EINVAL, "burst: found \"%llu\": %s", units, reason);
	return 0;
}

/* The file has one for each rate, but a live change to the rate may leave more or fewer. */
int check_bursts(struct reader *r, const struct rates *rates)
{
	u8 bursts = 0;

	while (bursts < RATES_MAX && rates->burst[bursts])
		bursts++;
	if (!bursts || bursts == rates->count)
		return 0;
	return read_fail(r, NULL, EINVAL, "burst: found %s of %u for %u rate%s; accepted: a burst "
			 "for each rate, in their order, or no burst at all",
			 bursts == 1 ? "one burst, a list" : "a list", bursts, rates->count,
			 rates->count == 1 ? "" : "s");
}

/* params_compile() checks the bounds of the step itself (algo.h). */
int check_rates(struct reader *r, const struct yaml_node *map, const struct limit_def *limit)
{
	int rc = check_bursts(r, &limit->terms.rates);
	size_t i;

	for (i = 0; i < limit->terms.rates.count && !rc; i++)
		rc = check_rate(r, map, limit, i);
	return rc;
}

/* ---- prefix, prefix_scale ---- */

/* A family's part of prefix or prefix_scale. */
struct prefix_part {
	struct prefix_hierarchy *of;
	enum sl_family family;
	u8 count;
};

static int item_prefix(struct reader *r, const struct yaml_node *node, void *into)
{
	struct prefix_part *part = into;
	u8 *lens = part->of->len[part->family];
	bool v4 = part->family == SL_V4;
	u64 len = 0;
	int rc;

	if (part->count == PREFIX_HIERARCHY_MAX)
		return refuse_more(r, node, PREFIX_HIERARCHY_MAX, "prefix length");
	rc = read_number(r, node, v4 ? 32 : 128, v4 ? "0 to 32" : "0 to 128", &len);
	if (rc)
		return rc;
	if (part->count && len >= lens[part->count - 1])
		return read_fail(r, node, EINVAL,
				 "found %s behind %u; accepted: each shorter than "
				 "the one before, as %s",
				 read_found(r, node), lens[part->count - 1],
				 v4 ? "[32, 24]" : "[64, 56, 48]");
	lens[part->count++] = len;
	return 0;
}

int read_prefix_lengths(struct reader *r, const struct yaml_node *node, struct prefix_hierarchy *prefix,
			enum sl_family family)
{
	struct prefix_part part = { prefix, family, 0 };
	int rc;

	if (node->kind == YAML_LIST && !node->count)
		return read_refuse(r, node, "a prefix length, or a list of up to four");
	rc = read_each(r, node, item_prefix, &part);
	if (!rc)
		prefix->count[family] = part.count;
	return rc;
}

static int item_scale(struct reader *r, const struct yaml_node *node, void *into)
{
	struct prefix_part *part = into;
	u64 scale = 0;
	int rc = read_number(r, node, SCALE_MAX, "a whole number, 1 to 65536", &scale);

	if (rc)
		return rc;
	if (!scale)
		return read_refuse(r, node, "a whole number, 1 to 65536");
	part->of->scale[part->family][part->count++] = scale;
	return 0;
}

static int refuse_scales(struct reader *r, const struct yaml_node *node,
			 const struct prefix_hierarchy *prefix, enum sl_family family, size_t count)
{
	return read_fail(r, node, EINVAL, "found %zu multiplier%s for %u prefix length%s; accepted: "
			 "one for each in prefix.%s, in their order", count, count == 1 ? "" : "s",
			 prefix->count[family], prefix->count[family] == 1 ? "" : "s",
			 family == SL_V4 ? "ipv4" : "ipv6");
}

/* `prefix` is read before, so that it is known how many there are. */
int read_prefix_scales(struct reader *r, const struct yaml_node *node, struct prefix_hierarchy *prefix,
		       enum sl_family family)
{
	struct prefix_part part = { prefix, family, 0 };
	size_t count = node->kind == YAML_LIST ? node->count : 1;

	if (count != prefix->count[family])
		return refuse_scales(r, node, prefix, family, count);
	prefix->scale_count[family] = count;
	return read_each(r, node, item_scale, &part);
}

/* Where they differ from the defaults. */
static bool has_lengths(const struct limit_def *limit)
{
	return limit->prefix.count[SL_V4] > 1 || limit->prefix.len[SL_V4][0] != 32 ||
	       limit->prefix.count[SL_V6] > 1 || limit->prefix.len[SL_V6][0] != 64;
}

static bool has_scales(const struct prefix_hierarchy *prefix, int family)
{
	for (u8 i = 0; i < prefix->scale_count[family]; i++)
		if (prefix->scale[family][i] != 1)
			return true;
	return false;
}

int check_prefix_scales(struct reader *r, const struct prefix_hierarchy *prefix)
{
	for (int family = 0; family < SL_FAMILY_COUNT; family++)
		if (has_scales(prefix, family) &&
		    prefix->scale_count[family] != prefix->count[family])
			return refuse_scales(r, NULL, prefix, family, prefix->scale_count[family]);
	return 0;
}

int check_prefix_hierarchy(struct reader *r, const struct yaml_node *map,
			   const struct limit_def *limit)
{
	const struct yaml_node *prefix = yaml_node_find(map, "prefix");
	const struct yaml_node *key = prefix ? prefix : yaml_node_find(map, "prefix_scale");
	bool scales = has_scales(&limit->prefix, SL_V4) || has_scales(&limit->prefix, SL_V6);
	int rc = check_prefix_scales(r, &limit->prefix);

	if (rc)
		return rc;
	if ((key || scales || has_lengths(limit)) && !(limit->per & SL_PER_SOURCE))
		return read_fail(r, key, EINVAL, "%s groups sources, but per does not contain source; "
				 "accepted with it: per: [source]",
				 key ? key->text : has_lengths(limit) ? "prefix" : "prefix_scale");
	return 0;
}
