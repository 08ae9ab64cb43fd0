/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_attach.h - attaching in two steps, for a daemon that has dropped its privileges.
 *
 * dp_attach() is dp_install() and then attach_stub(). dp_install() needs CAP_BPF, CAP_PERFMON and
 * CAP_NET_ADMIN. attach_stub() and detach_stub() need CAP_SYS_ADMIN as well (libxdp finds programs
 * by id). They share only the pins with the caller, so a small process that kept its privileges can
 * run them for the daemon. All act in the caller's network namespace.
 */
#ifndef SLUICE_DP_ATTACH_H
#define SLUICE_DP_ATTACH_H

#include "packet/dataplane/dataplane.h"

/*
 * What frames of the interface begin with. -EOPNOTSUPP with a message: the program could not judge
 * them, or would see none. `ifname` is for messages.
 */
int dp_find_link(const char *ifname, u32 ifindex, enum sl_link *ret, struct sl_err *err);
/* For that the programs of an interface slot (below SL_IFACES_MAX) are loaded from now on. */
void dp_set_link(struct dp *dp, u32 slot, enum sl_link link);

/*
 * Loads the program for an interface slot and puts it behind the slot's stub, in place of the
 * one there, atomically. Whether a stub is attached does not matter.
 */
int dp_install(struct dp *dp, u32 slot, struct sl_err *err);

/*
 * Loads the programs for the first of `count` slots (at most SL_IFACES_MAX), one on each CPU,
 * unless that of slot[0] is loaded: the verifier takes a third of a second for each, and
 * dp_install() then none. What fails here is loaded again by dp_install(), which returns the error.
 * dp_prepare_end() frees those that were not used.
 */
void dp_prepare(struct dp *dp, const u32 *slot, u32 count);
void dp_prepare_end(struct dp *dp);

/* What to do if the stub is not on the interface. */
enum attach_how {
	ATTACH_JOIN,	/* attach it, beside other programs */
	ATTACH_REPLACE, /* the same, in place of a program that it cannot join */
	ATTACH_LOOK,	/* nothing: -ENOENT, or -EBUSY if another program is there */
};

/*
 * Attaches the stub of `slot` to the interface, unless it is attached; switches the interface's
 * VLAN tag stripping off. -EBUSY: another program is there and cannot be joined. An attached stub
 * keeps its mode; one whose pins are gone is replaced. -ENOENT: the pins under pin_dir are gone.
 */
int attach_stub(const char *pin_dir, const char *ifname, enum attach_mode mode, enum attach_how how,
		u32 slot, struct dp_attachment *ret, struct sl_err *err);

/*
 * Undoes that, detaches the mark reader, and empties the slot. -ENOENT if `ifname` was not
 * attached; an interface that no longer exists is no error.
 */
int detach_stub(const char *pin_dir, const char *ifname, struct sl_err *err);

#endif
