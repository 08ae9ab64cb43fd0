// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_http1.c - HTTP/1.1 over socket pairs: requests read, refused and kept, and in which pieces.
 *
 * One worker without a thread; its loop is turned here until the client has its response.
 */
#include <fcntl.h>

#include "unit/request/frontends/http1/http1_rig.h"
#include "request/engine/observe.h"

static char got[1 << 20];
static size_t got_len;

static int open_client(bool unix_socket)
{
	struct peer_info peer = { .local = true, .unix_socket = unix_socket };
	struct bufferevent *bev;
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	bev = bufferevent_socket_new(tier.worker[0].base, fd[0], BEV_OPT_CLOSE_ON_FREE);
	assert_non_null(bev);
	tier.worker[0].connections++;
	frontend_http1.accept(&tier.worker[0], bev, &peer);
	got_len = 0;
	return fd[1];
}

static void turn(void)
{
	for (int i = 0; i < 4; i++)
		event_base_loop(tier.worker[0].base, EVLOOP_NONBLOCK);
}

/* Received bytes; false once the other side has closed. */
static bool receive(int fd)
{
	ssize_t n;

	while ((n = read(fd, got + got_len, sizeof(got) - 1 - got_len)) > 0)
		got_len += (size_t)n;
	got[got_len] = '\0';
	return n < 0 && errno == EAGAIN;
}

static void say_bytes(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n > 0) {
			data += n;
			len -= (size_t)n;
		} else if (errno != EAGAIN) {
			return; /* it has closed: its bytes are read later */
		}
		turn();
	}
}

static void say(int fd, const char *text)
{
	say_bytes(fd, text, strlen(text));
}

/* Sends a request and reads what there is; whether the connection stays. */
static bool asked(int fd, const char *text)
{
	say(fd, text);
	turn();
	return receive(fd);
}

static int count(const char *words)
{
	int n = 0;

	for (const char *at = got; (at = strstr(at, words)); at += strlen(words))
		n++;
	return n;
}

/* A request on a connection of its own: returns its status. */
static int status_of(const char *text)
{
	int fd = open_client(false), status = 0;

	asked(fd, text);
	sscanf(got, "HTTP/1.1 %d", &status);
	close(fd);
	turn();
	return status;
}

#define HOST "Host: localhost\r\n"
#define GET "GET /healthz HTTP/1.1\r\n" HOST "\r\n"

TEST_WITH(test_keep_alive, begin, end)
{
	int fd = open_client(false);

	assert_true(asked(fd, GET));
	assert_memory_equal(got, "HTTP/1.1 200 OK\r\n", 17);
	assert_non_null(strstr(got, "content-length: 3\r\n"));
	assert_non_null(strstr(got, "\r\n\r\nok\n"));
	assert_null(strstr(got, "connection:"));
	assert_true(asked(fd, GET));
	assert_int_equal(count("HTTP/1.1 200 OK"), 2);
	assert_false(asked(fd, "GET /healthz HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"));
	assert_int_equal(count("connection: close"), 1);
	close(fd);
}

