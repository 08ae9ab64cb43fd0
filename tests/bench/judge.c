// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * judge - runs the data path (judge.bpf.c) for measurements, without a daemon.
 *
 *     judge live DEV PINS       one variant per limit below, each over maps of its own; a line
 *                               on standard input names what is put on DEV ("exact-10", "off"),
 *                               answered by "on NAME"
 *     judge ns PINS [ROUNDS]    ns per packet by BPF_PROG_TEST_RUN: limits x prefixes, random
 *                               addresses drawn from those prefixes; lines "LIMITS PREFIXES NS..."
 *                               with one value per round
 *     judge override PINS [ROUNDS]
 *                               the same of one limit with 100000 overrides, which the packets
 *                               come from at random, and of one without; lines "NAME NS..."
 *     judge cold PINS [ROUNDS]  the same of random sources of 16M, most of which have no bucket
 *     judge push PINS [ROUNDS]  the same of the cost of push-downs, for sources with one and
 * without
 *
 * PINS is a directory on bpffs that is made, and removed at the end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "packet/dataplane/dp_push.h"
#include "tests/bench/bench.h"
#include "tests/bench/judge.skel.h"

#define PROBES 65536
#define REPEAT 2000000
#define BUCKETS 1000000

struct judge {
	char name[32];
	char pins[256];
	struct dp *dp;
	struct judge_bpf *skel;
};

/* As in judge.bpf.c. */
struct probe {
	u32 src;
	u16 dport;
	u16 pad;
};

/* ------------------------------------------------------------------ rule sets */

static void apply(struct judge *j, const char *yaml)
{
	size_t slots_size = SL_LIMIT_IDS * sizeof(struct sl_limit_id_info);
	struct sl_limit_id_info *slots = malloc(slots_size);
	static u64 generation;
	struct compile_env env = {
		.mono_ns = clock_ns(CLOCK_MONOTONIC),
		.cpus = libbpf_num_possible_cpus(),
		.generation = ++generation,
		.seed = j->dp->ops->state(j->dp)->seed,
		.slots = slots,
	};
	struct sl_image *image;
	struct policy *policy;
	struct sl_err err;

	if (!slots)
		die("memory", NULL);
	memcpy(slots, j->dp->ops->slots(j->dp), slots_size);
	env.utc_offset_ns = clock_ns(CLOCK_REALTIME) - env.mono_ns;
	dp_set_clock(j->dp, env.utc_offset_ns);
	if (policy_parse("bench", yaml, strlen(yaml), &policy, &err) ||
	    image_compile(policy, &env, &image, &err) || j->dp->ops->apply(j->dp, image, &err))
		die("rules", &err);
	memcpy(j->dp->ops->slots(j->dp), slots, slots_size);
	image_free(image);
	policy_free(policy);
	free(slots);
}

/* ------------------------------------------------------------------ the program */

static void judge_open(struct judge *j, const char *dir, const char *name)
{
	struct sl_config *config;
	struct bpf_map *map;
	struct sl_err err;
	u32 sets, zero = 0, account_at = sl_stage_at(SL_STAGE_ACCOUNT, 0, 0);
	int live, account;

	snprintf(j->name, sizeof(j->name), "%s", name);
	snprintf(j->pins, sizeof(j->pins), "%s/%s", dir, name);
	if (dp_bpf_open(j->pins, BUCKETS, &j->dp, NULL, &err))
		die(j->pins, &err);
	j->dp->ops->table(j->dp, &sets);
	j->skel = judge_bpf__open();
	if (!j->skel)
		die("judge_bpf", NULL);
	config = (void *)&j->skel->rodata->config;
	config->table_sets = sets;
	bpf_map__set_max_entries(j->skel->maps.table, sets);
	bpf_object__for_each_map(map, j->skel->obj) {
		char path[512];

		if (bpf_map__is_internal(map) || map == j->skel->maps.probes ||
		    map == j->skel->maps.jump || map == j->skel->maps.packet_now)
			continue;
		snprintf(path, sizeof(path), "%s/%s", j->pins, bpf_map__name(map));
		/* Pinned by dp_bpf_open: the one there is taken. */
		if (access(path, F_OK) || bpf_map__set_pin_path(map, path))
			die(path, NULL);
	}
	if (judge_bpf__load(j->skel))
		die("load", NULL);
	live = bpf_program__fd(j->skel->progs.judge_live);
	if (bpf_map_update_elem(bpf_map__fd(j->skel->maps.jump), &zero, &live, BPF_ANY))
		die("jump", NULL);
	account = bpf_program__fd(j->skel->progs.judge_account);
	if (bpf_map_update_elem(bpf_map__fd(j->skel->maps.stages), &account_at, &account, BPF_ANY))
		die("stages", NULL);
}

