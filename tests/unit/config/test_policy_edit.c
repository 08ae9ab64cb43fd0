// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Live changes: each is made whole, or the policy stays unchanged and the error has the reason. */
#include "lib/test.h"
#include "lib/policy_text.h"
#include "lib/rng.h"

static const char base[] =
	"sets: {lab: [192.0.2.0/24, 198.51.100.0/24]}\n"
	"block: [10.0.0.0/8, 10.0.0.0/8, 203.0.113.7]\n"
	"limits:\n"
	"  - {name: web, rate: 1000 packets/s, burst: 2000, match: {proto: tcp, dport: 443}}\n"
	"  - {name: heavy, rate: 1M bytes/s, action: tag, tag: {dscp: cs1, mark: 7}}\n";

static char *limit_text(const struct policy *policy, const char *name)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(limit_write(policy_find_limit(policy, name), out, 0), 0);
	fclose(out);
	return text;
}

#define PAIRS_MAX 8

/* Pairs as one text: "rate=5 packets/s; burst=". */
static int set(struct policy *policy, const char *name, const char *pairs, struct sl_err *err)
{
	char text[256], *pair[PAIRS_MAX], *next = text;
	size_t count = 0;

	snprintf(text, sizeof(text), "%s", pairs);
	while (next) {
		pair[count++] = next;
		next = strstr(next, "; ");
		if (next) {
			*next = 0;
			next += 2;
		}
	}
	return policy_limit_set(policy, name, pair, count, err);
}

/* Changes of a limit, and what is then written of it after its name. */
struct set_case {
	const char *pairs, *text;
};

static const struct set_case web[] = {
	{ "rate=50 packets/m",
	  "match:\n  proto: [tcp]\n  dport: [443]\nrate: 50 packets/m\nburst: 2000\n" },
	{ "burst=; match.dport=80,8000-8010; mode=shadow",
	  "match:\n  proto: [tcp]\n  dport: [80, 8000-8010]\nrate: 1000 packets/s\n"
	  "mode: shadow\n" },
	{ "match.dport=; match.tcp_flags=syn,!ack; rate=5 connections/s",
	  "match:\n  proto: [tcp]\n  tcp_flags: ['syn,!ack']\nrate: 5 connections/s\n"
	  "burst: 2000\n" },
	{ "match=; per=source,dst; prefix.ipv4=24; burst=",
	  "per: [source, dst]\nprefix: {ipv4: 24}\nrate: 1000 packets/s\n" },
	{ "match.src=@lab,2001:db8::/32; burst=; match.dport=; match.proto=",
	  "match:\n  src: ['2001:db8::/32', '@lab']\nrate: 1000 packets/s\n" },
	{ "algorithm=fixed-window; burst=; accounting=exact; on_full=closed",
	  "match:\n  proto: [tcp]\n  dport: [443]\nrate: 1000 packets/s\n"
	  "algorithm: fixed-window\naccounting: exact\non_full: closed\n" },
	{ "rate=10 packets/s,500 packets/h; burst=20,30; match=",
	  "rate: [10 packets/s, 500 packets/h]\nburst: [20, 30]\n" },
	{ "rate=[10 packets/s, 500 packets/h]; burst=; match=",
	  "rate: [10 packets/s, 500 packets/h]\n" },
	{ "prefix.ipv4=32,24; prefix.ipv6=64,56,48; prefix_scale.ipv6=1,4,16; match=",
	  "prefix: {ipv4: [32, 24], ipv6: [64, 56, 48]}\nprefix_scale: {ipv6: [1, 4, 16]}\n"
	  "rate: 1000 packets/s\nburst: 2000\n" },
	{ "per=source,dst; dst_prefix.ipv6=64; match=",
	  "per: [source, dst]\ndst_prefix: {ipv6: 64}\nrate: 1000 packets/s\nburst: 2000\n" },
	{ "throttle={soft: 12.5%}; match=; on_full=prefix",
	  "rate: 1000 packets/s\nburst: 2000\nthrottle: {soft: 12.5%}\non_full: prefix\n" },
	{ "throttle.elastic=200%; throttle.while.cpu=70%; throttle.while.load_signal=api-load; match=",
	  "rate: 1000 packets/s\nburst: 2000\n"
	  "throttle: {elastic: 200%, while: {cpu: 70%, load_signal: {'api-load': 80%}}}\n" },
	{ "throttle.elastic=200%; throttle.while.cpu=70%; match=; throttle.while.cpu=; throttle.elastic=",
	  "rate: 1000 packets/s\nburst: 2000\n" },
	{ "ban={after: 1000 drops/10s, for: 5m}; match.tcp_flags=ack; match.dport=; match.proto=; burst=; algorithm=leaky-bucket",
	  "match:\n  tcp_flags: [ack]\nrate: 1000 packets/s\nalgorithm: leaky-bucket\n"
	  "ban: {after: 1000 drops/10s, for: 5m}\n" },
	{ "ban.after=1 drop/m; ban.for=30s; ban.spoofable=yes; ban.factor=1.5; ban.max=2h; match=",
	  "rate: 1000 packets/s\nburst: 2000\n"
	  "ban: {after: 1 drop/1m, for: 30s, factor: 1.50, max: 2h, spoofable: true}\n" },
	{ "throttle={soft: 10%, for: 30s}; match=; algorithm=sliding-window; burst=",
	  "rate: 1000 packets/s\nalgorithm: sliding-window\n"
	  "throttle: {soft: 10%, for: 30s}\n" },
}, heavy[] = {
	{ "tag.dscp=ef; tag.mark=",
	  "rate: 1M bytes/s\naction: tag\ntag:\n  dscp: ef\n" },
	{ "action=drop",
	  "rate: 1M bytes/s\ntag:\n  dscp: cs1\n  mark: 0x7\n" },
	{ "action=drop; tag=",
	  "rate: 1M bytes/s\n" },
	{ "action=; tag.dscp=; tag.mark=",
	  "rate: 1M bytes/s\n" },
	{ "rate=1 packets/s; rate=2 packets/s; per=",
	  "rate: 2 packets/s\naction: tag\ntag:\n  dscp: cs1\n  mark: 0x7\n" },
};

