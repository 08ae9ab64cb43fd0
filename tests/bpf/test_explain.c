// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_explain.c - explain tells what a packet will meet: for random states of every kind the
 * answer is asked for, then the packet is sent, and action, reason and refusing limit agree.
 * And it stores nothing: all that the data plane keeps is the same before and after.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/dp_explain.h"
#include "lib/addr.h"
#include "lib/case.h"
#include "unit/rng.h"

#define PACKETS 1960
#define LEAST_EACH 50
#define LIMITS_MAX 32

static const char rules[] =
	"failsafe: [22/tcp, 53/udp]\n"
	"failsafe_rate: 3 connections/s\n"
	"block: [198.51.100.0/24, 96.0.0.0/7, '2001:db8:bad::/48']\n"
	"exempt: [10.0.0.0/8, '2001:db8:f::/48']\n"
	"limits:\n"
	"- {name: few, match: {src: [172.16.0.0/16, '2001:db8:1::/48']}, rate: 10 packets/h,\n"
	"   burst: 10}\n"
	"- {name: window, match: {src: [172.17.0.0/16, '2001:db8:2::/48']}, rate: 10 packets/m,\n"
	"   algorithm: fixed-window}\n"
	"- {name: leased, match: {src: 172.18.0.0/16}, rate: 1000 packets/s, burst: 2000}\n"
	"- {name: watch, match: {src: [172.19.0.0/16, '2001:db8:4::/48']}, rate: 5 packets/h,\n"
	"   burst: 5, mode: shadow}\n"
	"- {name: mark, match: {src: [172.20.0.0/16, '2001:db8:5::/48']}, rate: 5 packets/h,\n"
	"   burst: 5, action: tag, tag: {dscp: cs1, mark: 7}}\n"
	"- {name: wide, match: {src: [172.21.0.0/16, '2001:db8:6::/48']}, rate: 12 packets/h,\n"
	"   burst: 12}\n"
	"- {name: narrow, match: {src: [172.21.0.0/16, '2001:db8:6::/48'], dport: 80},\n"
	"   rate: 6 packets/h, burst: 6, per: [source, dport]}\n"
	"- {name: ports, match: {src: [172.22.0.0/16, '2001:db8:7::/48'], proto: udp,\n"
	"   dport: 100-200}, rate: 5 packets/h, burst: 5}\n"
	"- {name: bytes, match: {src: 172.23.0.0/16}, rate: 2000 bytes/s, accounting: exact}\n"
	"- {name: syn, match: {src: 172.24.0.0/16}, rate: 5 connections/h, burst: 5,\n"
	"   accounting: exact}\n";

/* What must occur, each so many times. */
enum seen {
	SEEN_BLOCKED,
	SEEN_EXEMPT,
	SEEN_FAILSAFE,
	SEEN_ONE_TOKEN,
	SEEN_OVER_BY_ONE,
	SEEN_SHADOW,
	SEEN_TAGGED,
	SEEN_TWO_ONE_OVER,
	SEEN_LATER_FRAGMENT,
	SEEN_COUNT,
};

static const char *const seen_name[SEEN_COUNT] = {
	"blocked", "exempt", "failsafe", "holding one token", "over by one", "shadow", "tagged",
	"under two limits, one over", "later fragment",
};

/* A kind of source, and how many packets it has sent before: at most `most`. */
struct kind {
	const char *v4, *v6;	/* formats for two random bytes */
	u32 most;
	u8 proto;
	u16 dport;
	bool fragments;
	bool many_cpus;
};

