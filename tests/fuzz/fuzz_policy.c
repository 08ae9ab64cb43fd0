// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a configuration: refused with words and, where it has one, a place; or read,
 * and then what is written of it reads back as the same, and its limits have rows that name
 * each other and nothing else, or words that say why not.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "packet/compile/meters.h"
#include "conf/config_text.h"

static char *written(const struct policy *policy, size_t *ret_size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_size);

	assert(out && !policy_write(policy, out) && !fclose(out));
	return text;
}

/* Rows of all limits; those that another one names are its own, and behind all heads. */
static void make_rows(const struct policy *policy)
{
	static struct sl_limit meter[SL_METERS_MAX];
	static struct sl_ban ban[SL_LIMITS_MAX];
	static char name[SL_METERS_MAX][SL_NAME_MAX];
	struct meters meters = {
		.meter = meter,
		.ban = ban,
		.name = name,
		.next = SL_METER_FURTHER,
		.cpus = 4,
	};

	for (size_t i = 0; i < policy->limit_count; i++) {
		u32 from = meters.next, count = 0;

		meters.reason[0] = 0;
		if (meters_of_limit(&meters, &policy->limit[i], i)) {
			assert(meters.reason[0]);
			break;
		}
		for (u32 at = i; at != SL_NO_METER; at = meter[at].next) {
			assert(at == i || (at >= from && at < meters.next));
			assert(meter[at].head == i && meter[at].params.capacity);
			assert(meter[at].soft == SL_NO_METER || meter[at].soft >= from);
			assert(meter[at].full == SL_NO_METER || meter[at].full >= from);
			count++;
		}
		assert(count >= policy->limit[i].terms.rates.count);
		assert(count <= RATES_MAX * 2 * PREFIX_HIERARCHY_MAX && strlen(name[i]));
	}
	override_meters_free(&meters.overrides);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy *first = NULL, *second = NULL;
	struct sl_err err = { .line = -1 };
	size_t first_size, second_size;
	char *first_text, *second_text;

	if (policy_parse("fuzz", (const char *)data, size, &first, &err)) {
		assert(!first && err.line >= 0 && err.message[0]);
		assert(config_text_printable(err.message, strlen(err.message)));
		return 0;
	}
	make_rows(first);
	first_text = written(first, &first_size);
	if (policy_parse("again", first_text, first_size, &second, &err)) {
		fprintf(stderr, "%d:%d: %s\n%s", err.line, err.column, err.message, first_text);
		abort();
	}
	second_text = written(second, &second_size);
	assert(first_size == second_size && !memcmp(first_text, second_text, first_size));
	policy_free(first);
	policy_free(second);
	free(first_text);
	free(second_text);
	return 0;
}
