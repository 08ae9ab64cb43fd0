// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_refused.c - the refusal cache, and what is remembered of passes (bpf/passed.h), change
 * nothing: the same random schedule with and without it gives the same verdict of each packet, and
 * the same counters of reasons, limits, bans and push-downs after each change and at the end; in
 * dp_sim and in the BPF program.
 *
 * The schedule floods: a packet mostly equals the last one, or differs in one field. Between
 * packets time goes on, rules are swapped, sources are banned, pushed down, scaled, forgotten.
 */
#include <sched.h>

#include "lib/test.h"
#include "lib/frame.h"
#include "lib/rig.h"
#include "lib/rng.h"
#include "packet/dataplane/dp_list.h"
#include "packet/dataplane/dp_push.h"

#define STEPS_SIM 400000
#define STEPS_BPF 60000
#define RIGS_MAX 4
#define MS 1000000ULL

static const char *const rules[] = {
	"limits: [{name: one, rate: 20 packets/s, burst: 5}]\n",

	"failsafe: [22/tcp]\n"
	"block: [10.0.0.7, 203.0.113.0/25]\n"
	"exempt: [10.0.0.8]\n"
	"limits:\n"
	"- {name: one, rate: 20 packets/s, burst: 5, match: {dport: [80, 443]}}\n"
	"- {name: bytes, rate: 9000 bytes/s, burst: 3000}\n",

	"limits:\n"
	"- {name: all, rate: 50 packets/s, burst: 20, per: []}\n"
	"- {name: opens, rate: 10 connections/s, burst: 3}\n"
	"- {name: ports, rate: 30 packets/s, burst: 3, per: [source, dport]}\n"
	"- {name: hard, rate: 25 packets/s, burst: 4, match: {proto: udp},\n"
	"   ban: {after: 40 drops/1s, for: 2s, spoofable: true}}\n",

	"limits:\n"
	"- {name: elastic, rate: 20 packets/s, burst: 5,\n"
	"   throttle: {elastic: 200%, floor: 50%, while: {cpu: 50%}}}\n"
	"- {name: first, rate: 40 packets/s, burst: 10, match: {sport: 1000-2000}}\n"
	"- {name: window, rate: 30 packets/s, algorithm: fixed-window, match: {dst: 203.0.113.10}}\n",

	"limits:\n"
	"- {name: vlan, rate: 20 packets/s, burst: 2, per: [source, vlan], match: {length: 0-300}}\n"
	"- {name: ping, rate: 10 packets/s, burst: 2, match: {icmp_type: 8}}\n"
	"- {name: flags, rate: 15 packets/s, burst: 3, match: {tcp_flags: [syn]}}\n"
	"- {name: seen, rate: 10 packets/s, burst: 2, mode: shadow}\n",

	"limits:\n"
	"- {name: own, rate: 20 packets/s, burst: 5,\n"
	"   overrides: [{src: 10.0.0.3, rate: 60 packets/s}, {src: '2001:db8::/32', rate: 5 packets/s}]}\n",

	"limits:\n"
	"- {name: site, rate: 20 packets/s, burst: 5, prefix: {ipv4: 24, ipv6: 48}}\n"
	"- {name: exact, rate: 200 packets/s, accounting: exact, algorithm: sliding-window}\n",

	/* Most pass, by what is remembered. */
	"limits:\n"
	"- {name: one, rate: 400 packets/s, burst: 100}\n",

	"limits:\n"
	"- {name: all, rate: 2000 packets/s, burst: 50, per: []}\n"
	"- {name: bytes, rate: 200000 bytes/s, burst: 20000, prefix: {ipv4: 24, ipv6: 48}}\n"
	"- {name: ports, rate: 300 packets/s, burst: 30, per: [source, dport], accounting: exact}\n"
	"- {name: seen, rate: 150 packets/s, mode: shadow, algorithm: sliding-window}\n",

	"limits:\n"
	"- {name: two, rate: [300 packets/s, 2000 packets/10s], algorithm: fixed-window}\n"
	"- {name: opens, rate: 100 connections/s, burst: 30}\n"
	"- {name: tags, rate: 250 packets/s, burst: 20, action: tag, tag: {dscp: cs1}}\n",
};
#define RULES COUNT(rules)

