// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * drive - one load on several nodes at once: each request is sent at its time, each response is
 * recorded with its times.
 *
 *     drive SECONDS SOCKET... < LINES > RESPONSES
 *
 * SOCKET is a node's Unix socket for HTTP. A line of LINES is "DOMAIN KEY VALUE RATE NODES": RATE
 * requests a second (a decimal) of that one descriptor to each of the first NODES nodes, evenly
 * spread, on a connection of its own for each, so that no line waits for another's responses. A
 * line of RESPONSES is "LINE NODE SENT ANSWERED STATUS": numbers from 0, microseconds of UTC,
 * HTTP's status; 0: no response came.
 *
 * Open loop: a late response does not slow other lines down. What falls due while the machine
 * stands still is sent at once afterwards, as real users would, but at most WINDOW requests without
 * a response on one connection: the rest waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WINDOW 256 /* a power of two */
#define PATIENCE_US 3000000

typedef uint64_t u64;

struct way {
	int fd, line, node;
	char request[512];
	size_t length;
	double every_us;
	u64 next_us, sent_count, answered_count;
	u64 sent_us[WINDOW];
	char in[8192];
	size_t in_length;
};

static u64 clock_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (u64)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void die(const char *what)
{
	fprintf(stderr, "drive: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
		die(path);
	strcpy(address.sun_path, path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		die(path);
	return fd;
}

static void make_request(struct way *way, const char *domain, const char *key, const char *value)
{
	char body[300];
	int length = snprintf(body, sizeof(body),
			      "{\"domain\":\"%s\",\"descriptors\":[{\"entries\":"
			      "[{\"key\":\"%s\",\"value\":\"%s\"}]}]}",
			      domain, key, value);

	way->length = snprintf(way->request, sizeof(way->request),
			       "POST /v1/check HTTP/1.1\r\nHost: localhost\r\n"
			       "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			       length, body);
}

/* Sends all that is due by now, as far as there is room. */
static void send_due(struct way *way, u64 now_us, u64 end_us)
{
	while (way->next_us <= now_us && way->next_us < end_us &&
	       way->sent_count - way->answered_count < WINDOW) {
		ssize_t n;

		way->sent_us[way->sent_count % WINDOW] = clock_us(CLOCK_REALTIME);
		n = send(way->fd, way->request, way->length, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n != (ssize_t)way->length)
			die("send");
		way->sent_count++;
		way->next_us += way->every_us;
	}
}

static void tell(struct way *way, int status)
{
	u64 sent = way->sent_us[way->answered_count++ % WINDOW];

	printf("%d %d %llu %llu %d\n", way->line, way->node, (unsigned long long)sent,
	       (unsigned long long)(status ? clock_us(CLOCK_REALTIME) : 0), status);
}

/* Reads the responses that are whole. */
static void take_answers(struct way *way)
{
	char *at = way->in, *head, *length;

	way->in[way->in_length] = 0;
	while ((head = strstr(at, "\r\n\r\n"))) {
		size_t size = head + 4 - at;

		*head = 0;
		length = strcasestr(at, "\r\nContent-Length:");
		size += length ? strtoul(length + 17, NULL, 10) : 0;
		if (size > way->in_length - (at - way->in)) {
			*head = '\r';
			break;
		}
		if (way->answered_count == way->sent_count)
			die("an answer that was not asked for");
		tell(way, atoi(at + 9));
		at += size;
	}
	way->in_length -= at - way->in;
	memmove(way->in, at, way->in_length);
}

static void receive(struct way *way)
{
	ssize_t n;

	while ((n = recv(way->fd, way->in + way->in_length, sizeof(way->in) - 1 - way->in_length,
			 0)) > 0) {
		way->in_length += n;
		take_answers(way);
	}
	if (n == 0 || (n < 0 && errno != EAGAIN))
		die("recv");
}

static void run(struct way *way, int count, u64 start_us, u64 end_us)
{
	struct pollfd *polled = calloc(count, sizeof(*polled));
	bool waiting = true;
	u64 now_us;

	for (int i = 0; i < count; i++)
		polled[i] = (struct pollfd){ .fd = way[i].fd, .events = POLLIN };
	while ((now_us = clock_us(CLOCK_MONOTONIC)) < end_us ||
	       (waiting && now_us < end_us + PATIENCE_US)) {
		waiting = false;
		for (int i = 0; i < count; i++) {
			send_due(&way[i], now_us, end_us);
			waiting |= way[i].answered_count < way[i].sent_count;
		}
		if (poll(polled, count, 1) < 0 && errno != EINTR)
			die("poll");
		for (int i = 0; i < count; i++)
			if (polled[i].revents)
				receive(&way[i]);
	}
	for (int i = 0; i < count; i++)
		while (way[i].answered_count < way[i].sent_count)
			tell(&way[i], 0);
	free(polled);
}

int main(int argc, char **argv)
{
	int nodes = argc - 2, count = 0, lines = 0, some;
	char domain[64], key[64], value[64];
	struct way *way = NULL;
	u64 start_us;
	double rate;

	if (nodes < 1) {
		fprintf(stderr, "usage: drive SECONDS SOCKET... < LINES\n");
		return 2;
	}
	while (scanf("%63s %63s %63s %lf %d", domain, key, value, &rate, &some) == 5 && rate > 0) {
		way = reallocarray(way, count + nodes, sizeof(*way));
		if (!way)
			die("memory");
		for (int i = 0; i < nodes && i < some; i++, count++) {
			struct way *one = &way[count];

			memset(one, 0, sizeof(*one));
			one->fd = connect_to(argv[2 + i]);
			one->line = lines;
			one->node = i;
			one->every_us = 1e6 / rate;
			make_request(one, domain, key, value);
		}
		lines++;
	}
	start_us = clock_us(CLOCK_MONOTONIC);
	/* the nodes in turn; the lines spread over the interval */
	for (int i = 0; i < count; i++)
		way[i].next_us = start_us + way[i].every_us * way[i].node / nodes +
				 way[i].every_us / nodes * way[i].line / lines;
	run(way, count, start_us, start_us + (u64)(atof(argv[1]) * 1e6));
	free(way);
	return 0;
}
