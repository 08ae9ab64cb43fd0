/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bus_private.h - what bus.c and bus_read.c share. */
#ifndef SLUICE_BUS_PRIVATE_H
#define SLUICE_BUS_PRIVATE_H

#include "cluster/bus/bus.h"

struct unsent_messages {
	struct unsent_messages *next;
	const char *kind;
	char *body;
	u64 until_mono_ns;
};

/* Of an entry of the stream: milliseconds and a number within them. */
struct stream_id {
	u64 ms, seq;
};

enum bus_command { BUS_TIME, BUS_ADD, BUS_READ, BUS_COMMAND_COUNT };

struct bus {
	const struct cluster_def *def;
	const struct cluster_keys *keys;
	struct redis *redis;
	struct bus_peers *peers;
	struct bus_callbacks callbacks;
	char *stream;
	u64 store_less_mono_us;		/* wrapping */
	u64 time_requested_ns, time_published_ns;
	bool asking_time;
	u32 unanswered;			/* commands */
	u64 boot_us, number;		/* of this daemon's batches */
	u64 own_boot_us;		/* of daemons before this one: the newest seen */
	u64 twice_ns;			/* when another one was seen that has our name */
	bool twin_left;			/* it said goodbye */
	u64 stranger_ns, stranger_sent_ns;	/* a batch not signed with our key: seen, and logged */
	struct unsent_messages *first, **last;
	u32 unsent_messages;
	/* bus_read.c */
	bool reading, placed, caught_up;
	bool up_requested;		/* the store could be reached when it was asked last */
	struct stream_id at;		/* the last entry that was read */
	struct stream_id own;		/* the last one that we added */
	u64 kept_ms;			/* which it was when we last said until when the stream is kept */
	u32 rounds;			/* full answers, one right after the other */
	u32 failed;			/* answers that were none, one after the other */
	char error[BUS_COMMAND_COUNT][sizeof(((struct bus_stats *)0)->error)];
	struct bus_stats stats;
};

struct bus_time bus_now(const struct bus *bus);
/* Counts it as unanswered; done() has to count it off. */
int bus_send(struct bus *bus, int argc, const char *const *argv, const size_t *len,
	     void (*done)(void *, enum redis_outcome, const redisReply *));
/* What went wrong, and that it goes well again: logged where it is another thing than before. */
void bus_error(struct bus *bus, enum bus_command command, enum redis_outcome outcome,
	       const redisReply *reply);
void bus_well(struct bus *bus, enum bus_command command);

/* A daemon that is newer than all in our name so far: batches are numbered anew. */
void bus_begin(struct bus *bus);
/* Asks for what is new, unless that was asked already. */
void bus_read(struct bus *bus);
/* We added an entry, and this is its place. */
void bus_read_own(struct bus *bus, const char *id);

#endif
