// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ifaces.c - see ifaces.h.
 *
 * The pins record the attachments; this file keeps a copy to detect changes. The program is put
 * behind the stub first (dp_install, by the daemon), then the stub onto the interface (by the
 * helper): no packet meets an empty slot.
 */
#include "packet/host/ifaces.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "packet/dataplane/dp_attach.h"
#include "packet/dataplane/vlan_offload.h"
#include "lib/links.h"
#include "lib/log.h"

/* ------------------------------------------------------------------ slots */

struct iface *ifaces_find(struct packet_host *host, const char *ifname)
{
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (host->iface[slot].name[0] && !strcmp(host->iface[slot].name, ifname))
			return &host->iface[slot];
	return NULL;
}

/*
 * The number of the interface that a slot is for: that of its name, else of the interface that had
 * the name when it was attached (it was renamed). 0: neither is here.
 */
static u32 index_now(const struct iface *iface)
{
	u32 ifindex = if_nametoindex(iface->name);
	char name[IF_NAMESIZE];

	if (!ifindex && iface->attached && if_indextoname(iface->at.ifindex, name))
		ifindex = iface->at.ifindex;
	return ifindex;
}

static bool is_attached(const struct iface *iface)
{
	return iface->attached && iface->at.ifindex && iface->at.ifindex == index_now(iface);
}

/* Notes under which name an attached interface is found now. */
static void follow_name(struct iface *iface)
{
	char now[IF_NAMESIZE] = "";

	if (!if_indextoname(iface->at.ifindex, now) || !strcmp(now, iface->name))
		now[0] = '\0';
	if (now[0] && strcmp(now, iface->renamed) != 0)
		log_warn("%s: renamed to %s; its limits hold there", iface->name, now);
	memcpy(iface->renamed, now, sizeof(iface->renamed));
}

/* The slots, those first whose interfaces are above none of the others. */
static void order_slots(const struct packet_host *host, u32 ret[SL_IFACES_MAX])
{
	u32 depth[SL_IFACES_MAX];
	struct links links;
	u32 at;

	if (links_get(&links) < 0)
		links = (struct links){ 0 };
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		depth[slot] = links_depth(&links, index_now(&host->iface[slot]));
		for (at = slot; at > 0 && depth[ret[at - 1]] > depth[slot]; at--)
			ret[at] = ret[at - 1];
		ret[at] = slot;
	}
	links_free(&links);
}

void ifaces_take_over(struct packet_host *host)
{
	struct dp_attachment at[SL_IFACES_MAX];
	int count = dp_attachments(host->dp, at);

	for (int i = 0; i < count; i++) {
		struct iface *iface = ifaces_find(host, at[i].ifname);

		if (at[i].slot >= SL_IFACES_MAX)
			continue;
		/*
		 * The pins are right where they differ from state.json, which another daemon may
		 * have written.
		 */
		if (iface)
			iface->name[0] = '\0';
		iface = &host->iface[at[i].slot];
		memset(iface, 0, sizeof(*iface));
		memcpy(iface->name, at[i].ifname, sizeof(iface->name));
		iface->attached = iface->recorded = true;
		iface->at = at[i];
		follow_name(iface);
		if (dp_mark_reader_is_there(host->dp, at[i].slot))
			iface->marks = MARKS_READ;
		log_info("%s: found attached (%s)", iface->name, attach_mode_name(at[i].mode));
	}
}

/* A slot never used; else one whose interface is neither configured nor attached. */
static struct iface *free_slot(struct packet_host *host, const struct policy *policy)
{
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (!host->iface[slot].name[0])
			return &host->iface[slot];
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (!host->iface[slot].attached &&
		    !policy_find_interface(policy, host->iface[slot].name))
			return &host->iface[slot];
	return NULL;
}