static void judge_close(struct judge *j)
{
	judge_bpf__destroy(j->skel);
	j->dp->ops->close(j->dp);
	dp_purge(j->pins, NULL);
}

/* ------------------------------------------------------------------ live */

static int live(const char *dev, const char *dir)
{
	static const char *const limits[][2] = {
		{ "exact-10", "rate: 10 packets/s, accounting: exact" },
		{ "percpu-10", "rate: 10 packets/s, accounting: percpu" },
		{ "exact-1000", "rate: 1000 packets/s, accounting: exact" },
		{ "percpu-1000", "rate: 1000 packets/s, accounting: percpu" },
	};
	enum { VARIANTS = sizeof(limits) / sizeof(limits[0]) };
	struct judge judges[VARIANTS] = { 0 };
	int ifindex = if_nametoindex(dev);
	char line[64];

	if (!ifindex)
		die(dev, NULL);
	for (int i = 0; i < VARIANTS; i++) {
		char yaml[256];

		snprintf(yaml, sizeof(yaml), "limits: [{name: sources, %s}]\n", limits[i][1]);
		judge_open(&judges[i], dir, limits[i][0]);
		apply(&judges[i], yaml);
	}
	printf("on off\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int fd = -1;

		line[strcspn(line, "\n")] = 0;
		for (int i = 0; i < VARIANTS; i++) {
			if (!strcmp(line, judges[i].name))
				fd = bpf_program__fd(judges[i].skel->progs.judge_stub);
		}
		if (fd < 0 && strcmp(line, "off")) {
			fprintf(stderr, "judge: no variant %s\n", line);
			return 2;
		}
		bpf_xdp_detach(ifindex, XDP_FLAGS_DRV_MODE, NULL);
		if (fd >= 0 && bpf_xdp_attach(ifindex, fd, XDP_FLAGS_DRV_MODE, NULL))
			die(dev, NULL);
		printf("on %s\n", line);
		fflush(stdout);
	}
	bpf_xdp_detach(ifindex, XDP_FLAGS_DRV_MODE, NULL);
	for (int i = 0; i < VARIANTS; i++)
		judge_close(&judges[i]);
	return 0;
}

/* ------------------------------------------------------------------ ns per packet */

static u64 random_state = 0x5eed;

static u32 random_u32(void)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return random_state >> 32;
}

/*
 * `prefixes` disjoint ones of all lengths from 17 to 32: the k-th lies in a /17 of its own,
 * scattered over the address space.
 */
static u32 prefix_of(u32 k, u32 *ret_len)
{
	u32 slot = (k * 40503U + 12345U) & 0x1ffff;
	u32 len = 17 + (k * 2654435761U >> 7) % 16;
	u32 low = (k * 2246822519U) & 0x7fff;
	u32 addr = slot << 15 | low;

	*ret_len = len;
	return addr & (u32)(~0ULL << (32 - len));
}

/*
 * Prefixes are dealt out to the limits in turn. Where there are more limits than prefixes,
 * they share them and are told apart by their port: each packet matches one limit always.
 */
static char *rules_text(u32 limits, u32 prefixes)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, "limits:\n");
	for (u32 i = 0; i < limits; i++) {
		fprintf(out, "  - name: limit-%u\n    rate: 1000 packets/s\n", i);
		if (!prefixes)
			continue;
		fprintf(out, "    match:\n");
		if (prefixes < limits)
			fprintf(out, "      dport: %u\n", 1000 + i);
		fprintf(out, "      src: [");
		for (u32 k = prefixes < limits ? i % prefixes : i; k < prefixes;
		     k += prefixes < limits ? prefixes : limits) {
			u32 len, addr = prefix_of(k, &len);

			fprintf(out, "%u.%u.%u.%u/%u, ", addr >> 24, addr >> 16 & 255,
				addr >> 8 & 255, addr & 255, len);
		}
		fprintf(out, "]\n");
	}
	fclose(out);
	return text;
}

