// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* load_source.c - see load_source.h. */
#include "control/elastic/load_source.h"

#include <stdio.h>

#include "control/elastic/elastic.h"
#include "control/elastic/load_signal.h"
#include "lib/log.h"
#include "request/engine/engine.h"
#include "request/engine/measure.h"

void load_sources_watch(struct scales *scales)
{
	const struct policy *policy = scales->running->policy;
	struct engine *engine = scales->running->requests.engine;
	struct measure_def def[LOAD_SIGNALS_MAX];

	if (scales->sources_for == scales->running->generation)
		return;
	for (size_t i = 0; i < policy->load_signal_count; i++)
		def[i] = (struct measure_def){ policy->load_signal[i].domain,
					       policy->load_signal[i].window_ns };
	if (engine && measures_publish(&engine->measures, def, policy->load_signal_count) < 0)
		log_error("load signals: out of memory, they are not measured");
	else
		scales->sources_for = scales->running->generation;
}

static bool measured_value(const struct load_signal_def *def, struct measures *measures,
			   size_t index, u64 now_ns, double *ret)
{
	double value;

	if (def->errors_permille) {
		if (!measure_errors(measures, index, now_ns, &value))
			return false;
		*ret = value * 1000 / def->errors_permille;
		return true;
	}
	if (!measure_quantile(measures, index, def->quantile_permille, now_ns, &value))
		return false;
	*ret = value / def->latency_ns;
	return true;
}

void load_sources_tick(struct scales *scales, u64 now_ns)
{
	const struct policy *policy = scales->running->policy;
	struct engine *engine = scales->running->requests.engine;
	double value;

	/* The series are those of another configuration for up to a second. */
	if (!engine || scales->sources_for != scales->running->generation)
		return;
	for (size_t i = 0; i < policy->load_signal_count; i++) {
		const struct load_signal_def *def = &policy->load_signal[i];

		if (measured_value(def, engine->measures, i, now_ns, &value))
			load_signal_found(scales, def->name, value, now_ns + ELASTIC_VALID_NS);
	}
}

const char *load_source_words(const struct load_signal_def *def, char *buf, size_t size)
{
	snprintf(buf, size, "%s of reports%s%s", def->errors_permille ? "errors" : "latency",
		 def->domain ? " to " : "", def->domain ? def->domain : "");
	return buf;
}
