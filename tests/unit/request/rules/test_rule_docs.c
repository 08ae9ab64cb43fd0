// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The rule files of the documentation load, and match as stated there. */
#include "lib/rule_text.h"

static struct ruleset *block(u32 number)
{
	FILE *in = fopen("docs/http-rules.md", "r"), *out = NULL;
	struct ruleset *set = NULL;
	char line[1024], *yaml = NULL;
	struct sl_err err;
	size_t size;

	assert_non_null(in);
	while (!set && fgets(line, sizeof(line), in)) {
		bool fence = !strncmp(line, "```", 3);

		if (!out && !strcmp(line, "```yaml\n") && !number--) {
			out = open_memstream(&yaml, &size);
		} else if (out && fence) {
			fclose(out);
			/* as if it stood beside plans.csv */
			if (ruleset_parse("docs/examples/rules-full/x.yaml", yaml, size, &set,
					  &err))
				fail_msg("%d:%d: %s\n%s", err.line, err.column, err.message, yaml);
			free(yaml);
		} else if (out) {
			fputs(line, out);
		}
	}
	fclose(in);
	return set;
}

TEST(test_all_load)
{
	struct ruleset *set;
	u32 count = 0;

	while ((set = block(count))) {
		assert_true(set->rule_count > 0);
		ruleset_free(set);
		count++;
	}
	assert_in_range(count, 7, 20);
}

TEST(test_which_rule)
{
	struct ruleset *set = block(1);

	assert_matches(set, "api", "plan=free,user=bob", "plan=free/user");
	assert_matches(set, "api", "plan=free", "plan=free");
	assert_matches(set, "api", "user=bob", NULL);
	assert_matches(set, "api", "path=/static/x.php", "path=/static/*");
	assert_matches(set, "api", "path=/x.php", "path=*.php");
	assert_matches(set, "api", "path=/x", "path");
	ruleset_free(set);
}

TEST(test_example_directory)
{
	struct ruleset *set;
	const struct rule *rule;
	struct sl_err err;

	if (ruleset_load("docs/examples/rules-full", NULL, &set, &err))
		fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.message);
	rule = ruleset_find(set, "api/user");
	assert_non_null(rule);
	assert_int_equal(rule->limit_count, 2);
	assert_string_equal(rule->limit[1].name, "hourly");
	assert_int_equal(rule->push.step_count, 3);
	assert_int_equal(override_values(rule), 6);
	assert_int_equal(ruleset_find(set, "api/user/path=/export*")->queue, 100);
	assert_int_equal(ruleset_find(set, "api/backend")->reserve_permille[PRIORITY_NORMAL], 300);
	assert_true(ruleset_find(set, "api/class=analytics")->unlimited);
	ruleset_free(set);
	if (ruleset_load("docs/examples/rules.d", NULL, &set, &err))
		fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.message);
	ruleset_free(set);
}

TEST_MAIN
