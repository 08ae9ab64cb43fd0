// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The examples load, the files and those in the text of docs/configuration.md. */
#include "lib/test.h"
#include "lib/policy_text.h"

TEST(test_examples)
{
	static const struct {
		const char *path;
		size_t limits, blocks;
	} examples[] = {
		{ "docs/examples/quickstart.yaml", 5, 0 },
		{ "docs/examples/first-run.yaml", 3, 0 },
		{ "docs/examples/dns-server.yaml", 4, 0 },
		{ "docs/examples/web-server.yaml", 5, 2 },
		{ "docs/examples/hosting.yaml", 3, 0 },
		{ "docs/examples/cluster.yaml", 2, 0 },
	};
	size_t i;

	for (i = 0; i < COUNT(examples); i++) {
		struct policy *policy;
		struct sl_err err;

		if (policy_load(examples[i].path, &policy, &err))
			fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.message);
		assert_int_equal(policy->limit_count, examples[i].limits);
		assert_int_equal(policy->list[LIST_BLOCK].count, examples[i].blocks);
		assert_round_trip(policy);
	}
}

/* Loads a part of a configuration as if it stood beside the examples: there is a bad.txt. */
static void load_part(const char *yaml)
{
	static const char sets[] = "sets: {bad: [192.0.2.66], partners: [192.0.2.0/24]}\n";
	char *whole = calloc(1, sizeof(sets) + strlen(yaml));

	sprintf(whole, "%s%s", strncmp(yaml, "sets:", 5) ? sets : "", yaml);
	assert_round_trip(parse_at("docs/examples/x.yaml", whole));
	free(whole);
}

/* Every example of configuration.md: fenced ones, and indented ones that begin with a key. */
TEST(test_configuration_md)
{
	FILE *in = fopen("docs/configuration.md", "r"), *out = NULL;
	bool fenced = false, blank = true;
	size_t size, loaded = 0;
	char line[1024], *yaml = NULL;

	assert_non_null(in);
	while (fgets(line, sizeof(line), in)) {
		bool fence = !strncmp(line, "```", 3), indented = !strncmp(line, "    ", 4);
		bool key = strspn(line + 4, "abcdefghijklmnopqrstuvwxyz_") ==
				   strcspn(line + 4, ":\n") &&
			   strchr(line, ':');

		if (out && (fenced ? fence : !indented)) {
			fclose(out);
			load_part(yaml);
			free(yaml);
			out = NULL;
			loaded++;
		} else if (out) {
			fputs(line + (fenced ? 0 : 4), out);
		} else if (!strcmp(line, "```yaml\n") || (blank && indented && key)) {
			out = open_memstream(&yaml, &size);
			fenced = fence;
			if (indented)
				fputs(line + 4, out);
		}
		blank = line[0] == '\n';
	}
	fclose(in);
	assert_null(out);
	assert_in_range(loaded, 8, 40);
}

TEST_MAIN
