// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_explain_limits.c - explain of limits: levels, each meter, overrides, CPUs that differ. */
#include "explain_rig.h"

EXPLAIN_TEST(a_limit_with_its_level)
{
	_Alignas(4) u8 frame[128];

	/* Three of four: the very packets given to explain. */
	for (int i = 0; i < 3; i++) {
		struct explain_packet packet = {
			.src.hi = 0xc0000207ULL << 32,
			.dst.hi = 0xcb00710aULL << 32,
			.length = 64,
			.dport = 443,
			.proto = 6,
			.tcp_flags = 16,
			.vlan = SL_VLAN_NONE,
		};

		explain_frame(&packet, frame + 2);
		dp_sim_set_time(rig->dp, clock_mono_ns());
		assert_false(dp_sim_packet(rig->dp, 0, 0, frame + 2, 78).drop);
	}
	expect(rig, "192.0.2.7", ",'dport':'443'",
	       "verdict=pass within 7, limits.0.limit=web, "
	       "limits.0.result=pass, limits.0.line=9, limits.0.meters.0.used=3, "
	       "limits.0.meters.0.capacity=4, limits.0.meters.0.rate=4 packets/h");
	/* A neighbour has all of its own. */
	expect(rig, "192.0.2.8", ",'dport':'443'", "limits.0.meters.0.used=0");
}

/* "RATE at /PREFIX: CAPACITY" of each meter of the first limit. */
static void expect_meters(struct rig *rig, const char *source, const char *wants)
{
	json_t *r = explained(rig, source, ""), *meter;
	char text[300] = "";
	size_t used = 0, i;

	json_array_foreach(json_at(r, "limits.0.meters"), i, meter)
		used += snprintf(text + used, sizeof(text) - used, "%s%s at /%d: %d", i ? ", " : "",
				 text_at(meter, "rate"), (int)int_at(meter, "prefix"),
				 (int)int_at(meter, "capacity"));
	assert_string_equal(text, wants);
	json_decref(r);
}

/* A meter for each rate and each step of the hierarchy; an override stands in at the first only. */
EXPLAIN_TEST(meters_and_overrides)
{
	expect_meters(rig, "192.0.9.200",
		      "5 packets/s at /32: 5, 9 packets/h at /32: 9, "
		      "5 packets/s at /24: 5, 9 packets/h at /24: 9");
	expect(rig, "192.0.9.200", "", "limits.0.meters.0.override=none");
	expect_meters(rig, "192.0.9.4", "3 packets/s at /32: 3, 4 packets/h at /32: 4");
	expect(rig, "192.0.9.4", "",
	       "limits.0.meters.0.override.src=192.0.9.4, limits.0.meters.0.override.line=29");
	expect_meters(rig, "192.0.9.5", "50 packets/s at /32: 50, 90 packets/h at /32: 90");
	expect(rig, "192.0.9.5", "", "limits.0.meters.1.override.src=192.0.9.0/25");
	expect_meters(rig, "192.0.10.1",
		      "10 packets/s at /32: 10, soft: 10% more at /32: 1, "
		      "soft: for 30s at /32: 1, ban: after 100 drops/10s at /0: 100");
}

static const struct explain_packet leased_packet = {
	.src.hi = 0xc0000b07ULL << 32,
	.dst.hi = 0xcb00710aULL << 32,
	.length = 64,
	.proto = 6,
	.tcp_flags = 16,
	.vlan = SL_VLAN_NONE,
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
	u64 leased = int_at(r, "limits.0.meters.0.leased");

	json_decref(r);
	return leased;
}

/* All is used but a lease that CPU 0 holds and has not spent: there the next packet passes. */
EXPLAIN_TEST(differing_cpus_are_listed)
{
	char cpus[16];

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
	snprintf(cpus, sizeof(cpus), "cpus=%d", RIG_CPUS);
	expect(rig, "192.0.11.7", "", cpus);
	expect(rig, "192.0.11.7", "", "verdict=pass within 7, cpus.1.action=drop");
	assert_true(send_leased(rig, 0, 1));
	assert_false(send_leased(rig, 1, 1));
	/* A neighbour's are alike. */
	expect(rig, "192.0.11.8", "", "cpus=none");
}

TEST_MAIN
