// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* source show: the used part of each limit of a source, and its entries in lists. */
#include "lib/daemon_rig.h"

static const json_t *limit_of_source(const json_t *response)
{
	return json_at(response, "result.limits.0");
}

RIG_TEST(test_source_show)
{
	static const char *const line = "{\"command\":\"source show\",\"args\":{\"source\":"
					"\"192.0.2.1\"}}";
	json_t *response;

	rig_open(&rig, "exempt: [192.0.2.1]\nlimits: [{name: all, rate: 10 packets/m, burst: 10, "
		       "accounting: exact}, {name: pair, rate: 1 packets/s, per: [source, dst]}, "
		       "{name: far, rate: 1 packets/s, match: {src: 203.0.113.0/24}}]\n");
	response = rig_command(&rig, &rig_root, line);
	assert_string_equal(text_at(response, "result.exempt_until"), "always");
	json_decref(response);
	rig_do(&rig, "{\"command\":\"exempt del\",\"args\":{\"prefix\":\"192.0.2.1\"}}");
	rig_passed(&rig, 1, 1, clock_mono_ns());
	response = rig_command(&rig, &rig_root, line);
	assert_string_equal(text_at(limit_of_source(response), "state"), "within");
	json_decref(response);
	rig_do(&rig, "{\"command\":\"limit set\",\"args\":{\"name\":\"pair\",\"pairs\":[\"mode=off\"]}}");
	assert_int_equal(rig_passed(&rig, 1, 50, clock_mono_ns()), 9);
	response = rig_command(&rig, &rig_root, line);
	assert_string_equal(text_at(limit_of_source(response), "state"), "over");
	assert_in_range(int_at(limit_of_source(response), "wait_ns"), 1, 6 * SL_NS_PER_SEC);
	json_decref(response);
}

/* A source with an override: its own bucket and rates; its neighbour the limit's. */
RIG_TEST(test_source_show_override)
{
	static const struct {
		const char *source;
		u64 capacity, used;
	} cases[] = { { "192.0.2.1", 30, 3 }, { "192.0.2.2", 10, 0 } };

	rig_open(&rig, "limits: [{name: all, rate: 10 packets/m, burst: 10, accounting: exact, "
		       "prefix: {ipv4: 24}, overrides: [{src: 192.0.2.1, rate: 30 packets/h, "
		       "burst: 30}]}]\n");
	assert_int_equal(rig_passed(&rig, 1, 3, clock_mono_ns()), 3);
	for (size_t i = 0; i < 2; i++) {
		char line[128];
		const json_t *limit;
		json_t *response;

		snprintf(line, sizeof(line), "{\"command\":\"source show\",\"args\":{\"source\":"
			 "\"%s\"}}", cases[i].source);
		response = rig_command(&rig, &rig_root, line);
		limit = limit_of_source(response);
		assert_int_equal(int_at(limit, "capacity"), cases[i].capacity);
		assert_int_equal(int_at(limit, "used"), cases[i].used);
		json_decref(response);
	}
}

TEST_MAIN
