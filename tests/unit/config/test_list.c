// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_list.c - block and exempt beside a naive list: random entries come, change, end and go, of
 * the file, live, of other nodes, and of a set. What is found by prefix is what a walk finds.
 */
#include "lib/test.h"
#include "lib/policy_text.h"
#include "lib/rng.h"

#define HOSTS 40
#define NODES_HOST 30 /* from here on other nodes have blocks, too */
#define NAIVE_MAX 200

enum naive_kind {
	NAIVE_FILE,
	NAIVE_LIVE,
	NAIVE_NODES,
};

struct naive_entry {
	enum naive_kind kind;
	u32 host;
	u64 until_utc_ns;
};

static struct naive {
	struct naive_entry entry[NAIVE_MAX];
	size_t count;
	bool in_set[HOSTS], set_listed;
} naive;

/* Addresses, and /31s with the same address. */
static struct sl_prefix prefix_at(u32 host)
{
	char text[32];

	snprintf(text, sizeof(text), "192.0.2.%u%s", host & ~1U, host & 1 ? "/31" : "");
	return prefix_of(text);
}

static u32 host_of(const struct sl_prefix *prefix)
{
	return (u32)(prefix->addr.hi >> 32 & 255) | (prefix->len == 31);
}

/* ---- the naive list ---- */

static void naive_drop(size_t at)
{
	memmove(&naive.entry[at], &naive.entry[at + 1],
		(--naive.count - at) * sizeof(naive.entry[0]));
}

/* Removes those for a host from `from` on. */
static size_t naive_del(u32 host, size_t from)
{
	size_t before = naive.count;

	for (size_t i = naive.count; i-- > from;)
		if (naive.entry[i].host == host)
			naive_drop(i);
	return before - naive.count;
}

static void naive_add(enum naive_kind kind, u32 host, u64 until_utc_ns)
{
	struct naive_entry entry = { kind, host, until_utc_ns };

	for (size_t i = 0; i < naive.count; i++) {
		if (naive.entry[i].host != host)
			continue;
		naive.entry[i] = entry;
		naive_del(host, i + 1);
		return;
	}
	assert_true(naive.count < NAIVE_MAX);
	naive.entry[naive.count++] = entry;
}

static size_t naive_expire(u64 now_utc_ns, bool nodes)
{
	size_t before = naive.count;

	for (size_t i = naive.count; i-- > 0;)
		if (nodes ? naive.entry[i].kind == NAIVE_NODES
			  : naive.entry[i].until_utc_ns &&
				    naive.entry[i].until_utc_ns <= now_utc_ns)
			naive_drop(i);
	return before - naive.count;
}

static const struct naive_entry *naive_find(u32 host)
{
	for (size_t i = 0; i < naive.count; i++)
		if (naive.entry[i].host == host)
			return &naive.entry[i];
	return NULL;
}

/* ---- both ---- */

static bool is_as(const struct list_entry *entry, const struct naive_entry *wanted)
{
	return host_of(&entry->prefix) == wanted->host &&
	       entry->until_utc_ns == wanted->until_utc_ns && !entry->from &&
	       entry->derived == (wanted->kind == NAIVE_NODES) &&
	       !entry->pos.line == (wanted->kind != NAIVE_FILE);
}

static void check(const struct policy *policy, u32 round)
{
	const struct list_def *list = &policy->list[LIST_BLOCK];
	size_t file = 0, of_set = 0, wanted_of_set = 0;

	for (u32 host = 0; host < HOSTS; host++) {
		const struct naive_entry *wanted = naive_find(host);
		struct sl_prefix prefix = prefix_at(host);
		struct list_entry *found = list_find_entry(list, &prefix);

		if (wanted ? !found || !is_as(found, wanted) : !!found)
			fail_msg("round %u: host %u", round, host);
		wanted_of_set += naive.set_listed && naive.in_set[host];
	}
	/* The file's in their order. */
	for (size_t i = 0; i < list->count; i++) {
		of_set += list->entry[i].from != 0;
		if (list->entry[i].from || !list->entry[i].pos.line)
			continue;
		while (file < naive.count && naive.entry[file].kind != NAIVE_FILE)
			file++;
		if (file == naive.count || !is_as(&list->entry[i], &naive.entry[file++]))
			fail_msg("round %u: entry %zu", round, i);
	}
	assert_int_equal(of_set, wanted_of_set);
	assert_int_equal(list->count, naive.count + of_set);
}

