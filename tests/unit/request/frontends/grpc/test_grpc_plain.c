// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_grpc_plain.c - what grpc_plain.c reads, protobuf-c reads alike, and what it writes,
 * protobuf-c writes alike, to the byte.
 */
#include <sys/mman.h>

#include "grpc_wire.h"
#include "lib/rng.h"
#include "lib/test.h"
#include "request/frontends/grpc/grpc_private.h"
#include "request/rules/request_text.h"
#include "request/rules/rule.h"

static void *stream_alloc(void *stream, size_t size)
{
	return grpc_stream_alloc(stream, size);
}

static void stream_free(void *stream, void *at)
{
}

static void stream_begin(struct grpc_stream *stream)
{
	memset(stream, 0, offsetof(struct grpc_stream, arena));
	stream->arena_left = 1 << 20;
	stream->allocator = (ProtobufCAllocator){ stream_alloc, stream_free, stream };
}

static void stream_end(struct grpc_stream *stream)
{
	grpc_stream_release(stream, (struct grpc_mark){ .block = NULL });
}

static void assert_same_bytes(struct bytes a, struct bytes b)
{
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.at, b.at, a.len);
}

static void assert_same_descriptor(const struct request_descriptor *a,
				   const struct request_descriptor *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->beyond, b->beyond);
	assert_int_equal(a->refund, b->refund);
	assert_int_equal(a->hits, b->hits);
	assert_int_equal(a->limit_unit, b->limit_unit);
	for (u32 i = 0; i < a->count; i++) {
		assert_same_bytes(a->entry[i].key, b->entry[i].key);
		assert_same_bytes(a->entry[i].value, b->entry[i].value);
	}
}

#define ROOM (512 * 1024)

/* A copy that ends where no memory is: reading beyond it is noticed. */
static const u8 *at_the_edge(const u8 *at, size_t len)
{
	static u8 *room;

	if (!room) {
		room = mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
		assert_ptr_not_equal(room, MAP_FAILED);
		assert_int_equal(mprotect(room + ROOM, ROOM, PROT_NONE), 0);
	}
	return memcpy(room + ROOM - len, at, len);
}

/* Whether it is of the usual form; then both have read the same. Else nothing is left of the
 * try. */
static bool both(const u8 *from, size_t len)
{
	const u8 *at = at_the_edge(from, len);
	static struct grpc_stream stream, other;
	struct request plain = { .api = API_GRPC }, read = plain, untouched = plain;
	bool usual;

	stream_begin(&stream);
	stream_begin(&other);
	usual = grpc_request_plain(&stream, (struct bytes){ (const char *)at, len }, &plain);
	if (!usual) {
		assert_memory_equal(&plain, &untouched, sizeof(plain));
		assert_int_equal(stream.arena_used, 0);
		assert_int_equal(stream.arena_left, other.arena_left);
		assert_null(stream.block);
		return false;
	}
	assert_null(grpc_request_read(&other, (struct bytes){ (const char *)at, len }, &read));
	assert_null(read.beyond);
	assert_same_bytes(plain.domain, read.domain);
	assert_int_equal(plain.has_source, read.has_source);
	assert_true(!plain.has_source || sl_prefix_equal(&plain.source, &read.source));
	assert_int_equal(plain.count, read.count);
	for (u32 i = 0; i < plain.count; i++)
		assert_same_descriptor(&plain.descriptor[i], &read.descriptor[i]);
	stream_end(&stream);
	stream_end(&other);
	return true;
}

/* ------------------------------------------------------------------ requests */

static size_t random_text(char *to, size_t most)
{
	size_t len = rng_below(8) ? rng_below(12) : rng_below(most);

	for (size_t i = 0; i < len; i++)
		to[i] = (char)rng_below(256);
	return len;
}

