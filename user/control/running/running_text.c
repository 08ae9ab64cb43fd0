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

#include "control/running/history.h"
#include "conf/config_text.h"
#include "config/keys.h"

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
	struct config_text configured = { 0 }, source = { .number = number, .path = strdup(path) };
	struct sl_err ignored;
	int r;

	if (!source.path)
		return sl_err_set(err, ENOMEM, "out of memory");
	r = history_text_read(run->state_dir, number, &source.text, &source.size, err);
	if (r < 0) {
		free(source.path);
		return r;
	}
	if (config_text_read_file(run->config_path, &configured, &ignored) < 0 ||
	    strcmp(configured.path, path) != 0 || !config_text_same(&configured, &source))
		source.applied = true;
	config_text_clear(&configured);
	*ret = source;
	return 0;
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
