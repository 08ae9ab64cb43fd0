/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The meters of a limit: its rates, its prefix hierarchy, soft throttles, the stand-ins
 * when the table is full; and that a change of one leaves the others their limit_ids.
 */
#include "lib/test.h"
#include "policy_make.h"

/* The meters of limit 0 along `next`; returns how many. */
static u32 chain_of(const struct sl_image *image, const struct sl_limit **ret, u32 room)
{
	u32 count = 0;

	for (u32 i = 0; i != SL_NO_METER; i = image->rules->limits[i].next) {
		const struct sl_limit *meter = &image->rules->limits[i];

		assert_true(count < room && i < SL_METERS_MAX);
		assert_true(!i || i >= SL_METER_FURTHER);
		assert_int_equal(meter->head, 0);
		assert_int_equal(image->rules->limit_of_id[meter->slot], i);
		assert_int_equal(slots[meter->slot].state, SL_LIMIT_ID_BOUND);
		ret[count++] = meter;
	}
	return count;
}

static const struct sl_limit *meter_at(const struct sl_image *image, u16 index)
{
	assert_true(index >= SL_METER_FURTHER && index < SL_METERS_MAX);
	return &image->rules->limits[index];
}

/* 10 packets/s with a burst of 20, and 500 packets/h with one of 30. */
static struct limit_def two_rates(const char *name)
{
	struct limit_def def = make_limit(name);

	def.terms.rates = (struct rates){
		.rate = { { 10, SEC, RATE_PACKETS }, { 500, 3600 * SEC, RATE_PACKETS } },
		.burst = { 20, 30 },
		.count = 2,
	};
	return def;
}

/* v4 /32 and, times 16, /24; v6 /64, times 4 /56, times 16 /48. */
static void add_prefix_hierarchy(struct limit_def *def)
{
	def->prefix = (struct prefix_hierarchy){
		.len = { { 32, 24 }, { 64, 56, 48 } },
		.scale = { { 1, 16 }, { 1, 4, 16 } },
		.count = { 2, 3 },
	};
}

TEST(test_plain)
{
	struct limit_def limit[] = { make_limit("a"), two_rates("b"), make_limit("c") };
	const struct sl_limit *meter;
	struct sl_image *image;

	memset(slots, 0, sizeof(slots));
	limit[0].has_dscp = true;
	limit[2].has_mark = true;
	image = compile_limits(limit, COUNT(limit));
	assert_int_equal(image->rules->limits[0].tag, SL_TAG_DSCP);
	assert_int_equal(image->rules->limits[1].tag, 0);
	assert_int_equal(image->rules->limits[2].tag, SL_TAG_MARK);
	for (u32 i = 0; i < COUNT(limit); i++) {
		meter = &image->rules->limits[i];
		assert_int_equal(meter->head, i);
		assert_int_equal(meter->single_meter, i != 1);
		assert_int_equal(meter->soft, SL_NO_METER);
		assert_int_equal(meter->full, SL_NO_METER);
		assert_int_equal(meter->ban, SL_NO_METER);
		assert_int_equal(meter->overridden, SL_NO_METER);
	}
	meter = meter_at(image, image->rules->limits[1].next);
	assert_int_equal(meter->single_meter, 0);
	assert_int_equal(meter->next, SL_NO_METER);
	image_free(image);
}

TEST(test_rates)
{
	struct limit_def limit[] = { two_rates("a") };
	const struct sl_limit *meter[2];
	struct sl_image *image;

	memset(slots, 0, sizeof(slots));
	limit[0].mode = SL_MODE_SHADOW;
	image = compile_limits(limit, 1);
	assert_int_equal(chain_of(image, meter, 2), 2);
	assert_int_equal(meter[0]->params.capacity, 20);
	assert_int_equal(meter[1]->params.capacity, 30);
	assert_true(meter[1]->params.tau > meter[0]->params.tau * 100);
	assert_int_equal(meter[1]->mode, SL_MODE_SHADOW);
	assert_string_equal(slots[meter[0]->slot].name, "a");
	assert_string_equal(slots[meter[1]->slot].name, "a#2");
	image_free(image);
}

