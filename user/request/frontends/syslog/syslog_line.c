// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* syslog_line.c - see syslog_line.h. json_call.c reads what both have. */
#include "request/frontends/syslog/syslog_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/rules/call_text.h"

/* ------------------------------------------------------------------ what stands before */

static void skip(struct bytes *text, size_t count)
{
	text->at += count;
	text->len -= count;
}

/* Up to behind the next `c`; false where there is none. */
static bool skip_past(struct bytes *text, char c)
{
	const char *at = memchr(text->at, c, text->len);

	if (!at)
		return false;
	skip(text, at + 1 - text->at);
	return true;
}

/* "[id name="value"]...": a value may hold anything, with a backslash before " and ]. */
static void skip_structured(struct bytes *text)
{
	while (text->len && *text->at == '[') {
		bool quoted = false;

		while (text->len && (quoted || *text->at != ']')) {
			if (*text->at == '\\' && text->len > 1)
				skip(text, 1);
			else if (*text->at == '"')
				quoted = !quoted;
			skip(text, 1);
		}
		if (text->len)
			skip(text, 1);
	}
}

/* To the JSON object; false where there is none. */
static bool find_object(struct bytes *text)
{
	struct bytes rest = *text;
	const char *brace;
	int i;

	if (rest.len && *rest.at == '<' && skip_past(&rest, '>') && rest.len > 2 &&
	    rest.at[0] == '1' && rest.at[1] == ' ') {
		/* RFC 5424: version, time, host, program, process, message id, data */
		for (i = 0; i < 6; i++)
			if (!skip_past(&rest, ' '))
				return false;
		skip_structured(&rest);
		*text = rest;
	}
	brace = memchr(text->at, '{', text->len);
	if (!brace)
		return false;
	skip(text, brace - text->at);
	while (text->len && memchr("\r\n \0", text->at[text->len - 1], 4))
		text->len--;
	return true;
}

/* ------------------------------------------------------------------ members */

static bool is_absent(struct bytes text)
{
	return !text.len || bytes_equal(text, "-");
}

/* A whole number, also in quotes. */
static int read_number(struct json_call *call, const char *name, s64 least, s64 most,
		       bool *ret_has, s64 *ret, struct sl_err *err)
{
	json_t *value = json_object_get(call->text.root, name);
	s64 number = json_integer_value(value);
	struct bytes text;
	char copy[24], *end;

	*ret_has = false;
	if (!value || json_is_null(value))
		return 0;
	if (json_is_string(value)) {
		text = json_text_bytes(&call->text, value);
		if (is_absent(text))
			return 0;
		snprintf(copy, sizeof(copy), "%.*s", (int)(text.len < 23 ? text.len : 23), text.at);
		number = strtoll(copy, &end, 10);
		if (text.len > 22 || *end || end == copy || copy[0] == ' ' || copy[0] == '+')
			return sl_err_set(err, EINVAL, "%s: no whole number", name);
	} else if (!json_is_integer(value)) {
		return sl_err_set(err, EINVAL, "%s: %s, where a whole number is wanted", name,
				  json_kind(value));
	}
	if (number < least || number > most)
		return sl_err_set(err, EINVAL, "%s: %lld to %lld are accepted", name, least, most);
	*ret_has = true;
	*ret = number;
	return 0;
}

/* One object of "d". Its count stays 0 where it is left out. */
static int read_short(struct json_call *call, json_t *object, struct call_descriptor *ret,
		      struct sl_err *err)
{
	const char *name;
	json_t *value;
	u32 count = 0;
	bool missing = false;

