/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* override_private.h - storage (override_value.c) and loading of limits per value. */
#ifndef SLUICE_HTTP_OVERRIDE_PRIVATE_H
#define SLUICE_HTTP_OVERRIDE_PRIVATE_H

#include "request/rules/rule_private.h"

/*
 * The number of the limits of each value. A table of a file is shared by all rule sets that read
 * the same file for the same rule.
 */
struct override_table {
	u32 users;			 /* rule sets that share it; of the main thread */
	struct numbers values;		 /* index into limits, by override_key.hash */
	struct net_lengths nets;	 /* of the networks among the values */
	struct override_limits **limits; /* distinct ones */
	u32 limits_count;
	struct numbers made;	     /* the same by their hash, while loading */
	struct arena arena;	     /* the limits */
	struct override_table *base; /* whose arena it uses, of a copy; else NULL */
	u32 copies;		     /* made of it: its arena only grows */
	/* Origin: the file as stat() describes it. */
	char *path;
	u64 file_id[4];
	u64 digest; /* config_text.h */
};

/* An override under `overrides`, or a live one: with its value, for listing and writing. */
struct override_own {
	char *value;				   /* as written */
	const struct override_limits *limits;	   /* NULL: removed, the rule's own limits apply */
	const struct override_limits *file_limits; /* of in_file: as in the file */
	bool live, in_file; /* made or changed live; written in the rule file */
	bool other_text;    /* a change named another address of its group */
	int line;
};

struct override_index {
	struct override_table *file; /* NULL: none */
	char *file_text;	     /* overrides_file as written */
	struct override_table *own;  /* its numbers are those of own_list */
	struct override_own *own_list;
	u32 own_count;
	u64 rule_hash; /* of what they depend on: limits and groups of the rule */
};

/*
 * What values are looked up by, of the entries without one of the rule's own: an address, if the
 * rule groups them, by its group; a network as it is.
 */
struct override_key {
	u64 hash;
	bool is_net;	/* wider than the rule's groups: each in it has the limits */
	u8 family, len; /* of a network */
};

/*
 * The key of a text of rule_values.h, as it is in a file or a command. -EINVAL: it is none, or a
 * network within a group, or one beside other values; `err` (may be NULL) then has what was found
 * and what is accepted. -ENOMEM.
 */
int override_key_read(const struct rule *rule, struct bytes text, struct override_key *ret,
		      struct sl_err *err);
/* Whether the table has it, and its number. */
bool override_table_find(const struct override_table *table, u64 hash, u32 *ret);
int override_table_add(struct override_table *table, const struct override_key *key, u32 number);
struct override_table *override_table_new(void);
/* The same values and limits, to be changed while others read the table; NULL: out of memory. */
struct override_table *override_table_copy(struct override_table *table);
/* Where its limits are. */
static inline struct arena *override_arena(struct override_table *table)
{
	return table->base ? &table->base->arena : &table->arena;
}

void override_table_drop(struct override_table *table); /* NULL is fine */

/* ---- making ---- */

/* A table under construction. */
struct making {
	struct reader *r;
	struct draft *draft;
	struct override_table *table;
};

/*
 * The number of these limits among the table's distinct ones. -ENOMEM; -E2BIG: too many in the
 * rule set. override_hash_limits() is a keyed hash of all their fields.
 */
int override_intern(struct making *m, const struct rule_limit *limit, u32 count, bool unlimited,
		    u32 *ret);
u64 override_hash_limits(const struct rule_limit *limit, u32 count, bool unlimited);
/* Defaults of an override's i-th limit: those of the rule's i-th, except burst. */
int override_default_limit(struct making *m, u32 i, struct rule_limit *ret);
/* The rule's limit that the i-th one of a value is like; NULL: it has fewer. */
const struct rule_limit *override_enforced_limit(const struct draft *draft, u32 i);
/* Applies a live change to an index under construction. */
int override_load_edit(struct making *m, struct override_index *index,
		       const struct rule_edit *edit);
/* Nothing passes. */
int override_blocked_limit(struct making *m, struct rule_limit *ret);
int override_load_own(struct reader *r, struct draft *draft, struct override_index *index);
/* Writes `overrides`, up to `most`; `live`: with live changes. */
void override_write_own(struct writer *w, const struct draft *draft, bool live, u32 most);
/* The same values and limits, to be changed while others read them; `from` NULL: none. NULL: out of
 * memory. */
struct override_index *override_index_copy(const struct override_index *from);
/* Whether there are any, in files or live. */
bool override_wanted(const struct draft *draft);

#endif
