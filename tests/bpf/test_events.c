// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_events.c - events of the data path: of dropped packets, of a source's first refusal by a
 * limit, of a ban; none of packets that pass; at most so many in a turn, and the others counted.
 */
#include "lib/case.h"

#define TURN_NS SL_BIT(SL_RING_TURN_BITS)
#define EVENTS_MAX 4096

static const struct frame_spec over = { .src = "198.51.100.1", .dst = "192.0.2.1", .dport = 80 };
static const struct frame_spec innocent = { .src = "198.51.100.2",
					    .dst = "192.0.2.1",
					    .dport = 80 };

static struct sl_event event[EVENTS_MAX];
static u32 count, of_kind[SL_EVENT_KINDS];

static void take(void *arg, const struct sl_event *one)
{
	assert_in_range(count, 0, EVENTS_MAX - 1);
	assert_in_range(one->kind, 0, SL_EVENT_KINDS - 1);
	event[count++] = *one;
	of_kind[one->kind]++;
}

static u32 look(struct target *t)
{
	struct dp *dp = target_dp(t);

	count = 0;
	memset(of_kind, 0, sizeof(of_kind));
	assert_true(dp->ops->events(dp, take, NULL) >= 0);
	return count;
}

static void set_switch(struct target *t, u32 per_turn)
{
	struct dp *dp = target_dp(t);

	dp->event_switch->per_turn = per_turn;
	look(t);
}

static const struct sl_event *find(enum sl_event_kind kind)
{
	for (u32 i = 0; i < count; i++)
		if (event[i].kind == kind)
			return &event[i];
	return NULL;
}

CASE_TEST(a_refused_source_is_an_event_and_so_are_its_drops)
{
	const struct sl_event *one;

	case_policy(t, "limits: [{name: web, match: {dport: 80}, rate: 1 packets/h, burst: 10}]\n");
	set_switch(t, 1000);
	assert_int_equal(case_send(t, &innocent, 10), 10);
	assert_int_equal(look(t), 0);
	assert_int_equal(case_send(t, &over, 50), 10);
	look(t);
	assert_int_equal(of_kind[SL_EVENT_DROP], 40);
	assert_int_equal(of_kind[SL_EVENT_OVER], 1);
	one = find(SL_EVENT_OVER);
	assert_int_equal(one->source.hi >> 32, 0xc6336401);
	assert_int_equal(one->dst.hi >> 32, 0xc0000201);
	assert_int_equal(one->dport, 80);
	assert_int_equal(one->limit_id, target_image(t)->rules->limits[0].slot);
	assert_int_equal(one->action, SL_ACT_DROP);
	assert_int_equal(one->reason, SL_R_OVER);
	assert_true(dp_bucket_state(target_dp(t), one->bucket_key & ~SL_KEY_REFUSED) != 0);
	one = find(SL_EVENT_DROP);
	assert_int_equal(one->weight, 1);
	assert_int_equal(one->limit_id, target_image(t)->rules->limits[0].slot);
	assert_int_equal(one->captured, one->length < SL_RING_FRAME ? one->length : SL_RING_FRAME);
	assert_int_equal(one->frame[12] << 8 | one->frame[13], 0x0800);
	/* Over still: no news. */
	case_send(t, &over, 5);
	look(t);
	assert_int_equal(of_kind[SL_EVENT_OVER], 0);
	assert_int_equal(of_kind[SL_EVENT_DROP], 5);
}

CASE_TEST(off_there_are_none)
{
	case_policy(t, "block: [198.51.100.1]\n");
	set_switch(t, 0);
	assert_int_equal(case_send(t, &over, 50), 0);
	assert_int_equal(look(t), 0);
	set_switch(t, 1000);
	assert_int_equal(case_send(t, &over, 3), 0);
	assert_int_equal(look(t), 3);
	assert_int_equal(event[0].reason, SL_R_BLOCK);
	assert_int_equal(event[0].limit_id, 0);
}

/* Sent, limited and lost add up to the sampled drops; a next turn has room again. */
CASE_TEST(a_turn_has_room_for_so_many)
{
	struct dp *dp = target_dp(t);
	struct sl_event_stats before, after;
	u64 start;

	case_policy(t, "block: [198.51.100.1]\n");
	set_switch(t, 7);
	start = (target_mono(t) / TURN_NS + 1) * TURN_NS - target_mono(t);
	target_set_time(t, start);
	assert_int_equal(dp->ops->event_stats(dp, &before), 0);
	case_send(t, &over, 100);
	assert_int_equal(look(t), 7);
	target_set_time(t, start + TURN_NS);
	case_send(t, &over, 100);
	assert_int_equal(look(t), 7);
	assert_int_equal(dp->ops->event_stats(dp, &after), 0);
	assert_int_equal(after.sent[SL_EVENT_DROP] - before.sent[SL_EVENT_DROP], 14);
	assert_int_equal(after.limited[SL_EVENT_DROP] - before.limited[SL_EVENT_DROP], 186);
	assert_int_equal(after.lost[SL_EVENT_DROP] - before.lost[SL_EVENT_DROP], 0);
}

CASE_TEST(a_ban_is_an_event)
{
	const struct sl_event *one;

	case_policy(t, "limits:\n"
		       "  - name: web\n"
		       "    match: {dport: 80}\n"
		       "    rate: 1 packets/h\n"
		       "    burst: 1\n"
		       "    ban: {after: 5 drops/10s, for: 60s, spoofable: yes}\n");
	set_switch(t, 1000);
	case_send(t, &over, 20);
	look(t);
	assert_int_equal(of_kind[SL_EVENT_OVER], 1);
	assert_int_equal(of_kind[SL_EVENT_BAN], 1);
	one = find(SL_EVENT_BAN);
	assert_int_equal(one->source.hi >> 32, 0xc6336401);
	assert_int_equal(one->len, 32);
	assert_int_equal(one->limit_id, target_image(t)->rules->limits[0].slot);
	assert_int_equal(of_kind[SL_EVENT_DROP], 19);
}

/* A shadow limit drops nothing, and its first refusal is an event, with the verdict of the
 * packet. */
CASE_TEST(a_shadow_limit_has_news_and_no_drops)
{
	case_policy(t, "limits: [{name: web, match: {dport: 80}, rate: 1 packets/h, burst: 10, "
		       "mode: shadow}]\n");
	set_switch(t, 1000);
	assert_int_equal(case_send(t, &over, 30), 30);
	assert_int_equal(look(t), 1);
	assert_int_equal(event[0].kind, SL_EVENT_OVER);
	assert_int_equal(event[0].action, SL_ACT_PASS);
}

/* Every multi-meter limit names the limit that refused, once. */
CASE_TEST(of_several_limits_the_one_that_refused)
{
	case_policy(t, "limits:\n"
		       "  - {name: wide, match: {proto: udp}, rate: 1 packets/h, burst: 1000}\n"
		       "  - {name: web, match: {dport: 80}, rate: 1 packets/h, burst: 10}\n");
	set_switch(t, 1000);
	assert_int_equal(case_send(t, &over, 30), 10);
	look(t);
	assert_int_equal(of_kind[SL_EVENT_OVER], 1);
	assert_int_equal(find(SL_EVENT_OVER)->limit_id, target_image(t)->rules->limits[1].slot);
	assert_int_equal(find(SL_EVENT_DROP)->limit_id, target_image(t)->rules->limits[1].slot);
}

int main(void)
{
	return case_main("events");
}
