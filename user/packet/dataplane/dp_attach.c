/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_attach.c - attaching to interfaces: the stub, and with it the card's VLAN tag stripping;
 * detaching also the mark reader (dp_attach_mark.c).
 *
 * The state is what the kernel reports for the interface. A program there is a stub of ours exactly
 * if it uses our pinned `progs`; the pinned `attached` only records to which slot it jumps and what
 * detaching must restore. Nothing is kept in this process, so a daemon and its privileged helper
 * can each run any of this.
 */
#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "lib/links.h"
#include "packet/dataplane/dp_attach.h"
#include "packet/dataplane/dp_attach_mark.h"
#include "packet/dataplane/dp_attach_stub.h"
#include "packet/dataplane/vlan_offload.h"

/*
 * How long a program array may keep its programs after its last pin and descriptor are gone: the
 * kernel empties it in the background.
 */
#define ORPHAN_WAIT_MS 2000
#define ORPHAN_STEP_MS 20

struct pins {
	const char *dir;
	int progs_fd;
	int attached_fd;
	int stages_fd;
	u32 progs_id;
};

/* ------------------------------------------------------------------ the pinned records */

static void pins_close(struct pins *pins)
{
	if (pins->progs_fd >= 0)
		close(pins->progs_fd);
	if (pins->attached_fd >= 0)
		close(pins->attached_fd);
	if (pins->stages_fd >= 0)
		close(pins->stages_fd);
}

static int pins_open(const char *dir, struct pins *ret, struct sl_err *err)
{
	struct pins pins = { .dir = dir, .progs_fd = -1, .attached_fd = -1, .stages_fd = -1 };
	struct bpf_map_info info;
	int rc;

	rc = pin_dir_check(dir, err);
	if (rc == 0)
		rc = own_map_open(dir, OWN_PROGS, &pins.progs_fd, err);
	if (rc == 0)
		rc = own_map_open(dir, OWN_ATTACHED, &pins.attached_fd, err);
	if (rc == 0)
		rc = own_map_open(dir, OWN_STAGES, &pins.stages_fd, err);
	if (rc == 0 && map_info(pins.progs_fd, &info) < 0)
		rc = sl_err_set(err, errno, "cannot look at %s/progs: %s", dir, strerror(errno));
	if (rc < 0) {
		pins_close(&pins);
		return rc;
	}
	pins.progs_id = info.id;
	*ret = pins;
	return 0;
}

static bool record_read(int attached_fd, u32 slot, struct sl_attached *ret)
{
	return bpf_map_lookup_elem(attached_fd, &slot, ret) == 0 && ret->ifname[0];
}

static int record_write(int attached_fd, u32 slot, const struct sl_attached *record,
			struct sl_err *err)
{
	if (bpf_map_update_elem(attached_fd, &slot, record, BPF_ANY) < 0)
		return sl_err_set(err, errno, "cannot record what is attached: %s",
				  strerror(errno));
	return 0;
}

/* ------------------------------------------------------------------ one interface's programs */

/*
 * Takes the stub and the mark reader of a record off, and restores the interface's settings. By
 * number: the interface may have another name now. Not if the number is another interface's by now.
 */
static int take_off_recorded(const struct pins *pins, const struct sl_attached *record,
			     struct sl_err *err)
{
	struct lifted lifted = { .count = 0 };
	struct occupant occupant;
	char name[IF_NAMESIZE];
	int rc;

	if (!if_indextoname(record->ifindex, name))
		return 0;
	rc = stub_find(record->ifindex, pins->progs_id, &occupant, err);
	if (rc < 0)
		return rc;
	if (occupant.prog_id && record->prog_id && occupant.prog_id != record->prog_id)
		return 0;
	if (occupant.prog_id) {
		rc = lifted_take_off(record->ifindex, pins->progs_id, &lifted, err);
		if (rc == 0)
			rc = stub_take_off(name, record->ifindex, occupant.prog_id, &occupant, err);
		lifted_restore(&lifted);
		if (rc < 0)
			return rc;
	}
	mark_filter_take_off(record);
	if (occupant.prog_id || !strcmp(name, record->ifname))
		vlan_offload_set(name, record->vlan_were_on, record->vlan_were_on);
	return 0;
}

