/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host.h - this host's packet tier at work: the data plane, what it is attached to, and whom it
 * never cuts off.
 *
 *     ifaces.c    interfaces: their slots, and what is on them
 *     helper.c    attaches with CAP_SYS_ADMIN, in a process of its own
 *     protect.c   never cut off: login sessions (sessions.c), gateways (gateways.c), servers
 *     bans.c      lists, lifts and keeps what the data path banned
 *     state.c     state.json: the slots of interfaces, counters of slots that limits left
 *     load.c      how busy the CPUs and links are
 *     view.c      what metrics and commands show alike
 *
 * Knows: the data plane, interfaces, addresses, sessions of this host. Where a function needs the
 * configuration in force it is an argument. Does not know: where that comes from, live changes,
 * other nodes, the request tier, the loop. May use: packet/dataplane, packet/compile, config,
 * limiter.
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
	IFACE_REMOVED,		/* somebody took it off */
	IFACE_REPLACED,		/* another program is in its place */
	IFACE_LOSS_COUNT,
};

/* An interface slot. A name keeps its slot for as long as slots last: counters are by slot. */
struct iface {
	char name[16];		/* "": never used */
	enum attach_mode mode;	/* as configured */
	bool wanted;		/* configured, and not detached live */
	bool attached;
	struct dp_attachment at;	/* where attached: how */
	char error[256];	/* wanted and there, but cannot be attached: why */
	enum on_removed on_removed;	/* as configured */
	enum iface_loss lost;	/* where attached: not there, and not put back */
	u32 lost_to;		/* the program in its place when that was last tried; 0: none */
	u64 losses[IFACE_LOSS_COUNT];	/* since the start, put back or not */
};

/* Counters of a limit's earlier slots (it gets another when its kind changes). */
struct limit_base {
	char name[SL_NAME_MAX];
	struct sl_limit_stats stats;
};

/* How many packets that found no room in the table are in the log, or were before the start. */
struct full_log {
	u64 packets, at_ns;
	bool is_known;
};

/* Packets a second by verdict, over the last second. */
struct rate_sample {
	u64 at_ns;
	u64 packets[SL_LV_COUNT];	/* of a limit; of an interface by enum sl_action */
	double rate[SL_LV_COUNT];
};

struct packet_host {
	struct dp *dp;
	struct helper helper;
	const char *state_dir;		/* as at start, as the next; not its own */
	const char *pin_dir;
	/*
	 * No interfaces when it was started: no root, no BPF, a data plane in memory that no packet
	 * comes to, and none can be attached.
	 */
	bool absent;
	bool stopping;			/* nothing is put back, attached or compiled any more */

	struct iface iface[SL_IFACES_MAX];
	bool pins_lost;			/* somebody removed them, and they cannot be made again */
	u64 pins_losses;
	struct limit_base *base_stats;
	size_t base_stats_count;
	struct sl_prefix *local;	/* this host's addresses, for failsafe */
	size_t local_count;
	struct protect protect;		/* login sessions, gateways */
	struct bans bans;

	struct rate_sample iface_rate[SL_IFACES_MAX];
	struct rate_sample limit_rate[SL_LIMIT_IDS];
	struct full_log full_log[SL_LIMIT_IDS];
	struct dp_table_stats table;	/* at table_at_ns; a scan is not free */
	u64 table_at_ns;
};

/* What it remembers. Attachments, pins and the data plane stay. */
void packet_host_free(struct packet_host *host);

#endif
