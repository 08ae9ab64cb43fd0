// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* write_limit.c - a limit as its YAML mapping. What has its default is left out. */
#include <errno.h>
#include <string.h>

#include "config/override.h"
#include "config/write.h"

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

static void write_match_key(struct writer *w, const struct match_def *m,
			    const struct match_key *key)
{
	static write_format *const format[] = {
		[MATCH_PREFIXES] = format_address, [MATCH_PROTOS] = format_proto,
		[MATCH_RANGES] = format_range, [MATCH_FLAGS] = format_tcp_flags,
		[MATCH_ICMP_TYPES] = format_icmp_type, [MATCH_INTERFACES] = format_interface,
	};
	bool is_src = key == &match_keys[MATCH_SRC];
	struct addresses of;
	const void *values;
	size_t count;

	values = match_values(m, key, &count);
	if (key->kind == MATCH_PREFIXES) {
		count -= is_src ? m->src_from_sets : m->dst_from_sets;
		of = (struct addresses){ values, count, (const char (*)[SL_NAME_MAX])
						(is_src ? m->src_set : m->dst_set) };
		values = &of;
		count += is_src ? m->src_set_count : m->dst_set_count;
	}
	write_list(w, key->name, values, count, format[key->kind]);
}

static bool match_is_empty(const struct match_def *m)
{
	for (size_t i = 0; i < MATCH_KEY_COUNT; i++)
		if (match_count(m, &match_keys[i]))
			return false;
	return true;
}

static void write_match(struct writer *w, const struct match_def *m)
{
	if (match_is_empty(m))
		return;
	write_begin(w);
	fputs("match:\n", w->out);
	w->indent += 2;
	for (size_t i = 0; i < MATCH_KEY_COUNT; i++)
		write_match_key(w, m, &match_keys[i]);
	w->indent -= 2;
}

static void write_per(struct writer *w, u8 per)
{
	const struct name *name;
	const char *separator = "";

	write_begin(w);
	fputs("per: [", w->out);
	for (name = per_names; name->name; name++) {
		if (!(per & name->value))
			continue;
		fprintf(w->out, "%s%s", separator, name->name);
		separator = ", ";
	}
	fputs("]\n", w->out);
}

static void write_tag(struct writer *w, const struct limit_def *limit)
{
	const char *name = name_of(dscp_names, limit->dscp);

	if (!limit->tag)
		return;
	write_begin(w);
	fputs("tag:\n", w->out);
	w->indent += 2;
	if ((limit->tag & SL_TAG_DSCP) && name)
		write_value(w, "dscp", name);
	else if (limit->tag & SL_TAG_DSCP)
		write_number(w, "dscp", limit->dscp);
	if (limit->tag & SL_TAG_MARK) {
		write_begin(w);
		fprintf(w->out, "mark: 0x%x\n", limit->mark);
	}
	w->indent -= 2;
}

static void write_prefix_of(struct writer *w, const struct limit_def *limit, int family)
{
	const u8 *prefix = limit->prefix[family];
	u8 count = limit->prefix_count[family];

	fprintf(w->out, "%s: ", family == SL_V4 ? "ipv4" : "ipv6");
	if (count == 1)
		fprintf(w->out, "%u", prefix[0]);
	else
		for (u8 i = 0; i < count; i++)
			fprintf(w->out, "%s%u%s", i ? ", " : "[", prefix[i],
				i + 1 == count ? "]" : "");
}

/* A family's multipliers, unless all are 1; `first` of the mapping. */
static bool write_scale_of(struct writer *w, const struct limit_def *limit, int family, bool first)
{
	const u32 *scale = limit->prefix_scale[family];
	u8 count = limit->prefix_count[family], ones = 0;

	while (ones < count && scale[ones] == 1)
		ones++;
	if (ones == count)
		return false;
	if (first) {
		write_begin(w);
		fputs("prefix_scale: {", w->out);
	}
	fprintf(w->out, "%s%s: [", first ? "" : ", ", family == SL_V4 ? "ipv4" : "ipv6");
	for (u8 i = 0; i < count; i++)
		fprintf(w->out, "%s%u", i ? ", " : "", scale[i]);
	fputc(']', w->out);
	return true;
}

