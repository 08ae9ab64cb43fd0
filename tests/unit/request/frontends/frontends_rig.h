/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frontends_rig.h - an invented HTTP server and decision core, around a frontend: a request
 * is put together by hand, the decoded request comes back as text, the response is the test's.
 */
#ifndef TESTS_FRONTENDS_RIG_H
#define TESTS_FRONTENDS_RIG_H
#include <jansson.h>

#include "lib/test.h"
#include "request/rules/request_text.h"
#include "request/frontends/http1/check.h"
#include "request/engine/report_ids.h"

/* ---------------------------------------------------------------- the invented server */

static struct http_def def = { .retry_jitter_permille = 0 };
static struct http_tier tier = { .def = &def };
static struct engine engine;
static struct engine_thread engine_thread = { .engine = &engine };
static struct worker worker = { .tier = &tier, .engine = &engine_thread };
static struct listen_def listener;
static struct peer_info peer = { .local = true, .listener = &listener };
static struct http1_request request;
static char header_text[70000];

static u32 undecided;
static int replied; /* status; 0: not yet */
static char reply_headers[8192], reply_type[64], reply_body[4 << 20];

static u32 rights;
static struct response response;
static struct delayed *held; /* returned by ask() */
static request_done_fn held_done;
static void *held_arg;
static const struct request *held_call;
static char asked[200000]; /* the request as text */
static u32 asks;

struct bytes http1_find_bytes(const struct http1_request *r, struct bytes name)
{
	for (u32 i = 0; i < r->header_count; i++)
		if (r->header[i].name.len == name.len &&
		    !memcmp(r->header[i].name.at, name.at, name.len))
			return r->header[i].value;
	return (struct bytes){ NULL, 0 };
}

struct bytes http1_query(const struct http1_request *r, const char *name, char *buf, size_t size)
{
	char needle[64];
	const char *at;
	size_t len;

	snprintf(needle, sizeof(needle), "%s=", name);
	at = strstr(r->query.at, needle);
	if (!at)
		return (struct bytes){ NULL, 0 };
	at += strlen(needle);
	len = strcspn(at, "&");
	memcpy(buf, at, len < size ? len : size);
	return (struct bytes){ buf, len };
}

struct bytes http1_token(const struct http1_request *r)
{
	return http1_find(r, "x-sluice-token");
}

void http1_reply_header_bytes(struct http1_request *r, struct bytes name, struct bytes value)
{
	size_t used = strlen(reply_headers);

	assert_int_equal(replied, 0);
	snprintf(reply_headers + used, sizeof(reply_headers) - used, "%.*s: %.*s\n", (int)name.len,
		 name.at, (int)value.len, value.at);
}

void http1_reply(struct http1_request *r, int status, const char *type, const void *body,
		 size_t size)
{
	assert_int_equal(replied, 0);
	assert_true(size < sizeof(reply_body));
	replied = status;
	snprintf(reply_type, sizeof(reply_type), "%s", type ? type : "");
	if (size)
		memcpy(reply_body, body, size);
	reply_body[size] = 0;
}

void http1_reply_problem(struct http1_request *r, int status, const char *detail)
{
	http1_reply(r, status, "application/problem+json", detail, strlen(detail));
}

void http1_reply_undecided(struct http1_request *r, int status, const char *detail)
{
	undecided++;
	http1_reply_problem(r, status, detail);
}

u32 http1_rights(struct http1_request *r, struct bytes domain, u32 needed)
{
	if ((rights & needed) == needed)
		return rights;
	http1_reply_problem(r, 403, "no right");
	return 0;
}

u32 caller_rights(const struct http_tier *t, const struct peer_info *p, struct bytes token,
		  struct bytes domain, bool *ret_bad_token)
{
	return bytes_equal(domain, "theirs") ? 0 : rights;
}

