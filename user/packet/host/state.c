// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* state.c - see state.h. */
#include "packet/host/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/array.h"
#include "lib/file.h"

#define STATE_NAME "state.json"

/* On a read-only file system: locks any file there is, or the directory. */
static int open_lock(const char *state_dir, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd >= 0 || !file_is_no_room(errno))
		return fd;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 ? fd : open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int state_lock(const char *state_dir, int *ret_fd, struct sl_err *err)
{
	char *path;
	int fd, r;

	r = file_make_dir(state_dir, 0750, err);
	if (r == -EACCES)
		return sl_err_set(
			err, EACCES,
			"cannot make state_dir %s: %s; run sluiced as root, or set state_dir "
			"to a directory of its user",
			state_dir, strerror(EACCES));
	if (r < 0)
		return r;
	path = file_join(state_dir, "lock");
	fd = path ? open_lock(state_dir, path) : -1;
	if (fd < 0) {
		r = sl_err_set(
			err, errno, "cannot open the lock %s/lock: %s%s", state_dir,
			strerror(errno),
			errno == EACCES
				? "; run sluiced as root, or set state_dir to a directory of its user"
				: "");
	} else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = sl_err_set(
			err, EBUSY,
			"another sluiced is running with state_dir %s; a second one needs its "
			"own state_dir, pin_dir and control.socket",
			state_dir);
		close(fd);
	} else {
		*ret_fd = fd;
	}
	free(path);
	return r;
}

/* ------------------------------------------------------------------ counters */

static struct limit_base *base_find(const struct packet_host *host, const char *name)
{
	for (size_t i = 0; i < host->base_stats_count; i++)
		if (!strcmp(host->base_stats[i].name, name))
			return &host->base_stats[i];
	return NULL;
}

/* All members of struct sl_limit_stats are u64. */
static void stats_add(struct sl_limit_stats *to, const struct sl_limit_stats *from)
{
	u64 *sum = (u64 *)to;
	const u64 *add = (const u64 *)from;

	for (size_t i = 0; i < sizeof(*to) / sizeof(u64); i++)
		sum[i] += add[i];
}

int state_base_add(struct packet_host *host, const char *name, const struct sl_limit_stats *stats)
{
	struct limit_base *base = base_find(host, name);

	if (!base) {
		if (append(host->base_stats, host->base_stats_count, (struct limit_base){ 0 }))
			return -ENOMEM;
		base = &host->base_stats[host->base_stats_count - 1];
		strncpy(base->name, name, sizeof(base->name) - 1);
	}
	stats_add(&base->stats, stats);
	return 0;
}

void state_base_drop(struct packet_host *host, const char *name)
{
	struct limit_base *base = base_find(host, name);

	if (base)
		*base = host->base_stats[--host->base_stats_count];
}

/* Limit ids drain for longer only while there are rules to fall back to. */
static void add_draining(const struct packet_host *host, const char *name,
			 struct sl_limit_stats *to)
{
	const struct sl_limit_id_info *slots = host->dp->slots;
	struct sl_limit_stats stats;

	for (u32 slot = 1; slot < SL_LIMIT_IDS; slot++)
		if (slots[slot].state == SL_LIMIT_ID_DRAINING && !strcmp(slots[slot].name, name) &&
		    host->dp->ops->limit_stats(host->dp, slot, &stats) == 0)
			stats_add(to, &stats);
}

int state_limit_stats(const struct packet_host *host, const char *name, u32 slot, bool pending,
		      struct sl_limit_stats *ret)
{
	const struct limit_base *base = base_find(host, name);
	int r = host->dp->ops->limit_stats(host->dp, slot, ret);

	if (!r && base)
		stats_add(ret, &base->stats);
	if (!r && pending)
		add_draining(host, name, ret);
	return r;
}

/* ------------------------------------------------------------------ state.json */

static void load_interfaces(struct packet_host *host, const json_t *interfaces)
{
	const char *name;
	const json_t *slot;

	json_object_foreach((json_t *)interfaces, name, slot) {
		json_int_t at = json_integer_value(slot);

		if (!json_is_integer(slot) || at < 0 || at >= SL_IFACES_MAX || !name[0] ||
		    strlen(name) >= sizeof(host->iface[0].name) || host->iface[at].name[0])
			continue;
		strcpy(host->iface[at].name, name);
	}
}

static void load_counters(struct packet_host *host, const json_t *counters)
{
	const char *name;
	const json_t *values;

	json_object_foreach((json_t *)counters, name, values) {
		struct sl_limit_stats stats = { .full = 0 };
		u64 *value = (u64 *)&stats;

		if (strlen(name) >= SL_NAME_MAX ||
		    json_array_size(values) != sizeof(stats) / sizeof(u64))
			continue;
		for (size_t i = 0; i < json_array_size(values); i++)
			value[i] = (u64)json_integer_value(json_array_get(values, i));
		state_base_add(host, name, &stats);
	}
}

void state_load(struct packet_host *host)
{
	json_t *state = file_load_json(host->state_dir, STATE_NAME,
				       "interfaces' slots and earlier counters are lost");

	load_interfaces(host, json_object_get(state, "interfaces"));
	load_counters(host, json_object_get(state, "counters"));
	json_decref(state);
}

static json_t *counters_to_json(const struct limit_base *base)
{
	const u64 *value = (const u64 *)&base->stats;
	json_t *values = json_array();

	for (size_t i = 0; i < sizeof(base->stats) / sizeof(u64); i++)
		json_array_append_new(values, json_integer((json_int_t)value[i]));
	return values;
}

int state_store(const struct packet_host *host, struct sl_err *err)
{
	json_t *interfaces = json_object(), *counters = json_object();
	json_t *state = json_pack("{s:i, s:o, s:o}", "version", FILE_VERSION, "interfaces",
				  interfaces, "counters", counters);
	char *path = file_join(host->state_dir, STATE_NAME);
	char *text;
	int r;

	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (host->iface[slot].name[0])
			json_object_set_new(interfaces, host->iface[slot].name, json_integer(slot));
	for (size_t i = 0; i < host->base_stats_count; i++)
		json_object_set_new(counters, host->base_stats[i].name,
				    counters_to_json(&host->base_stats[i]));
	text = state ? json_dumps(state, JSON_INDENT(1)) : NULL;
	r = path && text ? file_replace(path, NULL, text, strlen(text), 0640, err)
			 : sl_err_set(err, ENOMEM, "out of memory");
	free(text);
	free(path);
	json_decref(state);
	return r;
}
