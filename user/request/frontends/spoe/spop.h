/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spop.h - the bytes of HAProxy's SPOP 2.0: variable-length integers, typed data, frames.
 *
 * Reading uses a cursor that never leaves its bytes: each function reads one item, advances and
 * returns whether it was complete; text points into the frame. Writing goes into the caller's
 * memory; a writer that is full writes nothing more. spoe.c has the meaning of frames.
 *
 * Source: HAProxy's doc/SPOE.txt, section 3.
 */
#ifndef SLUICE_HTTP_SPOP_H
#define SLUICE_HTTP_SPOP_H

#include "request/rules/request.h"

/* A frame without its length. HAProxy offers its buffer, 16380 unless tune.bufsize is set. */
#define SPOP_FRAME_MIN 256
#define SPOP_FRAME_MAX (256 * 1024)
#define SPOP_VARINT_MAX 10 /* bytes of a 64-bit number */

enum spop_frame_type {
	SPOP_UNSET = 0, /* a fragment after the first */
	SPOP_HAPROXY_HELLO = 1,
	SPOP_HAPROXY_DISCONNECT = 2,
	SPOP_NOTIFY = 3,
	SPOP_AGENT_HELLO = 101,
	SPOP_AGENT_DISCONNECT = 102,
	SPOP_ACK = 103,
};

enum spop_flag { SPOP_FIN = 1, SPOP_ABORT = 2 };

/* Status codes of DISCONNECT frames. */
enum spop_status {
	SPOP_NORMAL = 0,
	SPOP_IO = 1,
	SPOP_TIMEOUT = 2,
	SPOP_TOO_BIG = 3,
	SPOP_INVALID = 4,
	SPOP_NO_VERSION = 5,
	SPOP_NO_FRAME_SIZE = 6,
	SPOP_NO_CAPABILITIES = 7,
	SPOP_BAD_VERSION = 8,
	SPOP_BAD_FRAME_SIZE = 9,
	SPOP_FRAGMENTED = 10,
	SPOP_INTERLACED = 11,
	SPOP_NO_FRAME_ID = 12,
	SPOP_RESOURCES = 13,
	SPOP_UNKNOWN = 99,
};
const char *spop_status_text(enum spop_status status);

enum spop_type {
	SPOP_NULL,
	SPOP_BOOL,
	SPOP_INT32,
	SPOP_UINT32,
	SPOP_INT64,
	SPOP_UINT64,
	SPOP_IPV4,
	SPOP_IPV6,
	SPOP_STRING,
	SPOP_BINARY,
	SPOP_TYPE_COUNT,
};

enum spop_action { SPOP_SET_VAR = 1, SPOP_UNSET_VAR = 2 };
enum spop_scope {
	SPOP_SCOPE_PROC,
	SPOP_SCOPE_SESS,
	SPOP_SCOPE_TXN,
	SPOP_SCOPE_REQ,
	SPOP_SCOPE_RES,
};

struct spop_value {
	enum spop_type type;
	u64 number;	   /* bool: 0 or 1; signed types: two's complement */
	struct bytes text; /* string, binary; addresses: 4 or 16 bytes */
};

struct spop_cursor {
	const u8 *at, *end;
};

bool spop_get_u8(struct spop_cursor *cursor, u8 *ret);
bool spop_get_u32(struct spop_cursor *cursor, u32 *ret); /* big-endian */
/* False also if the number exceeds 64 bits. */
bool spop_get_varint(struct spop_cursor *cursor, u64 *ret);
bool spop_get_text(struct spop_cursor *cursor, struct bytes *ret);
/* False also if the type is unknown or a 32-bit number has more bits. */
bool spop_get_value(struct spop_cursor *cursor, struct spop_value *ret);

struct spop_frame {
	u8 type; /* enum spop_frame_type, or an unknown type */
	u32 flags;
	u64 stream, frame;
	struct spop_cursor payload;
};
/* A frame without its length. */
bool spop_get_frame(const void *bytes, size_t size, struct spop_frame *ret);

struct spop_writer {
	u8 *start, *at, *end;
	bool full;
};

void spop_put_u8(struct spop_writer *writer, u8 value);
void spop_put_u32(struct spop_writer *writer, u32 value);
void spop_put_varint(struct spop_writer *writer, u64 value);
void spop_put_text(struct spop_writer *writer, struct bytes text);
void spop_put_value(struct spop_writer *writer, const struct spop_value *value);

/* Begins a frame at the start of the memory: room for its length, then the head. */
struct spop_writer spop_frame_begin(void *memory, size_t size, enum spop_frame_type type,
				    u64 stream, u64 frame);
/* Fills in the length. Returns the bytes to send with the length, or 0 if it did not fit. */
size_t spop_frame_end(struct spop_writer *writer);

/* "name" and a value, as in the lists of HELLO and DISCONNECT. */
void spop_put_pair_number(struct spop_writer *writer, const char *name, u32 value);
void spop_put_pair_string(struct spop_writer *writer, const char *name, const char *value);
/* Actions of an ACK, on variables of the transaction. */
void spop_put_set_var(struct spop_writer *writer, const char *name, const struct spop_value *value);
void spop_put_unset_var(struct spop_writer *writer, const char *name);

#endif
