/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * callers.h - who may ask, report, push down and override: caller_rights() of worker.h, and what
 * it goes by, published by the main thread.
 */
#ifndef SLUICE_HTTP_CALLERS_H
#define SLUICE_HTTP_CALLERS_H

#include "http/worker.h"

/*
 * Reads the token files of `def` and puts its callers in force. A file that cannot be read, or
 * has no token of 16 characters or more, is an error with its name; the callers before go on.
 */
int callers_publish(struct http_tier *tier, const struct http_def *def, struct sl_err *err);
/* Whether a token file is not as it was read; from a timer. */
bool callers_changed(const struct http_tier *tier);
void callers_free(struct callers *callers);	/* NULL is fine */

#endif
