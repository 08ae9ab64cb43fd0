// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A policy into the text of its file: what `save` changes in it, to the byte. Then every example
 * file with random live changes: none changes nothing, one changes the line that it must.
 */
#include <dirent.h>

#include "lib/test.h"
#include "lib/line_diff.h"
#include "lib/policy_text.h"
#include "lib/rng.h"
#include "conf/config_text.h"

enum change_kind {
	LIMIT_SET,
	LIMIT_ADD,
	LIMIT_DEL,
	OVERRIDE_SET,
	OVERRIDE_DEL,
	BLOCK_ADD,
	BLOCK_DEL,
	SET_ADD,
	SET_DEL,
};

struct edit {
	enum change_kind kind;
	const char *name, *text;
};

static int list_add(struct policy *policy, const char *text, struct sl_err *err)
{
	struct list_entry entry = { 0 };
	char *reason = strchr(text, ' ');
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "%.*s", (int)strcspn(text, " "), text);
	entry.prefix = prefix_of(prefix);
	snprintf(entry.reason, sizeof(entry.reason), "%s", reason ? reason + 1 : "");
	return policy_list_add(policy, LIST_BLOCK, &entry, err);
}

static int change(struct policy *policy, const struct edit *edit, struct sl_err *err)
{
	char *pair = (char *)edit->text, *value = edit->text ? strchr(edit->text, ' ') : NULL;
	char text[64] = "";
	struct sl_prefix prefix;

	if (edit->kind >= OVERRIDE_SET && edit->kind != BLOCK_ADD) {
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(edit->text, " "), edit->text);
		prefix = prefix_of(text);
	}
	switch (edit->kind) {
	case LIMIT_SET:
		return policy_limit_set(policy, edit->name, &pair, 1, err);
	case LIMIT_ADD:
		return policy_limit_add(policy, "x", edit->text, strlen(edit->text), err);
	case LIMIT_DEL:
		return policy_limit_del(policy, edit->name, err);
	case OVERRIDE_SET:
		value++;
		return policy_override_set(policy, edit->name, &prefix, &value, 1, err);
	case OVERRIDE_DEL:
		return policy_override_del(policy, edit->name, &prefix, err);
	case BLOCK_ADD:
		return list_add(policy, edit->text, err);
	case BLOCK_DEL:
		return policy_list_del(policy, LIST_BLOCK, &prefix, err);
	case SET_ADD:
		return policy_set_add(policy, edit->name, &prefix, 1, err);
	case SET_DEL:
		return policy_set_del(policy, edit->name, &prefix, 1, err);
	}
	return -EINVAL;
}

static char *write_into(const struct policy *policy, const char *path, const char *text,
			bool *ret_whole)
{
	struct sl_err err;
	char *ret = NULL;
	size_t size;

	if (policy_write_into(policy, path, text, strlen(text), &ret, &size, ret_whole, &err))
		fail_msg("%s: %s", text, err.message);
	assert_int_equal(strlen(ret), size);
	return ret;
}

static const char file[] = "# Ours.\n"
			   "block:\n"
			   "  - 10.0.0.0/8\t# a\n"
			   "  - '@lab'\n"
			   "  # the second\n"
			   "  - {prefix: 2001:DB8::/32, reason: scan}\n"
			   "\n"
			   "sets: {lab: [192.0.2.0/24, 198.51.100.1/32 ]}   # those\n"
			   "limits:\n"
			   "  - rate:  100K packets/s     # as sold\n"
			   "    name:  web\n"
			   "    match: &m {proto: tcp, dport: 443}\n"
			   "    mode: enforce\n"
			   "    overrides:\n"
			   "      - {src: 192.0.2.7/32, rate: 1K packets/s}   # a guest\n"
			   "      - {src: 192.0.2.8, rate: 2K packets/s, burst: 5K}\n"
			   "\n"
			   "  # DNS\n"
			   "  - {name: dns, match: *m, rate: [ 1K packets/s, 0.1M packets/h]}\n"
			   "metrics:   {listen: 127.0.0.1:9810}\n";

