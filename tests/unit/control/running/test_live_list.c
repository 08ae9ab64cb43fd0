// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_live_list.c - whatever was changed, in whatever order: the list of live changes, applied to
 * the file, makes what is in force, and every operation of it still applies. And it stays short.
 */
#include "lib/test.h"

#include "control/running/live.h"
#include "lib/policy_text.h"
#include "lib/rng.h"

#define LIMITS 4
#define SETS 3
#define SOURCES 8

static const char file_text[] =
	"sets: {s0: [10.0.0.1, 10.0.0.2], s1: [10.0.0.3]}\n"
	"block: ['@s1', 10.0.0.4]\n"
	"exempt: [10.0.0.5]\n"
	"limits:\n"
	"- {name: l0, match: {src: '@s0'}, rate: 100 packets/s}\n"
	"- {name: l1, match: {dport: 53}, rate: [100 packets/s, 1000 packets/h],\n"
	"   overrides: [{src: 10.0.0.6, rate: [200 packets/s, 3000 packets/h]}]}\n";

struct both {
	struct policy *file, *running;
	json_t *live;
};

static void open_both(struct both *b)
{
	*b = (struct both){ .file = parse(file_text),
			    .running = parse(file_text),
			    .live = json_array() };
}

static void close_both(struct both *b)
{
	policy_free(b->file);
	policy_free(b->running);
	json_decref(b->live);
}

/* A daemon that starts has the same rules. */
static void assert_replays(struct both *b)
{
	json_t *live = json_deep_copy(b->live), *dropped = json_array();
	struct policy *again = parse(file_text);
	char *want = policy_lines(b->running), *got;

	live_replay(live, again, 1, dropped);
	got = policy_lines(again);
	if (json_array_size(dropped) || strcmp(want, got) != 0)
		fail_msg("dropped: %s\nin force:\n%s\nafter a restart:\n%s\nby: %s",
			 json_dumps(dropped, 0), want, got, json_dumps(b->live, 0));
	free(want);
	free(got);
	policy_free(again);
	json_decref(live);
	json_decref(dropped);
}

/* Applies an operation as a command does, and frees it; false: it is refused. */
static bool change(struct both *b, json_t *op)
{
	struct sl_err err;
	bool done = !live_apply(op, b->running, &err);

	if (done)
		assert_int_equal(live_add(b->live, op, b->file, b->running), 0);
	json_decref(op);
	return done;
}

static void must(struct both *b, json_t *op)
{
	char *text = json_dumps(op, 0);

	if (!change(b, op))
		fail_msg("refused: %s", text);
	free(text);
	assert_replays(b);
}

static json_t *set_op(const char *op, const char *name, const char *prefixes)
{
	return json_pack("{s:s, s:s, s:o}", "op", op, "name", name, "prefixes",
			 json_loads(prefixes, JSON_DECODE_ANY, NULL));
}

static json_t *limit_set(const char *name, const char *pair)
{
	return json_pack("{s:s, s:s, s:[s]}", "op", "limit set", "name", name, "pairs", pair);
}

static json_t *limit_add(const char *name, const char *rest)
{
	char yaml[200];

	snprintf(yaml, sizeof(yaml), "name: %s\n%s", name, rest);
	return json_pack("{s:s, s:s, s:s}", "op", "limit add", "name", name, "yaml", yaml);
}

static json_t *limit_del(const char *name)
{
	return json_pack("{s:s, s:s}", "op", "limit del", "name", name);
}

/* A limit must not match on an empty set: it gets another match first, and a set is emptied
 * last. */
TEST(test_a_set_is_emptied_last)
{
	struct both b;

	open_both(&b);
	must(&b, set_op("set del", "s0", "[\"10.0.0.1\"]"));
	must(&b, limit_set("l0", "match.src=10.0.0.0/8"));
	must(&b, set_op("set del", "s0", "[\"10.0.0.2\"]"));
	/* More of the limit, with the set as it is. */
	must(&b, limit_set("l0", "rate=7 packets/s"));
	must(&b, limit_set("l0", "burst=9"));
	must(&b, limit_del("l0"));
	must(&b, limit_add("l0", "rate: 3 packets/s\n"));
	must(&b, limit_del("l0"));
	must(&b, set_op("set add", "s0", "[\"10.0.0.7\"]"));
	must(&b, limit_add("l0", "match: {src: '@s0'}\nrate: 3 packets/s\n"));
	close_both(&b);
	/* A set of live changes only, and a limit that was added with it. */
	open_both(&b);
	must(&b, set_op("set add", "s2", "[\"10.0.0.1\"]"));
	must(&b, limit_add("l2", "match: {src: '@s2'}\nrate: 3 packets/s\n"));
	must(&b, limit_set("l2", "match.src=10.0.0.1"));
	must(&b, set_op("set replace", "s2", "[]"));
	must(&b, set_op("set replace", "s2", "[]"));
	assert_int_equal(json_array_size(b.live), 4);
	close_both(&b);
}