	if (!json_is_object(object) || !json_object_size(object) ||
	    json_object_size(object) > CALL_ENTRIES_MAX)
		return sl_err_set(err, EINVAL, "d: %s; objects of 1 to %d members are accepted",
				  json_is_object(object) ? "an empty or too large one" :
				  json_kind(object), CALL_ENTRIES_MAX);
	json_object_foreach(object, name, value) {
		struct call_entry *entry = &ret->entry[count++];

		if (!json_is_string(value) && !json_is_null(value))
			return sl_err_set(err, EINVAL, "d: %s, where a string is wanted",
					  json_kind(value));
		entry->key = (struct bytes){ name, strlen(name) };
		if (!entry->key.len || entry->key.len > CALL_KEY_MAX)
			return sl_err_set(err, EINVAL, "d: a name of %zu bytes; 1 to %d are accepted",
					  entry->key.len, CALL_KEY_MAX);
		entry->value = (struct bytes){ "", 0 };
		if (json_is_string(value))
			entry->value = json_text_bytes(&call->text, value);
		if (entry->value.len > CALL_VALUE_MAX)
			entry->value.len = CALL_VALUE_MAX;
		missing = missing || is_absent(entry->value);
		/* In place: the text is ours, and this is the only one to read it. */
		if (bytes_equal(entry->key, "path"))
			entry->value.len = call_path_normal(entry->value, (char *)entry->value.at);
	}
	ret->count = missing ? 0 : count;
	ret->hits = 1;
	return 0;
}

static int read_shorts(struct json_call *call, json_t *d, struct sl_err *err)
{
	u32 kept = 0;
	int r = 0;

	for (size_t i = 0; !r && i < call->made; i++) {
		struct call_descriptor *descriptor = &call->descriptor[kept];

		r = read_short(call, json_is_array(d) ? json_array_get(d, i) : d, descriptor, err);
		kept += descriptor->count > 0;
	}
	call->call.count = kept;
	return r;
}

static int read_long(struct json_call *call, json_t *descriptors, struct sl_err *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < call->made; i++)
		r = json_call_descriptor(call, json_array_get(descriptors, i), i, true, err);
	call->call.count = call->made;
	return r;
}

static int read_rest(struct json_call *call, bool is_long, struct sl_err *err)
{
	json_t *source = json_object_get(call->text.root, "source");
	bool has_hits, has_status;
	s64 hits, status;
	int r = read_number(call, "hits", -(s64)CALL_HITS_MAX, CALL_HITS_MAX, &has_hits, &hits, err);

	if (!r)
		r = read_number(call, "status", 0, 999, &has_status, &status, err);
	if (!r)
		r = json_call_at(call, json_object_get(call->text.root, "at"), err);
	if (r)
		return r;
	for (u32 i = 0; has_hits && !is_long && i < call->call.count; i++) {
		call->descriptor[i].hits = hits < 0 ? -hits : hits;
		call->descriptor[i].refund = hits < 0;
	}
	call->http_status = has_status ? status : 0;
	if (json_is_string(source))
		call->call.has_source = call_source_parse(json_text_bytes(&call->text, source),
							  &call->call.source);
	call->call.report = true;
	return 0;
}

static int read_all(struct json_call *call, json_t *d, json_t *descriptors, struct sl_err *err)
{
	int r = json_call_domain(call, json_object_get(call->text.root, "domain"), err);

	if (!r)
		r = d ? read_shorts(call, d, err) : read_long(call, descriptors, err);
	return r ? r : read_rest(call, !d, err);
}

int syslog_line_read(const char *line, size_t len, struct json_call **ret, struct sl_err *err)
{
	struct bytes text = { line, len };
	struct json_text json;
	struct json_call *call = NULL;
	json_t *d, *descriptors;
	size_t count = 1;
	int r;

	if (!find_object(&text))
		return sl_err_set(err, EINVAL, "no JSON object in the line");
	r = json_text_load(text.at, text.len, &json_call_bounds, &json, err);
	if (r)
		return r;
	d = json_object_get(json.root, "d");
	descriptors = json_object_get(json.root, "descriptors");
	if (!d == !descriptors)
		r = sl_err_set(err, EINVAL, "one of \"d\" and \"descriptors\" is wanted");
	else if (descriptors || json_is_array(d))
		r = json_call_count(d ? d : descriptors, err);
	if (!r && (descriptors || json_is_array(d)))
		count = json_array_size(d ? d : descriptors);
	if (!r) {
		call = json_call_new(&json, count);
		if (!call)
			r = sl_err_set(err, ENOMEM, "out of memory");
	}
	if (r) {
		json_decref(json.root);
		return r;
	}
	r = read_all(call, d, descriptors, err);
	if (r) {
		json_call_free(call);
		return r;
	}
	*ret = call;
	return 0;
}
