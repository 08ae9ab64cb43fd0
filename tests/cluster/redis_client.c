// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_client.c - the daemon's Redis client, for scenarios.
 *
 *     redis_client CONFIG            the section `cluster:` of a configuration; lines from stdin:
 *
 *     ask N MS WORD...            N commands at once, each with a deadline of MS ms; after all
 *                                 replies: "ok N error N late N down N: TEXT" (of the last)
 *     durable N MS WORD...        the same, as durable ones
 *     asleep N MS WORD...         the same; this process stands still past the deadline
 *     script N MS TEXT            the same, of a script without keys
 *     state                       each server: "NAME up|away|idle ERROR_CLASS;"
 */
#include <event2/buffer.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/redis/redis.h"
#include "config/policy.h"

#define WORDS_MAX 16

static struct {
	struct event_base *base;
	struct redis *redis;
	u64 count[4]; /* by outcome */
	u64 left;
	struct redis_command command;
	char text[128];
	bool asleep;
} lab;

static void on_done(void *arg, enum redis_outcome outcome, const redisReply *reply);

static void send_one(void)
{
	const struct redis_handler handler = { .done = on_done };

	lab.left++;
	if (redis_send(lab.redis, &lab.command, handler) < 0)
		on_done(NULL, REPLY_DOWN, NULL);
}

static void on_done(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	lab.count[outcome]++;
	if (reply && reply->str)
		snprintf(lab.text, sizeof(lab.text), "%s", reply->str);
	else if (reply)
		snprintf(lab.text, sizeof(lab.text), "%lld", reply->integer);
	lab.left--;
	if (!lab.left)
		event_base_loopbreak(lab.base);
}

static void send_many(u64 count, u64 deadline_ms, int argc, char **argv)
{
	lab.command.argc = argc;
	lab.command.argv = (const char *const *)argv;
	lab.command.deadline_ns = deadline_ms * 1000000;
	memset(lab.count, 0, sizeof(lab.count));
	*lab.text = 0;
	for (u64 i = 0; i < count; i++)
		send_one();
	if (lab.asleep) {
		event_base_loop(lab.base, EVLOOP_NONBLOCK);
		usleep((useconds_t)deadline_ms * 1500);
	}
	if (lab.left)
		event_base_dispatch(lab.base);
	printf("ok %llu error %llu late %llu down %llu: %s\n", lab.count[REPLY_OK],
	       lab.count[REPLY_ERROR], lab.count[REPLY_LATE], lab.count[REPLY_DOWN], lab.text);
}

static void show_state(void)
{
	static struct redis_server_state state[64];
	u32 count = redis_server_states(lab.redis, state, 64);

	for (u32 i = 0; i < count; i++)
		printf("%s %s %s%s", state[i].name,
		       state[i].up	       ? "up"
		       : state[i].breaker_open ? "away"
					       : "idle",
		       *state[i].error ? state[i].error : "well", i + 1 < count ? "; " : "");
	printf("\n");
}

static void do_line(char *line)
{
	struct redis_script script;
	char *word[WORDS_MAX], *rest = line, *save;
	int count = 0;

	if (!strncmp(line, "script ", 7)) {
		u64 times = strtoull(line + 7, &rest, 10), ms = strtoull(rest, &rest, 10);

		redis_script_init(&script, strdup(rest + 1));
		lab.command.script = &script;
		send_many(times, ms, 1, (char *[]){ "0" });
		lab.command.script = NULL;
		return;
	}
	for (char *w = strtok_r(line, " \n", &save); w && count < WORDS_MAX;
	     w = strtok_r(NULL, " \n", &save))
		word[count++] = w;
	lab.command.durable = count && !strcmp(word[0], "durable");
	lab.asleep = count && !strcmp(word[0], "asleep");
	if (count > 3 && (lab.command.durable || lab.asleep || !strcmp(word[0], "ask"))) {
		send_many(strtoull(word[1], NULL, 10), strtoull(word[2], NULL, 10), count - 3,
			  word + 3);
	} else if (count == 1 && !strcmp(word[0], "state")) {
		show_state();
	} else {
		printf("what?\n");
	}
}

static void on_line(evutil_socket_t fd, short what, void *arg)
{
	event_base_loopbreak(lab.base);
}

/* The client runs while there is no line to read. */
int main(int argc, char **argv)
{
	struct policy *policy = NULL;
	struct sl_err err = { 0 };
	struct event *event;
	char line[4096];

	setvbuf(stdout, NULL, _IOLBF, 0);
	/* Unbuffered: unread input must show on the descriptor. */
	setvbuf(stdin, NULL, _IONBF, 0);
	lab.base = event_base_new();
	if (argc != 2 || policy_load(argv[1], &policy, &err) < 0 || !policy->cluster ||
	    redis_new(lab.base, &policy->cluster->redis, &lab.redis, &err) < 0) {
		fprintf(stderr, "redis_client: %s\n", err.message);
		return 1;
	}
	redis_name(lab.redis, policy->cluster->node);
	event = event_new(lab.base, STDIN_FILENO, EV_READ, on_line, NULL);
	for (;;) {
		event_add(event, NULL);
		event_base_dispatch(lab.base);
		event_del(event);
		if (!fgets(line, sizeof(line), stdin))
			break;
		do_line(line);
	}
	event_free(event);
	redis_free(lab.redis);
	policy_free(policy);
	event_base_free(lab.base);
	return 0;
}
