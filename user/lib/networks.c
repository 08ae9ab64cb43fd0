// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* networks.c - see networks.h. */
#include "lib/networks.h"

#include <string.h>

#define LEVELS 4
#define NARROWED_PARTS 20 /* a half with all but one of so many parts */

static const u8 lengths[SL_FAMILY_COUNT][LEVELS] = {
	[SL_V4] = { 32, 24, 16, 8 }, [SL_V6] = { 64, 56, 48, 32 }
};

/* Returns the end of the rows from `from` on that are in the prefix. */
static size_t end_of(const struct networks_row *row, size_t from, size_t end,
		     const struct sl_prefix *prefix)
{
	while (from < end && sl_prefix_contains(prefix, &row[from].source))
		from++;
	return from;
}

static struct sl_prefix prefix_of(const struct networks_row *row, u8 len)
{
	return (struct sl_prefix){ sl_addr_mask(row->source.addr, len), row->source.family, len };
}

/* Sums the rows that are not in a named prefix. */
static struct network sum(const struct networks_row *row, size_t from, size_t end,
			  struct sl_prefix prefix)
{
	struct network network = { .prefix = prefix };

	for (size_t i = from; i < end; i++) {
		if (row[i].network)
			continue;
		network.sources++;
		for (int m = 0; m < NETWORKS_MEASURES; m++)
			network.amount[m] += row[i].amount[m];
	}
	return network;
}

/* Returns the measure of which the network has the largest share, or -1 if it has a tenth of
 * none. */
static int heavy_in(const struct network *network, const u64 *total)
{
	double most = 0;
	int best = -1;

	for (int m = 0; m < NETWORKS_MEASURES; m++) {
		double share = total[m] ? (double)network->amount[m] / (double)total[m] : 0;

		if (share * NETWORKS_SHARE >= 1 && share > most) {
			most = share;
			best = m;
		}
	}
	return best;
}

/* Halves the prefix while one half has nearly all of the measure; [*from, *end) are then its
 * rows. */
static struct network narrowed(const struct networks_row *row, size_t *from, size_t *end,
			       struct network network, int measure)
{
	u64 enough = network.amount[measure] - network.amount[measure] / NARROWED_PARTS;
	u8 longest = lengths[network.prefix.family & 1][0];

	while (network.prefix.len < longest) {
		struct sl_prefix low = prefix_of(&row[*from], network.prefix.len + 1);
		size_t half = end_of(row, *from, *end, &low);
		struct network first = sum(row, *from, half, low);

		if (first.amount[measure] >= enough) {
			*end = half;
			network = first;
			continue;
		}
		if (half == *end || network.amount[measure] - first.amount[measure] < enough)
			break;
		*from = half;
		network = sum(row, half, *end, prefix_of(&row[half], network.prefix.len + 1));
	}
	return network;
}

static size_t find_at(struct networks_row *row, size_t count, int level, const u64 *total,
		      struct network *ret, size_t found)
{
	for (size_t from = 0, next; from < count; from = next) {
		struct sl_prefix prefix =
			prefix_of(&row[from], lengths[row[from].source.family & 1][level]);
		struct network network;
		size_t begin = from, end;
		int measure;

		next = end = end_of(row, from, count, &prefix);
		network = sum(row, from, end, prefix);
		measure = heavy_in(&network, total);
		if (measure < 0 || found == NETWORKS_MAX)
			continue;
		ret[found++] = narrowed(row, &begin, &end, network, measure);
		for (size_t i = begin; i < end; i++)
			if (!row[i].network)
				row[i].network = (u32)found;
	}
	return found;
}

size_t networks_find(struct networks_row *row, size_t count, struct network ret[NETWORKS_MAX])
{
	u64 total[NETWORKS_MEASURES] = { 0 };
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		row[i].network = 0;
		for (int m = 0; m < NETWORKS_MEASURES; m++)
			total[m] += row[i].amount[m];
	}
	for (int level = 0; level < LEVELS; level++)
		found = find_at(row, count, level, total, ret, found);
	return found;
}
