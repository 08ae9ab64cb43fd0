// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * client.c - see sluice.h: calls to sluiced, with a deadline, retries and a budget for them.
 *
 * Connections are kept while idle, with their buffers, so a call allocates nothing once there are
 * as many as threads. A call that was sent twice may be charged twice: that is never more than the
 * limit. A report is not: it has an id.
 *
 * The breaker: after a call that found no daemon, or had no response by its deadline, calls fail at
 * once, for as long as that one took, doubled with each further failure, at most `breaker_ns`; then
 * one call tries, and the others still fail for `breaker_ns`, unless it has ended before.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "client/forks.h"
#include "client/message.h"
#include "client/sized.h"

#define CONNECTIONS_KEPT 64
#define DOUBLINGS 5
#define BREAKER_DOUBLINGS 20
/* A larger request's buffer is freed after it: values may come from anyone. */
#define REQUEST_KEPT 65536
#define TIMEOUT_NS SL_NS_PER_SEC
#define BREAKER_NS SL_NS_PER_SEC
#define BACKOFF_NS (50 * SL_NS_PER_SEC / 1000)
#define DELAY_MAX_NS (3600 * SL_NS_PER_SEC)
/* A retry in hundredths: what it takes of the budget. */
#define RETRY 100

LIST_HEAD(client_conns, client_conn);

struct sluice_client {
	struct forked forked; /* the lock */
	struct sockaddr_un to;
	char *token;
	bool fail_closed;
	u64 timeout_ns, backoff_ns, breaker_ns;
	u32 retry_percent, budget_max;
	u64 random;	    /* atomic */
	u64 id[2], next_id; /* of reports: a random number, and a count (atomic) */
	/* The lock protects the rest. */
	u32 budget; /* hundredths of retries */
	u32 idle_count;
	struct client_conns idle, busy;
	u32 failures;			/* in a row; 0: the breaker is closed */
	int error;			/* of the last one */
	u64 open_until_ns, answered_ns; /* the last response */
};

/* ------------------------------------------------------------------ open and close */

static int check_config(const struct sluice_client_config *config)
{
	struct sockaddr_un to;

	if (config->reserved || !config->address || strncmp(config->address, "unix:/", 6) ||
	    config->flags & ~SLUICE_FAIL_CLOSED || config->retry_percent > 100 ||
	    config->retry_burst > 1000000 || config->backoff_ns > 3600 * SL_NS_PER_SEC ||
	    config->breaker_ns > 3600 * SL_NS_PER_SEC)
		return -EINVAL;
	/* Another line would be another header. */
	if (config->token && (!*config->token || strpbrk(config->token, "\r\n")))
		return -EINVAL;
	return strlen(config->address + 5) < sizeof(to.sun_path) ? 0 : -ENAMETOOLONG;
}

static void draw_numbers(struct sluice_client *c)
{
	if (getrandom(c->id, sizeof(c->id), 0) != sizeof(c->id))
		c->id[0] = client_now_ns();
	c->random = c->id[1] ^ (u64)(uintptr_t)c;
}

static void free_conn(struct client_conn *conn)
{
	client_disconnect(conn);
	free(conn->out.at);
	free(conn);
}

static void free_idle(struct sluice_client *c)
{
	struct client_conn *conn;

	while ((conn = LIST_FIRST(&c->idle))) {
		LIST_REMOVE(conn, link);
		free_conn(conn);
	}
	c->idle_count = 0;
}

/* The child opens connections of its own and draws ids of its own for reports. */
static void in_child(struct forked *forked)
{
	struct sluice_client *c =
		(struct sluice_client *)((char *)forked - offsetof(struct sluice_client, forked));
	struct client_conn *conn;

	free_idle(c);
	/* The threads that used them do not exist in the child. */
	LIST_FOREACH(conn, &c->busy, link)
		client_disconnect(conn);
	draw_numbers(c);
}

