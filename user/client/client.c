// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * client.c - see sluice.h: calls to sluiced, with a deadline, retries and a budget for them.
 *
 * Connections are kept while idle, with their buffers, so a call allocates nothing once there are as
 * many as threads. A call that was sent twice may be charged twice: that is never more than the
 * limit. A report is not: it has an id.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "client/message.h"

#define CONNECTIONS_KEPT 64
#define DOUBLINGS 5
/* A larger request's buffer is freed after it: values may come from anyone. */
#define REQUEST_KEPT 65536
#define TIMEOUT_NS SL_NS_PER_SEC
#define BACKOFF_NS (50 * SL_NS_PER_SEC / 1000)
#define DELAY_MAX_NS (3600 * SL_NS_PER_SEC)
/* A retry in hundredths: what it takes of the budget. */
#define RETRY 100

struct sluice_client {
	struct sockaddr_un to;
	char *token;
	bool fail_closed;
	u64 timeout_ns, backoff_ns;
	u32 retry_percent, budget_max;
	u64 random;			/* atomic */
	u64 id[2], next_id;		/* of reports: a random number, and a count (atomic) */
	pthread_mutex_t lock;		/* of what follows */
	u32 budget;			/* hundredths of retries */
	u32 idle_count;
	struct client_conn *idle;
};

/* ------------------------------------------------------------------ open and close */

static int check_config(const struct sluice_client_config *config)
{
	struct sockaddr_un to;

	if (config->size < sizeof(*config) || !config->address ||
	    strncmp(config->address, "unix:/", 6) || config->flags & ~SLUICE_FAIL_CLOSED ||
	    config->retry_percent > 100 || config->retry_burst > 1000000 ||
	    config->backoff_ns > 3600 * SL_NS_PER_SEC)
		return -EINVAL;
	/* Another line would be another header. */
	if (config->token && (!*config->token || strpbrk(config->token, "\r\n")))
		return -EINVAL;
	return strlen(config->address + 5) < sizeof(to.sun_path) ? 0 : -ENAMETOOLONG;
}

int sluice_client_open(const struct sluice_client_config *config, struct sluice_client **ret)
{
	struct sluice_client *c;
	int err;

	*ret = NULL;
	err = check_config(config);
	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->token = config->token ? strdup(config->token) : NULL;
	if (config->token && !c->token) {
		free(c);
		return -ENOMEM;
	}
	c->to.sun_family = AF_UNIX;
	strcpy(c->to.sun_path, config->address + 5);
	c->fail_closed = config->flags & SLUICE_FAIL_CLOSED;
	c->timeout_ns = config->timeout_ns ? config->timeout_ns : TIMEOUT_NS;
	c->backoff_ns = config->backoff_ns ? config->backoff_ns : BACKOFF_NS;
	c->retry_percent = config->retry_percent ? config->retry_percent : 10;
	c->budget = c->budget_max = (config->retry_burst ? config->retry_burst : 10) * RETRY;
	if (getrandom(c->id, sizeof(c->id), 0) != sizeof(c->id))
		c->id[0] = client_now_ns();
	c->random = c->id[1] ^ (u64)(uintptr_t)c;
	pthread_mutex_init(&c->lock, NULL);
	*ret = c;
	return 0;
}

static void free_conn(struct client_conn *conn)
{
	client_disconnect(conn);
	free(conn->out.at);
	free(conn);
}

void sluice_client_close(struct sluice_client *c)
{
	struct client_conn *conn;

	if (!c)
		return;
	while ((conn = c->idle)) {
		c->idle = conn->next;
		free_conn(conn);
	}
	pthread_mutex_destroy(&c->lock);
	free(c->token);
	free(c);
}

/* ------------------------------------------------------------------ connections and the budget */

/* At the beginning of a call, which also adds to the budget. */
static struct client_conn *take_conn(struct sluice_client *c)
{
	struct client_conn *conn;

	pthread_mutex_lock(&c->lock);
	c->budget = c->budget_max - c->budget < c->retry_percent ? c->budget_max :
								   c->budget + c->retry_percent;
	conn = c->idle;
	if (conn) {
		c->idle = conn->next;
		c->idle_count--;
	}
	pthread_mutex_unlock(&c->lock);
	if (!conn) {
		conn = calloc(1, sizeof(*conn));
		if (conn)
			conn->fd = -1;
	}
	return conn;
}

static void give_conn(struct sluice_client *c, struct client_conn *conn)
{
	bool keep;

	if (conn->out.size > REQUEST_KEPT) {
		free(conn->out.at);
		out_begin(&conn->out, NULL, 0);
	}
	pthread_mutex_lock(&c->lock);
	keep = c->idle_count < CONNECTIONS_KEPT;
	if (keep) {
		conn->next = c->idle;
		c->idle = conn;
		c->idle_count++;
	}
	pthread_mutex_unlock(&c->lock);
	if (!keep)
		free_conn(conn);
}

static bool take_retry(struct sluice_client *c)
{
	bool there;

	pthread_mutex_lock(&c->lock);
	there = c->budget >= RETRY;
	if (there)
		c->budget -= RETRY;
	pthread_mutex_unlock(&c->lock);
	return there;
}

