// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * At most SL_MATCHES_MAX limits may match one packet: which rule sets are refused and which not,
 * and random rule sets against every packet of a small world.
 */
#include "lib/test.h"
#include "config/policy.h"
#include "lib/rng.h"

/* `count` limits, the match of each from `format` with its number in it. */
static char *many_limits(size_t count, const char *format)
{
	char *text = NULL;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);

	fputs("limits:\n", out);
	for (i = 0; i < count; i++) {
		fprintf(out, "  - {name: l%zu, rate: 1 packets/s, match: {", i);
		fprintf(out, format, (int)i);
		fputs("}}\n", out);
	}
	fclose(out);
	return text;
}

TEST(test_overlap)
{
	static const struct {
		size_t count;
		const char *match;
		bool fits;
	} cases[] = {
		{ 16, "", true },
		{ 17, "", false },
		{ 256, "dport: %d", true },
		{ 256, "src: 10.0.%d.0/24", true },
		{ 256, "interface: eth%d", true },
		{ 256, "proto: %d", true },
		{ 200, "icmp_type: %d, proto: icmp", true },
		{ 17, "dport: 1%02d-200", false }, /* all hold 116..200 */
		{ 40, "dport: ['%d', 1000-2000, 1500-1600]", false },
		{ 17, "src: [10.0.%d.0/24, 10.0.0.0/8]", false },
		{ 17, "src: ['2001:db8:%d::/48', '2001:db8::/32'], dport: 1-9", false },
		{ 17, "interface: [eth%d, lan]", false },
		{ 17, "proto: ['%d', 200]", false },
		{ 17, "tcp_flags: 'syn', sport: 7%02d-799", false },
		{ 17, "icmp_type: ['%d', 99]", false },
		{ 256, "length: %d", true },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = many_limits(cases[i].count, cases[i].match);
		struct policy *policy = NULL;
		struct sl_err err;
		int rc = policy_parse("x.yaml", text, strlen(text), &policy, &err);

		if (rc && !strstr(err.message, "one packet can match this and"))
			fail_msg("%s: %s", cases[i].match, err.message);
		if (!rc != cases[i].fits)
			fail_msg("%zu x %s: %s", cases[i].count, cases[i].match,
				 rc ? err.message : "accepted");
		policy_free(policy);
		free(text);
	}
}

/* Limits of four rates at four prefixes: two of them are 32 bucket states of a packet. */
TEST(test_words)
{
	static const struct {
		const char *yaml;
		const char *words; /* NULL: it fits */
	} cases[] = {
		{ "  - {name: a, RATES, prefix: {ipv4: [32, 28, 24, 16], ipv6: [64, 56, 48, 32]}}\n"
		  "  - {name: b, RATES, prefix: {ipv4: [32, 28, 24, 16], ipv6: [64, 56, 48, 32]}}\n",
		  NULL },
		{ "  - {name: a, RATES, prefix: {ipv4: [32, 28, 24, 16]}}\n"
		  "  - {name: b, RATES, prefix: {ipv4: [32, 28, 24, 16]}}\n"
		  "  - {name: c, rate: 1 packets/s}\n",
		  "\"c\": one packet can match this and 2 others (\"a\", \"b\", \"c\", ...), which "
		  "count more than 32 times together" },
		{ "  - {name: a, RATES, prefix: {ipv4: [32, 28, 24, 16]}}\n"
		  "  - {name: b, RATES, prefix: {ipv4: [32, 28, 24, 16]}}\n"
		  "  - {name: c, rate: 1 packets/s, mode: off}\n"
		  "  - {name: d, RATES, match: {src: '::/0'}, prefix: {ipv6: [64, 56, 48, 32]}}\n",
		  NULL },
		{ "  - {name: a, RATES, match: {dport: 1-5}, prefix: {ipv6: [64, 56, 48, 32]}}\n"
		  "  - {name: b, RATES, match: {dport: 6-9}, prefix: {ipv6: [64, 56, 48, 32]}}\n"
		  "  - {name: c, RATES, match: {dport: 4-6}, prefix: {ipv6: [64, 56, 48, 32]}}\n",
		  NULL },
		{ "  - {name: a, RATES, match: {dport: 1-5}, prefix: {ipv6: [64, 56, 48, 32]}}\n"
		  "  - {name: b, RATES, match: {dport: 5-9}, prefix: {ipv6: [64, 56, 48, 32]}}\n"
		  "  - {name: c, RATES, match: {dport: 5}, prefix: {ipv6: [64, 56, 48, 32]}}\n",
		  "count more than 32 times together" },
	};
	static const char rates[] = "rate: [1 packets/s, 2 packets/s, 3 packets/s, 4 packets/s]";
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[2048] = "limits:\n";
		struct policy *policy = NULL;
		const char *at = cases[i].yaml, *next;
		struct sl_err err = { .message = "" };
		int rc;

		for (; (next = strstr(at, "RATES")); at = next + 5) {
			strncat(text, at, next - at);
			strcat(text, rates);
		}
		strcat(text, at);
		rc = policy_parse("x.yaml", text, strlen(text), &policy, &err);
		if (!rc != !cases[i].words || (rc && !strstr(err.message, cases[i].words)))
			fail_msg("%zu: %d %s", i, rc, err.message);
		policy_free(policy);
	}
}