int sluice_client_open(const struct sluice_client_config *theirs, struct sluice_client **ret)
{
	struct sluice_client_config config;
	struct sluice_client *c;
	int err;

	*ret = NULL;
	err = sized_read(&config, sizeof(config), SIZED_TO(struct sluice_client_config, breaker_ns),
			 theirs);
	if (!err)
		err = check_config(&config);
	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->token = config.token ? strdup(config.token) : NULL;
	if ((config.token && !c->token) || forked_add(&c->forked, in_child)) {
		free(c->token);
		free(c);
		return -ENOMEM;
	}
	c->to.sun_family = AF_UNIX;
	strcpy(c->to.sun_path, config.address + 5);
	c->fail_closed = config.flags & SLUICE_FAIL_CLOSED;
	c->timeout_ns = config.timeout_ns ? config.timeout_ns : TIMEOUT_NS;
	c->backoff_ns = config.backoff_ns ? config.backoff_ns : BACKOFF_NS;
	c->breaker_ns = config.breaker_ns ? config.breaker_ns : BREAKER_NS;
	c->retry_percent = config.retry_percent ? config.retry_percent : 10;
	c->budget = c->budget_max = (config.retry_burst ? config.retry_burst : 10) * RETRY;
	LIST_INIT(&c->idle);
	LIST_INIT(&c->busy);
	draw_numbers(c);
	*ret = c;
	return 0;
}

void sluice_client_close(struct sluice_client *c)
{
	if (!c)
		return;
	forked_remove(&c->forked);
	free_idle(c);
	free(c->token);
	free(c);
}

/* ------------------------------------------------------------------ a call */

/* One call while it is made. */
struct call {
	struct sluice_client *client;
	enum client_call kind;
	struct sluice_request request;
	const char *id;
	u64 begun_ns, deadline_ns;
	struct sluice_result result;
	u64 after_ns;
};

/* There is no daemon, or it does not reply. */
static bool is_away(int err)
{
	return err == -ETIMEDOUT || err == -ECONNREFUSED || err == -ECONNRESET || err == -EPIPE ||
	       err == -ENOENT;
}

/* -------------------------------------------------------------- connections, budget and breaker */

/* Begins a call, which also adds to the budget. Fails while the breaker is open. */
static int take_conn(struct call *call, struct client_conn **ret)
{
	struct sluice_client *c = call->client;
	struct client_conn *conn;
	int err = 0;

	pthread_mutex_lock(&c->forked.lock);
	if (c->failures && call->begun_ns < c->open_until_ns) {
		err = c->error;
		goto out;
	}
	c->budget = c->budget_max - c->budget < c->retry_percent ? c->budget_max
								 : c->budget + c->retry_percent;
	conn = LIST_FIRST(&c->idle);
	if (conn) {
		LIST_REMOVE(conn, link);
		c->idle_count--;
	} else {
		conn = calloc(1, sizeof(*conn));
		if (!conn) {
			err = -ENOMEM;
			goto out;
		}
		conn->fd = -1;
	}
	LIST_INSERT_HEAD(&c->busy, conn, link);
	if (c->failures)
		c->open_until_ns = call->begun_ns + c->breaker_ns;
	*ret = conn;
out:
	pthread_mutex_unlock(&c->forked.lock);
	return err;
}

static void note_result(struct call *call, int err)
{
	struct sluice_client *c = call->client;
	u64 now_ns = client_now_ns(), took_ns = now_ns - call->begun_ns;

	if (!is_away(err)) {
		c->failures = 0;
		c->answered_ns = now_ns;
		return;
	}
	/* The daemon has replied to another thread meanwhile. */
	if (c->answered_ns > call->begun_ns)
		return;
	for (u32 i = 0; i < c->failures && took_ns < c->breaker_ns; i++)
		took_ns *= 2;
	c->failures += c->failures < BREAKER_DOUBLINGS;
	c->open_until_ns = now_ns + (took_ns < c->breaker_ns ? took_ns : c->breaker_ns);
	c->error = err;
}

static void give_conn(struct call *call, struct client_conn *conn, int err)
{
	struct sluice_client *c = call->client;
	bool keep;

	if (conn->out.size > REQUEST_KEPT) {
		free(conn->out.at);
		out_begin(&conn->out, NULL, 0);
	}
	pthread_mutex_lock(&c->forked.lock);
	note_result(call, err);
	LIST_REMOVE(conn, link);
	keep = c->idle_count < CONNECTIONS_KEPT;
	if (keep) {
		LIST_INSERT_HEAD(&c->idle, conn, link);
		c->idle_count++;
	}
	pthread_mutex_unlock(&c->forked.lock);
	if (!keep)
		free_conn(conn);
}