int ifaces_assign(struct packet_host *host, const struct policy *policy, struct sl_err *err)
{
	int changed = 0;

	if (host->absent && policy->interface_count)
		return sl_err_set(err, EOPNOTSUPP,
				  "%s: sluiced was started without interfaces, for "
				  "the HTTP tier alone; with interfaces in the file it takes a "
				  "restart",
				  policy->interface[0].name);
	for (size_t i = 0; i < policy->interface_count; i++) {
		const struct interface_def *def = &policy->interface[i];
		struct iface *iface = ifaces_find(host, def->name);

		if (iface)
			continue;
		iface = free_slot(host, policy);
		if (!iface)
			return sl_err_set(err, ENOSPC, "%s: at most %d interfaces are possible",
					  def->name, SL_IFACES_MAX);
		memset(iface, 0, sizeof(*iface));
		memcpy(iface->name, def->name, sizeof(iface->name));
		changed = 1;
	}
	return changed;
}

/* ------------------------------------------------------------------ marks */

/*
 * Attaches the mark reader if packets may get marks (`wanted`), and detaches it if not. `again`:
 * also one that others detached. Called each second: a failure is logged once.
 */
static void follow_marks(struct packet_host *host, struct iface *iface, bool wanted, bool again)
{
	u32 slot = (u32)(iface - host->iface);
	enum iface_marks before = iface->marks;
	struct sl_err err;
	int r;

	if ((!wanted && before == MARKS_UNUSED) || iface->lost || !is_attached(iface))
		return;
	if (!wanted) {
		dp_mark_reader_take_off(host->dp, slot);
		iface->marks = MARKS_UNUSED;
		return;
	}
	if (dp_mark_reader_is_there(host->dp, slot)) {
		iface->marks = MARKS_READ;
		return;
	}
	if (before == MARKS_READ)
		iface->marks_losses++;
	if (before == MARKS_UNUSED || again)
		r = dp_mark_reader_put(host->dp, slot, &err);
	else
		r = sl_err_set(&err, ENOENT,
			       "%s: the program that sets marks was detached by others (sluicectl "
			       "attach %s puts it back)",
			       iface->name, iface->name);
	iface->marks = r < 0 ? MARKS_LOST : MARKS_READ;
	if (r < 0 && before != MARKS_LOST)
		log_error("%s: packets that limits tag get NO MARK", err.message);
	else if (!r && before != MARKS_UNUSED)
		log_warn("%s: the program that sets marks was %s; it was attached again",
			 iface->name, before == MARKS_READ ? "detached by others" : "missing");
}

void ifaces_follow_marks(struct packet_host *host)
{
	bool wanted = !host->absent && dp_marks(host->dp);

	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		follow_marks(host, &host->iface[slot], wanted,
			     host->iface[slot].on_removed != ON_REMOVED_ALARM);
}

int ifaces_put_push(struct packet_host *host, const struct dp_push *push)
{
	bool marks = dp_marks(host->dp);
	int r = dp_push_put(host->dp, push);

	if (!r && !marks && dp_marks(host->dp))
		ifaces_follow_marks(host);
	return r;
}

/* ------------------------------------------------------------------ attach and detach */

/* The pins have no record of it any more. */
static void forget(struct iface *iface)
{
	iface->attached = iface->recorded = iface->moved = false;
	iface->renamed[0] = '\0';
}

/* For that its program is loaded. */
static int find_link(struct packet_host *host, struct iface *iface, struct sl_err *err)
{
	int r = dp_find_link(iface->name, index_now(iface), &iface->link, err);

	if (!r)
		dp_set_link(host->dp, (u32)(iface - host->iface), iface->link);
	return r;
}

static int attach_one(struct packet_host *host, struct iface *iface, enum attach_mode mode,
		      struct sl_err *err)
{
	u32 slot = (u32)(iface - host->iface);
	bool repeated = is_attached(iface);
	u32 vlan_hidden = 0;
	int r = find_link(host, iface, err);

