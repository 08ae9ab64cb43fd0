// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * HAProxy's arguments as requests, and a response as variables. Messages are
 * written here in one line each: "domain=s:api d1_user=s:bob source=4:192.0.2.7".
 */
#include <arpa/inet.h>

#include "lib/request_print.h"
#include "lib/test.h"
#include "request/server/response.h"
#include "request/frontends/spoe/spoe_request.h"
#include "lib/rng.h"

static struct spoe_request got;
static u8 payload[SPOP_FRAME_MAX + 64];

/* ------------------------------------------------------------------ writing messages */

static struct bytes bytes_of(const char *text)
{
	return (struct bytes){ text, strlen(text) };
}

/* s: string, x: binary, i: INT64, u: UINT32, b: bool, 4: and 6: addresses, n: null */
static void put_argument(struct spop_writer *writer, char *argument)
{
	char *text = strchr(argument, '=') + 1;
	u8 address[16];
	struct spop_value value = { .type = SPOP_NULL };

	text[-1] = 0;
	switch (text[0]) {
	case 's':
		value = (struct spop_value){ SPOP_STRING, 0, bytes_of(text + 2) };
		break;
	case 'x':
		value = (struct spop_value){ SPOP_BINARY, 0, bytes_of(text + 2) };
		break;
	case 'i':
		value = (struct spop_value){ SPOP_INT64, strtoll(text + 2, NULL, 10), { 0 } };
		break;
	case 'u':
		value = (struct spop_value){ SPOP_UINT32, strtoull(text + 2, NULL, 10), { 0 } };
		break;
	case 'b':
		value = (struct spop_value){ SPOP_BOOL, text[2] == '1', { 0 } };
		break;
	case '4':
		assert_int_equal(inet_pton(AF_INET, text + 2, address), 1);
		value = (struct spop_value){ SPOP_IPV4, 0, { (char *)address, 4 } };
		break;
	case '6':
		assert_int_equal(inet_pton(AF_INET6, text + 2, address), 1);
		value = (struct spop_value){ SPOP_IPV6, 0, { (char *)address, 16 } };
		break;
	default:
		assert_string_equal(text, "n:");
	}
	spop_put_text(writer, bytes_of(argument));
	spop_put_value(writer, &value);
}

/* Messages are parted by " | ", arguments by spaces. */
static size_t messages(const char *text)
{
	struct spop_writer writer = { payload, payload, payload + sizeof(payload), false };
	char *copy = strdup(text), *rest = copy, *message;

	while ((message = strsep(&rest, "|"))) {
		char *argument, *arguments = message;
		u32 count = 0;
		u8 *at;

		spop_put_text(&writer, bytes_of("check"));
		at = writer.at;
		spop_put_u8(&writer, 0);
		while ((argument = strsep(&arguments, " "))) {
			if (!argument[0])
				continue;
			put_argument(&writer, argument);
			count++;
		}
		*at = count;
	}
	free(copy);
	assert_false(writer.full);
	return writer.at - payload;
}

static const char *request_text(const struct request *request, char *buf, size_t size)
{
	FILE *out = fmemopen(buf, size, "w");

	for (u32 i = 0; i < request->count; i++)
		assert_false(request->descriptor[i].limit_requests ||
			     request->descriptor[i].limit_unit);
	request_print(request, out);
	fclose(out);
	return buf;
}

/* ------------------------------------------------------------------ calls */

