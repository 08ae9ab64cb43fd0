/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A compiled image against a matcher that reads struct match_def directly; and the compiled form
 * of lists, deadlines and failsafe ports. Slots: test_limit_ids.c.
 */
#include "lib/test.h"
#include "policy_make.h"
#include "lib/rng.h"

static bool in_bitmap(const struct sl_bitmap *bitmap, u32 limit)
{
	return bitmap->w[limit >> 6] & 1ULL << (limit & 63);
}

/* ------------------------------------------------------------------ matching */

struct test_packet {
	struct sl_prefix src, dst; /* whole addresses */
	u8 proto, tcp_flags, icmp_type;
	bool has_ports, has_vlan;
	u32 dport, sport, vlan, length, iface;
};

static bool naive_prefix(const struct sl_prefix *list, size_t count, const struct sl_prefix *addr)
{
	for (size_t i = 0; i < count; i++) {
		struct sl_addr masked = sl_addr_mask(addr->addr, list[i].len);

		if (list[i].family == addr->family && masked.hi == list[i].addr.hi &&
		    masked.lo == list[i].addr.lo)
			return true;
	}
	return !count;
}

static bool naive_range(const struct u16_range *list, size_t count, bool has, u32 value)
{
	for (size_t i = 0; i < count; i++) {
		if (has && list[i].first <= value && value <= list[i].last)
			return true;
	}
	return !count;
}

static bool naive_match(const struct match_def *m, const struct test_packet *p)
{
	bool ok = naive_prefix(m->src, m->src_count, &p->src) &&
		  naive_prefix(m->dst, m->dst_count, &p->dst) &&
		  naive_range(m->dport, m->dport_count, p->has_ports, p->dport) &&
		  naive_range(m->sport, m->sport_count, p->has_ports, p->sport) &&
		  naive_range(m->length, m->length_count, true, p->length) &&
		  naive_range(m->vlan, m->vlan_count, p->has_vlan, p->vlan);
	bool any = !m->proto_count;

	for (size_t i = 0; i < m->proto_count; i++)
		any |= m->proto[i] == p->proto;
	ok &= any;
	any = !m->tcp_flags_count;
	for (size_t i = 0; i < m->tcp_flags_count; i++)
		any |= p->proto == 6 && !(m->tcp_flags[i].set & ~p->tcp_flags) &&
		       !(m->tcp_flags[i].clear & p->tcp_flags);
	ok &= any;
	any = !m->icmp_type_count;
	for (size_t i = 0; i < m->icmp_type_count; i++)
		any |= p->proto == (m->icmp_type[i].family == SL_V4 ? 1 : 58) &&
		       p->icmp_type == m->icmp_type[i].type;
	ok &= any;
	any = !m->interface_count;
	for (size_t i = 0; i < m->interface_count; i++)
		any |= !strcmp(m->interface[i], iface[p->iface]);
	return ok && any;
}

static void and_bitmap(struct sl_bitmap *a, const struct sl_bitmap *b)
{
	for (u32 w = 0; w < SL_BITMAP_WORDS; w++)
		a->w[w] &= b->w[w];
}

static void and_dim16(const struct sl_rules *r, struct sl_bitmap *match, u32 dim, bool has,
		      u32 value)
{
	if (r->dims & SL_DIMS_16(dim))
		and_bitmap(match, has ? &r->class16[r->dim16[dim][value]] : &r->none16[dim]);
}

static void and_dim8(const struct sl_rules *r, struct sl_bitmap *match, u32 dim, bool has,
		     u32 value)
{
	if (r->dims & SL_DIMS_8(dim))
		and_bitmap(match, has ? &r->dim8[dim][value] : &r->none8[dim]);
}

/* As in the data path. */
static struct sl_bitmap image_match(const struct sl_image *image, const struct test_packet *p)
{
	const struct sl_rules *r = image->rules;
	struct sl_bitmap match = r->all;

