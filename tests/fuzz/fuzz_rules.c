// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a file of rules: refused with words and, where it has one, a place; or read, and
 * then calls are decided under them, twice the same way where nothing is charged.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "request/engine/decide.h"

static struct counters *counters;

static void request_submit(const struct ruleset *rules, const char *domain, const char *key,
			   const char *value, bool peek, struct response *ret)
{
	struct request_descriptor descriptor = {
		.entry = { { { key, strlen(key) }, { value, strlen(value) } },
			   { { "path", 4 }, { "/x", 2 } } },
		.hits = 1,
	};
	struct request request = {
		.domain = { domain, strlen(domain) },
		.descriptor = &descriptor,
		.count = 1,
		.peek = peek,
		.rights = MAY_CHECK,
	};
	struct sl_now now = { .mono_ns = 1000 * SL_NS_PER_SEC,
			      .utc_ns = 1767225600 * SL_NS_PER_SEC };

	for (descriptor.count = 1; descriptor.count <= 2; descriptor.count++) {
		decide(&(struct ledger){ .counters = counters }, rules, &request, now, ret, NULL);
		assert(ret->count == 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const values[] = { "bob", "192.0.2.7", "2001:db8::1", "" };
	struct sl_err err = { .line = -1 };
	struct ruleset *rules;
	struct response first, again;

	if (!counters)
		assert(!counters_open(NULL, 1000, 1 << 20, &counters, &err));
	if (ruleset_parse("fuzz", (const char *)data, size, &rules, &err)) {
		assert(err.line >= 0 && err.message[0]);
		return 0;
	}
	for (u32 i = 0; i < rules->rule_count; i++) {
		const struct rule *rule = rules->rule[i];
		char key[REQUEST_KEY_MAX + 1];

		snprintf(key, sizeof(key), "%.*s", (int)strcspn(rule->path, "=/"), rule->path);
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			request_submit(rules, rule->domain, key, values[v], false, &first);
			request_submit(rules, rule->domain, key, values[v], true, &first);
			request_submit(rules, rule->domain, key, values[v], true, &again);
			assert(first.code == again.code);
		}
	}
	ruleset_free(rules);
	return 0;
}