struct run {
	struct rig rig[RIGS_MAX];
	u32 rigs;
	struct frame_spec spec;
	u64 mono_ns, utc_offset_ns, refused, steps;
	u32 now; /* rules[now] */
};

/* ------------------------------------------------------------------ packets */

static const char *const v4[] = { "10.0.0.1", "10.0.0.2",    "10.0.0.3", "10.0.0.7",
				  "10.0.0.8", "203.0.113.5", "10.0.1.9" };
static const char *const v6[] = { "2001:db8::1", "2001:db8::2",	    "2001:db8:0:1::1",
				  "2001:db9::1", "::ffff:10.0.0.1", "2001:db9::2" };
static const u16 dports[] = { 80, 443, 22, 9000 };
static const u16 lengths[] = { 10, 40, 200, 400, 1200 };

#define ANY(array) array[rng_below(sizeof(array) / sizeof((array)[0]))]

/* Another value of one field. */
static void change_field(struct frame_spec *s)
{
	static const u8 protos[] = { 6, 6, 17, 17, 1, 58, 47, 132 };
	static const u8 flags[] = { FRAME_SYN, FRAME_ACK, FRAME_SYN | FRAME_ACK, FRAME_RST };
	static const u8 types[] = { 8, 3, 128, 135, 0, 2 };
	bool is_v6 = s->src && strchr(s->src, ':');

	switch (rng_below(11)) {
	case 0:
	case 1:
		s->src = is_v6 ? ANY(v6) : ANY(v4);
		break;
	case 2:
		s->src = is_v6 ? ANY(v4) : ANY(v6);
		s->dst = strchr(s->src, ':') ? "2001:db8:ffff::10" : "203.0.113.10";
		break;
	case 3:
		if (!is_v6)
			s->dst = rng_below(2) ? "203.0.113.10" : "203.0.113.11";
		break;
	case 4:
		s->proto = ANY(protos);
		break;
	case 5:
		s->dport = ANY(dports);
		break;
	case 6:
		s->tcp_flags = ANY(flags);
		break;
	case 7:
		s->payload = ANY(lengths);
		break;
	case 8:
		s->tags = rng_below(2);
		s->vlan[0] = 5 + rng_below(2);
		break;
	case 9:
		s->icmp_type = ANY(types);
		s->hop_limit = rng_below(2) ? 255 : 64;
		break;
	case 10:
		s->frag_more = !is_v6 && !rng_below(4);
		s->frag_offset = s->frag_more && rng_below(2) ? 64 : 0;
		s->ihl = !is_v6 && !rng_below(4) ? 6 : 0;
		break;
	}
}

/* The next packet: the same, with another source port, or with one field changed. */
static void next_packet(struct run *r, struct frame *frame)
{
	u32 dice = rng_below(20);

	if (dice < 3)
		change_field(&r->spec);
	if (dice < 8)
		r->spec.sport = 1 + rng_below(4000);
	assert_true(frame_build(&r->spec, frame));
}

/* ------------------------------------------------------------------ changes */

static void install(struct run *r, struct rig *rig)
{
	static const struct sl_prefix local = { { 0xcb00710aULL << 32, 0 }, SL_V4, 32 };
	static const struct sl_session session = { .src.hi = 0x0a000001ULL << 32,
						   .sport = 1234,
						   .dst.hi = 0xcb00710aULL << 32,
						   .dport = 22,
						   .used = 1 };
	struct compile_env env = {
		.mono_ns = rig->now.mono_ns,
		.utc_offset_ns = rig->utc_offset_ns,
		.cpus = rig->cpus,
		.seed = rig->dp->state->seed,
		.generation = ++rig->generation,
		.slots = rig->dp->slots,
		.local = &local,
		.local_count = 1,
		.session = &session,
		.session_count = 1,
	};
	struct sl_err err = { .message = "" };
	struct sl_image *image = NULL;
	struct policy *policy;
	int rc;

	if (policy_parse("rules", rules[r->now], strlen(rules[r->now]), &policy, &err) ||
	    image_compile(policy, &env, &image, &err))
		fail_msg("rules %u: %s", r->now, err.message);
	if (rig->generation > 1 && r->steps % 3 == 0)
		rc = rig->dp->ops->apply_until(rig->dp, image, rig->now.mono_ns + 300 * MS, &err);
	else
		rc = rig->dp->ops->apply(rig->dp, image, &err);
	if (rc)
		fail_msg("%s", err.message);
	image_free(image);
	policy_free(policy);
}

