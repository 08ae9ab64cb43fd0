// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* load_keys.c - the rows of `load_signals:`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"
#include "config/load_def.h"

#define MS 1000000ULL
#define SECOND SL_NS_PER_SEC
#define DOMAIN_MAX 256

#define URL_MAX 1024
#define FULL_MIN 1e-9
#define FULL_MAX 1e15

/* Without a user, a fragment and characters that end a line of the request. */
static int url_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	const char *host = strstr(text, "://");

	if (!host || (strncmp(text, "http://", 7) && strncmp(text, "https://", 8)) ||
	    strchr("/:?", host[3]) || strchr(text, '@') || strchr(text, '#'))
		return key_refuse_text(r, key);
	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c > '~')
			return key_refuse_text(r, key);
	return type_text_read(r, text, key, section);
}

static const struct key_type type_url = TYPE_TEXT("text", .text = url_read);

static int number_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	double value;
	char *end;

	value = strtod(text, &end);
	if (*text < '0' || *text > '9' || *end || !(value >= FULL_MIN && value <= FULL_MAX))
		return key_refuse_text(r, key);
	*(double *)key_field(key, section) = value;
	return 0;
}

static void number_write(struct writer *w, const struct key *key, const void *section)
{
	fprintf(w->out, "%.17g", *(const double *)key_field_of(key, section));
}

static const struct key_type type_real = { .name = "number",
					   .text = number_read,
					   .write = number_write };

#define URLS "http://HOST[:PORT][/PATH] or https://, without a user"
#define LOAD(field) KEY(struct load_signal_def, field)

static const struct key load_signal_rows[] = {
	{ "name", LOAD(name), &type_identifier, .flags = KEY_NEEDED | KEY_UNIQUE,
	  .help = "needed: as in `while: {load_signal: NAME}`" },
	{ "errors", LOAD(errors_permille), &type_percent, .least = 1, .most = 1000,
	  .help = "of reports: the share of 5xx that is full load" },
	{ "latency", LOAD(latency_ns), &type_duration, .least = MS, .most = 60 * SECOND,
	  .help = "of reports: the latency that is full load" },
	{ "quantile", LOAD(quantile_permille), &type_percent, .usual = "95%", .least = 1,
	  .most = 1000, .help = "of the latencies" },
	{ "window", LOAD(window_ns), &type_duration, .usual = "2s", .least = SECOND,
	  .most = 60 * SECOND, .help = "of reports: 1s to 60s" },
	{ "domain", LOAD(domain), &type_text, .most = DOMAIN_MAX, .unset = "all",
	  .help = "of reports" },
	{ "prometheus", LOAD(prometheus), &type_url, .most = URL_MAX, .accepted = URLS,
	  .help = "polled: its URL" },
	{ "query", LOAD(query), &type_text, .most = 4096,
	  .help = "PromQL whose result is one number" },
	{ "json", LOAD(json), &type_url, .most = URL_MAX, .accepted = URLS,
	  .help = "polled: a document's URL" },
	{ "path", LOAD(path), &type_text, .most = 256,
	  .help = "the value's members, as `pools.0.busy`" },
	{ "full", LOAD(full), &type_real, .usual = "1",
	  .accepted = "a number above 0, as 0.8 or 500",
	  .help = "polled: the value that is full load" },
	{ "every", LOAD(every_ns), &type_duration, .usual = "5s", .least = 100 * MS,
	  .most = 3600 * SECOND,
	  .help = "polled: 100ms to 1h; a value is used for three times as long" },
	{ "timeout", LOAD(timeout_ns), &type_duration, .usual = "2s", .least = 10 * MS,
	  .most = 30 * SECOND, .help = "polled: of the whole response" },
};

/* Keys of some origins only. */
enum origin { ERRORS = 1, LATENCY = 2, PROMETHEUS = 4, JSON = 8 };

static const struct {
	const char *key;
	u32 with;
	const char *names;
	bool needed;
} only_with[] = {
	{ "quantile", LATENCY, "latency", false },
	{ "window", ERRORS | LATENCY, "errors or latency", false },
	{ "domain", ERRORS | LATENCY, "errors or latency", false },
	{ "query", PROMETHEUS, "prometheus", true },
	{ "path", JSON, "json", true },
	{ "full", PROMETHEUS | JSON, "prometheus or json", false },
	{ "every", PROMETHEUS | JSON, "prometheus or json", false },
	{ "timeout", PROMETHEUS | JSON, "prometheus or json", false },
};

static int check_load_signal(struct reader *r, const struct yaml_node *node, void *section)
{
	const struct policy *policy = r->model;
	const struct load_signal_def *def = section;
	u32 origin = (def->errors_permille ? ERRORS : 0) | (def->latency_ns ? LATENCY : 0) |
		     (def->prometheus ? PROMETHEUS : 0) | (def->json ? JSON : 0);
	int rc = 0;

	if (!origin || origin & (origin - 1))
		return read_fail(r, node, EINVAL,
				 "load signal \"%s\" has %s; accepted: one of errors, "
				 "latency, prometheus, json",
				 def->name, origin ? "several origins" : "no origin");
	for (size_t i = 0; i < ARRAY_SIZE(only_with); i++) {
		const struct yaml_node *given = yaml_node_find(node, only_with[i].key);

		if (given && !(origin & only_with[i].with))
			return read_fail(r, given, EINVAL,
					 "%s is given without %s; accepted: with it",
					 only_with[i].key, only_with[i].names);
	}
	for (size_t i = 0; i < ARRAY_SIZE(only_with) && !rc; i++)
		if (only_with[i].needed && origin & only_with[i].with)
			rc = read_require(r, node, only_with[i].key);
	if (!rc && origin & (ERRORS | LATENCY) && !policy->http)
		rc = read_fail(r, node, EINVAL,
			       "load signal \"%s\" is measured from reports, but there is "
			       "no request tier to report to; accepted with it: http",
			       def->name);
	return rc;
}

const struct keys load_signal_keys =
	KEYS(struct load_signal_def, load_signal_rows, .check = check_load_signal);

const struct load_signal_def *load_signal_def_find(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->load_signal_count; i++)
		if (!strcmp(policy->load_signal[i].name, name))
			return &policy->load_signal[i];
	return NULL;
}
