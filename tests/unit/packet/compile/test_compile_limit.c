// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_compile_limit.c - a limit's values compiled into a copy of the image give, byte by byte,
 * what the whole policy gives; where they cannot, nothing is made. Random limits, random changes.
 * One override changed in a copy of the index: all sources find what they find in an index that is
 * built.
 */
#include "lib/test.h"
#include "lib/policy_text.h"
#include "lib/rng.h"
#include "policy_make.h"

/* Limits with further meters before, in and behind the one that changes. */
static const char *const kinds[] = {
	"rate: 100 packets/s",
	"rate: 100 packets/s, burst: 300, mode: shadow",
	"rate: [100 packets/s, 2000 packets/m], burst: [10, 200]",
	"rate: 1M bits/s, match: {dport: [53, 443]}, accounting: exact",
	"rate: 100 packets/s, throttle: {soft: 10%, for: 10s}",
	"rate: 100 packets/s, throttle: {elastic: 200%, while: {cpu: 80%}}",
	"rate: 100 packets/s, prefix: {ipv4: [32, 24], ipv6: [64, 48]}, prefix_scale: {ipv4: [1, 8], ipv6: [1, 16]}",
	"rate: 100 packets/s, on_full: prefix, count: all",
	"rate: 100 packets/m, ban: {after: 5 drops/10s, for: 1m, spoofable: true}",
	"rate: 100 connections/s, match: {proto: tcp}, action: tag, tag: {dscp: cs1}",
	"rate: 1000 packets/m, algorithm: sliding-window",
	"rate: 100 packets/s, overrides: [{src: 192.0.2.1, rate: 7 packets/s, burst: 3}, {src: 198.51.100.0/24, rate: 900 packets/s}]",
	"match: {src: 203.0.113.0/24}, action: drop",
};

static const char *any_change(void)
{
	return RNG_ANY("rate=55 packets/s", "rate=55 packets/m", "rate=20K packets/s",
		       "rate=2M bits/s", "rate=800 bytes/s", "rate=55 connections/s",
		       "rate=3 packets/s,70 packets/m", "burst=9", "burst=77",
		       "burst=", "burst=4,50", "mode=shadow", "mode=enforce", "mode=off",
		       "action=tag", "action=drop", "tag.dscp=ef", "accounting=exact",
		       "accounting=percpu", "count=all", "count=admitted", "on_full=closed",
		       "on_full=prefix", "rate=1 packets/h");
}

static struct policy *make_limits(const char *const *of, size_t of_count)
{
	char text[8192] = "limits:\n";
	struct policy *policy;
	struct sl_err err;
	size_t count = 1 + rng_below(5), used = strlen(text);

	for (size_t i = 0; i < count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "  - {name: l%zu, %s}\n",
					 i, rng_text(of, of_count));
	if (policy_parse("random", text, used, &policy, &err))
		fail_msg("%s\n%s", err.message, text);
	return policy;
}

static void check_equal(const struct sl_image *one, const struct sl_image *whole, const char *words)
{
	for (u32 i = 0; i < SL_METERS_MAX; i++)
		if (memcmp(&one->rules->limits[i], &whole->rules->limits[i],
			   sizeof(struct sl_limit)))
			fail_msg("%s: meter %u differs", words, i);
	if (memcmp(one->rules, whole->rules, sizeof(*one->rules)))
		fail_msg("%s: the rules differ", words);
	assert_int_equal(one->pfx_digest, whole->pfx_digest);
	assert_ptr_equal(one->prefixes, whole->prefixes);
	assert_ptr_equal(one->overrides, whole->overrides);
}

