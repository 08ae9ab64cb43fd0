// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* source show: the used part of each limit of a source, and its entries in lists. */
#include "lib/daemon_rig.h"

#define SHOW(source) "source show {'source':'" source "'}"

RIG_TEST(test_source_show)
{
	static const char *const line = SHOW("192.0.2.1");
	json_t *response;

	rig_open(&rig, "exempt: [192.0.2.1]\nlimits: [{name: all, rate: 10 packets/m, burst: 10, "
		       "accounting: exact}, {name: pair, rate: 1 packets/s, per: [source, dst]}, "
		       "{name: far, rate: 1 packets/s, match: {src: 203.0.113.0/24}}]\n");
	rig_expect(&rig, line, "exempt_until=always");
	rig_do(&rig, "exempt del {'prefix':'192.0.2.1'}");
	rig_passed(&rig, 1, 1, clock_mono_ns());
	rig_expect(&rig, line, "limits.0.state=within");
	rig_do(&rig, "limit set {'name':'pair','pairs':['mode=off']}");
	assert_int_equal(rig_passed(&rig, 1, 50, clock_mono_ns()), 9);
	response = rig_command(&rig, &rig_root, line);
	json_expect(response, line, "result.limits.0.state=over");
	assert_in_range(int_at(response, "result.limits.0.wait_ns"), 1, 6 * SL_NS_PER_SEC);
	json_decref(response);
}

/* A source with an override: its own bucket and rates; its neighbour the limit's. */
RIG_TEST(test_source_show_override)
{
	rig_open(&rig, "limits: [{name: all, rate: 10 packets/m, burst: 10, accounting: exact, "
		       "prefix: {ipv4: 24}, overrides: [{src: 192.0.2.1, rate: 30 packets/h, "
		       "burst: 30}]}]\n");
	assert_int_equal(rig_passed(&rig, 1, 3, clock_mono_ns()), 3);
	rig_expect(&rig, SHOW("192.0.2.1"), "limits.0.capacity=30, limits.0.used=3");
	rig_expect(&rig, SHOW("192.0.2.2"), "limits.0.capacity=10, limits.0.used=0");
}

/* `source show` says exactly what a source lost lately, and an estimate once the daemon samples
 * packets. */
RIG_TEST(test_lately)
{
	json_t *response;

	rig_open(&rig, "limits: [{name: all, rate: 10 packets/h, burst: 10, accounting: exact}]\n");
	assert_int_equal(rig_passed(&rig, 1, 100, clock_mono_ns()), 10);
	rig_expect(&rig, SHOW("192.0.2.1"),
		   "lately.dropped=90, lately.passed=10, lately.estimate=false, "
		   "lately.by.0.limit=all");
	rig_expect(&rig, SHOW("192.0.2.2"),
		   "lately.dropped=0, lately.passed=0, lately.estimate=false");
	assert_int_equal(rig_passed(&rig, 1, 30000, clock_mono_ns()), 0);
	response = rig_command(&rig, &rig_root, SHOW("192.0.2.1"));
	json_expect(response, "sampled",
		    "result.lately.estimate=true, result.lately.by.0.limit=all");
	assert_in_range(int_at(response, "result.lately.dropped"), 24000, 36000);
	json_decref(response);
	/* While packets are sampled, a source without an entry may have lost some: the answer is
	 * "none known". */
	rig_expect(&rig, SHOW("192.0.2.2"), "lately.dropped=none, lately.passed=none");
}

TEST_MAIN
