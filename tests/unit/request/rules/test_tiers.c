// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every algorithm with every option, in each tier and scope: accepted, or refused with the reason.
 * A cell that changes shows here, and has to change in the documents.
 */
#include "lib/rule_text.h"
#include "lib/policy_text.h"
#include "limiter/algorithm.h"

/* An option as a packet limit and as a rule have it. */
static const struct option {
	const char *name, *packets, *rule;
} options[] = {
	{ "none", "", "" },
	{ "burst", "burst: 20", "burst: 20" },
	{ "window", "window: first-request", "window: first-request" },
	{ "buckets", "buckets: 4", "buckets: 4" },
	{ "count", "count: all", "count: all" },
	{ "soft", "throttle: {soft: 10%}", "throttle: {soft: 10%}" },
	{ "soft for", "throttle: {soft: 10%, for: 30s}", "throttle: {soft: 10%, for: 30s}" },
	{ "elastic", "throttle: {elastic: 200%, while: {cpu: 70%}}",
	  "throttle: {elastic: 200%, while: {cpu: 70%}}" },
	{ "floor", "throttle: {elastic: 100%, floor: 20%, while: {cpu: 70%}}",
	  "throttle: {elastic: 100%, floor: 20%, while: {cpu: 70%}}" },
	{ "ban", "ban: {after: 100 drops/1m, for: 1m, spoofable: true}",
	  "ban: {after: 100 rejections/1m, for: 1m}" },
	{ "shadow", "mode: shadow",
	  "limits: [10 requests/m, {rate: 12 requests/m, mode: shadow}]" },
	{ "override", "overrides: [{src: 192.0.2.1, rate: 20 packets/m}]",
	  "overrides: [{value: vip, limits: [20 requests/m]}]" },
	{ "prefixes", "prefix: {ipv4: [32, 24]}", "prefix: {ipv4: [32, 24]}" },
	{ "rates", "rate: [10 packets/m, 50 packets/h]", "limits: [10 requests/m, 50 requests/h]" },
	{ "reserve", "reserve: {critical: 20%}", "reserve: {critical: 20%}" },
	{ "wait", "on_limit: {wait: 1s}", "on_limit: {wait: 1s}" },
	{ "dst prefix", "per: [dst], dst_prefix: {ipv6: 64}", "dst_prefix: {ipv6: 64}" },
	{ "push_down", "push_down: {after: 20 rejections/10s, steps: [drop]}",
	  "push_down: {after: 20 rejections/10s, steps: [drop]}" },
};
#define OPTIONS COUNT(options)

static const struct scope {
	const char *name, *packets, *rule; /* packets NULL: not of that tier */
} scopes[] = {
	{ "node", "", "" },
	{ "strict", "scope: cluster", "scope: cluster" },
	{ "lease", NULL, "consistency: {lease: 100ms}" },
	{ "write_back", NULL, "consistency: {write_back: 1s}" },
};
#define SCOPES COUNT(scopes)

/* What a letter below stands for: a part of the message. */
static const struct reason {
	char letter;
	const char *words;
} reasons[] = {
	{ 'b', "burst is given, but algorithm is" },
	{ 'w', "window is given, but algorithm is" },
	{ 'k', "buckets is given, but algorithm is" },
	{ 'e', "count is all, but algorithm is" },
	{ 'f', "a window begins at another time on each node" },
	{ 's', "only Redis has the" },
	{ 'l', "do not fit into the 64 bits of a packet limit's bucket" },
	{ 'o', "the store must have" },
	{ 'i', "its units cannot be leased over an edge" },
	{ 'p', "a packet has no priority" },
	{ 'd', "a packet is not delayed" },
	{ 'u', "refused requests are pushed down to this tier" },
	{ 'g', "addresses are grouped by the entry that has them" },
};
#define REASONS COUNT(reasons)

