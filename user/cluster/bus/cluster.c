// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster.c - the cluster's thread and the interface to it; see cluster.h.
 *
 * In each tick the thread publishes peers and statistics for other threads under the lock.
 */
#include "cluster/bus/cluster_private.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "counters/counters.h"
#include "lib/log.h"

#define SURE_NS (3 * SL_NS_PER_SEC) /* Redis available for this long: silent nodes are gone */
#define DUE_NS 5000000ULL	    /* between two checks for due flushes */
#define END_NS SL_NS_PER_SEC	    /* limit for stopping */

/* ------------------------------------------------------------------ the main thread's side */

int cluster_send(struct cluster *c, const char *kind, json_t *body, u64 valid_ns)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct cluster_note *note;

	json_decref(body);
	if (!text)
		return -ENOMEM;
	if (strlen(text) > BUS_BODY_MAX) {
		free(text);
		return -E2BIG;
	}
	note = calloc(1, sizeof(*note));
	if (!note) {
		free(text);
		return -ENOMEM;
	}
	note->kind = kind;
	note->body = text;
	note->until_ns = clock_mono_ns() + valid_ns;
	notes_put(c, &c->out, note);
	return 0;
}

static void add_receiver(struct cluster *c, struct cluster_receiver receiver)
{
	if (c->receiver_count < CLUSTER_KINDS_MAX)
		c->receiver[c->receiver_count++] = receiver;
}

void cluster_on(struct cluster *c, const char *kind,
		void (*receive)(void *arg, const struct cluster_message *message), void *arg)
{
	add_receiver(c, (struct cluster_receiver){ .kind = kind, .receive = receive, .arg = arg });
}

void cluster_on_join(struct cluster *c, void (*joined)(void *arg, const char *node), void *arg)
{
	add_receiver(c, (struct cluster_receiver){ .joined = joined, .arg = arg });
}

static void flush(struct cluster *c, const struct cluster_note *note)
{
	struct cluster_message message = { .node = note->node,
					   .sent_utc_ns = note->sent_us * 1000 };
	u64 mono_ns = clock_mono_ns(), now_us, until_us;

	if (!bus_message_read(note->message, &message.kind, &until_us, &message.body))
		return;
	now_us = note->at.store_us + (mono_ns - note->at.mono_ns) / 1000;
	if (until_us <= now_us)
		return;
	message.until_ns = mono_ns + (until_us - now_us) * 1000;
	message.age_ns = now_us > note->sent_us ? (now_us - note->sent_us) * 1000 : 0;
	for (u32 i = 0; i < c->receiver_count; i++)
		if (c->receiver[i].kind && !strcmp(c->receiver[i].kind, message.kind))
			c->receiver[i].receive(c->receiver[i].arg, &message);
}

static void on_in(evutil_socket_t fd, short what, void *arg)
{
	struct cluster *c = arg;
	struct cluster_note *next;

	for (struct cluster_note *note = notes_take(c, &c->in); note; note = next) {
		next = note->next;
		if (note->message)
			flush(c, note);
		for (u32 i = 0; !note->message && i < c->receiver_count; i++)
			if (c->receiver[i].joined)
				c->receiver[i].joined(c->receiver[i].arg, note->node);
		note_free(note);
	}
}

/* ------------------------------------------------------------------ the cluster's thread */

static void on_receive(void *arg, const struct bus_head *head, json_t *message,
		       const struct bus_time *now)
{
	struct cluster_note *note = calloc(1, sizeof(*note));
	struct cluster *c = arg;

	if (!note) {
		json_decref(message);
		return;
	}
	note->message = message;
	note->sent_us = head->sent_us;
	note->at = *now;
	strcpy(note->node, head->node);
	notes_put(c, &c->in, note);
}

static void on_joined(void *arg, const char *node)
{
	struct cluster_note *note = calloc(1, sizeof(*note));
	struct cluster *c = arg;

	if (!note)
		return;
	strcpy(note->node, node);
	notes_put(c, &c->in, note);
}

/*
 * The node count gives the fraction of a limit that a node enforces while Redis is unavailable. No
 * messages arrive then, so a smaller count of live nodes is ignored until Redis has been available
 * for SURE_NS.
 */
