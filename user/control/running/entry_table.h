/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * entry_table.h - the entries of all origins in memory, by prefix; see entries.h. Knows no data
 * plane and no file.
 */
#ifndef SLUICE_RUNNING_ENTRY_TABLE_H
#define SLUICE_RUNNING_ENTRY_TABLE_H

#include "control/running/entries.h"

/* Origins are numbered; the first two are of the configuration and have no name. */
enum {
	ORIGIN_LIVE,  /* block add, exempt add */
	ORIGIN_NODES, /* blocks of other nodes */
	ORIGIN_FEEDS, /* the first number of a name */
	ORIGINS_MAX = 64,
};

#define HELD_NONE (~0U)

struct held {
	struct sl_prefix prefix;
	u64 until_utc_ns; /* 0: no end */
	u64 from_ns;	  /* CLOCK_MONOTONIC; 0: at once */
	char *reason;	  /* NULL: none */
	u32 next;	  /* of the same hash, or of the free ones */
	u8 list;	  /* enum list_kind */
	u8 origin;
	bool used;
	bool mark; /* the caller's */
};

struct entry_table {
	struct held *held;
	u32 count; /* places used so far */
	u32 free;  /* the first free place below count, or HELD_NONE */
	u32 live;  /* entries */
	u32 *head; /* by hash: the first, or HELD_NONE */
	u32 heads; /* a power of two, or 0 */
	char name[ORIGINS_MAX][ENTRY_ORIGIN_MAX];
	u32 of_origin[ORIGINS_MAX][LIST_KIND_COUNT];
	u32 names; /* numbers given away, from 0 on */
};

void entry_table_init(struct entry_table *table);
void entry_table_free(struct entry_table *table);

/* The number of an origin; -ENOENT; with `make` a new one, or -ENOSPC. */
int entry_table_origin(struct entry_table *table, const char *name, bool make);

struct held *entry_table_find(const struct entry_table *table, u32 origin, enum list_kind list,
			      const struct sl_prefix *prefix);

/*
 * Adds an entry, or replaces that of the same origin, list and prefix. 0 or -ENOMEM. Pointers to
 * entries are invalid afterwards.
 */
int entry_table_put(struct entry_table *table, u32 origin, const struct entry *entry, u64 from_ns);
void entry_table_del(struct entry_table *table, struct held *held);

/*
 * What all origins together list at a prefix; false: nothing that lasts beyond now. Of several
 * entries the longest counts; it begins with the first of them.
 */
bool entry_table_value(const struct entry_table *table, const struct sl_prefix *prefix,
		       u64 utc_offset_ns, u64 now_utc_ns, struct sl_listed *ret);

/* Clears the marks. */
void entry_table_unmark(struct entry_table *table);
/* Whether deadline and reason are the same. */
bool entry_is_same(const struct held *held, const struct entry *entry);
/* As an entry. */
struct entry entry_of(const struct held *held);

#endif
