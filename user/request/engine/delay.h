/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * delay.h - answers that are held (on_limit: wait and queue): what the tier has to know of them.
 * Frontends need engine.h only.
 */
#ifndef SLUICE_HTTP_DELAY_H
#define SLUICE_HTTP_DELAY_H

#include "sluice/types.h"

struct delays;

/* For so many workers and at most `max_delayed` held answers in all. NULL: no memory. */
struct delays *delays_new(u32 worker_count, u64 max_delayed);
/*
 * When the workers' threads are gone, and before their event bases are. Answers that are held
 * still are never given. NULL is fine.
 */
void delays_free(struct delays *delays);

/* From any thread, after engine_rules_publish(): what is held is decided anew under the new rules. */
void delays_recheck(struct delays *delays);
/* From any thread: nothing is held from now on, and what is held is answered soon. */
void delays_drain(struct delays *delays);

/* Held answers now: of each bucket that somebody waits for, its rule (rule->id) and how many. */
typedef void (*delays_each_fn)(void *arg, u64 rule_id, u64 count);
void delays_each(struct delays *delays, delays_each_fn each, void *arg);
/* How many in all. */
u64 delays_total(const struct delays *delays);

#endif
