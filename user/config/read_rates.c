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
	return override_format_rates(rates, ", ", buf, size);
}

/* The rates are compared as bytes. */
static void rates_add(struct rates *rates, const struct rate *rate)
{
	struct rate *to = &rates->rate[rates->count++];

	to->count = rate->count;
	to->period_ns = rate->period_ns;
	to->unit = rate->unit;
}

static int refuse_more(struct reader *r, size_t most, const char *what)
{
	return read_fail(r, r->at, EINVAL, "found one %s more than %zu; accepted: up to %zu", what,
			 most, most);
}

static int refuse_bursts(struct reader *r, const struct yaml_node *at, const struct rates *rates,
			 size_t count)
{
	return read_fail(r, at, EINVAL,
			 "found %s of %zu for %u rate%s; accepted: a burst for each "
			 "rate, in their order, or no burst at all",
			 count == 1 ? "one burst, a list" : "a list", count, rates->count,
			 rates->count == 1 ? "" : "s");
}

/* The struct that the field is in. */
static struct rates *rates_at(const struct key *key, const void *section)
{
	return (void *)((const char *)key_field_of(key, section) - key->type->variant);
}

static int rates_begin(struct reader *r, size_t count, const struct key *key, void *section)
{
	rates_at(key, section)->count = 0;
	return count ? 0 : text_refuse(r, "NUMBER[K|M|G] UNIT/PERIOD, or a list of up to four");
}

static int rate_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	struct rates *rates = rates_at(key, section);
	struct rate rate;
	int rc;

	if (rates->count == RATES_MAX)
		return refuse_more(r, RATES_MAX, "rate");
	rc = read_rate(r, text, &rate);
	if (!rc)
		rates_add(rates, &rate);
	return rc;
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
	struct rates *rates = rates_at(key, section);

	memset(rates->rate, 0, sizeof(rates->rate));
	rates->count = 0;
}

const struct key_type type_rates = {
	.name = "rate",
	.variant = offsetof(struct rates, rate),
	.items = rates_begin,
	.text = rate_read,
	.accepts = RATES,
	.write = rate_write,
	.clear = rate_clear,
	.equal = rate_equal,
};

/* `rate` is read before, so the number of rates is known. */
static int bursts_begin(struct reader *r, size_t count, const struct key *key, void *section)
{
	struct rates *rates = rates_at(key, section);

	memset(rates->burst, 0, sizeof(rates->burst));
	/* Without a rate the key is refused later, as others that need one. */
	return !rates->count || count == rates->count ? 0 : refuse_bursts(r, r->at, rates, count);
}

static int burst_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	struct rates *rates = rates_at(key, section);
	u64 burst, *to = rates->burst;
	int rc = rates->count ? read_count(r, text, &burst) : 0;

	if (rc || !rates->count)
		return rc;
	if (!burst)
		return text_refuse(r, "1 or more");
	while (*to)
		to++;
	*to = burst;
	return 0;
}

static void burst_write(struct writer *w, const struct key *key, const void *section)
{
	const struct rates *rates = rates_at(key, section);
	char text[RATES_MAX * 32];

	fprintf(w->out, rates->count > 1 ? "[%s]" : "%s",
		override_format_bursts(rates, ", ", text, sizeof(text)));
}