/* One change, both ways. True if it was made in place. */
static bool change(struct policy *policy, struct compile_env *env, struct sl_image **image)
{
	static struct sl_limit_id_info both[2][SL_LIMIT_IDS];
	struct limit_def *limit = &policy->limit[rng_below(policy->limit_count)], before = *limit,
			 after;
	const char *pair[] = { any_change(), any_change() };
	size_t pairs = 1 + rng_below(2);
	struct sl_image *one = NULL, *whole = NULL;
	bool single;
	char words[256];
	struct sl_err err;
	int r;

	snprintf(words, sizeof(words), "%s (%s): %s %s", limit->name,
		 limit->mode ? "not enforced" : "", pair[0], pairs > 1 ? pair[1] : "");
	memcpy(both[0], slots, sizeof(slots));
	memcpy(both[1], slots, sizeof(slots));
	env->before = *image;
	env->generation++;
	env->slots = both[0];
	single = limit_revalue(limit, (char *const *)pair, pairs, &after) &&
		 !image_change_limit(&after, limit - policy->limit, NULL, policy->cluster, env,
				     &one);
	assert_memory_equal(limit, &before, sizeof(before));
	env->slots = both[1];
	r = policy_limit_set(policy, before.name, (char *const *)pair, pairs, &err);
	if (!r)
		r = image_compile(policy, env, &whole, &err);
	if (r) {
		if (single)
			fail_msg("%s: in place, but refused: %s", words, err.message);
		return false;
	}
	if (single) {
		check_equal(one, whole, words);
		assert_memory_equal(both[0], both[1], sizeof(slots));
	}
	image_free(one);
	image_free(*image);
	*image = whole;
	memcpy(slots, both[1], sizeof(slots));
	return single;
}

TEST(test_as_the_whole)
{
	u32 made = 0;

	rng_start("test_compile_limit");
	for (u32 round = 0; round < 60; round++) {
		struct policy *policy = make_limits(kinds, COUNT(kinds));
		struct compile_env env = make_env();
		struct sl_image *image;

		memset(slots, 0, sizeof(slots));
		image = compile(policy, &env);
		for (u32 i = 0; i < 8; i++)
			made += change(policy, &env, &image);
		image_free(image);
		policy_free(policy);
	}
	fprintf(stderr, "# %u of 480 in place\n", made);
	assert_true(made > 60);
}

/* The policy's first limit with another rate, in a copy of `image`. */
static struct sl_image *with_rate(const struct policy *policy, const char *rate,
				  struct compile_env *env, const struct sl_image *image)
{
	char *const pair[] = { (char *)rate };
	struct limit_def after;
	struct sl_image *next;

	env->before = image;
	assert_true(limit_revalue(&policy->limit[0], pair, 1, &after));
	assert_ptr_equal(after.override, policy->limit[0].override);
	assert_int_equal(image_change_limit(&after, 0, NULL, false, env, &next), 0);
	return next;
}

/* 100000 overrides and prefixes are neither copied nor read again: the image shares both. */
TEST(test_shares)
{
	struct policy *policy = parse("limits:\n  - {name: a, match: {src: 192.0.2.0/24}, "
				      "rate: 10 packets/s, "
				      "overrides: [{src: 192.0.2.9, rate: 90 packets/s}]}\n");
	struct compile_env env = make_env();
	struct sl_image *image, *next;

	memset(slots, 0, sizeof(slots));
	image = compile(policy, &env);
	next = with_rate(policy, "rate=20 packets/s", &env, image);
	assert_ptr_equal(next->prefixes, image->prefixes);
	assert_ptr_equal(next->overrides, image->overrides);
	image_free(image);
	image_free(next);
	policy_free(policy);
}

/* A CPU more or less since then changes no lease: together they are of one number of CPUs. */
TEST(test_counts_the_same_cpus)
{
	struct policy *policy = parse("limits: [{name: a, rate: 100000 packets/s}]\n");
	struct compile_env env = make_env();
	struct sl_image *image, *next;

	memset(slots, 0, sizeof(slots));
	env.cpus = 8;
	image = compile(policy, &env);
	env.cpus = 2;
	next = with_rate(policy, "rate=200000 packets/s", &env, image);
	assert_int_equal(next->rules->lease_cpus, 8);
	assert_int_equal(next->rules->limits[0].lease, 200000 / 4 / 8);
	image_free(image);
	image_free(next);
	policy_free(policy);
}

