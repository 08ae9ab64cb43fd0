// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* json_request.c - see json_request.h: what both have in common, and the requests of /v1.
 * json_rls.c has Envoy's. */
#include "request/rules/json_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/rules/permit.h"
#include "request/rules/request_text.h"
#include "lib/units.h"

#define ID_MAX 256
#define LATENCY_MAX_NS (86400.0 * SL_NS_PER_SEC)
#define SEC SL_NS_PER_SEC
/* 32 descriptors of 16 entries with two members each, and what stands around them, twice over. */
const struct json_bounds json_request_bounds = { .depth = 8, .values = 4096 };

int json_request_known(json_t *object, const char *const *known, const char *place,
		       struct sl_err *err)
{
	char list[256] = "";
	size_t used = 0, found = 0, i;

	for (i = 0; known[i]; i++)
		found += json_object_get(object, known[i]) != NULL;
	if (found == json_object_size(object))
		return 0;
	for (i = 0; known[i] && used < sizeof(list); i++)
		used += snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", known[i]);
	return sl_err_set(err, EINVAL, "%s: unknown member; accepted: %s", place, list);
}

struct json_request *json_request_new(const struct json_text *text, size_t descriptors)
{
	struct json_request *request =
		calloc(1, sizeof(*request) + descriptors * sizeof(request->descriptor[0]));

	if (!request)
		return NULL;
	request->text = *text;
	request->request.descriptor = request->descriptor;
	request->made = descriptors;
	request->latency_ns = ~0ULL;
	return request;
}

void json_request_free(void *frontend)
{
	struct json_request *request = frontend;

	if (!request)
		return;
	json_decref(request->text.root);
	free(request);
}

int json_request_domain(struct json_request *request, json_t *domain, struct sl_err *err)
{
	if (!json_is_string(domain))
		return sl_err_set(err, EINVAL, "domain: %s; a string is required",
				  json_kind(domain));
	request->request.domain = json_text_bytes(&request->text, domain);
	if (!request->request.domain.len)
		return sl_err_set(err, EINVAL, "domain: it is empty");
	return 0;
}

int json_request_count(json_t *descriptors, struct sl_err *err)
{
	size_t count = json_array_size(descriptors);

	if (!json_is_array(descriptors))
		return sl_err_set(err, EINVAL, "descriptors: %s; an array is required",
				  json_kind(descriptors));
	if (!count)
		return sl_err_set(err, EINVAL, "descriptors: none found; 1 to %d are accepted",
				  REQUEST_DESCRIPTORS_MAX);
	if (count > REQUEST_DESCRIPTORS_MAX)
		return sl_err_set(err, E2BIG, "descriptors: found %zu; 1 to %d are accepted", count,
				  REQUEST_DESCRIPTORS_MAX);
	return 0;
}

int json_request_beyond(struct json_request *request, struct sl_err *err, struct json_request **ret)
{
	struct sl_err why = *err;
	int r = 0;

	if (!request)
		request = json_request_new(&(struct json_text){ .root = NULL }, 0);
	if (!request)
		return sl_err_set(err, ENOMEM, "out of memory");
	if (request->text.root && !request->request.domain.at)
		r = json_request_domain(request, json_object_get(request->text.root, "domain"),
					err);
	if (r) {
		json_request_free(request);
		return r;
	}
	snprintf(request->beyond, sizeof(request->beyond), "%.*s", (int)sizeof(request->beyond) - 1,
		 why.message);
	request->request.beyond = request->beyond;
	request->request.count = 0;
	*ret = request;
	return 0;
}

/* A string, or nothing if `empty` permits it. */
static int read_string(struct json_request *request, json_t *string, bool empty, struct bytes *ret,
		       const char *place, const char *name, struct sl_err *err)
{
	*ret = (struct bytes){ "", 0 };
	if (empty && (!string || json_is_null(string)))
		return 0;
	if (!json_is_string(string))
		return sl_err_set(err, EINVAL, "%s.%s: %s; a string is required", place, name,
				  json_kind(string));
	*ret = json_text_bytes(&request->text, string);
	return 0;
}

