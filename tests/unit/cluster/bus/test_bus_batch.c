// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_bus_batch.c - signatures, numbers and times of batches, and the keys derived from the
 * secret. */
#include <sys/stat.h>
#include <unistd.h>

#include "lib/json_text.h"
#include "lib/test.h"
#include "cluster/bus/bus_peers.h"

#define START_US 1800000000000000ULL

/* ------------------------------------------------------------------ one batch */

static struct cluster_keys key_of(u8 fill)
{
	struct cluster_keys keys = { 0 };

	memset(keys.signature, fill, sizeof(keys.signature));
	return keys;
}

static enum bus_verdict open_text(const char *text, json_t **ret)
{
	struct cluster_keys keys = key_of(1);
	u8 signature[BUS_SIGNATURE];
	struct bus_head head;
	enum bus_verdict verdict;

	assert_int_equal(bus_sign(&keys, "t:", text, strlen(text), signature), 0);
	verdict = bus_batch_open(&keys, "t:", text, strlen(text), signature, sizeof(signature),
				 &head, ret);
	if (verdict == BUS_GOOD)
		json_decref(*ret);
	return verdict;
}

TEST(test_signed_nonsense)
{
#define HEAD "'boot_us':1,'number':1,'sent_us':1,'sync_us':1,'version':'1'"
	static const char *const malformed[] = {
		"{'node':'a\n'," HEAD ",'messages':[]}",
		"{'node':'a b'," HEAD ",'messages':[]}",
		"{'node':''," HEAD ",'messages':[]}",
		"{'node':'a','node':'b'," HEAD ",'messages':[]}",
		"{'node':'a'," HEAD ",'messages':{}}",
		"{'node':'a','boot_us':-1}",
		"[]",
		"",
	};
	json_t *messages;

	assert_int_equal(open_text(json_text("{'node':'a'," HEAD ",'messages':[]}"), &messages),
			 BUS_GOOD);
	for (size_t i = 0; i < COUNT(malformed); i++)
		assert_int_equal(open_text(json_text(malformed[i]), &messages), BUS_MALFORMED);
#undef HEAD
}

TEST(test_prefixes_are_clusters)
{
	struct cluster_keys keys = key_of(1);
	u8 one[BUS_SIGNATURE], other[BUS_SIGNATURE];

	assert_int_equal(bus_sign(&keys, "t:", "x", 1, one), 0);
	assert_int_equal(bus_sign(&keys, "t", ":x", 2, other), 0);
	assert_memory_not_equal(one, other, sizeof(one));
	assert_int_equal(bus_sign(&keys, "u:", "x", 1, other), 0);
	assert_memory_not_equal(one, other, sizeof(one));
}

/* ------------------------------------------------------------------ numbers and times */

static struct bus_peers *peers; /* of the test that runs */
static bool joined, twice;	/* of the last batch */

static int set_up(void **state)
{
	return bus_peers_new(&peers);
}

static int tear_down(void **state)
{
	bus_peers_free(peers);
	return 0;
}

#define PEERS_TEST(test) TEST_WITH(test, set_up, tear_down)

static const struct bus_time at_start = { .store_us = START_US,
					  .mono_ns = 60 * SL_NS_PER_SEC,
					  .own_utc_us = START_US };

static enum bus_verdict note(const struct bus_head *head, const struct bus_time *now)
{
	return bus_peers_note(peers, head, now, &joined, &twice);
}

struct note_case {
	const char *node;
	u64 boot_us, number;
	s64 sent_us, now_us; /* of START_US */
	enum bus_verdict wanted;
	bool joined;
};

PEERS_TEST(test_numbers)
{
	static const struct note_case cases[] = {
		{ "a", 10, 1, 0, 0, BUS_GOOD, true },
		{ "a", 10, 2, 100, 100, BUS_GOOD, false },
		{ "a", 10, 2, 100, 200, BUS_REPEATED, false },
		{ "a", 10, 1, 100, 300, BUS_REPEATED, false },
		{ "b", 10, 1, 100, 300, BUS_GOOD, true },
		{ "a", 9, 100, 300, 300, BUS_REPEATED, false },
		{ "a", 10, 4, 300, 400, BUS_GOOD, false },     /* 3 was lost: accepted */
		{ "a", 10, 3, 300, 400, BUS_REPEATED, false }, /* too late now */
		{ "a", 11, 1, 400, 400, BUS_GOOD, true },      /* another daemon */
		{ "a", 11, 2, 400 + 5000001, 400, BUS_AHEAD, false },
		{ "a", 11, 2, 400 + 4000000, 400, BUS_GOOD, false },
		{ "a", 11, 3, 400, 400 + 30000001, BUS_OLD, false },
		{ "a", 11, 3, 30000400, 30000400, BUS_GOOD, true }, /* it was unavailable */
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct note_case *c = &cases[i];
		struct bus_head head = { .boot_us = c->boot_us,
					 .number = c->number,
					 .sent_us = START_US + (u64)c->sent_us,
					 .sync_us = 100000 };
		struct bus_time now = { .store_us = START_US + (u64)c->now_us,
					.mono_ns = 60 * SL_NS_PER_SEC + (u64)c->now_us * 1000,
					.own_utc_us = START_US + (u64)c->now_us };
		enum bus_verdict verdict;

		strcpy(head.node, c->node);
		strcpy(head.version, "1");
		verdict = note(&head, &now);
		if (verdict != c->wanted || joined != c->joined)
			fail_msg("case %zu: %s, joined %d", i, bus_verdict_name(verdict), joined);
	}
}

