// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* query_request.c - see query_request.h. */
#include "request/frontends/http1/query_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request/rules/request_text.h"
#include "lib/units.h"

char *query_request_room(struct query_request *rl_request, size_t size)
{
	char *at = rl_request->text;

	if ((size_t)(rl_request->text_end - at) < size)
		return NULL;
	rl_request->text += size;
	return at;
}

void query_request_free(void *rl_request)
{
	free(rl_request);
}

struct bytes query_request_path(const struct http1_request *request,
				struct query_request *rl_request, const char *header)
{
	struct bytes uri = http1_find(request, header);
	char *to = rl_request->path.at ? NULL : query_request_room(rl_request, uri.len);

	if (uri.len && to)
		rl_request->path = (struct bytes){ to, request_path_normal(uri, to) };
	return rl_request->path;
}

/* A part of the query, decoded and terminated. Errors: no room, a bad escape, a NUL. */
static char *decode(struct query_request *rl_request, const char *at, size_t len)
{
	char *text = query_request_room(rl_request, len + 1), *to = text;
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
static int read_entry(const struct http1_request *request, struct query_request *rl_request,
		      char *text, query_value_fn value, struct request_entry *ret, bool *ret_there,
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
	if (!ret->key.len || ret->key.len > REQUEST_KEY_MAX)
		return sl_err_set(err, EINVAL, "d: a key of %zu bytes; 1 to %d are accepted",
				  ret->key.len, REQUEST_KEY_MAX);
	if (mark == '=') {
		ret->value = (struct bytes){ where, strlen(where) };
		*ret_there = true;
		return 0;
	}
	if (mark && !*where)
		return sl_err_set(err, EINVAL, "d=%s: no text after the colon", text);
	ret->value = (struct bytes){ NULL, 0 };
	r = value(request, rl_request, text, where, &ret->value, err);
	if (r)
		return r;
	*ret_there = ret->value.len > 0;
	return 0;
}

/* One `d`. It is part of the request if all its values are there. */
static int read_descriptor(const struct http1_request *request, struct query_request *rl_request,
			   char *text, query_value_fn value, struct sl_err *err)
{
	struct request_descriptor *descriptor;
	struct request_entry entry;
	bool all = true, there = false;
	char *next;
	int r;

	rl_request->last = NULL;
	if (rl_request->request.beyond)
		return 0;
	if (rl_request->read++ == REQUEST_DESCRIPTORS_MAX) {
		rl_request->request.beyond = REQUEST_DESCRIPTORS_BEYOND;
		return 0;
	}
	descriptor = &rl_request->descriptor[rl_request->request.count];
	descriptor->count = 0;
	descriptor->beyond = false;
	for (; text; text = next) {
		next = strchr(text, ',');
		if (next)
			*next++ = 0;
		r = read_entry(request, rl_request, text, value, &entry, &there, err);
		if (r)
			return r;
		request_add_entry(descriptor, entry.key, entry.value);
		all &= there;
	}
	rl_request->request.count += all;
	if (all)
		rl_request->last = descriptor;
	return 0;
}

/* Both of two limits hold: of one unit the smaller, of several the descriptor is there once for
 * each. */
static void add_limit(struct query_request *rl_request, u64 count, enum request_unit unit)
{
	struct request *request = &rl_request->request;
	struct request_descriptor *at = rl_request->last,
				  *end = &rl_request->descriptor[request->count];

	if (!at || request->beyond)
		return;
	while (at < end && at->limit_unit != unit && at->limit_unit != REQUEST_UNIT_UNKNOWN)
		at++;
	if (at < end && at->limit_unit == unit) {
		at->limit_requests = count < at->limit_requests ? count : at->limit_requests;
		return;
	}
	if (at == end && rl_request->read++ == REQUEST_DESCRIPTORS_MAX) {
		request->beyond = REQUEST_DESCRIPTORS_BEYOND;
		return;
	}
	if (at == end) {
		*at = *rl_request->last;
		request->count++;
	}
	at->limit_requests = count;
	at->limit_unit = unit;
}

/* COUNT/UNIT: a limit of the `d` before it. */
static int read_limit(struct query_request *rl_request, char *text, struct sl_err *err)
{
	static const struct {
		const char *name;
		enum request_unit unit;
	} units[] = {
		{ "s", REQUEST_UNIT_SECOND }, { "m", REQUEST_UNIT_MINUTE },
		{ "h", REQUEST_UNIT_HOUR },   { "d", REQUEST_UNIT_DAY },
		{ "w", REQUEST_UNIT_WEEK },
	};
	char *slash = strchr(text, '/');
	const char *reason;
	u64 count;

	if (!rl_request->read)
		return sl_err_set(err, EINVAL, "limit: it must follow the d that it is for");
	if (slash)
		*slash = 0;
	for (size_t i = 0; slash && i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(slash + 1, units[i].name))
			continue;
		if (count_parse(text, &count, &reason) || count > REQUEST_HITS_MAX)
			break;
		add_limit(rl_request, count, units[i].unit);
		return 0;
	}
	if (slash)
		*slash = '/';
	return sl_err_set(err, EINVAL,
			  "limit: found '%.64s'; accepted: COUNT/UNIT, as 10/s; COUNT: 0 to %llu, "
			  "UNIT: s, m, h, d, w",
			  text, REQUEST_HITS_MAX);
}

