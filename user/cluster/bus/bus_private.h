/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bus_private.h - shared by bus.c and bus_read.c. */
#ifndef SLUICE_BUS_PRIVATE_H
#define SLUICE_BUS_PRIVATE_H

#include "cluster/bus/bus.h"
#include "lib/log.h"

struct unsent_messages {
	struct unsent_messages *next;
	const char *kind;
	char *body;
	u64 until_mono_ns;
};

/* ID of a stream entry: milliseconds and a number within them. */
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
	u64 store_less_mono_us; /* wrapping */
	u64 time_requested_ns, time_published_ns;
	bool asking_time;
	u32 unanswered;	     /* commands */
	u64 boot_us, number; /* of this daemon's batches */
	u64 own_boot_us;     /* newest boot time seen of earlier daemons of this node */
	u64 twice_ns;	     /* when a batch of another daemon with this node's name was seen */
	bool twin_left;	     /* that daemon sent goodbye */
	u64 stranger_ns,
		stranger_sent_ns; /* a batch not signed with the cluster's key: seen, logged */
	struct unsent_messages *first, **last;
	u32 unsent_messages;
	/* bus_read.c */
	bool reading, placed, caught_up;
	bool up_requested;    /* Redis was reachable at the last read */
	struct stream_id at;  /* the last entry read */
	struct stream_id own; /* the last entry added by this daemon */
	u64 kept_ms;	      /* its value when the stream's expiry was last extended */
	u32 rounds;	      /* full replies in a row */
	u32 failed;	      /* unreadable replies in a row */
	char error[BUS_COMMAND_COUNT][sizeof(((struct bus_stats *)0)->error)]; /* "": none */
	u64 error_ns;		      /* when the last one occurred */
	struct log_texts error_texts; /* those of this outage */
	struct bus_stats stats;
};

struct bus_time bus_now(const struct bus *bus);
/* Sends a command and increments `unanswered`; done() must decrement it. */
int bus_send(struct bus *bus, int argc, const char *const *argv, const size_t *len,
	     void (*done)(void *, enum redis_outcome, const redisReply *));
/*
 * Remembers an error of a command until bus_well(). Logs each text once, whichever command it is
 * of, until all have succeeded for ten seconds: a breaker that opens and closes is one outage.
 */
void bus_error(struct bus *bus, enum bus_command command, enum redis_outcome outcome,
	       const redisReply *reply);
void bus_well(struct bus *bus, enum bus_command command);

/* Sets a boot time newer than that of every earlier daemon with this name; restarts the numbers. */
void bus_begin(struct bus *bus);
/* Reads new entries, unless a read is pending. */
void bus_read(struct bus *bus);
/* Records the ID of an entry that this daemon added. */
void bus_read_own(struct bus *bus, const char *id);

#endif
