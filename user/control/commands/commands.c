// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* commands.c - the command table and shared helpers; see commands.h. */
#include "control/commands/commands.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "control/running/audit.h"
#include "lib/clock.h"
#include "control/running/live.h"
#include "control/running/pending.h"
#include "control/running/rules.h"
#include "control/running/running_text.h"
#include "lib/log.h"

/* By the row's number; rows of the CLI alone have none. */
#define READS(id) command_##id
#define CHANGES(id) command_##id
#define UPDATES(id) command_##id
#define LOCAL(id) NULL
#define COMMAND(id, name, right, ...) right(id),
static const command_fn functions[] = {
#include "command/rows.h"
};
#undef COMMAND

/* ------------------------------------------------------------------ responses */

json_t *commands_error(const struct sl_err *err)
{
	json_t *error = json_pack("{s:s%}", "message", err->message, strlen(err->message));

	/* A message cut in the middle of a character is not UTF-8. */
	if (!error)
		error = json_pack("{s:s}", "message",
				  "an error occurred; its message is not valid UTF-8");
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
	const char *near = command_suggest(name);

	return sl_err_set(err, ENOENT,
			  "unknown command '%.64s'%s%s%s; sluicectl help lists the commands", name,
			  near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static int run_command(struct commands *ctx, const struct command *command, command_fn function,
		       const struct command_request *request, json_t **ret, struct sl_err *err)
{
	const struct actor actor = { request->peer->uid, request->peer->pid };
	u64 generation = ctx->running->generation;
	int r;

	if (command->right != COMMAND_READS && request->peer->rights != PEER_ALL)
		r = sl_err_set(err, EPERM,
			       "permission denied: '%s' needs root or membership in "
			       "control.group (you have read-only access)",
			       command->name);
	else
		r = command_check_args(command, request->args, err);
	if (!r)
		r = function(ctx, request, ret, err);
	if (command->right == COMMAND_CHANGES)
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
	int r, row;

	if (!name)
		return sl_err_set(
			err, EINVAL,
			"invalid request: a JSON object with a string 'command' is required");
	if (args && !json_is_object(args))
		return sl_err_set(err, EINVAL, "invalid request: 'args' must be an object");
	if (ctx->running->packets->stopping)
		return sl_err_set(err, ESHUTDOWN, "sluiced is exiting and accepts no commands");
	pending_check(ctx->running);
	row = command_find(name);
	if (row < 0 || !functions[row])
		return unknown_command(name, err);
	if (!args)
		request.args = empty = json_object();
	r = run_command(ctx, &commands[row], functions[row], &request, ret, err);
	json_decref(empty);
	return r;
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
		r = sl_err_set(&err, EINVAL, "invalid request: not JSON: %s (character %d)",
			       error.text, error.position);
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

const char *arg_text(const struct command_request *request, const char *key)
{
	return json_string_value(json_object_get(request->args, key));
}

bool arg_flag(const struct command_request *request, const char *key)
{
	return json_is_true(json_object_get(request->args, key));
}

int arg_prefix(const struct command_request *request, const char *key, struct sl_prefix *ret,
	       struct sl_err *err)
{
	const char *text = arg_text(request, key), *reason;

	if (sl_prefix_parse(text, ret, &reason) < 0)
		return sl_err_set(err, EINVAL, "'%.80s': %s", text, reason);
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
	r = change_one(ctx->running, op, err);
	if (r <= 0)
		goto out;
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
out:
	if (!r) {
		live_describe(op, words, sizeof(words));
		log_info("%s (uid %u, pid %d)", words, request->peer->uid, request->peer->pid);
	}
	json_decref(op);
	return r;
}

json_t *change_result(const struct commands *ctx)
{
	return json_pack("{s:o, s:i, s:s*}", "generation", json_u64(ctx->running->generation),
			 "live_changes", (int)json_array_size(ctx->running->live), "unsaved",
			 rules_unsaved_why(ctx->running));
}

json_t *change_result_named(const struct commands *ctx, const char *name)
{
	json_t *result = change_result(ctx);

	json_object_set_new(result, "name", json_string(name));
	return result;
}
