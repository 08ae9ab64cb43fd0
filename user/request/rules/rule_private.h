/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rule_private.h - shared by the files of the rule set.
 *
 *     rule_set.c     files -> rule set, names, freeing    rule_match.c   trees, matching
 *     rule_file.c    a file: domain, default, descriptors
 *     rule_read.c    a descriptor and those below it      rule_limit.c   limits; rule_rate_limit.c
 *     rule_rows.c    the keys, one row each
 *     rule_keys.c    our other keys                       rule_write.c   back to YAML, by rows
 *     rule_edit.c    live changes; rule_save.c        rule_cluster.c scope, consistency
 *     rule_live.c    the same of a rule in force
 *     override_value.c, override_load.c   limits of one value's own
 *     rule_values.c  the values of a rule as one text
 */
#ifndef SLUICE_HTTP_RULE_PRIVATE_H
#define SLUICE_HTTP_RULE_PRIVATE_H

#include "request/rules/override_value.h"
#include "request/rules/rule.h"
#include "request/rules/rule_edit.h"
#include "config/keys.h"
#include "lib/hash.h"

/* Memory of a rule set: allocated piece by piece, freed all at once. */
struct arena {
	struct arena_chunk *chunk;
	size_t used;
};

/* Zeroed and aligned for anything; NULL: out of memory. */
void *arena_alloc(struct arena *arena, size_t size);
/* A terminated copy. */
char *arena_text(struct arena *arena, const char *text, size_t len);
void arena_free(struct arena *arena);

/*
 * A hash table of pointers: open addressing, at most half full, built once and then only read, by
 * any number of threads. (uthash would need 56 bytes in each of a hundred thousand items and one
 * more pointer dereference per lookup.) Items contain their keys.
 */
struct index_slot {
	u64 hash;
	void *item; /* NULL: free */
};

struct index {
	struct index_slot *slot;
	u32 size, count; /* size: a power of two, or 0 */
};

int index_add(struct index *index, u64 hash, void *item); /* 0 or -ENOMEM */
void index_free(struct index *index);

/* Visits the items of a hash: `for (at = first; (item = index_next(index, hash, &at)); )`. */
static inline void *index_next(const struct index *index, u64 hash, u32 *at)
{
	while (index->size) {
		const struct index_slot *slot = &index->slot[*at & (index->size - 1)];

		if (!slot->item)
			return NULL;
		++*at;
		if (slot->hash == hash)
			return slot->item;
	}
	return NULL;
}

/* The prefix lengths of a set of networks, so that a look-up tries no others. */
struct net_lengths {
	bool any;
	u64 in_use[SL_V6 + 1][3]; /* by family: bit i is /i */
};

static inline void net_lengths_add(struct net_lengths *lengths, u8 family, u8 len)
{
	lengths->any = true;
	lengths->in_use[family][len / 64] |= 1ULL << len % 64;
}

/* The longest one up to len, or -1. */
static inline int net_lengths_longest(const struct net_lengths *lengths, u8 family, int len)
{
	while (len >= 0 && !(lengths->in_use[family][len / 64] >> len % 64 & 1))
		len--;
	return len;
}

/* A descriptor of a file, or a domain (the root of its descriptors). */
struct match_node {
	struct rule *rule;		     /* NULL: no limit here */
	struct bytes domain;		     /* of a root, else at NULL */
	struct match_node *next;	     /* of a root: another one */
	struct rule *of_domain, *by_default; /* of a root; NULL: none */
	struct match_group *group;	     /* of a value's node: the group that has it */
	struct bytes value;		     /* of its descriptor; a pattern where it is a glob's */
	bool share;			     /* share_threshold */
	u32 ignore;			     /* enum value_ignore: `value` is without it */
	u32 id;
	struct match_group *groups; /* keys below */
	u32 group_count;
	struct match_glob *glob; /* keys below with a '*' in them, as written */
	u32 glob_count;
};

/* All descriptors of one key below a node. */
struct match_group {
	struct match_node *above;
	struct match_group *next; /* another one below the same node */
	struct bytes key;
	u32 id;
	struct match_node *bare; /* any value; NULL: none */
	struct match_glob *glob; /* values with a '*', as written */
	u32 glob_count;
	u32 exact_ignores;	 /* bit i: there are exact values that ignore i */
	struct net_lengths nets; /* of the networks among its values */
	size_t value_max;	 /* the longest exact value: longer ones are not hashed */
};