/* A store with a wrong time does not make old batches fresh again. */
PEERS_TEST(test_lying_clock)
{
	struct bus_head head = { .node = "a", .boot_us = 1, .number = 1, .sent_us = START_US };
	struct bus_time now = at_start;

	now.own_utc_us += 3601ULL * 1000000;
	assert_int_equal(note(&head, &now), BUS_OLD);
	now.own_utc_us = START_US;
	assert_int_equal(note(&head, &now), BUS_GOOD);
}

/* Listed for an hour after the last message, remembered as long as there is room. */
PEERS_TEST(test_silent)
{
	struct bus_head head = {
		.node = "a", .boot_us = 1, .number = 1, .sent_us = START_US, .sync_us = 100000
	};
	struct bus_time now = at_start;
	struct cluster_peer peer;

	assert_int_equal(note(&head, &now), BUS_GOOD);
	assert_int_equal(bus_peers_list(peers, now.mono_ns, &peer, 1), 1);
	assert_true(peer.alive && !peer.left);
	assert_int_equal(bus_peers_list(peers, now.mono_ns + 3599 * SL_NS_PER_SEC, &peer, 1), 1);
	assert_false(peer.alive || peer.left);
	assert_int_equal(bus_peers_list(peers, now.mono_ns + 3600 * SL_NS_PER_SEC, &peer, 1), 0);
	assert_int_equal(note(&head, &now), BUS_REPEATED);
	head.number++;
	head.bye = true;
	assert_int_equal(note(&head, &now), BUS_GOOD);
	assert_int_equal(bus_peers_list(peers, now.mono_ns, &peer, 1), 1);
	assert_true(!peer.alive && peer.left);
}

/* Two daemons of one name are reported once in ten minutes, however often they are noticed. */
PEERS_TEST(test_two_of_one_name)
{
	struct bus_head head = { .node = "a", .sent_us = START_US, .sync_us = 100000 };
	struct bus_time now = at_start;
	u32 said = 0;

	for (u32 i = 0; i < 1210 * 2; i++) {
		head.boot_us = 1 + i % 2;
		head.number++;
		head.sent_us = now.store_us += 250000;
		now.mono_ns += 250000000;
		now.own_utc_us = now.store_us;
		assert_int_equal(note(&head, &now), i && i % 2 == 0 ? BUS_REPEATED : BUS_GOOD);
		said += twice;
	}
	assert_int_equal(said, 2);
}

PEERS_TEST(test_crowds_and_floods)
{
	struct bus_head head = { .boot_us = 1, .sync_us = 100000, .sent_us = START_US };
	struct bus_time now = at_start;
	u32 good = 0;

	for (u32 i = 0; i < 2 * BUS_BATCHES_PER_S; i++) {
		strcpy(head.node, "flood");
		head.number++;
		good += note(&head, &now) == BUS_GOOD;
	}
	assert_in_range(good, 50, BUS_BATCHES_PER_S + 1);
	for (u32 i = 0; i < BUS_PEERS_MAX; i++) {
		snprintf(head.node, sizeof(head.node), "node-%u", i);
		assert_int_equal(note(&head, &now), i < BUS_PEERS_MAX - 1 ? BUS_GOOD : BUS_CROWD);
	}
	/* A dead node makes room. */
	now.mono_ns += 5 * SL_NS_PER_SEC;
	now.store_us += 5000000;
	head.sent_us = now.store_us;
	assert_int_equal(note(&head, &now), BUS_GOOD);
	assert_int_equal(bus_peers_alive(peers, now.mono_ns), 1);
}

/* ------------------------------------------------------------------ keys */

static int keys_of(const char *text, size_t size, mode_t mode, struct cluster_keys *ret,
		   struct sl_err *err)
{
	char path[] = "/tmp/bus-test-XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	fchmod(fd, mode);
	close(fd);
	r = cluster_keys_read(path, ret, err);
	unlink(path);
	return r;
}

TEST(test_keys)
{
	static const char secret[] = "0123456789abcdef0123456789abcdef";
	struct cluster_keys one, same, other;
	struct sl_err err;
	char big[5000];

	assert_int_equal(keys_of(secret, 32, 0600, &one, &err), 0);
	assert_int_equal(keys_of("0123456789abcdef0123456789abcdef\r\n", 34, 0640, &same, &err), 0);
	assert_memory_equal(&one, &same, sizeof(one));
	assert_int_equal(keys_of("1123456789abcdef0123456789abcdef", 32, 0600, &other, &err), 0);
	assert_memory_not_equal(one.signature, other.signature, 32);
	assert_int_not_equal(one.seed.k0, other.seed.k0);
	assert_memory_not_equal(&one.seed, one.signature, sizeof(one.seed));
	assert_int_equal(keys_of(secret, 31, 0600, &other, &err), -EINVAL);
	assert_non_null(strstr(err.message, "has 31 bytes; at least 32"));
	assert_int_equal(keys_of("0123456789abcdef0123456789abcde\n", 32, 0600, &other, &err),
			 -EINVAL);
	assert_int_equal(keys_of(secret, 32, 0644, &other, &err), -EPERM);
	assert_non_null(strstr(err.message, "has mode 0644"));
	memset(big, 'x', sizeof(big));
	assert_int_equal(keys_of(big, sizeof(big), 0600, &other, &err), -EINVAL);
	assert_int_equal(cluster_keys_read("/nonexistent/key", &other, &err), -ENOENT);
	assert_int_equal(cluster_keys_read("/dev/zero", &other, &err), -EINVAL);
}

TEST_MAIN
