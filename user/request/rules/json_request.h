/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * json_request.h - requests in JSON: of /v1/check, /v1/report, and envoyproxy/ratelimit.
 *
 * Errors name the place ("descriptors[2].entries[0].key") and the kind of value found, but repeat
 * no text of the body. An unknown member is an error. A request for a decision beyond what can be
 * decided (request.h) is no error: request.beyond.
 */
#ifndef SLUICE_HTTP_JSON_REQUEST_H
#define SLUICE_HTTP_JSON_REQUEST_H

#include "request/rules/json_text.h"
#include "request/rules/request.h"

struct json_request {
	struct json_text text;
	struct request request; /* descriptors below; rights, api and waiting are the front's */
	/* Of a report's item */
	struct bytes id; /* len 0: none */
	u32 http_status; /* 0: absent */
	u64 latency_ns;	 /* ~0: absent */
	u32 made;	 /* descriptors there is memory for */
	char beyond[96]; /* request.beyond points here */
	struct request_descriptor descriptor[];
};

/* All three: 0 with *ret for json_request_free(), or -EINVAL or -ENOMEM with a message. */

/* {"domain", "descriptors": [{"entries": [{"key", "value"}], "hits"}], "source", "peek"} */
int json_request_check(const char *text, size_t len, struct json_request **ret, struct sl_err *err);
/* The usual form of it, read without a tree (json_plain.c). NULL: it has another form, or there is
 * no memory. */
struct json_request *json_request_plain(const char *text, size_t len);
/* What json_request_check() does with every other form. */
int json_request_tree(const char *text, size_t len, struct json_request **ret, struct sl_err *err);
/* The same without "peek"; with "at", "id", "status", "latency", and hits below 0 for a refund. */
int json_request_report(const char *text, size_t len, struct json_request **ret,
			struct sl_err *err);
/*
 * RateLimitRequest in protojson: camelCase or snake_case, enums by name or number, integers also
 * as strings, null for absent. An entry sluice_source is the source and no entry.
 */
int json_request_rls(const char *text, size_t len, struct json_request **ret, struct sl_err *err);

void json_request_free(void *request); /* NULL is fine */

/* For the three, and for syslog_line.c: bounds of one call's text; members that are known, NULL
 * behind the last. */
extern const struct json_bounds json_request_bounds;
int json_request_known(json_t *object, const char *const *known, const char *place,
		       struct sl_err *err);
struct json_request *json_request_new(const struct json_text *text, size_t descriptors);
/*
 * *ret: a request that is refused with the message of `err`. `request`, whose domain is read, is
 * used for it or freed; NULL if not even that was read. -EINVAL, -ENOMEM.
 */
int json_request_beyond(struct json_request *request, struct sl_err *err,
			struct json_request **ret);
/*
 * [{"key", "value"}]; `protojson`: empty strings may be absent, and an entry sluice_source is the
 * source.
 */
int json_request_entries(struct json_request *request, json_t *entries,
			 struct request_descriptor *ret, const char *place, bool protojson,
			 struct sl_err *err);
int json_request_domain(struct json_request *request, json_t *domain, struct sl_err *err);
/* Reads an element of "descriptors" with its hits into descriptor[index]. */
int json_request_descriptor(struct json_request *request, json_t *object, size_t index, bool report,
			    struct sl_err *err);
/* "at" of a report: seconds since 1970 as nginx's $msec has them, or RFC 3339 text. */
int json_request_at(struct json_request *request, json_t *at, struct sl_err *err);
/* "latency" in seconds or "latency_ms", of a report; numbers, or text of a log: "-" is absent. */
int json_request_latency(struct json_request *request, bool text, struct sl_err *err);
/* "release" of a report: a permit; *ret_has: there is one. "", "-" and null, as logs have them, are
 * none. */
int json_request_release(struct json_request *request, bool *ret_has, struct sl_err *err);
/* "descriptors": an array of one or more; -E2BIG: of more than REQUEST_DESCRIPTORS_MAX. */
int json_request_count(json_t *descriptors, struct sl_err *err);

#endif
