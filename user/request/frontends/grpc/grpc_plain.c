// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * grpc_plain.c - the usual request and the usual response, read and written without protobuf-c.
 *
 * protobuf-c finds each field by its descriptor, and measures a message before it packs it: a fifth
 * of a request's instructions. Here a request has a domain, descriptors of entries, each a key and
 * a value, and maybe hits, in the order of their numbers; a response has anything but metadata. At
 * anything else both give up without an error, and protobuf-c decides. So nothing has two meanings:
 * tests/unit/request/frontends/grpc/test_grpc_plain.c compares both over random and changed
 * messages.
 */
#include "lib/out.h"
#include "request/frontends/grpc/grpc_private.h"
#include "request/rules/request_text.h"

/* Tags: a field's number, and its type on the wire. */
#define VARINT(number) ((number) << 3)
#define BYTES(number) ((number) << 3 | 2)

/* ------------------------------------------------------------------ in */

/* What is left of a message. */
struct cursor {
	const u8 *at, *end;
};

/* A length, or a number, of up to two bytes. */
static bool take_number(struct cursor *in, u32 *ret)
{
	if (in->at == in->end)
		return false;
	*ret = *in->at++;
	if (*ret < 0x80)
		return true;
	if (in->at == in->end || *in->at >= 0x80)
		return false;
	*ret = (*ret & 0x7f) | (u32)*in->at++ << 7;
	return true;
}

/* The next field, if it has this tag and is whole; else nothing is taken. */
static bool take_bytes(struct cursor *in, u8 tag, struct cursor *ret)
{
	const u8 *at = in->at;
	size_t len;

	if (in->end - at < 2 || *at++ != tag)
		return false;
	len = *at++;
	if (len >= 0x80) {
		if (at == in->end || *at >= 0x80)
			return false;
		len = (len & 0x7f) | (size_t)*at++ << 7;
	}
	if (len > (size_t)(in->end - at))
		return false;
	in->at = at + len;
	*ret = (struct cursor){ at, at + len };
	return true;
}

static struct bytes bytes_of(struct cursor in)
{
	size_t len = in.end - in.at;

	return (struct bytes){ len ? (const char *)in.at : "", len };
}

static bool read_descriptor(struct cursor in, struct request *request,
			    struct request_descriptor *ret)
{
	struct cursor entry, key, value;

	while (take_bytes(&in, BYTES(1), &entry)) {
		if (!take_bytes(&entry, BYTES(1), &key) || !take_bytes(&entry, BYTES(2), &value) ||
		    entry.at != entry.end)
			return false;
		request_add_entry_or_source(request, ret, bytes_of(key), bytes_of(value));
	}
	return in.at == in.end;
}

/* Finds the parts of a message; *ret_count descriptors follow each other at *ret_first. */
static bool find_parts(struct cursor in, struct bytes *ret_domain, struct cursor *ret_first,
		       u32 *ret_count, u32 *ret_hits)
{
	struct cursor part;

	if (!take_bytes(&in, BYTES(1), &part))
		return false;
	*ret_domain = bytes_of(part);
	*ret_first = in;
	for (*ret_count = 0; take_bytes(&in, BYTES(2), &part); ++*ret_count)
		;
	*ret_hits = 0;
	if (in.at != in.end && (*in.at++ != VARINT(3) || !take_number(&in, ret_hits)))
		return false;
	return in.at == in.end && ret_domain->len && *ret_count &&
	       *ret_count <= REQUEST_DESCRIPTORS_MAX;
}

