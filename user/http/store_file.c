// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * store_file.c - the store's file: taken over, made anew, or moved to another size.
 *
 * A file is made beside its place and renamed into it, so one that is in its place is whole. Its
 * blocks are allocated when it is made: a full disk is an error then, not a SIGBUS later.
 *
 * What a killed process wrote is in the page cache and all there; what the machine lost with its
 * power may be pages of different ages, which costs counts, but nothing follows a pointer that
 * was not checked. One that is not ours is kept as FILE.bad.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/store_file.h"

int store_fill_header(struct store_header *head, const struct store_fixed *want)
{
	head->fixed = *want;
	head->chunks_used = 1;
	if (getrandom(&head->fixed.seed, sizeof(head->fixed.seed), 0) !=
	    sizeof(head->fixed.seed))
		return -EIO;
	head->fixed.check = store_check(&head->fixed);
	return 0;
}

/* Beside `path`: a file that is being made. */
static void path_new(const char *path, char *buf, size_t size)
{
	snprintf(buf, size, "%s.new", path);
}

/* ------------------------------------------------------------------ opening */

/* Why a file cannot be taken over; NULL: it can. */
static const char *look_at(int fd, struct store_header *ret)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return "is not a regular file";
	if (pread(fd, ret, sizeof(*ret), 0) != sizeof(*ret))
		return "is too short";
	if (memcmp(ret->fixed.magic, STORE_MAGIC, sizeof(ret->fixed.magic)))
		return "is not one of sluice's";
	if (ret->fixed.version != STORE_VERSION || ret->fixed.classes != STORE_CLASSES)
		return "is of another version";
	if (ret->fixed.check != store_check(&ret->fixed) || ret->fixed.sets < 2 ||
	    !ret->fixed.chunks || ret->fixed.chunks > REQUEST_CHUNKS_MAX ||
	    ret->chunks_used < 1 || ret->chunks_used > ret->fixed.chunks)
		return "has a damaged header";
	if (ret->mono_promised > STORE_MONO_MAX)
		return "has been in use for over four years, which is half of what its clock can tell";
	if ((u64)st.st_size != store_bytes(&ret->fixed))
		return "has been cut or extended";
	return NULL;
}

static int map_fd(struct store *store, int fd, size_t bytes, const char *path, struct sl_err *err)
{
	store->map_bytes = bytes;
	store->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (store->map == MAP_FAILED)
		return sl_err_set(err, errno, "%s: cannot be mapped: %s", path, strerror(errno));
	return 0;
}

/*
 * Blocks for all but the classes, see store_class.c; those that there are stay as they are. (A copy
 * of a file may have holes.)
 */
static int give_blocks(int fd, const struct store_fixed *fixed)
{
	int code = posix_fallocate(fd, 0, STORE_PAGE);

	if (!code)
		code = posix_fallocate(fd, STORE_SETS_AT, store_bytes(fixed) - STORE_SETS_AT);
	return code;
}

static int make_file(struct store *store, const char *path, const struct store_fixed *want,
		     const struct store_header *from, struct sl_err *err)
{
	char name[PATH_MAX];
	int fd, code;

	path_new(path, name, sizeof(name));
	unlink(name);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return sl_err_set(err, errno, "%s: %s", name, strerror(errno));
	store->fd = fd;
	code = ftruncate(fd, store_bytes(want)) ? errno : give_blocks(fd, want);
	if (code) {
		/* What it got would be missed by others. */
		unlink(name);
		return sl_err_set(err, code, "%s: no room for %llu bytes: %s", name,
				  store_bytes(want), strerror(code));
	}
	code = map_fd(store, fd, store_bytes(want), name, err);
	if (code)
		return code;
	store->head = store->map;
	if (store_fill_header(store->head, want))
		return sl_err_set(err, EIO, "no random bytes for the HTTP tier's keys");
	if (!from)
		return store_place_file(path, err);
	/* Keys stay what they are, and so does the time. */
	store->head->fixed.seed = from->fixed.seed;
	store->head->fixed.check = store_check(&store->head->fixed);
	memcpy(store->head->boot_id, from->boot_id, sizeof(from->boot_id));
	store->head->mono_base = from->mono_base;
	store->head->mono_promised = from->mono_promised;
	store->head->utc_promised = from->utc_promised;
	return 0;
}

int store_place_file(const char *path, struct sl_err *err)
{
	char name[PATH_MAX];

	path_new(path, name, sizeof(name));
	if (rename(name, path))
		return sl_err_set(err, errno, "%s: cannot be renamed to %s: %s", name, path,
				  strerror(errno));
	return 0;
}

/* One of ours, of another size. */
static int open_other_size(struct store *store, const char *path, int fd,
			   const struct store_header *head, const struct store_fixed *want,
			   void **ret_old, struct sl_err *err)
{
	size_t bytes = store_bytes(&head->fixed);
	const char *defs;
	/* Writable for request_log_check(), which mends; the file stays what it is. */
	void *old = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	int code;

	if (old == MAP_FAILED)
		return sl_err_set(err, errno, "%s: cannot be mapped: %s", path, strerror(errno));
	code = make_file(store, path, want, head, err);
	if (code) {
		munmap(old, bytes);
		return code;
	}
	defs = (const char *)old + STORE_DEFS_AT;
	*ret_old = old;
	code = posix_fallocate(store->fd, STORE_DEFS_AT, STORE_SETS_AT - STORE_DEFS_AT);
	if (code)
		return sl_err_set(err, code, "%s: no room: %s", path, strerror(code));
	memcpy((char *)store->map + STORE_DEFS_AT, defs,
	       STORE_CLASSES * sizeof(struct spec_def));
	return 0;
}