TEST(test_prefix_hierarchy)
{
	static const struct {
		u8 v4, v6;
		u32 rate, scale;
	} want[] = {
		{ 32, 64, 0, 1 },
		{ 32, 64, 1, 1 },
		{ 24, 48, 0, 16 },
		{ 24, 48, 1, 16 },
		{ SL_PREFIX_NONE, 56, 0, 4 },
		{ SL_PREFIX_NONE, 56, 1, 4 },
	};
	struct limit_def limit[] = { two_rates("a") };
	const struct sl_limit *meter[8];
	struct sl_image *image;

	memset(slots, 0, sizeof(slots));
	add_prefix_hierarchy(&limit[0]);
	image = compile_limits(limit, 1);
	assert_int_equal(chain_of(image, meter, 8), COUNT(want));
	for (u32 i = 0; i < COUNT(want); i++) {
		u64 period = limit[0].terms.rates.rate[want[i].rate].period_ns;
		u64 count = limit[0].terms.rates.rate[want[i].rate].count * want[i].scale;

		assert_int_equal(meter[i]->prefix[SL_V4], want[i].v4);
		assert_int_equal(meter[i]->prefix[SL_V6], want[i].v6);
		assert_int_equal(meter[i]->params.capacity,
				 limit[0].terms.rates.burst[want[i].rate] * want[i].scale);
		assert_int_equal(meter[i]->params.mult,
				 (period * SL_TICKS_PER_NS + count - 1) / count);
	}
	image_free(image);

	/* The default burst is multiplied, too; different multipliers at the first step. */
	limit[0] = make_limit("a");
	limit[0].terms.rates.rate[0].period_ns = 3600 * SEC;
	limit[0].terms.rates.burst[0] = 0;
	limit[0].prefix.scale[SL_V6][0] = 7;
	image = compile_limits(limit, 1);
	assert_int_equal(chain_of(image, meter, 8), 2);
	assert_int_equal(meter[0]->prefix[SL_V6], SL_PREFIX_NONE);
	assert_int_equal(meter[0]->params.capacity, 1);
	assert_int_equal(meter[1]->prefix[SL_V4], SL_PREFIX_NONE);
	assert_int_equal(meter[1]->params.capacity, 7);
	image_free(image);
}

TEST(test_soft)
{
	static const struct {
		struct rate rate;
		u64 burst, capacity; /* capacity: of the soft row */
		u32 permille;
		struct rate soft; /* what its interval is of; count 0: a window */
	} table[] = {
		{ { 100, SEC, RATE_PACKETS }, 200, 20, 100, { 10, SEC, 0 } },
		{ { 15, SEC, RATE_PACKETS }, 1, 1, 100, { 3, 2 * SEC, 0 } },
		{ { 3, 60 * SEC, RATE_PACKETS }, 0, 1, 100, { 3, 600 * SEC, 0 } },
		{ { 1000000, SEC, RATE_BYTES }, 20000, 9018, 100, { 100000, SEC, 0 } },
		{ { 1000000, SEC, RATE_BYTES }, 2000000, 50000, 25, { 25000, SEC, 0 } },
		{ { 105, 60 * SEC, RATE_PACKETS }, 0, 10, 100, { 0 } },
		{ { 5, 60 * SEC, RATE_PACKETS }, 0, 1, 100, { 0 } },
		{ { 100, 60 * SEC, RATE_PACKETS }, 0, 100, 1000, { 0 } },
	};
	const struct sl_limit *head, *soft;
	struct sl_image *image;

	for (size_t i = 0; i < COUNT(table); i++) {
		struct limit_def limit[] = { make_limit("a"), make_limit("b") };
		const struct rate *r = &table[i].soft;

		limit[0].terms.rates.rate[0] = table[i].rate;
		limit[0].terms.rates.burst[0] = table[i].burst;
		limit[0].action = SL_ACT_TAG;
		limit[0].terms.throttle.kind = THROTTLE_SOFT;
		limit[0].terms.throttle.soft_permille = table[i].permille;
		limit[1].action = SL_ACT_TAG;
		if (!r->count)
			limit[0].terms.algorithm = SL_ALGO_FIXED_WINDOW;
		image = compile_limits(limit, 2);
		head = &image->rules->limits[0];
		soft = meter_at(image, head->soft);
		assert_int_equal(head->single_meter, 0);
		assert_int_equal(soft->next, SL_NO_METER);
		assert_int_equal(soft->soft, SL_NO_METER);
		assert_int_equal(soft->params.algo, head->params.algo);
		assert_int_equal(soft->params.capacity, table[i].capacity);
		assert_string_equal(slots[soft->slot].name, "a#1s");
		if (r->count) /* rounded up, to a tick at most */
			assert_in_range(soft->params.mult >> soft->params.shift,
					r->period_ns * SL_TICKS_PER_NS / r->count,
					r->period_ns * SL_TICKS_PER_NS / r->count + 1);
		/* It drops above the soft part, whatever its action; its neighbour does not. */
		assert_int_equal(image->rules->dropping.w[0], 1);
		image_free(image);
	}
}

