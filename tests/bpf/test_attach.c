/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * test_attach.c - attaching and what outlives a process, on veth pairs of an own network
 * namespace, with an own pin directory. What a packet is judged by is tested elsewhere: here
 * every frame that reaches the program counts. It is over 500 lines because all of it shares one
 * fixture and its frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "dataplane/dataplane.h"
#include "dataplane/dp_attach.h"
#include "dataplane/vlan_offload.h"
#include "policy/override_index.h"

#define SLOT 5
#define BUCKETS 4096
#define WAIT_MS 5000

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
	bool fresh;

	if (!f) {
		print_message("needs root\n");
		skip();
	}
	if (dp_bpf_open(f->pin_dir, BUCKETS, &f->dp, &fresh, &f->err) < 0)
		fail_msg("%s", f->err.message);
	assert_true(fresh);
	return f;
}

static void attach(struct fixture *f, const char *ifname, enum attach_mode mode)
{
	if (dp_attach(f->dp, ifname, mode, SLOT, &f->at, &f->err) < 0)
		fail_msg("%s", f->err.message);
}

static u32 xdp_id(const char *ifname)
{
	u32 id = 0;

	assert_int_equal(bpf_xdp_query_id(if_nametoindex(ifname), 0, &id), 0);
	return id;
}

/* The id of the program behind the stub; 0: none. */
static u32 program_behind(struct fixture *f)
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

/* ------------------------------------------------------------------ frames */

/* `count` frames from `ifname`, of EtherType 0x88b5 behind `tags` VLAN tags. */
static void send_frames(const char *ifname, u32 count, u32 size, u32 tags)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = if_nametoindex(ifname) };
	u8 frame[9014] = { [0 ... 5] = 0xff, [6] = 2 };
	u8 *at = frame + 12;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	for (u32 i = 0; i < tags; i++) {
		memcpy(at, "\x81\x00\x00\x64", 4);
		at += 4;
	}
	memcpy(at, "\x88\xb5", 2);
	for (u32 i = 0; i < count; i++)
		while (send(fd, frame, size, 0) < 0)
			assert_int_equal(errno, ENOBUFS);
	close(fd);
}

static u64 frames_seen(struct fixture *f)
{
	struct sl_iface_stats stats;
	u64 sum = 0;

	assert_int_equal(f->dp->ops->iface_stats(f->dp, SLOT, &stats), 0);
	for (u32 reason = 0; reason < SL_R_COUNT; reason++)
		for (u32 action = 0; action < SL_ACT_COUNT; action++)
			sum += stats.packets[reason][action];
	return sum;
}

/* Waits until at least `count` frames were seen, then says exactly that many were. */
static void expect_seen(struct fixture *f, u64 count)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < WAIT_MS && frames_seen(f) < count; i++)
		nanosleep(&pause, NULL);
	assert_int_equal(frames_seen(f), count);
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

static struct small_image *small_image(u64 generation, u64 pfx_digest)
{
	struct small_image *small = calloc(1, sizeof(*small));

	assert_non_null(small);
	small->image = (struct sl_image){ .rules = &small->rules, .v4_top = &small->v4_top,
					  .v4_line = &small->v4_line, .v4_lines = 1,
					  .bucket = &small->bucket,
					  .pclass = &small->pclass, .pclass_count = 1,
					  .overrides = &small->overrides,
					  .pfx_digest = pfx_digest };
	small->rules.generation = generation;
	small->rules.pfx_buckets = 1;
	small->overrides.buckets = 1;
	small->overrides.bucket = &small->override;
	memset(small->rules.limit_of_slot, 0xff, sizeof(small->rules.limit_of_slot));
	return small;
}

static void apply(struct fixture *f, u64 generation, u64 pfx_digest)
{
	struct small_image *small = small_image(generation, pfx_digest);

	if (f->dp->ops->apply(f->dp, &small->image, &f->err) < 0)
		fail_msg("%s", f->err.message);
	free(small);
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, generation);
}

static void reopen(struct fixture *f)
{
	bool fresh = true;

	f->dp->ops->close(f->dp);
	f->dp = NULL;
	if (dp_bpf_open(f->pin_dir, BUCKETS * 2, &f->dp, &fresh, &f->err) < 0)
		fail_msg("%s", f->err.message);
	assert_false(fresh);
}