static void publish_sharing(struct cluster *c, u32 size, u64 mono_ns)
{
	struct redis_stats stats;

	if (!c->quotas)
		return;
	redis_stats(c->redis, &stats);
	if (!stats.up || stats.breakers_open)
		c->up_ns = 0;
	else if (!c->up_ns)
		c->up_ns = mono_ns;
	if (size == c->sharing ||
	    (size < c->sharing && (!c->up_ns || mono_ns - c->up_ns < SURE_NS)))
		return;
	__atomic_store_n(&c->sharing, size, __ATOMIC_RELAXED);
	quotas_set_nodes(c->quotas, size);
}

/* State that other threads read. */
static void publish(struct cluster *c)
{
	size_t count = bus_peers_count(c->peers);
	struct cluster_peer *peer = calloc(count + 1, sizeof(*peer)), *old;
	u64 mono_ns = clock_mono_ns();
	u32 size = 1 + bus_peers_alive(c->peers, mono_ns);

	if (!peer)
		return;
	count = bus_peers_list(c->peers, mono_ns, peer, count);
	pthread_mutex_lock(&c->lock);
	bus_stats(c->bus, &c->bus_shown);
	old = c->peer;
	c->peer = peer;
	c->peer_count = count;
	pthread_mutex_unlock(&c->lock);
	free(old);
	/*
	 * While Redis is unavailable no messages arrive, and silent nodes may be alive: the
	 * count does not shrink.
	 */
	if (c->bus_shown.error[0] && size < c->size)
		size = c->size;
	if (c->bus_shown.clock_known)
		__atomic_store_n(&c->store_less_mono_us, bus_clock(c->bus), __ATOMIC_RELAXED);
	__atomic_store_n(&c->size, size, __ATOMIC_RELAXED);
	publish_sharing(c, size, mono_ns);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct cluster *c = arg;

	bus_tick(c->bus);
	publish(c);
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	struct cluster *c = arg;

	bus_flush(c->bus);
}

static struct timeval timeval_of(u64 ns)
{
	return (struct timeval){ .tv_sec = (time_t)(ns / SL_NS_PER_SEC),
				 .tv_usec = (suseconds_t)(ns % SL_NS_PER_SEC / 1000) };
}

/* Fires once, after `ns`. */
static void once(struct event *event, u64 ns)
{
	struct timeval in = timeval_of(ns);

	if (!event_pending(event, EV_TIMEOUT, NULL))
		event_add(event, &in);
}

static void begin_to_end(struct cluster *c)
{
	struct timeval soon = timeval_of(DUE_NS);

	c->ending_ns = clock_mono_ns();
	event_del(c->tick);
	if (c->quotas)
		quotas_end(c->quotas);
	bus_flush(c->bus);
	bus_goodbye(c->bus);
	event_add(c->due, &soon);
}

static void on_out(evutil_socket_t fd, short what, void *arg)
{
	struct cluster *c = arg;
	struct cluster_note *next;
	bool published = false, end;

	for (struct cluster_note *note = notes_take(c, &c->out); note; note = next) {
		next = note->next;
		bus_publish(c->bus, note->kind, note->body, note->until_ns);
		note->body = NULL;
		note_free(note);
		published = true;
	}
	if (published)
		once(c->flush, c->def->sync_ns / 8);
	cluster_looks(c);
	pthread_mutex_lock(&c->lock);
	end = c->end;
	pthread_mutex_unlock(&c->lock);
	if (end && !c->ending_ns)
		begin_to_end(c);
}

static void on_due(evutil_socket_t fd, short what, void *arg)
{
	struct cluster *c = arg;

	if (c->quotas)
		cluster_due(c);
	if (c->ending_ns &&
	    ((bus_is_idle(c->bus) && !c->pending) || clock_mono_ns() - c->ending_ns > END_NS))
		event_base_loopbreak(c->base);
}

static void *thread_main(void *arg)
{
	struct cluster *c = arg;

	pthread_setname_np(pthread_self(), "sluice-cluster");
	event_base_dispatch(c->base);
	return NULL;
}

/* ------------------------------------------------------------------ from start to end */

static struct event_base *make_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (config && event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) == 0)
		base = event_base_new_with_config(config);
	if (config)
		event_config_free(config);
	return base;
}

static int make_events(struct cluster *c, struct event_base *main_base)
{
	struct timeval due = timeval_of(DUE_NS), sync = timeval_of(c->def->sync_ns);
	int r = notes_open(&c->out, c->base, on_out, c);

	if (!r)
		r = notes_open(&c->in, main_base, on_in, c);
	if (r < 0)
		return r;
	c->tick = event_new(c->base, -1, EV_PERSIST, on_tick, c);
	c->flush = event_new(c->base, -1, 0, on_flush, c);
	c->due = event_new(c->base, -1, EV_PERSIST, on_due, c);
	if (!c->tick || !c->flush || !c->due || event_add(c->tick, &sync) < 0 ||
	    (c->quotas && event_add(c->due, &due) < 0))
		return -ENOMEM;
	return 0;
}

