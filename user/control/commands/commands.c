// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* commands.c - the command table and shared helpers; see commands.h. */
#include "control/commands/commands.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "control/running/audit.h"
#include "lib/clock.h"
#include "control/running/live.h"
#include "control/running/reach_of.h"
#include "control/running/pending.h"
#include "control/running/reach_of.h"
#include "control/running/rules.h"
#include "lib/log.h"

static const struct command {
	const char *name;
	command_fn run;
	enum {
		READS,
		CHANGES,	/* needs PEER_ALL, and is audited */
		UPDATES,		/* needs PEER_ALL; too frequent for the audit log */
	} kind;
} commands[] = {
	{ "status", command_status, READS },
	{ "stats", command_stats, READS },
	{ "limit list", command_limit_list, READS },
	{ "limit show", command_limit_show, READS },
	{ "limit set", command_limit_set, CHANGES },
	{ "limit add", command_limit_add, CHANGES },
	{ "limit del", command_limit_del, CHANGES },
	{ "override set", command_override_set, CHANGES },
	{ "override del", command_override_del, CHANGES },
	{ "override list", command_override_list, READS },
	{ "block add", command_block_add, CHANGES },
	{ "block del", command_block_del, CHANGES },
	{ "block list", command_block_list, READS },
	{ "exempt add", command_exempt_add, CHANGES },
	{ "exempt del", command_exempt_del, CHANGES },
	{ "exempt list", command_exempt_list, READS },
	{ "set add", command_set_add, CHANGES },
	{ "set del", command_set_del, CHANGES },
	{ "set replace", command_set_replace, CHANGES },
	{ "set list", command_set_list, READS },
	{ "attach", command_attach, CHANGES },
	{ "detach", command_detach, CHANGES },
	{ "reload", command_reload, CHANGES },
	{ "apply", command_apply, CHANGES },
	{ "confirm", command_confirm, CHANGES },
	{ "rollback", command_rollback, CHANGES },
	{ "rollback list", command_rollback_list, READS },
	{ "save", command_save, CHANGES },
	{ "diff", command_diff, READS },
	{ "source show", command_source_show, READS },
	{ "explain", command_explain, READS },
	{ "ban list", command_ban_list, READS },
	{ "ban del", command_ban_del, CHANGES },
	{ "pushdowns list", command_pushdowns_list, READS },
	{ "pushdowns clear", command_pushdowns_clear, CHANGES },
	{ "cluster show", command_cluster_show, READS },
	{ "rule list", command_rule_list, READS },
	{ "rule show", command_rule_show, READS },
	{ "rule set", command_rule_set, CHANGES },
	{ "user set", command_user_set, CHANGES },
	{ "user unset", command_user_unset, CHANGES },
	{ "user block", command_user_block, CHANGES },
	{ "user exempt", command_user_exempt, CHANGES },
	{ "user top", command_user_top, READS },
	{ "user show", command_user_show, READS },
	{ "user reset", command_user_reset, CHANGES },
	{ "load-signal set", command_load_signal_set, UPDATES },
	{ "load-signal list", command_load_signal_list, READS },
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

/* ------------------------------------------------------------------ responses */

json_t *commands_error(const struct sl_err *err)
{
	json_t *error = json_pack("{s:s%}", "message", err->message, strlen(err->message));

	/* A message cut in the middle of a character is not UTF-8. */
	if (!error)
		error = json_pack("{s:s}", "message", "an error occurred; its message is not valid UTF-8");
	if (err->file[0])
		json_object_set_new(error, "file", json_string(err->file));
	if (err->file[0] && err->line) {
		json_object_set_new(error, "line", json_integer(err->line));
		json_object_set_new(error, "column", json_integer(err->column));
	}
	return json_pack("{s:b, s:o}", "ok", 0, "error", error);
}

static int unknown_command(const char *name, struct sl_err *err)
{
	char list[800];
	size_t used = 0;

	for (size_t i = 0; i < COMMAND_COUNT && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 commands[i].name);
	return sl_err_set(err, ENOENT, "unknown command '%.64s'; commands: %s", name, list);
}

static int run_command(struct commands *ctx, const struct command *command,
		       const struct command_request *request, json_t **ret, struct sl_err *err)
{
	const struct actor actor = { request->peer->uid, request->peer->pid };
	u64 generation = ctx->running->generation;
	int r;

	if (command->kind == READS)
		return command->run(ctx, request, ret, err);
	if (request->peer->rights != PEER_ALL)
		r = sl_err_set(err, EPERM, "permission denied: '%s' needs root or membership in "
			       "control.group (you have read-only access)", command->name);
	else
		r = command->run(ctx, request, ret, err);
	if (command->kind == CHANGES)
		audit_write(ctx->running, &actor, command->name, request->args, generation,
			    r < 0 ? err : NULL);
	return r;
}

static int run(struct commands *ctx, const struct peer *peer, json_t *document, json_t **ret,
	       struct sl_err *err)
{
	const char *name = json_string_value(json_object_get(document, "command"));
	json_t *args = json_object_get(document, "args"), *empty = NULL;
	struct command_request request = { .peer = peer, .args = args };
	int r;

	if (!name)
		return sl_err_set(err, EINVAL, "invalid request: a JSON object with a string 'command' is required");
	if (args && !json_is_object(args))
		return sl_err_set(err, EINVAL, "invalid request: 'args' must be an object");
	if (ctx->running->packets->stopping)
		return sl_err_set(err, ESHUTDOWN, "sluiced is stopping");
	pending_check(ctx->running);
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(commands[i].name, name) != 0)
			continue;
		if (!args)
			request.args = empty = json_object();
		r = run_command(ctx, &commands[i], &request, ret, err);
		json_decref(empty);
		return r;
	}
	return unknown_command(name, err);
}

