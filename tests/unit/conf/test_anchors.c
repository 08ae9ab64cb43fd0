// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Anchors, aliases and merge keys: their result, compared with the same written out; errors
 * and their places; that their growth is bounded; and random changes: never worse than
 * an error.
 */
#include "lib/rng.h"
#include "lib/rule_text.h"

#include "lib/policy_text.h"
#include "conf/tree.h"

static void dump_node(FILE *out, const struct yaml_node *node)
{
	const char *apart = "";

	if (node->kind == YAML_TEXT) {
		fprintf(out, node->plain ? "%s" : "'%s'", node->text);
		return;
	}
	fputs(node->kind == YAML_LIST ? "[" : "{", out);
	for (const struct yaml_node *item = node->first; item; item = item->next) {
		fputs(apart, out);
		apart = ", ";
		if (node->kind == YAML_MAP)
			fprintf(out, item->plain ? "%s: " : "'%s': ", item->text);
		dump_node(out, node->kind == YAML_MAP ? item->value : item);
	}
	fputs(node->kind == YAML_LIST ? "]" : "}", out);
}

TEST(test_meanings)
{
	static const struct {
		const char *yaml, *means;
	} cases[] = {
		{ "{a: &x 5, b: *x}", "{a: 5, b: 5}" },
		{ "{a: &x '5', b: *x}", "{a: '5', b: '5'}" },
		{ "{a: &x [1, {k: v}], b: *x, c: [*x]}",
		  "{a: [1, {k: v}], b: [1, {k: v}], c: [[1, {k: v}]]}" },
		{ "{&k a: 1, b: *k}", "{a: 1, b: a}" },
		{ "{a: &k n, *k : 2}", "{a: n, n: 2}" },
		{ "{a: &x , b: *x, c: 1}", "{a: , b: , c: 1}" },
		/* the last before it, also within what has the name */
		{ "[&x 1, *x, &x 2, *x]", "[1, 1, 2, 2]" },
		{ "[&x [&x 2, *x], *x]", "[[2, 2], 2]" },
		/* a name within a copied part, and an alias within it */
		{ "[&x {a: &y 1}, *y, &z [*x, *y], *z]", "[{a: 1}, 1, [{a: 1}, 1], [{a: 1}, 1]]" },
		{ "[&x {a: 1}, {<<: *x, b: 2}]", "[{a: 1}, {b: 2, a: 1}]" },
		/* its own wins, wherever it stands */
		{ "[&x {a: 1, b: 1}, {<<: *x, b: 2}, {b: 3, <<: *x}]",
		  "[{a: 1, b: 1}, {b: 2, a: 1}, {b: 3, a: 1}]" },
		/* the first of a list wins */
		{ "[&x {a: 1}, &y {a: 2, b: 2}, {<<: [*x, *y]}, {<<: [*y, *x], c: 3}]",
		  "[{a: 1}, {a: 2, b: 2}, {a: 1, b: 2}, {c: 3, a: 2, b: 2}]" },
		{ "{<<: {a: 1}, b: 2}", "{b: 2, a: 1}" },
		{ "{<<: [{a: 1}, {a: 2}]}", "{a: 1}" },
		{ "{<<: [], a: 1}", "{a: 1}" },
		/* not deep: a key that is there is there */
		{ "[&x {a: {b: 1, c: 1}}, {<<: *x, a: {b: 2}}]",
		  "[{a: {b: 1, c: 1}}, {a: {b: 2}}]" },
		/* of a merged part itself */
		{ "[&x {a: 1}, &y {<<: *x, b: 2}, {<<: *y, c: 3}, *y]",
		  "[{a: 1}, {b: 2, a: 1}, {c: 3, b: 2, a: 1}, {b: 2, a: 1}]" },
		{ "{<<: &x {a: 1}, b: *x, c: {<<: *x}}", "{b: {a: 1}, c: {a: 1}, a: 1}" },
		{ "{'<<': {a: 1}}", "{'<<': {a: 1}}" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct tree tree = { 0 };
		struct sl_err err;
		char *text;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		if (tree_parse("x", cases[i].yaml, strlen(cases[i].yaml), &tree, &err))
			fail_msg("%s: %d:%d: %s", cases[i].yaml, err.line, err.column, err.message);
		dump_node(out, tree.root);
		fclose(out);
		if (strcmp(text, cases[i].means))
			fail_msg("%s\n  is     %s\n  wanted %s", cases[i].yaml, text,
				 cases[i].means);
		free(text);
		tree_free(&tree);
	}
}

static void refused(const char *yaml, int line, int column, const char *words)
{
	struct tree tree = { 0 };
	struct sl_err err = { .line = -1 };
	int rc = tree_parse("x", yaml, strlen(yaml), &tree, &err);

	assert_error(yaml, line, column, words, rc, &err);
	assert_null(tree.root);
}

TEST(test_errors)
{
	refused("a: *x", 1, 4, "found the alias \"*x\", but no anchor \"&x\" before it");
	refused("{a: *x, b: &x 1}", 1, 5, "no anchor \"&x\" before it");
	refused("a: &x\n  b: *x", 2, 6, "within what its anchor in line 1 names");
	refused("a: &x [1,\n [*x]]", 2, 3, "within what its anchor in line 1 names");
	refused("a: &x {<<: *x}", 1, 12, "within what its anchor");
	refused("{a: &x [1], *x : 2}", 1, 13, "found a list as a key");
	refused("{a: 1,\n <<: 2}", 2, 2, "\"<<\" with something else than mappings");
	refused("{a: &x [1], <<: *x}", 1, 13, "\"<<\" with something else than mappings");
	refused("{<<: [{a: 1}, 2]}", 1, 2, "\"<<\" with something else than mappings");
	refused("{<<: {a: 1}, <<: {b: 1}}", 1, 2, "\"<<\" again");
	refused("a: &x !t 1", 1, 4, "found the tag");
	refused("a: !!str &x 1", 1, 4, "found the tag");
}

/* Ten of ten of ten...: ten million of them in eight lines. */
TEST(test_billion_laughs)
{
	char yaml[1024] = "- &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";

	for (int i = 1; i < 8; i++) {
		char line[128];

		snprintf(line, sizeof(line),
			 "- &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i,
			 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
		strcat(yaml, line);
	}
	/* lines 2 to 4 made 12320 nodes of aliases; each alias of line 5 makes 11111 */
	refused(yaml, 5, 43, "aliases make more than 100000 values here; accepted: fewer");
}

TEST(test_merged_laughs)
{
	char *yaml;
	size_t size;
	FILE *out = open_memstream(&yaml, &size);

	fputs("- &a {", out);
	for (int i = 0; i < 250; i++)
		fprintf(out, "k%d: {v: 1}, ", i);
	fputs("}\n", out);
	for (int i = 0; i < 60; i++)
		fputs("- {<<: *a}\n", out);
	fclose(out);
	/* 250 x 4 + 1 by the alias, 250 x 4 by the merge: 49 of them */
	refused(yaml, 51, 10, "aliases make more than 100000 values");
	free(yaml);
	out = open_memstream(&yaml, &size);
	for (int k = 0; k < 2; k++) {
		fprintf(out, "- &a%d {", k);
		for (int i = 0; i < 150; i++)
			fprintf(out, "k%d: 1, ", k * 1000 + i);
		fputs("}\n", out);
	}
	fputs("- {<<: [*a0, *a1]}\n", out);
	fclose(out);
	refused(yaml, 3, 4, "a merge into a mapping of more than 256 keys");
	free(yaml);
}

/* Each level of these is one deeper than the one before. */
TEST(test_depth)
{
	refused("- &a [[[[[1]]]]]\n- &b [[[[[*a]]]]]\n- [[[[[[*b]]]]]]\n", 3, 9,
		"nested too deep; accepted: up to 16 levels");
}

/* An error in an alias' content names both places. */
TEST(test_places)
{
	static const char policy[] = "limits:\n"
				     "  - &a {name: a, rate: 5 packets/s, burst: many}\n";
	static const char merged[] = "limits:\n"
				     "  - {name: a, match: &m {dport: 80}, rate: 5 packets/s}\n"
				     "  - {name: b, rate: 5 packets/s,\n"
				     "     match: {<<: *m, proto: icmp, dport: 99999}}\n"
				     "  - {name: c, match: *m, rate: 5 packets/s, burst: x}\n";
	static const char aliased[] = "domain: d\n"
				      "descriptors:\n"
				      "  - key: a\n"
				      "    limits: &l\n"
				      "      - 5 requests/s\n"
				      "      - {rate: 9 requests/h, algorithm: leaky-bucket}\n"
				      "  - key: b\n"
				      "    limits: *l\n"
				      "    consistency: {lease: 2s}\n";
	struct policy *got = NULL;
	struct ruleset *set = NULL;
	struct sl_err err;

	assert_int_not_equal(policy_parse("p", policy, strlen(policy), &got, &err), 0);
	assert_int_equal(err.line, 2);
	assert_null(strstr(err.message, "alias"));
	assert_int_not_equal(policy_parse("p", merged, strlen(merged), &got, &err), 0);
	assert_int_equal(err.line, 4);
	assert_null(strstr(err.message, "alias"));
	/* 2s is longer than the limit of line 5 allows, in the rule of line 7 */
	err.line = err.column = 0;
	if (!ruleset_parse("r", aliased, strlen(aliased), &set, &err))
		fail_msg("accepted");
	assert_int_equal(err.line, 5);
	assert_int_equal(err.column, 9);
	assert_non_null(strstr(err.message, "rule \"d/b\": "));
	assert_non_null(strstr(err.message, "(here by the alias in line 8)"));
}

/* The whole way: the same as written out, for both kinds of files. */
TEST(test_files)
{
	struct policy *a = parse(
		"limits:\n"
		"  - {name: a, match: &m {proto: tcp, dport: &p [80, 443]}, rate: &r 5 packets/s}\n"
		"  - {name: b, match: {<<: *m, proto: udp}, rate: *r}\n"
		"  - {name: c, match: {sport: *p}, rate: [*r, 9 packets/m]}\n");
	struct policy *b = parse(
		"limits:\n"
		"  - {name: a, match: {proto: tcp, dport: [80, 443]}, rate: 5 packets/s}\n"
		"  - {name: b, match: {dport: [80, 443], proto: udp}, rate: 5 packets/s}\n"
		"  - {name: c, match: {sport: [80, 443]}, rate: [5 packets/s, 9 packets/m]}\n");
	char *text_a = written(a), *text_b = written(b);
	struct ruleset *set;

	assert_string_equal(text_a, text_b);
	free(text_a);
	free(text_b);
	policy_free(b);
	assert_round_trip(a);
	set = rules(
		"domain: d\n"
		"descriptors:\n"
		"  - key: a\n"
		"    rate_limit: &plan {unit: minute, requests_per_unit: 10}\n"
		"    descriptors: &below\n"
		"      - {key: path, value: /login, rate_limit: {<<: *plan, requests_per_unit: 2}}\n"
		"  - key: b\n"
		"    rate_limit: {<<: *plan, unit: hour}\n"
		"    descriptors: *below\n");
	assert_int_equal(set->rule_count, 4);
	assert_int_equal(ruleset_find(set, "d/a/path=/login")->limit[0].terms.rates.rate[0].count,
			 2);
	assert_int_equal(ruleset_find(set, "d/b/path=/login")->limit[0].terms.rates.rate[0].count,
			 2);
	assert_int_equal(ruleset_find(set, "d/b")->limit[0].terms.rates.rate[0].count, 10);
	assert_int_equal(ruleset_find(set, "d/b")->unit, REQUEST_UNIT_HOUR);
	ruleset_free(set);
}

static const char sample[] = "- &a {k: &b [1, 2], l: 3}\n"
			     "- {<<: *a, m: *b}\n"
			     "- &c [*a, *b, {<<: [*a, {n: *b}]}]\n"
			     "- {*b : 1, <<: *a}\n"
			     "- [*c, *c, &a 5, *a]\n";

TEST(test_mutations)
{
	static const char bytes[] = "{}[]:,-&*<abc \n'1";
	char text[sizeof(sample) * 2];
	u32 loaded = 0;

	rng_start("anchors");
	for (int round = 0; round < 30000; round++) {
		size_t len = sizeof(sample) - 1;
		struct tree tree = { 0 };
		struct sl_err err = { .message = "" };

		memcpy(text, sample, len);
		for (u32 changes = 1 + rng() % 2; changes; changes--) {
			size_t at = rng() % len, size = rng() % 12 % (len - at);

			if (rng() % 3) {
				text[at] = bytes[rng() % (sizeof(bytes) - 1)];
			} else if (len + size < sizeof(text)) {
				memmove(text + at + size, text + at, len - at);
				len += size;
			}
		}
		if (!tree_parse("x", text, len, &tree, &err)) {
			tree_free(&tree);
			loaded++;
		} else {
			assert_true(err.message[0]);
		}
	}
	assert_in_range(loaded, 10, 25000);
}

TEST_MAIN
