// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cost - what a packet of one busy source costs, as a multiple of the floor (floor.bpf.c).
 *
 *     cost PINS [ROUNDS [WORD]]    the cases below whose name contains WORD; one line each:
 *                                  name, ns, multiple: median, least, most
 *
 * The program is the shipped one, behind a stub. In each round all of them take turns, by
 * BPF_PROG_TEST_RUN; a round gives (case - bare) / (floor - bare), so harness and XDP_DROP do not
 * count. PINS is a directory on bpffs that is made, and removed at the end.
 *
 *     cost PINS ROUNDS two-cpus    the same packets on two CPUs at once, all passing: name, fill of
 * the bucket, ns of a packet alone, on both, and how many times one CPU both are: median, least,
 * most
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "tests/bench/bench.h"
#include "tests/bench/floor.skel.h"

#define REPEAT 500000
#define BUCKETS 10000
#define ROUNDS_MAX 99
#define OTHERS 10000 /* prefixes on lists, bans, push-downs of other sources */
#define HOT "10.0.0.2"
#define PORT 1000

/* What is configured beside the limit that the packets meet. */
enum beside {
	WITH_LIMITS = 1 << 0,	 /* 256 in all, each for one port */
	WITH_PREFIXES = 1 << 1,	 /* 100k of them, over all limits */
	WITH_OVERRIDES = 1 << 2, /* 100k, of other sources */
	WITH_LISTS = 1 << 3,
	WITH_BANS = 1 << 4,
	WITH_PUSHES = 1 << 5,
	WITH_SESSIONS = 1 << 6,
	WITH_EVENTS = 1 << 7, /* as events.rate: 1000 on two CPUs, and they are read */
};

