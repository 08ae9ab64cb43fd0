/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * test_dispatcher.c - beside another tool's XDP program, behind libxdp's dispatcher: both
 * see every frame, in either order of attaching, while the program is replaced, and after one leaves.
 *
 * Skipped where the kernel has no dispatcher (no BPF_PROG_TYPE_EXT): there test_attach.c
 * tests what happens with neighbours. `make vmtest` runs it on kernels that have one.
 */
#include <net/if.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "lib/test.h"
#include "bpf/veth_frames.h"
#include "packet/dataplane/dataplane.h"
#include "packet/dataplane/dp_attach.h"
#include "tests/bpf/neighbour.skel.h"

#define SLOT 3
#define WAIT_MS 20000	/* a virtual machine without hardware support is slow */

struct fixture {
	char pin_dir[64];
	struct dp *dp;
	struct sl_err err;
	struct dp_attachment at;
	struct neighbour_bpf *skel;
	struct xdp_program *neighbour;
};

/* ------------------------------------------------------------------ the environment */

static void run(const char *command)
{
	if (system(command) != 0)
		fail_msg("%s", command);
}

/* ------------------------------------------------------------------ frames */

static void expect_seen_by_us(struct fixture *f, u64 count)
{
	expect_frames(f->dp, SLOT, count, WAIT_MS);
}

static u64 seen_by_neighbour(struct fixture *f)
{
	u32 zero = 0;
	u64 frames = 0;

	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(f->skel->maps.bss), &zero, &frames), 0);
	return frames;
}

static void expect_seen(struct fixture *f, u64 ours, u64 theirs)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	expect_seen_by_us(f, ours);
	for (int i = 0; i < WAIT_MS && seen_by_neighbour(f) < theirs; i++)
		nanosleep(&pause, NULL);
	assert_int_equal(seen_by_neighbour(f), theirs);
}

/* ------------------------------------------------------------------ setting up */

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
	snprintf(f->pin_dir, sizeof(f->pin_dir), "/sys/fs/bpf/sluice-test-%d-%d", getpid(),
		 count++);
	*state = f;
	return 0;
}

static int neighbour_leave(struct fixture *f)
{
	return xdp_program__detach(f->neighbour, if_nametoindex("s0"), XDP_MODE_NATIVE, 0);
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
	if (f->neighbour) {
		neighbour_leave(f);	/* may have done so before */
		xdp_program__close(f->neighbour);
	}
	neighbour_bpf__destroy(f->skel);
	free(f);
	return 0;
}

static bool is_dispatcher(void)
{
	struct xdp_multiprog *all = xdp_multiprog__get_from_ifindex(if_nametoindex("s0"));
	bool is;

	if (libxdp_get_error(all))
		return false;
	is = !xdp_multiprog__is_legacy(all);
	xdp_multiprog__close(all);
	return is;
}

/* No IPv6: the kernel would send frames of its own. */
static struct fixture *begin(void **state)
{
	struct fixture *f = *state;

	if (!f) {
		print_message("needs root\n");
		skip();
	}
	run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 || :");
	run("ip link add s0 type veth peer name p0");
	run("ip link set s0 up");
	run("ip link set p0 up");
	if (dp_bpf_open(f->pin_dir, 4096, &f->dp, NULL, &f->err) < 0)
		fail_msg("%s", f->err.message);
	return f;
}

static int neighbour_try(struct fixture *f, u32 priority)
{
	f->skel = neighbour_bpf__open();
	assert_non_null(f->skel);
	f->neighbour = xdp_program__from_bpf_obj(f->skel->obj, "xdp.frags");
	assert_int_equal(libxdp_get_error(f->neighbour), 0);
	assert_int_equal(xdp_program__set_run_prio(f->neighbour, priority), 0);
	return xdp_program__attach(f->neighbour, if_nametoindex("s0"), XDP_MODE_NATIVE, 0);
}

static void neighbour_join(struct fixture *f, u32 priority)
{
	assert_int_equal(neighbour_try(f, priority), 0);
}