/* Empties the slot: a stub that is left, as on an interface in another namespace, jumps nowhere. */
static void forget(const struct pins *pins, u32 slot)
{
	static const struct sl_attached none;

	mark_link_take_off(pins->dir, slot);
	bpf_map_delete_elem(pins->progs_fd, &slot);
	for (u32 i = 0; i < SL_STAGE_COUNT * 2; i++) {
		u32 at = sl_stage_at(i / 2, slot, i % 2);

		bpf_map_delete_elem(pins->stages_fd, &at);
	}
	bpf_map_update_elem(pins->attached_fd, &slot, &none, BPF_ANY);
}

/* ------------------------------------------------------------------ attach */

static enum attach_mode mode_of(const struct occupant *occupant)
{
	return occupant->mode == XDP_MODE_SKB ? MODE_GENERIC : MODE_NATIVE;
}

static void describe(const struct sl_attached *record, u32 slot, struct dp_attachment *ret)
{
	struct link link;

	memset(ret, 0, sizeof(*ret));
	ret->prog_id = record->prog_id;
	if (link_get(record->ifindex, false, &link) == 0)
		ret->link_prog_id = link.xdp_prog;
	memcpy(ret->ifname, record->ifname, sizeof(ret->ifname));
	ret->ifindex = record->ifindex;
	ret->slot = slot;
	ret->mode = record->mode;
	ret->dispatcher = record->dispatcher;
	ret->others = record->others;
}

/*
 * The record to start from: of this same interface, also if it was renamed, or a new one. Refuses a
 * name that has another slot, and a slot that another name has.
 */
static int start_record(const struct pins *pins, const char *ifname, u32 slot,
			struct sl_attached *ret, struct sl_err *err)
{
	u32 ifindex = if_nametoindex(ifname);
	struct sl_attached record;
	char now[IF_NAMESIZE];
	bool known;
	int rc = 0;

	for (u32 s = 0; s < SL_IFACES_MAX; s++) {
		bool same_name;

		if (!record_read(pins->attached_fd, s, &record))
			continue;
		same_name = !strcmp(record.ifname, ifname);
		if (same_name && s != slot)
			return sl_err_set(err, EBUSY, "%s has interface slot %u already, not %u",
					  ifname, s, slot);
		if (!same_name && s == slot)
			return sl_err_set(err, EBUSY, "interface slot %u is that of %s, not of %s",
					  slot, record.ifname, ifname);
	}
	known = record_read(pins->attached_fd, slot, &record);
	if (!ifindex && known && if_indextoname(record.ifindex, now))
		ifindex = record.ifindex;
	if (!ifindex)
		return sl_err_set(err, ENODEV, "there is no interface %s", ifname);
	if (known && record.ifindex == ifindex) {
		*ret = record;
		return 0;
	}
	/* Another interface has the name now. */
	if (known)
		rc = take_off_recorded(pins, &record, err);
	memset(ret, 0, sizeof(*ret));
	snprintf(ret->ifname, sizeof(ret->ifname), "%s", ifname);
	ret->ifindex = ifindex;
	return rc;
}

/*
 * The program on the interface. A stub of another array is read again until its owner is certain.
 */
static int find_settled(u32 ifindex, u32 progs_id, struct occupant *ret, struct sl_err *err)
{
	int rc = stub_find(ifindex, progs_id, ret, err);

	for (int ms = 0; rc == 0 && ret->others_stub && ms < ORPHAN_WAIT_MS; ms += ORPHAN_STEP_MS) {
		usleep(ORPHAN_STEP_MS * 1000);
		rc = stub_find(ifindex, progs_id, ret, err);
	}
	return rc;
}

/* Makes room for the stub: detaches programs that must not, or need not, stay. */
static int clear_occupant(const struct pins *pins, const struct sl_attached *record, u32 slot,
			  enum attach_how how, struct occupant *occupant, struct sl_err *err)
{
	struct sl_attached other;
	int rc = 0;