	if (!r)
		r = dp_install(host->dp, slot, err);
	if (!r)
		r = helper_attach(&host->helper, iface->name, mode, ATTACH_JOIN, slot, &iface->at,
				  err);
	if (r < 0)
		return r;
	iface->attached = iface->recorded = true;
	iface->moved = false;
	iface->lost = IFACE_KEPT;
	iface->error[0] = '\0';
	follow_name(iface);
	if (!repeated)
		iface->marks = MARKS_UNUSED;
	follow_marks(host, iface, dp_marks(host->dp), true);
	if (repeated)
		return 0;
	/* It had this interface under an earlier name, and has no stub there now. */
	for (u32 s = 0; s < SL_IFACES_MAX; s++)
		if (s != slot && host->iface[s].attached &&
		    host->iface[s].at.ifindex == iface->at.ifindex)
			forget(&host->iface[s]);
	log_info("%s: attached, %s%s%s", iface->name, attach_mode_name(iface->at.mode),
		 mode == MODE_AUTO && iface->at.mode == MODE_GENERIC
			 ? " (its driver does not do native)"
			 : "",
		 iface->at.dispatcher ? ", behind libxdp's dispatcher" : "");
	/* Attaching switched it off if the card allows that. */
	if (vlan_offload_get(iface_name_now(iface), &vlan_hidden) == 0 && vlan_hidden)
		log_warn("%s: its card takes VLAN tags out of frames and does not stop: limits on "
			 "vlan take its frames for untagged",
			 iface->name);
	return 0;
}

static int detach_one(struct packet_host *host, struct iface *iface, struct sl_err *err)
{
	int r = helper_detach(&host->helper, iface->name, err);

	if (r < 0 && r != -ENOENT)
		return r;
	if (iface->moved)
		log_info(
			"%s: detached; the program that stays on it, in the other network namespace, passes everything",
			iface->name);
	else
		log_info("%s: detached", iface->name);
	forget(iface);
	return 0;
}

/* Whether an attached program is in a mode that `wanted` allows. */
static bool mode_fits(const struct iface *iface, enum attach_mode wanted)
{
	return wanted == MODE_AUTO || wanted == iface->at.mode;
}

/* An attached stub keeps its mode: to change it, detach first. */
static int change_mode(struct packet_host *host, struct iface *iface, enum attach_mode mode,
		       struct sl_err *err)
{
	enum attach_mode before = iface->at.mode;
	struct sl_err ignored;
	int r;

	/* Detached, it could not be found any more. */
	if (iface->renamed[0])
		return sl_err_set(err, EBUSY,
				  "%s was renamed to %s: configure that name to change its mode",
				  iface->name, iface->renamed);
	r = detach_one(host, iface, err);
	if (!r)
		r = attach_one(host, iface, mode, err);
	if (r < 0 && !iface->attached && attach_one(host, iface, before, &ignored) < 0)
		log_error("%s: cannot be attached again in mode %s: %s", iface->name,
			  attach_mode_name(before), ignored.message);
	return r;
}

/* Whether ifaces_attach() puts a program behind the slot's stub. */
static bool needs_program(const struct packet_host *host, const struct policy *policy, bool again,
			  u32 slot)
{
	const struct iface *iface = &host->iface[slot];

	return policy_find_interface(policy, iface->name) && index_now(iface) &&
	       (again || !is_attached(iface));
}

/* Loads the program of order[at], and with it those of the next ones, as many as there are CPUs. */
static void prepare(struct packet_host *host, const struct policy *policy, bool again,
		    const u32 order[SL_IFACES_MAX], u32 at)
{
	u32 slot[SL_IFACES_MAX], count = 0;

	for (; at < SL_IFACES_MAX; at++)
		if (needs_program(host, policy, again, order[at]))
			slot[count++] = order[at];
	dp_prepare(host->dp, slot, count);
}

int ifaces_attach(struct packet_host *host, const struct policy *policy, bool again,
		  struct sl_err *err)
{
	bool ours[SL_IFACES_MAX] = { false }; /* attached by this call */
	u32 order[SL_IFACES_MAX];
	bool prepared = false;
	int r = 0;

