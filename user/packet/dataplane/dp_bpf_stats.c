// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* dp_bpf_stats.c - the counters, which are per CPU: sums, and reset. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "packet/dataplane/dp_bpf.h"
#include "bpf/sluice.skel.h" /* uses types of ours */

/* All counters are structs of u64 only: adds up every CPU's. */
static int sum_counters(struct dp_bpf *b, const struct bpf_map *map, u32 key, void *ret,
			size_t size)
{
	size_t words = size / sizeof(u64);
	u64 *each = calloc(b->dp.cpus, size);
	u64 *sum = ret;
	int rc = 0;

	if (!each)
		return -ENOMEM;
	if (bpf_map_lookup_elem(bpf_map__fd(map), &key, each) < 0) {
		rc = -errno;
		goto out;
	}
	memset(ret, 0, size);
	for (u32 cpu = 0; cpu < b->dp.cpus; cpu++)
		for (size_t i = 0; i < words; i++)
			sum[i] += each[cpu * words + i];
out:
	free(each);
	return rc;
}

static int clear_counters(struct dp_bpf *b, const struct bpf_map *map, u32 key, size_t size)
{
	u64 *zeroes = calloc(b->dp.cpus, size);
	int rc;

	if (!zeroes)
		return -ENOMEM;
	rc = bpf_map_update_elem(bpf_map__fd(map), &key, zeroes, BPF_EXIST) < 0 ? -errno : 0;
	free(zeroes);
	return rc;
}

int dp_bpf_iface_stats(struct dp *dp, u32 iface_slot, struct sl_iface_stats *ret)
{
	struct dp_bpf *b = (struct dp_bpf *)dp;

	return sum_counters(b, b->skel->maps.iface_stats, iface_slot, ret, sizeof(*ret));
}

int dp_bpf_limit_stats(struct dp *dp, u32 slot, struct sl_limit_stats *ret)
{
	struct dp_bpf *b = (struct dp_bpf *)dp;

	return sum_counters(b, b->skel->maps.limit_stats, slot, ret, sizeof(*ret));
}

int dp_bpf_heavy(struct dp *dp, u32 index, struct sl_heavy_set *ret)
{
	struct dp_bpf *b = (struct dp_bpf *)dp;

	return bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.heavy), &index, ret) < 0 ? -errno : 0;
}

int dp_bpf_global_stats(struct dp *dp, struct sl_global_stats *ret)
{
	struct dp_bpf *b = (struct dp_bpf *)dp;

	return sum_counters(b, b->skel->maps.global_stats, 0, ret, sizeof(*ret));
}

static int on_event(void *arg, void *data, size_t size)
{
	struct dp_bpf *b = arg;

	if (size >= sizeof(struct sl_event))
		b->event_each(b->event_arg, data);
	return 0;
}

int dp_bpf_open_ring(struct dp_bpf *b, struct sl_err *err)
{
	b->ring = ring_buffer__new(bpf_map__fd(b->skel->maps.events), on_event, b, NULL);
	if (!b->ring)
		return sl_err_set(err, errno, "cannot map the ring of events: %s", strerror(errno));
	return 0;
}

int dp_bpf_events(struct dp *dp, dp_event_fn *each, void *arg)
{
	struct dp_bpf *b = (struct dp_bpf *)dp;

	b->event_each = each;
	b->event_arg = arg;
	return ring_buffer__consume(b->ring);
}

int dp_bpf_event_stats(struct dp *dp, struct sl_event_stats *ret)
{
	struct dp_bpf *b = (struct dp_bpf *)dp;

	return sum_counters(b, b->skel->maps.event_stats, 0, ret, sizeof(*ret));
}

int dp_bpf_limit_stats_clear(struct dp *dp, u32 slot)
{
	struct dp_bpf *b = (struct dp_bpf *)dp;

	if (slot >= SL_LIMIT_IDS)
		return -EINVAL;
	memset(&b->dp.shadow_seen[slot], 0, sizeof(b->dp.shadow_seen[slot]));
	return clear_counters(b, b->skel->maps.limit_stats, slot, sizeof(struct sl_limit_stats));
}

int dp_bpf_iface_stats_clear(struct dp *dp, u32 iface_slot)
{
	struct dp_bpf *b = (struct dp_bpf *)dp;

	return clear_counters(b, b->skel->maps.iface_stats, iface_slot,
			      sizeof(struct sl_iface_stats));
}
