/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * override.h - what the files of the rule model share about overrides. The list of a limit is
 * kept in order of (family, address, length), each prefix once, so that a prefix comes right
 * before those inside it.
 */
#ifndef SLUICE_POLICY_OVERRIDE_H
#define SLUICE_POLICY_OVERRIDE_H

#include "config/read.h"

/* Where `src` is in the list, or would be. */
size_t override_place(const struct limit_def *limit, const struct sl_prefix *src);

#define OVERRIDE_REASON 320

/*
 * Whether these rates can stand in for the limit's: as many, of the same units, of windows as
 * long, and such as a step can hold, also times each prefix_scale. -EINVAL with words.
 */
int override_rates_check(const struct limit_def *limit, const struct rates *rates,
			 char reason[OVERRIDE_REASON]);
/* Takes out rates that nobody has any more, once they are the most. */
void override_rates_tidy(struct limit_def *limit);
/* All of a limit's: after a live change of the limit. */
int overrides_check(const struct limit_def *limit, struct sl_err *err);

/* Adds a rate, of which there are less than RATES_MAX; rates from 0 bytes on compare as bytes. */
void rates_add(struct rates *rates, const struct rate *rate);

/*
 * "RATE" or "RATE<apart>RATE" and the same of bursts (NULL: the defaults) into *ret. -EINVAL
 * with words, *ret_burst saying which of the two they are about.
 */
int override_rates_parse(const char *rate, const char *burst, char apart, struct rates *ret,
			 bool *ret_burst, const char **ret_reason);
/* The keys `overrides` and `overrides_file` of a limit; `into` is a struct limit_def. */
int read_overrides(struct reader *r, const struct yaml_node *node, void *into);
int read_overrides_file(struct reader *r, const struct yaml_node *node, void *into);
/* The two as read_limit() writes them. */
void overrides_write(const struct limit_def *limit, FILE *out, int indent);

/* Copies, frees and hands over what a limit has of overrides; see policy_clone() and limit_clear(). */
int overrides_copy(const struct limit_def *from, struct limit_def *ret);
void overrides_clear(struct limit_def *limit);

#endif
