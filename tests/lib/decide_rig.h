/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* decide_rig.h - rules as text, a store in memory, time as a variable: requests in one line. */
#ifndef SLUICE_TESTS_DECIDE_RIG_H
#define SLUICE_TESTS_DECIDE_RIG_H
#include "lib/test.h"
#include "request/engine/decide.h"

#define SEC SL_NS_PER_SEC
#define MS (SEC / 1000)
/* A round minute, hour and day: 2026-01-01. */
#define RIG_UTC (1767225600ULL * SEC)

static struct counters *rig_store;
static struct ruleset *rig_rules;
static struct sl_now rig_now;
static struct response rig_answer;
static struct decide_delay rig_wait;
static const char *rig_domain = "api"; /* of the requests */

/* A text that begins with a descriptor is one of the domain "api". */
static void rig_load(const char *text)
{
	struct ruleset *rules;
	struct sl_err err = { 0 };
	char yaml[4096];

	assert_in_range(snprintf(yaml, sizeof(yaml), "%s%s",
				 *text == '-' ? "domain: api\ndescriptors:\n" : "", text),
			1, sizeof(yaml) - 1);
	if (ruleset_parse("rules.yaml", yaml, strlen(yaml), &rules, &err))
		fail_msg("%d:%d: %s", err.line, err.column, err.message);
	ruleset_free(rig_rules);
	rig_rules = rules;
}

static __attribute__((unused)) void rig_open(const char *text, u64 users)
{
	struct sl_err err = { 0 };

	if (counters_open(NULL, users, 1 << 20, &rig_store, &err))
		fail_msg("%s", err.message);
	rig_now = (struct sl_now){ .mono_ns = 1000 * SEC, .utc_ns = RIG_UTC };
	rig_load(text);
}

static __attribute__((unused)) void rig_end(void)
{
	counters_close(rig_store);
	ruleset_free(rig_rules);
	rig_store = NULL;
	rig_rules = NULL;
}

/* An empty store, with these rules. */
static __attribute__((unused)) void rig_start(const char *text)
{
	rig_end();
	rig_open(text, 1000);
}

/* For cmocka: closes everything. */
static __attribute__((unused)) int rig_teardown(void **state)
{
	rig_end();
	return 0;
}

static __attribute__((unused)) void rig_pass(u64 ns)
{
	rig_now.mono_ns += ns;
	rig_now.utc_ns += ns;
}

/* "user=bob,path=/x;user=al": descriptors and their entries. The text must live on. */
static struct request rig_request(struct request_descriptor *descriptor, const char *text)
{
	struct request request = {
		.domain = { rig_domain, strlen(rig_domain) },
		.descriptor = descriptor,
		.rights = MAY_CHECK,
	};

	while (*text) {
		struct request_descriptor *d = &descriptor[request.count++];

		memset(d, 0, sizeof(*d));
		d->hits = 1;
		for (;;) {
			size_t key = strcspn(text, "="), value;
			struct request_entry *entry = &d->entry[d->count++];

			entry->key = (struct bytes){ text, key };
			text += key + (text[key] == '=');
			value = strcspn(text, ",;");
			entry->value = (struct bytes){ text, value };
			text += value;
			if (*text != ',')
				break;
			text++;
		}
		text += *text == ';';
	}
	return request;
}

static enum response_code rig_decide(const struct request *request)
{
	decide(&(struct ledger){ .counters = rig_store }, rig_rules, request, rig_now, &rig_answer,
	       &rig_wait);
	return rig_answer.code;
}

static bool allowed_hits(const char *text, u64 hits)
{
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct request request = rig_request(descriptor, text);

	for (u32 i = 0; i < request.count; i++)
		descriptor[i].hits = hits;
	return rig_decide(&request) == RESPONSE_OK;
}

/* The request's own limit of its first descriptor. */
static __attribute__((unused)) bool allowed_own_limit(const char *text, enum request_api api,
						      u64 requests, enum request_unit unit)
{
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct request request = rig_request(descriptor, text);

	request.api = api;
	descriptor[0].limit_requests = requests;
	descriptor[0].limit_unit = unit;
	return rig_decide(&request) == RESPONSE_OK;
}

/* A peek; the hits are the first descriptor's. */
static __attribute__((unused)) bool peek_hits(const char *text, u64 hits)
{
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct request request = rig_request(descriptor, text);

	request.peek = true;
	descriptor[0].hits = hits;
	return rig_decide(&request) == RESPONSE_OK;
}

static __attribute__((unused)) bool allowed(const char *text)
{
	return allowed_hits(text, 1);
}

/* How many of `most` requests pass now. */
static __attribute__((unused)) u32 allowed_of(const char *text, u32 most)
{
	u32 passed = 0;

	for (u32 i = 0; i < most; i++)
		passed += allowed(text);
	return passed;
}

struct allowed_row {
	const char *text;
	u32 most, passes;
};

/* In their order: of `most` requests now so many pass. */
static __attribute__((unused)) void allowed_rows(const struct allowed_row *row, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		u32 passed = allowed_of(row[i].text, row[i].most);

		if (passed != row[i].passes)
			fail_msg("%s: of %u calls %u passed, wanted %u", row[i].text, row[i].most,
				 passed, row[i].passes);
	}
}

#define ALLOWED_ROWS(...)                                                                          \
	allowed_rows((const struct allowed_row[]){ __VA_ARGS__ },                                  \
		     sizeof((const struct allowed_row[]){ __VA_ARGS__ }) /                         \
			     sizeof(struct allowed_row))

static __attribute__((unused)) void report(const char *text, s64 hits, u64 ago_ns)
{
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	struct request request = rig_request(descriptor, text);

	for (u32 i = 0; i < request.count; i++) {
		descriptor[i].hits = hits < 0 ? -hits : hits;
		descriptor[i].refund = hits < 0;
	}
	request.report = true;
	request.at_utc_ns = ago_ns ? rig_now.utc_ns - ago_ns : 0;
	rig_decide(&request);
}

#endif
