// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sets change live, and with them every place that names one: matches, block, exempt. A change is
 * made at all places or at none.
 */
#include <unistd.h>

#include "lib/test.h"
#include "lib/policy_text.h"

static const char base[] =
	"sets: {a: [192.0.2.0/24], b: [198.51.100.1, '2001:db8::/32'], none: []}\n"
	"block: ['@b', 203.0.113.7, {prefix: '@none', until: '2030-01-31T12:00:00Z', reason: x}]\n"
	"exempt: [10.0.0.0/8]\n"
	"limits:\n"
	"  - {name: web, rate: 5 packets/s, match: {src: ['@a', 10.0.0.0/8], dst: '@b'}}\n"
	"  - {name: all, rate: 5 packets/s}\n";

static bool has(const struct sl_prefix *list, size_t count, const char *text)
{
	struct sl_prefix wanted = prefix_of(text);

	for (size_t i = 0; i < count; i++)
		if (sl_prefix_equal(&list[i], &wanted))
			return true;
	return false;
}

static bool src_has(const struct policy *policy, const char *text)
{
	return has(policy->limit[0].match.src, policy->limit[0].match.src_count, text);
}

static bool blocks(const struct policy *policy, const char *text)
{
	const struct list_def *list = &policy->list[LIST_BLOCK];

	for (size_t i = 0; i < list->count; i++)
		if (has(&list->entry[i].prefix, 1, text))
			return true;
	return false;
}

TEST(test_references)
{
	struct policy *policy = parse(base), *back;
	const struct list_def *block = &policy->list[LIST_BLOCK];
	const struct match_def *web = &policy->limit[0].match;
	char *text = written(policy), *again;

	assert_int_equal(web->src_count, 2);
	assert_int_equal(web->dst_count, 2);
	assert_int_equal(web->sets[MATCH_DST].prefixes, 2);
	assert_int_equal(block->count, 3);
	assert_int_equal(block->set_count, 2);
	assert_int_equal(block->entry[0].from, 0);
	assert_int_equal(block->entry[2].from, 1);
	assert_int_equal(block->entry[2].pos.line, 2);
	assert_non_null(strstr(text, "src: [10.0.0.0/8, '@a']"));
	assert_non_null(strstr(text, "dst: ['@b']"));
	assert_non_null(strstr(text, "  - '@b'\n  - {prefix: '@none', until: "
				     "'2030-01-31T12:00:00Z', reason: x}\n"));
	back = parse(text);
	again = written(back);
	assert_string_equal(text, again);
	policy_free(policy);
	policy_free(back);
	free(text);
	free(again);
}

TEST(test_add_del_replace)
{
	struct sl_prefix two[] = { prefix_of("192.0.2.0/24"), prefix_of("172.16.0.0/12") };
	struct sl_prefix bad = prefix_of("198.51.100.1"), last[2];
	struct policy *policy = parse(base);
	struct sl_err err;

	/* One is in it already. */
	assert_int_equal(policy_set_add(policy, "a", two, 2, &err), 0);
	assert_int_equal(policy_find_set(policy, "a")->count, 2);
	assert_true(policy_find_set(policy, "a")->live && !policy_find_set(policy, "b")->live);
	assert_true(src_has(policy, "172.16.0.0/12") && src_has(policy, "10.0.0.0/8"));
	assert_int_equal(policy->limit[0].match.src_count, 3);
	assert_int_equal(policy->limit[1].match.src_count, 0);

	/* In block and in dst. */
	assert_int_equal(policy_set_del(policy, "b", &bad, 1, &err), 0);
	assert_false(blocks(policy, "198.51.100.1"));
	assert_true(blocks(policy, "2001:db8::/32") && blocks(policy, "203.0.113.7"));
	assert_int_equal(policy->limit[0].match.dst_count, 1);

	assert_int_equal(policy_set_replace(policy, "b", two, 2, &err), 0);
	assert_true(blocks(policy, "172.16.0.0/12") && !blocks(policy, "2001:db8::/32"));
	assert_int_equal(policy->list[LIST_BLOCK].count, 3);

	/* An empty set fills up: places that named it in vain match addresses now. */
	assert_int_equal(policy_set_add(policy, "none", &bad, 1, &err), 0);
	assert_true(blocks(policy, "198.51.100.1"));
	assert_true(policy->list[LIST_BLOCK].entry[3].until_utc_ns);

	/* New ones keep their order, which searching needs. */
	last[0] = prefix_of("1.1.1.1");
	assert_int_equal(policy_set_add(policy, "ab", last, 1, &err), 0);
	assert_int_equal(policy_set_replace(policy, "0", last, 0, &err), 0);
	assert_int_equal(policy->set_count, 5);
	assert_int_equal(policy_find_set(policy, "ab")->count, 1);
	assert_int_equal(policy_find_set(policy, "0")->count, 0);
	assert_non_null(policy_find_set(policy, "none"));
	policy_free(policy);
}

