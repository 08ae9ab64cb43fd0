// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rig.c - see rig.h. */
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "lib/test.h"
#include "lib/rig.h"

#define ETH_LEN 14
#define V4_LEN 20
#define V6_LEN 40
#define UTC_AT_BOOT (1700000000ULL * SL_NS_PER_SEC)

/* ------------------------------------------------------------------ opening */

void rig_open_sim(struct rig *rig, u64 buckets, u32 cpus, u32 lease_entries)
{
	memset(rig, 0, sizeof(*rig));
	rig->prog_fd = -1;
	rig->cpus = cpus;
	assert_int_equal(dp_sim_open(buckets, cpus, lease_entries, &rig->dp), 0);
	rig_set_time(rig, 1000 * SL_NS_PER_SEC, UTC_AT_BOOT);
}

static void skip_or_fail(const char *reason)
{
	const char *ci = getenv("CI");

	if (ci && !strcmp(ci, "true"))
		fail_msg("%s", reason);
	print_message("# skipped: %s\n", reason);
	skip();
}

/* The pins of tests that failed, and so never closed their rig. */
static char left_behind[16][64];

static void purge_left_behind(void)
{
	for (u32 i = 0; i < 16; i++)
		if (left_behind[i][0])
			dp_purge(left_behind[i], NULL);
}

/*
 * Puts a smaller map in the place of the lease map, in the very descriptor that the program
 * will be loaded with: the product has no option for that size.
 */
static void shrink_leases(struct rig *rig, u32 entries)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_LRU_PERCPU_HASH, "lease", sizeof(u64), sizeof(u64),
				entries, NULL);
	struct bpf_map_info pinned, info;
	u32 size = sizeof(pinned);
	char path[128];
	int pin, replaced = 0;

	snprintf(path, sizeof(path), "%s/lease", rig->pin_dir);
	pin = bpf_obj_get(path);
	assert_true(fd >= 0 && pin >= 0);
	assert_int_equal(bpf_obj_get_info_by_fd(pin, &pinned, &size), 0);
	for (int other = 3; other < 1024; other++) {
		size = sizeof(info);
		memset(&info, 0, sizeof(info));
		if (other == pin || bpf_obj_get_info_by_fd(other, &info, &size) < 0)
			continue;
		if (info.id == pinned.id && !strcmp(info.name, "lease"))
			replaced += dup2(fd, other) == other;
	}
	assert_int_equal(replaced, 1);
	close(fd);
	close(pin);
}

void rig_open_bpf(struct rig *rig, u64 buckets, bool fake_clock, u32 lease_entries)
{
	static u32 count;
	struct sl_err err = { .message = "" };

	memset(rig, 0, sizeof(*rig));
	rig->prog_fd = -1;
	if (geteuid() != 0)
		skip_or_fail("needs root");
	rig->cpus = libbpf_num_possible_cpus();
	if (!count)
		atexit(purge_left_behind);
	snprintf(rig->pin_dir, sizeof(rig->pin_dir), "/sys/fs/bpf/sluice-rig-%d-%u", getpid(),
		 count);
	strcpy(left_behind[count++ % 16], rig->pin_dir);
	if (dp_bpf_open(rig->pin_dir, buckets, &rig->dp, NULL, &err))
		fail_msg("%s", err.message);
	if (lease_entries)
		shrink_leases(rig, lease_entries);
	if (dp_bpf_prog(rig->dp, 0, fake_clock ? DP_PROG_FAKE_CLOCK : 0, &rig->prog_fd, &err))
		fail_msg("%s", err.message);
	if (fake_clock) {
		rig_set_time(rig, 1000 * SL_NS_PER_SEC, UTC_AT_BOOT);
		return;
	}
	rig->utc_offset_ns = UTC_AT_BOOT;
	dp_set_clock(rig->dp, UTC_AT_BOOT);
	rig_read_time(rig);
}

