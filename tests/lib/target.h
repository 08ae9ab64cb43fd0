/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * target.h - what a test drives: dp_sim, or the BPF program by BPF_PROG_TEST_RUN with a clock
 * that the test sets. One interface to both, so that one table or scenario runs on both.
 *
 * Time is counted from the last target_reset(); it begins on a round day of UTC.
 */
#ifndef TESTS_LIB_TARGET_H
#define TESTS_LIB_TARGET_H

#include <stdbool.h>

#include "packet/dataplane/dataplane.h"
#include "lib/err.h"
#include "lib/frame.h"
#include "config/policy.h"

enum target_kind {
	TARGET_SIM,
	TARGET_BPF,
	TARGET_KIND_COUNT,
};

/*
 * Interfaces that a policy can name, by slot; and this host's addresses. A frame for tun0 loses its
 * Ethernet header on the way there.
 */
#define TARGET_IFACES 3
#define TARGET_IFACE0 "eth0"
#define TARGET_IFACE1 "eth1"
#define TARGET_TUN 2
#define TARGET_LOCAL_V4 "203.0.113.10"
#define TARGET_LOCAL_V6 "2001:db8:ffff::10"

struct target;

/* What one packet met. */
struct target_verdict {
	bool drop; /* XDP_DROP; else XDP_PASS */
	u8 action; /* enum sl_action and enum sl_reason that counted it */
	u8 reason;
	bool marked; /* the mark is in the frame's metadata */
	u32 mark;
};

/*
 * -EPERM where the kind is TARGET_BPF and this is not root: skip then. A target may be shared
 * by many tests, each of which begins with target_reset().
 */
int target_open_sized(enum target_kind kind, u64 buckets, struct target **ret, struct sl_err *err);
static inline int target_open(enum target_kind kind, struct target **ret, struct sl_err *err)
{
	return target_open_sized(kind, 4096, ret, err);
}

void target_close(struct target *t); /* NULL is fine; takes the pins away */
const char *target_name(const struct target *t);
enum target_kind target_kind(const struct target *t);
struct dp *target_dp(struct target *t);
u32 target_cpus(const struct target *t); /* both kinds have the machine's */

/* As new: no rule set, empty table, counters from 0, time 0. */
void target_reset(struct target *t);

/* Nanoseconds since the reset; may not go back. */
void target_set_time(struct target *t, u64 ns);
u64 target_time(const struct target *t);
/* UTC jumps by this much (a clock that is set); monotonic time goes on. */
void target_step_utc(struct target *t, s64 ns);
/* The UTC that a deadline so many ns after the reset has. */
u64 target_utc(const struct target *t, u64 ns);

/* The monotonic clock now, as the data plane reads it. */
u64 target_mono(const struct target *t);

/*
 * Login sessions, gateways, and sources that are never banned, of the rule sets from now on until
 * the next reset. Kept as they are, not copied.
 */
void target_sessions(struct target *t, const struct sl_session *session, size_t count);
struct sl_session target_session(const char *src, u16 sport, const char *dst, u16 dport);
void target_gateways(struct target *t, const struct sl_prefix *gateway, size_t count);
void target_no_ban(struct target *t, const struct sl_prefix *prefix, size_t count);

/* Reads a configuration file's text and applies it; the live changes so far are lost. */
int target_policy(struct target *t, const char *yaml, struct sl_err *err);
/* The same until a time since the reset, then the rules before; 0: for good. */
int target_policy_until(struct target *t, const char *yaml, u64 revert_ns, struct sl_err *err);
/* Applies what a test changed by the functions of policy.h in the policy returned here. */
struct policy *target_policy_of(struct target *t);
int target_apply(struct target *t, struct sl_err *err);
/* The rules in force. */
const struct sl_image *target_image(const struct target *t);

/* How much of each frame is linear memory, the rest in fragments; 0 all that fits. */
void target_set_linear(struct target *t, u32 bytes);

/*
 * One frame. If it passes, `f` becomes the frame after the program. 0, or -errno where it could not
 * be run
 * (-EOPNOTSUPP where the kernel cannot split it as asked).
 */
int target_run(struct target *t, u32 cpu, u32 iface, struct frame *f, struct target_verdict *ret);
/* The same frame many times at one instant; returns how many passed, or -errno. */
int target_flood(struct target *t, u32 cpu, u32 iface, const struct frame *f, u32 times);

/* Counters since the reset; interface counters are of interface slot `iface`. */
u64 target_count(struct target *t, u32 iface, enum sl_reason reason, enum sl_action action);
int target_limit_stats(struct target *t, const char *limit, struct sl_limit_stats *ret);
/* Map errors and such, of which no test expects any unless it says so. */
u64 target_errors(struct target *t);

#endif
