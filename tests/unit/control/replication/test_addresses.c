// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_addresses.c - the addresses that other nodes publish: which are accepted, how many, how
 * long. Received messages are input: any program with the secret may send anything.
 */
#include "lib/test.h"
#include "control/replication/addresses.c"

static struct addresses *make(void)
{
	struct addresses *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	return a;
}

/* `body` is consumed. */
static void receive(struct addresses *a, const char *node, json_t *body)
{
	const struct cluster_message message = { .node = node, .kind = KIND, .body = body };

	assert_non_null(body);
	on_message(a, &message);
	json_decref(body);
}

static void receive_text(struct addresses *a, const char *node, const char *text)
{
	receive(a, node, json_loads(text, 0, NULL));
}

/* Those in force are these, in any order. */
static void assert_addresses(struct addresses *a, const char *const *text, size_t count)
{
	const struct sl_prefix *list;
	size_t listed;
	char buf[64];

	addresses_changed(a);
	list = addresses_of_nodes(a, &listed);
	assert_int_equal(listed, count);
	for (size_t i = 0; i < count; i++) {
		bool found = false;

		for (size_t k = 0; k < listed; k++)
			found |= !strcmp(sl_prefix_format(&list[k], buf, sizeof(buf)), text[i]);
		if (!found)
			fail_msg("%s is not there", text[i]);
	}
}

TEST(test_a_list_replaces_the_one_before)
{
	struct addresses *a = make();

	receive_text(a, "a", "{\"addresses\": [\"192.0.2.1\", \"2001:db8::1\"]}");
	receive_text(a, "b", "{\"addresses\": [\"192.0.2.1\", \"192.0.2.2\"]}");
	assert_true(addresses_changed(a));
	assert_false(addresses_changed(a));
	assert_addresses(a, (const char *[]){ "192.0.2.1", "192.0.2.2", "2001:db8::1" }, 3);
	/* The same again is no change: the rules are not compiled anew. */
	receive_text(a, "a", "{\"addresses\": [\"2001:db8::1\", \"192.0.2.1\"]}");
	assert_false(addresses_changed(a));
	/* Addresses that b still has stay. */
	receive_text(a, "a", "{\"addresses\": [\"192.0.2.3\"]}");
	assert_true(addresses_changed(a));
	assert_addresses(a, (const char *[]){ "192.0.2.1", "192.0.2.2", "192.0.2.3" }, 3);
	addresses_close(a);
}

TEST(test_input)
{
	static const char *const bad[] = {
		"{}",
		"{\"addresses\": 3}",
		"{\"addresses\": \"192.0.2.9\"}",
		"{\"addresses\": {}}",
		"{\"addresses\": [3, null, {}, [], \"\", \"x\", \"192.0.2\", \"192.0.2.0/24\", \"::/0\"]}",
		"{\"addresses\": [\"127.0.0.1\", \"0.0.0.0\", \"0.1.2.3\", \"224.0.0.1\", \"255.255.255.255\", "
		"\"169.254.1.1\", \"::1\", \"::\", \"fe80::1\", \"febf::1\", \"ff02::1\"]}",
	};
	struct addresses *a = make();

	for (size_t i = 0; i < COUNT(bad); i++) {
		receive_text(a, "a", bad[i]);
		assert_addresses(a, NULL, 0);
	}
	/* Their neighbors are accepted. */
	receive_text(a, "a",
		     "{\"addresses\": [\"126.0.0.1\", \"128.0.0.1\", \"1.2.3.4\", \"223.0.0.1\", "
		     "\"169.253.1.1\", \"fec0::1\", \"fe00::1\", \"192.0.2.9/32\"]}");
	assert_addresses(a,
			 (const char *[]){ "126.0.0.1", "128.0.0.1", "1.2.3.4", "223.0.0.1",
					   "169.253.1.1", "fec0::1", "fe00::1", "192.0.2.9" },
			 8);
	addresses_close(a);
}

static json_t *many(u32 from, u32 count)
{
	json_t *list = json_array();

	for (u32 i = from; i < from + count; i++)
		json_array_append_new(list,
				      json_sprintf("10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255));
	return json_pack("{s:o}", "addresses", list);
}

TEST(test_bounds)
{
	struct addresses *a = make();
	char node[16];
	size_t count;

	receive(a, "greedy", many(0, 5000));
	assert_true(addresses_changed(a));
	addresses_of_nodes(a, &count);
	assert_int_equal(count, ADDRESSES_OF_A_NODE);
	for (u32 i = 1; i < 100; i++) {
		snprintf(node, sizeof(node), "node%u", i);
		receive(a, node, many(i * 100, ADDRESSES_OF_A_NODE));
	}
	assert_true(addresses_changed(a));
	addresses_of_nodes(a, &count);
	assert_int_equal(count, NODE_ADDRESSES_MAX);
	/* No message displaces addresses of other nodes; one that withdraws its own makes room. */
	receive(a, "greedy", many(0, 1));
	receive(a, "late", many(60000, 3));
	assert_true(addresses_changed(a));
	addresses_of_nodes(a, &count);
	assert_int_equal(count, NODE_ADDRESSES_MAX - ADDRESSES_OF_A_NODE + 1 + 3);
	addresses_close(a);
}

TEST(test_kept_for_an_hour)
{
	struct addresses *a = make();

	receive_text(a, "a", "{\"addresses\": [\"192.0.2.1\"]}");
	receive_text(a, "b", "{\"addresses\": [\"192.0.2.2\"]}");
	assert_true(addresses_changed(a));
	a->entry[0].received_ns -= KEPT_NS - 60 * SL_NS_PER_SEC;
	assert_false(addresses_changed(a));
	a->entry[0].received_ns -= 60 * SL_NS_PER_SEC;
	assert_true(addresses_changed(a));
	assert_addresses(a, (const char *[]){ "192.0.2.2" }, 1);
	addresses_close(a);
}

TEST_MAIN
