// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_config.c - reload, apply, confirm, rollback, save, diff: the file and what runs beside
 * it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/commands/commands.h"
#include "conf/config_text.h"
#include "config/keys.h"
#include "lib/file.h"
#include "control/running/history.h"
#include "control/running/http_rules.h"
#include "control/running/pending.h"
#include "control/running/rules.h"
#include "control/running/running_text.h"
#include "lib/log.h"

/* The response to commands that load whole files. */
static json_t *file_result(const struct commands *ctx, json_t *dropped)
{
	json_t *result = change_result(ctx);

	json_object_set_new(result, "limits", json_u64(ctx->running->policy->limit_count));
	json_object_set_new(result, "file", json_string(ctx->running->source.path));
	json_object_set(result, "dropped", dropped);
	return result;
}

int command_reload(struct commands *ctx, const struct command_request *request, json_t **ret,
		   struct sl_err *err)
{
	json_t *dropped = json_array(), *notes = json_array();
	int r = rules_reload(ctx->running, request->peer->uid, request->peer->pid, dropped, notes,
			     err);

	if (!r) {
		*ret = file_result(ctx, dropped);
		json_object_set(*ret, "notes", notes);
	}
	json_decref(dropped);
	json_decref(notes);
	return r;
}

/* ------------------------------------------------------------------ apply, confirm, rollback */

static int arg_confirm(const struct command_request *request, u64 *ret_ns, struct sl_err *err)
{
	const char *text = arg_text(request, "confirm"), *reason;

	*ret_ns = 0;
	if (!text)
		return 0;
	if (duration_parse(text, ret_ns, &reason) < 0 || *ret_ns < CONFIRM_LEAST_NS ||
	    *ret_ns > CONFIRM_MOST_NS)
		return sl_err_set(err, EINVAL,
				  "confirm '%.80s': a duration from 1s to 1h is "
				  "accepted",
				  text);
	return 0;
}

int command_apply(struct commands *ctx, const struct command_request *request, json_t **ret,
		  struct sl_err *err)
{
	struct apply apply = { .uid = request->peer->uid,
			       .pid = request->peer->pid,
			       .path = arg_text(request, "path"),
			       .text = arg_text(request, "text"),
			       .discard_live = arg_flag(request, "discard_live") };
	int r = arg_confirm(request, &apply.confirm_ns, err);

	if (!r && !apply.path)
		r = sl_err_set(err, EINVAL,
			       "'path' is required: where relative paths of 'text' begin");
	if (r < 0)
		return r;
	apply.dropped = json_array();
	apply.notes = json_array();
	r = rules_apply(ctx->running, &apply, err);
	if (!r) {
		*ret = file_result(ctx, apply.dropped);
		json_object_set(*ret, "notes", apply.notes);
		json_object_set_new(*ret, "confirm_until",
				    json_utc(ctx->running->pending.deadline_utc_ns));
	}
	json_decref(apply.dropped);
	json_decref(apply.notes);
	return r;
}

int command_confirm(struct commands *ctx, const struct command_request *request, json_t **ret,
		    struct sl_err *err)
{
	int r = pending_confirm(ctx->running, err);

	if (!r) {
		*ret = change_result(ctx);
		json_object_set_new(*ret, "file", json_string(ctx->running->source.path));
	}
	return r;
}

int command_rollback(struct commands *ctx, const struct command_request *request, json_t **ret,
		     struct sl_err *err)
{
	json_t *dropped = json_array();
	char *what = NULL;
	int r = rules_rollback(ctx->running, request->peer->uid, request->peer->pid, &what, dropped,
			       err);

	if (!r) {
		log_info("rolled back: %s (uid %u, pid %d)", what ? what : "", request->peer->uid,
			 request->peer->pid);
		*ret = file_result(ctx, dropped);
		json_object_set_new(*ret, "undid", json_string(what ? what : ""));
	}
	free(what);
	json_decref(dropped);
	return r;
}

