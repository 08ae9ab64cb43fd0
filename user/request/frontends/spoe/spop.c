// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * spop.c - SPOP 2.0 on the wire; see spop.h. No connections, no meaning.
 */
#include "request/frontends/spoe/spop.h"

#include <string.h>

/*
 * A varint below 240 is its byte. Else the first byte has four bits of it, below 1111, and each
 * next one seven; every byte but the last counts 240, 128... more than its bits, so a number
 * has one encoding only.
 */
#define FIRST_MORE 240
#define NEXT_MORE 128

const char *spop_status_text(enum spop_status status)
{
	switch (status) {
	case SPOP_NORMAL:
		return "normal";
	case SPOP_IO:
		return "I/O error";
	case SPOP_TIMEOUT:
		return "a timeout occurred";
	case SPOP_TOO_BIG:
		return "frame is too big";
	case SPOP_INVALID:
		return "invalid frame received";
	case SPOP_NO_VERSION:
		return "version value not found";
	case SPOP_NO_FRAME_SIZE:
		return "max-frame-size value not found";
	case SPOP_NO_CAPABILITIES:
		return "capabilities value not found";
	case SPOP_BAD_VERSION:
		return "unsupported version";
	case SPOP_BAD_FRAME_SIZE:
		return "max-frame-size too big or too small";
	case SPOP_FRAGMENTED:
		return "payload fragmentation is not supported";
	case SPOP_INTERLACED:
		return "invalid interlaced frames";
	case SPOP_NO_FRAME_ID:
		return "frame-id not found";
	case SPOP_RESOURCES:
		return "resource allocation error";
	case SPOP_UNKNOWN:
		break;
	}
	return "an unknown error occurred";
}

static size_t left(const struct spop_cursor *cursor)
{
	return cursor->end - cursor->at;
}

bool spop_get_u8(struct spop_cursor *cursor, u8 *ret)
{
	if (!left(cursor))
		return false;
	*ret = *cursor->at++;
	return true;
}

bool spop_get_u32(struct spop_cursor *cursor, u32 *ret)
{
	const u8 *at = cursor->at;

	if (left(cursor) < 4)
		return false;
	*ret = (u32)at[0] << 24 | (u32)at[1] << 16 | (u32)at[2] << 8 | at[3];
	cursor->at += 4;
	return true;
}

bool spop_get_varint(struct spop_cursor *cursor, u64 *ret)
{
	u64 value;
	u8 byte;

	if (!spop_get_u8(cursor, &byte))
		return false;
	value = byte;
	if (byte >= FIRST_MORE) {
		u32 shift = 4;

		do {
			u64 part;

			if (!spop_get_u8(cursor, &byte))
				return false;
			/* At most 60: a byte there that announces more is invalid. */
			part = (u64)byte << shift;
			if (part >> shift != byte || value + part < value)
				return false;
			value += part;
			shift += 7;
		} while (byte >= NEXT_MORE);
	}
	*ret = value;
	return true;
}

static bool get_bytes(struct spop_cursor *cursor, u64 count, struct bytes *ret)
{
	if (count > left(cursor))
		return false;
	*ret = (struct bytes){ (const char *)cursor->at, count };
	cursor->at += count;
	return true;
}

bool spop_get_text(struct spop_cursor *cursor, struct bytes *ret)
{
	u64 size;

	return spop_get_varint(cursor, &size) && get_bytes(cursor, size, ret);
}

bool spop_get_value(struct spop_cursor *cursor, struct spop_value *ret)
{
	struct spop_value value = { .type = SPOP_NULL };
	u8 head;

	if (!spop_get_u8(cursor, &head))
		return false;
	value.type = head & 0x0f;
	switch (value.type) {
	case SPOP_NULL:
		break;
	case SPOP_BOOL:
		value.number = head >> 4 & 1;
		break;
	case SPOP_INT32:
		/* Negative numbers come as 64 bits, or as their low 32. */
		if (!spop_get_varint(cursor, &value.number))
			return false;
		if ((u64)(s64)(s32)value.number != value.number && value.number >> 32)
			return false;
		value.number = (u64)(s64)(s32)value.number;
		break;
	case SPOP_UINT32:
		if (!spop_get_varint(cursor, &value.number) || value.number >> 32)
			return false;
		break;
	case SPOP_INT64:
	case SPOP_UINT64:
		if (!spop_get_varint(cursor, &value.number))
			return false;
		break;
	case SPOP_IPV4:
		if (!get_bytes(cursor, 4, &value.text))
			return false;
		break;
	case SPOP_IPV6:
		if (!get_bytes(cursor, 16, &value.text))
			return false;
		break;
	case SPOP_STRING:
	case SPOP_BINARY:
		if (!spop_get_text(cursor, &value.text))
			return false;
		break;
	default:
		return false;
	}
	*ret = value;
	return true;
}