json_t *commands_respond(struct commands *ctx, const struct peer *peer, const char *line,
			 size_t length)
{
	struct sl_err err = { .message = "" };
	json_error_t error;
	json_t *document = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
	json_t *result = NULL;
	int r;

	if (!document)
		r = sl_err_set(&err, EINVAL, "invalid request: not JSON: %s (character %d)", error.text,
			       error.position);
	else
		r = run(ctx, peer, document, &result, &err);
	json_decref(document);
	if (r < 0) {
		json_decref(result);
		return commands_error(&err);
	}
	return json_pack("{s:b, s:o}", "ok", 1, "result", result ? result : json_object());
}

/* ------------------------------------------------------------------ shared helpers */

int arg_text(const struct command_request *request, const char *key, bool required,
	     const char **ret, struct sl_err *err)
{
	const json_t *value = json_object_get(request->args, key);

	if (!value && !required)
		return 0;
	if (!json_is_string(value))
		return sl_err_set(err, EINVAL, "'%s' is required: a string", key);
	*ret = json_string_value(value);
	return 0;
}

int arg_flag(const struct command_request *request, const char *key, bool *ret, struct sl_err *err)
{
	const json_t *value = json_object_get(request->args, key);

	if (value && !json_is_boolean(value))
		return sl_err_set(err, EINVAL, "'%s' must be true or false", key);
	*ret = json_is_true(value);
	return 0;
}

json_t *op_new(const struct command_request *request, const char *op, const char *format, ...)
{
	char when[32];
	json_t *members, *all;
	va_list args;

	clock_format_utc(clock_utc_ns(), when, sizeof(when));
	all = json_pack("{s:s, s:s, s:I, s:I}", "op", op, "when", when, "uid",
			(json_int_t)request->peer->uid, "pid", (json_int_t)request->peer->pid);
	va_start(args, format);
	members = json_vpack_ex(NULL, 0, format, args);
	va_end(args);
	if (!all || !members || json_object_update(all, members) < 0) {
		json_decref(all);
		all = NULL;
	}
	json_decref(members);
	return all;
}

int op_run(struct commands *ctx, const struct command_request *request, json_t *op,
	   struct sl_err *err)
{
	struct reach_of reach;
	struct change change;
	char words[256];
	int r;

	if (!op)
		return sl_err_set(err, ENOMEM, "out of memory");
	r = reach_of_begin(ctx->running->config_path, ctx->running->state_dir, ctx->running->policy,
			   request->peer->uid, NULL, &reach, err);
	if (!r)
		r = change_begin(ctx->running, &change, err);
	if (!r) {
		r = change_do(&change, ctx->running, op, err);
		if (!r)
			r = change_commit(ctx->running, &change, err);
		change_end(&change);
	}
	if (r < 0)
		reach_hide(err);
	reach_of_end(&reach);
	if (!r) {
		live_describe(op, words, sizeof(words));
		log_info("%s (uid %u, pid %d)", words, request->peer->uid, request->peer->pid);
	}
	json_decref(op);
	return r;
}

json_t *change_result(const struct commands *ctx)
{
	return json_pack("{s:o, s:i}", "generation", json_u64(ctx->running->generation),
			 "live_changes", (int)json_array_size(ctx->running->live));
}
