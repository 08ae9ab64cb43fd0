/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* replication_private.h - what replication.c, replication_publish.c, replication_receive.c and
 * replication_file.c share. */
#ifndef SLUICE_REPLICATION_REPLICATION_PRIVATE_H
#define SLUICE_REPLICATION_REPLICATION_PRIVATE_H

#include "cluster/bus/cluster.h"
#include "control/replication/replication.h"

#define REPLICATION_AGAIN_NS (10 * SL_NS_PER_SEC)
#define REPLICATION_JOIN_NS SL_NS_PER_SEC /* at most this often, however many nodes join */
#define REPLICATION_BLOCK_HOLD_NS (3600 * SL_NS_PER_SEC)
#define REPLICATION_VALID_NS (60 * SL_NS_PER_SEC)
#define REPLICATION_FOREVER (~0ULL)

/* The pending message of one kind: arrays "add" and "del". */
struct replication_out {
	json_t *add, *del;
};

struct replication {
	struct running_part part; /* first: a part is cast to its struct */
	struct nodes *nodes;
	struct replication_table table;
	struct event *tick, *install;
	struct replication_out out[REPLICATION_KIND_COUNT];
	bool joined;	   /* a node joined: publish everything */
	bool changed;	   /* other nodes' blocks: the rules must be compiled */
	bool lengths;	   /* a ban of a prefix length that the rules do not check yet */
	bool unsaved;	   /* the file is not current */
	bool store_failed; /* already logged */
	bool looked;	   /* blocks were scanned at least once */
	u64 all_ns, saved_ns, expired_ns;
	u64 round;
	u64 generation; /* of the rules that were last scanned for blocks */
	u64 bans_ns;	/* of the next scan for bans */
	u64 paid_ns;	/* earliest next installation (INSTALL_SHARE) */
	bool untimed;	/* some of the table's are gone_untimed */
};

/* Monotonic time to cluster store time, and back; ~0 and 0 (as `until`) mean permanent. */
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
/* Schedules compiling the rules with the table's blocks. */
void replication_install_soon(struct replication *s);
/* Completes withdrawals made before the cluster store's time was known. */
void replication_time_known(struct replication *s);

#endif
