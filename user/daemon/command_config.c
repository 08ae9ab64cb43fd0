// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_config.c - reload, save, diff: the file and what runs beside it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/commands.h"
#include "daemon/file.h"
#include "daemon/rules.h"
#include "lib/log.h"

int command_reload(struct daemon *d, const struct request *request, json_t **ret,
		   struct sl_err *err)
{
	int r = rules_reload(d, err);

	if (!r) {
		*ret = change_result(d);
		json_object_set_new(*ret, "limits", json_u64(d->running->limit_count));
		json_object_set_new(*ret, "file", json_string(d->config_path));
	}
	return r;
}

/* ------------------------------------------------------------------ save */

static int write_file(const char *path, const struct policy *policy, struct sl_err *err)
{
	char *text = NULL, *backup = NULL;
	struct stat st;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int r = out ? policy_write(policy, out) : -ENOMEM;

	if ((out && fclose(out) != 0) || asprintf(&backup, "%s.bak", path) < 0)
		r = -ENOMEM;
	if (r < 0)
		r = sl_err_set(err, -r, "cannot write the policy: %s", strerror(-r));
	else
		r = file_replace(path, backup, text, size,
				 stat(path, &st) == 0 ? st.st_mode & 07777 : 0640, err);
	free(text);
	free(backup);
	return r;
}

int command_save(struct daemon *d, const struct request *request, json_t **ret,
		 struct sl_err *err)
{
	char path[PATH_MAX];
	struct change change = { .live = json_array() };
	size_t saved = json_array_size(d->live);
	int r;

	/* A link stays one: what it points to is written. */
	if (!realpath(d->config_path, path))
		return sl_err_set(err, errno, "%s: %s", d->config_path, strerror(errno));
	r = write_file(path, d->running, err);
	/* Read back what is there now, so that places in it are right, and as a check. */
	if (!r)
		r = policy_load(d->config_path, &change.file, err);
	if (!r && policy_clone(change.file, &change.running) < 0)
		r = sl_err_set(err, ENOMEM, "out of memory");
	if (!r)
		r = change_commit(d, &change, err);
	change_end(&change);
	if (r < 0)
		return r;
	log_info("saved %zu live changes to %s (uid %u, pid %d)", saved, path, request->peer->uid,
		 request->peer->pid);
	*ret = change_result(d);
	json_object_set_new(*ret, "saved", json_u64(saved));
	json_object_set_new(*ret, "file", json_string(path));
	return 0;
}

/* ------------------------------------------------------------------ diff */

int command_diff(struct daemon *d, const struct request *request, json_t **ret,
		 struct sl_err *err)
{
	if (json_object_get(request->args, "file"))
		return sl_err_set(err, ENOSYS, "diff FILE is not supported by this version; diff "
				  "alone shows live changes");
	*ret = json_pack("{s:s, s:O}", "file", d->config_path, "changes", d->live);
	return 0;
}