static int read_parameter(const struct http1_request *request, struct query_request *rl_request,
			  const char *name, char *value, query_value_fn value_of,
			  query_parameter_fn parameter, u64 *hits, struct sl_err *err)
{
	const char *reason;
	int r;

	if (!strcmp(name, "d"))
		return read_descriptor(request, rl_request, value, value_of, err);
	if (!strcmp(name, "limit"))
		return read_limit(rl_request, value, err);
	if (!strcmp(name, "domain")) {
		if (rl_request->request.domain.at || !*value)
			return sl_err_set(err, EINVAL,
					  "domain: exactly one of 1 byte or more is accepted");
		rl_request->request.domain = (struct bytes){ value, strlen(value) };
		return 0;
	}
	if (!strcmp(name, "hits")) {
		if (!count_parse(value, hits, &reason))
			return 0;
		if (!*value || value[strspn(value, "0123456789")])
			return sl_err_set(err, EINVAL, "hits: found '%.64s'; accepted: 0 to %llu",
					  value, REQUEST_HITS_MAX);
		*hits = ~0ULL; /* still a number, and a client may have made it */
		return 0;
	}
	r = parameter ? parameter(request, rl_request, name, value, err) : -ENOENT;
	if (r != -ENOENT)
		return r;
	return sl_err_set(err, EINVAL,
			  "%.64s: unknown parameter; accepted: domain, d, limit, hits%s", name,
			  parameter ? ", source" : "");
}

static int read_query(const struct http1_request *request, struct query_request *rl_request,
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
			return sl_err_set(err, EINVAL, "query: a parameter without '='");
		/* Names are not decoded, so that this matches count_parameters(). */
		name = query_request_room(rl_request, equals - at + 1);
		value = decode(rl_request, equals + 1, stop - equals - 1);
		if (!name || !value)
			return sl_err_set(err, EINVAL, "query: invalid escape after '%%'");
		memcpy(name, at, equals - at);
		name[equals - at] = 0;
		r = read_parameter(request, rl_request, name, value, value_of, parameter, &hits,
				   err);
		if (r)
			return r;
	}
	if (!rl_request->request.domain.len)
		return sl_err_set(err, EINVAL, "domain is missing");
	if (rl_request->request.beyond)
		rl_request->request.count = 0;
	for (u32 i = 0; i < rl_request->request.count; i++)
		rl_request->descriptor[i].hits = hits;
	return 0;
}

/* The number of parameters of that name, at least: "d=" at the beginning of a parameter. */
static size_t count_parameters(struct bytes query, const char *name)
{
	size_t count = 0, len = strlen(name), i;

	for (i = 0; i + len <= query.len; i++)
		count += (!i || query.at[i - 1] == '&') && !memcmp(query.at + i, name, len);
	return count;
}

int query_request_read(const struct http1_request *request, query_value_fn value,
		       query_parameter_fn parameter, size_t room, const char *uri_header,
		       struct query_request **ret, struct sl_err *err)
{
	size_t count = count_parameters(request->query, "d="), fixed;
	struct query_request *rl_request;
	int r;

	if (!count)
		return sl_err_set(err, EINVAL, "d: none found; 1 to %d are accepted",
				  REQUEST_DESCRIPTORS_MAX);
	/* A second limit of a `d` takes one more. */
	count += count_parameters(request->query, "limit=");
	if (count > REQUEST_DESCRIPTORS_MAX)
		count = REQUEST_DESCRIPTORS_MAX;
	fixed = sizeof(*rl_request) + count * sizeof(rl_request->descriptor[0]);
	/* The path is copied; each part of the query loses its '=' or '&' to a NUL. */
	room += http1_find(request, uri_header).len + request->query.len + 2;
	rl_request = malloc(fixed + room);
	if (!rl_request)
		return sl_err_set(err, ENOMEM, "out of memory");
	memset(rl_request, 0, fixed);
	rl_request->text = (char *)rl_request + fixed;
	rl_request->text_end = rl_request->text + room;
	rl_request->request.descriptor = rl_request->descriptor;
	r = read_query(request, rl_request, value, parameter, err);
	if (r) {
		free(rl_request);
		return r;
	}
	*ret = rl_request;
	return 0;
}