static void check_set(const char *name, const struct set_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct policy *policy = parse(base);
		struct sl_err err;
		char *text;

		if (set(policy, name, cases[i].pairs, &err))
			fail_msg("%s: %s", cases[i].pairs, err.message);
		text = limit_text(policy, name);
		assert_string_equal(text + strlen("name: \n") + strlen(name), cases[i].text);
		assert_true(policy_find_limit(policy, name)->pos.line >= 4);
		free(text);
		policy_free(policy);
	}
}

TEST(test_limit_set)
{
	check_set("web", web, COUNT(web));
	check_set("heavy", heavy, COUNT(heavy));
}

/* Changes nothing. */
static void check_refused(const char *name, const char *pairs, int code, const char *words)
{
	struct policy *policy = parse(base);
	char *before = written(policy), *after;
	struct sl_err err;
	int rc = set(policy, name, pairs, &err);

	if (rc != code || !strstr(err.message, words))
		fail_msg("%s: %d, %s", pairs, rc, err.message);
	assert_int_equal(err.line, 0);
	assert_string_equal(err.file, "");
	after = written(policy);
	assert_string_equal(before, after);
	free(before);
	free(after);
	policy_free(policy);
}

TEST(test_limit_set_refused)
{
	static const struct {
		const char *pairs, *words;
	} cases[] = {
		{ "rate=1 packets/s; rte=5",
		  "limit \"web\": unknown key \"rte\" (did you mean \"rate\"?); accepted: name, match" },
		{ "rte=", "limit \"web\": unknown key \"rte\" (did you mean \"rate\"?)" },
		{ "prefix.ipv4=32,24; prefix_scale.ipv4=1",
		  "prefix_scale.ipv4: found 1 multiplier for 2 prefix lengths" },
		{ "rate=1 packets/d", "limit \"web\": burst: found \"2000\": the rate is" },
		{ "mode=shadow; rate=fast", "limit \"web\": rate: found" },
		{ "rate", "accepted: KEY=VALUE" },
		{ "=5", "accepted: KEY=VALUE" },
		{ ".x=5", "accepted: KEY=VALUE" },
		{ "match.=5", "accepted: KEY=VALUE" },
		{ "burst=\n5", "accepted: KEY=VALUE" },
		{ "match.dport=80,http", "match.dport: found \"http\"" },
		{ "match.dport=80,,90", "match.dport: found" },
		{ "match.proto=icmp", "none of the protocols" },
		{ "match.src.x=1", "match.src: found a mapping" },
		{ "throttle.while.cpu.x=1", "unknown key \"cpu.x\"" },
		{ "match..src=1", "accepted: KEY=VALUE" },
		{ "rate=1 packets/s,2 packets/m", "burst: found one burst" },
		{ "throttle={soft: 10", "throttle: found \"{soft: 10\", column 1: " },
		{ "throttle=[]", "throttle: found an empty list; accepted: hard" },
		{ "throttle.while.cpu=70%", "throttle: found a mapping; accepted" },
		{ "prefix.ipv4=24,32", "prefix.ipv4: found \"32\" behind 24" },
		{ "match=everything", "accepted: a mapping of src" },
		{ "name=other", "a limit cannot be renamed" },
		{ "rate=", "key \"rate\" is missing" },
		{ "action=pass", "action is pass, but a rate is given" },
		{ "rate=; action=drop", "burst is about a rate" },
		{ "algorithm=fixed-window", "burst is given" },
		{ "algorithm=leaky-bucket", "burst is given" },
		{ "scope=world", "accepted: node, cluster" },
		{ "ban=5", "ban: found \"5\"; accepted: a mapping of after" },
		{ "ban.for=5m", "ban: key \"after\" is missing" },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		check_refused("web", cases[i].pairs, -EINVAL, cases[i].words);
	check_refused("heavy", "tag=", -EINVAL, "tag has neither");
	check_refused("nobody", "rate=1 packets/s", -ENOENT, "no limit \"nobody\"");
}

static char *any_pair(void)
{
	return (char *)RNG_ANY(
		"rate=10 packets/s", "rate=9 packets/s,100 packets/h", "rate=7 connections/s",
		"burst=", "burst=20", "burst=20,30", "algorithm=", "algorithm=fixed-window",
		"algorithm=leaky-bucket", "prefix.ipv4=32,24", "prefix.ipv4=24",
		"prefix.ipv4=", "prefix={ipv6: [64, 48]}", "prefix=", "prefix_scale.ipv4=1,4",
		"prefix_scale.ipv4=", "prefix_scale.ipv6=1,8", "prefix_scale=", "per=source",
		"per=dst", "per=", "dst_prefix.ipv6=64", "dst_prefix=", "action=tag", "action=pass",
		"action=drop", "rate=", "action=", "tag.mark=9", "tag.dscp=ef",
		"tag=", "tag.mark=", "match.dport=80,443", "match.dport=", "match.src=@lab",
		"match.src=", "match.proto=udp", "match.proto=", "match.tcp_flags=ack",
		"match=", "mode=shadow", "mode=", "on_full=prefix",
		"on_full=", "throttle={soft: 20%}", "throttle.for=5s",
		"throttle.soft=", "throttle=", "throttle={elastic: 200%, while: {cpu: 50%}}",
		"throttle.while.link=60%", "throttle.while.load_signal={a: 60%}",
		"throttle.while.load_signal={a: 70%}",
		"throttle.while.load_signal=", "ban.factor=1.5",
		"ban.factor=", "ban.after=10 drops/m", "scope=cluster",
		"scope=", "ban={after: 10 drops/s, for: 1m}", "ban.spoofable=yes", "ban.max=2h",
		"ban=");
}

/* Whatever was changed in whatever order, the policy is one that a file can have. */
TEST(test_limit_set_random)
{
	size_t done = 0;

	rng_start("policy_edit");
	for (int round = 0; round < 300; round++) {
		struct policy *policy = parse(base), *was, *again;
		char *before, *after, *read;
		struct sl_err err;

		for (int i = 0; i < 30; i++) {
			char *pair[3];
			size_t count = 1 + rng_below(3);
			int rc;

			for (size_t k = 0; k < count; k++)
				pair[k] = any_pair();
			before = written(policy);
			was = parse(before);
			rc = policy_limit_set(policy, "web", pair, count, &err);
			after = written(policy);
			again = parse(after);
			read = written(again);
			assert_string_equal(after, read);
			assert_true(limit_equal(policy_find_limit(policy, "web"),
						policy_find_limit(again, "web")));
			assert_int_equal(limit_equal(policy_find_limit(policy, "web"),
						     policy_find_limit(was, "web")),
					 !strcmp(before, after));
			if (rc)
				assert_string_equal(before, after);
			done += !rc;
			policy_free(was);
			policy_free(again);
			free(before);
			free(after);
			free(read);
		}
		policy_free(policy);
	}
	print_message("%zu of 9000 accepted\n", done);
	assert_true(done > 1500);
}

/* One part of a value makes two limits unlike. */
TEST(test_limits_unlike)
{
#define BAN(after, rest) "ban={after: " after ", for: 1m, spoofable: yes" rest "}"
#define ELASTIC(rest) "throttle={elastic: 200%, " rest "}"
	static char *const pairs[] = {
		BAN("10 drops/s", ""),
		BAN("11 drops/s", ""),
		BAN("10 drops/m", ""),
		BAN("10 drops/s", ", factor: 3"),
		BAN("10 drops/s", ", max: 1h"),
		"throttle={soft: 10%}",
		"throttle={soft: 10%, for: 5s}",
		ELASTIC("while: {cpu: 70%}"),
		ELASTIC("while: {link: 70%}"),
		ELASTIC("floor: 5%, while: {cpu: 70%}"),
		ELASTIC("while: {load_signal: {a: 60%}}"),
		ELASTIC("while: {load_signal: {a: 70%}}"),
		ELASTIC("while: {load_signal: {b: 70%}}"),
	};
	struct policy *policy[COUNT(pairs)];
	struct sl_err err;

	for (size_t i = 0; i < COUNT(pairs); i++) {
		policy[i] = parse(base);
		assert_int_equal(policy_limit_set(policy[i], "web", &pairs[i], 1, &err), 0);
		for (size_t k = 0; k <= i; k++)
			assert_int_equal(limit_equal(policy_find_limit(policy[i], "web"),
						     policy_find_limit(policy[k], "web")),
					 i == k);
	}
	for (size_t i = 0; i < COUNT(pairs); i++)
		policy_free(policy[i]);
}

static int add(struct policy *policy, const char *yaml, struct sl_err *err)
{
	return policy_limit_add(policy, "-", yaml, strlen(yaml), err);
}

TEST(test_limit_add)
{
	struct policy *policy = parse(base);
	struct sl_err err;

	assert_int_equal(add(policy, "name: one\nrate: 1 packets/s\nmatch: {src: '@lab'}", &err),
			 0);
	assert_int_equal(
		add(policy, "- {name: two, rate: 1 bits/s}\n- {name: three, rate: 1 bits/s}", &err),
		0);
	assert_int_equal(add(policy, "limits:\n  - {name: four, rate: 1 bits/s}", &err), 0);
	assert_int_equal(policy->limit_count, 6);
	assert_string_equal(policy->limit[5].name, "four");
	assert_int_equal(policy->limit[2].match.src_count, 2);
	assert_true(policy->limit[0].pos.line);
	assert_int_equal(policy->limit[5].pos.line, 0);

	/* all or none */
	assert_int_equal(add(policy, "- {name: five, rate: 1 bits/s}\n- {name: six}", &err),
			 -EINVAL);
	assert_int_equal(err.line, 2);
	assert_string_equal(err.file, "-");
	assert_int_equal(
		add(policy, "- {name: five, rate: 1 bits/s}\n- {name: web, rate: 1 bits/s}", &err),
		-EEXIST);
	assert_int_equal(add(policy, "limits: []\nblock: []", &err), -EINVAL);
	assert_int_equal(add(policy, "five", &err), -EINVAL);
	assert_int_equal(add(policy, "", &err), -EINVAL);
	assert_int_equal(policy->limit_count, 6);

	assert_int_equal(policy_limit_del(policy, "two", &err), 0);
	assert_int_equal(policy_limit_del(policy, "two", &err), -ENOENT);
	assert_int_equal(policy->limit_count, 5);
	assert_null(policy_find_limit(policy, "two"));
	assert_string_equal(policy->limit[4].name, "four");
	assert_int_equal(policy_check(policy, &err), 0);
	policy_free(policy);
}

static struct list_entry entry_of(const char *prefix, u64 until, const char *reason)
{
	struct list_entry entry = { .until_utc_ns = until };
	const char *why;

	assert_int_equal(sl_prefix_parse(prefix, &entry.prefix, &why), 0);
	snprintf(entry.reason, sizeof(entry.reason), "%s", reason);
	return entry;
}

TEST(test_lists)
{
	struct policy *policy = parse(base);
	struct list_def *block = &policy->list[LIST_BLOCK];
	struct list_entry entry = entry_of("192.0.2.1", 5000, "scan");
	struct sl_err err;
	char *text;

	assert_int_equal(policy_list_add(policy, LIST_BLOCK, &entry, &err), 0);
	assert_int_equal(block->count, 4);
	entry = entry_of("192.0.2.1", 9000, "a 'second' scan: #2");
	assert_int_equal(policy_list_add(policy, LIST_BLOCK, &entry, &err), 0);
	assert_int_equal(block->count, 4); /* replaced */
	assert_true(block->entry[3].until_utc_ns == 9000);
	assert_int_equal(policy_list_add(policy, LIST_EXEMPT, &entry, &err), 0);

	text = written(policy);
	assert_non_null(strstr(text,
			       "- {prefix: 192.0.2.1, until: '1970-01-01T00:00:00.000009000Z', "
			       "reason: 'a ''second'' scan: #2'}"));
	policy_free(parse(text));
	free(text);

	assert_int_equal(policy_list_expire(policy, 8999), 0);
	assert_int_equal(policy_list_expire(policy, 9000), 2);
	assert_int_equal(block->count, 3);
	assert_int_equal(policy->list[LIST_EXEMPT].count, 0);

	/* twice in the file, gone at once */
	entry = entry_of("10.0.0.0/8", 0, "");
	assert_int_equal(policy_list_del(policy, LIST_BLOCK, &entry.prefix, &err), 0);
	assert_int_equal(block->count, 1);
	assert_int_equal(policy_list_del(policy, LIST_BLOCK, &entry.prefix, &err), -ENOENT);
	assert_string_equal(err.message, "block: 10.0.0.0/8 is not listed");

	entry = entry_of("192.0.2.1", 0, "two\nlines");
	assert_int_equal(policy_list_add(policy, LIST_BLOCK, &entry, &err), -EINVAL);
	memset(entry.reason, 'x', sizeof(entry.reason));
	assert_int_equal(policy_list_add(policy, LIST_BLOCK, &entry, &err), -EINVAL);
	assert_int_equal(block->count, 1);
	policy_free(policy);
}

TEST_MAIN
