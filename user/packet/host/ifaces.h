/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ifaces.h - interfaces, their slots, and their programs. */
#ifndef SLUICE_HOST_IFACES_H
#define SLUICE_HOST_IFACES_H

#include "packet/dataplane/dp_push.h"
#include "packet/host/host.h"

/* Takes over the attachments that the pins record, with their slots. */
void ifaces_take_over(struct packet_host *host);

/*
 * Gives every interface of the policy a slot. 0, or 1 if there are new ones (then store the state),
 * or -ENOSPC and err.
 */
int ifaces_assign(struct packet_host *host, const struct policy *policy, struct sl_err *err);

/*
 * Attaches the program to every interface of the policy that lacks it. An absent interface is no
 * error: it is attached when it appears. On failure everything that this call attached is detached.
 * `again`: attaches also where it is attached, to replace an older daemon's program.
 */
int ifaces_attach(struct packet_host *host, const struct policy *policy, bool again,
		  struct sl_err *err);

/* Detaches interfaces that the policy does not have: all that it can, also after a failure. */
int ifaces_detach_others(struct packet_host *host, const struct policy *policy, struct sl_err *err);

/*
 * Reads which interfaces exist now: attaches those that came back, and notes those that are gone.
 * True if this host's addresses have changed.
 */
bool ifaces_rescan(struct packet_host *host);

/* Notes that the interface of this number went to another network namespace; then rescan. */
void ifaces_moved(struct packet_host *host, u32 ifindex);

/* Whether a configured interface exists that ifaces_rescan() has not attached yet. */
bool ifaces_appeared(const struct packet_host *host);

/* Whether a configured interface is neither attached nor failed: it does not exist yet. */
bool ifaces_are_missing(const struct packet_host *host);

/*
 * Checks that programs and pins are in place, and puts them back or only logs, by each interface's
 * on_removed. Called each second. True if the pins were made again: then apply the rule set in
 * force again.
 */
bool ifaces_watch(struct packet_host *host);

/*
 * Attaches the mark reader to attached interfaces while packets may get marks (dp_marks()), and
 * detaches it afterwards. To be called when that may have changed; ifaces_watch() does it each
 * second, and by each interface's on_removed attaches again what others detached.
 */
void ifaces_follow_marks(struct packet_host *host);
/* dp_push_put(); attaches the mark reader if this is the first push-down that marks. */
int ifaces_put_push(struct packet_host *host, const struct dp_push *push);

/* Puts missing programs of an attached interface back. */
int ifaces_attach_again(struct packet_host *host, struct iface *iface, struct sl_err *err);

/*
 * Two daemons over the same pins would undo each other's work: -EBUSY where another has locked
 * them. Held until the process ends.
 */
int ifaces_lock_pins(const char *pin_dir, struct sl_err *err);

/* The slot of a name, or NULL. */
struct iface *ifaces_find(struct packet_host *host, const char *ifname);

/* "eth0, lo": interfaces of this host, for errors; returns buf. */
const char *ifaces_on_host(char *buf, size_t size);

#endif
