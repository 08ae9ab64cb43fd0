// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * limit_types.c - types of a limit's keys that no other mapping has: match, tag, overrides. Their
 * readers are in read_match.c and override_read.c.
 */
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"
#include "config/limit_types.h"
#include "config/override.h"

static size_t format_range(const void *array, size_t i, size_t count, char *buf, size_t size)
{
	const struct u16_range *range = (const struct u16_range *)array + i;

	if (range->first == range->last)
		snprintf(buf, size, "%u", range->first);
	else
		snprintf(buf, size, "%u-%u", range->first, range->last);
	return 1;
}

static size_t format_proto(const void *array, size_t i, size_t count, char *buf, size_t size)
{
	u8 proto = ((const u8 *)array)[i];
	const char *name = name_of(proto_names, proto);

	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "%u", proto);
	return 1;
}

static size_t format_tcp_flags(const void *array, size_t i, size_t count, char *buf, size_t size)
{
	const struct tcp_flags_cond *cond = (const struct tcp_flags_cond *)array + i;
	const struct name *flag;
	size_t used = 0;

	buf[0] = 0;
	for (flag = tcp_flag_names; flag->name; flag++)
		if (((cond->set | cond->clear) & flag->value) && used < size)
			used += snprintf(buf + used, size - used, "%s%s%s", used ? "," : "",
					 cond->clear & flag->value ? "!" : "", flag->name);
	return 1;
}

/* The inverse of item_icmp_type(): a pair of the families is one number or one name. */
static size_t format_icmp_type(const void *array, size_t i, size_t count, char *buf, size_t size)
{
	const struct icmp_type_cond *cond = (const struct icmp_type_cond *)array + i;
	const char *name = name_of(cond->family == SL_V4 ? icmp_names : icmpv6_names, cond->type);
	bool pair = i + 1 < count && cond[0].family == SL_V4 && cond[1].family == SL_V6;
	const char *other = pair ? name_of(icmpv6_names, cond[1].type) : NULL;

	if (pair && name && other && !strcmp(name, other)) {
		snprintf(buf, size, "%s", name);
		return 2;
	}
	if (name && !(pair && cond[0].type == cond[1].type)) {
		snprintf(buf, size, "%s", name);
		return 1;
	}
	snprintf(buf, size, "%u", cond->type);
	return pair ? 2 : 1;
}

static size_t format_interface(const void *array, size_t i, size_t count, char *buf, size_t size)
{
	snprintf(buf, size, "%s", ((const char(*)[16])array)[i]);
	return 1;
}

/* Prefixes and names of sets, as one list. */
struct addresses {
	const struct sl_prefix *prefix;
	size_t prefix_count;
	const char (*set)[SL_NAME_MAX];
};

static size_t format_address(const void *array, size_t i, size_t count, char *buf, size_t size)
{
	const struct addresses *of = array;

	if (i < of->prefix_count)
		return format_prefix(of->prefix, i, count, buf, size);
	snprintf(buf, size, "@%s", of->set[i - of->prefix_count]);
	return 1;
}

void match_values_lines(struct writer *w, const struct key *row, const void *match)
{
	static write_format *const format[] = {
		[MATCH_PREFIXES] = format_address,     [MATCH_PROTOS] = format_proto,
		[MATCH_RANGES] = format_range,	       [MATCH_FLAGS] = format_tcp_flags,
		[MATCH_ICMP_TYPES] = format_icmp_type, [MATCH_INTERFACES] = format_interface,
	};
	const struct match_key *key = &match_keys[row->most];
	struct addresses of;
	const void *values;
	size_t count;

	values = match_values(match, key, &count);
	if (key->kind == MATCH_PREFIXES) {
		const struct match_sets *sets = &((const struct match_def *)match)->sets[row->most];

		count -= sets->prefixes;
		of = (struct addresses){ values, count, (const char(*)[SL_NAME_MAX])sets->name };
		values = &of;
		count += sets->count;
	}
	write_list(w, key->name, values, count, format[key->kind]);
}

static int match_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		      void *section)
{
	return read_match(r, node, section);
}

const struct key_type type_match = TYPE_MAP("mapping", .read = match_read, .lines = type_map_lines);

/* ---- overrides: two keys, one list; the first owns it ---- */

static int overrides_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			  void *section)
{
	return read_overrides(r, node, section);
}

static void overrides_copy(const struct key *key, void *section, int *rc)
{
	struct limit_def *limit = section;

	limit->override =
		array_copy(limit->override, limit->override_count, sizeof(*limit->override), rc);
	limit->override_rates = array_copy(limit->override_rates, limit->override_rates_count,
					   sizeof(*limit->override_rates), rc);
}

static void overrides_clear(const struct key *key, void *section)
{
	struct limit_def *limit = section;

	free(limit->override);
	free(limit->override_rates);
	limit->override = NULL;
	limit->override_rates = NULL;
	limit->override_count = limit->override_rates_count = 0;
}

const struct key_type type_overrides = {
	.name = "list",
	.read = overrides_read,
	.lines = overrides_lines,
	.copy = overrides_copy,
	.clear = overrides_clear,
};

const struct key_type type_overrides_file =
	TYPE_TEXT("path", .text = read_overrides_file,
		  .accepts = "the path of a file with lines SRC,RATE or SRC,RATE,BURST");
