// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* measure.c - see measure.h. */
#include "request/engine/measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/publish.h"
#include "lib/spin.h"

#define SLOTS 9
#define BUCKETS 129 /* below 1 ms, 128 bounds up to 2^16 ms; above counts as that */
#define PER_OCTAVE 8
#define MS 1e6

struct slot {
	u64 number; /* now_ns / its length; others are void */
	u32 statuses, errors;
	u32 latency[BUCKETS], latencies;
};

struct series {
	char *domain; /* NULL: all */
	u64 window_ns;
	u8 locked;
	bool kept; /* measures_publish(): it is in both sets */
	struct slot slot[SLOTS];
};

struct measures {
	size_t count;
	struct series *series[];
};

static void lock(struct series *s)
{
	u32 turns = 0;

	while (__atomic_exchange_n(&s->locked, 1, __ATOMIC_ACQUIRE))
		spin_wait(&turns);
}

static void unlock(struct series *s)
{
	__atomic_store_n(&s->locked, 0, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------ the series */

static void series_free(struct series *s)
{
	if (s)
		free(s->domain);
	free(s);
}

void measures_free(struct measures *measures)
{
	for (size_t i = 0; measures && i < measures->count; i++)
		series_free(measures->series[i]);
	free(measures);
}

static struct series *series_find(struct measures *old, const struct measure_def *def)
{
	for (size_t i = 0; old && i < old->count; i++) {
		struct series *s = old->series[i];

		if (!s->kept && s->window_ns == def->window_ns && !s->domain == !def->domain &&
		    (!s->domain || !strcmp(s->domain, def->domain)))
			return s;
	}
	return NULL;
}

static struct series *series_new(const struct measure_def *def)
{
	struct series *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->window_ns = def->window_ns;
	s->domain = def->domain ? strdup(def->domain) : NULL;
	if (!def->domain || s->domain)
		return s;
	free(s);
	return NULL;
}

/* Frees those series that the other set does not have, too. */
static void drop(struct measures *measures)
{
	for (size_t i = 0; measures && i < measures->count; i++) {
		struct series *s = measures->series[i];

		if (s->kept)
			s->kept = false;
		else
			series_free(s);
	}
	free(measures);
}

int measures_publish(struct measures **at, const struct measure_def *def, size_t count)
{
	struct measures *next = calloc(1, sizeof(*next) + count * sizeof(next->series[0]));

	for (size_t i = 0; next && i < count; i++) {
		struct series *s = series_find(*at, &def[i]);

		if (s)
			s->kept = true;
		else
			s = series_new(&def[i]);
		if (!s) {
			drop(next);
			return -ENOMEM;
		}
		next->series[next->count++] = s;
	}
	if (!next)
		return -ENOMEM;
	drop(publish_swap(at, next));
	return 0;
}

/* ------------------------------------------------------------------ samples */

static u64 slot_ns(const struct series *s)
{
	return s->window_ns / (SLOTS - 1);
}

static u32 bucket_of(u64 latency_ns)
{
	double octaves = log2(latency_ns / MS);

	if (latency_ns <= (u64)MS)
		return 0;
	octaves = ceil(octaves * PER_OCTAVE);
	return octaves < BUCKETS - 1 ? (u32)octaves : BUCKETS - 1;
}

static double bound_of(u32 bucket)
{
	return exp2((double)bucket / PER_OCTAVE) * MS;
}

static void note(struct series *s, u32 status, u64 latency_ns, u64 now_ns)
{
	u64 number = now_ns / slot_ns(s);
	struct slot *slot = &s->slot[number % SLOTS];

	lock(s);
	if (slot->number != number)
		*slot = (struct slot){ .number = number };
	if (status) {
		slot->statuses++;
		slot->errors += status >= 500;
	}
	if (latency_ns != MEASURE_NO_LATENCY) {
		slot->latency[bucket_of(latency_ns)]++;
		slot->latencies++;
	}
	unlock(s);
}

void measure_note(struct measures **at, struct bytes domain, u32 status, u64 latency_ns, u64 now_ns)
{
	struct measures *measures;

	publish_read_lock();
	measures = publish_get(at);
	for (size_t i = 0; measures && i < measures->count; i++) {
		struct series *s = measures->series[i];

		if (!s->domain ||
		    (strlen(s->domain) == domain.len && !memcmp(s->domain, domain.at, domain.len)))
			note(s, status, latency_ns, now_ns);
	}
	publish_read_unlock(at);
}

/* ------------------------------------------------------------------ results */

/* The sum of its slots that are not too old. */
static void sum(struct series *s, u64 now_ns, struct slot *ret)
{
	u64 number = now_ns / slot_ns(s);

	*ret = (struct slot){ .number = number };
	lock(s);
	for (int i = 0; i < SLOTS; i++) {
		const struct slot *slot = &s->slot[i];

		if (slot->number > number || slot->number + SLOTS <= number)
			continue;
		ret->statuses += slot->statuses;
		ret->errors += slot->errors;
		ret->latencies += slot->latencies;
		for (u32 k = 0; k < BUCKETS; k++)
			ret->latency[k] += slot->latency[k];
	}
	unlock(s);
}

bool measure_errors(struct measures *measures, size_t index, u64 now_ns, double *ret_share)
{
	struct slot all;

	if (!measures || index >= measures->count)
		return false;
	sum(measures->series[index], now_ns, &all);
	if (!all.statuses)
		return false;
	*ret_share = (double)all.errors / all.statuses;
	return true;
}

bool measure_quantile(struct measures *measures, size_t index, u32 permille, u64 now_ns,
		      double *ret_ns)
{
	double rank, low;
	struct slot all;
	u32 bucket = 0;
	u64 below = 0;

	if (!measures || index >= measures->count)
		return false;
	sum(measures->series[index], now_ns, &all);
	if (!all.latencies)
		return false;
	rank = all.latencies * (permille / 1000.0);
	while (bucket < BUCKETS - 1 && below + all.latency[bucket] < rank)
		below += all.latency[bucket++];
	low = bucket ? bound_of(bucket - 1) : 0;
	*ret_ns = low + (bound_of(bucket) - low) * (rank - below) /
				(all.latency[bucket] ? all.latency[bucket] : 1);
	return true;
}