/* Soft for 30 s: a grace row behind each soft row. */
TEST(test_grace)
{
	struct limit_def limit[] = { two_rates("a") };
	const struct sl_limit *meter[2], *soft, *grace;
	struct sl_image *image;

	limit[0].terms.throttle = (struct throttle_def){
		.kind = THROTTLE_SOFT,
		.soft_permille = 100,
		.soft_for_ns = 30 * SEC,
	};
	limit[0].prefix.len[SL_V4][0] = 24;
	image = compile_limits(limit, 1);
	assert_int_equal(chain_of(image, meter, 2), 2);
	for (u32 i = 0; i < 2; i++) {
		soft = meter_at(image, meter[i]->soft);
		grace = meter_at(image, soft->next);
		assert_int_equal(soft->params.algo, SL_ALGO_TOKEN_BUCKET);
		assert_int_equal(grace->params.algo, SL_ALGO_GRACE);
		assert_int_equal(grace->params.window_ns, 30 * SEC);
		assert_int_equal(grace->prefix[SL_V4], 24);
		assert_int_equal(grace->next, SL_NO_METER);
		assert_int_equal(grace->lease, 0);
		assert_string_equal(slots[grace->slot].name, i ? "a#2g" : "a#1g");
	}
	image_free(image);
}

TEST(test_ban)
{
	static const struct {
		struct ban_def ban;
		u32 levels;
		u64 seconds[SL_BAN_LEVELS];
	} table[] = {
		{ { 1000, 10 * SEC, 300 * SEC, 86400 * SEC, 200, false, false },
		  10,
		  { 300, 600, 1200, 2400, 4800, 9600, 19200, 38400, 76800, 86400 } },
		{ { 1, SEC, 60 * SEC, 60 * SEC, 200, false, false }, 1, { 60 } },
		{ { 1, SEC, 60 * SEC, 100 * SEC, 100, false, false }, 1, { 60 } },
		{ { 1, SEC, 60 * SEC, 100 * SEC, 150, false, false }, 3, { 60, 90, 100 } },
		/* 15 times doubled, and no more */
		{ { 1, SEC, SEC, 31536000 * SEC, 200, false, false },
		  16,
		  { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768 } },
		{ { 1, SEC, 31536000 * SEC, 31536000 * SEC, 10000, false, false },
		  1,
		  { 31536000 } },
	};
	const struct sl_limit *meter[4], *trigger;
	struct sl_image *image;

	for (size_t i = 0; i < COUNT(table); i++) {
		struct limit_def limit[] = { make_limit("a"), make_limit("b") };
		const struct sl_ban *ban;

		limit[0].ban = table[i].ban;
		limit[0].per = SL_PER_SOURCE | SL_PER_DPORT;
		add_prefix_hierarchy(&limit[0]);
		image = compile_limits(limit, 2);
		assert_int_equal(chain_of(image, meter, 4), 3);
		assert_int_equal(meter[0]->single_meter, 0);
		assert_int_equal(meter[0]->ban, 0);
		assert_int_equal(meter[1]->ban, SL_NO_METER);
		assert_int_equal(image->rules->limits[1].ban, SL_NO_METER);
		assert_int_equal(image->rules->limits[1].single_meter, 1);
		ban = &image->rules->ban[meter[0]->ban];
		assert_int_equal(ban->levels, table[i].levels);
		for (u32 k = 0; k < ban->levels; k++)
			assert_int_equal(ban->dur_ns[k], table[i].seconds[k] * SEC);
		trigger = meter_at(image, ban->trigger);
		assert_int_equal(trigger->params.algo, SL_ALGO_SLIDING_WINDOW);
		assert_int_equal(trigger->params.capacity, table[i].ban.after);
		assert_int_equal(trigger->params.window_ns, table[i].ban.within_ns);
		assert_int_equal(trigger->per, SL_PER_SOURCE);
		assert_int_equal(trigger->lease, 0);
		assert_int_equal(trigger->head, 0);
		assert_string_equal(slots[trigger->slot].name, "a#1b");
		image_free(image);
	}
}