static const struct {
	const char *messages, *request;
} calls[] = {
	{ "domain=s:api", "api" },
	{ "domain=s:api user=s:bob", "api [user=bob]" },
	{ "domain=s:api user=s:bob path=s:/x", "api [user=bob,path=/x]" },
	{ "user=s:bob domain=s:api", "api [user=bob]" },
	/* numbers begin descriptors, and go on with them */
	{ "domain=s:api d1_user=s:bob d2_path=s:/x", "api [user=bob] [path=/x]" },
	{ "domain=s:api d1_user=s:bob path=s:/x", "api [user=bob,path=/x]" },
	{ "domain=s:api d2_user=s:bob d1_path=s:/x d2_method=s:GET",
	  "api [user=bob,method=GET] [path=/x]" },
	{ "domain=s:api user=s:bob d1_path=s:/x", "api [user=bob] [path=/x]" },
	{ "domain=s:api d1_user=s:a d2_user=s:b d12_user=s:c", "api [user=a] [user=b] [user=c]" },
	/* text that is no number is a key */
	{ "domain=s:api d_user=s:a d1_=s:b dx_y=s:c d1user=s:d d1234_u=s:e d0_z=s:f",
	  "api [d_user=a,d1_=b,dx_y=c,d1user=d,d1234_u=e] [z=f]" },
	/* a missing value leaves its descriptor out, and no other one */
	{ "domain=s:api d1_user=n: d2_path=s:/x", "api [path=/x]" },
	{ "domain=s:api d1_path=s:/x d1_user=n: d2_user=s:bob", "api [user=bob]" },
	{ "domain=s:api user=n: path=s:/x", "api" },
	{ "domain=s:api user=s: path=s:/x", "api [user=,path=/x]" },
	/* each type as text; an IPv4 address is one in any form */
	{ "domain=s:api a=i:-5 b=i:0 c=u:4294967295 d=b:1 e=b:0 f=x:raw",
	  "api [a=-5,b=0,c=4294967295,d=true,e=false,f=raw]" },
	{ "domain=s:api a=i:-9223372036854775808 b=i:9223372036854775807",
	  "api [a=-9223372036854775808,b=9223372036854775807]" },
	{ "domain=s:api a=4:192.0.2.7 b=6:2001:db8::1 c=6:::ffff:192.0.2.7",
	  "api [a=192.0.2.7,b=2001:db8::1,c=192.0.2.7]" },
	{ "domain=s:api source=4:192.0.2.7", "api source=192.0.2.7" },
	{ "domain=s:api source=6:2001:db8::1", "api source=2001:db8::1" },
	{ "domain=s:api source=6:::ffff:192.0.2.7", "api source=192.0.2.7" },
	{ "domain=s:api source=s:192.0.2.7", "api source=192.0.2.7" },
	{ "domain=s:api source=s:::ffff:192.0.2.7", "api source=192.0.2.7" },
	{ "domain=s:api source=n: user=s:bob", "api [user=bob]" },
	{ "domain=s:api source=s:192.0.2.0/24 a=s:1", "api [a=1]" },
	{ "domain=s:api source=s:unknown a=s:1", "api [a=1]" },
	{ "domain=s:api source=s:1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb a=s:1",
	  "api [a=1]" },
	{ "domain=s:api source=i:7 a=s:1", "api [a=1]" },
	/* a path in one form, and only the argument of that name */
	{ "domain=s:api path=s:/%61/../b//c/./d?e url=s:/%61", "api [path=/b/c/d,url=/%61]" },
	{ "domain=s:api d1_path=s:/a/ d2_path=s:/a/. d3_path=s:/../%2e%2E/a/",
	  "api [path=/a/] [path=/a/] [path=/a/]" },
	{ "domain=s:api path=s:/%2 d1_path=s: d2_path=s:%zz", "api [path=/%2] [path=] [path=%zz]" },
	/* hits, of the message or of one */
	{ "domain=s:api hits=i:5 user=s:bob", "api [user=bob]*5" },
	{ "domain=s:api d1_user=s:bob d2_path=s:/x hits=u:3", "api [user=bob]*3 [path=/x]*3" },
	{ "domain=s:api d1_user=s:bob d2_path=s:/x d2_hits=i:7 hits=i:2",
	  "api [user=bob]*2 [path=/x]*7" },
	{ "domain=s:api hits=i:0 user=s:bob", "api [user=bob]*0" },
	{ "domain=s:api hits=s:12 user=s:bob", "api [user=bob]*12" },
	{ "domain=s:api hits=n: user=s:bob", "api [user=bob]" },
	{ "domain=s:api hits=i:-1 user=s:bob", "api [user=bob]" },
	{ "domain=s:api hits=s:-1 user=s:bob", "api [user=bob]" },
	{ "domain=s:api hits=s: user=s:bob", "api [user=bob]" },
	{ "domain=s:api hits=s:1e9 user=s:bob", "api [user=bob]" },
	{ "domain=s:api hits=b:0 user=s:bob", "api [user=bob]" },
	{ "domain=s:api hits=i:9223372036854775807 user=s:bob",
	  "api [user=bob]*9223372036854775807" },
	{ "domain=s:api hits=s:99999999999999999999999999 user=s:bob",
	  "api [user=bob]*9999999999999" },
	{ "domain=s:api d1_hits=i:4 d2_user=s:bob", "api [user=bob]" },
	/* several messages are one request; numbers and hits are a message's own */
	{ "domain=s:api user=s:bob|path=s:/x", "api [user=bob] [path=/x]" },
	{ "domain=s:api d1_user=s:bob hits=i:2|domain=s:api d1_path=s:/x",
	  "api [user=bob]*2 [path=/x]" },
	{ "user=s:bob|d1_user=n:|domain=s:api source=4:192.0.2.7",
	  "api source=192.0.2.7 [user=bob]" },
};

