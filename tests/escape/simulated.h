/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * simulated.h - the same frames through dp_sim alone, by other rule sets and memory that is in
 * parts, and frames that no wire carries. Nothing judges them: they are for sanitizers and
 * coverage.
 */
#ifndef TESTS_ESCAPE_SIMULATED_H
#define TESTS_ESCAPE_SIMULATED_H

#include "escape/run.h"
#include "packet/dataplane/dp_push.h"
#include "packet/dataplane/dp_sim.h"

/* escape.c */
static void run_classes(struct run *r);
static void to_sim(struct run *r, u32 iface, u8 *bytes, u32 len);

static const char *const SIM_POLICIES[] = {
	POLICY,
	"limits:\n"
	"- {name: port, match: {proto: udp, dport: 53}, per: [], rate: 20 packets/s, accounting: exact}\n",
	"fragments: drop\n"
	"limits:\n"
	"- {name: port, match: {proto: udp, dport: 53}, rate: 2 packets/s}\n",
	"on_parse_error: drop\n"
	"limits:\n"
	"- {name: syn, match: {proto: tcp}, rate: 1 connections/s}\n",
	"limits: []\n",
};
#define SIM_POLICY_COUNT (sizeof(SIM_POLICIES) / sizeof(*SIM_POLICIES))

/* Super-packets as the kernel makes them (BIG TCP): longer than an IP length field. */
static void sim_super(struct run *r)
{
	static u32 words[17501];
	u8 *f = (u8 *)words + 2;
	const u32 size = sizeof(words) - 2;
	static const u8 addresses[8] = { 10, 16, 0, 1, 203, 0, 113, 10 };
	struct dp *dp = target_dp(r->sim);

	memset(f, 0, size);
	f[12] = 0x08;
	f[14] = 0x45;
	f[23] = 6;
	memcpy(f + 26, addresses, 8);
	f[46] = 0x50;
	dp_sim_packet(dp, 0, 0, f, size);
	dp_sim_packet(dp, 0, 0, f, 1000);
	memset(f, 0, size);
	f[12] = 0x86;
	f[13] = 0xdd;
	f[14] = 0x60;
	f[20] = 6;
	memcpy(f + 22, "\x20\x01\x0d\xb9\x10", 5);
	f[66] = 0x50;
	dp_sim_packet(dp, 0, 0, f, size);
	dp_sim_packet(dp, 0, 0, f, 1000);
	for (u32 n = 0; n < 16; n++)
		dp_sim_packet(dp, 0, 0, f, n);
}

/* One source is shut out, so that its fragments' firsts are dropped by that. */
static void sim_push(struct run *r)
{
	struct dp_push push = { .kind = SL_PUSH_DROP, .until_ns = ~0ULL >> 1 };
	const char *reason;

	if (sl_prefix_parse("10.16.0.0/12", &push.src, &reason) ||
	    dp_push_put(target_dp(r->sim), &push))
		exit(2);
}