static void add_entry(struct wire *descriptor)
{
	static struct wire entry;
	char text[300];

	entry.len = 0;
	if (rng_below(8))
		wire_bytes(&entry, 1, text, random_text(text, sizeof(text)));
	else
		wire_bytes(&entry, 1, REQUEST_SOURCE_KEY, strlen(REQUEST_SOURCE_KEY));
	if (rng_below(8))
		wire_bytes(&entry, 2, text, random_text(text, sizeof(text)));
	else if (rng_below(8))
		wire_bytes(&entry, 2, "192.0.2.1", 9);
	if (!rng_below(32))
		wire_number(&entry, rng_below(20) + 1, rng_below(1000));
	wire_bytes(descriptor, 1, entry.at, entry.len);
}

static void add_descriptor(struct wire *wire)
{
	static struct wire descriptor;

	descriptor.len = 0;
	for (u64 entries = rng_below(8) ? rng_below(4) : rng_below(20); entries; entries--)
		add_entry(&descriptor);
	if (!rng_below(16))
		wire_bytes(&descriptor, 2 + rng_below(2), "\x08\x07", 2);
	wire_bytes(wire, 2, descriptor.at, descriptor.len);
}

static void random_request(struct wire *wire)
{
	char text[300];

	wire->len = 0;
	if (rng_below(16))
		wire_bytes(wire, 1, text, random_text(text, sizeof(text)));
	for (u64 count = rng_below(16) ? 1 + rng_below(3) : rng_below(40); count; count--)
		add_descriptor(wire);
	if (!rng_below(4))
		wire_number(wire, 3, rng_below(2) ? rng_below(3) : rng_below(100000));
	if (!rng_below(32))
		wire_number(wire, rng_below(20) + 1, rng_below(1000));
}

TEST(test_requests)
{
	static struct wire wire;
	u32 usual = 0;

	rng_start("grpc_plain");
	for (u32 round = 0; round < 20000; round++) {
		random_request(&wire);
		usual += both(wire.at, wire.len);
		/* Cut, and with a byte changed. */
		if (!wire.len)
			continue;
		both(wire.at, rng_below(wire.len));
		wire.at[rng_below(wire.len)] = (u8)rng_below(256);
		usual += both(wire.at, wire.len);
	}
	assert_in_range(usual, 10000, 38000);
}

TEST(test_count)
{
	static struct wire wire;

	wire.len = 0;
	wire_bytes(&wire, 1, "api", 3);
	assert_false(both(wire.at, wire.len));
	for (u32 count = 1; count <= 40; count++) {
		wire_bytes(&wire, 2, "", 0);
		assert_int_equal(both(wire.at, wire.len), count <= REQUEST_DESCRIPTORS_MAX);
	}
}

TEST(test_each_byte)
{
	static struct wire wire;
	u32 usual = 0;

	wire = *wire_user("alice");
	wire_number(&wire, 3, 7);
	assert_true(both(wire.at, wire.len));
	for (size_t at = 0; at < wire.len; at++) {
		u8 was = wire.at[at];

		assert_false(at + 2 != wire.len && both(wire.at, at));
		for (u32 c = 0; c < 256; c++) {
			wire.at[at] = (u8)c;
			usual += both(wire.at, wire.len);
		}
		wire.at[at] = was;
	}
	assert_in_range(usual, 3000, 6000);
}

/* A length of three bytes is not usual, also where two of them and the text behind would be. */
TEST(test_long)
{
	static const u8 rest[] = "\x12\x0a\x10\x0a\x06"
				 "abcdef"
				 "\x12\x06"
				 "ghijkl";
	static u8 message[20000];
	u8 *at = message;

	*at++ = 0x0a;
	*at++ = 0x80;
	*at++ = 0x80;
	*at++ = 0x01;
	memset(at, 'a', 16384);
	at += 16384;
	at[-1] = 0x12;
	memcpy(at, rest, sizeof(rest) - 1);
	assert_false(both(message, at + sizeof(rest) - 1 - message));
}

/* ------------------------------------------------------------------ responses */

#define TEXT_MAX 400

/* A response, and the rules and limits that it points to. */
struct made {
	struct response response;
	struct rule rule[4];
	struct rule_limit limit[4];
	char name[8][TEXT_MAX + 1];
};

static u64 random_number(void)
{
	static const u64 edges[] = {
		0, 127, 128, 16383, 16384, UINT32_MAX, UINT32_MAX + 1ULL, ~0ULL
	};

	return rng_below(4) ? rng() >> rng_below(64) : edges[rng_below(8)];
}

