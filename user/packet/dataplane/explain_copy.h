/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * explain_copy.h - private copies of a live data plane's table sets and leases, for explain.
 *
 * The stages charge, install and evict; here they do so on copies. A set or lease is copied at its
 * first use and only once, so every run of one explain starts from the same state however busy the
 * table is; explain_copy_rewind() undoes the changes of a run.
 */
#ifndef SLUICE_EXPLAIN_COPY_H
#define SLUICE_EXPLAIN_COPY_H

#include "packet/dataplane/dataplane.h"

struct explain_copy;

/* NULL: out of memory. `dp` is only read. */
struct explain_copy *explain_copy_new(struct dp *dp);
void explain_copy_free(struct explain_copy *copy); /* NULL is fine */
void explain_copy_rewind(struct explain_copy *copy);
/* Whether a copy failed: then results since are not valid. */
bool explain_copy_failed(const struct explain_copy *copy);

/* Implement map_table_set(), map_lease() and map_lease_insert() for the stages. */
struct sl_set *explain_copy_set(struct explain_copy *copy, u32 index);
u64 *explain_copy_lease(struct explain_copy *copy, u64 key, u32 cpu);
int explain_copy_lease_insert(struct explain_copy *copy, u64 key, u32 cpu, u64 bucket_state);

#endif