static void write_prefix_hierarchy(struct writer *w, const struct limit_def *limit,
				   const struct limit_def *usual)
{
	bool v4, v6;

	if (!(limit->per & SL_PER_SOURCE))
		return;
	if (memcmp(limit->prefix_count, usual->prefix_count, sizeof(usual->prefix_count)) ||
	    limit->prefix[SL_V4][0] != usual->prefix[SL_V4][0] ||
	    limit->prefix[SL_V6][0] != usual->prefix[SL_V6][0]) {
		write_begin(w);
		fputs("prefix: {", w->out);
		write_prefix_of(w, limit, SL_V4);
		fputs(", ", w->out);
		write_prefix_of(w, limit, SL_V6);
		fputs("}\n", w->out);
	}
	v4 = write_scale_of(w, limit, SL_V4, true);
	v6 = write_scale_of(w, limit, SL_V6, !v4);
	if (v4 || v6)
		fputs("}\n", w->out);
}

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

static void write_rates(struct writer *w, const struct rates *rates)
{
	const char *open = rates->count > 1 ? "[" : "", *close = rates->count > 1 ? "]" : "";
	char text[RATES_MAX * 96];

	write_begin(w);
	fprintf(w->out, "rate: %s%s%s\n", open, rates_format(rates, text, sizeof(text)), close);
	if (!rates->burst[0])
		return;
	write_begin(w);
	fprintf(w->out, "burst: %s", open);
	for (u8 i = 0; i < rates->count; i++)
		fprintf(w->out, "%s%llu", i ? ", " : "", rates->burst[i]);
	fprintf(w->out, "%s\n", close);
}

static const char *elastic_format(const struct throttle_def *throttle, char *buf, size_t size)
{
	char cpu[16] = "", link[16] = "", signal[SL_NAME_MAX + 32] = "";

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
	snprintf(buf, size, "{elastic: %u%%, while: {%s%s%s}}", throttle->ceiling_percent, cpu,
		 link, signal);
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
	snprintf(buf, size, "{after: %llu drop%s/%s, for: %s%s%s%s}", ban->after,
		 ban->after == 1 ? "" : "s", duration_format(ban->within_ns, within, sizeof(within)),
		 duration_format(ban->for_ns, first, sizeof(first)), factor, max,
		 ban->spoofable ? ", spoofable: yes" : "");
	return buf;
}

/* A value that is YAML already. */
static void write_yaml(struct writer *w, const char *key, const char *yaml)
{
	write_begin(w);
	fprintf(w->out, "%s: %s\n", key, yaml);
}

void write_limit(struct writer *w, const struct limit_def *limit)
{
	struct limit_def usual;
	char text[320];

	limit_init(&usual);
	write_value(w, "name", limit->name);
	write_match(w, &limit->match);
	if (limit->per != usual.per)
		write_per(w, limit->per);
	write_prefix_hierarchy(w, limit, &usual);
	write_rates(w, &limit->rates);
	if (limit->algorithm != usual.algorithm)
		write_value(w, "algorithm", algorithm_name(limit->algorithm));
	if (limit->accounting != usual.accounting)
		write_value(w, "accounting", name_of(accounting_names, limit->accounting));
	if (limit->action != usual.action)
		write_value(w, "action", name_of(limit_action_names, limit->action));
	write_tag(w, limit);
	if (limit->mode != usual.mode)
		write_value(w, "mode", name_of(limit_mode_names, limit->mode));
	if (limit->throttle.kind != usual.throttle.kind)
		write_yaml(w, "throttle", throttle_format(&limit->throttle, text, sizeof(text)));
	if (limit->on_full != usual.on_full)
		write_value(w, "on_full", name_of(on_full_names, limit->on_full));
	if (limit->cluster)
		write_value(w, "scope", name_of(scope_names, limit->cluster));
	if (limit->ban.after)
		write_yaml(w, "ban", ban_format(&limit->ban, text, sizeof(text)));
	overrides_write(limit, w->out, w->indent);
}

int limit_write(const struct limit_def *limit, FILE *out, int indent)
{
	struct writer w = { .out = out, .indent = indent };

	write_limit(&w, limit);
	return ferror(out) ? -EIO : 0;
}

