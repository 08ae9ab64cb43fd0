/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* limit_types.h - types of a limit's keys; of fields of struct limit_def unless noted. */
#ifndef SLUICE_LIMIT_TYPES_H
#define SLUICE_LIMIT_TYPES_H

#include "conf/key.h"
#include "config/limit_terms.h"

extern const struct key_type type_match, type_lengths_v4, type_lengths_v6, type_scales_v4,
	type_scales_v6, type_overrides, type_overrides_file, type_rates,
	type_bursts,			/* `rate` and `burst` of any struct rates; read_rates.c */
	type_throttle,			/* any struct throttle_def */
	type_ban, type_ban_of_requests; /* any struct ban_def; read_throttle.c */

/* ---- what must fit together, in both tiers; limit_terms.c ---- */

/* Which of the keys that only some algorithms have were given: a set, for the functions below. */
u32 limit_terms_given(const struct yaml_node *map);
u32 limit_terms_given_rows(const struct keys *keys, u64 given);
/*
 * Refuses a key that none of these algorithms has (burst, window, buckets, count: all): it was
 * given, or its value is not the default. `names` are the tier's algorithms; `map` is for the place
 * of the error, or NULL.
 */
int limit_terms_check(struct reader *r, const struct yaml_node *map, u32 given,
		      const struct limit_terms *terms, const enum sl_algo *algorithm, u32 count,
		      const struct name *names);
/* The reason why the other keys do not fit together; NULL: they do. */
const char *limit_terms_conflict(const struct limit_terms *terms);
/* Unsets what the algorithm does not have and was not given: inherited defaults. */
void limit_terms_drop(struct limit_terms *terms, u32 given);
/* Replaces the calendar by that of the rate's unit. 0, or -errno with a reason, valid until the
 * thread's next call. */
int limit_terms_settle_calendar(struct limit_terms *terms, const char **ret_reason);

#endif