void rig_no_refusal_cache(struct rig *rig)
{
	struct sl_err err = { .message = "" };

	if (rig->prog_fd < 0) {
		dp_sim_refusal_cache(rig->dp, false);
		return;
	}
	close(rig->prog_fd);
	if (dp_bpf_prog(rig->dp, 0, DP_PROG_FAKE_CLOCK | DP_PROG_NO_REFUSAL_CACHE, &rig->prog_fd,
			&err))
		fail_msg("%s", err.message);
}

void rig_close(struct rig *rig)
{
	if (rig->dp)
		rig->dp->ops->close(rig->dp);
	if (rig->prog_fd >= 0) {
		close(rig->prog_fd);
		dp_purge(rig->pin_dir, NULL);
	}
	memset(rig, 0, sizeof(*rig));
	rig->prog_fd = -1;
}

/* ------------------------------------------------------------------ time and rules */

void rig_set_time(struct rig *rig, u64 mono_ns, u64 utc_offset_ns)
{
	rig->now = (struct sl_now){ mono_ns, mono_ns + utc_offset_ns };
	if (rig->utc_offset_ns != utc_offset_ns) {
		rig->utc_offset_ns = utc_offset_ns;
		dp_set_clock(rig->dp, utc_offset_ns);
	}
	if (rig->prog_fd >= 0)
		__atomic_store_n(&dp_bpf_test_clock(rig->dp)->mono_ns, mono_ns, __ATOMIC_RELEASE);
	else
		dp_sim_set_time(rig->dp, mono_ns);
}

void rig_read_time(struct rig *rig)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	rig->now.mono_ns = ts.tv_sec * SL_NS_PER_SEC + ts.tv_nsec;
	rig->now.utc_ns = rig->now.mono_ns + rig->utc_offset_ns;
}

struct limit_def rig_limit_def(const char *name, struct rate rate, u64 burst, enum sl_algo algo)
{
	struct limit_def limit = {
		.per = SL_PER_SOURCE,
		.prefix = { .len = { { 32 }, { 64 } },
			    .scale = { { 1 }, { 1 } },
			    .count = { 1, 1 } },
		.terms.rates = { .rate = { rate }, .burst = { burst }, .count = 1 },
		.terms.algorithm = algo,
		.terms.buckets = 4,
		.accounting = ACCOUNTING_EXACT,
		.action = SL_ACT_DROP,
	};

	snprintf(limit.name, sizeof(limit.name), "%s", name);
	return limit;
}

struct policy rig_policy(struct rig *rig, struct limit_def *limit, size_t count)
{
	return (struct policy){
		.limit = limit,
		.limit_count = count,
		.list[LIST_BLOCK] = rig->block,
		.failsafe_rate = { 100, SL_NS_PER_SEC, RATE_CONNECTIONS },
		.essential_rate = { 1000, SL_NS_PER_SEC, RATE_PACKETS },
	};
}

struct sl_image *rig_install(struct rig *rig, const struct policy *policy)
{
	struct compile_env env = {
		.mono_ns = rig->now.mono_ns,
		.utc_offset_ns = rig->utc_offset_ns,
		.cpus = rig->cpus,
		.seed = rig->dp->state->seed,
		.generation = ++rig->generation,
		.slots = rig->dp->slots,
	};
	struct sl_err err = { .message = "" };
	struct sl_image *image = NULL;

	if (image_compile(policy, &env, &image, &err) || rig->dp->ops->apply(rig->dp, image, &err))
		fail_msg("%s", err.message);
	return image;
}

void rig_apply(struct rig *rig, struct limit_def *limit, size_t count)
{
	const struct policy policy = rig_policy(rig, limit, count);
	struct sl_image *image = rig_install(rig, &policy);

	for (size_t i = 0; i < count; i++)
		rig->slot[i] = image->rules->limits[i].slot;
	image_free(image);
	dp_sweep(rig->dp, rig->now);
}