/* Each with the lines that change: "-line" and "+line". */
static const struct {
	struct edit edit;
	const char *removed, *added;
} cases[] = {
	{ { LIMIT_SET, "web", "rate=200000 packets/s" },
	  "  - rate:  100K packets/s     # as sold\n",
	  "  - rate:  200000 packets/s     # as sold\n" },
	{ { LIMIT_SET, "web", "mode=shadow" }, "    mode: enforce\n", "    mode: shadow\n" },
	{ { LIMIT_SET, "web", "rate=100000 packets/s" }, "", "" },
	{ { LIMIT_SET, "web", "accounting=exact" }, "", "    accounting: exact\n" },
	{ { LIMIT_SET, "web", "match.dport=80,443" },
	  "    match: &m {proto: tcp, dport: 443}\n"
	  "  - {name: dns, match: *m, rate: [ 1K packets/s, 0.1M packets/h]}\n",
	  "    match: &m {proto: tcp, dport: [80, 443]}\n"
	  "  - {name: dns, match: {proto: tcp, dport: 443}, rate: [ 1K packets/s, 0.1M packets/h]}\n" },
	{ { LIMIT_SET, "dns", "rate=1000 packets/s,5000 packets/h" },
	  "  - {name: dns, match: *m, rate: [ 1K packets/s, 0.1M packets/h]}\n",
	  "  - {name: dns, match: *m, rate: [ 1K packets/s, 5000 packets/h]}\n" },
	{ { LIMIT_SET, "dns", "rate=7 packets/s" },
	  "  - {name: dns, match: *m, rate: [ 1K packets/s, 0.1M packets/h]}\n",
	  "  - {name: dns, match: *m, rate: 7 packets/s}\n" },
	{ { LIMIT_ADD, NULL, "{name: new, rate: 5 packets/s}" },
	  "",
	  "  - {name: new, rate: 5 packets/s}\n" },
	{ { LIMIT_DEL, "dns", NULL },
	  "  # DNS\n  - {name: dns, match: *m, rate: [ 1K packets/s, 0.1M packets/h]}\n",
	  "" },
	{ { OVERRIDE_SET, "web", "192.0.2.8 burst=6000" },
	  "      - {src: 192.0.2.8, rate: 2K packets/s, burst: 5K}\n",
	  "      - {src: 192.0.2.8, rate: 2K packets/s, burst: 6000}\n" },
	{ { OVERRIDE_SET, "web", "192.0.2.7 rate=3000 packets/s" },
	  "      - {src: 192.0.2.7/32, rate: 1K packets/s}   # a guest\n",
	  "      - {src: 192.0.2.7/32, rate: 3000 packets/s}   # a guest\n" },
	{ { OVERRIDE_SET, "web", "192.0.2.1 rate=1 packets/s" },
	  "",
	  "      - {src: 192.0.2.1, rate: 1 packet/s}\n" },
	{ { OVERRIDE_DEL, "web", "192.0.2.7" },
	  "      - {src: 192.0.2.7/32, rate: 1K packets/s}   # a guest\n",
	  "" },
	{ { BLOCK_ADD, NULL, "203.0.113.7" }, "", "  - 203.0.113.7\n" },
	{ { BLOCK_ADD, NULL, "2001:db8::/32 attack" },
	  "  - {prefix: 2001:DB8::/32, reason: scan}\n",
	  "  - {prefix: 2001:DB8::/32, reason: attack}\n" },
	{ { BLOCK_ADD, NULL, "10.0.0.0/8 why" },
	  "  - 10.0.0.0/8\t# a\n",
	  "  - {prefix: 10.0.0.0/8, reason: why}\t# a\n" },
	{ { BLOCK_DEL, NULL, "10.0.0.0/8" }, "  - 10.0.0.0/8\t# a\n", "" },
	{ { SET_ADD, "lab", "192.0.2.1" },
	  "sets: {lab: [192.0.2.0/24, 198.51.100.1/32 ]}   # those\n",
	  "sets: {lab: [192.0.2.0/24, 198.51.100.1/32, 192.0.2.1 ]}   # those\n" },
	{ { SET_DEL, "lab", "192.0.2.0/24" },
	  "sets: {lab: [192.0.2.0/24, 198.51.100.1/32 ]}   # those\n",
	  "sets: {lab: [198.51.100.1/32 ]}   # those\n" },
};

