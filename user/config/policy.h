/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * policy.h - the rule model: the configuration file, parsed and checked.
 *
 *     file -> policy_load() -> struct policy -> live changes (policy_edit.h) -> compile.h
 *
 * This model is between the text and the kernel. It contains no BPF and no sockets, so a policy can
 * be checked without root.
 */
#ifndef SLUICE_POLICY_H
#define SLUICE_POLICY_H

#include <stdbool.h>
#include <stdio.h>

#include "config/limit_terms.h"
#include "config/match_keys.h"
#include "lib/addr.h"
#include "lib/err.h"
#include "lib/units.h"
#include "sluice/abi.h"

/* Where something was written, for errors and explain. line 0: made live or by default. */
struct config_pos {
	int line, column;
};

enum attach_mode {
	MODE_AUTO, /* native, else generic */
	MODE_NATIVE,
	MODE_GENERIC,
};

/* What the daemon does where others took its program off an interface, or put theirs over it. */
enum on_removed {
	ON_REMOVED_ATTACH,  /* attach again; joining the others' where that can be */
	ON_REMOVED_REPLACE, /* attach again, in place of a program that it cannot join */
	ON_REMOVED_ALARM,   /* attach nothing; log, status and metrics have it */
};

struct interface_def {
	char name[16]; /* IFNAMSIZ */
	enum attach_mode mode;
	enum on_removed on_removed;
	struct config_pos pos;
};

struct ban_def {
	u64 after; /* drops, or rejections; 0: no ban */
	u64 within_ns;
	u64 for_ns, max_ns;
	u32 factor_percent; /* 100..10000: 200 doubles */
	bool spoofable;	    /* of packets */
	bool rejections;    /* of requests: written as rejections */
};

/*
 * A source, or all of a prefix each for itself, with rates of its own. One written under
 * `overrides` or made live stands before one of overrides_file for the same source.
 */
struct override_def {
	struct sl_prefix src;
	u32 rates;	 /* index into the limit's override_rates */
	u32 line : 27;	 /* in the file (csv: in that one); 0 live */
	u32 csv : 1;	 /* of overrides_file */
	u32 hides : 1;	 /* overrides_file has one for the same source */
	u32 removed : 1; /* there is none: that of overrides_file is taken out */
	u32 derived : 1; /* made by source_budget (override_derive.c), not written in a file */
};

enum accounting {
	ACCOUNTING_PERCPU,
	ACCOUNTING_EXACT,
};

struct limit_def {
	char name[SL_NAME_MAX];
	struct config_pos pos;
	struct match_def match;
	u8 per; /* enum sl_per, or-ed; 0 is one bucket for all */
	struct prefix_hierarchy prefix;
	u8 dst_prefix[SL_FAMILY_COUNT]; /* how destinations are grouped */
	struct limit_terms terms; /* of up to RATES_MAX rates; of none: the match alone decides */
	enum accounting accounting;
	u8 action;		 /* SL_ACT_DROP or SL_ACT_TAG; without a rate also SL_ACT_PASS */
	bool action_given;	 /* required without a rate; with one, not the default */
	bool has_dscp, has_mark; /* of the packets that it tags */
	u8 dscp;
	u32 mark;
	u8 mode;    /* enum sl_mode */
	u8 on_full; /* enum sl_on_full */
	struct ban_def ban;
	struct override_def *override; /* in order of (family, address, length), each once */
	size_t override_count;
	struct rates *override_rates; /* distinct ones */
	size_t override_rates_count;
	char *overrides_file; /* as written; NULL: none */
	u64 overrides_digest; /* of its text as read; config_text.h */
};

/*
 * A set: addresses under a name, '@name' wherever addresses stand. Those places keep the name
 * and hold the set's prefixes behind their own. In order of their names.
 */
struct set_def {
	char name[SL_NAME_MAX];
	struct sl_prefix *prefix;
	size_t count;
	char *file;	       /* as written, where its content is a file's; or NULL */
	u64 digest;	       /* of the file as read; config_text.h */
	size_t lines, skipped; /* of the file: those with something on them, and bad ones */
	int skipped_first;     /* the number of the first bad one */
	bool live;	       /* changed or made live */
	struct config_pos pos;
};