struct match_glob {
	struct bytes key;   /* of one below a node; at NULL below a group */
	struct bytes value; /* at NULL: any */
	u32 order;
	struct match_node *node;
};

/* A value that is an address or a network: any address in it matches. */
struct match_net {
	const struct match_group *group;
	struct sl_prefix prefix;
	struct match_node *node;
};

struct match_trees {
	struct index index; /* roots by domain, groups by node and key, nodes by value, nets */
	struct match_node *roots;
	u32 root_count;
	u32 ids;
};

/*
 * A value that is an address or a network. -ENOENT: neither; -EINVAL, with a reason: an address
 * with a slash that is no network, as "10.0.0.1/8".
 */
int value_network(struct bytes value, struct sl_prefix *ret, const char **ret_reason);
/* 0 with the domain's root, made where there was none; -ENOMEM. */
int match_add_domain(struct ruleset *set, const char *domain, struct match_node **ret);
/*
 * A descriptor below a node; value at NULL: bare. The bytes must stay. -EEXIST: another value is
 * the same network, or the same without what is ignored.
 */
int match_add(struct ruleset *set, struct match_node *above, struct bytes key, struct bytes value,
	      u32 ignore, struct match_node **ret);
/* A terminated copy without what is ignored (enum value_ignore); at NULL: out of memory. */
struct bytes match_folded(struct arena *arena, struct bytes value, u32 ignore);
/* Whether a value stands for several: there is a '*' in it, or it is a network. */
bool match_is_pattern(struct bytes value);

/* A rule that the set no longer uses. */
struct retired {
	struct rule *rule;
	struct retired *next;
};

struct ruleset_private {
	struct arena arena;
	struct match_trees trees;
	struct retired *retired;
	u32 live_changes;     /* of rules in place: the arena only grows */
	struct index names;   /* rules by "DOMAIN/PATH" */
	struct index metrics; /* struct metric_name: all series ever assigned */
	u32 override_limits;  /* distinct ones of values, of all rules */
};

struct metric_name {
	u32 metric;
	char name[]; /* "DOMAIN/PATH" */
};

/* ---- reading ---- */

struct build {
	struct reader r;
	struct ruleset *set;
	const struct ruleset *old;	    /* the previous rule set, or NULL */
	const char *file;		    /* the arena's */
	struct tree *tree;		    /* of the file being read */
	const struct draft *usual;	    /* the defaults of a rule's keys */
	struct keys keys[RULE_PLACE_COUNT]; /* those that a rule may have */
	struct rule_edit *edit;		    /* live changes, in order */
	size_t edit_count;
	struct saving *saving; /* rule_save.c; or NULL */
	struct index edits;    /* the same by their rule's name */
	struct arena scratch;  /* only needed while building */
	struct index seen;     /* composite keys of all levels: duplicates (struct seen) */
	/* Of the descriptor being read: */
	char path[4096];
	struct request_entry entry[REQUEST_ENTRIES_MAX];
	u32 depth;
	enum rule_place place;
	u32 value_to_metric;		 /* of those above it */
	u32 shared;			 /* bit i: of entry i, share_threshold */
	u32 ignore[REQUEST_ENTRIES_MAX]; /* enum value_ignore, of each entry */
	const char *domain;
	struct match_node *above;
};

/* A descriptor being read. */
struct draft {
	struct build *b;
	struct rule rule;
	const struct yaml_node *map; /* as in the file */
	u64 given;		     /* keys, by the index of their row */
	struct bytes key, value;     /* value at NULL: bare */
	bool share;
	u32 ignore;
	bool value_to_metric;
	struct rule_limit limit[RULE_LIMITS_MAX];
	u64 limit_given[RULE_LIMITS_MAX]; /* keys of its own; the others are as in defaults */
	const struct yaml_node *limit_at[RULE_LIMITS_MAX]; /* NULL: of a live change */
	struct rule_limit defaults;
	struct rate
		concurrency; /* count 0: none. draft_add_concurrency() makes it the last limit */
	const struct yaml_node *overrides, *overrides_file;
	const struct override_index *overrides_now; /* of a rule in force that is made again */
	const char *overrides_file_text;	    /* when written */
};