/* ------------------------------------------------------------------ overrides */

/* Of one length in a family, of several, of several rates and steps, with overrides before and
 * behind. */
static const char *const overridden[] = {
	"rate: 100 packets/s, overrides: [{src: 192.0.2.1, rate: 7 packets/s, burst: 3}]",
	"rate: 100 packets/s, overrides: [{src: 192.0.2.0/24, rate: 7 packets/s}, {src: '2001:db8::/32', rate: 9 packets/s}]",
	"rate: 100 packets/s, overrides: [{src: 192.0.2.0/24, rate: 7 packets/s}, {src: 192.0.2.1, rate: 9 packets/s}]",
	"rate: 100 packets/s, burst: 300, mode: shadow, prefix: {ipv4: [32, 24], ipv6: [64, 48]}, overrides: [{src: 10.0.0.3, rate: 5 packets/s}, {src: '2001:db8::/56', rate: 9 packets/s}]",
	"rate: [100 packets/s, 2000 packets/m], overrides: [{src: 10.0.0.1, rate: [7 packets/s, 90 packets/m]}]",
	"rate: 100 packets/s, throttle: {soft: 10%, for: 10s}, overrides: [{src: 10.0.0.1, rate: 300 packets/s}]",
	"rate: 100 packets/s, prefix: {ipv4: 24}, overrides: [{src: 10.0.0.1, rate: 300 packets/s}]",
	"rate: 100 packets/s",
};
/* A round is of the first of them. */
static const char *const sources[] = { "10.0.0.%u", "192.0.2.%u", "2001:db8:0:%x00::/56",
				       "10.0.%u.0/24" };
static u32 sources_count;
static const char *const rates[] = { "rate=5 packets/s", "rate=900 packets/s", "rate=7 packets/s",
				     "rate=3 packets/s,70 packets/m" };

static struct sl_prefix random_source(void)
{
	struct sl_prefix src;
	const char *reason;
	char text[64];

	snprintf(text, sizeof(text), rng_text(sources, sources_count), (u32)rng_below(20));
	assert_int_equal(sl_prefix_parse(text, &src, &reason), 0);
	return src;
}

/* What a source finds in each meter, of overrides up to each length that a limit may group by. */
static void check_found(const struct sl_image *one, const struct sl_image *whole,
			struct sl_prefix src)
{
	for (u32 meter = 0; meter < SL_METERS_MAX; meter++) {
		const struct sl_override *a = override_index_find(one->overrides, one->rules, meter,
								  src.addr, src.family, 128);
		const struct sl_override *b = override_index_find(whole->overrides, whole->rules,
								  meter, src.addr, src.family, 128);

		assert_true(!a == !b);
		if (!a)
			continue;
		assert_int_equal(a->mult, b->mult);
		assert_int_equal(a->tau, b->tau);
		assert_int_equal(a->rest & ~(u64)SL_OVERRIDE_SPILLED,
				 b->rest & ~(u64)SL_OVERRIDE_SPILLED);
	}
}

static void check_finds_same(const struct policy *policy, const struct sl_image *one,
			     const struct sl_image *whole)
{
	for (u32 i = 0; i < SL_METERS_MAX; i++)
		assert_memory_equal(&one->rules->limits[i], &whole->rules->limits[i],
				    sizeof(struct sl_limit));
	for (size_t i = 0; i < policy->limit_count; i++)
		for (size_t k = 0; k < policy->limit[i].override_count; k++)
			check_found(one, whole, policy->limit[i].override[k].src);
	for (u32 i = 0; i < 40; i++)
		check_found(one, whole, random_source());
	assert_int_equal(one->overrides->digest, whole->overrides->digest);
}

