// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rule_path.c - what must be unique in a rule set: composite keys, domains; and paths. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/rules/rule_private.h"

/* Room after a path for the suffix that makes it unique. */
#define PATH_NUMBER_BYTES 16

int note_seen(struct build *b, u32 above, const char *text, int line, const struct seen **ret)
{
	u64 hash = hash_bytes(hash_seed(), above, text, strlen(text));
	struct seen *seen;
	u32 at = hash;

	while ((seen = index_next(&b->seen, hash, &at)))
		if (seen->above == above && !strcmp(seen->text, text))
			break;
	*ret = seen;
	if (seen)
		return 0;
	seen = arena_alloc(&b->scratch, sizeof(*seen) + strlen(text) + 1);
	if (!seen)
		return -ENOMEM;
	seen->above = above;
	seen->line = line;
	seen->file = b->file;
	strcpy(seen->text, text);
	return index_add(&b->seen, hash, seen);
}

/*
 * Values may contain the separators of paths: of two descriptors whose paths read the same
 * ("a=b/c" is one value, or two entries) the second gets the suffix "-2".
 */
static int make_unique(struct build *b, size_t len)
{
	const struct seen *first;
	char *name;
	u32 number = 2;
	int rc;

	do {
		if (asprintf(&name, "%s/%s", b->domain, b->path) < 0)
			return -ENOMEM;
		rc = note_seen(b, ~0U, name, 0, &first);
		free(name);
		if (!rc && first)
			snprintf(b->path + len, sizeof(b->path) - len, "-%u", number++);
	} while (!rc && first);
	return rc;
}

int path_add(struct build *b, const char *key, const char *value)
{
	size_t used = strlen(b->path), room = sizeof(b->path) - used;
	int len = snprintf(b->path + used, room, "%s%s%s%s", used ? "/" : "", key, value ? "=" : "",
			   value ? value : "");

	if (len + PATH_NUMBER_BYTES < (int)room)
		return make_unique(b, used + len);
	b->path[used] = 0;
	return -E2BIG;
}
