// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * schedule.c - see schedule.h.
 *
 * Fourteen limits of every kind over 24 sources, 4 ports and 2 protocols; a few sources send
 * most. Time stands still, creeps or leaps; calm and flood take turns, so that each limit is
 * now far from full and now far over. What matches what, what it costs and which bucket it
 * goes to is written out once more here, by hand, in the terms of this schedule.
 */
#include "lib/test.h"
#include "lib/model.h"
#include "lib/schedule.h"
#include "lib/rng.h"

#define SEC SL_NS_PER_SEC
#define V4_SOURCES 16
#define SOURCES 24
#define PORTS 4
#define BUCKETS 256

enum {
	SRC_PACKETS,
	SRC_WINDOW,
	UDP_BYTES,
	OPENS,
	EVERYTHING,
	BYTES_WINDOW,
	ODD_RATE,
	BITS,
	SITES,
	SLIDING,
	SLIDING_BYTES,
	LEAKY,
	INTERVAL,
	COUNTERS,
	TAGGED,
	SHADOWED,
	LIMITS,
};

static u8 proto_tcp = 6, proto_udp = 17;
static struct u16_range port_odd = { 8001, 8002 };
static struct sl_prefix all_v6 = { .addr.hi = 0x20010db800000000ULL, .family = SL_V6, .len = 32 };

static const u16 ports[PORTS] = { 53, 443, 8001, 8002 };

struct step_packet {
	u32 source, port; /* indices */
	u8 proto, tcp_flags;
	u32 length;
};

/* The state of one run. */
struct schedule {
	struct limit_def def[LIMITS], first[LIMITS]; /* now, and at first */
	struct model_rule rule[LIMITS];
	struct model_bucket bucket[LIMITS][BUCKETS];
	u64 passed[LIMITS], refused[LIMITS]; /* as the model counts them */
	u64 unsure, asked;
	u64 mono_ns, utc_offset_ns;
	u64 drops;
	struct step_packet again; /* to be sent at again_ns, if that is not 0 */
	u64 again_ns, edges;
	struct rig *const *rig;
	u32 rigs;
};

/* ------------------------------------------------------------------ the limits */

static void add(struct schedule *s, u32 index, const char *name, enum sl_algo algo, u64 count,
		u64 period_s, enum rate_unit unit, u64 burst, u8 per)
{
	struct rate rate = { count, period_s * SEC, unit };

	s->def[index] = rig_limit_def(name, rate, burst, algo);
	s->def[index].per = per;
	s->rule[index] = model_rule(algo, rate, burst);
}