/* The changes that rollbacks would undo, the next one first. */
int command_rollback_list(struct commands *ctx, const struct command_request *request, json_t **ret,
			  struct sl_err *err)
{
	json_t *changes = json_array(), *state;
	struct sl_err ignored;

	for (u32 n = ctx->running->history_top; n && n + HISTORY_MAX > ctx->running->history_top;
	     n--) {
		if (history_state_read(ctx->running->state_dir, n, &state, &ignored) < 0)
			break;
		json_array_append(changes, json_object_get(state, "undoes"));
		json_decref(state);
	}
	*ret = json_pack("{s:o}", "changes", changes);
	return 0;
}

/* ------------------------------------------------------------------ save */

static bool in_one_directory(const char *a, const char *b)
{
	const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');

	return slash_a && slash_b && slash_a - a == slash_b - b && !memcmp(a, b, slash_a - a);
}

static int refuse_relative(const struct running *run, const char *key, const char *file,
			   struct sl_err *err)
{
	if (!file || file[0] == '/')
		return 0;
	return sl_err_set(err, EINVAL,
			  "%s names %s, beside %s, which was applied: saved to %s it would "
			  "be another file; accepted: an absolute path",
			  key, file, run->source.path, run->config_path);
}

/* A text that was applied from another directory may name files relative to that. */
static int check_paths(const struct running *run, struct sl_err *err)
{
	const struct policy *policy = run->policy;
	char key[SL_NAME_MAX + 32];
	int rc = 0;

	if (!run->source.applied || in_one_directory(run->source.path, run->config_path))
		return 0;
	for (size_t i = 0; !rc && i < policy->set_count; i++) {
		snprintf(key, sizeof(key), "sets.%s", policy->set[i].name);
		rc = refuse_relative(run, key, policy->set[i].file, err);
	}
	for (size_t i = 0; !rc && i < policy->limit_count; i++) {
		snprintf(key, sizeof(key), "overrides_file of limit \"%s\"", policy->limit[i].name);
		rc = refuse_relative(run, key, policy->limit[i].overrides_file, err);
	}
	return rc;
}

/* A text that was applied becomes root's configuration: only root may save one with other
 * settings. */
static int check_settings(const struct running *run, const struct peer *peer, struct sl_err *err)
{
	struct policy *roots;
	int r;

	if (!run->source.applied || peer->uid == 0 || peer->uid == geteuid())
		return 0;
	r = policy_load(run->config_path, &roots, err);
	if (r < 0)
		return r;
	r = config_text_check_settings(roots, run->file, KEY_ROOT | KEY_RESTART, err);
	policy_free(roots);
	return r;
}

/* The new text of `path`: the target if config_path is a symbolic link. To be freed. */
static int make_text(const struct running *run, const char *path, char **ret, size_t *ret_size,
		     struct sl_err *err)
{
	char *before = NULL;
	size_t before_size = 0;
	const struct config_text *applied = run->source.applied ? &run->source : NULL;
	bool whole;
	int r = applied ? 0 : config_text_read(path, true, &before, &before_size, err);

	if (!r)
		r = policy_write_into(
			run->policy, run->config_path, applied ? applied->text : before,
			applied ? applied->size : before_size, ret, ret_size, &whole, err);
	if (!r && whole)
		log_warn("%s: the changes cannot be made in this text; it is written anew, without "
			 "its comments (they remain in %s.bak)",
			 path, path);
	free(before);
	return r;
}

static int write_file(const char *path, const char *text, size_t size, struct sl_err *err)
{
	char *backup = NULL;
	struct stat st;
	int r;

	if (asprintf(&backup, "%s.bak", path) < 0)
		return sl_err_no_memory(err);
	r = file_replace(path, backup, text, size, stat(path, &st) == 0 ? st.st_mode & 07777 : 0640,
			 err);
	free(backup);
	return r;
}

/* The text is in force first, and the file has it then. */
static int save(struct commands *ctx, const struct command_request *request, const char *path,
		struct sl_err *err)
{
	struct running *run = ctx->running;
	const struct peer *peer = request->peer;
	u32 top = run->history_top;
	struct sl_err ignored;
	char *text = NULL, *what = NULL;
	size_t size = 0;
	int r = make_text(run, path, &text, &size, err);

