// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_watch.c - detects changes to the files of a rules directory by polling.
 *
 * inotify watches inodes: it does not report a symbolic link that is replaced, at whichever level
 * (as a Kubernetes ConfigMap is). Checking some files once a second costs less than tracking all
 * of that, and misses nothing.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "request/rules/rule_watch.h"

#define DEPTH_MAX 8 /* the same as in ruleset_load() */

static u64 mix(u64 hash, u64 value)
{
	hash ^= value;
	hash *= 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

static u64 look_at_file(const char *path, const struct stat *st)
{
	u64 hash = 0xcbf29ce484222325ULL;

	for (const char *c = path; *c; c++)
		hash = mix(hash, (unsigned char)*c);
	hash = mix(hash, st->st_dev);
	hash = mix(hash, st->st_ino);
	hash = mix(hash, (u64)st->st_size);
	hash = mix(hash, (u64)st->st_mtim.tv_sec);
	hash = mix(hash, (u64)st->st_mtim.tv_nsec);
	return mix(hash, (u64)st->st_ctim.tv_nsec);
}

/* A sum: the order in which a directory is read does not matter. */
static u64 look_at_dir(const char *dir, int depth)
{
	struct dirent *entry;
	char path[4096];
	struct stat st;
	u64 sum = 1;
	DIR *open = depth > DEPTH_MAX ? NULL : opendir(dir);

	while (open && (entry = readdir(open))) {
		int len = snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);

		if (entry->d_name[0] == '.' || (size_t)len >= sizeof(path) || stat(path, &st) < 0)
			continue;
		sum += S_ISDIR(st.st_mode) ? look_at_dir(path, depth + 1) : look_at_file(path, &st);
	}
	if (open)
		closedir(open);
	return sum;
}

u64 ruleset_fingerprint(const char *dir)
{
	return look_at_dir(dir, 0);
}
