// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * tally - how many packets of each watched source passed XDP, under floods of millions.
 *
 * Counts at tc ingress (tally.bpf.c) and drops there. SIGUSR1 appends a snapshot to the log:
 * lines "TIME SRC PACKETS", where SRC "*" is every source that is not watched and TIME that of
 * reading this line (a snapshot under a flood takes milliseconds); SIGTERM writes
 * the last one and takes the program off.
 */
#include <bpf/libbpf.h>

#include "frame.h"
#include "sluice/types.h"
#include "tests/netns/tally.skel.h"

#define TALLY_SOURCES 4096

/*
 * A source's packets and the time at which they were read: again where the two are more than 0.3 ms
 * apart, because another process ran between them; at 1000 packets/s two would be missed in 2 ms.
 */
static double read_source(struct tally_bpf *skel, uint32_t i, uint64_t *value, size_t size)
{
	double before, after;

	for (int try = 0; try < 100; try++) {
		before = tool_now();
		if (bpf_map__lookup_elem(skel->maps.tally, &i, sizeof(i), value, size, 0))
			die("tally map");
		after = tool_now();
		if (after - before < 0.0003)
			break;
	}
	return after;
}

static void snapshot(struct tally_bpf *skel, FILE *log, uint32_t base)
{
	int cpus = libbpf_num_possible_cpus();
	uint64_t value[cpus];

	for (uint32_t i = 0; i <= TALLY_SOURCES; i++) {
		struct in_addr src = { htonl(base + i) };
		double at = read_source(skel, i, value, sizeof(value));
		uint64_t sum = 0;

		for (int cpu = 0; cpu < cpus; cpu++)
			sum += value[cpu];
		fprintf(log, "%.6f\t%s\t%llu\n", at, i == TALLY_SOURCES ? "*" : inet_ntoa(src),
			(unsigned long long)sum);
	}
	fflush(log);
}

int main(int argc, char **argv)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = 1, .priority = 60000);
	struct frame_spec watch = { 0 };
	struct tally_bpf *skel;
	sigset_t set;
	uint32_t base;
	FILE *log;
	int signal;

	if (argc != 4) {
		fprintf(stderr, "usage: tally DEV WATCHED_PREFIX LOG\n");
		return 2;
	}
	frame_take_source(argv[2], &watch);
	memcpy(&base, watch.src, 4);
	base = ntohl(base);
	log = fopen(argv[3], "w");
	skel = tally_bpf__open();
	if (!log || !skel)
		die("tally");
	skel->rodata->watch_base = base;
	skel->rodata->watch_mask = watch.src_len ? ~0U << (32 - watch.src_len) : 0;
	hook.ifindex = tool_interface(argv[1]);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (tally_bpf__load(skel))
		die("load");
	bpf_tc_hook_create(&hook); /* -EEXIST: another's; beside it is fine */
	opts.prog_fd = bpf_program__fd(skel->progs.count);
	if (bpf_tc_attach(&hook, &opts))
		die("tc attach");
	fprintf(stderr, "ready\n");
	do {
		sigwait(&set, &signal);
		snapshot(skel, log, base);
	} while (signal == SIGUSR1);
	opts.prog_fd = opts.prog_id = opts.flags = 0;
	bpf_tc_detach(&hook, &opts);
	tally_bpf__destroy(skel);
	return fclose(log) != 0;
}
