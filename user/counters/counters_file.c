// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * counters_file.c - the file of the counter table: opens it, creates it, or converts its size.
 *
 * A new file is written under another name and then renamed, so the file at the path is complete.
 * Its blocks are allocated at creation: a full disk is an error then, not a SIGBUS later.
 *
 * The writes of a killed process are complete, in the page cache: within a boot the file is used
 * as it is. After a crash of the machine pages may be of different ages. So every block has a
 * checksum (lib/block_check.h): at another boot bad blocks are emptied and counted, the others are
 * used, and all references are checked first. A file that is not a counter table is kept as
 * FILE.bad. Nothing is repaired under a running daemon: a file that was deleted, or found no room
 * at the start, is reported (counters_not_kept()).
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

#include "counters/counters_file.h"
#include "limiter/algorithm.h"

/* A header for a new table of the layout `want`: its seed, its check. */
static int fill_header(struct counters_header *head, const struct counters_fixed *want)
{
	head->fixed = *want;
	head->chunks_used = 1;
	if (getrandom(&head->fixed.seed, sizeof(head->fixed.seed), 0) != sizeof(head->fixed.seed))
		return -EIO;
	head->fixed.check = counters_check(&head->fixed);
	return 0;
}

/* Appends a note about the file. */
void counters_note_add(struct counters *counters, const char *format, ...)
{
	size_t used = strlen(counters->note);
	va_list args;

	if (used)
		used += (size_t)snprintf(counters->note + used, sizeof(counters->note) - used,
					 "; ");
	if (used >= sizeof(counters->note))
		return;
	va_start(args, format);
	vsnprintf(counters->note + used, sizeof(counters->note) - used, format, args);
	va_end(args);
}

/* The name of a new file beside `path`, before it is renamed. */
static void path_new(const char *path, char *buf, size_t size)
{
	snprintf(buf, size, "%s.new", path);
}

/* ------------------------------------------------------------------ opening */

static const char *check_header(const struct counters_header *head, u64 size)
{
	const struct counters_fixed *fixed = &head->fixed;

	if (memcmp(fixed->magic, COUNTERS_MAGIC, sizeof(fixed->magic)))
		return "is not a state file of sluice";
	if ((fixed->version != COUNTERS_VERSION && fixed->version != COUNTERS_VERSION_COPIES) ||
	    fixed->classes != COUNTERS_CLASSES)
		return "has another version";
	if (fixed->check != counters_check(fixed) || fixed->sets < 2 || !fixed->chunks ||
	    fixed->chunks > REQUEST_CHUNKS_MAX)
		return "has a damaged header";
	if (head->clock.mono_promised > COUNTERS_MONO_MAX)
		return "has been in use for over four years, which is half the range of its clock";
	if (size != counters_bytes(fixed))
		return "was truncated or extended";
	return NULL;
}

/* The reason why a file cannot be used; NULL: it can. *ret is its header. */
static const char *look_at(int fd, struct counters_header *ret)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return "is not a regular file";
	if (pread(fd, ret, sizeof(*ret), 0) != sizeof(*ret))
		return "is too short";
	return check_header(ret, (u64)st.st_size);
}

/*
 * A file that a process of this boot wrote is as it left it, also if it was killed. After a crash
 * of the machine its pages may be of different ages.
 */
static void verify(struct counters *counters, void *map)
{
	struct counters_header *head = map;

	if (!head->chunks_used || head->chunks_used > head->fixed.chunks)
		head->chunks_used = head->fixed.chunks;
	if (!*counters->boot_id ||
	    strncmp(counters->boot_id, head->clock.boot_id, sizeof(head->clock.boot_id)) != 0)
		counters_verify(counters, map);
}

static int map_fd(struct counters *counters, int fd, size_t bytes, int flags, const char *path,
		  struct sl_err *err)
{
	counters->map_bytes = bytes;
	counters->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (counters->map == MAP_FAILED)
		return sl_err_set(err, errno, "%s: cannot be mapped: %s", path, strerror(errno));
	return 0;
}

static int make_at(const char *name, const struct counters_fixed *want, int *ret_fd,
		   struct sl_err *err)
{
	int fd, code;

