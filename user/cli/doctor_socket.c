// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * doctor_socket.c - see doctor.h: who may connect to a listener's Unix socket, and which proxies
 * that run here may not: the most likely reason why a proxy's first request passes without a
 * decision.
 *
 * A proxy is found by its process' name, and judged as the kernel does it: by user, groups, the
 * mode of the socket and of the directories above it. Access lists are not read. Processes of
 * another network namespace are most likely a container's, which sees other files; they are left
 * out.
 */
#include <ctype.h>
#include <dirent.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "lib/array.h"

#define GROUPS_MAX 64

struct process {
	char pid[16], name[32];
	unsigned int uid, gid;
	unsigned int group[GROUPS_MAX];
	size_t group_count;
	char root[256]; /* "/": not in a chroot */
};

static bool has_group(const struct process *p, unsigned int gid)
{
	for (size_t i = 0; i < p->group_count; i++)
		if (p->group[i] == gid)
			return true;
	return p->gid == gid;
}

/* `bits` are those of rwx that are needed, as in the mode's last digit. */
static bool may(const struct process *p, const struct stat *st, unsigned int bits)
{
	return !p->uid || (st->st_mode & bits << (st->st_uid == p->uid	     ? 6
						  : has_group(p, st->st_gid) ? 3
									     : 0));
}

/* The first part of the path that the process may not use is stored in `at`; false: it may
 * connect. */
static bool is_refused(const struct process *p, const char *path, char *at, size_t size)
{
	struct stat st;

	for (const char *slash = path; slash; slash = strchr(slash + 1, '/')) {
		snprintf(at, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
		if (!stat(at, &st) && !may(p, &st, S_IXOTH))
			return true;
	}
	snprintf(at, size, "%s", path);
	return !stat(at, &st) && !may(p, &st, S_IWOTH);
}

/* ------------------------------------------------------------------ running proxies */

static bool is_proxy(const char *name)
{
	static const char *const proxy[] = {
		"nginx", "angie", "haproxy", "caddy", "traefik", "envoy", "apache2", "httpd",
	};

	for (size_t i = 0; i < sizeof(proxy) / sizeof(proxy[0]); i++)
		if (!strcmp(proxy[i], name))
			return true;
	return false;
}

static bool read_link(const char *pid, const char *what, char *buf, size_t size)
{
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%.15s/%s", pid, what);
	len = readlink(path, buf, size - 1);
	buf[len > 0 ? len : 0] = '\0';
	return len > 0;
}

/* Reads the ids that the kernel compares when a file is opened: the fourth of each line. */
static void read_ids(FILE *in, struct process *p)
{
	char line[1024], *at, *end;

	while (fgets(line, sizeof(line), in)) {
		if (!strncmp(line, "Uid:", 4))
			sscanf(line + 4, "%*u %*u %*u %u", &p->uid);
		else if (!strncmp(line, "Gid:", 4))
			sscanf(line + 4, "%*u %*u %*u %u", &p->gid);
		else if (!strncmp(line, "Groups:", 7))
			for (at = line + 7; p->group_count < GROUPS_MAX; at = end) {
				p->group[p->group_count] = (unsigned int)strtoul(at, &end, 10);
				if (end == at)
					break;
				p->group_count++;
			}
	}
}

/* False if the process is no proxy, or is in another network namespace. */
static bool read_process(const char *pid, struct process *ret)
{
	char path[64], ours[64], theirs[64];
	FILE *in;

	*ret = (struct process){ .uid = 0 };
	snprintf(ret->pid, sizeof(ret->pid), "%.15s", pid);
	snprintf(path, sizeof(path), "/proc/%.15s/comm", pid);
	if (!doctor_read(path, ret->name, sizeof(ret->name)) || !is_proxy(ret->name) ||
	    !read_link("self", "ns/net", ours, sizeof(ours)) ||
	    !read_link(pid, "ns/net", theirs, sizeof(theirs)) || strcmp(ours, theirs) != 0 ||
	    !read_link(pid, "root", ret->root, sizeof(ret->root)))
		return false;
	snprintf(path, sizeof(path), "/proc/%.15s/status", pid);
	in = fopen(path, "re");
	if (!in)
		return false;
	read_ids(in, ret);
	fclose(in);
	return true;
}

/* Writes the name, or the number if there is no name. */
static const char *name_or_id(const char *name, unsigned int id, char *buf, size_t size)
{
	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "%u", id);
	return buf;
}

