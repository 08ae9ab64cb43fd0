// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* query_call.c - see query_call.h. */
#include "request/frontends/http1/query_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request/rules/call_text.h"
#include "lib/units.h"

char *query_call_room(struct query_call *call, size_t size)
{
	char *at = call->text;

	if ((size_t)(call->text_end - at) < size)
		return NULL;
	call->text += size;
	return at;
}

void query_call_free(void *call)
{
	free(call);
}

struct bytes query_call_path(const struct http1_request *request, struct query_call *call,
			     const char *header)
{
	struct bytes uri = http1_find(request, header);
	char *to = call->path.at ? NULL : query_call_room(call, uri.len);

	if (uri.len && to)
		call->path = (struct bytes){ to, call_path_normal(uri, to) };
	return call->path;
}

/* A part of the query as terminated text. Errors: no room, a bad escape, a NUL. */
static char *decode(struct query_call *call, const char *at, size_t len)
{
	char *text = query_call_room(call, len + 1), *to = text;
	size_t i;

	for (i = 0; text && i < len; i++) {
		int high = -1, low = -1;

		if (at[i] != '%') {
			*to++ = at[i] == '+' ? ' ' : at[i];
			continue;
		}
		if (i + 2 < len) {
			high = hex_digit(at[i + 1]);
			low = hex_digit(at[i + 2]);
		}
		if (high < 0 || low < 0 || !(high | low))
			return NULL;
		*to++ = high << 4 | low;
		i += 2;
	}
	if (text)
		*to = 0;
	return text;
}

/* One entry: KEY, KEY:WHERE or KEY=TEXT. *ret_there: the client sent a value. */
static int read_entry(const struct http1_request *request, struct query_call *call, char *text,
		      query_value_fn value, struct call_entry *ret, bool *ret_there,
		      struct sl_err *err)
{
	char *end = text + strcspn(text, ":="), mark = *end;
	const char *where = "";
	int r;

	if (mark) {
		*end = 0;
		where = end + 1;
	}
	ret->key = (struct bytes){ text, strlen(text) };
	if (!ret->key.len || ret->key.len > CALL_KEY_MAX)
		return sl_err_set(err, EINVAL, "d: a key of %zu bytes; 1 to %d are accepted",
				  ret->key.len, CALL_KEY_MAX);
	if (mark == '=') {
		ret->value = (struct bytes){ where, strlen(where) };
		*ret_there = true;
		return 0;
	}
	if (mark && !*where)
		return sl_err_set(err, EINVAL, "d=%s: nothing stands behind the colon", text);
	ret->value = (struct bytes){ NULL, 0 };
	r = value(request, call, text, where, &ret->value, err);
	if (r)
		return r;
	if (ret->value.len > CALL_VALUE_MAX)
		ret->value.len = CALL_VALUE_MAX;
	*ret_there = ret->value.len > 0;
	return 0;
}

/* One `d`. It is in the call where all its values are there. */
static int read_descriptor(const struct http1_request *request, struct query_call *call,
			   char *text, query_value_fn value, struct sl_err *err)
{
	struct call_descriptor *descriptor = &call->descriptor[call->call.count];
	bool all = true, there = false;
	char *next;
	int r;

	descriptor->count = 0;
	for (; text; text = next) {
		next = strchr(text, ',');
		if (next)
			*next++ = 0;
		if (descriptor->count == CALL_ENTRIES_MAX)
			return sl_err_set(err, EINVAL, "d: more than %d entries", CALL_ENTRIES_MAX);
		r = read_entry(request, call, text, value, &descriptor->entry[descriptor->count],
			       &there, err);
		if (r)
			return r;
		descriptor->count++;
		all &= there;
	}
	call->call.count += all;
	return 0;
}

