// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * running_text.c - see running_text.h.
 *
 * The text is kept beside the parsed policy: a rollback must restore the file that was in force,
 * with its comments and positions, even if the one on disk has changed.
 */
#include "control/running/running_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/config_text.h"
#include "config/http_def.h"
#include "config/keys.h"
#include "control/running/history.h"
#include "lib/clock.h"
#include "lib/log.h"

int config_text_make(const char *path, const char *text, size_t size, struct config_text *ret,
		     struct sl_err *err)
{
	struct config_text source = {.path = strdup(path), .text = malloc(size + 1), .size = size};

	if (!source.path || !source.text) {
		config_text_clear(&source);
		return sl_err_set(err, ENOMEM, "out of memory");
	}
	memcpy(source.text, text, size);
	source.text[size] = '\0';
	*ret = source;
	return 0;
}

int config_text_read_file(const char *path, struct config_text *ret, struct sl_err *err)
{
	struct config_text source = { .path = strdup(path) };
	int r;

	if (!source.path)
		return sl_err_set(err, ENOMEM, "out of memory");
	r = config_text_read(path, false, &source.text, &source.size, err);
	if (r < 0)
		free(source.path);
	else
		*ret = source;
	return r;
}

int config_text_restore(const struct running *run, u32 number, const char *path,
			struct config_text *ret, struct sl_err *err)
{
	struct config_text source = { .number = number, .path = strdup(path) };
	int r;

	if (!source.path)
		return sl_err_set(err, ENOMEM, "out of memory");
	r = history_text_read(run->state_dir, number, &source.text, &source.size, err);
	if (r < 0) {
		free(source.path);
		return r;
	}
	source.applied = !config_text_is_configured(run, &source);
	*ret = source;
	return 0;
}

bool config_text_is_configured(const struct running *run, const struct config_text *source)
{
	struct config_text configured = { 0 };
	struct sl_err ignored;
	bool same = !strcmp(source->path, run->config_path) &&
		    config_text_read_file(run->config_path, &configured, &ignored) == 0 &&
		    config_text_same(&configured, source);

	config_text_clear(&configured);
	return same;
}

void config_text_note_applied(const struct running *run, struct config_text *source, uid_t uid)
{
	source->applied = !config_text_is_configured(run, source);
	source->at_utc_ns = clock_utc_ns();
	source->uid = uid;
}

void config_text_clear(struct config_text *source)
{
	free(source->path);
	free(source->text);
	memset(source, 0, sizeof(*source));
}

int config_text_parse(const struct config_text *source, struct policy **ret, struct sl_err *err)
{
	return policy_parse(source->path, source->text, source->size, ret, err);
}

bool config_text_same(const struct config_text *a, const struct config_text *b)
{
	return a->size == b->size && !memcmp(a->text, b->text, a->size);
}

/* ------------------------------------------------------------------ settings */

int config_text_keep_settings(const struct policy *file, struct policy **ret)
{
	struct policy bare = *file;

	bare.interface_count = bare.failsafe_count = bare.set_count = bare.limit_count = 0;
	for (size_t kind = 0; kind < LIST_KIND_COUNT; kind++)
		bare.list[kind].count = bare.list[kind].set_count = 0;
	return policy_clone(&bare, ret);
}

static void note_restart(const char *key, void *notes)
{
	json_array_append_new(notes, json_sprintf("%s has changed: it takes effect when sluiced is "
						  "restarted with it in its configuration file",
						  key));
}

void config_text_note_settings(const struct policy *started, const struct policy *file,
			       json_t *notes)
{
	keys_changed(&policy_keys, started, file, KEY_RESTART, "", note_restart, notes);
}

/* ------------------------------------------------------------------ files that a text may name */

static bool add_file(struct reach_of *of, const char *config, const char *name)
{
	if (!name)
		return true;
	of->file[of->reach.file_count] = config_text_beside(config, name);
	return of->file[of->reach.file_count++];
}

static bool add_files(struct reach_of *of, const struct policy *running)
{
	bool ok;

	of->file = calloc(running->set_count + running->limit_count + 1, sizeof(*of->file));
	ok = of->file;
	for (size_t i = 0; ok && i < running->set_count; i++)
		ok = add_file(of, running->path, running->set[i].file);
	for (size_t i = 0; ok && i < running->limit_count; i++)
		ok = add_file(of, running->path, running->limit[i].overrides_file);
	of->reach.file = (const char *const *)of->file;
	return ok;
}

int reach_of_begin(const char *config_path, const char *state_dir, const struct policy *running,
		   uid_t uid, const char *own, struct reach_of *ret, struct sl_err *err)
{
	char *path, *slash;

	memset(ret, 0, sizeof(*ret));
	if (uid == 0 || uid == geteuid())
		return 0;
	path = realpath(config_path, NULL);
	slash = path ? strrchr(path, '/') : NULL;
	if (slash)
		slash[slash == path] = '\0';
	ret->config_dir = path;
	ret->reach.dir[0] = path ? path : state_dir;
	ret->reach.dir[1] = state_dir;
	ret->reach.rules_dir = running->http ? running->http->rules_dir : NULL;
	ret->reach.own = own;
	if (!add_files(ret, running))
		return sl_err_set(err, ENOMEM, "out of memory");
	reach_set(&ret->reach);
	return 0;
}

void reach_of_end(struct reach_of *reach)
{
	reach_set(NULL);
	for (size_t i = 0; i < reach->reach.file_count; i++)
		free(reach->file[i]);
	free(reach->file);
	free(reach->config_dir);
	memset(reach, 0, sizeof(*reach));
}

struct settings {
	struct sl_err *err;
	int rc;
};

static void refuse_setting(const char *key, void *arg)
{
	struct settings *settings = arg;

	if (!settings->rc)
		settings->rc = sl_err_set(settings->err, EACCES, "%s: only root's configuration may change it; "
					  "accepted: its value there", key);
}

int config_text_check_settings(const struct policy *roots, const struct policy *policy, u32 flags,
			       struct sl_err *err)
{
	struct settings settings = { .err = err };

	keys_changed(&policy_keys, roots, policy, flags, "", refuse_setting, &settings);
	return settings.rc;
}

void config_text_log_skipped(const struct policy *file)
{
	for (size_t i = 0; i < file->set_count; i++)
		if (file->set[i].skipped)
			log_warn("set %s: skipped %zu of %zu lines of %s, the first is line %d", file->set[i].name,
				 file->set[i].skipped, file->set[i].lines, file->set[i].file,
				 file->set[i].skipped_first);
}
