// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* syslog_line.c - see syslog_line.h. json_request.c reads the common members. */
#include "request/frontends/syslog/syslog_line.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/rules/request_text.h"

/* ------------------------------------------------------------------ before the JSON object */

static void skip(struct bytes *text, size_t count)
{
	text->at += count;
	text->len -= count;
}

/* Moves past the next `c`; false without one. */
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

/* Moves to the JSON object; false without one. */
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

/* A whole number, which may be quoted. */
static int read_number(struct json_request *request, const char *name, s64 least, s64 most,
		       bool *ret_has, s64 *ret, struct sl_err *err)
{
	json_t *value = json_object_get(request->text.root, name);
	s64 number = json_integer_value(value);
	struct bytes text;
	char copy[24], *end;

	*ret_has = false;
	if (!value || json_is_null(value))
		return 0;
	if (json_is_string(value)) {
		text = json_text_bytes(&request->text, value);
		if (is_absent(text))
			return 0;
		snprintf(copy, sizeof(copy), "%.*s", (int)(text.len < 23 ? text.len : 23), text.at);
		number = strtoll(copy, &end, 10);
		if (text.len > 22 || *end || end == copy || copy[0] == ' ' || copy[0] == '+')
			return sl_err_set(err, EINVAL, "%s: not a whole number", name);
	} else if (!json_is_integer(value)) {
		return sl_err_set(err, EINVAL, "%s: %s; a whole number is required", name,
				  json_kind(value));
	}
	if (number < least || number > most)
		return sl_err_set(err, EINVAL, "%s: %lld to %lld are accepted", name, least, most);
	*ret_has = true;
	*ret = number;
	return 0;
}

/* One object of "d". Its count stays 0 if it is omitted. */
static int read_short(struct json_request *request, json_t *object, struct request_descriptor *ret,
		      struct sl_err *err)
{
	const char *name;
	json_t *value;
	bool missing = false;

	if (!json_is_object(object) || !json_object_size(object))
		return sl_err_set(err, EINVAL, "d: %s; objects of 1 to %d members are accepted",
				  json_is_object(object) ? "an empty one" : json_kind(object),
				  REQUEST_ENTRIES_MAX);
	ret->count = 0;
	ret->beyond = false;
	json_object_foreach(object, name, value) {
		struct bytes key = { name, strlen(name) }, text = { "", 0 };

		if (!json_is_string(value) && !json_is_null(value))
			return sl_err_set(err, EINVAL, "d: %s; a string is required",
					  json_kind(value));
		if (!key.len)
			return sl_err_set(err, EINVAL, "d: a name is empty");
		if (json_is_string(value))
			text = json_text_bytes(&request->text, value);
		missing = missing || is_absent(text);
		/* In place: no other code reads the text. */
		if (bytes_equal(key, "path"))
			text.len = request_path_normal(text, (char *)text.at);
		request_add_entry(ret, key, text);
	}
	if (missing)
		ret->count = 0;
	ret->hits = 1;
	return 0;
}

static int read_shorts(struct json_request *request, json_t *d, struct sl_err *err)
{
	u32 kept = 0;
	int r = 0;

	for (size_t i = 0; !r && i < request->made; i++) {
		struct request_descriptor *descriptor = &request->descriptor[kept];

		r = read_short(request, json_is_array(d) ? json_array_get(d, i) : d, descriptor,
			       err);
		kept += descriptor->count > 0;
	}
	request->request.count = kept;
	return r;
}

static int read_long(struct json_request *request, json_t *descriptors, struct sl_err *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < request->made; i++)
		r = json_request_descriptor(request, json_array_get(descriptors, i), i, true, err);
	request->request.count = request->made;
	return r;
}

static int read_rest(struct json_request *request, bool is_long, struct sl_err *err)
{
	json_t *source = json_object_get(request->text.root, "source");
	bool has_hits, has_status, has_release;
	s64 hits, status;
	/* Above REQUEST_HITS_MAX they count as the maximum: the request has happened. */
	int r = read_number(request, "hits", -LLONG_MAX, LLONG_MAX, &has_hits, &hits, err);

	if (!r)
		r = read_number(request, "status", 0, 999, &has_status, &status, err);
	if (!r)
		r = json_request_at(request, json_object_get(request->text.root, "at"), err);
	if (!r)
		r = json_request_latency(request, true, err);
	if (!r)
		r = json_request_release(request, &has_release, err);
	if (r)
		return r;
	for (u32 i = 0; has_hits && !is_long && i < request->request.count; i++) {
		request->descriptor[i].hits = hits < 0 ? -hits : hits;
		request->descriptor[i].refund = hits < 0;
	}
	request->http_status = has_status ? status : 0;
	if (json_is_string(source))
		request->request.has_source = request_source_parse(
			json_text_bytes(&request->text, source), &request->request.source);
	request->request.report = true;
	return 0;
}

static int read_all(struct json_request *request, json_t *d, json_t *descriptors,
		    struct sl_err *err)
{
	int r = json_request_domain(request, json_object_get(request->text.root, "domain"), err);

	if (!r && d)
		r = read_shorts(request, d, err);
	else if (!r && descriptors)
		r = read_long(request, descriptors, err);
	return r ? r : read_rest(request, !d, err);
}

int syslog_line_read(const char *line, size_t len, struct json_request **ret, struct sl_err *err)
{
	struct bytes text = { line, len };
	struct json_text json;
	struct json_request *request = NULL;
	json_t *d, *descriptors;
	size_t count;
	int r;

	if (!find_object(&text))
		return sl_err_set(err, EINVAL, "no JSON object in the line");
	r = json_text_load(text.at, text.len, &json_request_bounds, &json, err);
	if (r)
		return r;
	d = json_object_get(json.root, "d");
	descriptors = json_object_get(json.root, "descriptors");
	count = d || descriptors;
	if (d ? descriptors != NULL : !descriptors && !json_object_get(json.root, "release"))
		r = sl_err_set(err, EINVAL,
			       "either \"d\" or \"descriptors\" is required, or \"release\"");
	else if (descriptors || json_is_array(d))
		r = json_request_count(d ? d : descriptors, err);
	if (!r && (descriptors || json_is_array(d)))
		count = json_array_size(d ? d : descriptors);
	if (!r) {
		request = json_request_new(&json, count);
		if (!request)
			r = sl_err_set(err, ENOMEM, "out of memory");
	}
	if (r) {
		json_decref(json.root);
		return r;
	}
	r = read_all(request, d, descriptors, err);
	if (r) {
		json_request_free(request);
		return r;
	}
	*ret = request;
	return 0;
}
