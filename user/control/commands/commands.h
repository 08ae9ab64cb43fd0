/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* commands.h - the commands of the control socket: a table, and one function per command. */
#ifndef SLUICE_COMMANDS_COMMANDS_H
#define SLUICE_COMMANDS_COMMANDS_H

#include "control/commands/control.h"
#include "lib/json.h"

struct command_request {
	const struct peer *peer;
	json_t *args;		/* an object, possibly empty */
};

/* 0 with *ret a new reference (NULL: an empty result), or -errno and err. */
typedef int (*command_fn)(struct commands *ctx, const struct command_request *request, json_t **ret,
			  struct sl_err *err);

/* The response to one line; NULL only when out of memory. */
json_t *commands_respond(struct commands *ctx, const struct peer *peer, const char *line,
			 size_t length);
json_t *commands_error(const struct sl_err *err);

/* ---- for the commands ---- */

/*
 * A member of the arguments: 0, or -EINVAL and a message with the accepted values. A member that
 * is missing and not `required` leaves *ret unchanged.
 */
int arg_text(const struct command_request *request, const char *key, bool required,
	     const char **ret, struct sl_err *err);
/* The member `source`: one address. */
int arg_source(const struct command_request *request, struct sl_prefix *ret, struct sl_err *err);
/* The member `for`, a duration from now; 0 if missing: permanent (command_list.c). */
int arg_until(const struct command_request *request, u64 *ret_utc_ns, struct sl_err *err);
int arg_flag(const struct command_request *request, const char *key, bool *ret, struct sl_err *err);

/* A new operation (live.h) with uid, pid and time: op_new(request, "limit del", "{s:s}", ...). */
json_t *op_new(const struct command_request *request, const char *op, const char *format, ...);

/* Applies one operation. Consumes `op`; NULL means out of memory. */
int op_run(struct commands *ctx, const struct command_request *request, json_t *op,
	   struct sl_err *err);

/* The response of every change: {"generation", "live_changes"}. */
json_t *change_result(const struct commands *ctx);

int command_status(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_stats(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_limit_list(struct commands *, const struct command_request *, json_t **,
		       struct sl_err *);
int command_limit_show(struct commands *, const struct command_request *, json_t **,
		       struct sl_err *);
int command_limit_set(struct commands *, const struct command_request *, json_t **,
		      struct sl_err *);
int command_limit_add(struct commands *, const struct command_request *, json_t **,
		      struct sl_err *);
int command_limit_del(struct commands *, const struct command_request *, json_t **,
		      struct sl_err *);
int command_override_set(struct commands *, const struct command_request *, json_t **,
			 struct sl_err *);
int command_override_del(struct commands *, const struct command_request *, json_t **,
			 struct sl_err *);
int command_override_list(struct commands *, const struct command_request *, json_t **,
			  struct sl_err *);
int command_rule_list(struct commands *, const struct command_request *, json_t **,
		      struct sl_err *);
int command_rule_show(struct commands *, const struct command_request *, json_t **,
		      struct sl_err *);
int command_rule_set(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_user_set(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_user_unset(struct commands *, const struct command_request *, json_t **,
		       struct sl_err *);
int command_user_block(struct commands *, const struct command_request *, json_t **,
		       struct sl_err *);
int command_user_exempt(struct commands *, const struct command_request *, json_t **,
			struct sl_err *);
int command_block_add(struct commands *, const struct command_request *, json_t **,
		      struct sl_err *);
int command_block_del(struct commands *, const struct command_request *, json_t **,
		      struct sl_err *);
int command_block_list(struct commands *, const struct command_request *, json_t **,
		       struct sl_err *);
int command_exempt_add(struct commands *, const struct command_request *, json_t **,
		       struct sl_err *);
int command_exempt_del(struct commands *, const struct command_request *, json_t **,
		       struct sl_err *);
int command_exempt_list(struct commands *, const struct command_request *, json_t **,
			struct sl_err *);
int command_set_add(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_set_del(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_set_replace(struct commands *, const struct command_request *, json_t **,
			struct sl_err *);
int command_set_list(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_attach(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_detach(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_reload(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_apply(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_confirm(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_rollback(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_rollback_list(struct commands *, const struct command_request *, json_t **,
			  struct sl_err *);
int command_save(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_diff(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_explain(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_source_show(struct commands *, const struct command_request *, json_t **,
			struct sl_err *);
int command_load_signal_set(struct commands *, const struct command_request *, json_t **,
			    struct sl_err *);
int command_load_signal_list(struct commands *, const struct command_request *, json_t **,
			     struct sl_err *);
int command_pushdowns_list(struct commands *, const struct command_request *, json_t **,
			   struct sl_err *);
int command_pushdowns_clear(struct commands *, const struct command_request *, json_t **,
			    struct sl_err *);
int command_cluster_show(struct commands *, const struct command_request *, json_t **,
			 struct sl_err *);
int command_user_top(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_user_show(struct commands *, const struct command_request *, json_t **,
		      struct sl_err *);
int command_user_reset(struct commands *, const struct command_request *, json_t **,
		       struct sl_err *);
int command_ban_list(struct commands *, const struct command_request *, json_t **, struct sl_err *);
int command_ban_del(struct commands *, const struct command_request *, json_t **, struct sl_err *);

#endif
