/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_bpf_rules.c - applies an image in the kernel: inner maps that no packet reads, one swap of one
 * pointer; and keeps the rule set to fall back to.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "packet/compile/prefix_index.h"
#include "packet/dataplane/dp_bpf.h"
#include "bpf/sluice.skel.h" /* uses types of ours */

/*
 * A new array of the kind that bpf/maps.h has inside an outer map, its first `count` elements
 * filled; *ret is its memory, mapped for writing.
 */
static int filled_array(const char *name, size_t value_size, u32 entries, u32 flags,
			const void *from, u32 count, int *ret_fd, void **ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = flags);
	int fd, rc;
	void *to;

	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(u32), value_size, entries, &opts);
	if (fd < 0)
		return -errno;
	to = map_memory(fd, value_size, entries, PROT_READ | PROT_WRITE);
	if (!to) {
		rc = -errno;
		close(fd);
		return rc;
	}
	memcpy(to, from, value_size * count);
	*ret_fd = fd;
	*ret = to;
	return 0;
}

/* What an array of a prefix slot gets: `entries` 0: as many as there are. */
struct pfx_source {
	const struct bpf_map *outer;
	const char *name;
	size_t value_size;
	u32 entries, flags;
	const void *from;
	u32 count;
	u64 content; /* equal ones: the same is in it; 0: unknown */
};

/*
 * Writes into the array that the slot has, where it is this daemon's and has room; else makes one,
 * and room for a quarter more. Each update of an outer map waits for all packets: five of them took
 * most of a change. Nothing reads the slot meanwhile: see apply_image().
 */
static int publish_array(struct pfx_memory *m, u32 slot, const struct pfx_source *s)
{
	u32 entries = s->entries ? s->entries : s->count + s->count / 4;
	void *memory;
	int fd, rc;

	if (m->memory && s->content && m->content == s->content)
		return 0;
	if (m->memory && m->entries >= s->count) {
		memcpy(m->memory, s->from, s->value_size * s->count);
		m->content = s->content;
		return 0;
	}
	rc = filled_array(s->name, s->value_size, entries, s->flags, s->from, s->count, &fd,
			  &memory);
	if (rc < 0)
		return rc;
	rc = bpf_map_update_elem(bpf_map__fd(s->outer), &slot, &fd, BPF_ANY) < 0 ? -errno : 0;
	close(fd);
	if (rc < 0) {
		unmap_memory(memory, s->value_size, entries);
		return rc;
	}
	unmap_memory(m->memory, m->value_size, m->entries);
	*m = (struct pfx_memory){ memory, s->value_size, entries, s->content };
	return 0;
}

/* Fills the prefix maps of a slot that no rule set in force uses. */
static int publish_prefixes(struct dp_bpf *b, const struct sl_image *image, u32 slot)
{
	const u32 sized = BPF_F_INNER_MAP | BPF_F_MMAPABLE;
	const struct override_index *overrides = image->overrides;
	u64 digest = image->prefixes ? image->prefixes->digest : 0;
	struct pfx_memory *copy = &b->pfx[slot][PFX_OVERRIDES];
	const struct pfx_source source[PFX_ARRAYS] = {
		[PFX_V4_TOP] = { b->skel->maps.v4_top_of, "v4_top", sizeof(struct sl_v4_top), 1,
				 BPF_F_MMAPABLE, image->v4_top, 1, digest },
		[PFX_V4_LINE] = { b->skel->maps.v4_line_of, "v4_line", sizeof(struct sl_v4_line), 0,
				  sized, image->v4_line, image->v4_lines, digest },
		[PFX_BUCKET] = { b->skel->maps.pfx_of, "pfx", sizeof(struct sl_pfx_bucket), 0,
				 sized, image->bucket,
				 image->rules->pfx_buckets ? image->rules->pfx_buckets : 1,
				 digest },
		[PFX_OVERRIDES] = { b->skel->maps.overrides_of, "overrides",
				    sizeof(struct sl_override_bucket), 0, sized, overrides->bucket,
				    overrides->buckets, overrides->serial },
		[PFX_CLASS] = { b->skel->maps.pclass_of, "pclass", sizeof(struct sl_pclass),
				SL_PCLASS_MAX + 1, BPF_F_MMAPABLE, image->pclass,
				image->pclass_count, digest },
	};
	int rc = 0;

	if (copy->memory && override_index_follow(overrides, copy->content, copy->memory))
		copy->content = overrides->serial;
	for (u32 i = 0; !rc && i < PFX_ARRAYS; i++)
		rc = publish_array(&b->pfx[slot][i], slot, &source[i]);
	return rc;
}

