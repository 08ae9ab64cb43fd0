/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pending.h - rules that revert unless they are confirmed.
 *
 * The data plane holds both: the new rules, a deadline, and the rules from before, which judge
 * from the deadline on by its own clock. So the revert needs no daemon. What the daemon does at
 * the deadline, or when it is started after it, is to say so too: live.json, the interfaces,
 * the counters.
 *
 * Until it is settled nobody else changes anything: a change made meanwhile would be lost with
 * the revert, or would have to be made to both. What the daemon does on its own (new addresses,
 * blocks that end) it does to the new rules; the others stay as they are.
 */
#ifndef SLUICE_RUNNING_PENDING_H
#define SLUICE_RUNNING_PENDING_H

#include "control/running/running.h"

#define CONFIRM_LEAST_NS SL_NS_PER_SEC
#define CONFIRM_MOST_NS (3600 * SL_NS_PER_SEC)

static inline bool pending_is(const struct running *run)
{
	return run->pending.deadline_ns != 0;
}

/* -EBUSY and words that name confirm and rollback, where something is pending. */
int pending_refuse(const struct running *run, struct sl_err *err);

/* It stays. */
int pending_confirm(struct running *run, struct sl_err *err);

/* Goes back now, whatever the time. `why` is for the log. */
int pending_revert(struct running *run, const char *why, struct sl_err *err);

/* Reverts where the deadline has passed; each second, and before each command. */
void pending_check(struct running *run);

/*
 * {"deadline_ns", "deadline_utc_ns", "boot_id"} for live.json, and back: monotonic time is
 * good for one boot, then it is the time of day that counts. False: no such member.
 */
json_t *pending_to_json(u64 deadline_ns, u64 deadline_utc_ns);
bool pending_from_json(const json_t *json, u64 *ret_deadline_ns, u64 *ret_deadline_utc_ns);

#endif