/*
 * What a live change of a rule in force needs beside the rule: its draft, from which it can be made
 * again. The limits may be as after check_rule_limits(), which sets again what they were not given.
 */
struct rule_source {
	struct rule **at;	     /* where matching finds it */
	struct rule_limit *defaults; /* NULL: the usual ones */
	u64 given;		     /* as draft.given */
	u64 limit_given[];	     /* as draft.limit_given */
};

/* A field of a draft, for rows. */
#define DRAFT(field) KEY(struct draft, field)

/* The keys that its rule may have. */
static inline const struct keys *draft_keys(const struct draft *draft)
{
	return &draft->b->keys[draft->b->place];
}

static inline bool draft_given(const struct draft *draft, const char *key)
{
	return keys_given(draft_keys(draft), draft, key);
}

/* Notes a file that the set is read from. 0 or -ENOMEM and err. */
int build_note_file(struct build *b, const char *path, u64 digest);
static inline struct arena *build_arena(struct build *b)
{
	return &b->set->private->arena;
}

/* rule_edit.c: the next edit of the rule being read, in their order; `*at` is 0 at first. */
struct rule_edit *next_edit(const struct build *b, size_t *at);
/* Whether there are live changes of the rule's own keys; reads them by the rows of the keys. */
bool has_edits(const struct build *b);
int read_edits(struct build *b, struct draft *draft);
/* Sets the reason of edits that are not applied and have none yet. */
void refuse_edits(struct build *b, bool of_values, const char *reason);
int index_edits(struct build *b, struct rule_edit *edit, size_t count);

/*
 * rule_save.c: around reading a rule's live changes, and at the end of the file. 0, -ENOMEM, the
 * last also another error with b->r.err. No effect where b->saving is NULL.
 */
int saving_begin(struct build *b, const struct draft *draft);
int saving_end(struct build *b, const struct draft *draft);
int saving_text(struct build *b, const char *text, size_t size);
/* rule_set.c: one file's rules, with live changes. */
int ruleset_parse_edited(const char *name, const char *text, size_t size, const struct ruleset *old,
			 struct rule_edit *edit, size_t count, struct saving *saving,
			 struct ruleset **ret, struct sl_err *err);

/* The arrays and defaults that reading needs, without a set. 0 or -ENOMEM; also then
 * build_clear(). */
int build_init(struct build *b, struct sl_err *err);
void build_clear(struct build *b);
/* The series of its candidates. -ENOENT: one has none yet, and `add` is false; -ENOMEM. */
int rule_assign_series(struct ruleset *set, struct rule *rule, bool add);
/* The rule of that name, `before`, is now `after`. */
void ruleset_rename(struct ruleset *set, const char *name, const struct rule *before,
		    struct rule *after);
/* To be freed with the set. -ENOMEM. */
int ruleset_retire(struct ruleset *set, struct rule *rule);

/* ---- rule_path.c: what must be unique ---- */

/* A composite key of a level, a domain, or a path, and its position in the file. */
struct seen {
	u32 above; /* the level's node; 0: a domain, ~0: a path */
	int line;
	const char *file;
	char text[];
};

/* The earlier one, or NULL and the new one is stored; -ENOMEM. */
int note_seen(struct build *b, u32 above, const char *text, int line, const struct seen **ret);
/* Appends a descriptor's entry to b->path, and makes it unique. -E2BIG: too long; -ENOMEM. */
int path_add(struct build *b, const char *key, const char *value);

/* ---- rule_file.c */

/* Adds a whole file to the set. */
int rule_read_file(struct build *b, const struct yaml_node *root);
/* The name in the value of `domain`: that itself, or its `name`. */
const struct yaml_node *rule_file_domain(const struct yaml_node *node);
extern const char *const rule_place_names[]; /* the last part of the names of such rules */

/* ---- rule_rows.c; `into` is a struct draft */

int read_rule_key(struct reader *r, const struct yaml_node *node, void *into);
int read_rule_value(struct reader *r, const struct yaml_node *node, void *into);
int read_rule_descriptors(struct reader *r, const struct yaml_node *node, void *into);
/* The keys that a rule of this place may have. 0 or -ENOMEM. */
int rule_keys_of(enum rule_place place, struct arena *arena, struct keys *ret);
/* Refuses keys about limits in a rule that has none. */
int check_rule_alone(struct reader *r, const struct draft *draft);

