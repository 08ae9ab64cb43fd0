// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * limit_types.c - the types of a limit's keys that no other mapping has: match, prefix and
 * prefix_scale, throttle, ban, tag, overrides. Their readers are in read_match.c,
 * read_rates.c, read_throttle.c and override_read.c.
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
	snprintf(buf, size, "%s", ((const char (*)[16])array)[i]);
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
		[MATCH_PREFIXES] = format_address, [MATCH_PROTOS] = format_proto,
		[MATCH_RANGES] = format_range, [MATCH_FLAGS] = format_tcp_flags,
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
		of = (struct addresses){ values, count, (const char (*)[SL_NAME_MAX])sets->name };
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

/* ---- tag: each key sets its bit ---- */

static int tag_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	int rc = type_number.text(r, text, key, section);

	if (!rc)
		((struct limit_def *)section)->tag |= key->type->variant;
	return rc;
}

static void tag_clear(const struct key *key, void *section)
{
	((struct limit_def *)section)->tag &= ~key->type->variant;
	memset(key_field(key, section), 0, key->size);
}

static void dscp_write(struct writer *w, const struct key *key, const void *section)
{
	type_number.write(w, key, section);
}

static void mark_write(struct writer *w, const struct key *key, const void *section)
{
	fprintf(w->out, "0x%x", ((const struct limit_def *)section)->mark);
}

static bool tag_equal(const struct key *key, const void *a, const void *b)
{
	const struct limit_def *x = a, *y = b;

	return !((x->tag ^ y->tag) & key->type->variant) &&
	       !memcmp(key_field_of(key, a), key_field_of(key, b), key->size);
}

const struct key_type type_dscp = {
	.name = "number", .variant = SL_TAG_DSCP, .text = tag_read, .write = dscp_write,
	.clear = tag_clear, .equal = tag_equal,
};
const struct key_type type_mark = {
	.name = "number", .variant = SL_TAG_MARK, .text = tag_read, .write = mark_write,
	.clear = tag_clear, .equal = tag_equal,
};

/* ---- throttle, ban ---- */

static const char *elastic_format(const struct throttle_def *throttle, char *buf, size_t size)
{
	char cpu[16] = "", link[16] = "", signal[SL_NAME_MAX + 32] = "", least[24] = "";

	if (throttle->cpu_percent)
		snprintf(cpu, sizeof(cpu), "cpu: %u%%", throttle->cpu_percent);
	if (throttle->link_percent)
		snprintf(link, sizeof(link), "%slink: %u%%", cpu[0] ? ", " : "",
			 throttle->link_percent);
	/* quoted: a load signal may be called null */
	if (throttle->load_signal[0])
		snprintf(signal, sizeof(signal), "%sload_signal: {'%s': %u%%}",
			 cpu[0] || link[0] ? ", " : "", throttle->load_signal,
			 throttle->load_signal_percent);
	if (throttle->floor_percent)
		snprintf(least, sizeof(least), "floor: %u%%, ", throttle->floor_percent);
	snprintf(buf, size, "{elastic: %u%%, %swhile: {%s%s%s}}", throttle->ceiling_percent, least,
		 cpu, link, signal);
	return buf;
}

const char *throttle_format(const struct throttle_def *throttle, char *buf, size_t size)
{
	char text[64], part[16] = "", stretch[80] = "";

	if (throttle->kind == THROTTLE_ELASTIC)
		return elastic_format(throttle, buf, size);
	if (throttle->kind == THROTTLE_HARD) {
		snprintf(buf, size, "hard");
		return buf;
	}
	if (throttle->soft_permille % 10)
		snprintf(part, sizeof(part), ".%u", throttle->soft_permille % 10);
	if (throttle->soft_for_ns)
		snprintf(stretch, sizeof(stretch), ", for: %s",
			 duration_format(throttle->soft_for_ns, text, sizeof(text)));
	snprintf(buf, size, "{soft: %u%s%%%s}", throttle->soft_permille / 10, part, stretch);
	return buf;
}

const char *ban_format(const struct ban_def *ban, char *buf, size_t size)
{
	char within[64], first[64], longest[64], factor[32] = "", max[80] = "";

	if (ban->factor_percent % 100)
		snprintf(factor, sizeof(factor), ", factor: %u.%02u", ban->factor_percent / 100,
			 ban->factor_percent % 100);
	else if (ban->factor_percent != 200)
		snprintf(factor, sizeof(factor), ", factor: %u", ban->factor_percent / 100);
	if (ban->max_ns != ban_default_max(ban->for_ns))
		snprintf(max, sizeof(max), ", max: %s",
			 duration_format(ban->max_ns, longest, sizeof(longest)));
	snprintf(buf, size, "{after: %llu %s%s/%s, for: %s%s%s%s}", ban->after,
		 ban->rejections ? "rejection" : "drop", ban->after == 1 ? "" : "s",
		 duration_format(ban->within_ns, within, sizeof(within)),
		 duration_format(ban->for_ns, first, sizeof(first)), factor, max,
		 ban->spoofable ? ", spoofable: true" : "");
	return buf;
}

static int throttle_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			 void *section)
{
	struct throttle_def *throttle = key_field(key, section);

	memset(throttle, 0, sizeof(*throttle));
	return read_throttle(r, node, throttle);
}

static void throttle_write(struct writer *w, const struct key *key, const void *section)
{
	char text[320];

	fputs(throttle_format(key_field_of(key, section), text, sizeof(text)), w->out);
}

static bool throttle_equal(const struct key *key, const void *a, const void *b)
{
	char x[320], y[320];

	return !strcmp(throttle_format(key_field_of(key, a), x, sizeof(x)),
		       throttle_format(key_field_of(key, b), y, sizeof(y)));
}

const struct key_type type_throttle = {
	.name = "throttle", .text = read_throttle_text, .accepts = THROTTLES,
	.read = throttle_read, .write = throttle_write,
	.equal = throttle_equal,
};

static int ban_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		    void *section)
{
	return read_limit_ban(r, node, section);
}

static void ban_write(struct writer *w, const struct key *key, const void *section)
{
	char text[320];

	fputs(ban_format(key_field_of(key, section), text, sizeof(text)), w->out);
}

static bool ban_equal(const struct key *key, const void *a, const void *b)
{
	const struct ban_def *x = key_field_of(key, a), *y = key_field_of(key, b);

	return x->after == y->after && x->within_ns == y->within_ns && x->for_ns == y->for_ns &&
	       x->max_ns == y->max_ns && x->factor_percent == y->factor_percent &&
	       x->spoofable == y->spoofable;
}

const struct key_type type_ban = {
	.name = "ban", .read = ban_read, .write = ban_write, .equal = ban_equal,
};

/* ---- overrides: two keys, one list; the first owns it ---- */

static int overrides_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			  void *section)
{
	return read_overrides(r, node, section);
}

static void overrides_lines(struct writer *w, const struct key *key, const void *section)
{
	overrides_write(section, w->out, w->indent);
}

static void overrides_copy(const struct key *key, void *section, int *rc)
{
	struct limit_def *limit = section;

	limit->override = array_copy(limit->override, limit->override_count,
				     sizeof(*limit->override), rc);
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
	.name = "list", .read = overrides_read, .lines = overrides_lines,
	.copy = overrides_copy, .clear = overrides_clear,
};

const struct key_type type_overrides_file = TYPE_TEXT("path", .text = read_overrides_file,
	.accepts = "the path of a file with lines SRC,RATE or SRC,RATE,BURST");