/* An entry of block or exempt. */
struct list_entry {
	struct sl_prefix prefix;
	u64 until_utc_ns; /* 0: for good */
	char reason[64];
	bool derived; /* another node's: not of this configuration, nor written with it */
	u32 from;     /* 1 + index of the list's set that it is of; 0: its own */
	u32 next;     /* list.c: the next of the same hash */
	struct config_pos pos;
};

/*
 * Changed live, or another node's: in the data plane an entry by itself
 * (control/running/entries.h), not part of an image.
 */
static inline bool list_entry_is_live(const struct list_entry *entry)
{
	return !entry->pos.line && !entry->from;
}

/* A set as an entry: each of its prefixes is one, too. */
struct list_set {
	char name[SL_NAME_MAX];
	struct list_entry entry; /* without a prefix: what its prefixes get */
};

struct list_def {
	struct list_entry *entry; /* its own, and those of its sets */
	size_t count;
	struct list_set *set;
	size_t set_count;
	u32 *head; /* list.c: entries by the hash of their prefix */
	size_t head_count;
};

enum list_kind {
	LIST_BLOCK,
	LIST_EXEMPT,
	LIST_NEVER_BAN, /* without deadlines */
	LIST_KIND_COUNT,
};

struct failsafe_port {
	u16 port;
	u8 proto; /* 6 or 17 */
};

/*
 * Made by policy_parse() and its kin, and changed by the functions below: its arrays have room
 * behind their counts (model.h), which an array from elsewhere has not.
 */
#define HISTORY_SIZE_MIN 4000000
struct policy {
	char *path; /* the file, for errors */
	struct interface_def *interface;
	size_t interface_count;
	u64 table_buckets; /* default 1000000 */
	struct failsafe_port *failsafe;
	size_t failsafe_count;
	struct rate failsafe_rate;  /* default 100 connections/s */
	struct rate essential_rate; /* default 1000 packets/s */
	struct set_def *set;
	size_t set_count;
	struct list_def list[LIST_KIND_COUNT];
	u8 on_parse_error;	 /* SL_ACT_PASS (default) or SL_ACT_DROP */
	u8 fragments;		 /* enum sl_fragments */
	struct limit_def *limit; /* file order, then live ones */
	size_t limit_count;

	struct http_def *http;		     /* http_def.h; NULL: no HTTP tier */
	struct cluster_def *cluster;	     /* cluster_def.h; NULL: this node alone */
	struct load_signal_def *load_signal; /* load_def.h */
	size_t load_signal_count;
	char *metrics_listen;	  /* "127.0.0.1:9810"; NULL: no metrics */
	char *metrics_token_file; /* other hosts set load signals with it; may be NULL */
	u64 history_size;	  /* bytes; default 32M, 0: none */
	u64 history_age_ns;	  /* default 7d */
	u64 events_rate;	  /* a second and kind; default 1000, 0: none */
	u32 max_values;		  /* series of values of detailed_metric and value_to_metric */
	char *control_socket;	  /* default /run/sluice/control.sock */
	char *control_group;	  /* may be NULL */
	char *control_read_group; /* may be NULL */
	char *state_dir;	  /* default /var/lib/sluice */
	char *pin_dir;		  /* default /sys/fs/bpf/sluice */
};

/*
 * Reads, parses and checks a file. 0 with *ret to be freed, or -errno with `err` naming file,
 * line, column, what was found and what is accepted; *ret is then untouched. Everything that
 * can be refused without a kernel is refused here: bad and impossible rates, duplicate names,
 * unknown keys, contradictions.
 */
int policy_load(const char *path, struct policy **ret, struct sl_err *err);
/* The same from memory; `name` stands for the path in errors. */
int policy_parse(const char *name, const char *text, size_t size, struct policy **ret,
		 struct sl_err *err);
int policy_clone(const struct policy *from, struct policy **ret);
void policy_free(struct policy *policy); /* NULL is fine */

/* Checks over the whole model; policy_load and every edit end with it. */
int policy_check(const struct policy *policy, struct sl_err *err);

