/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* keys.h - the rows of sluice.yaml and types of its own; see conf/key.h. */
#ifndef SLUICE_CONFIG_KEYS_H
#define SLUICE_CONFIG_KEYS_H

#include "config/read.h"

/* struct policy: the whole file; load.c */
extern const struct keys policy_keys;
/* struct limit_def, and parts of it; limit_keys.c */
extern const struct keys limit_def_keys, limit_match_keys, limit_prefix_keys, limit_scale_keys;
extern const struct key limit_item, set_element, listen_item;
/* struct http_def, struct cluster_def, struct redis_def */
extern const struct keys http_def_keys, cluster_def_keys, redis_keys;
/* struct load_signal_def; load_keys.c */
extern const struct keys load_signal_keys;
/* struct listen_def; http_listen.c */
extern const struct keys listen_keys;

extern const struct key_type type_packets, type_connections, /* struct rate; load.c */
	type_sets,					     /* struct set_def *; read_list.c */
	type_entries, type_entries_for_good,		     /* struct list_def */
	type_limits;					     /* struct limit_def *; limit_keys.c */

#endif
