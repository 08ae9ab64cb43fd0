// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* case.c - see case.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/case.h"

/* One per kind, opened by the first test that uses it and shared by all of a program. */
static struct target *opened[TARGET_KIND_COUNT];
static enum target_kind kind_now;

struct target *case_target(void **state)
{
	struct sl_err err = { .message = "" };
	char words[900];
	int rc;

	if (!opened[kind_now]) {
		rc = target_open(kind_now, &opened[kind_now], &err);
		if (rc == -EPERM && kind_now == TARGET_BPF) {
			print_message("skipped: the BPF program needs root\n");
			skip();
		}
		if (rc)
			fail_msg("%s", sl_err_format(&err, words, sizeof(words)));
	}
	target_reset(opened[kind_now]);
	return opened[kind_now];
}

void case_policy(struct target *t, const char *format, ...)
{
	struct sl_err err = { .message = "" };
	char words[900];
	char *yaml;
	va_list args;
	int rc;

	va_start(args, format);
	rc = vasprintf(&yaml, format, args);
	va_end(args);
	assert_true(rc >= 0);
	rc = target_policy(t, yaml, &err);
	if (rc)
		print_error("%s\n%s\n", sl_err_format(&err, words, sizeof(words)), yaml);
	free(yaml);
	assert_int_equal(rc, 0);
}

void case_apply(struct target *t)
{
	struct sl_err err = { .message = "" };
	char words[900];

	if (target_apply(t, &err))
		fail_msg("%s", sl_err_format(&err, words, sizeof(words)));
}

void case_frame(const struct frame_spec *spec, struct frame *ret)
{
	if (!frame_build(spec, ret))
		fail_msg("this frame cannot be built");
}

int case_check(struct target *t, const char *what, u32 iface, struct frame *f,
	       enum sl_action action, enum sl_reason reason)
{
	static struct frame in;
	struct target_verdict v;
	int rc;

	in.length = f->length;
	memcpy(in.data, f->data, f->length);
	rc = target_run(t, 0, iface, f, &v);
	if (rc) {
		print_error("%s: %s: not run: %s\n", target_name(t), what, strerror(-rc));
		return 1;
	}
	if (v.action != action || v.reason != reason || v.drop != (action == SL_ACT_DROP)) {
		print_error("%s: %s (%u bytes): expected %s %s, got %s %s%s\n", target_name(t),
			    what, in.length, action_name(action), reason_name(reason),
			    action_name(v.action), reason_name(v.reason),
			    v.drop != (v.action == SL_ACT_DROP) ? ", counted as another" : "");
		return 1;
	}
	if (action != SL_ACT_TAG && (v.marked || memcmp(in.data, f->data, f->length))) {
		print_error("%s: %s: the frame was changed\n", target_name(t), what);
		return 1;
	}
	return 0;
}

bool case_meets(struct target *t, u64 at_ns, const struct frame_spec *spec, enum sl_action action,
		enum sl_reason reason)
{
	static struct frame f;

	target_set_time(t, at_ns);
	case_frame(spec, &f);
	return !case_check(t, "at a time", 0, &f, action, reason);
}

void cases_run(struct target *t, const struct packet_case *cases, size_t count)
{
	static struct frame f;
	int bad = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		case_frame(&cases[i].f, &f);
		bad += case_check(t, cases[i].what, cases[i].f.iface, &f, cases[i].action,
				  cases[i].reason);
	}
	assert_int_equal(bad, 0);
	assert_int_equal(target_errors(t), 0);
}

/* Linear bytes: all; Ethernet alone; to the middle of IPv4; of a UDP header behind it; of IPv6. */
static const u32 splits[] = { 0, 14, 24, 36, 50, 62 };

static bool is_parse_error(enum sl_reason reason)
{
	return reason == SL_R_TRUNCATED || reason == SL_R_MALFORMED || reason == SL_R_EXTHDR;
}

/* False where the kernel does not split test frames. */
static bool can_split(struct target *t, u32 linear)
{
	static struct frame f;
	struct target_verdict v;
	int rc;

	target_set_linear(t, linear);
	if (!linear)
		return true;
	case_frame(&(struct frame_spec){ .payload = 100 }, &f);
	rc = target_run(t, 0, 0, &f, &v);
	if (rc == -EOPNOTSUPP)
		target_set_linear(t, 0);
	else
		assert_int_equal(rc, 0);
	return !rc;
}

/* Whether it is the same packet without an Ethernet header; the kernel runs no test of less than 14
 * bytes. */
static bool fits_tun(const struct frame_spec *spec, const struct frame *f)
{
	return !spec->tags && !spec->ethertype && !spec->version && f->length >= 28;
}

void cases_run_everywhere(struct target *t, const char *rules, const struct packet_case *cases,
			  size_t count)
{
	static struct frame f;
	size_t i, policy, split;
	static const char *const on_error[] = { "pass", "drop" };
	int bad = 0;

	for (policy = 0; policy < COUNT(on_error); policy++) {
		case_policy(t, "%son_parse_error: %s\n", rules, on_error[policy]);
		for (split = 0; split < COUNT(splits); split++) {
			if (!can_split(t, splits[split]))
				continue;
			for (i = 0; i < count; i++) {
				enum sl_action action = cases[i].action;

				if (policy && is_parse_error(cases[i].reason))
					action = SL_ACT_DROP;
				case_frame(&cases[i].f, &f);
				bad += case_check(t, cases[i].what, cases[i].f.iface, &f, action,
						  cases[i].reason);
				if (fits_tun(&cases[i].f, &f))
					bad += case_check(t, cases[i].what, TARGET_TUN, &f, action,
							  cases[i].reason);
			}
		}
		target_set_linear(t, 0);
	}
	assert_int_equal(bad, 0);
	assert_int_equal(target_errors(t), 0);
}

u32 case_send(struct target *t, const struct frame_spec *spec, u32 times)
{
	static struct frame f;
	int passed;

	case_frame(spec, &f);
	passed = target_flood(t, 0, spec->iface, &f, times);
	if (passed < 0)
		fail_msg("not run: %s", strerror(-passed));
	return passed;
}

u64 case_counted(struct target *t, const char *limit, enum sl_limit_verdict verdict)
{
	struct sl_limit_stats stats;

	if (target_limit_stats(t, limit, &stats))
		fail_msg("no limit %s", limit);
	return stats.packets[verdict];
}

u64 case_seed(void)
{
	const char *given = getenv("SLUICE_SEED");
	struct timespec now;
	u64 seed;

	clock_gettime(CLOCK_REALTIME, &now);
	seed = given ? strtoull(given, NULL, 0) : now.tv_sec * 1000003ULL ^ now.tv_nsec;
	print_message("SLUICE_SEED=%llu\n", seed);
	return seed;
}

int case_main(const char *name)
{
	static const char *const kinds[TARGET_KIND_COUNT] = { "dp_sim", "the BPF program" };
	int failed = 0;
	char group[64];

	for (kind_now = 0; kind_now < TARGET_KIND_COUNT; kind_now++) {
		snprintf(group, sizeof(group), "%s on %s", name, kinds[kind_now]);
		failed += test_run_as(group);
		target_close(opened[kind_now]);
		opened[kind_now] = NULL;
	}
	return failed;
}