bool grpc_request_plain(struct grpc_stream *stream, struct bytes message, struct request *ret)
{
	struct cursor in = { (const u8 *)message.at, (const u8 *)message.at + message.len }, part;
	struct grpc_mark mark = grpc_stream_mark(stream);
	struct request request = *ret;
	u32 count, hits;

	if (!find_parts(in, &request.domain, &in, &count, &hits))
		return false;
	request.descriptor = grpc_stream_alloc(stream, count * sizeof(*request.descriptor));
	if (!request.descriptor)
		return false;
	for (u32 i = 0; i < count; i++) {
		struct request_descriptor *descriptor = &request.descriptor[i];

		take_bytes(&in, BYTES(2), &part);
		grpc_descriptor_begin(descriptor, hits);
		if (!read_descriptor(part, &request, descriptor)) {
			grpc_stream_release(stream, mark);
			return false;
		}
	}
	request.count = count;
	*ret = request;
	return true;
}

/* ------------------------------------------------------------------ out */

static inline void out_varint(struct out *out, u64 value)
{
	for (; value > 0x7f; value >>= 7)
		out_char(out, (char)(value | 0x80));
	out_char(out, (char)value);
}

/* A number; 0 is not written. */
static void out_number(struct out *out, u32 field, u64 value)
{
	if (!value)
		return;
	out_char(out, VARINT(field));
	out_varint(out, value);
}

static void out_string(struct out *out, u32 field, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (!len)
		return;
	out_char(out, BYTES(field));
	out_varint(out, len);
	out_bytes(out, text, len);
}

/* A message within a message: one byte is kept for its length. Returns where it begins. */
static size_t out_begin_part(struct out *out, u32 field)
{
	out_char(out, BYTES(field));
	out_char(out, 0);
	return out->len;
}

static void out_end_part(struct out *out, size_t from)
{
	size_t len = out->len - from, more = 0;
	struct out length;

	for (size_t left = len; left > 0x7f; left >>= 7)
		more++;
	out->len += more;
	if (out->len > out->size)
		return;
	if (more)
		memmove(out->at + from + more, out->at + from, len);
	out_begin(&length, out->at + from - 1, 1 + more);
	out_varint(&length, len);
}

static void out_status(struct out *out, const Rls__Status *status)
{
	size_t from = out_begin_part(out, 2), within;

	out_number(out, 1, status->code);
	if (status->current_limit) {
		within = out_begin_part(out, 2);
		out_number(out, 1, status->current_limit->requests_per_unit);
		out_number(out, 2, status->current_limit->unit);
		out_string(out, 3, status->current_limit->name);
		out_end_part(out, within);
	}
	out_number(out, 3, status->limit_remaining);
	if (status->duration_until_reset) {
		within = out_begin_part(out, 4);
		out_number(out, 1, (u64)status->duration_until_reset->seconds);
		out_number(out, 2, (u64)(s64)status->duration_until_reset->nanos);
		out_end_part(out, within);
	}
	out_end_part(out, from);
}

static u32 varint_len(size_t value)
{
	u32 len = 1;

	for (; value > 0x7f; value >>= 7)
		len++;
	return len;
}

static void out_bytes_field(struct out *out, u32 field, struct bytes bytes)
{
	out_char(out, BYTES(field));
	out_varint(out, bytes.len);
	out_bytes(out, bytes.at, bytes.len);
}

/* Neither is empty. */
static void out_header(struct bytes name, struct bytes value, void *arg)
{
	struct out *out = arg;

	out_char(out, BYTES(3));
	out_varint(out, 2 + varint_len(name.len) + name.len + varint_len(value.len) + value.len);
	out_bytes_field(out, 1, name);
	out_bytes_field(out, 2, value);
}

size_t grpc_response_plain(const struct response *response, u32 jitter_permille, char *buf,
			   size_t size)
{
	struct grpc_status_message message;
	struct out out;

	out_begin(&out, buf, size);
	out_number(&out, 1, response->code == RESPONSE_OK ? RLS__CODE__OK : RLS__CODE__OVER_LIMIT);
	for (u32 i = 0; i < response->count; i++) {
		grpc_status_set(&message, &response->status[i]);
		out_status(&out, &message.status);
	}
	response_headers(response, jitter_permille, out_header, &out);
	return out.len <= size ? out.len : 0;
}
