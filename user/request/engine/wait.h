/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wait.h - answers that are held (on_limit: wait and queue): what the tier has to know of them.
 * Fronts need ask.h only.
 */
#ifndef SLUICE_HTTP_WAIT_H
#define SLUICE_HTTP_WAIT_H

#include "request/engine/ask.h"
#include "sluice/types.h"

struct waits;

/* For so many workers and at most `max_waiting` held answers in all. NULL: no memory. */
struct waits *waits_new(u32 worker_count, u64 max_waiting);
/*
 * When the workers' threads are gone, and before their event bases are. Answers that are held
 * still are never given. NULL is fine.
 */
void waits_free(struct waits *waits);

/* From any thread, after rules_publish(): what is held is decided anew under the new rules. */
void waits_recheck(struct waits *waits);
/* From any thread: nothing is held from now on, and what is held is answered soon. */
void waits_drain(struct waits *waits);

/* Held answers now: of each bucket that somebody waits for, its rule (rule->id) and how many. */
typedef void (*waits_each_fn)(void *arg, u64 rule_id, u64 count);
void waits_each(struct waits *waits, waits_each_fn each, void *arg);
/* How many in all. */
u64 waits_total(const struct waits *waits);

#endif
