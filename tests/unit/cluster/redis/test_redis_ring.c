// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Consistent hashing: even shares, and removing a server moves its own keys and no others. */
#include "cluster/redis/redis_points.h"

#include "lib/test.h"

#define KEYS 40000

static const char *const name[] = {
	"10.0.0.1:6379/0", "10.0.0.2:6379/0", "10.0.0.3:6379/0", "10.0.0.4:6379/0",
	"10.0.0.5:6379/0", "10.0.0.6:6379/0", "10.0.0.7:6379/0", "10.0.0.8:6379/0",
};

static u32 find(const struct ring *ring, u32 key)
{
	char tag[17];

	snprintf(tag, sizeof(tag), "%016llx", (unsigned long long)key * 0x9e3779b97f4a7c15ULL);
	return ring_find(ring, tag, 16);
}

TEST(test_balance)
{
	for (u32 servers = 1; servers <= 8; servers++) {
		u32 count[8] = { 0 };
		struct ring *ring;

		assert_int_equal(ring_new(name, servers, &ring), 0);
		for (u32 key = 0; key < KEYS; key++)
			count[find(ring, key)]++;
		/* Four standard deviations of 4.4 %, and of the keys. */
		for (u32 i = 0; i < servers; i++) {
			assert_in_range(count[i], KEYS / servers * 80 / 100,
					KEYS / servers * 120 / 100);
		}
		ring_free(ring);
	}
}

TEST(test_lost_one_moves_its_share)
{
	static u32 before[KEYS];
	u32 to[8] = { 0 }, moved = 0;
	struct ring *ring;

	assert_int_equal(ring_new(name, 8, &ring), 0);
	for (u32 key = 0; key < KEYS; key++)
		before[key] = find(ring, key);
	ring->out[3] = true;
	for (u32 key = 0; key < KEYS; key++) {
		u32 now = find(ring, key);

		if (before[key] != 3) {
			assert_int_equal(now, before[key]);
			continue;
		}
		assert_int_not_equal(now, 3);
		to[now]++;
		moved++;
	}
	assert_in_range(moved, KEYS / 8 * 80 / 100, KEYS / 8 * 120 / 100);
	/* Not all to one neighbour. */
	for (u32 i = 0; i < 8; i++)
		if (i != 3)
			assert_in_range(to[i], moved / 7 / 2, moved / 7 * 3 / 2);
	/* It comes back, and all is as it was. */
	ring->out[3] = false;
	for (u32 key = 0; key < KEYS; key++)
		assert_int_equal(find(ring, key), before[key]);
	ring_free(ring);
}

TEST(test_new_one_takes_its_share)
{
	struct ring *seven, *eight;
	u32 moved = 0;

	assert_int_equal(ring_new(name, 7, &seven), 0);
	assert_int_equal(ring_new(name, 8, &eight), 0);
	for (u32 key = 0; key < KEYS; key++) {
		if (find(seven, key) == find(eight, key))
			continue;
		assert_int_equal(find(eight, key), 7);
		moved++;
	}
	assert_in_range(moved, KEYS / 8 * 80 / 100, KEYS / 8 * 120 / 100);
	ring_free(seven);
	ring_free(eight);
}

TEST(test_order_does_not_matter)
{
	const char *other[8];
	struct ring *ring, *turned;

	for (u32 i = 0; i < 8; i++)
		other[(i * 3 + 5) % 8] = name[i];
	assert_int_equal(ring_new(name, 8, &ring), 0);
	assert_int_equal(ring_new(other, 8, &turned), 0);
	for (u32 key = 0; key < KEYS; key++)
		assert_ptr_equal(name[find(ring, key)], other[find(turned, key)]);
	ring_free(ring);
	ring_free(turned);
}

/* The server of a key must not change from one version to the next. */
TEST(test_stable_over_versions)
{
	static const char *const tag[] = { "", "a", "0123456789abcdef", "fedcba9876543210", "bus" };
	struct ring *ring;
	char found[6] = "";

	assert_int_equal(ring_new(name, 8, &ring), 0);
	for (u32 i = 0; i < 5; i++)
		found[i] = (char)('0' + ring_find(ring, tag[i], strlen(tag[i])));
	assert_string_equal(found, "66475");
	ring_free(ring);
}

TEST(test_all_out)
{
	struct ring *ring;
	u32 before;

	assert_int_equal(ring_new(name, 3, &ring), 0);
	before = find(ring, 7);
	for (u32 i = 0; i < 3; i++)
		ring->out[i] = true;
	assert_int_equal(find(ring, 7), before);
	ring->out[(before + 1) % 3] = false;
	assert_int_equal(find(ring, 7), (before + 1) % 3);
	ring_free(ring);
}

TEST(test_refused)
{
	static const char *const twice[] = { "a", "b", "a" };
	struct ring *ring = NULL;

	assert_int_equal(ring_new(name, 0, &ring), -EINVAL);
	assert_int_equal(ring_new(name, RING_SERVERS_MAX + 1, &ring), -EINVAL);
	assert_int_equal(ring_new(twice, 3, &ring), -EEXIST);
	assert_null(ring);
}

TEST_MAIN
