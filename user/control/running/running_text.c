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
#include <sys/stat.h>
#include <unistd.h>

#include "conf/config_text.h"
#include "config/http_def.h"
#include "config/keys.h"
#include "control/running/history.h"
#include "lib/array.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "request/rules/rule.h"

int config_text_make(const char *path, const char *text, size_t size, struct config_text *ret,
		     struct sl_err *err)
{
	struct config_text source = { .path = strdup(path),
				      .text = malloc(size + 1),
				      .size = size };

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

/* ------------------------------------------------------ files that differ from what is in force */

/* A file that changed more recently than this may change again without another time. */
#define CLOCK_TICKS_NS (2 * SL_NS_PER_SEC)

struct looking {
	struct running *run;
	json_t *found;
	size_t at; /* in run->look */
};

static void differs(struct looking *l, const char *path, const char *why)
{
	json_array_append_new(l->found, json_pack("{s:s, s:s}", "file", path, "why", why));
}

static int digest_of(const char *path, u64 *ret, struct sl_err *err)
{
	size_t size;
	char *text;
	int r = config_text_read(path, true, &text, &size, err);

	if (r < 0)
		return r;
	*ret = config_text_digest(text, size);
	free(text);
	return 0;
}

/* A pipe cannot be read twice: it never differs. */
static void look_at(struct looking *l, const char *path, u64 digest, const char *why)
{
	struct file_look now = { .digest = 0 }, *last;
	struct running *run = l->run;
	struct sl_err err;
	struct stat st;

	if (stat(path, &st) < 0) {
		differs(l, path, strerror(errno));
		return;
	}
	if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))
		return;
	now = (struct file_look){
		{ st.st_dev, st.st_ino, (u64)st.st_size,
		  (u64)st.st_mtim.tv_sec * SL_NS_PER_SEC + (u64)st.st_mtim.tv_nsec,
		  (u64)st.st_ctim.tv_sec * SL_NS_PER_SEC + (u64)st.st_ctim.tv_nsec, 1 },
		0
	};
	if (now.id[4] + CLOCK_TICKS_NS > clock_utc_ns())
		now.id[5] = 0;
	last = l->at < run->look_count ? &run->look[l->at] : NULL;
	if (last && now.id[5] && !memcmp(last->id, now.id, sizeof(now.id)))
		now.digest = last->digest;
	else if (digest_of(path, &now.digest, &err) < 0) {
		differs(l, path, err.message);
		return;
	}
	if (last)
		*last = now;
	else if (append(run->look, run->look_count, now))
		return;
	l->at++;
	if (now.digest != digest)
		differs(l, path, why);
}

static void look_beside(struct looking *l, const char *config, const char *name, u64 digest)
{
	char *path = name ? config_text_beside(config, name) : NULL;

	if (path)
		look_at(l, path, digest, "changed since it was read");
	free(path);
}

/* Finds rule files that were not there when the rules were read; both lists are sorted. */
static void look_for_new(struct looking *l, const char *dir, const struct ruleset *rules)
{
	struct sl_err err;
	char **file;
	size_t count;
	u32 at, next = 0;

	if (ruleset_files(dir, &file, &count, &err) < 0) {
		differs(l, dir, err.message);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		for (at = next; at < rules->text_count && strcmp(rules->text[at].path, file[i]);
		     at++)
			;
		if (at == rules->text_count)
			differs(l, file[i], "is new");
		else
			next = at + 1;
		free(file[i]);
	}
	free(file);
}

json_t *config_text_differing(struct running *run)
{
	struct looking l = { .run = run, .found = json_array() };
	const struct policy *file = run->file, *policy = run->policy;
	json_t *notes = json_array(), *note;
	size_t i;

	if (!run->source.digest)
		run->source.digest = config_text_digest(run->source.text, run->source.size);
	look_at(&l, run->config_path, run->source.digest,
		run->source.applied ? "another text was applied instead"
				    : "changed since it was read");
	for (i = 0; i < file->set_count; i++)
		look_beside(&l, file->path, file->set[i].file, file->set[i].digest);
	for (i = 0; i < policy->limit_count; i++)
		look_beside(&l, policy->path, policy->limit[i].overrides_file,
			    policy->limit[i].overrides_digest);
	if (run->requests.rules) {
		const struct ruleset *rules = run->requests.rules;

		for (i = 0; i < rules->text_count; i++)
			look_at(&l, rules->text[i].path, rules->text[i].digest,
				"changed since it was read");
		look_for_new(&l, run->requests.def->rules_dir, rules);
	}
	config_text_note_settings(run->started, file, notes);
	json_array_foreach(notes, i, note)
		differs(&l, file->path, json_string_value(note));
	json_decref(notes);
	return l.found;
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
		settings->rc = sl_err_set(settings->err, EACCES,
					  "%s: only root's configuration may change it; "
					  "accepted: its value there",
					  key);
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
			log_warn("set %s: skipped %zu of %zu lines of %s, the first is line %d",
				 file->set[i].name, file->set[i].skipped, file->set[i].lines,
				 file->set[i].file, file->set[i].skipped_first);
}
