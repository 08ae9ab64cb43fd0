// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sessions.c - see sessions.h. */
#include "packet/host/sessions.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utmp.h>

/* Bounds of the work: entries beyond these are ignored. */
#define PROCESSES_MAX 65536
#define DEPTH_MAX 64 /* of one process below another */
#define UTMP_MAX 1024
#define FDS_MAX 4096	  /* of a process */
#define SOCKETS_MAX 4096  /* of all login processes */
#define LINES_MAX 2000000 /* of a table of connections */

#define TCP_ESTABLISHED_HEX 1

struct process {
	int pid, parent;
	bool is_root, is_sshd;
	bool listens; /* has an sshd of root's directly below it */
	bool serves;  /* something other than sshd runs below it */
	bool login;   /* its sockets are a session's */
};

struct search {
	const char *proc;
	struct process *process; /* in order of pid */
	size_t process_count;
	unsigned long *socket; /* inodes, in order */
	size_t socket_count;
	struct session_list *list;
};

/* ------------------------------------------------------------------ processes */

static int compare_pids(const void *a, const void *b)
{
	const struct process *one = a, *other = b;

	return one->pid < other->pid ? -1 : one->pid > other->pid;
}

static struct process *find_process(const struct search *s, int pid)
{
	struct process key = { .pid = pid };

	return bsearch(&key, s->process, s->process_count, sizeof(key), compare_pids);
}

/* Name, parent and effective uid. False where it is gone. */
static bool read_process(const struct search *s, int pid, struct process *ret)
{
	char path[512], line[256];
	unsigned int real, effective = 1;
	FILE *file;
	int found = 0;

	memset(ret, 0, sizeof(*ret));
	ret->pid = pid;
	snprintf(path, sizeof(path), "%s/%d/status", s->proc, pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (found < 3 && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "Name:\t", 6)) {
			ret->is_sshd = !strncmp(line + 6, "sshd", 4);
			found++;
		} else if (sscanf(line, "PPid: %d", &ret->parent) == 1 ||
			   sscanf(line, "Uid: %u %u", &real, &effective) == 2) {
			found++;
		}
	}
	fclose(file);
	ret->is_root = effective == 0;
	return found == 3;
}

static int read_processes(struct search *s, struct sl_err *err)
{
	DIR *dir = opendir(s->proc);
	struct dirent *entry;

	if (!dir)
		return sl_err_set(err, errno, "cannot read %s: %s", s->proc, strerror(errno));
	s->process = calloc(PROCESSES_MAX, sizeof(*s->process));
	while (s->process && s->process_count < PROCESSES_MAX && (entry = readdir(dir))) {
		int pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;

		if (pid > 0 && read_process(s, pid, &s->process[s->process_count]))
			s->process_count++;
	}
	closedir(dir);
	if (!s->process)
		return sl_err_set(err, ENOMEM, "out of memory");
	qsort(s->process, s->process_count, sizeof(*s->process), compare_pids);
	return 0;
}

/* Gives every sshd the sockets of the processes below it. */
static void look_below(struct search *s)
{
	for (size_t i = 0; i < s->process_count; i++) {
		const struct process *process = &s->process[i];
		struct process *above = find_process(s, process->parent);

		if (above && process->is_sshd && process->is_root)
			above->listens = true;
		for (int depth = 0; above && !process->is_sshd && depth < DEPTH_MAX; depth++) {
			above->serves = true;
			above = find_process(s, above->parent);
		}
	}
	for (size_t i = 0; i < s->process_count; i++) {
		struct process *process = &s->process[i];

		process->login = process->is_sshd && process->is_root && process->serves &&
				 !process->listens;
	}
}

/* Marks processes that utmp names, and those above them, but none that listens for connections. */
static void look_at_utmp(struct search *s, const char *utmp)
{
	FILE *file = fopen(utmp, "re");
	struct utmp entry;

	for (int i = 0; file && i < UTMP_MAX && fread(&entry, sizeof(entry), 1, file) == 1; i++) {
		struct process *at =
			entry.ut_type == USER_PROCESS ? find_process(s, entry.ut_pid) : NULL;

		for (int depth = 0; at && at->pid > 1 && depth < DEPTH_MAX; depth++) {
			at->login |= !at->listens;
			at = find_process(s, at->parent);
		}
	}
	if (file)
		fclose(file);
}

/* ------------------------------------------------------------------ sockets */

