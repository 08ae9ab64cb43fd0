// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SPOP on the wire: numbers at every edge, typed data, frames; each cut short and overfull. */
#include "lib/test.h"
#include "request/frontends/spoe/spop.h"
#include "lib/rng.h"

static struct spop_cursor cursor_of(const void *bytes, size_t size)
{
	return (struct spop_cursor){ bytes, (const u8 *)bytes + size };
}

static struct spop_writer writer_of(void *memory, size_t size)
{
	return (struct spop_writer){ memory, memory, (u8 *)memory + size, false };
}

/* Edges of the table in HAProxy's SPOE.txt 3.1, and two numbers worked out by hand from it. */
TEST(test_varint_table)
{
	static const struct {
		u64 value;
		u32 size;
		const char *bytes;
	} cases[] = {
		{ 0, 1, "\x00" },
		{ 1, 1, "\x01" },
		{ 239, 1, "\xef" },
		{ 240, 2, "\xf0\x00" },
		{ 255, 2, "\xff\x00" },
		{ 256, 2, "\xf0\x01" },
		{ 2287, 2, "\xff\x7f" },
		{ 2288, 3, "\xf0\x80\x00" },
		{ 264431, 3, "\xff\xff\x7f" },
		{ 264432, 4, "\xf0\x80\x80\x00" },
		{ 33818863, 4, "\xff\xff\xff\x7f" },
		{ 33818864, 5, "\xf0\x80\x80\x80\x00" },
		{ 4328786159ULL, 5, "\xff\xff\xff\xff\x7f" },
		{ 4328786160ULL, 6, "\xf0\x80\x80\x80\x80\x00" },
		{ ~0ULL, 10, "\xff\xf0\xfe\xfe\xfe\xfe\xfe\xfe\xfe\x0e" },
	};
	u8 memory[SPOP_VARINT_MAX];

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct spop_writer writer = writer_of(memory, sizeof(memory));
		struct spop_cursor cursor = cursor_of(cases[i].bytes, cases[i].size);
		u64 value = 42;

		spop_put_varint(&writer, cases[i].value);
		assert_false(writer.full);
		assert_int_equal(writer.at - memory, cases[i].size);
		assert_memory_equal(memory, cases[i].bytes, cases[i].size);
		assert_true(spop_get_varint(&cursor, &value));
		assert_true(value == cases[i].value && cursor.at == cursor.end);
		for (u32 cut = 0; cut < cases[i].size; cut++) {
			cursor = cursor_of(cases[i].bytes, cut);
			assert_false(spop_get_varint(&cursor, &value));
			writer = writer_of(memory, cut);
			spop_put_varint(&writer, cases[i].value);
			assert_true(writer.full && writer.at == memory);
		}
	}
}

TEST(test_varint_too_big)
{
	static const char *const bad[] = {
		"\xf0\xf1\xfe\xfe\xfe\xfe\xfe\xfe\xfe\x0e", /* one more than 64 bits hold */
		"\xf0\xff\xff\xff\xff\xff\xff\xff\xff\x0f",
		"\xf0\x80\x80\x80\x80\x80\x80\x80\x80\x10",
		"\xf0\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct spop_cursor cursor = cursor_of(bad[i], 11);
		u64 value = 42;

		if (spop_get_varint(&cursor, &value))
			fail_msg("case %zu was read as %llu", i, value);
		assert_true(value == 42);
	}
}

/* There and back for all magnitudes; and a value read of any bytes is written as these bytes. */
TEST(test_varint_random)
{
	rng_start("varint");
	for (u32 i = 0; i < 200000; i++) {
		u64 value =
			i % 4 ? rng_magnitude(64) : (1ULL << rng_below(64)) + rng_below(600) - 300;
		u8 memory[16], again[16];
		struct spop_writer writer = writer_of(memory, sizeof(memory));
		struct spop_cursor cursor;
		u64 back;

		spop_put_varint(&writer, value);
		cursor = cursor_of(memory, writer.at - memory);
		assert_true(spop_get_varint(&cursor, &back));
		assert_true(back == value && cursor.at == cursor.end);

		for (u32 k = 0; k < sizeof(memory); k++)
			memory[k] = k ? rng() | (rng_below(8) ? 0x80 : 0) : rng() | 0xf0;
		cursor = cursor_of(memory, sizeof(memory));
		if (!spop_get_varint(&cursor, &back))
			continue;
		writer = writer_of(again, sizeof(again));
		spop_put_varint(&writer, back);
		assert_int_equal(writer.at - again, cursor.at - memory);
		assert_memory_equal(again, memory, cursor.at - memory);
	}
}

#define LITERAL(text) text, sizeof(text) - 1

