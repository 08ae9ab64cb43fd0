/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * override.h - overrides, for the files of the rule model. The list of a limit is sorted by
 * (family, address, length), each prefix once, so that a prefix comes right before those inside
 * it.
 */
#ifndef SLUICE_POLICY_OVERRIDE_H
#define SLUICE_POLICY_OVERRIDE_H

#include "config/read.h"
#include "lib/hash.h"

/* Where `src` is in the list, or would be. */
size_t override_place(const struct limit_def *limit, const struct sl_prefix *src);

#define OVERRIDE_REASON 320

/*
 * Whether these rates can replace the limit's: the same number, units and window lengths, and
 * representable, also times each prefix_scale. -EINVAL with the reason in `words`.
 */
int override_rates_check(const struct limit_def *limit, const struct rates *rates,
			 char reason[OVERRIDE_REASON]);
/*
 * The index of equal rates in the limit, added if they are new; -ENOMEM. `known` serves several
 * calls without others between them: zeroed before the first, numbers_free() after the last.
 */
int override_rates_number(struct numbers *known, struct limit_def *limit, const struct rates *rates,
			  u32 *ret);
/* Removes unused rates once they are the majority: where there are more than
 * override_rates_most(). */
size_t override_rates_most(const struct limit_def *limit);
void override_rates_tidy(struct limit_def *limit);
/* Checks all overrides of a limit, after a live change of the limit. */
int overrides_check(const struct limit_def *limit, struct sl_err *err);

/* The keys `overrides` and `overrides_file` of a limit; `into` is a struct limit_def. */
int read_overrides(struct reader *r, const struct yaml_node *node, void *into);
read_text read_overrides_file;
/* `overrides`, as it is read. */
void overrides_lines(struct writer *w, const struct key *key, const void *limit);
/* struct rates: of one override. */
extern const struct keys override_rates_keys;

#endif
