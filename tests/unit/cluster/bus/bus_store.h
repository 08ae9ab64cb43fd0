/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bus_store.h - a Redis with one stream, in this process: the functions of its client (redis.h) as
 * the bus calls them. Replies come when redis_run() is called.
 */
#ifndef SLUICE_TESTS_BUS_STORE_H
#define SLUICE_TESTS_BUS_STORE_H

#include "cluster/bus/bus.h"

#define ENTRIES_MAX 4000
#define PENDING_MAX 64

struct entry {
	u64 ms, seq;
	char *text, *signature;
	size_t size, signature_size;
};

static struct {
	struct entry entry[ENTRIES_MAX];
	u32 count;
	u64 ahead_us; /* of this machine's UTC */
	bool down, broken;
	u64 until_ms; /* the stream's end */
	u32 kept;     /* how often it was set */
} counters;

struct redis {
	struct pending {
		char name[16], text[BUS_BATCH_MAX + 1];
		u8 signature[BUS_SIGNATURE];
		size_t size;
		u64 ms, seq;
		struct redis_handler handler;
	} pending[PENDING_MAX];
	u32 count;
	bool away; /* it alone is unreachable */
};

static u64 utc_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (u64)ts.tv_sec * 1000000 + (u64)ts.tv_nsec / 1000;
}

static u64 store_us(void)
{
	return utc_us() + counters.ahead_us;
}

static void counters_add(const char *text, size_t size, const void *signature,
			 size_t signature_size)
{
	struct entry *e = &counters.entry[counters.count], *last = counters.count ? e - 1 : NULL;

	assert_true(counters.count < ENTRIES_MAX);
	counters.count++;
	*e = (struct entry){ .ms = store_us() / 1000,
			     .size = size,
			     .signature_size = signature_size };
	if (last && last->ms >= e->ms) {
		e->ms = last->ms;
		e->seq = last->seq + 1;
	}
	e->text = malloc(size + 1);
	e->signature = malloc(signature_size + 1);
	memcpy(e->text, text, size);
	memcpy(e->signature, signature, signature_size);
}

static void counters_clear(void)
{
	for (u32 i = 0; i < counters.count; i++) {
		free(counters.entry[i].text);
		free(counters.entry[i].signature);
	}
	counters.count = 0;
}

u32 redis_slot_of(const struct redis *redis, const char *key, size_t len)
{
	assert_string_equal(key, "t:{bus}");
	return 0;
}

bool redis_up(const struct redis *redis, u32 slot)
{
	return !counters.down && !redis->away;
}

int redis_send(struct redis *redis, const struct redis_command *command,
	       struct redis_handler handler)
{
	struct pending *p = &redis->pending[redis->count++];

	assert_true(redis->count <= PENDING_MAX);
	memset(p, 0, sizeof(*p));
	p->handler = handler;
	snprintf(p->name, sizeof(p->name), "%s", command->argv[0]);
	if (!strcmp(p->name, "XADD")) {
		p->size = command->len[7];
		memcpy(p->text, command->argv[7], p->size);
		assert_int_equal(command->len[9], BUS_SIGNATURE);
		memcpy(p->signature, command->argv[9], BUS_SIGNATURE);
	} else if (!strcmp(p->name, "XREAD")) {
		assert_int_equal(sscanf(command->argv[5], "%llu-%llu", &p->ms, &p->seq), 2);
	} else if (!strcmp(p->name, "PEXPIREAT")) {
		assert_string_equal(command->argv[1], "t:{bus}");
		assert_int_equal(sscanf(command->argv[2], "%llu", &p->ms), 1);
	}
	return 0;
}

static redisReply *string(const char *text, size_t len)
{
	redisReply *r = calloc(1, sizeof(*r));

	r->type = REDIS_REPLY_STRING;
	r->str = malloc(len + 1);
	memcpy(r->str, text, len);
	r->str[len] = '\0';
	r->len = len;
	return r;
}

static redisReply *array(size_t count)
{
	redisReply *r = calloc(1, sizeof(*r));

	r->type = REDIS_REPLY_ARRAY;
	r->elements = count;
	r->element = calloc(count + 1, sizeof(r->element[0]));
	return r;
}

static redisReply *text_of(const char *text)
{
	return string(text, strlen(text));
}

static redisReply *entry_reply(const struct entry *e)
{
	redisReply *r = array(2), *fields = array(4);
	char id[48];

	snprintf(id, sizeof(id), "%llu-%llu", e->ms, e->seq);
	r->element[0] = text_of(id);
	r->element[1] = fields;
	fields->element[0] = text_of("m");
	fields->element[1] = string(e->text, e->size);
	fields->element[2] = text_of("s");
	fields->element[3] = string(e->signature, e->signature_size);
	return r;
}

static redisReply *read_reply(u64 ms, u64 seq)
{
	u32 from = 0, count;
	redisReply *r, *stream;

	while (from < counters.count &&
	       (counters.entry[from].ms < ms ||
		(counters.entry[from].ms == ms && counters.entry[from].seq <= seq)))
		from++;
	count = counters.count - from < 64 ? counters.count - from : 64;
	r = count ? array(1) : calloc(1, sizeof(*r));
	if (!count) {
		r->type = REDIS_REPLY_NIL;
		return r;
	}
	stream = r->element[0] = array(2);
	stream->element[0] = text_of("t:{bus}");
	stream->element[1] = array(count);
	for (u32 i = 0; i < count; i++)
		stream->element[1]->element[i] = entry_reply(&counters.entry[from + i]);
	return r;
}

static redisReply *response(const struct pending *p)
{
	char words[48];
	redisReply *r;

	if (!strcmp(p->name, "TIME")) {
		u64 now = store_us();

		r = array(2);
		snprintf(words, sizeof(words), "%llu", now / 1000000);
		r->element[0] = text_of(words);
		snprintf(words, sizeof(words), "%llu", now % 1000000);
		r->element[1] = text_of(words);
		return r;
	}
	if (!strcmp(p->name, "XADD")) {
		counters_add(p->text, p->size, p->signature, BUS_SIGNATURE);
		snprintf(words, sizeof(words), "%llu-%llu", counters.entry[counters.count - 1].ms,
			 counters.entry[counters.count - 1].seq);
		return text_of(words);
	}
	if (!strcmp(p->name, "PEXPIREAT")) {
		counters.until_ms = p->ms;
		counters.kept++;
		return text_of("1");
	}
	return counters.broken ? text_of("nonsense") : read_reply(p->ms, p->seq);
}

static void redis_run(struct redis *redis)
{
	while (redis->count) {
		struct pending p = redis->pending[0];
		redisReply *reply = counters.down || redis->away ? NULL : response(&p);

		memmove(&redis->pending[0], &redis->pending[1],
			--redis->count * sizeof(redis->pending[0]));
		p.handler.done(p.handler.arg, reply ? REPLY_OK : REPLY_DOWN, reply);
		if (reply)
			freeReplyObject(reply);
	}
}

#endif
