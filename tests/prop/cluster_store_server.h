/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cluster_store_server.h - a redis-server whose time of day is set by the test
 * (lib/preload/clock.c), and nodes' stores on two clients of it.
 */
#ifndef SLUICE_TESTS_CLUSTER_STORE_SERVER_H
#define SLUICE_TESTS_CLUSTER_STORE_SERVER_H

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/test.h"
#include "cluster/redis/redis.h"
#include "prop/cluster_store_requests.h"

#define CLIENTS 2
#define NODES 4
#define USER "docs/examples/redis-user.conf"

struct server {
	char dir[64], socket[96], password[96];
	pid_t pid;
	struct event_base *base;
	struct redis_url url;
	struct redis_def def;
	struct redis_def all;
	struct redis *redis[CLIENTS];
	struct redis *looker; /* may do all: for the test's own checks */
	struct cluster_store *shared[NODES];
	u64 *now_us; /* its clock */
};

static struct server server;
static const char *const node_name[NODES] = {
	"a",
	"b.example",
	"c",
	"node-of-a-very-long-name.in-some.data-centre.example",
};

/* ------------------------------------------------------------------ the server */

static void make_clock(void)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/clock", server.dir);
	setenv("CLOCK_FILE", path, 1);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && !ftruncate(fd, sizeof(*server.now_us)));
	server.now_us =
		mmap(NULL, sizeof(*server.now_us), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(server.now_us != MAP_FAILED);
	*server.now_us = START_US;
	close(fd);
	snprintf(path, sizeof(path), "gcc -shared -fPIC -o %s/clock.so tests/lib/preload/clock.c",
		 server.dir);
	assert_int_equal(system(path), 0);
}

static void write_password(void)
{
	FILE *file = fopen(server.password, "w");

	assert_non_null(file);
	fputs("CHANGE-ME\n", file);
	fclose(file);
}

/* The socket is there a moment before the server listens on it. */
static bool is_listening(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool listening;

	strcpy(address.sun_path, server.socket);
	listening = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	return listening;
}

static int start_server(void **state)
{
	strcpy(server.dir, "/tmp/sluice-redis-XXXXXX");
	if (!mkdtemp(server.dir))
		return -1;
	snprintf(server.socket, sizeof(server.socket), "%s/socket", server.dir);
	snprintf(server.password, sizeof(server.password), "%s/password", server.dir);
	write_password();
	make_clock();
	server.pid = fork();
	if (!server.pid) {
		char preload[96];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(preload, sizeof(preload), "%s/clock.so", server.dir);
		setenv("LD_PRELOAD", preload, 1);
		execlp("redis-server", "redis-server", USER, "--port", "0", "--unixsocket",
		       server.socket, "--save", "", "--appendonly", "no", "--dir", server.dir,
		       "--enable-debug-command", "yes", "--logfile", "redis.log", NULL);
		_exit(127);
	}
	for (u32 i = 0; i < 1000 && !is_listening(); i++)
		usleep(10000);
	return is_listening() ? 0 : -1;
}

static int stop_server(void **state)
{
	char command[128];

	kill(server.pid, SIGKILL);
	waitpid(server.pid, NULL, 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", server.dir);
	return system(command);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
}

/* Until it holds; a server that is stalled for seconds is waited for. */
#define run_until(condition)                                                                       \
	do {                                                                                       \
		u32 turns_ = 0;                                                                    \
		while (!(condition)) {                                                             \
			struct timeval ms_ = { .tv_usec = 1000 };                                  \
			event_base_once(server.base, -1, EV_TIMEOUT, on_tick, NULL, &ms_);         \
			event_base_loop(server.base, EVLOOP_ONCE);                                 \
			if (++turns_ > 20000000)                                                   \
				fail_msg("never: %s", #condition);                                 \
		}                                                                                  \
	} while (0)

static void open_clients(void)
{
	struct sl_err err;

	server.base = event_base_new();
	server.url = (struct redis_url){ .text = server.socket,
					 .host = server.socket,
					 .unix_socket = true };
	server.def = (struct redis_def){ .url = &server.url,
					 .url_count = 1,
					 .user = "sluice",
					 .password_file = server.password,
					 .prefix = "sluice:" };
	server.all = server.def;
	server.all.user = server.all.password_file = NULL;
	if (redis_new(server.base, &server.all, &server.looker, &err))
		fail_msg("%s", err.message);
	for (u32 i = 0; i < CLIENTS; i++)
		if (redis_new(server.base, &server.def, &server.redis[i], &err))
			fail_msg("%s", err.message);
	for (u32 i = 0; i < NODES; i++)
		assert_int_equal(cluster_store_redis_new(server.redis[i % CLIENTS], "sluice:",
							 node_name[i], &server.shared[i]),
				 0);
}

static void close_clients(void)
{
	for (u32 i = 0; i < CLIENTS; i++)
		redis_free(server.redis[i]);
	for (u32 i = 0; i < NODES; i++)
		server.shared[i]->ops->free(server.shared[i]);
	redis_free(server.looker);
	event_base_free(server.base);
}

/* ------------------------------------------------------------------ asks */

static enum cluster_store_outcome request(u32 client, struct response *response,
					  struct cluster_store_bucket *bucket, u32 count)
{
	send_ask(server.shared[client], response, bucket, count);
	run_until(response->done);
	return response->outcome;
}

struct said {
	u32 done;
	long long integer;
};

static void on_said(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct said *said = arg;

	if (outcome != REPLY_OK)
		fail_msg("%s", reply && reply->str ? reply->str : "no answer");
	said->integer = reply->integer;
	said->done++;
}

static long long command(int argc, const char *const *argv)
{
	struct redis_command command = { .argc = argc,
					 .argv = argv,
					 .deadline_ns = 20 * SL_NS_PER_SEC };
	struct said said = { 0 };

	assert_int_equal(redis_send(server.looker, &command,
				    (struct redis_handler){ .done = on_said, .arg = &said }),
			 0);
	run_until(said.done);
	return said.integer;
}

#endif