TEST(test_changes)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct policy *policy = parse(file);
		struct sl_err err;
		char *text, *removed, *added;
		bool whole;

		if (change(policy, &cases[i].edit, &err))
			fail_msg("%s: %s", cases[i].edit.text, err.message);
		text = write_into(policy, "x.yaml", file, &whole);
		removed = lines_gone(file, text);
		added = lines_gone(text, file);
		if (whole || strcmp(removed, cases[i].removed) || strcmp(added, cases[i].added))
			fail_msg("%s %s: whole %d, removed\n%sadded\n%s\n%s", cases[i].edit.name,
				 cases[i].edit.text, whole, removed, added, text);
		free(text);
		free(removed);
		free(added);
		policy_free(policy);
	}
}

/* ---- one change: one line ---- */

/* At most so many lines of the text go, and so many are new. False: the change is refused. */
static bool check_change(const char *path, const char *text, const struct edit *edit,
			 size_t removed_most, size_t added_most)
{
	struct policy *policy = parse_at(path, text);
	char *now, *removed, *added;
	struct sl_err err;
	bool whole, is_out;

	if (change(policy, edit, &err)) {
		policy_free(policy);
		return false;
	}
	now = write_into(policy, path, text, &whole);
	removed = lines_gone(text, now);
	added = lines_gone(now, text);
	is_out = edit->text && edit->text[strlen(edit->text) - 1] == '=';
	if (whole || count_lines(removed, is_out) > removed_most ||
	    count_lines(added, false) > added_most)
		fail_msg("%s: %s %s: whole %d, removed\n%sadded\n%sin\n%s", path,
			 edit->name ? edit->name : "", edit->text ? edit->text : "", whole, removed,
			 added, text);
	free(now);
	free(removed);
	free(added);
	policy_free(policy);
	return true;
}

static void check_unchanged(const char *path, const char *text)
{
	struct policy *policy = parse_at(path, text);
	bool whole;
	char *now = write_into(policy, path, text, &whole);

	assert_false(whole);
	assert_string_equal(now, text);
	free(now);
	policy_free(policy);
}

static const char *const pairs[] = { ITEMS(
	"mode=shadow", "mode=off", "mode=", "accounting=exact", "rate=77 packets/s",
	"rate=7M bits/s", "burst=54321", "burst=", "on_full=closed", "action=tag", "tag.mark=9",
	"per=dst", "per=source,dport", "match.dport=80,443", "match.dport=", "match.proto=udp",
	"throttle={soft: 20%}", "throttle=", "algorithm=sliding-window", "prefix.ipv4=24",
	"rate=9 packets/s,100 packets/h", "match.src=192.0.2.0/24",
	"ban={after: 10 drops/s, for: 1m}") };

#define PAIR_COUNT COUNT(pairs)

/*
 * Every change that the policy accepts; returns how many those are. A value has up to `lines`
 * lines.
 */
static size_t check_changes(const char *path, const char *text, size_t lines)
{
	struct policy *policy = parse_at(path, text);
	size_t done = 0;

	check_unchanged(path, text);
	for (size_t i = 0; i < policy->limit_count; i++)
		for (size_t k = 0; k < PAIR_COUNT; k++)
			done += check_change(
				path, text,
				&(struct edit){ LIMIT_SET, policy->limit[i].name, pairs[k] }, lines,
				lines > 1 ? 2 : 1);
	for (size_t i = 0; i < policy->set_count; i++)
		done += check_change(path, text,
				     &(struct edit){ SET_ADD, policy->set[i].name, "203.0.113.99" },
				     1, 1);
	/* the first of a list brings its key along */
	done += check_change(path, text, &(struct edit){ BLOCK_ADD, NULL, "203.0.113.99 scan" }, 1,
			     2);
	done += check_change(path, text,
			     &(struct edit){ LIMIT_ADD, NULL, "{name: new, rate: 5 packets/s}" }, 0,
			     3);
	policy_free(policy);
	return done;
}

