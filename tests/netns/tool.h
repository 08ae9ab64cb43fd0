/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tool.h - what the traffic tools have in common: options, clock, packet sockets, how they end.
 *
 * A tool lists its options in a table of struct tool_option: what a value is, and where it goes.
 */
#ifndef TESTS_NETNS_TOOL_H
#define TESTS_NETNS_TOOL_H

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static inline _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ------------------------------------------------------------------ options */

/* --NAME VALUE: take() puts the value at `at`. Without take() it is --NAME, and `at` a bool. */
struct tool_option {
	const char *name;
	void (*take)(const char *value, void *at);
	void *at;
};

static inline _Noreturn void tool_usage(const char *usage)
{
	fputs(usage, stderr);
	exit(2);
}

static inline _Noreturn void tool_bad(const char *what, const char *value)
{
	fprintf(stderr, "bad %s: %s\n", what, value);
	exit(2);
}

static inline void take_text(const char *value, void *at)
{
	*(const char **)at = value;
}

static inline void take_int(const char *value, void *at)
{
	*(int *)at = strtol(value, NULL, 0);
}

static inline void take_u64(const char *value, void *at)
{
	*(uint64_t *)at = strtoull(value, NULL, 0);
}

static inline void take_double(const char *value, void *at)
{
	*(double *)at = atof(value);
}

/* `options` ends with one that has no name. `argv` begins with the program. */
static inline void tool_options(char **argv, const struct tool_option *options, const char *usage)
{
	while (*++argv) {
		const struct tool_option *o = options;

		while (o->name && (strncmp(*argv, "--", 2) || strcmp(*argv + 2, o->name)))
			o++;
		if (!o->name || (o->take && !argv[1]))
			tool_usage(usage);
		if (o->take)
			o->take(*++argv, o->at);
		else
			*(bool *)o->at = true;
	}
}

/* ------------------------------------------------------------------ clock, signals, CPU */

/* CLOCK_MONOTONIC, in seconds. */
static inline double tool_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static volatile sig_atomic_t tool_stopped;

static inline void tool_stop(int signal)
{
	tool_stopped = 1;
}

/* SIGTERM and SIGINT set tool_stopped. Without SA_RESTART: a call that waits ends, too. */
static inline void tool_stop_on_signals(void)
{
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = tool_stop }, NULL);
	sigaction(SIGINT, &(struct sigaction){ .sa_handler = tool_stop }, NULL);
}

/* `cpu` below 0: any. */
static inline void tool_pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

/* ------------------------------------------------------------------ interfaces */

static inline int tool_interface(const char *name)
{
	int index = if_nametoindex(name);

	if (!index)
		die(name);
	return index;
}

/* Frames of `protocol` that come in or go out; 0: the socket receives nothing. */
static inline int tool_socket(const char *interface, int protocol)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = tool_interface(interface),
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0), size = 64 << 20;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)))
		die("AF_PACKET");
	return fd;
}

#endif