/* Elastic: every meter of the limit, and room in a sliding window for its largest scale. */
TEST(test_elastic)
{
	struct limit_def limit[] = { two_rates("a"), make_limit("b") };
	const struct sl_limit *meter[2];
	struct sl_image *image;

	limit[0].terms.throttle = (struct throttle_def){
		.kind = THROTTLE_ELASTIC,
		.ceiling_percent = 400,
		.cpu_percent = 70,
	};
	limit[0].terms.algorithm = SL_ALGO_SLIDING_WINDOW;
	limit[0].terms.rates.burst[0] = limit[0].terms.rates.burst[1] = 0;
	limit[0].terms.rates.rate[0].count = 1 << 24;
	image = compile_limits(limit, 2);
	assert_int_equal(chain_of(image, meter, 2), 2);
	assert_true(meter[0]->elastic && meter[1]->elastic && !meter[0]->single_meter);
	assert_int_equal(meter[0]->params.quantum, 2); /* 2^26 in 25 bits */
	assert_int_equal(meter[1]->params.quantum, 0);
	assert_true(image->rules->limits[1].single_meter && !image->rules->limits[1].elastic);
	image_free(image);
}

/* Where the table is full: /24 and /48, unless the group is as wide as that already. */
TEST(test_on_full_prefix)
{
	struct limit_def limit[] = { make_limit("a") };
	const struct sl_limit *meter[8], *full;
	struct sl_image *image;

	limit[0].on_full = SL_FULL_PREFIX;
	image = compile_limits(limit, 1);
	full = meter_at(image, image->rules->limits[0].full);
	assert_int_equal(image->rules->limits[0].single_meter, 0);
	assert_int_equal(full->prefix[SL_V4], 24);
	assert_int_equal(full->prefix[SL_V6], 48);
	assert_int_equal(full->params.capacity, image->rules->limits[0].params.capacity);
	assert_string_equal(slots[full->slot].name, "a#1f");
	image_free(image);

	add_prefix_hierarchy(&limit[0]);
	image = compile_limits(limit, 1);
	assert_int_equal(chain_of(image, meter, 8), 3);
	assert_int_equal(meter[1]->full, SL_NO_METER); /* /24 and /48 */
	full = meter_at(image, meter[2]->full);	       /* /56 */
	assert_int_equal(full->prefix[SL_V4], SL_PREFIX_NONE);
	assert_int_equal(full->prefix[SL_V6], 48);
	image_free(image);
}

/* A change of one meter leaves the other meters their bucket states. */
TEST(test_limit_ids_stay)
{
	char long_name[SL_NAME_MAX];
	struct limit_def limit[2];
	struct policy policy = make_policy(limit, 2);
	struct compile_env env = make_env();
	const struct sl_limit *meter[8];
	struct sl_image *image;
	u32 slot[4];

	/* Two limits whose names differ in the last character, which is cut for "#2". */
	memset(long_name, 'x', sizeof(long_name));
	long_name[SL_NAME_MAX - 1] = 0;
	limit[0] = two_rates(long_name);
	long_name[SL_NAME_MAX - 2] = 'y';
	limit[1] = two_rates(long_name);
	add_prefix_hierarchy(&limit[0]);
	memset(slots, 0, sizeof(slots));
	image = compile(&policy, &env);
	assert_int_equal(chain_of(image, meter, 8), 6);
	for (u32 i = 0; i < 4; i++)
		slot[i] = meter[i]->slot;
	assert_int_not_equal(meter_at(image, image->rules->limits[1].next)->slot, slot[1]);
	image_free(image);

	/* The rates change, a step goes, soft comes, the limit is another's neighbour now. */
	limit[0].terms.rates.rate[0].count = 77;
	limit[0].terms.rates.rate[1].count = 7777;
	limit[0].prefix.len[SL_V6][1] = 48;
	limit[0].prefix.scale[SL_V6][1] = 16;
	limit[0].prefix.count[SL_V6] = 2;
	limit[0].terms.throttle.kind = THROTTLE_SOFT;
	limit[0].terms.throttle.soft_permille = 100;
	policy.limit_count = 1;
	image = compile(&policy, &env);
	assert_int_equal(chain_of(image, meter, 8), 4);
	for (u32 i = 0; i < 4; i++)
		assert_int_equal(meter[i]->slot, slot[i]);
	image_free(image);
}