static const char *user_name(unsigned int uid, char *buf, size_t size)
{
	const struct passwd *user = getpwuid(uid);

	return name_or_id(user ? user->pw_name : NULL, uid, buf, size);
}

static const char *group_name(unsigned int gid, char *buf, size_t size)
{
	const struct group *group = getgrgid(gid);

	return name_or_id(group ? group->gr_name : NULL, gid, buf, size);
}

/* Says why the process cannot connect, and what lets it. False if it can connect. */
static bool refuse(const struct process *p, const char *path, struct doctor_socket *ret)
{
	char at[256], user[64], group[64];

	user_name(p->uid, user, sizeof(user));
	group_name(p->gid, group, sizeof(group));
	if (strcmp(p->root, "/") != 0) {
		snprintf(ret->refused, sizeof(ret->refused),
			 "%s (pid %s) does not see it in its chroot %.200s", p->name, p->pid,
			 p->root);
		snprintf(ret->mend, sizeof(ret->mend),
			 "remove the chroot of %s, or use a listener with a port", p->name);
		return true;
	}
	if (!is_refused(p, path, at, sizeof(at)))
		return false;
	if (!strcmp(at, path)) {
		snprintf(ret->refused, sizeof(ret->refused), "%s (pid %s, user %s) may not",
			 p->name, p->pid, user);
		snprintf(ret->mend, sizeof(ret->mend),
			 "http: listen: [{address: 'unix:%s', group: %s}], then systemctl "
			 "restart sluiced",
			 path, group);
	} else {
		snprintf(ret->refused, sizeof(ret->refused),
			 "%s (pid %s, user %s) may not enter %s", p->name, p->pid, user, at);
		snprintf(ret->mend, sizeof(ret->mend), "chmod o+x %s", at);
	}
	return true;
}

static bool has_user_process(const struct process *all, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, name) && all[i].uid)
			return true;
	return false;
}

/* ------------------------------------------------------------------ the socket */

static void say_who(const struct stat *st, char *buf, size_t size)
{
	char owner[64], group[64];
	int len = snprintf(buf, size, "mode %04o, %s:%s: ", st->st_mode & 0777,
			   user_name(st->st_uid, owner, sizeof(owner)),
			   group_name(st->st_gid, group, sizeof(group)));

	if (st->st_mode & S_IWOTH)
		snprintf(buf + len, size - (size_t)len, "all users may connect");
	else
		snprintf(buf + len, size - (size_t)len, "root%s%s%s%s may connect",
			 st->st_uid ? ", user " : "", st->st_uid ? owner : "",
			 st->st_mode & S_IWGRP ? ", group " : "",
			 st->st_mode & S_IWGRP ? group : "");
}

void doctor_socket(const char *path, struct doctor_socket *ret)
{
	struct process *all = NULL, one;
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	struct doctor_socket first = { .able = 0 }, is_unable;
	size_t count = 0;
	struct stat st;
	int able = 0;

	while (proc && (entry = readdir(proc))) {
		if (!isdigit((unsigned char)entry->d_name[0]) || !read_process(entry->d_name, &one))
			continue;
		if (append(all, count, one))
			break;
	}
	if (proc)
		closedir(proc);
	for (size_t i = 0; i < count; i++) {
		/* The master runs as root, but its workers connect. */
		if (!all[i].uid && has_user_process(all, count, all[i].name))
			continue;
		if (refuse(&all[i], path, &is_unable))
			first = first.refused[0] ? first : is_unable;
		else
			able++;
	}
	free(all);
	*ret = first;
	ret->able = able;
	if (!stat(path, &st))
		say_who(&st, ret->who, sizeof(ret->who));
}
