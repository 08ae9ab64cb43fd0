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

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "netns/frame.h"
#include "sluice/types.h"
#include "tests/bench/livegen.skel.h"

struct livegen {
	struct frame_spec spec;
	const char *interface, *bare;
	double pps, seconds;
	double share;
	struct frame_spec shared;
	int quota_sources;
	int cpu;
};

static const char usage[] =
	"usage: livegen --interface DEV | --bare DEV\n"
	"  --pps N  --time S  --cpu N\n"
	"  --share F --share-src ADDR --share-sources N   so much of the traffic\n"
	"                       comes in turn from N addresses from ADDR on\n" FRAME_USAGE;

static void parse(struct livegen *g, char **argv)
{
	const struct tool_option options[] = {
		{ "interface", take_text, &g->interface },
		{ "bare", take_text, &g->bare },
		{ "pps", take_double, &g->pps },
		{ "time", take_double, &g->seconds },
		{ "cpu", take_int, &g->cpu },
		{ "share", take_double, &g->share },
		{ "share-src", frame_take_source, &g->shared },
		{ "share-sources", take_int, &g->quota_sources },
		FRAME_OPTIONS(&g->spec),
		{ 0 },
	};

	frame_defaults(&g->spec);
	g->seconds = 10;
	g->cpu = -1;
	tool_options(argv, options, usage);
	if (!g->bare && (!g->interface || g->spec.src_len < 0 || g->spec.v6 || g->spec.tags))
		tool_usage(usage);
	if (g->share > 0 && !g->quota_sources)
		tool_usage(usage);
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

	skel->bss->ifindex = tool_interface(g->interface);
	skel->bss->header_sum = f->ip_sum;
	skel->bss->base = address(&g->spec);
	skel->bss->host_mask = hosts;
	skel->bss->sources = !hosts		   ? 1
			     : !g->spec.sequential ? 0
			     : g->spec.sources	   ? g->spec.sources
						   : hosts + 1;
	skel->bss->share = g->share * 65536;
	skel->bss->quota_base = address(&g->shared);
	skel->bss->quota_sources = g->quota_sources ? g->quota_sources : 1;
}

static uint64_t generate(const struct livegen *g, int prog_fd, struct frame *f, double start)
{
	struct xdp_md context = { .data_end = f->len };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = f->data, .data_size_in = f->len,
		    .ctx_in = &context, .ctx_size_in = sizeof(context),
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = 64);
	uint64_t sent = 0;
	double now;

	while (!tool_stopped && (now = tool_now()) < start + g->seconds) {
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
	int ifindex = tool_interface(g->bare);

	if (bpf_xdp_attach(ifindex, bpf_program__fd(skel->progs.bare_drop), XDP_FLAGS_DRV_MODE,
			   NULL))
		die(g->bare);
	fprintf(stderr, "ready\n");
	while (!tool_stopped)
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

	parse(&g, argv);
	tool_stop_on_signals();
	tool_pin(g.cpu);
	skel = livegen_bpf__open_and_load();
	if (!skel)
		die("livegen_bpf");
	if (g.bare)
		return bare(&g, skel) != 0;
	frame_build(&g.spec, &frame);
	configure(&g, skel, &frame);
	start = tool_now();
	sent = generate(&g, bpf_program__fd(skel->progs.generate), &frame, start);
	printf("{\"sent\":%llu,\"start\":%.6f,\"end\":%.6f}\n", (unsigned long long)sent, start,
	       tool_now());
	livegen_bpf__destroy(skel);
	return 0;
}
