/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_attach_mark.c - the mark reader of an interface: bpf/mark.bpf.c, at ingress before all that
 * looks at marks.
 *
 * From Linux 6.6 on it is a tcx link, pinned as pin_dir/mark_reader_SLOT: it needs no qdisc, runs
 * before every tc filter, and ends only with its pin. Before 6.6 it is a tc filter, which needs the
 * clsact qdisc; one made here is removed with the filter, unless others have filters there by now.
 * While it exists, nobody can add an "ingress" qdisc. So the reader is attached only while
 * something marks packets.
 *
 * All of it acts in the current network namespace, and needs CAP_BPF and CAP_NET_ADMIN.
 */
#include <errno.h>
#include <linux/pkt_sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "lib/rtnetlink.h"
#include "packet/dataplane/dp_attach_mark.h"
#include "bpf/mark.skel.h"

/* Of newer headers than Debian 12's: BPF_TCX_INGRESS and BPF_LINK_TYPE_TCX; and BPF_F_BEFORE, here
 * before all. */
#define TCX_ATTACH_INGRESS 46
#define TCX_LINK_TYPE 11
#define TCX_FIRST (1U << 3)

/* The tc filter's priority: first, so that every filter after it sees the mark. */
#define MARK_HANDLE 0x736c
#define MARK_PRIORITY_MAX 8 /* if that is of another kind: the next free one */

#define PIN_PREFIX "mark_reader_"

bool is_mark_reader_pin(const char *name)
{
	return strncmp(name, PIN_PREFIX, strlen(PIN_PREFIX)) == 0;
}

static const char *link_path(const char *pin_dir, u32 slot, char *buf)
{
	char name[32];

	snprintf(name, sizeof(name), PIN_PREFIX "%u", slot);
	return pin_path(pin_dir, name, buf);
}

/* ------------------------------------------------------------------ tcx */

/* Whether the pinned link is attached to the interface. A detached one, or of a deleted interface,
 * has none. */
static bool link_is_there(const char *pin_dir, u32 slot, u32 ifindex)
{
	char path[PATH_MAX];
	struct bpf_link_info info = { 0 };
	u32 size = sizeof(info);
	int fd = bpf_obj_get(link_path(pin_dir, slot, path));
	bool there;

	if (fd < 0)
		return false;
	/* tcx.ifindex is where xdp.ifindex is. */
	there = bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && info.type == TCX_LINK_TYPE &&
		info.xdp.ifindex == ifindex;
	close(fd);
	return there;
}

static int link_put(const char *pin_dir, u32 slot, u32 ifindex, int prog_fd)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = TCX_FIRST);
	char path[PATH_MAX];
	int fd = bpf_link_create(prog_fd, ifindex, TCX_ATTACH_INGRESS, &opts);
	int rc = 0;

	if (fd < 0)
		return -errno;
	unlink(link_path(pin_dir, slot, path));
	if (bpf_obj_pin(fd, path) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* The kernel would detach it a moment after the pin is gone. */
void mark_link_take_off(const char *pin_dir, u32 slot)
{
	char path[PATH_MAX];
	int fd = bpf_obj_get(link_path(pin_dir, slot, path));

	if (fd < 0)
		return;
	bpf_link_detach(fd);
	close(fd);
	unlink(path);
}

/* ------------------------------------------------------------------ tc, before Linux 6.6 */

static int note_filter(const struct nlmsghdr *message, void *arg)
{
	*(bool *)arg = true;
	return 0;
}

/* Whether any filter is attached to this side of clsact; also if the kernel does not reply. */
static bool has_filters(u32 ifindex, u32 minor)
{
	struct {
		struct nlmsghdr header;
		struct tcmsg tc;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_GETTFILTER,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.tc = { .tcm_ifindex = (int)ifindex, .tcm_parent = TC_H_MAKE(TC_H_CLSACT, minor) },
	};
	bool found = false;

	return rtnetlink_request(&request.header, note_filter, &found) < 0 || found;
}

static bool filter_is_there(const struct sl_attached *record)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = record->ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = MARK_HANDLE, .priority = record->mark_priority);

	return record->mark_priority && bpf_tc_query(&hook, &opts) == 0;
}

static void filter_detach(int ifindex, u32 priority)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = MARK_HANDLE, .priority = priority);

	bpf_tc_detach(&hook, &opts);
}

