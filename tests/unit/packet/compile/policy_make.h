/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* policy_make.h - policies made by hand, and compiled, for unit tests. */
#ifndef SLUICE_TESTS_POLICY_MAKE_H
#define SLUICE_TESTS_POLICY_MAKE_H

#include <stdio.h>

#include "packet/compile/compile.h"
#include "lib/test.h"

#define SEC SL_NS_PER_SEC

static const char iface[SL_IFACES_MAX][16] = { "eth0", "", "eth1", [63] = "wan" };
static struct sl_limit_id_info slots[SL_LIMIT_IDS];

static inline struct compile_env make_env(void)
{
	return (struct compile_env){
		.mono_ns = 5000 * SEC,
		.utc_offset_ns = 1700000000 * SEC,
		.cpus = 4,
		.seed = { 11, 22 },
		.generation = 7,
		.iface = iface,
		.slots = slots,
	};
}

static inline struct limit_def make_limit(const char *name)
{
	struct limit_def limit = {
		.per = SL_PER_SOURCE,
		.prefix = { .len = { { 32 }, { 64 } },
			    .scale = { { 1, 1, 1, 1 }, { 1, 1, 1, 1 } },
			    .count = { 1, 1 } },
		.terms.rates = { .rate = { { 1000, SEC, RATE_PACKETS } },
				 .burst = { 2000 },
				 .count = 1 },
		.action = SL_ACT_DROP,
	};

	snprintf(limit.name, sizeof(limit.name), "%s", name);
	return limit;
}

static inline struct policy make_policy(struct limit_def *limit, size_t count)
{
	return (struct policy){
		.limit = limit,
		.limit_count = count,
		.failsafe_rate = { 100, SEC, RATE_CONNECTIONS },
		.essential_rate = { 1000, SEC, RATE_PACKETS },
	};
}

static inline struct sl_prefix prefix(u8 family, u64 hi, u8 len)
{
	return (struct sl_prefix){
		.addr = sl_addr_mask((struct sl_addr){ .hi = hi }, len),
		.family = family,
		.len = len,
	};
}

static inline struct sl_image *compile(const struct policy *policy, struct compile_env *env)
{
	struct sl_image *image = NULL;
	struct sl_err err = { .message = "" };

	if (image_compile(policy, env, &image, &err))
		fail_msg("%s", err.message);
	return image;
}

/* A policy of these limits. */
static inline struct sl_image *compile_limits(struct limit_def *limit, size_t count)
{
	struct policy policy = make_policy(limit, count);
	struct compile_env env = make_env();

	return compile(&policy, &env);
}

#endif
