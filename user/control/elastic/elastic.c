// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* elastic.c - see elastic.h. */
#include "control/elastic/elastic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "control/elastic/scales.h"
#include "packet/host/load.h"
#include "control/elastic/http_elastic.h"
#include "control/elastic/load_signal.h"
#include "control/elastic/load_source.h"
#include "packet/host/view.h"
#include "lib/log.h"

struct elastic_limit {
	u32 tick; /* of the last step; a gap means that the limit_id has a new limit */
	struct elastic_control control;
	struct elastic_input input;
};

struct elastic {
	struct event *timer;
	u32 tick;
	u64 at_ns; /* of the last tick; 0: none yet */
	struct load load;
	struct elastic_limit limit[SL_LIMIT_IDS]; /* by the first meter's limit_id */
};

/* ------------------------------------------------------------------ the controller */

/* The largest ratio of a known resource's use to its threshold; 1 and above means not free. */
static double worst_of(const struct elastic_input *input, bool *ret_unknown)
{
	double worst = 0;

	*ret_unknown = false;
	for (int i = 0; i < ELASTIC_RESOURCE_COUNT; i++) {
		if (input->threshold[i] <= 0)
			continue;
		*ret_unknown |= input->share[i] < 0;
		worst = fmax(worst, input->share[i] / input->threshold[i]);
	}
	return worst;
}

static double bounded(double value, double least, double most)
{
	return fmax(least, fmin(value, most));
}

/* At 1 and above: up while all is free, down to 1 at once. */
static void grow(struct elastic_control *control, double range, double worst, double seconds)
{
	double pace =
		fmin(seconds, ELASTIC_RISE_STEP_S) * (worst > ELASTIC_NEAR ? ELASTIC_NEAR_PACE : 1);

	if (worst >= 1) {
		control->calm_s = 0;
		control->scale = fmax(1, control->scale - range * seconds / ELASTIC_FALL_S);
	} else if (control->calm_s >= ELASTIC_CALM_S) {
		control->scale += range * pace / ELASTIC_RISE_S;
	} else {
		control->calm_s += pace;
	}
}

static void shrink(struct elastic_control *control, double worst, double seconds)
{
	double excess = bounded(log(fmax(worst, 1e-9)), -ELASTIC_EXCESS_MAX, ELASTIC_EXCESS_MAX);
	double change = ELASTIC_SHRINK_PER_S * excess * fmin(seconds, ELASTIC_RISE_STEP_S) +
			ELASTIC_SHRINK_GAIN * (excess - control->excess);

	control->scale = fmin(1, control->scale * exp(-change));
	control->excess = excess;
}

double elastic_step(struct elastic_control *control, struct elastic_range range,
		    const struct elastic_input *input, double seconds)
{
	bool unknown, shrinks;
	double worst = worst_of(input, &unknown);

	if (control->scale <= 0)
		control->scale = 1;
	shrinks = range.floor < 1 && (control->scale < 1 || (control->scale <= 1 && worst >= 1));
	if (shrinks && unknown && worst < 1) {
		control->excess = 0;
		control->scale +=
			(1 - range.floor) * fmin(seconds, ELASTIC_RISE_STEP_S) / ELASTIC_RISE_S;
		control->scale = fmin(1, control->scale);
	} else if (shrinks) {
		control->calm_s = 0;
		shrink(control, worst, seconds);
	} else {
		control->excess = 0;
		grow(control, range.ceiling - 1, unknown ? fmax(worst, 1) : worst, seconds);
	}
	control->scale = bounded(control->scale, range.floor, range.ceiling);
	return control->scale;
}

struct elastic_range elastic_range_of(const struct throttle_def *throttle)
{
	u32 floor_percent = throttle->floor_percent ? throttle->floor_percent : 100;

	return (struct elastic_range){ floor_percent / 100.0, throttle->ceiling_percent / 100.0 };
}

struct sl_elastic elastic_value(double scale, u64 valid_until_ns)
{
	u32 fixed = (u32)(scale * SL_ELASTIC_ONE);

	if (fixed < SL_SCALE_MIN)
		fixed = SL_SCALE_MIN;
	return (struct sl_elastic){
		.scale = fixed,
		/* Rounded up: times between packets are multiplied by it. */
		.inverse = (u32)(((1ULL << 32) + fixed - 1) / fixed),
		.valid_until_ns = valid_until_ns,
	};
}

/* ------------------------------------------------------------------ the daemon's part */

static bool is_elastic(const struct limit_view *view)
{
	return view->def && view->def->terms.throttle.kind == THROTTLE_ELASTIC &&
	       view->limit->mode != SL_MODE_OFF;
}

/* The busiest attached interface, or with a limit the busiest of its interfaces. */
static double link_share(const struct scales *scales, const struct load *load,
			 const struct limit_def *def)
{
	double most = LOAD_UNKNOWN;

	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		bool seen = !def || !def->match.interface_count;

		for (size_t i = 0; !seen && i < def->match.interface_count; i++)
			seen |= !strcmp(def->match.interface[i],
					scales->running->packets->iface[slot].name);
		if (seen && scales->running->packets->iface[slot].attached &&
		    load->link[slot].share > most)
			most = load->link[slot].share;
	}
	return most;
}

static void read_input(const struct scales *scales, const struct throttle_def *throttle,
		       double link, u64 now_ns, struct elastic_input *ret)
{
	double value;

	*ret = (struct elastic_input){
		.threshold =
			{
				[ELASTIC_CPU] = throttle->cpu_percent / 100.0,
				[ELASTIC_LINK] = throttle->link_percent / 100.0,
				[ELASTIC_LOAD_SIGNAL] =
					throttle->load_signal[0] ? throttle->load_signal_percent / 100.0 : 0,
			},
		.share =
			{
				[ELASTIC_CPU] = scales->elastic->load.cpu_share,
				[ELASTIC_LINK] = link,
				[ELASTIC_LOAD_SIGNAL] =
					load_signal_value(scales, throttle->load_signal, now_ns, &value)
						? value
						: LOAD_UNKNOWN,
			},
	};
}

