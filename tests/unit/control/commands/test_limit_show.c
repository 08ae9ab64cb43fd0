/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `limit list` and `limit show` for rates, prefix hierarchies, throttles and bans. */
#include "lib/daemon_rig.h"
#include "control/commands/command_limit.c"

static const char config[] =
	"limits:\n"
	"  - {name: plain, rate: 10 packets/s, burst: 20}\n"
	"  - name: full\n"
	"    match: {tcp_flags: ack}\n"
	"    rate: [10 packets/s, 500 packets/h]\n"
	"    burst: [20, 30]\n"
	"    prefix: {ipv4: [32, 24], ipv6: [64, 56, 48]}\n"
	"    prefix_scale: {ipv6: [1, 4, 16]}\n"
	"    throttle: {soft: 12.5%, for: 30s}\n"
	"    on_full: prefix\n"
	"    ban: {after: 1000 drops/10s, for: 5m, factor: 1.5}\n"
	"  - {name: window, rate: 100 packets/m, algorithm: sliding-window, per: []}\n"
	"  - {name: elastic, rate: 10 packets/s, algorithm: leaky-bucket,\n"
	"     throttle: {elastic: 200%, while: {cpu: 70%, load_signal: api-load}}}\n";

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *json = json_loads(text, 0, &error);

	if (!json)
		fail_msg("%s: %s", text, error.text);
	return json;
}

/* Every member of `wanted` is in `got` with the same value. */
static void assert_has(const json_t *got, const char *wanted)
{
	json_t *want = parse(wanted), *value;
	const char *key;

	json_object_foreach(want, key, value)
		if (!json_equal(json_object_get(got, key), value))
			fail_msg("%s: wanted %s, got %s", key, json_dumps(value, JSON_ENCODE_ANY),
				 json_dumps(json_object_get(got, key), JSON_ENCODE_ANY));
	json_decref(want);
}

RIG_TEST(test_list)
{
	static const char *const wanted[] = {
		"{\"name\":\"plain\", \"rate\":\"10 packets/s\", \"burst\":20,"
		" \"rates\":[{\"rate\":\"10 packets/s\", \"burst\":20}],"
		" \"prefix\":{\"ipv4\":32, \"ipv6\":64}, \"prefix_scale\":{\"ipv4\":1, \"ipv6\":1},"
		" \"throttle\":\"hard\", \"on_full\":\"open\"}",
		"{\"rate\":\"10 packets/s, 500 packets/h\", \"burst\":20,"
		" \"rates\":[{\"rate\":\"10 packets/s\", \"burst\":20},"
		"            {\"rate\":\"500 packets/h\", \"burst\":30}],"
		" \"prefix\":{\"ipv4\":[32,24], \"ipv6\":[64,56,48]},"
		" \"prefix_scale\":{\"ipv4\":[1,1], \"ipv6\":[1,4,16]},"
		" \"throttle\":\"{soft: 12.5%, for: 30s}\", \"on_full\":\"prefix\","
		" \"ban\":\"{after: 1000 drops/10s, for: 5m, factor: 1.50}\"}",
		"{\"rates\":[{\"rate\":\"100 packets/m\", \"burst\":100}],"
		" \"algorithm\":\"sliding-window\", \"per\":[]}",
		"{\"throttle\":\"{elastic: 200%, while: {cpu: 70%, load_signal: {'api-load': 80%}}}\","
		" \"algorithm\":\"leaky-bucket\", \"burst\":1}",
	};
	json_t *response, *limits, *limit;
	size_t i;

	rig_open(&rig, config);
	response = rig_command(&rig, &rig_reader, "limit list");
	limits = json_at(response, "result.limits");
	assert_int_equal(json_array_size(limits), COUNT(wanted));
	json_array_foreach(limits, i, limit)
		assert_has(limit, wanted[i]);
	assert_null(json_at(limits, "0.ban"));
	json_decref(response);
}

/* The YAML of a limit can be read again, with the same result. */
RIG_TEST(test_show)
{
	struct policy *again = NULL;
	json_t *response, *result;
	const char *yaml;
	char *text = NULL;
	struct sl_err err;

	rig_open(&rig, config);
	for (size_t i = 0; i < rig.d->running.policy->limit_count; i++) {
		char line[128];

		snprintf(line, sizeof(line), "limit show {'name':'%s'}",
			 rig.d->running.policy->limit[i].name);
		response = rig_command(&rig, &rig_reader, line);
		result = json_object_get(response, "result");
		yaml = text_at(result, "yaml");
		assert_non_null(yaml);
		assert_int_equal(policy_parse("x", "{}", 2, &again, &err), 0);
		if (policy_limit_add(again, "x", yaml, strlen(yaml), &err))
			fail_msg("%s\n%s", err.message, yaml);
		text = limit_to_yaml(&again->limit[0]);
		assert_string_equal(text, yaml);
		free(text);
		policy_free(again);
		json_decref(response);
	}
}

TEST_MAIN
