// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a configuration: refused with words and, where it has one, a place; or read,
 * and then what is written of it reads back as the same.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/addr.c"
#include "user/lib/err.c"
#include "user/lib/units.c"
#include "user/policy/check.c"
#include "user/policy/load.c"
#include "user/policy/names.c"
#include "user/policy/overlap.c"
#include "user/policy/params.c"
#include "user/policy/policy.c"
#include "user/policy/read.c"
#include "user/policy/read_limit.c"
#include "user/policy/read_list.c"
#include "user/policy/read_match.c"
#include "user/policy/read_rates.c"
#include "user/policy/read_throttle.c"
#include "user/policy/sets.c"
#include "user/policy/text.c"
#include "user/policy/tree.c"
#include "user/policy/write.c"
#include "user/policy/write_limit.c"

static char *written(const struct policy *policy, size_t *ret_size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_size);

	assert(out && !policy_write(policy, out) && !fclose(out));
	return text;
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