	/* A stub of ours from when the interface had another name, and slot. */
	for (u32 s = 0; rc == 0 && occupant->prog_id && s < SL_IFACES_MAX; s++) {
		if (s == slot || !record_read(pins->attached_fd, s, &other) ||
		    other.prog_id != occupant->prog_id)
			continue;
		rc = detach_stub(pins->dir, other.ifname, err);
		if (rc == 0)
			rc = stub_find(record->ifindex, pins->progs_id, occupant, err);
	}
	if (rc == 0 && occupant->orphan_id && how != ATTACH_LOOK) {
		rc = stub_take_off(record->ifname, record->ifindex, occupant->orphan_id, occupant,
				   err);
		if (rc == 0)
			rc = stub_find(record->ifindex, pins->progs_id, occupant, err);
	}
	if (rc == 0 && how == ATTACH_REPLACE && !occupant->prog_id && occupant->any &&
	    occupant->alone) {
		rc = stub_take_off(record->ifname, record->ifindex, occupant->first_id, occupant,
				   err);
		if (rc == 0)
			rc = stub_find(record->ifindex, pins->progs_id, occupant, err);
	}
	return rc;
}

static int not_attached(const char *ifname, const struct occupant *now, struct sl_err *err)
{
	if (now->any)
		return sl_err_set(err, EBUSY, "%s: its XDP program was replaced by '%s'", ifname,
				  now->name);
	return sl_err_set(err, ENOENT, "%s: its XDP program was taken off", ifname);
}

/*
 * Makes frames come with their VLAN tags, and records what it switched off. A card that refuses is
 * no error: vlan_offload_get() sees it again.
 */
static void show_vlan_tags(struct sl_attached *record, const char *name)
{
	u32 on;

	if (vlan_offload_get(name, &on) == 0)
		record->vlan_were_on |= on;
}

/* Attaches the stub where it is missing: the interface's slot has its program by now. */
static int put_stub(const struct pins *pins, struct sl_attached *record, enum attach_mode mode,
		    u32 slot, struct occupant *occupant, struct sl_err *err)
{
	int rc = stub_put(pins->progs_fd, record->ifname, record->ifindex, mode, slot, occupant,
			  err);

	if (rc == 0)
		rc = stub_find(record->ifindex, pins->progs_id, occupant, err);
	if (rc == 0 && !occupant->prog_id)
		rc = sl_err_set(err, EAGAIN, "%s: the program was taken off again by someone else",
				record->ifname);
	return rc;
}

static int attach_recorded(const struct pins *pins, struct sl_attached *record,
			   enum attach_mode mode, enum attach_how how, u32 slot,
			   struct lifted *lifted, struct sl_err *err)
{
	const struct sl_attached before = *record;
	struct occupant occupant;
	char name[IF_NAMESIZE];
	int rc;

	if (!if_indextoname(record->ifindex, name))
		return sl_err_set(err, ENODEV, "there is no interface %s", record->ifname);
	rc = find_settled(record->ifindex, pins->progs_id, &occupant, err);
	if (rc == 0 && how != ATTACH_LOOK &&
	    (!occupant.prog_id || occupant.prog_id != record->prog_id))
		rc = lifted_take_off(record->ifindex, pins->progs_id, lifted, err);
	if (rc == 0)
		rc = clear_occupant(pins, record, slot, how, &occupant, err);
	if (rc == 0 && how == ATTACH_LOOK && !occupant.prog_id)
		rc = not_attached(record->ifname, &occupant, err);
	if (rc < 0)
		return rc;
	record->prog_id = occupant.prog_id;
	show_vlan_tags(record, name);
	rc = record_write(pins->attached_fd, slot, record, err);
	if (rc < 0)
		return rc;
	vlan_offload_set(name, record->vlan_were_on, 0);
	if (!occupant.prog_id)
		rc = put_stub(pins, record, mode, slot, &occupant, err);
	/* An attached interface keeps its slot and program: the stub may be attached later. */
	if (rc < 0 && before.prog_id) {
		record_write(pins->attached_fd, slot, &before, NULL);
	} else if (rc < 0) {
		vlan_offload_set(name, record->vlan_were_on, record->vlan_were_on);
		forget(pins, slot);
	}
	if (rc < 0)
		return rc;
	record->prog_id = occupant.prog_id;
	record->mode = mode_of(&occupant);
	record->dispatcher = !occupant.alone;
	record->others = occupant.others;
	return record_write(pins->attached_fd, slot, record, err);
}