/* The request as text: "api u=bob,p=/x*1 | k=v*3 peek". */
static void write_request(const struct request *rl_request)
{
	char *at = asked;

	at += sprintf(at, "%.*s", (int)rl_request->domain.len, rl_request->domain.at);
	for (u32 d = 0; d < rl_request->count; d++) {
		at += sprintf(at, d ? " | " : " ");
		for (u32 i = 0; i < rl_request->descriptor[d].count; i++) {
			const struct request_entry *entry = &rl_request->descriptor[d].entry[i];

			at += sprintf(at, "%s%.*s=", i ? "," : "", (int)entry->key.len,
				      entry->key.at);
			memcpy(at, entry->value.at, entry->value.len);
			at += entry->value.len;
		}
		at += sprintf(at, "*%s%llu", rl_request->descriptor[d].refund ? "-" : "",
			      rl_request->descriptor[d].hits);
		if (rl_request->descriptor[d].limit_unit)
			at += sprintf(at, " limit %llu/%d",
				      rl_request->descriptor[d].limit_requests,
				      rl_request->descriptor[d].limit_unit);
	}
	if (rl_request->has_source) {
		at += sprintf(at, " from ");
		sl_prefix_format(&rl_request->source, at, SL_PREFIX_TEXT);
		at += strlen(at);
	}
	at += sprintf(at, "%s", rl_request->peek ? " peek" : rl_request->report ? " report" : "");
	if (rl_request->beyond)
		sprintf(at, " beyond: %s", rl_request->beyond);
}

struct delayed *request_submit(struct engine_thread *w, const struct request *rl_request,
			       request_done_fn done, void *arg)
{
	asks++;
	assert_int_equal(rl_request->rights, rights);
	write_request(rl_request);
	response.count = rl_request->count;
	if (held) {
		held_done = done;
		held_arg = arg;
		held_call = rl_request;
		return held;
	}
	done(rl_request, &response, arg);
	return NULL;
}

static void header(const char *name, const void *value, size_t len)
{
	static size_t used;

	if (!request.header_count)
		used = 0;
	memcpy(header_text + used, value, len);
	request.header[request.header_count++] =
		(struct http1_header){ { name, strlen(name) }, { header_text + used, len } };
	used += len;
}

static void begin(const char *query)
{
	memset(&request, 0, sizeof(request));
	request.worker = &worker;
	request.peer = &peer;
	request.query = (struct bytes){ query, strlen(query) };
	replied = 0;
	asks = 0;
	reply_headers[0] = reply_body[0] = asked[0] = 0;
	rights = MAY_CHECK | MAY_REPORT;
	held = NULL;
	memset(&response, 0, sizeof(response));
}

/* The same with headers, one a line: "x-user: bob\nx-peer: al". The text must live on. */
static __attribute__((unused)) void begin_with(const char *query, const char *headers)
{
	begin(query);
	while (*headers) {
		size_t name = strcspn(headers, ":"), len = strcspn(headers, "\n");

		request.header[request.header_count++] =
			(struct http1_header){ { headers, name },
					       { headers + name + 2, len - name - 2 } };
		headers += len + (headers[len] == '\n');
	}
}

/* Ends the request like the server. */
static void end(void)
{
	if (request.frontend_free)
		request.frontend_free(request.frontend);
	request.frontend_free = NULL;
}

static void refuse(void)
{
	static struct rule rule = { .domain = "api", .path = "user" };
	static struct rule_limit limit = { .name = "user" };

	response.code = RESPONSE_OVER_LIMIT;
	response.policy_count = 1;
	response.policy[0] = (struct response_policy){ .rule = &rule,
						       .limit = &limit,
						       .q = 10,
						       .w_s = 60,
						       .t_ns = SL_NS_PER_SEC,
						       .refused = true };
	response.retry_after_ns = 3 * SL_NS_PER_SEC;
	response.status[0] = (struct response_status){ .rule = &rule,
						       .limit = &limit,
						       .over = true,
						       .requests = 10,
						       .window_ns = 60 * SL_NS_PER_SEC,
						       .reset_ns = 1500000000 };
}

#endif
