// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lines of any bytes as KEY=VALUE of `limit set`: all are made, and the policy reads back as it
 * is written; or none, and it is as it was.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/policy.h"
#include "conf/config_text.h"

#define LINES_MAX 16

static const char base[] =
	"sets: {a: [192.0.2.0/24]}\n"
	"limits:\n"
	"  - {name: l, rate: [10 packets/s, 500 packets/h], match: {src: '@a', tcp_flags: ack},\n"
	"     prefix: {ipv4: [32, 24]}, throttle: {soft: 10%}, ban: {after: 5 drops/s, for: 5m}}\n";

static char *written(const struct policy *policy, size_t *ret_size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_size);

	assert(out && !policy_write(policy, out) && !fclose(out));
	return text;
}

static bool same(const char *a, size_t a_size, const char *b, size_t b_size)
{
	return a_size == b_size && !memcmp(a, b, a_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy *policy = NULL, *back = NULL;
	char *pairs[LINES_MAX], *text = malloc(size + 1), *line = text, *before, *after, *again;
	size_t before_size, after_size, again_size, count = 0;
	struct sl_err err = { .line = -1 };

	memcpy(text, data, size);
	text[size] = 0;
	while (line && count < LINES_MAX)
		pairs[count++] = strsep(&line, "\n");
	assert(!policy_parse("base", base, sizeof(base) - 1, &policy, &err));
	before = written(policy, &before_size);
	if (policy_limit_set(policy, "l", pairs, count, &err)) {
		assert(err.message[0] && !err.line);
		assert(config_text_printable(err.message, strlen(err.message)));
		after = written(policy, &after_size);
		assert(same(before, before_size, after, after_size));
	} else {
		after = written(policy, &after_size);
		if (policy_parse("again", after, after_size, &back, &err)) {
			fprintf(stderr, "%d:%d: %s\n%s", err.line, err.column, err.message, after);
			abort();
		}
		again = written(back, &again_size);
		assert(same(after, after_size, again, again_size));
		free(again);
		policy_free(back);
	}
	policy_free(policy);
	free(before);
	free(after);
	free(text);
	return 0;
}
