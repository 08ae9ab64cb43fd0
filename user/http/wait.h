/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wait.h - answers that are held (on_limit: wait and queue): what the tier has to know of them.
 * Fronts need ask.h only.
 */
#ifndef SLUICE_HTTP_WAIT_H
#define SLUICE_HTTP_WAIT_H

#include "http/ask.h"
#include "sluice/types.h"

struct waits;

/* For so many workers and at most `max_waiting` held answers in all. NULL: no memory. */
struct waits *waits_new(u32 worker_count, u64 max_waiting);
/* When the workers' threads are gone, and before their event bases are. NULL is fine. */
void waits_free(struct waits *waits);

#endif
