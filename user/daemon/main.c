// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* main.c - sluiced: starts, runs the loop, exits. Exit detaches nothing. */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/confine.h"
#include "daemon/start.h"
#include "lib/log.h"
#include "version.h"

static const char usage[] =
	"usage: sluiced -c FILE [-s SOCKET] [-r] [-v]\n"
	"       sluiced -c FILE --purge    detach all interfaces, remove all pins, and exit\n"
	"\n"
	"  -c, --config FILE    the configuration (sluice.yaml(5)); sluicectl check FILE tests it\n"
	"  -s, --socket SOCKET  the control socket, in place of the file's control.socket\n"
	"  -r, --replace        take the place, and the sockets, of a sluiced with this state_dir\n"
	"  -v, --verbose        log more\n"
	"  -V, --version        print the version\n"
	"\n"
	"sluiced runs in the foreground and logs to stderr. SIGHUP reloads the file. SIGTERM exits;\n"
	"packet limits stay in force until sluicectl detach --all.\n";

enum {
	OPTION_PURGE = 256,
};

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' }, { "socket", required_argument, NULL, 's' },
	{ "replace", no_argument, NULL, 'r' },	    { "purge", no_argument, NULL, OPTION_PURGE },
	{ "verbose", no_argument, NULL, 'v' },	    { "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },	    { NULL, 0, NULL, 0 },
};

static int fail(const struct sl_err *err)
{
	char text[768];

	log_error("%s", sl_err_format(err, text, sizeof(text)));
	return 1;
}

/* Many clients need many descriptors: the soft limit becomes the hard limit. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(int argc, char **argv)
{
	static struct daemon d = { .running = { .config_path = NULL },
				   .packets = { .helper = { .fd = -1 } } };
	enum log_level level = LOG_LEVEL_INFO;
	struct sl_err err = { .message = "" };
	bool purge = false;
	int option, r;

	if (argc == 2 && !strcmp(argv[0], HELPER_NAME)) {
		log_open("sluiced", level);
		/* Confined: nothing runs at its exit. */
		_exit(helper_main(argv[1], confine_helper));
	}
	while ((option = getopt_long(argc, argv, "c:s:rvVh", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			d.running.config_path = optarg;
			break;
		case 's':
			d.commands.socket_path = optarg;
			break;
		case 'r':
			d.replace = true;
			break;
		case OPTION_PURGE:
			purge = true;
			break;
		case 'v':
			level = LOG_LEVEL_DEBUG;
			break;
		case 'V':
			printf("sluiced %s\n", SLUICE_VERSION);
			return 0;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (!d.running.config_path || optind < argc) {
		fputs(usage, stderr);
		return 2;
	}
	log_open("sluiced", level);
	/* A rule set is a few large blocks: return them to the kernel when freed. */
	mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	signal(SIGPIPE, SIG_IGN);
	raise_fd_limit();
	r = purge ? start_purge(&d, &err) : start_all(&d, &err);
	if (r < 0) {
		r = fail(&err);
		if (!purge)
			start_undo(&d);
	} else if (!purge)
		r = start_loop(&d);
	start_revert(&d);
	return r;
}