static u64 random_window(void)
{
	static const u64 seconds[] = { 0, 1, 60, 3600, 86400, 7 * 86400, 30 * 86400, 90 };

	return seconds[rng_below(8)] * SL_NS_PER_SEC;
}

static void make_name(char *name)
{
	size_t len = rng_below(4) ? rng_below(20) : rng_below(TEXT_MAX + 1);

	for (size_t i = 0; i < len; i++)
		name[i] = (char)(rng_below(8) ? 'a' + rng_below(26) : 1 + rng_below(255));
	name[len] = 0;
}

static void make_status(struct made *made, struct response_status *status)
{
	*status = (struct response_status){
		.over = rng_below(2),
		.shadow = !rng_below(4),
		.unlimited = !rng_below(8),
		.rule = rng_below(4) ? &made->rule[rng_below(4)] : NULL,
		.limit = rng_below(4) ? &made->limit[rng_below(4)] : NULL,
		.requests = random_number(),
		.window_ns = random_window(),
		.remaining = random_number(),
		.reset_ns = random_number(),
		.retry_after_ns = random_number(),
	};
}

static void make(struct made *made)
{
	struct response *response = &made->response;

	memset(response, 0, sizeof(*response));
	for (u32 i = 0; i < 8; i++)
		make_name(made->name[i]);
	for (u32 i = 0; i < 4; i++) {
		made->rule[i] = (struct rule){ .domain = "api", .path = made->name[i] };
		made->limit[i] = (struct rule_limit){ .name = i ? made->name[4 + i] : NULL };
	}
	response->code = (enum response_code)rng_below(3);
	response->count =
		(u32)(rng_below(8) ? rng_below(3) : rng_below(REQUEST_DESCRIPTORS_MAX + 1));
	for (u32 i = 0; i < response->count; i++)
		make_status(made, &response->status[i]);
	response->policy_count = (u32)rng_below(RESPONSE_POLICIES_MAX + 1);
	for (u32 i = 0; i < response->policy_count; i++)
		response->policy[i] = (struct response_policy){
			.rule = &made->rule[rng_below(4)],
			.limit = &made->limit[rng_below(4)],
			.q = random_number(),
			.w_s = random_number(),
			.r = random_number(),
			.t_ns = random_number(),
			.reset_ns = random_number(),
			.prefix_len = (u8)(rng_below(4) ? 0 : rng_below(129)),
		};
	response->retry_after_ns = random_number();
}

TEST(test_responses)
{
	static struct grpc_response_message message;
	static struct grpc_stream stream;
	static struct made made;
	static char plain[32 * 1024], packed[32 * 1024];

	rng_start("grpc_plain");
	for (u32 round = 0; round < 20000; round++) {
		size_t len, size;

		make(&made);
		/* What only shadow mode lets pass is in the metadata, which protobuf-c writes. */
		if (response_shadow(&made.response, plain, sizeof(plain))[0])
			made.response.code = RESPONSE_OVER_LIMIT;
		stream_begin(&stream);
		grpc_response_set(&stream, &message, &made.response, 0);
		assert_null(message.response.dynamic_metadata);
		size = rls__response__get_packed_size(&message.response);
		assert_in_range(size, 1, sizeof(packed) - 16);
		rls__response__pack(&message.response, (u8 *)packed);
		len = grpc_response_plain(&made.response, 0, plain, sizeof(plain));
		assert_int_equal(len, size);
		assert_memory_equal(plain, packed, size);
		/* It fits exactly, or not at all; what is behind the room is untouched. */
		memset(plain, '!', size + 16);
		assert_int_equal(grpc_response_plain(&made.response, 0, plain, size), size);
		assert_memory_equal(plain, packed, size);
		assert_int_equal(plain[size], '!');
		len = rng_below(size);
		memset(plain, '!', size + 16);
		assert_int_equal(grpc_response_plain(&made.response, 0, plain, len), 0);
		assert_int_equal(plain[len], '!');
		stream_end(&stream);
	}
}

TEST_MAIN
