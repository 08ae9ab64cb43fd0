/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_attach_stub.h - one interface: its programs, attaching and detaching the stub. Private to
 * dp_attach.c. All of it acts in the current network namespace.
 */
#ifndef SLUICE_DP_ATTACH_STUB_H
#define SLUICE_DP_ATTACH_STUB_H

#include <xdp/libxdp.h>

#include "packet/dataplane/dp_bpf.h"

/* The programs of an interface. */
struct occupant {
	u32 prog_id;	  /* our stub's; 0: none */
	u32 orphan_id;	  /* a stub whose pins are gone: it jumps nowhere; 0: none */
	bool others_stub; /* a stub that jumps to another sluiced's program */
	bool any;	  /* there is an XDP program, ours or not */
	bool alone;	  /* and it is not libxdp's dispatcher */
	u32 others;	  /* programs behind the dispatcher that are not our stub */
	enum xdp_attach_mode mode;
	u32 first_id;  /* of the first program */
	char name[32]; /* its name */
};

/*
 * A program is our stub exactly if it uses the map of id `progs_id` (0: there are no pins). One
 * with a stub's name over another map is an orphan if that map is empty.
 */
int stub_find(int ifindex, u32 progs_id, struct occupant *ret, struct sl_err *err);
/* Loads a stub for the slot and attaches it, beside other programs if possible. */
int stub_put(int progs_fd, const char *ifname, int ifindex, enum attach_mode wanted, u32 slot,
	     const struct occupant *now, struct sl_err *err);
/* Detaches a program, ours or another's; others beside it stay. */
int stub_take_off(const char *ifname, int ifindex, u32 prog_id, const struct occupant *now,
		  struct sl_err *err);

/* Programs that were taken off the devices above another: the topmost first. */
struct lifted {
	struct lifted_one {
		u32 ifindex;
		int prog_fd; /* the stub, or the dispatcher with all behind it */
		u32 flags;   /* XDP_FLAGS_*: its mode */
	} one[SL_IFACES_MAX];
	u32 count;
};

/*
 * Linux changes a device's program only while no device right above it has one. Takes off what is
 * above and has a stub of ours, or an orphan, for as long as the device below is worked on. Ends
 * with lifted_restore(), also after an error.
 */
int lifted_take_off(u32 ifindex, u32 progs_id, struct lifted *ret, struct sl_err *err);
/* The same programs again. What cannot be restored is found missing by the daemon's next look. */
void lifted_restore(struct lifted *lifted);

#endif