/* Addresses out of `prefixes` prefixes, ports as rules_text() gives them. */
static void set_probes(struct judge *j, u32 limits, u32 prefixes)
{
	int fd = bpf_map__fd(j->skel->maps.probes);

	for (u32 i = 0; i < PROBES; i++) {
		u32 k = random_u32() % prefixes, len;
		u32 addr = prefix_of(k, &len);
		u32 port =
			prefixes < limits ? k + prefixes * (random_u32() % (limits / prefixes)) : 0;
		struct probe probe = {
			.src = htonl(addr | (random_u32() & (u32) ~(~0ULL << (32 - len)))),
			.dport = htons(1000 + port),
		};

		if (bpf_map_update_elem(fd, &i, &probe, BPF_ANY))
			die("probes", NULL);
	}
}

static double ns_per_packet(struct bpf_program *program, bool tcp, u32 *ret_action)
{
	u8 frame[64] = {
		2, 0, 0,  0,  0, 2, 2,	0, 0, 0, 0,  1, 8, 0, 0x45, 0,	  0, 50, 0, 0,
		0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 1, 0, 1, 0x9c, 0x40, 0, 9,	 0, 30,
	};
	u8 out[256];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame),
		    .data_out = out, .data_size_out = sizeof(out), .repeat = REPEAT);

	if (tcp) {
		frame[23] = 6;
		frame[46] = 5 << 4;
		frame[47] = 0x10;
	}
	if (bpf_prog_test_run_opts(bpf_program__fd(program), &opts))
		die("BPF_PROG_TEST_RUN", NULL);
	*ret_action = opts.retval;
	return opts.duration;
}

/* `limits` 0: the harness alone; prefixes 0: one limit without match keys. */
static const u32 cases[][2] = {
	{ 0, 0 },      { 1, 0 },       { 1, 1 },      { 16, 1 },      { 256, 1 },      { 1, 10000 },
	{ 16, 10000 }, { 256, 10000 }, { 1, 100000 }, { 16, 100000 }, { 256, 100000 },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static int ns(const char *dir, int rounds)
{
	static struct judge judges[CASES];

	for (size_t i = 0; i < CASES; i++) {
		char name[32], *text;

		snprintf(name, sizeof(name), "%u-%u", cases[i][0], cases[i][1]);
		judge_open(&judges[i], dir, name);
		text = rules_text(cases[i][0] ? cases[i][0] : 1, cases[i][1]);
		apply(&judges[i], text);
		free(text);
		/* One limit without match keys: the addresses that the largest case gets. */
		set_probes(&judges[i], cases[i][0], cases[i][1] ? cases[i][1] : 100000);
	}
	/* Round by round, so that a disturbance of one case disturbs all. */
	double values[CASES][100];
	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < CASES; i++) {
			struct judge_bpf *skel = judges[i].skel;
			struct bpf_program *program =
				cases[i][0] ? skel->progs.judge_probe : skel->progs.judge_nothing;
			u32 action;

			values[i][round] = ns_per_packet(program, false, &action);
			if (action == XDP_ABORTED)
				die("a packet was not judged", NULL);
		}
	}
	for (size_t i = 0; i < CASES; i++) {
		struct sl_limit_stats stats;
		u64 matched = 0;

		for (u32 slot = 1; slot < SL_LIMIT_IDS; slot++) {
			if (!judges[i].dp->ops->limit_stats(judges[i].dp, slot, &stats))
				matched += stats.packets[SL_LV_PASS] + stats.packets[SL_LV_DROP];
		}
		/* Each packet met one limit: otherwise something else was measured. */
		if (cases[i][0] && matched != (u64)rounds * REPEAT) {
			fprintf(stderr,
				"judge: %u limits, %u prefixes: %llu of %llu packets met a limit\n",
				cases[i][0], cases[i][1], matched, (u64)rounds * REPEAT);
			return 1;
		}
		printf("%u %u", cases[i][0], cases[i][1]);
		for (int round = 0; round < rounds; round++)
			printf(" %.1f", values[i][round]);
		printf("\n");
		judge_close(&judges[i]);
	}
	return 0;
}

/* ------------------------------------------------------------------ overrides */

#define OVERRIDES 100000