static const struct kind kinds[] = {
	{ "198.51.100.%u", "2001:db8:bad::%x", 1, 17, 9, false, false },
	{ "97.1.%u.%u", NULL, 1, 17, 9, false, false },
	{ "10.1.%u.%u", "2001:db8:f::%x:%x", 1, 17, 9, false, false },
	{ "97.2.%u.%u", NULL, 4, 6, 22, false, false },
	{ "172.16.%u.%u", "2001:db8:1:%x%02x::1", 11, 17, 9, false, false },
	{ "172.17.%u.%u", "2001:db8:2:%x%02x::1", 11, 17, 9, false, false },
	{ "172.18.%u.%u", NULL, 2050, 17, 9, false, true },
	{ "172.19.%u.%u", "2001:db8:4:%x%02x::1", 14, 17, 9, false, false },
	{ "172.20.%u.%u", "2001:db8:5:%x%02x::1", 14, 17, 9, false, false },
	{ "172.21.%u.%u", "2001:db8:6:%x%02x::1", 16, 17, 80, false, false },
	{ "172.22.%u.%u", "2001:db8:7:%x%02x::1", 7, 17, 150, true, false },
	{ "172.22.%u.%u", "2001:db8:7:%x%02x::1", 7, 17, 150, true, false },
	{ "172.23.%u.%u", NULL, 40, 17, 9, false, false },
	{ "172.24.%u.%u", NULL, 7, 6, 9, false, false },
};

struct sent {
	char src[64];
	struct frame_spec spec;
	struct explain_packet packet;	/* the same, as explain is asked */
	u32 before;			/* packets that the source sent before */
};

static struct sl_addr addr_of(const char *text)
{
	struct sl_prefix prefix;
	const char *reason;

	if (sl_prefix_parse(text, &prefix, &reason) < 0)
		fail_msg("%s: %s", text, reason);
	return prefix.addr;
}

/* The same packet for the tests' frame builder and for explain. */
static void make_packet(const struct kind *kind, struct sent *s)
{
	u32 a = rng_below(256), b = rng_below(256);
	bool v6 = kind->v6 && rng_below(2);
	struct frame frame;

	memset(s, 0, sizeof(*s));
	snprintf(s->src, sizeof(s->src), v6 ? kind->v6 : kind->v4, a, b);
	s->spec = (struct frame_spec){
		.src = s->src,
		.dst = v6 ? TARGET_LOCAL_V6 : TARGET_LOCAL_V4,
		.proto = kind->proto,
		.dport = kind->dport,
		.tcp_flags = FRAME_SYN,
		.payload = rng_below(3) ? 30 : rng_below(1000),
		.tags = !rng_below(4),
		.vlan = { 100 },
		.iface = rng_below(TARGET_IFACES),
	};
	if (kind->fragments && rng_below(2)) {
		s->spec.frag_offset = 100;
		s->spec.ext[0] = v6 ? EXT_FRAGMENT : EXT_END;
		s->packet.fragment = EXPLAIN_LATER;
	}
	if (s->spec.payload < 8)
		s->spec.payload = 8;
	case_frame(&s->spec, &frame);
	s->packet = (struct explain_packet){
		.src = addr_of(s->src),
		.dst = addr_of(s->spec.dst),
		.length = frame.length,
		.iface = s->spec.iface,
		.sport = 40000,
		.dport = kind->dport,
		.vlan = s->spec.tags ? 100 : SL_VLAN_NONE,
		.family = v6 ? SL_V6 : SL_V4,
		.proto = kind->proto,
		.tcp_flags = FRAME_SYN,
		.fragment = s->packet.fragment,
	};
}

/* Some state for the source: packets like it, whole ones, at this instant. */
static void send_before(struct target *t, const struct kind *kind, struct sent *s)
{
	struct frame_spec spec = s->spec;
	struct frame frame;
	u32 left = rng_below(kind->most + 1);

	spec.frag_offset = 0;
	spec.ext[0] = 0;
	case_frame(&spec, &frame);
	s->before = left;
	while (left) {
		u32 cpu = kind->many_cpus ? rng_below(target_cpus(t)) : 0;
		u32 now = kind->many_cpus ? 1 + rng_below(left) : left;

		if (target_flood(t, cpu, spec.iface, &frame, now) < 0)
			fail_msg("not run");
		left -= now;
	}
}

