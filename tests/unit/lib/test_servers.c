// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_servers.c - resolvers of resolv.conf, and servers that the daemon connected to. */
#include <unistd.h>

#include <arpa/inet.h>

#include "lib/test.h"
#include "lib/servers.h"

static void assert_server(const struct server_list *list, u32 index, const char *text)
{
	char buf[64];

	assert_true(index < list->count);
	assert_string_equal(sl_prefix_format(&list->server[index], buf, sizeof(buf)), text);
}

TEST(resolvers)
{
	struct server_list list = { .count = 0 }, again = { .count = 0 };
	char path[] = "/tmp/sluice-resolv.XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	assert_non_null(file);
	fputs("# nameserver 192.0.2.1\nsearch example.org\nnameserver 192.0.2.53\n"
	      "\tnameserver\t2001:db8::53 # here\nnameserver fe80::1%eth0\nnameserver 192.0.2.53\n"
	      "nameserver 192.0.2.0/24\nnameserver here\nnameserver\n;nameserver 192.0.2.2\n",
	      file);
	fclose(file);
	servers_add_resolvers(&list, path);
	assert_int_equal(list.count, 3);
	assert_server(&list, 0, "192.0.2.53");
	assert_server(&list, 1, "2001:db8::53");
	assert_server(&list, 2, "fe80::1");
	assert_false(servers_equal(&list, &again));
	servers_add_resolvers(&again, path);
	assert_true(servers_equal(&list, &again));
	unlink(path);
	servers_add_resolvers(&list, path);
	assert_int_equal(list.count, 3);
}

static void note(u32 host)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(0xc0000200 + host) };

	servers_note((struct sockaddr *)&addr);
}

/* Each once; more than are kept push the oldest out. */
TEST(connected)
{
	struct server_list list;

	note(1);
	note(1);
	note(2);
	servers_noted(&list);
	assert_int_equal(list.count, 2);
	assert_server(&list, 0, "192.0.2.1");
	for (u32 i = 3; i <= SERVERS_KEPT + 1; i++)
		note(i);
	servers_noted(&list);
	assert_int_equal(list.count, SERVERS_KEPT);
	assert_server(&list, 0, "192.0.2.65");
	assert_server(&list, 1, "192.0.2.2");
}

TEST_MAIN