/* `count` limits that match everything, and then `more`. */
static int check_with(size_t count, const char *more, struct sl_err *err)
{
	char *base = many_limits(count, ""), *text = NULL;
	struct policy *policy = NULL;
	int rc;

	assert_true(asprintf(&text, "%s%s", base, more) > 0);
	rc = policy_parse("x.yaml", text, strlen(text), &policy, err);
	policy_free(policy);
	free(text);
	free(base);
	return rc;
}

/* Fifteen for all packets: one more fits, and as many as no packet meets together. */
TEST(test_overlap_apart)
{
#define X(name, rest) "  - {name: " name ", rate: 1 packets/s, " rest "}\n"
	static const struct {
		const char *more;
		int line; /* 0: it fits */
	} cases[] = {
		{ X("x", "match: {proto: udp}"), 0 },
		{ X("x", "match: {proto: udp}") X("y", "match: {tcp_flags: ack}"), 0 },
		{ X("x", "match: {proto: udp}") X("y", "match: {dport: 53}"), 18 },
		{ X("x", "match: {proto: 47}") X("y", "match: {dport: 53}"), 0 },
		{ X("x", "match: {tcp_flags: syn}") X("y", "match: {tcp_flags: '!syn'}"), 0 },
		{ X("x", "match: {tcp_flags: syn}") X("y", "match: {tcp_flags: '!ack'}"), 18 },
		{ X("x", "match: {src: 10.0.0.0/8}") X("y", "match: {dst: '::1'}"), 0 },
		{ X("x", "match: {src: 10.0.0.0/8}") X("y", "match: {dst: 1.2.3.4}"), 18 },
		{ X("x", "match: {src: 10.0.0.0/8}") X("y", "match: {src: 10.9.8.7}"), 18 },
		{ X("x", "match: {src: 10.0.0.0/9}") X("y", "match: {src: 10.128.0.0/9}"), 0 },
		{ X("x", "match: {icmp_type: redirect}") X("y", "match: {icmp_type: 137}"), 0 },
		{ X("x", "match: {icmp_type: redirect}") X("y", "match: {icmp_type: 5}"), 18 },
		{ X("x", "match: {vlan: 1-5}") X("y", "match: {vlan: 5}"), 18 },
		{ X("x", "match: {vlan: 1-5}") X("y", "match: {vlan: 6}"), 0 },
		{ X("x", "mode: shadow") X("y", "mode: shadow"), 18 },
		{ X("x", "mode: shadow") X("y", "mode: off"), 0 },
	};
#undef X
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sl_err err = { .line = 0 };
		int rc = check_with(15, cases[i].more, &err);

		if (!rc != !cases[i].line || (rc && err.line != cases[i].line))
			fail_msg("%s: line %d: %s", cases[i].more, err.line, err.message);
	}
}

