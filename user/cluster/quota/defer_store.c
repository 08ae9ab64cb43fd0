// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * defer_store.c - see defer_store.h: commands of defer.lua, and their replies, which are untrusted
 * input: one of another form counts as none.
 */
#include "cluster/quota/defer_store.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cluster/quota/cluster_store_redis.h"
#include "lib/array.h"
#include "lua/charge.h"
#include "lua/defer.h"

const char *const defer_status_names[DEFER_STATUS_COUNT] = {
	[DEFER_FAILED] = "failed",	 [DEFER_OK] = "ok",	[DEFER_WAITING] = "waiting",
	[DEFER_RELEASED] = "released",	 [DEFER_DONE] = "done", [DEFER_DEAD] = "dead",
	[DEFER_CANCELLED] = "cancelled", [DEFER_FULL] = "full", [DEFER_NONE] = "none",
};

/* ------------------------------------------------------------------ the script */

/* charge.lua as a function. Its time is as_of, where that is set. */
static const char before[] =
	"local as_of\n"
	"local real = redis\n"
	"local function charge(KEYS, ARGV)\n"
	"local redis = real\n"
	"if as_of then\n"
	"	redis = { error_reply = real.error_reply, call = function(command, ...)\n"
	"		if command ~= 'TIME' then return real.call(command, ...) end\n"
	"		return { math.floor(as_of / 1000000), as_of % 1000000 }\n"
	"	end }\n"
	"end\n";

static struct redis_script script;
static bool script_made;

static void make_script(void)
{
	char *text = malloc(sizeof(before) + sizeof(charge_lua) + sizeof(defer_lua) + 8);

	if (!text)
		return;
	sprintf(text, "%s%s\nend\n%s", before, charge_lua, defer_lua);
	redis_script_init(&script, text);
	script_made = true;
}

const struct redis_script *defer_script(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_script);
	return script_made ? &script : NULL;
}

/* ------------------------------------------------------------------ replies */

/* What a reply with this status has to have. */
static bool has_numbers(enum defer_status status, const redisReply *reply)
{
	size_t count = reply->elements - 1;

	if (status == DEFER_OK)
		return count == DEFER_NUMBER_COUNT;
	return status != DEFER_WAITING ||
	       (count == 1 && reply->element[1]->type == REDIS_REPLY_INTEGER &&
		reply->element[1]->integer > 0);
}

/* Whether the number may be one that a poll leaves out. */
static bool may_lack(enum defer_status status, size_t number)
{
	return status == DEFER_OK && (number == DEFER_NEXT_US || number == DEFER_AOF);
}

static void read_reply(struct defer_call *call, const redisReply *reply)
{
	enum defer_status status = DEFER_OK;
	const redisReply *name;

	call->status = DEFER_FAILED;
	for (u32 i = 0; i < DEFER_NUMBER_COUNT; i++)
		call->number[i] = 0;
	if (reply->type != REDIS_REPLY_ARRAY || !reply->elements ||
	    reply->elements > 1 + DEFER_NUMBER_COUNT)
		return;
	name = reply->element[0];
	while (status < DEFER_STATUS_COUNT &&
	       (name->type != REDIS_REPLY_STRING || strcmp(name->str, defer_status_names[status])))
		status++;
	if (status == DEFER_STATUS_COUNT || !has_numbers(status, reply))
		return;
	for (size_t i = 1; i < reply->elements; i++) {
		const redisReply *number = reply->element[i];

		if (number->type != REDIS_REPLY_INTEGER ||
		    number->integer < (may_lack(status, i - 1) ? -1 : 0))
			return;
		call->number[i - 1] = (u64)number->integer;
	}
	call->status = status;
}

static void on_done(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct defer_call *call = arg;

	call->status = DEFER_FAILED;
	call->late = outcome == REPLY_LATE;
	if (outcome == REPLY_OK)
		read_reply(call, reply);
	call->done(call);
	if (outcome != REPLY_LATE)
		call->ended(call);
}

static void on_late(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct defer_call *call = arg;

	if (outcome == REPLY_OK)
		read_reply(call, reply);
	call->ended(call);
}

/* ------------------------------------------------------------------ commands */

#define BASE_MAX 1024
#define DIGITS 24

bool defer_store_can(const struct cluster_store *store)
{
	return store && cluster_store_redis_single(store);
}

/* `argv` has room for the three before the others: "0", the verb, the keys' prefix. */
static int send_verb(struct cluster_store *store, const struct defer_queue *queue, const char *verb,
		     const char **argv, size_t *len, int argc, u64 deadline_ns,
		     struct defer_call *call)
{
	struct redis_handler handler = { .done = on_done, .late = on_late, .arg = call };
	struct redis_command command = {
		.script = defer_script(),
		.argv = argv,
		.len = len,
		.argc = argc,
		.deadline_ns = deadline_ns,
		.durable = true,
	};
	char base[BASE_MAX];