TEST(test_too_many)
{
	static struct limit_def limit[SL_LIMITS_MAX];
	struct policy policy = make_policy(limit, COUNT(limit));
	struct compile_env env = make_env();
	struct sl_image *image = NULL;
	const u32 room = SL_METERS_MAX - SL_METER_FURTHER;
	struct sl_err err;
	char name[16], meters[32];

	for (u32 i = 0; i < COUNT(limit); i++) {
		snprintf(name, sizeof(name), "l%u", i);
		limit[i] = two_rates(name);
	}
	memset(slots, 0, sizeof(slots));
	image_free(compile(&policy, &env));

	for (u32 i = 0; i < COUNT(limit); i++)
		add_prefix_hierarchy(&limit[i]);
	policy.path = "x.yaml";
	/* Five further rows each. */
	snprintf(meters, sizeof(meters), "accepted: up to %u meters", room);
	limit[room / 5].pos = (struct config_pos){ 12, 5 };
	assert_int_equal(image_compile(&policy, &env, &image, &err), -E2BIG);
	assert_int_equal(err.line, 12);
	assert_non_null(strstr(err.message, meters));
	policy.limit_count = room / 5;
	image_free(compile(&policy, &env));

	/* A multiplier that a step cannot hold. */
	policy.limit_count = 1;
	limit[0] = make_limit("a");
	limit[0].terms.rates.rate[0].count = 100000000;
	limit[0].prefix.scale[SL_V4][0] = limit[0].prefix.scale[SL_V6][0] = 16;
	assert_int_equal(image_compile(&policy, &env, &image, &err), -ERANGE);
	assert_non_null(strstr(err.message, "prefix_scale of 16: the rate is above 1G"));
}

static void collect(void *arg, const struct limit_def *limit, const char *words)
{
	char *text = arg;

	snprintf(text + strlen(text), 1000 - strlen(text), "%s%s%s\n", limit ? limit->name : "",
		 limit ? ": " : "", words);
}

