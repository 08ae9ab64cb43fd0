// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bus.c - see bus.h. Sending is here, reading in bus_read.c. */
#include "cluster/bus/bus_private.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "version.h"

#define STREAM_BATCHES "10000"
#define STREAM_LASTS_MS                                                                            \
	120000ULL /* expiry after the last batch; nodes skip batches over 30 s old */
#define STREAM_KEPT_MS 10000ULL
#define UNSENT_MAX 4096
#define UNANSWERED_MAX 8
#define BATCHES_A_TICK 8
#define SLOW_NS (20 * 1000000ULL)
#define STALE_NS (30 * SL_NS_PER_SEC)
#define RECENT_NS (10 * SL_NS_PER_SEC)

static u64 utc_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (u64)ts.tv_sec * 1000000 + (u64)ts.tv_nsec / 1000;
}

struct bus_time bus_now(const struct bus *bus)
{
	u64 mono_ns = clock_mono_ns();

	return (struct bus_time){ .store_us = mono_ns / 1000 + bus->store_less_mono_us,
				  .mono_ns = mono_ns,
				  .own_utc_us = utc_us() };
}

/* ------------------------------------------------------------------ errors */

static const char *const command_name[BUS_COMMAND_COUNT] = {
	[BUS_TIME] = "TIME",
	[BUS_ADD] = "XADD",
	[BUS_READ] = "XREAD",
};

static const char *why_of(enum redis_outcome outcome, const redisReply *reply)
{
	switch (outcome) {
	case REPLY_LATE:
		return "no reply before the deadline";
	case REPLY_DOWN:
		return "the cluster store is unreachable";
	case REPLY_ERROR:
		if (reply && reply->type == REDIS_REPLY_ERROR && reply->str)
			return reply->str;
		break;
	case REPLY_OK:
		break;
	}
	return "unexpected type of reply";
}

void bus_error(struct bus *bus, enum bus_command command, enum redis_outcome outcome,
	       const redisReply *reply)
{
	const char *why = why_of(outcome, reply);
	char text[sizeof(bus->error[0])];

	snprintf(text, sizeof(text), "%s: %.160s", command_name[command], why);
	/* The text is shown on terminals, so only printable characters are kept. */
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = '?';
	strcpy(bus->error[command], text);
	bus->error_ns = clock_mono_ns();
	/* What was logged before already says why no command is sent any more. */
	if (outcome == REPLY_DOWN && bus->error_texts.count)
		return;
	if (log_texts_add(&bus->error_texts, why))
		log_warn("cluster: messages: %s", text);
}

void bus_well(struct bus *bus, enum bus_command command)
{
	bus->error[command][0] = '\0';
	if (!bus->error_texts.count || clock_mono_ns() - bus->error_ns < RECENT_NS)
		return;
	for (u32 i = 0; i < BUS_COMMAND_COUNT; i++)
		if (bus->error[i][0])
			return;
	bus->error_texts.count = 0;
	log_info("cluster: messages: sent and received again");
}

int bus_send(struct bus *bus, int argc, const char *const *argv, const size_t *len,
	     void (*done)(void *, enum redis_outcome, const redisReply *))
{
	struct redis_command command = {
		.slot = redis_slot_of(bus->redis, bus->stream, strlen(bus->stream)),
		.argc = argc,
		.argv = argv,
		.len = len,
		.deadline_ns = SL_NS_PER_SEC,
		/* A late bus command does not open the breaker for decisions. */
		.unhurried = true,
	};
	int r = redis_send(bus->redis, &command,
			   (struct redis_handler){ .done = done, .arg = bus });

	bus->unanswered += !r;
	return r;
}

/* ------------------------------------------------------------------ the clock of Redis */