TEST(test_calls)
{
	const char *reason;
	char text[4096];

	for (size_t i = 0; i < COUNT(calls); i++) {
		size_t size = messages(calls[i].messages);
		int r = spoe_request_read(&got, payload, size, &reason);

		if (r)
			fail_msg("%s: %d", calls[i].messages, r);
		assert_string_equal(request_text(&got.request, text, sizeof(text)),
				    calls[i].request);
		assert_int_equal(got.request.api, API_SPOE);
		assert_false(got.request.peek || got.request.report || got.request.max_wait_ns);
	}
}

static void expect_reason(const char *text, const char *words)
{
	const char *reason = NULL;
	size_t size = messages(text);

	assert_int_equal(spoe_request_read(&got, payload, size, &reason), -EINVAL);
	if (!strstr(reason, words))
		fail_msg("%s: \"%s\" does not say \"%s\"", text, reason, words);
}

/* Errors of the SPOE configuration are reported; requests above a bound are not errors. */
TEST(test_reasons)
{
	char text[16384], *at = text;
	const char *reason;
	u32 i;

	expect_reason("user=s:bob", "no domain");
	expect_reason("domain=n:", "not a string");
	expect_reason("domain=i:5", "not a string");
	expect_reason("domain=s:", "empty");
	expect_reason("domain=s:a|domain=s:b", "two domains");
	expect_reason("domain=s:a =s:x", "without a name");

	at += sprintf(at, "domain=s:api");
	for (i = 1; i <= REQUEST_DESCRIPTORS_MAX; i++)
		at += sprintf(at, " d%u_user=s:%u", i, i);
	assert_int_equal(spoe_request_read(&got, payload, messages(text), &reason), 0);
	assert_int_equal(got.request.count, REQUEST_DESCRIPTORS_MAX);
	assert_null(got.request.beyond);
	/* Its domain may stand behind them: a caller without a right to it gets no detail. */
	sprintf(at, " d%u_user=s:x", i);
	memcpy(text + 9, "xyz", 3);
	assert_int_equal(spoe_request_read(&got, payload, messages(text), &reason), 0);
	assert_string_equal(got.request.beyond, "more than 32 descriptors");
	assert_int_equal(got.request.count, 0);
	assert_int_equal(got.request.domain.len, 3);
	assert_memory_equal(got.request.domain.at, "xyz", 3);

	at = text + sprintf(text, "domain=s:api");
	for (i = 1; i <= REQUEST_ENTRIES_MAX; i++)
		at += sprintf(at, " k%u=i:-123456789012345", i);
	assert_int_equal(spoe_request_read(&got, payload, messages(text), &reason), 0);
	assert_int_equal(got.request.descriptor[0].count, REQUEST_ENTRIES_MAX);
	assert_false(got.request.descriptor[0].beyond);
	sprintf(at, " k%u=s:x", i);
	assert_int_equal(spoe_request_read(&got, payload, messages(text), &reason), 0);
	assert_int_equal(got.request.descriptor[0].count, REQUEST_ENTRIES_MAX);
	assert_true(got.request.descriptor[0].beyond);

	at = text + sprintf(text, "domain=s:api ");
	memset(at, 'k', REQUEST_KEY_MAX);
	strcpy(at + REQUEST_KEY_MAX, "=s:x");
	assert_int_equal(spoe_request_read(&got, payload, messages(text), &reason), 0);
	at[REQUEST_KEY_MAX] = 'k';
	strcpy(at + REQUEST_KEY_MAX + 1, "=s:x");
	assert_int_equal(spoe_request_read(&got, payload, messages(text), &reason), 0);
	assert_int_equal(got.request.descriptor[0].entry[0].key.len, REQUEST_KEY_MAX + 1);
	assert_false(got.request.descriptor[0].beyond);
}

