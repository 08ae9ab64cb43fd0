// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_http1_plain.c - what http1_plain.c reads, libhttp-parser reads alike.
 *
 * A request that comes in two pieces is read by the parser alone, so each text is read twice, whole
 * and split after its first byte, and the exchanges are compared.
 */
#include "lib/rng.h"
#include "unit/request/frontends/http1/http1_rig.h"

static int client;

static void conn_open(struct http1_conn *conn)
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	client = fd[1];
	*conn = (struct http1_conn){ .of = of(), .fd = fd[0], .peer.local = true };
	conn->bev = bufferevent_socket_new(tier.worker[0].base, fd[0], BEV_OPT_CLOSE_ON_FREE);
	assert_non_null(conn->bev);
	conn->exchange = exchange_new(of());
	assert_non_null(conn->exchange);
}

static void conn_shut(struct http1_conn *conn)
{
	exchange_free(of(), conn->exchange);
	bufferevent_free(conn->bev);
	close(client);
}

/* Returns the bytes used. */
static size_t parse(struct http1_conn *conn, const char *text, size_t len, size_t first,
		    bool *ret_whole)
{
	size_t at = 0;

	exchange_begin(conn);
	for (*ret_whole = false; !*ret_whole && at < len; first = 0)
		at += exchange_parse(conn, text + at, first && first < len ? first : len - at,
				     ret_whole);
	return at;
}

static void assert_same_bytes(struct bytes a, struct bytes b)
{
	assert_int_equal(a.len, b.len);
	if (a.len)
		assert_memory_equal(a.at, b.at, a.len);
}

/* Whether it is of the usual form; either way both have read the same. */
static bool both(struct http1_conn *plain, struct http1_conn *parser, const char *text, size_t len)
{
	const struct exchange *a = plain->exchange, *b = parser->exchange;
	bool whole, parser_whole, usual;
	enum http_method method;
	struct bytes body;
	size_t used, parser_used;

	exchange_begin(plain);
	usual = exchange_plain(plain, (struct bytes){ text, len }, &method, &body);
	used = parse(plain, text, len, 0, &whole);
	parser_used = parse(parser, text, len, 1, &parser_whole);
	assert_int_equal(whole, parser_whole);
	assert_int_equal(a->refusal, b->refusal);
	if (!whole || a->refusal)
		return usual;
	assert_int_equal(used, parser_used);
	assert_same_bytes(a->request.method, b->request.method);
	assert_same_bytes(a->request.path, b->request.path);
	assert_same_bytes(a->request.query, b->request.query);
	assert_same_bytes(a->request.body, b->request.body);
	assert_int_equal(a->request.header_count, b->request.header_count);
	for (u32 i = 0; i < a->request.header_count; i++) {
		assert_same_bytes(a->request.header[i].name, b->request.header[i].name);
		assert_same_bytes(a->request.header[i].value, b->request.header[i].value);
	}
	assert_int_equal(a->has_length, b->has_length);
	assert_int_equal(a->wants_body, b->wants_body);
	assert_ptr_equal(a->route, b->route);
	assert_int_equal(plain->parser.http_minor, parser->parser.http_minor);
	assert_int_equal(plain->parser.method, parser->parser.method);
	assert_int_equal(conn_keeps(plain), conn_keeps(parser));
	return usual;
}

#define BODY                                                                                       \
	"{\"domain\":\"api\",\"descriptors\":[{\"entries\":[{\"key\":\"user\",\"value\":\"bob\"}]}]}"

static const char *const good[] = {
	"GET /nginx/check?domain=api&d=user HTTP/1.1\r\nHost: localhost\r\nX-Sluice-V-user: alice\r\n\r\n",
	"POST /v1/check HTTP/1.1\r\nHost: localhost\r\ncontent-length: 75\r\n\r\n" BODY,
	"POST /v1/check HTTP/1.1\r\nHost:localhost\r\nConnection: Keep-Alive\r\nX-Value:\t a b\xc3\xa4\x01 c\r\n"
	"Content-Length: 75\r\nContent-Type: application/json\r\n\r\n" BODY,
	"GET /healthz HTTP/1.1\r\nhost: localhost\r\nContent-Length: 3\r\n\r\nabc"
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
};

