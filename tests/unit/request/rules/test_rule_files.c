// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A directory of rule files: which are read and in which order, conflicts between two of them,
 * and what of a rule stays over reloads: its number, its series.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/rule_text.h"

#include "lib/refused.h"
#include "lib/temp_dir.h"

static void refused(int code, const char *file, int line, int column, const char *words)
{
	struct ruleset *set = NULL;
	struct sl_err err = { .message = "" };
	int rc = ruleset_load(temp_dir, NULL, &set, &err);

	assert_error(file, line, column, words, rc, &err);
	assert_int_equal(rc, code);
	assert_null(set);
	assert_non_null(strstr(err.file, file));
}

#define ONE(domain, key) "domain: " domain "\ndescriptors: [{key: " key ", limits: 1 requests/s}]\n"

TEST_WITH(test_which_files, temp_dir_make, temp_dir_drop)
{
	struct ruleset *set = rules_in(temp_dir, NULL);

	assert_int_equal(set->rule_count, 0); /* none is fine: they may come later */
	ruleset_free(set);
	assert_int_equal(mkdir(temp_path("sub"), 0755), 0);
	assert_int_equal(mkdir(temp_path("..2026"), 0755), 0);
	temp_put("b.yaml", ONE("b", "x"));
	temp_put("a.yml", ONE("a", "x"));
	temp_put("sub/c.yaml", ONE("c", "x"));
	temp_put("..2026/d.yaml", ONE("d", "x"));
	temp_put(".e.yaml", ONE("e", "x"));
	temp_put("f.yaml.bak", ONE("f", "x"));
	temp_put("g.txt", "not: a rule");
	assert_int_equal(symlink("..2026/d.yaml", temp_path("h.yaml")), 0);
	set = rules_in(temp_dir, NULL);
	assert_int_equal(set->rule_count, 4);
	assert_string_equal(set->rule[0]->domain, "a");
	assert_string_equal(set->rule[1]->domain, "b");
	assert_string_equal(set->rule[2]->domain, "d");
	assert_string_equal(set->rule[3]->domain, "c");
	assert_int_equal(set->domain_count, 4);
	assert_non_null(strstr(set->rule[3]->file, "/sub/c.yaml"));
	ruleset_free(set);
}

#define MANY 9

/* Domain d0 has key k0, d1 has k0 and k1 ...: few are found in another way than many. */
TEST_WITH(test_few_and_many, temp_dir_make, temp_dir_drop)
{
	char text[1024], name[16], key[16];

	for (u32 count = 1; count <= MANY; count++) {
		struct ruleset *set;
		int at;

		at = snprintf(text, sizeof(text), "domain: d%u\ndescriptors:\n", count - 1);
		for (u32 k = 0; k < count; k++)
			at += snprintf(text + at, sizeof(text) - at,
				       "- {key: k%u, limits: 1 requests/s}\n", k);
		snprintf(name, sizeof(name), "%u.yaml", count);
		temp_put(name, text);
		set = rules_in(temp_dir, NULL);
		for (u32 i = 0; i <= count; i++) {
			snprintf(name, sizeof(name), "d%u", i);
			for (u32 k = 0; k <= MANY; k++) {
				struct rule_match match;
				bool is = i < count && k <= i;

				snprintf(key, sizeof(key), "k%u", k);
				assert_matches(set, name, key, is ? key : NULL);
				match_text(set, name, key, &match);
				if (is)
					assert_string_equal(match.rule->domain, name);
			}
		}
		ruleset_free(set);
	}
}

TEST_WITH(test_refused, temp_dir_make, temp_dir_drop)
{
	temp_put("a.yaml", ONE("same", "x"));
	temp_put("b.yaml", "# first\n" ONE("same", "y"));
	refused(-EINVAL, "/b.yaml", 2, 9, "\"same\" again, first in line 1 of ");
	unlink(temp_path("b.yaml"));
	assert_int_equal(symlink("nowhere", temp_path("z.yaml")), 0);
	refused(-ENOENT, "/z.yaml", 0, 0, "No such file");
	unlink(temp_path("z.yaml"));
	temp_put(
		"z.yaml",
		"domain: z\ndescriptors:\n  - {key: x, overrides_file: none.csv, limits: 1 requests/s}\n");
	refused(-ENOENT, "/none.csv", 0, 0, "No such file");
	temp_dir_drop(state);
	refused(-ENOENT, temp_dir, 0, 0, "a directory of rule files");
	assert_int_equal(temp_dir_make(state), 0);
}

TEST_WITH(test_kept_over_reloads, temp_dir_make, temp_dir_drop)
{
	struct ruleset *set, *next;
	u64 id;

	temp_put("a.yaml", ONE("a", "x"));
	temp_put("b.yaml", ONE("b", "x"));
	set = rules_in(temp_dir, NULL);
	assert_int_equal(set->metric_count, 2);
	id = ruleset_find(set, "b/x")->id;
	assert_int_not_equal(id, ruleset_find(set, "a/x")->id);

	/* b moves into a file before a's, with other limits and a new neighbour; a goes */
	unlink(temp_path("a.yaml"));
	unlink(temp_path("b.yaml"));
	temp_put("0.yaml", "domain: b\ndescriptors:\n  - {key: w, limits: 1 requests/s}\n"
			   "  - {key: x, limits: 2 requests/h}\n");
	next = rules_in(temp_dir, set);
	assert_int_equal(next->generation, set->generation + 1);
	ruleset_free(set);
	assert_int_equal(ruleset_find(next, "b/x")->id, id);
	assert_int_equal(ruleset_find(next, "b/x")->metric, 1);
	assert_int_equal(ruleset_find(next, "b/w")->metric, 2);
	assert_null(ruleset_find(next, "a/x"));

	/* and comes back to its own series */
	temp_put("a.yaml", ONE("a", "x"));
	set = rules_in(temp_dir, next);
	ruleset_free(next);
	assert_int_equal(ruleset_find(set, "a/x")->metric, 0);
	assert_int_equal(set->metric_count, 3);
	ruleset_free(set);
}

/* Numbers and names of rules depend on their keys and values, not on their text. */
TEST_WITH(test_numbers, temp_dir_make, temp_dir_drop)
{
	struct ruleset *set;

	temp_put("a.yaml", "domain: a\ndescriptors:\n"
			   "  - {key: x, value: y, limits: 1 requests/s}\n"
			   "  - key: x\n    descriptors: [{key: y, limits: 2 requests/s}]\n"
			   "  - {key: x=y, limits: 3 requests/s}\n");
	set = rules_in(temp_dir, NULL);
	assert_int_equal(set->rule_count, 3);
	assert_int_not_equal(set->rule[0]->id, set->rule[1]->id);
	assert_int_not_equal(set->rule[0]->id, set->rule[2]->id);
	assert_int_equal(ruleset_find(set, "a/x=y")->limit[0].terms.rates.rate[0].count, 1);
	assert_int_equal(ruleset_find(set, "a/x/y")->limit[0].terms.rates.rate[0].count, 2);
	assert_int_equal(ruleset_find(set, "a/x=y-2")->limit[0].terms.rates.rate[0].count, 3);
	assert_int_equal(set->metric_count, 3);
	assert_matches(set, "a", "x=y", "x=y");
	ruleset_free(set);
}

TEST_MAIN
