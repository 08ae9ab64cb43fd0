// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * load - sends requests through every frontend as long as it runs, and measures how long responses
 * took.
 *
 *     load EVERY_MS DOMAIN OUT FRONTEND:KEY=VALUE...
 *
 * FRONTEND is check (/v1/check), auth (/forward-auth), nginx (/nginx/check), json, grpc or spoe,
 * where the lab has them (127.0.0.1:8180, 8181, 8182). Each line has a connection of its own and
 * sends a request every EVERY_MS, at times of its own, unless its last one has no response yet.
 * SIGUSR1 ends a phase, SIGTERM the last one: of the n-th OUT.n.took has how long each response
 * took (milliseconds, a line each), and OUT.n, which appears when all is written, a line for each
 *
 *     FRONTEND:KEY=VALUE N P50 P99 MAX STATUS:N...
 *
 * STATUS is HTTP's; of gRPC OK, OVER_LIMIT, UNAVAILABLE; of SPOE the variable `limited`: free,
 * limited, or none without the variable.
 *
 * Real clients are on other machines; here they share the CPUs with the daemon and all else. So
 * that the daemon's part is measured, this process always gets a CPU at once, where that is
 * allowed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "load_frontends.h"

#define TOOK_MAX 200000 /* responses of one line in a phase */

static volatile sig_atomic_t phase_ends, all_ends;

static u64 now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000 + (u64)ts.tv_nsec / 1000;
}

static void note(struct way *way, const char *status, u64 took_us)
{
	u32 i = 0;

	if (way->count == TOOK_MAX)
		die("%s: too many answers in a phase", way->label);
	way->took_us[way->count++] = (u32)took_us;
	while (i < STATUSES - 1 && way->status[i].count && strcmp(way->status[i].name, status))
		i++;
	snprintf(way->status[i].name, sizeof(way->status[i].name), "%s", status);
	way->status[i].count++;
}

