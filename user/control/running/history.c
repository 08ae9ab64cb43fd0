// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* history.c - see history.h. */
#include "control/running/history.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/log.h"
#include "conf/config_text.h"

/* state_dir/history/KIND-NUMBER.SUFFIX, or NULL if out of memory. */
static char *path_of(const char *state_dir, const char *kind, u32 number, const char *suffix)
{
	char *path;

	return asprintf(&path, "%s/history/%s-%u.%s", state_dir, kind, number, suffix) < 0 ? NULL
											   : path;
}

/* The number of a file of this kind, or 0. */
static u32 number_of(const char *name, const char *kind, const char *suffix)
{
	size_t length = strlen(kind);
	unsigned long number;
	char *end;

	if (strncmp(name, kind, length) != 0 || name[length] != '-')
		return 0;
	number = strtoul(name + length + 1, &end, 10);
	return number <= 0xffffffffUL && *end == '.' && !strcmp(end + 1, suffix) ? (u32)number : 0;
}

static DIR *open_history(const char *state_dir)
{
	char *path = file_join(state_dir, "history");
	DIR *dir = path ? opendir(path) : NULL;

	free(path);
	return dir;
}

static int replace(char *path, const char *data, size_t size, struct sl_err *err)
{
	int r = path ? file_make_parent(path, 0750, err) : sl_err_set(err, ENOMEM, "out of memory");

	if (!r)
		r = file_replace(path, NULL, data, size, 0600, err);
	free(path);
	return r;
}

/* ------------------------------------------------------------------ texts */

int history_text_read(const char *state_dir, u32 number, char **ret, size_t *ret_size,
		      struct sl_err *err)
{
	char *path = path_of(state_dir, "text", number, "yaml");
	int r = path ? config_text_read(path, true, ret, ret_size, err)
		     : sl_err_set(err, ENOMEM, "out of memory");

	free(path);
	return r;
}

static bool has_text(const char *state_dir, u32 number, const char *text, size_t size)
{
	struct stat st;
	char *path = path_of(state_dir, "text", number, "yaml"), *other;
	bool same = path && stat(path, &st) == 0 && (size_t)st.st_size == size;
	struct sl_err ignored;
	size_t other_size;

	free(path);
	if (!same || history_text_read(state_dir, number, &other, &other_size, &ignored) < 0)
		return false;
	same = other_size == size && !memcmp(other, text, size);
	free(other);
	return same;
}

/* Contents are compared, not hashed: there are at most eleven texts. */
int history_text_keep(const char *state_dir, const char *text, size_t size, u32 *ret_number,
		      struct sl_err *err)
{
	DIR *dir = open_history(state_dir);
	u32 found = 0, last = 0, number;
	struct dirent *entry;
	int r;

	while (dir && !found && (entry = readdir(dir))) {
		number = number_of(entry->d_name, "text", "yaml");
		if (number > last)
			last = number;
		if (number && has_text(state_dir, number, text, size))
			found = number;
	}
	if (dir)
		closedir(dir);
	if (found) {
		*ret_number = found;
		return 0;
	}
	r = replace(path_of(state_dir, "text", last + 1, "yaml"), text, size, err);
	if (!r)
		*ret_number = last + 1;
	return r;
}

/* ------------------------------------------------------------------ states */

int history_state_write(const char *state_dir, u32 number, const json_t *state, struct sl_err *err)
{
	char *text = json_dumps(state, JSON_INDENT(1));
	int r = text ? replace(path_of(state_dir, "state", number, "json"), text, strlen(text), err)
		     : sl_err_set(err, ENOMEM, "out of memory");

	free(text);
	return r;
}

int history_state_read(const char *state_dir, u32 number, json_t **ret, struct sl_err *err)
{
	char *path = path_of(state_dir, "state", number, "json");
	json_error_t error;
	json_t *state = NULL;
	int r = 0;

	if (!path || access(path, F_OK) < 0) {
		r = sl_err_set(err, ENOENT, "the history has no state %u", number);
	} else {
		state = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
		if (!json_is_integer(json_object_get(state, "text")) ||
		    !json_is_string(json_object_get(state, "path")) ||
		    !json_is_array(json_object_get(state, "changes")))
			r = sl_err_set(err, ENOENT, "%s: not a valid state: %s", path, error.text);
	}
	if (!r)
		*ret = json_incref(state);
	json_decref(state);
	free(path);
	return r;
}

/* ------------------------------------------------------------------ cleaning up */

static bool is_kept(u32 number, u32 top)
{
	return number <= top && number + HISTORY_MAX > top;
}

static void unlink_in(DIR *dir, const char *name)
{
	if (unlinkat(dirfd(dir), name, 0) < 0)
		log_warn("cannot remove history/%s: %s", name, strerror(errno));
}

/* The texts that the states up to `top` refer to; returns their number. */
static size_t texts_in_use(const char *state_dir, u32 top, u32 *ret)
{
	size_t count = 0;

	for (u32 n = top; n && is_kept(n, top); n--) {
		struct sl_err ignored;
		json_t *state;

		if (history_state_read(state_dir, n, &state, &ignored) < 0)
			continue;
		ret[count++] = (u32)json_integer_value(json_object_get(state, "text"));
		json_decref(state);
	}
	return count;
}

void history_tidy(const char *state_dir, u32 top, bool texts, u32 number)
{
	DIR *dir = open_history(state_dir);
	u32 used[HISTORY_MAX + 1];
	struct dirent *entry;
	size_t count = 0;

	if (!dir)
		return;
	if (texts)
		count = texts_in_use(state_dir, top, used);
	used[count++] = number;
	while ((entry = readdir(dir))) {
		u32 state = number_of(entry->d_name, "state", "json");
		u32 text = number_of(entry->d_name, "text", "yaml");
		bool in_use = !texts || !text;

		for (size_t i = 0; i < count; i++)
			in_use |= used[i] == text;
		if ((state && !is_kept(state, top)) || !in_use)
			unlink_in(dir, entry->d_name);
	}
	closedir(dir);
}
