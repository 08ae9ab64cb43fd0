// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * json_rls.c - reads RateLimitRequest of envoy.service.ratelimit.v3 from protojson (see
 * json_request.h).
 *
 * The mapping is proto3's: lowerCamelCase or the proto's own names, null is the default, enums
 * by name or number, integers of any width as numbers or strings, a wrapper (UInt64Value) as
 * its value.
 */
#include "request/rules/json_request.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/rules/request_text.h"

/* A member by its two names; NULL if absent or null. -EINVAL if both are there. */
static int member(json_t *object, const char *camel, const char *snake, json_t **ret,
		  struct sl_err *err)
{
	json_t *a = json_object_get(object, camel), *b = json_object_get(object, snake);

	if (a && b)
		return sl_err_set(err, EINVAL, "%s and %s are the same member", camel, snake);
	*ret = a ? a : b;
	if (json_is_null(*ret))
		*ret = NULL;
	return 0;
}

/* A whole number of 0..most as a number or a string; beyond 64 bits it becomes the largest. */
static int read_number(const struct json_text *text, json_t *value, u64 most, const char *place,
		       u64 *ret, struct sl_err *err)
{
	double real = json_real_value(value);
	struct bytes digits;
	u64 n = 0;
	size_t i;

	if (json_is_integer(value) && json_integer_value(value) >= 0) {
		n = json_integer_value(value);
	} else if (json_is_real(value) && real >= 0 && real == floor(real)) {
		n = real < 1e19 ? (u64)real : ~0ULL;
	} else if (json_is_string(value)) {
		digits = json_text_bytes(text, value);
		for (i = 0; i < digits.len && digits.at[i] >= '0' && digits.at[i] <= '9'; i++)
			n = n > (~0ULL - 9) / 10 ? ~0ULL : n * 10 + (digits.at[i] - '0');
		if (!digits.len || i < digits.len)
			return sl_err_set(err, EINVAL, "%s: the string is not a number", place);
	} else {
		return sl_err_set(err, EINVAL, "%s: %s; a whole number is required", place,
				  json_is_number(value) ? "another number" : json_kind(value));
	}
	if (n > most)
		return sl_err_set(err, EINVAL, "%s: too large; 0 to %llu are accepted", place,
				  most);
	*ret = n;
	return 0;
}

/* envoy.type.v3.RateLimitUnit, and WEEK of the response's enum. */
static int read_unit(const struct json_text *text, json_t *value, const char *place,
		     enum request_unit *ret, struct sl_err *err)
{
	struct bytes name =
		json_is_string(value) ? json_text_bytes(text, value) : (struct bytes){ 0 };

	for (enum request_unit unit = REQUEST_UNIT_SECOND; unit < REQUEST_UNIT_COUNT; unit++) {
		if (json_is_integer(value) ? json_integer_value(value) == unit
					   : bytes_equal(name, request_units[unit].capitals)) {
			*ret = unit;
			return 0;
		}
	}
	return sl_err_set(err,
			  !value || json_is_null(value) || json_is_integer(value) ||
					  json_is_string(value)
				  ? E2BIG
				  : EINVAL,
			  "%s.unit: %s; accepted: SECOND, MINUTE, HOUR, DAY, WEEK, "
			  "MONTH, YEAR",
			  place,
			  !value		   ? "absent"
			  : json_is_string(value)  ? "another name"
			  : json_is_integer(value) ? "another number"
						   : json_kind(value));
}

/* RateLimitDescriptor.limit */
static int read_limit(const struct json_text *text, json_t *limit, const char *place,
		      struct request_descriptor *ret, struct sl_err *err)
{
	static const char *const known[] = {
		"requestsPerUnit",
		"requests_per_unit",
		"unit",
		NULL,
	};
	json_t *requests, *unit = json_object_get(limit, "unit");
	char at[64];
	int r;

