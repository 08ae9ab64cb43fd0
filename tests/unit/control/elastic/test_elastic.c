/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Elastic limits: the controller by itself, readings, load signals, and the daemon's ticks. */
#include "lib/daemon_rig.h"
#include "control/elastic/elastic.c"

#include <math.h>

#define CEILING 3.0
#define RANGE ((struct elastic_range){ 1, CEILING })
#define TICK 0.1

static struct elastic_input cpu_at(double share)
{
	return (struct elastic_input){ .share = { [ELASTIC_CPU] = share },
				       .threshold = { [ELASTIC_CPU] = 0.7 } };
}

/* Seconds until the scale is at or beyond `to` in its direction, in ticks; at most 60. */
static double seconds_to(struct elastic_control *control, double share, double to)
{
	struct elastic_input in = cpu_at(share);
	bool up = to > control->scale;

	for (int tick = 1; tick <= 600; tick++) {
		double before = fmax(control->scale, 1),
		       after = elastic_step(control, RANGE, &in, TICK);

		/* Smoothly: a fiftieth of the range up, at most a quarter down. */
		assert_true(after - before <= (CEILING - 1) / 50 + 1e-9);
		assert_true(before - after <= (CEILING - 1) / 4 + 1e-9);
		if (up ? after >= to : after <= to)
			return tick * TICK;
	}
	return 60;
}

TEST(test_up_slowly_down_fast)
{
	struct elastic_control control = { .scale = 0 };
	double seconds = seconds_to(&control, 0.1, CEILING);

	if (seconds < 5 || seconds > 6)
		fail_msg("up in %g s", seconds);
	seconds = seconds_to(&control, 0.1, CEILING + 1);
	assert_true(control.scale == CEILING);
	seconds = seconds_to(&control, 0.7, 1);
	if (seconds < 0.3 || seconds > 0.5)
		fail_msg("down in %g s", seconds);
	/* And up again. */
	seconds = seconds_to(&control, 0, CEILING);
	assert_true(seconds >= 5 && seconds <= 6);
}

TEST(test_does_not_flap)
{
	struct elastic_control control = { .scale = 0 };
	struct elastic_input in;
	double most = 1;

	/* Above its threshold each fourth look: it stays down. */
	for (int tick = 0; tick < 1000; tick++) {
		in = cpu_at(tick % 4 ? 0.1 : 0.9);
		most = fmax(most, elastic_step(&control, RANGE, &in, TICK));
	}
	assert_true(most == 1);
	/* Just below: up all the same, five times as slowly. */
	assert_true(seconds_to(&control, 0.69, CEILING) > 25);
	assert_true(control.scale == CEILING);
}

/* Not free: a scale above 1 falls. */
static bool is_free(const struct elastic_input *in)
{
	struct elastic_control control = { .scale = CEILING };

	return elastic_step(&control, RANGE, in, TICK) == CEILING;
}

TEST(test_all_conditions)
{
	struct elastic_input in = { .share = { 0.2, 0.2, 0.2 }, .threshold = { 0.5, 0.5, 0.5 } };

	assert_true(is_free(&in));
	for (int i = 0; i < ELASTIC_RESOURCE_COUNT; i++) {
		in.share[i] = 0.5;
		assert_false(is_free(&in));
		in.share[i] = LOAD_UNKNOWN;
		assert_false(is_free(&in));
		/* Not configured: any value is ignored. */
		in.threshold[i] = 0;
		assert_true(is_free(&in));
		in.threshold[i] = 0.5;
		in.share[i] = 0.2;
	}
}

TEST(test_odd_times)
{
	struct elastic_control control = { .scale = 1, .calm_s = 10 };
	struct elastic_input in = cpu_at(0.1);

	/* A daemon that slept for a minute continues from its last scale. */
	assert_true(elastic_step(&control, RANGE, &in, 60) < 1.1);
	assert_true(elastic_step(&control, RANGE, &in, 0) < 1.1);
	control.scale = CEILING;
	/* A lower ceiling holds at once. */
	assert_true(elastic_step(&control, (struct elastic_range){ 1, 1.5 }, &in, TICK) == 1.5);
	in = cpu_at(1);
	assert_true(elastic_step(&control, (struct elastic_range){ 1, 1.5 }, &in, 60) == 1);
}

/* ------------------------------------------------------------------ below 1 */

