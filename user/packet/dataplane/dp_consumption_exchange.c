// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dp_consumption_exchange.c - see dp_consumption.h: what is published, and what other nodes'
 * reports are charged to.
 *
 * Admitted units are a debt, also beyond the limit. What was refused elsewhere, where that counts,
 * fills a window up to its limit, as a refusal here does. Of a bucket the last refusal shows that
 * it was empty at that time. That alone would not keep out who goes on: until the next report the
 * bucket leaks for up to two sync intervals, and its refusals elsewhere would not count against
 * that. So their units are added, too, up to a debt of two intervals beyond the limit; all but one,
 * for a refusal within the rate fills only what had leaked.
 */
#include <stdlib.h>

#include "packet/dataplane/dp_consumption_private.h"

/* A source that counts slowly is published at least this often. */
#define REPORT_AT_LEAST_NS SL_NS_PER_SEC
/* An older refusal keeps nobody out. */
#define REFUSED_AT_MOST_NS (30 * SL_NS_PER_SEC)

/* ------------------------------------------------------------------ publishing */

struct due {
	u64 at; /* in u->source */
	u32 share;
};

static int by_share(const void *a, const void *b)
{
	const struct due *x = a, *y = b;

	return x->share > y->share ? -1 : x->share < y->share;
}

/* Units of the meters that refused, all together. */
static u64 refused_units(const struct source *s)
{
	u64 sum = 0;

	for (u32 i = 0; i < RATES_MAX; i++)
		sum += s->debt[i].refused;
	return sum;
}

static bool is_due(const struct dp_consumption *u, const struct source *s, u64 refused, u64 now_ns)
{
	if (!s->key || s->group >= u->groups)
		return false;
	return refused || s->unpublished >= u->group[s->group].least ||
	       (s->unpublished && now_ns - s->since_ns >= REPORT_AT_LEAST_NS);
}

/*
 * The entries of a source; returns how many. What it was admitted goes with what it was refused:
 * the bucket that was empty had that, too.
 */
static u32 report_source(struct source *s, struct dp_consumption_report *ret, struct sl_now now)
{
	u64 hash = s->key & SL_KEY_HASH_MASK;
	u32 count = 0;

	if (s->unpublished)
		ret[count++] = (struct dp_consumption_report){ s->group, hash, s->unpublished,
							       s->since_ns, now.mono_ns };
	s->unpublished = 0;
	for (u32 i = 0; i < RATES_MAX; i++) {
		struct debt *d = &s->debt[i];

		if (d->refused && now.mono_ns - d->refused_ns < REFUSED_AT_MOST_NS)
			ret[count++] =
				(struct dp_consumption_report){ consumption_refusals(s->group, i),
								hash, d->refused, d->refused_ns,
								now.mono_ns };
		d->refused = 0;
	}
	return count;
}

u32 dp_consumption_take(struct dp_consumption *u, struct dp_consumption_report *ret, u32 max,
			struct sl_now now)
{
	struct due *due = malloc((u->stats.known + 1) * sizeof(*due));
	u32 count = 0, taken = 0;

	for (u64 i = 0; due && u->groups && i < u->sources; i++) {
		const struct source *s = &u->source[i];
		u64 refused = s->key ? refused_units(s) : 0;

		if (is_due(u, s, refused, now.mono_ns))
			due[count++] =
				(struct due){ i, consumption_share(&u->group[s->group],
								   s->unpublished + refused) };
	}
	if (count > max / (1 + RATES_MAX))
		qsort(due, count, sizeof(*due), by_share);
	for (u32 i = 0; i < count && taken + 1 + RATES_MAX <= max; i++)
		taken += report_source(&u->source[due[i].at], &ret[taken], now);
	u->stats.published += taken;
	free(due);
	return taken;
}

/* ------------------------------------------------------------------ charging */

/* A reported source is tracked from then on, if there is room. */
static struct source *source_received(struct dp_consumption *u, const struct group *g, u64 hash,
				      u64 units, u64 now_ns)
{
	u64 key = sl_key(g->slot, hash);
	struct source *s = consumption_find_source(u, key);

	if (!s->key)
		s = consumption_add_source(u, key, consumption_share(g, units), now_ns);
	if (s)
		s->received_ns = now_ns;
	return s;
}

/* What other nodes admitted, to a bucket that was full for a while: see look_at_debts(). */
static void use_idle(struct debt *debt, struct dp_charge *charge)
{
	u64 use = debt->idle < charge->ticks ? debt->idle : charge->ticks;

	debt->idle -= use;
	charge->ticks -= use;
	debt->charged += charge->ticks;
}

static void charge_refused(struct dp_consumption *u, u32 meter, const struct sl_params *p,
			   struct dp_charge *charge)
{
	u64 one = u->of_bytes[meter] ? SL_FRAME_LARGE : 1;

	charge->refused = true;
	charge->ticks = consumption_ticks(p, charge->units > one ? charge->units - one : 0);
	charge->beyond_ns = 2 * u->sync_ns;
}

void dp_consumption_charge(struct dp_consumption *u, const struct dp_consumption_report *report,
			   struct sl_now now)
{
	u64 offset_ns = now.utc_ns - now.mono_ns, hash = report->hash & SL_KEY_HASH_MASK;
	u32 group = report->group % GROUPS_MAX, refused = report->group / GROUPS_MAX;
	const struct group *g = &u->group[group];
	struct source *s;

	if (group >= u->groups || refused > g->meters || (refused && !g->refusals[refused - 1]))
		return;
	s = source_received(u, g, hash, report->units, now.mono_ns);
	for (u32 i = refused ? refused - 1 : 0; i < (refused ? refused : g->meters); i++) {
		struct dp_charge charge = {
			.units = report->units,
			.since = { report->since_ns, report->since_ns + offset_ns },
			.until = { report->until_ns, report->until_ns + offset_ns }
		};
		struct dp_bucket bucket;

		consumption_bucket(u, g, i, hash, now, &bucket);
		charge.ticks = consumption_ticks(&bucket.params, report->units);
		charge.beyond_ns = 3 * u->sync_ns * u->nodes;
		if (bucket.params.tau / SL_TICKS_PER_NS > charge.beyond_ns)
			charge.beyond_ns = bucket.params.tau / SL_TICKS_PER_NS;
		if (refused)
			charge_refused(u, g->meter[i], &bucket.params, &charge);
		else if (s && sl_is_bucket(&bucket.params)) {
			use_idle(&s->debt[i], &charge);
			charge.since = now;
		}
		if (refused && s)
			s->debt[i].filled = true;
		dp_bucket_charge(u->dp, &bucket, &charge, now);
	}
	u->stats.charged++;
}
