/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_attach_stub.h - one interface: what is on it, the stub on and off, the mark reader on
 * and off. Private to dp_attach.c. All of it is in the current network namespace.
 */
#ifndef SLUICE_DP_ATTACH_STUB_H
#define SLUICE_DP_ATTACH_STUB_H

#include <xdp/libxdp.h>

#include "packet/dataplane/dp_bpf.h"

/* What is on an interface. */
struct occupant {
	u32 prog_id;			/* our stub's; 0: it is not there */
	u32 orphan_id;			/* a stub whose pins are gone: it jumps nowhere; 0: none */
	bool others_stub;		/* a stub that jumps to another sluiced's program */
	bool any;			/* there is an XDP program, ours or not */
	bool alone;			/* and it is not libxdp's dispatcher */
	enum xdp_attach_mode mode;
	u32 first_id;			/* of the first program */
	char name[32];			/* its name */
};

/*
 * A program is our stub exactly when it uses the map of id `progs_id` (0: there are no pins). One
 * of a stub's name over another map is an orphan where that map is empty.
 */
int stub_find(int ifindex, u32 progs_id, struct occupant *ret, struct sl_err *err);
/* Loads a stub for the slot and attaches it, beside what is there if that can be. */
int stub_put(int progs_fd, const char *ifname, int ifindex, enum attach_mode wanted, u32 slot,
	     const struct occupant *now, struct sl_err *err);
/* Takes a program off, ours or another's, and leaves those beside it. */
int stub_take_off(const char *ifname, int ifindex, u32 prog_id, const struct occupant *now,
		  struct sl_err *err);

/*
 * Puts the tc program on clsact ingress, at its priority of before where it had one. Returns
 * the priority it has now; 0 where tc or clsact is not to be had.
 */
u32 mark_reader_put(int ifindex, u32 priority_before);
void mark_reader_take_off(int ifindex, u32 priority);
/* Detaches one whose priority is not recorded. */
void mark_reader_find_and_take_off(int ifindex);

#endif
