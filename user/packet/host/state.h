/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.h - state_dir: one daemon's own, held by a lock, and state.json in it: which slot an
 * interface has, and the counters of limits' earlier slots. (Live changes: live.h.)
 */
#ifndef SLUICE_HOST_STATE_H
#define SLUICE_HOST_STATE_H

#include "packet/host/host.h"

/*
 * Makes the directory and takes its lock. The lock is the kernel's (flock): it goes with the
 * process, so a killed daemon leaves nothing to clean up. -EBUSY with a message where another
 * daemon has it. *ret_fd stays open for as long as the daemon lives.
 */
int state_lock(const char *state_dir, int *ret_fd, struct sl_err *err);

/*
 * A missing file is an empty state. One that cannot be read is put aside as state.json.bad
 * and logged: slots are then given anew, which costs counters their continuity and no more.
 */
void state_load(struct packet_host *host);
int state_store(const struct packet_host *host, struct sl_err *err);

/*
 * Counters of a limit: of its slot now, of those before, and, where there are rules to fall back to
 * (`pending`), of those that drain.
 */
int state_limit_stats(const struct packet_host *host, const char *name, u32 slot, bool pending,
		      struct sl_limit_stats *ret);
/* Adds a left slot's counters to the limit's base. */
int state_base_add(struct packet_host *host, const char *name, const struct sl_limit_stats *stats);
/* The limit is gone, or its slot's counters were cleared with the limit. */
void state_base_drop(struct packet_host *host, const char *name);

#endif