	order_slots(host, order);
	/* Before several are loaded at once; attach_one() returns the errors. */
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (needs_program(host, policy, again, slot))
			find_link(host, &host->iface[slot], NULL);
	for (u32 i = 0; !r && i < SL_IFACES_MAX; i++) {
		struct iface *iface = &host->iface[order[i]];
		const struct interface_def *def = policy_find_interface(policy, iface->name);
		bool there = is_attached(iface);

		if (!def)
			continue;
		if (!index_now(iface)) {
			if (!iface->wanted)
				log_warn("%s: not there; it is attached when it appears",
					 def->name);
			iface->attached = false;
			continue;
		}
		if (there && !mode_fits(iface, def->mode)) {
			r = change_mode(host, iface, def->mode, err);
		} else if (!there || again) {
			prepared = true;
			prepare(host, policy, again, order, i);
			r = attach_one(host, iface, def->mode, err);
			ours[order[i]] = !r && !there;
		}
	}
	if (prepared) /* the data plane of a rig has nothing to prepare */
		dp_prepare_end(host->dp);
	for (u32 i = SL_IFACES_MAX; i-- > 0;) {
		struct iface *iface = &host->iface[order[i]];
		const struct interface_def *def = policy_find_interface(policy, iface->name);
		struct sl_err ignored;

		if (r < 0 && ours[order[i]])
			detach_one(host, iface, &ignored);
		if (!r && def) {
			iface->wanted = true;
			iface->mode = def->mode;
			iface->on_removed = def->on_removed;
		}
	}
	return r;
}

int ifaces_detach_others(struct packet_host *host, const struct policy *policy, struct sl_err *err)
{
	u32 order[SL_IFACES_MAX];
	int r = 0;

	order_slots(host, order);
	for (u32 i = SL_IFACES_MAX; i-- > 0;) {
		struct iface *iface = &host->iface[order[i]];
		struct sl_err this;
		int code;

		if (!iface->name[0] || policy_find_interface(policy, iface->name))
			continue;
		/* Also one that is gone: in another namespace its program may still limit. */
		code = iface->recorded ? detach_one(host, iface, &this) : 0;
		if (code < 0 && !r)
			*err = this;
		if (code < 0)
			r = code;
		else
			iface->wanted = false;
	}
	return r;
}

/* ------------------------------------------------------------------ what is there now */

static bool to_prefix(const struct sockaddr *addr, struct sl_prefix *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (addr && addr->sa_family == AF_INET) {
		u32 be = ((const struct sockaddr_in *)addr)->sin_addr.s_addr;

		ret->addr.hi = (u64)ntohl(be) << 32;
		ret->family = SL_V4;
		ret->len = 32;
		return true;
	}
	if (addr && addr->sa_family == AF_INET6) {
		const u8 *byte = ((const struct sockaddr_in6 *)addr)->sin6_addr.s6_addr;

		for (int i = 0; i < 8; i++) {
			ret->addr.hi = ret->addr.hi << 8 | byte[i];
			ret->addr.lo = ret->addr.lo << 8 | byte[i + 8];
		}
		ret->family = SL_V6;
		ret->len = 128;
		return true;
	}
	return false;
}

static int compare_prefixes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct sl_prefix));
}

/* Reads this host's addresses, sorted; true if they have changed. */
static bool read_local(struct packet_host *host)
{
	struct ifaddrs *all, *at;
	struct sl_prefix *local;
	size_t count = 0, size = 0;
	bool changed;

	if (getifaddrs(&all) < 0)
		return false;
	for (at = all; at; at = at->ifa_next)
		size++;
	local = calloc(size + 1, sizeof(*local));
	for (at = all; local && at; at = at->ifa_next)
		count += to_prefix(at->ifa_addr, &local[count]);
	freeifaddrs(all);
	if (!local)
		return false;
	qsort(local, count, sizeof(*local), compare_prefixes);
	changed = count != host->local_count ||
		  (count && memcmp(local, host->local, count * sizeof(*local)) != 0);
	free(host->local);
	host->local = local;
	host->local_count = count;
	return changed;
}

