// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random rule files and random descriptors: the rule that ruleset_match() finds is the one of
 * the documentation, followed word by word: level by level, the exact value, else the
 * first written pattern that matches, else the key alone; a rule only where the descriptor ends.
 * Patterns are matched by trying everything.
 */
#include "lib/test.h"
#include "request/rules/rule.h"
#include "lib/rng.h"

#define LEVELS 3
#define WIDE 12

struct descriptor {
	char key[4], value[8]; /* value "": bare */
	bool limited;
	u32 number; /* requests_per_unit: which one it is */
	struct descriptor *below;
	u32 count;
};

static u32 numbers;

static void random_text(char *text, u32 most, const char *letters)
{
	u32 len = rng_below(most + 1);

	for (u32 i = 0; i < len; i++)
		text[i] = letters[rng_below(strlen(letters))];
	text[len] = 0;
}

/* As envoyproxy/ratelimit joins them: equal ones may not stand twice. */
static bool is_taken(const struct descriptor *list, u32 count, const struct descriptor *one)
{
	char a[16], b[16];

	snprintf(a, sizeof(a), "%s%s%s", one->key, one->value[0] ? "_" : "", one->value);
	for (u32 i = 0; i < count; i++) {
		snprintf(b, sizeof(b), "%s%s%s", list[i].key, list[i].value[0] ? "_" : "",
			 list[i].value);
		if (!strcmp(a, b))
			return true;
	}
	return false;
}

static void make(struct descriptor **ret, u32 *ret_count, u32 level)
{
	u32 wanted = rng_below(WIDE);

	*ret = calloc(WIDE, sizeof(**ret));
	*ret_count = 0;
	for (u32 i = 0; i < wanted; i++) {
		struct descriptor *one = &(*ret)[*ret_count];

		memset(one, 0, sizeof(*one));
		one->key[0] = "kl_"[rng_below(3)];
		if (rng_below(4))
			random_text(one->value, 4, "ab*");
		if (is_taken(*ret, *ret_count, one))
			continue;
		one->limited = rng_below(4);
		one->number = ++numbers;
		if (level + 1 < LEVELS && rng_below(2))
			make(&one->below, &one->count, level + 1);
		++*ret_count;
	}
}

static void unmake(struct descriptor *list, u32 count)
{
	for (u32 i = 0; i < count; i++)
		unmake(list[i].below, list[i].count);
	free(list);
}

static void write(FILE *out, const struct descriptor *list, u32 count, int indent)
{
	for (u32 i = 0; i < count; i++) {
		fprintf(out, "%*s- key: '%s'\n", indent, "", list[i].key);
		if (list[i].value[0])
			fprintf(out, "%*s  value: '%s'\n", indent, "", list[i].value);
		if (list[i].limited)
			fprintf(out, "%*s  rate_limit: {unit: day, requests_per_unit: %u}\n",
				indent, "", list[i].number);
		if (list[i].count) {
			fprintf(out, "%*s  descriptors:\n", indent, "");
			write(out, list[i].below, list[i].count, indent + 4);
		}
	}
}

static bool matches(const char *pattern, const char *text)
{
	if (!*pattern)
		return !*text;
	if (*pattern == '*')
		return matches(pattern + 1, text) || (*text && matches(pattern, text + 1));
	return *pattern == *text && matches(pattern + 1, text + 1);
}

static const struct descriptor *next(const struct descriptor *list, u32 count, const char *key,
				     const char *value)
{
	for (u32 i = 0; i < count; i++)
		if (!strcmp(list[i].key, key) && list[i].value[0] && !strchr(list[i].value, '*') &&
		    !strcmp(list[i].value, value))
			return &list[i];
	for (u32 i = 0; i < count; i++)
		if (!strcmp(list[i].key, key) && strchr(list[i].value, '*') &&
		    matches(list[i].value, value))
			return &list[i];
	for (u32 i = 0; i < count; i++)
		if (!strcmp(list[i].key, key) && !list[i].value[0])
			return &list[i];
	return NULL;
}

/* The number of the rule, 0: none. */
static u32 expected(const struct descriptor *list, u32 count, char (*key)[4], char (*value)[8],
		    u32 entries)
{
	const struct descriptor *at = NULL;

	for (u32 i = 0; i < entries; i++) {
		at = next(list, count, key[i], value[i]);
		if (!at)
			return 0;
		list = at->below;
		count = at->count;
	}
	return at && at->limited ? at->number : 0;
}

static u32 ask(const struct ruleset *set, const struct descriptor *list, u32 count)
{
	struct request_descriptor descriptor = { .hits = 1 };
	char key[LEVELS + 1][4], value[LEVELS + 1][8];
	struct rule_match match;
	u32 found, wanted;

	descriptor.count = rng_below(LEVELS + 2);
	for (u32 i = 0; i < descriptor.count; i++) {
		snprintf(key[i], sizeof(key[i]), "%c", "kl_m"[rng_below(4)]);
		random_text(value[i], 5, rng_below(8) ? "ab" : "ab*_");
		descriptor.entry[i] = (struct request_entry){ { key[i], strlen(key[i]) },
							      { value[i], strlen(value[i]) } };
	}
	ruleset_match(set, (struct bytes){ "d", 1 }, &descriptor, &match);
	found = match.rule ? match.rule->limit[0].terms.rates.rate[0].count : 0;
	wanted = expected(list, count, key, value, descriptor.count);
	if (found != wanted) {
		for (u32 i = 0; i < descriptor.count; i++)
			print_message("%s=%s\n", key[i], value[i]);
		write(stderr, list, count, 0);
		fail_msg("found rule %u, wanted %u", found, wanted);
	}
	return wanted;
}

TEST(test_match)
{
	u32 met = 0;

	rng_start("match");
	for (u32 round = 0; round < 1000; round++) {
		struct descriptor *list;
		struct ruleset *set;
		struct sl_err err;
		char *text = NULL;
		size_t size;
		u32 count;
		FILE *out = open_memstream(&text, &size);

		numbers = 0;
		make(&list, &count, 0);
		fprintf(out, "domain: d\n%s", count ? "descriptors:\n" : "");
		write(out, list, count, 2);
		fclose(out);
		if (ruleset_parse("r.yaml", text, size, &set, &err))
			fail_msg("%d:%d: %s\n%s", err.line, err.column, err.message, text);
		for (u32 i = 0; i < 300; i++)
			met += ask(set, list, count) != 0;
		ruleset_free(set);
		free(text);
		unmake(list, count);
	}
	assert_in_range(met, 20000, 250000);
}

TEST_MAIN
