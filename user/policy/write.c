// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * write.c - a policy or a limit as YAML, which the loader reads back as equal.
 *
 * What has its default is left out, so that a saved file stays as short as a written one. All
 * text of a model is printable (tree.c), so quoting is doubling the quote.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/model.h"

#define FLOW_MAX 8	/* longer lists go one value to a line */

struct writer {
	FILE *out;
	int indent;
	bool item;	/* the next line begins an item of a list: "- " */
};

/* The indent of a line; an item's dash stands in its last two columns. */
static void begin_line(struct writer *w)
{
	if (w->item)
		fprintf(w->out, "%*s- ", w->indent - 2, "");
	else
		fprintf(w->out, "%*s", w->indent, "");
	w->item = false;
}

static void write_text(FILE *out, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789./_-";

	/* null, plain, would be nothing: node_is_null() */
	if (*text && *text != '-' && strspn(text, plain) == strlen(text) && strcmp(text, "null")) {
		fputs(text, out);
		return;
	}
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			fputc('\'', out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

static void write_value(struct writer *w, const char *key, const char *value)
{
	begin_line(w);
	fprintf(w->out, "%s: ", key);
	write_text(w->out, value);
	fputc('\n', w->out);
}

static void write_number(struct writer *w, const char *key, u64 value)
{
	begin_line(w);
	fprintf(w->out, "%s: %llu\n", key, value);
}

static void write_rate(struct writer *w, const char *key, const struct rate *rate)
{
	char text[96];

	begin_line(w);
	fprintf(w->out, "%s: %s\n", key, rate_format(rate, text, sizeof(text)));
}

/*
 * A list. `format` puts the value at `array`[i] into buf and returns how many elements that
 * was: ICMP types come in pairs.
 */
static void write_list(struct writer *w, const char *key, const void *array, size_t count,
		       size_t (*format)(const void *array, size_t i, size_t count, char *buf,
					size_t size))
{
	bool flow = count <= FLOW_MAX;
	char buf[SL_PREFIX_TEXT];
	size_t i;

	if (!count)
		return;
	begin_line(w);
	fprintf(w->out, flow ? "%s: [" : "%s:\n", key);
	for (i = 0; i < count;) {
		if (!flow)
			fprintf(w->out, "%*s- ", w->indent + 2, "");
		else if (i)
			fputs(", ", w->out);
		i += format(array, i, count, buf, sizeof(buf));
		write_text(w->out, buf);
		if (!flow)
			fputc('\n', w->out);
	}
	if (flow)
		fputs("]\n", w->out);
}

static size_t format_prefix(const void *array, size_t i, size_t count, char *buf, size_t size)
{
	sl_prefix_format((const struct sl_prefix *)array + i, buf, size);
	return 1;
}

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

static bool match_is_empty(const struct match_def *m)
{
	return !(m->src_count || m->dst_count || m->proto_count || m->dport_count ||
		 m->sport_count || m->length_count || m->vlan_count || m->tcp_flags_count ||
		 m->icmp_type_count || m->interface_count);
}

static void write_match(struct writer *w, const struct match_def *m)
{
	if (match_is_empty(m))
		return;
	begin_line(w);
	fputs("match:\n", w->out);
	w->indent += 2;
	write_list(w, "src", m->src, m->src_count, format_prefix);
	write_list(w, "dst", m->dst, m->dst_count, format_prefix);
	write_list(w, "proto", m->proto, m->proto_count, format_proto);
	write_list(w, "dport", m->dport, m->dport_count, format_range);
	write_list(w, "sport", m->sport, m->sport_count, format_range);
	write_list(w, "vlan", m->vlan, m->vlan_count, format_range);
	write_list(w, "tcp_flags", m->tcp_flags, m->tcp_flags_count, format_tcp_flags);
	write_list(w, "icmp_type", m->icmp_type, m->icmp_type_count, format_icmp_type);
	write_list(w, "length", m->length, m->length_count, format_range);
	write_list(w, "interface", m->interface, m->interface_count, format_interface);
	w->indent -= 2;
}

static void write_per(struct writer *w, u8 per)
{
	const struct name *name;
	const char *separator = "";

	begin_line(w);
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
	begin_line(w);
	fputs("tag:\n", w->out);
	w->indent += 2;
	if ((limit->tag & SL_TAG_DSCP) && name)
		write_value(w, "dscp", name);
	else if (limit->tag & SL_TAG_DSCP)
		write_number(w, "dscp", limit->dscp);
	if (limit->tag & SL_TAG_MARK) {
		begin_line(w);
		fprintf(w->out, "mark: 0x%x\n", limit->mark);
	}
	w->indent -= 2;
}

static void write_limit(struct writer *w, const struct limit_def *limit)
{
	struct limit_def usual;

	limit_init(&usual);
	write_value(w, "name", limit->name);
	write_match(w, &limit->match);
	if (limit->per != usual.per)
		write_per(w, limit->per);
	if ((limit->per & SL_PER_SOURCE) &&
	    memcmp(limit->prefix, usual.prefix, sizeof(usual.prefix))) {
		begin_line(w);
		fprintf(w->out, "prefix: {ipv4: %u, ipv6: %u}\n", limit->prefix[SL_V4][0],
			limit->prefix[SL_V6][0]);
	}
	write_rate(w, "rate", &limit->rates.rate[0]);
	if (limit->rates.burst[0])
		write_number(w, "burst", limit->rates.burst[0]);
	if (limit->algorithm != usual.algorithm)
		write_value(w, "algorithm", algorithm_name(limit->algorithm));
	if (limit->accounting != usual.accounting)
		write_value(w, "accounting", name_of(accounting_names, limit->accounting));
	if (limit->action != usual.action)
		write_value(w, "action", name_of(limit_action_names, limit->action));
	write_tag(w, limit);
	if (limit->mode != usual.mode)
		write_value(w, "mode", name_of(limit_mode_names, limit->mode));
	if (limit->on_full != usual.on_full)
		write_value(w, "on_full", name_of(on_full_names, limit->on_full));
}

int limit_write(const struct limit_def *limit, FILE *out, int indent)
{
	struct writer w = { .out = out, .indent = indent };

	write_limit(&w, limit);
	return ferror(out) ? -EIO : 0;
}

static void write_entries(struct writer *w, const char *key, const struct list_def *list)
{
	char text[SL_PREFIX_TEXT];
	size_t i;

	if (!list->count)
		return;
	fprintf(w->out, "%s:\n", key);
	for (i = 0; i < list->count; i++) {
		const struct list_entry *entry = &list->entry[i];

		sl_prefix_format(&entry->prefix, text, sizeof(text));
		fputs("  - ", w->out);
		if (!entry->until_utc_ns && !entry->reason[0]) {
			write_text(w->out, text);
			fputc('\n', w->out);
			continue;
		}
		fputs("{prefix: ", w->out);
		write_text(w->out, text);
		if (entry->until_utc_ns)
			fprintf(w->out, ", until: '%s'",
				utc_format(entry->until_utc_ns, text, sizeof(text)));
		if (entry->reason[0]) {
			fputs(", reason: ", w->out);
			write_text(w->out, entry->reason);
		}
		fputs("}\n", w->out);
	}
}

static void write_sets(struct writer *w, const struct policy *policy)
{
	size_t i;

	if (!policy->set_count)
		return;
	fputs("sets:\n", w->out);
	w->indent = 2;
	for (i = 0; i < policy->set_count; i++) {
		const struct set_def *set = &policy->set[i];
		char name[SL_NAME_MAX + 2];

		/* quoted: a set may be called null */
		snprintf(name, sizeof(name), "'%s'", set->name);
		if (set->count)
			write_list(w, name, set->prefix, set->count, format_prefix);
		else
			fprintf(w->out, "  %s: []\n", name);
	}
	w->indent = 0;
}

static void write_interfaces(struct writer *w, const struct policy *policy)
{
	size_t i;

	if (policy->interface_count)
		fputs("interfaces:\n", w->out);
	w->indent = 4;
	for (i = 0; i < policy->interface_count; i++) {
		const struct interface_def *def = &policy->interface[i];

		w->item = true;
		write_value(w, "name", def->name);
		write_value(w, "mode", name_of(interface_mode_names, def->mode));
	}
	w->indent = 0;
}

static void write_failsafe(struct writer *w, const struct policy *policy)
{
	size_t i;

	if (policy->failsafe_count)
		fputs("failsafe:\n", w->out);
	for (i = 0; i < policy->failsafe_count; i++)
		fprintf(w->out, "  - %u/%s\n", policy->failsafe[i].port,
			name_of(port_proto_names, policy->failsafe[i].proto));
	write_rate(w, "failsafe_rate", &policy->failsafe_rate);
}

static void write_daemon(struct writer *w, const struct policy *policy)
{
	if (policy->metrics_listen) {
		fputs("metrics:\n", w->out);
		w->indent = 2;
		write_value(w, "listen", policy->metrics_listen);
		w->indent = 0;
	}
	fputs("control:\n", w->out);
	w->indent = 2;
	write_value(w, "socket", policy->control_socket);
	if (policy->control_group)
		write_value(w, "group", policy->control_group);
	if (policy->control_read_group)
		write_value(w, "read_group", policy->control_read_group);
	w->indent = 0;
	write_value(w, "state_dir", policy->state_dir);
	write_value(w, "pin_dir", policy->pin_dir);
}

int policy_write(const struct policy *policy, FILE *out)
{
	struct writer w = { .out = out };
	size_t i;

	write_interfaces(&w, policy);
	fprintf(out, "table: {buckets: %llu}\n", policy->table_buckets);
	write_failsafe(&w, policy);
	write_sets(&w, policy);
	write_entries(&w, "exempt", &policy->list[LIST_EXEMPT]);
	write_entries(&w, "block", &policy->list[LIST_BLOCK]);
	fputs("essential:\n", out);
	w.indent = 2;
	write_rate(&w, "rate", &policy->essential_rate);
	w.indent = 0;
	write_value(&w, "on_parse_error", name_of(on_parse_error_names, policy->on_parse_error));
	write_value(&w, "fragments", name_of(fragments_names, policy->fragments));
	if (policy->limit_count)
		fputs("limits:\n", out);
	w.indent = 4;
	for (i = 0; i < policy->limit_count; i++) {
		w.item = true;
		write_limit(&w, &policy->limit[i]);
	}
	w.indent = 0;
	write_daemon(&w, policy);
	return ferror(out) ? -EIO : 0;
}
