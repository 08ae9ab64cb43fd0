// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libsluice's client against a server that plays a list of responses: what each means, retries and
 * their budget, deadlines, idle connections that were closed, threads. tests/http/libsluice.sh has
 * it against a daemon.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client/sluice.h"
#include "lib/test.h"
#include "lib/temp_dir.h"
#include "sluice/types.h"

#define SEC SL_NS_PER_SEC
#define MS (SEC / 1000)
#define OK                                                                                               \
	"HTTP/1.1 200 OK\r\nX-RateLimit-Remaining: 7\r\nRateLimit: \"user\";r=7;t=42, \"b\";r=9;t=1\r\n" \
	"Content-Length: 13\r\n\r\n{\"code\":\"OK\"}"
#define REFUSED "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\nContent-Length: 0\r\n\r\n"
#define BUSY "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 16\r\n\r\n{\"code\":\"ERROR\"}"

/* Answers the requests with `response`, the last one again and again; "": closes. One connection
 * at a time. */
struct server {
	char address[128];
	int listener, conn;
	pthread_t id;
	const char *const *response;
	bool slow;	      /* one byte a millisecond */
	bool close_after;     /* each response, without saying so */
	pthread_mutex_t lock; /* of what follows */
	u32 asked;	      /* requests so far */
	char request[4096];   /* the last one */
};

static u64 mono(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * SEC + now.tv_nsec;
}

/* A whole request of less than 4 KiB. */
static bool read_request(struct server *s)
{
	char request[sizeof(s->request)];
	size_t have = 0;

	for (;;) {
		ssize_t n = read(s->conn, request + have, sizeof(request) - 1 - have);
		char *body;
		size_t length;

		if (n <= 0)
			return false;
		have += n;
		request[have] = 0;
		body = strstr(request, "\r\n\r\n");
		if (body &&
		    sscanf(strstr(request, "Content-Length:"), "Content-Length: %zu", &length) ==
			    1 &&
		    strlen(body + 4) >= length)
			break;
	}
	pthread_mutex_lock(&s->lock);
	s->asked++;
	strcpy(s->request, request);
	pthread_mutex_unlock(&s->lock);
	return true;
}

static u32 asked(struct server *s)
{
	u32 asked;

	pthread_mutex_lock(&s->lock);
	asked = s->asked;
	pthread_mutex_unlock(&s->lock);
	return asked;
}

/* The last request; until the next call. */
static const char *sent_text(struct server *s)
{
	static char request[sizeof(s->request)];

	pthread_mutex_lock(&s->lock);
	strcpy(request, s->request);
	pthread_mutex_unlock(&s->lock);
	return request;
}

static void answer(struct server *s, const char *text)
{
	for (size_t len = strlen(text), step; len; text += step, len -= step) {
		step = s->slow ? 1 : len;
		if (send(s->conn, text, step, MSG_NOSIGNAL) < 0)
			return;
		if (s->slow)
			usleep(1000);
	}
}

static void *serve(void *arg)
{
	struct server *s = arg;

	while ((s->conn = accept(s->listener, NULL, NULL)) >= 0) {
		while (read_request(s)) {
			const char *response = *s->response;

			if (s->response[1])
				s->response++;
			if (!*response)
				break;
			answer(s, response);
			if (s->close_after)
				break;
		}
		close(s->conn);
	}
	return NULL;
}

static void begin(struct server *s, const char *const *response)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	pthread_mutex_init(&s->lock, NULL);
	assert_int_equal(temp_dir_make(NULL), 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/http.sock", temp_dir);
	snprintf(s->address, sizeof(s->address), "unix:%s", at.sun_path);
	s->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	s->response = response;
	assert_int_equal(bind(s->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s->listener, 100), 0);
	assert_int_equal(pthread_create(&s->id, NULL, serve, s), 0);
}