#define SHRINKS ((struct elastic_range){ 0.05, 2 })

TEST(test_shrinks)
{
	struct elastic_control control = { .scale = 0 };
	struct elastic_input in = cpu_at(0.71);
	double before = 1, after;

	/* Just above its threshold: slowly. Far above: a factor of e^-0.7 at once, then 20 % a
	 * second. */
	for (int tick = 0; tick < 10; tick++)
		after = elastic_step(&control, SHRINKS, &in, TICK);
	assert_true(after < 1 && after > 0.98);
	in = cpu_at(100);
	after = elastic_step(&control, SHRINKS, &in, TICK);
	assert_true(after > 0.47 && after < 0.51);
	for (int tick = 0; tick < 10; tick++, before = after)
		after = elastic_step(&control, SHRINKS, &in, TICK);
	assert_true(after > 0.38 && after < 0.42);
	for (int tick = 0; tick < 300; tick++)
		after = elastic_step(&control, SHRINKS, &in, TICK);
	assert_true(after == SHRINKS.floor);
	/* Unknown is no reason to stay down: at its rate in five seconds, and no further. */
	in = cpu_at(LOAD_UNKNOWN);
	for (int tick = 0; tick < 49; tick++)
		after = elastic_step(&control, SHRINKS, &in, TICK);
	assert_true(after > 0.9 && after < 1);
	for (int tick = 0; tick < 50; tick++)
		after = elastic_step(&control, SHRINKS, &in, TICK);
	assert_true(after == 1);
	/* A long sleep is a step of 0.2 s. */
	in = cpu_at(0.9);
	after = elastic_step(&control, SHRINKS, &in, 60);
	assert_true(after > 0.8 && after < 1);
	/* Free: up to 1, then as without a floor to the ceiling. */
	in = cpu_at(0.1);
	for (int tick = 0; tick < 100; tick++) {
		before = control.scale;
		after = elastic_step(&control, SHRINKS, &in, TICK);
		assert_true(after >= before);
	}
	assert_true(after == SHRINKS.ceiling);
	in = cpu_at(0.9);
	elastic_step(&control, SHRINKS, &in, 0.4);
	assert_true(control.scale == 1);
}

/*
 * A server of 100 requests/s behind a limit of 400, offered more than all: what waits grows by the
 * excess, and the signal is the time that requests waited which are done now, half a second late.
 */
TEST(test_settles_at_the_capacity)
{
	static const double targets[] = { 0.2, 0.4, 0.8 };

	for (size_t i = 0; i < COUNT(targets); i++) {
		struct elastic_control control = { .scale = 0 };
		double queue = 0, late[5] = { 0 }, served = 0, longest = 0;

		for (int tick = 0; tick < 900; tick++) {
			double scale, wait = queue / 100;
			struct elastic_input in = { .share = { late[tick % 5] },
						    .threshold = { targets[i] } };

			late[tick % 5] = wait;
			scale = elastic_step(&control, SHRINKS, &in, TICK);
			queue += 400 * scale * TICK;
			if (tick >= 300) {
				served += fmin(queue, 100 * TICK);
				longest = fmax(longest, wait);
			}
			queue = fmax(0, queue - 100 * TICK);
		}
		if (served < 0.97 * 100 * 60 || longest > 2 * targets[i] + 0.3)
			fail_msg("target %g: served %g of 6000, waited up to %g s", targets[i],
				 served, longest);
	}
}

TEST(test_values)
{
	for (double scale = 0.0101; scale <= 100; scale += scale < 1 ? 0.0137 : 0.37) {
		struct sl_elastic value = elastic_value(scale, 7);

		assert_true(value.scale <= scale * SL_ELASTIC_ONE);
		assert_true(value.scale + 1 > scale * SL_ELASTIC_ONE);
		/* Never more than the scale allows, and within 0.2% of it. */
		assert_true((u64)value.scale * value.inverse >= 1ULL << 32);
		assert_true((double)value.scale * value.inverse <= 4294967296.0 * 1.002);
		assert_int_equal(value.valid_until_ns, 7);
	}
	assert_int_equal(elastic_value(1, 0).scale, SL_ELASTIC_ONE);
	assert_int_equal(elastic_value(1, 0).inverse, SL_ELASTIC_ONE);
	assert_int_equal(elastic_value(0.5, 0).scale, SL_ELASTIC_ONE / 2);
	assert_int_equal(elastic_value(0, 0).scale, SL_SCALE_MIN);
}

