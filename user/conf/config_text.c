// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* config_text.c - see config_text.h. */
#include "conf/config_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/reach.h"
#include "lib/hash.h"

static bool is_printable(u32 c)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0))
		return false;
	return c != 0x2028 && c != 0x2029 && c != 0xfeff && c != 0xfffe && c != 0xffff;
}

bool config_text_printable(const char *text, size_t size)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len;
	u32 c;

	for (; size; p += len, size -= len) {
		len = utf8_decode(p, size, &c);
		if (!len || !is_printable(c))
			return false;
	}
	return true;
}

size_t config_text_cut(const char *text, size_t most)
{
	size_t len = strnlen(text, most + 1);

	if (len <= most)
		return len;
	for (len = most; len && ((unsigned char)text[len] & 0xc0) == 0x80;)
		len--;
	return len;
}

int config_text_check(const char *file, const char *text, size_t size, struct sl_err *err)
{
	const unsigned char *p = (const unsigned char *)text;
	int line = 1, column = 1;
	size_t len;
	u32 c;

	for (; size; p += len, size -= len) {
		len = utf8_decode(p, size, &c);
		if (!len)
			return sl_err_at(err, EINVAL, file, line, column,
					 "found byte 0x%02x, which is not UTF-8; accepted: a "
					 "text file",
					 p[0]);
		if (c == '\n') {
			line++;
			column = 1;
			continue;
		}
		if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f)
			return sl_err_at(err, EINVAL, file, line, column,
					 "found control character 0x%02x; accepted: a text file",
					 c);
		column++;
	}
	return 0;
}

static int read_all(int fd, const char *path, char **ret, size_t *ret_size, struct sl_err *err)
{
	size_t used = 0, room = 65536;
	char *text = malloc(room + 1);
	ssize_t got;

	while (text && (got = read(fd, text + used, room - used)) != 0) {
		char *larger;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			got = errno;
			free(text);
			return sl_err_at(err, got, path, 0, 0, "cannot read: %s", strerror(got));
		}
		used += got;
		if (used > CONFIG_TEXT_SIZE_MAX) {
			free(text);
			return sl_err_at(err, EFBIG, path, 0, 0,
					 "too long; accepted: up to %lu MiB",
					 CONFIG_TEXT_SIZE_MAX >> 20);
		}
		if (used < room)
			continue;
		room *= 2;
		larger = realloc(text, room + 1);
		if (!larger)
			free(text);
		text = larger;
	}
	if (!text)
		return sl_err_at(err, ENOMEM, path, 0, 0, "out of memory");
	text[used] = 0;
	*ret = text;
	*ret_size = used;
	return 0;
}

int config_text_read(const char *path, bool regular, char **ret, size_t *ret_size,
		     struct sl_err *err)
{
	struct stat st;
	int fd, rc;

	rc = regular ? reach_check(path, err) : 0;
	if (rc)
		return rc;
	/* O_NONBLOCK: opening a pipe without a writer must not wait */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (regular ? O_NONBLOCK : 0) |
				(reach_is_set() ? O_NOFOLLOW : 0));
	if (fd < 0)
		return sl_err_at(err, errno, path, 0, 0, "cannot open: %s", strerror(errno));
	if (regular && (fstat(fd, &st) || !S_ISREG(st.st_mode)))
		rc = sl_err_at(err, EINVAL, path, 0, 0, "not a regular file");
	else
		rc = read_all(fd, path, ret, ret_size, err);
	close(fd);
	return rc;
}

u64 config_text_digest(const char *text, size_t size)
{
	return hash_bytes(hash_seed(), 0, text, size);
}

int config_text_lines(const char *path, int (*take)(void *arg, char *line, int number), void *arg,
		      u64 *ret_digest, struct sl_err *err)
{
	char *text, *line, *end;
	int number = 1, rc;
	size_t size;

	rc = config_text_read(path, true, &text, &size, err);
	if (rc)
		return rc;
	*ret_digest = config_text_digest(text, size);
	rc = config_text_check(path, text, size, err);
	for (line = text; !rc && line < text + size; line = end + 1, number++) {
		end = strchrnul(line, '\n');
		*end = 0;
		rc = take(arg, line, number);
	}
	free(text);
	return rc;
}

char *config_text_beside(const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');
	char *path;

	if (name[0] == '/' || !slash)
		return strdup(name);
	return asprintf(&path, "%.*s/%s", (int)(slash - file), file, name) < 0 ? NULL : path;
}