/* Firsts of one id that differ in one thing each, and their rest. */
static void sim_contradictions(struct run *r)
{
	static const struct {
		u8 proto, b0, b1, b3, flags;
	} as[] = {
		{ 17, 0, 9, 9, 0 }, { 17, 0, 9, 8, 0 },	 { 17, 1, 9, 9, 0 },  { 6, 0, 9, 9, 2 },
		{ 6, 0, 9, 9, 16 }, { 58, 8, 0, 0, 0 },	 { 58, 8, 1, 0, 0 },  { 58, 9, 0, 0, 0 },
		{ 1, 8, 0, 0, 0 },  { 253, 0, 9, 9, 0 }, { 136, 0, 9, 9, 0 },
	};
	static struct pieces p;
	struct maker *m = &r->maker;
	u32 n = sizeof(as) / sizeof(*as);

	for (u32 i = 0; i < n * n * 3; i++) {
		source_of(G_PORT, r->next_id++, m->src4, m->src6);
		case_begin(m);
		m->rng = i;
		pieces_of(m, &p, true, FINAL_UDP_FREE, 24, 3);
		for (u32 k = 0; k < 2; k++) {
			u32 which = k ? i % n : i / n % n;

			memset(p.whole.b, 0, 24);
			p.next = as[which].proto;
			p.whole.b[0] = as[which].b0;
			p.whole.b[1] = as[which].b1;
			p.whole.b[3] = as[which].b3;
			p.whole.b[4] = 0;
			p.whole.b[5] = 24;
			p.whole.b[12] = p.next == 6 ? 0x50 : 0;
			p.whole.b[13] = as[which].flags;
			send_piece(m, &p, 0);
			if (i / n / n != k)
				send_piece(m, &p, 1);
		}
		send_piece(m, &p, 2);
		/* Another datagram between the two, in plain order; a first with nothing in it. */
		p.id++;
		send_piece(m, &p, 0);
		send_piece(m, &p, 1);
		p.id++;
		p.next = 253;
		send_bytes(m, &p, 0, true, p.whole.b, 0);
		p.v6 = false;
		send_bytes(m, &p, 0, true, p.whole.b, 0);
		p.v6 = true;
		/* The same over links that differ. */
		m->tags = 1 + i % 5;
		m->ad = i & 1;
		send_piece(m, &p, 0);
		send_piece(m, &p, 1);
		for (u32 k = 0; k < m->count; k++)
			to_sim(r, 0, m->arena + m->at[k], m->len[k]);
		m->used = 0;
	}
}

/* More firsts than are remembered, of IPv4 and then of IPv6; the former end first. */
static void sim_memory(struct run *r)
{
	static struct pieces p;
	struct maker *m = &r->maker;

	for (u32 i = 0; i < 60000; i++) {
		source_of(G_AMPLE, r->next_id++, m->src4, m->src6);
		case_begin(m);
		if (i == 55000)
			target_set_time(r->sim, target_time(r->sim) + 40 * SL_NS_PER_SEC);
		pieces_of(m, &p, i >= 50000, FINAL_UDP_FREE, 24, 2);
		send_piece(m, &p, 0);
		if (i >= 50000)
			send_piece(m, &p, 1);
		for (u32 k = 0; k < m->count; k++)
			to_sim(r, 0, m->arena + m->at[k], m->len[k]);
		m->used = 0;
	}
}

/* Sources that a limit banned. */
static void sim_ban(struct run *r)
{
	struct sl_err err = {};
	struct dp_ban ban = { .state.until_ns = ~0ULL >> 1 };
	struct sl_prefix prefix;
	const char *reason;

	if (sl_prefix_parse("10.32.0.0/12", &prefix, &reason))
		exit(2);
	ban.key.addr = prefix.addr;
	ban.key.len = prefix.len;
	ban.key.family = prefix.family;
	if (dp_ban_insert(target_dp(r->sim), &ban) || target_apply(r->sim, &err))
		exit(2);
}

static void run_simulated(struct run *r)
{
	struct sl_err err = {};

	for (u32 i = 0; i < SIM_POLICY_COUNT * 2; i++) {
		target_reset(r->sim);
		if (target_policy(r->sim, SIM_POLICIES[i / 2], &err)) {
			fprintf(stderr, "escape: %s\n", err.message);
			exit(2);
		}
		target_set_linear(r->sim, i & 1 ? 14 + 40 : 0);
		if (i / 2 == 1) {
			sim_push(r);
			sim_ban(r);
		}
		run_classes(r);
		sim_super(r);
		/* Once more when all firsts are forgotten, and slowly. */
		r->next_id = 1;
		target_set_time(r->sim, target_time(r->sim) + 100 * SL_NS_PER_SEC);
		r->sim_step_ns = i & 1 ? 1500 * 1000000ULL : 0;
		run_classes(r);
		sim_contradictions(r);
		r->sim_step_ns = 0;
		sim_contradictions(r);
		sim_memory(r);
		r->sim_step_ns = 0;
	}
}

#endif
