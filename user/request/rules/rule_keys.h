/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rule_keys.h - rows of rule files that the documents have as tables; see conf/key.h. */
#ifndef SLUICE_RULE_KEYS_H
#define SLUICE_RULE_KEYS_H

#include "conf/key.h"

/* rate_limit of a descriptor, an element of `limits`; rule_rate_limit.c, rule_limit.c */
extern const struct keys rate_limit_keys, rule_limit_keys;
#define RULE_LIMIT_RATE 0 /* the index of its row in rule_limit_keys */
/* A descriptor; rule_read.c */
extern const struct keys descriptor_keys;
extern const struct key_elsewhere keys_of_packets[];

#endif
