// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Bounds of connections: which is closed first, which stays, what is counted, and that nothing is
 * left. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/test.h"
#include "request/server/connections.h"
#include "lib/rng.h"

struct client {
	struct connection *connection;
	int fd, peer_fd;
};

static struct sockaddr_storage address(const char *text)
{
	struct sockaddr_storage ret = { .ss_family = strchr(text, ':') ? AF_INET6 : AF_INET };

	if (ret.ss_family == AF_INET)
		assert_int_equal(inet_pton(AF_INET, text, &((struct sockaddr_in *)&ret)->sin_addr),
				 1);
	else
		assert_int_equal(
			inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&ret)->sin6_addr), 1);
	return ret;
}

static struct client begin(struct connections *all, size_t listener, const char *from)
{
	struct sockaddr_storage peer = address(from);
	struct client client;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	client = (struct client){ .fd = pair[0], .peer_fd = pair[1] };
	client.connection = connection_begin(all, listener, client.fd, (struct sockaddr *)&peer);
	return client;
}

static void end(struct client *client)
{
	connection_end(client->connection);
	close(client->fd);
	close(client->peer_fd);
}

/* Shut down, as its owner sees it. */
static bool evicted(const struct client *client)
{
	char byte;

	return recv(client->fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static struct connection_stats stats(struct connections *all, size_t listener)
{
	struct connection_stats ret;

	connections_stats(all, listener, &ret);
	return ret;
}

static void wait_a_moment(void)
{
	usleep(1000);
}

TEST(test_idle_first)
{
	const struct connection_bounds bounds = { .max = 3 };
	struct connections *all = connections_new(&bounds, 1, 0);
	struct client a = begin(all, 0, "127.0.0.1"), b, c, d, e, f, g;

	wait_a_moment();
	b = begin(all, 0, "192.0.2.1");
	connection_set(b.connection, CONNECTION_PENDING);
	c = begin(all, 0, "192.0.2.1");
	connection_set(c.connection, CONNECTION_BUSY);
	/* a is idle; b, then, is pending; c stays. */
	d = begin(all, 0, "192.0.2.2");
	assert_true(evicted(&a) && !evicted(&b) && !evicted(&c) && d.connection);
	connection_set(d.connection, CONNECTION_BUSY);
	e = begin(all, 0, "192.0.2.2");
	assert_true(evicted(&b) && !evicted(&c) && e.connection);
	connection_set(e.connection, CONNECTION_BUSY);
	f = begin(all, 0, "192.0.2.3");
	assert_null(f.connection);
	assert_false(evicted(&c) || evicted(&d) || evicted(&e));
	assert_int_equal(stats(all, 0).open, 3);
	assert_int_equal(stats(all, 0).evicted, 2);
	assert_int_equal(stats(all, 0).refused, 1);
	/* A connection used since is not the one that was idle longest. */
	connection_set(c.connection, CONNECTION_IDLE);
	connection_set(d.connection, CONNECTION_IDLE);
	wait_a_moment();
	connection_set(c.connection, CONNECTION_BUSY);
	connection_set(c.connection, CONNECTION_IDLE);
	g = begin(all, 0, "192.0.2.3");
	assert_true(g.connection && evicted(&d) && !evicted(&c));
	end(&a), end(&b), end(&c), end(&d), end(&e), end(&f), end(&g);
	assert_int_equal(stats(all, 0).open, 0);
	connections_free(all);
}

TEST(test_address)
{
	const struct connection_bounds bounds[] = { { 100, 2 }, { 100, 2 } };
	struct connections *all = connections_new(bounds, 2, 0);
	struct client six[4], four[3], local[3], other;

	/* A /64 is one address, as is IPv4 on an IPv6 socket; on another listener it has its
	 * own. */
	six[0] = begin(all, 0, "2001:db8::1");
	connection_set(six[0].connection, CONNECTION_BUSY);
	six[1] = begin(all, 0, "2001:db8::2");
	six[2] = begin(all, 0, "2001:db8::3");
	assert_true(evicted(&six[1]) && !evicted(&six[0]) && six[2].connection);
	connection_set(six[2].connection, CONNECTION_BUSY);
	six[3] = begin(all, 0, "2001:db8::4");
	assert_null(six[3].connection);
	assert_int_equal(stats(all, 0).refused_address, 1);
	other = begin(all, 0, "2001:db8:0:1::1");
	assert_non_null(other.connection);
	end(&other);
	other = begin(all, 1, "2001:db8::4");
	assert_non_null(other.connection);
	four[0] = begin(all, 0, "::ffff:192.0.2.1");
	four[1] = begin(all, 0, "192.0.2.1");
	four[2] = begin(all, 0, "192.0.2.1");
	assert_int_equal(evicted(&four[0]) + evicted(&four[1]), 1);
	/* Clients on this host have the listener's bound only. */
	for (int i = 0; i < 3; i++)
		local[i] = begin(all, 0, i ? "127.0.0.1" : "::1");
	assert_false(evicted(&local[0]) || evicted(&local[1]));
	for (int i = 0; i < 4; i++)
		end(&six[i]);
	for (int i = 0; i < 3; i++)
		end(&four[i]), end(&local[i]);
	end(&other);
	connections_free(all);
}

/* All listeners together: one of the address with the most is closed. */
TEST(test_total)
{
	const struct connection_bounds bounds[] = { { 100, 0 }, { 100, 0 } };
	struct connections *all = connections_new(bounds, 2, 3);
	struct client a = begin(all, 0, "192.0.2.1"), b = begin(all, 0, "192.0.2.1");
	struct client c = begin(all, 1, "192.0.2.2"), d = begin(all, 1, "192.0.2.2");

	assert_int_equal(evicted(&a) + evicted(&b), 1);
	assert_false(evicted(&c) || evicted(&d));
	end(&a), end(&b), end(&c), end(&d);
	connections_free(all);
}

#define MANY 300

TEST(test_random)
{
	const struct connection_bounds bounds[] = { { 40, 7 }, { 60, 9 } };
	struct connections *all = connections_new(bounds, 2, 80);
	struct client client[MANY] = { { 0 } };
	u64 evictions;

	rng_start("test_connections");
	for (int step = 0; step < 20000; step++) {
		struct client *one = &client[rng_below(MANY)];
		char from[32];

		if (one->connection && rng_below(3)) {
			connection_set(one->connection, rng_below(3));
		} else if (one->connection) {
			end(one);
			one->connection = NULL;
		} else {
			snprintf(from, sizeof(from), "192.0.2.%llu", 1 + rng_below(20));
			*one = begin(all, rng_below(2), from);
			if (!one->connection)
				end(one);
		}
		assert_true(stats(all, 0).open <= 40 && stats(all, 1).open <= 60);
		assert_true(stats(all, 0).open + stats(all, 1).open <= 80);
	}
	for (int i = 0; i < MANY; i++)
		if (client[i].connection)
			end(&client[i]);
	evictions = stats(all, 0).evicted + stats(all, 1).evicted;
	assert_true(evictions > 100);
	assert_int_equal(stats(all, 0).open + stats(all, 1).open, 0);
	connections_free(all);
}

TEST_MAIN
