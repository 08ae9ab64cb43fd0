/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * read.h - from nodes to the model. A mapping is read by a table of its keys, so that each key
 * has one place, whether it comes from the file, from `limit add` or from `limit set`.
 *
 *     load.c           the top level          limit_keys.c   a limit
 *     read_list.c      sets, block, exempt    read_match.c   its match
 *     read_throttle.c  throttle, ban          read_rates.c   rate, burst, prefix, prefix_scale
 *     read_http.c      http              read_cluster.c   cluster
 */
#ifndef SLUICE_READ_H
#define SLUICE_READ_H

#include "config/model.h"
#include "conf/key.h"

/* Addresses: the prefix that a text is, or the set that it names (else *ret_set is NULL). */
#define ADDRESSES "an address, a prefix as 192.0.2.0/24, or a set as '@name'"
int read_prefix_or_set(struct reader *r, const char *text, struct sl_prefix *ret_prefix,
		       const struct set_def **ret_set);

/* Of a row of limit_match_keys; limit_types.c, match_keys.c. */
void match_values_lines(struct writer *w, const struct key *row, const void *match);
void match_values_copy(const struct key *row, void *match, int *rc);
void match_values_clear(const struct key *row, void *match);
bool match_values_equal(const struct key *row, const void *a, const void *b);

/* The parts; `into` is a struct policy, limit_def, match_def. */
int read_match(struct reader *r, const struct yaml_node *node, void *into);

/* What must fit together; `map` is the limit's mapping, for the places of errors. */
int check_rates(struct reader *r, const struct yaml_node *map, const struct limit_def *limit);
int check_bursts(struct reader *r, const struct rates *rates);
/* As many multipliers as lengths, where one is not 1: a live change may leave others. */
int check_prefix_scales(struct reader *r, const struct prefix_hierarchy *prefix);
int check_prefix_hierarchy(struct reader *r, const struct yaml_node *map,
			   const struct limit_def *limit);

/* Appends a list of limits, or one alone, with all checks that need only one limit. */
int read_limits(struct reader *r, const struct yaml_node *node, struct policy *policy);

#endif