/* A map of its own for a rule set. */
static int make_rules(const struct sl_rules *from, struct rules_map *ret)
{
	void *memory;
	int rc =
		filled_array("rules", sizeof(*from), 1, BPF_F_MMAPABLE, from, 1, &ret->fd, &memory);

	if (!rc)
		ret->memory = memory;
	return rc;
}

static void close_rules(struct rules_map *map)
{
	if (!map->memory)
		return;
	unmap_memory(map->memory, sizeof(*map->memory), 1);
	if (map->fd >= 0)
		close(map->fd);
	map->memory = NULL;
}

/* The places of rule sets in rules_of, and their pins: in force, and being applied. */
enum rules_index {
	RULES_NOW,
	RULES_BACK,
	RULES_COUNT,
};

static const char *const rules_pin[RULES_COUNT][2] = {
	[RULES_NOW] = { "rules_now", "rules_next" },
	[RULES_BACK] = { "rules_back", "rules_back_next" },
};

/*
 * Puts a map into rules_of. Before the swap it is pinned under the name for rules being applied,
 * and renamed after it: by the map's id dp_bpf_find_rules() finds which of the two pins is in
 * force, wherever a crash interrupted this. On failure the map is closed.
 */
static int publish_rules(struct dp_bpf *b, enum rules_index which, struct rules_map *map)
{
	char now[PATH_MAX], next[PATH_MAX];
	u32 index = which;

	pin_path(b->pin_dir, rules_pin[which][0], now);
	pin_path(b->pin_dir, rules_pin[which][1], next);
	unlink(next);
	if (bpf_obj_pin(map->fd, next) < 0 ||
	    bpf_map_update_elem(bpf_map__fd(b->skel->maps.rules_of), &index, &map->fd, BPF_ANY) <
		    0) {
		int rc = -errno;

		unlink(next);
		close_rules(map);
		return rc;
	}
	rename(next, now); /* dp_bpf_find_rules() copes with its failure */
	return 0;
}

/*
 * The map of the rule set before stays: it gets the next one. Nothing reads it meanwhile, as with
 * prefix slots. A new map of 800 KB would take half of the time of a change of one limit.
 */
static int put_rules(struct dp_bpf *b, const struct sl_image *image, u32 pfx_slot, u64 revert_at_ns)
{
	struct rules_map next = b->spare;
	int rc = 0;

	b->spare.memory = NULL;
	if (next.memory)
		memcpy(next.memory, image->rules, sizeof(*next.memory));
	else
		rc = make_rules(image->rules, &next);
	if (rc < 0)
		return rc;
	next.memory->pfx_slot = pfx_slot;
	next.memory->revert_at_ns = revert_at_ns;
	rc = publish_rules(b, RULES_NOW, &next);
	if (rc < 0)
		return rc;
	b->spare = (struct rules_map){ b->rules, b->rules_fd };
	if (b->spare.fd < 0) /* an earlier daemon's */
		close_rules(&b->spare);
	b->rules = next.memory;
	b->rules_fd = next.fd;
	return 0;
}

/* Keeps the fallback as it must be beside `next`: a copy, because the original may be in force. */
static int put_fallback(struct dp_bpf *b, const struct sl_rules *next)
{
	struct rules_map map;
	int rc = make_rules(b->fallback ? b->fallback : b->rules, &map);

	if (rc < 0)
		return rc;
	dp_fallback_rescale(&b->dp, map.memory, next);
	rc = publish_rules(b, RULES_BACK, &map);
	if (rc < 0)
		return rc;
	close(map.fd);
	unmap_memory(b->fallback, sizeof(*b->fallback), 1);
	b->fallback = map.memory;
	return 0;
}

/* It is not in force any more: revert_at_ns is 0. */
static void drop_fallback(struct dp_bpf *b)
{
	u32 index = RULES_BACK;
	char path[PATH_MAX];

	bpf_map_delete_elem(bpf_map__fd(b->skel->maps.rules_of), &index);
	unlink(pin_path(b->pin_dir, rules_pin[RULES_BACK][0], path));
	unlink(pin_path(b->pin_dir, rules_pin[RULES_BACK][1], path));
	unmap_memory(b->fallback, sizeof(*b->fallback), 1);
	b->fallback = NULL;
}