	if (r->dims & SL_DIMS_P(SL_PDIM_SRC))
		and_bitmap(&match,
			   &image->pclass[image_pclass(image, SL_PDIM_SRC, &p->src)].limits);
	if (r->dims & SL_DIMS_P(SL_PDIM_DST))
		and_bitmap(&match,
			   &image->pclass[image_pclass(image, SL_PDIM_DST, &p->dst)].limits);
	and_dim16(r, &match, SL_DIM_DPORT, p->has_ports, p->dport);
	and_dim16(r, &match, SL_DIM_SPORT, p->has_ports, p->sport);
	and_dim16(r, &match, SL_DIM_LENGTH, true, p->length);
	and_dim16(r, &match, SL_DIM_VLAN, p->has_vlan, p->vlan);
	and_dim8(r, &match, SL_DIM_PROTO, true, p->proto);
	and_dim8(r, &match, SL_DIM_TCP_FLAGS, p->proto == 6, p->tcp_flags);
	and_dim8(r, &match, p->proto == 58 ? SL_DIM_ICMPV6 : SL_DIM_ICMP,
		 p->proto == 1 || p->proto == 58, p->icmp_type);
	and_dim8(r, &match, SL_DIM_IFACE, true, p->iface);
	return match;
}

/* Values come from small pools, so that conditions and packets meet. */
static u8 pick_proto(void)
{
	static const u8 proto[] = { 1, 6, 6, 6, 17, 58, 132 };

	return proto[rng_below(COUNT(proto))];
}

static struct sl_prefix pick_prefix(bool whole)
{
	u8 family = rng_below(SL_FAMILY_COUNT);
	u8 bits = family == SL_V4 ? 32 : 128;
	struct sl_prefix p =
		prefix(family, rng_below(4) << 62 | rng_below(4) << 40 | rng_below(2) << 32, 64);

	p.len = whole ? bits : rng_below(5) ? rng_below(bits + 1) : bits;
	p.addr = sl_addr_mask(p.addr, p.len < bits ? p.len : bits);
	return p;
}

static struct u16_range pick_range(u32 most)
{
	u32 first = rng_below(8) ? rng_below(6) * 100 : rng_below(most + 1);
	u32 last = first + rng_below(150);

	if (!rng_below(10))
		last = most;
	return (struct u16_range){ first, last < most ? last : most };
}

/* A condition on one limit in four: 1 to 3 times `value`. Freed by free_match(). */
#define RANDOM_VALUES(match, field, value)                                                         \
	do {                                                                                       \
		size_t n_ = rng_below(4) ? 0 : 1 + rng_below(3);                                   \
		(match)->field = n_ ? calloc(n_, sizeof(*(match)->field)) : NULL;                  \
		(match)->field##_count = n_;                                                       \
		for (size_t i_ = 0; i_ < n_; i_++)                                                 \
			(match)->field[i_] = (value);                                              \
	} while (0)

static void random_match(struct match_def *m)
{
	static const char *const name[] = { "eth0", "eth1", "wan", "absent" };

	RANDOM_VALUES(m, src, pick_prefix(false));
	RANDOM_VALUES(m, dst, pick_prefix(false));
	RANDOM_VALUES(m, proto, pick_proto());
	RANDOM_VALUES(m, dport, pick_range(65535));
	RANDOM_VALUES(m, sport, pick_range(65535));
	RANDOM_VALUES(m, length, pick_range(65535));
	RANDOM_VALUES(m, vlan, pick_range(4094));
	RANDOM_VALUES(m, tcp_flags, ((struct tcp_flags_cond){ rng() & 3, (rng() & 3) << 2 }));
	RANDOM_VALUES(m, icmp_type, ((struct icmp_type_cond){ rng_below(2), rng_below(4) }));
	m->interface_count = rng_below(4) ? 0 : 1 + rng_below(2);
	m->interface = calloc(2, sizeof(*m->interface));
	for (size_t i = 0; i < m->interface_count; i++)
		strcpy(m->interface[i], name[rng_below(COUNT(name))]);
}

static void free_match(struct match_def *m)
{
	free(m->src);
	free(m->dst);
	free(m->proto);
	free(m->dport);
	free(m->sport);
	free(m->length);
	free(m->vlan);
	free(m->tcp_flags);
	free(m->icmp_type);
	free(m->interface);
}

static struct test_packet random_packet(void)
{
	static const u8 slot[] = { 0, 2, 63 };
	struct test_packet p = {
		.src = pick_prefix(true),
		.dst = pick_prefix(true),
		.proto = pick_proto(),
		.tcp_flags = rng(),
		.icmp_type = rng_below(5),
		.has_vlan = rng_below(2),
		.dport = pick_range(65535).last,
		.sport = pick_range(65535).first,
		.vlan = pick_range(4094).first,
		.length = pick_range(65535).first,
		.iface = slot[rng_below(COUNT(slot))],
	};