static void read_sockets(struct search *s, int pid)
{
	char path[512], target[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%d/fd", s->proc, pid);
	dir = opendir(path);
	for (int i = 0; dir && i < FDS_MAX && (entry = readdir(dir)); i++) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		unsigned long inode;

		if (n <= 0)
			continue;
		target[n] = '\0';
		if (sscanf(target, "socket:[%lu]", &inode) == 1 && s->socket_count < SOCKETS_MAX)
			s->socket[s->socket_count++] = inode;
	}
	if (dir)
		closedir(dir);
}

static int compare_inodes(const void *a, const void *b)
{
	unsigned long one = *(const unsigned long *)a, other = *(const unsigned long *)b;

	return one < other ? -1 : one > other;
}

/*
 * The kernel prints an address as 32-bit numbers of the machine's byte order, over memory in
 * network order. IPv4-mapped IPv6 is IPv4: its packets are.
 */
static bool parse_address(const char *text, struct sl_addr *ret, unsigned int *ret_port,
			  enum sl_family *ret_family)
{
	const char *colon = strchr(text, ':');
	u32 bucket_state[4] = { 0 };
	size_t words = colon ? (size_t)(colon - text) / 8 : 0;

	if ((words != 1 && words != 4) || (size_t)(colon - text) % 8 ||
	    sscanf(colon, ":%4x", ret_port) != 1)
		return false;
	for (size_t i = 0; i < words; i++) {
		if (sscanf(text + i * 8, "%8x", &bucket_state[i]) != 1)
			return false;
		bucket_state[i] = ntohl(bucket_state[i]);
	}
	if (words == 4 && !bucket_state[0] && !bucket_state[1] && bucket_state[2] == 0xffff) {
		bucket_state[0] = bucket_state[3];
		words = 1;
	}
	*ret_family = words == 4 ? SL_V6 : SL_V4;
	ret->hi = (u64)bucket_state[0] << 32 | (words == 4 ? bucket_state[1] : 0);
	ret->lo = words == 4 ? (u64)bucket_state[2] << 32 | bucket_state[3] : 0;
	return true;
}

static void add_session(struct session_list *list, const struct sl_session *new)
{
	for (u32 i = 0; i < list->count; i++)
		if (!memcmp(&list->session[i], new, sizeof(*new)))
			return;
	list->found++;
	if (list->count < SL_SESSIONS_MAX)
		list->session[list->count++] = *new;
}

static void read_line(struct search *s, const char *line)
{
	char local[40], remote[40];
	struct sl_session session;
	unsigned int state, local_port, remote_port;
	enum sl_family family, remote_family;
	unsigned long inode;

	if (sscanf(line, " %*d: %39s %39s %x %*s %*s %*s %*u %*d %lu", local, remote, &state,
		   &inode) != 4 ||
	    state != TCP_ESTABLISHED_HEX ||
	    !bsearch(&inode, s->socket, s->socket_count, sizeof(inode), compare_inodes))
		return;
	memset(&session, 0, sizeof(session));
	if (!parse_address(local, &session.dst, &local_port, &family) ||
	    !parse_address(remote, &session.src, &remote_port, &remote_family) ||
	    family != remote_family)
		return;
	session.sport = (u16)remote_port;
	session.dport = (u16)local_port;
	session.used = 1 + family;
	add_session(s->list, &session);
}

static void read_connections(struct search *s, const char *name)
{
	char path[512], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/self/net/%s", s->proc, name);
	file = fopen(path, "re");
	for (int i = 0; file && i < LINES_MAX && fgets(line, sizeof(line), file); i++)
		read_line(s, line);
	if (file)
		fclose(file);
}

int sessions_find(const char *proc, const char *utmp, struct session_list *ret, struct sl_err *err)
{
	struct search s = { .proc = proc, .list = ret };
	int r = read_processes(&s, err);

	memset(ret, 0, sizeof(*ret));
	s.socket = calloc(SOCKETS_MAX, sizeof(*s.socket));
	if (!r && !s.socket)
		r = sl_err_set(err, ENOMEM, "out of memory");
	if (!r) {
		look_below(&s);
		look_at_utmp(&s, utmp);
		for (size_t i = 0; i < s.process_count; i++)
			if (s.process[i].login)
				read_sockets(&s, s.process[i].pid);
		qsort(s.socket, s.socket_count, sizeof(*s.socket), compare_inodes);
		if (s.socket_count) {
			read_connections(&s, "tcp");
			read_connections(&s, "tcp6");
		}
	}
	free(s.process);
	free(s.socket);
	return r;
}

struct sl_prefix session_peer(const struct sl_session *session)
{
	bool v4 = session->used == 1 + SL_V4;

	return (struct sl_prefix){ .addr = session->src,
				   .family = v4 ? SL_V4 : SL_V6,
				   .len = v4 ? 32 : 128 };
}
