// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ban.c - the row of bans in the request tier: see ban.h. */
#include "limiter/ban.h"

#include "limiter/algorithm_private.h"

static int ban_compile(const struct rate *rate, u64 burst, u32 max_frame, struct sl_params *p,
		       const char **ret_reason)
{
	if (!rate->period_ns || rate->period_ns > PERIOD_MAX_NS)
		return params_refuse("a ban's time is 0 or above 2.2 years", ret_reason);
	p->capacity = 1;
	p->window_ns = rate->period_ns;
	return 0;
}

u64 ban_length_ns(const struct spec *spec, u32 level)
{
	u64 length = spec->params.window_ns, most = spec->ban_max_ns,
	    factor = spec->ban_factor_percent;

	for (; level && length < most; level--)
		length = length / 100 * factor + length % 100 * factor / 100;
	return length < most ? length : most;
}

/* How often since its end a ban's length has passed. */
static u64 behaved(const struct spec *spec, u64 state, u64 mono_ns)
{
	u64 until = ban_until_ns(state);

	return mono_ns < until ? 0 : (mono_ns - until) / ban_length_ns(spec, ban_level(state));
}

u64 ban_next(const struct spec *spec, u64 last, u64 mono_ns)
{
	u64 level = last ? ban_level(last) + 1 : 0, less;

	if (last) {
		less = behaved(spec, last, mono_ns);
		level = level > less ? level - less : 0;
	}
	/* A level that lasts no longer than the one before would only take longer to be
	 * forgotten. */
	while (level && (level >= BAN_LEVELS ||
			 ban_length_ns(spec, (u32)level) == ban_length_ns(spec, (u32)level - 1)))
		level--;
	return ban_state(mono_ns + ban_length_ns(spec, (u32)level), (u32)level);
}

/* The level has declined to nothing: the next ban is a first one. */
static bool ban_expired(const struct spec *spec, u64 state, struct sl_now now)
{
	return !state || behaved(spec, state, now.mono_ns) > ban_level(state);
}

/* A ban in force stays in a full table; one that is over and only remembered may be evicted. */
static u32 ban_utilization(const struct spec *spec, u64 state, struct sl_now now)
{
	if (ban_left_ns(state, now.mono_ns))
		return 255;
	return ban_expired(spec, state, now) ? 0 : 126;
}

static struct sl_result ban_look(const struct spec_view *view, u64 state, struct sl_now now)
{
	return looked(state, ban_left_ns(state, now.mono_ns));
}

static struct sl_result ban_charge(const struct spec_view *view, u64 state, struct sl_now now,
				   u64 cost)
{
	return ban_look(view, state, now);
}

static u64 ban_keep(const struct spec_view *view, u64 state, struct sl_now now, u64 cost)
{
	return state;
}

static u64 ban_keep_then(const struct spec_view *view, u64 state, struct sl_now now,
			 struct sl_now then, u64 cost)
{
	return state;
}

static u64 ban_nothing(const struct spec_view *view, u64 state, struct sl_now now)
{
	return 0;
}

/* A live change holds from the next ban on. */
static u64 ban_convert(const struct spec *from, const struct spec *to, u64 state, struct sl_now now)
{
	return state;
}

const struct algorithm algorithm_ban = {
	.percpu_note = "a ban is not divided among CPUs",
	.compile = ban_compile,
	.charge = ban_charge,
	.look = ban_look,
	.force = ban_keep,
	.report = ban_keep_then,
	.refund = ban_keep,
	.uncommit = ban_keep_then,
	.remaining = ban_nothing,
	.reset_ns = ban_nothing,
	.utilization = ban_utilization,
	.expired = ban_expired,
	.convert = ban_convert,
};
