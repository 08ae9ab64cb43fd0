// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * target.c - see target.h. The test clock only goes forward: leases of the test before have
 * then ended, whatever is still in the kernel's LRU map.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "packet/dataplane/dp_push.h"
#include "packet/dataplane/dp_sim.h"
#include "lib/addr.h"
#include "lib/target.h"

#define LEASE_ENTRIES 4096
#define ETHERNET 14
/* Between two tests: no number that anything is a multiple of. */
#define RESET_JUMP_NS (7919 * SL_NS_PER_SEC)
#define UTC_AT_RESET (19000ULL * 86400 * SL_NS_PER_SEC)

struct target {
	enum target_kind kind;
	struct dp *dp;
	char pin_dir[64];
	int prog[TARGET_IFACES];
	u32 cpus, cpu;
	u32 linear;
	u64 base_ns, now_ns; /* monotonic time at the reset; since then */
	u64 generation;
	struct policy *policy;
	struct sl_image *image;
	struct sl_iface_stats before[TARGET_IFACES]; /* counters at the reset */
	struct sl_global_stats global_before;
	char iface[SL_IFACES_MAX][16];
	struct sl_prefix local[2];
	/* Of the environment of the next rule sets. */
	const struct sl_session *session;
	size_t session_count;
	const struct sl_prefix *gateway, *no_ban;
	size_t gateway_count;
	size_t no_ban_count;
	u8 out[FRAME_MAX + 256];
};

static int open_bpf(struct target *t, u64 buckets, struct sl_err *err)
{
	u32 i;
	int rc;

	if (geteuid())
		return sl_err_set(err, EPERM, "needs root");
	snprintf(t->pin_dir, sizeof(t->pin_dir), "/sys/fs/bpf/sluice-test-%d", getpid());
	rc = dp_bpf_open(t->pin_dir, buckets, &t->dp, NULL, err);
	for (i = 0; !rc && i < TARGET_IFACES; i++)
		rc = dp_bpf_prog(t->dp, i,
				 DP_PROG_FAKE_CLOCK | (i == TARGET_TUN ? DP_PROG_LINK_IP : 0),
				 &t->prog[i], err);
	return rc;
}

static int open_sim(struct target *t, u64 buckets)
{
	int rc = dp_sim_open(buckets, t->cpus, LEASE_ENTRIES, &t->dp);

	if (!rc)
		dp_sim_set_link(t->dp, TARGET_TUN, SL_LINK_IP);
	return rc;
}

int target_open_sized(enum target_kind kind, u64 buckets, struct target **ret, struct sl_err *err)
{
	struct target *t = calloc(1, sizeof(*t));
	const char *reason;
	u32 i;
	int rc;

	if (!t)
		return sl_err_set(err, ENOMEM, "out of memory");
	t->kind = kind;
	t->cpu = ~0U;
	t->cpus = libbpf_num_possible_cpus();
	t->base_ns = SL_NS_PER_SEC;
	for (i = 0; i < TARGET_IFACES; i++)
		t->prog[i] = -1;
	strcpy(t->iface[0], TARGET_IFACE0);
	strcpy(t->iface[1], TARGET_IFACE1);
	strcpy(t->iface[TARGET_TUN], "tun0");
	sl_prefix_parse(TARGET_LOCAL_V4, &t->local[0], &reason);
	sl_prefix_parse(TARGET_LOCAL_V6, &t->local[1], &reason);
	if (kind == TARGET_BPF)
		rc = open_bpf(t, buckets, err);
	else
		rc = open_sim(t, buckets);
	if (rc) {
		target_close(t);
		return rc;
	}
	target_reset(t);
	*ret = t;
	return 0;
}

void target_close(struct target *t)
{
	struct sl_err err;
	u32 i;

	if (!t)
		return;
	for (i = 0; i < TARGET_IFACES; i++)
		if (t->prog[i] >= 0)
			close(t->prog[i]);
	if (t->dp)
		t->dp->ops->close(t->dp);
	if (t->pin_dir[0])
		dp_purge(t->pin_dir, &err);
	policy_free(t->policy);
	image_free(t->image);
	free(t);
}

