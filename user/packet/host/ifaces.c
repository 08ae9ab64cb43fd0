// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ifaces.c - see ifaces.h.
 *
 * The pins record the attachments; this file keeps a copy to detect changes. The program is put
 * behind the stub first (dp_install, by the daemon), then the stub onto the interface (by the
 * helper): no packet meets an empty slot.
 * It is over 500 lines because attaching, watching and looking again are about one state.
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
#include "packet/dataplane/xdp_link.h"
#include "lib/log.h"

/* ------------------------------------------------------------------ slots */

struct iface *ifaces_find(struct packet_host *host, const char *ifname)
{
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		if (host->iface[slot].name[0] && !strcmp(host->iface[slot].name, ifname))
			return &host->iface[slot];
	return NULL;
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
		iface->attached = true;
		iface->at = at[i];
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

/* ------------------------------------------------------------------ attach and detach */

static int attach_one(struct packet_host *host, struct iface *iface, enum attach_mode mode,
		      struct sl_err *err)
{
	u32 slot = (u32)(iface - host->iface);
	bool repeated = iface->attached && iface->at.ifindex == if_nametoindex(iface->name);
	u32 vlan_hidden = 0;
	int r = dp_install(host->dp, slot, err);

	if (!r)
		r = helper_attach(&host->helper, iface->name, mode, ATTACH_JOIN, slot, &iface->at,
				  err);
	if (r < 0)
		return r;
	iface->attached = true;
	iface->lost = IFACE_KEPT;
	iface->error[0] = '\0';
	if (repeated)
		return 0;
	log_info("%s: attached, %s%s%s", iface->name, attach_mode_name(iface->at.mode),
		 mode == MODE_AUTO && iface->at.mode == MODE_GENERIC ?
			 " (its driver does not do native)" : "",
		 iface->at.dispatcher ? ", behind libxdp's dispatcher" : "");
	/* Attaching switched it off if the card allows that. */
	if (vlan_offload_get(iface->name, &vlan_hidden) == 0 && vlan_hidden)
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
	iface->attached = false;
	log_info("%s: detached", iface->name);
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
	int r = detach_one(host, iface, err);

	if (!r)
		r = attach_one(host, iface, mode, err);
	if (r < 0 && !iface->attached && attach_one(host, iface, before, &ignored) < 0)
		log_error("%s: cannot be attached again in mode %s: %s", iface->name,
			  attach_mode_name(before), ignored.message);
	return r;
}

int ifaces_attach(struct packet_host *host, const struct policy *policy, bool again,
		  struct sl_err *err)
{
	bool ours[SL_IFACES_MAX] = { false };	/* attached by this call */
	int r = 0;

	for (size_t i = 0; !r && i < policy->interface_count; i++) {
		const struct interface_def *def = &policy->interface[i];
		struct iface *iface = ifaces_find(host, def->name);
		u32 ifindex = if_nametoindex(def->name);
		bool there = iface->attached && iface->at.ifindex == ifindex;

		if (!ifindex) {
			if (!iface->wanted)
				log_warn("%s: not there; it is attached when it appears",
					 def->name);
			iface->attached = false;
			continue;
		}
		if (there && !mode_fits(iface, def->mode)) {
			r = change_mode(host, iface, def->mode, err);
		} else if (!there || again) {
			r = attach_one(host, iface, def->mode, err);
			ours[iface - host->iface] = !r && !there;
		}
	}
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		const struct interface_def *def =
			policy_find_interface(policy, host->iface[slot].name);
		struct sl_err ignored;

		if (r < 0 && ours[slot])
			detach_one(host, &host->iface[slot], &ignored);
		if (!r && def) {
			host->iface[slot].wanted = true;
			host->iface[slot].mode = def->mode;
			host->iface[slot].on_removed = def->on_removed;
		}
	}
	return r;
}

int ifaces_detach_others(struct packet_host *host, const struct policy *policy, struct sl_err *err)
{
	int r = 0;

	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		struct iface *iface = &host->iface[slot];
		struct sl_err this;
		int code;

		if (!iface->name[0] || policy_find_interface(policy, iface->name))
			continue;
		code = iface->attached ? detach_one(host, iface, &this) : 0;
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
		[IFACE_REMOVED] = "was taken off", [IFACE_REPLACED] = "was replaced by another",
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
	return xdp_link_prog(iface->at.ifindex, ret_id) < 0 || *ret_id == iface->at.link_prog_id;
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

	if (has_program(iface, &id) && !iface->lost)
		return 0;
	r = look_for_program(host, iface, iface->on_removed == ON_REMOVED_REPLACE ? ATTACH_REPLACE :
									      ATTACH_JOIN,
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
	return 0;	/* the descriptor stays open: it is the lock */
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

		if (iface->wanted && iface->attached &&
		    iface->at.ifindex == if_nametoindex(iface->name))
			watch_program(host, iface, false);
	}
	return made_again;
}

static void rescan_one(struct packet_host *host, struct iface *iface)
{
	u32 ifindex = if_nametoindex(iface->name);
	struct sl_err err;

	if (iface->attached && iface->at.ifindex == ifindex) {
		if (iface->wanted)
			watch_program(host, iface, true);
		return;
	}
	if (iface->attached) {
		iface->attached = false;
		log_warn("%s: gone; it is attached again when it comes back", iface->name);
	}
	if (!ifindex || attach_one(host, iface, iface->mode, &err) == 0)
		return;
	set_error(iface, &err);
}

/* Wanted, and not attached as it is now. A failed one is left to the next rescan. */
static bool is_missing(const struct iface *iface)
{
	return iface->wanted && !iface->error[0] &&
	       !(iface->attached && iface->at.ifindex == if_nametoindex(iface->name));
}

bool ifaces_appeared(const struct packet_host *host)
{
	for (u32 slot = 0; slot < SL_IFACES_MAX && !host->stopping; slot++)
		if (is_missing(&host->iface[slot]) && if_nametoindex(host->iface[slot].name))
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
