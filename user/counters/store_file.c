// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * store_file.c - the store's file: taken over, made anew, or moved to another size.
 *
 * A file is made beside its place and renamed into it, so one that is in its place is whole. Its
 * blocks are allocated when it is made: a full disk is an error then, not a SIGBUS later.
 *
 * What a killed process wrote is in the page cache and all there; what the machine lost with its
 * power may be pages of different ages. Every block has a checksum (lib/block_check.h), the header and
 * the classes have a copy: damaged blocks are taken out, the others go on, and nothing follows a
 * pointer that was not checked. One that is not ours is kept as FILE.bad.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "counters/store_file.h"

int store_fill_header(struct store_header *head, const struct store_fixed *want)
{
	head->fixed = *want;
	head->chunks_used = 1;
	if (getrandom(&head->fixed.seed, sizeof(head->fixed.seed), 0) !=
	    sizeof(head->fixed.seed))
		return -EIO;
	head->fixed.check = store_check(&head->fixed);
	head->clock_check = store_clock_check(&head->clock);
	return 0;
}

u32 store_clock_check(const struct store_clock *clock)
{
	return (u32)crc32(0, (const Bytef *)clock, sizeof(*clock));
}

u32 store_def_check(const struct spec_def *def)
{
	return (u32)crc32(0, (const Bytef *)def, sizeof(*def));
}

/* What there is to say about the file, behind what was said. */
void store_note_add(struct store *store, const char *format, ...)
{
	size_t used = strlen(store->note);
	va_list args;

	if (used)
		used += (size_t)snprintf(store->note + used, sizeof(store->note) - used, "; ");
	if (used >= sizeof(store->note))
		return;
	va_start(args, format);
	vsnprintf(store->note + used, sizeof(store->note) - used, format, args);
	va_end(args);
}

/* Beside `path`: a file that is being made. */
void store_path_new(const char *path, char *buf, size_t size)
{
	snprintf(buf, size, "%s.new", path);
}

/* ------------------------------------------------------------------ opening */

static const char *check_header(const struct store_header *head, u64 size)
{
	const struct store_fixed *fixed = &head->fixed;

	if (memcmp(fixed->magic, STORE_MAGIC, sizeof(fixed->magic)))
		return "is not one of sluice's";
	if ((fixed->version != STORE_VERSION && fixed->version != STORE_VERSION_PLAIN) ||
	    fixed->classes != STORE_CLASSES)
		return "is of another version";
	if (fixed->check != store_check(fixed) || fixed->sets < 2 || !fixed->chunks ||
	    fixed->chunks > REQUEST_CHUNKS_MAX)
		return "has a damaged header";
	if (fixed->version == STORE_VERSION && head->clock_check != store_clock_check(&head->clock))
		return "has a damaged clock";
	if (head->clock.mono_promised > STORE_MONO_MAX)
		return "has been in use for over four years, which is half of what its clock can tell";
	if (size != store_bytes(fixed))
		return "has been cut or extended";
	return NULL;
}

/* Why a file cannot be taken over; NULL: it can. *ret: its header, or the whole one of the two. */
static const char *look_at(struct store *store, int fd, struct store_header *ret)
{
	struct store_header tail;
	const char *why;
	struct stat st;
	bool whole;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return "is not a regular file";
	if (pread(fd, ret, sizeof(*ret), 0) != sizeof(*ret))
		return "is too short";
	why = check_header(ret, (u64)st.st_size);
	whole = pread(fd, &tail, sizeof(tail), st.st_size - (off_t)STORE_PAGE) == sizeof(tail) &&
		tail.fixed.version == STORE_VERSION && !check_header(&tail, (u64)st.st_size);
	if (!why && whole && tail.clock.mono_promised > ret->clock.mono_promised)
		ret->clock = tail.clock;
	if (why && whole) {
		store_note_add(store, "its header %s, and was restored from its copy", why);
		*ret = tail;
		ret->chunks_used = ret->fixed.chunks;
		why = NULL;
	}
	if (!ret->chunks_used || ret->chunks_used > ret->fixed.chunks)
		ret->chunks_used = ret->fixed.chunks;
	return why;
}

