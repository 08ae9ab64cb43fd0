/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host.h - this host's packet tier: the data plane, its interfaces, and the sources that it never
 * cuts off.
 *
 *     ifaces.c    interfaces and their slots
 *     helper.c    attaches with CAP_SYS_ADMIN, in a process of its own
 *     protect.c   never cut off: login sessions (sessions.c), gateways (gateways.c), servers
 *     bans.c      lists, lifts and saves bans of the data path
 *     state.c     state.json: the slots of interfaces, counters of earlier limit ids
 *     load.c      the load of CPUs and links
 *     heavy.c     who sends: the heaviest sources
 *     view.c      values that metrics and commands both show
 *
 * Knows: the data plane, interfaces, addresses, sessions of this host. A function that needs the
 * configuration in force gets it as an argument. Does not know: live changes, other nodes, the
 * request tier, the event loop. May use: packet/dataplane, packet/compile, config, limiter.
 */
#ifndef SLUICE_HOST_HOST_H
#define SLUICE_HOST_HOST_H

#include "config/policy.h"
#include "packet/compile/compile.h"
#include "packet/dataplane/dataplane.h"
#include "packet/host/bans.h"
#include "packet/host/helper.h"
#include "packet/host/protect.h"

/* Whether an attached program is still on its interface. */
enum iface_loss {
	IFACE_KEPT,
	IFACE_REMOVED,	/* detached by others */
	IFACE_REPLACED, /* another program is in its place */
	IFACE_LOSS_COUNT,
};

/* Whether marks of tagged packets reach skb->mark on an interface. */
enum iface_marks {
	MARKS_UNUSED, /* nothing marks packets, and there is no mark reader */
	MARKS_READ,   /* the mark reader is attached */
	MARKS_LOST,   /* it was detached by others, or cannot be attached */
};

/* An interface slot. A name keeps its slot as long as there are free ones: counters are by slot. */
struct iface {
	char name[16];	       /* "": never used */
	enum attach_mode mode; /* as configured */
	bool wanted;	       /* configured, and not detached live */
	bool attached;
	bool recorded; /* the pins have a record of it: attached, or it was when it left */
	struct dp_attachment at;    /* where attached: how */
	char renamed[16];	    /* the interface's name now; "": still `name` */
	bool moved;		    /* it went to another network namespace with the program */
	enum sl_link link;	    /* where attached: what its frames begin with */
	char error[256];	    /* why a configured interface that exists cannot be attached */
	enum on_removed on_removed; /* as configured */
	enum iface_loss lost;	    /* if attached: the program is missing, and was not put back */
	u32 lost_to;		    /* the program in its place at the last attempt; 0: none */
	u64 losses[IFACE_LOSS_COUNT]; /* since the start, put back or not */
	enum iface_marks marks;	      /* if attached */
	u64 marks_losses;	      /* since the start: others detached the mark reader */
};

static inline const char *iface_name_now(const struct iface *iface)
{
	return iface->renamed[0] ? iface->renamed : iface->name;
}

/* Counters of a limit's earlier slots (it gets another when its kind changes). */
struct limit_base {
	char name[SL_NAME_MAX];
	struct sl_limit_stats stats;
};

/* How many packets without room in the table have been logged, or came before the start. */
struct full_log {
	u64 packets, at_ns;
	bool is_known;
};

/* Packets a second by verdict, over the last second. */
struct rate_sample {
	u64 at_ns;
	u64 packets[SL_LV_COUNT]; /* of a limit; of an interface by enum sl_action */
	double rate[SL_LV_COUNT];
};

struct packet_host {
	struct dp *dp;
	struct helper helper;
	const char *state_dir; /* from the start on, like the next; not owned */
	const char *pin_dir;
	/*
	 * Started without interfaces: no root, no BPF; the data plane is in memory and gets no
	 * packets, and no interface can be attached.
	 */
	bool absent;
	bool made_pins; /* by this daemon: there were none */
	bool stopping;	/* from now on nothing is put back, attached or compiled */

	struct iface iface[SL_IFACES_MAX];
	bool pins_lost; /* removed by others, and cannot be made again */
	u64 pins_losses;
	struct limit_base *base_stats;
	size_t base_stats_count;
	struct sl_prefix *local; /* this host's addresses, for failsafe */
	size_t local_count;
	struct protect protect; /* login sessions, gateways */
	struct bans bans;

	struct rate_sample iface_rate[SL_IFACES_MAX];
	struct rate_sample limit_rate[SL_LIMIT_IDS];
	struct full_log full_log[SL_LIMIT_IDS];
	struct dp_table_stats table; /* at table_at_ns; a scan is not free */
	u64 table_at_ns;
};

/* Frees its memory. Attachments, pins and the data plane stay. */
void packet_host_free(struct packet_host *host);

#endif
