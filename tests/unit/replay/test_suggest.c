// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_suggest.c - quantiles of many subjects against exact ones; limits that touch as few as
 * stated. */
#include "lib/test.h"
#include "lib/rng.h"
#include "lib/temp_dir.h"
#include "replay/replay.h"
#include "replay/suggest.h"
#include "request/rules/rule.h"
#include "unit/replay/pcap_file.h"

#define MANY 400000

static int by_value(const void *pa, const void *pb)
{
	u64 a = *(const u64 *)pa, b = *(const u64 *)pb;

	return (a > b) - (a < b);
}

TEST(a_few_are_exact)
{
	struct peaks peaks;
	struct peaks_quantiles q;

	assert_int_equal(peaks_open(&peaks), 0);
	rng_start("a_few_are_exact");
	for (u64 i = 1; i <= 1000; i++) {
		u64 hash = rng();

		peaks_note(&peaks, hash, i, 7);
		/* Less in another second: the fullest one counts. */
		peaks_note(&peaks, hash, i - 1, 8);
	}
	assert_int_equal(peaks_quantiles(&peaks, true, &q), 0);
	assert_int_equal(q.subjects, 1000);
	assert_true(q.error == 0);
	assert_int_equal(peaks_at(&q, 0.5), 500);
	assert_int_equal(peaks_at(&q, 0.01), 990);
	assert_int_equal(peaks_at(&q, 0), 1000);
	assert_true(peaks_above(&q, 990) == 0.01);
	free(q.peak);
	peaks_close(&peaks);
}

/* Memory is fixed, and the share above any rate is within the bound that it states. */
TEST(many_are_within_the_bound)
{
	u64 *exact = calloc(MANY, sizeof(*exact));
	struct peaks peaks;
	struct peaks_quantiles q;

	assert_int_equal(peaks_open(&peaks), 0);
	rng_start("many_are_within_the_bound");
	for (u32 i = 0; i < MANY; i++) {
		u64 hash = rng();

		exact[i] = rng_magnitude(20);
		peaks_note(&peaks, hash, exact[i], 1);
	}
	qsort(exact, MANY, sizeof(*exact), by_value);
	assert_int_equal(peaks_quantiles(&peaks, true, &q), 0);
	assert_in_range(q.sampled, PEAKS_ROOM / 2 - 1000, PEAKS_ROOM);
	assert_in_range(q.subjects, MANY * 0.95, MANY * 1.05);
	assert_true(q.error > 0 && q.error < 0.0155);
	/* The bound has 95 % confidence; twice the bound, all but one of a million seeds. */
	for (u32 i = 0; i < MANY; i += MANY / 200) {
		double above = 0, found = peaks_above(&q, exact[i]);

		for (u32 k = 0; k < MANY; k++)
			above += exact[k] > exact[i];
		above /= MANY;
		assert_true(found - above < 2 * q.error && above - found < 2 * q.error);
	}
	free(q.peak);
	free(exact);
	peaks_close(&peaks);
}

static const json_t *group(const json_t *report, const char *name)
{
	json_t *item;
	size_t i;

	json_array_foreach(json_object_get(report, "groups"), i, item)
		if (!strcmp(json_string_value(json_object_get(item, "group")), name))
			return item;
	fail_msg("no group %s", name);
	return NULL;
}

static json_int_t number(const json_t *json, const char *key)
{
	return json_integer_value(json_object_get(json, key));
}