TEST(test_examples)
{
	DIR *dir = opendir("docs/examples");
	struct dirent *entry;
	size_t files = 0, changes = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		struct policy *policy = NULL;
		struct sl_err err;
		char path[300], *text;
		size_t size;

		snprintf(path, sizeof(path), "docs/examples/%s", entry->d_name);
		if (!strstr(entry->d_name, ".yaml") || policy_load(path, &policy, &err))
			continue;
		policy_free(policy);
		assert_int_equal(config_text_read(path, true, &text, &size, &err), 0);
		changes += check_changes(path, text, 1);
		files++;
		free(text);
	}
	closedir(dir);
	print_message("%zu files, %zu changes\n", files, changes);
	assert_true(files >= 6 && changes >= 150);
}

/* ---- random files ---- */

static void put_limit(FILE *out, size_t number)
{
	static const char *const rates[] = {
		"100K packets/s",
		"'5000 packets/s'",
		"0.5M packets/m",
		"[10K packets/s, 1M packets/h]",
		"\n    - 20K packets/s   # at once\n    - 2M packets/h",
	};
	const char *keys[8], *comment = RNG_ANY("", "", "   # why: [", " # \xe2\x82\xac");
	char name[40];
	size_t count = 0;

	if (rng_below(4) == 0) {
		fprintf(out, "  - {name: l%zu, rate: %s, match: {dport: %s}}%s\n", number,
			RNG_ANY("1K packets/s", "'900 packets/s'", "[1K packets/s , 9K packets/m]"),
			RNG_ANY("53", "[53, 80]", "'1-7'"), comment);
		return;
	}
	snprintf(name, sizeof(name), "name: %s", RNG_ANY("l%zu", "'l%zu'", "\"l%zu\""));
	keys[count++] = RNG_ANY("mode: enforce", "mode:   shadow", "accounting: 'exact'");
	keys[count++] = RNG_ANY("per: source", "per: [source]", "per:\n    - source\n    - dst");
	keys[count++] =
		RNG_ANY("match:\n      proto: tcp\n      # the web\n      dport: [ 80, 443 ]",
			"match: {proto: udp}", "match: {src: 10.0.0.0/8, dport: 9}");
	fprintf(out, "%s  - ", RNG_ANY("", "\n", "  # next\n", "\n  # a\n  # b\n"));
	fprintf(out, name, number);
	fprintf(out, "%s\n    rate: %s\n", comment, rates[rng_below(5)]);
	for (size_t i = 0; i < count; i++)
		if (rng_below(2))
			fprintf(out, "    %s%s\n", keys[i],
				strchr(keys[i], '\n') ? "" : RNG_ANY("", "  # so"));
}

static char *random_file(void)
{
	size_t size, limits = 1 + rng_below(5);
	char *text;
	FILE *out = open_memstream(&text, &size);

	fputs(RNG_ANY("", "# Ours.\n\n", "---\n"), out);
	fputs(RNG_ANY("", "block: [10.1.0.0/16, 10.2.0.0/16]  # bad\n", "block: 10.1.0.0/16\n",
		      "block:\n- 10.1.0.1/32\n- {prefix: 10.2.0.0/16, reason: 'x y'}  # z\n"),
	      out);
	fputs(RNG_ANY("",
		      "sets:\n  a: [192.0.2.1/32]\n  b:\n    - 192.0.2.2  # b\n    - 2001:DB8::1\n"),
	      out);
	fputs(RNG_ANY("", "table: {buckets: 1M}\n", "fragments: limit   # the default\n"), out);
	fputs("limits:\n", out);
	for (size_t i = 0; i < limits; i++)
		put_limit(out, i);
	fputs(RNG_ANY("", "# the end\n", "\nmetrics:\n  listen: 127.0.0.1:9810\n"), out);
	fclose(out);
	return text;
}

TEST(test_random)
{
	size_t changes = 0;

	rng_start("write_into");
	for (int i = 0; i < 60; i++) {
		char *text = random_file();

		changes += check_changes("x.yaml", text, 3);
		free(text);
	}
	print_message("%zu changes\n", changes);
	assert_true(changes > 60 * 10);
}

TEST_MAIN
