// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * escape - judges the limiter by Linux.
 *
 *     escape --client NS --free NS --held NS [--seed N] [--times N] [--class NAME] [--case N]
 *     escape --sim ...         only through dp_sim, no root: for coverage
 *
 * Every case is sent to two equal namespaces. In one nothing limits: the frames that its sockets
 * receive and its TCP and ICMP answer are those that Linux delivers. In the other the limiter
 * stands in front, and the case comes from a source of each group below. A failure is
 *   - a frame that was delivered though the limit that it meets, by the port, protocol or source of
 *     what the socket received, is spent;
 *   - one that was not, though no limit that it could meet is spent (but see may_drop());
 *   - a frame that no reason counts, or a reason that counts two;
 *   - frames for which dp_sim has other reasons than the program.
 */
#include <getopt.h>

#include "escape/floods.h"
#include "escape/simulated.h"

/* ------------------------------------------------------------------ the verdict */

static const char *got_text(const struct got *g, char *text, size_t size)
{
	static const char *const names[] = { "udp", "raw", "syn-ack", "rst", "echo" };

	snprintf(text, size, "%s %s %u length %u", g->v6 ? "ipv6" : "ipv4", names[g->kind], g->what,
		 g->length);
	return text;
}

static void failed(struct run *r, const struct test_case *c, const char *what, u32 group,
		   const struct got *g)
{
	char text[64] = "";

	r->failures++;
	if (r->class_failures[c->class]++ >= 5 && !r->verbose)
		return;
	printf("# %s case %u (--seed %llu --class %s --case %u): %s, group %u%s%s, marks 0x%x\n",
	       CLASSES[c->class].name, c->index, r->seed, CLASSES[c->class].name, c->index, what,
	       group, g ? ": " : "", g ? got_text(g, text, sizeof(text)) : "", c->marks);
}

static bool same(const struct got *a, const struct got *b)
{
	return a->kind == b->kind && a->v6 == b->v6 && a->what == b->what && a->length == b->length;
}

static bool has(const struct outcome *o, const struct got *g)
{
	for (u32 i = 0; i < o->count; i++)
		if (same(&o->got[i], g))
			return true;
	return false;
}

static void judge_case(struct run *r, const struct test_case *c, const struct outcome *o)
{
	const struct outcome *truth = &o[G_FREE];
	bool again = false;

	r->delivered += truth->count > 0;
	for (u32 group = 1; group < G_COUNT; group++) {
		const struct outcome *held = &o[group];
		bool could = false;

		if (!is_sent(group, c))
			continue;
		for (u32 i = 0; i < held->count; i++) {
			if (is_over(group, c, &held->got[i]))
				failed(r, c, "delivered over a limit", group, &held->got[i]);
			else if (!has(truth, &held->got[i]) && !(c->marks & MARK_CONTRADICTION))
				failed(r, c, "delivered only behind the limiter", group,
				       &held->got[i]);
		}
		for (u32 i = 0; i < truth->count; i++)
			could |= could_be_over(group, c, &truth->got[i]);
		for (u32 i = 0; i < truth->count && !could; i++) {
			if (has(held, &truth->got[i]) || is_on_the_way(&truth->got[i]))
				continue;
			if (may_drop(group, c))
				r->excepted++;
			else if (c->marks & MARK_MEMORY && c->tries < TRIES - 1)
				again = true;
			else
				failed(r, c, "not delivered", group, &truth->got[i]);
		}
	}
	if (again && r->again_count < sizeof(r->again) / sizeof(*r->again)) {
		r->again[r->again_count] = *c;
		r->again[r->again_count++].tries++;
	}
}

/* ------------------------------------------------------------------ sending a batch */

static void to_sim(struct run *r, u32 iface, u8 *bytes, u32 len)
{
	static struct frame f;

	memcpy(f.data, bytes, len);
	f.length = len;
	target_flood(r->sim, 0, iface, &f, 1);
	if (r->sim_step_ns)
		target_set_time(r->sim, target_time(r->sim) + r->sim_step_ns);
}

static void compare_reasons(struct run *r, const struct test_case *first)
{
	struct sl_iface_stats now, sim;
	u64 sum = 0;
	static struct sl_iface_stats sim_before;

	target_dp(r->bpf)->ops->iface_stats(target_dp(r->bpf), 0, &now);
	target_dp(r->sim)->ops->iface_stats(target_dp(r->sim), 0, &sim);
	for (u32 reason = 0; reason < SL_R_COUNT; reason++) {
		for (u32 action = 0; action < SL_ACT_COUNT; action++) {
			u64 a = now.packets[reason][action] - r->before.packets[reason][action];
			u64 b = sim.packets[reason][action] - sim_before.packets[reason][action];

			sum += now.packets[reason][action];
			/* Of echo requests only the program's reasons are known. */
			if (reason == SL_R_NO_MATCH && action == SL_ACT_PASS)
				continue;
			if (a == b)
				continue;
			r->failures++;
			printf("# cases from %s %u: reason %s action %s: %llu"
			       " by the program, %llu by dp_sim\n",
			       CLASSES[first->class].name, first->index, reason_name(reason),
			       action_name(action), a, b);
		}
	}
	if (sum != r->stack[1].sent) {
		r->failures++;
		printf("# %llu frames sent, %llu counted by reasons\n", r->stack[1].sent, sum);
	}
	r->before = now;
	sim_before = sim;
}

