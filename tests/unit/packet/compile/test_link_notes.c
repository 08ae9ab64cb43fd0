// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_link_notes.c - which interface stands on which (lib/links.h), and the notes on a
 * policy's. */
#include "lib/test.h"
#include "lib/links.h"
#include "policy_make.h"

/*
 * eth0, with the VLAN device eth0.10, a port of br0, with the macvlan mv0 on it; bond0 of eth1 and
 * eth2; a veth and its peer; mv9, on a device of another namespace.
 */
static struct link all[] = {
	{ .ifindex = 2, .name = "eth0" },
	{ .ifindex = 3, .name = "eth0.10", .kind = "vlan", .link = 2, .master = 4 },
	{ .ifindex = 4, .name = "br0", .kind = "bridge" },
	{ .ifindex = 5, .name = "mv0", .kind = "macvlan", .link = 4 },
	{ .ifindex = 6, .name = "eth1", .master = 8 },
	{ .ifindex = 7, .name = "eth2", .master = 8 },
	{ .ifindex = 8, .name = "bond0", .kind = "bond" },
	{ .ifindex = 9, .name = "v0", .kind = "veth", .link = 10 },
	{ .ifindex = 10, .name = "v1", .kind = "veth", .link = 9 },
	{ .ifindex = 11, .name = "mv9", .kind = "macvlan" },
};
static const struct links links = { all, COUNT(all) };

TEST(test_above)
{
	assert_true(link_stands_on(&all[1], &all[0]));
	assert_true(link_stands_on(&all[2], &all[1]));
	assert_true(link_stands_on(&all[6], &all[5]));
	assert_false(link_stands_on(&all[2], &all[0]));
	assert_false(link_stands_on(&all[0], &all[1]));
	assert_false(link_stands_on(&all[7], &all[8]));
	assert_false(link_stands_on(&all[8], &all[7]));
	assert_false(link_stands_on(&all[9], &all[0]));
	assert_true(links_is_above(&links, 5, 2));
	assert_false(links_is_above(&links, 2, 5));
	assert_false(links_is_above(&links, 8, 2));
	assert_false(links_is_above(&links, 6, 7));
	assert_false(links_is_above(&links, 99, 2));
	assert_int_equal(links_depth(&links, 2), 0);
	assert_int_equal(links_depth(&links, 5), 3);
	assert_int_equal(links_depth(&links, 8), 1);
	assert_int_equal(links_depth(&links, 9), 0);
}

static void collect(void *arg, const char *ifname, const char *words)
{
	char *text = arg;

	sprintf(text + strlen(text), "%s %.*s\n", ifname, (int)strcspn(words, ":,"), words);
}

TEST(test_notes)
{
	struct interface_def interface[] = { { .name = "br0" },
					     { .name = "eth0" },
					     { .name = "eth0.10" },
					     { .name = "eth1" },
					     { .name = "gone0" } };
	match_interface only[] = { "eth0" };
	struct u16_range vlan = { 10, 10 };
	struct limit_def limit[] = { make_limit("web"), make_limit("tagged") };
	struct policy policy = make_policy(limit, 2);
	char text[1024] = "";

	policy.interface = interface;
	policy.interface_count = COUNT(interface);
	limit[1].match.vlan = &vlan;
	limit[1].match.vlan_count = 1;
	policy_link_notes(&policy, &links, collect, text);
	assert_string_equal(text,
			    "br0 stands on eth0\nbr0 stands on eth0.10\neth0.10 stands on eth0\n"
			    "eth0.10 is a VLAN device\n");

	/* Each limit for one interface alone. */
	text[0] = '\0';
	limit[0].match.interface = limit[1].match.interface = only;
	limit[0].match.interface_count = limit[1].match.interface_count = 1;
	policy_link_notes(&policy, &links, collect, text);
	assert_string_equal(text, "");

	text[0] = '\0';
	limit[0].match.interface_count = limit[1].match.interface_count = 0;
	limit[0].mode = limit[1].mode = SL_MODE_OFF;
	policy_link_notes(&policy, &links, collect, text);
	assert_string_equal(text, "");
}

TEST_MAIN
