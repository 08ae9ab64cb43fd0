/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * daemon.h - what sluiced knows: one struct, changed by one thread.
 *
 *     main.c      start, in order; the end          live.c     live changes as a list
 *     rules.c     policy -> image -> data plane     state.c    what else outlives a restart
 *     running_text.c    the file's part, as text          history.c  the states before, on disk
 *     pending.c   what reverts unless confirmed     audit.c    who did what
 *     ifaces.c    interfaces and their slots        netlink.c  hears of links and addresses
 *     control.c   the socket and its framing        timers.c   clock, rates, sweep, watchdog
 *     commands.c  the table of commands             metrics.c  /metrics; http.c serves it
 *     helper.c    attaches with CAP_SYS_ADMIN       confine.c  gives privileges up
 *     elastic.c   scales limits while load.c and load_signal.c say that resources are free
 *     bans.c      lists, lifts and keeps what the data path banned
 *     sources.c   users behind sources: budgets and push-downs in the packet tier
 *     protect.c   what is never cut off: login sessions (sessions.c), gateways.c
 *     persist.c    writes behind what a reboot would lose: words of long limits, the HTTP tier's
 * file consumption.c     limits of scope cluster in the packet tier: what sources used, here and
 * elsewhere http_tier.c the HTTP tier: its sockets and end; http_metrics.c what it counts
 *     http_rules.c its rules: files and live changes (live_rule.c)
 *     nodes.c     other nodes: the way to them; replication.c: blocks, bans and push-downs on all
 *
 * Running = file + live changes. A change is made on a copy of `running`, compiled, put in
 * force, written down, and only then takes the place of `running`; see rules.h.
 */
#ifndef SLUICE_DAEMON_H
#define SLUICE_DAEMON_H

#include <event2/event.h>
#include <jansson.h>

#include "daemon/bans.h"
#include "daemon/helper.h"
#include "daemon/protect.h"
#include "daemon/load_signal.h"
#include "packet/dataplane/dataplane.h"
#include "packet/compile/compile.h"
#include "config/policy.h"

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

/* The file's part of what runs, as text: the configured file's, or one applied in its place. */
struct config_text {
	char *path;		/* for errors, and what relative paths in it are relative to */
	char *text;
	size_t size;
	u32 number;		/* of the text in state_dir/history; 0: not written there yet */
	bool applied;
	u64 at_utc_ns;		/* where applied: when, and by whom */
	uid_t uid;
};

/* Rules, all that is needed to be back at them. */
struct rules_state {
	struct config_text source;
	struct policy *file;	/* the file alone */
	struct policy *running;	/* file + live changes */
	json_t *live;		/* array of operations, oldest first; live.h */
};

/* Rules that revert unless they are confirmed; see pending.h. */
struct pending {
	u64 deadline_ns;	/* CLOCK_MONOTONIC; 0: none */
	u64 deadline_utc_ns;
	struct rules_state before;
	bool failed;		/* going back did, and was said */
};

struct reload_result {
	bool ok;
	u64 ok_utc_ns;		/* when the last good one was */
	u64 at_utc_ns;
	struct sl_err err;	/* where not ok */
};

struct sources;			/* sources.h */
struct replication;			/* replication.h */
struct cluster;			/* cluster/bus/cluster.h */
struct quotas;			/* cluster/quota/quota.h */
struct persist;			/* persist.h */
struct nodes_file;		/* nodes_file.h */
struct resets;			/* resets.h */
struct addresses;		/* addresses.h */
struct consumption;			/* consumption.h */

struct daemon {
	struct event_base *base;
	const char *config_path;
	const char *socket_path;
	const char *state_dir;		/* as at start: a reload does not move these */
	u64 started_mono_ns;
	bool stopping;

	struct dp *dp;
	struct helper helper;

	struct policy *started;		/* the configured file's keys that count only at start */
	struct config_text source;		/* the text of `file` */
	struct policy *file;		/* the file alone */
	struct policy *running;		/* file + live changes: what is in force */
	struct sl_image *image;		/* of `running` */
	json_t *live;			/* array of operations, oldest first; live.h */
	json_t *record;			/* what live.json says besides; from live_load() */
	u32 history_top;		/* the newest state that a rollback goes to; 0: none */
	struct pending pending;
	u64 generation;
	struct reload_result reload;

	struct iface iface[SL_IFACES_MAX];
	bool pins_lost;			/* somebody removed them, and they cannot be made again */
	u64 pins_losses;
	struct limit_base *base_stats;
	size_t base_stats_count;
	struct sl_prefix *local;	/* this host's addresses, for failsafe */
	size_t local_count;
	struct protect protect;	/* login sessions, gateways */
	struct bans bans;

	struct rate_sample iface_rate[SL_IFACES_MAX];
	struct rate_sample limit_rate[SL_LIMIT_IDS];
	struct full_log full_log[SL_LIMIT_IDS];
	struct dp_table_stats table;	/* at table_at_ns; a scan is not free */
	u64 table_at_ns;

	struct http_tier *http;		/* NULL: the file has no `http:` */
	struct http_keep *http_keep;
	const struct ruleset *http_rules;	/* in force: rules_publish() has it */
	json_t *http_live;		/* the live changes that they were made with */
	struct reload_result http_reload;
	/*
	 * No interfaces when it was started: no root, no BPF, a data plane in memory that no packet
	 * comes to, and none can be attached.
	 */
	bool http_only;

	struct http_elastic *http_elastic;	/* NULL until some rule is elastic */
	struct elastic *elastic;	/* NULL until some limit is elastic */
	struct load_signal *signal;
	size_t load_signal_count;

	struct sources *sources;	/* NULL: no HTTP tier */
	struct persist *persist;		/* persist.h */

	/* All NULL where the file has no `cluster:`; shares also where it has no `http:`. */
	struct cluster *cluster;
	struct quotas *quotas;
	struct replication *replication;
	struct resets *resets;
	struct addresses *addresses;
	struct nodes_file *nodes_file;
	struct consumption *consumption; /* consumption.h; NULL: no cluster, or no packet tier */
};

#endif
