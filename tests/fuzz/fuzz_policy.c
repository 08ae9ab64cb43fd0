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

#include "packet/compile/rows.h"
#include "conf/text.h"

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
	static struct sl_limit row[SL_ROWS_MAX];
	static struct sl_ban ban[SL_LIMITS_MAX];
	static char name[SL_ROWS_MAX][SL_NAME_MAX];
	struct rows rows = {
		.row = row, .ban = ban, .name = name, .next = SL_ROW_FURTHER, .cpus = 4,
	};

	for (size_t i = 0; i < policy->limit_count; i++) {
		u32 from = rows.next, count = 0;

		rows.reason[0] = 0;
		if (rows_of_limit(&rows, &policy->limit[i], i)) {
			assert(rows.reason[0]);
			break;
		}
		for (u32 at = i; at != SL_NO_ROW; at = row[at].next) {
			assert(at == i || (at >= from && at < rows.next));
			assert(row[at].head == i && row[at].params.capacity);
			assert(row[at].soft == SL_NO_ROW || row[at].soft >= from);
			assert(row[at].full == SL_NO_ROW || row[at].full >= from);
			count++;
		}
		assert(count >= policy->limit[i].rates.count);
		assert(count <= RATES_MAX * 2 * LADDER_MAX && strlen(name[i]));
	}
	override_rows_free(&rows.overrides);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy *first = NULL, *second = NULL;
	struct sl_err err = { .line = -1 };
	size_t first_size, second_size;
	char *first_text, *second_text;

	if (policy_parse("fuzz", (const char *)data, size, &first, &err)) {
		assert(!first && err.line >= 0 && err.message[0]);
		assert(text_printable(err.message, strlen(err.message)));
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