static int read_entry(struct json_request *request, json_t *entry, struct request_entry *ret,
		      const char *place, bool protojson, struct sl_err *err)
{
	static const char *const known[] = { "key", "value", NULL };
	int r;

	if (!json_is_object(entry))
		return sl_err_set(err, EINVAL, "%s: %s; an object is required", place,
				  json_kind(entry));
	r = json_request_known(entry, known, place, err);
	if (!r)
		r = read_string(request, json_object_get(entry, "key"), protojson, &ret->key, place,
				"key", err);
	if (!r)
		r = read_string(request, json_object_get(entry, "value"), protojson, &ret->value,
				place, "value", err);
	if (!r && !ret->key.len && !protojson)
		return sl_err_set(err, EINVAL, "%s.key: it is empty", place);
	return r;
}

int json_request_entries(struct json_request *request, json_t *entries,
			 struct request_descriptor *ret, const char *place, bool protojson,
			 struct sl_err *err)
{
	struct request_entry entry;
	size_t count = json_array_size(entries), i;
	char at[64];
	int r = 0;

	if (protojson && (!entries || json_is_null(entries)))
		return 0;
	if (!json_is_array(entries))
		return sl_err_set(err, EINVAL, "%s.entries: %s; an array is required", place,
				  json_kind(entries));
	if (!count && !protojson)
		return sl_err_set(err, EINVAL, "%s.entries: none found; 1 to %d are accepted",
				  place, REQUEST_ENTRIES_MAX);
	for (i = 0; i < count && !r; i++) {
		snprintf(at, sizeof(at), "%s.entries[%zu]", place, i);
		r = read_entry(request, json_array_get(entries, i), &entry, at, protojson, err);
		if (!r && protojson)
			request_add_entry_or_source(&request->request, ret, entry.key, entry.value);
		else if (!r)
			request_add_entry(ret, entry.key, entry.value);
	}
	return r;
}

static int read_hits(json_t *hits, bool report, struct request_descriptor *ret, const char *place,
		     struct sl_err *err)
{
	long long n = json_integer_value(hits);

	ret->hits = 1;
	if (!hits)
		return 0;
	if (!json_is_integer(hits))
		return sl_err_set(err, EINVAL, "%s.hits: %s; a whole number is required", place,
				  json_is_real(hits) ? "a fraction" : json_kind(hits));
	if (n < 0 && !report)
		return sl_err_set(err, EINVAL, "%s.hits: below 0; that is a refund, for /v1/report",
				  place);
	if (report && (n > (long long)REQUEST_HITS_MAX || n < -(long long)REQUEST_HITS_MAX))
		return sl_err_set(err, EINVAL, "%s.hits: out of range; -%llu to %llu are accepted",
				  place, REQUEST_HITS_MAX, REQUEST_HITS_MAX);
	ret->hits = n < 0 ? -n : n;
	ret->refund = n < 0;
	return 0;
}

int json_request_descriptor(struct json_request *request, json_t *object, size_t index, bool report,
			    struct sl_err *err)
{
	static const char *const known[] = { "entries", "hits", NULL };
	struct request_descriptor *descriptor = &request->descriptor[index];
	char place[32];
	int r;

	snprintf(place, sizeof(place), "descriptors[%zu]", index);
	if (!json_is_object(object))
		return sl_err_set(err, EINVAL, "%s: %s; an object is required", place,
				  json_kind(object));
	r = json_request_known(object, known, place, err);
	if (!r)
		r = json_request_entries(request, json_object_get(object, "entries"), descriptor,
					 place, false, err);
	if (!r)
		r = read_hits(json_object_get(object, "hits"), report, descriptor, place, err);
	return r;
}

/* Members of checks and reports. */
static int read_request(struct json_request *request, bool report, struct sl_err *err)
{
	json_t *root = request->text.root, *source = json_object_get(root, "source");
	size_t i;
	int r;

	r = json_request_domain(request, json_object_get(root, "domain"), err);
	for (i = 0; i < request->made && !r; i++)
		r = json_request_descriptor(request,
					    json_array_get(json_object_get(root, "descriptors"), i),
					    i, report, err);
	if (r)
		return r;
	request->request.count = request->made;
	if (source && !json_is_null(source) && !json_is_string(source))
		return sl_err_set(err, EINVAL, "source: %s; a string is required",
				  json_kind(source));
	if (json_is_string(source))
		request->request.has_source = request_source_parse(
			json_text_bytes(&request->text, source), &request->request.source);
	return 0;
}

