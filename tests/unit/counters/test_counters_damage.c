// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The counter table's file damaged in ways that keep its size, deleted while in use, read-only, and
 * of the layout before.
 */
#include "counters_rig.h"
#include "lib/rng.h"

/* One of the two headers is enough. */
TEST_WITH(test_one_header, setup, teardown)
{
	const char noise[COUNTERS_PAGE] = "noise";

	open_file(USERS);
	use(7);
	counters_close(rig_store);
	rig_store = NULL;
	patch(0, noise, sizeof(noise));
	open_file(USERS);
	assert_non_null(strstr(counters_note(rig_store), "restored from its copy"));
	counters_close(rig_store);
	rig_store = NULL;
	patch(tail_at(), noise, sizeof(noise));
	open_file(USERS);
	assert_string_equal(counters_note(rig_store), "");
	check_left(3);
}

/* ------------------------------------------------------------------ damage that keeps the size */

#define DAMAGES 200
#define DAMAGE_USERS 300

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

/* Bits flipped, a run of noise or of zeros, a page of another place, or the end zeroed. */
static void damage(struct image *image)
{
	u64 size = image->size, at = rng() % size, n = 1 + rng() % 20000;

	if (n > size - at)
		n = size - at;
	switch (rng() % 5) {
	case 0:
		for (u64 i = 1 + rng() % 64; i--;)
			image->data[rng() % size] ^= (char)(1 << rng() % 8);
		break;
	case 1:
		for (u64 i = 0; i < n; i++)
			image->data[at + i] = (char)rng();
		break;
	case 2:
		memset(image->data + at, 0, n);
		break;
	case 3:
		memmove(image->data + at, image->data + rng() % (size - n + 1), n);
		break;
	default:
		memset(image->data + at, 0, size - at);
		break;
	}
}

/* Keys of `before` in blocks of sets that have changed. */
static u32 keys_hit(const struct image *before, const struct image *after)
{
	const struct counters_header *head = (const void *)before->data;
	const struct counters_set *set = (const void *)(before->data + COUNTERS_SETS_AT);
	u32 hit = 0;

	for (u32 i = 0; i < head->fixed.sets; i++) {
		size_t at = COUNTERS_SETS_AT + (size_t)i * sizeof(*set);

		at -= at % BLOCK_BYTES;
		if (!memcmp(before->data + at, after->data + at, BLOCK_BYTES))
			continue;
		for (u32 way = 0; way < COUNTERS_WAYS; way++)
			hit += set[i].key[way] != 0;
	}
	return hit;
}

/* Users with requests left, of those that had none. */
static u32 count_freed(void)
{
	u32 freed = 0;

	for (u32 k = 0; k < KEYS; k++)
		for (u32 user = 0; user < DAMAGE_USERS; user++)
			freed += request_user(keys[k], user);
	return freed;
}

/*
 * With any damage: the file opens, users in an intact block stay at the limit, and the
 * note counts the others as lost.
 */
TEST_WITH(test_damaged, setup, teardown)
{
	u32 hits = 0, freed_all = 0, begun_anew = 0;
	struct image whole;

	rng_start("test_counters");
	open_file(USERS);
	for (u32 k = 0; k < KEYS; k++)
		for (u32 user = 0; user < DAMAGE_USERS; user++)
			for (u32 i = 0; i < 10; i++)
				assert_true(request_user(keys[k], user));
	counters_close(rig_store);
	rig_store = NULL;
	whole = read_image();
	for (u32 i = 0; i < DAMAGES; i++) {
		struct image hurt = { malloc(whole.size), whole.size };
		u32 hit, freed;

		assert_non_null(hurt.data);
		memcpy(hurt.data, whole.data, whole.size);
		damage(&hurt);
		write_image(&hurt);
		hit = keys_hit(&whole, &hurt);
		open_file(USERS);
		freed = count_freed();
		if (strstr(counters_note(rig_store), "start from zero"))
			begun_anew++;
		else if (freed > hit)
			fail_msg("damage %u: %u users freed, %u in damaged blocks (%s)", i, freed,
				 hit, counters_note(rig_store));
		if (freed && !counters_note(rig_store)[0])
			fail_msg("damage %u: %u users freed, and nothing is said", i, freed);
		hits += hit;
		freed_all += freed;
		free(hurt.data);
		counters_close(rig_store);
		rig_store = NULL;
		unlink(path);
	}
	free(whole.data);
	print_message("%u damages: %u users in damaged blocks, %u freed, %u files begun anew\n",
		      DAMAGES, hits, freed_all, begun_anew);
	assert_true(freed_all);
	/* Both headers at once: nothing but a whole file of zeros or noise. */
	assert_int_equal(begun_anew, 0);
}

