/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* compile_events.h - compiles sessions and bans into an image; called by compile.c. */
#ifndef SLUICE_POLICY_COMPILE_EVENTS_H
#define SLUICE_POLICY_COMPILE_EVENTS_H

#include "packet/compile/compile.h"
#include "packet/compile/prefix_index.h"

/*
 * Fills session, ban_len and their bits of dims, after the limits' meters are made. Returns the
 * number of sessions in the image; those beyond SL_SESSIONS_MAX are left out.
 */
u32 events_compile(const struct compile_env *env, struct sl_rules *rules);

/* Adds the sources that are never banned to the prefixes, if limits ban. 0 or -ENOMEM. */
int events_add_no_ban(const struct compile_env *env, struct sl_rules *rules,
		      struct prefix_list *list);

#endif