/* Drops by limit. */
static void read_drops(struct target *t, u64 *ret)
{
	const struct sl_rules *rules = target_image(t)->rules;
	struct sl_limit_stats stats;

	for (u32 i = 0; i < rules->limits_count; i++) {
		target_dp(t)->ops->limit_stats(target_dp(t), rules->limits[i].slot, &stats);
		ret[i] = stats.packets[SL_LV_DROP];
	}
}

static u16 who_dropped(struct target *t, const u64 *before)
{
	u64 after[LIMITS_MAX];
	u16 who = SL_NO_LIMIT;

	read_drops(t, after);
	for (u32 i = 0; i < target_image(t)->rules->limits_count; i++)
		if (after[i] != before[i])
			who = i;
	return who;
}

static const char *limit_name(struct target *t, u16 index)
{
	const struct policy *policy = target_policy_of(t);

	return index == SL_NO_LIMIT	    ? "none" :
	       index < policy->limit_count ? policy->limit[index].name :
					      "one of the order's own";
}

static struct explain *open_explain(struct target *t)
{
	struct sl_err err = { .message = "" };
	struct explain *e;

	if (explain_new(target_dp(t), target_image(t), target_mono_ns(t), &e, &err) < 0)
		fail_msg("%s", err.message);
	return e;
}

struct told {
	struct explain_answer answer;
	struct explain_limit limit[SL_MATCHES_MAX];
	int limits;
	u64 wait_ns;
};

static void ask(struct target *t, const struct explain_packet *packet, u32 cpu, struct told *ret)
{
	struct explain *e = open_explain(t);
	struct sl_err err = { .message = "" };
	int rc = explain_ask(e, packet, cpu, &ret->answer, &err);

	if (!rc)
		rc = ret->limits = explain_limits(e, packet, cpu, ret->limit,
						  SL_MATCHES_MAX, &err);
	if (rc >= 0)
		rc = explain_wait(e, packet, cpu, &ret->wait_ns, &err);
	explain_free(e);
	if (rc < 0)
		fail_msg("%s", err.message);
}

/* Sends it; 1 and words where it met something else than was told. */
static int check(struct target *t, struct sent *s, u32 cpu, const struct told *told)
{
	u64 drops[LIMITS_MAX];
	struct target_verdict v;
	struct frame frame;
	u16 limit;

	case_frame(&s->spec, &frame);
	read_drops(t, drops);
	assert_int_equal(target_run(t, cpu, s->spec.iface, &frame, &v), 0);
	limit = who_dropped(t, drops);
	if (v.action == told->answer.action && v.reason == told->answer.reason &&
	    limit == (told->answer.limit < SL_LIMITS_MAX ? told->answer.limit : SL_NO_LIMIT) &&
	    v.marked == !!(told->answer.tag & SL_TAG_MARK) &&
	    (!v.marked || v.mark == told->answer.mark))
		return 0;
	print_error("%s: %s proto %u dport %u%s after %u on CPU %u: told %s %s by %s, was %s %s by %s\n",
		    target_name(t), s->src, s->spec.proto, s->spec.dport,
		    s->packet.fragment ? " later fragment" : "", s->before, cpu,
		    action_name(told->answer.action), reason_name(told->answer.reason),
		    limit_name(t, told->answer.limit), action_name(v.action),
		    reason_name(v.reason), limit_name(t, limit));
	return 1;
}

static const struct explain_limit *told_limit(const struct told *told, u16 index)
{
	for (int i = 0; i < told->limits; i++)
		if (told->limit[i].index == index)
			return &told->limit[i];
	return NULL;
}

