/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rule.h - the rules of the HTTP tier: the content of rules.d/, parsed and checked.
 *
 *     rules.d/ *.yaml -> ruleset_load() -> struct ruleset -> ruleset_match() per descriptor
 *
 * A rule set is built by one thread; to change it, a new one is built and published (engine.h), or
 * one rule of it replaced (rule_edit.h). It has no sockets and no state.
 *
 * Files are those of envoyproxy/ratelimit (its documentation has the semantics) with our own keys
 * in addition. A rule is a descriptor of a file with a limit, or with `unlimited`; and the limits
 * of its `domain` and its `default`.
 */
#ifndef SLUICE_HTTP_RULE_H
#define SLUICE_HTTP_RULE_H

#include <jansson.h>
#include <stdio.h>

#include "limiter/ban.h"
#include "limiter/consistency.h"
#include "limiter/algorithm.h"
#include "request/rules/request.h"
#include "lib/err.h"
#include "config/policy.h"

#define RULE_LIMITS_MAX 4 /* limits on one key */

enum priority { PRIORITY_CRITICAL, PRIORITY_NORMAL, PRIORITY_LOW, PRIORITY_COUNT };

struct rule_limit {
	char *name; /* of its policy in headers; unique in its rule, ASCII, no quotes */
	struct limit_terms terms; /* of one rate; buckets: 0 but of window-counters */
	bool of_key;		  /* it stands as `concurrency` of its rule, not among its limits */
	bool none;  /* nothing passes (requests_per_unit: 0, `user block`); count is 0 */
	u8 mode;    /* enum sl_mode; SL_MODE_SHADOW: a candidate beside the enforced ones */
	u32 metric; /* of a candidate: its series, as rule->metric */
	/*
	 * Elastic: the current scale (16.16; 0 none) and until when it holds, on the store's
	 * clock. Only these change in a published rule set, atomically, by a timer of the main
	 * thread.
	 */
	u32 scale;
	u64 scale_until_ns;
};

/* `push_down:` of a rule. */
#define PUSH_STEPS_MAX 8
struct push_step {
	enum sl_push_kind kind;
	struct rate rate; /* SL_PUSH_LIMIT: packets */
};
struct push_def {
	u64 after; /* rejections; 0: none */
	u64 within_ns;
	struct push_step *step; /* the mildest first */
	u32 step_count;		/* ..PUSH_STEPS_MAX */
	u64 step_ns, down_ns, max_ns;
};

/* `on_limit: {defer: ...}` of a rule: refused requests that are released later. */
struct defer_def {
	u64 max;	/* that are not done yet, in all; 0: none are deferred */
	u64 ttl_ns;	/* until they are dead */
	u64 deliveries; /* to workers, each without XACK for retry_ns */
	u64 retry_ns;
};

/* Which requests a rule is for. */
enum rule_place {
	RULE_OF_DESCRIPTOR, /* those with a descriptor that matches it */
	RULE_OF_DOMAIN,	    /* every one of the domain, once */
	RULE_DEFAULT,	    /* descriptors that match no other rule of the domain */
	RULE_PLACE_COUNT,
	RULE_OF_REQUEST = RULE_PLACE_COUNT, /* in no file: request_rules.h */
};

/* An entry of the requests that a rule is for. */
struct rule_entry {
	const char *key;
	const char
		*fixed; /* the value that they have, or share; NULL: each is counted by its own */
	u32 ignore;	/* enum value_ignore: what does not distinguish values */
};

struct override_index; /* override_value.h: override_value_find() */

struct rule {
	const char *domain;
	char *path; /* "user", "user=bob/path": its keys, and values where given; unique */
	char *name; /* rate_limit.name; NULL: none */
	const char *file;
	int line;
	u32 index;			/* in the rule set */
	u64 id;				/* of domain and path: stable over reloads and restarts */
	u32 metric;			/* its series (metrics of decisions): kept over reloads */
	u32 depth;			/* entries that it matches */
	const struct rule_entry *entry; /* `depth` of them */
	const char *key, *value;	/* of the last of them; value NULL: any */
	bool share;			/* share_threshold: all values of a pattern as one */
	enum rule_place place;
	struct rule_limit *limit;
	u32 limit_count; /* ..RULE_LIMITS_MAX; 0: unlimited */
	bool unlimited, shadow, quota_mode;
	bool detailed_metric;	/* its series has the value of every entry */
	bool values_plain;	/* its values are no secret: shown as they are everywhere */
	u32 value_to_metric;	/* bit i: its series has the value of entry i */
	bool live;		/* changed live: differs from its file */
	bool envoy;		/* written as rate_limit: N per one unit */
	enum request_unit unit; /* of that */
	char **replaces;
	u32 replaces_count;
	json_t *metadata; /* NULL: none */
	/*
	 * Addresses among the values are grouped: finest first; count 0: not. Each length is a
	 * bucket of its own, of prefix_scale times the limit. Both families are grouped unless
	 * `prefix: none`.
	 */
	struct prefix_hierarchy prefix;
	struct override_index *overrides; /* by the values of its entries; NULL: none */
	struct rule_source *source;	  /* rule_private.h: what a live change starts from */
	enum priority priority;
	bool has_priority;
	u32 reserve_permille[PRIORITY_COUNT]; /* reserved for that priority and higher ones */
	u64 wait_ns;			      /* on_limit: wait; 0: refuse at once */
	u64 queue;			      /* queued requests at most, of one key */
	struct defer_def defer;
	struct push_def push;
	struct ban_def ban; /* of a value whose requests were refused too often */
	/* Of limits of scope cluster. */
	enum consistency consistency;
	u64 consistency_ns; /* of a lease; between write-backs */
	enum store_failure on_store_failure;
};

