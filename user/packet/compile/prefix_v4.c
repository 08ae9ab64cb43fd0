/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prefix_v4.c - IPv4 prefixes -> ranges of one class each -> entries and lists.
 *
 * Prefixes nest, so they divide the address space into a sequence of ranges: a sweep with a stack
 * makes it, with at most two ranges a prefix. Depending on its number of ranges a /16 gets a class,
 * a list, or an entry for each /24; a /24 gets a class, a list, or a class for each address. Lists
 * are packed to save cache lines. In any case a range costs less than two lines.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "packet/compile/prefix_v4.h"

#define V4_DEPTH_MAX 33 /* nested prefixes: lengths 0..32 */
#define BLOCK_LINES 16
#define BYTES_LINES 8

/* From `start` to the start of the next range. */
struct range {
	u32 start, class;
};

struct ranges {
	struct range *range; /* the first starts at 0; neighbors' classes differ */
	size_t count;
};

struct filling {
	struct ranges ranges;
	size_t at; /* the range of the current address */
	struct v4_lines *lines;
};

/* ------------------------------------------------------------------ ranges */

/* Addresses from `start` on have another class; replaces a range with the same start. */
static void add_range(struct ranges *r, u32 start, u32 class)
{
	if (r->count && r->range[r->count - 1].start == start)
		r->count--;
	if (r->count && r->range[r->count - 1].class == class)
		return;
	r->range[r->count++] = (struct range){ start, class };
}

/* Removes the prefixes that end before `until` from the stack, the innermost first. */
static void end_prefixes(struct ranges *r, const struct prefix_node **stack, u32 *depth, u64 until)
{
	while (*depth) {
		const struct prefix_node *top = stack[*depth - 1];
		u64 end = (top->addr.hi >> 32) + (1ULL << (32 - top->len));

		if (end > until)
			return;
		--*depth;
		if (end >> 32 == 0)
			add_range(r, end, *depth ? stack[*depth - 1]->class : 0);
	}
}

static void make_ranges(const struct prefix_node *node, size_t count, struct ranges *r)
{
	const struct prefix_node *stack[V4_DEPTH_MAX];
	u32 depth = 0;

	add_range(r, 0, 0);
	for (size_t i = 0; i < count; i++) {
		end_prefixes(r, stack, &depth, node[i].addr.hi >> 32);
		stack[depth++] = &node[i];
		add_range(r, node[i].addr.hi >> 32, node[i].class);
	}
	end_prefixes(r, stack, &depth, 1ULL << 32);
}

/* ------------------------------------------------------------------ lines */

/* Allocates zeroed lines; returns them as an entry without its kind. */
static int add_lines(struct v4_lines *lines, size_t count, u32 *ret)
{
	size_t need = lines->count + count;

	if (need > SL_V4_LINE(~0U))
		return -ENOMEM;
	if (need > lines->room) {
		struct sl_v4_line *more = reallocarray(lines->line, need * 2, sizeof(*more));

		if (!more)
			return -ENOMEM;
		lines->line = more;
		lines->room = need * 2;
	}
	memset(&lines->line[lines->count], 0, count * sizeof(*lines->line));
	*ret = lines->count << 4;
	lines->count = need;
	return 0;
}

static int fill_list(struct filling *f, u32 starts, u32 *ret)
{
	const struct range *range = &f->ranges.range[f->at];
	struct v4_lines *lines = f->lines;
	struct sl_v4_range *list;
	int err;

	if (lines->used + starts + 1 > SL_V4_RANGES) {
		err = add_lines(lines, 1, &lines->list);
		if (err)
			return err;
		lines->used = 0;
	}
	*ret = SL_V4_LIST | lines->list | lines->used;
	list = &lines->line[SL_V4_LINE(lines->list)].range[lines->used];
	lines->used += starts + 1;
	for (u32 i = 0; i <= starts; i++)
		list[i] = (struct sl_v4_range){ range[i].start, range[i].class };
	list[0].start = starts;
	return 0;
}

static int fill_bytes(struct filling *f, u32 base, u32 *ret)
{
	const struct range *range = f->ranges.range;
	size_t i = f->at;
	u32 at;
	int err;

	err = add_lines(f->lines, BYTES_LINES, &at);
	if (err)
		return err;
	*ret = SL_V4_BYTES | at;
	for (u32 low = 0; low < 256; low++) {
		while (i + 1 < f->ranges.count && range[i + 1].start <= base + low)
			i++;
		f->lines->line[SL_V4_LINE(at) + low / 32].class[low % 32] = range[i].class;
	}
	return 0;
}

static int fill_entry(struct filling *f, u32 base, u32 size, u32 *ret);

static int fill_block(struct filling *f, u32 base, u32 *ret)
{
	u32 at, entry;
	int err;

	err = add_lines(f->lines, BLOCK_LINES, &at);
	if (err)
		return err;
	*ret = SL_V4_BLOCK | at;
	for (u32 n = 0; n < 256; n++) {
		err = fill_entry(f, base + n * 256, 256, &entry);
		if (err)
			return err;
		f->lines->line[SL_V4_LINE(at) + n / 16].entry[n % 16] = entry;
	}
	return 0;
}

/* The entry of the /16 (size 65536) or /24 (256) at `base`. Calls must be in order of `base`. */
static int fill_entry(struct filling *f, u32 base, u32 size, u32 *ret)
{
	const struct range *range = f->ranges.range;
	u32 starts = 0;

	while (f->at + 1 < f->ranges.count && range[f->at + 1].start <= base)
		f->at++;
	while (starts < SL_V4_RANGES && f->at + starts + 1 < f->ranges.count &&
	       range[f->at + starts + 1].start - base < size)
		starts++;
	if (!starts) {
		*ret = range[f->at].class;
		return 0;
	}
	if (starts < SL_V4_RANGES)
		return fill_list(f, starts, ret);
	return size == 256 ? fill_bytes(f, base, ret) : fill_block(f, base, ret);
}

int prefix_v4_build(const struct prefix_node *node, size_t count, struct sl_v4_top *top,
		    struct v4_lines *lines)
{
	struct filling f = { .lines = lines };
	int err = 0;

	f.ranges.range = calloc(2 * count + 1, sizeof(*f.ranges.range));
	if (!f.ranges.range)
		return -ENOMEM;
	make_ranges(node, count, &f.ranges);
	for (u32 n = 0; n < 65536 && !err; n++)
		err = fill_entry(&f, n << 16, 65536, &top->entry[node->dim << 16 | n]);
	free(f.ranges.range);
	return err;
}
