// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * spoe_request.c - reads a NOTIFY as a request; see spoe_request.h. spoe_ack.c writes the
 * response.
 *
 * The payload is copied first, and the request points into the copy: text that is made here
 * (numbers, addresses) follows it, so a copy of the whole only moves pointers by one distance.
 */
#include "request/frontends/spoe/spoe_request.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "request/rules/request_text.h"

struct reader {
	struct spoe_request *to;
	struct spop_cursor cursor;
	const char *reason;
	u32 message; /* its first descriptor */
	u32 current; /* index for entries without a number; ~0: a new one */
	struct {
		u32 number; /* N + 1 of dN_; 0: none */
		bool null;  /* one of its values is null */
		bool hits;  /* has its own */
	} of[REQUEST_DESCRIPTORS_MAX];
	bool has_hits; /* of the message */
	u64 hits;
};

static int refuse(struct reader *reader, const char *reason)
{
	reader->reason = reason;
	return -EINVAL;
}

/* ------------------------------------------------------------------ values */

/* The IPv4 address that an IPv6 one stands for: a client has one budget over both. */
static bool is_mapped(const char address[16])
{
	static const char mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (char)0xff, (char)0xff };

	return !memcmp(address, mapped, sizeof(mapped));
}

static size_t number_text(char *to, u64 number, bool is_signed)
{
	char digit[24];
	size_t count = 0, len = 0;

	if (is_signed && number >> 63) {
		to[len++] = '-';
		number = -number;
	}
	do
		digit[count++] = '0' + number % 10;
	while (number /= 10);
	while (count)
		to[len++] = digit[--count];
	return len;
}

/* A value as bytes: a value that is not text is converted and written after the payload. */
static struct bytes value_text(struct spoe_request *to, const struct spop_value *value)
{
	char *at = to->text + to->text_len;
	size_t len;

	switch (value->type) {
	case SPOP_STRING:
	case SPOP_BINARY:
		return value->text;
	case SPOP_BOOL:
		return value->number ? (struct bytes){ "true", 4 } : (struct bytes){ "false", 5 };
	case SPOP_IPV4:
		inet_ntop(AF_INET, value->text.at, at, SPOE_VALUE_TEXT);
		len = strlen(at);
		break;
	case SPOP_IPV6:
		if (is_mapped(value->text.at))
			inet_ntop(AF_INET, value->text.at + 12, at, SPOE_VALUE_TEXT);
		else
			inet_ntop(AF_INET6, value->text.at, at, SPOE_VALUE_TEXT);
		len = strlen(at);
		break;
	case SPOP_INT32:
	case SPOP_INT64:
		len = number_text(at, value->number, true);
		break;
	default:
		len = number_text(at, value->number, false);
		break;
	}
	to->text_len += len;
	return (struct bytes){ at, len };
}

/*
 * A count of any type. Anything else costs 1, like an absent one: hits may come from a client's
 * header, which must not cause an error. Above REQUEST_HITS_MAX it need not be exact.
 */
static u64 value_hits(const struct spop_value *value)
{
	u64 hits = 0;

	switch (value->type) {
	case SPOP_INT32:
	case SPOP_INT64:
		if (value->number >> 63)
			return 1;
		hits = value->number;
		break;
	case SPOP_UINT32:
	case SPOP_UINT64:
		hits = value->number;
		break;
	case SPOP_STRING:
	case SPOP_BINARY:
		if (!value->text.len)
			return 1;
		for (size_t i = 0; i < value->text.len; i++) {
			if (value->text.at[i] < '0' || value->text.at[i] > '9')
				return 1;
			if (hits <= REQUEST_HITS_MAX)
				hits = hits * 10 + (value->text.at[i] - '0');
		}
		break;
	default:
		return 1;
	}
	return hits;
}

static u64 load_be(const char *at, u32 count)
{
	u64 value = 0;

	while (count--)
		value = value << 8 | (u8)*at++;
	return value;
}