static const struct cost_case {
	const char *name, *limit; /* the keys of the limit */
	enum sl_action action;	  /* that each packet must get */
	unsigned with;		  /* enum beside, or-ed */
	u32 same;		  /* limits that each packet meets; 0: one */
	bool random_ports, tcp, v6;
} cases[] = {
	{ "refused", "rate: 10 packets/s", .action = SL_ACT_DROP },
	{ "refused-ports", "rate: 10 packets/s", .action = SL_ACT_DROP, .random_ports = true },
	{ "refused-1000", "rate: 1000 packets/s", .action = SL_ACT_DROP },
	{ "refused-v6", "rate: 10 packets/s", .action = SL_ACT_DROP, .v6 = true },
	{ "refused-tcp", "rate: 10 packets/s", .action = SL_ACT_DROP, .tcp = true },
	{ "refused-256", "rate: 10 packets/s", .action = SL_ACT_DROP, .with = WITH_LIMITS },
	{ "refused-256-ports", "rate: 10 packets/s", .action = SL_ACT_DROP, .with = WITH_LIMITS,
	  .random_ports = true },
	{ "refused-256-100k", "rate: 10 packets/s", .action = SL_ACT_DROP,
	  .with = WITH_LIMITS | WITH_PREFIXES },
	{ "refused-overrides", "rate: 10 packets/s", .action = SL_ACT_DROP,
	  .with = WITH_OVERRIDES },
	{ "refused-lists", "rate: 10 packets/s", .action = SL_ACT_DROP, .with = WITH_LISTS },
	{ "refused-bans", "rate: 10 packets/s", .action = SL_ACT_DROP, .with = WITH_BANS },
	{ "refused-pushes", "rate: 10 packets/s", .action = SL_ACT_DROP, .with = WITH_PUSHES },
	{ "refused-events", "rate: 10 packets/s", .action = SL_ACT_DROP, .with = WITH_EVENTS },
	{ "refused-sessions", "rate: 10 packets/s", .action = SL_ACT_DROP, .with = WITH_SESSIONS,
	  .tcp = true },
	{ "refused-all", "rate: 10 packets/s", .action = SL_ACT_DROP,
	  .with = WITH_LIMITS | WITH_PREFIXES | WITH_OVERRIDES | WITH_LISTS | WITH_BANS |
		  WITH_PUSHES | WITH_SESSIONS,
	  .tcp = true, .random_ports = true },
	{ "refused-4", "rate: 10 packets/s", .action = SL_ACT_DROP, .same = 4 },
	{ "passed-exact", "rate: 100000000 packets/s\n    accounting: exact",
	  .action = SL_ACT_PASS },
	{ "passed", "rate: 100000000 packets/s", .action = SL_ACT_PASS },
	{ "passed-bytes", "rate: 100000000000 bytes/s", .action = SL_ACT_PASS },
	{ "passed-4", "rate: 100000000 packets/s", .action = SL_ACT_PASS, .same = 4 },
	{ "passed-4-exact", "rate: 100000000 packets/s\n    accounting: exact",
	  .action = SL_ACT_PASS, .same = 4 },
	{ "passed-all", "rate: 100000000 packets/s", .action = SL_ACT_PASS,
	  .with = WITH_LIMITS | WITH_PREFIXES | WITH_OVERRIDES | WITH_LISTS | WITH_BANS |
		  WITH_PUSHES | WITH_SESSIONS,
	  .tcp = true, .random_ports = true },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

/* A program that is measured. */
struct contestant {
	struct dp *dp; /* NULL: bare or floor */
	struct floor_bpf *skel;
	struct bpf_program *entry;
	int prog_fd;
	char pins[256];
	double ns[ROUNDS_MAX];
};

/* ------------------------------------------------------------------ rule sets */

/* Number k of prefixes that do not hold the source: /28 to /32, each in a /28 of its own. */
static void print_prefix(FILE *out, u32 k)
{
	u32 addr = 0xc0000000U + (k << 4);

	fprintf(out, "%u.%u.%u.%u/%u", addr >> 24, addr >> 16 & 255, addr >> 8 & 255, addr & 255,
		28 + k % 5);
}

static void print_list(FILE *out, const char *key, u32 from, u32 count)
{
	fprintf(out, "%s:\n", key);
	for (u32 k = from; k < from + count; k++) {
		fprintf(out, "  - ");
		print_prefix(out, k);
		fprintf(out, "\n");
	}
}

static void print_limit(FILE *out, const struct cost_case *c, u32 i, u32 limits)
{
	fprintf(out, "  - name: limit-%u\n    %s\n", i, c->limit);
	if (c->with & WITH_LIMITS) {
		fprintf(out, "    match:\n      dport: %u\n", PORT + i);
		if (c->with & WITH_PREFIXES) {
			fprintf(out, "      src: [%s/24", i ? "10.9.9.0" : "10.0.0.0");
			for (u32 k = i; k < 100000; k += limits) {
				fprintf(out, ", ");
				print_prefix(out, 2 * OTHERS + k);
			}
			fprintf(out, "]\n");
		}
	}
	if ((c->with & WITH_OVERRIDES) && !i) {
		fprintf(out, "    overrides:\n");
		for (u32 k = 0; k < 100000; k++) {
			u32 addr = 0xb0000000U + k * 16;

			fprintf(out, "    - {src: %u.%u.%u.%u, rate: %u packets/s}\n", addr >> 24,
				addr >> 16 & 255, addr >> 8 & 255, addr & 255, 1000 + k);
		}
	}
	if ((c->with & WITH_BANS) && i == limits - 1 && limits > 1)
		fprintf(out, "    ban: {after: 1000 drops/10s, for: 5m, spoofable: true}\n");
}

static char *rules_text(const struct cost_case *c)
{
	u32 limits = c->with & WITH_LIMITS ? 256 : c->same ? c->same : 1;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (c->with & WITH_LISTS) {
		print_list(out, "block", 0, OTHERS);
		print_list(out, "exempt", OTHERS, OTHERS);
	}
	fprintf(out, "limits:\n");
	for (u32 i = 0; i < limits; i++)
		print_limit(out, c, i, limits);
	if ((c->with & WITH_BANS) && limits == 1)
		fprintf(out, "  - name: banning\n    match: {dport: 9}\n    rate: 10 packets/s\n"
			     "    ban: {after: 1000 drops/10s, for: 5m, spoofable: true}\n");
	fclose(out);
	return text;
}

static void apply(struct dp *dp, const struct cost_case *c)
{
	struct sl_session sessions[SL_SESSIONS_MAX];
	char *text = rules_text(c);

	for (u32 i = 0; i < SL_SESSIONS_MAX; i++)
		sessions[i] = (struct sl_session){ .src.hi = (0x0b000001ULL + i) << 32,
						   .used = 1,
						   .dst.hi = 0x0a010001ULL << 32,
						   .dport = 22,
						   .sport = 40000 + i };
	bench_apply(dp, c->name, text, sessions, c->with & WITH_SESSIONS ? SL_SESSIONS_MAX : 0);
	free(text);
}

/* Bans and push-downs of other sources. */
static void put_events(struct dp *dp, const struct cost_case *c)
{
	if (c->with & WITH_EVENTS)
		dp->event_switch->per_turn = 67;
	for (u32 k = 0; k < OTHERS; k++) {
		const struct sl_addr addr = { (u64)(0xa0000000U + k) << 32, 0 };
		const struct dp_ban ban = { .key = { addr, SL_V4, 32 },
					    .state = { .until_ns = ~0ULL >> 1 } };
		const struct dp_push push = { .src = { addr, SL_V4, 32 },
					      .kind = SL_PUSH_DROP,
					      .until_ns = ~0ULL >> 1 };

		if ((c->with & WITH_BANS) && dp_ban_insert(dp, &ban))
			die("bans", NULL);
		if ((c->with & WITH_PUSHES) && dp_push_put(dp, &push))
			die("push-downs", NULL);
	}
}

/* ------------------------------------------------------------------ the contestants */

static struct floor_bpf *load_floor(void)
{
	struct floor_bpf *skel = floor_bpf__open();
	struct bpf_program *program;

	if (!skel)
		die("floor", NULL);
	/* As dp_bpf.c: program arrays hold programs of one attach type. */
	bpf_object__for_each_program(program, skel->obj)
		bpf_program__set_expected_attach_type(program, 0);
	if (floor_bpf__load(skel))
		die("floor", NULL);
	return skel;
}

static void jump_to(struct contestant *one, int prog_fd)
{
	u32 zero = 0;

	if (bpf_map_update_elem(bpf_map__fd(one->skel->maps.progs), &zero, &prog_fd, BPF_ANY))
		die("progs", NULL);
	one->entry = one->skel->progs.stub;
}

static void open_case(struct contestant *one, const struct cost_case *c, const char *dir)
{
	struct sl_err err;

	snprintf(one->pins, sizeof(one->pins), "%s/%s", dir, c->name);
	one->skel = load_floor();
	if (dp_bpf_open(one->pins, BUCKETS, &one->dp, NULL, &err) ||
	    dp_bpf_prog(one->dp, 0, 0, &one->prog_fd, &err))
		die(one->pins, &err);
	jump_to(one, one->prog_fd);
	apply(one->dp, c);
	put_events(one->dp, c);
}

static void close_case(struct contestant *one)
{
	floor_bpf__destroy(one->skel);
	if (!one->dp)
		return;
	one->dp->ops->close(one->dp);
	close(one->prog_fd);
	dp_purge(one->pins, NULL);
}

/* ------------------------------------------------------------------ measuring */

/* A frame of 64 or 78 bytes; returns its length. */
static u32 make_frame(u8 *frame, const struct cost_case *c)
{
	static const u8 v4[] = {
		0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 1, 0, 1
	};
	static const u8 v6[40] = { 0x60, 0,   0,    0,	      0,    24, 17,  64,   0x20,
				   1,	 0xd, 0xb8, [23] = 2, 0x20, 1,	0xd, 0xb8, [39] = 1 };
	static const u8 l4[] = { 0x9c, 0x40, PORT >> 8, PORT & 255, 0, 24,   0,
				 0,    0,    0,		0,	    0, 0x50, 0x10 };
	u32 header = c->v6 ? sizeof(v6) : sizeof(v4);

	memset(frame, 0, 78);
	frame[0] = frame[6] = 2;
	frame[12] = c->v6 ? 0x86 : 8;
	frame[13] = c->v6 ? 0xdd : 0;
	memcpy(frame + 14, c->v6 ? v6 : v4, header);
	if (c->tcp)
		frame[14 + (c->v6 ? 6 : 9)] = 6;
	memcpy(frame + 14 + header, l4, sizeof(l4));
	return c->v6 ? 78 : 64;
}

static void ignore_event(void *arg, const struct sl_event *event)
{
	(void)arg;
	(void)event;
}

static double measure(struct contestant *one, const struct cost_case *c, int wanted)
{
	u8 frame[128], out[256];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_out = out,
		    .data_size_out = sizeof(out), .repeat = REPEAT);

	opts.data_size_in = make_frame(frame, c);
	one->skel->bss->random_ports = c->random_ports;
	if (one->dp)
		one->dp->ops->events(one->dp, ignore_event, NULL);
	if (bpf_prog_test_run_opts(bpf_program__fd(one->entry), &opts))
		die("BPF_PROG_TEST_RUN", NULL);
	if ((int)opts.retval != wanted) {
		fprintf(stderr, "cost: %s: action %u instead of %d\n", c->name, opts.retval,
			wanted);
		exit(1);
	}
	return opts.duration;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* ns added to bare XDP_DROP, and the multiple of the floor's. */
static void report(const char *name, const double *bare, const double *floor, const double *ns,
		   int rounds)
{
	double added[ROUNDS_MAX], multiple[ROUNDS_MAX];

	for (int r = 0; r < rounds; r++) {
		added[r] = ns[r] - bare[r];
		multiple[r] = added[r] / (floor[r] - bare[r]);
	}
	qsort(added, rounds, sizeof(double), by_value);
	qsort(multiple, rounds, sizeof(double), by_value);
	printf("%-18s %6.0f %6.2f %6.2f %6.2f\n", name, added[rounds / 2], multiple[rounds / 2],
	       multiple[0], multiple[rounds - 1]);
}

static void run(const char *dir, int rounds, const char *word)
{
	static struct contestant bare, floor, all[CASES];
	static double bare_ns[CASES][ROUNDS_MAX], floor_ns[CASES][ROUNDS_MAX];

	bare.skel = load_floor();
	bare.entry = bare.skel->progs.bare;
	floor.skel = load_floor();
	jump_to(&floor, bpf_program__fd(floor.skel->progs.floor_drop));
	for (size_t i = 0; i < CASES; i++)
		if (strstr(cases[i].name, word))
			open_case(&all[i], &cases[i], dir);
	for (int round = -1; round < rounds; round++)
		for (size_t i = 0; i < CASES; i++) {
			int at = round < 0 ? 0 : round; /* the first round only warms up */

			if (!all[i].dp)
				continue;
			bare_ns[i][at] = measure(&bare, &cases[i], 1);
			floor_ns[i][at] = measure(&floor, &cases[i], 1);
			all[i].ns[at] =
				measure(&all[i], &cases[i], cases[i].action == SL_ACT_DROP ? 1 : 2);
		}
	printf("%-18s %6s %6s %6s %6s\n", "case", "ns", "median", "least", "most");
	for (size_t i = 0; i < CASES; i++) {
		if (!all[i].dp)
			continue;
		if (!i)
			report("floor", bare_ns[i], floor_ns[i], floor_ns[i], rounds);
		report(cases[i].name, bare_ns[i], floor_ns[i], all[i].ns, rounds);
		close_case(&all[i]);
	}
	close_case(&bare);
	close_case(&floor);
}

/* ------------------------------------------------------------------ two CPUs */

#define REPEAT_TWO 200000 /* of 10M, on each: they all pass at 0.9 */

static const struct cost_case pairs[] = {
	{ "exact", "rate: 10000000 packets/s\n    accounting: exact", .action = SL_ACT_PASS },
	{ "percpu", "rate: 10000000 packets/s", .action = SL_ACT_PASS },
	{ "percpu-bytes", "rate: 640000000 bytes/s\n    burst: 640000000", .action = SL_ACT_PASS },
	{ "percpu-override",
	  "rate: 10 packets/s\n    overrides: [{src: " HOT ", rate: 10000000 packets/s}]",
	  .action = SL_ACT_PASS },
	{ "percpu-4", "rate: 10000000 packets/s", .action = SL_ACT_PASS, .same = 4 },
};
#define PAIRS (sizeof(pairs) / sizeof(pairs[0]))

struct sender {
	struct contestant *one;
	const struct cost_case *of;
	pthread_barrier_t *begin;
	u32 cpu;
	double ns;
};

static void *send_on(void *arg)
{
	struct sender *s = arg;
	u8 frame[128], out[256];
	cpu_set_t set;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_out = out,
		    .data_size_out = sizeof(out), .repeat = REPEAT_TWO);

	CPU_ZERO(&set);
	CPU_SET(s->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	opts.data_size_in = make_frame(frame, s->of);
	if (s->begin)
		pthread_barrier_wait(s->begin);
	if (bpf_prog_test_run_opts(bpf_program__fd(s->one->entry), &opts))
		die("BPF_PROG_TEST_RUN", NULL);
	if (opts.retval != 2) {
		fprintf(stderr, "cost: %s: action %u instead of a pass\n", s->of->name,
			opts.retval);
		exit(1);
	}
	s->ns = opts.duration;
	return NULL;
}

/* Every token bucket there is, so that it is filled to a share of its limit. */
static void fill_buckets(struct dp *dp, double fill)
{
	const struct sl_rules *rules = dp->ops->rules(dp);
	u64 now = clock_ns(CLOCK_MONOTONIC) * SL_TICKS_PER_NS;
	u32 sets = dp->table_sets;
	struct sl_set *set = dp->table;

	for (u32 i = 0; i < sets; i++) {
		for (u32 way = 0; way < SL_WAYS; way++) {
			u64 key = set[i].way[way].key;
			const struct sl_params *p =
				&rules->limits[rules->limit_of_id[sl_key_limit_id(key)]].params;

			if (key)
				set[i].way[way].bucket_state =
					(now + (u64)(fill * p->tau)) << 2 | p->gen;
		}
	}
}

static void one_pair(struct contestant *one, const struct cost_case *c, double fill, int rounds)
{
	double alone[ROUNDS_MAX], both[ROUNDS_MAX], times[ROUNDS_MAX];
	struct sender s[2] = { { .one = one, .of = c, .cpu = 0 },
			       { .one = one, .of = c, .cpu = 1 } };
	pthread_barrier_t begin;
	pthread_t thread[2];

	pthread_barrier_init(&begin, NULL, 2);
	for (int r = -1; r < rounds; r++) {
		int at = r < 0 ? 0 : r;

		alone[at] = 0;
		for (int i = 0; i < 2; i++) {
			s[i].begin = NULL;
			fill_buckets(one->dp, fill);
			pthread_create(&thread[i], NULL, send_on, &s[i]);
			pthread_join(thread[i], NULL);
			alone[at] += s[i].ns / 2;
		}
		fill_buckets(one->dp, fill);
		for (int i = 0; i < 2; i++) {
			s[i].begin = &begin;
			pthread_create(&thread[i], NULL, send_on, &s[i]);
		}
		for (int i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
		both[at] = (s[0].ns + s[1].ns) / 2;
		times[at] = alone[at] / s[0].ns + alone[at] / s[1].ns;
	}
	qsort(alone, rounds, sizeof(double), by_value);
	qsort(both, rounds, sizeof(double), by_value);
	qsort(times, rounds, sizeof(double), by_value);
	printf("%-18s %4.1f %6.0f %6.0f %6.2f %6.2f %6.2f\n", c->name, fill, alone[rounds / 2],
	       both[rounds / 2], times[rounds / 2], times[0], times[rounds - 1]);
}

static void two_cpus(const char *dir, int rounds)
{
	struct contestant one;

	for (size_t i = 0; i < PAIRS; i++) {
		memset(&one, 0, sizeof(one));
		open_case(&one, &pairs[i], dir);
		one_pair(&one, &pairs[i], 0.1, rounds);
		one_pair(&one, &pairs[i], 0.9, rounds);
		close_case(&one);
	}
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 9;

	if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: cost PINS [ROUNDS [WORD]]\n");
		return 2;
	}
	if (mkdir(argv[1], 0700) && errno != EEXIST)
		die(argv[1], NULL);
	if (argc > 3 && !strcmp(argv[3], "two-cpus"))
		two_cpus(argv[1], rounds);
	else
		run(argv[1], rounds, argc > 3 ? argv[3] : "");
	rmdir(argv[1]);
	return 0;
}
