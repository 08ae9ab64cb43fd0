/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * entries.h - blocks and exemptions that change one by one, without a new rule set: live ones
 * (`block add`), those of other nodes, and those that a feed loads by the hundred thousand.
 *
 * An entry is (list, prefix, origin). An origin is the name of the feed that loaded it: "crowdsec",
 * "fail2ban", "fetch:spamhaus". Entries of several origins for one prefix are independent: the
 * source stays blocked until the last is withdrawn or has ended. The same holds beside the
 * configured file and `block add`: withdrawing an origin never ends what others listed. So a feed
 * needs no knowledge of anything but its own entries:
 *
 *     struct entry entry = { .list = LIST_BLOCK, .until_utc_ns = ..., .reason = "ssh" };
 *
 *     sl_prefix_parse("192.0.2.7", &entry.prefix, &reason);
 *     entries_add(run, "crowdsec", &entry, 1, &err);        a decision
 *     entries_del(run, "crowdsec", &entry, 1, &err);        it was deleted
 *     entries_replace(run, "fetch:spamhaus", LIST_BLOCK, entry, count, &err);  the list fetched
 * again entries_withdraw(run, "crowdsec", &err);              the feed is no longer configured
 *
 * Each is in force when the call returns, and in state_dir/entries: a daemon that is killed
 * right after it restores it. Deadlines are enforced by the data path. Entries of a feed are not
 * part of the configuration: reload, apply, rollback and save leave them as they are, `block list`
 * and `explain` show them with their origin. Call on the main thread. One entry takes microseconds
 * and a write to disk, a batch of 100000 less than a second: batch what arrives together.
 */
#ifndef SLUICE_RUNNING_ENTRIES_H
#define SLUICE_RUNNING_ENTRIES_H

#include "config/policy.h"

struct running;

#define ENTRY_ORIGIN_MAX 32 /* a name of 1 to 31 characters of a-z, 0-9, '-', '_', '.', ':' */
#define ENTRIES_MAX 250000  /* of all origins */

struct entry {
	enum list_kind list;	 /* LIST_BLOCK or LIST_EXEMPT */
	struct sl_prefix prefix; /* masked */
	u64 until_utc_ns;	 /* 0: no end */
	char reason[64];	 /* printable, may be empty */
};

struct entries_result {
	size_t added, changed, removed; /* changed: another deadline or reason */
};

/*
 * Adds entries of an origin, or replaces those of the same list and prefix. All or none: -EINVAL
 * (origin, list, reason), -ENOSPC (more than ENTRIES_MAX), -EIO, with err. Entries that have ended
 * already are skipped. `ret` may be NULL, here and below.
 */
int entries_add(struct running *run, const char *origin, const struct entry *entry, size_t count,
		struct entries_result *ret, struct sl_err *err);

/* Removes entries of an origin, by list and prefix; those that it does not have are skipped. */
int entries_del(struct running *run, const char *origin, const struct entry *entry, size_t count,
		struct entries_result *ret, struct sl_err *err);

/*
 * The origin's entries of a list become exactly these: what is in both stays in force throughout.
 */
int entries_replace(struct running *run, const char *origin, enum list_kind list,
		    const struct entry *entry, size_t count, struct entries_result *ret,
		    struct sl_err *err);

/* Removes all entries of an origin, of both lists. */
int entries_withdraw(struct running *run, const char *origin, struct entries_result *ret,
		     struct sl_err *err);

/*
 * Calls `each` for every entry of a feed (NULL: of all feeds), in no order; not for ended ones.
 * Live entries and those of other nodes are in running->policy.
 */
typedef void entries_each(void *arg, const char *origin, const struct entry *entry);
void entries_walk(const struct running *run, const char *origin, entries_each *each, void *arg);
/* Those of all feeds in a list. */
size_t entries_count(const struct running *run, enum list_kind list);
/* Whether an origin lists exactly this prefix. */
bool entries_have(const struct running *run, const char *origin, enum list_kind list,
		  const struct sl_prefix *prefix);
/* Those of one origin, in both lists. */
size_t entries_of_origin(const struct running *run, const char *origin);
/* The name of each origin that lists something. */
void entries_origins(const struct running *run, void (*each)(void *arg, const char *origin),
		     void *arg);
/* The entry of a feed with the longest prefix that covers a source; false: there is none. */
bool entries_longest(const struct running *run, enum list_kind list, const struct sl_prefix *source,
		     struct entry *ret, const char **ret_origin);

/* ---- For control/running: the entries of the configuration ---- */

/* Before the first rule set: reads state_dir/entries. -ENOMEM. */
int entries_start(struct running *run, struct sl_err *err);
/* After it: removes what an earlier daemon had listed and nobody lists now. */
void entries_settle(struct running *run);
void entries_free(struct running *run);

/*
 * Before a policy comes in force: adds its live entries and those of other nodes. After it: removes
 * those that it does not have; with revert_at_ns (CLOCK_MONOTONIC) they are back from then on.
 */
int entries_widen(struct running *run, const struct policy *policy, struct sl_err *err);
int entries_narrow(struct running *run, const struct policy *policy, u64 revert_at_ns,
		   struct sl_err *err);
/* The live entry of a prefix is as run->policy has it, or has it not. */
int entries_follow_one(struct running *run, enum list_kind list, const struct sl_prefix *prefix,
		       struct sl_err *err);
/* The clock was set: all of them end as far from now as before. */
void entries_save(struct running *run);
/* Why changes are not in state_dir/entries yet; NULL: all are. */
const char *entries_unsaved_why(const struct running *run);
void entries_step(struct running *run, s64 step_ns);
/* Each minute: removes entries of feeds that have ended. */
void entries_expire(struct running *run);

#endif
