/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * entries.h - the items of a list or the keys of a mapping in a text: which are kept, where others
 * are put in, and which are cut out; for text_edit.c.
 */
#ifndef SLUICE_ENTRIES_H
#define SLUICE_ENTRIES_H

#include "conf/place.h"
#include "conf/splice.h"

/* An item of a list or a key of a mapping, with its value and its dash. */
struct entry {
	struct place *place;
	size_t start, end;
	const struct yaml_node *node; /* what becomes of it: NULL removed */
};

struct entries {
	struct entry *entry;
	size_t count, kept;
	bool is_map, flow;
	size_t column; /* without brackets: of each entry */
};

/* Those of a list or mapping with at least one. 0 with ret->entry to be freed, or -ENOMEM. */
int entries_of(const struct editing *e, const struct place *place, struct entries *ret);
/* Behind the colon or dash of an entry, and the anchor; 0 within brackets. */
size_t entry_lead(const struct editing *e, const struct entries *s, const struct entry *entry);
/* The next entry that is kept, from `i` on; s->count: none. */
size_t entries_kept(const struct entries *s, size_t i);
/* Puts an item or a key with its value beside an entry that is kept. */
void entry_insert_after(struct editing *e, const struct entries *s, const struct entry *entry,
			const struct yaml_node *node);
void entry_insert_before(struct editing *e, const struct entries *s, const struct entry *entry,
			 const struct yaml_node *node);
/* Cuts out the others; one at least is kept. */
void entries_cut(struct editing *e, const struct entries *s);

#endif