static json_t *override_set(const char *name, const char *prefix)
{
	return json_pack("{s:s, s:s, s:s, s:[s, s]}", "op", "override set", "name", name, "prefix",
			 prefix, "pairs", "rate=20 packets/s", "burst=");
}

static json_t *override_del(const char *name, const char *prefix)
{
	return json_pack("{s:s, s:s, s:s}", "op", "override del", "name", name, "prefix", prefix);
}

/* What "override del" removes is there when it is applied again. */
TEST(test_overrides_of_a_changed_limit)
{
	struct both b;

	open_both(&b);
	must(&b, limit_set("l0", "burst=9"));
	must(&b, override_set("l0", "10.0.0.7"));
	must(&b, override_del("l0", "10.0.0.7"));
	must(&b, override_set("l0", "10.0.0.7"));
	must(&b, limit_set("l0", "burst=8"));
	must(&b, override_del("l0", "10.0.0.7"));
	must(&b, limit_add("l2",
			   "rate: 3 packets/s\noverrides: [{src: 10.0.0.7, rate: 9 packets/s}]\n"));
	must(&b, override_del("l2", "10.0.0.7"));
	must(&b, override_set("l2", "10.0.0.7"));
	must(&b, override_del("l2", "10.0.0.7"));
	close_both(&b);
}

static char *name_at(const char *what, u64 below, char name[8])
{
	snprintf(name, 8, "%s%llu", what, rng_below(below));
	return name;
}

static json_t *any_source(void)
{
	return json_sprintf("10.0.0.%llu", 1 + rng_below(SOURCES));
}

static json_t *random_set(void)
{
	json_t *prefixes = json_array();
	u64 of = rng() & rng();
	char name[8];

	for (u32 i = 1; i <= SOURCES; i++)
		if (of >> i & 1)
			json_array_append_new(prefixes, json_sprintf("10.0.0.%u", i));
	return json_pack("{s:s, s:s, s:o}", "op",
			 RNG_ANY("set add", "set del", "set del", "set replace"), "name",
			 name_at("s", SETS, name), "prefixes", prefixes);
}

static json_t *random_limit(void)
{
	char name[8];

	name_at("l", LIMITS, name);
	switch (rng_below(6)) {
	case 0:
		return limit_del(name);
	case 1:
		return limit_add(
			name,
			RNG_ANY("rate: 3 packets/s\n",
				"rate: 3 packets/s\noverrides: [{src: 10.0.0.7, rate: 9 packets/s}]\n",
				"match: {src: '@s0'}\nrate: 4 packets/s\n",
				"match: {src: '@s2'}\nrate: [5 packets/s, 50 packets/h]\n"));
	default:
		return limit_set(name,
				 RNG_ANY("match.src=10.0.0.0/8", "match.src=@s0", "match.src=@s1",
					 "match.src=@s2", "match.src=", "rate=7 packets/s",
					 "rate=7 packets/s,70 packets/h", "burst=9", "burst=",
					 "mode=shadow", "algorithm=fixed-window", "algorithm="));
	}
}

static json_t *random_override(void)
{
	char name[8];

	name_at("l", LIMITS, name);
	if (!rng_below(3))
		return json_pack("{s:s, s:s, s:o}", "op", "override del", "name", name, "prefix",
				 any_source());
	return json_pack("{s:s, s:s, s:o, s:[s, s]}", "op", "override set", "name", name, "prefix",
			 any_source(), "pairs",
			 RNG_ANY("rate=20 packets/s", "rate=20 packets/s,90 packets/h"),
			 RNG_ANY("burst=", "burst=", "burst=8"));
}

static json_t *random_entry(void)
{
	json_t *prefix = rng_below(3) ? any_source() : json_sprintf("@s%llu", rng_below(SETS));

	return json_pack("{s:s, s:o, s:s}", "op",
			 RNG_ANY("block add", "block del", "exempt add", "exempt del"), "prefix",
			 prefix, "reason", RNG_ANY("", "why"));
}

TEST(test_random_changes)
{
	static json_t *(*const make[])(void) = { random_set,   random_set,	random_limit,
						 random_limit, random_override, random_entry };
	struct both b;
	u32 done = 0;

	rng_start("live changes");
	for (u32 round = 0; round < 20; round++) {
		open_both(&b);
		for (u32 i = 0; i < 200; i++) {
			if (!change(&b, make[rng_below(6)]()))
				continue;
			done++;
			assert_replays(&b);
			assert_true(json_array_size(b.live) < 100);
		}
		close_both(&b);
	}
	assert_true(done > 1000);
}

TEST_MAIN
