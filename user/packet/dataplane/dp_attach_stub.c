/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_attach_stub.c - one interface: its programs, attaching and detaching the stub. dp_attach.c
 * keeps the record of it.
 */
#include <errno.h>
#include <linux/if_link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "lib/links.h"
#include "packet/dataplane/dp_attach_stub.h"
#include "bpf/dispatcher.skel.h"
#include "bpf/stub.skel.h"

/* ------------------------------------------------------------------ what is on an interface */

#define STUB_NAME "sluice_stub"

/* Whether the map is a program array, and empty: its last pin and descriptor are gone. */
static bool is_empty_array(u32 map_id)
{
	int fd = bpf_map_get_fd_by_id(map_id);
	struct bpf_map_info info;
	bool empty = fd >= 0 && map_info(fd, &info) == 0 && info.type == BPF_MAP_TYPE_PROG_ARRAY;
	u32 id;

	for (u32 slot = 0; empty && slot < info.max_entries; slot++)
		empty = bpf_map_lookup_elem(fd, &slot, &id) < 0;
	if (fd >= 0)
		close(fd);
	return empty;
}

/*
 * Which program it is, by its maps: ours uses `progs_id`; of another stub the array shows whether
 * it has a program. The tag is no sign: it changes with compiler and version.
 */
static void look_at(struct xdp_program *prog, u32 progs_id, struct occupant *occupant)
{
	const char *name = xdp_program__name(prog);
	u32 ids[64];
	struct bpf_prog_info info = { .nr_map_ids = 64, .map_ids = (uintptr_t)ids };
	u32 size = sizeof(info);
	bool orphan = false;

	if (!occupant->first_id) {
		occupant->first_id = xdp_program__id(prog);
		snprintf(occupant->name, sizeof(occupant->name), "%s", name ? name : "");
	}
	if (xdp_program__fd(prog) < 0 ||
	    bpf_obj_get_info_by_fd(xdp_program__fd(prog), &info, &size) < 0)
		return;
	for (u32 i = 0; i < info.nr_map_ids && i < 64; i++) {
		if (progs_id && ids[i] == progs_id)
			occupant->prog_id = info.id;
		orphan |= is_empty_array(ids[i]);
	}
	if (occupant->prog_id == info.id || strcmp(info.name, STUB_NAME) != 0)
		return;
	if (orphan)
		occupant->orphan_id = info.id;
	else
		occupant->others_stub = true;
}

int stub_find(int ifindex, u32 progs_id, struct occupant *ret, struct sl_err *err)
{
	struct xdp_multiprog *all = xdp_multiprog__get_from_ifindex(ifindex);
	struct xdp_program *prog = NULL;
	long rc = libxdp_get_error(all);

	memset(ret, 0, sizeof(*ret));
	if (rc == -ENOENT)
		return 0;
	if (rc < 0 || !all)
		return sl_err_set(err, rc < 0 ? -rc : EIO,
				  "cannot see which XDP programs are there: %s (%s)",
				  strerror(rc < 0 ? -rc : EIO), bpf_said());
	ret->any = true;
	ret->alone = xdp_multiprog__is_legacy(all);
	ret->mode = xdp_multiprog__attach_mode(all);
	if (ret->alone) {
		prog = xdp_multiprog__main_prog(all);
		if (prog)
			look_at(prog, progs_id, ret);
	} else {
		while ((prog = xdp_multiprog__next_prog(prog, all))) {
			look_at(prog, progs_id, ret);
			ret->others++;
		}
		ret->others -= ret->prog_id != 0;
	}
	xdp_multiprog__close(all);
	return 0;
}

/* ------------------------------------------------------------------ the stub */

/*
 * libxdp 1.3 removes the flag for fragments from programs behind its dispatcher, and a program
 * array holds programs with the flag or without, not both. In libbpf the handler of a section
 * decides last how its programs are loaded: this is ours.
 */
#define STUB_SECTION "sluice/stub"

static int set_frags_flag(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long cookie)
{
	opts->prog_flags |= BPF_F_XDP_HAS_FRAGS;
	return 0;
}

/* Registered once: libbpf before 1.3 corrupts its memory when the last one is unregistered. */
static int own_stub_section(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .prog_prepare_load_fn = set_frags_flag);
	static int handler;

	if (!handler)
		handler = libbpf_register_prog_handler(STUB_SECTION, BPF_PROG_TYPE_XDP, 0, &opts);
	return handler < 0 ? handler : 0;
}

static int load_and_attach(int progs_fd, int ifindex, u32 slot, enum xdp_attach_mode mode)
{
	struct xdp_program *prog;
	struct stub_bpf *skel;
	int rc = own_stub_section();

	if (rc < 0)
		return rc;
	skel = stub_bpf__open();
	rc = skel ? bpf_map__reuse_fd(skel->maps.progs, progs_fd) : -errno;
	if (rc < 0)
		goto out;
	skel->rodata->slot = slot;
	bpf_program__set_flags(skel->progs.sluice_stub, BPF_F_XDP_HAS_FRAGS);
	prog = xdp_program__from_bpf_obj(skel->obj, STUB_SECTION);
	rc = libxdp_get_error(prog);
	if (rc < 0)
		goto out;
	rc = xdp_program__attach(prog, ifindex, mode, 0); /* this also loads it */
	xdp_program__close(prog);
out:
	stub_bpf__destroy(skel);
	return rc;
}

