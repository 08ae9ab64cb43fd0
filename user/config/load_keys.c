// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* load_keys.c - the rows of `load_signals:`. */
#include <errno.h>
#include <string.h>

#include "config/keys.h"
#include "config/load_def.h"

#define MS 1000000ULL
#define SECOND SL_NS_PER_SEC
#define DOMAIN_MAX 256

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
};

/* The daemon polled Prometheus and JSON documents once. */
#define POLLED(key)                                                                                      \
	{                                                                                                \
		key, "the daemon polls nothing; accepted: no such entry of load_signals, and sluicectl " \
		     "load-signal set NAME VALUE by a program, as docs/examples/load-signal.service"     \
	}

static const struct key_elsewhere removed[] = {
	POLLED("prometheus"), POLLED("query"), POLLED("json"),	  POLLED("path"),
	POLLED("full"),	      POLLED("every"), POLLED("timeout"), { 0 },
};

static int check_load_signal(struct reader *r, const struct yaml_node *node, void *section)
{
	const struct policy *policy = r->model;
	const struct load_signal_def *def = section;
	const struct yaml_node *quantile = yaml_node_find(node, "quantile");

	if (!def->errors_permille == !def->latency_ns)
		return read_fail(r, node, EINVAL,
				 "load signal \"%s\" has %s; accepted: one of errors, latency",
				 def->name, def->latency_ns ? "several origins" : "no origin");
	if (quantile && !def->latency_ns)
		return read_fail(r, quantile, EINVAL,
				 "quantile is given without latency; accepted: with it");
	if (!policy->http)
		return read_fail(r, node, EINVAL,
				 "load signal \"%s\" is measured from reports, but there is "
				 "no request tier to report to; accepted with it: http",
				 def->name);
	return 0;
}

const struct keys load_signal_keys = KEYS(struct load_signal_def, load_signal_rows,
					  .check = check_load_signal, .elsewhere = removed);

const struct load_signal_def *load_signal_def_find(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->load_signal_count; i++)
		if (!strcmp(policy->load_signal[i].name, name))
			return &policy->load_signal[i];
	return NULL;
}
