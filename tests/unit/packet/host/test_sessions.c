/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Login sessions from an invented /proc and utmp, and gateways from invented
 * messages: which connections count, and which must not.
 */
#include <ftw.h>
#include <sys/stat.h>

#include "lib/test.h"
#include "packet/host/gateways.c"
#include "packet/host/sessions.c"

/* Of the test that runs. */
static struct {
	char dir[64];
	char utmp[80];
} tree;

static void make(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static int tree_open(void **state)
{
	char path[128];

	strcpy(tree.dir, "/tmp/sluice-test.XXXXXX");
	assert_non_null(mkdtemp(tree.dir));
	snprintf(tree.utmp, sizeof(tree.utmp), "%s/utmp", tree.dir);
	snprintf(path, sizeof(path), "%s/self", tree.dir);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/self/net", tree.dir);
	mkdir(path, 0755);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int tree_close(void **state)
{
	return nftw(tree.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#define TREE_TEST(test) TEST_WITH(test, tree_open, tree_close)

/* A process that holds the sockets of `inodes`, up to a 0; NULL: its descriptors are hidden. */
static void add_process(int pid, int parent, unsigned int uid, const char *name,
			const unsigned long *inodes)
{
	char path[128], text[128];

	snprintf(path, sizeof(path), "%s/%d", tree.dir, pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%d/status", tree.dir, pid);
	snprintf(text, sizeof(text),
		 "Name:\t%s\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t%d\n"
		 "PPid:\t%d\nTracerPid:\t0\nUid:\t%u\t%u\t%u\t%u\n",
		 name, pid, parent, uid, uid, uid, uid);
	make(path, text);
	if (!inodes)
		return;
	snprintf(path, sizeof(path), "%s/%d/fd", tree.dir, pid);
	mkdir(path, 0755);
	for (int i = 0; inodes[i]; i++) {
		snprintf(path, sizeof(path), "%s/%d/fd/%d", tree.dir, pid, i + 3);
		snprintf(text, sizeof(text), "socket:[%lu]", inodes[i]);
		assert_int_equal(symlink(text, path), 0);
	}
	snprintf(path, sizeof(path), "%s/%d/fd/0", tree.dir, pid);
	assert_int_equal(symlink("/dev/null", path), 0);
}

#define SOCKETS(...) ((const unsigned long[]){ __VA_ARGS__, 0 })

static const char tcp_head[] =
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

/* Lines of /proc/net/tcp: port 22 of 10.1.0.1, from 192.0.2.1 with port 1000 + inode. */
static void write_tcp(const unsigned long *inodes)
{
	char path[128], text[16384];
	size_t used = (size_t)snprintf(text, sizeof(text), "%s", tcp_head);
	u32 local = htonl(0x0a010001), remote = htonl(0xc0000201);

	/* The one that listens. */
	used += (size_t)snprintf(
		text + used, sizeof(text) - used,
		"   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 "
		"00000000     0        0 1 1 0000000000000000 100 0 0 10 0\n");
	for (int i = 0; inodes[i]; i++)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used,
			"%4d: %08X:0016 %08X:%04lX 01 00000000:00000000 02:000A7EC2 "
			"00000000     0        0 %lu 4 0000000000000000 20 4 29 10 -1\n",
			i + 1, local, remote, 1000 + inodes[i], inodes[i]);
	snprintf(path, sizeof(path), "%s/self/net/tcp", tree.dir);
	make(path, text);
}

/* Who was found, as the inode in the remote port. */
static bool has(const struct session_list *list, u16 inode)
{
	for (u32 i = 0; i < list->count; i++)
		if (list->session[i].sport == 1000 + inode)
			return true;
	return false;
}

static void find(struct session_list *list)
{
	struct sl_err err;

	assert_int_equal(sessions_find(tree.dir, tree.utmp, list, &err), 0);
}

TREE_TEST(test_login_sessions)
{
	struct session_list list;

	add_process(1, 0, 0, "systemd", SOCKETS(90));
	/* Listens; and has just accepted the connection of the one still authenticating. */
	add_process(100, 1, 0, "sshd", SOCKETS(1, 13));
	/* A user's session: root's sshd, the user's sshd, the shell. */
	add_process(110, 100, 0, "sshd", SOCKETS(11));
	add_process(111, 110, 1000, "sshd", SOCKETS(11));
	add_process(112, 111, 1000, "bash", SOCKETS(21));
	add_process(113, 112, 1000, "curl", SOCKETS(22));
	/* Root's: no second sshd. OpenSSH 9.8 calls it sshd-session. */
	add_process(120, 100, 0, "sshd-session", SOCKETS(12));
	add_process(121, 120, 0, "sh", NULL);
	/* Authenticating. */
	add_process(130, 100, 0, "sshd", SOCKETS(13));
	add_process(131, 130, 105, "sshd", SOCKETS(13));
	/* A user's own program by that name. */
	add_process(140, 112, 1000, "sshd", SOCKETS(14));
	add_process(141, 140, 1000, "bash", NULL);
	/* A web server, and one whose descriptors are hidden. */
	add_process(150, 1, 0, "nginx", SOCKETS(15));
	add_process(160, 100, 0, "sshd", NULL);
	add_process(161, 160, 0, "sh", NULL);
	write_tcp(SOCKETS(11, 12, 13, 14, 15, 21, 22, 90));
	find(&list);
	assert_true(has(&list, 11));
	assert_true(has(&list, 12));
	assert_int_equal(list.count, 2);
	assert_int_equal(list.found, 2);
	assert_int_equal(list.session[0].src.hi, 0xc000020100000000ULL);
	assert_int_equal(list.session[0].dst.hi, 0x0a01000100000000ULL);
	assert_int_equal(list.session[0].dport, 22);
	assert_int_equal(list.session[0].used, 1 + SL_V4);
}

TREE_TEST(test_utmp)
{
	struct utmp entry[3] = {
		{ .ut_type = USER_PROCESS, .ut_pid = 212 },
		{ .ut_type = DEAD_PROCESS, .ut_pid = 222 },
		{ .ut_type = LOGIN_PROCESS, .ut_pid = 222 },
	};
	struct session_list list;
	FILE *out;

	add_process(1, 0, 0, "systemd", SOCKETS(90));
	add_process(200, 1, 0, "inetd", SOCKETS(1));
	add_process(210, 200, 0, "in.telnetd", SOCKETS(31));
	add_process(211, 210, 0, "login", NULL);
	add_process(212, 211, 1000, "bash", SOCKETS(32));
	add_process(220, 200, 0, "in.telnetd", SOCKETS(33));
	add_process(222, 220, 0, "login", SOCKETS(34));
	write_tcp(SOCKETS(31, 32, 33, 34, 90));
	out = fopen(tree.utmp, "w");
	assert_non_null(out);
	fwrite(entry, sizeof(entry), 1, out);
	/* A file cut short in an entry. */
	fwrite(entry, 100, 1, out);
	fclose(out);
	find(&list);
	assert_true(has(&list, 31));
	assert_true(has(&list, 32));
	assert_int_equal(list.count, 2);
}

TREE_TEST(test_addresses)
{
	char path[128];
	struct session_list list;

	add_process(100, 1, 0, "sshd", SOCKETS(1, 2, 3, 4, 5));
	add_process(101, 100, 0, "bash", NULL);
	snprintf(path, sizeof(path), "%s/self/net/tcp6", tree.dir);
	make(path,
	     "  sl  local_address                         remote_address                        st\n"
	     /* [2001:db8:1::1]:22 and [2001:db8::5]:50000 */
	     "   1: B80D0120000001000000000001000000:0016 B80D0120000000000000000005000000:C350 01 "
	     "00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n"
	     /* IPv4 mapped into IPv6: 10.1.0.1:22 and 192.0.2.1:50001, and the same once more */
	     "   2: 0000000000000000FFFF00000100010A:0016 0000000000000000FFFF0000010200C0:C351 01 "
	     "00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0\n"
	     "   3: 0000000000000000FFFF00000100010A:0016 0000000000000000FFFF0000010200C0:C351 01 "
	     "00000000:00000000 00:00000000 00000000     0        0 3 1 0 100 0 0 10 0\n"
	     /* Not established: the other side has closed. */
	     "   4: 0000000000000000FFFF00000100010A:0016 0000000000000000FFFF0000010200C0:C352 08 "
	     "00000000:00000000 00:00000000 00000000     0        0 4 1 0 100 0 0 10 0\n"
	     /* Rubbish. */
	     "   5: 0016 C352 01 x\n   6: 00000000000000:0016 0000:C352 01 0 0 0 0 0 5\n\n");
	find(&list);
	assert_int_equal(list.count, 2);
	assert_true(list.session[0].src.hi == 0x20010db800000000ULL && list.session[0].src.lo == 5);
	assert_true(list.session[0].dst.hi == 0x20010db800010000ULL && list.session[0].dst.lo == 1);
	assert_int_equal(list.session[0].sport, 50000);
	assert_int_equal(session_peer(&list.session[0]).len, 128);
	assert_true(list.session[1].src.hi == 0xc000020100000000ULL && !list.session[1].src.lo);
	assert_int_equal(list.session[1].sport, 50001);
	assert_int_equal(session_peer(&list.session[1]).family, SL_V4);
	assert_int_equal(session_peer(&list.session[1]).len, 32);
}

TEST_WITH(test_more_than_fit, tree_open, NULL)
{
	unsigned long inodes[SL_SESSIONS_MAX + 7] = { 0 };
	struct session_list list;
	struct sl_err err;

	for (unsigned long i = 0; i < SL_SESSIONS_MAX + 6; i++)
		inodes[i] = i + 1;
	add_process(100, 1, 0, "sshd", inodes);
	add_process(101, 100, 0, "bash", NULL);
	write_tcp(inodes);
	find(&list);
	assert_int_equal(list.count, SL_SESSIONS_MAX);
	assert_int_equal(list.found, SL_SESSIONS_MAX + 6);
	assert_int_equal(tree_close(NULL), 0);
	/* No /proc at all is an error, not "nobody". */
	assert_int_equal(sessions_find(tree.dir, tree.utmp, &list, &err), -ENOENT);
}

/* ------------------------------------------------------------------ gateways */

struct message {
	struct nlmsghdr header;
	struct rtmsg route;
	u8 attributes[256];
};

static struct message *new_message(int family, u8 dst_len)
{
	struct message *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->header.nlmsg_type = RTM_NEWROUTE;
	m->header.nlmsg_len = NLMSG_LENGTH(sizeof(m->route));
	m->route.rtm_family = (u8)family;
	m->route.rtm_dst_len = dst_len;
	m->route.rtm_type = RTN_UNICAST;
	return m;
}

static void *attribute(struct message *m, u16 type, const void *data, size_t size)
{
	struct rtattr *at = (struct rtattr *)(void *)((u8 *)m + NLMSG_ALIGN(m->header.nlmsg_len));

	at->rta_type = type;
	at->rta_len = (u16)RTA_LENGTH(size);
	memcpy(RTA_DATA(at), data, size);
	m->header.nlmsg_len = NLMSG_ALIGN(m->header.nlmsg_len) + (u32)RTA_LENGTH(size);
	return RTA_DATA(at);
}

TEST(test_gateways)
{
	static const u8 one[] = { 192, 0, 2, 254 }, other[] = { 10, 0, 0, 1 };
	static const u8 six[16] = { 0xfe, 0x80, [15] = 1 };
	struct {
		struct rtnexthop hop;
		struct rtattr at;
		u8 gateway[4];
	} hops[2] = { 0 };
	struct {
		u16 family;
		u8 gateway[16];
	} via = { .family = AF_INET6 };
	struct gateway_list list = { .count = 0 };
	struct message *m;

	m = new_message(AF_INET, 0);
	attribute(m, RTA_GATEWAY, one, 4);
	gateways_add(&list, &m->header);
	gateways_add(&list, &m->header);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.gateway[0].addr.hi, 0xc00002fe00000000ULL);
	assert_int_equal(list.gateway[0].len, 32);
	/* Not a default route, not a route for packets, gone, of odd size. */
	m->route.rtm_dst_len = 8;
	attribute(m, RTA_GATEWAY, other, 4);
	gateways_add(&list, &m->header);
	assert_false(gateways_concern(&m->header));
	m->route.rtm_dst_len = 0;
	m->route.rtm_type = RTN_BLACKHOLE;
	gateways_add(&list, &m->header);
	m->route.rtm_type = RTN_UNICAST;
	m->header.nlmsg_type = RTM_DELROUTE;
	gateways_add(&list, &m->header);
	assert_true(gateways_concern(&m->header));
	free(m);
	m = new_message(AF_INET, 0);
	attribute(m, RTA_GATEWAY, six, 16);
	gateways_add(&list, &m->header);
	assert_int_equal(list.count, 1);
	free(m);

	m = new_message(AF_INET6, 0);
	attribute(m, RTA_GATEWAY, six, 16);
	gateways_add(&list, &m->header);
	free(m);
	assert_int_equal(list.count, 2);
	assert_true(list.gateway[0].family == SL_V6 || list.gateway[1].family == SL_V6);

	/* Two next hops; and an IPv4 route by an IPv6 gateway. */
	list.count = 0;
	for (int i = 0; i < 2; i++) {
		hops[i].hop.rtnh_len = sizeof(hops[i]);
		hops[i].at = (struct rtattr){ .rta_type = RTA_GATEWAY, .rta_len = RTA_LENGTH(4) };
		memcpy(hops[i].gateway, i ? one : other, 4);
	}
	m = new_message(AF_INET, 0);
	attribute(m, RTA_MULTIPATH, hops, sizeof(hops));
	gateways_add(&list, &m->header);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.gateway[0].addr.hi, 0x0a00000100000000ULL);
	free(m);
	list.count = 0;
	memcpy(via.gateway, six, 16);
	m = new_message(AF_INET, 0);
	attribute(m, RTA_VIA, &via, sizeof(via));
	gateways_add(&list, &m->header);
	free(m);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.gateway[0].family, SL_V6);
}

TEST(test_this_host)
{
	struct gateway_list list = { .count = 77 };

	assert_int_equal(gateways_read(&list), 0);
	assert_in_range(list.count, 0, GATEWAYS_MAX);
}

TEST_MAIN
