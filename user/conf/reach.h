/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reach.h - which files a configuration may name, by who wrote it.
 *
 * Root's may name any. A member of control.group may change every rule, but is not root: what its
 * text names is read, and appended to, by a daemon that owns root's files. So for as long as its
 * command runs, a file that is read must be a regular one, no link, below the directories given, or
 * one that root's configuration names already; and no error repeats what is in it.
 */
#ifndef SLUICE_REACH_H
#define SLUICE_REACH_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/err.h"

#define REACH_DIRS 2

struct reach {
	const char *dir[REACH_DIRS];	/* of configuration and state */
	const char *rules_dir;		/* as root has it: what is in there may be links. NULL: none */
	const char *const *file;	/* as root has them */
	size_t file_count;
	const char *own;		/* what errors call the text itself: no file of that name is read */
};

/* From now on in this thread; NULL: any file. `reach` stays the caller's. */
void reach_set(const struct reach *reach);
bool reach_is_set(void);

/* 0, or -EACCES with words that say which paths are accepted. */
int reach_check(const char *path, struct sl_err *err);
/* The same for a file that will be written: none may be there yet. */
int reach_check_new(const char *path, struct sl_err *err);

/* An error about a file that was read: its words, which may repeat what is in it, go to the log. */
void reach_hide(struct sl_err *err);

#endif