TEST(test_refused)
{
	struct sl_prefix a[] = { prefix_of("192.0.2.0/24"), prefix_of("1.2.3.4") };
	struct sl_prefix b[] = { prefix_of("198.51.100.1"), prefix_of("2001:db8::/32") };
	struct policy *policy = parse(base);
	char *before = written(policy), *after;
	struct sl_err err;

	assert_int_equal(policy_set_del(policy, "a", &a[1], 1, &err), -ENOENT);
	assert_string_equal(err.message, "set \"a\" has none of these prefixes");
	assert_int_equal(policy_set_del(policy, "c", a, 1, &err), -ENOENT);
	assert_int_equal(policy_set_del(policy, "b", b, 2, &err), -EINVAL);
	assert_non_null(strstr(err.message, "set \"b\" would be empty, and limit \"web\" matches"));
	assert_int_equal(policy_set_replace(policy, "b", NULL, 0, &err), -EINVAL);
	assert_int_equal(policy_set_add(policy, "Bad", a, 1, &err), -EINVAL);
	assert_int_equal(policy_set_add(policy, "", a, 1, &err), -EINVAL);
	after = written(policy);
	assert_string_equal(before, after);
	free(before);
	free(after);
	policy_free(policy);
}

TEST(test_lists)
{
	struct policy *policy = parse(base);
	struct sl_prefix in_set = prefix_of("198.51.100.1");
	struct list_set ref = { .name = "a", .entry.until_utc_ns = 5000 };
	struct sl_prefix more = prefix_of("1.2.3.4");
	struct sl_err err;

	assert_int_equal(policy_list_del(policy, LIST_BLOCK, &in_set, &err), -ENOENT);
	assert_string_equal(err.message, "block: 198.51.100.1 is part of the set @b; accepted: "
					 "set del b 198.51.100.1, or block del @b");
	assert_int_equal(policy_list_del_set(policy, LIST_BLOCK, "a", &err), -ENOENT);
	assert_int_equal(policy_list_del_set(policy, LIST_BLOCK, "b", &err), 0);
	assert_false(blocks(policy, "198.51.100.1"));
	assert_int_equal(policy->list[LIST_BLOCK].count, 1);

	assert_int_equal(policy_list_add_set(policy, LIST_BLOCK, &ref, &err), 0);
	assert_true(blocks(policy, "192.0.2.0/24"));
	assert_int_equal(policy_set_add(policy, "a", &more, 1, &err), 0);
	assert_true(blocks(policy, "1.2.3.4") && src_has(policy, "1.2.3.4"));
	ref.entry.until_utc_ns = 9000; /* again: another deadline */
	assert_int_equal(policy_list_add_set(policy, LIST_BLOCK, &ref, &err), 0);
	assert_int_equal(policy->list[LIST_BLOCK].count, 3);

	/* The deadline ends it here, not in other places that name the set. */
	policy_list_expire(policy, 8999);
	assert_true(blocks(policy, "1.2.3.4"));
	policy_list_expire(policy, 9000);
	assert_false(blocks(policy, "1.2.3.4"));
	assert_true(blocks(policy, "203.0.113.7") && src_has(policy, "1.2.3.4"));
	strcpy(ref.name, "nobody");
	assert_int_equal(policy_list_add_set(policy, LIST_EXEMPT, &ref, &err), -ENOENT);
	policy_free(policy);
}

/* A set of a file is written as that file, until it is changed. */
TEST(test_file)
{
	char path[] = "/tmp/sluice-set-XXXXXX", yaml[128], wanted[64];
	struct sl_prefix more = prefix_of("1.2.3.4");
	struct policy *policy, *clone;
	int fd = mkstemp(path);
	struct sl_err err;
	char *text;

	assert_int_equal(write(fd, "192.0.2.0/24\n", 13), 13);
	close(fd);
	snprintf(yaml, sizeof(yaml), "sets: {bad: {file: %s}}\nblock: ['@bad']\n", path);
	policy = parse(yaml);
	assert_int_equal(policy_clone(policy, &clone), 0);
	snprintf(wanted, sizeof(wanted), "  'bad': {file: %s}\n", path);
	text = written(clone);
	assert_non_null(strstr(text, wanted));
	free(text);
	assert_int_equal(policy_set_add(clone, "bad", &more, 1, &err), 0);
	text = written(clone);
	assert_non_null(strstr(text, "  'bad': [192.0.2.0/24, 1.2.3.4]\n"));
	free(text);
	unlink(path);
	policy_free(policy);
	policy_free(clone);
}

TEST_MAIN