static void make_limits(struct schedule *s)
{
	const enum sl_algo bucket = SL_ALGO_TOKEN_BUCKET, leaky = SL_ALGO_LEAKY_BUCKET;
	const enum sl_algo window = SL_ALGO_FIXED_WINDOW, sliding = SL_ALGO_SLIDING_WINDOW;

	add(s, SRC_PACKETS, "src-packets", bucket, 100, 1, RATE_PACKETS, 20, SL_PER_SOURCE);
	add(s, SRC_WINDOW, "src-window", window, 40, 1, RATE_PACKETS, 0, SL_PER_SOURCE);
	add(s, UDP_BYTES, "udp-bytes", bucket, 16000, 1, RATE_BYTES, 10000, SL_PER_DPORT);
	s->def[UDP_BYTES].match.proto = &proto_udp;
	s->def[UDP_BYTES].match.proto_count = 1;
	add(s, OPENS, "opens", bucket, 4, 1, RATE_CONNECTIONS, 4, SL_PER_SOURCE | SL_PER_DPORT);
	s->def[OPENS].match.proto = &proto_tcp;
	s->def[OPENS].match.proto_count = 1;
	add(s, EVERYTHING, "everything", bucket, 500, 1, RATE_PACKETS, 200, 0);
	add(s, BYTES_WINDOW, "bytes-window", window, 100000, 10, RATE_BYTES, 0, SL_PER_SOURCE);
	add(s, ODD_RATE, "odd-rate", bucket, 77, 1, RATE_PACKETS, 13, SL_PER_DPORT);
	s->def[ODD_RATE].match.dport = &port_odd;
	s->def[ODD_RATE].match.dport_count = 1;
	add(s, BITS, "bits", bucket, 633337, 1, RATE_BITS, 300000, SL_PER_PROTO);
	add(s, SITES, "sites", window, 300, 60, RATE_PACKETS, 0, SL_PER_SOURCE);
	s->def[SITES].match.src = &all_v6;
	s->def[SITES].match.src_count = 1;
	s->def[SITES].prefix.len[SL_V6][0] = 48;
	add(s, SLIDING, "sliding", sliding, 60, 3, RATE_PACKETS, 0, SL_PER_SOURCE);
	add(s, SLIDING_BYTES, "sliding-bytes", sliding, 150000, 7, RATE_BYTES, 0, SL_PER_DPORT);
	add(s, LEAKY, "leaky", leaky, 200, 1, RATE_PACKETS, 0, SL_PER_SOURCE | SL_PER_DPORT);
	add(s, INTERVAL, "interval", SL_ALGO_INTERVAL_BUCKET, 50, 2, RATE_PACKETS, 120,
	    SL_PER_SOURCE);
	add(s, COUNTERS, "counters", SL_ALGO_WINDOW_COUNTERS, 90, 2, RATE_PACKETS, 0,
	    SL_PER_SOURCE);
	add(s, TAGGED, "tagged", bucket, 10, 1, RATE_PACKETS, 10, SL_PER_SOURCE);
	s->def[TAGGED].action = SL_ACT_TAG;
	s->def[TAGGED].has_dscp = true;
	s->def[TAGGED].dscp = 8;
	add(s, SHADOWED, "shadowed", bucket, 40, 1, RATE_PACKETS, 20, SL_PER_DPORT);
	s->def[SHADOWED].mode = SL_MODE_SHADOW;
}

static bool drops(u32 limit)
{
	return limit != TAGGED && limit != SHADOWED;
}

/* What a packet costs a limit; 0 where it does not count there. */
static u64 cost_of(u32 limit, const struct step_packet *p)
{
	switch (limit) {
	case UDP_BYTES:
		return p->proto == 17 ? p->length : 0;
	case OPENS:
		return p->proto == 6 && p->tcp_flags == 0x02;
	case BYTES_WINDOW:
	case SLIDING_BYTES:
	case BITS:
		return p->length;
	case ODD_RATE:
		return p->port >= 2;
	case SITES:
		return p->source >= V4_SOURCES;
	default:
		return 1;
	}
}

/* Sources of IPv6: two to a /64, four to a /48. */
static u32 source_group(u32 source, u32 per_group)
{
	return source < V4_SOURCES ? source : V4_SOURCES + (source - V4_SOURCES) / per_group;
}

static struct model_bucket *bucket_of(struct schedule *s, u32 limit, const struct step_packet *p)
{
	u32 at = 0;

	switch (limit) {
	case UDP_BYTES:
	case SLIDING_BYTES:
	case ODD_RATE:
	case SHADOWED:
		at = p->port;
		break;
	case OPENS:
	case LEAKY:
		at = source_group(p->source, 2) * PORTS + p->port;
		break;
	case EVERYTHING:
		break;
	case BITS:
		at = p->proto;
		break;
	case SITES:
		at = source_group(p->source, 4);
		break;
	default:
		at = source_group(p->source, 2);
	}
	return &s->bucket[limit][at];
}

/* ------------------------------------------------------------------ one packet */

static struct sl_now now_of(const struct schedule *s)
{
	return (struct sl_now){ s->mono_ns, s->mono_ns + s->utc_offset_ns };
}

static void make_frame(const struct step_packet *p, struct rig_frame *frame)
{
	u32 n = p->source - V4_SOURCES;
	struct rig_packet packet = {
		.src = 0x0a000001 + p->source,
		.proto = p->proto,
		.dport = ports[p->port],
		.tcp_flags = p->tcp_flags,
		.length = p->length,
	};

	if (p->source >= V4_SOURCES) {
		packet.v6 = true;
		packet.src = 0x20010db800000000ULL | n / 4 << 16 | n / 2;
		packet.src_low = 1 + n;
	}
	rig_frame_make(frame, &packet);
}

