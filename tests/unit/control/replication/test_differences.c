// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Messages of nodes that differ: what is noted of each, and that malformed ones are noted nowhere.
 */
#include <jansson.h>

#include "lib/array.h"
#include "lib/json_text.h"
#include "lib/test.h"
#include "control/replication/differences.c"

#define OWN "0000000000000001"
#define OTHER "0000000000000002"

/* This node has two limits and a rule. */
static struct item items[] = {
	{ .name = "limit dns", .rate = "10 packets/s", .digest = 0xd },
	{ .name = "limit web", .rate = "100 packets/s", .digest = 0xe },
	{ .name = "rule api/user", .rate = "5 requests/s", .digest = 0xf },
};
static struct differences here;
static struct nodes nodes = { .differences = &here };

static void begin(void)
{
	free(here.peer);
	here = (struct differences){ .item = items,
				     .item_count = 3,
				     .digest = 1,
				     .listed = true,
				     .peer = calloc(NODES_MAX, sizeof(struct peer)) };
	for (u32 i = 0; i < 3; i++)
		items[i].seen = 0;
}

/* What is noted of node b after this message of it; NULL: b does not differ, or is not known. */
static const char *after(json_t *body)
{
	static char what[WHAT_BYTES];
	struct cluster_message message = { .node = "b", .body = body };
	json_t *shown;
	const char *text;

	assert_non_null(body);
	on_rules(&nodes, &message);
	json_decref(body);
	shown = differences_to_json(&nodes, "b");
	text = json_string_value(json_object_get(shown, "what"));
	snprintf(what, sizeof(what), "%s", text ? text : "");
	json_decref(shown);
	return text ? what : NULL;
}

static const char *after_text(const char *text)
{
	return after(json_loads(json_text(text), JSON_ALLOW_NUL, NULL));
}

/* A message of another digest with this list. */
static const char *after_list(const char *list)
{
	char text[2048];

	snprintf(text, sizeof(text), "{'digest':'" OTHER "','list':%s}", list);
	return after_text(text);
}

#define UNKNOWN "which is not known yet"

TEST(test_what_differs)
{
	begin();
	assert_null(after_text("{'digest':'" OWN "'}"));
	assert_string_equal(after_text("{'digest':'" OTHER "'}"), UNKNOWN);
	assert_string_equal(
		after_list("[['limit dns','000000000000000d','10 packets/s'],"
			   "['limit web','000000000000000a','50 packets/s'],"
			   "['limit new','000000000000000b','1 packets/s']]"),
		"limit web: 100 packets/s here, 50 packets/s there; limit new: there alone");
	assert_int_equal(here.peer[0].count, 2);
	/* A message without a list forgets none of it. */
	assert_string_equal(
		after_text("{'digest':'" OTHER "'}"),
		"limit web: 100 packets/s here, 50 packets/s there; limit new: there alone");
	assert_string_equal(after_text("{'digest':'" OTHER "','all':true,'list':"
				       "[['limit dns','000000000000000a','10 packets/s']]}"),
			    "limit dns; limit web: here alone; rule api/user: here alone");
	assert_null(after_text("{'digest':'" OWN "'}"));
}

/* Another version's message may have more: that is not looked at. */
TEST(test_another_version)
{
	begin();
	assert_null(after_text("{'digest':'" OWN "','version':2,'list':{'a':1}}"));
	assert_string_equal(after_text("{'digest':'" OTHER "','list':{'limit web':1}}"), UNKNOWN);
	assert_string_equal(
		after_list("[['limit web','000000000000000a','50 packets/s',{'burst':1}]]"),
		"limit web: 100 packets/s here, 50 packets/s there");
	assert_string_equal(after_text("{'digest':'" OTHER "','all':1,'list':[]}"), UNKNOWN);
}

TEST(test_no_digest)
{
	static const char *const body[] = {
		"{}",
		"{'digest':1}",
		"{'digest':null}",
		"{'digest':''}",
		"{'digest':'2'}",
		"{'digest':'000000000000000g'}",
		"{'digest':'00000000000000020'}",
		"{'digest':['" OTHER "']}",
		"{'digest':'-000000000000002'}",
		"[]",
		"'" OTHER "'",
		"7",
	};

	begin();
	for (u32 i = 0; i < ARRAY_SIZE(body); i++)
		assert_null(after(json_loads(json_text(body[i]), JSON_DECODE_ANY, NULL)));
	assert_int_equal(here.peer_count, 0);
}

TEST(test_elements_that_are_none)
{
	static const char *const list[] = {
		"[1,null,'limit web',{},[]]",
		"[['limit web']]",
		"[['limit web','000000000000000a']]",
		"[['limit web','000000000000000a',50]]",
		"[['limit web',10,'50 packets/s']]",
		"[['limit web','00a','50 packets/s']]",
		"[['limit web','000000000000000a0','50 packets/s']]",
		"[[7,'000000000000000a','50 packets/s']]",
		/* Unprintable, and with a zero byte inside. */
		"[['limit \\u001b[2J','000000000000000a','50 packets/s']]",
		"[['limit new\\n','000000000000000a','50 packets/s']]",
		"[['limit web','000000000000000a','50\\u0007']]",
		"[['limit web\\u0000x','000000000000000a','50 packets/s']]",
		"[['limit web','000000000000000a\\u0000','50 packets/s']]",
		/* A rate that is too long. */
		"[['limit web','000000000000000a','50 packets/s 50 packets/s 50 packets/s 50 packets/s']]",
	};

	begin();
	for (u32 i = 0; i < ARRAY_SIZE(list); i++)
		assert_string_equal(after_list(list[i]), UNKNOWN);
}

/* A name that is too long is not taken; of many as much is kept as has room, and all are counted.
 */
TEST(test_too_long_and_too_many)
{
	char name[NAME_BYTES_MAX + 9];
	const char *what;

	begin();
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_string_equal(after(json_pack("{s:s, s:[[s, s, s]]}", "digest", OTHER, "list", name,
					    "000000000000000a", "")),
			    UNKNOWN);
	for (u32 len = 1; len < 40; len++) {
		json_t *list = json_array();

		for (u32 i = 0; i < 3000; i++)
			json_array_append_new(list, json_pack("[s%, s, s]", name, (size_t)len,
							      "000000000000000a", ""));
		what = after(json_pack("{s:s, s:o}", "digest", OTHER, "list", list));
		assert_int_equal(here.peer[0].count, 3000);
		assert_in_range(strlen(what), WHAT_BYTES - len - 16, WHAT_BYTES - 1);
		/* Whole entries only. */
		assert_string_equal(what + strlen(what) - 7, "e alone");
	}
}

/* Nodes beyond the room take the place of the one that has been silent longest. */
TEST(test_too_many_nodes)
{
	json_t *body = json_pack("{s:s}", "digest", OTHER);
	char name[CLUSTER_NODE_MAX + 2] = "";

	begin();
	for (u32 i = 0; i < NODES_MAX + 10; i++) {
		struct cluster_message message = { .node = name, .body = body };

		snprintf(name, sizeof(name), "n%u", i);
		on_rules(&nodes, &message);
	}
	assert_int_equal(here.peer_count, NODES_MAX);
	assert_null(peer_find(&here, "n0"));
	assert_non_null(peer_find(&here, name));
	memset(name, 'n', CLUSTER_NODE_MAX + 1);
	on_rules(&nodes, &(struct cluster_message){ .node = name, .body = body });
	assert_non_null(peer_find(&here, "n10"));
	json_decref(body);
	free(here.peer);
	here.peer = NULL;
}

TEST_MAIN
