/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * entries.h - keeps, inserts and removes items of a list or keys of a mapping in a text; for
 * text_edit.c.
 */
#ifndef SLUICE_ENTRIES_H
#define SLUICE_ENTRIES_H

#include "conf/place.h"
#include "conf/splice.h"

/* An item of a list or a key of a mapping, with its value and its dash. */
struct entry {
	struct yaml_node *place;
	size_t start, end;
	const struct yaml_node *node; /* its new node; NULL: removed */
};

struct entries {
	struct entry *entry;
	size_t count, kept;
	bool is_map, flow;
	size_t column; /* without brackets: of each entry */
};

/* The entries of a list or mapping with at least one. 0 with ret->entry to be freed, or -ENOMEM. */
int entries_of(const struct editing *e, const struct yaml_node *place, struct entries *ret);
/* The position after the colon or dash of an entry, and after the anchor; 0 within brackets. */
size_t entry_lead(const struct editing *e, const struct entries *s, const struct entry *entry);
/* The next entry that is kept, from `i` on; s->count: none. */
size_t entries_kept(const struct entries *s, size_t i);
/* Inserts an item, or a key with its value, beside an entry that is kept. */
void entry_insert_after(struct editing *e, const struct entries *s, const struct entry *entry,
			const struct yaml_node *node);
void entry_insert_before(struct editing *e, const struct entries *s, const struct entry *entry,
			 const struct yaml_node *node);
/* Removes the entries that are not kept; at least one is kept. */
void entries_cut(struct editing *e, const struct entries *s);

#endif
