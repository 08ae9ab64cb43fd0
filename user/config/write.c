// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * write.c - a policy as YAML, which the loader reads back as equal. Limits: write_limit.c.
 *
 * What has its default is left out, so that a saved file stays as short as a written one. All
 * text of a model is printable (tree.c), so quoting is doubling the quote.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/write.h"

#include "config/cluster_names.h"
#include "config/http_names.h"

static void write_entry(struct writer *w, const char *name, u64 until_utc_ns, const char *reason)
{
	char text[64];

	fputs("  - ", w->out);
	if (!until_utc_ns && !reason[0]) {
		write_text(w->out, name);
		fputc('\n', w->out);
		return;
	}
	fputs("{prefix: ", w->out);
	write_text(w->out, name);
	if (until_utc_ns)
		fprintf(w->out, ", until: '%s'", utc_format(until_utc_ns, text, sizeof(text)));
	if (reason[0]) {
		fputs(", reason: ", w->out);
		write_text(w->out, reason);
	}
	fputs("}\n", w->out);
}

static void write_entries(struct writer *w, const char *key, const struct list_def *list)
{
	char text[SL_NAME_MAX + 2];
	size_t i, written = list->set_count;

	for (i = 0; i < list->count; i++)
		written += !list->entry[i].derived;
	if (!written)
		return;
	fprintf(w->out, "%s:\n", key);
	for (i = 0; i < list->count; i++) {
		const struct list_entry *entry = &list->entry[i];

		if (!entry->from && !entry->derived)
			write_entry(w, sl_prefix_format(&entry->prefix, text, sizeof(text)),
				    entry->until_utc_ns, entry->reason);
	}
	for (i = 0; i < list->set_count; i++) {
		snprintf(text, sizeof(text), "@%s", list->set[i].name);
		write_entry(w, text, list->set[i].until_utc_ns, list->set[i].reason);
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
		if (set->file) {
			fprintf(w->out, "  %s: {file: ", name);
			write_text(w->out, set->file);
			fputs("}\n", w->out);
		} else if (set->count) {
			write_list(w, name, set->prefix, set->count, format_prefix);
		} else {
			fprintf(w->out, "  %s: []\n", name);
		}
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
		if (def->on_removed != ON_REMOVED_ATTACH)
			write_value(w, "on_removed", name_of(on_removed_names, def->on_removed));
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
		if (policy->max_values != MAX_VALUES_DEFAULT)
			write_number(w, "max_values", policy->max_values);
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
	write_entries(&w, "never_ban", &policy->list[LIST_NEVER_BAN]);
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
	if (policy->http)
		write_http(&w, policy->http);
	if (policy->cluster)
		write_cluster(&w, policy->cluster);
	write_daemon(&w, policy);
	return ferror(out) ? -EIO : 0;
}
