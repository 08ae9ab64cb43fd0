/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* counters_rig.h - a counter table's file in a directory of its own, and users of five algorithms
 * in it. */
#ifndef TESTS_UNIT_COUNTERS_RIG_H
#define TESTS_UNIT_COUNTERS_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/decide_rig.h"
#include "counters/counters_file.h"

#define USERS 20000
#define LOG_BYTES (1 << 20)

static const char rules[] =
	"domain: api\ndescriptors:\n"
	"- {key: fixed, limits: ['10 requests/d']}\n"
	"- {key: first, limits: ['10 requests/d'], window: first-request}\n"
	"- {key: bucket, limits: ['10 requests/d'], algorithm: token-bucket, burst: 10}\n"
	"- {key: sliding, limits: ['10 requests/d'], algorithm: sliding-window}\n"
	"- {key: log, limits: ['10 requests/d'], algorithm: sliding-log}\n";

static const char *const keys[] = { "fixed", "first", "bucket", "sliding", "log" };
#define KEYS COUNT(keys)

static char directory[64], path[96];

static inline int setup(void **state)
{
	snprintf(directory, sizeof(directory), "/tmp/sluice-store-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/http.state", directory);
	rig_load(rules);
	return 0;
}

static inline int teardown(void **state)
{
	char command[128];

	rig_end();
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

static inline void open_file(u64 users)
{
	struct sl_err err = { 0 };

	counters_close(rig_store);
	rig_store = NULL;
	if (counters_open(path, users, LOG_BYTES, &rig_store, &err))
		fail_msg("%s", err.message);
	rig_now = counters_now(rig_store);
}

static inline bool request_user(const char *key, u32 user)
{
	char text[32];

	snprintf(text, sizeof(text), "%s=u%u", key, user);
	rig_now = counters_now(rig_store);
	return allowed(text);
}

/* Users 0..99 used `used` of their ten. */
static inline void use(u32 used)
{
	for (u32 k = 0; k < KEYS; k++)
		for (u32 user = 0; user < 100; user++)
			for (u32 i = 0; i < used; i++)
				assert_true(request_user(keys[k], user));
}

/* They have exactly `left` more, and a neighbour all ten. */
static inline void check_left(u32 left)
{
	for (u32 k = 0; k < KEYS; k++) {
		for (u32 user = 0; user < 100; user++) {
			for (u32 i = 0; i < left; i++)
				assert_true(request_user(keys[k], user));
			assert_false(request_user(keys[k], user));
		}
		for (u32 i = 0; i < 10; i++)
			assert_true(request_user(keys[k], 5000));
		assert_false(request_user(keys[k], 5000));
	}
}

static inline void patch(off_t at, const void *bytes, size_t size)
{
	int fd = open(path, O_RDWR);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, size, at), size);
	close(fd);
}

/* As another boot left it, `utc_back_ns` ago. */
static inline void other_boot(u64 utc_back_ns)
{
	struct counters_header head;
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	close(fd);
	memset(head.clock.boot_id, 0, sizeof(head.clock.boot_id));
	strcpy(head.clock.boot_id, "another boot");
	head.clock.utc_promised -= utc_back_ns;
	patch(0, &head, sizeof(head));
}

static inline void close_file(void)
{
	counters_close(rig_store);
	rig_store = NULL;
}

#endif