static int set_aside(struct store *store, const char *path, const char *why, struct sl_err *err)
{
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s.bad", path);
	if (rename(path, name))
		return sl_err_set(err, errno, "%s: %s, and cannot be renamed to %s: %s", path, why,
				  name, strerror(errno));
	snprintf(store->note, sizeof(store->note),
		 "%.100s %s; counts begin anew, the file is kept beside it as .bad", path, why);
	return 0;
}

int store_map_file(struct store *store, const char *path, const struct store_fixed *want,
		   void **ret_old, size_t *ret_old_bytes, struct sl_err *err)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), code;
	struct store_header head;
	const char *why;

	if (fd < 0 && errno == ENOENT)
		return make_file(store, path, want, NULL, err);
	if (fd < 0)
		return sl_err_set(err, errno, "%s: %s", path, strerror(errno));
	why = look_at(fd, &head);
	if (why) {
		code = set_aside(store, path, why, err);
		if (!code)
			code = make_file(store, path, want, NULL, err);
	} else if (head.fixed.sets == want->sets && head.fixed.chunks == want->chunks) {
		store->fd = fd;
		code = give_blocks(fd, want);
		if (code)
			return sl_err_set(err, code, "%s has holes, and there is no room: %s", path,
					  strerror(code));
		return map_fd(store, fd, store_bytes(want), path, err);
	} else {
		code = open_other_size(store, path, fd, &head, want, ret_old, err);
		*ret_old_bytes = store_bytes(&head.fixed);
	}
	close(fd);
	return code;
}

/* ------------------------------------------------------------------ moving to another size */

static bool move_entry(struct store *store, struct request_logs *from,
		       const struct store_set *set, u32 way, u64 *mark, struct sl_now now)
{
	struct store_ref ref = {
		.key = set->key[way],
		.class = set->class[way],
		.spec = store_spec(store, set->class[way]),
	};
	u64 word = set->word[way];

	if (!ref.spec)
		return true;
	if (ref.spec->algo == HTTP_SLIDING_LOG)
		word = request_log_copy(&store->logs, from,
					request_log_check(from, word, mark));
	else if (spec_dead(ref.spec, word, now))
		return true;
	if (!word)
		return false;
	if (!store_claim(store, &ref, now)) {
		if (ref.spec->algo == HTTP_SLIDING_LOG)
			request_log_free(&store->logs, word);
		return false;
	}
	store_put(store, &ref, word);
	/* No call holds it: the next one may take its place if it has to. */
	store_unlock_set(store, ref.set);
	return true;
}

void store_move(struct store *store, const void *old, struct sl_now now)
{
	const struct store_header *head = old;
	const char *at = old;
	const struct store_set *set = (const void *)(at + STORE_SETS_AT);
	u32 used = head->chunks_used;
	struct request_logs logs = {
		.chunk = (void *)(at + store_chunks_at(head->fixed.sets)),
		.chunks = head->fixed.chunks,
		.used = &used,
	};
	u64 *mark = calloc(used / 64 + 1, sizeof(*mark));
	u64 lost = 0, moved = 0;

	for (u32 i = 0; mark && i < head->fixed.sets; i++) {
		for (u32 way = 0; way < STORE_WAYS; way++) {
			const struct spec *spec = store_spec(store, set[i].class[way]);
			bool ok = set[i].key[way] && spec;

			if (!ok)
				continue;
			ok = move_entry(store, &logs, &set[i], way, mark, now);
			moved += ok;
			lost += !ok;
		}
	}
	free(mark);
	snprintf(store->note, sizeof(store->note),
		 "state of another size: %llu entries moved, for %llu there was no room%s", moved,
		 lost + store->evicted, mark ? "" : " (no memory)");
}

/* ------------------------------------------------------------------ taking over */

/*
 * Words count windows modulo a power of two. One that nobody could sweep for longer than its
 * windows last has ended, however it reads now.
 */
static bool has_ended(const struct spec *spec, u64 away_ns)
{
	switch (spec->algo) {
	case HTTP_FIXED_WINDOW:
	case HTTP_SLIDING_WINDOW:
		return away_ns / 2 >= spec->params.window_ns;
	case HTTP_FIRST_REQUEST:
	case HTTP_SLIDING_LOG:
		return away_ns >= spec->params.window_ns;
	default:
		return false;
	}
}

void store_recover(struct store *store, u64 away_ns)
{
	u32 used = store->head->chunks_used;
	u64 *mark = calloc(used / 64 + 1, sizeof(*mark));

	for (u32 i = 0; i < store->sets; i++) {
		struct store_set *set = &store->set[i];

		for (u32 way = 0; way < STORE_WAYS; way++) {
			const struct spec *spec = store_spec(store, set->class[way]);
			bool ok = spec && !has_ended(spec, away_ns);

			if (!set->key[way])
				continue;
			if (ok && spec->algo == HTTP_SLIDING_LOG) {
				set->word[way] = mark ? request_log_check(&store->logs,
									  set->word[way], mark) : 0;
				ok = set->word[way];
			}
			if (!ok)
				set->key[way] = 0;
		}
	}
	if (mark)
		request_logs_rebuild(&store->logs, mark);
	free(mark);
}