	unlink(name);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return sl_err_set(err, errno, "%s: %s", name, strerror(errno));
	code = posix_fallocate(fd, 0, (off_t)counters_bytes(want));
	if (code) {
		/* Releases the allocated blocks to the file system. */
		unlink(name);
		close(fd);
		return sl_err_set(err, code, "%s: no room for %llu bytes: %s", name,
				  counters_bytes(want), strerror(code));
	}
	*ret_fd = fd;
	return 0;
}

static bool is_no_room(int code)
{
	return code == -ENOSPC || code == -EDQUOT || code == -EROFS;
}

/* A new file; without space on disk, memory. `from`: keys and time continue from this header. */
static int make_file(struct counters *counters, const char *path, const struct counters_fixed *want,
		     const struct counters_header *from, struct sl_err *err)
{
	char name[PATH_MAX];
	int code;

	path_new(path, name, sizeof(name));
	code = make_at(name, want, &counters->fd, err);
	if (is_no_room(code)) {
		counters_note_add(counters, "%s: counts of users are kept in memory only",
				  err->message);
		code = counters_map_memory(counters, want, err);
	} else if (!code) {
		code = map_fd(counters, counters->fd, counters_bytes(want), MAP_SHARED, name, err);
	}
	if (code)
		return code;
	counters->fresh = true;
	counters->head = counters->map;
	if (fill_header(counters->head, want))
		return sl_err_set(err, EIO, "no random bytes for the HTTP tier's keys");
	if (!from)
		return counters->fd < 0 ? 0 : counters_write_file(path, err);
	/* Keeps the keys and the time. */
	counters->head->fixed.seed = from->fixed.seed;
	counters->head->fixed.check = counters_check(&counters->head->fixed);
	counters->head->clock = from->clock;
	return 0;
}

int counters_map_memory(struct counters *counters, const struct counters_fixed *want,
			struct sl_err *err)
{
	counters->fresh = true;
	counters->fd = -1;
	counters->map_bytes = counters_bytes(want);
	counters->map = mmap(NULL, counters->map_bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (counters->map == MAP_FAILED)
		return sl_err_set(err, errno, "no %zu bytes of memory for the HTTP tier's state",
				  counters->map_bytes);
	counters->head = counters->map;
	if (fill_header(counters->head, want))
		return sl_err_set(err, EIO, "no random bytes for the HTTP tier's keys");
	return 0;
}

int counters_write_file(const char *path, struct sl_err *err)
{
	char name[PATH_MAX];

	path_new(path, name, sizeof(name));
	if (rename(name, path))
		return sl_err_set(err, errno, "%s: cannot be renamed to %s: %s", name, path,
				  strerror(errno));
	return 0;
}

/* ------------------------------------------------------------------ taking a file over */

/* A valid file of another size or version. */
static int open_other_size(struct counters *counters, const char *path, int fd,
			   const struct counters_header *head, const struct counters_fixed *want,
			   void **ret_old, struct sl_err *err)
{
	size_t bytes = counters_bytes(&head->fixed);
	/* A private writable mapping: the file is not changed. */
	void *old = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	int code;

	if (old == MAP_FAILED)
		return sl_err_set(err, errno, "%s: cannot be mapped: %s", path, strerror(errno));
	verify(counters, old);
	code = make_file(counters, path, want, head, err);
	if (code) {
		munmap(old, bytes);
		return code;
	}
	*ret_old = old;
	memcpy((char *)counters->map + COUNTERS_DEFS_AT, (const char *)old + COUNTERS_DEFS_AT,
	       COUNTERS_CLASSES * sizeof(struct spec_def));
	return 0;
}

/* Maps the file itself; if it is not writable, or its holes find no space, a copy in memory. */
static int open_same_size(struct counters *counters, const char *path, int fd, bool readable_only,
			  const struct counters_header *head, struct sl_err *err)
{
	int code =
		readable_only ? EROFS : posix_fallocate(fd, 0, (off_t)counters_bytes(&head->fixed));

	if (code && !is_no_room(-code))
		return sl_err_set(err, code, "%s has holes: %s", path, strerror(code));
	if (code)
		counters_note_add(
			counters,
			"%s cannot be written (%s): its counts are loaded, changes are kept in memory only",
			path, strerror(code));
	else
		counters->fd = fd;
	code = map_fd(counters, fd, counters_bytes(&head->fixed), code ? MAP_PRIVATE : MAP_SHARED,
		      path, err);
	if (!code)
		verify(counters, counters->map);
	return code;
}

static int set_aside(struct counters *counters, const char *path, const char *why,
		     struct sl_err *err)
{
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s.bad", path);
	if (rename(path, name) && !is_no_room(-errno))
		return sl_err_set(err, errno, "%s: %s, and cannot be renamed to %s: %s", path, why,
				  name, strerror(errno));
	counters_note_add(counters, "%.100s %s; counts start from zero, the file is kept as .bad",
			  path, why);
	return 0;
}

int counters_map_file(struct counters *counters, const char *path,
		      const struct counters_fixed *want, void **ret_old, size_t *ret_old_bytes,
		      struct sl_err *err)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), code;
	bool readable_only = false;
	struct counters_header head;
	const char *why;

	if (fd < 0 && errno == ENOENT)
		return make_file(counters, path, want, NULL, err);
	if (fd < 0 && errno == EROFS) {
		readable_only = true;
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	}
	if (fd < 0)
		return sl_err_set(err, errno, "%s: %s", path, strerror(errno));
	why = look_at(fd, &head);
	if (why) {
		code = set_aside(counters, path, why, err);
		if (!code)
			code = make_file(counters, path, want, NULL, err);
	} else if (head.fixed.version == want->version && head.fixed.sets == want->sets &&
		   head.fixed.chunks == want->chunks) {
		code = open_same_size(counters, path, fd, readable_only, &head, err);
	} else {
		code = open_other_size(counters, path, fd, &head, want, ret_old, err);
		*ret_old_bytes = counters_bytes(&head.fixed);
	}
	if (fd != counters->fd)
		close(fd);
	return code;
}