static void count_seen(const struct sent *s, const struct told *told, u32 *seen)
{
	const struct explain_limit *refusing = told_limit(told, told->answer.limit);
	u32 over = 0;

	seen[SEEN_BLOCKED] += told->answer.reason == SL_R_BLOCK;
	seen[SEEN_EXEMPT] += told->answer.reason == SL_R_EXEMPT;
	seen[SEEN_FAILSAFE] += told->answer.reason == SL_R_FAILSAFE;
	seen[SEEN_LATER_FRAGMENT] += s->packet.fragment == EXPLAIN_LATER;
	for (int i = 0; i < told->limits; i++) {
		const struct explain_limit *limit = &told->limit[i];

		over += limit->says == SL_LV_DROP;
		seen[SEEN_SHADOW] += limit->says == SL_LV_SHADOW;
		seen[SEEN_TAGGED] += limit->says == SL_LV_TAG;
		seen[SEEN_ONE_TOKEN] += limit->counts && !limit->row[0].leased &&
					limit->row[0].used + 1 == limit->row[0].capacity;
	}
	seen[SEEN_TWO_ONE_OVER] += told->limits == 2 && over == 1;
	seen[SEEN_OVER_BY_ONE] += refusing && !refusing->row[0].leased &&
				  refusing->row[0].used == refusing->row[0].capacity &&
				  refusing->row[0].cost == 1;
}

/* A packet that is refused passes after the wait that was told, and not a nanosecond before. */
static int check_wait(struct target *t, struct sent *s, u32 cpu, const struct told *told)
{
	u64 at = target_time(t) + told->wait_ns;
	struct target_verdict v;
	struct frame frame;
	int bad = 0;

	for (u32 late = 0; late < 2; late++) {
		target_set_time(t, at - 1 + late);
		case_frame(&s->spec, &frame);
		assert_int_equal(target_run(t, cpu, s->spec.iface, &frame, &v), 0);
		if (v.drop == !late)
			continue;
		print_error("%s: %s: told to pass after %llu ns, %s %s then\n", target_name(t),
			    s->src, told->wait_ns, v.drop ? "dropped" : "passed",
			    late ? "at" : "just before");
		bad++;
	}
	return bad;
}

/* Every limit's word is among those told, and the verdict follows from what each said. */
static int check_limits(struct target *t, const struct sent *s, const struct told *told)
{
	const struct explain_limit *refusing = told_limit(told, told->answer.limit);

	if (told->answer.reason == SL_R_OVER && told->answer.action == SL_ACT_DROP &&
	    (!refusing || refusing->says != SL_LV_DROP || !refusing->row[0].over)) {
		print_error("%s: %s: dropped, but %s is said not to refuse\n", target_name(t),
			    s->src, limit_name(t, told->answer.limit));
		return 1;
	}
	if (!told->wait_ns != (told->answer.action != SL_ACT_DROP)) {
		print_error("%s: %s: a wait of %llu ns\n", target_name(t), s->src, told->wait_ns);
		return 1;
	}
	return 0;
}

