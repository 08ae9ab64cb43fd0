// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* reach_of.c - see reach_of.h. */
#include "control/running/reach_of.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/http_def.h"
#include "config/policy.h"

/* Beside the file that names it. */
static char *beside(const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');
	char *ret;

	if (name[0] == '/' || !slash)
		return strdup(name);
	return asprintf(&ret, "%.*s/%s", (int)(slash - file), file, name) < 0 ? NULL : ret;
}

static bool add_file(struct reach_of *of, const char *config, const char *name)
{
	if (!name)
		return true;
	of->file[of->reach.file_count] = beside(config, name);
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

static int check(const char *before, const char *after, struct sl_err *err)
{
	return !after || (before && !strcmp(before, after)) ? 0 : reach_check(after, err);
}

static bool has_token_file(const struct http_def *def, const char *path)
{
	for (size_t i = 0; i < def->caller_count; i++)
		if (def->caller[i].token_file && !strcmp(def->caller[i].token_file, path))
			return true;
	return false;
}

int reach_of_http(const struct http_def *before, const struct http_def *after, struct sl_err *err)
{
	static const struct http_def none;
	const char *log;
	int r;

	if (!after || !reach_is_set())
		return 0;
	if (!before)
		before = &none;
	log = before->decision_log;
	r = check(before->rules_dir, after->rules_dir, err);
	if (!r)
		r = check(before->cert, after->cert, err);
	if (!r)
		r = check(before->key, after->key, err);
	if (!r)
		r = check(before->client_ca, after->client_ca, err);
	for (size_t i = 0; !r && i < after->caller_count; i++)
		if (after->caller[i].token_file && !has_token_file(before, after->caller[i].token_file))
			r = reach_check(after->caller[i].token_file, err);
	if (!r && after->decision_log && (!log || strcmp(log, after->decision_log) != 0))
		r = reach_check_new(after->decision_log, err);
	return r;
}