static bool take_retry(struct sluice_client *c)
{
	bool there;

	pthread_mutex_lock(&c->forked.lock);
	there = c->budget >= RETRY;
	if (there)
		c->budget -= RETRY;
	pthread_mutex_unlock(&c->forked.lock);
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

/* ------------------------------------------------------------------ tries */

static bool may_retry(const struct call *call, int err)
{
	if (err == -EAGAIN)
		return call->request.flags & SLUICE_RETRY_REFUSED;
	/* A client that fails open admits the request in any case, so it does not wait. */
	return call->client->fail_closed && (err == -EBUSY || (is_away(err) && err != -ETIMEDOUT));
}

/*
 * Sleeps until the next try; false: there is none by the deadline, or no budget for it, or a signal
 * handler ran: then the last response holds, which refuses.
 */
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
	return !clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
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
	err = client_write(&conn->out, call->kind, &call->request, c->token, call->id,
			   wait_ns < DELAY_MAX_NS ? wait_ns : DELAY_MAX_NS);
	if (!err)
		err = client_exchange(conn, &c->to, call->deadline_ns, &response);
	if (!err)
		err = client_read(&response, call->kind, &call->result, &call->after_ns);
	return err;
}

static int check_entries(const struct sluice_descriptor *d)
{
	for (size_t i = 0; i < d->entry_count; i++) {
		const struct sluice_entry *theirs = sized_at(d->entries, i);
		struct sluice_entry e;
		int err = sized_read(&e, sizeof(e), SIZED_TO(struct sluice_entry, value_size),
				     theirs);

		if (err)
			return err;
		if (e.size != d->entries->size || !e.key || !e.value)
			return -EINVAL;
	}
	return 0;
}

static int check_request(const struct sluice_request *r, enum client_call kind)
{
	if (!r->domain || !r->descriptors || !r->descriptor_count ||
	    r->flags & ~(SLUICE_PEEK | SLUICE_RETRY_REFUSED) || (kind == CLIENT_REPORT && r->flags))
		return -EINVAL;
	for (size_t i = 0; i < r->descriptor_count; i++) {
		const struct sluice_descriptor *theirs = sized_at(r->descriptors, i);
		struct sluice_descriptor d;
		int err =
			sized_read(&d, sizeof(d), SIZED_TO(struct sluice_descriptor, hits), theirs);

		if (!err && (d.size != r->descriptors->size || (d.entry_count && !d.entries)))
			err = -EINVAL;
		if (!err)
			err = check_entries(&d);
		if (err)
			return err;
	}
	return 0;
}

static int make_call(struct call *call, const struct sluice_request *theirs)
{
	struct sluice_client *c = call->client;
	struct client_conn *conn = NULL;
	int err, cancel;

	err = sized_read(&call->request, sizeof(call->request), SIZED_TO(struct sluice_request, id),
			 theirs);
	if (!err)
		err = check_request(&call->request, call->kind);
	if (err)
		return err;
	if (call->request.id)
		call->id = call->request.id;
	call->begun_ns = client_now_ns();
	call->deadline_ns = call->request.deadline_ns;
	if (!call->deadline_ns)
		call->deadline_ns = c->timeout_ns < UINT64_MAX - call->begun_ns
					    ? call->begun_ns + c->timeout_ns
					    : UINT64_MAX;
	if (call->begun_ns >= call->deadline_ns)
		return -ETIMEDOUT;
	/* A thread that is cancelled would leave its connection behind. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = take_conn(call, &conn);
	if (!err) {
		u32 tries = 0;

		do {
			err = try_once(call, conn);
		} while (may_retry(call, err) && wait_for_retry(call, tries++));
		give_conn(call, conn, err);
	}
	pthread_setcancelstate(cancel, NULL);
	return err;
}

int sluice_client_check(struct sluice_client *c, const struct sluice_request *request,
			struct sluice_result *ret)
{
	const size_t least = SIZED_TO(struct sluice_result, retry_after_ns);
	struct call call = { .client = c, .kind = CLIENT_CHECK };
	int err;

	if (ret && sized_write(ret, &call.result, sizeof(call.result), least)) {
		/* Every version of the struct has this field. */
		ret->admitted = !c->fail_closed;
		return -EINVAL;
	}
	err = make_call(&call, request);
	if (!ret)
		return err;
	call.result.admitted = !err || (err != -EAGAIN && err != -ERANGE && !c->fail_closed);
	sized_write(ret, &call.result, sizeof(call.result), least);
	return err;
}

int sluice_client_report(struct sluice_client *c, const struct sluice_request *request)
{
	struct call call = { .client = c, .kind = CLIENT_REPORT };
	char id[64];

	snprintf(id, sizeof(id), "%016llx%016llx-%llu", (unsigned long long)c->id[0],
		 (unsigned long long)c->id[1],
		 (unsigned long long)__atomic_fetch_add(&c->next_id, 1, __ATOMIC_RELAXED));
	call.id = id;
	return make_call(&call, request);
}
