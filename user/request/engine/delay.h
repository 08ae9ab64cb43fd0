/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * delay.h - delayed responses (on_limit: wait and queue), as the tier uses them. Frontends need
 * engine.h only.
 */
#ifndef SLUICE_HTTP_DELAY_H
#define SLUICE_HTTP_DELAY_H

#include "sluice/types.h"

struct delays;

/* For so many workers, and at most `max_delayed` delayed requests in all. NULL: no memory. */
struct delays *delays_new(u32 worker_count, u64 max_delayed);
/*
 * After the workers' threads have ended, and before their event bases are freed. Requests that are
 * still delayed get no response. NULL is fine.
 */
void delays_free(struct delays *delays);

/* From any thread, after engine_rules_publish(): delayed requests are decided by the new rules. */
void delays_recheck(struct delays *delays);
/* From any thread: nothing is delayed any more, and delayed requests get a response soon. */
void delays_drain(struct delays *delays);

/* Delayed requests now: of each bucket with a queue, its rule (rule->id) and their number. */
typedef void (*delays_each_fn)(void *arg, u64 rule_id, u64 count);
void delays_each(struct delays *delays, delays_each_fn each, void *arg);
/* How many in all. */
u64 delays_total(const struct delays *delays);

#endif
