// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_attach.c - attaching. Verdicts are tested elsewhere: here every frame that
 * reaches the program counts.
 */
#include "attach_rig.h"

ATTACH_TEST(test_native_and_off_again)
{
	struct dp_attachment all[SL_IFACES_MAX];
	u32 offload_before, offload;

	make_veth(1500);
	assert_int_equal(vlan_offload_get("s0", &offload_before), 0);
	attach(f, "s0", MODE_AUTO);
	assert_int_equal(f->at.mode, MODE_NATIVE);
	assert_int_equal(f->at.ifindex, if_nametoindex("s0"));
	assert_int_equal(f->at.slot, SLOT);
	run("! tc qdisc show dev s0 | grep -q clsact");
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 100);
	assert_int_equal(dp_attachments(f->dp, all), 1);
	assert_string_equal(all[0].ifname, "s0");
	assert_int_equal(all[0].ifindex, f->at.ifindex);
	assert_int_equal(vlan_offload_get("s0", &offload), 0);
	assert_int_equal(offload, 0);

	assert_int_equal(detach_stub(f->pin_dir, "s0", &f->err), 0);
	assert_int_equal(xdp_id("s0"), 0);
	assert_int_equal(program_behind(f), 0);
	assert_int_equal(dp_attachments(f->dp, all), 0);
	assert_int_equal(vlan_offload_get("s0", &offload), 0);
	assert_int_equal(offload, offload_before);
	run("! tc filter show dev s0 ingress | grep -q sluice");
	send_frames("p0", 100, 64, 0);
	assert_int_equal(frames_seen(f->dp, SLOT), 100);
	assert_int_equal(detach_stub(f->pin_dir, "s0", &f->err), -ENOENT);
}

ATTACH_TEST(test_generic_where_native_cannot)
{
	run("ip link set lo up");
	attach(f, "lo", MODE_AUTO);
	assert_int_equal(f->at.mode, MODE_GENERIC);
	assert_int_equal(detach_stub(f->pin_dir, "lo", &f->err), 0);
	assert_true(dp_attach(f->dp, "lo", MODE_NATIVE, SLOT, &f->at, &f->err) < 0);
	assert_int_equal(program_behind(f), 0);
}

ATTACH_TEST(test_generic_where_asked)
{
	make_veth(1500);
	attach(f, "s0", MODE_GENERIC);
	assert_int_equal(f->at.mode, MODE_GENERIC);
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 100);
}

ATTACH_TEST(test_again_keeps_the_stub)
{
	u32 stub, program;

	make_veth(1500);
	attach(f, "s0", MODE_AUTO);
	stub = xdp_id("s0");
	program = program_behind(f);
	send_frames("p0", 10, 64, 0);
	attach(f, "s0", MODE_AUTO);
	assert_int_equal(xdp_id("s0"), stub);
	assert_int_not_equal(program_behind(f), program);
	send_frames("p0", 10, 64, 0);
	expect_seen(f, 20); /* the counters continue */
}

/* Each frame meets the old program or the new one. */
ATTACH_TEST(test_replaced_under_traffic)
{
	make_veth(1500);
	attach(f, "s0", MODE_AUTO);
	replace_under_traffic(f, 20000, 10);
	expect_seen(f, 20000);
}

ATTACH_TEST(test_jumbo)
{
	make_veth(9000);
	attach(f, "s0", MODE_NATIVE);
	assert_int_equal(f->at.mode, MODE_NATIVE);
	send_frames("p0", 100, 9014, 0);
	expect_seen(f, 100);
}

ATTACH_TEST(test_no_such_interface)
{
	assert_int_equal(dp_attach(f->dp, "s0", MODE_AUTO, SLOT, &f->at, &f->err), -ENODEV);
	assert_non_null(strstr(f->err.message, "s0"));
	assert_int_equal(program_behind(f), 0);
}

ATTACH_TEST(test_slots_are_not_shared)
{
	make_veth(1500);
	attach(f, "s0", MODE_AUTO);
	assert_int_equal(dp_attach(f->dp, "p0", MODE_AUTO, SLOT, &f->at, &f->err), -EBUSY);
	assert_int_equal(dp_attach(f->dp, "s0", MODE_AUTO, SLOT + 1, &f->at, &f->err), -EBUSY);
	assert_int_equal(xdp_id("p0"), 0);
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 100);
}

/* A bridge above keeps its program, the dispatcher's too, while its port's comes and goes. */
ATTACH_TEST(test_below_a_bridge)
{
	struct dp_attachment upper;
	u32 before;

	make_veth(1500);
	run("ip link add br0 type bridge");
	run("ip link set s0 master br0");
	assert_int_equal(dp_attach(f->dp, "br0", MODE_AUTO, SLOT + 1, &upper, &f->err), 0);
	before = xdp_id("br0");
	attach(f, "s0", MODE_AUTO);
	assert_int_equal(xdp_id("br0"), before);
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 100);
	assert_int_equal(detach_stub(f->pin_dir, "s0", &f->err), 0);
	assert_int_equal(xdp_id("s0"), 0);
	assert_int_equal(xdp_id("br0"), before);
	assert_int_equal(dp_attach(f->dp, "br0", MODE_AUTO, SLOT + 1, &upper, &f->err), 0);
	assert_int_equal(xdp_id("br0"), before);
	assert_int_equal(upper.mode, MODE_GENERIC);
	attach(f, "s0", MODE_AUTO);
	assert_int_equal(detach_stub(f->pin_dir, "br0", &f->err), 0);
	assert_int_not_equal(xdp_id("s0"), 0);
}