static int by_size(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

static double part(const struct way *way, double share)
{
	size_t at = (size_t)((double)way->count * share);

	return !way->count ? 0 : way->took_us[at < way->count ? at : way->count - 1] / 1000.0;
}

static void write_way(FILE *lines, FILE *took, struct way *way)
{
	qsort(way->took_us, way->count, sizeof(*way->took_us), by_size);
	fprintf(lines, "%s %zu %.2f %.2f %.2f", way->label, way->count, part(way, 0.5),
		part(way, 0.99), part(way, 1));
	for (u32 i = 0; i < STATUSES && way->status[i].count; i++)
		fprintf(lines, " %s:%u", way->status[i].name, way->status[i].count);
	fputc('\n', lines);
	for (size_t i = 0; i < way->count; i++)
		fprintf(took, "%.3f\n", way->took_us[i] / 1000.0);
	way->count = 0;
	memset(way->status, 0, sizeof(way->status));
}

static FILE *part_open(const char *out, u32 phase, const char *suffix, char name[512])
{
	FILE *file;

	snprintf(name, 512, "%s.%u%s", out, phase, suffix);
	file = fopen(name, "w");
	if (!file)
		die("%s", name);
	return file;
}

/* Of the two files the first appears whole, and last. */
static void write_phase(const char *out, u32 phase, struct way *way, u32 ways)
{
	char name[512], part[512];
	FILE *took = part_open(out, phase, ".took", name);
	FILE *lines = part_open(out, phase, ".part", part);

	for (u32 i = 0; i < ways; i++)
		write_way(lines, took, &way[i]);
	snprintf(name, sizeof(name), "%s.%u", out, phase);
	if (fclose(took) || fclose(lines) || rename(part, name))
		die("%s", name);
}

/* ------------------------------------------------------------------ all lines */

static void way_open(struct way *way, char *label, const char *domain)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	size_t i = 0;
	char name[16];
	int on = 1;

	way->label = label;
	way->domain = domain;
	if (sscanf(label, "%15[^:]:%63[^=]=%63s", name, way->key, way->value) != 3)
		die("%s is no FRONT:KEY=VALUE", label);
	while (i < sizeof(fronts) / sizeof(fronts[0]) && strcmp(fronts[i].name, name))
		i++;
	if (i == sizeof(fronts) / sizeof(fronts[0]))
		die("%s: no such front", label);
	way->frontend = &fronts[i];
	way->took_us = malloc(TOOK_MAX * sizeof(*way->took_us));
	way->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	to.sin_port = htons(way->frontend->port);
	if (!way->took_us || way->fd < 0 ||
	    connect(way->fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("%s", label);
	setsockopt(way->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	way->frontend->open(way);
	fcntl(way->fd, F_SETFL, O_NONBLOCK);
}

static void way_read(struct way *way, u64 every_us)
{
	ssize_t n = recv(way->fd, way->in + way->in_len, sizeof(way->in) - 1 - way->in_len, 0);
	const char *status;
	u64 now = now_us();

	if (n == 0 || (n < 0 && errno != EAGAIN))
		die("%s: its connection ended", way->label);
	if (n < 0)
		return;
	way->in_len += (size_t)n;
	if (!way->asked) {
		/* Control frames of nghttp2. */
		if (way->session)
			grpc_take(way);
		return;
	}
	status = way->frontend->take(way);
	if (!status)
		return;
	note(way, status, now - way->sent_us);
	way->asked = false;
	while (way->due_us <= now)
		way->due_us += every_us;
}

/* Waits until a request is due or input has come. */
static void turn(struct way *way, struct pollfd *polled, u32 ways, u64 every_us,
		 const sigset_t *mask)
{
	u64 next = ~0ULL, now = now_us();
	struct timespec wait;

	for (u32 i = 0; i < ways; i++) {
		if (!way[i].asked && way[i].due_us <= now) {
			way[i].asked = true;
			way[i].sent_us = now_us();
			way[i].frontend->ask(&way[i]);
		}
		if (!way[i].asked && way[i].due_us < next)
			next = way[i].due_us;
	}
	now = now_us();
	next = next == ~0ULL ? 100000 : next > now ? next - now : 0;
	wait = (struct timespec){ .tv_sec = (time_t)(next / 1000000),
				  .tv_nsec = (long)(next % 1000000) * 1000 };
	if (ppoll(polled, ways, &wait, mask) <= 0)
		return;
	for (u32 i = 0; i < ways; i++)
		if (polled[i].revents)
			way_read(&way[i], every_us);
}

static void on_signal(int number)
{
	phase_ends = 1;
	all_ends |= number == SIGTERM;
}

int main(int argc, char **argv)
{
	const struct sched_param first = { .sched_priority = 1 };
	u32 ways = argc > 4 ? (u32)argc - 4 : 0, phase = 0;
	static struct pollfd *polled; /* used until the process ends */
	static struct way *way;
	sigset_t blocked, mask;
	u64 every_us;

	polled = calloc(ways + 1, sizeof(*polled));
	way = calloc(ways + 1, sizeof(*way));
	if (!ways || !way || !polled) {
		fprintf(stderr, "usage: load EVERY_MS DOMAIN OUT FRONT:KEY=VALUE...\n");
		return 2;
	}
	every_us = (u64)(atof(argv[1]) * 1000);
	signal(SIGUSR1, on_signal);
	signal(SIGTERM, on_signal);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &mask);
	for (u32 i = 0; i < ways; i++) {
		way_open(&way[i], argv[4 + i], argv[2]);
		way[i].due_us = now_us() + every_us * i / ways;
		polled[i] = (struct pollfd){ .fd = way[i].fd, .events = POLLIN };
	}
	sched_setscheduler(0, SCHED_FIFO, &first);
	while (!all_ends) {
		turn(way, polled, ways, every_us, &mask);
		if (phase_ends) {
			phase_ends = 0;
			write_phase(argv[3], ++phase, way, ways);
		}
	}
	return 0;
}