/* Limits that tag or are in shadow never refuse: passing packets are charged. */
static void model_watchers(struct schedule *s, const struct step_packet *p)
{
	for (u32 i = 0; i < LIMITS; i++) {
		struct model_bucket *bucket = bucket_of(s, i, p);
		u64 cost = cost_of(i, p);

		if (!cost)
			continue;
		if (drops(i)) {
			model_charged(&s->rule[i], bucket, now_of(s), cost);
			s->passed[i]++;
		} else if (model_ask(&s->rule[i], bucket, now_of(s), cost) == MODEL_PASS) {
			model_charged(&s->rule[i], bucket, now_of(s), cost);
			s->passed[i]++;
		} else {
			s->refused[i]++;
		}
	}
}

/* The verdict of all dropping limits together; which one is unsure, and which refuses first. */
static enum model_says model_all(struct schedule *s, const struct step_packet *p, u32 *ret_first,
				 u32 *ret_unsure, u32 *ret_unsure_count)
{
	u32 first = LIMITS;

	*ret_unsure_count = 0;
	for (u32 i = 0; i < LIMITS; i++) {
		u64 cost = cost_of(i, p);
		enum model_says says;

		if (!cost || !drops(i))
			continue;
		says = model_ask(&s->rule[i], bucket_of(s, i, p), now_of(s), cost);
		if (says == MODEL_DROP && first == LIMITS)
			first = i;
		if (says == MODEL_EITHER) {
			*ret_unsure = i;
			(*ret_unsure_count)++;
		}
	}
	*ret_first = first;
	if (first < LIMITS)
		return MODEL_DROP;
	return *ret_unsure_count ? MODEL_EITHER : MODEL_PASS;
}

/* For debugging: each limit's verdict here, and its bucket state there. */
static void explain(struct schedule *s, const struct step_packet *p)
{
	for (u32 i = 0; i < LIMITS; i++) {
		struct model_bucket *b = bucket_of(s, i, p);
		u64 cost = cost_of(i, p);

		if (!cost)
			continue;
		print_message(
			"# %-12s cost %llu of %llu, rate %llu: the model says %u; left %.3f..%.3f used %llu, window ends %llu\n",
			s->def[i].name, cost, s->rule[i].capacity, s->rule[i].count,
			model_ask(&s->rule[i], b, now_of(s), cost),
			(double)b->least / s->rule[i].period_ns,
			(double)b->most / s->rule[i].period_ns, b->used, b->end_ns);
		for (u32 r = 0; r < s->rigs; r++)
			print_message("#   %s: %llu dropped, word %#llx\n",
				      s->rig[r]->dp->ops->name,
				      rig_limit_stats(s->rig[r], i).packets[SL_LV_DROP],
				      rig_bucket_state(s->rig[r], i, 0x0a000001 + p->source));
	}
}

/*
 * Chance would never come to the nanosecond at which a refused packet fits. So now and then
 * it is sent again, then or one nanosecond before.
 */
static void plan_again(struct schedule *s, const struct step_packet *p, u32 refused_by)
{
	u64 wait;

	if (!s->rule[refused_by].exact || rng_below(16))
		return;
	wait = model_wait(&s->rule[refused_by], bucket_of(s, refused_by, p),
			  cost_of(refused_by, p));
	if (!wait || wait > SEC)
		return;
	s->again = *p;
	s->again_ns = s->mono_ns + wait - rng_below(2);
}

