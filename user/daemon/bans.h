/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bans.h - what the daemon does for bans, which the data path sets and ends by itself: it lists
 * them, lifts them, takes out those whose level has decayed, and keeps them in
 * state_dir/bans.json for when the kernel has lost them (a reboot).
 *
 * Through a restart or a kill -9 of the daemon they stay where they are, in the pinned map, which
 * knows better than the file.
 */
#ifndef SLUICE_DAEMON_BANS_H
#define SLUICE_DAEMON_BANS_H

#include <jansson.h>

#include "packet/dataplane/dataplane.h"

struct daemon;

struct bans {
	struct dp_ban *ban;	/* as of read_at_ns */
	size_t count;
	size_t active;		/* of them: not ended */
	u64 read_at_ns;		/* 0: to be read anew */
	u64 stored;		/* a digest of what the file has */
	u64 next_ns;		/* when bans_tick() is to look again */
	bool store_failed;	/* said so already */
	json_t *restored;	/* until bans_name(): the file's entries that went in */
};

/*
 * All there are, at most a second old, also those that have ended and whose level still counts;
 * `active` of them are on.
 */
const struct bans *bans_look(struct daemon *d);

/* Adds the prefix lengths of bans that are on to what a rule set looks for. */
void bans_lengths(struct daemon *d, struct compile_env *env);

/*
 * After a reboot: puts the file's bans into the map. They belong to limits by name; which slot
 * that is, is known once there are rules: then bans_name().
 */
void bans_restore(struct daemon *d);
void bans_name(struct daemon *d);

/*
 * Each second: every few of them takes out what is over, push-downs that ended as well, and stores
 * what is new.
 */
void bans_tick(struct daemon *d);
/* Stores them now: at the end. */
void bans_store(struct daemon *d);
void bans_free(struct daemon *d);

/*
 * Lifts what bans `source`: of an address every ban that covers it, of a prefix that one and
 * all inside it. Their levels, and the drops that led to them, are forgotten. Returns how many,
 * 0 where there was none, or -errno. The other nodes of a cluster lift them, too.
 */
int bans_lift(struct daemon *d, const struct sl_prefix *source, json_t *lifted);
/* Just that of this prefix, just here. */
int bans_end(struct daemon *d, const struct sl_prefix *prefix);

/* The longest ban that is on and covers a source, or NULL; valid until the next look. */
const struct dp_ban *bans_find(struct daemon *d, const struct sl_prefix *source);

/* The slot of a limit's head, or 0. */
u32 bans_limit_id(const struct daemon *d, const char *limit);
/* The name of the limit that banned, "" where it is gone. */
const char *bans_limit(const struct daemon *d, const struct dp_ban *ban);
/* {"source", "limit", "node" (null: this one), "active", "since", "until", "left_ns", "level", "drops"}. */
json_t *bans_to_json(const struct daemon *d, const struct dp_ban *ban);

#endif
