/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sim_hash.h - the hashes of dp_sim: open addressing in memory, with prefixes as keys. */
#ifndef SLUICE_SIM_HASH_H
#define SLUICE_SIM_HASH_H

#include "packet/dataplane/dataplane.h"

struct sim_hash;

/* Of at most `most` entries of `size` bytes, a struct sl_list_key (or its like) first. NULL: out of
 * memory. */
struct sim_hash *sim_hash_new(size_t size, size_t most);
void sim_hash_free(struct sim_hash *hash);
/* The value of a key, or NULL. */
void *sim_hash_get(const struct sim_hash *hash, const void *key);
int sim_hash_put(struct sim_hash *hash, const void *key, const void *value);
int sim_hash_del(struct sim_hash *hash, const void *key);
int sim_hash_all(const struct sim_hash *hash, void *ret, size_t *ret_count);

#endif