static void judge(struct schedule *s, u64 step, const struct step_packet *p)
{
	static const char *const words[] = { "drop", "pass", "either" };
	struct rig_frame frame;
	u32 first, unsure = 0, unsure_count;
	enum model_says says = model_all(s, p, &first, &unsure, &unsure_count);
	bool passes = false;

	for (u32 r = 0; r < s->rigs; r++) {
		bool said;

		make_frame(p, &frame);
		said = rig_passes(s->rig[r], 0, &frame);
		if (says != MODEL_EITHER && said != (says == MODEL_PASS)) {
			explain(s, p);
			fail_msg(
				"step %llu at %llu ns, source %u port %u proto %u length %u: %s says %s, the model %s (%s)",
				step, s->mono_ns, p->source, ports[p->port], p->proto, p->length,
				s->rig[r]->dp->ops->name, words[said], words[says],
				first < LIMITS ? s->def[first].name : "no limit");
		}
		if (r && said != passes)
			fail_msg("step %llu: %s and %s differ", step, s->rig[0]->dp->ops->name,
				 s->rig[r]->dp->ops->name);
		passes = said;
	}
	s->asked++;
	s->unsure += unsure_count > 0;
	if (passes) {
		model_watchers(s, p);
		return;
	}
	s->drops++;
	if (first < LIMITS) {
		s->refused[first]++;
		plan_again(s, p, first);
	} else if (unsure_count == 1) {
		model_refused(&s->rule[unsure], bucket_of(s, unsure, p), now_of(s),
			      cost_of(unsure, p));
	}
}

/* ------------------------------------------------------------------ what changes */

static void set_time(struct schedule *s)
{
	for (u32 r = 0; r < s->rigs; r++)
		rig_set_time(s->rig[r], s->mono_ns, s->utc_offset_ns);
}

/* The daemon's sweep. Between sweeps, whether a window that is over is known is left open. */
static void sweep(struct schedule *s)
{
	for (u32 r = 0; r < s->rigs; r++)
		dp_sweep(s->rig[r]->dp, s->rig[r]->now);
	for (u32 i = 0; i < LIMITS; i++)
		for (u32 b = 0; b < BUCKETS; b++)
			model_swept(&s->rule[i], &s->bucket[i][b], now_of(s));
}

static void step_time(struct schedule *s, bool flood)
{
	static const struct {
		u32 permille;
		u64 calm_ns, flood_ns; /* at most */
	} kind[] = {
		{ 550, 1, 1 },
		{ 350, 2000000, 20000 },
		{ 95, 20000000, 200000 },
		{ 4, 500000000, 20000000 },
		{ 1, 5 * SEC, SEC },
	};
	u32 dice = rng_below(1000), i = 0;

	while (dice >= kind[i].permille)
		dice -= kind[i++].permille;
	s->mono_ns += rng_below(flood ? kind[i].flood_ns : kind[i].calm_ns);
	set_time(s);
}

/* UTC is set forwards or backwards, by a little or by several windows. */
static void step_clock(struct schedule *s)
{
	u64 by = rng_below(2) ? rng_below(SEC) : rng_below(200 * SEC);

	sweep(s);
	s->utc_offset_ns += rng_below(2) ? by : -by;
	set_time(s);
}

/* Another rate, from an eighth of the first to four times it, and another burst. */
static void change_rate(struct schedule *s)
{
	u32 i = rng_below(TAGGED);
	struct limit_def *def = &s->def[i];
	struct model_rule from = s->rule[i];
	u64 most = s->first[i].terms.rates.rate[0].count * 4,
	    burst = s->first[i].terms.rates.burst[0];

	if (rng_below(2))
		def->terms.rates.rate[0].count = most / 32 + 1 + rng_below(most);
	else
		def->terms.rates.rate[0].count =
			most >> rng_below(5); /* exact, where the first one is */
	if (from.algo == SL_ALGO_TOKEN_BUCKET)
		def->terms.rates.burst[0] = rng_below(3) ? burst / 2 + rng_below(burst * 2) : 0;
	/* By the rates until now, as the data planes do: an interval bucket that was empty by them
	 * is cleared. */
	sweep(s);
	s->rule[i] = model_rule(def->terms.algorithm, def->terms.rates.rate[0],
				def->terms.rates.burst[0]);
	for (u32 b = 0; b < BUCKETS; b++)
		model_change(&from, &s->rule[i], &s->bucket[i][b], now_of(s));
	for (u32 r = 0; r < s->rigs; r++)
		rig_apply(s->rig[r], s->def, LIMITS);
}

