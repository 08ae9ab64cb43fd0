// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Live changes: each is made whole, or the policy stays unchanged and the error has the reason. */
#include "lib/test.h"
#include "lib/policy_text.h"
#include "lib/rng.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

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

static size_t count_pairs(char *const *pairs)
{
	size_t n = 0;

	while (n < PAIRS_MAX && pairs[n])
		n++;
	return n;
}

static const struct {
	const char *name;
	char *pairs[PAIRS_MAX];
	const char *text; /* the limit then */
} set_cases[] = {
	{ "web",
	  { "rate=50 packets/m" },
	  "name: web\nmatch:\n  proto: [tcp]\n  dport: [443]\nrate: 50 packets/m\n"
	  "burst: 2000\n" },
	{ "web",
	  { "burst=", "match.dport=80,8000-8010", "mode=shadow" },
	  "name: web\nmatch:\n  proto: [tcp]\n  dport: [80, 8000-8010]\n"
	  "rate: 1000 packets/s\nmode: shadow\n" },
	{ "web",
	  { "match.dport=", "match.tcp_flags=syn,!ack", "rate=5 connections/s" },
	  "name: web\nmatch:\n  proto: [tcp]\n  tcp_flags: ['syn,!ack']\n"
	  "rate: 5 connections/s\nburst: 2000\n" },
	{ "web",
	  { "match=", "per=source,dst", "prefix.ipv4=24", "burst=" },
	  "name: web\nper: [source, dst]\nprefix: {ipv4: 24}\n"
	  "rate: 1000 packets/s\n" },
	{ "web",
	  { "match.src=@lab,2001:db8::/32", "burst=", "match.dport=", "match.proto=" },
	  "name: web\nmatch:\n  src: ['2001:db8::/32', '@lab']\n"
	  "rate: 1000 packets/s\n" },
	{ "web",
	  { "algorithm=fixed-window", "burst=", "accounting=exact", "on_full=closed" },
	  "name: web\nmatch:\n  proto: [tcp]\n  dport: [443]\nrate: 1000 packets/s\n"
	  "algorithm: fixed-window\naccounting: exact\non_full: closed\n" },
	{ "web",
	  { "rate=10 packets/s,500 packets/h", "burst=20,30", "match=" },
	  "name: web\nrate: [10 packets/s, 500 packets/h]\nburst: [20, 30]\n" },
	{ "web",
	  { "rate=[10 packets/s, 500 packets/h]", "burst=", "match=" },
	  "name: web\nrate: [10 packets/s, 500 packets/h]\n" },
	{ "web",
	  { "prefix.ipv4=32,24", "prefix.ipv6=64,56,48", "prefix_scale.ipv6=1,4,16", "match=" },
	  "name: web\nprefix: {ipv4: [32, 24], ipv6: [64, 56, 48]}\n"
	  "prefix_scale: {ipv6: [1, 4, 16]}\nrate: 1000 packets/s\nburst: 2000\n" },
	{ "web",
	  { "per=source,dst", "dst_prefix.ipv6=64", "match=" },
	  "name: web\nper: [source, dst]\ndst_prefix: {ipv6: 64}\nrate: 1000 packets/s\nburst: 2000\n" },
	{ "web",
	  { "throttle={soft: 12.5%}", "match=", "on_full=prefix" },
	  "name: web\nrate: 1000 packets/s\nburst: 2000\nthrottle: {soft: 12.5%}\n"
	  "on_full: prefix\n" },
	{ "web",
	  { "throttle.elastic=200%", "throttle.while.cpu=70%",
	    "throttle.while.load_signal=api-load", "match=" },
	  "name: web\nrate: 1000 packets/s\nburst: 2000\n"
	  "throttle: {elastic: 200%, while: {cpu: 70%, load_signal: {'api-load': 80%}}}\n" },
	{ "web",
	  { "throttle.elastic=200%", "throttle.while.cpu=70%",
	    "match=", "throttle.while.cpu=", "throttle.elastic=" },
	  "name: web\nrate: 1000 packets/s\nburst: 2000\n" },
	{ "web",
	  { "ban={after: 1000 drops/10s, for: 5m}", "match.tcp_flags=ack",
	    "match.dport=", "match.proto=", "burst=", "algorithm=leaky-bucket" },
	  "name: web\nmatch:\n  tcp_flags: [ack]\nrate: 1000 packets/s\n"
	  "algorithm: leaky-bucket\nban: {after: 1000 drops/10s, for: 5m}\n" },
	{ "web",
	  { "ban.after=1 drop/m", "ban.for=30s", "ban.spoofable=yes", "ban.factor=1.5",
	    "ban.max=2h", "match=" },
	  "name: web\nrate: 1000 packets/s\nburst: 2000\n"
	  "ban: {after: 1 drop/1m, for: 30s, factor: 1.50, max: 2h, spoofable: true}\n" },
	{ "web",
	  { "throttle={soft: 10%, for: 30s}", "match=", "algorithm=sliding-window", "burst=" },
	  "name: web\nrate: 1000 packets/s\nalgorithm: sliding-window\n"
	  "throttle: {soft: 10%, for: 30s}\n" },
	{ "heavy",
	  { "tag.dscp=ef", "tag.mark=" },
	  "name: heavy\nrate: 1M bytes/s\naction: tag\ntag:\n  dscp: ef\n" },
	{ "heavy",
	  { "action=drop" },
	  "name: heavy\nrate: 1M bytes/s\ntag:\n  dscp: cs1\n  mark: 0x7\n" },
	{ "heavy", { "action=drop", "tag=" }, "name: heavy\nrate: 1M bytes/s\n" },
	{ "heavy", { "action=", "tag.dscp=", "tag.mark=" }, "name: heavy\nrate: 1M bytes/s\n" },
	{ "heavy",
	  { "rate=1 packets/s", "rate=2 packets/s", "per=" },
	  "name: heavy\nrate: 2 packets/s\naction: tag\ntag:\n  dscp: cs1\n"
	  "  mark: 0x7\n" },
};

