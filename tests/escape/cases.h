/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cases.h - the cases: a row of the table at the end for each class of frames. A class has
 * cases that are listed (every chain to depth 3, every order of fragments, each past
 * finding) and random ones behind them.
 */
#ifndef TESTS_ESCAPE_CASES_H
#define TESTS_ESCAPE_CASES_H

#include "escape/pieces.h"
#include "escape/reread.h"

struct case_class {
	const char *name;
	void (*make)(struct maker *m, u32 index);
	u32 listed; /* cases 0 to listed - 1 are the same whatever the seed */
	u32 random; /* and so many random ones in a short run */
	bool on;    /* off: known to fail, not part of the verdict */
};

static const struct case_class CLASSES[] = {
	{ "plain4", make_plain4, FINAL_COUNT, 400, true },
	{ "plain6", make_plain6, FINAL_COUNT, 200, true },
	{ "lies4", make_lies4, 0, 600, true },
	{ "lies6", make_lies6, 0, 600, true },
	{ "zero6", make_zero6, 16, 0, true },
	{ "chain", make_chain, CHAINS_TO_3 * 3, 1000, true },
	{ "long", make_long, 8, 100, true },
	{ "tags", make_tags, 24, 100, true },
	{ "vlan", make_vlan, 16, 16, true },
	{ "frag4", make_frag4, FRAGMENT_ORDERS, 300, true },
	{ "frag6", make_frag6, FRAGMENT_ORDERS, 300, true },
	{ "decoy4", make_decoy4, DECOY_LISTED(DECOY4_COUNT), 200, true },
	{ "decoy6", make_decoy6, DECOY_LISTED(DECOY6_COUNT), 200, true },
	{ "overlap", make_overlap, 40, 0, true },
	{ "again", make_again, 60, 0, true },
	{ "cut4", make_cut4, 4, 60, true },
	{ "cut6", make_cut6, 10, 100, true },
	{ "reread", make_reread, REREADS, 100, true },
	{ "mapped", make_mapped, 0, 50, true },
	{ "ethernet", make_ethernet, 0, 200, true },
};
#define CLASS_COUNT (sizeof(CLASSES) / sizeof(*CLASSES))

static void case_begin(struct maker *m)
{
	m->count = m->number = m->need = m->marks = m->proto = 0;
	m->tags = 0;
	m->ad = false;
	m->ethertype = 0;
	m->snap = 0;
	m->trailer = 0;
	memcpy(m->mac, WIRE_MAC_SERVER, 6);
}

static void case_make(struct maker *m, u32 class, u32 index, u64 seed)
{
	m->rng = mix(seed + index * 0x9e3779b97f4a7c15ULL + ((u64) class << 32));
	case_begin(m);
	CLASSES[class].make(m, index);
	if (!m->need)
		m->need = m->count;
}

#endif