static int map_fd(struct store *store, int fd, size_t bytes, int flags, const char *path,
		  struct sl_err *err)
{
	store->map_bytes = bytes;
	store->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (store->map == MAP_FAILED)
		return sl_err_set(err, errno, "%s: cannot be mapped: %s", path, strerror(errno));
	return 0;
}

/*
 * Blocks for all but the classes and their copies, see store_class.c; those that there are stay as they are. (A copy
 * of a file may have holes.)
 */
static int give_blocks(int fd, const struct store_fixed *fixed)
{
	int code = posix_fallocate(fd, 0, STORE_PAGE);

	if (!code)
		code = posix_fallocate(fd, STORE_SETS_AT,
				       (off_t)(store_copies_at(fixed) - STORE_SETS_AT));
	if (!code)
		code = posix_fallocate(fd, (off_t)store_checks_at(fixed),
				       (off_t)(store_bytes(fixed) - store_checks_at(fixed)));
	return code;
}

int store_make_at(const char *name, const struct store_fixed *want, int *ret_fd,
		   struct sl_err *err)
{
	int fd, code;

	unlink(name);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return sl_err_set(err, errno, "%s: %s", name, strerror(errno));
	code = ftruncate(fd, (off_t)store_bytes(want)) ? errno : give_blocks(fd, want);
	if (code) {
		/* What it got would be missed by others. */
		unlink(name);
		close(fd);
		return sl_err_set(err, code, "%s: no room for %llu bytes: %s", name,
				  store_bytes(want), strerror(code));
	}
	*ret_fd = fd;
	return 0;
}

static bool is_no_room(int code)
{
	return code == -ENOSPC || code == -EDQUOT || code == -EROFS;
}

/* A new file; where there is no room for one, memory. `from`: keys and time go on. */
static int make_file(struct store *store, const char *path, const struct store_fixed *want,
		     const struct store_header *from, struct sl_err *err)
{
	char name[PATH_MAX];
	int code;

	store_path_new(path, name, sizeof(name));
	code = store_make_at(name, want, &store->fd, err);
	if (is_no_room(code)) {
		store_note_add(store, "%s: users' counts are in memory alone", err->message);
		code = store_map_memory(store, want, err);
	} else if (!code) {
		code = map_fd(store, store->fd, store_bytes(want), MAP_SHARED, name, err);
	}
	if (code)
		return code;
	store->fresh = true;
	store->head = store->map;
	if (store_fill_header(store->head, want))
		return sl_err_set(err, EIO, "no random bytes for the HTTP tier's keys");
	if (!from)
		return store->fd < 0 ? 0 : store_place_file(path, err);
	/* Keys stay what they are, and so does the time. */
	store->head->fixed.seed = from->fixed.seed;
	store->head->fixed.check = store_check(&store->head->fixed);
	store->head->clock = from->clock;
	store->head->clock_check = store_clock_check(&from->clock);
	return 0;
}

