/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dataplane.h - the daemon's operations on the packet tier, whatever executes it.
 *
 * There are two data planes: dp_bpf (the kernel's; pinned under pin_dir) and dp_sim (the same
 * stages compiled for user space, in memory, without root, with many simulated CPUs). Tests run one
 * scenario on both.
 */
#ifndef SLUICE_DATAPLANE_H
#define SLUICE_DATAPLANE_H

#include <stdbool.h>

#include "lib/err.h"
#include "packet/compile/compile.h"
#include "config/policy.h"

struct dp;

struct dp_table_stats {
	u64 ways;    /* of all sets */
	u64 live;    /* bucket states that are not dead */
	u64 expired; /* expired bucket states of bound limits, and bucket states of deleted ones */
	u64 empty;
	u64 records;  /* of evicted offenders */
	u64 recorded; /* their fingerprints */
	u64 limit_live[SL_LIMIT_IDS];
	u64 limit_near[SL_LIMIT_IDS]; /* not over, with 80% or more used */
	u64 limit_over[SL_LIMIT_IDS]; /* sources with less than one unit left now */
};

/* A ban, active or ended; bpf/ban.h has its rules. */
struct dp_ban {
	struct sl_ban_key key;
	struct sl_ban_state state;
};

/* A push-down, active or ended. */
struct dp_push_entry {
	struct sl_push_key key;
	struct sl_push push;
};

/* A block or exemption beside the rule set; bpf/list.h has its rules. */
struct dp_listed {
	struct sl_list_key key;
	struct sl_listed listed;
};

/* The hashes of these three. */
enum dp_hash { DP_LISTED, DP_BANS, DP_PUSHES, DP_HASH_COUNT };

/* The event is valid during the call. */
typedef void dp_event_fn(void *arg, const struct sl_event *event);

struct dp_ops {
	const char *name;
	void (*close)(struct dp *dp);

	/*
	 * Puts `image` in force at one instant, whole; until then the old one is. There is no
	 * fallback afterwards.
	 */
	int (*apply)(struct dp *dp, const struct sl_image *image, struct sl_err *err);
	/*
	 * The same, but from revert_at_ns (CLOCK_MONOTONIC) on the rules before are in force again,
	 * by the data plane's own clock, unless confirm() or apply() is called first. A fallback
	 * that is kept already stays. To revert at once: apply() the rules before. Until then slots
	 * that only the fallback uses stay as they are, and so do its bucket states (dp_sweep()).
	 */
	int (*apply_until)(struct dp *dp, const struct sl_image *image, u64 revert_at_ns,
			   struct sl_err *err);
	/* The applied rules stay; the caller checks whether the deadline has passed. */
	int (*confirm)(struct dp *dp, struct sl_err *err);
	/* The rule set last applied, or NULL; valid until the next apply. See dp_rules_at(). */
	const struct sl_rules *(*rules)(struct dp *dp);
	/* The fallback at rules->revert_at_ns, or NULL; valid as long. */
	const struct sl_rules *(*fallback)(struct dp *dp);

	/* Sums over CPUs. */
	int (*iface_stats)(struct dp *dp, u32 iface_slot, struct sl_iface_stats *ret);
	int (*limit_stats)(struct dp *dp, u32 slot, struct sl_limit_stats *ret);
	/* The sets of one index of `heavy`, one for each of `cpus`. */
	int (*heavy)(struct dp *dp, u32 index, struct sl_heavy_set *ret);
	int (*global_stats)(struct dp *dp, struct sl_global_stats *ret);
	/*
	 * What is listed, bans and push-downs (dp_list.c, dp_bans.c and dp_push.c build on these).
	 * All of a hash: an array of its entries, to be freed, into *ret; one value (-ENOENT:
	 * none); insert entries, also over older ones (-E2BIG: no room); delete (one alone: -ENOENT
	 * if it is not there).
	 */
	int (*hash_all)(struct dp *dp, enum dp_hash which, void *ret, size_t *ret_count);
	int (*hash_get)(struct dp *dp, enum dp_hash which, const void *key, void *ret);
	int (*hash_put)(struct dp *dp, enum dp_hash which, const void *entries, size_t count);
	int (*hash_del)(struct dp *dp, enum dp_hash which, const void *keys, size_t count);
	/*
	 * Each event that is in the ring, the oldest of a CPU first, which takes them out: their
	 * number or -errno; and their counts.
	 */
	int (*events)(struct dp *dp, dp_event_fn *each, void *arg);
	int (*event_stats)(struct dp *dp, struct sl_event_stats *ret);
	/*
	 * Zeroes a slot's counters and its set of seen sources, before it is bound to another name.
	 */
	int (*limit_stats_clear)(struct dp *dp, u32 slot);