/* 4 or 16 bytes. */
static struct sl_prefix address_prefix(struct bytes at)
{
	if (at.len == 16 && is_mapped(at.at))
		at = (struct bytes){ at.at + 12, 4 };
	if (at.len == 4)
		return (struct sl_prefix){ { load_be(at.at, 4) << 32, 0 }, SL_V4, 32 };
	return (struct sl_prefix){ { load_be(at.at, 8), load_be(at.at + 8, 8) }, SL_V6, 128 };
}

/* Not an address: no source, and only the limits apply. */
static void set_source(struct request *request, const struct spop_value *value)
{
	if (value->type == SPOP_IPV4 || value->type == SPOP_IPV6) {
		request->source = address_prefix(value->text);
		request->has_source = true;
	} else if (value->type == SPOP_STRING) {
		request->has_source = request_source_parse(value->text, &request->source);
	}
}

static int set_domain(struct reader *reader, const struct spop_value *value)
{
	struct request *request = &reader->to->request;

	if (value->type != SPOP_STRING)
		return refuse(reader, "domain is not a string; write domain=str(NAME)");
	if (!value->text.len)
		return refuse(reader, "domain is empty");
	if (request->domain.at && (request->domain.len != value->text.len ||
				   memcmp(request->domain.at, value->text.at, value->text.len)))
		return refuse(reader, "messages of two domains in one event; put them into groups");
	request->domain = value->text;
	return 0;
}

/* ------------------------------------------------------------------ descriptors */

/* "d12_user": 13, one more than its number, and name is "user". 0: no number. */
static u32 take_number(struct bytes *name)
{
	u32 number = 0;
	size_t i;

	for (i = 1; i < name->len && i < 4; i++) {
		if (name->at[i] < '0' || name->at[i] > '9')
			break;
		number = number * 10 + (name->at[i] - '0');
	}
	if (name->len < 4 || name->at[0] != 'd' || i == 1 || i + 1 >= name->len ||
	    name->at[i] != '_')
		return 0;
	*name = (struct bytes){ name->at + i + 1, name->len - i - 1 };
	return number + 1;
}

/* The descriptor of that number in this message, created if new; NULL: too many. */
static struct request_descriptor *descriptor_of(struct reader *reader, u32 number)
{
	struct spoe_request *to = reader->to;
	struct request_descriptor *descriptor;
	u32 i = reader->current;

	if (number) {
		for (i = reader->message; i < to->request.count; i++) {
			if (reader->of[i].number == number)
				break;
		}
	}
	if (i < to->request.count) {
		reader->current = i;
		return &to->descriptor[i];
	}
	if (to->request.count == REQUEST_DESCRIPTORS_MAX)
		return NULL;
	i = reader->current = to->request.count++;
	reader->of[i].number = number;
	reader->of[i].null = reader->of[i].hits = false;
	descriptor = &to->descriptor[i];
	descriptor->count = 0;
	descriptor->beyond = false;
	descriptor->hits = 1;
	descriptor->refund = false;
	descriptor->limit_requests = 0;
	descriptor->limit_unit = REQUEST_UNIT_UNKNOWN;
	return descriptor;
}

static int add_entry(struct reader *reader, struct bytes name, const struct spop_value *value)
{
	u32 number = take_number(&name);
	struct request_descriptor *descriptor = descriptor_of(reader, number);
	struct bytes text;

	if (!descriptor) {
		reader->to->request.beyond = REQUEST_DESCRIPTORS_BEYOND;
		return 0;
	}
	if (number && bytes_equal(name, "hits")) {
		descriptor->hits = value_hits(value);
		reader->of[reader->current].hits = true;
		return 0;
	}
	if (value->type == SPOP_NULL) {
		reader->of[reader->current].null = true;
		return 0;
	}
	if (!name.len)
		return refuse(reader, "an argument without a name");
	/* The memory for text suffices for this many. */
	if (descriptor->count == REQUEST_ENTRIES_MAX) {
		descriptor->beyond = true;
		return 0;
	}
	text = value_text(reader->to, value);
	/*
	 * HAProxy's `path` is as the client wrote it. Normalized in place: the bytes are our own
	 * copy.
	 */
	if (value->type == SPOP_STRING && bytes_equal(name, "path"))
		text.len = request_path_normal(text, (char *)text.at);
	request_add_entry(descriptor, name, text);
	return 0;
}