/* Attached without libxdp's dispatcher, as every program is where the kernel has no freplace. */
ATTACH_TEST(test_others_program_stays)
{
	static const struct bpf_insn pass[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	u32 theirs, offload_before, offload;
	int fd;

	make_veth(1500);
	fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "theirs", "GPL", pass, 2, NULL);
	assert_true(fd >= 0);
	assert_int_equal(bpf_xdp_attach(if_nametoindex("s0"), fd, 0, NULL), 0);
	close(fd);
	theirs = xdp_id("s0");
	assert_int_equal(vlan_offload_get("s0", &offload_before), 0);
	for (enum attach_mode mode = MODE_AUTO; mode <= MODE_GENERIC; mode++) {
		assert_int_equal(dp_attach(f->dp, "s0", mode, SLOT, &f->at, &f->err), -EBUSY);
		assert_non_null(strstr(f->err.message, "theirs"));
		assert_int_equal(xdp_id("s0"), theirs);
	}
	assert_int_equal(program_behind(f), 0);
	assert_int_equal(vlan_offload_get("s0", &offload), 0);
	assert_int_equal(offload, offload_before);
}

ATTACH_TEST(test_interface_vanishes_and_returns)
{
	struct dp_attachment all[SL_IFACES_MAX];

	make_veth(1500);
	attach(f, "s0", MODE_AUTO);
	send_frames("p0", 10, 64, 0);
	expect_seen(f, 10);
	run("ip link del s0");
	assert_int_equal(dp_attachments(f->dp, all), 1);
	assert_int_equal(all[0].ifindex, 0);
	make_veth(1500);
	assert_int_equal(dp_attachments(f->dp, all), 1);
	assert_int_equal(all[0].ifindex, 0);
	attach(f, "s0", MODE_AUTO);
	assert_int_equal(f->at.ifindex, if_nametoindex("s0"));
	send_frames("p0", 10, 64, 0);
	expect_seen(f, 20);

	run("ip link del s0");
	assert_int_equal(detach_stub(f->pin_dir, "s0", &f->err), 0);
	assert_int_equal(dp_attachments(f->dp, all), 0);
}

/* Another process detaches the stub: that is noticed, and attaching again mends it. */
ATTACH_TEST(test_taken_off_by_others)
{
	struct dp_attachment all[SL_IFACES_MAX];

	make_veth(1500);
	attach(f, "s0", MODE_AUTO);
	run("ip link set s0 xdp off");
	assert_int_equal(dp_attachments(f->dp, all), 1);
	assert_int_equal(all[0].ifindex, 0);
	attach(f, "s0", MODE_AUTO);
	send_frames("p0", 10, 64, 0);
	expect_seen(f, 10);
}

ATTACH_TEST(test_renamed)
{
	struct dp_attachment all[SL_IFACES_MAX];

	make_veth(1500);
	assert_int_equal(dp_attach(f->dp, "s0", MODE_AUTO, SLOT + 1, &f->at, &f->err), 0);
	run("ip link set s0 down");
	run("ip link set s0 name s1");
	run("ip link set s1 up");
	attach(f, "s1", MODE_AUTO);
	assert_int_equal(dp_attachments(f->dp, all), 1);
	assert_string_equal(all[0].ifname, "s1");
	send_frames("p0", 10, 64, 0);
	expect_seen(f, 10);
}

/*
 * Tags are visible to the program: a frame with five is over the parser's depth. (On a veth nothing
 * strips them; test_native_and_off_again tests what attaching does about hardware.)
 */
ATTACH_TEST(test_vlan_tags_are_seen)
{
	struct sl_iface_stats stats;

	make_veth(1500);
	apply(f, 1, 0);
	attach(f, "s0", MODE_AUTO);
	send_frames("p0", 100, 128, 5);
	send_frames("p0", 10, 128, 1);
	expect_seen(f, 110);
	assert_int_equal(f->dp->ops->iface_stats(f->dp, SLOT, &stats), 0);
	assert_int_equal(stats.packets[SL_R_VLAN_DEPTH][SL_ACT_DROP], 100);
	assert_int_equal(stats.packets[SL_R_NOT_IP][SL_ACT_PASS], 10);
}

ATTACH_TEST(test_not_a_bpf_file_system)
{
	struct dp *dp = NULL;

	assert_int_equal(dp_bpf_open("/tmp/sluice-test", BUCKETS, &dp, NULL, &f->err), -ENODEV);
	assert_non_null(strstr(f->err.message, "mount"));
	assert_null(dp);
}

