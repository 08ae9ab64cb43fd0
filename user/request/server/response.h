/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * response.h - an answer as headers and as JSON: the same words through every front.
 *
 * X-RateLimit-Limit, -Remaining, -Retry-After tell the binding limit; RateLimit-Policy and
 * RateLimit (draft-ietf-httpapi-ratelimit-headers-11) list all enforced ones, binding first;
 * Retry-After only on refusals, ceil(wait) plus up to retry_jitter.
 */
#ifndef SLUICE_HTTP_RESPONSE_H
#define SLUICE_HTTP_RESPONSE_H

#include "request/rules/request.h"

/* A buffer that holds any value below; no header is longer than this. */
#define RESPONSE_TEXT_MAX 2048

typedef void (*response_header_fn)(const char *name, const char *value, void *arg);

/*
 * All of them, by `add` one by one. Names are lower case ("ratelimit-policy"): HTTP/2 wants them
 * so, HTTP/1.1 does not mind. Not quite the sum of the values below: Retry-After's jitter is
 * drawn once here, so that X-RateLimit-Retry-After says the same.
 */
void response_headers(const struct response *response, u32 jitter_permille, response_header_fn add,
		      void *arg);

/* The values alone; "" where there is none. Return buf. */
const char *response_ratelimit(const struct response *response, char *buf, size_t size);
const char *response_ratelimit_policy(const struct response *response, char *buf, size_t size);
/*
 * Seconds to say in Retry-After: ceil(wait x (1 + random share of the jitter)). 0: none, where
 * the answer is OK, or waiting would not help.
 */
u64 response_retry_after_s(const struct response *response, u32 jitter_permille);
/* What refused, as "domain/rule": short, of rule names only; "" where OK. */
const char *response_reason(const struct response *response, char *buf, size_t size);
/*
 * The name of policy `i` (below policy_count) as JSON and headers have it: its limit's; where
 * two rules of the answer use the same name, "PATH:NAME"; "NAME/56" of a ladder's length.
 */
const char *response_policy_name(const struct response *response, u32 i, char *buf, size_t size);

/*
 * The body of /v1/check: 200, or problem+json; terminated where it fits. Names in it come from
 * rules only. Returns its length: at or above `size`, it was cut, and that much + 1 is needed.
 * RESPONSE_JSON_SIZE is enough unless rules have very long names.
 */
#define RESPONSE_JSON_SIZE(count) (2048 + 384 * (size_t)(count))
size_t response_json(const struct response *response, char *buf, size_t size);
const char *response_content_type(const struct response *response);
/* Of /v1/check and /forward-auth: 200, 429, 503. */
int response_http_status(const struct response *response);

#endif