TEST_WITH(test_http_1_0, begin, end)
{
	int fd = open_client(false);

	assert_true(asked(fd, "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
	assert_int_equal(count("connection: keep-alive"), 1);
	assert_false(asked(fd, "GET /healthz HTTP/1.0\r\n\r\n"));
	assert_int_equal(count("200 OK"), 2);
	close(fd);
}

TEST_WITH(test_pipelined, begin, end)
{
	char text[100 * sizeof(GET)] = "";
	int fd = open_client(false);

	for (int i = 0; i < 99; i++)
		strcat(text, GET);
	strcat(text, "GET /nothing HTTP/1.1\r\n" HOST "\r\n");
	assert_true(asked(fd, text));
	assert_int_equal(count("200 OK"), 99);
	assert_int_equal(count("404 Not Found"), 1);
	close(fd);
}

/* A client with many requests is not served to its end: another one gets its turn meanwhile. */
struct turns {
	int greedy, other;
	int before; /* responses of the greedy one when the other got its own; 0: not yet */
};

static void on_greedy_answer(evutil_socket_t fd, short what, void *arg)
{
	struct turns *turns = arg;

	if (!got_len)
		assert_int_equal(send(turns->other, GET, strlen(GET), 0), strlen(GET));
	receive(fd);
}

static void on_other_answer(evutil_socket_t fd, short what, void *arg)
{
	struct turns *turns = arg;

	receive(turns->greedy);
	turns->before = count("200 OK");
	receive(fd);
}

TEST_WITH(test_turns, begin, end)
{
	struct turns turns = { .greedy = open_client(false), .other = open_client(false) };
	struct event *events[] = {
		event_new(tier.worker[0].base, turns.greedy, EV_READ | EV_PERSIST, on_greedy_answer,
			  &turns),
		event_new(tier.worker[0].base, turns.other, EV_READ, on_other_answer, &turns),
	};
	char text[200 * sizeof(GET)] = "";

	for (int i = 0; i < 200; i++)
		strcat(text, GET);
	assert_int_equal(send(turns.greedy, text, strlen(text), 0), strlen(text));
	for (int i = 0; i < 2; i++)
		assert_int_equal(event_add(events[i], NULL), 0);
	turn();
	assert_int_equal(count("200 OK"), 201);
	/* At most three turns of eight: the loop polls between them. */
	assert_in_range(turns.before, 1, 24);
	for (int i = 0; i < 2; i++)
		event_free(events[i]);
	close(turns.greedy);
	close(turns.other);
}

/* In pieces of every size, and one byte at a time, the same is read. */
TEST_WITH(test_pieces, begin, end)
{
	static const char text[] =
		"POST /healthz HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
		"5\r\nhello\r\n3;x=y\r\nyou\r\n0\r\nX-Trailer: none\r\n\r\n" GET;

	for (size_t piece = 1; piece < sizeof(text); piece++) {
		int fd = open_client(false);

		for (size_t at = 0; at < sizeof(text) - 1; at += piece)
			say_bytes(fd, text + at,
				  at + piece < sizeof(text) ? piece : sizeof(text) - 1 - at);
		turn();
		assert_true(receive(fd));
		assert_int_equal(count("405 Method Not Allowed"), 1);
		assert_int_equal(count("allow: GET"), 1);
		assert_int_equal(count("200 OK"), 1);
		close(fd);
		turn();
	}
}

TEST_WITH(test_refused, begin, end)
{
	static const struct {
		int status;
		const char *text;
	} table[] = {
		{ 200, GET },
		{ 200, "HEAD /readyz HTTP/1.1\r\n" HOST "\r\n" },
		{ 200, "GET /healthz?a=b HTTP/1.1\r\n" HOST "\r\n" },
		{ 200, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:8180\r\n\r\n" },
		{ 200, "GET /healthz HTTP/1.1\r\nHost: [::1]:8180\r\n\r\n" },
		{ 200, "GET /healthz HTTP/1.1\r\nHost: limiter.internal\r\n\r\n" },
		{ 200, "GET /healthz HTTP/1.1\r\nHost: LOCALHOST:80\r\nX: \x01\x80\xff\"\r\n\r\n" },
		{ 200,
		  "GET /healthz HTTP/1.1\r\n" HOST "Upgrade: h2c\r\nConnection: upgrade\r\n\r\n" },
		{ 403, "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n" },
		{ 403, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n" },
		{ 403, "GET /healthz HTTP/1.1\r\nHost:\r\n\r\n" },
		{ 403, "GET /healthz HTTP/1.1\r\n" HOST "Origin: null\r\n\r\n" },
		{ 404, "GET / HTTP/1.1\r\n" HOST "\r\n" },
		{ 404, "GET /healthz/ HTTP/1.1\r\n" HOST "\r\n" },
		{ 405, "DELETE /healthz HTTP/1.1\r\n" HOST "\r\n" },
		{ 400, "GET /healthz HTTP/1.1\r\n\r\n" },
		{ 400, "GET /healthz HTTP/1.1\r\n" HOST HOST "\r\n" },
		{ 400, "GARBAGE\r\n\r\n" },
		{ 400, "\x16\x03\x01\x02"
		       "a TLS hello\r\n\r\n" },
		{ 400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" },
		{ 400, "GET /healthz HTTP/1.1\r\n" HOST "No colon\r\n\r\n" },
		{ 400, "GET /healthz HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n" },
		{ 400, "GET /healthz HTTP/1.1\r\n" HOST
		       "Content-Length: 1\r\nContent-Length: 2\r\n\r\n" },
		{ 400, "GET /healthz HTTP/1.1\r\n" HOST
		       "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
		{ 400,
		  "GET /healthz HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n" },
		{ 400,
		  "GET /healthz HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" },
		{ 400, "GET /healthz HTTP/1.1\r\n" HOST
		       "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n" },
		{ 400,
		  "GET /healthz HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
		{ 400, "GET /healthz HTTP/1.1\r\n" HOST "Content-Length : 2\r\n\r\n{}" },
		{ 400, "GET /healthz HTTP/1.1\r\n Host: evil.example\r\n" HOST "\r\n" },
		{ 400, "GET /healthz HTTP/1.1\r\nHost : evil.example\r\n" HOST "\r\n" },
		{ 413, "POST /healthz HTTP/1.1\r\n" HOST "Content-Length: 4194305\r\n\r\n" },
		{ 417,
		  "POST /healthz HTTP/1.1\r\n" HOST "Expect: tea\r\nContent-Length: 3\r\n\r\n" },
		{ 505, "GET /healthz HTTP/9.9\r\n" HOST "\r\n" },
	};

	for (size_t i = 0; i < COUNT(table); i++)
		if (status_of(table[i].text) != table[i].status)
			fail_msg("%s: wanted %d, got %s", table[i].text, table[i].status, got);
	assert_int_equal(observe_requests(tier.engine, API_OTHER, 413), 1);
	assert_int_equal(observe_requests(tier.engine, API_OTHER, 417), 1);
}

TEST_WITH(test_unix_socket_has_any_host, begin, end)
{
	int fd = open_client(true);

	assert_true(asked(fd, "GET /healthz HTTP/1.1\r\nHost: upstream\r\n\r\n"));
	assert_int_equal(count("200 OK"), 1);
	asked(fd, "GET /healthz HTTP/1.1\r\nHost: upstream\r\nOrigin: http://a\r\n\r\n");
	assert_int_equal(count("403 Forbidden"), 1);
	close(fd);
}

TEST_WITH(test_sizes, begin, end)
{
	static char text[600000], filler[300000];

	memset(filler, 'x', sizeof(filler) - 1);
	/* A target and a value of 60 KiB are fine. */
	snprintf(text, sizeof(text),
		 "GET /healthz?%.60000s HTTP/1.1\r\n" HOST "A: %.65536s\r\n\r\n", filler, filler);
	assert_int_equal(status_of(text), 200);
	snprintf(text, sizeof(text), "GET /healthz HTTP/1.1\r\n" HOST "A: %s\r\n\r\n", filler);
	assert_int_equal(status_of(text), 431);
	strcpy(text, "GET /healthz HTTP/1.1\r\n" HOST);
	for (int i = 0; i < HTTP1_HEADERS_MAX - 1; i++)
		strcat(text, "A: b\r\n");
	strcat(text, "\r\n");
	assert_int_equal(status_of(text), 200);
	text[strlen(text) - 2] = '\0';
	strcat(text, "A: b\r\n\r\n");
	assert_int_equal(status_of(text), 431);
}

/* A client with an unwanted body still gets to read the error. */
TEST_WITH(test_linger, begin, end)
{
	int fd = open_client(false);

	say(fd, "POST /healthz HTTP/1.1\r\n" HOST "Content-Length: 5000000\r\n\r\n");
	for (int i = 0; i < 100; i++)
		assert_false(asked(fd, "more of what is not read any more"));
	assert_int_equal(count("413 Payload Too Large"), 1);
	assert_int_equal(count("connection: close"), 1);
	assert_false(TAILQ_EMPTY(&of()->list[CONN_LINGERING]));
	close(fd);
	turn();
	assert_true(TAILQ_EMPTY(&of()->list[CONN_LINGERING]));
}

TEST_WITH(test_continue, begin, end)
{
	int fd = open_client(false);

	say(fd,
	    "POST /healthz HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	turn();
	assert_true(receive(fd));
	assert_string_equal(got, "HTTP/1.1 100 Continue\r\n\r\n");
	assert_true(asked(fd, "hi"));
	assert_int_equal(count("405 Method"), 1);
	close(fd);
}

/* The worker's time moves only here. */
static void let_pass(u64 ms)
{
	for (int state = 0; state < CONN_STATE_COUNT; state++) {
		struct http1_conn *conn;

		TAILQ_FOREACH(conn, &of()->list[state], link)
			conn->since_ms -= ms;
	}
	event_active(of()->tick, EV_TIMEOUT, 1);
	turn();
}

TEST_WITH(test_times, begin, end)
{
	int slow = open_client(false), idle = open_client(false), busy = open_client(false);

	say(slow, "GET /healthz HTTP/1.1\r\nHo");
	turn();
	let_pass(6000);
	/* More bytes buy no more time. */
	assert_true(asked(slow, "st: loc"));
	let_pass(6000);
	assert_false(receive(slow));
	assert_int_equal(count("408 Request Timeout"), 1);
	got_len = 0;
	say(busy, GET);
	turn();
	let_pass(70000);
	assert_false(receive(idle));
	assert_int_equal(got_len, 0);
	assert_true(receive(busy));
	assert_int_equal(count("200 OK"), 1);
	close(slow);
	close(idle);
	close(busy);
}

TEST_WITH(test_drain, begin, end)
{
	int idle = open_client(false), coming = open_client(false), half = open_client(false), late;

	say(half, "GET /readyz HTTP/1.1\r\nHos");
	turn();
	tier.draining = true;
	frontend_http1.drain(&tier.worker[0]);
	turn();
	assert_true(receive(idle));
	/* A request that was on its way is answered, and is the last. */
	assert_false(asked(coming, "GET /readyz HTTP/1.1\r\n" HOST "\r\n"));
	assert_int_equal(count("200 OK"), 1);
	assert_int_equal(count("connection: close"), 1);
	/* So is one of a connection that begins now. */
	late = open_client(false);
	assert_false(asked(late, "GET /readyz HTTP/1.1\r\n" HOST "\r\n"));
	assert_int_equal(count("200 OK"), 1);
	assert_true(receive(half));
	let_pass(600);
	assert_false(receive(idle));
	assert_false(receive(half));
	assert_int_equal(count("408 Request Timeout"), 1);
	close(idle);
	close(coming);
	close(half);
	close(late);
	turn();
	assert_int_equal(tier.worker[0].connections, 0);
}

/* A client that sends and does not read: it gets time to, and is then closed. */
TEST_WITH(test_does_not_read, begin, end)
{
	static char many[64 * (sizeof(GET) - 1) + 1];
	int fd = open_client(false);
	size_t sent = 0;

	for (int i = 0; i < 64; i++)
		strcat(many, GET);
	for (int i = 0; i < 200; i++) {
		size_t from = sent % (sizeof(many) - 1);
		ssize_t n = send(fd, many + from, sizeof(many) - 1 - from, MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		turn();
	}
	assert_false(TAILQ_EMPTY(&of()->list[CONN_WRITING]));
	/* Neither reads without end. */
	assert_true(sent < 4u << 20);
	let_pass(21000);
	assert_int_equal(tier.worker[0].connections, 0);
	close(fd);
}

TEST(test_query)
{
	static const char text[] = "domain=api&d=user%3aheader(X)+%zz&source=&d=2&long=123456";
	struct http1_request request = { .query = { text, sizeof(text) - 1 } };
	char buf[32], small[5];
	struct bytes value = http1_query(&request, "d", buf, sizeof(buf));

	assert_int_equal(value.len, 18);
	assert_memory_equal(value.at, "user:header(X) %zz", 18);
	assert_non_null(http1_query(&request, "source", buf, sizeof(buf)).at);
	assert_int_equal(http1_query(&request, "source", buf, sizeof(buf)).len, 0);
	assert_null(http1_query(&request, "omain", buf, sizeof(buf)).at);
	assert_null(http1_query(&request, "nothing", buf, sizeof(buf)).at);
	assert_null(http1_query(&request, "long", small, sizeof(small)).at);
	assert_memory_equal(http1_query(&request, "domain", buf, sizeof(buf)).at, "api", 3);
}

int main(void)
{
	static char *hosts[] = { "limiter.internal" };

	def.host = hosts;
	def.host_count = 1;
	return test_run(NULL, NULL);
}
