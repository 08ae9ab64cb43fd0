// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* exposition.c - see exposition.h. */
#include "lib/exposition.h"

#include <stdarg.h>

static const char *suffix(const struct exposition *e)
{
	switch (e->type) {
	case METRIC_COUNTER:
		return "_total";
	case METRIC_INFO:
		return "_info";
	default:
		return "";
	}
}

void metric_begin(struct exposition *e, const char *name, enum metric_type type, const char *help)
{
	static const char *const type_name[] = {
		[METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_INFO] = "gauge",
		[METRIC_HISTOGRAM] = "histogram",
	};

	e->name = name;
	e->type = type;
	evbuffer_add_printf(e->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix(e), help, name,
			    suffix(e), type_name[type]);
}

/* A label's value: backslash, quote and newline are escaped, the rest is unchanged UTF-8. */
static void add_escaped(struct evbuffer *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			evbuffer_add(out, "\\n", 2);
		else if (*value == '"' || *value == '\\')
			evbuffer_add_printf(out, "\\%c", *value);
		else
			evbuffer_add(out, value, 1);
	}
}

static void add_labels(struct exposition *e, va_list args)
{
	const char *name;
	bool any = false;

	evbuffer_add_printf(e->out, "%s%s", e->name, suffix(e));
	while ((name = va_arg(args, const char *))) {
		evbuffer_add_printf(e->out, "%c%s=\"", any ? ',' : '{', name);
		add_escaped(e->out, va_arg(args, const char *));
		evbuffer_add(e->out, "\"", 1);
		any = true;
	}
	if (any)
		evbuffer_add(e->out, "}", 1);
}

void metric_u64(struct exposition *e, u64 value, ...)
{
	va_list args;

	va_start(args, value);
	add_labels(e, args);
	va_end(args);
	evbuffer_add_printf(e->out, " %llu\n", value);
}

void metric_double(struct exposition *e, double value, ...)
{
	va_list args;

	va_start(args, value);
	add_labels(e, args);
	va_end(args);
	evbuffer_add_printf(e->out, " %.9g\n", value);
}

void metric_histogram(struct exposition *e, const u64 *count, const double *bound, size_t buckets,
		      double sum)
{
	u64 total = 0;

	for (size_t i = 0; i < buckets; i++) {
		total += count[i];
		if (i + 1 < buckets)
			evbuffer_add_printf(e->out, "%s_bucket{le=\"%.9g\"} %llu\n", e->name,
					    bound[i], total);
	}
	evbuffer_add_printf(e->out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9g\n%s_count %llu\n",
			    e->name, total, e->name, sum, e->name, total);
}