void mark_filter_take_off(const struct sl_attached *record)
{
	LIBBPF_OPTS(bpf_tc_hook, both, .ifindex = record->ifindex,
		    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);

	if (record->mark_priority)
		filter_detach(record->ifindex, record->mark_priority);
	if (record->made_clsact && !has_filters(record->ifindex, TC_H_MIN_INGRESS) &&
	    !has_filters(record->ifindex, TC_H_MIN_EGRESS))
		bpf_tc_hook_destroy(&both);
}

static int filter_put(struct sl_attached *record, int prog_fd)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = record->ifindex, .attach_point = BPF_TC_INGRESS);
	u32 first = record->mark_priority ? record->mark_priority : 1;
	int rc = bpf_tc_hook_create(&hook);

	if (rc == 0)
		record->made_clsact = 1;
	else if (rc != -EEXIST)
		return rc;
	for (u32 p = first; p < first + MARK_PRIORITY_MAX; p++) {
		LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = prog_fd, .handle = MARK_HANDLE,
			    .priority = p, .flags = BPF_TC_F_REPLACE);

		rc = bpf_tc_attach(&hook, &opts);
		if (rc == 0) {
			record->mark_priority = p;
			return 0;
		}
	}
	mark_filter_take_off(record);
	return rc;
}

void mark_filter_find_and_take_off(int ifindex)
{
	for (u32 p = 1; p <= MARK_PRIORITY_MAX; p++) {
		LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
		LIBBPF_OPTS(bpf_tc_opts, opts, .handle = MARK_HANDLE, .priority = p);
		struct bpf_prog_info info = { 0 };
		u32 size = sizeof(info);
		int fd = bpf_tc_query(&hook, &opts) == 0 ? bpf_prog_get_fd_by_id(opts.prog_id) : -1;

		if (fd < 0)
			continue;
		if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0 &&
		    !strcmp(info.name, "sluice_mark"))
			filter_detach(ifindex, p);
		close(fd);
	}
}

/* ------------------------------------------------------------------ either */

static bool read_record(const struct dp_bpf *b, u32 slot, struct sl_attached *ret)
{
	return bpf_map_lookup_elem(b->attached_fd, &slot, ret) == 0 && ret->ifname[0];
}

bool dp_mark_reader_is_there(struct dp *dp, u32 slot)
{
	const struct dp_bpf *b = (struct dp_bpf *)dp;
	struct sl_attached record;

	return read_record(b, slot, &record) &&
	       (link_is_there(b->pin_dir, slot, record.ifindex) || filter_is_there(&record));
}

int dp_mark_reader_put(struct dp *dp, u32 slot, struct sl_err *err)
{
	const struct dp_bpf *b = (struct dp_bpf *)dp;
	struct sl_attached record;
	struct mark_bpf *skel;
	int rc;

	if (!read_record(b, slot, &record))
		return sl_err_set(err, ENOENT, "interface slot %u has no interface", slot);
	bpf_listen();
	skel = mark_bpf__open_and_load();
	rc = skel ? link_put(b->pin_dir, slot, record.ifindex,
			     bpf_program__fd(skel->progs.sluice_mark))
		  : -errno;
	if (rc == -EINVAL) /* a kernel without tcx */
		rc = filter_put(&record, bpf_program__fd(skel->progs.sluice_mark));
	mark_bpf__destroy(skel);
	if (rc == 0 && bpf_map_update_elem(b->attached_fd, &slot, &record, BPF_ANY) < 0)
		rc = -errno;
	if (rc < 0)
		return sl_err_set(
			err, -rc,
			"%s: the program that sets marks cannot be attached at tc ingress: %s%s%s",
			record.ifname, strerror(-rc), *bpf_said() ? ": " : "", bpf_said());
	return 0;
}

void dp_mark_reader_take_off(struct dp *dp, u32 slot)
{
	const struct dp_bpf *b = (struct dp_bpf *)dp;
	struct sl_attached record;

	if (!read_record(b, slot, &record))
		return;
	mark_link_take_off(b->pin_dir, slot);
	mark_filter_take_off(&record);
	record.mark_priority = record.made_clsact = 0;
	bpf_map_update_elem(b->attached_fd, &slot, &record, BPF_ANY);
}