/* -E2BIG: with a request if one was read, else NULL. */
static int load(const char *text, size_t len, const char *const *known, struct json_request **ret,
		struct sl_err *err)
{
	struct json_text json;
	int r;

	r = json_text_load(text, len, &json_request_bounds, &json, err);
	if (r)
		return r;
	if (!json_is_object(json.root))
		r = sl_err_set(err, EINVAL, "%s; an object is required", json_kind(json.root));
	else
		r = json_request_known(json.root, known, "the request", err);
	/* The end of a request needs no more than its permit. */
	if (!r &&
	    (json_object_get(json.root, "descriptors") || !json_object_get(json.root, "release")))
		r = json_request_count(json_object_get(json.root, "descriptors"), err);
	if (r && r != -E2BIG) {
		json_decref(json.root);
		return r;
	}
	*ret = json_request_new(&json,
				r ? 0 : json_array_size(json_object_get(json.root, "descriptors")));
	if (*ret)
		return r;
	json_decref(json.root);
	return sl_err_set(err, ENOMEM, "out of memory");
}

int json_request_check(const char *text, size_t len, struct json_request **ret, struct sl_err *err)
{
	struct json_request *request = json_request_plain(text, len);

	if (!request)
		return json_request_tree(text, len, ret, err);
	*ret = request;
	return 0;
}

static int read_reference(struct json_request *request, struct sl_err *err)
{
	json_t *reference = json_object_get(request->text.root, "reference");

	if (!reference || json_is_null(reference))
		return 0;
	if (json_is_string(reference))
		request->request.reference = json_text_bytes(&request->text, reference);
	if (json_is_string(reference) && request_reference_ok(request->request.reference))
		return 0;
	return sl_err_set(err, EINVAL,
			  "reference: %s; a string of 1 to %d bytes without control characters is "
			  "required",
			  json_is_string(reference) ? "not such a one" : json_kind(reference),
			  REQUEST_REFERENCE_MAX);
}

int json_request_tree(const char *text, size_t len, struct json_request **ret, struct sl_err *err)
{
	static const char *const known[] = {
		"domain", "descriptors", "source", "peek", "reference", NULL,
	};
	struct json_request *request = NULL;
	json_t *peek;
	int r;

	r = load(text, len, known, &request, err);
	if (r == -E2BIG)
		return json_request_beyond(request, err, ret);
	if (r)
		return r;
	peek = json_object_get(request->text.root, "peek");
	r = read_request(request, false, err);
	if (!r && peek && !json_is_boolean(peek))
		r = sl_err_set(err, EINVAL, "peek: %s; true or false is required", json_kind(peek));
	if (!r)
		r = read_reference(request, err);
	if (r) {
		json_request_free(request);
		return r;
	}
	request->request.peek = json_is_true(peek);
	*ret = request;
	return 0;
}

/* Seconds since 1970 as nginx's $msec has them, or RFC 3339 text. */
int json_request_at(struct json_request *request, json_t *at, struct sl_err *err)
{
	const char *words = "not a time";
	double seconds = json_number_value(at);

	if (!at)
		return 0;
	if (json_is_string(at)) {
		struct bytes text = json_text_bytes(&request->text, at);

		if (!request_time_parse(text, &request->request.at_utc_ns))
			return sl_err_set(err, EINVAL,
					  "at: %s; accepted are seconds since 1970 and "
					  "2030-01-31T12:00:00Z",
					  words);
		return 0;
	}
	if (!json_is_number(at))
		return sl_err_set(err, EINVAL, "at: %s; a number or a string is required",
				  json_kind(at));
	if (!(seconds >= 1 && seconds < 9e9)) /* the year 2255 */
		return sl_err_set(err, EINVAL,
				  "at: %s; accepted are seconds since 1970 and "
				  "2030-01-31T12:00:00Z",
				  words);
	if (json_is_integer(at))
		request->request.at_utc_ns = (u64)json_integer_value(at) * SEC;
	else
		request->request.at_utc_ns = (u64)(seconds * 1e6 + 0.5) * 1000;
	return 0;
}