static u32 override_addr(u32 k)
{
	return k * 2654435761U;
}

/* Variants of the same limit: none; addresses on one rate and on rates of their own; prefixes. */
static char *override_text(int variant)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fprintf(out,
		"limits:\n  - name: sources\n    rate: 1000 packets/s\n    accounting: exact\n");
	if (variant > 3)
		fprintf(out, "    overrides: [{src: %s, rate: 1000 packets/s}]\n",
			variant == 4 ? "192.0.2.7" : "0.0.0.0/0");
	for (u32 k = 0; variant && variant <= 3 && k < OVERRIDES; k++) {
		u32 addr = override_addr(k), len = variant == 3 ? 25 + k % 8 : 32;

		addr &= (u32)(~0ULL << (32 - len));
		if (!k)
			fprintf(out, "    overrides:\n");
		fprintf(out, "    - {src: %u.%u.%u.%u/%u, rate: %u packets/s}\n", addr >> 24,
			addr >> 16 & 255, addr >> 8 & 255, addr & 255, len,
			1000 + (variant == 1 ? 0 : k));
	}
	fclose(out);
	return text;
}

static int overrides(const char *dir, int rounds)
{
	static const char *const names[] = { "none",	 "one-rate", "own-rates",
					     "prefixes", "missed",   "all" };
	enum { VARIANTS = sizeof(names) / sizeof(names[0]) };
	static struct judge judges[VARIANTS];
	static double values[VARIANTS][100];

	for (int v = 0; v < VARIANTS; v++) {
		char *text = override_text(v);

		judge_open(&judges[v], dir, names[v]);
		apply(&judges[v], text);
		free(text);
		random_state = 0x5eed;
		for (u32 i = 0; i < PROBES; i++) {
			struct probe probe = { .src = htonl(
						       override_addr(random_u32() % OVERRIDES)) };

			if (bpf_map_update_elem(bpf_map__fd(judges[v].skel->maps.probes), &i,
						&probe, BPF_ANY))
				die("probes", NULL);
		}
	}
	for (int round = 0; round < rounds; round++) {
		for (int v = 0; v < VARIANTS; v++) {
			u32 action;

			values[v][round] =
				ns_per_packet(judges[v].skel->progs.judge_probe, false, &action);
			if (action == XDP_ABORTED)
				die("a packet was not judged", NULL);
		}
	}
	for (int v = 0; v < VARIANTS; v++) {
		printf("%s", names[v]);
		for (int round = 0; round < rounds; round++)
			printf(" %.1f", values[v][round]);
		printf("\n");
		judge_close(&judges[v]);
	}
	return 0;
}

/* ------------------------------------------------------------------ new sources */

static int cold(const char *dir, int rounds)
{
	static const char *const rates[] = { "nothing", "10", "1000" };
	enum { VARIANTS = sizeof(rates) / sizeof(rates[0]) };
	static struct judge judges[VARIANTS];
	static double values[VARIANTS][100];
	char text[128];
	u32 action;

	for (int v = 0; v < VARIANTS; v++) {
		judge_open(&judges[v], dir, rates[v]);
		snprintf(text, sizeof(text),
			 "limits: [{name: sources, rate: %s packets/s, accounting: exact}]\n",
			 v ? rates[v] : "10");
		apply(&judges[v], text);
	}
	for (int round = -1; round < rounds; round++)
		for (int v = 0; v < VARIANTS; v++) {
			struct judge_bpf *skel = judges[v].skel;
			double ns = ns_per_packet(v ? skel->progs.judge_cold
						    : skel->progs.judge_cold_nothing,
						  false, &action);

			if (round >= 0)
				values[v][round] = ns;
		}
	for (int v = 0; v < VARIANTS; v++) {
		printf("%s", rates[v]);
		for (int round = 0; round < rounds; round++)
			printf(" %.1f", values[v][round]);
		printf("\n");
		judge_close(&judges[v]);
	}
	return 0;
}

/* ------------------------------------------------------------------ push-downs */

#define PUSH_SOURCES SL_PUSHES_MAX