	p.has_ports = p.proto == 6 || p.proto == 17 || p.proto == 132;
	return p;
}

TEST(test_bitmaps_against_naive)
{
	u64 matched = 0;

	rng_start("bitmaps_against_naive");
	for (int run = 0; run < 60; run++) {
		u32 count = 1 + rng_below(run % 10 ? 20 : SL_LIMITS_MAX);
		struct limit_def *limit = calloc(count, sizeof(*limit));
		struct sl_image *image;

		for (u32 i = 0; i < count; i++) {
			char name[16];

			snprintf(name, sizeof(name), "l%u", i);
			limit[i] = make_limit(name);
			limit[i].mode = rng_below(SL_MODE_OFF + 1);
			limit[i].action = rng_below(2) ? SL_ACT_DROP : SL_ACT_TAG;
			random_match(&limit[i].match);
		}
		memset(slots, 0, sizeof(slots));
		image = compile_limits(limit, count);
		for (int n = 0; n < 2000; n++) {
			struct test_packet p = random_packet();
			struct sl_bitmap match = image_match(image, &p);

			for (u32 i = 0; i < count; i++) {
				bool want = limit[i].mode != SL_MODE_OFF &&
					    naive_match(&limit[i].match, &p);

				if (want != in_bitmap(&match, i))
					fail_msg("run %d packet %d limit %u: want %d", run, n, i,
						 want);
				matched += want;
			}
			for (u32 i = count; i < SL_LIMITS_MAX; i++)
				assert_false(in_bitmap(&match, i));
		}
		for (u32 i = 0; i < count; i++) {
			assert_int_equal(in_bitmap(&image->rules->dropping, i),
					 limit[i].mode == SL_MODE_ENFORCE &&
						 limit[i].action == SL_ACT_DROP);
			free_match(&limit[i].match);
		}
		image_free(image);
		free(limit);
	}
	assert_true(matched > 10000);
}

/* Dimensions that no limit uses cost nothing. */
TEST(test_dims)
{
	struct limit_def limit[] = { make_limit("a"), make_limit("b") };
	struct u16_range port = { 443, 443 };
	struct icmp_type_cond type = { SL_V6, 128 };
	struct sl_prefix dst = prefix(SL_V4, 0xcb00710aULL << 32, 32);
	struct sl_image *image = compile_limits(limit, COUNT(limit));

	assert_int_equal(image->rules->dims, 0);
	assert_int_equal(image->rules->generation, 7);
	assert_int_equal(image->rules->limits_count, 2);
	assert_int_equal(image->pclass_count, 1);
	image_free(image);

	limit[0].match.dport = &port;
	limit[0].match.dport_count = 1;
	limit[1].match.icmp_type = &type;
	limit[1].match.icmp_type_count = 1;
	limit[1].match.dst = &dst;
	limit[1].match.dst_count = 1;
	image = compile_limits(limit, COUNT(limit));
	assert_int_equal(image->rules->dims, SL_DIMS_16(SL_DIM_DPORT) | SL_DIMS_8(SL_DIM_ICMP) |
						     SL_DIMS_8(SL_DIM_ICMPV6) |
						     SL_DIMS_P(SL_PDIM_DST) | SL_DIMS_L4);
	image_free(image);

	/* A limit that is off has no bit, and its conditions no cost. */
	limit[0].mode = SL_MODE_OFF;
	limit[1].mode = SL_MODE_OFF;
	image = compile_limits(limit, COUNT(limit));
	assert_int_equal(image->rules->dims, 0);
	assert_int_not_equal(image->rules->limits[0].slot, 0);
	image_free(image);
}

