// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* file.c - see file.h. */
#include "lib/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/log.h"
#include "version.h"

int file_write(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

static int sync_parent(const char *path)
{
	char *copy = strdup(path);
	int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int r = fd < 0 || fsync(fd) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	free(copy);
	return r;
}

/*
 * Sets the old file's owner if permitted: without CAP_CHOWN only a group of this process can be
 * set, and root:root with the same mode adds no reader.
 */
static void keep_owner(int fd, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && fchown(fd, st.st_uid, st.st_gid) < 0)
		return;
}

int file_replace(const char *path, const char *backup, const void *data, size_t size, mode_t mode,
		 struct sl_err *err)
{
	char *temp = NULL;
	int fd = -1, r;

	if (asprintf(&temp, "%s.new", path) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	if (unlink(temp) < 0 && errno != ENOENT)
		goto failed;
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		goto failed;
	keep_owner(fd, path);
	r = file_write(fd, data, size);
	if (r < 0) {
		errno = -r;
		goto failed;
	}
	if (fchmod(fd, mode) < 0 || fsync(fd) < 0)
		goto failed;
	if (backup && ((unlink(backup) < 0 && errno != ENOENT) ||
		       (link(path, backup) < 0 && errno != ENOENT)))
		goto failed;
	if (rename(temp, path) < 0)
		goto failed;
	/* The rename is done: a failing fsync of the directory only weakens it. */
	sync_parent(path);
	close(fd);
	free(temp);
	return 0;

failed:
	r = sl_err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	if (fd >= 0) {
		close(fd);
		unlink(temp);
	}
	free(temp);
	return r;
}

bool file_is_no_room(int code)
{
	return code == ENOSPC || code == EROFS || code == EDQUOT;
}

int file_make_dir(const char *path, mode_t mode, struct sl_err *err)
{
	char *copy = strdup(path), *at;
	int r = 0;

	if (!copy)
		return sl_err_set(err, ENOMEM, "out of memory");
	for (at = copy + 1; *copy && !r; at++) {
		char end = *at;

		if (end != '/' && end != '\0')
			continue;
		*at = '\0';
		/* Parent directories are made searchable by everyone. */
		if (mkdir(copy, end ? 0755 : mode) < 0 && errno != EEXIST)
			r = sl_err_set(err, errno, "cannot make the directory %s: %s", copy,
				       strerror(errno));
		*at = end;
		if (!end)
			break;
	}
	free(copy);
	return r;
}

int file_make_parent(const char *path, mode_t mode, struct sl_err *err)
{
	char *copy = strdup(path);
	int r;

	if (!copy)
		return sl_err_set(err, ENOMEM, "out of memory");
	r = file_make_dir(dirname(copy), mode, err);
	free(copy);
	return r;
}

void file_put_aside(const char *dir, const char *name, const char *why, const char *lost)
{
	char *from = NULL, *to = NULL;

	if (asprintf(&from, "%s/%s", dir, name) < 0 || asprintf(&to, "%s/%s.bad", dir, name) < 0) {
		free(from);
		return;
	}
	if (rename(from, to) == 0)
		log_error("%s: %s; renamed to %s: %s", from, why, to, lost);
	else
		log_error("%s: %s: %s (cannot rename the file: %s)", from, why, lost,
			  strerror(errno));
	free(from);
	free(to);
}

json_t *file_load_json(const char *dir, const char *name, const char *lost)
{
	char *path = file_join(dir, name), why[256];
	json_error_t error;
	json_t *file, *version;

	if (!path)
		return NULL;
	file = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	version = json_object_get(file, "version");
	if (!file && json_error_code(&error) == json_error_cannot_open_file && errno == ENOENT)
		why[0] = '\0';
	else if (!file)
		snprintf(why, sizeof(why), "line %d: %.200s", error.line, error.text);
	else if (!json_is_object(file))
		snprintf(why, sizeof(why), "not an object");
	else if (version && json_integer_value(version) != FILE_VERSION)
		snprintf(why, sizeof(why), "has version %lld; sluiced %s reads version %d",
			 (long long)json_integer_value(version), SLUICE_VERSION, FILE_VERSION);
	else
		why[0] = '\0';
	free(path);
	if (!why[0])
		return file;
	file_put_aside(dir, name, why, lost);
	json_decref(file);
	return NULL;
}

char *file_join(const char *dir, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}