int cluster_open(const struct cluster_def *def, struct event_base *base, struct counters *counters,
		 struct quotas *quotas, struct cluster **ret, struct sl_err *err)
{
	struct cluster *c = calloc(1, sizeof(*c));
	struct bus_callbacks callbacks = { on_receive, on_joined, c };
	int r = -ENOMEM;

	if (!c)
		return sl_err_set(err, ENOMEM, "out of memory");
	pthread_mutex_init(&c->lock, NULL);
	c->out.wake_fd = c->in.wake_fd = -1;
	c->counters = counters;
	c->quotas = quotas;
	c->size = 1;
	c->base = make_base();
	if (!c->base || cluster_def_clone(def, &c->def) < 0 || bus_peers_new(&c->peers) < 0)
		goto out;
	r = cluster_keys_read(def->secret_file, &c->keys, err);
	if (!r)
		r = cluster_connect(c, c->base, &c->redis, &c->store, err);
	if (r < 0) {
		cluster_close(c);
		return r;
	}
	r = bus_new(c->def, &c->keys, c->redis, c->peers, &callbacks, &c->bus);
	if (!r)
		r = make_events(c, base);
out:
	if (r < 0) {
		cluster_close(c);
		return sl_err_set(err, -r, "cannot set up the cluster: %s", strerror(-r));
	}
	*ret = c;
	return 0;
}

void cluster_expect(struct cluster *c, u32 nodes)
{
	if (!c->quotas)
		return;
	c->sharing = nodes;
	quotas_set_nodes(c->quotas, nodes);
}

u32 cluster_sharing(const struct cluster *c)
{
	return __atomic_load_n(&c->sharing, __ATOMIC_RELAXED);
}

int cluster_run(struct cluster *c, struct sl_err *err)
{
	sigset_t all, before;
	int r;

	/* Signals are handled by the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	redis_warm(c->redis);
	r = pthread_create(&c->thread, NULL, thread_main, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	c->running = r == 0;
	return r ? sl_err_set(err, r, "cannot start the cluster's thread: %s", strerror(r)) : 0;
}

void cluster_stop(struct cluster *c)
{
	if (!c || !c->running)
		return;
	pthread_mutex_lock(&c->lock);
	c->end = true;
	pthread_mutex_unlock(&c->lock);
	notes_wake(&c->out);
	pthread_join(c->thread, NULL);
	c->running = false;
	/* Fails pending commands now: quota and the counter table may be freed later. */
	cluster_disconnect(c->redis, c->store);
	c->redis = NULL;
	c->store = NULL;
}

static void event_end(struct event *event)
{
	if (event)
		event_free(event);
}

void cluster_close(struct cluster *c)
{
	if (!c)
		return;
	cluster_stop(c);
	event_end(c->tick);
	event_end(c->flush);
	event_end(c->due);
	cluster_disconnect(c->redis, c->store);
	bus_free(c->bus);
	notes_close(&c->out);
	notes_close(&c->in);
	bus_peers_free(c->peers);
	if (c->base)
		event_base_free(c->base);
	cluster_def_free(c->def);
	free(c->peer);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

const struct cluster_def *cluster_def(const struct cluster *c)
{
	return c->def;
}

const struct cluster_keys *cluster_keys(const struct cluster *c)
{
	return &c->keys;
}

/* ------------------------------------------------------------------ nodes */

int cluster_peers(struct cluster *c, struct cluster_peer **ret, size_t *ret_count)
{
	struct cluster_peer *copy;
	size_t count;

	pthread_mutex_lock(&c->lock);
	count = c->peer_count;
	copy = calloc(count + 1, sizeof(*copy));
	if (copy && count)
		memcpy(copy, c->peer, count * sizeof(*copy));
	pthread_mutex_unlock(&c->lock);
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	*ret_count = count;
	return 0;
}

u32 cluster_size(const struct cluster *c)
{
	return __atomic_load_n(&c->size, __ATOMIC_RELAXED);
}

bool cluster_now(const struct cluster *c, u64 *ret_us)
{
	u64 less_us = __atomic_load_n(&c->store_less_mono_us, __ATOMIC_RELAXED);

	*ret_us = clock_mono_ns() / 1000 + less_us;
	return less_us != 0;
}
