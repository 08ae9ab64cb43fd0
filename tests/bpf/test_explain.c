// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_explain.c - explain predicts a packet's verdict: for random states of every kind it
 * is called, then the packet is sent, and action, reason and refusing limit agree.
 */
#include <stdlib.h>

#include "explain_kinds.h"

#define PACKETS 5000
#define LEAST_EACH 50
#define LIMITS_MAX 32
/* What `stretch` is multiplied by, and its burst then; no other limit has that one. */
#define SCALE 2
#define STRETCHED (4 * SCALE)

/* The cases that must occur, each so many times. */
enum seen {
	SEEN_BLOCKED,
	SEEN_BANNED,
	SEEN_OVERRIDDEN,
	SEEN_EXEMPT,
	SEEN_FAILSAFE,
	SEEN_ONE_TOKEN,
	SEEN_OVER_BY_ONE,
	SEEN_SHADOW,
	SEEN_TAGGED,
	SEEN_TWO_ONE_OVER,
	SEEN_LATER_FRAGMENT,
	SEEN_SOFT,
	SEEN_STRETCHED,
	SEEN_PUSH_LIMIT,
	SEEN_PUSH_TAG,
	SEEN_PUSH_NO_NEW,
	SEEN_PUSH_DROP,
	SEEN_COUNT,
};

static const char *const seen_name[SEEN_COUNT] = {
	"blocked",
	"banned",
	"overridden",
	"exempt",
	"failsafe",
	"holding one token",
	"over by one",
	"shadow",
	"tagged",
	"under two limits, one over",
	"later fragment",
	"soft",
	"under a stretched limit",
	"push-down limit",
	"push-down tag",
	"push-down no-new",
	"push-down drop",
};

/* Packets that each limit decided about: drops, and without a rate passes and tags. */
static void read_decided(struct target *t, u64 *ret)
{
	const struct sl_rules *rules = target_image(t)->rules;
	struct sl_limit_stats stats;

	for (u32 i = 0; i < rules->limits_count; i++) {
		target_dp(t)->ops->limit_stats(target_dp(t), rules->limits[i].slot, &stats);
		ret[i] = stats.packets[SL_LV_DROP];
		if (rules->limits[i].by_match)
			ret[i] += stats.packets[SL_LV_PASS] + stats.packets[SL_LV_TAG];
	}
}

static u16 who_decided(struct target *t, const u64 *before)
{
	u64 after[LIMITS_MAX];
	u16 who = SL_NO_LIMIT;

	read_decided(t, after);
	for (u32 i = 0; i < target_image(t)->rules->limits_count; i++)
		if (after[i] != before[i])
			who = i;
	return who;
}

static const char *limit_name(struct target *t, u16 index)
{
	const struct policy *policy = target_policy_of(t);

	return index == SL_NO_LIMIT	     ? "none"
	       : index < policy->limit_count ? policy->limit[index].name
					     : "one of the order's own";
}

/* Sends it; returns 1 and prints both verdicts if the packet met another than predicted. */
static int check(struct target *t, struct sent *s, u32 cpu, const struct predicted *predicted)
{
	u64 decided[LIMITS_MAX];
	struct target_verdict v;
	struct frame frame;
	u16 limit;

	case_frame(&s->spec, &frame);
	read_decided(t, decided);
	assert_int_equal(target_run(t, cpu, s->spec.iface, &frame, &v), 0);
	limit = who_decided(t, decided);
	if (v.action == predicted->answer.action && v.reason == predicted->answer.reason &&
	    limit == (predicted->answer.limit < SL_LIMITS_MAX ? predicted->answer.limit
							      : SL_NO_LIMIT) &&
	    v.marked == !!(predicted->answer.tag & SL_TAG_MARK) &&
	    (!v.marked || v.mark == predicted->answer.mark))
		return 0;
	print_error(
		"%s: %s proto %u dport %u%s after %u on CPU %u: predicted %s %s by %s, was %s %s by %s\n",
		target_name(t), s->src, s->spec.proto, s->spec.dport,
		s->packet.fragment ? " fragment" : "", s->before, cpu,
		action_name(predicted->answer.action), reason_name(predicted->answer.reason),
		limit_name(t, predicted->answer.limit), action_name(v.action),
		reason_name(v.reason), limit_name(t, limit));
	return 1;
}