	/* A key's leases, one for each of `cpus`; 0: none. */
	int (*lease)(struct dp *dp, u64 key, u64 *ret);
};

struct dp {
	const struct dp_ops *ops;
	u32 cpus; /* that have leases */

	/* Memory of the data plane itself, from its opening to its end; it outlives rule sets. */
	struct sl_state *state;
	struct sl_epoch *epoch;		/* for dp_epoch_raise() */
	struct sl_limit_id_info *slots; /* SL_LIMIT_IDS of them */
	struct sl_set *table;
	u32 table_sets;
	/* Scales by the first meter's slot, SL_LIMIT_IDS of them: written by the daemon. */
	struct sl_elastic *elastic;
	/*
	 * Sources that shadow limits would have refused, by the first meter's slot: for
	 * dp_seen_estimate().
	 */
	struct sl_seen *shadow_seen;
	/* Filters of what is listed, of bans and of push-downs. */
	struct sl_list_filter *list_filter;
	struct sl_ban_filter *ban_filter;
	struct sl_push_now *push_now;
	struct sl_established *established; /* SL_ESTABLISHED_SETS sets: sources with connections */
	struct sl_event_switch *event_switch;
};

/* Functions for any data plane, over its memory (dp_common.c). */

/* The rule set in force at a time, or NULL. */
const struct sl_rules *dp_rules_at(struct dp *dp, u64 mono_ns);
/*
 * Whether packets can get a mark: a limit of the rules in force, or of those to fall back to, has
 * one; or a push-down with `tag` was put and has not expired.
 */
bool dp_marks(struct dp *dp);
/*
 * To be called after writing what verdicts are read from, once for all writes of a change; the
 * functions below and the operations on rules do so themselves (sluice/epoch.h). Any thread.
 */
void dp_epoch_raise(struct dp *dp);
/* The same for a change that takes effect before it is over: from begin to end nothing is repeated.
 * Main thread. */
void dp_epoch_begin(struct dp *dp);
void dp_epoch_end(struct dp *dp);
/* Publishes UTC - monotonic time. */
void dp_set_clock(struct dp *dp, u64 utc_offset_ns);
/* The present time, with the UTC that it publishes. */
struct sl_now dp_now(struct dp *dp);
/* The bucket state of a key now, 0 if there is none. */
u64 dp_bucket_state(struct dp *dp, u64 key);
/* Empties the bucket of a key, if there is one. */
void dp_bucket_forget(struct dp *dp, u64 key);
/* A bucket key as the program computes it, for a source (and the rest of `per` 0). */
u64 dp_source_key(const struct sl_rules *rules, const struct sl_limit *limit,
		  const struct sl_prefix *source);
/*
 * The approximate number of sources: 1% off at up to a third of the bits (16384), 5% at five times
 * as many; never above 159000.
 */
u64 dp_seen_estimate(const struct sl_seen *seen);
void dp_table_stats(struct dp *dp, struct sl_now now, struct dp_table_stats *ret);
/*
 * One pass over the table: moves bucket states of an older rate generation to the limit's current
 * one, and removes expired bucket states and those of DRAINING slots (which become FREE). Safe
 * beside the running program. Called after each apply and every minute. While there are rules to
 * fall back to, slots stay DRAINING, and their bucket states are left alone.
 */
void dp_sweep(struct dp *dp, struct sl_now now);

/*
 * Bans, beside the running program (dp_bans.c).
 *
 * Puts one in force: from an earlier run, or from another machine. -E2BIG: no room.
 */
int dp_ban_insert(struct dp *dp, const struct dp_ban *ban);
/* Lifts one and resets its level; -ENOENT if there is none. */
int dp_ban_delete(struct dp *dp, const struct sl_ban_key *key);
/* Whether the level of an ended ban has decayed: the next ban would be the first again. */
bool dp_ban_is_over(const struct sl_ban_state *ban, u64 mono_ns);
/* Removes those, and builds the filter again. Returns how many, or -errno. */
int dp_bans_expire(struct dp *dp, u64 mono_ns);
/* Builds the filter again from the bans; 0 or -errno. */
int dp_bans_refilter(struct dp *dp);

