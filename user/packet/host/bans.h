/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bans.h - bans, which the data path begins and ends: the daemon lists and lifts them, removes
 * those whose level has decayed, and saves them in state_dir/bans.json for the next boot.
 *
 * A restart or kill -9 of the daemon does not touch them: they are in a pinned map, which is newer
 * than the file.
 */
#ifndef SLUICE_HOST_BANS_H
#define SLUICE_HOST_BANS_H

#include <jansson.h>

#include "packet/dataplane/dataplane.h"

struct packet_host;

struct bans {
	struct dp_ban *ban; /* as of read_at_ns */
	size_t count;
	size_t active;	   /* of `count`, not ended */
	u64 read_at_ns;	   /* 0: read again */
	u64 stored;	   /* digest of the file's content */
	u64 next_ns;	   /* when bans_tick() reads again */
	bool store_failed; /* logged already */
	json_t *restored;  /* entries restored from the file, until bans_name() */
};

/* All bans, read at most a second ago, including ended ones whose level still counts. */
const struct bans *bans_look(struct packet_host *host);

/* Adds the prefix lengths of active bans to those that a rule set looks up. */
void bans_lengths(struct packet_host *host, struct compile_env *env);

/*
 * After a reboot: puts the file's bans into the map. They name their limits; the limit ids are
 * known once there are rules: then bans_name().
 */
void bans_restore(struct packet_host *host);
void bans_name(struct packet_host *host);

/* Called each second. Every few seconds removes ended bans and push-downs, and saves new bans. */
void bans_tick(struct packet_host *host);
/* Saves them now: at exit. */
void bans_store(struct packet_host *host);
void bans_free(struct packet_host *host);

/*
 * Lifts bans: of an address all that cover it, of a prefix its own and all inside it. Resets their
 * levels and the drops that led to them. *ret (to be freed) has those that were lifted, also if
 * lifting another failed: then it returns -errno.
 */
int bans_lift(struct packet_host *host, const struct sl_prefix *source, struct dp_ban **ret,
	      size_t *ret_count);
/* Only the ban of exactly this prefix, only on this node. */
int bans_end(struct packet_host *host, const struct sl_prefix *prefix);

/*
 * The active ban with the longest prefix that covers a source, or NULL; valid until the next call.
 */
const struct dp_ban *bans_find(struct packet_host *host, const struct sl_prefix *source);

/* The slot of a limit's head, or 0. */
u32 bans_limit_id(const struct packet_host *host, const char *limit);
/* The name of the limit that banned; "" if there is no such limit now. */
const char *bans_limit(const struct packet_host *host, const struct dp_ban *ban);
struct sl_prefix bans_prefix(const struct dp_ban *ban);
/* {"source", "limit", "node" (NULL: this one), "active", "since", "until", "left_ns", "level",
 * "drops"}. */
json_t *bans_to_json(const struct packet_host *host, const struct dp_ban *ban, const char *node);

#endif
