// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* live_override.c - see live_override.h. */
#include "control/running/live_override.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *override_text(const json_t *op, const char *key)
{
	const char *text = json_string_value(json_object_get(op, key));

	return text ? text : "";
}

bool live_override_is(const json_t *op)
{
	return !strncmp(override_text(op, "op"), "override ", 9);
}

bool live_override_of(const json_t *op, const char *name)
{
	return live_override_is(op) && !strcmp(override_text(op, "name"), name);
}

int live_override_apply(const json_t *op, struct policy *policy, struct sl_err *err)
{
	const char *text = override_text(op, "prefix"), *reason, *name = override_text(op, "name");
	const json_t *pairs = json_object_get(op, "pairs"), *pair;
	struct sl_prefix src;
	char *pointer[4];
	size_t i;

	if (sl_prefix_parse(text, &src, &reason) < 0)
		return sl_err_set(err, EINVAL, "'%.80s': %s", text, reason);
	if (!strcmp(override_text(op, "op"), "override del"))
		return policy_override_del(policy, name, &src, err);
	if (json_array_size(pairs) > sizeof(pointer) / sizeof(pointer[0]))
		return sl_err_set(err, EINVAL, "accepted: rate= and burst=, each once");
	json_array_foreach(pairs, i, pair) {
		pointer[i] = (char *)json_string_value(pair);
		if (!pointer[i])
			return sl_err_set(err, EINVAL, "a pair is a string KEY=VALUE");
	}
	return policy_override_set(policy, name, &src, pointer, json_array_size(pairs), err);
}

/* Whether the file by itself has no override there. */
static bool file_has_none(const struct policy *file, const json_t *op)
{
	const struct limit_def *limit = policy_find_limit(file, override_text(op, "name"));
	struct sl_prefix src;
	const char *reason;

	return !limit || sl_prefix_parse(override_text(op, "prefix"), &src, &reason) < 0 ||
	       !override_find(limit, &src);
}

int live_override_add(json_t *live, json_t *op, const struct policy *file)
{
	const char *name = override_text(op, "name");
	bool barred = false;

	for (size_t i = json_array_size(live); i-- > 0 && !barred;) {
		const json_t *before = json_array_get(live, i);

		if (live_override_of(before, name) &&
		    !strcmp(override_text(before, "prefix"), override_text(op, "prefix")))
			json_array_remove(live, i);
		else
			barred = !live_override_is(before) &&
				 !strcmp(override_text(before, "name"), name);
	}
	if (!barred && !strcmp(override_text(op, "op"), "override del") && file_has_none(file, op))
		return 0;
	return json_array_append(live, op) ? -ENOMEM : 0;
}