static void run_batch(struct run *r, struct test_case *cases, u32 count)
{
	static struct outcome outcomes[BATCH * GROUPS];
	static struct queue queue[2];
	struct tally tally = { .first = cases[0].id, .count = count, .outcome = outcomes };
	struct maker *m = &r->maker;

	memset(outcomes, 0, sizeof(outcomes));
	if (!r->sim_only)
		target_set_time(r->sim, mono_ns());
	for (u32 i = 0; i < count; i++) {
		for (u32 group = 0; group < G_COUNT; group++) {
			u32 which = group != G_FREE;

			source_of(group, cases[i].id, m->src4, m->src6);
			case_make(m, cases[i].class, cases[i].index, r->seed);
			cases[i].need = m->need;
			cases[i].proto = m->proto;
			cases[i].marks = m->marks;
			cases[i].final = m->final;
			cases[i].stated = m->stated;
			if (!is_sent(group, &cases[i])) {
				m->used = m->count ? m->at[0] : m->used;
				continue;
			}
			for (u32 k = 0; k < m->count; k++) {
				struct queue *q = &queue[which];

				if (which)
					to_sim(r, 0, m->arena + m->at[k], m->len[k]);
				r->frames++;
				if (r->sim_only)
					continue;
				q->bytes[q->count] = m->arena + m->at[k];
				q->len[q->count++] = m->len[k];
				if (q->count == 64)
					flush(r, which, q, &tally);
			}
			if (m->used > m->size / 2 || r->sim_only) {
				flush(r, 0, &queue[0], &tally);
				flush(r, 1, &queue[1], &tally);
				m->used = 0;
			}
		}
	}
	r->cases += count;
	if (r->sim_only)
		return;
	flush(r, 0, &queue[0], &tally);
	flush(r, 1, &queue[1], &tally);
	m->used = 0;
	for (u32 i = 0; i < count; i++)
		judge_case(r, &cases[i], &outcomes[i * GROUPS]);
	compare_reasons(r, &cases[0]);
}

/* Empties the budgets that all sources share, each by a packet that every stack reads alike. */
static void spend(struct run *r)
{
	static struct l4 l;
	static struct outcome none[GROUPS];
	struct tally tally = { .count = 1, .outcome = none };
	struct maker *m = &r->maker;

	memcpy(m->mac, WIRE_MAC_SERVER, 6);
	for (u32 group = G_PORT; group < G_COUNT; group++) {
		u8 *bytes;

		m->count = 0;
		m->tags = group == G_VLAN;
		m->tci[0] = VLAN_LIMITED;
		source_of(group, 0, m->src4, m->src6);
		if (group == G_PORT)
			l4_udp(m, false, &l, PORT_LIMITED, 10);
		else if (group == G_SYN || group == G_FLAGS)
			l4_tcp(m, false, &l, PORT_TCP_LIMITED, 2, 5, 0);
		else if (group == G_PROTO)
			l4_other(&l, 253, 10);
		else if (group == G_HEADERS)
			l4_other(&l, 60, 10);
		else if (group == G_SHORT)
			l4_udp(m, false, &l, PORT_SHORT, 10);
		else if (group == G_ECHO)
			l4_icmp(m, false, &l, 8, 0, 10);
		else if (group == G_PASS)
			l4_other(&l, 253, 10);
		else
			l4_udp(m, false, &l, PORT_FREE, 10);
		send4(m, &(struct ip4){ .proto = l.proto }, l.b.b, l.b.n);
		bytes = m->arena + m->at[0];
		to_sim(r, 0, bytes, m->len[0]);
		if (!r->sim_only)
			stack_send(&r->stack[1], &bytes, &m->len[0], 1);
	}
	m->tags = 0;
	if (!r->sim_only)
		stack_settle(&r->stack[1], &tally, m, ++r->marker);
	m->used = 0;
}

