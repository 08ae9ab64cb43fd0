/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ifaces.h - interfaces: their slots, and what is on them. */
#ifndef SLUICE_HOST_IFACES_H
#define SLUICE_HOST_IFACES_H

#include "packet/host/host.h"

/* Takes over what the pins say is attached, and remembers its slots. */
void ifaces_take_over(struct packet_host *host);

/*
 * Gives every interface of the policy a slot. 0, or 1 where new ones were given (the state is
 * then to be stored), or -ENOSPC and err.
 */
int ifaces_assign(struct packet_host *host, const struct policy *policy, struct sl_err *err);

/*
 * Puts the program on every interface of the policy where it is not. One that is not there is
 * no error: it is attached when it appears. On failure nothing stays attached that was not
 * before. `again`: also where it is attached, to replace an older daemon's program.
 */
int ifaces_attach(struct packet_host *host, const struct policy *policy, bool again,
		  struct sl_err *err);

/* Takes it off those that the policy does not have: off all that it can, whatever fails. */
int ifaces_detach_others(struct packet_host *host, const struct policy *policy, struct sl_err *err);

/*
 * Looks at what is there now: attaches what came back, forgets what is gone. True where this
 * host's addresses have changed.
 */
bool ifaces_rescan(struct packet_host *host);

/*
 * Looks whether the programs and pins are where they were put, and puts back what others took
 * away, or only says so, as each interface's on_removed has it. Each second. True where the pins
 * were made again: the rule set in force is to be put into them.
 */
bool ifaces_watch(struct packet_host *host);

/* Puts an attached interface's program back where it is missing. */
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
