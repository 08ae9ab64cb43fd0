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

#include "http/call.h"

/* Text with room for what an answer can be; no header is longer than this. */
#define ANSWER_TEXT_MAX 2048

typedef void (*answer_header_fn)(const char *name, const char *value, void *arg);

/* Names are lower case ("ratelimit-policy"): HTTP/2 wants them so, HTTP/1.1 does not mind. */
void answer_headers(const struct answer *answer, u32 jitter_permille, answer_header_fn add,
		    void *arg);

/* The values alone; "" where there is none. Return buf. */
const char *answer_ratelimit(const struct answer *answer, char *buf, size_t size);
const char *answer_ratelimit_policy(const struct answer *answer, char *buf, size_t size);
/* Seconds to say in Retry-After; 0 where OK. */
u64 answer_retry_after_s(const struct answer *answer, u32 jitter_permille);
/* What refused, as "domain/rule": short, of rule names only; "" where OK. */
const char *answer_reason(const struct answer *answer, char *buf, size_t size);

/*
 * The body of /v1/check: 200, or problem+json. Returns its length, at most
 * ANSWER_JSON_MAX(count); names in it come from rules only.
 */
#define ANSWER_JSON_MAX(count) (4096 + 512 * (size_t)(count))
size_t answer_json(const struct answer *answer, char *buf, size_t size);
const char *answer_content_type(const struct answer *answer);

#endif