/* After the client has closed its connections. */
static void end(struct server *s)
{
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(s->id, NULL);
	close(s->listener);
	assert_int_equal(temp_dir_drop(NULL), 0);
}

static struct sluice_client *open_client(const char *address, struct sluice_client_config config)
{
	struct sluice_client *c;

	config.size = sizeof(config);
	config.address = address;
	assert_int_equal(sluice_client_open(&config, &c), 0);
	return c;
}

/* Of the test that runs. */
static struct server s;
static struct sluice_client *c;

static void open_both(const char *const *response, struct sluice_client_config config)
{
	begin(&s, response);
	c = open_client(s.address, config);
}

static int close_both(void **state)
{
	sluice_client_close(c);
	if (s.response)
		end(&s);
	c = NULL;
	s = (struct server){ 0 };
	return 0;
}

#define CLIENT_TEST(test) TEST_WITH(test, NULL, close_both)

static const struct sluice_entry bob = {
	.size = sizeof(bob), .key = "user", .value = "b\"o\0b", .value_size = 5
};
static const struct sluice_descriptor one = {
	.size = sizeof(one), .entries = &bob, .entry_count = 1, .hits = 1
};

static struct sluice_request request_of(u64 deadline_ns, u32 flags)
{
	return (struct sluice_request){ .size = sizeof(struct sluice_request),
					.domain = "api",
					.descriptors = &one,
					.descriptor_count = 1,
					.deadline_ns = deadline_ns,
					.flags = flags };
}

static int check(struct sluice_client *c, u64 timeout_ns, u32 flags, struct sluice_result *ret)
{
	struct sluice_request request = request_of(mono() + timeout_ns, flags);

	return sluice_client_check(c, &request, ret);
}

TEST(test_config)
{
	char longer[300] = "unix:/";
	const struct sluice_client_config bad[] = {
		{ .address = "unix:/a" },
		{ .size = sizeof(bad[0]) },
		{ .size = sizeof(bad[0]), .address = "127.0.0.1:8180" },
		{ .size = sizeof(bad[0]), .address = "unix:a" },
		{ .size = sizeof(bad[0]), .address = "unix:/a", .flags = 2 },
		{ .size = sizeof(bad[0]), .address = "unix:/a", .token = "a\r\nHost: b" },
		{ .size = sizeof(bad[0]), .address = "unix:/a", .token = "" },
		{ .size = sizeof(bad[0]), .address = "unix:/a", .retry_percent = 101 },
		{ .size = sizeof(bad[0]), .address = "unix:/a", .reserved = 1 },
		{ .size = sizeof(bad[0]), .address = longer },
	};

	memset(longer + 6, 'a', sizeof(longer) - 7);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct sluice_client *c = (void *)1;

		assert_int_equal(sluice_client_open(&bad[i], &c),
				 bad[i].address == longer ? -ENAMETOOLONG : -EINVAL);
		assert_null(c);
	}
	sluice_client_close(NULL);
}

