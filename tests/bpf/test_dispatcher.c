/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * test_dispatcher.c - beside another tool's XDP program, behind libxdp's dispatcher: both
 * see every frame, in either order of attaching, while the program is replaced, and after one
 * leaves.
 *
 * Skipped where the kernel has no dispatcher (no BPF_PROG_TYPE_EXT): there test_attach.c
 * tests what happens with neighbours. `make vmtest` runs it on kernels that have one.
 */
#include <xdp/libxdp.h>

#define WAIT_MS 20000 /* a virtual machine without hardware support is slow */
#include "bpf/attach_rig.h"
#include "tests/bpf/neighbour.skel.h"

static struct neighbour_bpf *skel;
static struct xdp_program *neighbour;

static u64 seen_by_neighbour(void)
{
	u32 zero = 0;
	u64 frames = 0;

	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(skel->maps.bss), &zero, &frames), 0);
	return frames;
}

static void expect_both(struct fixture *f, u64 ours, u64 theirs)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	expect_seen(f, ours);
	for (int i = 0; i < WAIT_MS && seen_by_neighbour() < theirs; i++)
		nanosleep(&pause, NULL);
	assert_int_equal(seen_by_neighbour(), theirs);
}

/* ------------------------------------------------------------------ setting up */

static int neighbour_leave(void)
{
	return xdp_program__detach(neighbour, if_nametoindex("s0"), XDP_MODE_NATIVE, 0);
}

static int teardown_both(void **state)
{
	int rc = teardown(state);

	if (neighbour) {
		neighbour_leave(); /* may have done so before */
		xdp_program__close(neighbour);
	}
	neighbour_bpf__destroy(skel);
	neighbour = NULL;
	skel = NULL;
	return rc;
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

static struct fixture *begin_veth(void **state)
{
	struct fixture *f = begin(state);

	make_veth(1500);
	return f;
}

static int neighbour_try(u32 priority)
{
	skel = neighbour_bpf__open();
	assert_non_null(skel);
	neighbour = xdp_program__from_bpf_obj(skel->obj, "xdp.frags");
	assert_int_equal(libxdp_get_error(neighbour), 0);
	assert_int_equal(xdp_program__set_run_prio(neighbour, priority), 0);
	return xdp_program__attach(neighbour, if_nametoindex("s0"), XDP_MODE_NATIVE, 0);
}

static void neighbour_join(u32 priority)
{
	assert_int_equal(neighbour_try(priority), 0);
}

/*
 * Joining us. Where the kernel refuses our stub behind the dispatcher of the neighbour's
 * libxdp (see bpf/dispatcher.bpf.c), the neighbour stays out, and we stay in.
 */
static void neighbour_join_us(struct fixture *f, u32 priority)
{
	if (neighbour_try(priority) == 0)
		return;
	xdp_program__close(neighbour);
	neighbour = NULL;
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 100);
	print_message("this kernel takes our stub only behind our own dispatcher\n");
	skip();
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

	attach(f, "s0", MODE_AUTO); /* looks who is there now */
	assert_true(f->at.dispatcher);
	assert_int_equal(f->at.others, 1);
	assert_int_equal(f->at.mode, MODE_NATIVE);
	assert_int_equal(dp_attachments(f->dp, all), 1);
	assert_int_equal(all[0].ifindex, if_nametoindex("s0"));
	send_frames("p0", 100, 64, 0);
	expect_both(f, 100, 100);

	assert_int_equal(detach_stub(f->pin_dir, "s0", &f->err), 0);
	send_frames("p0", 100, 64, 0);
	expect_both(f, 100, 200);
	attach(f, "s0", MODE_AUTO); /* to a free slot: its counters start afresh */
	send_frames("p0", 100, 64, 0);
	expect_both(f, 100, 300);

	/* As when we join: where their libxdp cannot build its dispatcher, they stay. */
	if (neighbour_leave() == 0) {
		send_frames("p0", 100, 64, 0);
		expect_both(f, 200, 300);
	} else {
		send_frames("p0", 100, 64, 0);
		expect_both(f, 200, 400);
		assert_int_equal(detach_stub(f->pin_dir, "s0", &f->err), 0);
		assert_int_equal(neighbour_leave(), 0);
		assert_false(is_dispatcher());
	}
}

TEST_WITH(test_they_were_first_and_run_first, setup, teardown_both)
{
	struct fixture *f = begin_veth(state);

	neighbour_join(10);
	skip_without_dispatcher();
	attach(f, "s0", MODE_AUTO);
	join_and_leave(f);
}

TEST_WITH(test_they_were_first_and_run_last, setup, teardown_both)
{
	struct fixture *f = begin_veth(state);

	neighbour_join(90);
	skip_without_dispatcher();
	attach(f, "s0", MODE_AUTO);
	join_and_leave(f);
}

TEST_WITH(test_we_were_first, setup, teardown_both)
{
	struct fixture *f = begin_veth(state);

	attach(f, "s0", MODE_AUTO);
	skip_without_dispatcher();
	assert_true(f->at.dispatcher);
	assert_int_equal(f->at.others, 0);
	neighbour_join_us(f, 90);
	join_and_leave(f);
}

/* A new daemon after libxdp built another dispatcher around our stub: it is still known. */
TEST_WITH(test_stub_is_known_in_a_new_dispatcher, setup, teardown_both)
{
	struct fixture *f = begin_veth(state);
	u32 before = 0, after = 0;

	attach(f, "s0", MODE_AUTO);
	skip_without_dispatcher();
	neighbour_join_us(f, 90);
	assert_int_equal(bpf_xdp_query_id(if_nametoindex("s0"), 0, &before), 0);
	attach(f, "s0", MODE_AUTO);
	assert_int_equal(bpf_xdp_query_id(if_nametoindex("s0"), 0, &after), 0);
	assert_int_equal(after, before);
	send_frames("p0", 100, 64, 0);
	expect_both(f, 100, 100);
}

TEST_WITH(test_replaced_under_traffic, setup, teardown_both)
{
	struct fixture *f = begin_veth(state);

	neighbour_join(90);
	skip_without_dispatcher();
	attach(f, "s0", MODE_AUTO);
	replace_under_traffic(f, 20000, 3);
	expect_both(f, 20000, 20000);
}

int main(void)
{
	libxdp_set_print(NULL);
	return test_run(NULL, NULL);
}