static void on_time(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct bus *bus = arg;
	u64 now_ns = clock_mono_ns(),
	    mid_us = (bus->time_requested_ns + (now_ns - bus->time_requested_ns) / 2) / 1000;
	u64 us;

	bus->unanswered--;
	bus->asking_time = false;
	if (outcome != REPLY_OK || !reply || reply->type != REDIS_REPLY_ARRAY ||
	    reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
	    reply->element[1]->type != REDIS_REPLY_STRING) {
		bus_error(bus, BUS_TIME, outcome, reply);
		return;
	}
	bus_well(bus, BUS_TIME);
	/* A slow round trip measures the offset badly; the next attempt follows in a second. */
	if (bus->stats.clock_known && now_ns - bus->time_requested_ns > SLOW_NS &&
	    now_ns - bus->time_published_ns < STALE_NS)
		return;
	bus->time_published_ns = now_ns;
	us = strtoull(reply->element[0]->str, NULL, 10) * 1000000 +
	     strtoull(reply->element[1]->str, NULL, 10);
	bus->store_less_mono_us = us - mid_us;
	bus->stats.ahead_ns = (s64)(us - (utc_us() - (now_ns / 1000 - mid_us))) * 1000;
	bus->stats.clock_known = true;
}

static void request_time(struct bus *bus)
{
	const char *argv[] = { "TIME" };
	size_t len[] = { 4 };

	if (bus->asking_time ||
	    (bus->stats.clock_known && clock_mono_ns() - bus->time_requested_ns < SL_NS_PER_SEC))
		return;
	bus->time_requested_ns = clock_mono_ns();
	bus->asking_time = bus_send(bus, 1, argv, len, on_time) == 0;
}

/* ------------------------------------------------------------------ unsent messages */

static void drop_first(struct bus *bus)
{
	struct unsent_messages *first = bus->first;

	bus->first = first->next;
	if (!bus->first)
		bus->last = &bus->first;
	bus->unsent_messages--;
	free(first->body);
	free(first);
}

void bus_publish(struct bus *bus, const char *kind, char *body, u64 until_mono_ns)
{
	struct unsent_messages *unsent_messages = malloc(sizeof(*unsent_messages));

	if (!unsent_messages) {
		free(body);
		bus->stats.dropped++;
		return;
	}
	*unsent_messages = (struct unsent_messages){ NULL, kind, body, until_mono_ns };
	*bus->last = unsent_messages;
	bus->last = &unsent_messages->next;
	/* With too many unsent messages the oldest are dropped. */
	if (++bus->unsent_messages > UNSENT_MAX) {
		drop_first(bus);
		bus->stats.dropped++;
	}
}

/* ------------------------------------------------------------------ sending */

static void on_kept(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct bus *bus = arg;

	bus->unanswered--;
}

/* Like all keys, the stream expires some time after all nodes have stopped. */
static void keep_stream(struct bus *bus)
{
	char until[24];
	const char *argv[] = { "PEXPIREAT", bus->stream, until };

	if (bus->own.ms >= bus->kept_ms && bus->own.ms - bus->kept_ms < STREAM_KEPT_MS)
		return;
	snprintf(until, sizeof(until), "%llu", bus->own.ms + STREAM_LASTS_MS);
	if (bus_send(bus, 3, argv, NULL, on_kept) == 0)
		bus->kept_ms = bus->own.ms;
}

static void on_added(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct bus *bus = arg;

	bus->unanswered--;
	if (outcome == REPLY_OK && reply && reply->type == REDIS_REPLY_STRING) {
		bus_well(bus, BUS_ADD);
		bus_read_own(bus, reply->str);
		keep_stream(bus);
	} else {
		bus_error(bus, BUS_ADD, outcome, reply);
	}
}

static void add(struct bus *bus, const char *text, size_t size)
{
	u8 signature[BUS_SIGNATURE];
	const char *argv[] = { "XADD", bus->stream, "MAXLEN", "~", STREAM_BATCHES,
			       "*",    "m",	    text,     "s", (const char *)signature };
	size_t len[] = { 4, strlen(bus->stream), 6, 1, strlen(STREAM_BATCHES), 1, 1, size,
			 1, sizeof(signature) };

	if (bus_sign(bus->keys, bus->def->redis.prefix, text, size, signature) == 0)
		bus_send(bus, 10, argv, len, on_added);
}

/* Appends messages while there is room for another of the largest; drops expired ones. */
static u32 fill(struct bus *bus, struct evbuffer *out, u64 now_us)
{
	u64 mono_ns = clock_mono_ns();
	u32 count = 0;

	while (bus->first && count < BUS_MESSAGES_MAX &&
	       evbuffer_get_length(out) + BUS_BODY_MAX + 512 < BUS_BATCH_MAX) {
		const struct unsent_messages *w = bus->first;

		if (w->until_mono_ns > mono_ns)
			bus_batch_add(out, !count++, w->kind,
				      now_us + (w->until_mono_ns - mono_ns) / 1000, w->body);
		else
			bus->stats.dropped++;
		drop_first(bus);
	}
	bus->stats.sent += count;
	return count;
}