/* ------------------------------------------------------------------ readings */

TEST(test_cpu_times)
{
	struct cpu_times a, b;

	assert_true(cpu_times_parse("cpu  100 0 50 800 50 0 0 0 0 0\n", &a));
	assert_int_equal(a.total, 1000);
	assert_int_equal(a.busy, 150);
	/* Stolen time is time that no other process can have. */
	assert_true(cpu_times_parse("cpu  110 5 55 860 60 1 2 7 0 0\n", &b));
	assert_true(fabs(cpu_times_share(&a, &b, -1) - 0.3) < 1e-9);
	assert_true(cpu_times_share(&a, &a, 0.25) == 0.25);
	assert_true(cpu_times_share(&b, &a, 0.25) == 0.25);
	assert_true(cpu_times_parse("cpu  100 0 50 800\n", &a));
	assert_false(cpu_times_parse("cpu0 x", &a));
	assert_false(cpu_times_parse("intr 1 2 3 4", &a));
	assert_false(cpu_times_parse("", &a));
}

RIG_TEST(test_links)
{
	static struct load load;
	u64 now = clock_mono_ns();

	rig_open(&rig, "limits: [{name: all, rate: 10 packets/s, burst: 10}]\n");
	/* No such interface: its speed is not known. */
	strcpy(rig.d->packets.iface[0].name, "no-such-0");
	rig.d->packets.iface[0].at.ifindex = 7;
	load_look(&load, &rig.d->packets, now);
	assert_true(load.link[0].share == 0 && !load.link[0].speed_bps);
	rig.d->packets.iface[0].attached = true;
	load_look(&load, &rig.d->packets, now += SL_NS_PER_SEC);
	assert_true(load.link[0].share == LOAD_UNKNOWN);
	assert_false(load.link[0].speed_known);
	/* Passed or dropped, 60 bytes and 24 on the wire: 672000 bits in a tenth of a second. */
	rig_passed(&rig, 1, 1000, now);
	load_look(&load, &rig.d->packets, now += SL_NS_PER_SEC / 10);
	assert_true(fabs(load.link[0].share - 6.72e6 / 1e10) < 1e-9);
	load_look(&load, &rig.d->packets, now += SL_NS_PER_SEC / 10);
	assert_true(load.link[0].share == 0);
	/* Another interface by that name begins anew. */
	rig.d->packets.iface[0].at.ifindex = 8;
	load_look(&load, &rig.d->packets, now += SL_NS_PER_SEC / 10);
	assert_true(load.link[0].share == LOAD_UNKNOWN);
	assert_int_equal(load_link_speed("no-such-0"), 0);
	rig.d->packets.iface[0].attached = false;
}

/* ------------------------------------------------------------------ load signals and ticks */

#define TWO                                                                                        \
	"limits: [{name: all, rate: 10 packets/s, burst: 10, accounting: exact}, "                 \
	"{name: plain, rate: 10 packets/s, match: {src: 203.0.113.0/24}}]\n"

/* Limit "all" up to three times its rate while load signal "load" is below 60%. */
static void make_elastic(struct rig *rig)
{
	struct throttle_def *throttle =
		&policy_find_limit(rig->d->running.policy, "all")->terms.throttle;

	*throttle = (struct throttle_def){ .kind = THROTTLE_ELASTIC,
					   .ceiling_percent = 300,
					   .load_signal_percent = 60,
					   .load_signal = "load" };
	elastic_watch(&rig->d->scales);
	assert_non_null(rig->d->scales.elastic);
}

#define SET(value) "load-signal set {'name':'load','value':" value "}"

