/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_bpf_rules.c - an image into the kernel: fresh inner maps, one swap of one pointer.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "dataplane/dp_bpf.h"
#include "bpf/sluice.skel.h"	/* uses types of ours */

/*
 * A fresh array of the kind that bpf/maps.h has inside an outer map, its first `count`
 * elements filled.
 */
static int filled_array(const char *name, size_t value_size, u32 entries, u32 flags,
			const void *from, u32 count, int *ret_fd)
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
	unmap_memory(to, value_size, entries);
	*ret_fd = fd;
	return 0;
}

/* Puts a fresh array into an outer map. */
static int publish_array(const struct bpf_map *outer, u32 index, const char *name,
			 size_t value_size, u32 entries, u32 flags, const void *from, u32 count)
{
	int fd, rc;

	rc = filled_array(name, value_size, entries, flags, from, count, &fd);
	if (rc < 0)
		return rc;
	rc = bpf_map_update_elem(bpf_map__fd(outer), &index, &fd, BPF_ANY) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

/* Fills the prefix maps of a slot that no packet is judged by. */
static int publish_prefixes(struct dp_bpf *b, const struct sl_image *image, u32 slot)
{
	u32 buckets = image->rules->pfx_buckets ? image->rules->pfx_buckets : 1;
	int rc;

	rc = publish_array(b->skel->maps.v4_top_of, slot, "v4_top", sizeof(struct sl_v4_top), 1,
			   BPF_F_MMAPABLE, image->v4_top, 1);
	if (rc < 0)
		return rc;
	rc = publish_array(b->skel->maps.v4_line_of, slot, "v4_line", sizeof(struct sl_v4_line),
			   image->v4_lines, BPF_F_INNER_MAP | BPF_F_MMAPABLE, image->v4_line,
			   image->v4_lines);
	if (rc < 0)
		return rc;
	rc = publish_array(b->skel->maps.pfx_of, slot, "pfx", sizeof(struct sl_pfx_bucket),
			   buckets, BPF_F_INNER_MAP | BPF_F_MMAPABLE, image->bucket, buckets);
	if (rc < 0)
		return rc;
	rc = publish_array(b->skel->maps.overrides_of, slot, "overrides",
			   sizeof(struct sl_override_bucket), image->overrides->buckets,
			   BPF_F_INNER_MAP | BPF_F_MMAPABLE, image->overrides->bucket,
			   image->overrides->buckets);
	if (rc < 0)
		return rc;
	return publish_array(b->skel->maps.pclass_of, slot, "pclass", sizeof(struct sl_pclass),
			     SL_PCLASS_MAX + 1, BPF_F_MMAPABLE, image->pclass,
			     image->pclass_count);
}

static int make_rules(const struct sl_rules *from, u32 pfx_slot, int *ret_fd,
		      struct sl_rules **ret)
{
	struct sl_rules *rules;
	int fd, rc;

	rc = filled_array("rules", sizeof(*from), 1, BPF_F_MMAPABLE, from, 1, &fd);
	if (rc < 0)
		return rc;
	rules = map_memory(fd, sizeof(*rules), 1, PROT_READ | PROT_WRITE);
	if (!rules) {
		rc = -errno;
		close(fd);
		return rc;
	}
	rules->pfx_slot = pfx_slot;
	*ret_fd = fd;
	*ret = rules;
	return 0;
}

/*
 * Puts the rule set itself in force. It is pinned as rules_next before the swap and renamed
 * to rules_now after it: dp_bpf_find_rules() tells by the map's id which of the two is in force,
 * wherever this was cut short.
 */
static int publish_rules(struct dp_bpf *b, const struct sl_image *image, u32 pfx_slot)
{
	char now[PATH_MAX], next[PATH_MAX];
	struct sl_rules *rules = NULL;
	u32 zero = 0;
	int fd, rc;

	pin_path(b->pin_dir, "rules_now", now);
	pin_path(b->pin_dir, "rules_next", next);
	rc = make_rules(image->rules, pfx_slot, &fd, &rules);
	if (rc < 0)
		return rc;
	unlink(next);
	if (bpf_obj_pin(fd, next) < 0 ||
	    bpf_map_update_elem(bpf_map__fd(b->skel->maps.rules_of), &zero, &fd, BPF_ANY) < 0) {
		rc = -errno;
		unlink(next);
		unmap_memory(rules, sizeof(*rules), 1);
	} else {
		rename(next, now);	/* if it fails, dp_bpf_find_rules() will not mind */
		unmap_memory(b->rules, sizeof(*b->rules), 1);
		b->rules = rules;
	}
	close(fd);
	return rc;
}

/*
 * The prefix maps of the rule set in force are never written to. The other slot's are free:
 * the kernel waited for every packet judged by an older rule set before the update of
 * rules_of that put this one in force returned.
 */
int dp_bpf_apply(struct dp *dp, const struct sl_image *image, struct sl_err *err)
{
	struct dp_bpf *b = (struct dp_bpf *)dp;
	u32 pfx_slot = b->rules ? b->rules->pfx_slot : 0;
	int rc;

	if (!b->rules || !b->pfx_digest_known || b->pfx_digest != image->pfx_digest) {
		if (b->rules)
			pfx_slot = !pfx_slot;
		rc = publish_prefixes(b, image, pfx_slot);
		if (rc < 0)
			return sl_err_set(err, -rc, "cannot load the rule set's prefixes: %s",
					  strerror(-rc));
	}
	rc = publish_rules(b, image, pfx_slot);
	if (rc < 0)
		return sl_err_set(err, -rc, "cannot put the rule set in force: %s", strerror(-rc));
	b->pfx_digest = image->pfx_digest;
	b->pfx_digest_known = true;
	return 0;
}

void dp_bpf_find_rules(struct dp_bpf *b)
{
	static const char *const names[] = { "rules_now", "rules_next" };
	char path[PATH_MAX];
	struct bpf_map_info info;
	u32 zero = 0, id;

	if (bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.rules_of), &zero, &id) < 0)
		return;
	for (size_t i = 0; i < 2 && !b->rules; i++) {
		int fd = bpf_obj_get(pin_path(b->pin_dir, names[i], path));

		if (fd < 0)
			continue;
		if (map_info(fd, &info) == 0 && info.id == id)
			b->rules = map_memory(fd, sizeof(*b->rules), 1, PROT_READ | PROT_WRITE);
		close(fd);
	}
}