TEST(test_values)
{
	static const struct {
		const char *bytes;
		size_t size;
		enum spop_type type;
		s64 number;
		const char *text;
		size_t text_size;
	} cases[] = {
		{ LITERAL("\x00"), SPOP_NULL, 0, NULL, 0 },
		{ LITERAL("\x01"), SPOP_BOOL, 0, NULL, 0 },
		{ LITERAL("\x11"), SPOP_BOOL, 1, NULL, 0 },
		{ LITERAL("\xf1"), SPOP_BOOL, 1, NULL, 0 },
		{ LITERAL("\x02\x05"), SPOP_INT32, 5, NULL, 0 },
		{ LITERAL("\x02\xff\xf0\xfe\xfe\xfe\xfe\xfe\xfe\xfe\x0e"), SPOP_INT32, -1, NULL,
		  0 },
		{ LITERAL("\x02\xff\xf0\xfe\xfe\x7e"), SPOP_INT32, -1, NULL, 0 },
		{ LITERAL("\x03\xff\xf0\xfe\xfe\x7e"), SPOP_UINT32, 0xffffffffLL, NULL, 0 },
		{ LITERAL("\x04\xff\xf0\xfe\xfe\xfe\xfe\xfe\xfe\xfe\x0e"), SPOP_INT64, -1, NULL,
		  0 },
		{ LITERAL("\x05\x07"), SPOP_UINT64, 7, NULL, 0 },
		{ LITERAL("\x06\xc0\x00\x02\x07"), SPOP_IPV4, 0, LITERAL("\xc0\x00\x02\x07") },
		{ LITERAL("\x07"
			  "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"),
		  SPOP_IPV6, 0, LITERAL("\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01") },
		{ LITERAL("\x08\x03"
			  "a\0b"),
		  SPOP_STRING, 0, LITERAL("a\0b") },
		{ LITERAL("\x08\x00"), SPOP_STRING, 0, LITERAL("") },
		{ LITERAL("\x09\x02\xff\xfe"), SPOP_BINARY, 0, LITERAL("\xff\xfe") },
	};
	struct spop_value value;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct spop_cursor cursor = cursor_of(cases[i].bytes, cases[i].size);

		if (!spop_get_value(&cursor, &value))
			fail_msg("case %zu was not read", i);
		assert_true(cursor.at == cursor.end);
		assert_int_equal(value.type, cases[i].type);
		assert_true((s64)value.number == cases[i].number);
		assert_int_equal(value.text.len, cases[i].text_size);
		assert_memory_equal(value.text.at ? value.text.at : "",
				    cases[i].text ? cases[i].text : "", cases[i].text_size);
		for (size_t cut = 0; cut < cases[i].size; cut++) {
			cursor = cursor_of(cases[i].bytes, cut);
			assert_false(spop_get_value(&cursor, &value));
		}
	}
}

TEST(test_values_bad)
{
	static const struct {
		const char *bytes;
		size_t size;
	} bad[] = {
		{ LITERAL("\x0a") },
		{ LITERAL("\x0f\x00") },		 /* no such type */
		{ LITERAL("\x03\xf0\xf1\xfe\xfe\x7e") }, /* 2^32 as 32 bits */
		{ LITERAL("\x02\xf0\xf1\xfe\xfe\x7e") },
		{ LITERAL("\x08\x05"
			  "abcd") }, /* longer than what is there */
		{ LITERAL("\x08\xff\xf0\xfe\xfe\xfe\xfe\xfe\xfe\xfe\x0e"
			  "abcd") },
	};
	struct spop_value value = { .number = 42 };

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct spop_cursor cursor = cursor_of(bad[i].bytes, bad[i].size);

		if (spop_get_value(&cursor, &value))
			fail_msg("case %zu was read", i);
		assert_true(value.number == 42);
	}
}

TEST(test_frame)
{
	u8 memory[256];
	struct spop_writer writer =
		spop_frame_begin(memory, sizeof(memory), SPOP_AGENT_HELLO, 240, 2);
	struct spop_frame frame;
	struct bytes name;
	struct spop_value value;
	size_t size;

	spop_put_pair_string(&writer, "version", "2.0");
	spop_put_pair_number(&writer, "max-frame-size", 16380);
	size = spop_frame_end(&writer);
	assert_int_equal(size, 4 + 1 + 4 + 2 + 1 + (1 + 7 + 1 + 1 + 3) + (1 + 14 + 1 + 3));
	assert_memory_equal(memory,
			    "\0\0\0\x28"
			    "\x65"
			    "\0\0\0\x01"
			    "\xf0\x00"
			    "\x02"
			    "\x07version",
			    20);
	assert_true(spop_get_frame(memory + 4, size - 4, &frame));
	assert_int_equal(frame.type, SPOP_AGENT_HELLO);
	assert_int_equal(frame.flags, SPOP_FIN);
	assert_true(frame.stream == 240 && frame.frame == 2);
	assert_true(spop_get_text(&frame.payload, &name));
	assert_true(name.len == 7 && !memcmp(name.at, "version", 7));
	assert_true(spop_get_value(&frame.payload, &value) && value.type == SPOP_STRING);
	assert_true(spop_get_text(&frame.payload, &name) && spop_get_value(&frame.payload, &value));
	assert_true(value.number == 16380 && frame.payload.at == frame.payload.end);
	for (size_t cut = 0; cut < 8; cut++)
		assert_false(spop_get_frame(memory + 4, cut, &frame));
}

/* A value that does not fit is not sent: no length, nothing beyond the memory, no partial frame. */
TEST(test_frame_full)
{
	u8 memory[64];

	for (size_t size = 0; size < 40; size++) {
		struct spop_writer writer;

		memset(memory, 0xaa, sizeof(memory));
		writer = spop_frame_begin(memory, size, SPOP_ACK, 1, 1);
		spop_put_set_var(&writer, "limited", &(struct spop_value){ SPOP_BOOL, 1, { 0 } });
		spop_put_unset_var(&writer, "reason");
		if (size < 4 + 1 + 4 + 2 + (3 + 8 + 1) + (3 + 7))
			assert_int_equal(spop_frame_end(&writer), 0);
		else
			assert_int_equal(spop_frame_end(&writer), 33);
		for (size_t i = size; i < sizeof(memory); i++)
			assert_int_equal(memory[i], 0xaa);
	}
}

TEST_MAIN
