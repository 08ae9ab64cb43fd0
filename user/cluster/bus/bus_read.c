// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bus_read.c - reads the new entries of the stream; see bus.h.
 *
 * An entry is untrusted input: any program with access to Redis may have written it. An entry that
 * is not two fields, or is not signed, is counted and skipped. After three unreadable replies in a
 * row (an entry above all bounds) the reader skips to the end of the stream.
 */
#include "cluster/bus/bus_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"

#define ENTRIES "64" /* in one reply: below REDIS_REPLY_MAX even at their largest */
#define ENTRIES_FULL 64
#define ROUNDS_MAX 32 /* replies within one tick */
#define LATE_MS 5000  /* later entries are skipped */
#define FAILED_MAX 3
#define STRANGER_NS (3600 * SL_NS_PER_SEC)

static bool id_parse(const char *text, struct stream_id *ret)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	ret->ms = strtoull(text, &end, 10);
	if (*end != '-' || end[1] < '0' || end[1] > '9')
		return false;
	ret->seq = strtoull(end + 1, &end, 10);
	return !*end;
}

static bool id_before(struct stream_id a, struct stream_id b)
{
	return a.ms < b.ms || (a.ms == b.ms && a.seq < b.seq);
}

/*
 * ------------------------------------------------------------------ batches with this node's name
 */

/*
 * A batch with this node's name. If an earlier daemon sent it, this one needs a newer boot time. If
 * another daemon sent it after this one started, two daemons have the name.
 */
static void note_own_name(struct bus *bus, const struct bus_head *head)
{
	bool recent = bus->caught_up && head->sent_us > bus->boot_us;

	if (head->boot_us == bus->boot_us && bus->boot_us)
		return;
	if (head->boot_us > bus->own_boot_us)
		bus->own_boot_us = head->boot_us;
	if (!recent)
		return;
	bus->twin_left = head->bye;
	if (head->bye)
		return;
	if (!bus->twice_ns)
		log_error("cluster: another daemon has the same node name %s: set a different "
			  "cluster.node on each machine; only the last one started is accepted",
			  bus->def->node);
	bus->twice_ns = clock_mono_ns();
}

void bus_begin(struct bus *bus)
{
	u64 now_us = bus_now(bus).store_us;

	bus->boot_us = now_us > bus->own_boot_us ? now_us : bus->own_boot_us + 1;
	bus->number = 0;
}

static void caught_up(struct bus *bus)
{
	if (!bus->caught_up)
		bus_begin(bus);
	bus->caught_up = true;
}

/* Logged once an hour, because any program with access to Redis can cause it. */
static void note_unsigned(struct bus *bus)
{
	bus->stats.refused[BUS_FORGED]++;
	bus->stranger_ns = clock_mono_ns();
	if (bus->stranger_sent_ns && bus->stranger_ns - bus->stranger_sent_ns < STRANGER_NS)
		return;
	bus->stranger_sent_ns = bus->stranger_ns;
	log_warn("cluster: refused messages that are not signed with the secret in %s: other nodes "
		 "have another secret, or a foreign program writes to %s",
		 bus->def->secret_file, bus->stream);
}

void bus_read_own(struct bus *bus, const char *id)
{
	struct stream_id own;

	if (!id_parse(id, &own))
		return;
	/*
	 * The stream was created again, or its clock went back: the position is ahead of all new
	 * entries.
	 */
	if (id_before(own, bus->own)) {
		bus->at = (struct stream_id){ own.ms > 1000 ? own.ms - 1000 : 0, 0 };
		bus->stats.skipped++;
	}
	bus->own = own;
}

/* ------------------------------------------------------------------ one entry */

static void receive(struct bus *bus, const struct bus_head *head, json_t *messages,
		    const struct bus_time *now)
{
	json_t *message;
	size_t i;

	json_array_foreach(messages, i, message) {
		const json_t *body;
		const char *kind;
		u64 until_us;

		if (!bus_message_read(message, &kind, &until_us, &body) ||
		    until_us > head->sent_us + BUS_VALID_MAX_US) {
			bus->stats.refused[BUS_MALFORMED]++;
		} else if (until_us > now->store_us) {
			bus->stats.received++;
			bus->callbacks.receive(bus->callbacks.arg, head, json_incref(message), now);
		}
	}
}

