/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* replication_private.h - what replication.c, replication_publish.c, replication_receive.c and
 * replication_file.c share. */
#ifndef SLUICE_REPLICATION_REPLICATION_PRIVATE_H
#define SLUICE_REPLICATION_REPLICATION_PRIVATE_H

#include "cluster/bus/cluster.h"
#include "control/replication/replication.h"

#define REPLICATION_AGAIN_NS (10 * SL_NS_PER_SEC)
#define REPLICATION_JOIN_NS SL_NS_PER_SEC	/* as often at most, however many nodes come */
#define REPLICATION_BLOCK_HOLD_NS (3600 * SL_NS_PER_SEC)
#define REPLICATION_VALID_NS (60 * SL_NS_PER_SEC)
#define REPLICATION_FOREVER (~0ULL)

/* What is about to be said of one kind; json_object of "add" and "del". */
struct replication_out {
	json_t *add, *del;
};

struct replication {
	struct running_part part;	/* first: a part is its spread */
	struct nodes *nodes;
	struct replication_table table;
	struct event *tick, *install;
	struct replication_out out[REPLICATION_KIND_COUNT];
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
u64 replication_us_of(u64 now_us, u64 mono_ns);
u64 replication_ns_of(u64 now_us, u64 us);

/* ---- replication_publish.c ---- */
void replication_publish_all(struct replication *s, u64 now_us);
void replication_publish_gone(struct replication *s, enum replication_kind kind,
			      const struct sl_prefix *prefix, u64 at_us);
void replication_flush(struct replication *s);

/* ---- replication_receive.c ---- */
void replication_listen(struct replication *s);

/* ---- replication_file.c ---- */
void replication_file_read(struct replication *s);
void replication_file_write(struct replication *s);

/* ---- replication.c ---- */
/* Rules are made anew soon, with what the table has. */
void replication_install_soon(struct replication *s);
/* What was taken back before the store's time was known: now it is. */
void replication_time_known(struct replication *s);

#endif
