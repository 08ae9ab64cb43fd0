// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* reach.c - see reach.h. */
#include "conf/reach.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static __thread const struct reach *in_force;

void reach_set(const struct reach *reach)
{
	in_force = reach;
}

bool reach_is_set(void)
{
	return in_force;
}

static bool is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	while (len && dir[len - 1] == '/')
		len--;
	return !strncmp(path, dir, len) && path[len] == '/';
}

static bool is_known(const struct reach *reach, const char *path)
{
	for (size_t i = 0; i < reach->file_count; i++)
		if (!strcmp(path, reach->file[i]))
			return true;
	return reach->rules_dir && is_below(path, reach->rules_dir) && !strstr(path, "/../");
}

/* The resolved directory, for a file that is not a link. */
static bool in_reach(const struct reach *reach, const char *path)
{
	char parent[PATH_MAX], real[PATH_MAX + 1], dir[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	struct stat st;

	if (path[0] != '/' || len >= sizeof(parent) - 1 || !strcmp(slash, "/..") ||
	    !strcmp(slash, "/.") || (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)))
		return false;
	memcpy(parent, path, len + 1);
	parent[len + 1] = '\0';
	if (!realpath(parent, real))
		return false;
	strcat(real, "/");
	for (size_t i = 0; i < REACH_DIRS; i++)
		if (reach->dir[i] && realpath(reach->dir[i], dir) && is_below(real, dir))
			return true;
	return false;
}

static int refuse(const char *path, const char *words, struct sl_err *err)
{
	return sl_err_set(err, EACCES,
			  "%.200s: %s; accepted: regular files, not links, below %s or %s, "
			  "or files that root's configuration names",
			  path, words, in_force->dir[0], in_force->dir[1]);
}

int reach_check(const char *path, struct sl_err *err)
{
	if (!in_force || is_known(in_force, path))
		return 0;
	if (in_force->own && !strcmp(path, in_force->own))
		return refuse(path, "the file itself", err);
	if (!in_reach(in_force, path))
		return refuse(path, "only root's configuration may name it", err);
	return 0;
}

void reach_hide(struct sl_err *err)
{
	if (!in_force || !err->file[0] || (in_force->own && !strcmp(err->file, in_force->own)))
		return;
	snprintf(err->message, sizeof(err->message),
		 "is not accepted; sluicectl check, run as root, has the "
		 "reason");
}
