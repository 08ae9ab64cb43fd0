/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * running.h - the running configuration: the rules in force, and the state to revert them.
 *
 *     rules.c         one change, from a policy to the rules that judge packets (rules.h)
 *     rules_start.c   whole configurations: at start, reloaded, applied, rolled back
 *     running_text.c  the text of the file's part, its settings, the files that it may name
 *     live.c          live changes: operations, a row each
 *     live_list.c     the list of those that differ from the file; live.json
 *     entries*.c      blocks and exemptions that change one by one, also of feeds
 *     rules_entry.c   a live change of one of them, or of a limit's own values
 *     feeds.c         where sets and such entries come from, and how old they are
 *     pending.c       rules that revert unless confirmed
 *     history.c       earlier states, on disk
 *     http_rules.c    the request tier's rules: files and live changes
 *     persist.c       writes the counts of the HTTP tier that a power failure would lose
 *     audit.c         the log of changes
 *
 * Running = file + live changes. A change is made to a copy of `policy`, compiled, put in force,
 * stored, and then replaces `policy`; see rules.h.
 *
 * Knows: the configuration and its history, the packet tier of this host, rule files. Does not
 * know: workers and listeners, other nodes, budgets, commands. Components that follow the
 * configuration join it as a running_part. May use: every room below control but request/server
 * and the frontends.
 */
#ifndef SLUICE_RUNNING_RUNNING_H
#define SLUICE_RUNNING_RUNNING_H

#include <jansson.h>

#include "config/policy.h"
#include "packet/compile/compile.h"
#include "packet/host/host.h"

struct ruleset;
struct engine;
struct persist; /* persist.h */
struct observe; /* packet/observe/observe.h */
struct entries; /* entries.h */
struct feeds;	/* feeds.h */

/* The text of the file's part: the configured file, or one applied in its place. */
struct config_text {
	char *path; /* for errors, and the base of relative paths in it */
	char *text;
	size_t size;
	u32 number; /* of the text in state_dir/history; 0: not written there yet */
	u64 digest; /* config_text.h; 0: not computed yet */
	bool applied;
	u64 at_utc_ns; /* where applied: when, and by whom */
	uid_t uid;
};

/* Everything needed to restore rules. */
struct rules_state {
	struct config_text source;
	struct policy *file;	/* the file alone */
	struct policy *running; /* file + live changes */
	json_t *live;		/* array of operations, oldest first; live.h */
};

/* Rules that revert unless they are confirmed; see pending.h. */
struct pending {
	u64 deadline_ns; /* CLOCK_MONOTONIC; 0: none */
	u64 deadline_utc_ns;
	struct rules_state before;
	bool failed; /* reverting failed, and was logged */
};

struct reload_result {
	bool ok;
	u64 ok_utc_ns; /* time of the last successful one */
	u64 at_utc_ns;
	struct sl_err err; /* if not ok */
};

/*
 * The request tier's rules in force. The component that opens the tier sets the first four fields
 * and keeps `def` current.
 */
struct running_requests {
	const struct http_def *def;	/* NULL: there is no request tier */
	struct engine *engine;		/* or NULL */
	const struct http_def *started; /* as at start */
	u32 workers;
	struct ruleset *rules; /* in force; the parts have published it */
	json_t *live;	       /* the live changes in `rules` */
	struct reload_result reload;
};

/* What a file had when it was looked at last: read again only where stat() shows another one. */
struct file_look {
	u64 id[6];
	u64 digest;
};

struct running_part;

/* Callbacks of a part, on the main thread; NULL: none. */
struct running_part_ops {
	/* Adds derived entries to a policy that is about to be in force. */
	void (*derive)(struct running_part *part, struct policy *policy);
	/* `policy` is in force, as running->image. */
	void (*installed)(struct running_part *part, const struct policy *policy);
	/*
	 * Before the section http of `policy` comes in force. On failure, -errno and err, nothing
	 * has changed.
	 */
	int (*configure)(struct running_part *part, const struct policy *policy,
			 struct sl_err *err);
	/* The configured file is reloaded: reloads the part's own files. */
	int (*reload)(struct running_part *part, struct sl_err *err);
	/* running->requests.rules was replaced: publishes it, and frees the previous set. */
	void (*rules)(struct running_part *part);
};

/* Embedded in a component that follows the running configuration. */
struct running_part {
	const struct running_part_ops *ops;
	struct running_part *next; /* in the list of struct running */
};

struct running {
	const char *config_path;
	const char *state_dir; /* as at start: a reload does not move it */
	struct packet_host *packets;
	struct running_part *parts; /* in the order in which they joined */

	struct policy *started;	   /* the configured file's keys that take effect only at start */
	struct config_text source; /* the text of `file` */
	struct policy *file;	   /* the file alone */
	struct policy *policy;	   /* file + live changes: in force */
	struct sl_image *image;	   /* of `policy` */
	json_t *live;		   /* array of operations, oldest first; live.h */
	json_t *record;		   /* the rest of live.json; from live_load() */
	u32 history_top;	   /* the newest state in the history; 0: none */
	struct pending pending;
	bool unwritten;		 /* live.json is older than what is in force: rules_write() */
	char unwritten_why[512]; /* "": it is not, or no change waits for it */
	struct {
		/* before the first change that the history lacks; NULL: it lacks none */
		json_t *live;
		char what[256]; /* these changes */
		uid_t uid;
		pid_t pid;
	} unnoted;
	u64 generation;
	struct reload_result reload;
	struct file_look *look; /* running_text.c */
	size_t look_count;

	struct running_requests requests;
	struct persist *persist;
	u8 files_seen;		 /* of persist_watch() */
	char not_kept[128];	 /* persist_not_kept() */
	struct observe *observe; /* what happened, for people; NULL: nobody looks */
	struct entries *entries;
	struct feeds *feeds; /* feeds.h */
};

/* Adds or removes a part. Removing one that has not joined has no effect. */
void running_join(struct running *run, struct running_part *part);
void running_leave(struct running *run, struct running_part *part);

/* Each calls the callback of every part, in the order in which they joined. */
void running_derive(struct running *run, struct policy *policy);
void running_installed(struct running *run, const struct policy *policy);
int running_configure(struct running *run, const struct policy *policy, struct sl_err *err);
int running_reload_parts(struct running *run, struct sl_err *err);
void running_rules(struct running *run);

#endif