/* ------------------------------------------------------------------ attaching */

static void test_native_and_off_again(void **state)
{
	struct fixture *f = begin(state);
	struct dp_attachment all[SL_IFACES_MAX];
	u32 offload_before, offload;

	make_veth(1500);
	assert_int_equal(vlan_offload_get("s0", &offload_before), 0);
	attach(f, "s0", MODE_AUTO);
	assert_int_equal(f->at.mode, MODE_NATIVE);
	assert_int_equal(f->at.ifindex, if_nametoindex("s0"));
	assert_int_equal(f->at.slot, SLOT);
	assert_true(f->at.mark_reader);
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 100);
	assert_int_equal(dp_attachments(f->dp, all), 1);
	assert_string_equal(all[0].ifname, "s0");
	assert_int_equal(all[0].ifindex, f->at.ifindex);
	assert_int_equal(vlan_offload_get("s0", &offload), 0);
	assert_int_equal(offload, 0);

	assert_int_equal(dp_detach(f->dp, "s0", &f->err), 0);
	assert_int_equal(xdp_id("s0"), 0);
	assert_int_equal(program_behind(f), 0);
	assert_int_equal(dp_attachments(f->dp, all), 0);
	assert_int_equal(vlan_offload_get("s0", &offload), 0);
	assert_int_equal(offload, offload_before);
	run("! tc filter show dev s0 ingress | grep -q sluice");
	send_frames("p0", 100, 64, 0);
	assert_int_equal(frames_seen(f), 100);
	assert_int_equal(dp_detach(f->dp, "s0", &f->err), -ENOENT);
}

static void test_generic_where_native_cannot(void **state)
{
	struct fixture *f = begin(state);

	run("ip link set lo up");
	attach(f, "lo", MODE_AUTO);
	assert_int_equal(f->at.mode, MODE_GENERIC);
	assert_int_equal(dp_detach(f->dp, "lo", &f->err), 0);
	assert_true(dp_attach(f->dp, "lo", MODE_NATIVE, SLOT, &f->at, &f->err) < 0);
	assert_int_equal(program_behind(f), 0);
}

static void test_generic_where_asked(void **state)
{
	struct fixture *f = begin(state);

	make_veth(1500);
	attach(f, "s0", MODE_GENERIC);
	assert_int_equal(f->at.mode, MODE_GENERIC);
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 100);
}

static void test_again_keeps_the_stub(void **state)
{
	struct fixture *f = begin(state);
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
	expect_seen(f, 20);	/* the counters went on, too */
}

/* Frames that come while the program is replaced meet the old one or the new one. */
static void test_replaced_under_traffic(void **state)
{
	struct fixture *f = begin(state);
	const u32 frames = 20000;
	int status;
	pid_t pid;

	make_veth(1500);
	attach(f, "s0", MODE_AUTO);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		send_frames("p0", frames, 64, 0);
		_exit(0);
	}
	for (int i = 0; i < 10; i++)
		assert_int_equal(dp_install(f->dp, SLOT, &f->err), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	expect_seen(f, frames);
}

static void test_jumbo(void **state)
{
	struct fixture *f = begin(state);

	make_veth(9000);
	attach(f, "s0", MODE_NATIVE);
	assert_int_equal(f->at.mode, MODE_NATIVE);
	send_frames("p0", 100, 9014, 0);
	expect_seen(f, 100);
}

static void test_no_such_interface(void **state)
{
	struct fixture *f = begin(state);

	assert_int_equal(dp_attach(f->dp, "s0", MODE_AUTO, SLOT, &f->at, &f->err), -ENODEV);
	assert_non_null(strstr(f->err.message, "s0"));
	assert_int_equal(program_behind(f), 0);
}

static void test_slots_are_not_shared(void **state)
{
	struct fixture *f = begin(state);

	make_veth(1500);
	attach(f, "s0", MODE_AUTO);
	assert_int_equal(dp_attach(f->dp, "p0", MODE_AUTO, SLOT, &f->at, &f->err), -EBUSY);
	assert_int_equal(dp_attach(f->dp, "s0", MODE_AUTO, SLOT + 1, &f->at, &f->err), -EBUSY);
	assert_int_equal(xdp_id("p0"), 0);
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 100);
}

