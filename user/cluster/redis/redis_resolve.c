// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_resolve.c - resolves a name: getaddrinfo() in a thread of its own for each lookup.
 *
 * getaddrinfo() instead of evdns: a name must resolve as in all other programs of the machine
 * (nsswitch, the current /etc/hosts, resolved). It blocks, so it gets a thread, which signals
 * completion by a pipe. The last user frees the lookup: the thread, or the loop after a
 * cancellation.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/redis/redis_private.h"

struct redis_lookup {
	char *host, port[8];
	int pipe[2];
	int users; /* the thread and the loop */
	struct event *event;
	struct addrinfo *list;
	int error;
	void (*done)(void *arg, const struct addrinfo *list, const char *error);
	void *arg;
};

static void leave(struct redis_lookup *lookup)
{
	if (__atomic_sub_fetch(&lookup->users, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (lookup->list)
		freeaddrinfo(lookup->list);
	for (int i = 0; i < 2; i++)
		if (lookup->pipe[i] >= 0)
			close(lookup->pipe[i]);
	free(lookup->host);
	free(lookup);
}

static void *look_up(void *arg)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct redis_lookup *lookup = arg;

	lookup->error = getaddrinfo(lookup->host, lookup->port, &hints, &lookup->list);
	if (lookup->error)
		lookup->list = NULL;
	if (write(lookup->pipe[1], "", 1) < 0)
		lookup->error = EAI_SYSTEM;
	leave(lookup);
	return NULL;
}

static void on_done(evutil_socket_t fd, short what, void *arg)
{
	struct redis_lookup *lookup = arg;

	event_free(lookup->event);
	lookup->event = NULL;
	lookup->done(lookup->arg, lookup->list, lookup->list ? NULL : gai_strerror(lookup->error));
	leave(lookup);
}

void redis_lookup_cancel(struct redis_lookup *lookup)
{
	if (!lookup)
		return;
	event_free(lookup->event);
	lookup->event = NULL;
	leave(lookup);
}

static int start_thread(struct redis_lookup *lookup)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* Signals are handled by other threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, look_up, lookup);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

int redis_lookup_start(struct event_base *base, const char *host, u16 port,
		       void (*done)(void *arg, const struct addrinfo *list, const char *error),
		       void *arg, struct redis_lookup **ret)
{
	struct redis_lookup *lookup = calloc(1, sizeof(*lookup));
	int r = 0;

	if (!lookup)
		return -ENOMEM;
	lookup->users = 2;
	lookup->done = done;
	lookup->arg = arg;
	lookup->pipe[0] = lookup->pipe[1] = -1;
	lookup->host = strdup(host);
	snprintf(lookup->port, sizeof(lookup->port), "%u", port);
	if (!lookup->host || pipe2(lookup->pipe, O_CLOEXEC) < 0)
		r = -ENOMEM;
	if (!r)
		lookup->event = event_new(base, lookup->pipe[0], EV_READ, on_done, lookup);
	if (!r && (!lookup->event || event_add(lookup->event, NULL) < 0))
		r = -ENOMEM;
	if (!r)
		r = start_thread(lookup);
	if (r < 0) {
		if (lookup->event)
			event_free(lookup->event);
		lookup->users = 1;
		leave(lookup);
	} else {
		*ret = lookup;
	}
	return r;
}
