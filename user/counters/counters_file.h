/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * counters_file.h - the layout of the file of the counter table: header, classes, sets, chunks,
 * each at the start of a page.
 */
#ifndef SLUICE_HTTP_COUNTERS_FILE_H
#define SLUICE_HTTP_COUNTERS_FILE_H

#include "counters/counters_table.h"

#define COUNTERS_MAGIC "sluice-h"
#define COUNTERS_VERSION 3
#define COUNTERS_VERSION_COPIES 2 /* with copies of the classes and of the header; moved over */
#define COUNTERS_PAGE 4096ULL
/* Of a bucket's 62 bits of ticks, half: 4.5 years. */
#define COUNTERS_MONO_MAX SL_BIT(57)
/* Well below 2^32 sets. */
#define COUNTERS_USERS_MAX 1000000000ULL

#define COUNTERS_DEFS_AT COUNTERS_PAGE
#define COUNTERS_SETS_AT (COUNTERS_DEFS_AT + COUNTERS_CLASSES * sizeof(struct spec_def))
SL_STATIC_ASSERT(sizeof(struct counters_header) <= COUNTERS_PAGE, "the header is one page");
SL_STATIC_ASSERT(COUNTERS_SETS_AT % COUNTERS_PAGE == 0, "sets begin with a page");

/* Rounds up to a page. */
static inline u64 counters_page_up(u64 bytes)
{
	return (bytes + COUNTERS_PAGE - 1) / COUNTERS_PAGE * COUNTERS_PAGE;
}

static inline u64 counters_chunks_at(u32 sets)
{
	return counters_page_up(COUNTERS_SETS_AT + (u64)sets * sizeof(struct counters_set));
}

static inline u64 counters_chunks_end(const struct counters_fixed *fixed)
{
	return counters_chunks_at(fixed->sets) + (u64)fixed->chunks * sizeof(struct request_chunk);
}

static inline u32 counters_blocks(const struct counters_fixed *fixed)
{
	return (u32)((counters_page_up(counters_chunks_end(fixed)) - COUNTERS_SETS_AT) /
		     BLOCK_BYTES);
}

/* One for each block of sets and chunks. */
static inline u64 counters_checks_at(const struct counters_fixed *fixed)
{
	u64 copies = COUNTERS_CLASSES * (sizeof(struct spec_def) + sizeof(u64));

	return counters_page_up(counters_chunks_end(fixed)) +
	       (fixed->version == COUNTERS_VERSION_COPIES ? copies : 0);
}

static inline u64 counters_bytes(const struct counters_fixed *fixed)
{
	return counters_checks_at(fixed) + counters_page_up(counters_blocks(fixed) * sizeof(u64)) +
	       (fixed->version == COUNTERS_VERSION_COPIES ? COUNTERS_PAGE : 0);
}

/*
 * Detects partly written pages, not forgery: a user who may write the file has full control of it.
 */
static inline u64 counters_check(const struct counters_fixed *fixed)
{
	struct sl_sip sip;

	sl_sip_start(&sip, fixed->seed);
	sl_sip_add(&sip, fixed->version);
	sl_sip_add(&sip, fixed->sets);
	sl_sip_add(&sip, fixed->chunks);
	sl_sip_add(&sip, fixed->classes);
	return sl_sip_finish(&sip);
}

/*
 * Maps the file at `path`, of the layout `want`, into store->map. A missing or invalid file is
 * created. For a file of another size *ret_old is a mapping (of old_bytes), which the caller copies
 * by counters_move() and then unmaps. store->note describes these steps.
 */
int counters_map_file(struct counters *counters, const char *path,
		      const struct counters_fixed *want, void **ret_old, size_t *ret_old_bytes,
		      struct sl_err *err);
/* Computes the checks of blocks written since the last call, while the table is in use. */
void counters_check_blocks(struct counters *counters);
/* Appends to the note about the file. */
void counters_note_add(struct counters *counters, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The checks of a mapped file. */
struct block_checks counters_checks_of(void *map);
/* Empties the blocks of a mapped file that differ from their checks, and notes it. */
void counters_verify(struct counters *counters, void *map);
/*
 * The log that a bucket state of the pool `from` has, in the pool of this table; its chunks are
 * marked. If its times are lost, its requests count as made now. 0: no room.
 */
u64 counters_take_log(struct counters *counters, struct request_logs *from, const struct spec *spec,
		      u64 bucket_state, u64 *mark, struct sl_now now);
/* Uses memory in place of a file. */
int counters_map_memory(struct counters *counters, const struct counters_fixed *want,
			struct sl_err *err);
/*
 * Copies the entries of a file of another size, as far as they fit. The new file is not renamed
 * yet.
 */
void counters_move(struct counters *counters, const void *old, struct sl_now now);
/* Renames the new file to the path of the old one. */
int counters_write_file(const char *path, struct sl_err *err);
/*
 * Makes the table of an earlier process usable: finds the free chunks, and removes entries without
 * a class or expired in the away_ns for which the file was unused. 0 or -ENOMEM.
 */
int counters_recover(struct counters *counters, struct sl_now now, u64 away_ns);

#endif