/* ---- rule_read.c */

int read_rule_children(struct build *b, const struct yaml_node *list);
/* Checks a draft whose keys were read. Without limits and not unlimited it makes no rule. */
int check_draft(struct build *b, struct draft *draft);
/* Its rule, which takes over what the draft has to free; at: rule_source. NULL: out of memory. */
struct rule *draft_make_rule(struct draft *draft, struct rule **at);
void draft_clear(struct draft *draft);
/* rule_live.c: the draft that a rule in force was made of, but for limits of values. */
void draft_of_rule(struct build *b, struct ruleset *set, const struct rule *rule,
		   struct draft *ret);
/* The rule of every request, or the default one; `map` has its limits. */
int read_rule_placed(struct build *b, const struct yaml_node *map, enum rule_place place);
int refuse_again(struct build *b, const struct yaml_node *at, const char *what,
		 const struct seen *first);

/* rule_rate_limit.c, rule_limit.c */
extern const struct key_type type_rule_rate_limit, type_rule_limits;
/* An element of `limits`; `given`: bits of rule_limit_keys. A rate alone needs no mapping. */
void write_limit_element(struct writer *w, const struct rule_limit *limit, u64 given);
/* Whether any of them is of scope cluster. */
bool has_common_limit(const struct rule_limit *limit, u32 count);
/* An element of `limits`, or of an override's; unset keys are as in `defaults`. */
int read_limit_element(struct reader *r, const struct yaml_node *map, const char *text,
		       const struct rule_limit *defaults, struct rule_limit *ret,
		       struct arena *arena);
/* The terms of a concurrency; they have its rate. */
void limit_set_concurrency(struct limit_terms *terms);
/* The key `concurrency` as a limit, when all keys are read; and back, of a rule that was made. */
int draft_add_concurrency(struct reader *r, struct draft *draft);
void draft_take_concurrency(struct draft *draft);
extern const struct key_type type_rule_concurrency, type_calendar;
/* Whether it can be counted, also times each prefix_scale. -ERANGE with a message. */
int check_limit_bounds(const struct rule_limit *limit, const struct rule *rule, struct sl_err *err);
/* After all keys: names, and conflicts between keys. */
/* For types of a list of limits. */
int limits_begin(struct reader *r, size_t count, const struct key *key, void *section);
int check_rule_limits(struct reader *r, struct draft *draft);

/* rule_keys.c, rule_cluster.c: types of fields of a struct draft */
extern const struct key_type type_rule_prefix, type_rule_metadata, type_rule_consistency;
extern const struct keys rule_on_limit_keys, rule_push_down_keys, rule_scale_keys;
/* Sets the multipliers of a family that were not given. */
void rule_usual_scales(struct prefix_hierarchy *prefix);
/* rule_keys.c; `into` is a struct draft. */
read_text read_rule_share_threshold;
void write_true(struct writer *w, const void *from);

/* rule_cluster.c: keys of cluster limits imply the scope, unless the rule has one. */
void imply_scope(struct draft *draft);
/* Conflicts of a limit with scope cluster. -ERANGE with a message. */
int check_limit_scope(const struct rule_limit *limit, const struct rule *rule, struct sl_err *err);
/* Whether the rule's cluster keys apply to any of its limits. */
int check_rule_scope(struct reader *r, const struct draft *draft);

/*
 * override_load.c. The two keys are only noted, and read after all others by
 * load_rule_overrides(): they need the rule's limits.
 */
extern const struct key_type type_rule_overrides;
int read_rule_overrides_file(struct reader *r, const struct yaml_node *node, void *into);
void write_rule_overrides_file(struct writer *w, const void *from);
int load_rule_overrides(struct reader *r, struct draft *draft);
/* A limit's default name: the rule's path, from the second on with a number; 0: with
 * "-concurrency". */
char *limit_default_name(struct draft *draft, struct arena *arena, u32 number);

/* A bool as envoyproxy/ratelimit reads it; `reserve`. */
extern const struct key_type type_yaml_bool;
extern const struct keys reserve_keys;

extern const struct name http_algo_names[], window_names[], rounding_names[], priority_names[],
	push_kind_names[], counters_failure_names[];

#endif
