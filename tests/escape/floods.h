/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* floods.h - packets that pass whatever the limits have a rate of their own: path-MTU, failsafe
 * ports. */
#ifndef TESTS_ESCAPE_FLOODS_H
#define TESTS_ESCAPE_FLOODS_H

#include "escape/run.h"

struct flood {
	const char *name;
	void (*make)(struct maker *m);
	u32 frames, sources;
	enum got_kind kind; /* what Linux makes of one */
	double pps;	    /* at most so many pass, and a second's worth at once */
	u32 least;	    /* those before may have used a part of what they share */
};

static void path_mtu4(struct maker *m, u32 bytes)
{
	static struct l4 l;

	l4_icmp(m, false, &l, 3, 4, bytes - 28);
	send4(m, &(struct ip4){ .proto = 1 }, l.b.b, l.b.n);
}

static void flood_path_mtu(struct maker *m)
{
	path_mtu4(m, 576);
}

static void flood_path_mtu_long(struct maker *m)
{
	path_mtu4(m, 1428);
}

static void flood_path_mtu6(struct maker *m)
{
	static struct l4 l;

	l4_icmp(m, true, &l, 2, 0, 1280 - 48);
	send6(m, &(struct ip6){ .next = 58 }, l.b.b, l.b.n);
}

static void flood_tcp(struct maker *m, u32 flags)
{
	static struct l4 l;

	l4_tcp(m, false, &l, PORT_FAILSAFE, flags, 5, 0);
	send4(m, &(struct ip4){ .proto = 6 }, l.b.b, l.b.n);
}

static void flood_ack(struct maker *m)
{
	flood_tcp(m, 0x10);
}

static void flood_syn(struct maker *m)
{
	flood_tcp(m, 0x02);
}

/* POLICY: essential 100/s; failsafe_rate 10/s, other TCP ten times that, a hundred in sum. */
static const struct flood FLOODS[] = {
	{ "path-mtu-long", flood_path_mtu_long, 1000, 1000, GOT_RAW, 0, 0 },
	{ "path-mtu", flood_path_mtu, 3000, 3000, GOT_RAW, 100, 100 },
	{ "path-mtu6", flood_path_mtu6, 3000, 3000, GOT_RAW, 100, 0 },
	{ "failsafe-ack", flood_ack, 6000, 1, GOT_RST, 100, 100 },
	{ "failsafe-sum", flood_ack, 6000, 6000, GOT_RST, 1000, 800 },
	{ "failsafe-syn", flood_syn, 1000, 1, GOT_SYNACK, 10, 10 },
};
#define FLOOD_COUNT (sizeof(FLOODS) / sizeof(*FLOODS))

static void run_flood(struct run *r, const struct flood *f)
{
	struct tally tally = {};
	struct queue q = {};
	struct maker *m = &r->maker;
	u64 start = mono_ns();
	double most;
	u32 passed;

	for (u32 i = 0; i < f->frames; i++) {
		source_of(G_ALL, r->next_id + i % f->sources, m->src4, m->src6);
		case_begin(m);
		m->number = i;
		f->make(m);
		q.bytes[q.count] = m->arena + m->at[0];
		q.len[q.count++] = m->len[0];
		if (q.count == 64 || i + 1 == f->frames) {
			flush(r, 1, &q, &tally);
			m->used = 0;
		}
	}
	r->next_id += f->sources;
	r->frames += f->frames;
	most = f->pps ? f->pps * (1 + (mono_ns() - start) / 1e9) * 1.01 + 2 : 0;
	passed = tally.kind[f->kind];
	if (passed > most || passed < f->least) {
		r->failures++;
		printf("# flood %s: %u of %u passed, not %u to %.0f\n", f->name, passed, f->frames,
		       f->least, most);
	}
	/* dp_sim has no sockets, and no clock that goes on. */
	target_dp(r->bpf)->ops->iface_stats(target_dp(r->bpf), 0, &r->before);
}

/* Sends the frames of the arena. */
static void flood_send(struct run *r, struct queue *q, struct tally *t)
{
	struct maker *m = &r->maker;

	for (u32 k = 0; k < m->count; k++) {
		q->bytes[q->count] = m->arena + m->at[k];
		q->len[q->count++] = m->len[k];
		r->frames++;
		if (q->count == 64) {
			flush(r, 1, q, t);
			m->used = 0;
		}
	}
	m->count = 0;
}

#define MEMORY_FLOOD 40000
#define MEMORY_CASES 64

/*
 * Decoys and the fragments under them; then more first fragments than are remembered; then the true
 * firsts, and the same with decoys that find no place.
 */
static void run_memory(struct run *r)
{
	static const char *const orders[] = { "o1123", "", "0", "o11230" };
	struct tally tally = {};
	struct queue q = {};
	struct maker *m = &r->maker;
	const u32 first[] = { r->next_id, r->next_id + MEMORY_CASES, r->next_id,
			      r->next_id + MEMORY_CASES };

	for (u32 step = 0; step < 4; step++) {
		u32 count = step == 1 ? MEMORY_FLOOD : MEMORY_CASES;

		for (u32 i = 0; i < count; i++) {
			source_of(step == 1 ? G_AMPLE : G_BUDGET, first[step] + i, m->src4,
				  m->src6);
			case_begin(m);
			if (step == 1) {
				static struct l4 l;

				l4_udp(m, false, &l, PORT_FREE, 40);
				send4(m, &(struct ip4){ .proto = 17, .id = m->id, .more = true },
				      l.b.b, l.b.n);
			} else {
				play_overlap(m, i & 1, FINAL_UDP_LIMITED, orders[step]);
			}
			flood_send(r, &q, &tally);
		}
	}
	r->next_id += MEMORY_CASES + MEMORY_FLOOD;
	flush(r, 1, &q, &tally);
	m->used = 0;
	if (tally.kind[GOT_UDP]) {
		r->failures++;
		printf("# flood memory: %u of %u datagrams passed, not 0\n", tally.kind[GOT_UDP],
		       2 * MEMORY_CASES);
	}
	target_dp(r->bpf)->ops->iface_stats(target_dp(r->bpf), 0, &r->before);
}

static void run_floods(struct run *r)
{
	for (u32 i = 0; i < FLOOD_COUNT; i++)
		if (!r->only_class || !strcmp(r->only_class, FLOODS[i].name))
			run_flood(r, &FLOODS[i]);
	/* The last: from here on no first is remembered. */
	if (!r->only_class || !strcmp(r->only_class, "memory"))
		run_memory(r);
}

#endif
