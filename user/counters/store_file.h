/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * store_file.h - the layout of the store's file: header, classes, sets, chunks, each of them at a
 * page's beginning.
 */
#ifndef SLUICE_HTTP_STORE_FILE_H
#define SLUICE_HTTP_STORE_FILE_H

#include "counters/store_table.h"

#define STORE_MAGIC "sluice-h"
#define STORE_VERSION 2
#define STORE_VERSION_PLAIN 1	/* without checks and copies; moved over */
#define STORE_PAGE 4096ULL
/* Of a bucket's 62 bits of ticks, half: 4.5 years. */
#define STORE_MONO_MAX SL_BIT(57)
/* Of 2^32 sets, well below. */
#define STORE_USERS_MAX 1000000000ULL

#define STORE_DEFS_AT STORE_PAGE
#define STORE_SETS_AT (STORE_DEFS_AT + STORE_CLASSES * sizeof(struct spec_def))
SL_STATIC_ASSERT(sizeof(struct store_header) <= STORE_PAGE, "the header is one page");
SL_STATIC_ASSERT(STORE_SETS_AT % STORE_PAGE == 0, "sets begin with a page");

static inline u64 store_chunks_at(u32 sets)
{
	u64 end = STORE_SETS_AT + (u64)sets * sizeof(struct store_set);

	return (end + STORE_PAGE - 1) / STORE_PAGE * STORE_PAGE;
}

/* Up to the next page. */
static inline u64 store_page_up(u64 bytes)
{
	return (bytes + STORE_PAGE - 1) / STORE_PAGE * STORE_PAGE;
}

static inline u64 store_chunks_end(const struct store_fixed *fixed)
{
	return store_chunks_at(fixed->sets) + (u64)fixed->chunks * sizeof(struct request_chunk);
}

static inline u64 store_copies_at(const struct store_fixed *fixed)
{
	return store_page_up(store_chunks_end(fixed));
}

/* One for each block of sets and chunks. */
static inline u64 store_checks_at(const struct store_fixed *fixed)
{
	return store_copies_at(fixed) +
	       store_page_up(STORE_CLASSES * sizeof(struct store_def_copy));
}

static inline u32 store_blocks(const struct store_fixed *fixed)
{
	return (u32)((store_copies_at(fixed) - STORE_SETS_AT) / BLOCK_BYTES);
}

/* The header's copy. */
static inline u64 store_tail_at(const struct store_fixed *fixed)
{
	return store_checks_at(fixed) + store_page_up(store_blocks(fixed) * sizeof(u64));
}

static inline u64 store_bytes(const struct store_fixed *fixed)
{
	if (fixed->version == STORE_VERSION_PLAIN)
		return store_chunks_end(fixed);
	return store_tail_at(fixed) + STORE_PAGE;
}

u32 store_clock_check(const struct store_clock *clock);
u32 store_def_check(const struct spec_def *def);

/* Not against a forger (who may write the file may do anything), but against half a page. */
static inline u64 store_check(const struct store_fixed *fixed)
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
 * Maps the file at `path`, of the layout `want`, into store->map. One that is not there, or not
 * one of ours, is made anew; of one of another size *ret_old is a mapping (of old_bytes) to be
 * moved over by store_move() and then to be unmapped. store->note says what was done.
 */
int store_map_file(struct store *store, const char *path, const struct store_fixed *want,
		   void **ret_old, size_t *ret_old_bytes, struct sl_err *err);
/*
 * Moves a store that is in memory, or whose file somebody deleted, into a new file at its path,
 * under its users. They wait while what they wrote during the copy is copied again.
 */
int store_place_again(struct store *store, struct sl_err *err);
/* Whether store->path is still the file that is mapped. */
bool store_is_in_place(const struct store *store);
/* Block checks of what was written since the last time; beside its users. */
void store_check_blocks(struct store *store);
/* Adds to what there is to say about the file. */
void store_note_add(struct store *store, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The name of a file that is being made beside `path`; and making one of a layout, with its blocks. */
void store_path_new(const char *path, char *buf, size_t size);
int store_make_at(const char *name, const struct store_fixed *want, int *ret_fd,
		  struct sl_err *err);
/*
 * Takes out of a mapped file what its checks say is damaged, and notes what; `head` is its whole
 * header.
 */
void store_mend(struct store *store, void *map, const struct store_header *head);
/* A log whose times are lost: its requests, as if all were made now. 0: there is no room. */
u64 store_log_made_now(struct store *store, const struct spec *spec, u64 word,
		       struct sl_now now);
/* Memory in place of a file. */
int store_map_memory(struct store *store, const struct store_fixed *want, struct sl_err *err);
/* A header for a new store of the layout `want`: its seed, its check. */
int store_fill_header(struct store_header *head, const struct store_fixed *want);
/* What a file of another size holds, as far as there is room. The new file is not in place yet. */
void store_move(struct store *store, const void *old, struct sl_now now);
/* Puts the new file where the old one is. */
int store_place_file(const char *path, struct sl_err *err);
/*
 * What an earlier process left: entries of no class are taken out, logs that a crash or damage
 * cut in two count all of their requests as made now. What must have ended in the away_ns that
 * nobody used the file goes, too.
 */
void store_recover(struct store *store, struct sl_now now, u64 away_ns);

#endif
