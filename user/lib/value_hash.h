/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * value_hash.h - the name of a user's value (an API key, a name) where others than the
 * administrator may read: "hash:" and 16 digits, SipHash under a key in state_dir. A value has one
 * name over restarts; without the key none can be tried.
 */
#ifndef SLUICE_LIB_VALUE_HASH_H
#define SLUICE_LIB_VALUE_HASH_H

#include "lib/err.h"
#include "lib/hash.h"

#define VALUE_HASH_TEXT 24

/* Reads state_dir/values.key (0600), or makes it; without it the names are of this run. -ENOMEM. */
int value_hash_open(const char *state_dir, struct sl_err *err);
/* Main thread, before others read it: the key. */
struct sl_seed value_hash_seed(void);
/* Returns buf. */
const char *value_hash(const char *value, size_t len, char buf[VALUE_HASH_TEXT]);
/* Whether a text has the form of such a name. */
bool value_hash_is(const char *text);

#endif