static struct step_packet random_packet(void)
{
	struct step_packet p = {
		.source = rng_below(2) ? rng_below(SOURCES) : rng_below(4) * 6,
		.port = rng_below(PORTS),
		.proto = rng_below(2) ? 6 : 17,
		.length = rng_below(4) ? 74 + rng_below(60) : 74 + rng_below(1440),
	};

	if (p.proto == 6)
		p.tcp_flags = rng_below(2) ? 0x02 : rng_below(2) ? 0x10 : 0x12;
	return p;
}

/* ------------------------------------------------------------------ the whole */

/* Every limit refused and passed packets, and every data plane counted like the model. */
static void check_counters(struct schedule *s, u64 steps)
{
	u32 refusing = 0;

	for (u32 r = 0; r < s->rigs; r++) {
		struct sl_iface_stats stats;
		u64 all = 0;

		for (u32 i = 0; i < LIMITS; i++) {
			struct sl_limit_stats one = rig_limit_stats(s->rig[r], i);
			u64 no = one.packets[SL_LV_DROP] + one.packets[SL_LV_TAG] +
				 one.packets[SL_LV_SHADOW];

			if (one.packets[SL_LV_PASS] != s->passed[i] ||
			    no + s->unsure < s->refused[i] || no > s->refused[i] + s->unsure)
				fail_msg("%s counts for %s %llu and %llu, the model %llu and %llu",
					 s->rig[r]->dp->ops->name, s->def[i].name,
					 one.packets[SL_LV_PASS], no, s->passed[i], s->refused[i]);
			assert_int_equal(one.evicted + one.full + one.refund_lost, 0);
		}
		s->rig[r]->dp->ops->iface_stats(s->rig[r]->dp, 0, &stats);
		for (u32 i = 0; i < SL_R_COUNT * SL_ACT_COUNT; i++)
			all += stats.packets[i / SL_ACT_COUNT][i % SL_ACT_COUNT];
		assert_int_equal(all, steps);
	}
	for (u32 i = 0; i < LIMITS; i++) {
		print_message("# %-12s passed %8llu refused %8llu\n", s->def[i].name, s->passed[i],
			      s->refused[i]);
		assert_true(s->passed[i] >= steps / 1000);
		refusing += s->refused[i] >= steps / 10000;
	}
	/* One whose rate went up early may refuse next to nothing; not many of them. */
	assert_in_range(refusing, LIMITS - 4, LIMITS);
	print_message(
		"# %llu steps, %llu dropped, %llu to the nanosecond, %llu within the rounding\n",
		steps, s->drops, s->edges, s->unsure);
	assert_true(s->unsure <= steps / 200);
}

void schedule_run(const char *test, struct rig *const *rig, u32 rigs, u64 steps)
{
	static struct schedule s;
	bool flood = false;

	rng_start(test);
	memset(&s, 0, sizeof(s));
	s.rig = rig;
	s.rigs = rigs;
	s.mono_ns = rig[0]->now.mono_ns;
	s.utc_offset_ns = rig[0]->utc_offset_ns;
	make_limits(&s);
	memcpy(s.first, s.def, sizeof(s.first));
	for (u32 r = 0; r < rigs; r++)
		rig_apply(rig[r], s.def, LIMITS);
	for (u64 step = 0; step < steps; step++) {
		struct step_packet p = random_packet();

		if (!rng_below(2000))
			flood = !flood;
		if (!rng_below(5000))
			change_rate(&s);
		if (!rng_below(5000))
			step_clock(&s);
		if (s.again_ns) {
			p = s.again;
			s.mono_ns = s.again_ns;
			s.again_ns = 0;
			s.edges++;
			set_time(&s);
		} else {
			step_time(&s, flood);
		}
		judge(&s, step, &p);
	}
	check_counters(&s, steps);
}
