// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * livegen - sends millions of IPv4 frames a second into a veth, by BPF_PROG_TEST_RUN with
 * live frames (some 6 Mpps on a core that also runs the receiver's XDP program; AF_PACKET
 * makes 0.3 Mpps of it).
 *
 * A call costs 0.4 ms to set up, so a rate is kept in batches of 20 ms; flat out they are as
 * large as still ends on time. Frames that the device's ring dropped count as sent here: the
 * receiver's drop counters have them. Prints one line of JSON, times in CLOCK_MONOTONIC.
 * With --bare it attaches the baseline, XDP_DROP, to an interface and waits for SIGTERM.
 */
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "netns/frame.h"
#include "sluice/types.h"
#include "tests/bench/livegen.skel.h"

struct livegen {
	struct frame_spec spec;
	const char *interface, *bare;
	double pps, seconds;
	uint32_t sources;
	double share;
	struct frame_spec shared;
	uint32_t cluster_store_sources;
	int cpu;
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	stopped = 1;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void usage(void)
{
	fprintf(stderr,
		"usage: livegen --interface DEV | --bare DEV\n"
		"  --pps N  --time S  --cpu N\n"
		"  --share F --share-src ADDR --share-sources N   so much of the traffic\n"
		"                       comes in turn from N addresses from ADDR on\n" FRAME_USAGE);
	exit(2);
}

static void parse(struct livegen *g, int argc, char **argv)
{
	static const struct option options[] = {
		{ "interface", 1, NULL, 'i' },
		{ "bare", 1, NULL, 'b' },
		{ "pps", 1, NULL, 'r' },
		{ "time", 1, NULL, 'w' },
		{ "cpu", 1, NULL, 'c' },
		{ "share", 1, NULL, 'a' },
		{ "share-src", 1, NULL, 'A' },
		{ "share-sources", 1, NULL, 'N' },
		FRAME_OPTIONS,
		{ NULL, 0, NULL, 0 },
	};
	int option;

	frame_defaults(&g->spec);
	g->seconds = 10;
	g->cpu = -1;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'i':
			g->interface = optarg;
			break;
		case 'b':
			g->bare = optarg;
			break;
		case 'r':
			g->pps = atof(optarg);
			break;
		case 'w':
			g->seconds = atof(optarg);
			break;
		case 'c':
			g->cpu = atoi(optarg);
			break;
		case 'a':
			g->share = atof(optarg);
			break;
		case 'A':
			frame_parse_source(&g->shared, optarg);
			break;
		case 'N':
			g->cluster_store_sources = atoi(optarg);
			break;
		default:
			if (!frame_option(&g->spec, option, optarg))
				usage();
		}
	}
	if (!g->bare && (!g->interface || g->spec.src_len < 0 || g->spec.v6 || g->spec.tags))
		usage();
	if (g->share > 0 && !g->cluster_store_sources)
		usage();
}

static uint32_t address(const struct frame_spec *spec)
{
	uint32_t be;

	memcpy(&be, spec->src, 4);
	return ntohl(be);
}

static void configure(const struct livegen *g, struct livegen_bpf *skel, const struct frame *f)
{
	uint32_t hosts = g->spec.src_len >= 32 ? 0 : ~0U >> g->spec.src_len;

	skel->bss->ifindex = if_nametoindex(g->interface);
	if (!skel->bss->ifindex)
		die(g->interface);
	skel->bss->header_sum = f->ip_sum;
	skel->bss->base = address(&g->spec);
	skel->bss->host_mask = hosts;
	skel->bss->sources = !hosts		   ? 1
			     : !g->spec.sequential ? 0
			     : g->spec.sources	   ? g->spec.sources
						   : hosts + 1;
	skel->bss->share = g->share * 65536;
	skel->bss->quota_base = address(&g->shared);
	skel->bss->quota_sources = g->cluster_store_sources ? g->cluster_store_sources : 1;
}

static uint64_t generate(const struct livegen *g, int prog_fd, struct frame *f, double start)
{
	struct xdp_md context = { .data_end = f->len };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = f->data, .data_size_in = f->len,
		    .ctx_in = &context, .ctx_size_in = sizeof(context),
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = 64);
	uint64_t sent = 0;
	double now;

	while (!stopped && (now = frame_now()) < start + g->seconds) {
		uint64_t due = g->pps ? (uint64_t)((now - start) * g->pps) : sent + 200000;

		if (g->pps && due < sent + g->pps / 50) {
			struct timespec ts = { .tv_nsec = 2000000 };

			nanosleep(&ts, NULL);
			continue;
		}
		opts.repeat = due - sent;
		if (bpf_prog_test_run_opts(prog_fd, &opts) && errno != EINTR)
			die("BPF_PROG_TEST_RUN");
		sent += opts.repeat;
	}
	return sent;
}

static int bare(const struct livegen *g, struct livegen_bpf *skel)
{
	int ifindex = if_nametoindex(g->bare);

	if (!ifindex || bpf_xdp_attach(ifindex, bpf_program__fd(skel->progs.bare_drop),
				       XDP_FLAGS_DRV_MODE, NULL))
		die(g->bare);
	fprintf(stderr, "ready\n");
	while (!stopped)
		pause();
	return bpf_xdp_detach(ifindex, XDP_FLAGS_DRV_MODE, NULL);
}

int main(int argc, char **argv)
{
	struct livegen g = { 0 };
	struct livegen_bpf *skel;
	struct frame frame;
	uint64_t sent;
	double start;

	parse(&g, argc, argv);
	/* Without SA_RESTART: pause() and the test run end with the signal. */
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = stop }, NULL);
	sigaction(SIGINT, &(struct sigaction){ .sa_handler = stop }, NULL);
	if (g.cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(g.cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			die("sched_setaffinity");
	}
	skel = livegen_bpf__open_and_load();
	if (!skel)
		die("livegen_bpf");
	if (g.bare)
		return bare(&g, skel) != 0;
	frame_build(&g.spec, &frame);
	configure(&g, skel, &frame);
	start = frame_now();
	sent = generate(&g, bpf_program__fd(skel->progs.generate), &frame, start);
	printf("{\"sent\":%llu,\"start\":%.6f,\"end\":%.6f}\n", (unsigned long long)sent, start,
	       frame_now());
	livegen_bpf__destroy(skel);
	return 0;
}