static void scale(struct rig *rig, u32 percent, u64 until_ns)
{
	const struct sl_rules *now = rig->dp->ops->rules(rig->dp);
	u32 fixed = SL_ELASTIC_ONE / 100 * percent + SL_ELASTIC_ONE % 100 * percent / 100;
	const struct sl_elastic value = { fixed, ((1ULL << 32) + fixed - 1) / fixed, until_ns };

	for (u32 i = 0; i < SL_LIMITS_MAX; i++)
		if (now->limits[i].elastic)
			rig->dp->elastic[now->limits[i].slot] = value;
	dp_epoch_raise(rig->dp);
}

/* One change, the same on each rig. */
static void change(struct run *r)
{
	u32 what = rng_below(10), percent = 60 + rng_below(100), source = rng_below(3);
	const struct sl_addr addr = { (0x0a000001ULL + source) << 32, 0 };
	u64 until_ns = r->mono_ns + rng_below(500) * MS;
	struct dp_ban ban = { .key = { addr, SL_V4, 32 },
			      .state = { .since_ns = r->mono_ns, .until_ns = until_ns } };
	struct dp_push push = { .src = { addr, SL_V4, 32 },
				.kind = rng_below(SL_PUSH_COUNT),
				.rate = { 10, SL_NS_PER_SEC, RATE_PACKETS },
				.until_ns = until_ns };

	const struct sl_prefix prefix = { addr, SL_V4, 32 };
	const struct dp_listed listed = {
		.key = dp_list_key(&prefix),
		.listed.block = { rng_below(2) ? r->mono_ns + 50 * MS : 0, until_ns },
		.listed.exempt = { 0, rng_below(3) ? 0 : r->mono_ns + 100 * MS },
	};

	if (what < 2)
		r->now = rng_below(RULES);
	for (u32 i = 0; i < r->rigs; i++) {
		struct dp *dp = r->rig[i].dp;

		if (what < 2)
			install(r, &r->rig[i]);
		else if (what == 2)
			assert_int_equal(dp_ban_insert(dp, &ban), 0);
		else if (what == 3)
			dp_ban_delete(dp, &ban.key);
		else if (what == 4)
			assert_int_equal(dp_push_put(dp, &push), 0);
		else if (what == 5)
			dp_push_watch(dp, percent & 1);
		else if (what == 8)
			assert_int_equal(dp_list_put(dp, &listed, 1), 0);
		else if (what == 9)
			assert_int_equal(dp_list_del(dp, &listed.key, 1), 0);
		else if (what == 6)
			scale(&r->rig[i], percent, until_ns);
		else
			dp_bucket_forget(dp, dp_source_key(dp->ops->rules(dp),
							   rig_limit(&r->rig[i], 0), &push.src));
	}
}

static void set_time(struct run *r)
{
	static const u64 most[] = { 1, 10000, 1 * MS, 10 * MS, 120 * MS, 3000 * MS };
	static const u32 permille[] = { 300, 300, 330, 60, 8, 2 };
	u32 dice = rng_below(1000), i = 0;

	while (dice >= permille[i])
		dice -= permille[i++];
	r->mono_ns += rng_below(most[i]);
	if (!rng_below(3000))
		r->utc_offset_ns += rng_below(2000 * MS);
	for (i = 0; i < r->rigs; i++)
		rig_set_time(&r->rig[i], r->mono_ns, r->utc_offset_ns);
}

/* ------------------------------------------------------------------ comparing */

static void compare_bans(struct run *r, u32 i)
{
	struct dp_ban *a, *b;
	size_t many_a, many_b, same = 0;

	assert_int_equal(r->rig[0].dp->ops->hash_all(r->rig[0].dp, DP_BANS, &a, &many_a), 0);
	assert_int_equal(r->rig[i].dp->ops->hash_all(r->rig[i].dp, DP_BANS, &b, &many_b), 0);
	assert_int_equal(many_a, many_b);
	for (size_t k = 0; k < many_a; k++)
		for (size_t l = 0; l < many_b; l++)
			same += !memcmp(&a[k].key, &b[l].key, sizeof(a[k].key)) &&
				a[k].state.drops == b[l].state.drops &&
				a[k].state.until_ns == b[l].state.until_ns;
	assert_int_equal(same, many_a);
	free(a);
	free(b);
}

