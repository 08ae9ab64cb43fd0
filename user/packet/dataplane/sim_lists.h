/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sim_lists.h - the hash `listed` of dp_sim: open addressing in memory. */
#ifndef SLUICE_SIM_LISTS_H
#define SLUICE_SIM_LISTS_H

#include "packet/dataplane/dataplane.h"

struct sim_lists;

/* NULL: out of memory. */
struct sim_lists *sim_lists_new(void);
void sim_lists_free(struct sim_lists *lists);
struct sl_list_filter *sim_lists_filter(struct sim_lists *lists);
/* NULL: nothing is listed there. */
const struct sl_listed *sim_lists_get(struct sim_lists *lists, const struct sl_list_key *key);

/* As the operations of these names (struct dp_ops). */
int sim_lists_all(struct sim_lists *lists, struct dp_listed **ret, size_t *ret_count);
int sim_lists_put(struct sim_lists *lists, const struct dp_listed *listed, size_t count);
void sim_lists_del(struct sim_lists *lists, const struct sl_list_key *key, size_t count);

#endif