/* Configured beside one limit; the packets are TCP with ACK, from PUSH_SOURCES addresses. */
static const struct push_variant {
	const char *name, *rate;
	bool watch;
	int kind;    /* of the push-downs of these sources; -1: none */
	bool others; /* they are of other sources */
} push_variants[] = {
	{ "passed", "1000000 packets/s", false, -1, false },
	{ "passed-noted", "1000000 packets/s", true, -1, false },
	{ "passed-others", "1000000 packets/s", false, SL_PUSH_DROP, true },
	{ "passed-limit", "1000000 packets/s", false, SL_PUSH_LIMIT, false },
	{ "refused", "1 packets/h", false, -1, false },
	{ "refused-others", "1 packets/h", false, SL_PUSH_DROP, true },
	{ "push-limit", "1000000 packets/s", false, SL_PUSH_LIMIT, false },
	{ "push-drop", "1000000 packets/s", false, SL_PUSH_DROP, false },
};

static void put_push(struct judge *j, const struct push_variant *v)
{
	for (u32 k = 0; v->kind >= 0 && k < PUSH_SOURCES; k++) {
		const struct dp_push push = {
			.src = { { (u64)override_addr(k + (v->others ? PUSH_SOURCES : 0)) << 32,
				   0 },
				 SL_V4,
				 32 },
			.kind = v->kind,
			.rate = { strcmp(v->name, "push-limit") ? 1000000 : 1,
				  (strcmp(v->name, "push-limit") ? 1 : 3600) * SL_NS_PER_SEC,
				  RATE_PACKETS },
			.until_ns = ~0ULL >> 1,
		};

		if (dp_push_put(j->dp, &push))
			die("push", NULL);
	}
	dp_push_watch(j->dp, v->watch);
}

static int pushes(const char *dir, int rounds)
{
	enum { VARIANTS = sizeof(push_variants) / sizeof(push_variants[0]) };
	static struct judge judges[VARIANTS];
	static double values[VARIANTS][100];
	u32 action;

	for (int v = 0; v < VARIANTS; v++) {
		char text[128];

		judge_open(&judges[v], dir, push_variants[v].name);
		snprintf(text, sizeof(text),
			 "limits: [{name: sources, rate: %s, accounting: exact}]\n",
			 push_variants[v].rate);
		apply(&judges[v], text);
		put_push(&judges[v], &push_variants[v]);
		for (u32 i = 0; i < PROBES; i++) {
			struct probe probe = { .src = htonl(
						       override_addr(random_u32() % PUSH_SOURCES)),
					       .dport = htons(443) };

			if (bpf_map_update_elem(bpf_map__fd(judges[v].skel->maps.probes), &i,
						&probe, BPF_ANY))
				die("probes", NULL);
		}
	}
	for (int round = -1; round < rounds; round++)
		for (int v = 0; v < VARIANTS; v++) {
			double ns = ns_per_packet(judges[v].skel->progs.judge_probe, true, &action);

			if (round >= 0)
				values[v][round] = ns;
		}
	for (int v = 0; v < VARIANTS; v++) {
		printf("%s", push_variants[v].name);
		for (int round = 0; round < rounds; round++)
			printf(" %.1f", values[v][round]);
		printf("\n");
		judge_close(&judges[v]);
	}
	return 0;
}

static const struct {
	const char *name;
	int (*run)(const char *dir, int rounds);
} kinds[] = {
	{ "ns", ns },
	{ "override", overrides },
	{ "cold", cold },
	{ "push", pushes },
};

int main(int argc, char **argv)
{
	bool is_live = argc == 4 && !strcmp(argv[1], "live");
	int rounds = argc > 3 ? atoi(argv[3]) : 5, rc = 2;
	const char *dir = is_live ? argv[3] : argc > 2 ? argv[2] : NULL;
	size_t kind = 0;

	while (kind < sizeof(kinds) / sizeof(kinds[0]) &&
	       (argc < 3 || strcmp(argv[1], kinds[kind].name)))
		kind++;
	if (!is_live && kind == sizeof(kinds) / sizeof(kinds[0])) {
		fprintf(stderr,
			"usage: judge cold|override|push PINS [ROUNDS] | judge live DEV PINS | judge ns PINS [ROUNDS]\n");
		return rc;
	}
	if (mkdir(dir, 0700) && errno != EEXIST)
		die(dir, NULL);
	rc = is_live ? live(argv[2], dir) : kinds[kind].run(dir, rounds > 100 ? 100 : rounds);
	rmdir(dir);
	return rc;
}
