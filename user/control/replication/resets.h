/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * resets.h - `user reset` on all nodes: which words of their local stores the others are to forget.
 *
 * What a node knows of a shared limit would refuse until it asks again, and what it has not told
 * the store yet (write_back) would count after all. So the keys of the words are told, a moment after
 * the store: who heard of them sooner would ask, and be told what was there before.
 *
 * d->resets is NULL where there is no cluster, or no HTTP tier; all of these are then nothing to do.
 */
#ifndef SLUICE_DAEMON_RESETS_H
#define SLUICE_DAEMON_RESETS_H

#include "daemon/daemon.h"
#include "request/engine/decide.h"

/* There are d->cluster and d->http: says and hears from now on. */
int resets_start(struct daemon *d, struct sl_err *err);
void resets_close(struct daemon *d);
void resets_publish(struct daemon *d, const struct decide_reset *reset);

#endif