/* For status; true if it has changed. */
static bool copy_error(struct iface *iface, const struct sl_err *err)
{
	char before[sizeof(iface->error)], text[768];

	memcpy(before, iface->error, sizeof(before));
	sl_err_format(err, text, sizeof(text));
	snprintf(iface->error, sizeof(iface->error), "%.*s", (int)sizeof(iface->error) - 1, text);
	return strcmp(before, iface->error) != 0;
}

/* Repeated at each event and each minute: logged once. */
static void set_error(struct iface *iface, const struct sl_err *err)
{
	if (copy_error(iface, err))
		log_error("%s: cannot be attached: %s", iface->name, iface->error);
}

/*
 * The interface has another program than after attaching. The helper finds out which: ours may
 * still be behind libxdp's dispatcher, which changes with every program that joins or leaves.
 */
static int look_for_program(struct packet_host *host, struct iface *iface, enum attach_how how,
			    u32 link_prog_id, struct sl_err *err)
{
	static const char *const what[] = {
		[IFACE_REMOVED] = "was taken off",
		[IFACE_REPLACED] = "was replaced by another",
	};
	enum iface_loss loss = link_prog_id ? IFACE_REPLACED : IFACE_REMOVED;
	enum iface_loss before = iface->lost;
	struct dp_attachment at;
	int r = helper_attach(&host->helper, iface->name, iface->mode, how,
			      (u32)(iface - host->iface), &at, err);

	if (!before && (r < 0 || at.prog_id != iface->at.prog_id))
		iface->losses[loss]++;
	if (r < 0) {
		iface->lost = loss;
		iface->lost_to = link_prog_id;
		if (before != loss)
			log_error("%s: its XDP program %s: NOTHING IS LIMITED THERE (sluicectl "
				  "attach %s puts it back)",
				  iface->name, what[loss], iface->name);
		return r;
	}
	if (before)
		log_warn("%s: its XDP program is back", iface->name);
	else if (at.prog_id != iface->at.prog_id)
		log_warn("%s: its XDP program %s; it was attached again", iface->name, what[loss]);
	iface->at = at;
	iface->lost = IFACE_KEPT;
	iface->error[0] = '\0';
	return 0;
}

/* Whether the interface still has the program of attaching; *ret_id: the one that it has. */
static bool has_program(const struct iface *iface, u32 *ret_id)
{
	struct link link;

	if (link_get(iface->at.ifindex, false, &link) < 0)
		return true;
	*ret_id = link.xdp_prog;
	return link.xdp_prog == iface->at.link_prog_id;
}

/* Checks that the program is there; if not, acts by `on_removed`. */
static void watch_program(struct packet_host *host, struct iface *iface, bool retry)
{
	static const enum attach_how how[] = {
		[ON_REMOVED_ATTACH] = ATTACH_JOIN,
		[ON_REMOVED_REPLACE] = ATTACH_REPLACE,
		[ON_REMOVED_ALARM] = ATTACH_LOOK,
	};
	struct sl_err err;
	u32 id = 0;

	if (has_program(iface, &id) && !iface->lost)
		return;
	/* Ours can replace another program only when that one is gone. */
	if (iface->lost && id == iface->lost_to && (id || !retry))
		return;
	if (look_for_program(host, iface, how[iface->on_removed], id, &err) == 0)
		return;
	if (iface->on_removed == ON_REMOVED_ALARM)
		copy_error(iface, &err);
	else
		set_error(iface, &err);
}

int ifaces_attach_again(struct packet_host *host, struct iface *iface, struct sl_err *err)
{
	u32 id = 0;
	int r;

	follow_marks(host, iface, dp_marks(host->dp), true);
	if (has_program(iface, &id) && !iface->lost)
		return 0;
	r = look_for_program(host, iface,
			     iface->on_removed == ON_REMOVED_REPLACE ? ATTACH_REPLACE : ATTACH_JOIN,
			     id, err);
	if (r < 0)
		set_error(iface, err);
	return r;
}

