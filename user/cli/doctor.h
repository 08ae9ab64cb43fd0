/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * doctor.h - sluicectl doctor: what of this host, its interfaces and the daemon keeps limits from
 * holding, or makes them expensive.
 *
 *     doctor.c         the command: runs the checks, prints them, the exit status
 *     doctor_host.c    kernel, BPF, privileges, clocks
 *     doctor_nic.c     each interface: driver, queues, offloads, MTU, other programs
 *     doctor_daemon.c  the daemon, its configuration, table, listeners, cluster
 *     doctor_socket.c  who may connect to a listener's Unix socket
 *     check.c          reads the configuration
 *
 * Reads /proc, /sys, ethtool's ioctl, rtnetlink, bpf() and the control socket; changes nothing.
 * What may not be read becomes "unknown", with the reason.
 */
#ifndef SLUICE_CLI_DOCTOR_H
#define SLUICE_CLI_DOCTOR_H

#include "cli/cli.h"

enum level {
	LEVEL_OK,
	LEVEL_WARN,
	LEVEL_BAD,
	LEVEL_UNKNOWN,
	LEVEL_COUNT,
};

struct doctor;

/* A check adds one result, or none where it does not apply. */
struct check {
	const char *name;
	const char *why; /* why it matters: one sentence */
	void (*run)(struct doctor *d);
};

struct doctor {
	const struct cli *cli;
	json_t *status;	     /* of the daemon; NULL: not read */
	json_t *stats;	     /* likewise */
	json_t *deferred;    /* of "defer list"; likewise */
	char no_daemon[256]; /* why not */
	bool not_running;    /* nobody listens on the socket */
	char config_path[4096];
	json_t *config;		 /* as check_facts(); NULL: not read */
	char config_error[1024]; /* why not; "": there is no such file */
	const char *ifname;	 /* of the interface that is checked */
	const json_t *iface;	 /* its entry in `status`; NULL: none */
	const struct check *now; /* the check that runs */
	json_t *results;
	int count[LEVEL_COUNT];
};

/* Up to one without a name. */
extern const struct check doctor_host_checks[], doctor_nic_checks[], doctor_daemon_checks[];

/* The result of the check that runs; `mend` is a command or a setting, NULL: none. */
void doctor_found(struct doctor *d, enum level level, const char *mend, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The first line of a file of /proc or /sys without its newline; false if it cannot be read. */
bool doctor_read(const char *path, char *buf, size_t size);
long doctor_cpus(void); /* online */

/* Who may connect to a Unix socket, and the first running proxy that may not, with what lets it. */
struct doctor_socket {
	char who[256], refused[512], mend[512]; /* refused "": each may */
	int able;				/* processes of proxies that may */
};
void doctor_socket(const char *path, struct doctor_socket *ret);

#endif
