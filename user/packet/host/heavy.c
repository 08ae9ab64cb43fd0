// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* heavy.c - see heavy.h. */
#include "packet/host/heavy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void add_count(struct heavy_count *sum, const struct sl_heavy_count *one)
{
	sum->packets += one->packets;
	sum->missed += one->missed;
	sum->bytes += one->bytes;
	sum->opened += one->opened;
}

/* One entry as a source, with its counts of the windows from `first` to `last`; false: it has
 * none. */
static bool read_entry(const struct sl_heavy *way, enum sl_heavy_list list, u32 first, u32 last,
		       struct heavy_source *ret)
{
	bool v6 = way->family_iface & 0x80;

	if (!way->window || way->window < first || way->window - 1 > last)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->source = (struct sl_prefix){ .addr = way->source,
					  .family = v6 ? SL_V6 : SL_V4,
					  .len = v6 ? SL_HEAVY_V6_LEN : 32 };
	if (way->window <= last)
		add_count(&ret->of[list], &way->now);
	if (way->window > first)
		add_count(&ret->of[list], &way->before);
	ret->limit_id = way->limit_id;
	ret->reason = way->reason;
	ret->iface_slot = way->family_iface & 0x7f;
	return ret->of[list].packets > 0;
}

/* Of a source's entries the one with the most dropped packets comes first: it gives the reason. */
static int by_source(const void *pa, const void *pb)
{
	const struct heavy_source *a = pa, *b = pb;
	u64 a_dropped = a->of[SL_HEAVY_DROPPED].packets,
	    b_dropped = b->of[SL_HEAVY_DROPPED].packets;
	int order = sl_prefix_compare(&a->source, &b->source);

	return order ? order : (a_dropped < b_dropped) - (a_dropped > b_dropped);
}

/* Sums the entries of each source; returns how many sources there are. */
static size_t fold(struct heavy_source *at, size_t count)
{
	size_t sources = 0;

	qsort(at, count, sizeof(*at), by_source);
	for (size_t i = 0; i < count; i++) {
		struct heavy_source *last = sources ? &at[sources - 1] : NULL;

		if (!last || !sl_prefix_equal(&last->source, &at[i].source)) {
			at[sources++] = at[i];
			continue;
		}
		for (int list = 0; list < SL_HEAVY_LISTS; list++) {
			last->of[list].packets += at[i].of[list].packets;
			last->of[list].missed += at[i].of[list].missed;
			last->of[list].bytes += at[i].of[list].bytes;
			last->of[list].opened += at[i].of[list].opened;
		}
	}
	return sources;
}

static int read_windows(struct dp *dp, u32 first, u32 last, struct heavy_source **ret,
			size_t *ret_count)
{
	u32 cpus = dp->cpus;
	size_t room = (size_t)cpus * SL_HEAVY_LISTS * SL_HEAVY_SETS * SL_HEAVY_WAYS, count = 0;
	struct heavy_source *source = calloc(room ? room : 1, sizeof(*source));
	struct sl_heavy_set *set = calloc(cpus ? cpus : 1, sizeof(*set));
	int r = source && set ? 0 : -ENOMEM;

	for (u32 index = 0; !r && index < SL_HEAVY_LISTS * SL_HEAVY_SETS; index++) {
		r = dp->ops->heavy(dp, index, set);
		for (u32 i = 0; !r && i < cpus * SL_HEAVY_WAYS; i++)
			count += read_entry(&set[i / SL_HEAVY_WAYS].way[i % SL_HEAVY_WAYS],
					    (enum sl_heavy_list)(index >> SL_HEAVY_SETS_BITS),
					    first, last, &source[count]);
	}
	free(set);
	if (r) {
		free(source);
		return r;
	}
	*ret = source;
	*ret_count = fold(source, count);
	return 0;
}

int heavy_read(struct dp *dp, u64 mono_ns, struct heavy_source **ret, size_t *ret_count,
	       u64 *ret_span_ns)
{
	u32 window = sl_heavy_window(mono_ns);
	int r = read_windows(dp, window - 1, window, ret, ret_count);

	if (!r)
		*ret_span_ns = SL_HEAVY_WINDOW_NS + (mono_ns & (SL_HEAVY_WINDOW_NS - 1));
	return r;
}

int heavy_read_window(struct dp *dp, u64 mono_ns, struct heavy_source **ret, size_t *ret_count)
{
	u32 window = sl_heavy_window(mono_ns) - 1;

	return read_windows(dp, window, window, ret, ret_count);
}

int heavy_networks(const struct heavy_source *source, size_t count,
		   struct network ret[NETWORKS_MAX], struct networks_row **ret_row)
{
	struct networks_row *row = calloc(count ? count : 1, sizeof(*row));

	if (!row)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		row[i].source = source[i].source;
		for (int list = 0; list < SL_HEAVY_LISTS; list++) {
			const struct heavy_count *of = &source[i].of[list];
			double scale =
				of->packets ? 1 + (double)of->missed / (double)of->packets : 0;

			row[i].amount[list == SL_HEAVY_DROPPED ? HEAVY_DROPPED : HEAVY_PASSED] =
				of->packets + of->missed;
			row[i].amount[HEAVY_BYTES] += (u64)((double)of->bytes * scale);
			row[i].amount[HEAVY_OPENED] += (u64)((double)of->opened * scale);
		}
	}
	*ret_row = row;
	return (int)networks_find(row, count, ret);
}

bool heavy_is_exact(const struct heavy_source *source, size_t count)
{
	u64 packets[SL_HEAVY_LISTS] = { 0 };

	for (size_t i = 0; i < count; i++) {
		for (int list = 0; list < SL_HEAVY_LISTS; list++) {
			if (source[i].of[list].missed)
				return false;
			packets[list] += source[i].of[list].packets;
		}
	}
	/* So many of a window are all counted, on any CPU. */
	return packets[SL_HEAVY_DROPPED] < SL_HEAVY_EXACT &&
	       packets[SL_HEAVY_PASSED] < SL_HEAVY_EXACT;
}
