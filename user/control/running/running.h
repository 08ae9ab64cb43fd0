/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * running.h - the running configuration: what is in force, and all that is needed to be back at
 * what was before.
 *
 *     rules.c       one change, from a policy to what packets are judged by (rules.h)
 *     rules_start.c whole configurations: at start, read again, applied, rolled back
 *     running_text.c      the file's part, as text        live.c     live changes as a list
 *     pending.c     what reverts unless confirmed   history.c  the states before, on disk
 *     http_rules.c  the request tier's rules: files and live changes
 *     persist.c      writes behind what a reboot would lose
 *     audit.c       who did what
 *
 * Running = file + live changes. A change is made on a copy of `policy`, compiled, put in force,
 * written down, and only then takes the place of `policy`; see rules.h.
 *
 * Knows: the configuration and its history, the packet tier of this host, rule files. Does not
 * know: workers and listeners, other nodes, budgets, commands. Those that go by the configuration
 * join it as a running_part. May use: every room below control but request/server and the
 * frontends.
 */
#ifndef SLUICE_RUNNING_RUNNING_H
#define SLUICE_RUNNING_RUNNING_H

#include <jansson.h>

#include "config/policy.h"
#include "packet/compile/compile.h"
#include "packet/host/host.h"

struct ruleset;
struct engine;
struct persist;			/* persist.h */

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

/*
 * The request tier's rules in force. Whoever opens the tier fills in the first four, and keeps `def`
 * current.
 */
struct running_requests {
	const struct http_def *def;	/* NULL: there is no request tier */
	struct engine *engine;		/* what decides; or NULL */
	const struct http_def *started;	/* as it was opened */
	u32 workers;
	struct ruleset *rules;		/* in force; the parts have published it */
	json_t *live;			/* the live changes that they were made with */
	struct reload_result reload;
};

struct running_part;

/* What a part does, each with itself; NULL: nothing. On the main thread. */
struct running_part_ops {
	/* Puts what is nobody's change into a policy that is about to be in force. */
	void (*derive)(struct running_part *part, struct policy *policy);
	/* `policy` is in force, as running->image. */
	void (*installed)(struct running_part *part, const struct policy *policy);
	/*
	 * The sections http and cluster of `policy` are about to be in force; what takes a restart is
	 * told in `notes` (NULL: not wanted). On failure, -errno and err, all is as it was.
	 */
	int (*configure)(struct running_part *part, const struct policy *policy, json_t *notes,
			 struct sl_err *err);
	/* The configured file was read again: so are the files that this part reads. */
	int (*reload)(struct running_part *part, struct sl_err *err);
	/* running->requests.rules is another set: publishes it, and frees the one before. */
	void (*rules)(struct running_part *part);
};

/* Embedded in what goes by the running configuration. */
struct running_part {
	const struct running_part_ops *ops;
	struct running_part *next;	/* of struct running */
};

struct running {
	const char *config_path;
	const char *state_dir;		/* as at start: a reload does not move it */
	struct packet_host *packets;
	struct running_part *parts;	/* in the order in which they joined */

	struct policy *started;		/* the configured file's keys that count only at start */
	struct config_text source;		/* the text of `file` */
	struct policy *file;		/* the file alone */
	struct policy *policy;		/* file + live changes: what is in force */
	struct sl_image *image;		/* of `policy` */
	json_t *live;			/* array of operations, oldest first; live.h */
	json_t *record;			/* what live.json says besides; from live_load() */
	u32 history_top;		/* the newest state that a rollback goes to; 0: none */
	struct pending pending;
	u64 generation;
	struct reload_result reload;

	struct running_requests requests;
	struct persist *persist;
};

/* From now on, until it leaves. A part that is not in leaves without effect. */
void running_join(struct running *run, struct running_part *part);
void running_leave(struct running *run, struct running_part *part);

/* Each of these asks every part, in the order in which they joined. */
void running_derive(struct running *run, struct policy *policy);
void running_installed(struct running *run, const struct policy *policy);
int running_configure(struct running *run, const struct policy *policy, json_t *notes,
		      struct sl_err *err);
int running_reload_parts(struct running *run, struct sl_err *err);
void running_rules(struct running *run);

#endif
