// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_explain_limits.c - explain of limits: levels, each meter, overrides, CPUs that differ. */
#include "explain_rig.h"

EXPLAIN_TEST(a_limit_with_its_level)
{
	const json_t *limit, *row;
	_Alignas(4) u8 frame[128];
	json_t *r;

	/* Three of four: the very packets given to explain. */
	for (int i = 0; i < 3; i++) {
		struct explain_packet packet = {
			.src.hi = 0xc0000207ULL << 32, .dst.hi = 0xcb00710aULL << 32,
			.length = 64, .dport = 443, .proto = 6, .tcp_flags = 16,
			.vlan = SL_VLAN_NONE,
		};

		explain_frame(&packet, frame + 2);
		dp_sim_set_time(rig->dp, clock_mono_ns());
		assert_false(dp_sim_packet(rig->dp, 0, 0, frame + 2, 78).drop);
	}
	r = explained(rig, "192.0.2.7", ",\"dport\":\"443\"");
	assert_verdict(r, "pass", "within", 7);
	limit = json_at(r, "limits.0");
	assert_string_equal(text_at(limit, "limit"), "web");
	assert_string_equal(text_at(limit, "result"), "pass");
	assert_int_equal(int_at(limit, "line"), LINE_WEB);
	row = json_at(limit, "meters.0");
	assert_int_equal(int_at(row, "used"), 3);
	assert_int_equal(int_at(row, "capacity"), 4);
	assert_string_equal(text_at(row, "rate"), "4 packets/h");
	json_decref(r);
	/* A neighbour has all of its own. */
	r = explained(rig, "192.0.2.8", ",\"dport\":\"443\"");
	row = json_at(r, "limits.0.meters.0");
	assert_int_equal(int_at(row, "used"), 0);
	json_decref(r);
}

static const json_t *meter_of(const json_t *result, size_t limit, size_t row)
{
	const json_t *limits = json_object_get(result, "limits");

	return json_array_get(json_object_get(json_array_get(limits, limit), "meters"), row);
}

static void assert_meter(const json_t *result, size_t row, const char *rate, int prefix,
			 int capacity)
{
	const json_t *json = meter_of(result, 0, row);

	assert_non_null(json);
	assert_string_equal(text_at(json, "rate"), rate);
	assert_int_equal(int_at(json, "prefix"), prefix);
	assert_int_equal(int_at(json, "capacity"), capacity);
}

/* A meter for each rate and each step of the hierarchy; an override stands in at the first only. */
EXPLAIN_TEST(meters_and_overrides)
{
	json_t *r = explained(rig, "192.0.9.200", "");

	assert_meter(r, 0, "5 packets/s", 32, 5);
	assert_meter(r, 1, "9 packets/h", 32, 9);
	assert_meter(r, 2, "5 packets/s", 24, 5);
	assert_meter(r, 3, "9 packets/h", 24, 9);
	assert_null(meter_of(r, 0, 4));
	assert_null(json_object_get(meter_of(r, 0, 0), "override"));
	json_decref(r);

	r = explained(rig, "192.0.9.4", "");
	assert_meter(r, 0, "3 packets/s", 32, 3);
	assert_meter(r, 1, "4 packets/h", 32, 4);
	assert_null(meter_of(r, 0, 2));
	assert_string_equal(text_in(meter_of(r, 0, 0), "override", "src"), "192.0.9.4");
	assert_int_equal(number_in(meter_of(r, 0, 0), "override", "line"), LINE_OWN_4);
	json_decref(r);
	r = explained(rig, "192.0.9.5", "");
	assert_meter(r, 1, "90 packets/h", 32, 90);
	assert_string_equal(text_in(meter_of(r, 0, 1), "override", "src"), "192.0.9.0/25");
	json_decref(r);

	r = explained(rig, "192.0.10.1", "");
	assert_meter(r, 1, "soft: 10% more", 32, 1);
	assert_meter(r, 2, "soft: for 30s", 32, 1);
	assert_meter(r, 3, "ban: after 100 drops/10s", 0, 100);
	json_decref(r);
}

static const struct explain_packet leased_packet = {
	.src.hi = 0xc0000b07ULL << 32, .dst.hi = 0xcb00710aULL << 32, .length = 64, .proto = 6,
	.tcp_flags = 16, .vlan = SL_VLAN_NONE,
};

/* True where the last of them passed. */
static bool send_leased(struct rig *rig, u32 cpu, u32 count)
{
	_Alignas(4) u8 frame[128];
	bool drop = false;

	while (count--) {
		explain_frame(&leased_packet, frame + 2);
		drop = dp_sim_packet(rig->dp, cpu, 0, frame + 2, 78).drop;
	}
	return !drop;
}

static u64 leased_now(struct rig *rig)
{
	json_t *r = explained(rig, "192.0.11.7", "");
	u64 leased = int_at(meter_of(r, 0, 0), "leased");

	json_decref(r);
	return leased;
}

/* All is used but a lease that CPU 0 holds and has not spent: there the next packet passes. */
EXPLAIN_TEST(differing_cpus_are_listed)
{
	const json_t *cpus;
	json_t *r;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		print_message("skipped: one CPU cannot differ\n");
		skip();
	}
	dp_sim_set_time(rig->dp, clock_mono_ns());
	assert_true(send_leased(rig, 0, 50000));
	while (!leased_now(rig))
		assert_true(send_leased(rig, 0, 1));
	while (send_leased(rig, 1, 1))
		;
	r = explained(rig, "192.0.11.7", "");
	cpus = json_object_get(r, "cpus");
	assert_int_equal(json_array_size(cpus), RIG_CPUS);
	assert_verdict(r, "pass", "within", 7);
	assert_string_equal(text_in(json_array_get(cpus, 1), NULL, "action"), "drop");
	json_decref(r);
	assert_true(send_leased(rig, 0, 1));
	assert_false(send_leased(rig, 1, 1));
	/* A neighbour's are alike. */
	r = explained(rig, "192.0.11.8", "");
	assert_null(json_object_get(r, "cpus"));
	json_decref(r);
}

TEST_MAIN