/* Every number and address that a frame has room for has room as text. */
TEST(test_most_text)
{
	struct spop_writer writer = { payload, payload, payload + sizeof(payload), false };
	static const u8 wide[16] = { 0xfd, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
				     0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };
	const struct spop_value value = { SPOP_IPV6, 0, { (const char *)wide, 16 } };
	const char *reason;
	char key[16];

	for (u32 i = 0; i < REQUEST_DESCRIPTORS_MAX; i++) {
		spop_put_text(&writer, bytes_of("check"));
		spop_put_u8(&writer, REQUEST_ENTRIES_MAX + !i);
		if (!i) {
			spop_put_text(&writer, bytes_of("domain"));
			spop_put_value(&writer,
				       &(struct spop_value){ SPOP_STRING, 0, { "api", 3 } });
		}
		for (u32 k = 0; k < REQUEST_ENTRIES_MAX; k++) {
			snprintf(key, sizeof(key), "k%u", k);
			spop_put_text(&writer, bytes_of(key));
			spop_put_value(&writer, &value);
		}
	}
	assert_int_equal(spoe_request_read(&got, payload, writer.at - payload, &reason), 0);
	assert_int_equal(got.request.count, REQUEST_DESCRIPTORS_MAX);
	assert_true(got.text_len <= sizeof(got.text));
	for (u32 i = 0; i < REQUEST_DESCRIPTORS_MAX; i++) {
		for (u32 k = 0; k < REQUEST_ENTRIES_MAX; k++)
			assert_memory_equal(got.descriptor[i].entry[k].value.at,
					    "fd11:2233:4455:6677:8899:aabb:ccdd:eeff", 39);
	}
}

/* Cut anywhere it is invalid; any value is accepted, of any bytes. */
TEST(test_bytes)
{
	struct spop_writer writer = { payload, payload, payload + sizeof(payload), false };
	static char value[REQUEST_VALUE_MAX + 1];
	size_t size =
		messages("domain=s:api d1_user=s:bob d2_path=i:1000|source=4:192.0.2.7 x=b:1");
	size_t second = messages("domain=s:api d1_user=s:bob d2_path=i:1000");
	const char *reason;
	int r;

	messages("domain=s:api d1_user=s:bob d2_path=i:1000|source=4:192.0.2.7 x=b:1");
	for (size_t cut = 0; cut < size; cut++) {
		r = spoe_request_read(&got, payload, cut, &reason);
		assert_int_equal(r, !cut ? -EINVAL : cut == second ? 0 : -EBADMSG);
	}
	for (size_t i = 0; i < sizeof(value); i++)
		value[i] = i * 7;
	spop_put_text(&writer, bytes_of("check"));
	spop_put_u8(&writer, 2);
	spop_put_text(&writer, bytes_of("domain"));
	spop_put_value(&writer, &(struct spop_value){ SPOP_STRING, 0, { "api", 3 } });
	spop_put_text(&writer, bytes_of("agent"));
	spop_put_value(&writer, &(struct spop_value){ SPOP_STRING, 0, { value, sizeof(value) } });
	assert_int_equal(spoe_request_read(&got, payload, writer.at - payload, &reason), 0);
	assert_int_equal(got.descriptor[0].entry[0].value.len, sizeof(value));
	assert_memory_equal(got.descriptor[0].entry[0].value.at, value, sizeof(value));
	assert_int_equal(spoe_request_read(&got, payload, SPOP_FRAME_MAX + 1, &reason), -EBADMSG);
}

/* A copy equals the request, and holds nothing of its original. */
TEST(test_copy)
{
	const char *words = "domain=s:api source=4:192.0.2.7 hits=i:3 d1_user=s:bob d1_ok=b:1 "
			    "d2_ip=6:2001:db8::1 d2_n=i:-7|d1_path=s:/x";
	char before[512], after[512];
	struct request copy;
	const char *reason;
	void *memory;
	size_t size = messages(words);

	assert_int_equal(spoe_request_read(&got, payload, size, &reason), 0);
	request_text(&got.request, before, sizeof(before));
	memory = malloc(spoe_request_size(&got));
	spoe_request_copy(&got, &copy, memory);
	memset(&got, 0xa5, sizeof(got));
	assert_string_equal(request_text(&copy, after, sizeof(after)), before);
	free(memory);
}

/* Any bytes: nothing beyond them is read, no more is found than they could hold. */
TEST(test_random)
{
	const char *reason;

	rng_start("spoe_request");
	for (u32 i = 0; i < 20000; i++) {
		size_t size =
			messages("domain=s:api d1_user=s:bob hits=i:5 d2_ip=4:192.0.2.7 n=i:-3");
		u8 *copy = malloc(size);

		for (u32 k = rng_below(4); k < 4; k++)
			payload[rng_below(size)] = rng();
		memcpy(copy, payload, size);
		if (!spoe_request_read(&got, copy, size, &reason))
			assert_true(got.request.count <= REQUEST_DESCRIPTORS_MAX);
		free(copy);
	}
}

TEST_MAIN
