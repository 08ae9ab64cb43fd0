/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * commands.h - the commands of the control socket: one function for each row of command/rows.h,
 * with arguments that were checked against the row.
 */
#ifndef SLUICE_COMMANDS_COMMANDS_H
#define SLUICE_COMMANDS_COMMANDS_H

#include "control/commands/control.h"
#include "lib/json.h"

struct command_request {
	const struct peer *peer;
	json_t *args; /* an object, possibly empty */
};

/* 0 with *ret a new reference (NULL: an empty result), or -errno and err. */
typedef int (*command_fn)(struct commands *ctx, const struct command_request *request, json_t **ret,
			  struct sl_err *err);

/* The response to one line; NULL only when out of memory. */
json_t *commands_respond(struct commands *ctx, const struct peer *peer, const char *line,
			 size_t length);
json_t *commands_error(const struct sl_err *err);

/* ---- for the commands ---- */

/* -ENOENT: "there is no limit 'wbe' (did you mean 'web'?); limits: web, dns". */
int limit_unknown(const struct commands *ctx, const char *name, struct sl_err *err);

/* A member of the arguments, which the row has: its text, NULL without the member. */
const char *arg_text(const struct command_request *request, const char *key);
bool arg_flag(const struct command_request *request, const char *key);
/* The member `key` as one address or prefix. */
int arg_prefix(const struct command_request *request, const char *key, struct sl_prefix *ret,
	       struct sl_err *err);
/* The member `source`: one address. */
int arg_source(const struct command_request *request, struct sl_prefix *ret, struct sl_err *err);
/*
 * The member `for`, a duration from now, of ten years at most: a longer one ends then. 0 if
 * missing: permanent (command_list.c).
 */
int arg_until(const struct command_request *request, u64 *ret_utc_ns, struct sl_err *err);

/* Refuses one of this host's own addresses: blocking it is mostly a mistake. */
int block_check_own(const struct commands *ctx, const struct sl_prefix *prefix, struct sl_err *err);

/*
 * The lines of a list that a file or a program gives: bad ones are skipped, counted and named, so
 * that one of them never disables a list (command_list.c). Zero it; list_lines_end() frees it.
 */
struct list_lines {
	size_t count, skipped; /* lines that are not empty; those of them that are bad */
	json_t *why;	       /* of the first: "line 7: '10.0.0.300': ..." */
};
void list_lines_skip(struct list_lines *lines, size_t index, const struct sl_err *why);
/*
 * -EINVAL if more than half of the lines are bad: then it is no list. list_lines_end() adds what
 * was skipped to the reply (NULL: the command failed), and logs it.
 */
int list_lines_judge(const struct list_lines *lines, struct sl_err *err);
void list_lines_end(struct list_lines *lines, const char *command, const char *name, json_t *reply);

/*
 * VALUE of a rule, or its hash, as `user list` prints it, to be freed; NULL where the rule has one
 * count and none is given. An error where no request of the rule has it, with those that would
 * (command_user.c).
 */
int arg_value(struct commands *ctx, const struct command_request *request, const struct rule *rule,
	      char **ret, struct sl_err *err);
/* A text of arg_value() as lists, events and the history have it: cut where it is long. */
json_t *listed_value(const char *value);

/*
 * What a source sent and lost in the last 4 to 9 seconds, and by which limits, of the entries of
 * heavy sources and the events (command_source.c).
 */
json_t *source_lately(struct commands *ctx, const struct sl_prefix *source);

/* A new operation (live.h) with uid, pid and time: op_new(request, "limit del", "{s:s}", ...). */
json_t *op_new(const struct command_request *request, const char *op, const char *format, ...);

/* Applies one operation. Consumes `op`; NULL means out of memory. */
int op_run(struct commands *ctx, const struct command_request *request, json_t *op,
	   struct sl_err *err);

/* The response of every change: {"generation", "live_changes"}. */
json_t *change_result(const struct commands *ctx);
/* The same with the name of what was changed. */
json_t *change_result_named(const struct commands *ctx, const char *name);

/*
 * At most `count` rows of `block list`: sets as one row each, {"prefix": "@NAME", "set", "count"},
 * then what ends by itself, then the others (command_list.c).
 */
json_t *blocks_latest(struct commands *ctx, size_t count);

/* Sets and origins whose programs failed last, with why and for how long (command_set.c). */
json_t *feeds_failing(const struct commands *ctx);

/* command_ID() of every row of command/rows.h that the daemon serves. */
#define COMMAND(id, name, right, ...)                                                              \
	int command_##id(struct commands *, const struct command_request *, json_t **,             \
			 struct sl_err *);
#include "command/rows.h"
#undef COMMAND

#endif
