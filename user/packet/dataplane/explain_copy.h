/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * explain_copy.h - private copies of a live data plane's table sets and leases, for explain.
 *
 * The stages charge, install and evict; here they do it to copies. A set or lease is fetched
 * when it is first asked for and once only, so every run of one explain starts from the same
 * state however busy the table is; explain_copy_rewind() undoes what a run did.
 */
#ifndef SLUICE_EXPLAIN_COPY_H
#define SLUICE_EXPLAIN_COPY_H

#include "packet/dataplane/dataplane.h"

struct explain_copy;

/* NULL for want of memory. `dp` is only read from. */
struct explain_copy *explain_copy_new(struct dp *dp);
void explain_copy_free(struct explain_copy *copy);	/* NULL is fine */
void explain_copy_rewind(struct explain_copy *copy);
/* Whether something could not be copied: what was computed since is not to be trusted. */
bool explain_copy_failed(const struct explain_copy *copy);

/* What map_table_set(), map_lease() and map_lease_insert() are to the stages. */
struct sl_set *explain_copy_set(struct explain_copy *copy, u32 index);
u64 *explain_copy_lease(struct explain_copy *copy, u64 key, u32 cpu);
int explain_copy_lease_insert(struct explain_copy *copy, u64 key, u32 cpu, u64 bucket_state);

#endif