static void compare_pushes(struct run *r, u32 i)
{
	for (u32 k = 0; k < 3; k++) {
		const struct sl_prefix src = { { (0x0a000001ULL + k) << 32, 0 }, SL_V4, 32 };
		struct dp_push a = { 0 }, b = { 0 };

		assert_int_equal(dp_push_get(r->rig[0].dp, &src, &a),
				 dp_push_get(r->rig[i].dp, &src, &b));
		assert_int_equal(a.packets, b.packets);
		assert_int_equal(a.refused, b.refused);
	}
}

static void compare_counters(struct run *r)
{
	const struct sl_limit_id_info *ids = r->rig[0].dp->slots;
	struct sl_iface_stats all[2];
	struct sl_limit_stats limit[2];

	for (u32 i = 1; i < r->rigs; i++) {
		r->rig[0].dp->ops->iface_stats(r->rig[0].dp, 0, &all[0]);
		r->rig[i].dp->ops->iface_stats(r->rig[i].dp, 0, &all[1]);
		for (u32 k = 0; k < SL_R_COUNT * SL_ACT_COUNT; k++)
			if (all[0].packets[k / 3][k % 3] != all[1].packets[k / 3][k % 3])
				fail_msg("step %llu, rules %u: reason %s: rig 0 %llu, rig %u %llu",
					 r->steps, r->now, reason_name(k / 3),
					 all[0].packets[k / 3][k % 3], i,
					 all[1].packets[k / 3][k % 3]);
		assert_memory_equal(all[0].bytes, all[1].bytes, sizeof(all[0].bytes));
		for (u32 id = 1; id < SL_LIMIT_IDS; id++) {
			if (ids[id].state == SL_LIMIT_ID_FREE)
				continue;
			r->rig[0].dp->ops->limit_stats(r->rig[0].dp, id, &limit[0]);
			r->rig[i].dp->ops->limit_stats(r->rig[i].dp, id, &limit[1]);
			if (memcmp(&limit[0], &limit[1], sizeof(limit[0])))
				fail_msg(
					"step %llu, rules %u: the counters of '%s' differ in rig %u",
					r->steps, r->now, ids[id].name, i);
		}
		compare_bans(r, i);
		compare_pushes(r, i);
	}
}

static void judge(struct run *r)
{
	struct rig_frame copy;
	struct frame frame;
	bool passes = false;

	next_packet(r, &frame);
	assert_true(frame.length <= sizeof(copy.data));
	for (u32 i = 0; i < r->rigs; i++) {
		bool said;

		memcpy(copy.data, frame.data, frame.length);
		copy.length = frame.length;
		said = rig_passes(&r->rig[i], 0, &copy);
		if (i && said != passes)
			fail_msg("step %llu at %llu ns, rules %u: rig %u %s, rig 0 does not",
				 r->steps, r->mono_ns, r->now, i, said ? "passes" : "drops");
		passes = said;
	}
	r->refused += !passes;
}

static void run(struct run *r, const char *test, u64 steps)
{
	cpu_set_t one;

	/* What leases hold is of a CPU. */
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	rng_start(test);
	r->spec = (struct frame_spec){
		.src = v4[0], .dst = "203.0.113.10", .proto = 17, .dport = 80, .payload = 20
	};
	r->mono_ns = r->rig[0].now.mono_ns;
	r->utc_offset_ns = r->rig[0].utc_offset_ns;
	for (u32 i = 0; i < r->rigs; i++)
		install(r, &r->rig[i]);
	for (r->steps = 1; r->steps <= steps; r->steps++) {
		set_time(r);
		if (!rng_below(400)) {
			change(r);
			compare_counters(r);
		}
		judge(r);
	}
	compare_counters(r);
	print_message("# %llu packets, %llu refused\n", steps, r->refused);
	/* Of both enough: rules change some 30 times, and with three of ten most pass. */
	assert_in_range(r->refused, steps / 5, steps * 4 / 5);
}

