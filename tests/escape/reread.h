/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reread.h - packets that Linux reads in two ways: with connection tracking, and without. */
#ifndef TESTS_ESCAPE_REREAD_H
#define TESTS_ESCAPE_REREAD_H

#include "escape/whole.h"

/*
 * A fragment header behind others. With connection tracking Linux takes it off first, and reads
 * what follows as the type that the first header in front has; without, as the type that it states
 * itself.
 */
static const u8 REREAD_FRONTS[][3] = {
	{ X_OPTIONS },
	{ X_ROUTING },
	{ X_HOP, X_OPTIONS },
	{ X_OPTIONS, X_OPTIONS },
	{ X_HOP, X_ROUTING },
	{ X_AH },
	{ X_OPTIONS, X_AH },
	{ X_HOP, X_AH, X_OPTIONS },
	{ X_FRAGMENT, X_OPTIONS },
	{ X_HOP },
};
#define REREAD_FRONT_COUNT (sizeof(REREAD_FRONTS) / sizeof(*REREAD_FRONTS))
/* Each front, with each type that the fragment header may state, before each transport, whole and
 * in two. */
#define REREADS (REREAD_FRONT_COUNT * 4 * 3 * 2)

static void make_reread(struct maker *m, u32 index)
{
	static struct chain c;
	static struct buf b;
	static struct l4 l;
	bool listed = index < REREADS;
	u32 n = listed ? index : any(m, REREADS), rest = n / REREAD_FRONT_COUNT;
	const u8 *front = REREAD_FRONTS[n % REREAD_FRONT_COUNT];
	u32 kind = front[0] == X_HOP && front[1] ? front[1] : front[0];
	u32 stated = (const u8[]){ X_NONE, 17, 6, 0 }[rest % 4], final = rest / 4 % 3, size;

	final = (const u8[]){ FINAL_UDP_LIMITED, FINAL_SYN_LIMITED, FINAL_OTHER }[final];
	l4_final(m, true, &l, listed ? final : any(m, FINAL_COUNT), 60);
	/* Lone hop-by-hop options are read before the fragment header in any case. */
	if (front[0] != X_HOP || front[1])
		m->marks |= MARK_DEEP;
	else if (stated == 6)
		m->marks |= MARK_FAILSAFE;
	if (kind == X_HOP || kind == X_FRAGMENT)
		kind = X_OPTIONS;
	stated = stated ?: kind;
	chain_begin(&c);
	if (kind == X_OPTIONS) {
		put_two_faced(&c.b, l.proto, stated == 6 ? PORT_FAILSAFE : PORT_FREE);
	} else {
		chain_add(&c, &(struct ext[]){ ext_of(kind) }[0]);
		chain_link(&c, l.proto);
	}
	b.n = 0;
	put(&b, c.b.b, c.b.n);
	put(&b, l.b.b, l.b.n);
	size = rest / 12 ? b.n * 2 / 3 & ~7U : b.n;
	for (u32 at = 0; at < b.n; at += n) {
		n = at ? b.n - at : size;
		chain_begin(&c);
		for (u32 i = 0; i < 3 && (!i || front[i]); i++)
			chain_add(&c, &(struct ext[]){ ext_of(front[i]) }[0]);
		chain_add(&c, &(struct ext){ .kind = X_FRAGMENT,
					     .frag = at | (at + n < b.n),
					     .id = m->id + 7 });
		chain_link(&c, stated);
		put(&c.b, b.b + at, n);
		send6(m, &(struct ip6){ .next = c.first }, c.b.b, c.b.n);
	}
	if (size < b.n)
		m->marks |= MARK_MEMORY | MARK_ODD_FIRST;
}

#endif