/* What each response is for a client that fails open, and for one that fails closed. */
CLIENT_TEST(test_responses)
{
	static const struct {
		const char *response;
		int code, open, closed;
	} row[] = {
		{ OK, 0, 1, 1 },
		{ REFUSED, -EAGAIN, 0, 0 },
		{ "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n", -ERANGE, 0, 0 },
		{ BUSY, -EBUSY, 1, 0 },
		{ "HTTP/1.1 503 X\r\nContent-Length: 17\r\n\r\n{\"code\":\"CLOSED\"}", -EAGAIN, 0,
		  0 },
		{ "HTTP/1.1 400 X\r\nContent-Length: 0\r\n\r\n", -EINVAL, 1, 0 },
		{ "HTTP/1.1 401 X\r\nContent-Length: 0\r\n\r\n", -EACCES, 1, 0 },
		{ "HTTP/1.1 302 X\r\nContent-Length: 0\r\n\r\n", -EPROTO, 1, 0 },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", -EPROTO, 1, 0 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", -EPROTO, 1, 0 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n12", -EPROTO, 1, 0 },
		{ "HTTP/1.1 2\r\n\r\n", -EPROTO, 1, 0 },
		{ "SSH-2.0-OpenSSH\r\n\r\n", -EPROTO, 1, 0 },
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		for (int closed = 0; closed < 2; closed++) {
			const char *const list[] = { row[i].response, NULL };
			struct sluice_result r = { .size = sizeof(r) };

			s.slow = i == 0;
			/* With a back-off beyond the deadline nothing is retried. */
			open_both(list, (struct sluice_client_config){
						.flags = closed ? SLUICE_FAIL_CLOSED : 0,
						.backoff_ns = 3600 * SEC });
			if (check(c, 10 * SEC, 0, &r) != row[i].code)
				fail_msg("row %zu", i);
			assert_int_equal(r.admitted, closed ? row[i].closed : row[i].open);
			if (!i)
				assert_true(r.remaining == 7 && r.reset_ns == 42 * SEC);
			if (i == 1)
				assert_int_equal(r.retry_after_ns, SEC);
			assert_int_equal(asked(&s), 1);
			close_both(NULL);
		}
	}
}

/* What is sent: the value's quote and its NUL; a report's id is another one in each call. */
CLIENT_TEST(test_request)
{
	static const char *const list[] = {
		OK, "HTTP/1.1 202 X\r\nContent-Length: 15\r\n\r\n\"rejected\":[{}]",
		"HTTP/1.1 202 X\r\nContent-Length: 13\r\n\r\n\"rejected\":[]", NULL
	};
	struct sluice_request report = request_of(0, SLUICE_PEEK);
	char id[100], next[100];

	open_both(list, (struct sluice_client_config){ .token = "0123456789abcdef" });
	report.source = "192.0.2.7";
	assert_int_equal(sluice_client_check(c, &report, NULL), 0);
	assert_non_null(strstr(sent_text(&s), "POST /v1/check HTTP/1.1\r\n"));
	assert_non_null(strstr(sent_text(&s), "\r\nX-Sluice-Token: 0123456789abcdef\r\n"));
	assert_non_null(strstr(
		sent_text(&s),
		"\r\n\r\n{\"domain\":\"api\",\"descriptors\":[{\"entries\":[{\"key\":\"user\","
		"\"value\":\"b\\\"o\\u0000b\"}],\"hits\":1}],\"source\":\"192.0.2.7\",\"peek\":true}"));
	report.flags = 0;
	report.latency_ns = SEC / 4000;
	assert_int_equal(sluice_client_report(c, &report), -EINVAL);
	assert_non_null(strstr(sent_text(&s), "POST /v1/report "));
	assert_non_null(strstr(sent_text(&s), ",\"latency\":0.000250000}]"));
	assert_int_equal(sscanf(strstr(sent_text(&s), "\"id\":"), "\"id\":\"%99[^\"]", id), 1);
	assert_int_equal(sluice_client_report(c, &report), 0);
	assert_int_equal(sscanf(strstr(sent_text(&s), "\"id\":"), "\"id\":\"%99[^\"]", next), 1);
	assert_string_not_equal(id, next);
	report.domain = NULL;
	assert_int_equal(sluice_client_report(c, &report), -EINVAL);
	assert_int_equal(asked(&s), 3);
}

/* Refused with Retry-After 1, then admitted: after that second, not before; not at all without time
 * for it. */
CLIENT_TEST(test_retry_after)
{
	static const char *const list[] = { REFUSED, REFUSED, REFUSED, OK, NULL };
	struct sluice_result r = { .size = sizeof(r) };
	u64 begun;

	open_both(list, (struct sluice_client_config){ .backoff_ns = MS });
	assert_int_equal(check(c, 60 * SEC, 0, &r), -EAGAIN);
	assert_int_equal(check(c, SEC / 2, SLUICE_RETRY_REFUSED, &r), -EAGAIN);
	assert_int_equal(asked(&s), 2);
	begun = mono();
	assert_int_equal(check(c, 60 * SEC, SLUICE_RETRY_REFUSED, &r), 0);
	assert_true(mono() - begun >= SEC);
	assert_int_equal(asked(&s), 4);
}