static const struct explain_limit *predicted_limit(const struct predicted *predicted, u16 index)
{
	for (int i = 0; i < predicted->limits; i++)
		if (predicted->limit[i].index == index)
			return &predicted->limit[i];
	return NULL;
}

static void count_seen(const struct sent *s, const struct predicted *predicted, u32 *seen)
{
	const struct explain_limit *refusing = predicted_limit(predicted, predicted->answer.limit);
	u32 over = 0;

	seen[SEEN_BLOCKED] += predicted->answer.reason == SL_R_BLOCK;
	seen[SEEN_BANNED] += predicted->answer.reason == SL_R_BAN;
	seen[SEEN_EXEMPT] += predicted->answer.reason == SL_R_EXEMPT;
	seen[SEEN_FAILSAFE] += predicted->answer.reason == SL_R_FAILSAFE;
	for (u32 i = 0; i < SL_PUSH_COUNT; i++)
		seen[SEEN_PUSH_LIMIT + i] += predicted->answer.reason == SL_R_PUSH_LIMIT + i &&
					     predicted->answer.step == 6;
	seen[SEEN_LATER_FRAGMENT] += s->packet.fragment == EXPLAIN_LATER;
	for (int i = 0; i < predicted->limits; i++) {
		const struct explain_limit *limit = &predicted->limit[i];

		over += limit->verdict == SL_LV_DROP;
		seen[SEEN_SOFT] += limit->verdict == SL_LV_SOFT;
		seen[SEEN_STRETCHED] += limit->counts && limit->meter[0].capacity == STRETCHED;
		seen[SEEN_OVERRIDDEN] += limit->counts && limit->meter[0].overridden;
		seen[SEEN_SHADOW] += limit->verdict == SL_LV_SHADOW;
		seen[SEEN_TAGGED] += limit->verdict == SL_LV_TAG;
		seen[SEEN_ONE_TOKEN] += limit->counts && !limit->meter[0].leased &&
					limit->meter[0].used + 1 == limit->meter[0].capacity;
	}
	seen[SEEN_TWO_ONE_OVER] += predicted->limits == 2 && over == 1;
	seen[SEEN_OVER_BY_ONE] += refusing && !refusing->meter[0].leased &&
				  refusing->meter[0].used == refusing->meter[0].capacity &&
				  refusing->meter[0].cost == 1;
}

/*
 * A refused packet passes after the predicted wait, and not a nanosecond before. Where that one
 * counts, too, the wait begins anew.
 */
static int check_wait(struct target *t, struct sent *s, u32 cpu, const struct predicted *predicted)
{
	u64 at = target_time(t) + predicted->wait_ns;
	struct target_verdict v;
	struct frame frame;
	int bad = 0;

	for (u32 late = 0; late < 2; late++) {
		if (late && predicted->answer.limit < SL_LIMITS_MAX &&
		    target_image(t)->rules->limits[predicted->answer.limit].count_all) {
			struct predicted again;

			predict(t, &s->packet, cpu, &again);
			at = target_time(t) + again.wait_ns;
		}
		target_set_time(t, at - 1 + late);
		case_frame(&s->spec, &frame);
		assert_int_equal(target_run(t, cpu, s->spec.iface, &frame, &v), 0);
		if (v.drop == !late)
			continue;
		print_error("%s: %s: predicted to pass after %llu ns, %s %s then\n", target_name(t),
			    s->src, predicted->wait_ns, v.drop ? "dropped" : "passed",
			    late ? "at" : "just before");
		bad++;
	}
	return bad;
}

static bool any_meter_any(const struct explain_limit *limit)
{
	for (u32 i = 0; i < limit->meter_count; i++)
		if (limit->meter[i].over)
			return true;
	return false;
}

