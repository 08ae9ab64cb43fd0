/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* limit_types.h - types of a limit's keys; of fields of struct limit_def unless noted. */
#ifndef SLUICE_LIMIT_TYPES_H
#define SLUICE_LIMIT_TYPES_H

#include "conf/key.h"

extern const struct key_type
	type_match, type_dscp, type_mark, type_lengths_v4, type_lengths_v6, type_scales_v4,
	type_scales_v6, type_ban, type_overrides, type_overrides_file,
	type_rates, type_bursts,	/* `rate` and `burst` of any struct rates; read_rates.c */
	type_throttle;			/* any struct throttle_def */

/* A ban of requests, as {after: 20 rejections/10m, for: 10m, factor: 2, max: 24h}. */
struct ban_def;
int read_ban_of_requests(struct reader *r, const struct yaml_node *node, struct ban_def *ban);

#endif