const struct key_type type_bursts = {
	.name = "count",
	.variant = offsetof(struct rates, burst),
	.items = bursts_begin,
	.text = burst_read,
	.accepts = "a count, as 2000, 10K or 1M",
	.write = burst_write,
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
		return read_fail(r, rate, EINVAL,
				 "rate counts connections, which are TCP's, but "
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
			     : read_fail(r, burst, EINVAL, "burst: found \"%llu\": %s", units,
					 reason);
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
	return read_fail(r, NULL, EINVAL,
			 "burst: found %s of %u for %u rate%s; accepted: a burst "
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

static int lengths_begin(struct reader *r, size_t count, const struct key *key, void *section)
{
	((struct prefix_hierarchy *)section)->count[key->type->variant] = 0;
	return count ? 0 : text_refuse(r, "a prefix length, or a list of up to four");
}

static int length_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	struct prefix_hierarchy *prefix = section;
	bool v4 = key->type->variant == SL_V4;
	u8 *len = prefix->len[key->type->variant], *count = &prefix->count[key->type->variant];
	u64 found = 0;
	int rc;

	if (*count == PREFIX_HIERARCHY_MAX)
		return refuse_more(r, PREFIX_HIERARCHY_MAX, "prefix length");
	rc = read_number(r, text, v4 ? 32 : 128, key_accepted(key, NULL, 0), &found);
	if (!rc && *count && found >= len[*count - 1])
		rc = text_fail(r, " behind %u; accepted: each shorter than the one before, as %s",
			       len[*count - 1], v4 ? "[32, 24]" : "[64, 56, 48]");
	if (!rc)
		len[(*count)++] = found;
	return rc;
}

static void lengths_write(struct writer *w, const struct key *key, const void *section)
{
	const struct prefix_hierarchy *prefix = section;
	u8 count = prefix->count[key->type->variant];

	for (u8 i = 0; i < count; i++)
		fprintf(w->out, "%s%u%s",
			i	    ? ", "
			: count > 1 ? "["
				    : "",
			prefix->len[key->type->variant][i], i + 1 == count && count > 1 ? "]" : "");
}

static bool lengths_equal(const struct key *key, const void *a, const void *b)
{
	const struct prefix_hierarchy *x = a, *y = b;
	int family = key->type->variant;
	u8 count = x->count[family];

	return count == y->count[family] && !memcmp(x->len[family], y->len[family], count);
}

/* clang-format off */
#define TYPE_LENGTHS(family, lengths)                                                   \
	{ .name = "list", .variant = family, .items = lengths_begin, .text = length_read, \
	  .accepts = lengths, .write = lengths_write, .equal = lengths_equal }
/* clang-format on */

const struct key_type type_lengths_v4 = TYPE_LENGTHS(SL_V4, "0 to 32");
const struct key_type type_lengths_v6 = TYPE_LENGTHS(SL_V6, "0 to 128");

static int refuse_scales(struct reader *r, const struct yaml_node *node,
			 const struct prefix_hierarchy *prefix, enum sl_family family, size_t count)
{
	return read_fail(r, node, EINVAL,
			 "found %zu multiplier%s for %u prefix length%s; accepted: "
			 "one for each in prefix.%s, in their order",
			 count, count == 1 ? "" : "s", prefix->count[family],
			 prefix->count[family] == 1 ? "" : "s", family == SL_V4 ? "ipv4" : "ipv6");
}

/* `prefix` is read before, so that it is known how many there are. */
static int scales_begin(struct reader *r, size_t count, const struct key *key, void *section)
{
	struct prefix_hierarchy *prefix = section;

	prefix->scale_count[key->type->variant] = 0;
	return count == prefix->count[key->type->variant]
		       ? 0
		       : refuse_scales(r, r->at, prefix, key->type->variant, count);
}

static int scale_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	struct prefix_hierarchy *prefix = section;
	u64 scale = 0;
	int family = key->type->variant;
	int rc = read_number(r, text, SCALE_MAX, key_accepted(key, NULL, 0), &scale);

	if (!rc && !scale)
		rc = key_refuse_text(r, key);
	if (!rc)
		prefix->scale[family][prefix->scale_count[family]++] = scale;
	return rc;
}

static void scales_write(struct writer *w, const struct key *key, const void *section)
{
	const struct prefix_hierarchy *prefix = section;
	int family = key->type->variant;

	for (u8 i = 0; i < prefix->count[family]; i++)
		fprintf(w->out, "%s%u", i ? ", " : "[", prefix->scale[family][i]);
	fputc(']', w->out);
}

/* As many as `a` has lengths. */
static bool scales_equal(const struct key *key, const void *a, const void *b)
{
	const struct prefix_hierarchy *x = a, *y = b;
	int family = key->type->variant;

	return !memcmp(x->scale[family], y->scale[family],
		       x->count[family] * sizeof(x->scale[family][0]));
}

static void scales_clear(const struct key *key, void *section)
{
	struct prefix_hierarchy *prefix = section;
	int family = key->type->variant;

	prefix->scale_count[family] = 0;
	for (int i = 0; i < PREFIX_HIERARCHY_MAX; i++)
		prefix->scale[family][i] = 1;
}

/* clang-format off */
#define TYPE_SCALES(family)                                                            \
	{ .name = "list", .variant = family, .items = scales_begin, .text = scale_read, \
	  .accepts = "a whole number, 1 to 65536", .write = scales_write, .clear = scales_clear, .equal = scales_equal }
/* clang-format on */

const struct key_type type_scales_v4 = TYPE_SCALES(SL_V4), type_scales_v6 = TYPE_SCALES(SL_V6);

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
		return read_fail(r, key, EINVAL,
				 "%s groups sources, but per does not contain source; "
				 "accepted with it: per: [source]",
				 key		      ? key->text
				 : has_lengths(limit) ? "prefix"
						      : "prefix_scale");
	return 0;
}