/* Each struct of another size: what is known is used, and what is not must be 0. */
CLIENT_TEST(test_sizes)
{
	struct {
		struct sluice_client_config known;
		u64 more;
	} config = { .known.size = sizeof(config) };
	struct {
		struct sluice_entry known;
		u64 more;
	} entry[2] = { { { sizeof(entry[0]), "user", "bob", 0 }, 0 },
		       { { sizeof(entry[0]), "path", "/", 0 }, 0 } };
	struct {
		struct sluice_descriptor known;
		u64 more;
	} descriptor[2] = { { { sizeof(descriptor[0]), &entry[0].known, 2, 1 }, 0 },
			    { { sizeof(descriptor[0]), &entry[1].known, 1, 2 }, 0 } };
	struct {
		struct sluice_request known;
		u64 more;
	} request = { .known = { .size = sizeof(request),
				 .domain = "api",
				 .descriptors = &descriptor[0].known,
				 .descriptor_count = 2 } };
	struct {
		struct sluice_result known;
		u64 more;
	} result = { .known.size = sizeof(result), .more = 7 };
	u64 *const more[] = { &request.more, &descriptor[1].more, &entry[1].more };
	size_t *const size[] = { &request.known.size, &descriptor[0].known.size,
				 &descriptor[1].known.size, &entry[0].known.size,
				 &entry[1].known.size };
	static const char *const list[] = { OK, NULL };

	begin(&s, list);
	config.known.address = s.address;
	config.more = 1;
	assert_int_equal(sluice_client_open(&config.known, &c), -E2BIG);
	config.more = 0;
	assert_int_equal(sluice_client_open(&config.known, &c), 0);
	assert_int_equal(sluice_client_check(c, &request.known, &result.known), 0);
	assert_int_equal(result.known.size, sizeof(result));
	assert_true(result.known.remaining == 7 && !result.more);
	assert_non_null(strstr(
		sent_text(&s),
		"[{\"entries\":[{\"key\":\"user\",\"value\":\"bob\"},"
		"{\"key\":\"path\",\"value\":\"/\"}],\"hits\":1},{\"entries\":[{\"key\":\"path\",\"value\":\"/\"}],\"hits\":2}]"));
	for (size_t i = 0; i < COUNT(more); i++) {
		*more[i] = 1;
		assert_int_equal(sluice_client_check(c, &request.known, NULL), -E2BIG);
		assert_int_equal(sluice_client_report(c, &request.known), -E2BIG);
		*more[i] = 0;
	}
	for (size_t i = 0; i < COUNT(size); i++) {
		size_t was = *size[i];

		*size[i] = 0;
		assert_int_equal(sluice_client_check(c, &request.known, NULL), -EINVAL);
		*size[i] = was;
	}
	/* Elements of two sizes; a result whose size was not set still says what to do. */
	descriptor[1].known.size = sizeof(struct sluice_descriptor);
	assert_int_equal(sluice_client_check(c, &request.known, NULL), -EINVAL);
	descriptor[1].known.size = sizeof(descriptor[0]);
	result.known.size = 0;
	result.known.admitted = 0;
	assert_int_equal(sluice_client_check(c, &request.known, &result.known), -EINVAL);
	assert_int_equal(result.known.admitted, 1);
	assert_int_equal(asked(&s), 1);
}