const char *target_name(const struct target *t)
{
	return t->kind == TARGET_BPF ? "bpf" : "sim";
}

enum target_kind target_kind(const struct target *t)
{
	return t->kind;
}

struct dp *target_dp(struct target *t)
{
	return t->dp;
}

u32 target_cpus(const struct target *t)
{
	return t->cpus;
}

/* ------------------------------------------------------------------ time */

void target_set_time(struct target *t, u64 ns)
{
	t->now_ns = ns;
	if (t->kind == TARGET_BPF)
		dp_bpf_test_clock(t->dp)->mono_ns = t->base_ns + ns;
	else
		dp_sim_set_time(t->dp, t->base_ns + ns);
}

u64 target_time(const struct target *t)
{
	return t->now_ns;
}

void target_step_utc(struct target *t, s64 ns)
{
	dp_set_clock(t->dp, t->dp->state->utc_offset_ns + ns);
}

u64 target_utc(const struct target *t, u64 ns)
{
	return UTC_AT_RESET + ns;
}

/* ------------------------------------------------------------------ rule sets */

static void forget_bans(struct target *t)
{
	struct dp_ban *bans;
	size_t count, i;

	if (t->dp->ops->hash_all(t->dp, DP_BANS, &bans, &count))
		return;
	for (i = 0; i < count; i++)
		dp_ban_delete(t->dp, &bans[i].key);
	free(bans);
	dp_bans_refilter(t->dp);
}

void target_reset(struct target *t)
{
	static const struct sl_err none;
	struct sl_limit_id_info *slots = t->dp->slots;
	struct sl_err err = none;
	struct sl_set *table;
	u32 sets, i;

	t->base_ns += t->now_ns + RESET_JUMP_NS;
	target_set_time(t, 0);
	dp_set_clock(t->dp, UTC_AT_RESET - t->base_ns);
	target_set_linear(t, 0);
	t->session_count = t->no_ban_count = t->gateway_count = 0;
	forget_bans(t);
	dp_pushes_expire(t->dp, ~0ULL);
	dp_push_watch(t->dp, false);
	table = t->dp->table;
	sets = t->dp->table_sets;
	memset(table, 0, sets * sizeof(*table));
	for (i = 1; i < SL_LIMIT_IDS; i++)
		if (slots[i].state != SL_LIMIT_ID_FREE)
			t->dp->ops->limit_stats_clear(t->dp, i);
	memset(slots, 0, SL_LIMIT_IDS * sizeof(*slots));
	for (i = 0; i < TARGET_IFACES; i++)
		t->dp->ops->iface_stats(t->dp, i, &t->before[i]);
	t->dp->ops->global_stats(t->dp, &t->global_before);
	target_policy(t, "limits: []\n", &err);
}

void target_sessions(struct target *t, const struct sl_session *session, size_t count)
{
	t->session = session;
	t->session_count = count;
}

void target_gateways(struct target *t, const struct sl_prefix *gateway, size_t count)
{
	t->gateway = gateway;
	t->gateway_count = count;
}

void target_no_ban(struct target *t, const struct sl_prefix *prefix, size_t count)
{
	t->no_ban = prefix;
	t->no_ban_count = count;
}

struct sl_session target_session(const char *src, u16 sport, const char *dst, u16 dport)
{
	struct sl_prefix from, to;
	const char *reason;

	if (sl_prefix_parse(src, &from, &reason) || sl_prefix_parse(dst, &to, &reason))
		abort();
	return (struct sl_session){
		.src = from.addr,
		.dst = to.addr,
		.sport = sport,
		.dport = dport,
		.used = 1 + from.family,
	};
}

u64 target_mono(const struct target *t)
{
	return t->base_ns + t->now_ns;
}

struct policy *target_policy_of(struct target *t)
{
	return t->policy;
}

const struct sl_image *target_image(const struct target *t)
{
	return t->image;
}

