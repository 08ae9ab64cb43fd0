// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* live_file.c - state_dir/live.json; see live.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/file.h"
#include "control/running/live.h"

#define LIVE_NAME "live.json"
#define LIVE_LOST "live changes are lost"

bool live_well_formed(const json_t *changes)
{
	const json_t *op, *pair;
	size_t i, k;

	if (!json_is_array(changes))
		return false;
	json_array_foreach(changes, i, op) {
		if (!json_is_string(json_object_get(op, "op")))
			return false;
		json_array_foreach(json_object_get(op, "pairs"), k, pair)
			if (!json_is_string(pair))
				return false;
		json_array_foreach(json_object_get(op, "prefixes"), k, pair)
			if (!json_is_string(pair))
				return false;
	}
	return true;
}

int live_load(const char *state_dir, json_t **ret_live, json_t **ret_record,
	      struct sl_err *err)
{
	json_t *document = file_load_json(state_dir, LIVE_NAME, LIVE_LOST);
	int r = 0;

	if (document && !live_well_formed(json_object_get(document, "changes"))) {
		file_put_aside(state_dir, LIVE_NAME, "not a list of changes", LIVE_LOST);
		json_decref(document);
		document = NULL;
	}
	if (!document)
		document = json_pack("{s:[]}", "changes");
	*ret_live = json_incref(json_object_get(document, "changes"));
	*ret_record = json_incref(document);
	json_object_del(document, "changes");
	if (!*ret_live)
		r = sl_err_set(err, ENOMEM, "out of memory");
	json_decref(document);
	return r;
}

int live_store(const char *state_dir, const json_t *live, const json_t *record,
	       struct sl_err *err)
{
	json_t *document = json_pack("{s:i, s:O}", "version", FILE_VERSION, "changes", live);
	char *path = file_join(state_dir, LIVE_NAME);
	char *text = NULL;
	int r;

	if (document && json_object_update_missing(document, (json_t *)record) == 0)
		text = json_dumps(document, JSON_INDENT(1));
	r = path && text ? file_replace(path, NULL, text, strlen(text), 0640, err) :
			   sl_err_set(err, ENOMEM, "out of memory");
	free(path);
	free(text);
	json_decref(document);
	return r;
}