/* 5 retries at first, then one for each 4 calls: 100 calls send at most 100 + 5 + 25. */
CLIENT_TEST(test_budget)
{
	static const char *const list[] = { BUSY, NULL };

	open_both(list, (struct sluice_client_config){ .flags = SLUICE_FAIL_CLOSED,
						       .backoff_ns = MS,
						       .retry_percent = 25,
						       .retry_burst = 5 });
	for (int i = 0; i < 100; i++)
		assert_int_equal(check(c, 60 * SEC, 0, NULL), -EBUSY);
	assert_in_range(asked(&s), 100 + 5 + 24, 100 + 5 + 25);
}

/* A server that accepts and says nothing, or one byte at a time: the deadline holds. */
CLIENT_TEST(test_deadline)
{
	static char endless[200000];
	static const char *const list[] = { endless, NULL };
	struct sluice_request request = request_of(1, 0);
	struct sluice_result r = { .size = sizeof(r) };
	u64 begun = mono();

	memset(endless, 'a', sizeof(endless) - 1);
	memcpy(endless, "HTTP/1.1 200 OK\r\n", 17);
	s.slow = true;
	open_both(list, (struct sluice_client_config){ .flags = SLUICE_FAIL_CLOSED });
	assert_int_equal(check(c, 200 * MS, 0, &r), -ETIMEDOUT);
	assert_int_equal(r.admitted, 0);
	assert_in_range(mono() - begun, 200 * MS, 20 * SEC);
	/* One that is over. */
	assert_int_equal(sluice_client_check(c, &request, &r), -ETIMEDOUT);
}

/* Idle connections that the daemon has closed cost no retry of the budget; responses that are cut
 * do. */
CLIENT_TEST(test_closed)
{
	static const char *const list[] = { OK, NULL }, *const cut[] = { "", "HTTP/1.1 200", OK,
									 NULL };

	s.close_after = true;
	open_both(list, (struct sluice_client_config){ .retry_burst = 1, .retry_percent = 1 });
	for (int i = 0; i < 50; i++)
		assert_int_equal(check(c, 60 * SEC, 0, NULL), 0);
	assert_int_equal(asked(&s), 50);
	close_both(NULL);

	s.close_after = true;
	open_both(cut,
		  (struct sluice_client_config){ .flags = SLUICE_FAIL_CLOSED, .backoff_ns = MS });
	assert_int_equal(check(c, 60 * SEC, 0, NULL), 0);
	assert_int_equal(asked(&s), 3);
}

/* No daemon: one that fails open admits at once, one that fails closed retries first. */
TEST(test_absent)
{
	struct sluice_client_config config = { .backoff_ns = 20 * SEC };
	struct sluice_client *c = open_client("unix:/nonexistent/http.sock", config);
	struct sluice_result r = { .size = sizeof(r) };
	u64 begun = mono();

	assert_int_equal(check(c, 60 * SEC, 0, &r), -ENOENT);
	assert_true(r.admitted);
	assert_true(mono() - begun < 10 * SEC);
	sluice_client_close(c);
	c = open_client("unix:/nonexistent/http.sock",
			(struct sluice_client_config){ .flags = SLUICE_FAIL_CLOSED,
						       .backoff_ns = 100 * MS,
						       .retry_burst = 2 });
	begun = mono();
	assert_int_equal(check(c, 60 * SEC, 0, &r), -ENOENT);
	assert_false(r.admitted);
	assert_true(mono() - begun >= 150 * MS);
	sluice_client_close(c);
}

/* A daemon that hangs: after a call that waited, calls fail at once, twice as long after the next
 * one. */