int ifaces_lock_pins(const char *pin_dir, struct sl_err *err)
{
	int fd = open(pin_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
		close(fd);
		return sl_err_set(err, EBUSY,
				  "another sluiced is running with pin_dir %s; a second "
				  "one needs its own",
				  pin_dir);
	}
	return 0; /* the descriptor stays open: it is the lock */
}

/* Without pins the stubs jump nowhere as soon as the daemon exits, and no other could attach. */
static bool watch_pins(struct packet_host *host)
{
	struct sl_err err;

	if (host->absent || dp_pins_are_there(host->dp)) {
		if (host->pins_lost)
			log_warn("the pins are there again");
		host->pins_lost = false;
		return false;
	}
	if (!host->pins_lost)
		host->pins_losses++;
	if (dp_pin_again(host->dp, &err) == 0) {
		host->pins_lost = false;
		ifaces_lock_pins(host->pin_dir, NULL);
		log_warn("the pins under %s were removed by others; they were made again",
			 host->pin_dir);
		return true;
	}
	if (!host->pins_lost)
		log_error("the pins under %s were removed by others, and cannot be made again: %s: "
			  "limits END when sluiced does",
			  host->pin_dir, err.message);
	host->pins_lost = true;
	return false;
}

bool ifaces_watch(struct packet_host *host)
{
	bool made_again;

	/* After detach --all nothing is put back. */
	if (host->stopping)
		return false;
	made_again = watch_pins(host);
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		struct iface *iface = &host->iface[slot];

		if (iface->wanted && is_attached(iface))
			watch_program(host, iface, false);
	}
	ifaces_follow_marks(host);
	return made_again;
}

static void rescan_one(struct packet_host *host, struct iface *iface)
{
	struct sl_err err;

	if (is_attached(iface)) {
		follow_name(iface);
		if (iface->wanted)
			watch_program(host, iface, true);
		return;
	}
	if (iface->attached) {
		iface->attached = false;
		iface->renamed[0] = '\0';
		log_warn(
			"%s: %s", iface->name,
			index_now(iface)
				? "another interface has the name now: its limits move there"
			: iface->moved
				? "moved to another network namespace; its limits hold there until it is detached"
				: "gone; it is attached again when it comes back");
	}
	if (!index_now(iface) || attach_one(host, iface, iface->mode, &err) == 0)
		return;
	set_error(iface, &err);
}

void ifaces_moved(struct packet_host *host, u32 ifindex)
{
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (host->iface[slot].attached && host->iface[slot].at.ifindex == ifindex)
			host->iface[slot].moved = true;
}

/* Wanted, and not attached as it is now. A failed one is left to the next rescan. */
static bool is_missing(const struct iface *iface)
{
	return iface->wanted && !iface->error[0] && !is_attached(iface);
}

bool ifaces_appeared(const struct packet_host *host)
{
	for (u32 slot = 0; slot < SL_IFACES_MAX && !host->stopping; slot++)
		if (is_missing(&host->iface[slot]) && index_now(&host->iface[slot]))
			return true;
	return false;
}

bool ifaces_are_missing(const struct packet_host *host)
{
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (is_missing(&host->iface[slot]))
			return true;
	return false;
}

bool ifaces_rescan(struct packet_host *host)
{
	for (u32 slot = 0; slot < SL_IFACES_MAX && !host->stopping; slot++)
		if (host->iface[slot].wanted)
			rescan_one(host, &host->iface[slot]);
	return read_local(host);
}

const char *ifaces_on_host(char *buf, size_t size)
{
	struct if_nameindex *all = if_nameindex();
	size_t used = 0;

	buf[0] = '\0';
	for (struct if_nameindex *at = all; at && at->if_index && used < size; at++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
					 at->if_name);
	if_freenameindex(all);
	return buf;
}