TEST(test_limit_set)
{
	size_t i;

	for (i = 0; i < sizeof(set_cases) / sizeof(set_cases[0]); i++) {
		struct policy *policy = parse(base);
		struct sl_err err;
		char *text;

		if (policy_limit_set(policy, set_cases[i].name, set_cases[i].pairs,
				     count_pairs(set_cases[i].pairs), &err))
			fail_msg("%s: %s", set_cases[i].pairs[0], err.message);
		text = limit_text(policy, set_cases[i].name);
		assert_string_equal(text, set_cases[i].text);
		assert_true(policy_find_limit(policy, set_cases[i].name)->pos.line >= 4);
		free(text);
		policy_free(policy);
	}
}

/* over 70 lines: a table of cases. */
TEST(test_limit_set_refused)
{
	static const struct {
		const char *name;
		char *pairs[PAIRS_MAX];
		int code;
		const char *words;
	} cases[] = {
		{ "nobody", { "rate=1 packets/s" }, -ENOENT, "no limit \"nobody\"" },
		{ "web",
		  { "rate=1 packets/s", "rte=5" },
		  -EINVAL,
		  "limit \"web\": unknown key \"rte\" (did you mean \"rate\"?); accepted: name, match" },
		{ "web",
		  { "rte=" },
		  -EINVAL,
		  "limit \"web\": unknown key \"rte\" (did you mean \"rate\"?)" },
		{ "web",
		  { "prefix.ipv4=32,24", "prefix_scale.ipv4=1" },
		  -EINVAL,
		  "prefix_scale.ipv4: found 1 multiplier for 2 prefix lengths" },
		{ "web",
		  { "rate=1 packets/d" },
		  -EINVAL,
		  "limit \"web\": burst: found \"2000\": the rate is" },
		{ "web", { "mode=shadow", "rate=fast" }, -EINVAL, "limit \"web\": rate: found" },
		{ "web", { "rate" }, -EINVAL, "accepted: KEY=VALUE" },
		{ "web", { "=5" }, -EINVAL, "accepted: KEY=VALUE" },
		{ "web", { ".x=5" }, -EINVAL, "accepted: KEY=VALUE" },
		{ "web", { "match.=5" }, -EINVAL, "accepted: KEY=VALUE" },
		{ "web", { "burst=\n5" }, -EINVAL, "accepted: KEY=VALUE" },
		{ "web", { "match.dport=80,http" }, -EINVAL, "match.dport: found \"http\"" },
		{ "web", { "match.dport=80,,90" }, -EINVAL, "match.dport: found" },
		{ "web", { "match.proto=icmp" }, -EINVAL, "none of the protocols" },
		{ "web", { "match.src.x=1" }, -EINVAL, "match.src: found a mapping" },
		{ "web", { "throttle.while.cpu.x=1" }, -EINVAL, "unknown key \"cpu.x\"" },
		{ "web", { "match..src=1" }, -EINVAL, "accepted: KEY=VALUE" },
		{ "web", { "rate=1 packets/s,2 packets/m" }, -EINVAL, "burst: found one burst" },
		{ "web",
		  { "throttle={soft: 10" },
		  -EINVAL,
		  "throttle: found \"{soft: 10\", column 1: " },
		{ "web",
		  { "throttle=[]" },
		  -EINVAL,
		  "throttle: found an empty list; accepted: hard" },
		{ "web",
		  { "throttle.while.cpu=70%" },
		  -EINVAL,
		  "throttle: found a mapping; accepted" },
		{ "web", { "prefix.ipv4=24,32" }, -EINVAL, "prefix.ipv4: found \"32\" behind 24" },
		{ "web", { "match=everything" }, -EINVAL, "accepted: a mapping of src" },
		{ "web", { "name=other" }, -EINVAL, "a limit cannot be renamed" },
		{ "web", { "rate=" }, -EINVAL, "key \"rate\" is missing" },
		{ "web", { "action=pass" }, -EINVAL, "action is pass, but a rate is given" },
		{ "web", { "rate=", "action=drop" }, -EINVAL, "burst is about a rate" },
		{ "web", { "algorithm=fixed-window" }, -EINVAL, "burst is given" },
		{ "web", { "algorithm=leaky-bucket" }, -EINVAL, "burst is given" },
		{ "web", { "scope=world" }, -EINVAL, "accepted: node, cluster" },
		{ "web", { "ban=5" }, -EINVAL, "ban: found \"5\"; accepted: a mapping of after" },
		{ "web", { "ban.for=5m" }, -EINVAL, "ban: key \"after\" is missing" },
		{ "heavy", { "tag=" }, -EINVAL, "tag has neither" },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct policy *policy = parse(base);
		char *before = written(policy), *after;
		struct sl_err err;
		int rc;

		rc = policy_limit_set(policy, cases[i].name, cases[i].pairs,
				      count_pairs(cases[i].pairs), &err);
		if (rc != cases[i].code || !strstr(err.message, cases[i].words))
			fail_msg("%s: %d, %s", cases[i].pairs[0], rc, err.message);
		assert_int_equal(err.line, 0);
		assert_string_equal(err.file, "");
		after = written(policy);
		assert_string_equal(before, after);
		free(before);
		free(after);
		policy_free(policy);
	}
}