CLIENT_TEST(test_breaker)
{
	static const char *const list[] = { "HTTP/1.1 200", "HTTP/1.1 200", OK, NULL };
	struct sluice_result r = { .size = sizeof(r) };
	u32 at_once = 0;
	u64 begun = mono();

	open_both(list, (struct sluice_client_config){ .breaker_ns = 60 * SEC });
	assert_int_equal(check(c, 300 * MS, 0, NULL), -ETIMEDOUT);
	for (; asked(&s) == 1; at_once++, usleep(1000)) {
		assert_int_equal(check(c, 300 * MS, 0, &r), -ETIMEDOUT);
		assert_true(r.admitted);
	}
	/* 300 ms that it waited, as long at once, and the last one waited, too. */
	assert_true(at_once > 1 && mono() - begun >= 900 * MS);
	for (at_once = 0; check(c, 60 * SEC, 0, &r); at_once++)
		usleep(1000);
	assert_true(at_once && mono() - begun >= 1500 * MS);
	assert_int_equal(asked(&s), 3);
	/* Closed again. */
	assert_int_equal(check(c, 60 * SEC, 0, &r), 0);
	close_both(NULL);

	open_both(list, (struct sluice_client_config){ .breaker_ns = 1 });
	for (u32 i = 0; i < 2; i++)
		assert_int_equal(check(c, 50 * MS, 0, NULL), -ETIMEDOUT);
	assert_int_equal(check(c, 60 * SEC, 0, NULL), 0);
	assert_int_equal(asked(&s), 3);
}

static void on_signal(int number)
{
}

static void *run_absent(void *arg)
{
	return (void *)(intptr_t)check(arg, 600 * SEC, 0, NULL);
}

/* A signal handler ends the wait for a retry, also one with SA_RESTART. */
TEST(test_signal)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct sluice_client *c =
		open_client("unix:/nonexistent/http.sock",
			    (struct sluice_client_config){ .flags = SLUICE_FAIL_CLOSED,
							   .backoff_ns = 300 * SEC });
	pthread_t id;
	void *code;

	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&id, NULL, run_absent, c);
	while (pthread_tryjoin_np(id, &code)) {
		pthread_kill(id, SIGUSR1);
		usleep(1000);
	}
	assert_int_equal((intptr_t)code, -ENOENT);
	sluice_client_close(c);
}

#define THREADS 16
#define CALLS 50

static void *run_calls(void *arg)
{
	for (int i = 0; i < CALLS; i++)
		if (check(arg, 60 * SEC, 0, NULL))
			return arg;
	return NULL;
}

/* Each call has its own response, of as many threads as share a client. */
CLIENT_TEST(test_threads)
{
	static const char *const list[] = { OK, NULL };
	pthread_t id[THREADS];

	s.close_after = true;
	open_both(list, (struct sluice_client_config){});
	for (int i = 0; i < THREADS; i++)
		pthread_create(&id[i], NULL, run_calls, c);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(id[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(asked(&s), THREADS * CALLS);
}

/* The one call that tries may last: others try, too, once `breaker_ns` is over. */
CLIENT_TEST(test_long_try)
{
	struct sigaction action = { .sa_handler = on_signal };
	static const char *const list[] = { OK, NULL };
	char away[sizeof(s) + 8];
	pthread_t id;
	void *code;
	u64 begun;

	sigaction(SIGUSR1, &action, NULL);
	begin(&s, list);
	snprintf(away, sizeof(away), "%s.away", s.address + 5);
	assert_int_equal(rename(s.address + 5, away), 0);
	c = open_client(s.address, (struct sluice_client_config){ .flags = SLUICE_FAIL_CLOSED,
								  .backoff_ns = 300 * SEC,
								  .breaker_ns = 200 * MS });
	assert_int_equal(check(c, 50 * MS, 0, NULL), -ENOENT);
	pthread_create(&id, NULL, run_absent, c);
	usleep(50000);
	assert_int_equal(rename(away, s.address + 5), 0);
	begun = mono();
	while (check(c, 60 * SEC, 0, NULL) && mono() - begun < 60 * SEC)
		usleep(1000);
	assert_int_equal(asked(&s), 1);
	while (pthread_tryjoin_np(id, &code)) {
		pthread_kill(id, SIGUSR1);
		usleep(1000);
	}
}

TEST_MAIN