	if (!defer_store_can(store))
		return -EOPNOTSUPP;
	if (!command.script)
		return -ENOMEM;
	if (snprintf(base, sizeof(base), "%sdefer:{%s}:", cluster_store_redis_prefix(store),
		     queue->name) >= (int)sizeof(base))
		return -E2BIG;
	argv[0] = "0";
	argv[1] = verb;
	argv[2] = base;
	for (int i = 0; i < argc; i++)
		if (i < 3 || !len[i])
			len[i] = strlen(argv[i]);
	call->late = false;
	return redis_send(cluster_store_redis_client(store), &command, handler);
}

static int make_ticket(u64 rule_id, char *ticket)
{
	u64 random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(ticket, DEFER_TICKET_LEN + 1, "%016llx%016llx%016llx", rule_id, random[0],
		 random[1]);
	return 0;
}

int defer_store_add(struct cluster_store *store, const struct defer_queue *queue, u64 rule_id,
		    const struct cluster_store_request *request, const char *reference,
		    size_t reference_len, u64 deadline_ns, struct defer_call *call)
{
	static _Thread_local const char *argv[REDIS_ARGS_MAX];
	static _Thread_local size_t len[REDIS_ARGS_MAX];
	char max[DIGITS], ttl[DIGITS], bucket[512];
	struct cluster_store_args args;
	int r;

	if (!defer_store_can(store))
		return -EOPNOTSUPP;
	r = cluster_store_redis_args(store, request, &args);
	if (!r)
		r = make_ticket(rule_id, call->ticket);
	if (r < 0)
		return r;
	if (args.argc > REDIS_ARGS_MAX - 16 || args.len[1] >= sizeof(bucket))
		return -E2BIG;
	memcpy(bucket, args.argv[1], args.len[1]);
	bucket[args.len[1]] = '\0';
	snprintf(max, sizeof(max), "%llu", queue->max);
	snprintf(ttl, sizeof(ttl), "%llu", queue->ttl_us);
	memset(len, 0, 8 * sizeof(len[0]));
	argv[3] = bucket;
	argv[4] = call->ticket;
	argv[5] = reference;
	len[5] = reference_len;
	argv[6] = max;
	argv[7] = ttl;
	memcpy(&argv[8], args.argv, args.argc * sizeof(argv[0]));
	memcpy(&len[8], args.len, args.argc * sizeof(len[0]));
	return send_verb(store, queue, "add", argv, len, 8 + args.argc, deadline_ns, call);
}

int defer_store_poll(struct cluster_store *store, const struct defer_queue *queue, bool ask_aof,
		     struct defer_call *call)
{
	char max[DIGITS], ttl[DIGITS], deliveries[DIGITS], retry[DIGITS];
	const char *argv[] = { NULL, NULL, NULL, max, ttl, deliveries, retry, ask_aof ? "1" : "0" };
	size_t len[ARRAY_SIZE(argv)] = { 0 };

	snprintf(max, sizeof(max), "%llu", queue->max);
	snprintf(ttl, sizeof(ttl), "%llu", queue->ttl_us);
	snprintf(deliveries, sizeof(deliveries), "%llu", queue->deliveries);
	snprintf(retry, sizeof(retry), "%llu", queue->retry_us);
	return send_verb(store, queue, "poll", argv, len, ARRAY_SIZE(argv), 0, call);
}

static int send_ticket(struct cluster_store *store, const struct defer_queue *queue,
		       const char *verb, u64 deadline_ns, struct defer_call *call)
{
	const char *argv[] = { NULL, NULL, NULL, call->ticket };
	size_t len[ARRAY_SIZE(argv)] = { 0 };

	return send_verb(store, queue, verb, argv, len, ARRAY_SIZE(argv), deadline_ns, call);
}

int defer_store_look(struct cluster_store *store, const struct defer_queue *queue, u64 deadline_ns,
		     struct defer_call *call)
{
	return send_ticket(store, queue, "look", deadline_ns, call);
}

int defer_store_cancel(struct cluster_store *store, const struct defer_queue *queue,
		       u64 deadline_ns, struct defer_call *call)
{
	return send_ticket(store, queue, "cancel", deadline_ns, call);
}

bool defer_ticket_rule(const char *text, size_t len, u64 *ret_rule_id)
{
	char id[17] = { 0 };

	if (len != DEFER_TICKET_LEN)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!text[i] || !strchr("0123456789abcdef", text[i]))
			return false;
	memcpy(id, text, 16);
	*ret_rule_id = strtoull(id, NULL, 16);
	return true;
}
