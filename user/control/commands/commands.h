/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* commands.h - what the control socket can be asked: a table, and one function a command. */
#ifndef SLUICE_DAEMON_COMMANDS_H
#define SLUICE_DAEMON_COMMANDS_H

#include "control/commands/control.h"
#include "daemon/daemon.h"
#include "lib/json.h"

struct command_request {
	const struct peer *peer;
	json_t *args;		/* an object, possibly empty */
};

/* 0 with *ret a new reference (NULL: an empty result), or -errno and err. */
typedef int (*command_fn)(struct daemon *d, const struct command_request *request, json_t **ret,
			  struct sl_err *err);

/* The answer to one line; never NULL but for want of memory. */
json_t *commands_respond(struct daemon *d, const struct peer *peer, const char *line,
			 size_t length);
json_t *commands_error(const struct sl_err *err);

/* ---- for the commands ---- */

/*
 * A member of the arguments: 0, or -EINVAL and words naming what is accepted. Where it is
 * missing and not `required`, *ret is left alone.
 */
int arg_text(const struct command_request *request, const char *key, bool required,
	     const char **ret, struct sl_err *err);
/* The member `source`: one address. */
int arg_source(const struct command_request *request, struct sl_prefix *ret, struct sl_err *err);
/* The member `for`, a duration from now; 0 without it: for good (command_list.c). */
int arg_until(const struct command_request *request, u64 *ret_utc_ns, struct sl_err *err);
int arg_flag(const struct command_request *request, const char *key, bool *ret, struct sl_err *err);

/* A new operation of live.h, with who and when: op_new(request, "limit del", "{s:s}", ...). */
json_t *op_new(const struct command_request *request, const char *op, const char *format, ...);

/* One operation from clone to force; `op` is given away, NULL is no memory. */
int op_run(struct daemon *d, const struct command_request *request, json_t *op, struct sl_err *err);

/* What every change answers: {"generation", "live_changes"}. */
json_t *change_result(const struct daemon *d);

int command_status(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_stats(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_limit_list(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_limit_show(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_limit_set(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_limit_add(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_limit_del(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_override_set(struct daemon *, const struct command_request *, json_t **,
			 struct sl_err *);
int command_override_del(struct daemon *, const struct command_request *, json_t **,
			 struct sl_err *);
int command_override_list(struct daemon *, const struct command_request *, json_t **,
			  struct sl_err *);
int command_rule_list(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_rule_show(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_rule_set(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_user_set(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_user_unset(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_user_block(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_user_exempt(struct daemon *, const struct command_request *, json_t **,
			struct sl_err *);
int command_block_add(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_block_del(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_block_list(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_exempt_add(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_exempt_del(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_exempt_list(struct daemon *, const struct command_request *, json_t **,
			struct sl_err *);
int command_set_add(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_set_del(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_set_replace(struct daemon *, const struct command_request *, json_t **,
			struct sl_err *);
int command_set_list(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_attach(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_detach(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_reload(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_apply(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_confirm(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_rollback(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_rollback_list(struct daemon *, const struct command_request *, json_t **,
			  struct sl_err *);
int command_save(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_diff(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_explain(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_source_show(struct daemon *, const struct command_request *, json_t **,
			struct sl_err *);
int command_load_signal_set(struct daemon *, const struct command_request *, json_t **,
			    struct sl_err *);
int command_load_signal_list(struct daemon *, const struct command_request *, json_t **,
			     struct sl_err *);
int command_pushdowns_list(struct daemon *, const struct command_request *, json_t **,
			   struct sl_err *);
int command_pushdowns_clear(struct daemon *, const struct command_request *, json_t **,
			    struct sl_err *);
int command_cluster_show(struct daemon *, const struct command_request *, json_t **,
			 struct sl_err *);
int command_user_top(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_user_show(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_user_reset(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_ban_list(struct daemon *, const struct command_request *, json_t **, struct sl_err *);
int command_ban_del(struct daemon *, const struct command_request *, json_t **, struct sl_err *);

#endif
