// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The examples load, the files and those in the text of docs/configuration.md. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy_text.h"

static void test_examples(void **state)
{
	static const struct {
		const char *path;
		size_t limits, blocks;
	} examples[] = {
		{ "docs/examples/quickstart.yaml", 5, 0 },
		{ "docs/examples/dns-server.yaml", 4, 0 },
		{ "docs/examples/web-server.yaml", 5, 2 },
		{ "docs/examples/hosting.yaml", 3, 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		struct policy *policy;
		struct sl_err err;

		if (policy_load(examples[i].path, &policy, &err))
			fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.message);
		assert_int_equal(policy->limit_count, examples[i].limits);
		assert_int_equal(policy->list[LIST_BLOCK].count, examples[i].blocks);
		assert_round_trip(policy);
	}
}

/* Whether a block of a document is a part of a configuration: it begins with one of its keys. */
static bool begins_with(const char *text, const char *const *keys)
{
	size_t len = strcspn(text, ":\n");

	for (; *keys; keys++)
		if (text[len] == ':' && strlen(*keys) == len && !strncmp(text, *keys, len))
			return true;
	return false;
}

/* Puts a block, indented by 4, behind `indent`; returns what follows it. */
static const char *copy_block(const char *at, const char *indent, FILE *out)
{
	size_t len;

	for (; !strncmp(at, "    ", 4); at += len + 1) {
		len = strcspn(at, "\n");
		fprintf(out, "%s%.*s\n", indent, (int)len - 4, at + 4);
	}
	return at;
}

/* Every example of configuration.md loads: whole parts, and keys of a limit. */
static void test_documents(void **state)
{
	static const char *const tops[] = { "sets", "block", "limits", "interfaces", NULL };
	static const char *const keys[] = { "rate", "match", "throttle", "ban", "prefix", NULL };
	char *text = calloc(1, 1 << 17), *yaml;
	const char *at = text, *next;
	size_t size, loaded = 0;
	FILE *in = fopen("docs/configuration.md", "r"), *out;

	assert_non_null(in);
	assert_true(fread(text, 1, (1 << 17) - 1, in) > 1000);
	fclose(in);
	for (; (next = strstr(at, "\n\n    ")); free(yaml)) {
		bool top = begins_with(next + 6, tops), key = begins_with(next + 6, keys);

		out = open_memstream(&yaml, &size);
		if (strncmp(next + 6, "sets", 4))
			fputs("sets: {bad: [192.0.2.66], partners: [192.0.2.0/24]}\n", out);
		if (key)
			fputs("limits:\n  - name: x\n", out);
		at = copy_block(next + 2, key ? "    " : "", out) - 1;
		fclose(out);
		if (key && !strstr(yaml, "\n    rate:"))
			fail_msg("say the rate, too:\n%s", yaml);
		if (!top && !key)
			continue;
		/* there, so that its bad.txt is found */
		assert_round_trip(parse_at("docs/examples/x.yaml", yaml));
		loaded++;
	}
	assert_in_range(loaded, 8, 40);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_documents),
	};

	return cmocka_run_group_tests_name("policy_docs", tests, NULL, NULL);
}