/* True if it is absent. */
static bool read_seconds(struct json_request *request, json_t *value, bool text, double *ret)
{
	struct bytes bytes;
	char copy[32], *end;

	*ret = json_is_number(value) ? json_number_value(value) : -1;
	if (!value || (text && json_is_null(value)))
		return true;
	if (!text || !json_is_string(value))
		return false;
	bytes = json_text_bytes(&request->text, value);
	if (!bytes.len || (bytes.len == 1 && *bytes.at == '-'))
		return true;
	if (bytes.len >= sizeof(copy) || *bytes.at < '0' || *bytes.at > '9')
		return false;
	memcpy(copy, bytes.at, bytes.len);
	copy[bytes.len] = 0;
	*ret = strtod(copy, &end);
	if (*end || end != copy + bytes.len)
		*ret = -1;
	return false;
}

int json_request_latency(struct json_request *request, bool text, struct sl_err *err)
{
	static const struct {
		const char *name;
		double ns;
	} unit[] = {
		{ "latency", 1e9 },
		{ "latency_ms", 1e6 },
	};

	for (int i = 0; i < 2; i++) {
		double value;

		if (read_seconds(request, json_object_get(request->text.root, unit[i].name), text,
				 &value))
			continue;
		value *= unit[i].ns;
		if (!(value >= 0 && value <= LATENCY_MAX_NS))
			return sl_err_set(err, EINVAL,
					  "%s: a number from 0 up to a day is accepted",
					  unit[i].name);
		request->latency_ns = value;
	}
	return 0;
}

int json_request_release(struct json_request *request, bool *ret_has, struct sl_err *err)
{
	json_t *release = json_object_get(request->text.root, "release");
	struct bytes text;

	*ret_has = release;
	if (!release || json_is_null(release))
		return 0;
	if (!json_is_string(release))
		return sl_err_set(err, EINVAL, "release: %s; a string is required",
				  json_kind(release));
	text = json_text_bytes(&request->text, release);
	if (!text.len || bytes_equal(text, "-") || permit_parse(text, &request->request.release))
		return 0;
	return sl_err_set(err, EINVAL,
			  "release: no permit; the permit of the check's response is accepted");
}

static int read_report(struct json_request *request, struct sl_err *err)
{
	json_t *id = json_object_get(request->text.root, "id");
	json_t *status = json_object_get(request->text.root, "status");
	bool has_release;
	int r;

	r = json_request_at(request, json_object_get(request->text.root, "at"), err);
	if (r)
		return r;
	if (id) {
		if (!json_is_string(id))
			return sl_err_set(err, EINVAL, "id: %s; a string is required",
					  json_kind(id));
		request->id = json_text_bytes(&request->text, id);
		if (!request->id.len || request->id.len > ID_MAX)
			return sl_err_set(err, EINVAL, "id: %zu bytes; 1 to %d are accepted",
					  request->id.len, ID_MAX);
	}
	if (status) {
		if (!json_is_integer(status))
			return sl_err_set(err, EINVAL, "status: %s; a whole number is required",
					  json_kind(status));
		if (json_integer_value(status) < 100 || json_integer_value(status) > 999)
			return sl_err_set(err, EINVAL, "status: 100 to 999 are accepted");
		request->http_status = json_integer_value(status);
	}
	r = json_request_release(request, &has_release, err);
	return r ? r : json_request_latency(request, false, err);
}

int json_request_report(const char *text, size_t len, struct json_request **ret, struct sl_err *err)
{
	static const char *const known[] = {
		"domain", "descriptors", "source",     "at",	  "id",
		"status", "latency",	 "latency_ms", "release", NULL,
	};
	struct json_request *request = NULL;
	int r;

	r = load(text, len, known, &request, err);
	if (!r)
		r = read_request(request, true, err);
	if (!r)
		r = read_report(request, err);
	if (r) {
		json_request_free(request);
		return r;
	}
	request->request.report = true;
	*ret = request;
	return 0;
}