/* ---- random rule sets ---- */

#define LIMITS 80

/* A limit of the small world: a bit for each value that it matches, 0 for no condition. */
struct small {
	u8 source; /* of 4 addresses */
	u8 port;   /* of 8 */
	u8 vlan;   /* of 8 */
	u8 proto;  /* tcp, udp, gre */
};

static const char *const sources[] = { "10.0.0.0/30", "10.0.0.4", "2001:db8::/64", "::1" };
static const char *const protos[] = { "tcp", "udp", "47" };

static void write_bits(FILE *out, const char *key, u8 bits, const char *const *names)
{
	const char *separator = "";
	int i;

	if (!bits)
		return;
	fprintf(out, "%s: [", key);
	for (i = 0; i < 8; i++) {
		if (!(bits >> i & 1))
			continue;
		fputs(separator, out);
		if (names)
			fprintf(out, "'%s'", names[i]);
		else
			fprintf(out, "%d", i);
		separator = ", ";
	}
	fputs("], ", out);
}

static bool small_matches(const struct small *l, int source, int port, int vlan, int proto)
{
	bool ports = proto != 2;

	return (!l->source || l->source >> source & 1) &&
	       (!l->port || (ports && l->port >> port & 1)) && (!l->vlan || l->vlan >> vlan & 1) &&
	       (!l->proto || l->proto >> proto & 1);
}

/* The most limits that one packet of the small world matches: all of them are tried. */
static int most_matched(const struct small *limit, int count)
{
	int packet, i, most = 0;

	for (packet = 0; packet < 4 * 8 * 8 * 3; packet++) {
		int matched = 0;

		for (i = 0; i < count; i++)
			matched += small_matches(&limit[i], packet & 3, packet >> 2 & 7,
						 packet >> 5 & 7, packet >> 8);
		most = matched > most ? matched : most;
	}
	return most;
}

static void random_small(struct small *l)
{
	do {
		*l = (struct small){
			.source = rng_below(3) ? rng() & 15 : 0,
			.port = rng_below(3) ? rng() & rng() & 255 : 0,
			.vlan = rng_below(3) ? rng() & 255 : 0,
			.proto = rng_below(3) ? rng() & 7 : 0,
		};
	} while (l->port && l->proto == 4); /* ports of gre: refused for itself */
}

TEST(test_overlap_random)
{
	int round, refused = 0, i;

	rng_start(__func__);
	for (round = 0; round < 300; round++) {
		int count = 30 + rng_below(LIMITS - 29), most, rc;
		struct policy *policy = NULL;
		struct small limit[LIMITS];
		char *text = NULL;
		struct sl_err err;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		fputs("limits:\n", out);
		for (i = 0; i < count; i++) {
			random_small(&limit[i]);
			fprintf(out, "- {name: l%d, rate: 1 packets/s, match: {", i);
			write_bits(out, "src", limit[i].source, sources);
			write_bits(out, "proto", limit[i].proto, protos);
			write_bits(out, "dport", limit[i].port, NULL);
			write_bits(out, "vlan", limit[i].vlan, NULL);
			fputs("}}\n", out);
		}
		fclose(out);
		most = most_matched(limit, count);
		rc = policy_parse("x.yaml", text, size, &policy, &err);
		if (!rc != (most <= SL_MATCHES_MAX))
			fail_msg("%d match one packet, %s:\n%s", most,
				 rc ? err.message : "accepted", text);
		refused += !!rc;
		policy_free(policy);
		free(text);
	}
	assert_in_range(refused, 30, 270); /* both outcomes occur */
}

TEST_MAIN