/* Writes the whole policy as a file that policy_load() reads back as equal. */
int policy_write(const struct policy *policy, FILE *out);
/*
 * A file's text changed so that it reads as `policy`, only where it must (text_edit.h); written as
 * a whole where that cannot be, with *ret_whole set. `path` is the file's: paths in the text are
 * relative to it. 0 with *ret to be freed, or -errno and err.
 */
int policy_write_into(const struct policy *policy, const char *path, const char *text, size_t size,
		      char **ret, size_t *ret_size, bool *ret_whole, struct sl_err *err);

struct limit_def *policy_find_limit(const struct policy *policy, const char *name);
/* `name` without '@'. */
const struct set_def *policy_find_set(const struct policy *policy, const char *name);
const struct interface_def *policy_find_interface(const struct policy *policy, const char *ifname);

const char *attach_mode_name(enum attach_mode mode);
/* auto, native or generic; false for all others. */
bool attach_mode_parse(const char *text, enum attach_mode *ret);

/*
 * 0, or -EPERM and err where a block of the prefix would shut out a good part of the internet: it
 * takes --force.
 */
int block_check_width(const struct sl_prefix *prefix, struct sl_err *err);

/*
 * What one list (a blocked set, or an origin of blocks) shuts out in all, without --force: no more
 * addresses than BLOCK_SUM of the widest prefixes. Add each prefix once; block_sum_fit() then takes
 * the longest first, and block_sum_check() refuses with -EPERM those that no longer fit: all of one
 * length or none, so the order of a list does not matter.
 */
#define BLOCK_SUM 4
struct block_sum {
	u32 count[SL_FAMILY_COUNT][129]; /* by length */
	u8 shortest[SL_FAMILY_COUNT];	 /* that fits */
};
void block_sum_add(struct block_sum *sum, const struct sl_prefix *prefix);
void block_sum_fit(struct block_sum *sum);
int block_sum_check(const struct block_sum *sum, const struct sl_prefix *prefix,
		    struct sl_err *err);

/* ---- live changes: each changes `policy` or leaves it as it was and fills err ---- */

/*
 * limit set NAME KEY=VALUE...: KEY as in the file (rate, burst, mode, action, accounting,
 * algorithm, on_full, tag.dscp, tag.mark, prefix.ipv4, prefix.ipv6, per (comma-separated),
 * match.src ... match.interface (comma-separated; of tcp_flags one condition)). An empty VALUE
 * takes the key out: its default again, or a match on anything. All or none of the pairs.
 */
int policy_limit_set(struct policy *policy, const char *name, char *const *pairs, size_t count,
		     struct sl_err *err);
/*
 * The same where it changes only values of its own (rate, burst, mode between enforce and shadow,
 * ...), and nothing that other limits or its overrides are checked against: *ret is the limit after
 * it, which shares all pointers with the one before. false: policy_limit_set() decides.
 */
bool limit_revalue(const struct limit_def *limit, char *const *pairs, size_t count,
		   struct limit_def *ret);
/*
 * `yaml` is one limit as a mapping, or a list of them, or a mapping with key `limits`; `name`
 * stands for its path in errors.
 */
int policy_limit_add(struct policy *policy, const char *name, const char *yaml, size_t size,
		     struct sl_err *err);
int policy_limit_del(struct policy *policy, const char *name, struct sl_err *err);

/*
 * Sets, live. Whatever names the set changes with it; one that is changed is no longer its
 * file's. add and replace make a set that there is not. All or none.
 */
int policy_set_add(struct policy *policy, const char *name, const struct sl_prefix *prefix,
		   size_t count, struct sl_err *err);
/* -ENOENT where one is not in it. */
int policy_set_del(struct policy *policy, const char *name, const struct sl_prefix *prefix,
		   size_t count, struct sl_err *err);
int policy_set_replace(struct policy *policy, const char *name, const struct sl_prefix *prefix,
		       size_t count, struct sl_err *err);

/* An equal prefix that is already listed is replaced (a new deadline, a new reason). */
int policy_list_add(struct policy *policy, enum list_kind kind, const struct list_entry *entry,
		    struct sl_err *err);