ATTACH_TEST(test_purge_leaves_nothing)
{
	make_veth(1500);
	apply(f, 1, 0);
	attach(f, "s0", MODE_AUTO);
	assert_int_equal(dp_purge(f->pin_dir, &f->err), 0);
	assert_int_equal(xdp_id("s0"), 0);
	assert_int_not_equal(access(f->pin_dir, F_OK), 0);
}

/* A pin of another layout: the kernel would copy its values over what stands behind the record. */
ATTACH_TEST(test_pin_of_another_layout)
{
	static const struct {
		const char *name;
		enum bpf_map_type type;
		u32 value_size, entries;
	} wrong[] = {
		{ "attached", BPF_MAP_TYPE_ARRAY, 16384, 64 },
		{ "attached", BPF_MAP_TYPE_ARRAY, 64, 1 },
		{ "attached", BPF_MAP_TYPE_PERCPU_ARRAY, 64, 64 },
		{ "progs", BPF_MAP_TYPE_ARRAY, 4, 64 },
		{ "stages", BPF_MAP_TYPE_PROG_ARRAY, 4, 1 },
	};
	struct dp *dp = NULL;
	char path[128];

	make_veth(1500);
	attach(f, "s0", MODE_AUTO);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		int fd = bpf_map_create(wrong[i].type, "wrong", 4, wrong[i].value_size,
					wrong[i].entries, NULL);

		snprintf(path, sizeof(path), "%s/%s", f->pin_dir, wrong[i].name);
		run("mv %s %s_kept", path, path);
		assert_int_equal(bpf_obj_pin(fd, path), 0);
		close(fd);
		assert_int_equal(attach_stub(f->pin_dir, "s0", MODE_AUTO, ATTACH_JOIN, SLOT, &f->at,
					     &f->err),
				 -EPROTO);
		assert_non_null(strstr(f->err.message, path));
		assert_int_equal(detach_stub(f->pin_dir, "s0", &f->err), -EPROTO);
		assert_int_equal(dp_purge(f->pin_dir, &f->err), -EPROTO);
		assert_int_equal(dp_bpf_open(f->pin_dir, BUCKETS, &dp, NULL, &f->err), -EPROTO);
		run("mv %s_kept %s", path, path);
	}
	/* Nothing was touched. */
	assert_int_equal(detach_stub(f->pin_dir, "s0", &f->err), 0);
}

/* Refuses a pin_dir that others can write or replace, or that is not a bpffs directory. */
ATTACH_TEST(test_pin_dir_is_roots)
{
	struct dp *dp = NULL;
	char link[80];

	make_veth(1500);
	attach(f, "s0", MODE_AUTO);
	run("chown 65534 %s", f->pin_dir);
	assert_int_equal(
		attach_stub(f->pin_dir, "s0", MODE_AUTO, ATTACH_JOIN, SLOT, &f->at, &f->err),
		-EPERM);
	assert_non_null(strstr(f->err.message, "uid 65534"));
	assert_int_equal(dp_purge(f->pin_dir, &f->err), -EPERM);
	assert_int_equal(dp_bpf_open(f->pin_dir, BUCKETS, &dp, NULL, &f->err), -EPERM);
	run("chown 0 %s && chmod 0770 %s", f->pin_dir, f->pin_dir);
	assert_int_equal(dp_purge(f->pin_dir, &f->err), -EPERM);
	run("chmod 0700 %s", f->pin_dir);
	snprintf(link, sizeof(link), "%s-link", f->pin_dir);
	assert_int_equal(symlink(f->pin_dir, link), 0);
	assert_int_equal(dp_purge(link, &f->err), -ENOTDIR);
	unlink(link);
	assert_int_equal(dp_purge("/tmp", &f->err), -ENOTDIR);
	run("mkdir -m 0777 %s-all && mv %s %s-all/sluice", f->pin_dir, f->pin_dir, f->pin_dir);
	snprintf(link, sizeof(link), "%s-all/sluice", f->pin_dir);
	assert_int_equal(detach_stub(link, "s0", &f->err), -EPERM);
	run("mv %s-all/sluice %s && rmdir %s-all", f->pin_dir, f->pin_dir, f->pin_dir);
	assert_int_equal(detach_stub(f->pin_dir, "s0", &f->err), 0);
}

/* Pins removed by hand under a running stub: it passes everything, and blocks no later program. */

ATTACH_TEST(test_stub_without_pins_passes)
{
	make_veth(1500);
	attach(f, "s0", MODE_AUTO);
	f->dp->ops->close(f->dp);
	f->dp = NULL;
	run("rm -r %s", f->pin_dir);
	send_frames("p0", 100, 64, 0);
	run("ip -s -j link show s0 | grep -q '\"rx\":{\"bytes\":[0-9]*,\"packets\":100,'");
}

/* An argument is a pattern of test names: loading takes its time in a virtual machine. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return test_run(NULL, NULL);
}