/* Attached without libxdp's dispatcher, as every program is where the kernel has no freplace. */
static void test_others_program_stays(void **state)
{
	static const struct bpf_insn pass[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct fixture *f = begin(state);
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

static void test_interface_vanishes_and_returns(void **state)
{
	struct fixture *f = begin(state);
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
	assert_int_equal(dp_detach(f->dp, "s0", &f->err), 0);
	assert_int_equal(dp_attachments(f->dp, all), 0);
}

/* Somebody takes the stub off behind our back: that is seen, and mended by attaching again. */
static void test_taken_off_by_others(void **state)
{
	struct fixture *f = begin(state);
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

static void test_renamed(void **state)
{
	struct fixture *f = begin(state);
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
 * Tags are there to be seen: a frame with five is over the parser's depth. (On a veth nothing
 * strips them; what attaching does about hardware is in test_native_and_off_again.)
 */
static void test_vlan_tags_are_seen(void **state)
{
	struct fixture *f = begin(state);
	struct sl_iface_stats stats;

	make_veth(1500);
	apply(f, 1, 0);
	attach(f, "s0", MODE_AUTO);
	send_frames("p0", 100, 128, 5);
	send_frames("p0", 10, 128, 1);
	expect_seen(f, 110);
	assert_int_equal(f->dp->ops->iface_stats(f->dp, SLOT, &stats), 0);
	assert_int_equal(stats.packets[SL_R_VLAN_DEPTH][SL_ACT_PASS], 100);
	assert_int_equal(stats.packets[SL_R_NOT_IP][SL_ACT_PASS], 10);
}

/* ------------------------------------------------------------------ what outlives a process */

static void test_survives_kill(void **state)
{
	struct fixture *f = begin(state);
	struct sl_seed seed;
	int ready[2], status;
	char byte;
	pid_t pid;

	make_veth(1500);
	f->dp->ops->close(f->dp);
	f->dp = NULL;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct small_image *small = small_image(7, 0);
		bool fresh;

		if (dp_bpf_open(f->pin_dir, BUCKETS, &f->dp, &fresh, NULL) == 0 &&
		    f->dp->ops->apply(f->dp, &small->image, NULL) == 0 &&
		    dp_attach(f->dp, "s0", MODE_AUTO, SLOT, &f->at, NULL) == 0 &&
		    write(ready[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);

	send_frames("p0", 100, 64, 0);	/* nobody holds any descriptor now */
	assert_int_equal(dp_bpf_open(f->pin_dir, BUCKETS, &f->dp, NULL, &f->err), 0);
	expect_seen(f, 100);
	assert_non_null(f->dp->ops->rules(f->dp));
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, 7);
	seed = f->dp->ops->state(f->dp)->seed;
	assert_true(seed.k0 && seed.k1);
	attach(f, "s0", MODE_AUTO);
	send_frames("p0", 100, 64, 0);
	expect_seen(f, 200);
	assert_int_equal(f->dp->ops->state(f->dp)->seed.k0, seed.k0);
}

/* The prefix maps in force are never those that an apply fills, over a restart as well. */
static void test_rule_sets_alternate_prefix_slots(void **state)
{
	struct fixture *f = begin(state);
	u32 slot;

	assert_null(f->dp->ops->rules(f->dp));
	apply(f, 1, 100);
	slot = f->dp->ops->rules(f->dp)->pfx_slot;
	apply(f, 2, 100);	/* the same prefixes: kept */
	assert_int_equal(f->dp->ops->rules(f->dp)->pfx_slot, slot);
	apply(f, 3, 101);
	assert_int_equal(f->dp->ops->rules(f->dp)->pfx_slot, !slot);
	reopen(f);
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, 3);
	assert_int_equal(f->dp->ops->rules(f->dp)->pfx_slot, !slot);
	apply(f, 4, 101);
	assert_int_equal(f->dp->ops->rules(f->dp)->pfx_slot, slot);
}

/* An apply cut short between the swap and the renaming of its pin. */
static void test_rules_found_by_id(void **state)
{
	struct fixture *f = begin(state);
	char now[128], next[128];

	snprintf(now, sizeof(now), "%s/rules_now", f->pin_dir);
	snprintf(next, sizeof(next), "%s/rules_next", f->pin_dir);
	apply(f, 1, 0);
	assert_int_equal(rename(now, next), 0);
	reopen(f);
	assert_non_null(f->dp->ops->rules(f->dp));
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, 1);
	apply(f, 2, 0);
	reopen(f);
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, 2);
}

/* What waits to be confirmed is known to the next daemon; confirmed, nothing is left of it. */
static void test_fallback_found_again(void **state)
{
	struct fixture *f = begin(state);
	struct small_image *small = small_image(2, 200);
	char path[128];

	apply(f, 1, 100);
	assert_int_equal(f->dp->ops->apply_until(f->dp, &small->image, 12345, &f->err), 0);
	free(small);
	reopen(f);
	assert_int_equal(f->dp->ops->rules(f->dp)->generation, 2);
	assert_int_equal(f->dp->ops->rules(f->dp)->revert_at_ns, 12345);
	assert_non_null(f->dp->ops->fallback(f->dp));
	assert_int_equal(f->dp->ops->fallback(f->dp)->generation, 1);
	assert_int_equal(dp_rules_at(f->dp, 12344)->generation, 2);
	assert_int_equal(dp_rules_at(f->dp, 12345)->generation, 1);
	apply(f, 3, 300);
	assert_null(f->dp->ops->fallback(f->dp));
	reopen(f);
	assert_null(f->dp->ops->fallback(f->dp));
	assert_int_equal(f->dp->ops->rules(f->dp)->revert_at_ns, 0);
	snprintf(path, sizeof(path), "%s/rules_back", f->pin_dir);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void test_table_keeps_its_size(void **state)
{
	struct fixture *f = begin(state);
	u32 sets, again;

	assert_non_null(f->dp->ops->table(f->dp, &sets));
	assert_int_equal(sets, SL_TABLE_SETS(BUCKETS));
	reopen(f);	/* asks for twice as many */
	assert_non_null(f->dp->ops->table(f->dp, &again));
	assert_int_equal(again, sets);
	assert_int_equal(f->dp->ops->state(f->dp)->table_sets, sets);
}

static void test_other_version_is_refused(void **state)
{
	struct fixture *f = begin(state);

	f->dp->ops->state(f->dp)->abi_version = SL_ABI_VERSION + 1;
	f->dp->ops->close(f->dp);
	f->dp = NULL;
	assert_int_equal(dp_bpf_open(f->pin_dir, BUCKETS, &f->dp, NULL, &f->err), -EPROTO);
	assert_non_null(strstr(f->err.message, f->pin_dir));
	assert_null(f->dp);
}

static void test_not_a_bpf_file_system(void **state)
{
	struct fixture *f = begin(state);
	struct dp *dp = NULL;

	assert_int_equal(dp_bpf_open("/tmp/sluice-test", BUCKETS, &dp, NULL, &f->err), -ENODEV);
	assert_non_null(strstr(f->err.message, "mount"));
	assert_null(dp);
}

static void test_purge_leaves_nothing(void **state)
{
	struct fixture *f = begin(state);

	make_veth(1500);
	apply(f, 1, 0);
	attach(f, "s0", MODE_AUTO);
	assert_int_equal(dp_purge(f->pin_dir, &f->err), 0);
	assert_int_equal(xdp_id("s0"), 0);
	assert_int_not_equal(access(f->pin_dir, F_OK), 0);
}

/* Pins removed by hand under a running stub: it passes everything, and is in nobody's way. */
static void test_stub_without_pins_passes(void **state)
{
	struct fixture *f = begin(state);

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
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_native_and_off_again),
		T(test_generic_where_native_cannot),
		T(test_generic_where_asked),
		T(test_again_keeps_the_stub),
		T(test_replaced_under_traffic),
		T(test_jumbo),
		T(test_no_such_interface),
		T(test_slots_are_not_shared),
		T(test_others_program_stays),
		T(test_interface_vanishes_and_returns),
		T(test_taken_off_by_others),
		T(test_renamed),
		T(test_vlan_tags_are_seen),
		T(test_survives_kill),
		T(test_rule_sets_alternate_prefix_slots),
		T(test_rules_found_by_id),
		T(test_fallback_found_again),
		T(test_table_keeps_its_size),
		T(test_other_version_is_refused),
		T(test_not_a_bpf_file_system),
		T(test_purge_leaves_nothing),
		T(test_stub_without_pins_passes),
#undef T
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