TEST(test_too_many_classes16)
{
	struct limit_def limit[40];
	struct u16_range range[40];
	struct policy policy = make_policy(limit, COUNT(limit));
	struct compile_env env = make_env();
	struct sl_image *image = NULL;
	struct sl_err err;
	int code;

	/* Overlapping ranges: 79 classes. */
	for (u32 i = 0; i < COUNT(limit); i++) {
		char name[16];

		snprintf(name, sizeof(name), "l%u", i);
		limit[i] = make_limit(name);
		range[i] = (struct u16_range){ 100 * i, 60000 - 100 * i };
		limit[i].match.dport = limit[i].match.sport = &range[i];
		limit[i].match.dport_count = limit[i].match.sport_count = 1;
	}
	image = compile(&policy, &env);
	image_free(image);

	/* Every tenth port is a pattern of its own. */
	for (u32 i = 0; i < 11; i++) {
		limit[i].match.dport = calloc(6554, sizeof(range[0]));
		limit[i].match.dport_count = 0;
		for (u32 n = 0; n < 6553; n++) {
			if (n & 1U << i)
				limit[i].match.dport[limit[i].match.dport_count++] =
					(struct u16_range){ n * 10, n * 10 };
		}
	}
	code = image_compile(&policy, &env, &image, &err);
	assert_int_equal(code, -E2BIG);
	assert_non_null(strstr(err.message, "1024"));
	for (u32 i = 0; i < 11; i++)
		free(limit[i].match.dport);
}

/* ------------------------------------------------------------------ lists */

static const struct sl_pclass *class_of(const struct sl_image *image, enum sl_pdim dim,
					const struct sl_prefix *addr)
{
	return &image->pclass[image_pclass(image, dim, addr)];
}

TEST(test_lists)
{
	struct compile_env env = make_env();
	u64 utc_now = env.mono_ns + env.utc_offset_ns;
	struct list_entry block[] = {
		{ .prefix = prefix(SL_V4, 10ULL << 56, 8), .pos.line = 1 },
		{ .prefix = prefix(SL_V4, 10ULL << 56, 7),
		  .until_utc_ns = utc_now + 60 * SEC,
		  .pos.line = 2 },
		{ .prefix = prefix(SL_V4, 0xc0000201ULL << 32, 32),
		  .until_utc_ns = utc_now,
		  .pos.line = 3 },
		{ .prefix = prefix(SL_V6, 0x20010000ULL << 32, 16), .pos.line = 4 },
		{ .prefix = prefix(SL_V6, 0x30000000ULL << 32, 15), .pos.line = 5 },
	};
	struct list_entry exempt[] = {
		{ .prefix = prefix(SL_V4, 0x0a010000ULL << 32, 16),
		  .until_utc_ns = utc_now + 1,
		  .pos.line = 6 },
	};
	struct limit_def limit[] = { make_limit("a") };
	struct policy policy = make_policy(limit, COUNT(limit));
	struct sl_prefix addr;
	struct sl_image *image;
	const struct sl_pclass *class;

	policy.list[LIST_BLOCK] = (struct list_def){ .entry = block, .count = COUNT(block) };
	policy.list[LIST_EXEMPT] = (struct list_def){ .entry = exempt, .count = COUNT(exempt) };
	image = compile(&policy, &env);
	assert_int_equal(image->rules->dims, SL_DIMS_P(SL_PDIM_SRC));

	addr = prefix(SL_V4, 0x0a010101ULL << 32, 32);
	class = class_of(image, SL_PDIM_SRC, &addr);
	assert_true(class->block_until == ~0ULL);
	assert_true(class->wide_block_until == env.mono_ns + 60 * SEC);
	assert_true(class->exempt_until == env.mono_ns + 1);
	assert_true(in_bitmap(&class->limits, 0));

	/* The neighbours: in the /7 only, in none, in one whose time has passed. */
	addr = prefix(SL_V4, 0x0b010101ULL << 32, 32);
	class = class_of(image, SL_PDIM_SRC, &addr);
	assert_true(!class->block_until && class->wide_block_until && !class->exempt_until);
	addr = prefix(SL_V4, 0x0c010101ULL << 32, 32);
	assert_int_equal(image_pclass(image, SL_PDIM_SRC, &addr), 0);
	addr = prefix(SL_V4, 0xc0000201ULL << 32, 32);
	assert_int_equal(image_pclass(image, SL_PDIM_SRC, &addr), 0);

	addr = prefix(SL_V6, 0x20010db8ULL << 32, 64);
	class = class_of(image, SL_PDIM_SRC, &addr);
	assert_true(class->block_until == ~0ULL && !class->wide_block_until);
	addr = prefix(SL_V6, 0x30010db8ULL << 32, 64);
	class = class_of(image, SL_PDIM_SRC, &addr);
	assert_true(!class->block_until && class->wide_block_until == ~0ULL);
	image_free(image);
}

