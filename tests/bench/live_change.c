// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * live_change - ms from a command to the first packet, or request, that is judged by its change.
 *
 *     live_change SOCKET CHANGES REFUSE PASS packets NETNS SENDS RECEIVES [--src ADDR ...]
 *     live_change SOCKET CHANGES REFUSE PASS requests PORT BODY
 *
 * REFUSE and PASS are requests of the control socket (JSON); they take turns, CHANGES of both
 * together. Packets: one every 50 us from SENDS, which is in the namespace NETNS; those that pass
 * are seen on RECEIVES. Requests: one client that asks /v1/check with BODY, without pause. The time
 * ends when the first one is sent after which none has the old verdict. Prints median, p90, p99 and
 * most, in ms, and the median time until the command is answered, separated by tabs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <unistd.h>

#include "netns/frame.h"

#define SERIES (1U << 20) /* frames or requests that are remembered */
#define GAP_NS 50000
#define SETTLE_COUNT 200  /* so many more are sent after the answer, */
#define ARRIVED_COUNT 100 /* and all but the last of these have arrived */
#define SETTLE_LOOK_US 2000
#define CHANGES_MAX 100000

/* Frames or requests by their number: when each was sent, and whether it passed. */
static struct series {
	atomic_uint sent;
	double at[SERIES];
	bool passed[SERIES];
} series;

static atomic_bool stopped;

static int connect_unix(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		die(path);
	return fd;
}

/* Sends a command and reads its answer, a line; `must`: it may not be refused. */
static void command(int fd, const char *text, bool must)
{
	char line[65536];
	size_t used = 0;
	ssize_t got;

	if (dprintf(fd, "%s\n", text) < 0)
		die("control socket");
	do {
		got = read(fd, line + used, sizeof(line) - used - 1);
		if (got <= 0)
			die("control socket");
		used += got;
	} while (line[used - 1] != '\n' && used + 1 < sizeof(line));
	line[used] = 0;
	if (must && !strstr(line, "\"ok\": true") && !strstr(line, "\"ok\":true")) {
		fprintf(stderr, "%s: %s", text, line);
		exit(1);
	}
}

/* ---- packets ---- */

static struct packets {
	struct frame frame;
	int send, receive;
} packets;

static void packets_open(char **arg)
{
	int own = open("/proc/self/ns/net", O_RDONLY), other;
	struct frame_spec spec;
	const struct tool_option options[] = { FRAME_OPTIONS(&spec), { 0 } };
	char path[256];

	frame_defaults(&spec);
	tool_options(arg + 2, options, FRAME_USAGE);
	frame_build(&spec, &packets.frame);
	frame_patch(&spec, &packets.frame, spec.src, spec.dport);
	snprintf(path, sizeof(path), "/run/netns/%s", arg[0]);
	other = open(path, O_RDONLY);
	packets.receive = tool_socket(arg[2], ETH_P_IP);
	if (own < 0 || other < 0 || setns(other, CLONE_NEWNET))
		die(path);
	packets.send = tool_socket(arg[1], 0);
	if (setns(own, CLONE_NEWNET))
		die("setns");
}

/* The number of a frame is in its last four bytes. */
static void *packets_send(void *arg)
{
	struct timespec next;

	prctl(PR_SET_TIMERSLACK, 1);
	clock_gettime(CLOCK_MONOTONIC, &next);
	while (!stopped) {
		struct frame *frame = &packets.frame;
		uint32_t number = series.sent;

		series.passed[number % SERIES] = false;
		series.at[number % SERIES] = tool_now();
		memcpy(frame->data + frame->len - 4, &number, 4);
		if (send(packets.send, frame->data, frame->len, 0) < 0)
			die("send");
		series.sent = number + 1;
		next.tv_nsec += GAP_NS;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return NULL;
}

static void packets_look(void)
{
	uint8_t data[FRAME_MAX];
	uint32_t number;
	ssize_t got;

	while ((got = recv(packets.receive, data, sizeof(data), MSG_DONTWAIT)) >= 0) {
		if (got < packets.frame.len)
			continue;
		memcpy(&number, data + packets.frame.len - 4, 4);
		series.passed[number % SERIES] = true;
	}
}

/* ---- requests ---- */

static struct requests {
	int fd;
	char text[4096];
} requests;

static void requests_open(char **arg)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(atoi(arg[0])),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	requests.fd = socket(AF_INET, SOCK_STREAM, 0);
	snprintf(requests.text, sizeof(requests.text),
		 "POST /v1/check HTTP/1.1\r\nHost: localhost\r\n"
		 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		 strlen(arg[1]), arg[1]);
	if (requests.fd < 0 || connect(requests.fd, (struct sockaddr *)&addr, sizeof(addr)))
		die("connect");
}

