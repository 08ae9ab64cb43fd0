/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * case.h - tests as tables {what, packet, action, reason}, and a main that runs each test of a
 * program once on dp_sim and once on the BPF program.
 */
#ifndef TESTS_LIB_CASE_H
#define TESTS_LIB_CASE_H
#include "lib/test.h"
#include "lib/target.h"

/* What becomes of a packet, and why: OTHER meets nothing. */
#define WITHIN SL_ACT_PASS, SL_R_WITHIN
#define OVER SL_ACT_DROP, SL_R_OVER
#define OTHER SL_ACT_PASS, SL_R_NO_MATCH
#define BLOCK SL_ACT_DROP, SL_R_BLOCK
#define EXEMPT SL_ACT_PASS, SL_R_EXEMPT
#define FAILSAFE SL_ACT_PASS, SL_R_FAILSAFE
#define TRUNCATED SL_ACT_PASS, SL_R_TRUNCATED
#define TOO_DEEP SL_ACT_PASS, SL_R_EXTHDR

struct packet_case {
	const char *what;
	struct frame_spec f;
	enum sl_action action;
	enum sl_reason reason;
};

/* The target under test, reset; the test is skipped where there is none, with the reason. */
struct target *case_target(void **state);
/* A test on the target `t`. */
#define CASE_TEST(test)                                                                            \
	static void test##_on(struct target *t);                                                   \
	TEST(test)                                                                                 \
	{                                                                                          \
		test##_on(case_target(state));                                                     \
	}                                                                                          \
	static void test##_on(struct target *t)
/* Applies a rule set; the test fails where it is refused. */
void case_policy(struct target *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void case_apply(struct target *t); /* target_apply() that must not fail */

/* Returns 1 and prints the reason if a packet was not treated as stated; then everything was
 * printed. */
int case_check(struct target *t, const char *what, u32 iface, struct frame *f,
	       enum sl_action action, enum sl_reason reason);
/* Whether a packet on interface 0 is treated as stated at a time since the reset; prints why
 * not. */
bool case_meets(struct target *t, u64 at_ns, const struct frame_spec *spec, enum sl_action action,
		enum sl_reason reason);
/* All rows; the test fails at the end if one did. */
void cases_run(struct target *t, const struct packet_case *cases, size_t count);
#define CASES_RUN(t, cases) cases_run(t, cases, COUNT(cases))

/*
 * All rows, those of IP without tags also without the Ethernet header, with on_parse_error pass and
 * drop (the action of a row whose reason is such an error), and with frames of which only the first
 * bytes are linear memory where the kernel's test run can do that. `rules` is the rest of the
 * configuration.
 */
void cases_run_everywhere(struct target *t, const char *rules, const struct packet_case *cases,
			  size_t count);
#define CASES_RUN_EVERYWHERE(t, rules, cases) cases_run_everywhere(t, rules, cases, COUNT(cases))

/* Builds a frame, or fails the test. */
void case_frame(const struct frame_spec *spec, struct frame *ret);
/* Sends a frame so many times at one instant from CPU 0; how many passed. */
u32 case_send(struct target *t, const struct frame_spec *spec, u32 times);
/* A limit's counter. */
u64 case_counted(struct target *t, const char *limit, enum sl_limit_verdict verdict);

/* SLUICE_SEED, or a new one; it is printed. */
u64 case_seed(void);

/* The work of main(): the tests on each kind of target; returns how many failed. */
int case_main(const char *name);

#endif
