// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* load_signal.c - see load_signal.h. */
#include "control/elastic/load_signal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "control/elastic/scales.h"
#include "control/elastic/http_elastic.h"
#include "control/elastic/load_source.h"
#include "lib/array.h"
#include "lib/units.h"

static bool uses(const struct limit_def *def, const char *name)
{
	return def->terms.throttle.kind == THROTTLE_ELASTIC && def->terms.throttle.load_signal[0] &&
	       !strcmp(def->terms.throttle.load_signal, name);
}

/* True if a limit of the policy uses it. */
static bool load_signal_used(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->limit_count; i++)
		if (uses(&policy->limit[i], name))
			return true;
	return false;
}

/* True if a limit of either tier uses it, or the daemon measures it. */
static bool is_used(const struct scales *scales, const char *name)
{
	return load_signal_def_find(scales->running->policy, name) ||
	       load_signal_used(scales->running->policy, name) ||
	       http_elastic_uses(scales, name, NULL);
}

static struct load_signal *find(const struct scales *scales, const char *name)
{
	for (size_t i = 0; i < scales->load_signal_count; i++)
		if (!strcmp(scales->signal[i].name, name))
			return &scales->signal[i];
	return NULL;
}

/* The entry of a name; a new name reuses the entry of one that no rule uses any more. */
static struct load_signal *place(struct scales *scales, const char *name)
{
	struct load_signal *at = find(scales, name);

	for (size_t i = 0; !at && i < scales->load_signal_count; i++)
		if (!is_used(scales, scales->signal[i].name))
			at = &scales->signal[i];
	if (!at) {
		if (append(scales->signal, scales->load_signal_count, (struct load_signal){ 0 }))
			return NULL;
		at = &scales->signal[scales->load_signal_count - 1];
	}
	memset(at, 0, sizeof(*at));
	strncpy(at->name, name, sizeof(at->name) - 1);
	return at;
}

static int check_members(const json_t *json, struct sl_err *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(json))
		return sl_err_set(
			err, EINVAL,
			"invalid load signal: an object is required, such as {\"value\": 0.63, \"for\": \"10s\"}");
	json_object_foreach((json_t *)json, key, value)
		if (strcmp(key, "value") != 0 && strcmp(key, "for") != 0)
			return sl_err_set(err, EINVAL,
					  "unknown key '%.32s': value and for are accepted", key);
	return 0;
}

int load_signal_set(struct scales *scales, const char *name, const json_t *json, u64 now_ns,
		    struct sl_err *err)
{
	const json_t *value = json_object_get(json, "value"), *text = json_object_get(json, "for");
	u64 for_ns = LOAD_SIGNAL_FOR_NS;
	const char *reason;
	struct load_signal *signal;
	int r = check_members(json, err);

	if (r < 0)
		return r;
	if (load_signal_def_find(scales->running->policy, name))
		return sl_err_set(err, EEXIST,
				  "load signal '%.63s' is one of load_signals: the daemon "
				  "measures it",
				  name);
	if (!is_used(scales, name))
		return sl_err_set(err, ENOENT, "no elastic limit uses a load signal '%.63s'", name);
	if (!json_is_number(value) || !(json_number_value(value) >= 0) ||
	    json_number_value(value) > LOAD_SIGNAL_VALUE_MAX)
		return sl_err_set(err, EINVAL,
				  "'value' must be a number from 0 up, such as 0.63; 1 means fully "
				  "loaded");
	if (text && (!json_is_string(text) ||
		     duration_parse(json_string_value(text), &for_ns, &reason) < 0 || !for_ns ||
		     for_ns > LOAD_SIGNAL_FOR_MAX_NS))
		return sl_err_set(err, EINVAL,
				  "'for' must be a duration up to 1d, such as \"10s\"");
	signal = place(scales, name);
	if (!signal)
		return sl_err_set(err, ENOMEM, "out of memory");
	signal->value = json_number_value(value);
	signal->until_ns = now_ns + for_ns;
	return 0;
}

void load_signal_found(struct scales *scales, const char *name, double value, u64 until_ns)
{
	struct load_signal *signal = place(scales, name);

	if (!signal)
		return;
	signal->value = value;
	signal->until_ns = until_ns;
}

bool load_signal_value(const struct scales *scales, const char *name, u64 now_ns, double *ret)
{
	const struct load_signal *signal = name[0] ? find(scales, name) : NULL;

	if (!signal || signal->until_ns <= now_ns)
		return false;
	*ret = signal->value;
	return true;
}

json_t *load_signal_to_json(const struct scales *scales, const char *name, u64 now_ns)
{
	const struct load_signal *signal = find(scales, name);
	const struct load_signal_def *def = load_signal_def_find(scales->running->policy, name);
	json_t *limits = json_array();
	char words[400];
	bool set = signal && signal->until_ns > now_ns;

	for (size_t i = 0; i < scales->running->policy->limit_count; i++)
		if (uses(&scales->running->policy->limit[i], name))
			json_array_append_new(limits,
					      json_string(scales->running->policy->limit[i].name));
	http_elastic_uses(scales, name, limits);
	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "name", name, "from",
			 def ? json_string(load_source_words(def, words, sizeof(words)))
			     : json_null(),
			 "value", set ? json_real(signal->value) : json_null(), "left_ns",
			 set ? json_integer((json_int_t)(signal->until_ns - now_ns)) : json_null(),
			 "limits", limits);
}

bool load_signal_is_listed(const json_t *list, const char *name)
{
	const json_t *item;
	size_t i;

	json_array_foreach((json_t *)list, i, item)
		if (!strcmp(json_string_value(json_object_get(item, "name")), name))
			return true;
	return false;
}

json_t *load_signals_to_json(const struct scales *scales, u64 now_ns)
{
	const struct policy *policy = scales->running->policy;
	json_t *list = json_array();

	for (size_t i = 0; i < policy->limit_count; i++) {
		const char *name = policy->limit[i].terms.throttle.load_signal;
		bool before = !uses(&policy->limit[i], name);

		for (size_t k = 0; k < i; k++)
			before |= uses(&policy->limit[k], name);
		if (!before)
			json_array_append_new(list, load_signal_to_json(scales, name, now_ns));
	}
	http_elastic_load_signals(scales, now_ns, list);
	for (size_t i = 0; i < policy->load_signal_count; i++)
		if (!load_signal_is_listed(list, policy->load_signal[i].name))
			json_array_append_new(
				list,
				load_signal_to_json(scales, policy->load_signal[i].name, now_ns));
	return list;
}
