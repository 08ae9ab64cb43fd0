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

#endif