TEST(sim_with_and_without_it)
{
	static struct run r;

	memset(&r, 0, sizeof(r));
	r.rigs = 2;
	for (u32 i = 0; i < r.rigs; i++)
		rig_open_sim(&r.rig[i], 100000, 2, 64);
	rig_no_refusal_cache(&r.rig[0]);
	run(&r, "sim_with_and_without_it", STEPS_SIM);
	for (u32 i = 0; i < r.rigs; i++)
		rig_close(&r.rig[i]);
}

TEST(the_program_with_and_without_it)
{
	static struct run r;

	memset(&r, 0, sizeof(r));
	rig_open_bpf(&r.rig[0], 100000, true, 0);
	rig_open_bpf(&r.rig[1], 100000, true, 0);
	rig_open_sim(&r.rig[2], 100000, r.rig[0].cpus, 64);
	r.rigs = 3;
	rig_no_refusal_cache(&r.rig[0]);
	run(&r, "the_program_with_and_without_it", STEPS_BPF);
	for (u32 i = 0; i < r.rigs; i++)
		rig_close(&r.rig[i]);
}

/* ------------------------------------------------------------ that it is used, and for how long */

/* A bucket that is emptied behind the program's back. */
static void empty_table(struct rig *rig)
{
	u32 sets = rig->dp->table_sets;
	struct sl_set *table = rig->dp->table;

	memset(table, 0, sets * sizeof(*table));
}

static void check_lifetime(struct rig *rig, bool cached)
{
	const struct rate rate = { 1, SL_NS_PER_SEC, RATE_PACKETS };
	const struct rig_packet packet = {
		.src = 0x0a000001, .proto = 17, .dport = 9, .length = 74
	};
	const struct rig_packet other = {
		.src = 0x0a000002, .proto = 17, .dport = 9, .length = 74
	};
	struct limit_def limit = rig_limit_def("sources", rate, 1, SL_ALGO_TOKEN_BUCKET);
	u64 start = rig->now.mono_ns;
	struct rig_frame frame, neighbor;

	rig_apply(rig, &limit, 1);
	rig_frame_make(&frame, &packet);
	rig_frame_make(&neighbor, &other);
	assert_true(rig_passes(rig, 0, &frame));
	assert_false(rig_passes(rig, 0, &frame));
	empty_table(rig);
	assert_true(rig_passes(rig, 0, &neighbor));
	rig_set_time(rig, start + 100 * MS - 1, rig->utc_offset_ns);
	assert_int_equal(rig_passes(rig, 0, &frame), !cached);
	rig_set_time(rig, start + 100 * MS, rig->utc_offset_ns);
	assert_int_equal(rig_passes(rig, 0, &frame), cached);
	assert_false(rig_passes(rig, 0, &frame));
	empty_table(rig);
	dp_epoch_raise(rig->dp);
	assert_true(rig_passes(rig, 0, &frame));

	/* While a change is under way nothing is repeated, and nothing that was refused then is
	 * repeated afterwards. */
	assert_false(rig_passes(rig, 0, &frame));
	empty_table(rig);
	dp_epoch_begin(rig->dp);
	assert_true(rig_passes(rig, 0, &frame));
	assert_false(rig_passes(rig, 0, &frame));
	empty_table(rig);
	assert_true(rig_passes(rig, 0, &frame));
	assert_false(rig_passes(rig, 0, &frame));
	empty_table(rig);
	dp_epoch_end(rig->dp);
	assert_true(rig_passes(rig, 0, &frame));
	assert_false(rig_passes(rig, 0, &frame));
	empty_table(rig);
	assert_int_equal(rig_passes(rig, 0, &frame), !cached);
}

TEST(an_entry_lasts_100_ms_or_until_the_epoch_is_raised)
{
	struct rig rig;

	for (int cached = 0; cached < 2; cached++) {
		rig_open_sim(&rig, 1000, 1, 16);
		if (!cached)
			rig_no_refusal_cache(&rig);
		check_lifetime(&rig, cached);
		rig_close(&rig);
	}
	rig_open_bpf(&rig, 1000, true, 0);
	check_lifetime(&rig, true);
	rig_close(&rig);
}

TEST_MAIN