static void explain_is_right(void **state)
{
	struct target *t = case_target(state);
	u32 seen[SEEN_COUNT] = { 0 };
	int bad = 0;

	rng_state = case_seed();
	case_policy(t, "%s", rules);
	for (u32 i = 0; i < PACKETS; i++) {
		const struct kind *kind = &kinds[i % ARRAY_LEN(kinds)];
		static struct told told;
		struct sent s;
		u32 cpu = rng_below(target_cpus(t));

		make_packet(kind, &s);
		send_before(t, kind, &s);
		ask(t, &s.packet, cpu, &told);
		count_seen(&s, &told, seen);
		bad += check_limits(t, &s, &told);
		bad += check(t, &s, cpu, &told);
		if (told.answer.action == SL_ACT_DROP && told.wait_ns != ~0ULL && rng_below(2)) {
			ask(t, &s.packet, cpu, &told);
			if (told.answer.action == SL_ACT_DROP)
				bad += check_wait(t, &s, cpu, &told);
		}
		target_set_time(t, target_time(t) + rng_below(1000000000));
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

/* ------------------------------------------------------------------ nothing is stored */

struct stored {
	u32 sets, cpus;
	struct sl_set *table;
	struct sl_slot_info *slots;
	struct sl_state state;
	struct sl_limit_stats *limit;
	struct sl_iface_stats iface[TARGET_IFACES];
	struct sl_global_stats global;
	u64 *lease;			/* of the keys told, a word for each CPU */
};

static void *copy_of(const void *from, size_t size)
{
	void *to = malloc(size);

	assert_non_null(to);
	memcpy(to, from, size);
	return to;
}

static void read_stored(struct target *t, const u64 *key, u32 keys, struct stored *ret)
{
	struct dp *dp = target_dp(t);

	memset(ret, 0, sizeof(*ret));
	ret->table = dp->ops->table(dp, &ret->sets);
	ret->table = copy_of(ret->table, ret->sets * sizeof(*ret->table));
	ret->slots = copy_of(dp->ops->slots(dp), SL_SLOTS * sizeof(*ret->slots));
	ret->state = *dp->ops->state(dp);
	ret->limit = calloc(SL_SLOTS, sizeof(*ret->limit));
	for (u32 i = 0; i < SL_SLOTS; i++)
		dp->ops->limit_stats(dp, i, &ret->limit[i]);
	for (u32 i = 0; i < TARGET_IFACES; i++)
		dp->ops->iface_stats(dp, i, &ret->iface[i]);
	dp->ops->global_stats(dp, &ret->global);
	ret->cpus = dp->ops->cpus(dp);
	ret->lease = calloc(keys * ret->cpus, sizeof(u64));
	for (u32 i = 0; i < keys; i++)
		dp->ops->lease(dp, key[i], &ret->lease[i * ret->cpus]);
}

static void free_stored(struct stored *s)
{
	free(s->table);
	free(s->slots);
	free(s->limit);
	free(s->lease);
}

static void assert_same(const struct stored *a, const struct stored *b, u32 keys)
{
	assert_memory_equal(a->table, b->table, a->sets * sizeof(*a->table));
	assert_memory_equal(a->slots, b->slots, SL_SLOTS * sizeof(*a->slots));
	assert_memory_equal(&a->state, &b->state, sizeof(a->state));
	assert_memory_equal(a->limit, b->limit, SL_SLOTS * sizeof(*a->limit));
	assert_memory_equal(a->iface, b->iface, sizeof(a->iface));
	assert_memory_equal(&a->global, &b->global, sizeof(a->global));
	assert_memory_equal(a->lease, b->lease, keys * a->cpus * sizeof(u64));
}

#define SOURCES 100

static void nothing_is_stored(void **state)
{
	static struct sent s[SOURCES];
	static struct told told;
	struct target *t = case_target(state);
	struct stored before, after;
	u64 key[SOURCES] = { 0 };
	u32 leased = 0;

	rng_state = case_seed();
	case_policy(t, "%s", rules);
	for (u32 i = 0; i < SOURCES; i++) {
		const struct kind *kind = &kinds[i % ARRAY_LEN(kinds)];

		make_packet(kind, &s[i]);
		s[i].spec.src = s[i].src;
		send_before(t, kind, &s[i]);
		ask(t, &s[i].packet, 0, &told);
		if (told.limits)
			key[i] = told.limit[0].row[0].key;
		leased += told.limits && told.limit[0].row[0].leased;
	}
	assert_true(leased > 0);
	read_stored(t, key, SOURCES, &before);
	for (u32 i = 0; i < 1000; i++)
		ask(t, &s[i % SOURCES].packet, i % target_cpus(t), &told);
	read_stored(t, key, SOURCES, &after);
	assert_same(&before, &after, SOURCES);
	free_stored(&before);
	free_stored(&after);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(explain_is_right),
		cmocka_unit_test(nothing_is_stored),
	};

	return case_main("explain", tests, ARRAY_LEN(tests));
}