int attach_stub(const char *pin_dir, const char *ifname, enum attach_mode mode, enum attach_how how,
		u32 slot, struct dp_attachment *ret, struct sl_err *err)
{
	struct lifted lifted = { .count = 0 };
	struct sl_attached record;
	struct pins pins;
	int rc;

	if (slot >= SL_IFACES_MAX)
		return sl_err_set(err, EINVAL, "interface slot %u of %u", slot, SL_IFACES_MAX);
	bpf_listen();
	rc = pins_open(pin_dir, &pins, err);
	if (rc < 0)
		return rc;
	rc = start_record(&pins, ifname, slot, &record, err);
	if (rc == 0)
		rc = attach_recorded(&pins, &record, mode, how, slot, &lifted, err);
	lifted_restore(&lifted);
	if (rc == 0)
		describe(&record, slot, ret);
	pins_close(&pins);
	return rc;
}

/* ------------------------------------------------------------------ detach */

static int detach_recorded(const struct pins *pins, u32 slot, const struct sl_attached *record,
			   struct sl_err *err)
{
	int rc = take_off_recorded(pins, record, err);

	if (rc == 0)
		forget(pins, slot);
	return rc;
}

int detach_stub(const char *pin_dir, const char *ifname, struct sl_err *err)
{
	struct sl_attached record;
	struct pins pins;
	u32 slot;
	int rc;

	bpf_listen();
	rc = pins_open(pin_dir, &pins, err);
	if (rc < 0)
		return rc;
	for (slot = 0; slot < SL_IFACES_MAX; slot++)
		if (record_read(pins.attached_fd, slot, &record) && !strcmp(record.ifname, ifname))
			break;
	if (slot < SL_IFACES_MAX)
		rc = detach_recorded(&pins, slot, &record, err);
	else
		rc = sl_err_set(err, ENOENT, "sluice is not attached to %s", ifname);
	pins_close(&pins);
	return rc;
}

/* ------------------------------------------------------------------ what frames begin with */

/*
 * Kinds whose driver puts the MAC header, where generic XDP begins, at the IP header. Others need
 * not: in front of what comes out of IPsec (vti, xfrm) is the link header of the interface below.
 */
static const char ip_kinds[] = " tun wireguard ppp ipip ip6tnl sit gre ip6gre ";

static bool begins_with_ip(const struct link *link)
{
	char word[sizeof(link->kind) + 2];

	snprintf(word, sizeof(word), " %s ", link->kind);
	return link->kind[0] && strstr(ip_kinds, word);
}

int dp_find_link(const char *ifname, u32 ifindex, enum sl_link *ret, struct sl_err *err)
{
	struct link link;
	int r = link_get(ifindex, false, &link);
	bool ethernet;

	if (r < 0)
		return sl_err_set(err, -r, "cannot read what kind of interface %s is: %s", ifname,
				  strerror(-r));
	ethernet = link.type == ARPHRD_ETHER || link.type == ARPHRD_LOOPBACK;
	if (!strcmp(link.kind, "vrf"))
		return sl_err_set(
			err, EOPNOTSUPP,
			"%s is a VRF device, where XDP sees no packet: attach to its members",
			ifname);
	if (!ethernet && !begins_with_ip(&link))
		return sl_err_set(
			err, EOPNOTSUPP,
			"%s (type %u%s%s) is an interface that sluice cannot judge: Ethernet "
			"and loopback are accepted, and without an Ethernet header%sinterfaces",
			ifname, link.type, link.kind[0] ? ", kind " : "", link.kind, ip_kinds);
	if (link.type == ARPHRD_IPGRE && (!link.remote[0] || link.remote[0] >= 224))
		return sl_err_set(
			err, EOPNOTSUPP,
			"%s is a GRE interface without one remote address, where XDP sees the "
			"outer header: give it a remote, or attach to the interface below",
			ifname);
	*ret = ethernet ? SL_LINK_ETHERNET : SL_LINK_IP;
	return 0;
}

/* ------------------------------------------------------------------ the data plane's calls */