/*
 * The prefix maps of the rule set in force, and of the one to fall back to, are never written
 * to. The third slot is free: the kernel waited for every packet judged by an older rule set
 * before the update of rules_of that put this one in force returned.
 */
static int apply_image(struct dp_bpf *b, const struct sl_image *image, u64 revert_at_ns,
		       struct sl_err *err)
{
	u32 pfx_slot = b->rules ? b->rules->pfx_slot : 0;
	int rc;

	if (!b->rules || !b->pfx_digest_known || b->pfx_digest != image->pfx_digest) {
		pfx_slot = dp_free_pfx_slot(b->rules, b->fallback);
		rc = publish_prefixes(b, image, pfx_slot);
		if (rc < 0)
			return sl_err_set(err, -rc, "cannot load the rule set's prefixes: %s",
					  strerror(-rc));
	}
	rc = put_rules(b, image, pfx_slot, revert_at_ns);
	if (rc < 0)
		return sl_err_set(err, -rc, "cannot put the rule set in force: %s", strerror(-rc));
	b->pfx_digest = image->pfx_digest;
	b->pfx_digest_known = true;
	return 0;
}

int dp_bpf_apply(struct dp *dp, const struct sl_image *image, struct sl_err *err)
{
	struct dp_bpf *b = (struct dp_bpf *)dp;
	int rc;

	dp_epoch_begin(dp);
	rc = apply_image(b, image, 0, err);
	if (!rc)
		drop_fallback(b);
	dp_epoch_end(dp);
	return rc;
}

int dp_bpf_apply_until(struct dp *dp, const struct sl_image *image, u64 revert_at_ns,
		       struct sl_err *err)
{
	struct dp_bpf *b = (struct dp_bpf *)dp;
	bool was_there = b->fallback;
	int rc;

	if (!b->rules)
		return sl_err_set(err, EINVAL, "there are no rules to fall back to");
	rc = put_fallback(b, image->rules);
	if (rc < 0)
		return sl_err_set(err, -rc, "cannot keep the rule set to fall back to: %s",
				  strerror(-rc));
	dp_epoch_begin(dp);
	rc = apply_image(b, image, revert_at_ns, err);
	if (rc < 0 && !was_there)
		drop_fallback(b);
	dp_epoch_end(dp);
	return rc;
}

int dp_bpf_confirm(struct dp *dp, struct sl_err *err)
{
	struct dp_bpf *b = (struct dp_bpf *)dp;

	if (b->rules)
		__atomic_store_n(&b->rules->revert_at_ns, 0, __ATOMIC_RELEASE);
	drop_fallback(b);
	dp_epoch_raise(dp);
	return 0;
}

static struct sl_rules *find_rules(struct dp_bpf *b, enum rules_index which)
{
	struct sl_rules *found = NULL;
	u32 index = which, id;
	char path[PATH_MAX];
	struct bpf_map_info info;

	if (bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.rules_of), &index, &id) < 0)
		return NULL;
	for (size_t i = 0; i < 2 && !found; i++) {
		int fd = bpf_obj_get(pin_path(b->pin_dir, rules_pin[which][i], path));

		if (fd < 0)
			continue;
		if (map_info(fd, &info) == 0 && info.id == id)
			found = map_memory(fd, sizeof(*found), 1, PROT_READ | PROT_WRITE);
		close(fd);
	}
	return found;
}

/* A fallback that no rules refer to is left over from a daemon that died between two steps. */
void dp_bpf_find_rules(struct dp_bpf *b)
{
	b->rules = find_rules(b, RULES_NOW);
	b->rules_fd = -1;
	b->fallback = find_rules(b, RULES_BACK);
	if (b->fallback && (!b->rules || !b->rules->revert_at_ns))
		drop_fallback(b);
}

void dp_bpf_rules_free(struct dp_bpf *b)
{
	for (u32 slot = 0; slot < SL_PFX_SLOTS; slot++)
		for (u32 i = 0; i < PFX_ARRAYS; i++)
			unmap_memory(b->pfx[slot][i].memory, b->pfx[slot][i].value_size,
				     b->pfx[slot][i].entries);
	close_rules(&(struct rules_map){ b->rules, b->rules_fd });
	close_rules(&b->spare);
	unmap_memory(b->fallback, sizeof(*b->fallback), 1);
}