/*
 * For data planes: a slot for prefixes that neither rule set (either may be NULL) uses; and the
 * parameters of `fallback` updated to the rate generations of `next`, whose bucket states it will
 * meet.
 */
u32 dp_free_pfx_slot(const struct sl_rules *a, const struct sl_rules *b);
void dp_fallback_rescale(struct dp *dp, struct sl_rules *fallback, const struct sl_rules *next);

const char *reason_name(enum sl_reason reason); /* names.c */
const char *action_name(enum sl_action action);
const char *limit_verdict_name(enum sl_limit_verdict verdict);
/* "enforce", "shadow" or "off". */
const char *limit_mode_name(enum sl_mode mode);
const char *push_kind_name(u32 kind); /* enum sl_push_kind, as rules write it */
void map_error_name(enum sl_map_error error, const char **ret_map, const char **ret_op);

/* ------------------------------------------------------------------ dp_bpf and attachment */

enum dp_pins {
	DP_PINS_FOUND,	  /* this version's: taken over */
	DP_PINS_MADE,	  /* there were none */
	DP_PINS_REPLACED, /* another version's: its program limits until dp_install() */
};

/*
 * Opens the pins under pin_dir, or makes them. `table_buckets` counts only when the table is made.
 */
int dp_bpf_open(const char *pin_dir, u64 table_buckets, struct dp **ret, enum dp_pins *ret_pins,
		struct sl_err *err);

enum dp_prog_flags {
	DP_PROG_FAKE_CLOCK = 1 << 0,
	DP_PROG_NO_REFUSAL_CACHE = 1 << 1,
	DP_PROG_LINK_IP = 1 << 2,
};

/*
 * Loads the program for an interface slot without attaching it, for BPF_PROG_TEST_RUN. With
 * DP_PROG_FAKE_CLOCK it takes the time from dp_bpf_test_clock() instead of the kernel; with
 * DP_PROG_NO_REFUSAL_CACHE it judges each packet in full; with DP_PROG_LINK_IP frames begin with
 * the IP header. *ret_fd is the caller's to close.
 */
int dp_bpf_prog(struct dp *dp, u32 slot, u32 flags, int *ret_fd, struct sl_err *err);
struct sl_test_clock *dp_bpf_test_clock(struct dp *dp);

/*
 * Whether the pins are in place; and pinning the same maps again if they are not (removed by
 * others). Pins of the rule set in force come back with the next apply. Of a data plane of
 * dp_bpf_open().
 */
bool dp_pins_are_there(struct dp *dp);
int dp_pin_again(struct dp *dp, struct sl_err *err);

struct dp_attachment {
	char ifname[16];
	u32 ifindex; /* 0: the interface does not exist now */
	u32 slot;
	u32 prog_id;	       /* the stub's */
	u32 link_prog_id;      /* as link_get() has it: the stub, or the dispatcher */
	enum attach_mode mode; /* MODE_NATIVE or MODE_GENERIC, as attached */
	bool dispatcher;       /* libxdp's dispatcher is in use */
	u32 others;	       /* programs beside ours behind it */
};

/*
 * Attaches the program to an interface through libxdp: native, else generic if `mode` allows, and
 * fills *ret. Attached already (also by an earlier daemon): the running stub stays, and the program
 * behind it is replaced atomically. -ENODEV, -EBUSY... with a message.
 */
int dp_attach(struct dp *dp, const char *ifname, enum attach_mode mode, u32 slot,
	      struct dp_attachment *ret, struct sl_err *err);
/* The attachments that the pins record; at most SL_IFACES_MAX into ret, the number returned. */
int dp_attachments(struct dp *dp, struct dp_attachment *ret);
/*
 * The program at tc ingress that turns what the data plane left in a frame's metadata into
 * skb->mark, on the interface of an attached slot. It stays attached when the process ends.
 * Attaching again replaces it; -errno with a message. Of a data plane of dp_bpf_open().
 */
bool dp_mark_reader_is_there(struct dp *dp, u32 slot);
int dp_mark_reader_put(struct dp *dp, u32 slot, struct sl_err *err);
void dp_mark_reader_take_off(struct dp *dp, u32 slot);
/*
 * Removes everything: every attachment, every pin, and stubs without pins on any interface of this
 * network namespace. -EBUSY: there were no pins, and a stub on an interface still jumps to a
 * program.
 */
int dp_purge(const char *pin_dir, struct sl_err *err);

#endif