/* 100 sources of bursts, one far heavier; the limit, enforced, refuses that one alone. */
TEST(the_limit_touches_no_more_than_it_states)
{
	struct suggest_plan plan = { .permille = 10 };
	struct replay_plan judge = { .count = 200, .enforce = true };
	struct pcap_file file = { .nano = true };
	json_t *report, *replayed;
	struct sl_err err = { .message = "" };
	char config[256];

	rng_start("the_limit_touches_no_more_than_it_states");
	pcap_begin(&file, "in.pcap", LINK_ETHERNET);
	for (u32 ms = 0; ms < 10000; ms += 5) {
		char source[32];

		pcap_frame(&file, ms * 1000000ULL, "198.51.100.1", 53);
		for (u32 i = 0; i < 4; i++) {
			snprintf(source, sizeof(source), "192.0.2.%llu", 1 + rng_below(99));
			pcap_frame(&file, ms * 1000000ULL, source, 53);
		}
	}
	pcap_end(&file);
	plan.input = judge.input = file.path;
	assert_int_equal(suggest_run(&plan, &report, &err), 0);
	assert_int_equal(number(group(report, "source"), "subjects"), 100);
	assert_int_equal(number(group(report, "source"), "most"), 200);
	assert_in_range(number(group(report, "source"), "rate"), 8, 30);
	temp_put("one.yaml", "interfaces: [{name: eth0}]\nlimits: []\n");
	snprintf(config, sizeof(config), "%s", temp_path("one.yaml"));
	/* The network's limit would be met first by none of them: only that of sources is
	 * judged. */
	json_object_set_new(
		report, "yaml",
		json_sprintf(
			"limits: [{name: suggested-source, rate: %lld packets/s, burst: %lld, mode: shadow}]",
			number(group(report, "source"), "rate"),
			2 * number(group(report, "source"), "rate")));
	assert_int_equal(suggest_write(config, report, &err), 0);
	judge.config = config;
	assert_int_equal(replay_run(&judge, &replayed, &err), 0);
	assert_int_equal(json_array_size(json_object_get(replayed, "refused")), 1);
	assert_string_equal(
		json_string_value(json_object_get(
			json_array_get(json_object_get(replayed, "refused"), 0), "who")),
		"198.51.100.1");
	json_decref(replayed);
	json_decref(report);
}

TEST(what_is_written_is_in_shadow_mode_and_replaces_the_last)
{
	struct suggest_plan plan = { .permille = 0 };
	struct pcap_file file = { .nano = true };
	struct sl_err err = { .message = "" };
	struct policy *policy;
	json_t *report;
	char config[256];

	pcap_begin(&file, "in.pcap", LINK_ETHERNET);
	for (u32 i = 0; i < 40; i++) {
		pcap_frame(&file, i, "192.0.2.1", 53);
		pcap_frame(&file, i, "192.0.2.2", 53);
	}
	pcap_end(&file);
	plan.input = file.path;
	assert_int_equal(suggest_run(&plan, &report, &err), 0);
	temp_put(
		"two.yaml",
		"# kept\ninterfaces: [{name: eth0}]\nlimits:\n  - {name: web, rate: 5 packets/s}  # kept\n");
	snprintf(config, sizeof(config), "%s", temp_path("two.yaml"));
	for (u32 round = 0; round < 2; round++) {
		assert_int_equal(suggest_write(config, report, &err), 0);
		assert_int_equal(policy_load(config, &policy, &err), 0);
		assert_int_equal(policy->limit_count, 3);
		assert_int_equal(policy_find_limit(policy, "web")->mode, SL_MODE_ENFORCE);
		assert_int_equal(policy_find_limit(policy, "suggested-source")->mode,
				 SL_MODE_SHADOW);
		assert_int_equal(
			policy_find_limit(policy, "suggested-source")->terms.rates.rate[0].count,
			40);
		assert_int_equal(policy_find_limit(policy, "suggested-net")->mode, SL_MODE_SHADOW);
		assert_int_equal(
			policy_find_limit(policy, "suggested-net")->terms.rates.rate[0].count, 80);
		policy_free(policy);
	}
	json_decref(report);
}

/* A suggestion after `spoofed` sources of a prefix sent `each` a second, beside ten neighbors with
 * 50. */
static json_t *suggest_beside(u32 prefix, u32 spoofed, u64 each, u32 neighbors)
{
	struct suggest *suggest;
	json_t *report;

	assert_int_equal(suggest_open(SUGGEST_LIVE, &suggest), 0);
	for (u32 look = 1; look <= 3; look++) {
		for (u32 i = 0; i < spoofed; i++)
			suggest_packets(suggest,
					(struct sl_addr){ (u64)(prefix + i * 16) << 32, 0 }, SL_V4,
					each, each * 6, look);
		for (u32 i = 0; i < neighbors; i++)
			suggest_packets(suggest, (struct sl_addr){ (u64)(0xc0000200 + i) << 32, 0 },
					SL_V4, 41 + i, 250 + 6 * i, look);
	}
	report = suggest_report(suggest, 1);
	suggest_close(suggest);
	return report;
}