	if (!r)
		r = rules_save(run, text, size, peer->uid, peer->pid, err);
	if (r < 0)
		goto out;
	r = write_file(path, text, size, err);
	if (!r)
		rules_saved(run);
	else if (run->history_top != top &&
		 rules_rollback(run, peer->uid, peer->pid, &what, NULL, &ignored) < 0)
		log_error("save: %s was not written, and its new text stays in force: %s", path,
			  ignored.message);
out:
	free(what);
	free(text);
	return r;
}

int command_save(struct commands *ctx, const struct command_request *request, json_t **ret,
		 struct sl_err *err)
{
	char path[PATH_MAX];
	size_t saved = json_array_size(ctx->running->live);
	size_t files = 0;
	int r = pending_refuse(ctx->running, err);

	/* A symbolic link stays: its target is written. */
	if (!r && !realpath(ctx->running->config_path, path))
		r = sl_err_set(err, errno, "%s: %s", ctx->running->config_path, strerror(errno));
	if (!r)
		r = check_paths(ctx->running, err);
	if (!r)
		r = check_settings(ctx->running, request->peer, err);
	if (!r)
		r = http_rules_save(ctx->running, &files, err);
	if (!r)
		r = save(ctx, request, path, err);
	if (r < 0)
		return r;
	/* Timed changes are not saved. */
	saved -= json_array_size(ctx->running->live);
	log_info("saved %zu live changes to %s (uid %u, pid %d)", saved, path, request->peer->uid,
		 request->peer->pid);
	*ret = change_result(ctx);
	json_object_set_new(*ret, "saved", json_u64(saved));
	json_object_set_new(*ret, "file", json_string(path));
	json_object_set_new(*ret, "rule_files", json_u64(files));
	return 0;
}

/* ------------------------------------------------------------------ diff */

static json_t *policy_to_json(const struct policy *policy)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *json = NULL;

	if (out && policy_write(policy, out) == 0 && fclose(out) == 0)
		json = json_stringn(text, size);
	free(text);
	return json;
}

/*
 * Diff against a file: both policies in the same form. The client compares them; this process
 * must not run diff(1).
 */
static int diff_file(struct commands *ctx, const struct command_request *request, const char *path,
		     json_t **ret, struct sl_err *err)
{
	const char *text = arg_text(request, "text");
	struct running *run = ctx->running;
	struct policy *policy = NULL;
	struct reach_of reach;
	int r = text ? 0 : sl_err_set(err, EINVAL, "'text' is required beside 'path'");

	/* The file may name others, and an error quotes their text. */
	if (!r && request->peer->rights != PEER_ALL)
		r = sl_err_set(err, EPERM,
			       "permission denied: 'diff FILE' needs root or membership in "
			       "control.group (you have read-only access; 'diff' without a file is "
			       "allowed)");
	if (r < 0)
		return r;
	r = reach_of_begin(run->config_path, run->state_dir, run->policy, request->peer->uid, path,
			   &reach, err);
	if (!r)
		r = policy_parse(path, text, strlen(text), &policy, err);
	if (r < 0)
		reach_hide(err);
	reach_of_end(&reach);
	if (!r) {
		*ret = json_pack("{s:o, s:o}", "running", policy_to_json(ctx->running->policy),
				 "file", policy_to_json(policy));
		if (!*ret)
			r = sl_err_set(err, ENOMEM, "out of memory");
	}
	policy_free(policy);
	return r;
}

int command_diff(struct commands *ctx, const struct command_request *request, json_t **ret,
		 struct sl_err *err)
{
	const char *path = arg_text(request, "path");

	if (path)
		return diff_file(ctx, request, path, ret, err);
	*ret = json_pack("{s:s, s:O, s:o}", "file", ctx->running->source.path, "changes",
			 ctx->running->live, "differing", config_text_differing(ctx->running));
	return 0;
}
