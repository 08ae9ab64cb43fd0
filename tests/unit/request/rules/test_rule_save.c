// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Live changes into the text of rule files: each example file with one change, which is one line;
 * then random files with a few changes.
 */
#include "conf/config_text.h"
#include "lib/line_diff.h"
#include "lib/rng.h"
#include "lib/rule_text.h"
#include "lib/temp_dir.h"
#include "request/rules/rule_edit.h"

static char *rule_text(const struct ruleset *set, const char *name)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(rule_write(ruleset_find(set, name), out, 0), 0);
	fclose(out);
	return text;
}

/* One key of one rule of an example: one line, and it reads as the running rule. False: refused. */
static bool check_example(const char *dir, const struct ruleset *set, const struct rule *rule,
			  const char *name, const char *pair)
{
	struct rule_edit edit = { .rule = name, .pair = &pair, .pair_count = 1 };
	char *before, *after, *removed, *added, *running, *saved;
	struct ruleset *edited = rules_edited(dir, &edit, 1), *again = NULL;
	struct sl_err err;
	size_t size;

	if (!edit.applied) {
		ruleset_free(edited);
		return false;
	}
	assert_int_equal(config_text_read(rule->file, true, &before, &size, &err), 0);
	if (rule_file_edited(rule->file, set, &edit, 1, &after, &size, &err))
		fail_msg("%s %s: %s", name, pair, err.message);
	if (!after)
		after = strdup(before); /* a default is removed */
	removed = lines_gone(before, after);
	added = lines_gone(after, before);
	if (count_lines(removed, false) > 1 || count_lines(added, false) > 1)
		fail_msg("%s: %s %s: removed\n%sadded\n%s", rule->file, name, pair, removed, added);
	if (ruleset_parse(rule->file, after, strlen(after), &again, &err))
		fail_msg("%s %s: %d: %s\n%s", name, pair, err.line, err.message, after);
	running = rule_text(edited, name);
	saved = rule_text(again, name);
	assert_string_equal(running, saved);
	free(before);
	free(after);
	free(removed);
	free(added);
	free(running);
	free(saved);
	ruleset_free(again);
	ruleset_free(edited);
	return true;
}

TEST(test_examples)
{
	static const char *const dirs[] = {
		"docs/examples/rules",
		"docs/examples/rules.d",
		"docs/examples/rules-full",
	};
	static const char *const pairs[] = { ITEMS(
		"limits=7 requests/m", "limits=5 requests/s,900 requests/h", "burst=33",
		"limits=900 requests/month",
		"limits={rate: 900 requests/month, calendar: Europe/Berlin}",
		"algorithm=token-bucket", "algorithm=sliding-window", "shadow_mode=true",
		"shadow_mode=", "rate_limit.requests_per_unit=77", "rate_limit.unit=hour",
		"prefix.ipv4=24", "priority=low", "on_limit={wait: 1s}", "scope=cluster",
		"throttle=hard", "metadata={a: b}") };
	size_t done = 0, rules = 0;

	for (size_t d = 0; d < COUNT(dirs); d++) {
		struct ruleset *set = rules_in(dirs[d], NULL);

		for (u32 i = 0; i < set->rule_count; i++, rules++) {
			const struct rule *rule = set->rule[i];
			char name[256];

			snprintf(name, sizeof(name), "%s/%s", rule->domain, rule->path);
			for (size_t k = 0; k < COUNT(pairs); k++)
				done += check_example(dirs[d], set, rule, name, pairs[k]);
		}
		ruleset_free(set);
	}
	print_message("%zu rules, %zu changes\n", rules, done);
	assert_true(rules >= 15 && done >= 100);
}

/* ---- random files ---- */

static void put_rule(FILE *out, int number)
{
	if (!rng_below(4)) {
		fprintf(out, "  - {key: k%d, limits: [%s], overrides: [{value: a, %s}]}%s\n",
			number,
			RNG_ANY("1K requests/m", "'5 requests/s', {rate: 9K requests/h, name: x}"),
			RNG_ANY("block: true", "rate: 7 requests/m", "limits: [7 requests/m]"),
			RNG_ANY("", "   # why: ["));
		return;
	}
	fprintf(out, "%s  - key: k%d%s\n", RNG_ANY("", "\n", "  # next\n", "\n  # a\n  # b\n"),
		number, RNG_ANY("", "\n    value: '*'   # one"));
	fprintf(out, "    %s\n",
		RNG_ANY("rate_limit: {unit: MINUTE, requests_per_unit: 0x10}  # old",
			"limits: 2K requests/m",
			"limits:\n      - 2K requests/m # at once\n"
			"      - {rate: 30K requests/h, algorithm: 'token-bucket', burst: 1K}"));
	fprintf(out, "%s", RNG_ANY("", "    shadow_mode: yes\n", "    priority:   low  # so\n"));
	fprintf(out, "%s",
		RNG_ANY("", "    prefix: {ipv4: [32, 24]}\n    prefix_scale: {ipv4: [1, 4]}\n",
			"    on_limit: {wait: 1000ms, queue: 10}\n"));
	fprintf(out, "%s",
		RNG_ANY("", "    overrides:\n      - {value: a, rate: 1K requests/m} # a\n"
			    "      # b\n      - value: 192.0.2.7\n        block: yes\n"));
}

