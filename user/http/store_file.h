/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * store_file.h - the layout of the store's file: header, classes, sets, chunks, each of them at a
 * page's beginning.
 */
#ifndef SLUICE_HTTP_STORE_FILE_H
#define SLUICE_HTTP_STORE_FILE_H

#include "http/store_table.h"

#define STORE_MAGIC "sluice-h"
#define STORE_VERSION 1
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

static inline u64 store_bytes(const struct store_fixed *fixed)
{
	return store_chunks_at(fixed->sets) + (u64)fixed->chunks * sizeof(struct request_chunk);
}

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
/* A header for a new store of the layout `want`: its seed, its check. */
int store_fill_header(struct store_header *head, const struct store_fixed *want);
/* What a file of another size holds, as far as there is room. The new file is not in place yet. */
void store_move(struct store *store, const void *old, struct sl_now now);
/* Puts the new file where the old one is. */
int store_place_file(const char *path, struct sl_err *err);
/*
 * What an earlier process left: entries of no class, and logs that a crash cut in two, are taken
 * out; so is what must have ended in the away_ns that nobody used the file.
 */
void store_recover(struct store *store, u64 away_ns);

#endif