/* Notes of `check`: rounding, accounting, steps that never bind; of usual limits none. */
TEST(test_notes)
{
	struct limit_def limit[] = {
		make_limit("usual"), two_rates("ladder"),  two_rates("flat"),  make_limit("leaky"),
		make_limit("exact"), make_limit("window"), make_limit("fast"), make_limit("slow"),
	};
	struct policy policy = make_policy(limit, COUNT(limit));
	struct compile_env env = make_env();
	struct sl_image *image;
	struct sl_err err = { .message = "" };
	char text[1000] = "", *dump;
	json_t *exact;

	add_prefix_hierarchy(&limit[1]);
	add_prefix_hierarchy(&limit[2]);
	limit[2].prefix.scale[SL_V4][1] = 1;
	limit[3].terms.algorithm = limit[4].terms.algorithm = SL_ALGO_LEAKY_BUCKET;
	limit[3].terms.rates.burst[0] = limit[4].terms.rates.burst[0] =
		limit[5].terms.rates.burst[0] = 0;
	limit[4].accounting = ACCOUNTING_EXACT;
	limit[5].terms.algorithm = SL_ALGO_SLIDING_WINDOW;
	limit[5].terms.rates.rate[0].count = 1000000000;
	limit[6].terms.rates.rate[0].count = 7000000;
	limit[7].terms.rates.rate[0] = (struct rate){ 10, 3600 * SL_NS_PER_SEC, RATE_PACKETS };
	limit[7].terms.rates.burst[0] = 10;
	policy.table_buckets = 1000000;
	memset(slots, 0, sizeof(slots));
	image = compile(&policy, &env);
	policy_notes(&policy, image->rules, collect, text);
	assert_string_equal(
		text, "interfaces is empty: no packet meets its limits\n"
		      "flat: a whole /24 has no higher limit than each /32 in it; "
		      "set prefix_scale.ipv4 to give it a multiple\n"
		      "window: rounding changes its rate by up to 0.0716 % (accepted: up to 1 %)\n"
		      "fast: rounding changes its rate by up to 0.0125 % (accepted: up to 1 %)\n"
		      "slow: 101M packets within 1h, from 9.2M forged sources, fill the "
		      "table (table.buckets); then on_full applies to new sources\n");
	exact = exact_limits(&policy, image->rules);
	dump = json_dumps(exact, JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(
		dump,
		"[{\"limits\":[\"ladder\",\"flat\",\"slow\"],\"why\":\"it is too small to be divided "
		"among so many CPUs\"},{\"limits\":[\"leaky\"],\"why\":\"a leaky "
		"bucket holds one packet (or frame), which is not divided among CPUs\"}]");
	free(dump);
	json_decref(exact);
	image_free(image);

	/* Above 1 % it is refused. */
	limit[6].terms.rates.rate[0].count = 900000000;
	assert_int_equal(image_compile(&policy, &env, &image, &err), -ERANGE);
	assert_non_null(
		strstr(err.message, "limit 'fast': the rate cannot be represented within 1 %"));
}

static void collect_common(void *arg, const struct limit_def *limit, const char *words)
{
	if (!limit)
		collect(arg, NULL, words);
}

#define MANY "one packet may match up to "

/* More limits than a packet is charged to; protocol and port keep limits apart. */
TEST(test_note_together)
{
	static const struct {
		u32 same, apart;  /* limits for all packets; each for a port of its own, */
		bool protos;	  /* or a protocol */
		u32 tagging;	  /* of the first ones */
		u32 steep;	  /* of the last ones: two rates at two and three prefix lengths */
		const char *note; /* NULL: none */
	} cases[] = {
		{ .same = 16 },
		{ .same = 17, .note = MANY "17 limits that drop, with 17 meters" },
		{ .same = 15, .apart = 90 },
		{ .same = 15, .apart = 90, .protos = true },
		{ .same = 16, .apart = 2, .note = MANY "17 limits that drop, with 17 meters" },
		{ .same = 17, .tagging = 1, .note = MANY "17 limits, with 17 meters" },
		{ .same = 17, .tagging = 16, .note = MANY "17 limits, with 17 meters" },
		{ .same = 7, .steep = 5 },
		{ .same = 8, .steep = 5, .note = MANY "8 limits that drop, with 33 meters" },
	};

	for (u32 i = 0; i < COUNT(cases); i++) {
		struct limit_def limit[128];
		char name[16], text[1000] = "";
		u32 count = cases[i].same + cases[i].apart;
		struct policy policy = make_policy(limit, count);
		struct compile_env env = make_env();
		struct u16_range port[128];
		u8 proto[128];
		struct sl_image *image;

		policy.interface_count = 1;
		for (u32 k = 0; k < count; k++) {
			snprintf(name, sizeof(name), "l%u", k);
			limit[k] = k + cases[i].steep < count ? make_limit(name) : two_rates(name);
			if (k + cases[i].steep >= count)
				add_prefix_hierarchy(&limit[k]);
			if (k < cases[i].tagging)
				limit[k].action = SL_ACT_TAG;
			port[k] = (struct u16_range){ k, k };
			proto[k] = (u8)k;
			if (k < cases[i].same)
				continue;
			limit[k].match.dport = &port[k];
			limit[k].match.dport_count = !cases[i].protos;
			limit[k].match.proto = &proto[k];
			limit[k].match.proto_count = cases[i].protos;
		}
		memset(slots, 0, sizeof(slots));
		image = compile(&policy, &env);
		policy_notes(&policy, image->rules, collect_common, text);
		if (!text[0] != !cases[i].note || (text[0] && !strstr(text, cases[i].note)))
			fail_msg("%u: \"%s\"", i, text);
		image_free(image);
	}
}

TEST_MAIN
