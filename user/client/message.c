// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * message.c - see message.h. A decision is a status and headers, so no JSON is parsed: of a body it
 * is only asked whether a member is there. That holds since a response never has a client's values.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/message.h"
#include "client/sized.h"

/* A number of seconds from another process: 68 years at most. */
#define SECONDS_MAX 0x7fffffffUL

static void put_string(struct out *out, const char *bytes, size_t len)
{
	static const char hex[] = "0123456789abcdef";

	out_char(out, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = bytes[i];

		if (c == '"' || c == '\\') {
			out_char(out, '\\');
			out_char(out, c);
		} else if (c < 0x20) {
			out_text(out, "\\u00");
			out_char(out, hex[c >> 4]);
			out_char(out, hex[c & 15]);
		} else {
			out_char(out, c);
		}
	}
	out_char(out, '"');
}

static void put_member(struct out *out, const char *name, const char *text)
{
	if (!text)
		return;
	out_text(out, name);
	put_string(out, text, strlen(text));
}

static void put_number(struct out *out, const char *name, int64_t value)
{
	out_text(out, name);
	if (value < 0)
		out_char(out, '-');
	out_u64(out, value < 0 ? -(u64)value : (u64)value);
}

/* "0.000250000" */
static void put_seconds(struct out *out, const char *name, u64 ns)
{
	put_number(out, name, ns / SL_NS_PER_SEC);
	out_char(out, '.');
	for (u64 digit = SL_NS_PER_SEC / 10; digit; digit /= 10)
		out_char(out, '0' + ns / digit % 10);
}

static void put_descriptor(struct out *out, const struct sluice_descriptor *d)
{
	out_text(out, "{\"entries\":[");
	for (size_t i = 0; i < d->entry_count; i++) {
		const struct sluice_entry *e = sized_at(d->entries, i);

		put_member(out, i ? ",{\"key\":" : "{\"key\":", e->key);
		out_text(out, ",\"value\":");
		put_string(out, e->value, e->value_size ? e->value_size : strlen(e->value));
		out_char(out, '}');
	}
	put_number(out, "],\"hits\":", d->hits);
	out_char(out, '}');
}

static void put_body(struct out *out, enum client_call call, const struct sluice_request *r,
		     const char *id)
{
	put_member(out, call == CLIENT_REPORT ? "[{\"domain\":" : "{\"domain\":", r->domain);
	out_text(out, ",\"descriptors\":[");
	for (size_t i = 0; i < r->descriptor_count; i++) {
		if (i)
			out_char(out, ',');
		put_descriptor(out, sized_at(r->descriptors, i));
	}
	out_char(out, ']');
	put_member(out, ",\"source\":", r->source);
	if (call == CLIENT_CHECK) {
		out_text(out, r->flags & SLUICE_PEEK ? ",\"peek\":true}" : "}");
		return;
	}
	put_member(out, ",\"id\":", id);
	if (r->status)
		put_number(out, ",\"status\":", r->status);
	if (r->latency_ns)
		put_seconds(out, ",\"latency\":", r->latency_ns);
	out_text(out, "}]");
}

static void put_head(struct out *out, enum client_call call, const char *token, u64 wait_ns,
		     size_t body_len)
{
	out_text(out, call == CLIENT_REPORT ? "POST /v1/report" : "POST /v1/check");
	out_text(out, " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
	if (call == CLIENT_CHECK) {
		out_text(out, "X-Sluice-Wait: ");
		out_u64(out, wait_ns / 1000000);
		out_text(out, wait_ns < 1000000 ? "\r\n" : "ms\r\n");
	}
	if (token) {
		out_text(out, "X-Sluice-Token: ");
		out_text(out, token);
		out_text(out, "\r\n");
	}
	out_text(out, "Content-Length: ");
	out_u64(out, body_len);
	out_text(out, "\r\n\r\n");
}

int client_write(struct out *out, enum client_call call, const struct sluice_request *request,
		 const char *token, const char *id, u64 wait_ns)
{
	struct out body;

	out_begin(&body, NULL, 0);
	put_body(&body, call, request, id);
	for (;;) {
		char *grown;

		out->len = 0;
		put_head(out, call, token, wait_ns, body.len);
		put_body(out, call, request, id);
		if (out->len <= out->size)
			return 0;
		grown = realloc(out->at, out->len);
		if (!grown)
			return -ENOMEM;
		out_begin(out, grown, out->len);
	}
}

static u64 seconds(const char *text)
{
	unsigned long s = text ? strtoul(text, NULL, 10) : 0;

	return (s < SECONDS_MAX ? s : SECONDS_MAX) * SL_NS_PER_SEC;
}

int client_read(const struct client_response *response, enum client_call call,
		struct sluice_result *ret, u64 *ret_after_ns)
{
	const char *after = client_header(response, "retry-after");
	const char *left = client_header(response, "x-ratelimit-remaining");
	const char *limit = client_header(response, "ratelimit");
	const char *reset = limit ? strstr(limit, ";t=") : NULL;

	*ret = (struct sluice_result){
		.remaining = left		       ? strtoull(left, NULL, 10)
			     : response->status == 200 ? UINT64_MAX
						       : 0,
		.reset_ns = reset ? seconds(reset + 3) : 0,
	};
	*ret_after_ns = seconds(after);
	switch (response->status) {
	case 200:
		return 0;
	case 202:
		return call == CLIENT_REPORT && strstr(response->body, "\"rejected\":[]") ? 0
											  : -EINVAL;
	case 503:
		ret->retry_after_ns = *ret_after_ns;
		/* The rule says closed: that is a decision. */
		return strstr(response->body, "\"CLOSED\"") ? -EAGAIN : -EBUSY;
	case 429:
		ret->retry_after_ns = after ? *ret_after_ns : UINT64_MAX;
		return after ? -EAGAIN : -ERANGE;
	case 400:
	case 413:
	case 431:
		return -EINVAL;
	case 401:
	case 403:
		return -EACCES;
	case 408:
		return -ETIMEDOUT;
	}
	return -EPROTO;
}
