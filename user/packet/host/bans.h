/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bans.h - what the daemon does for bans, which the data path sets and ends by itself: it lists
 * them, lifts them, takes out those whose level has decayed, and keeps them in
 * state_dir/bans.json for when the kernel has lost them (a reboot).
 *
 * Through a restart or a kill -9 of the daemon they stay where they are, in the pinned map, which
 * knows better than the file.
 */
#ifndef SLUICE_HOST_BANS_H
#define SLUICE_HOST_BANS_H

#include <jansson.h>

#include "packet/dataplane/dataplane.h"

struct packet_host;

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
const struct bans *bans_look(struct packet_host *host);

/* Adds the prefix lengths of bans that are on to what a rule set looks for. */
void bans_lengths(struct packet_host *host, struct compile_env *env);

/*
 * After a reboot: puts the file's bans into the map. They belong to limits by name; which slot
 * that is, is known once there are rules: then bans_name().
 */
void bans_restore(struct packet_host *host);
void bans_name(struct packet_host *host);

/*
 * Each second: every few of them takes out what is over, push-downs that ended as well, and stores
 * what is new.
 */
void bans_tick(struct packet_host *host);
/* Stores them now: at the end. */
void bans_store(struct packet_host *host);
void bans_free(struct packet_host *host);

/*
 * Lifts what bans `source`: of an address every ban that covers it, of a prefix that one and
 * all inside it. Their levels, and the drops that led to them, are forgotten. *ret (to be freed) has
 * those that were lifted, also where that failed for another: then it returns -errno.
 */
int bans_lift(struct packet_host *host, const struct sl_prefix *source, struct dp_ban **ret,
	      size_t *ret_count);
/* Just that of this prefix, just here. */
int bans_end(struct packet_host *host, const struct sl_prefix *prefix);

/* The longest ban that is on and covers a source, or NULL; valid until the next look. */
const struct dp_ban *bans_find(struct packet_host *host, const struct sl_prefix *source);

/* The slot of a limit's head, or 0. */
u32 bans_limit_id(const struct packet_host *host, const char *limit);
/* The name of the limit that banned, "" where it is gone. */
const char *bans_limit(const struct packet_host *host, const struct dp_ban *ban);
struct sl_prefix bans_prefix(const struct dp_ban *ban);
/* {"source", "limit", "node" (NULL: this one), "active", "since", "until", "left_ns", "level", "drops"}. */
json_t *bans_to_json(const struct packet_host *host, const struct dp_ban *ban, const char *node);

#endif
