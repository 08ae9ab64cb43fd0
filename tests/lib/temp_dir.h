/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* temp_dir.h - a directory of the test's own, created and removed as cmocka needs it; files in
 * it. */
#ifndef SLUICE_TESTS_TEMP_DIR_H
#define SLUICE_TESTS_TEMP_DIR_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char temp_dir[32];

static inline int temp_dir_make(void **state)
{
	strcpy(temp_dir, "/tmp/sluice-test.XXXXXX");
	return mkdtemp(temp_dir) ? 0 : -1;
}

static inline int temp_dir_drop(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", temp_dir);
	return system(command);
}

/* Where a file of that name is; until the next call. */
static inline const char *temp_path(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", temp_dir, name);
	return path;
}

static inline void temp_put(const char *name, const char *text)
{
	FILE *out = fopen(temp_path(name), "w");

	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

#endif
