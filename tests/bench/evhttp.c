// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * evhttp.c - the yardstick: libevent's own HTTP server, bare, with status 204 for everything.
 *
 *     evhttp PORT WORKERS     until SIGTERM; each worker a thread and a loop, one shared socket
 */
#include <event2/event.h>
#include <event2/http.h>
#include <pthread.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int fd;

static void on_request(struct evhttp_request *request, void *arg)
{
	evhttp_send_reply(request, 204, "No Content", NULL);
}

static void *serve(void *arg)
{
	struct event_base *base = event_base_new();
	struct evhttp *http = evhttp_new(base);

	evhttp_accept_socket(http, dup(fd));
	evhttp_set_gencb(http, on_request, NULL);
	event_base_dispatch(base);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
	pthread_t thread;
	int on = 1;

	if (argc != 3) {
		fprintf(stderr, "usage: evhttp PORT WORKERS\n");
		return 2;
	}
	addr.sin_port = htons((unsigned short)atoi(argv[1]));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 1024) < 0) {
		perror("evhttp");
		return 1;
	}
	for (int i = 1; i < atoi(argv[2]); i++)
		pthread_create(&thread, NULL, serve, NULL);
	serve(NULL);
	return 0;
}
