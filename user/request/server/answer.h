/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * answer.h - an answer as headers and as JSON: the same words through every front.
 *
 * X-RateLimit-Limit, -Remaining, -Retry-After tell the binding limit; RateLimit-Policy and
 * RateLimit (draft-ietf-httpapi-ratelimit-headers-11) list all enforced ones, binding first;
 * Retry-After only on refusals, ceil(wait) plus up to retry_jitter.
 */
#ifndef SLUICE_HTTP_ANSWER_H
#define SLUICE_HTTP_ANSWER_H

#include "request/rules/call.h"

/* A buffer that holds any value below; no header is longer than this. */
#define ANSWER_TEXT_MAX 2048

typedef void (*answer_header_fn)(const char *name, const char *value, void *arg);

/*
 * All of them, by `add` one by one. Names are lower case ("ratelimit-policy"): HTTP/2 wants them
 * so, HTTP/1.1 does not mind. Not quite the sum of the values below: Retry-After's jitter is
 * drawn once here, so that X-RateLimit-Retry-After says the same.
 */
void answer_headers(const struct answer *answer, u32 jitter_permille, answer_header_fn add,
		    void *arg);

/* The values alone; "" where there is none. Return buf. */
const char *answer_ratelimit(const struct answer *answer, char *buf, size_t size);
const char *answer_ratelimit_policy(const struct answer *answer, char *buf, size_t size);
/*
 * Seconds to say in Retry-After: ceil(wait x (1 + random share of the jitter)). 0: none, where
 * the answer is OK, or waiting would not help.
 */
u64 answer_retry_after_s(const struct answer *answer, u32 jitter_permille);
/* What refused, as "domain/rule": short, of rule names only; "" where OK. */
const char *answer_reason(const struct answer *answer, char *buf, size_t size);
/*
 * The name of policy `i` (below policy_count) as JSON and headers have it: its limit's; where
 * two rules of the answer use the same name, "PATH:NAME"; "NAME/56" of a ladder's length.
 */
const char *answer_policy_name(const struct answer *answer, u32 i, char *buf, size_t size);

/*
 * The body of /v1/check: 200, or problem+json; terminated where it fits. Names in it come from
 * rules only. Returns its length: at or above `size`, it was cut, and that much + 1 is needed.
 * ANSWER_JSON_SIZE is enough unless rules have very long names.
 */
#define ANSWER_JSON_SIZE(count) (2048 + 384 * (size_t)(count))
size_t answer_json(const struct answer *answer, char *buf, size_t size);
const char *answer_content_type(const struct answer *answer);
/* Of /v1/check and /forward-auth: 200, 429, 503. */
int answer_http_status(const struct answer *answer);

#endif
