/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pending.h - rules that revert unless they are confirmed.
 *
 * The data plane holds both: the new rules, a deadline, and the previous rules, which it uses from
 * the deadline on by its own clock. So the revert needs no daemon. At the deadline, or when it
 * starts after it, the daemon brings live.json, the interfaces and the counters in line.
 *
 * Until then other changes are refused: the revert would lose them, or they would have to be made
 * to both rule sets. The daemon's own updates (new addresses, expired blocks) go to the new rules;
 * the previous ones stay as they are.
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

/* -EBUSY and err, which names confirm and rollback, if rules are pending; else 0. */
int pending_refusal(const struct running *run, struct sl_err *err);
static inline int pending_refuse(const struct running *run, struct sl_err *err)
{
	return pending_is(run) ? pending_refusal(run, err) : 0;
}

/* Makes the pending rules permanent. */
int pending_confirm(struct running *run, struct sl_err *err);

/* Reverts now. `why` is for the log. */
int pending_revert(struct running *run, const char *why, struct sl_err *err);

/* Reverts if the deadline has passed; each second, and before each command. */
void pending_check_deadline(struct running *run);
static inline void pending_check(struct running *run)
{
	if (pending_is(run))
		pending_check_deadline(run);
}

/*
 * {"deadline_ns", "deadline_utc_ns", "boot_id", "generation"} for live.json, and back. Monotonic
 * time is valid for one boot; after a reboot UTC counts. False: no such member.
 */
json_t *pending_to_json(u64 deadline_ns, u64 deadline_utc_ns, u64 generation);
bool pending_from_json(const json_t *json, u64 *ret_deadline_ns, u64 *ret_deadline_utc_ns);
/*
 * At start: true where the deadline has passed, or the data plane has later rules for good: these
 * were reverted, and live.json could not be written.
 */
bool pending_is_over(const struct running *run, const json_t *json, u64 deadline_ns);

#endif
