/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * decision_log.h - http.decision_log: one of so many decisions as a line of JSON in a file.
 *
 *     worker: decision_log_note() -> a buffer of its own -> main thread: decision_log_drain()
 *
 * No worker ever waits for a disk: a buffer that is full loses lines, and counts them.
 */
#ifndef SLUICE_HTTP_DECISION_LOG_H
#define SLUICE_HTTP_DECISION_LOG_H

#include "request/engine/engine.h"

struct decision_log;

/* For so many workers. NULL: no memory. */
struct decision_log *decision_log_new(u32 workers);
void decision_log_free(struct decision_log *log); /* NULL is fine */

/* From a thread of the engine, after a decision; goes by engine->log_every. */
void decision_log_note(struct engine_thread *thread, const struct request *request,
		       const struct response *response);

/* ---- the main thread's part ---- */

/*
 * Writes what there is to `path` (NULL: thrown away), which is opened again when it was moved
 * away. -errno of the first failure since the last success, once; lines are then lost.
 */
int decision_log_drain(struct decision_log *log, const char *path);
/* Lines that were lost, since the start. */
u64 decision_log_lost(const struct decision_log *log);

#endif