RIG_TEST(test_signals)
{
	static const char *const bad[] = {
		SET("-1"),
		SET("'x'"),
		SET("1e7"),
		SET("null"),
		SET("0.5,'for':5"),
		SET("0.5,'for':'0s'"),
		SET("0.5,'for':'2d'"),
		SET("0.5,'for':'x'"),
		SET("0.5,'fro':'1s'"),
		"load-signal set {'name':'load'}",
		"load-signal set {'value':1}",
		"load-signal set {'name':'other','value':1}",
	};
	double value;
	u64 now;

	rig_open(&rig, TWO);
	rig.d->base = rig.d->scales.base = event_base_new();
	rig_refused(&rig, &rig_root, SET("0.5"), "no elastic limit");
	make_elastic(&rig);
	for (size_t i = 0; i < COUNT(bad); i++)
		rig_refused(&rig, &rig_root, bad[i], "");
	rig_refused(&rig, &rig_reader, SET("0.5"), "control.group");
	assert_false(load_signal_value(&rig.d->scales, "load", clock_mono_ns(), &value));
	rig_do(&rig, SET("0.5"));
	now = clock_mono_ns();
	assert_true(load_signal_value(&rig.d->scales, "load", now + 9 * SL_NS_PER_SEC, &value));
	assert_true(value == 0.5);
	assert_false(load_signal_value(&rig.d->scales, "load", now + 10 * SL_NS_PER_SEC, &value));
	rig_do(&rig, SET("2,'for':'1h'"));
	assert_true(load_signal_value(&rig.d->scales, "load", now + 3599 * SL_NS_PER_SEC, &value));
	assert_true(value == 2);
	assert_false(load_signal_value(&rig.d->scales, "", now, &value));
	/* A name that rules no longer use is replaced by the next. */
	strcpy(policy_find_limit(rig.d->running.policy, "all")->terms.throttle.load_signal,
	       "other");
	rig_refused(&rig, &rig_root, SET("0.5"), "no elastic limit");
	rig_do(&rig, "load-signal set {'name':'other','value':1}");
	assert_int_equal(rig.d->scales.load_signal_count, 1);
	rig_do(&rig, "load-signal list");
	elastic_free(&rig.d->scales);
	event_base_free(rig.d->base);
}

static double scale_of(struct rig *rig, const char *name)
{
	struct limit_view view[SL_METER_FURTHER];
	size_t count = view_limits(rig->d->running.policy, rig->d->running.image, view);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(view[i].name, name))
			return elastic_scale(&rig->d->scales, view[i].slot);
	return -1;
}

static const char *buckets_of(struct rig *rig, char *buf, size_t size)
{
	struct limit_view view[SL_METER_FURTHER];

	view_limits(rig->d->running.policy, rig->d->running.image, view);
	return elastic_words(&rig->d->scales, view[0].def, view[0].slot, buf, size);
}

RIG_TEST(test_ticks)
{
	u64 now = clock_mono_ns();
	struct limit_view view[SL_METER_FURTHER];
	char words[128];
	u32 slot;

	rig_open(&rig, TWO);
	rig.d->base = rig.d->scales.base = event_base_new();
	make_elastic(&rig);
	view_limits(rig.d->running.policy, rig.d->running.image, view);
	slot = view[0].slot;
	assert_string_equal(buckets_of(&rig, words, sizeof(words)), "not looked at yet");
	for (int i = 0; i < 20; i++)
		elastic_tick(&rig.d->scales, now += ELASTIC_TICK_NS);
	assert_true(scale_of(&rig, "all") == 1);
	assert_string_equal(buckets_of(&rig, words, sizeof(words)), "load signal load not set");
	rig_do(&rig, SET("0.1,'for':'1h'"));
	for (int i = 0; i < 70; i++)
		elastic_tick(&rig.d->scales, now += ELASTIC_TICK_NS);
	assert_true(scale_of(&rig, "all") == 3);
	assert_true(scale_of(&rig, "plain") == 1);
	assert_int_equal(rig.dp->elastic[slot].scale, 3 * SL_ELASTIC_ONE);
	assert_int_equal(rig.dp->elastic[slot].valid_until_ns, now + ELASTIC_VALID_NS);
	assert_string_equal(buckets_of(&rig, words, sizeof(words)), "free");
	rig_do(&rig, SET("0.61,'for':'1h'"));
	for (int i = 0; i < 5; i++)
		elastic_tick(&rig.d->scales, now += ELASTIC_TICK_NS);
	assert_true(scale_of(&rig, "all") == 1);
	assert_string_equal(buckets_of(&rig, words, sizeof(words)), "load signal load 61% of 60%");
	/* No longer elastic: at its limit, and the ticks end. */
	policy_find_limit(rig.d->running.policy, "all")->terms.throttle.kind = THROTTLE_HARD;
	elastic_watch(&rig.d->scales);
	assert_false(event_pending(rig.d->scales.elastic->timer, EV_TIMEOUT, NULL));
	elastic_free(&rig.d->scales);
	event_base_free(rig.d->base);
}

TEST_MAIN