static void run_classes(struct run *r)
{
	static struct test_case batch[BATCH];
	u32 count = 0;

	for (u32 class = 0; class < CLASS_COUNT; class ++) {
		const struct case_class *k = &CLASSES[class];
		u32 last = k->listed + k->random * r->times;

		if (r->only_class ? strcmp(r->only_class, k->name) != 0 : !k->on && !r->all_classes)
			continue;
		for (u32 i = 0; i < last; i++) {
			if (r->only_case >= 0 && i != r->only_case)
				continue;
			batch[count++] = (struct test_case){
				.class = class, .index = i, .id = r->next_id++, .turn = i + r->seed
			};
			if (count == BATCH) {
				run_batch(r, batch, count);
				count = 0;
			}
		}
		if (count)
			run_batch(r, batch, count);
		while (r->again_count) {
			count = r->again_count < BATCH ? r->again_count : BATCH;
			r->again_count -= count;
			for (u32 i = 0; i < count; i++) {
				batch[i] = r->again[r->again_count + i];
				batch[i].id = r->next_id++;
			}
			run_batch(r, batch, count);
			r->repeated += count;
		}
		count = 0;
	}
}

/* ------------------------------------------------------------------ main */

/* However it ends: no pins are left. */
static struct target *opened;

static void take_away(void)
{
	target_close(opened);
}

static void begin(struct run *r)
{
	struct dp_attachment at;
	struct sl_err err = {};
	cpu_set_t set;

	r->maker.simulated = r->sim_only;
	r->maker.id = mix(r->seed) & 0xfff0;
	r->maker.arena = malloc(ARENA);
	r->maker.size = ARENA;
	if (!r->maker.arena || target_open_sized(TARGET_SIM, BUCKETS, &r->sim, &err) ||
	    target_policy(r->sim, POLICY, &err))
		goto fail;
	if (r->sim_only)
		return;
	/* All on one CPU: frames are judged in the order in which they are sent. */
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		stack_die("sched_setaffinity");
	stack_open(&r->stack[0], "without the limiter", r->client, "c1", r->free);
	stack_open(&r->stack[1], "behind the limiter", r->client, "c0", r->held);
	enter(r->held);
	if (target_open_sized(TARGET_BPF, BUCKETS, &r->bpf, &err))
		goto fail;
	opened = r->bpf;
	atexit(take_away);
	/* The same sets for the same keys. */
	target_dp(r->bpf)->state->seed = target_dp(r->sim)->state->seed;
	if (target_policy(r->bpf, POLICY, &err))
		goto fail;
	if (dp_attach(target_dp(r->bpf), "s0", MODE_NATIVE, 0, &at, &err))
		goto fail;
	return;
fail:
	fprintf(stderr, "escape: %s\n", err.message);
	exit(2);
}

static void usage(void)
{
	fprintf(stderr,
		"usage: escape --client NS --free NS --held NS | --sim\n"
		"  --seed N --times N --class NAME --case N --all --verbose --first SOURCE\n");
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "client", 1, NULL, 'c' }, { "free", 1, NULL, 'f' },  { "held", 1, NULL, 'h' },
		{ "seed", 1, NULL, 's' },   { "times", 1, NULL, 't' }, { "class", 1, NULL, 'k' },
		{ "case", 1, NULL, 'i' },   { "sim", 0, NULL, 'S' },   { "verbose", 0, NULL, 'v' },
		{ "all", 0, NULL, 'a' },    { "first", 1, NULL, 'F' }, { NULL, 0, NULL, 0 },
	};
	static struct run r = { .times = 1, .only_case = -1, .next_id = 1 };
	const char *seed = getenv("SLUICE_SEED");
	int option;

	r.seed = seed && *seed ? strtoull(seed, NULL, 0) : mono_ns() % 1000000007;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			r.client = optarg;
			break;
		case 'f':
			r.free = optarg;
			break;
		case 'h':
			r.held = optarg;
			break;
		case 's':
			r.seed = strtoull(optarg, NULL, 0);
			break;
		case 't':
			r.times = atoi(optarg);
			break;
		case 'k':
			r.only_class = optarg;
			break;
		case 'i':
			r.only_case = atoi(optarg);
			break;
		case 'S':
			r.sim_only = true;
			break;
		case 'v':
			r.verbose = true;
			break;
		case 'F':
			r.next_id = atoi(optarg);
			break;
		case 'a':
			r.all_classes = true;
			break;
		default:
			usage();
		}
	}
	if (!r.sim_only && (!r.client || !r.free || !r.held))
		usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("# SLUICE_SEED=%llu\n", r.seed);
	begin(&r);
	spend(&r);
	if (r.sim_only) {
		run_simulated(&r);
	} else {
		run_classes(&r);
		run_floods(&r);
	}
	for (u32 i = 0; i < CLASS_COUNT; i++)
		if (r.class_failures[i])
			printf("# %s: %llu failures\n", CLASSES[i].name, r.class_failures[i]);
	printf("# %llu cases, %u of them again, %llu delivered, %llu frames, %llu excepted, %llu failures\n",
	       r.cases, r.repeated, r.delivered, r.frames, r.excepted, r.failures);
	target_close(r.sim);
	return r.failures ? 1 : 0;
}