/* Whether all of a response is there: its head, and a body of the length that this states. */
static bool is_whole(const char *text, size_t size)
{
	const char *body = strstr(text, "\r\n\r\n"),
		   *length = strcasestr(text, "\r\ncontent-length:");

	return body && length && length < body &&
	       size >= body + 4 - text + strtoul(length + 17, NULL, 10);
}

static bool request_passes(void)
{
	char text[8192];
	size_t used = 0;

	if (send(requests.fd, requests.text, strlen(requests.text), MSG_NOSIGNAL) < 0)
		die("send");
	do {
		ssize_t got = recv(requests.fd, text + used, sizeof(text) - used - 1, 0);

		if (got <= 0)
			die("recv");
		used += got;
		text[used] = 0;
	} while (!is_whole(text, used));
	if (!strncmp(text, "HTTP/1.1 200", 12) || !strncmp(text, "HTTP/1.1 429", 12))
		return text[9] == '2';
	fprintf(stderr, "%.200s\n", text);
	exit(1);
}

static void *requests_send(void *arg)
{
	while (!stopped) {
		uint32_t number = series.sent;

		series.at[number % SERIES] = tool_now();
		series.passed[number % SERIES] = request_passes();
		series.sent = number + 1;
	}
	return NULL;
}

/* ---- changes ---- */

/* ms from `begin` to the first after the last one that has the old verdict. */
static double ms_until(double begin, bool passes)
{
	uint32_t end = series.sent - ARRIVED_COUNT, first = end, last;

	while (end - first < SERIES - 1 && first && series.at[(first - 1) % SERIES] >= begin)
		first--;
	for (last = end; last != first && series.passed[(last - 1) % SERIES] == passes;)
		last--;
	if (last == end) {
		fprintf(stderr, "the verdict did not become %s\n", passes ? "pass" : "refuse");
		exit(1);
	}
	return (series.at[last % SERIES] - begin) * 1e3;
}

static void settle(void)
{
	uint32_t sent = series.sent;

	while (series.sent - sent < SETTLE_COUNT)
		usleep(SETTLE_LOOK_US);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double part(const double *sorted, int count, double share)
{
	return sorted[(int)((count - 1) * share + 0.5)];
}

int main(int argc, char **argv)
{
	static double ms[CHANGES_MAX], answered[CHANGES_MAX];
	bool of_packets = argc > 8 && !strcmp(argv[5], "packets");
	int changes = argc > 2 ? atoi(argv[2]) : 0, fd;
	pthread_t thread;

	if (argc < 8 || changes < 1 || changes > CHANGES_MAX) {
		fprintf(stderr,
			"usage: live_change SOCKET CHANGES REFUSE PASS packets NETNS SENDS RECEIVES "
			"[options of a frame]\n       live_change SOCKET CHANGES REFUSE PASS requests PORT BODY\n");
		return 2;
	}
	if (of_packets)
		packets_open(argv + 6);
	else
		requests_open(argv + 6);
	fd = connect_unix(argv[1]);
	command(fd, argv[4], false); /* it may be so */
	if (pthread_create(&thread, NULL, of_packets ? packets_send : requests_send, NULL))
		die("pthread_create");
	settle();
	for (int i = 0; i < changes; i++) {
		double begin = tool_now();

		command(fd, argv[i & 1 ? 4 : 3], true);
		answered[i] = (tool_now() - begin) * 1e3;
		settle();
		if (of_packets)
			packets_look();
		ms[i] = ms_until(begin, i & 1);
	}
	stopped = true;
	pthread_join(thread, NULL);
	qsort(ms, changes, sizeof(*ms), compare);
	qsort(answered, changes, sizeof(*answered), compare);
	printf("%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", part(ms, changes, 0.5), part(ms, changes, 0.9),
	       part(ms, changes, 0.99), ms[changes - 1], part(answered, changes, 0.5));
	return 0;
}
