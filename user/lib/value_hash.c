// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* value_hash.c - see value_hash.h. */
#include "lib/value_hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/log.h"

#define PREFIX "hash:"
#define DIGITS 16

static struct sl_seed key;

int value_hash_open(const char *state_dir, struct sl_err *err)
{
	char *path = file_join(state_dir, "values.key");
	struct sl_seed found = { 0 };
	struct sl_err why;
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	bool whole = fd >= 0 && read(fd, &found, sizeof(found)) == sizeof(found) &&
		     (found.k0 || found.k1);

	if (fd >= 0)
		close(fd);
	if (!path)
		return sl_err_set(err, ENOMEM, "out of memory");
	key = whole ? found : hash_seed();
	if (!whole && file_replace(path, NULL, &key, sizeof(key), 0600, &why) < 0)
		log_warn("%s; hashes of values are other ones after a restart", why.message);
	free(path);
	return 0;
}

struct sl_seed value_hash_seed(void)
{
	return key.k0 || key.k1 ? key : hash_seed();
}

const char *value_hash(const char *value, size_t len, char buf[VALUE_HASH_TEXT])
{
	snprintf(buf, VALUE_HASH_TEXT, PREFIX "%016llx",
		 hash_bytes(value_hash_seed(), 0, value, len));
	return buf;
}

bool value_hash_is(const char *text)
{
	size_t len = strlen(PREFIX);

	return !strncmp(text, PREFIX, len) && strspn(text + len, "0123456789abcdef") == DIGITS &&
	       !text[len + DIGITS];
}