int policy_list_del(struct policy *policy, enum list_kind kind, const struct sl_prefix *prefix,
		    struct sl_err *err);
/*
 * The entry for just this prefix, of several the first one; NULL: none. Those of sets are not
 * looked at. Whatever adds or removes entries invalidates the pointer.
 */
struct list_entry *list_find_entry(const struct list_def *list, const struct sl_prefix *prefix);
/* Adds other nodes' entries behind the written ones, except prefixes that are listed anyway. */
int policy_list_derive(struct policy *policy, enum list_kind kind, const struct list_entry *entry,
		       size_t count);
/* Removes those: only the written ones remain. */
void policy_list_underive(struct policy *policy);
/* A set as an entry of a list; one that is already listed is replaced. */
int policy_list_add_set(struct policy *policy, enum list_kind kind, const struct list_set *ref,
			struct sl_err *err);
int policy_list_del_set(struct policy *policy, enum list_kind kind, const char *name,
			struct sl_err *err);
/* `name` without '@'; NULL where the list does not name it. */
const struct list_set *list_find_set(const struct list_def *list, const char *name);
/* Drops entries whose deadline has passed; returns how many. */
size_t policy_list_expire(struct policy *policy, u64 now_utc_ns);

/*
 * override set LIMIT SRC KEY=VALUE...: rate and burst as in the file, several rates apart by
 * commas; what is not given stays, an empty burst is the default. A new one needs a rate.
 */
int policy_override_set(struct policy *policy, const char *limit, const struct sl_prefix *src,
			char *const *pairs, size_t count, struct sl_err *err);
/* The rates that it would have. */
int policy_override_rates(const struct limit_def *limit, const struct sl_prefix *src,
			  char *const *pairs, size_t count, struct rates *ret, struct sl_err *err);
int policy_override_del(struct policy *policy, const char *limit, const struct sl_prefix *src,
			struct sl_err *err);
/* What a limit has for a source, to be put back after a change. */
struct override_kept {
	bool had;
	struct override_def def; /* not `had`: as one that is removed */
};
/* False: the next change may number the limit's rates anew: what was kept does not hold then. */
bool override_keep(const struct limit_def *limit, const struct sl_prefix *src,
		   struct override_kept *ret);
/* 0 or -ENOMEM. */
int override_restore(struct limit_def *limit, const struct override_kept *kept);
/* A source's budget, as source_budget has it. */
struct override_derived {
	struct sl_prefix src;
	u64 pps;
};
/*
 * Puts these in the place of all derived overrides there are, in the limit `name`. A source that
 * may send as much without gets none, nor one that has an override of its own; all the rates of
 * a limit grow alike. Returns how many went in, or -errno with a message.
 */
int policy_override_derive(struct policy *policy, const char *name,
			   const struct override_derived *derived, size_t count,
			   struct sl_err *err);
/* Removes them: only the written ones remain. */
void policy_override_underive(struct policy *policy);
/* The override for just this prefix, or NULL. */
const struct override_def *override_find(const struct limit_def *limit,
					 const struct sl_prefix *src);
/* The one that holds for a source: the longest that covers it; NULL where none does. */
const struct override_def *override_match(const struct limit_def *limit,
					  const struct sl_prefix *src);
/* How many there are, those taken out not counted. */
size_t override_count(const struct limit_def *limit);

/* Rates, or bursts ("" for the defaults), apart by `apart`; returns buf. */
const char *override_format_rates(const struct rates *rates, const char *apart, char *buf,
				  size_t size);
const char *override_format_bursts(const struct rates *rates, const char *apart, char *buf,
				   size_t size);

/* Whether two limits are the same, but for their overrides. */
bool limit_equal(const struct limit_def *a, const struct limit_def *b);
/* A limit as its YAML mapping, for `limit show` and `save`. */
int limit_write(const struct limit_def *limit, FILE *out, int indent);

/* "10 packets/s, 500 packets/h"; returns buf. */
const char *rates_format(const struct rates *rates, char *buf, size_t size);
const char *on_full_name(enum sl_on_full on_full); /* "open", "closed", "prefix" */

#endif