static const struct row {
	const char *tier, *algorithm, *scope;
	const char *cells; /* one for each option: '.', accepted, or the letter of the reason */
} rows[] = {
	{ "packets", "token-bucket", "node", "..wk..........pd.u" },
	{ "packets", "token-bucket", "strict", "..wk..........pd.u" },
	{ "packets", "leaky-bucket", "node", ".bwk..........pd.u" },
	{ "packets", "leaky-bucket", "strict", ".bwk..........pd.u" },
	{ "packets", "interval-bucket", "node", "..wke.........pd.u" },
	{ "packets", "interval-bucket", "strict", "..wke.........pd.u" },
	{ "packets", "fixed-window", "node", ".b.ke.........pd.u" },
	{ "packets", "fixed-window", "strict", ".bfke.........pd.u" },
	{ "packets", "sliding-window", "node", ".bwk..........pd.u" },
	{ "packets", "sliding-window", "strict", ".bwk..........pd.u" },
	{ "packets", "window-counters", "node", ".bw...........pd.u" },
	{ "packets", "window-counters", "strict", ".bw...........pd.u" },
	{ "packets", "sliding-log", "node", "llllllllllllllpdlu" },
	{ "packets", "sliding-log", "strict", "llllllllllllllpdlu" },
	{ "rules", "token-bucket", "node", "..wk............g." },
	{ "rules", "token-bucket", "strict", "..wk............g." },
	{ "rules", "token-bucket", "lease", "..wk............g." },
	{ "rules", "token-bucket", "write_back", "..wk............g." },
	{ "rules", "leaky-bucket", "node", ".bwk............g." },
	{ "rules", "leaky-bucket", "strict", ".bwk............g." },
	{ "rules", "leaky-bucket", "lease", ".bwk............g." },
	{ "rules", "leaky-bucket", "write_back", ".bwk............g." },
	{ "rules", "interval-bucket", "node", "..wke...........g." },
	{ "rules", "interval-bucket", "strict", "..wke...........g." },
	{ "rules", "interval-bucket", "lease", "iiwkeiiiiiiiiiiigi" },
	{ "rules", "interval-bucket", "write_back", "iiwkeiiiiiiiiiiigi" },
	{ "rules", "fixed-window", "node", ".b.ke...........g." },
	{ "rules", "fixed-window", "strict", ".b.ke...........g." },
	{ "rules", "fixed-window", "lease", ".b.ke...........g." },
	{ "rules", "fixed-window", "write_back", ".b.ke...........g." },
	{ "rules", "sliding-window", "node", ".bwk............g." },
	{ "rules", "sliding-window", "strict", ".bwk............g." },
	{ "rules", "sliding-window", "lease", ".bwk............g." },
	{ "rules", "sliding-window", "write_back", ".bwk............g." },
	{ "rules", "window-counters", "node", ".bw.............g." },
	{ "rules", "window-counters", "strict", ".bw.......s.....g." },
	{ "rules", "window-counters", "lease", "obwooooooooooooogo" },
	{ "rules", "window-counters", "write_back", "obwooooooooooooogo" },
	{ "rules", "sliding-log", "node", ".bwk............g." },
	{ "rules", "sliding-log", "strict", ".bwk......s.....g." },
	{ "rules", "sliding-log", "lease", "obwkoooooooooooogo" },
	{ "rules", "sliding-log", "write_back", "obwkoooooooooooogo" },
};

static int check(const char *tier, const char *algorithm, const struct scope *scope,
		 const struct option *option, struct sl_err *err)
{
	char text[600];
	bool packets = !strcmp(tier, "packets");
	const char *own = packets ? option->packets : option->rule;
	const char *of_scope = packets ? scope->packets : scope->rule;
	struct policy *policy = NULL;
	struct ruleset *set = NULL;
	const char *rate = packets ? "rate: 10 packets/m, " : "limits: [10 requests/m], ";
	int rc;

	if (strstr(own, packets ? "rate: [" : "limits: [1"))
		rate = "";
	snprintf(
		text, sizeof(text),
		packets ? "cluster: {redis: {urls: ['redis://127.0.0.1:6379']}, secret_file: /k}\nlimits:\n  - {name: a, %s%s%s%s%s"
			  "algorithm: %s}\n"
			: "domain: a\ndescriptors:\n  - {key: k, %s%s%s%s%salgorithm: %s}\n",
		rate, own, own[0] ? ", " : "", of_scope, of_scope[0] ? ", " : "", algorithm);
	if (packets)
		rc = policy_parse("x.yaml", text, strlen(text), &policy, err);
	else
		rc = ruleset_parse("x.yaml", text, strlen(text), &set, err);
	if (policy)
		policy_free(policy);
	if (set)
		ruleset_free(set);
	return rc;
}

static char letter_of(const struct sl_err *err)
{
	for (size_t i = 0; i < REASONS; i++)
		if (strstr(err->message, reasons[i].words))
			return reasons[i].letter;
	return '?';
}

static void cells_of(const struct row *row, const struct scope *scope, char *ret)
{
	for (size_t i = 0; i < OPTIONS; i++) {
		struct sl_err err = { 0 };
		int rc = check(row->tier, row->algorithm, scope, &options[i], &err);

		ret[i] = rc ? letter_of(&err) : '.';
		if (rc && (!strstr(err.message, "accepted") || strchr(err.message, '\n')))
			fail_msg("%s: not one line with what is accepted: %s", options[i].name,
				 err.message);
	}
}

static const struct scope *scope_of(const char *name)
{
	const struct scope *scope = scopes;

	while (strcmp(scope->name, name))
		scope++;
	return scope;
}

TEST(test_cells)
{
	char cells[OPTIONS + 1] = "";

	for (size_t i = 0; i < COUNT(rows); i++) {
		cells_of(&rows[i], scope_of(rows[i].scope), cells);
		if (strcmp(cells, rows[i].cells))
			fail_msg("%s %s %s: %s, expected %s", rows[i].tier, rows[i].algorithm,
				 rows[i].scope, cells, rows[i].cells);
	}
}

/* Each algorithm of either tier is there in each scope. */
TEST(test_complete)
{
	static const char *const names[] = {
#define NAME(id, row, text, kind) text,
		ALGORITHMS_OF_REQUESTS(NAME)
#undef NAME
	};
	size_t count = COUNT(rows), expected = 0;

	for (size_t a = 0; a < COUNT(names); a++)
		for (size_t s = 0; s < SCOPES; s++) {
			u32 found = 0, wanted = scopes[s].packets ? 2 : 1;

			for (size_t i = 0; i < count; i++)
				found += !strcmp(rows[i].algorithm, names[a]) &&
					 !strcmp(rows[i].scope, scopes[s].name);
			if (found != wanted)
				fail_msg("%s %s: %u rows, expected %u", names[a], scopes[s].name,
					 found, wanted);
			expected += wanted;
		}
	assert_int_equal(count, expected);
}

TEST_MAIN