struct sl_limit_stats rig_limit_stats(struct rig *rig, u32 limit)
{
	struct sl_limit_stats stats;

	assert_int_equal(rig->dp->ops->limit_stats(rig->dp, rig->slot[limit], &stats), 0);
	return stats;
}

struct sl_global_stats rig_global_stats(struct rig *rig)
{
	struct sl_global_stats stats;

	assert_int_equal(rig->dp->ops->global_stats(rig->dp, &stats), 0);
	return stats;
}

const struct sl_limit *rig_limit(struct rig *rig, u32 index)
{
	return &rig->dp->ops->rules(rig->dp)->limits[index];
}

u64 rig_bucket_state(struct rig *rig, u32 index, u32 src)
{
	const struct sl_prefix source = {
		.addr.hi = (u64)src << 32,
		.family = SL_V4,
		.len = 32,
	};

	return dp_bucket_state(rig->dp, dp_source_key(rig->dp->ops->rules(rig->dp),
						      rig_limit(rig, index), &source));
}

/* ------------------------------------------------------------------ frames */

static void put16(u8 *at, u16 value)
{
	value = htons(value);
	memcpy(at, &value, sizeof(value));
}

static void put64(u8 *at, u64 value)
{
	value = __builtin_bswap64(value);
	memcpy(at, &value, sizeof(value));
}

void rig_frame_src(struct rig_frame *frame, u32 src)
{
	src = htonl(src);
	memcpy(frame->data + ETH_LEN + 12, &src, sizeof(src));
}

void rig_frame_make(struct rig_frame *frame, const struct rig_packet *packet)
{
	u8 *ip = frame->data + ETH_LEN;
	u8 *l4 = ip + (packet->v6 ? V6_LEN : V4_LEN);
	u32 rest = packet->length - (l4 - frame->data);

	memset(frame->data, 0, 80);
	frame->length = packet->length;
	frame->data[5] = 1;
	frame->data[11] = 2;
	put16(frame->data + 12, packet->v6 ? 0x86dd : 0x0800);
	if (packet->v6) {
		ip[0] = 0x60;
		put16(ip + 4, rest);
		ip[6] = packet->proto;
		ip[7] = 64;
		put64(ip + 8, packet->src);
		put64(ip + 16, packet->src_low);
		put64(ip + 24, 0x20010db8ffff0000ULL);
	} else {
		ip[0] = 0x45;
		put16(ip + 2, V4_LEN + rest);
		ip[8] = 64;
		ip[9] = packet->proto;
		rig_frame_src(frame, packet->src);
		ip[16] = 203;
		ip[18] = 113;
		ip[19] = 10;
	}
	put16(l4, 40000);
	put16(l4 + 2, packet->dport);
	if (packet->proto == 6) {
		l4[12] = 0x50;
		l4[13] = packet->tcp_flags;
	} else {
		put16(l4 + 4, rest);
	}
}

/* ------------------------------------------------------------------ judging */

static u32 run(struct rig *rig, struct rig_frame *frame, u32 repeat)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame->data, .data_size_in = frame->length,
		    .repeat = repeat);
	int rc = bpf_prog_test_run_opts(rig->prog_fd, &opts);

	/* Not an assertion: this also runs in threads, which cmocka cannot jump out of. */
	if (rc < 0) {
		fprintf(stderr, "# BPF_PROG_TEST_RUN: %s\n", strerror(-rc));
		abort();
	}
	return opts.retval;
}

bool rig_passes(struct rig *rig, u32 cpu, struct rig_frame *frame)
{
	if (rig->prog_fd >= 0)
		return run(rig, frame, 1) == XDP_PASS;
	return !dp_sim_packet(rig->dp, cpu, 0, frame->data, frame->length).drop;
}

void rig_repeat(struct rig *rig, struct rig_frame *frame, u32 repeat)
{
	run(rig, frame, repeat);
}
