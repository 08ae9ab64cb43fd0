// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* advice.c - see advice.h. The first case that holds gives the sentence. */
#include "control/commands/advice.h"

#include <stdio.h>

#include "lib/units.h"

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
		snprintf(
			buf, size,
			"It has %s nothing; %llu %s used 80%% and more: they are the next above it.",
			refused_text(n), n->near, n->who);
	else
		snprintf(buf, size,
			 "It has %s none of %llu %s, and none of the %s came near it: it "
			 "guards against floods only.",
			 refused_text(n), n->passed, n->unit, n->who);
	return buf;
}

void limit_numbers_add(struct limit_numbers *n, const struct refused_one *one)
{
	double times = one->given > 0 ? one->sent / one->given : 0;
	u64 burst = (one->is_bucket ? 1 : 2) * one->capacity + one->refused_known;

	n->seen++;
	if (one->given <= 0)
		return;
	n->compared++;
	n->period_ns = one->period_ns;
	n->just_above += times > 1 && times < 1.5;
	n->far_above += times > 2;
	if (times > 1) {
		n->most_just = times < 1.5 && times > n->most_just ? times : n->most_just;
		return;
	}
	if (burst > one->sent_known)
		burst = one->sent_known;
	n->no_burst |= !one->capacity;
	n->within++;
	n->burst = burst > n->burst ? burst : n->burst;
}

static const char *of_lately(const struct limit_numbers *n, char *buf, size_t size)
{
	const char *would = n->shadow ? "would be" : "is";
	char period[32], burst[120] = "";

	/* A span of packets as seconds with one decimal; a period of requests is whole. */
	if (n->period_ns < 60 * SL_NS_PER_SEC)
		snprintf(period, sizeof(period), "%.1fs", (double)n->period_ns / 1e9);
	else
		duration_format(n->period_ns, period, sizeof(period));
	if (n->within * 2 > n->compared) {
		if (!n->no_burst)
			snprintf(burst, sizeof(burst),
				 "; a token bucket with a burst of %s%llu%s would have %s none%s",
				 n->estimated ? "about " : "", n->burst,
				 n->burst_unit ? n->burst_unit : "", refused_text(n),
				 n->within < n->compared ? " of these" : "");
		snprintf(
			buf, size,
			"%llu of %llu %s %s sent no more in %s than the rate gives: it %s bursts%s.",
			n->within, n->compared, refused_text(n), n->who, period,
			n->shadow ? "would refuse"
			: n->tags ? "tags"
				  : "refuses",
			burst);
	} else if (n->just_above * 2 > n->compared) {
		snprintf(
			buf, size,
			"%llu of %llu %s %s sent less than 1.5 times what the rate gives in %s, the most "
			"%.2f times: it %s too strict for them.",
			n->just_above, n->compared, refused_text(n), n->who, period, n->most_just,
			would);
	} else if (n->all >= MANY && n->refusing > 1 && n->heaviest * 2 > n->all) {
		snprintf(buf, size,
			 "One of the %s has %.0f%% of the latest refusals: look at that one.",
			 n->who, percent(n->heaviest, n->all));
	} else if (n->far_above * 2 > n->compared) {
		snprintf(buf, size,
			 "%llu of %llu %s %s sent more than twice what the rate gives in %s: it %s "
			 "stopping floods, not ordinary %s.",
			 n->far_above, n->compared, refused_text(n), n->who, period, would, n->who);
	} else {
		return NULL;
	}
	return buf;
}

static const char *of_refused(const struct limit_numbers *n, char *buf, size_t size)
{
	const char *would = n->shadow ? "would be" : "is",
		   *were = n->shadow ? "would have been" : "were";
	double share = percent(n->refused, n->passed + n->refused);

	if (n->common)
		snprintf(
			buf, size,
			"%.2f%% %s %s. It has one bucket for all that it matches: one sender can use it up for the "
			"others; %s counts each alone.",
			share, were, refused_text(n),
			n->no_buckets ? "a key without a value" : "per: source");
	else if (of_lately(n, buf, size))
		return buf;
	else if (!n->no_buckets && n->over > MANY && n->over * 5 > n->live)
		snprintf(buf, size,
			 "%llu of %llu %s are over it: it %s too strict for ordinary %s, unless "
			 "they attack together.",
			 n->over, n->live, n->who, would, n->who);
	else if (n->is_window && n->near)
		snprintf(buf, size,
			 "%.2f%% are %s and %llu %s are near it: around the edge of a window twice "
			 "the limit can pass; sliding-window or token-bucket would smooth that.",
			 share, refused_text(n), n->near, n->who);
	else if (n->no_values)
		snprintf(buf, size, "%.2f%% %s %s; by how much is not known%s.", share, were,
			 refused_text(n),
			 n->no_buckets ? ": detailed_metric: true counts its values" : "");
	else if (n->compared)
		snprintf(
			buf, size,
			"%.2f%% %s %s, some just above it and some far: look at the latest of them.",
			share, were, refused_text(n));
	else if (n->seen)
		snprintf(
			buf, size,
			"%.2f%% %s %s, lately of %llu %s; its buckets are not one for each of them, so what "
			"they sent is not compared with the rate.",
			share, were, refused_text(n), n->seen, n->who);
	else
		snprintf(buf, size, "%.2f%% %s %s; nobody was lately.", share, were,
			 refused_text(n));
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