static void read_batch(struct bus *bus, const redisReply *text, const redisReply *signature)
{
	struct bus_time now = bus_now(bus);
	bool joined = false, twice = false;
	enum bus_verdict verdict;
	struct bus_head head;
	json_t *messages;

	verdict = bus_batch_open(bus->keys, bus->def->redis.prefix, text->str, text->len,
				 signature->str, signature->len, &head, &messages);
	if (verdict == BUS_FORGED)
		note_unsigned(bus);
	else if (verdict != BUS_GOOD)
		bus->stats.refused[verdict]++;
	if (verdict != BUS_GOOD)
		return;
	if (!strcmp(head.node, bus->def->node)) {
		note_own_name(bus, &head);
		json_decref(messages);
		return;
	}
	verdict = bus_peers_note(bus->peers, &head, &now, &joined, &twice);
	if (twice)
		log_warn("cluster: two daemons have the node name %s: set a different cluster.node "
			 "on each",
			 head.node);
	if (verdict == BUS_GOOD)
		receive(bus, &head, messages, &now);
	else
		bus->stats.refused[verdict]++;
	json_decref(messages);
	if (joined)
		bus->callbacks.joined(bus->callbacks.arg, head.node);
}

/* [id, [field, value, field, value]]; false if it is not a stream entry. */
static bool read_entry(struct bus *bus, const redisReply *entry)
{
	const redisReply *fields;
	struct stream_id id;

	if (entry->type != REDIS_REPLY_ARRAY || entry->elements != 2 ||
	    entry->element[0]->type != REDIS_REPLY_STRING ||
	    !id_parse(entry->element[0]->str, &id) || !id_before(bus->at, id))
		return false;
	bus->at = id;
	fields = entry->element[1];
	if (fields->type == REDIS_REPLY_ARRAY && fields->elements == 4 &&
	    fields->element[1]->type == REDIS_REPLY_STRING &&
	    fields->element[3]->type == REDIS_REPLY_STRING)
		read_batch(bus, fields->element[1], fields->element[3]);
	else
		note_unsigned(bus);
	return true;
}

/* ------------------------------------------------------------------ one reply */

/* [[stream, [entry, ...]]]: the entries, or NULL. */
static const redisReply *entries_of(const redisReply *reply)
{
	const redisReply *stream;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1)
		return NULL;
	stream = reply->element[0];
	if (stream->type != REDIS_REPLY_ARRAY || stream->elements != 2 ||
	    stream->element[1]->type != REDIS_REPLY_ARRAY)
		return NULL;
	return stream->element[1];
}

static void jump(struct bus *bus, u64 now_us)
{
	bus->at = (struct stream_id){ now_us / 1000 - 1000, 0 };
	bus->stats.skipped++;
}

static void fail(struct bus *bus, enum redis_outcome outcome, const redisReply *reply)
{
	bus_error(bus, BUS_READ, outcome, reply);
	/*
	 * A missing reply is not an unreadable one: the read is repeated when Redis is available.
	 */
	if (!bus->up_requested || ++bus->failed < FAILED_MAX)
		return;
	bus->failed = 0;
	if (id_before(bus->at, bus->own)) {
		bus->at = bus->own;
		bus->stats.skipped++;
	} else if (bus->stats.clock_known) {
		jump(bus, bus_now(bus).store_us);
	}
}

static void on_read(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	const redisReply *entries = outcome == REPLY_OK && reply ? entries_of(reply) : NULL;
	struct bus *bus = arg;
	u64 now_us = bus_now(bus).store_us;
	size_t count = entries ? entries->elements : 0;
	bool sound = true;

	bus->unanswered--;
	bus->reading = false;
	if (!entries && !(outcome == REPLY_OK && reply && reply->type == REDIS_REPLY_NIL)) {
		fail(bus, outcome, reply);
		return;
	}
	for (size_t i = 0; i < count && sound; i++)
		sound = read_entry(bus, entries->element[i]);
	if (!sound) {
		fail(bus, REPLY_ERROR, NULL);
		return;
	}
	bus->failed = 0;
	bus_well(bus, BUS_READ);
	if (count < ENTRIES_FULL) {
		caught_up(bus);
		return;
	}
	if (bus->caught_up && bus->at.ms + LATE_MS < now_us / 1000)
		jump(bus, now_us);
	if (++bus->rounds < ROUNDS_MAX)
		bus_read(bus);
}

void bus_read(struct bus *bus)
{
	char id[48];
	const char *argv[] = { "XREAD", "COUNT", ENTRIES, "STREAMS", bus->stream, id };
	size_t len[] = { 5, 5, strlen(ENTRIES), 7, strlen(bus->stream), 0 };

	if (bus->reading)
		return;
	if (!bus->placed) {
		/*
		 * Starts at the oldest fresh batch, so a new node receives the current state at
		 * once.
		 */
		bus->at.ms = (bus_now(bus).store_us - BUS_FRESH_US) / 1000;
		bus->placed = true;
	}
	len[5] = (size_t)snprintf(id, sizeof(id), "%" PRIu64 "-%" PRIu64, (uint64_t)bus->at.ms,
				  (uint64_t)bus->at.seq);
	bus->up_requested =
		redis_up(bus->redis, redis_slot_of(bus->redis, bus->stream, strlen(bus->stream)));
	bus->reading = bus_send(bus, 6, argv, len, on_read) == 0;
}
