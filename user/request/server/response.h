/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * response.h - a response as headers and as JSON: the same text in every frontend.
 *
 * X-RateLimit-Limit, -Remaining, -Retry-After describe the binding limit; RateLimit-Policy and
 * RateLimit (draft-ietf-httpapi-ratelimit-headers-11) list all enforced ones, binding first;
 * Retry-After only on refusals, ceil(wait) plus up to retry_jitter.
 */
#ifndef SLUICE_HTTP_RESPONSE_H
#define SLUICE_HTTP_RESPONSE_H

#include "request/rules/request.h"

/* A buffer that holds any value below; no header is longer than this. */
#define RESPONSE_TEXT_MAX 2048

/* Both are terminated, too. */
typedef void (*response_header_fn)(struct bytes name, struct bytes value, void *arg);

/*
 * Calls `add` for each header. Names are lower case ("ratelimit-policy"): HTTP/2 requires it, and
 * HTTP/1.1 accepts it. Unlike the functions below it draws the jitter of Retry-After only once, so
 * that X-RateLimit-Retry-After has the same value.
 */
void response_headers(const struct response *response, u32 jitter_permille, response_header_fn add,
		      void *arg);

/* The values alone; "" if there is none. Return buf. retry_after_s: as the response states it, or
 * 0. */
const char *response_ratelimit(const struct response *response, u64 retry_after_s, char *buf,
			       size_t size);
const char *response_ratelimit_policy(const struct response *response, char *buf, size_t size);
/*
 * Seconds for Retry-After: ceil(wait x (1 + random part of the jitter)). 0: none, if the response
 * is OK, or waiting would not help.
 */
u64 response_retry_after_s(const struct response *response, u32 jitter_permille);
/* The rule that refused, as "domain/rule": short, of rule names only; "" if OK. */
const char *response_reason(const struct response *response, char *buf, size_t size);
/* The policies that refused, as a JSON list: ["user"]; "" if OK. Names come only from rules. */
const char *response_violated(const struct response *response, char *buf, size_t size);
/*
 * What only shadow mode kept from refusing, as a JSON list for the proxy's log: rules,
 * ["api/user"], and candidates, ["api/user:small"]; "" if nothing, or not OK. Of more than fits in
 * `size` the first.
 */
const char *response_shadow(const struct response *response, char *buf, size_t size);
/*
 * The name of policy `i` (below policy_count) in JSON and headers: its limit's; if two rules of
 * the response use the same name, "PATH:NAME"; "NAME/56" for a length of a prefix hierarchy.
 */
const char *response_policy_name(const struct response *response, u32 i, char *buf, size_t size);

/* The period of a status as Envoy's protocol has it: a month of a calendar is its month of 30 days.
 */
u64 response_unit_ns(const struct response_status *status);

/*
 * The body of /v1/check: 200, or problem+json; terminated if it fits. Names in it come only from
 * rules. Returns its length: at or above `size` it was truncated, and that much + 1 is needed.
 * RESPONSE_JSON_SIZE is enough unless rules have very long names.
 */
#define RESPONSE_JSON_SIZE(count) (2048 + 384 * (size_t)(count))
size_t response_json(const struct response *response, char *buf, size_t size);
const char *response_content_type(const struct response *response);
/* Of /v1/check and /forward-auth: 200, 429, 503. */
int response_http_status(const struct response *response);

#endif