/* The lengths of bans that are on or remembered, as the daemon gives them to a rule set. */
static void find_ban_lens(struct target *t, struct compile_env *env)
{
	struct dp_ban *bans;
	size_t count, i;

	if (t->dp->ops->hash_all(t->dp, DP_BANS, &bans, &count))
		return;
	for (i = 0; i < count; i++) {
		u32 family = bans[i].key.family, n = env->ban_len_count[family], k;

		for (k = 0; k < n && env->ban_len[family][k] != bans[i].key.len; k++)
			;
		if (k < n || n == SL_BAN_LENGTHS)
			continue;
		env->ban_len[family][env->ban_len_count[family]++] = bans[i].key.len;
	}
	free(bans);
}

/* As the daemon does it: compile against a copy of the slots, apply, store them, sweep. */
static int apply_until(struct target *t, u64 revert_ns, struct sl_err *err)
{
	struct sl_state *state = t->dp->state;
	struct sl_limit_id_info *slots = t->dp->slots;
	struct sl_limit_id_info *copy = malloc(SL_LIMIT_IDS * sizeof(*copy));
	struct compile_env env = {
		.mono_ns = t->base_ns + t->now_ns,
		.utc_offset_ns = state->utc_offset_ns,
		.cpus = t->cpus,
		.seed = state->seed,
		.generation = ++t->generation,
		.iface = (const char(*)[16])t->iface,
		.local = t->local,
		.local_count = 2,
		.session = t->session,
		.session_count = t->session_count,
		.gateway = t->gateway,
		.gateway_count = t->gateway_count,
		.no_ban = t->no_ban,
		.no_ban_count = t->no_ban_count,
		.slots = copy,
	};
	struct sl_now now = { env.mono_ns, env.mono_ns + env.utc_offset_ns };
	struct sl_image *image = NULL;
	int rc;

	if (!copy)
		return sl_err_set(err, ENOMEM, "out of memory");
	memcpy(copy, slots, SL_LIMIT_IDS * sizeof(*copy));
	find_ban_lens(t, &env);
	rc = image_compile(t->policy, &env, &image, err);
	if (!rc)
		rc = revert_ns ? t->dp->ops->apply_until(t->dp, image, t->base_ns + revert_ns, err)
			       : t->dp->ops->apply(t->dp, image, err);
	if (!rc) {
		memcpy(slots, copy, SL_LIMIT_IDS * sizeof(*copy));
		dp_sweep(t->dp, now);
		image_free(t->image);
		t->image = image;
		image = NULL;
	}
	image_free(image);
	free(copy);
	return rc;
}

int target_apply(struct target *t, struct sl_err *err)
{
	return apply_until(t, 0, err);
}

int target_policy(struct target *t, const char *yaml, struct sl_err *err)
{
	return target_policy_until(t, yaml, 0, err);
}

int target_policy_until(struct target *t, const char *yaml, u64 revert_ns, struct sl_err *err)
{
	struct policy *policy;
	int rc = policy_parse("test.yaml", yaml, strlen(yaml), &policy, err);

	if (rc)
		return rc;
	policy_free(t->policy);
	t->policy = policy;
	return apply_until(t, revert_ns, err);
}

/* ------------------------------------------------------------------ packets */

void target_set_linear(struct target *t, u32 bytes)
{
	t->linear = bytes;
	if (t->kind == TARGET_SIM)
		dp_sim_set_linear(t->dp, bytes);
}

/* The program runs where its caller does. */
static int go_to_cpu(struct target *t, u32 cpu)
{
	cpu_set_t set;

	if (cpu == t->cpu)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return -errno;
	t->cpu = cpu;
	return 0;
}

static int run_bpf(struct target *t, u32 iface, u8 *data, u32 length, struct target_verdict *ret)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	struct xdp_md ctx = { .data_end = t->linear && t->linear < length ? t->linear : length };
	const struct sl_meta *meta = (const void *)t->out;
	u32 extra;

	opts.data_in = data;
	opts.data_size_in = length;
	opts.data_out = t->out;
	opts.data_size_out = sizeof(t->out);
	opts.repeat = 1;
	if (t->linear) {
		opts.ctx_in = &ctx;
		opts.ctx_size_in = sizeof(ctx);
	}
	if (bpf_prog_test_run_opts(t->prog[iface], &opts))
		return t->linear && errno == EINVAL ? -EOPNOTSUPP : -errno;
	if (opts.retval != XDP_DROP && opts.retval != XDP_PASS)
		return -EBADMSG;
	ret->drop = opts.retval == XDP_DROP;
	/* What comes out begins with the metadata. */
	extra = opts.data_size_out - length;
	if (extra && (extra != sizeof(*meta) || meta->magic != SL_META_MAGIC))
		return -EBADMSG;
	ret->marked = extra != 0;
	ret->mark = extra ? meta->mark : 0;
	memcpy(data, t->out + extra, length);
	return 0;
}