static void derive(struct policy *policy)
{
	struct list_entry entry[HOSTS] = { { .until_utc_ns = 0 } };
	size_t count = 0;

	policy_list_underive(policy);
	naive_expire(0, true);
	for (u32 host = NODES_HOST; host < HOSTS; host++) {
		if (rng_below(2))
			continue;
		entry[count].prefix = prefix_at(host);
		entry[count++].until_utc_ns = 100;
		if (!naive_find(host) && !(naive.set_listed && naive.in_set[host]))
			naive_add(NAIVE_NODES, host, 100);
	}
	assert_int_equal(policy_list_derive(policy, LIST_BLOCK, entry, count), 0);
}

static void change_set(struct policy *policy, u32 host)
{
	struct sl_prefix prefix = prefix_at(host);
	struct list_set ref = { .name = "lab" };
	struct sl_err err;

	if (rng_below(3) == 0) {
		if (naive.set_listed)
			assert_int_equal(policy_list_del_set(policy, LIST_BLOCK, "lab", &err), 0);
		else
			assert_int_equal(policy_list_add_set(policy, LIST_BLOCK, &ref, &err), 0);
		naive.set_listed = !naive.set_listed;
		return;
	}
	assert_int_equal((naive.in_set[host] ? policy_set_del : policy_set_add)(policy, "lab",
										&prefix, 1, &err),
			 0);
	naive.in_set[host] = !naive.in_set[host];
}

static void change_entry(struct policy *policy, u32 host, u64 now_utc_ns)
{
	struct list_entry entry = { .prefix = prefix_at(host) };
	const struct naive_entry *had = naive_find(host);
	struct sl_err err;

	/* A change to what other nodes have is made without theirs (change_begin()). */
	if (had && had->kind == NAIVE_NODES)
		return;
	if (rng_below(2)) {
		assert_int_equal(policy_list_del(policy, LIST_BLOCK, &entry.prefix, &err),
				 naive_del(host, 0) ? 0 : -ENOENT);
		return;
	}
	entry.until_utc_ns = rng_below(2) ? 0 : now_utc_ns + 1 + rng_below(30);
	assert_int_equal(policy_list_add(policy, LIST_BLOCK, &entry, &err), 0);
	naive_add(NAIVE_LIVE, host, entry.until_utc_ns);
}

static struct policy *file(void)
{
	char text[4096] = "sets: {lab: []}\nblock:\n", line[64], prefix[SL_PREFIX_TEXT];

	memset(&naive, 0, sizeof(naive));
	for (u32 i = 0; i < 30; i++) {
		u32 host = rng_below(HOSTS); /* some twice */
		struct sl_prefix at = prefix_at(host);

		snprintf(line, sizeof(line), "  - %s\n",
			 sl_prefix_format(&at, prefix, sizeof(prefix)));
		strcat(text, line);
		naive.entry[naive.count++] = (struct naive_entry){ NAIVE_FILE, host, 0 };
	}
	return parse(text);
}

TEST(test_beside_a_naive_list)
{
	rng_start("list");
	for (u32 run = 0; run < 40; run++) {
		struct policy *policy = file(), *copy;

		check(policy, 0);
		for (u32 round = 1; round < 200; round++) {
			u32 what = rng_below(20), host = rng_below(HOSTS);

			if (what == 0) {
				derive(policy);
			} else if (what == 1) {
				assert_int_equal(policy_list_expire(policy, round),
						 naive_expire(round, false));
			} else if (what == 2) {
				assert_int_equal(policy_clone(policy, &copy), 0);
				policy_free(policy);
				policy = copy;
			} else if (what == 3) {
				change_set(policy, host);
			} else {
				change_entry(policy, host, round);
			}
			check(policy, round);
		}
		policy_free(policy);
	}
}

TEST_MAIN