/*
 * A directory with our dispatcher under the name that libxdp opens; removed by the next function.
 */
static int dispatcher_dir_make(char *dir)
{
	char path[64];
	size_t size;
	const void *object = dispatcher_bpf__elf_bytes(&size);
	FILE *file;
	int rc = 0;

	if (!mkdtemp(dir))
		return -errno;
	snprintf(path, sizeof(path), "%s/xdp-dispatcher.o", dir);
	file = fopen(path, "we");
	if (!file)
		return -errno;
	if (fwrite(object, size, 1, file) != 1)
		rc = -EIO;
	if (fclose(file) != 0)
		rc = -errno;
	return rc;
}

static void dispatcher_dir_remove(const char *dir)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/xdp-dispatcher.o", dir);
	unlink(path);
	rmdir(dir);
}

/*
 * Tries libxdp's own dispatcher; if the verifier refuses a stub that tail-calls behind it (EINVAL),
 * ours; and if there is no other program, no dispatcher at all.
 */
static int attach_somehow(int progs_fd, int ifindex, u32 slot, enum xdp_attach_mode mode,
			  bool alone)
{
	char dir[] = "/run/sluice-XXXXXX";
	int rc;

	bpf_listen();
	rc = load_and_attach(progs_fd, ifindex, slot, mode);
	if (rc != -EINVAL)
		return rc;
	bpf_listen();
	rc = dispatcher_dir_make(dir);
	if (rc == 0) {
		setenv("LIBXDP_OBJECT_PATH", dir, 1);
		rc = load_and_attach(progs_fd, ifindex, slot, mode);
		unsetenv("LIBXDP_OBJECT_PATH");
	}
	dispatcher_dir_remove(dir);
	if (rc == 0 || !alone)
		return rc;
	bpf_listen();
	setenv("LIBXDP_SKIP_DISPATCHER", "1", 1);
	rc = load_and_attach(progs_fd, ifindex, slot, mode);
	unsetenv("LIBXDP_SKIP_DISPATCHER");
	return rc;
}

/*
 * Takes the program off, or puts it on, without libxdp: a dispatcher stays as it is, with the
 * programs behind it. Fails if another program was put there meanwhile.
 */
static int set_program(const struct lifted_one *one, bool off)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, opts, .old_prog_fd = one->prog_fd);

	return off ? bpf_xdp_detach((int)one->ifindex, one->flags | XDP_FLAGS_REPLACE, &opts)
		   : bpf_xdp_attach((int)one->ifindex, one->prog_fd,
				    one->flags | XDP_FLAGS_UPDATE_IF_NOEXIST, NULL);
}

/* Names the device whose program keeps Linux from changing that of `ifname`. False: none is
 * seen. */
static bool upper_in_the_way(u32 ifindex, const char *what, const char *ifname, struct sl_err *err)
{
	const struct link *lower, *upper = NULL;
	struct occupant occupant;
	struct links links;

	if (links_get(&links) < 0)
		return false;
	lower = links_find(&links, ifindex);
	for (size_t i = 0; lower && !upper && i < links.count; i++)
		if (links.all[i].xdp_prog && link_stands_on(&links.all[i], lower))
			upper = &links.all[i];
	if (upper && stub_find(upper->ifindex, 0, &occupant, NULL) < 0)
		occupant.name[0] = '\0';
	if (upper)
		sl_err_set(
			err, EBUSY,
			"cannot %s %s: %s above it has an XDP program ('%s', id %u), and Linux changes a device's program only while those above it have none: take it off first (ip link set dev %s xdp off)",
			what, ifname, upper->name, occupant.name, upper->xdp_prog, upper->name);
	links_free(&links);
	return upper != NULL;
}

/* Modes to try, in this order; the number of them. */
static int modes_to_try(enum attach_mode wanted, const struct occupant *now,
			enum xdp_attach_mode mode[2])
{
	int count = 0;

	if (now->any && wanted == MODE_AUTO) { /* joins others: their mode */
		mode[0] = now->mode;
		return 1;
	}
	if (wanted == MODE_AUTO || wanted == MODE_NATIVE)
		mode[count++] = XDP_MODE_NATIVE;
	if (wanted == MODE_AUTO || wanted == MODE_GENERIC)
		mode[count++] = XDP_MODE_SKB;
	return count;
}

