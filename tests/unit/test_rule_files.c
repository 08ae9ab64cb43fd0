// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A directory of rule files: which are read and in which order, what two of them may not both say,
 * and what of a rule stays over reloads: its number, its series.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/rule_text.h"

static char dir[] = "/tmp/sluice-rule-files-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *out = fopen(path_of(name), "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static int setup(void **state)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static struct ruleset *load(const struct ruleset *old)
{
	struct ruleset *set = NULL;
	struct sl_err err;

	if (ruleset_load(dir, old, &set, &err))
		fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.message);
	return set;
}

static void refused(int code, const char *file, int line, int column, const char *words)
{
	struct ruleset *set = NULL;
	struct sl_err err = { .message = "" };

	assert_int_equal(ruleset_load(dir, NULL, &set, &err), code);
	assert_null(set);
	if (!strstr(err.file, file) || err.line != line || err.column != column ||
	    !strstr(err.message, words))
		fail_msg("%s:%d:%d: %s, wanted %s:%d:%d: ...%s", err.file, err.line, err.column,
			 err.message, file, line, column, words);
}

#define ONE(domain, key) "domain: " domain "\ndescriptors: [{key: " key ", limits: 1 requests/s}]\n"

static void test_which_files(void **state)
{
	struct ruleset *set = load(NULL);

	assert_int_equal(set->rule_count, 0);	/* none is fine: they may come later */
	ruleset_free(set);
	assert_int_equal(mkdir(path_of("sub"), 0755), 0);
	assert_int_equal(mkdir(path_of("..2026"), 0755), 0);
	put("b.yaml", ONE("b", "x"));
	put("a.yml", ONE("a", "x"));
	put("sub/c.yaml", ONE("c", "x"));
	put("..2026/d.yaml", ONE("d", "x"));
	put(".e.yaml", ONE("e", "x"));
	put("f.yaml.bak", ONE("f", "x"));
	put("g.txt", "not: a rule");
	assert_int_equal(symlink("..2026/d.yaml", path_of("h.yaml")), 0);
	set = load(NULL);
	assert_int_equal(set->rule_count, 4);
	assert_string_equal(set->rule[0]->domain, "a");
	assert_string_equal(set->rule[1]->domain, "b");
	assert_string_equal(set->rule[2]->domain, "d");
	assert_string_equal(set->rule[3]->domain, "c");
	assert_int_equal(set->domain_count, 4);
	assert_non_null(strstr(set->rule[3]->file, "/sub/c.yaml"));
	ruleset_free(set);
}

static void test_refused(void **state)
{
	put("a.yaml", ONE("same", "x"));
	put("b.yaml", "# first\n" ONE("same", "y"));
	refused(-EINVAL, "/b.yaml", 2, 9, "\"same\" again, first in line 1 of ");
	unlink(path_of("b.yaml"));
	assert_int_equal(symlink("nowhere", path_of("z.yaml")), 0);
	refused(-ENOENT, "/z.yaml", 0, 0, "No such file");
	unlink(path_of("z.yaml"));
	put("z.yaml", "domain: z\ndescriptors:\n  - {key: x, overrides_file: none.csv, limits: 1 requests/s}\n");
	refused(-ENOENT, "/none.csv", 0, 0, "No such file");
	teardown(state);
	refused(-ENOENT, dir, 0, 0, "a directory of rule files");
	assert_int_equal(setup(state), 0);
}

static void test_what_stays(void **state)
{
	struct ruleset *set, *next;
	u64 id;

	put("a.yaml", ONE("a", "x"));
	put("b.yaml", ONE("b", "x"));
	set = load(NULL);
	assert_int_equal(set->metric_count, 2);
	id = ruleset_find(set, "b/x")->id;
	assert_int_not_equal(id, ruleset_find(set, "a/x")->id);

	/* b moves into a file before a's, with other limits and a new neighbour; a goes */
	unlink(path_of("a.yaml"));
	unlink(path_of("b.yaml"));
	put("0.yaml", "domain: b\ndescriptors:\n  - {key: w, limits: 1 requests/s}\n"
		      "  - {key: x, limits: 2 requests/h}\n");
	next = load(set);
	assert_int_equal(next->generation, set->generation + 1);
	ruleset_free(set);
	assert_int_equal(ruleset_find(next, "b/x")->id, id);
	assert_int_equal(ruleset_find(next, "b/x")->metric, 1);
	assert_int_equal(ruleset_find(next, "b/w")->metric, 2);
	assert_null(ruleset_find(next, "a/x"));

	/* and comes back to its own series */
	put("a.yaml", ONE("a", "x"));
	set = load(next);
	ruleset_free(next);
	assert_int_equal(ruleset_find(set, "a/x")->metric, 0);
	assert_int_equal(set->metric_count, 3);
	ruleset_free(set);
}

/* Numbers and names of rules are told apart by what their keys and values are, not their text. */
static void test_numbers(void **state)
{
	struct ruleset *set;

	put("a.yaml", "domain: a\ndescriptors:\n"
		      "  - {key: x, value: y, limits: 1 requests/s}\n"
		      "  - key: x\n    descriptors: [{key: y, limits: 2 requests/s}]\n"
		      "  - {key: x=y, limits: 3 requests/s}\n");
	set = load(NULL);
	assert_int_equal(set->rule_count, 3);
	assert_int_not_equal(set->rule[0]->id, set->rule[1]->id);
	assert_int_not_equal(set->rule[0]->id, set->rule[2]->id);
	assert_int_equal(ruleset_find(set, "a/x=y")->limit[0].rate.count, 1);
	assert_int_equal(ruleset_find(set, "a/x/y")->limit[0].rate.count, 2);
	assert_int_equal(ruleset_find(set, "a/x=y-2")->limit[0].rate.count, 3);
	assert_int_equal(set->metric_count, 3);
	assert_matches(set, "a", "x=y", "x=y");
	ruleset_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_which_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
