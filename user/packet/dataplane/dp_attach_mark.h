/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_attach_mark.h - detaching the mark reader of an interface. Private to dp_attach.c; attaching
 * and watching it is in dataplane.h.
 */
#ifndef SLUICE_DP_ATTACH_MARK_H
#define SLUICE_DP_ATTACH_MARK_H

#include "packet/dataplane/dp_bpf.h"

/* Detaches the slot's reader and removes its pin, if it is a link. */
void mark_link_take_off(const char *pin_dir, u32 slot);
/* Detaches it from the record's interface if it is a tc filter, with the qdisc that was made for
 * it. */
void mark_filter_take_off(const struct sl_attached *record);
/* Detaches a filter that no record has. */
void mark_filter_find_and_take_off(int ifindex);
/* Whether a pin is a mark reader's: it stays when other pins make room for another version's. */
bool is_mark_reader_pin(const char *name);

#endif