int stub_put(int progs_fd, const char *ifname, int ifindex, enum attach_mode wanted, u32 slot,
	     const struct occupant *now, struct sl_err *err)
{
	enum xdp_attach_mode mode[2];
	int count = modes_to_try(wanted, now, mode);
	int rc = -EOPNOTSUPP;

	if (now->any && now->alone && now->others_stub)
		return sl_err_set(
			err, EBUSY,
			"%s has the stub of another sluiced, with another pin_dir: detach it there first (sluiced -c ITS-FILE --purge)",
			ifname);
	if (now->any && now->alone)
		return sl_err_set(
			err, EBUSY,
			"%s has an XDP program already ('%s'), attached without libxdp's dispatcher, so ours cannot join it: take it off first, or attach it through libxdp",
			ifname, now->name);
	for (int i = 0; i < count; i++) {
		rc = attach_somehow(progs_fd, ifindex, slot, mode[i], !now->any);
		if (rc == 0)
			return 0;
	}
	if (rc == -EEXIST)
		rc = -EBUSY;
	if (rc == -EBUSY && upper_in_the_way(ifindex, "attach to", ifname, err))
		return rc;
	if (wanted == MODE_NATIVE && rc == -EOPNOTSUPP)
		return sl_err_set(
			err, EOPNOTSUPP,
			"cannot attach to %s in native mode: %s (mode generic works with every driver, auto takes the one that works)",
			ifname, kernel_said() ? kernel_said() : "its driver does not support it");
	return sl_err_set(err, -rc, "cannot attach to %s: %s%s%s", ifname, strerror(-rc),
			  *bpf_said() ? ": " : "", bpf_said());
}

int stub_take_off(const char *ifname, int ifindex, u32 prog_id, const struct occupant *now,
		  struct sl_err *err)
{
	struct xdp_program *prog = xdp_program__from_id(prog_id);
	int rc = libxdp_get_error(prog);

	if (rc == 0) {
		rc = xdp_program__detach(prog, ifindex, now->mode, 0);
		xdp_program__close(prog);
	}
	if (rc == -EEXIST)
		rc = -EBUSY;
	if (rc == -EBUSY && upper_in_the_way(ifindex, "detach from", ifname, err))
		return rc;
	if (rc < 0)
		return sl_err_set(err, -rc, "cannot detach from %s: %s: %s", ifname, strerror(-rc),
				  bpf_said());
	return 0;
}

/* ------------------------------------------------------------------ devices above */

static int lift_one(const struct link *upper, u32 progs_id, struct lifted *lifted,
		    struct sl_err *err)
{
	struct lifted_one *one = &lifted->one[lifted->count];
	struct occupant occupant;
	int rc = stub_find(upper->ifindex, progs_id, &occupant, err);

	if (rc < 0 || (!occupant.prog_id && !occupant.orphan_id))
		return rc; /* of others: it stays, and may be in the way */
	if (lifted->count == SL_IFACES_MAX)
		return sl_err_set(err, E2BIG, "more than %d devices are above", SL_IFACES_MAX);
	one->ifindex = upper->ifindex;
	one->flags = occupant.mode == XDP_MODE_SKB ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
	one->prog_fd = bpf_prog_get_fd_by_id(upper->xdp_prog);
	if (one->prog_fd < 0)
		return sl_err_set(err, errno, "cannot open the XDP program of %s: %s", upper->name,
				  strerror(errno));
	rc = set_program(one, true);
	if (rc < 0) {
		close(one->prog_fd);
		return upper_in_the_way(upper->ifindex, "detach from", upper->name, err)
			       ? rc
			       : sl_err_set(err, -rc, "cannot detach from %s: %s", upper->name,
					    strerror(-rc));
	}
	lifted->count++;
	return 0;
}

static int lift_above(const struct links *links, u32 ifindex, u32 progs_id, struct lifted *lifted,
		      struct sl_err *err)
{
	const struct link *lower = links_find(links, ifindex);
	int rc = 0;

	for (size_t i = 0; lower && rc == 0 && i < links->count; i++) {
		const struct link *upper = &links->all[i];
		bool done = false;

		for (u32 k = 0; k < lifted->count; k++)
			done |= lifted->one[k].ifindex == upper->ifindex;
		if (done || !upper->xdp_prog || !link_stands_on(upper, lower))
			continue;
		rc = lift_above(links, upper->ifindex, progs_id, lifted, err);
		if (rc == 0)
			rc = lift_one(upper, progs_id, lifted, err);
	}
	return rc;
}

int lifted_take_off(u32 ifindex, u32 progs_id, struct lifted *ret, struct sl_err *err)
{
	struct links links;
	int rc = links_get(&links);

	ret->count = 0;
	if (rc < 0)
		return sl_err_set(err, -rc, "cannot see which devices are above: %s",
				  strerror(-rc));
	rc = lift_above(&links, ifindex, progs_id, ret, err);
	links_free(&links);
	return rc;
}

void lifted_restore(struct lifted *lifted)
{
	while (lifted->count) {
		const struct lifted_one *one = &lifted->one[--lifted->count];

		set_program(one, false);
		close(one->prog_fd);
	}
}