TEST(test_failsafe)
{
	struct sl_prefix local[] = { prefix(SL_V4, 0xcb007101ULL << 32, 32) };
	struct sl_prefix other = prefix(SL_V4, 0xcb007102ULL << 32, 32);
	struct sl_prefix src = prefix(SL_V4, 10ULL << 56, 8);
	struct failsafe_port port[] = { { 22, 6 }, { 65535, 6 }, { 53, 17 } };
	struct limit_def limit[] = { make_limit("a") };
	struct policy policy = make_policy(limit, COUNT(limit));
	struct compile_env env = make_env();
	const struct sl_limit *essential, *failsafe;
	struct sl_image *image;

	env.local = local;
	env.local_count = 1;
	limit[0].match.src = &src;
	limit[0].match.src_count = 1;
	image = compile(&policy, &env);
	assert_int_equal(image->rules->dims, SL_DIMS_P(SL_PDIM_SRC));
	image_free(image);

	policy.failsafe = port;
	policy.failsafe_count = COUNT(port);
	image = compile(&policy, &env);
	assert_int_equal(image->rules->dims, SL_DIMS_P(SL_PDIM_SRC) | SL_DIMS_LOCAL);
	assert_true(class_of(image, SL_PDIM_DST, &local[0])->flags == SL_PC_LOCAL);
	assert_true(class_of(image, SL_PDIM_DST, &other)->flags == 0);
	assert_int_equal(image->rules->failsafe_tcp[22 / 8], 1 << 22 % 8);
	assert_int_equal(image->rules->failsafe_tcp[8191], 128);
	assert_int_equal(image->rules->failsafe_udp[53 / 8], 1 << 53 % 8);
	assert_int_equal(image->rules->failsafe_udp[22 / 8], 0);

	essential = &image->rules->limits[SL_LIMIT_ESSENTIAL];
	failsafe = &image->rules->limits[SL_LIMIT_FAILSAFE];
	assert_true(essential->params.capacity == 1000 && failsafe->params.capacity == 100);
	assert_int_equal(failsafe->unit, SL_UNIT_CONNECTIONS);
	assert_int_equal(essential->lease | failsafe->lease, 0);
	assert_int_equal(essential->prefix[SL_V6], 128);
	assert_int_equal(failsafe->prefix[SL_V6], 64);
	assert_string_equal(slots[essential->slot].name, "@essential");
	assert_string_equal(slots[failsafe->slot].name, "@failsafe");
	assert_int_equal(image->rules->limit_of_id[failsafe->slot], SL_LIMIT_FAILSAFE);
	image_free(image);

	policy.failsafe_rate = (struct rate){ 10, SEC / 10, RATE_CONNECTIONS };
	for (u32 i = SL_LIMITS_MAX; internal_limit_name(i); i++)
		assert_true(internal_limit_rate(&policy, i).count >= 10);
}

/* An equal digest where prefixes are the same, whatever else changed. */
TEST(test_digest)
{
	struct list_entry block[] = { { .prefix = prefix(SL_V4, 10ULL << 56, 8), .pos.line = 1 } };
	struct limit_def limit[] = { make_limit("a"), make_limit("b") };
	struct policy policy = make_policy(limit, COUNT(limit));
	struct compile_env env = make_env();
	struct sl_image *image;
	u64 digest;

	policy.list[LIST_BLOCK] = (struct list_def){ .entry = block, .count = 1 };
	image = compile(&policy, &env);
	digest = image->pfx_digest;
	image_free(image);

	limit[0].terms.rates.rate[0].count = 77;
	image = compile(&policy, &env);
	assert_true(image->pfx_digest == digest);
	image_free(image);
	limit[0].mode = SL_MODE_OFF;
	image = compile(&policy, &env);
	assert_true(image->pfx_digest != digest);
	image_free(image);
	limit[0].mode = SL_MODE_ENFORCE;
	block[0].prefix.len = 9;
	image = compile(&policy, &env);
	assert_true(image->pfx_digest != digest);
	image_free(image);
	block[0].prefix.len = 8;
	env.seed.k0++;
	image = compile(&policy, &env);
	assert_true(image->pfx_digest != digest);
	image_free(image);
}

TEST_MAIN