static void send_batch(struct bus *bus, bool bye)
{
	struct bus_time now = bus_now(bus);
	struct bus_head head = { .boot_us = bus->boot_us,
				 .number = ++bus->number,
				 .sent_us = now.store_us,
				 .sync_us = bus->def->sync_ns / 1000,
				 .version = SLUICE_VERSION,
				 .bye = bye };
	struct evbuffer *out = evbuffer_new();

	if (!out)
		return;
	strcpy(head.node, bus->def->node);
	bus_batch_begin(out, &head);
	fill(bus, out, now.store_us);
	bus_batch_end(out);
	add(bus, (const char *)evbuffer_pullup(out, -1), evbuffer_get_length(out));
	evbuffer_free(out);
}

static bool may_send(const struct bus *bus)
{
	return bus->caught_up && bus->unanswered < UNANSWERED_MAX &&
	       redis_up(bus->redis, redis_slot_of(bus->redis, bus->stream, strlen(bus->stream)));
}

void bus_flush(struct bus *bus)
{
	for (int i = 0; i < BATCHES_A_TICK && bus->first && may_send(bus); i++)
		send_batch(bus, false);
}

static bool is_recent(u64 mono_ns)
{
	return mono_ns && clock_mono_ns() - mono_ns < RECENT_NS;
}

/*
 * A daemon that started later used this node's name, so the other nodes dropped this node's
 * batches. It has left: this node continues with a newer boot time, which the other nodes accept.
 */
static void follow_twin(struct bus *bus)
{
	u64 silent_ns = 10 * bus->def->sync_ns;

	if (silent_ns < BUS_SILENT_LEAST_NS)
		silent_ns = BUS_SILENT_LEAST_NS;
	if (!bus->caught_up || bus->own_boot_us <= bus->boot_us ||
	    (!bus->twin_left && clock_mono_ns() - bus->twice_ns < silent_ns))
		return;
	bus_begin(bus);
	log_info("cluster: the other daemon with the node name %s has left; the other "
		 "nodes accept this one again",
		 bus->def->node);
}

void bus_tick(struct bus *bus)
{
	bus->stats.twice = is_recent(bus->twice_ns);
	bus->stats.strangers = is_recent(bus->stranger_ns);
	follow_twin(bus);
	request_time(bus);
	if (!bus->stats.clock_known)
		return;
	if (may_send(bus))
		send_batch(bus, false);
	bus_flush(bus);
	bus->rounds = 0;
	bus_read(bus);
}

void bus_goodbye(struct bus *bus)
{
	if (may_send(bus))
		send_batch(bus, true);
}

u64 bus_clock(const struct bus *bus)
{
	return bus->store_less_mono_us;
}

bool bus_is_idle(const struct bus *bus)
{
	return !bus->unanswered;
}

/* ------------------------------------------------------------------ from start to end */

int bus_new(const struct cluster_def *def, const struct cluster_keys *keys, struct redis *redis,
	    struct bus_peers *peers, const struct bus_callbacks *callbacks, struct bus **ret)
{
	struct bus *bus = calloc(1, sizeof(*bus));

	if (!bus || asprintf(&bus->stream, "%s{bus}", def->redis.prefix) < 0) {
		free(bus);
		return -ENOMEM;
	}
	bus->def = def;
	bus->keys = keys;
	bus->redis = redis;
	bus->peers = peers;
	bus->callbacks = *callbacks;
	bus->last = &bus->first;
	*ret = bus;
	return 0;
}

void bus_free(struct bus *bus)
{
	if (!bus)
		return;
	while (bus->first)
		drop_first(bus);
	free(bus->stream);
	free(bus);
}

void bus_stats(const struct bus *bus, struct bus_stats *ret)
{
	*ret = bus->stats;
	for (u32 i = 0; i < BUS_COMMAND_COUNT && !ret->error[0]; i++)
		strcpy(ret->error, bus->error[i]);
}
