/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.h - state_dir: locked by one daemon; in it state.json: the slots of interfaces, and the
 * counters of limits' earlier ids. (Live changes: live.h.)
 */
#ifndef SLUICE_HOST_STATE_H
#define SLUICE_HOST_STATE_H

#include "packet/host/host.h"

/*
 * Makes the directory and takes its lock (flock): the kernel releases it with the process, so a
 * killed daemon leaves nothing to clean up. -EBUSY with a message if another daemon has it. *ret_fd
 * stays open as long as the daemon runs.
 */
int state_lock(const char *state_dir, int *ret_fd, struct sl_err *err);

/*
 * A missing file is an empty state. A damaged one is renamed to state.json.bad and logged:
 * interfaces then get new slots, and counters start anew; nothing else is lost.
 */
void state_load(struct packet_host *host);
int state_store(const struct packet_host *host, struct sl_err *err);

/*
 * Counters of a limit: of its id now, of its earlier ones, and, if there are rules to fall back to
 * (`pending`), of those that drain.
 */
int state_limit_stats(const struct packet_host *host, const char *name, u32 slot, bool pending,
		      struct sl_limit_stats *ret);
/* Adds the counters of an id that the limit no longer has to its base. */
int state_base_add(struct packet_host *host, const char *name, const struct sl_limit_stats *stats);
/* After the limit was deleted, or its counters were cleared. */
void state_base_drop(struct packet_host *host, const char *name);

#endif
