// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* live_file.c - state_dir/live.json; see live.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/file.h"
#include "daemon/live.h"
#include "lib/log.h"

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
	char *path = file_join(state_dir, "live.json");
	char *aside = file_join(state_dir, "live.json.bad");
	json_t *document = NULL;
	json_error_t error = { .text = "" };
	int r = 0;

	if (!path || !aside) {
		r = sl_err_set(err, ENOMEM, "out of memory");
		goto out;
	}
	if (access(path, F_OK) == 0) {
		document = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
		if (!live_well_formed(json_object_get(document, "changes"))) {
			log_error("%s: %s; put aside as %s: live changes are lost", path,
				  error.text[0] ? error.text : "not a list of changes", aside);
			rename(path, aside);
			json_decref(document);
			document = NULL;
		}
	}
	if (!document)
		document = json_pack("{s:[]}", "changes");
	*ret_live = json_incref(json_object_get(document, "changes"));
	*ret_record = json_incref(document);
	json_object_del(document, "changes");
	if (!*ret_live)
		r = sl_err_set(err, ENOMEM, "out of memory");
out:
	json_decref(document);
	free(path);
	free(aside);
	return r;
}

int live_store(const char *state_dir, const json_t *live, const json_t *record,
	       struct sl_err *err)
{
	json_t *document = json_pack("{s:i, s:O}", "version", 1, "changes", live);
	char *path = file_join(state_dir, "live.json");
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