static int read_parameter(const struct http1_request *request, struct query_call *call,
			  const char *name, char *value, query_value_fn value_of,
			  query_parameter_fn parameter, u64 *hits, struct sl_err *err)
{
	const char *reason;
	int r;

	if (!strcmp(name, "d"))
		return read_descriptor(request, call, value, value_of, err);
	if (!strcmp(name, "domain")) {
		if (call->call.domain.at || !*value || strlen(value) > CALL_DOMAIN_MAX)
			return sl_err_set(err, EINVAL, "domain: one, of 1 to %d bytes, is accepted",
					  CALL_DOMAIN_MAX);
		call->call.domain = (struct bytes){ value, strlen(value) };
		return 0;
	}
	if (!strcmp(name, "hits")) {
		if (count_parse(value, hits, &reason) || *hits > CALL_HITS_MAX)
			return sl_err_set(err, EINVAL, "hits: 0 to %llu are accepted",
					  CALL_HITS_MAX);
		return 0;
	}
	r = parameter ? parameter(request, call, name, value, err) : -ENOENT;
	if (r != -ENOENT)
		return r;
	return sl_err_set(err, EINVAL, "%.64s: no such parameter; accepted: domain, d, hits%s", name,
			  parameter ? ", source" : "");
}

static int read_query(const struct http1_request *request, struct query_call *call,
		      query_value_fn value_of, query_parameter_fn parameter, struct sl_err *err)
{
	const char *at = request->query.at, *end = at + request->query.len, *stop, *equals;
	char *name, *value;
	u64 hits = 1;
	int r;

	for (; at < end; at = stop + 1) {
		stop = memchr(at, '&', end - at);
		if (!stop)
			stop = end;
		equals = memchr(at, '=', stop - at);
		if (stop == at)
			continue;
		if (!equals)
			return sl_err_set(err, EINVAL, "the query: a parameter without '='");
		/* A name is not decoded, so that it is what count_descriptors() counted. */
		name = query_call_room(call, equals - at + 1);
		value = decode(call, equals + 1, stop - equals - 1);
		if (!name || !value)
			return sl_err_set(err, EINVAL, "the query: '%%' begins no escape");
		memcpy(name, at, equals - at);
		name[equals - at] = 0;
		r = read_parameter(request, call, name, value, value_of, parameter, &hits, err);
		if (r)
			return r;
	}
	if (!call->call.domain.len)
		return sl_err_set(err, EINVAL, "domain is missing");
	for (u32 i = 0; i < call->call.count; i++)
		call->descriptor[i].hits = hits;
	return 0;
}

/* How many `d` there are, at least: "d=" at the beginning of a parameter. */
static size_t count_descriptors(struct bytes query)
{
	size_t count = 0, i;

	for (i = 0; i + 1 < query.len; i++)
		count += (!i || query.at[i - 1] == '&') && query.at[i] == 'd' &&
			 query.at[i + 1] == '=';
	return count;
}

int query_call_read(const struct http1_request *request, query_value_fn value,
		    query_parameter_fn parameter, size_t room, const char *uri_header,
		    struct query_call **ret, struct sl_err *err)
{
	size_t count = count_descriptors(request->query), fixed;
	struct query_call *call;
	int r;

	if (!count || count > CALL_DESCRIPTORS_MAX)
		return sl_err_set(err, EINVAL, "d: %zu of them; 1 to %d are accepted", count,
				  CALL_DESCRIPTORS_MAX);
	fixed = sizeof(*call) + count * sizeof(call->descriptor[0]);
	/* The path is copied; each part of the query loses its '=' or '&' to a NUL. */
	room += http1_find(request, uri_header).len + request->query.len + 2;
	call = malloc(fixed + room);
	if (!call)
		return sl_err_set(err, ENOMEM, "out of memory");
	memset(call, 0, fixed);
	call->text = (char *)call + fixed;
	call->text_end = call->text + room;
	call->call.descriptor = call->descriptor;
	r = read_query(request, call, value, parameter, err);
	if (r) {
		free(call);
		return r;
	}
	*ret = call;
	return 0;
}
