// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* write_http.c - the `http:` section as text that read_http() reads back as equal. */
#include "config/http_names.h"

/* "KEY: [a, b]" or the same within braces; nothing where the list is empty. */
static void write_strings(struct writer *w, const char *before, const char *key,
			  char *const *text, size_t count, const char *after)
{
	if (!count)
		return;
	fprintf(w->out, "%s%s: [", before, key);
	for (size_t i = 0; i < count; i++) {
		if (i)
			fputs(", ", w->out);
		write_text(w->out, text[i]);
	}
	fprintf(w->out, "]%s", after);
}

static void write_pair(struct writer *w, const char *before, const char *key, const char *value,
		       const char *after)
{
	if (!value)
		return;
	fprintf(w->out, "%s%s: ", before, key);
	write_text(w->out, value);
	fputs(after, w->out);
}

static void write_prefixes(struct writer *w, const struct sl_prefix *prefix, size_t count)
{
	char text[SL_PREFIX_TEXT];

	fputs("[", w->out);
	for (size_t i = 0; i < count; i++) {
		if (i)
			fputs(", ", w->out);
		write_text(w->out, sl_prefix_format(&prefix[i], text, sizeof(text)));
	}
	fputs("]", w->out);
}

static void write_listener(struct writer *w, const struct listen_def *listen)
{
	char text[64];

	fputs("    - {address: ", w->out);
	write_text(w->out, listen->address);
	if (listen->tls)
		fputs(", tls: true", w->out);
	if (listen->insecure)
		fputs(", insecure: true", w->out);
	if (listen->client_count) {
		fputs(", clients: ", w->out);
		write_prefixes(w, listen->clients, listen->client_count);
	}
	if (listen->has_max_wait)
		fprintf(w->out, ", max_wait: %s",
			duration_format(listen->max_wait_ns, text, sizeof(text)));
	if (listen->max_connections != LISTEN_CONNECTIONS_DEFAULT)
		fprintf(w->out, ", max_connections: %llu", listen->max_connections);
	if (listen->max_connections_per_address != LISTEN_CONNECTIONS_PER_ADDRESS_DEFAULT)
		fprintf(w->out, ", max_connections_per_address: %llu",
			listen->max_connections_per_address);
	if (listen->mode)
		fprintf(w->out, ", mode: '%04o'", listen->mode);
	write_pair(w, ", ", "group", listen->group, "");
	fputs("}\n", w->out);
}

static void write_listeners(struct writer *w, const struct http_def *http)
{
	for (int kind = 0; kind < LISTEN_KIND_COUNT; kind++) {
		bool any = false;

		for (size_t i = 0; i < http->listen_count; i++) {
			if ((int)http->listen[i].kind != kind)
				continue;
			if (!any)
				fprintf(w->out, "  %s:\n", name_of(listen_kind_names, kind));
			any = true;
			write_listener(w, &http->listen[i]);
		}
	}
}

static void write_callers(struct writer *w, const struct http_def *http)
{
	const char *apart = "";

	if (http->caller_count)
		fputs("  callers:\n", w->out);
	for (size_t i = 0; i < http->caller_count; i++) {
		const struct caller_def *caller = &http->caller[i];

		write_pair(w, "    - {", "name", caller->name, "");
		write_pair(w, ", ", "token_file", caller->token_file, "");
		if (caller->has_uid)
			fprintf(w->out, ", uid: %u", caller->uid);
		write_pair(w, ", ", "cert_cn", caller->cert_cn, "");
		write_strings(w, ", ", "domains", caller->domain, caller->domain_count, "");
		fputs(", may: [", w->out);
		apart = "";
		for (const struct name *right = right_names; right->name; right++) {
			if (!(caller->may & right->value))
				continue;
			fprintf(w->out, "%s%s", apart, right->name);
			apart = ", ";
		}
		fputs("]}\n", w->out);
	}
}

/* Permille as the percentage it was written as. */
static const char *percent(u32 permille, char *buf, size_t size)
{
	snprintf(buf, size, permille % 10 ? "%u.%u%%" : "%u%%", permille / 10, permille % 10);
	return buf;
}

static void write_push_down(struct writer *w, const struct http_def *http)
{
	const struct push_limits_def *push = &http->push_down;
	char text[32];

	if (http->never_push_down_count) {
		fputs("  never_push_down: ", w->out);
		write_prefixes(w, http->never_push_down, http->never_push_down_count);
		fputc('\n', w->out);
	}
	fprintf(w->out, "  push_down: {mode: %s, max_sources: %llu, max_share: %s, "
		"min_requests: %llu, prefix: {ipv4: %u, ipv6: %u}}\n",
		name_of(push_mode_names, push->mode), push->max_sources,
		percent(push->max_share_permille, text, sizeof(text)), push->min_requests,
		push->prefix[SL_V4], push->prefix[SL_V6]);
}

static void write_budget(struct writer *w, const struct budget_def *budget)
{
	char text[96];

	if (!budget->limit[0])
		return;
	fputs("  source_budget:\n", w->out);
	w->indent = 4;
	write_value(w, "limit", budget->limit);
	write_strings(w, "    ", "user", budget->user, budget->user_count, "\n");
	write_value(w, "active", duration_format(budget->active_ns, text, sizeof(text)));
	write_rate(w, "base", &budget->base);
	write_number(w, "packets_per_request", budget->packets_per_request);
	write_rate(w, "max", &budget->max);
	write_number(w, "max_users", budget->max_users);
	w->indent = 0;
}

static void write_tls(struct writer *w, const struct http_def *http)
{
	if (!http->cert)
		return;
	write_pair(w, "  tls: {", "cert", http->cert, "");
	write_pair(w, ", ", "key", http->key, "");
	write_pair(w, ", ", "client_ca", http->client_ca, "");
	fputs("}\n", w->out);
}

void write_http(struct writer *w, const struct http_def *http)
{
	char text[32];

	write_begin(w);
	fputs("http:\n", w->out);
	write_tls(w, http);
	write_listeners(w, http);
	write_strings(w, "  ", "hosts", http->host, http->host_count, "\n");
	write_pair(w, "  ", "rules", http->rules_dir, "\n");
	if (http->workers)
		fprintf(w->out, "  workers: %u\n", http->workers);
	fprintf(w->out, "  state: {users: %llu, log_memory: %llu, on_full: %s}\n", http->users,
		http->log_bytes, name_of(http_full_names, http->on_full));
	write_callers(w, http);
	write_push_down(w, http);
	write_budget(w, &http->budget);
	fprintf(w->out, "  retry_jitter: %s\n",
		percent(http->retry_jitter_permille, text, sizeof(text)));
	fprintf(w->out, "  max_delayed: %llu\n", http->max_delayed);
	if (!http->decision_log)
		return;
	write_pair(w, "  decision_log: {", "file", http->decision_log, "");
	fprintf(w->out, ", sample: %u, values: %s}\n", http->decision_sample,
		name_of(log_values_names, http->decision_values));
}