/* Every limit's bucket is among those predicted, and the verdict follows from their verdicts. */
static int check_limits(struct target *t, const struct sent *s, const struct predicted *predicted)
{
	const struct explain_limit *refusing = predicted_limit(predicted, predicted->answer.limit);

	if (predicted->answer.reason == SL_R_OVER && predicted->answer.action == SL_ACT_DROP &&
	    (!refusing || refusing->verdict != SL_LV_DROP || !any_meter_any(refusing))) {
		print_error("%s: %s: dropped, but %s is said not to refuse\n", target_name(t),
			    s->src, limit_name(t, predicted->answer.limit));
		return 1;
	}
	if (!predicted->wait_ns != (predicted->answer.action != SL_ACT_DROP)) {
		print_error("%s: %s: a wait of %llu ns\n", target_name(t), s->src,
			    predicted->wait_ns);
		return 1;
	}
	return 0;
}

/* As the daemon sets it where resources are free. */
static void stretch(struct target *t)
{
	const struct sl_rules *rules = target_image(t)->rules;
	const struct policy *policy = target_policy_of(t);
	struct dp *dp = target_dp(t);

	for (u32 i = 0; i < policy->limit_count; i++)
		if (!strcmp(policy->limit[i].name, "stretch"))
			dp->elastic[rules->limits[i].slot] = (struct sl_elastic){
				.scale = SCALE * SL_ELASTIC_ONE,
				.inverse = (1ULL << 32) / (SCALE * SL_ELASTIC_ONE),
				.valid_until_ns = ~0ULL,
			};
}

CASE_TEST(explain_is_right)
{
	u32 seen[SEEN_COUNT] = { 0 };
	int bad = 0;

	rng_state = case_seed();
	case_policy(t, "%s", rules);
	stretch(t);
	for (u32 i = 0; i < PACKETS; i++) {
		const struct kind *kind = &kinds[i % COUNT(kinds)];
		static struct predicted predicted;
		struct sent s;
		u32 cpu = rng_below(target_cpus(t));

		make_packet(kind, &s);
		send_before(t, kind, &s);
		predict(t, &s.packet, cpu, &predicted);
		count_seen(&s, &predicted, seen);
		bad += check_limits(t, &s, &predicted);
		bad += check(t, &s, cpu, &predicted);
		if (predicted.answer.action == SL_ACT_DROP && predicted.wait_ns != ~0ULL &&
		    rng_below(2)) {
			predict(t, &s.packet, cpu, &predicted);
			if (predicted.answer.action == SL_ACT_DROP)
				bad += check_wait(t, &s, cpu, &predicted);
		}
		target_set_time(t, target_time(t) + rng_below(1000000000));
		if (i % 64 == 0)
			dp_pushes_expire(target_dp(t), target_mono(t));
	}
	for (u32 i = 0; i < SEEN_COUNT; i++) {
		print_message("%s: %u\n", seen_name[i], seen[i]);
		if (seen[i] < LEAST_EACH) {
			print_error("%s: only %u of %s\n", target_name(t), seen[i], seen_name[i]);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

/* A first fragment that was only explained has not been seen by the later one. */
CASE_TEST(a_first_fragment_is_not_remembered)
{
	const struct frame_spec udp = { .src = "172.22.1.1", .dport = 150, .payload = 30 };
	const struct frame_spec later = { .src = "172.22.1.1", .frag_offset = 100, .payload = 30 };
	struct explain_packet first = {
		.src = addr_of("172.22.1.1"),
		.dst = addr_of(TARGET_LOCAL_V4),
		.length = 64,
		.dport = 9,
		.proto = 17,
		.vlan = SL_VLAN_NONE,
		.fragment = EXPLAIN_FIRST,
	};
	static struct predicted predicted;

	case_policy(t, "%s", rules);
	assert_int_equal(case_send(t, &udp, 9), 5);
	predict(t, &first, 0, &predicted);
	assert_int_equal(predicted.answer.reason, SL_R_NO_MATCH);
	assert_int_equal(case_send(t, &later, 1), 0);
	first.fragment = EXPLAIN_LATER;
	predict(t, &first, 0, &predicted);
	assert_int_equal(predicted.answer.action, SL_ACT_DROP);
}

int main(void)
{
	return case_main("explain");
}