/* Sets or removes one at random; false: it was refused. */
static bool edit(struct policy *policy, const char *name, const struct sl_prefix *src)
{
	char *const pair[] = { (char *)rng_text(rates, COUNT(rates)) };
	struct sl_err err;

	return rng_below(3) ? !policy_override_set(policy, name, src, pair, 1, &err)
			    : !policy_override_del(policy, name, src, &err);
}

/* Copies of buckets, as those in the kernel: some follow each change, others only later ones. */
#define COPIES 4
static struct copy {
	struct sl_override_bucket *bucket;
	u64 serial;
} copies[COPIES];
static u32 followed;

static void check_copies(const struct override_index *index, bool failed)
{
	size_t size = index->buckets * sizeof(*index->bucket);

	for (u32 i = 0; i < COPIES; i++) {
		struct copy *copy = &copies[i];

		if (rng_below(failed ? 2 : 1 + i * i * i))
			continue;
		if (!override_index_follow(index, copy->serial, copy->bucket)) {
			copy->bucket = realloc(copy->bucket, size);
			memcpy(copy->bucket, index->bucket, size);
		} else if (copy->serial != index->serial) {
			followed++;
		}
		copy->serial = index->serial;
		assert_memory_equal(copy->bucket, index->bucket, size);
	}
}

/* One change, both ways. True if it was made in place. */
static bool change_override(struct policy *policy, struct compile_env *env, struct sl_image **image)
{
	static struct sl_limit_id_info both[2][SL_LIMIT_IDS];
	struct limit_def *limit = &policy->limit[rng_below(policy->limit_count)];
	struct sl_prefix src = random_source();
	struct override_kept before, kept;
	bool single, fails = override_keep(limit, &src, &before) && rng_below(6) == 0;
	struct sl_image *one, *whole;

	if (!edit(policy, limit->name, &src))
		return false;
	override_keep(limit, &src, &kept);
	memcpy(both[0], slots, sizeof(slots));
	memcpy(both[1], slots, sizeof(slots));
	env->before = *image;
	env->generation++;
	env->slots = both[0];
	single = !image_change_limit(limit, limit - policy->limit, &kept.def, policy->cluster, env,
				     &one);
	env->slots = both[1];
	/* Else it would be the same index, where the digest is. */
	env->before = NULL;
	whole = compile(policy, env);
	if (!single) {
		image_free(*image);
		*image = whole;
		memcpy(slots, both[1], sizeof(slots));
		check_copies(whole->overrides, false);
		return false;
	}
	check_copies(one->overrides, fails);
	check_finds_same(policy, one, whole);
	assert_memory_equal(both[0], both[1], sizeof(slots));
	image_free(whole);
	/* it is not put in force: the index of before stays, and the next one is of it */
	if (fails) {
		image_free(one);
		assert_int_equal(override_restore(limit, &before), 0);
		env->before = *image;
		memcpy(both[0], slots, sizeof(slots));
		env->slots = both[0];
		one = compile(policy, env);
		assert_ptr_equal(one->overrides, (*image)->overrides);
	}
	image_free(*image);
	*image = one;
	return true;
}

TEST(test_override_as_the_whole)
{
	u32 made = 0;

	rng_start("test_compile_limit");
	for (u32 round = 0; round < 40; round++) {
		struct policy *policy = make_limits(overridden, COUNT(overridden));
		struct compile_env env = make_env();
		struct sl_image *image;

		sources_count = 1 + rng_below(COUNT(sources));
		memset(slots, 0, sizeof(slots));
		image = compile(policy, &env);
		for (u32 i = 0; i < 60; i++)
			made += change_override(policy, &env, &image);
		image_free(image);
		policy_free(policy);
	}
	for (u32 i = 0; i < COPIES; i++)
		free(copies[i].bucket);
	memset(copies, 0, sizeof(copies));
	fprintf(stderr, "# %u of 2400 in place; %u times a copy followed\n", made, followed);
	assert_true(made > 400 && followed > 400);
}

TEST_MAIN