int store_map_memory(struct store *store, const struct store_fixed *want, struct sl_err *err)
{
	store->fresh = true;
	store->fd = -1;
	store->map_bytes = store_bytes(want);
	store->map = mmap(NULL, store->map_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (store->map == MAP_FAILED)
		return sl_err_set(err, errno, "no %zu bytes of memory for the HTTP tier's state",
				  store->map_bytes);
	store->head = store->map;
	if (store_fill_header(store->head, want))
		return sl_err_set(err, EIO, "no random bytes for the HTTP tier's keys");
	return 0;
}

int store_place_file(const char *path, struct sl_err *err)
{
	char name[PATH_MAX];

	store_path_new(path, name, sizeof(name));
	if (rename(name, path))
		return sl_err_set(err, errno, "%s: cannot be renamed to %s: %s", name, path,
				  strerror(errno));
	return 0;
}

/* ------------------------------------------------------------------ taking a file over */

/* One of ours, of another size or version. */
static int open_other_size(struct store *store, const char *path, int fd,
			   const struct store_header *head, const struct store_fixed *want,
			   void **ret_old, struct sl_err *err)
{
	size_t bytes = store_bytes(&head->fixed);
	/* Writable for what mends it; the file stays what it is. */
	void *old = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	int code;

	if (old == MAP_FAILED)
		return sl_err_set(err, errno, "%s: cannot be mapped: %s", path, strerror(errno));
	if (head->fixed.version == STORE_VERSION)
		store_mend(store, old, head);
	code = make_file(store, path, want, head, err);
	if (code) {
		munmap(old, bytes);
		return code;
	}
	*ret_old = old;
	code = store->fd < 0 ? 0 : posix_fallocate(store->fd, STORE_DEFS_AT,
						   STORE_SETS_AT - STORE_DEFS_AT);
	if (code)
		return sl_err_set(err, code, "%s: no room: %s", path, strerror(code));
	memcpy((char *)store->map + STORE_DEFS_AT, (const char *)old + STORE_DEFS_AT,
	       STORE_CLASSES * sizeof(struct spec_def));
	return 0;
}

/* In place; where it can only be read, or has no room for its holes, a copy of it in memory. */
static int open_same_size(struct store *store, const char *path, int fd, bool readable_only,
			  const struct store_header *head, struct sl_err *err)
{
	int code = readable_only ? EROFS : give_blocks(fd, &head->fixed);

	if (code && !is_no_room(-code))
		return sl_err_set(err, code, "%s has holes: %s", path, strerror(code));
	if (code)
		store_note_add(store, "%s cannot be written (%s): counts go on from it, and users' counts are in memory alone",
		     path, strerror(code));
	else
		store->fd = fd;
	code = map_fd(store, fd, store_bytes(&head->fixed), code ? MAP_PRIVATE : MAP_SHARED, path,
		      err);
	if (!code)
		store_mend(store, store->map, head);
	return code;
}

static int set_aside(struct store *store, const char *path, const char *why, struct sl_err *err)
{
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s.bad", path);
	if (rename(path, name) && !is_no_room(-errno))
		return sl_err_set(err, errno, "%s: %s, and cannot be renamed to %s: %s", path, why,
				  name, strerror(errno));
	store_note_add(store, "%.100s %s; counts begin anew, the file is kept beside it as .bad", path, why);
	return 0;
}

int store_map_file(struct store *store, const char *path, const struct store_fixed *want,
		   void **ret_old, size_t *ret_old_bytes, struct sl_err *err)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), code;
	bool readable_only = false;
	struct store_header head;
	const char *why;

	if (fd < 0 && errno == ENOENT)
		return make_file(store, path, want, NULL, err);
	if (fd < 0 && errno == EROFS) {
		readable_only = true;
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	}
	if (fd < 0)
		return sl_err_set(err, errno, "%s: %s", path, strerror(errno));
	why = look_at(store, fd, &head);
	if (why) {
		code = set_aside(store, path, why, err);
		if (!code)
			code = make_file(store, path, want, NULL, err);
	} else if (head.fixed.version == want->version && head.fixed.sets == want->sets &&
		   head.fixed.chunks == want->chunks) {
		code = open_same_size(store, path, fd, readable_only, &head, err);
	} else {
		code = open_other_size(store, path, fd, &head, want, ret_old, err);
		*ret_old_bytes = store_bytes(&head.fixed);
	}
	if (fd != store->fd)
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
	if (ref.spec->algo == HTTP_SLIDING_LOG) {
		u64 whole = request_log_check(from, word, mark);

		word = whole ? request_log_copy(&store->logs, from, whole) :
			       store_log_made_now(store, ref.spec, word, now);
	} else if (spec_dead(ref.spec, word, now)) {
		return true;
	}
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
	store_note_add(store, "state of another %s: %llu entries moved, for %llu there was no room%s",
	     head->fixed.version == STORE_VERSION ? "size" : "version", moved,
	     lost + store->evicted, mark ? "" : " (no memory)");
}
