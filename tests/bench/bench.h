/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bench.h - how the benches of the data path end on an error, read a clock and apply rules. */
#ifndef SLUICE_TESTS_BENCH_H
#define SLUICE_TESTS_BENCH_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bpf/libbpf.h>

#include "packet/dataplane/dp_push.h"

/* `err` may be NULL: errno. */
static inline _Noreturn void die(const char *what, const struct sl_err *err)
{
	char text[1024];

	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		err ? sl_err_format(err, text, sizeof(text)) : strerror(errno));
	exit(1);
}

static inline u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SL_NS_PER_SEC + ts.tv_nsec;
}

/* Compiles `yaml` and puts it in force; `count` login sessions at `session`. */
static inline void bench_apply(struct dp *dp, const char *name, const char *yaml,
			       const struct sl_session *session, size_t count)
{
	size_t slots_size = SL_LIMIT_IDS * sizeof(struct sl_limit_id_info);
	struct sl_limit_id_info *slots = malloc(slots_size);
	static u64 generation;
	struct compile_env env = {
		.mono_ns = clock_ns(CLOCK_MONOTONIC),
		.cpus = libbpf_num_possible_cpus(),
		.generation = ++generation,
		.seed = dp->state->seed,
		.slots = slots,
		.session = session,
		.session_count = count,
	};
	struct sl_image *image;
	struct policy *policy;
	struct sl_err err;

	if (!slots)
		die("memory", NULL);
	memcpy(slots, dp->slots, slots_size);
	env.utc_offset_ns = clock_ns(CLOCK_REALTIME) - env.mono_ns;
	dp_set_clock(dp, env.utc_offset_ns);
	if (policy_parse(name, yaml, strlen(yaml), &policy, &err) ||
	    image_compile(policy, &env, &image, &err) || dp->ops->apply(dp, image, &err))
		die(name, &err);
	memcpy(dp->slots, slots, slots_size);
	image_free(image);
	policy_free(policy);
	free(slots);
}

#endif