static const char *const other[] = {
	"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n",
	"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\nProxy-Connection: close\r\n\r\n",
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Empty:\r\n\r\n",
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Folded: a\r\n b\r\n\r\n",
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-End: a \r\n\r\n",
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-CR: a\rb\r\n\r\n",
	"GET /healthz HTTP/1.1\nHost: localhost\n\n",
	"GET /healthz#a HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
	"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 00000002\r\n\r\n{}",
	"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n{}",
	"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2x\r\n\r\n{}",
};
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

TEST_WITH(test_forms, begin, end)
{
	struct http1_conn a, b;

	conn_open(&a);
	conn_open(&b);
	for (size_t i = 0; i < LENGTH(good); i++) {
		assert_true(both(&a, &b, good[i], strlen(good[i])));
		for (size_t len = 1; len < strlen(good[i]); len++)
			both(&a, &b, good[i], len);
	}
	for (size_t i = 0; i < LENGTH(other); i++)
		assert_false(both(&a, &b, other[i], strlen(other[i])));
	conn_shut(&a);
	conn_shut(&b);
}

/* Blanks around a value are none of it, as nginx, HAProxy and node read it. */
TEST_WITH(test_blanks, begin, end)
{
	static const char text[] =
		"GET /healthz HTTP/1.1\r\nHost: localhost \r\nX-End:\t a b \t\r\nX-Blank: \t \r\n"
		"X-Folded: a\r\n \r\nX-None: \r\nExpect: 100-continue \r\n\r\n";
	static const char *const is[] = { "localhost", "a b", "", "a", "", "100-continue" };
	const struct http1_request *request;
	struct http1_conn conn;
	bool whole;

	conn_open(&conn);
	request = &conn.exchange->request;
	for (size_t first = 0; first < sizeof(text) - 1; first++) {
		parse(&conn, text, sizeof(text) - 1, first, &whole);
		assert_true(whole);
		assert_int_equal(conn.exchange->refusal, 0);
		assert_int_equal(request->header_count, LENGTH(is));
		for (size_t i = 0; i < LENGTH(is); i++)
			assert_same_bytes(request->header[i].value,
					  (struct bytes){ is[i], strlen(is[i]) });
	}
	conn_shut(&conn);
}

/* Each byte in place of each other one, and before it. */
TEST_WITH(test_each_byte, begin, end)
{
	struct http1_conn a, b;
	char text[512];
	u32 usual = 0;

	conn_open(&a);
	conn_open(&b);
	for (size_t i = 0; i < LENGTH(good); i++) {
		size_t len = strlen(good[i]);

		for (size_t at = 0; at < len; at++)
			for (int c = 0; c < 256; c++) {
				memcpy(text, good[i], len);
				text[at] = (char)c;
				usual += both(&a, &b, text, len);
				memcpy(text + at + 1, good[i] + at, len - at);
				usual += both(&a, &b, text, len + 1);
			}
	}
	assert_in_range(usual, 50000, 250000);
	conn_shut(&a);
	conn_shut(&b);
}

/* Lines of good requests and others, in any order, cut and joined. */
TEST_WITH(test_random, begin, end)
{
	struct http1_conn a, b;
	char text[2048];
	u32 usual = 0;

	rng_start("http1_plain");
	conn_open(&a);
	conn_open(&b);
	for (u32 round = 0; round < 50000; round++) {
		const char *first = good[rng_below(LENGTH(good))];
		size_t len = strcspn(first, "\n") + 1;

		memcpy(text, first, len);
		for (u32 lines = rng_below(6); lines; lines--) {
			bool odd = !rng_below(8);
			const char *from = odd ? other[rng_below(LENGTH(other))]
					       : good[rng_below(LENGTH(good))];

			for (u32 skip = 1 + rng_below(3); skip && strchr(from, '\n'); skip--)
				from = strchr(from, '\n') + 1;
			memcpy(text + len, from, strcspn(from, "\n") + 1);
			len += strcspn(from, "\n") + !!strchr(from, '\n');
		}
		memcpy(text + len, "\r\n" BODY, strlen("\r\n" BODY));
		len += rng_below(2) ? strlen("\r\n" BODY) : 2;
		usual += both(&a, &b, text, len);
	}
	assert_in_range(usual, 2000, 48000);
	conn_shut(&a);
	conn_shut(&b);
}

TEST_MAIN
