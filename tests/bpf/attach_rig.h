/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attach_rig.h - a data plane on veth pairs of an own network namespace, with an own pin directory,
 * and frames for it. Of test_attach.c, test_takeover.c and test_dispatcher.c.
 */
#ifndef TESTS_BPF_ATTACH_RIG_H
#define TESTS_BPF_ATTACH_RIG_H
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "lib/test.h"
#include "bpf/veth_frames.h"
#include "packet/dataplane/dataplane.h"
#include "packet/dataplane/dp_attach.h"
#include "packet/dataplane/vlan_offload.h"
#include "packet/compile/override_index.h"

#define SLOT 5
#define BUCKETS 4096
#ifndef WAIT_MS
#define WAIT_MS 5000
#endif

struct fixture {
	char pin_dir[64];
	struct dp *dp;
	struct sl_err err;
	struct dp_attachment at;
};

/* ------------------------------------------------------------------ the surroundings */

static void run(const char *format, ...)
{
	char command[256];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command) != 0)
		fail_msg("%s", command);
}

/* s0 is guarded, p0 sends to it. No IPv6: the kernel would send frames of its own. */
static void make_veth(u32 mtu)
{
	run("ip link add s0 mtu %u type veth peer name p0 mtu %u", mtu, mtu);
	run("ip link set s0 up");
	run("ip link set p0 up");
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		print_message("%s: %s\n", path, strerror(errno));
	close(fd);
}

static int setup(void **state)
{
	static int count;
	struct fixture *f;

	*state = NULL;
	if (geteuid() != 0)
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f || unshare(CLONE_NEWNET) < 0)
		return -1;
	write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	snprintf(f->pin_dir, sizeof(f->pin_dir), "/sys/fs/bpf/sluice-test-%d-%d", getpid(),
		 count++);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (!f)
		return 0;
	if (f->dp)
		f->dp->ops->close(f->dp);
	if (access(f->pin_dir, F_OK) == 0)
		dp_purge(f->pin_dir, NULL);
	free(f);
	return 0;
}

/* The fixture with an open data plane; the test ends here where not root. */
static struct fixture *begin(void **state)
{
	struct fixture *f = *state;
	enum dp_pins pins;

	if (!f) {
		print_message("needs root\n");
		skip();
	}
	if (dp_bpf_open(f->pin_dir, BUCKETS, &f->dp, &pins, &f->err) < 0)
		fail_msg("%s", f->err.message);
	assert_int_equal(pins, DP_PINS_MADE);
	return f;
}

#define ATTACH_TEST(test)                                                                          \
	static void test##_on(struct fixture *f);                                                  \
	TEST_WITH(test, setup, teardown)                                                           \
	{                                                                                          \
		test##_on(begin(state));                                                           \
	}                                                                                          \
	static void test##_on(struct fixture *f)

static void attach(struct fixture *f, const char *ifname, enum attach_mode mode)
{
	if (dp_attach(f->dp, ifname, mode, SLOT, &f->at, &f->err) < 0)
		fail_msg("%s", f->err.message);
}

static inline u32 xdp_id(const char *ifname)
{
	u32 id = 0;

	assert_int_equal(bpf_xdp_query_id(if_nametoindex(ifname), 0, &id), 0);
	return id;
}

/* The id of the program behind the stub; 0: none. */
static inline u32 program_behind(struct fixture *f)
{
	char path[128];
	u32 slot = SLOT, id = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/progs", f->pin_dir);
	fd = bpf_obj_get(path);
	assert_true(fd >= 0);
	if (bpf_map_lookup_elem(fd, &slot, &id) < 0)
		id = 0;
	close(fd);
	return id;
}

static void expect_seen(struct fixture *f, u64 count)
{
	expect_frames(f->dp, SLOT, count, WAIT_MS);
}

/* Frames that come while the program is replaced, `times` times. */
static inline void replace_under_traffic(struct fixture *f, u32 frames, int times)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		send_frames("p0", frames, 64, 0);
		_exit(0);
	}
	for (int i = 0; i < times; i++)
		assert_int_equal(dp_install(f->dp, SLOT, &f->err), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ------------------------------------------------------------------ a rule set without limits */

struct small_image {
	struct sl_image image;
	struct sl_rules rules;
	struct sl_v4_top v4_top;
	struct sl_v4_line v4_line;
	struct sl_pfx_bucket bucket;
	struct sl_pclass pclass;
	struct override_index overrides;
	struct sl_override_bucket override;
};

static inline struct small_image *small_image(u64 generation, u64 pfx_digest)
{
	struct small_image *small = calloc(1, sizeof(*small));

	assert_non_null(small);
	small->image = (struct sl_image){ .rules = &small->rules,
					  .v4_top = &small->v4_top,
					  .v4_line = &small->v4_line,
					  .v4_lines = 1,
					  .bucket = &small->bucket,
					  .pclass = &small->pclass,
					  .pclass_count = 1,
					  .overrides = &small->overrides,
					  .pfx_digest = pfx_digest };
	small->rules.generation = generation;
	small->rules.pfx_buckets = 1;
	small->overrides.buckets = 1;
	small->overrides.bucket = &small->override;
	memset(small->rules.limit_of_id, 0xff, sizeof(small->rules.limit_of_id));
	return small;
}

static inline void apply(struct fixture *f, u64 generation, u64 pfx_digest)
{
	struct small_image *small = small_image(generation, pfx_digest);

	if (f->dp->ops->apply(f->dp, &small->image, &f->err) < 0)
		fail_msg("%s", f->err.message);
	free(small);
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, generation);
}

static inline enum dp_pins open_again(struct fixture *f)
{
	enum dp_pins pins;

	f->dp->ops->close(f->dp);
	f->dp = NULL;
	if (dp_bpf_open(f->pin_dir, BUCKETS * 2, &f->dp, &pins, &f->err) < 0)
		fail_msg("%s", f->err.message);
	return pins;
}

static inline void reopen(struct fixture *f)
{
	assert_int_equal(open_again(f), DP_PINS_FOUND);
}

#endif