static int take_argument(struct reader *reader, struct bytes name, const struct spop_value *value)
{
	if (bytes_equal(name, "domain"))
		return set_domain(reader, value);
	if (bytes_equal(name, "source")) {
		set_source(&reader->to->request, value);
		return 0;
	}
	if (bytes_equal(name, "hits")) {
		reader->hits = value_hits(value);
		reader->has_hits = true;
		return 0;
	}
	return add_entry(reader, name, value);
}

static int read_message(struct reader *reader)
{
	struct spoe_request *to = reader->to;
	struct bytes name;
	u8 arguments;
	int r;

	reader->message = to->request.count;
	reader->current = ~0U;
	reader->has_hits = false;
	if (!spop_get_text(&reader->cursor, &name) || !spop_get_u8(&reader->cursor, &arguments))
		return -EBADMSG;
	while (arguments--) {
		struct spop_value value;

		if (!spop_get_text(&reader->cursor, &name) ||
		    !spop_get_value(&reader->cursor, &value))
			return -EBADMSG;
		r = take_argument(reader, name, &value);
		if (r)
			return r;
	}
	for (u32 i = reader->message; reader->has_hits && i < to->request.count; i++) {
		if (!reader->of[i].hits)
			to->descriptor[i].hits = reader->hits;
	}
	return 0;
}

/* Removes descriptors with a missing value, or with hits and no entry. */
static void leave_out(struct reader *reader)
{
	struct spoe_request *to = reader->to;
	u32 kept = 0;

	for (u32 i = 0; i < to->request.count; i++) {
		if (reader->of[i].null || !to->descriptor[i].count)
			continue;
		if (kept != i)
			to->descriptor[kept] = to->descriptor[i];
		kept++;
	}
	to->request.count = kept;
}

int spoe_request_read(struct spoe_request *ret, const void *payload, size_t size,
		      const char **ret_reason)
{
	struct reader reader = { .to = ret };
	int r;

	if (size > SPOP_FRAME_MAX)
		return -EBADMSG;
	memcpy(ret->text, payload, size);
	ret->text_len = size;
	reader.cursor = (struct spop_cursor){ (u8 *)ret->text, (u8 *)ret->text + size };
	ret->request = (struct request){ .descriptor = ret->descriptor, .api = API_SPOE };
	while (reader.cursor.at < reader.cursor.end) {
		r = read_message(&reader);
		if (r) {
			*ret_reason = reader.reason;
			return r;
		}
	}
	if (!ret->request.domain.at) {
		*ret_reason = "no domain; add an argument domain=str(NAME)";
		return -EINVAL;
	}
	leave_out(&reader);
	if (ret->request.beyond)
		ret->request.count = 0;
	return 0;
}

/* ------------------------------------------------------------------ copies */

size_t spoe_request_size(const struct spoe_request *from)
{
	return from->request.count * sizeof(struct request_descriptor) + from->text_len;
}

/* "true" and "false" are static and stay where they are. */
static void move(struct bytes *text, const struct spoe_request *from, char *to)
{
	if (text->at >= from->text && text->at <= from->text + from->text_len)
		text->at = to + (text->at - from->text);
}

void spoe_request_copy(const struct spoe_request *from, struct request *ret_call, void *memory)
{
	struct request_descriptor *descriptor = memory;
	char *text = (char *)(descriptor + from->request.count);

	memcpy(descriptor, from->descriptor, from->request.count * sizeof(*descriptor));
	memcpy(text, from->text, from->text_len);
	*ret_call = from->request;
	ret_call->descriptor = descriptor;
	move(&ret_call->domain, from, text);
	for (u32 i = 0; i < ret_call->count; i++) {
		for (u32 k = 0; k < descriptor[i].count; k++) {
			move(&descriptor[i].entry[k].key, from, text);
			move(&descriptor[i].entry[k].value, from, text);
		}
	}
}