/*
 * Joining us. Where the kernel refuses our stub behind the dispatcher of the neighbour's
 * libxdp (see bpf/dispatcher.bpf.c), the neighbour stays out, and we stay in.
 */
static void neighbour_join_us(struct fixture *f, u32 priority)
{
	if (neighbour_try(f, priority) == 0)
		return;
	xdp_program__close(f->neighbour);
	f->neighbour = NULL;
	send_frames("p0", 100, 64, 0);
	expect_seen_by_us(f, 100);
	print_message("this kernel takes our stub only behind our own dispatcher\n");
	skip();
}

static void attach(struct fixture *f)
{
	if (dp_attach(f->dp, "s0", MODE_AUTO, SLOT, &f->at, &f->err) < 0)
		fail_msg("%s", f->err.message);
}

static void skip_without_dispatcher(void)
{
	if (is_dispatcher())
		return;
	print_message("this kernel has no freplace programs, so libxdp has no dispatcher\n");
	skip();
}

/* ------------------------------------------------------------------ tests */

static void join_and_leave(struct fixture *f)
{
	struct dp_attachment all[SL_IFACES_MAX];

	assert_true(f->at.dispatcher);
	assert_int_equal(f->at.mode, MODE_NATIVE);
	assert_int_equal(dp_attachments(f->dp, all), 1);
	assert_int_equal(all[0].ifindex, if_nametoindex("s0"));
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 100, 100);

	assert_int_equal(dp_detach(f->dp, "s0", &f->err), 0);
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 100, 200);
	attach(f);	/* to a free slot: its counters start afresh */
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 100, 300);

	/* As when we join: where their libxdp cannot build its dispatcher, they stay. */
	if (neighbour_leave(f) == 0) {
		send_frames("p0", 100, 64, 0);
		expect_seen(f, 200, 300);
	} else {
		send_frames("p0", 100, 64, 0);
		expect_seen(f, 200, 400);
		assert_int_equal(dp_detach(f->dp, "s0", &f->err), 0);
		assert_int_equal(neighbour_leave(f), 0);
		assert_false(is_dispatcher());
	}
}

TEST_WITH(test_they_were_first_and_run_first, setup, teardown)
{
	struct fixture *f = begin(state);

	neighbour_join(f, 10);
	skip_without_dispatcher();
	attach(f);
	join_and_leave(f);
}

TEST_WITH(test_they_were_first_and_run_last, setup, teardown)
{
	struct fixture *f = begin(state);

	neighbour_join(f, 90);
	skip_without_dispatcher();
	attach(f);
	join_and_leave(f);
}

TEST_WITH(test_we_were_first, setup, teardown)
{
	struct fixture *f = begin(state);

	attach(f);
	skip_without_dispatcher();
	assert_true(f->at.dispatcher);
	neighbour_join_us(f, 90);
	join_and_leave(f);
}

/* A new daemon after libxdp built another dispatcher around our stub: it is still known. */
TEST_WITH(test_stub_is_known_in_a_new_dispatcher, setup, teardown)
{
	struct fixture *f = begin(state);
	u32 before = 0, after = 0;

	attach(f);
	skip_without_dispatcher();
	neighbour_join_us(f, 90);
	assert_int_equal(bpf_xdp_query_id(if_nametoindex("s0"), 0, &before), 0);
	attach(f);
	assert_int_equal(bpf_xdp_query_id(if_nametoindex("s0"), 0, &after), 0);
	assert_int_equal(after, before);
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 100, 100);
}

TEST_WITH(test_replaced_under_traffic, setup, teardown)
{
	struct fixture *f = begin(state);
	const u32 frames = 20000;
	int status;
	pid_t pid;

	neighbour_join(f, 90);
	skip_without_dispatcher();
	attach(f);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		send_frames("p0", frames, 64, 0);
		_exit(0);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(dp_install(f->dp, SLOT, &f->err), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	expect_seen(f, frames, frames);
}

int main(void)
{
	libxdp_set_print(NULL);
	return test_run(NULL, NULL);
}