/* Half of `most` to all of it; splitmix64 of a counter, so threads need no lock. */
static u64 jitter(struct sluice_client *c, u64 most)
{
	u64 z = __atomic_add_fetch(&c->random, 0x9e3779b97f4a7c15, __ATOMIC_RELAXED);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return most - (z ^ z >> 31) % (most / 2 + 1);
}

/* ------------------------------------------------------------------ a call */

/* One call while it is made. */
struct call {
	struct sluice_client *client;
	enum client_call kind;
	const struct sluice_request *request;
	const char *id;
	u64 deadline_ns;
	struct sluice_result result;
	u64 after_ns;
};

static bool may_retry(const struct call *call, int err)
{
	switch (err) {
	case -EAGAIN:
		return call->request->flags & SLUICE_RETRY_REFUSED;
	case -EBUSY:
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EPIPE:
	case -ENOENT:
		return true;
	}
	return false;
}

/* Sleeps until the next try; false: there is none by the deadline, or no budget for it. */
static bool wait_for_retry(struct call *call, u32 tries)
{
	struct sluice_client *c = call->client;
	u32 doublings = tries < DOUBLINGS ? tries : DOUBLINGS;
	u64 wait_ns = call->after_ns + jitter(c, c->backoff_ns << doublings);
	u64 now_ns = client_now_ns();
	struct timespec at;

	if (now_ns >= call->deadline_ns || wait_ns >= call->deadline_ns - now_ns || !take_retry(c))
		return false;
	now_ns += wait_ns;
	at = (struct timespec){ now_ns / SL_NS_PER_SEC, now_ns % SL_NS_PER_SEC };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
	return true;
}

static int try_once(struct call *call, struct client_conn *conn)
{
	struct sluice_client *c = call->client;
	struct client_response response;
	u64 now_ns = client_now_ns(), wait_ns;
	int err;

	call->result = (struct sluice_result){};
	call->after_ns = 0;
	if (now_ns >= call->deadline_ns)
		return -ETIMEDOUT;
	/* The daemon may use three quarters of the time for a delayed response. */
	wait_ns = (call->deadline_ns - now_ns) / 4 * 3;
	err = client_write(&conn->out, call->kind, call->request, c->token, call->id,
			   wait_ns < DELAY_MAX_NS ? wait_ns : DELAY_MAX_NS);
	if (!err)
		err = client_exchange(conn, &c->to, call->deadline_ns, &response);
	if (!err)
		err = client_read(&response, call->kind, &call->result, &call->after_ns);
	return err;
}

static int check_request(const struct sluice_request *r, enum client_call kind)
{
	if (r->size < sizeof(*r) || !r->domain || !r->descriptors || !r->descriptor_count ||
	    r->flags & ~(SLUICE_PEEK | SLUICE_RETRY_REFUSED) || (kind == CLIENT_REPORT && r->flags))
		return -EINVAL;
	for (size_t i = 0; i < r->descriptor_count; i++) {
		const struct sluice_descriptor *d = &r->descriptors[i];

		if (d->entry_count && !d->entries)
			return -EINVAL;
		for (size_t e = 0; e < d->entry_count; e++)
			if (!d->entries[e].key || !d->entries[e].value)
				return -EINVAL;
	}
	return 0;
}

static int make_call(struct call *call)
{
	struct sluice_client *c = call->client;
	u64 now_ns = client_now_ns();
	struct client_conn *conn;
	int err, cancel;

	err = check_request(call->request, call->kind);
	if (err)
		return err;
	call->deadline_ns = call->request->deadline_ns;
	if (!call->deadline_ns)
		call->deadline_ns = c->timeout_ns < UINT64_MAX - now_ns ? now_ns + c->timeout_ns : UINT64_MAX;
	/* A thread that is cancelled would leave its connection behind. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	conn = take_conn(c);
	if (conn) {
		u32 tries = 0;

		do {
			err = try_once(call, conn);
		} while (may_retry(call, err) && wait_for_retry(call, tries++));
		give_conn(c, conn);
	} else {
		err = -ENOMEM;
	}
	pthread_setcancelstate(cancel, NULL);
	return err;
}

int sluice_client_check(struct sluice_client *c, const struct sluice_request *request,
			struct sluice_result *ret)
{
	struct call call = { .client = c, .kind = CLIENT_CHECK, .request = request };
	int err = make_call(&call);

	if (!ret)
		return err;
	*ret = call.result;
	ret->admitted = !err || (err != -EAGAIN && err != -ERANGE && !c->fail_closed);
	return err;
}

int sluice_client_report(struct sluice_client *c, const struct sluice_request *request)
{
	struct call call = { .client = c, .kind = CLIENT_REPORT, .request = request };
	char id[64];

	snprintf(id, sizeof(id), "%016llx%016llx-%llu", (unsigned long long)c->id[0],
		 (unsigned long long)c->id[1],
		 (unsigned long long)__atomic_fetch_add(&c->next_id, 1, __ATOMIC_RELAXED));
	call.id = request->id ? request->id : id;
	return make_call(&call);
}