/* Whatever was changed in whatever order, the policy is one that a file can have. (over 70 lines: a
 * table of pairs.) */
TEST(test_limit_set_random)
{
	static char *const pairs[] = {
		"rate=10 packets/s",
		"rate=9 packets/s,100 packets/h",
		"rate=7 connections/s",
		"burst=",
		"burst=20",
		"burst=20,30",
		"algorithm=",
		"algorithm=fixed-window",
		"algorithm=leaky-bucket",
		"prefix.ipv4=32,24",
		"prefix.ipv4=24",
		"prefix.ipv4=",
		"prefix={ipv6: [64, 48]}",
		"prefix=",
		"prefix_scale.ipv4=1,4",
		"prefix_scale.ipv4=",
		"prefix_scale.ipv6=1,8",
		"prefix_scale=",
		"per=source",
		"per=dst",
		"per=",
		"dst_prefix.ipv6=64",
		"dst_prefix=",
		"action=tag",
		"action=pass",
		"action=drop",
		"rate=",
		"action=",
		"tag.mark=9",
		"tag.dscp=ef",
		"tag=",
		"tag.mark=",
		"match.dport=80,443",
		"match.dport=",
		"match.src=@lab",
		"match.src=",
		"match.proto=udp",
		"match.proto=",
		"match.tcp_flags=ack",
		"match=",
		"mode=shadow",
		"mode=",
		"on_full=prefix",
		"on_full=",
		"throttle={soft: 20%}",
		"throttle.for=5s",
		"throttle.soft=",
		"throttle=",
		"throttle={elastic: 200%, while: {cpu: 50%}}",
		"throttle.while.link=60%",
		"throttle.while.load_signal={a: 60%}",
		"throttle.while.load_signal={a: 70%}",
		"throttle.while.load_signal=",
		"ban.factor=1.5",
		"ban.factor=",
		"ban.after=10 drops/m",
		"scope=cluster",
		"scope=",
		"ban={after: 10 drops/s, for: 1m}",
		"ban.spoofable=yes",
		"ban.max=2h",
		"ban=",
	};
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
				pair[k] = pairs[rng_below(sizeof(pairs) / sizeof(pairs[0]))];
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
