// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * decide.c - the cost of a decision, and the memory of a user: a million users of each algorithm.
 *
 *     decide [--markdown] [--only ALGORITHM] [--times COUNT] [USERS]
 *
 * Bytes are of the table (its pages, whole) and, for logs, of the chunks in use, by users that
 * are live at the end. Nanoseconds are of one decide() with one descriptor and one limit: hot, a
 * thousand users; cold, all of them in random order; and of a refusal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "request/engine/decide.h"

static struct counters *counters;
static struct ruleset *rules;
static struct sl_now now;
static bool markdown;
static u64 times = 500000;

static const struct kind {
	const char *name, *text;
} kinds[] = {
	{ "fixed-window", "limits: ['100 requests/h']" },
	{ "first-request", "limits: ['100 requests/h'], window: first-request" },
	{ "token-bucket", "limits: ['100 requests/h'], algorithm: token-bucket, burst: 100" },
	{ "leaky-bucket", "limits: ['1 requests/h'], algorithm: leaky-bucket" },
	{ "sliding-window", "limits: ['100 requests/h'], algorithm: sliding-window" },
	{ "sliding-log, 1 each", "limits: ['100 requests/h'], algorithm: sliding-log" },
	{ "sliding-log, 10 each", "limits: ['100 requests/h'], algorithm: sliding-log" },
};

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static enum response_code request_submit(u64 user)
{
	struct request_descriptor descriptor;
	struct request request = {
		.domain = { "api", 3 },
		.descriptor = &descriptor,
		.count = 1,
		.rights = MAY_CHECK,
	};
	struct response response;
	char text[24];

	descriptor.count = 1;
	descriptor.hits = 1;
	descriptor.refund = false;
	descriptor.beyond = false;
	descriptor.limit_unit = REQUEST_UNIT_UNKNOWN;
	descriptor.entry[0].key = (struct bytes){ "user", 4 };
	descriptor.entry[0].value = (struct bytes){
		text,
		(size_t)snprintf(text, sizeof(text), "user-%llu", user),
	};
	decide(&(struct ledger){ .counters = counters }, rules, &request, now, &response, NULL);
	return response.code;
}

/* Printing a name is not part of the measurement. */
static double name_ns(u64 count)
{
	double begin = seconds();
	char text[32];

	for (u64 i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "user-%llu", i);
		__asm__ volatile("" : : "r"(text) : "memory");
	}
	return (seconds() - begin) * 1e9 / count;
}

static u64 shuffled(u64 i, u64 users)
{
	return (i * 2654435761ULL + 12345) % users;
}

static double time_ns(u64 count, u64 users, double name)
{
	double begin = seconds();

	for (u64 i = 0; i < count; i++)
		request_submit(shuffled(i, users));
	return (seconds() - begin) * 1e9 / count - name;
}

static void run(const struct kind *kind, u64 users, double name)
{
	u64 each = strstr(kind->name, "10 each") ? 10 : 1, live = 0;
	double cold, hot, refused;
	struct counters_stats stats;
	char text[256];

	snprintf(text, sizeof(text), "domain: api\ndescriptors:\n- {key: user, %s}\n", kind->text);
	if (ruleset_parse("bench", text, strlen(text), &rules, NULL) ||
	    counters_open(NULL, users, users * 128, &counters, NULL))
		exit(1);
	now = counters_now(counters);
	for (u64 i = 0; i < users * each; i++)
		request_submit(i % users);
	counters_sweep_all(counters, now);
	counters_stats(counters, &stats);
	for (u32 i = 0; i < SL_ALGO_COUNT; i++)
		live += stats.entries[i];
	cold = time_ns(times, users, name);
	hot = time_ns(times, 1000, name);
	for (u32 i = 0; i < 200; i++)
		request_submit(7);
	refused = time_ns(times, 1, name);
	printf(markdown ? "| %s | %.1f | %.2f %% | %.0f | %.0f | %.0f |\n"
			: "%-22s %9.1f %9.2f%% %9.0f %9.0f %9.0f\n",
	       kind->name, (double)(stats.bytes - stats.log_bytes + stats.log_used) / live,
	       100.0 * live / users, hot, cold, refused);
	counters_close(counters);
	ruleset_free(rules);
}

int main(int argc, char **argv)
{
	const char *only = NULL;
	u64 users = 1000000;
	double name;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--markdown"))
			markdown = true;
		else if (!strcmp(argv[i], "--only") && i + 1 < argc)
			only = argv[++i];
		else if (!strcmp(argv[i], "--times") && i + 1 < argc)
			times = strtoull(argv[++i], NULL, 0);
		else
			users = strtoull(argv[i], NULL, 0);
	}
	name = name_ns(2 * times);
	if (markdown)
		printf("| %llu users | bytes each | held | ns hot | cold | refused |\n"
		       "|---|---:|---:|---:|---:|---:|\n",
		       users);
	else
		printf("%-10llu users   bytes/user       held    hot ns   cold ns   refused\n",
		       users);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!only || !strcmp(only, kinds[i].name))
			run(&kinds[i], users, name);
	return 0;
}
