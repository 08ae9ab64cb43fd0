// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* advice.c - see advice.h. The first case that holds gives the sentence. */
#include "control/commands/advice.h"

#include <stdio.h>

/* Enough sources to speak of all: below that a share is chance. */
#define MANY 20

static double percent(u64 part, u64 of)
{
	return of ? 100.0 * (double)part / (double)of : 0;
}

static const char *refused_text(const struct limit_numbers *n)
{
	return n->tags ? "tagged" : "refused";
}

static const char *of_nothing_refused(const struct limit_numbers *n, char *buf, size_t size)
{
	if (n->near)
		snprintf(buf, size, "It has %s nothing; %llu %s used 80%% and more: they are the next above it.",
			 refused_text(n), n->near, n->who);
	else
		snprintf(buf, size, "It has %s none of %llu %s, and none of the %s came near it: it "
			 "guards against floods only.", refused_text(n), n->passed, n->unit, n->who);
	return buf;
}

static const char *of_refused(const struct limit_numbers *n, char *buf, size_t size)
{
	const char *would = n->shadow ? "would be" : "is", *were = n->shadow ? "would have been" : "were";

	if (!n->no_buckets && n->over > MANY && n->over * 5 > n->live)
		snprintf(buf, size, "%llu of %llu %s are over it: it %s too strict for ordinary %s, unless "
			 "they attack together.", n->over, n->live, n->who, would, n->who);
	else if (n->seen && n->just_above * 2 > n->seen)
		snprintf(buf, size, "%llu of %llu %s %s sent less than 1.5 times what passed: it %s too "
			 "strict for them; 1.5 times the rate would pass them.", n->just_above, n->seen,
			 refused_text(n), n->who, would);
	else if (n->all >= MANY && n->heaviest * 2 > n->all)
		snprintf(buf, size, "One of the %s has %.0f%% of the latest refusals: the limit %s right for the "
			 "others; look at that one.", n->who, percent(n->heaviest, n->all), would);
	else if (n->seen && n->far_above * 2 > n->seen)
		snprintf(buf, size, "%llu of %llu %s %s sent more than twice what passed: it %s stopping "
			 "floods, not ordinary %s.", n->far_above, n->seen, refused_text(n), n->who, n->shadow ? "would be" : "is",
			 n->who);
	else if (n->is_window && n->near && !n->edge_permille)
		snprintf(buf, size, "%.2f%% are %s and %llu %s are near it: around the edge of a window twice "
			 "the limit can pass; sliding-window or token-bucket would smooth that.",
			 percent(n->refused, n->passed + n->refused), refused_text(n), n->near, n->who);
	else if (n->no_values)
		snprintf(buf, size, "%.2f%% %s refused; by how much is not known: detailed_metric: true counts its "
			 "values.", percent(n->refused, n->passed + n->refused), were);
	else if (n->seen)
		snprintf(buf, size, "%.2f%% %s %s, some just above it and some far: look at the latest of them.",
			 percent(n->refused, n->passed + n->refused), were, refused_text(n));
	else
		snprintf(buf, size, "%.2f%% %s %s; nobody was in the last seconds.",
			 percent(n->refused, n->passed + n->refused), were, refused_text(n));
	return buf;
}

const char *advice(const struct limit_numbers *n, char *buf, size_t size)
{
	if (!n->passed && !n->refused)
		snprintf(buf, size, "No %s have met it since its counters began.", n->unit);
	else if (!n->refused)
		return of_nothing_refused(n, buf, size);
	else
		return of_refused(n, buf, size);
	return buf;
}

const char *edge_advice(const struct limit_numbers *n, char *buf, size_t size)
{
	if (n->edge_permille <= 1000)
		return NULL;
	snprintf(buf, size, "Up to %.1f times the limit passed within one window around its edge%s", n->edge_permille / 1000.0,
		 n->edge_permille < 1200 ? "." : ": sliding-window or token-bucket would smooth that.");
	return buf;
}