static int run_one(struct target *t, u32 cpu, u32 iface, struct frame *f,
		   struct target_verdict *ret)
{
	u32 skipped = iface == TARGET_TUN ? ETHERNET : 0;
	struct sim_verdict v;
	int rc;

	if (iface >= TARGET_IFACES || cpu >= t->cpus || f->length < skipped)
		return -EINVAL;
	if (t->kind == TARGET_BPF) {
		rc = go_to_cpu(t, cpu);
		return rc ? rc : run_bpf(t, iface, f->data + skipped, f->length - skipped, ret);
	}
	v = dp_sim_packet(t->dp, cpu, iface, f->data + skipped, f->length - skipped);
	ret->drop = v.drop;
	ret->marked = v.marked;
	ret->mark = v.mark;
	return 0;
}

/* Which one counter went up, by one. */
static int find_counted(const struct sl_iface_stats *a, const struct sl_iface_stats *b,
			struct target_verdict *ret)
{
	u64 sum = 0;
	u32 r, act;

	for (r = 0; r < SL_R_COUNT; r++) {
		for (act = 0; act < SL_ACT_COUNT; act++) {
			u64 more = b->packets[r][act] - a->packets[r][act];

			sum += more;
			if (more) {
				ret->reason = r;
				ret->action = act;
			}
		}
	}
	return sum == 1 ? 0 : -EBADMSG;
}

int target_run(struct target *t, u32 cpu, u32 iface, struct frame *f, struct target_verdict *ret)
{
	struct sl_iface_stats a, b;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = t->dp->ops->iface_stats(t->dp, iface, &a);
	if (!rc)
		rc = run_one(t, cpu, iface, f, ret);
	if (!rc)
		rc = t->dp->ops->iface_stats(t->dp, iface, &b);
	return rc ? rc : find_counted(&a, &b, ret);
}

int target_flood(struct target *t, u32 cpu, u32 iface, const struct frame *f, u32 times)
{
	struct frame *copy = malloc(sizeof(*copy));
	struct target_verdict v;
	int passed = 0, rc = 0;
	u32 i;

	if (!copy)
		return -ENOMEM;
	for (i = 0; i < times && !rc; i++) {
		copy->length = f->length;
		memcpy(copy->data, f->data, f->length);
		rc = run_one(t, cpu, iface, copy, &v);
		passed += !v.drop;
	}
	free(copy);
	return rc ? rc : passed;
}

/* ------------------------------------------------------------------ counters */

u64 target_count(struct target *t, u32 iface, enum sl_reason reason, enum sl_action action)
{
	struct sl_iface_stats stats;

	if (t->dp->ops->iface_stats(t->dp, iface, &stats))
		return ~0ULL;
	return stats.packets[reason][action] - t->before[iface].packets[reason][action];
}

int target_limit_stats(struct target *t, const char *limit, struct sl_limit_stats *ret)
{
	const struct sl_limit_id_info *slots = t->dp->slots;
	u32 i;

	for (i = 1; i < SL_LIMIT_IDS; i++)
		if (slots[i].state == SL_LIMIT_ID_BOUND && !strcmp(slots[i].name, limit))
			return t->dp->ops->limit_stats(t->dp, i, ret);
	return -ENOENT;
}

u64 target_errors(struct target *t)
{
	struct sl_global_stats stats;
	u64 sum = 0;
	u32 i;

	if (t->dp->ops->global_stats(t->dp, &stats))
		return ~0ULL;
	for (i = 0; i < SL_ME_COUNT; i++)
		sum += stats.errors[i] - t->global_before.errors[i];
	return sum;
}