static char *random_rules(void)
{
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, "%sdomain: %s\ndescriptors:\n", RNG_ANY("", "# Ours.\n\n", "---\n"),
		RNG_ANY("r", "'r'  # that"));
	for (int i = 2 + rng_below(4); i; i--)
		put_rule(out, i);
	fputs(RNG_ANY("", "# the end\n"), out);
	fclose(out);
	return text;
}

/* An edit of rule `number` that may be refused. */
static struct rule_edit random_edit(const struct ruleset *set, int number, char name[32],
				    const char **pair)
{
	struct rule_edit edit = { .what = EDIT_SET, .rule = name, .pair = pair, .pair_count = 1 };

	snprintf(name, 32, "r/%s", set->rule[number]->path);
	if (!rng_below(2)) {
		*pair = RNG_ANY("limits=7 requests/m", "limits=2K requests/m", "burst=33",
				"algorithm=token-bucket",
				"algorithm=", "priority=", "priority=critical", "shadow_mode=true",
				"shadow_mode=", "rate_limit.requests_per_unit=77", "prefix.ipv4=24",
				"on_limit.queue=5",
				"on_limit=", "ban={after: 20 rejections/10m, for: 10m}");
		return edit;
	}
	edit.what = rng_below(4);
	edit.value = RNG_ANY("a", "192.0.2.7", "b c", "\xc3\xa9: #");
	edit.pair_count = edit.what == EDIT_SET;
	*pair = RNG_ANY("rate=5 requests/m", "limits=5 requests/m",
			"limits=5 requests/m,90 requests/h");
	return edit;
}

static void check_same_rule(const struct ruleset *a, const struct ruleset *b, const char *name,
			    const char *text)
{
	char *x = rule_text(a, name), *y = rule_text(b, name);

	if (strcmp(x, y))
		fail_msg("%s: running\n%ssaved\n%s%s", name, x, y, text);
	free(x);
	free(y);
}

static const char *line_at(const char *text, int line)
{
	while (--line)
		text = strchr(text, '\n') + 1;
	return text;
}

/* Nothing above the rule differs, and nothing from the next one on. */
static void check_others(const struct ruleset *set, u32 number, const char *text, const char *saved)
{
	const char *at = line_at(text, set->rule[number]->line);
	const char *next =
		number + 1 < set->rule_count ? line_at(text, set->rule[number + 1]->line) : "";

	if (strncmp(text, saved, at - text) || strlen(saved) < strlen(next) ||
	    strcmp(saved + strlen(saved) - strlen(next), next))
		fail_msg("rule %u of\n%s\nis\n%s", number, text, saved);
}

/* Up to three that apply, all to one rule; returns how many. */
static size_t random_edits(const struct ruleset *set, int number, struct rule_edit *edit,
			   char name[32], const char **pair)
{
	size_t count = 0;

	for (int i = 0; i < 3; i++) {
		bool applied = true;

		edit[count] = random_edit(set, number, name, &pair[count]);
		ruleset_free(rules_edited(temp_dir, edit, count + 1));
		for (size_t k = 0; k <= count; k++)
			applied &= edit[k].applied;
		count += applied;
	}
	return count;
}

/* Each file with a few changes: what is saved loads to the running rules, other rules stay. */
TEST(test_random)
{
	size_t changes = 0;

	rng_start("rule_edit");
	for (int round = 0; round < 300; round++) {
		char *text = random_rules(), *saved, name[32];
		const char *pair[3];
		struct ruleset *was, *edited, *again;
		struct rule_edit edit[3];
		struct sl_err err;
		size_t size, count;
		u32 number;

		temp_put("r.yaml", text);
		was = rules_edited(temp_dir, NULL, 0);
		number = rng_below(was->rule_count);
		count = random_edits(was, number, edit, name, pair);
		edited = rules_edited(temp_dir, edit, count);
		if (rule_file_edited(temp_path("r.yaml"), was, edit, count, &saved, &size, &err))
			fail_msg("round %d: %s: %s\n%s", round, name, err.message, text);
		temp_put("r.yaml", saved ? saved : text);
		again = rules_edited(temp_dir, NULL, 0);
		check_same_rule(edited, again, name, saved ? saved : text);
		if (saved)
			check_others(was, number, text, saved);
		changes += saved != NULL;
		ruleset_free(was);
		ruleset_free(edited);
		ruleset_free(again);
		free(text);
		free(saved);
	}
	print_message("%zu changes\n", changes);
	assert_true(changes > 150);
}

int main(void)
{
	return test_run(temp_dir_make, temp_dir_drop);
}
