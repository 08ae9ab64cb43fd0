/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reach_of.h - which files a peer's text may name: conf/reach.h with what this daemon has. */
#ifndef SLUICE_RUNNING_REACH_OF_H
#define SLUICE_RUNNING_REACH_OF_H

#include <sys/types.h>

#include "conf/reach.h"
#include "config/policy.h"

struct http_def;

struct reach_of {
	struct reach reach;
	char *config_dir;
	char **file;
};

/*
 * For a command of `uid` while `running` is in force, whose text errors call `own` (NULL: no text): sets the reach, unless it
 * is root's. Ends with reach_of_end() in any case.
 */
int reach_of_begin(const char *config_path, const char *state_dir, const struct policy *running,
		   uid_t uid, const char *own, struct reach_of *ret, struct sl_err *err);
void reach_of_end(struct reach_of *reach);

/* Files that are opened when it is in force: each as before, or in reach. */
int reach_of_http(const struct http_def *before, const struct http_def *after, struct sl_err *err);

#endif