/*
 * The scale and its inverse are one 64-bit value. The deadline is written after it; the other order
 * would bring an expired scale back in force.
 */
static void publish(struct scales *scales, u32 slot, struct sl_elastic value)
{
	struct sl_elastic *all = scales->running->packets->dp->elastic;
	u64 word, before;

	memcpy(&word, &value, sizeof(word));
	before = __atomic_exchange_n((u64 *)(void *)&all[slot], word, __ATOMIC_ACQ_REL);
	__atomic_store_n(&all[slot].valid_until_ns, value.valid_until_ns, __ATOMIC_RELEASE);
	if (word != before)
		dp_epoch_raise(scales->running->packets->dp);
}

void elastic_tick(struct scales *scales, u64 now_ns)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(scales->running->policy, scales->running->image, view);
	struct elastic *elastic = scales->elastic;
	double seconds = elastic->at_ns ? (double)(now_ns - elastic->at_ns) / SL_NS_PER_SEC : 0;

	load_look(&elastic->load, scales->running->packets, now_ns);
	load_sources_tick(scales, now_ns);
	elastic->tick++;
	elastic->at_ns = now_ns;
	for (size_t i = 0; i < count; i++) {
		struct elastic_limit *limit = &elastic->limit[view[i].slot];
		const struct limit_def *def = view[i].def;

		if (!is_elastic(&view[i]))
			continue;
		if (limit->tick + 1 != elastic->tick)
			memset(limit, 0, sizeof(*limit));
		limit->tick = elastic->tick;
		read_input(scales, &def->terms.throttle,
			   link_share(scales, &scales->elastic->load, def), now_ns, &limit->input);
		elastic_step(&limit->control, elastic_range_of(&def->terms.throttle), &limit->input,
			     seconds);
		publish(scales, view[i].slot,
			elastic_value(limit->control.scale, now_ns + ELASTIC_VALID_NS));
	}
	http_elastic_tick(scales, now_ns, seconds);
}

void elastic_look(const struct scales *scales, const struct throttle_def *throttle, u64 now_ns,
		  struct elastic_input *ret)
{
	read_input(scales, throttle, link_share(scales, &scales->elastic->load, NULL), now_ns, ret);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	elastic_tick(arg, clock_mono_ns());
}

static bool any_elastic(const struct scales *scales)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(scales->running->policy, scales->running->image, view);

	for (size_t i = 0; i < count; i++)
		if (is_elastic(&view[i]))
			return true;
	return false;
}

void elastic_watch(struct scales *scales)
{
	struct timeval period = { .tv_usec = ELASTIC_TICK_NS / 1000 };

	load_sources_watch(scales);
	if (!any_elastic(scales) && !http_elastic_any(scales)) {
		if (scales->elastic && scales->elastic->timer)
			event_del(scales->elastic->timer);
		return;
	}
	if (!scales->elastic)
		scales->elastic = calloc(1, sizeof(*scales->elastic));
	if (scales->elastic && !scales->elastic->timer && scales->base)
		scales->elastic->timer = event_new(scales->base, -1, EV_PERSIST, on_tick, scales);
	if (!scales->elastic || !scales->elastic->timer)
		log_error("elastic limits: out of memory, they stay at their configured rates");
	else if (!event_pending(scales->elastic->timer, EV_TIMEOUT, NULL))
		event_add(scales->elastic->timer, &period);
}

void elastic_free(struct scales *scales)
{
	if (scales->elastic && scales->elastic->timer)
		event_free(scales->elastic->timer);
	free(scales->elastic);
	scales->elastic = NULL;
	http_elastic_free(scales);
	scales->sources_for = 0;
	free(scales->signal);
	scales->signal = NULL;
	scales->load_signal_count = 0;
}

/* ------------------------------------------------------------------ output */

static const struct elastic_limit *stepped(const struct scales *scales, u32 slot)
{
	const struct elastic_limit *limit = scales->elastic ? &scales->elastic->limit[slot] : NULL;

	return limit && limit->tick && limit->tick == scales->elastic->tick ? limit : NULL;
}

double elastic_scale(const struct scales *scales, u32 slot)
{
	const struct elastic_limit *limit = stepped(scales, slot);

	return limit && limit->control.scale > 0 ? limit->control.scale : 1;
}

const char *elastic_words(const struct scales *scales, const struct limit_def *def, u32 slot,
			  char *buf, size_t size)
{
	static const char *const name[] = { "cpu", "link", "load signal " };
	const struct elastic_limit *limit = stepped(scales, slot);
	size_t used = 0;

	snprintf(buf, size, "%s", limit ? "free" : "not looked at yet");
	for (int i = 0; limit && i < ELASTIC_RESOURCE_COUNT && used < size; i++) {
		double share = limit->input.share[i], threshold = limit->input.threshold[i];

		if (threshold <= 0 || (share >= 0 && share < threshold))
			continue;
		used += (size_t)snprintf(
			buf + used, size - used, "%s%s%s ", used ? ", " : "", name[i],
			i == ELASTIC_LOAD_SIGNAL ? def->terms.throttle.load_signal : "");
		if (used >= size)
			break;
		if (share < 0)
			used += (size_t)snprintf(buf + used, size - used, "not %s",
						 i == ELASTIC_LOAD_SIGNAL ? "set" : "known");
		else
			used += (size_t)snprintf(buf + used, size - used, "%.0f%% of %.0f%%",
						 share * 100, threshold * 100);
	}
	return buf;
}