int dp_attach(struct dp *dp, const char *ifname, enum attach_mode mode, u32 slot,
	      struct dp_attachment *ret, struct sl_err *err)
{
	const struct dp_bpf *b = (struct dp_bpf *)dp;
	u32 ifindex = if_nametoindex(ifname);
	enum sl_link link;
	int rc;

	if (!ifindex)
		return sl_err_set(err, ENODEV, "there is no interface %s", ifname);
	rc = dp_find_link(ifname, ifindex, &link, err);
	if (rc < 0)
		return rc;
	dp_set_link(dp, slot, link);
	rc = dp_install(dp, slot, err);
	if (rc < 0)
		return rc;
	return attach_stub(b->pin_dir, ifname, mode, ATTACH_JOIN, slot, ret, err);
}

/*
 * Whether the stub is still on the interface, as far as visible without CAP_SYS_ADMIN: of a
 * dispatcher's programs only the dispatcher is.
 */
static bool still_there(const struct sl_attached *record)
{
	struct link link;

	if (link_get(record->ifindex, false, &link) < 0 || !link.xdp_prog)
		return false;
	return record->dispatcher || link.xdp_prog == record->prog_id;
}

int dp_attachments(struct dp *dp, struct dp_attachment *ret)
{
	const struct dp_bpf *b = (struct dp_bpf *)dp;
	struct sl_attached record;
	int count = 0;

	bpf_listen();
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		if (!record_read(b->attached_fd, slot, &record))
			continue;
		describe(&record, slot, &ret[count]);
		if (!still_there(&record))
			ret[count].ifindex = 0;
		count++;
	}
	return count;
}

/* Detaches an orphan and its mark reader. -EBUSY: a stub is there that is no orphan. */
static int purge_orphan(const struct link *link, struct sl_err *err)
{
	struct lifted lifted = { .count = 0 };
	struct occupant occupant;
	int rc = find_settled(link->ifindex, 0, &occupant, err);

	if (rc == 0 && occupant.others_stub)
		return sl_err_set(err, EBUSY,
				  "%s has the stub of another sluiced, with another pin_dir",
				  link->name);
	if (rc < 0 || !occupant.orphan_id)
		return rc;
	rc = lifted_take_off(link->ifindex, 0, &lifted, err);
	if (rc == 0)
		rc = stub_take_off(link->name, link->ifindex, occupant.orphan_id, &occupant, err);
	lifted_restore(&lifted);
	if (rc == 0)
		mark_filter_find_and_take_off(link->ifindex);
	return rc;
}

/* Stubs without pins. Those of another sluiced are an error if `strict`. */
static int purge_orphans(bool strict, struct sl_err *err)
{
	struct links links;
	int rc = links_get(&links);

	if (rc < 0)
		return sl_err_set(err, -rc, "cannot see which interfaces there are: %s",
				  strerror(-rc));
	for (size_t i = 0; i < links.count; i++) {
		struct sl_err this;
		int r = links.all[i].xdp_prog ? purge_orphan(&links.all[i], &this) : 0;

		if (r == 0 || rc < 0 || (r == -EBUSY && !strict))
			continue;
		rc = r;
		if (err)
			*err = this;
	}
	links_free(&links);
	return rc;
}

/* Continues after a failure: a stub that could not be detached passes everything from now on. */
int dp_purge(const char *pin_dir, struct sl_err *err)
{
	struct sl_attached record;
	struct pins pins;
	int rc, failed = 0;

	bpf_listen();
	rc = pins_open(pin_dir, &pins, err);
	if (rc == -ENOENT) {
		if (access(pin_dir, F_OK) == 0)
			failed = unpin_all(pin_dir, err);
		rc = purge_orphans(true, failed ? NULL : err);
		return failed ? failed : rc;
	}
	if (rc < 0)
		return rc;
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		if (!record_read(pins.attached_fd, slot, &record))
			continue;
		rc = detach_recorded(&pins, slot, &record, err);
		if (rc < 0)
			failed = rc;
	}
	pins_close(&pins);
	rc = unpin_all(pin_dir, failed ? NULL : err);
	if (!failed)
		failed = rc;
	rc = purge_orphans(false, failed ? NULL : err);
	return failed ? failed : rc;
}