static const char *apart(const json_t *report)
{
	const char *text = json_string_value(
		json_object_get(json_array_get(json_object_get(report, "apart"), 0), "source"));

	return text ? text : "";
}

/* An attack's own rate is no limit: of a spoofed network, of one source; limits are of the
 * others. */
TEST(an_attack_is_apart)
{
	json_t *report = suggest_beside(0x0a070000, 4096, 2, 10);
	const char *yaml = json_string_value(json_object_get(report, "yaml"));

	assert_string_equal(apart(report), "10.7.0.0/16");
	assert_int_equal(number(group(report, "source"), "rate"), 50);
	assert_int_equal(number(group(report, "source"), "subjects"), 4106);
	/* What the neighbors' network sends is enough for any; the /16 sends 8,192. */
	assert_int_equal(number(group(report, "wide"), "rate"), 460);
	assert_non_null(strstr(
		yaml,
		"name: suggested-wide\n    prefix: {ipv4: 16, ipv6: 32}\n    rate: 460 packets/s"));
	json_decref(report);

	report = suggest_beside(0xc6336407, 1, 20000, 10);
	assert_string_equal(apart(report), "198.51.100.7");
	assert_int_equal(number(group(report, "source"), "rate"), 50);
	assert_int_equal(number(group(report, "source"), "most"), 20000);
	assert_null(strstr(json_string_value(json_object_get(report, "yaml")), "suggested-wide"));
	json_decref(report);

	/* With nothing beside it, a crowd is no measure of what is usual: nothing is proposed. */
	report = suggest_beside(0x0a070000, 4096, 2, 0);
	assert_string_equal(apart(report), "10.7.0.0/16");
	assert_string_equal(json_string_value(json_object_get(report, "yaml")), "");
	json_decref(report);
}

/* Who sends most is no attack yet; nor is the local network, when a few others come. */
TEST(the_usual_is_not_apart)
{
	json_t *report = suggest_beside(0x0a070000, 16, 40, 10);

	assert_string_equal(apart(report), "");
	assert_int_equal(number(group(report, "source"), "rate"), 50);
	json_decref(report);
	report = suggest_beside(0x0a070000, 200, 60, 2);
	assert_string_equal(apart(report), "10.7.0.0/20");
	assert_int_equal(number(group(report, "source"), "rate"), 60);
	json_decref(report);
	report = suggest_beside(0x0a070000, 16, 40, 0);
	assert_string_equal(apart(report), "");
	assert_int_equal(number(group(report, "source"), "rate"), 40);
	json_decref(report);
}

/* Rules that load, each key once, and as many as there are kinds of descriptors. */
TEST(rules_of_a_log)
{
	struct suggest_plan plan = { .permille = 0 };
	struct sl_err err = { .message = "" };
	struct ruleset *rules;
	const struct rule *rule;
	json_t *report;
	const char *yaml;
	FILE *out = fopen(temp_path("log"), "w");
	char path[256];

	for (u32 i = 0; i < 120; i++)
		fprintf(out,
			"192.0.2.7 - %s [01/Jan/2026:00:%02u:%02u +0000] \"GET /x HTTP/1.1\" 200 5\n",
			i % 3 ? "bob" : "al", i / 60, i % 60);
	fclose(out);
	snprintf(path, sizeof(path), "%s", temp_path("log"));
	plan.input = path;
	assert_int_equal(suggest_run(&plan, &report, &err), 0);
	yaml = json_string_value(json_object_get(report, "yaml"));
	if (ruleset_parse("suggested.yaml", yaml, strlen(yaml), &rules, &err))
		fail_msg("%d:%d: %s in:\n%s", err.line, err.column, err.message, yaml);
	assert_int_equal(rules->rule_count, 4);
	rule = ruleset_find(rules, "api/user");
	assert_non_null(rule);
	assert_true(rule->shadow);
	assert_int_equal(rule->limit[0].terms.rates.rate[0].count, 40);
	assert_non_null(ruleset_find(rules, "api/user/path"));
	ruleset_free(rules);
	json_decref(report);
}

int main(void)
{
	return test_run(temp_dir_make, temp_dir_drop);
}
