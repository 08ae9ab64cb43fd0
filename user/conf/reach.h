/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reach.h - the files that a configuration may name, depending on its author.
 *
 * Root's may name any file. A member of control.group may change every rule, but is not root,
 * while the daemon reads files as root. So during such a member's command a file must be a regular
 * file, not a link, below the given directories, or one that root's configuration names already;
 * and neither an error nor the log repeats its content. Files of other keys than sets and overrides
 * are root's alone (KEY_ROOT).
 */
#ifndef SLUICE_REACH_H
#define SLUICE_REACH_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/err.h"

#define REACH_DIRS 2

struct reach {
	const char *dir[REACH_DIRS]; /* of configuration and state */
	const char *rules_dir;	     /* of root: may contain links. NULL: none */
	const char *const *file;     /* of root */
	size_t file_count;
	const char *own; /* name of the text in errors: no such file is read */
};

/* Restricts this thread from now on; NULL: any file. The caller keeps `reach`. */
void reach_set(const struct reach *reach);
bool reach_is_set(void);

/* 0, or -EACCES; `err` names the accepted paths. */
int reach_check(const char *path, struct sl_err *err);

/* Replaces the message of an error about a file, which may quote the file. */
void reach_hide(struct sl_err *err);

#endif