/* A rule file or overrides_file as it was read. */
struct rule_text {
	const char *path;
	u64 digest; /* config_text.h */
};

struct ruleset {
	struct rule **rule; /* all of them, by index */
	u32 rule_count;
	u64 generation;
	u32 metric_count; /* all `metric` are below it; series that are gone stay counted */
	char **domain;	  /* their names, in the order of the files */
	u32 domain_count;
	struct rule_text *text; /* the files that it was read from */
	u32 text_count;
	struct ruleset_private *private; /* rule_private.h: trees, names, memory */
};

/* The rule of one descriptor of a request. */
struct rule_match {
	const struct rule *rule; /* NULL: none, and that is OK */
	/*
	 * Bytes that distinguish the rule's buckets, by rule_value(): each entry's value, or of a
	 * wildcard with share_threshold its pattern. The domain and keys are in rule->id.
	 */
	struct bytes value[REQUEST_ENTRIES_MAX];
	u32 count;			   /* 0: it has one count for all */
	const struct request_entry *entry; /* RULE_DEFAULT: the keys of the values; else NULL */
};

/*
 * All *.yaml and *.yml below `dir` (a symbolic link may be swapped under it), in the order of
 * their names; or -errno with `err` naming file, line, column, what was found and what is
 * accepted. `old` (may be NULL) is what ran before: rules that stay keep their `metric`.
 */
int ruleset_load(const char *dir, const struct ruleset *old, struct ruleset **ret,
		 struct sl_err *err);
/* The same from one text in memory. */
int ruleset_parse(const char *name, const char *text, size_t size, struct ruleset **ret,
		  struct sl_err *err);
/*
 * The rules at a path: a directory of rule files, a rule file, or a configuration that names them;
 * *ret_policy (may be NULL) is then that, else untouched.
 */
int ruleset_load_path(const char *path, struct ruleset **ret, struct policy **ret_policy,
		      struct sl_err *err);
void ruleset_free(struct ruleset *set); /* NULL is fine */
/* Finds the rule files below `dir`, sorted: an array of texts, all to be freed. 0 or -errno and
 * err. */
int ruleset_files(const char *dir, char ***ret, size_t *ret_count, struct sl_err *err);

/*
 * The value of the i-th entry of a request as the rule compares, counts and shows it: without what
 * it ignores. Then it is in a buffer of the thread, until the next call.
 */
struct bytes rule_value(const struct rule *rule, u32 i, struct bytes value);

struct match_node;

/*
 * The descriptor's rule, by envoyproxy/ratelimit's order: exact, wildcards as written, bare; else
 * the domain's default. *ret points into the descriptor.
 */
void ruleset_match(const struct ruleset *set, struct bytes domain,
		   const struct request_descriptor *descriptor, struct rule_match *ret);
/* The rule that every request of the domain meets, or NULL. */
const struct rule *ruleset_of_domain(const struct ruleset *set, struct bytes domain);
/* Both, for a request of many descriptors: the domain's tree is found once. NULL: it has no
 * rules. */
const struct match_node *ruleset_domain(const struct ruleset *set, struct bytes domain);
void ruleset_match_in(const struct ruleset *set, const struct match_node *root,
		      const struct request_descriptor *descriptor, struct rule_match *ret);
const struct rule *ruleset_domain_rule(const struct match_node *root);
/* "api/user": the rule of that domain and path, or NULL. */
const struct rule *ruleset_find(const struct ruleset *set, const char *name);
/* A rule as its YAML, for `rule show` and `save`. */
int rule_write(const struct rule *rule, FILE *out, int indent);
/* What only some limits have (buckets, rounding, calendar, count, mode) into an object. */
void rule_limit_add_to(json_t *json, const struct rule_limit *limit);
/* "strict", "{lease: 100ms}"; returns buf. */
const char *consistency_format(const struct rule *rule, char *buf, size_t size);

#endif