	snprintf(at, sizeof(at), "%s.limit", place);
	if (!json_is_object(limit))
		return sl_err_set(err, EINVAL, "%s: %s; an object is required", at,
				  json_kind(limit));
	r = json_request_known(limit, known, at, err);
	if (!r)
		r = member(limit, "requestsPerUnit", "requests_per_unit", &requests, err);
	if (!r && requests)
		r = read_number(text, requests, 0xffffffff, at, &ret->limit_requests, err);
	return r ? r : read_unit(text, unit, at, &ret->limit_unit, err);
}

static int read_descriptor(struct json_request *request, json_t *object, size_t index, u64 hits,
			   struct sl_err *err)
{
	static const char *const known[] = {
		"entries",	    "limit", "hitsAddend", "hits_addend", "isNegativeHits",
		"is_negative_hits", NULL,
	};
	struct request_descriptor *descriptor = &request->descriptor[index];
	json_t *limit = json_object_get(object, "limit"), *addend, *negative;
	char place[32], at[48];
	int r;

	snprintf(place, sizeof(place), "descriptors[%zu]", index);
	snprintf(at, sizeof(at), "%s.hitsAddend", place);
	if (!json_is_object(object))
		return sl_err_set(err, EINVAL, "%s: %s; an object is required", place,
				  json_kind(object));
	descriptor->hits = hits;
	r = json_request_known(object, known, place, err);
	if (!r)
		r = json_request_entries(request, json_object_get(object, "entries"), descriptor,
					 place, true, err);
	if (!r)
		r = member(object, "hitsAddend", "hits_addend", &addend, err);
	if (!r && addend)
		r = read_number(&request->text, addend, ~0ULL, at, &descriptor->hits, err);
	if (!r)
		r = member(object, "isNegativeHits", "is_negative_hits", &negative, err);
	if (!r && negative && !json_is_false(negative))
		return sl_err_set(err, EINVAL, "%s.isNegativeHits: refunds are for /v1/report",
				  place);
	if (!r && limit && !json_is_null(limit))
		r = read_limit(&request->text, limit, place, descriptor, err);
	return r;
}

static int read_request(struct json_request *request, struct sl_err *err)
{
	json_t *root = request->text.root, *addend;
	u64 hits = 0;
	size_t i;
	int r;

	r = json_request_domain(request, json_object_get(root, "domain"), err);
	if (!r)
		r = member(root, "hitsAddend", "hits_addend", &addend, err);
	if (!r && addend)
		r = read_number(&request->text, addend, ~0ULL, "hitsAddend", &hits, err);
	/* In proto3 a 0 here means absent; of a descriptor's own it is a 0. */
	for (i = 0; i < request->made && !r; i++)
		r = read_descriptor(request,
				    json_array_get(json_object_get(root, "descriptors"), i), i,
				    hits ? hits : 1, err);
	return r;
}

int json_request_rls(const char *text, size_t len, struct json_request **ret, struct sl_err *err)
{
	static const char *const known[] = {
		"domain", "descriptors", "hitsAddend", "hits_addend", NULL,
	};
	struct json_text json;
	struct json_request *request = NULL;
	json_t *descriptors;
	int r;

	r = json_text_load(text, len, &json_request_bounds, &json, err);
	if (r == -E2BIG)
		return json_request_beyond(NULL, err, ret);
	if (r)
		return r;
	descriptors = json_object_get(json.root, "descriptors");
	if (!json_is_object(json.root))
		r = sl_err_set(err, EINVAL, "%s; an object is required", json_kind(json.root));
	else
		r = json_request_known(json.root, known, "the request", err);
	if (!r)
		r = json_request_count(descriptors, err);
	if (!r || r == -E2BIG) {
		request = json_request_new(&json, r ? 0 : json_array_size(descriptors));
		if (!request)
			r = sl_err_set(err, ENOMEM, "out of memory");
	}
	if (!request) {
		json_decref(json.root);
		return r;
	}
	if (!r)
		r = read_request(request, err);
	if (r == -E2BIG)
		return json_request_beyond(request, err, ret);
	if (r) {
		json_request_free(request);
		return r;
	}
	request->request.count = request->made;
	*ret = request;
	return 0;
}