bool spop_get_frame(const void *bytes, size_t size, struct spop_frame *ret)
{
	struct spop_frame frame = { .payload = { bytes, (const u8 *)bytes + size } };

	if (!spop_get_u8(&frame.payload, &frame.type) ||
	    !spop_get_u32(&frame.payload, &frame.flags) ||
	    !spop_get_varint(&frame.payload, &frame.stream) ||
	    !spop_get_varint(&frame.payload, &frame.frame))
		return false;
	*ret = frame;
	return true;
}

/* Room for `count` bytes, or NULL and full. */
static u8 *room(struct spop_writer *writer, size_t count)
{
	u8 *at = writer->at;

	if (writer->full || count > (size_t)(writer->end - at)) {
		writer->full = true;
		return NULL;
	}
	writer->at += count;
	return at;
}

void spop_put_u8(struct spop_writer *writer, u8 value)
{
	u8 *at = room(writer, 1);

	if (at)
		*at = value;
}

static void store_be32(u8 *at, u32 value)
{
	at[0] = value >> 24;
	at[1] = value >> 16;
	at[2] = value >> 8;
	at[3] = value;
}

void spop_put_u32(struct spop_writer *writer, u32 value)
{
	u8 *at = room(writer, 4);

	if (at)
		store_be32(at, value);
}

void spop_put_varint(struct spop_writer *writer, u64 value)
{
	u8 byte[SPOP_VARINT_MAX], *to;
	u32 count = 0;

	if (value < FIRST_MORE) {
		byte[count++] = value;
	} else {
		byte[count++] = value | FIRST_MORE;
		value = (value - FIRST_MORE) >> 4;
		while (value >= NEXT_MORE) {
			byte[count++] = value | NEXT_MORE;
			value = (value - NEXT_MORE) >> 7;
		}
		byte[count++] = value;
	}
	to = room(writer, count);
	if (to)
		memcpy(to, byte, count);
}

static void put_bytes(struct spop_writer *writer, struct bytes text)
{
	u8 *at = room(writer, text.len);

	if (at && text.len)
		memcpy(at, text.at, text.len);
}

void spop_put_text(struct spop_writer *writer, struct bytes text)
{
	spop_put_varint(writer, text.len);
	put_bytes(writer, text);
}

void spop_put_value(struct spop_writer *writer, const struct spop_value *value)
{
	u8 head = value->type;

	if (value->type == SPOP_BOOL && value->number)
		head |= 0x10;
	spop_put_u8(writer, head);
	switch (value->type) {
	case SPOP_INT32:
	case SPOP_UINT32:
	case SPOP_INT64:
	case SPOP_UINT64:
		spop_put_varint(writer, value->number);
		break;
	case SPOP_IPV4:
	case SPOP_IPV6:
		put_bytes(writer, value->text);
		break;
	case SPOP_STRING:
	case SPOP_BINARY:
		spop_put_text(writer, value->text);
		break;
	default:
		break;
	}
}

struct spop_writer spop_frame_begin(void *memory, size_t size, enum spop_frame_type type,
				    u64 stream, u64 frame)
{
	struct spop_writer writer = { memory, memory, (u8 *)memory + size, false };

	spop_put_u32(&writer, 0);
	spop_put_u8(&writer, type);
	spop_put_u32(&writer, SPOP_FIN);
	spop_put_varint(&writer, stream);
	spop_put_varint(&writer, frame);
	return writer;
}

size_t spop_frame_end(struct spop_writer *writer)
{
	size_t size = writer->at - writer->start;

	if (writer->full)
		return 0;
	store_be32(writer->start, size - 4);
	return size;
}

static struct bytes bytes_of(const char *text)
{
	return (struct bytes){ text, strlen(text) };
}

void spop_put_pair_number(struct spop_writer *writer, const char *name, u32 value)
{
	spop_put_text(writer, bytes_of(name));
	spop_put_value(writer, &(struct spop_value){ .type = SPOP_UINT32, .number = value });
}

void spop_put_pair_string(struct spop_writer *writer, const char *name, const char *value)
{
	spop_put_text(writer, bytes_of(name));
	spop_put_value(writer,
		       &(struct spop_value){ .type = SPOP_STRING, .text = bytes_of(value) });
}

void spop_put_set_var(struct spop_writer *writer, const char *name, const struct spop_value *value)
{
	spop_put_u8(writer, SPOP_SET_VAR);
	spop_put_u8(writer, 3);
	spop_put_u8(writer, SPOP_SCOPE_TXN);
	spop_put_text(writer, bytes_of(name));
	spop_put_value(writer, value);
}

void spop_put_unset_var(struct spop_writer *writer, const char *name)
{
	spop_put_u8(writer, SPOP_UNSET_VAR);
	spop_put_u8(writer, 2);
	spop_put_u8(writer, SPOP_SCOPE_TXN);
	spop_put_text(writer, bytes_of(name));
}
