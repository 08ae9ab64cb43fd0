/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* spread_private.h - what spread.c, spread_say.c, spread_hear.c and spread_file.c share. */
#ifndef SLUICE_DAEMON_SPREAD_PRIVATE_H
#define SLUICE_DAEMON_SPREAD_PRIVATE_H

#include "cluster/bus/cluster.h"
#include "control/replication/spread.h"

#define SPREAD_AGAIN_NS (10 * SL_NS_PER_SEC)
#define SPREAD_JOIN_NS SL_NS_PER_SEC	/* as often at most, however many nodes come */
#define SPREAD_BLOCK_HOLD_NS (3600 * SL_NS_PER_SEC)
#define SPREAD_VALID_NS (60 * SL_NS_PER_SEC)
#define SPREAD_FOREVER (~0ULL)

/* What is about to be said of one kind; json_object of "add" and "del". */
struct spread_out {
	json_t *add, *del;
};

struct spread {
	struct daemon *d;
	struct spread_table table;
	struct event *tick, *install;
	struct spread_out out[SPREAD_KIND_COUNT];
	bool joined;			/* somebody came: say everything */
	bool changed;			/* blocks of others: rules are to be made anew */
	bool lengths;			/* a ban of a length that is not looked for yet */
	bool unsaved;			/* the file has other things */
	bool store_failed;		/* said so already */
	bool looked;			/* blocks were looked for at least once */
	u64 all_ns, saved_ns, expired_ns;
	u64 round;
	u64 generation;			/* of the rules that blocks were last looked for in */
	u64 bans_ns;			/* when bans are to be looked for next */
	u64 paid_ns;			/* when the time that making rules anew took is made up for */
	bool untimed;			/* some of the table's are gone_untimed */
};

/* Store time of a moment of this machine's, and back; ~0 and 0 (as `until`) are for ever. */
u64 spread_us_of(u64 now_us, u64 mono_ns);
u64 spread_ns_of(u64 now_us, u64 us);

/* ---- spread_say.c ---- */
void spread_say_all(struct spread *s, u64 now_us);
void spread_say_gone(struct spread *s, enum spread_kind kind, const struct sl_prefix *prefix,
		     u64 at_us);
void spread_flush(struct spread *s);

/* ---- spread_hear.c ---- */
void spread_listen(struct spread *s);

/* ---- spread_file.c ---- */
void spread_file_read(struct spread *s);
void spread_file_write(struct spread *s);

/* ---- spread.c ---- */
/* Rules are made anew soon, with what the table has. */
void spread_install_soon(struct spread *s);
/* What was taken back before the store's time was known: now it is. */
void spread_time_known(struct spread *s);

#endif