/* The note has the number of users. */
TEST_WITH(test_damage_is_counted, setup, teardown)
{
	const char zeros[BLOCK_BYTES] = "";
	struct image whole, hurt;
	char expected[64];
	off_t at;

	open_file(USERS);
	use(10);
	counters_close(rig_store);
	rig_store = NULL;
	whole = read_image();
	hurt = read_image();
	for (at = COUNTERS_SETS_AT; !memcmp(whole.data + at, zeros, BLOCK_BYTES);)
		at += BLOCK_BYTES;
	memset(hurt.data + at, 0, BLOCK_BYTES);
	write_image(&hurt);
	snprintf(expected, sizeof(expected),
		 "1 of its %u blocks are damaged: the counts of %u users",
		 counters_blocks(&((struct counters_header *)(void *)whole.data)->fixed),
		 keys_hit(&whole, &hurt));
	open_file(USERS);
	if (!strstr(counters_note(rig_store), expected))
		fail_msg("'%s' is not in '%s'", expected, counters_note(rig_store));
	free(whole.data);
	free(hurt.data);
}

/* ---------------------------------------------------------- the file goes, or cannot be written */

static void *ask_all_the_time(void *arg)
{
	const bool *stop = arg;

	for (u32 i = 0; !__atomic_load_n(stop, __ATOMIC_RELAXED); i++) {
		rig_now = counters_now(rig_store);
		request_user(keys[i % KEYS], 1000 + i % 3000);
	}
	return NULL;
}

/* Deleted while in use: written anew, and no charge of that time is missing. */
TEST_WITH(test_deleted, setup, teardown)
{
	bool stop = false;
	pthread_t thread;

	open_file(USERS);
	use(7);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(pthread_create(&thread, NULL, ask_all_the_time, &stop), 0);
	for (u32 i = 0; i < 20; i++) {
		assert_int_equal(counters_sync(rig_store), 0);
		assert_int_equal(access(path, F_OK), 0);
		assert_int_equal(unlink(path), 0);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(counters_sync(rig_store), 0);
	assert_int_equal(counters_rewrites(rig_store), 21);
	for (u32 k = 0; k < KEYS; k++)
		for (u32 user = 0; user < 100; user++)
			assert_true(request_user(keys[k], user));
	open_file(USERS);
	assert_string_equal(counters_note(rig_store), "");
	check_left(2);
}

/* A file that was open is checked while it is in use, and after kill -9 but for the last of it. */
TEST_WITH(test_checked_in_use, setup, teardown)
{
	bool stop = false;
	pthread_t thread;

	open_file(USERS);
	use(7);
	assert_int_equal(pthread_create(&thread, NULL, ask_all_the_time, &stop), 0);
	for (u32 i = 0; i < 200; i++)
		counters_check_blocks(rig_store);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	open_file(USERS);
	assert_string_equal(counters_note(rig_store), "");
	check_left(3);
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

/* A state_dir that can only be read: what is in the file counts, and is kept there. */
TEST_WITH(test_read_only, setup, teardown)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    !run("mount --make-rprivate / && mount -t tmpfs tmpfs %s", directory)) {
		print_message("needs root (a mount)\n");
		skip();
	}
	open_file(USERS);
	use(7);
	counters_close(rig_store);
	rig_store = NULL;
	assert_true(run("mount -o remount,ro %s", directory));
	for (u32 size = 1; size < 3; size++) {
		open_file(size * USERS);
		assert_non_null(strstr(counters_note(rig_store), "in memory only"));
		assert_int_equal(counters_sync(rig_store), -EROFS);
		check_left(3);
	}
	assert_true(run("mount -o remount,rw %s", directory));
	assert_int_equal(counters_sync(rig_store), 0);
	open_file(2 * USERS);
	assert_string_equal(counters_note(rig_store), "");
	for (u32 k = 0; k < KEYS; k++)
		for (u32 user = 0; user < 100; user++)
			assert_false(request_user(keys[k], user));
	counters_close(rig_store);
	rig_store = NULL;
	assert_true(run("umount %s", directory));
}

/* The layout before there were checks: moved over. */
TEST_WITH(test_older_layout, setup, teardown)
{
	struct counters_header *head;
	struct image image;

	open_file(USERS);
	use(7);
	counters_close(rig_store);
	rig_store = NULL;
	image = read_image();
	head = (void *)image.data;
	image.size = counters_chunks_end(&head->fixed);
	head->fixed.version = COUNTERS_VERSION_PLAIN;
	head->fixed.check = counters_check(&head->fixed);
	head->clock_check = 0;
	write_image(&image);
	free(image.data);
	open_file(USERS);
	assert_non_null(
		strstr(counters_note(rig_store), "500 entries moved, 0 dropped for lack of room"));
	check_left(3);
	open_file(USERS);
	assert_string_equal(counters_note(rig_store), "");
}

TEST_MAIN