/* ------------------------------------------------------------------ moving to another size */

static bool move_entry(struct counters *counters, struct request_logs *from,
		       const struct counters_set *set, u32 way, u64 *mark, struct sl_now now)
{
	struct counters_ref ref = {
		.key = set->key[way],
		.class = set->class[way],
		.spec = counters_spec(counters, set->class[way]),
	};
	u64 bucket_state = set->bucket_state[way];

	if (!ref.spec)
		return true;
	if (algorithm_is_log(ref.spec->algo)) {
		bucket_state = counters_take_log(counters, from, ref.spec, bucket_state, mark, now);
	} else if (spec_expired(ref.spec, bucket_state, now)) {
		return true;
	}
	if (!bucket_state)
		return false;
	if (!counters_claim(counters, &ref, now)) {
		if (algorithm_is_log(ref.spec->algo))
			request_log_free(&counters->logs, bucket_state);
		return false;
	}
	counters_put(counters, &ref, bucket_state);
	/* No request claims it, so it may be evicted by the next one. */
	counters_unlock_set(counters, ref.set);
	return true;
}

void counters_move(struct counters *counters, const void *old, struct sl_now now)
{
	const struct counters_header *head = old;
	const char *at = old;
	const struct counters_set *set = (const void *)(at + COUNTERS_SETS_AT);
	u32 used = head->chunks_used;
	struct request_logs logs = {
		.chunk = (void *)(at + counters_chunks_at(head->fixed.sets)),
		.chunks = head->fixed.chunks,
		.used = &used,
	};
	u64 *mark = calloc(used / 64 + 1, sizeof(*mark));
	u64 lost = 0, moved = 0;

	for (u32 i = 0; mark && i < head->fixed.sets; i++) {
		for (u32 way = 0; way < COUNTERS_WAYS; way++) {
			const struct spec *spec = counters_spec(counters, set[i].class[way]);
			bool ok = set[i].key[way] && spec;

			if (!ok)
				continue;
			ok = move_entry(counters, &logs, &set[i], way, mark, now);
			moved += ok;
			lost += !ok;
		}
	}
	free(mark);
	counters_note_add(
		counters,
		"state of another %s: %llu entries moved, %llu dropped for lack of room%s",
		head->fixed.version == COUNTERS_VERSION ? "size" : "version", moved,
		lost + counters->evicted, mark ? "" : " (no memory)");
}
