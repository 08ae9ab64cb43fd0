// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The counter table's file: believed within a boot, verified after another one; deleted while in
 * use, read-only, and of the version before.
 */
#include "counters_rig.h"
#include "lib/rng.h"

struct image {
	char *data;
	size_t size;
};

static struct image read_image(void)
{
	struct image image;
	struct stat st;
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	image.size = (size_t)st.st_size;
	image.data = malloc(image.size);
	assert_non_null(image.data);
	assert_int_equal(read(fd, image.data, image.size), image.size);
	close(fd);
	return image;
}

static void write_image(const struct image *image)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, image->data, image->size), image->size);
	close(fd);
}

/* The first block of sets that has users; *ret_users is their number. */
static off_t used_block(const struct image *image, u32 *ret_users)
{
	const char zeros[BLOCK_BYTES] = "";
	off_t at = COUNTERS_SETS_AT;
	const struct counters_set *set;

	while (!memcmp(image->data + at, zeros, BLOCK_BYTES))
		at += BLOCK_BYTES;
	set = (const void *)(image->data + at);
	*ret_users = 0;
	for (u32 i = 0; i < BLOCK_BYTES / sizeof(*set); i++)
		for (u32 way = 0; way < COUNTERS_WAYS; way++)
			*ret_users += set[i].key[way] != 0;
	return at;
}

static u32 count_freed(void)
{
	u32 freed = 0;

	for (u32 k = 0; k < KEYS; k++)
		for (u32 user = 0; user < 100; user++)
			freed += request_user(keys[k], user);
	return freed;
}

/* A block that differs from its check is as the process left it, or lost with the machine. */
TEST_WITH(test_bad_block, setup, teardown)
{
	struct image image;
	char expected[96];
	u32 users;
	off_t at;

	open_file(USERS);
	use(10);
	close_file();
	image = read_image();
	at = used_block(&image, &users);
	/* The padding of a set: nothing else changes. */
	image.data[at + (off_t)offsetof(struct counters_set, pad)] ^= 1;
	write_image(&image);
	open_file(USERS);
	assert_string_equal(counters_note(rig_store), "");
	assert_int_equal(count_freed(), 0);
	close_file();
	write_image(&image);
	other_boot(0);
	open_file(USERS);
	snprintf(expected, sizeof(expected),
		 "1 of its %u blocks are damaged: the counts of %u users are lost",
		 rig_store->checks.count, users);
	assert_string_equal(counters_note(rig_store), expected);
	assert_int_equal(count_freed(), users);
	free(image.data);
}

/* Damaged anywhere in sets and logs: at most the users that the note counts are freed. */
TEST_WITH(test_damaged, setup, teardown)
{
	struct image whole;
	size_t checks_at;
	u32 freed_all = 0;

	rng_start("test_counters");
	open_file(USERS);
	use(10);
	close_file();
	other_boot(0);
	whole = read_image();
	checks_at = counters_checks_at(&((struct counters_header *)(void *)whole.data)->fixed);
	for (u32 i = 0; i < 50; i++) {
		struct image hurt = { malloc(whole.size), whole.size };
		size_t at = COUNTERS_SETS_AT + rng() % (checks_at - COUNTERS_SETS_AT);
		size_t n = 1 + rng() % 20000;
		unsigned long long lost = 0, more = 0;
		const char *note;
		u32 freed;

		assert_non_null(hurt.data);
		memcpy(hurt.data, whole.data, whole.size);
		for (size_t k = 0; k < n && at + k < checks_at; k++)
			hurt.data[at + k] = i % 2 ? (char)rng() : 0;
		write_image(&hurt);
		free(hurt.data);
		open_file(USERS);
		freed = count_freed();
		note = strstr(counters_note(rig_store), "counts of ");
		if (note && sscanf(note, "counts of %llu", &lost) == 1)
			note = strstr(note + 1, "counts of ");
		if (note)
			sscanf(note, "counts of %llu", &more);
		if (freed > lost + more)
			fail_msg("damage %u: %u users freed (%s)", i, freed,
				 counters_note(rig_store));
		freed_all += freed;
		close_file();
	}
	free(whole.data);
	assert_true(freed_all);
}

static void *request_all_the_time(void *arg)
{
	const bool *stop = arg;

	for (u32 i = 0; !__atomic_load_n(stop, __ATOMIC_RELAXED); i++) {
		rig_now = counters_now(rig_store);
		request_user(keys[i % KEYS], 1000 + i % 3000);
	}
	return NULL;
}

/* Blocks are checked while they are written, and none of them is then found bad. */
TEST_WITH(test_checked_in_use, setup, teardown)
{
	bool stop = false;
	pthread_t thread;

	open_file(USERS);
	use(7);
	assert_int_equal(pthread_create(&thread, NULL, request_all_the_time, &stop), 0);
	for (u32 i = 0; i < 200; i++)
		counters_check_blocks(rig_store);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	close_file();
	other_boot(0);
	open_file(USERS);
	assert_string_equal(counters_note(rig_store), "");
	check_left(3);
}

/* Deleted while in use: reported, not written again, and counts hold until the next start. */
TEST_WITH(test_deleted, setup, teardown)
{
	open_file(USERS);
	use(7);
	assert_null(counters_not_kept(rig_store));
	assert_int_equal(unlink(path), 0);
	assert_string_equal(counters_not_kept(rig_store),
			    "http.state was deleted or replaced by another process");
	assert_int_equal(counters_sync(rig_store), 0);
	assert_int_equal(access(path, F_OK), -1);
	check_left(3);
	open_file(USERS);
	assert_null(counters_not_kept(rig_store));
	check_left(10);
}

static bool run(const char *format, ...)
{
	char command[300];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command) == 0;
}

/* A state_dir that can only be read: what is in the file counts, also for another size. */
TEST_WITH(test_read_only, setup, teardown)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    !run("mount --make-rprivate / && mount -t tmpfs tmpfs %s", directory)) {
		print_message("needs root (a mount)\n");
		skip();
	}
	open_file(USERS);
	use(7);
	close_file();
	assert_true(run("mount -o remount,ro %s", directory));
	for (u32 size = 1; size < 3; size++) {
		open_file(size * USERS);
		assert_non_null(strstr(counters_note(rig_store), "in memory only"));
		assert_non_null(counters_not_kept(rig_store));
		check_left(3);
	}
	close_file();
	assert_true(run("umount %s", directory));
}

/* Version 2 had copies of the classes before the checks, and one of the header at its end. */
TEST_WITH(test_version_before, setup, teardown)
{
	struct counters_header *head;
	struct image image, old;
	size_t checks_at, at;

	open_file(USERS);
	use(7);
	close_file();
	other_boot(0);
	image = read_image();
	head = (void *)image.data;
	checks_at = counters_checks_at(&head->fixed);
	head->fixed.version = COUNTERS_VERSION_COPIES;
	head->fixed.check = counters_check(&head->fixed);
	old.size = counters_bytes(&head->fixed);
	old.data = calloc(1, old.size);
	assert_non_null(old.data);
	at = counters_checks_at(&head->fixed);
	memcpy(old.data, image.data, checks_at);
	memcpy(old.data + at, image.data + checks_at, image.size - checks_at);
	write_image(&old);
	open_file(USERS);
	assert_string_equal(
		counters_note(rig_store),
		"state of another version: 500 entries moved, 0 dropped for lack of room");
	check_left(3);
	open_file(USERS);
	assert_string_equal(counters_note(rig_store), "");
	free(image.data);
	free(old.data);
}

TEST_MAIN
