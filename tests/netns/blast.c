// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * blast - sends raw Ethernet frames through one interface at a given rate, or flat out.
 *
 * AF_PACKET with PACKET_QDISC_BYPASS and sendmmsg: no queueing discipline delays or drops, so
 * frames reported as sent were handed to the device. On veth the receive queue is the sender's
 * CPU modulo the queues, which is how the tests pick one (--cpu).
 * At a rate, a frame is due at start + n / rate: a late wake-up is caught up with, at most one
 * batch at a time. Prints one line of JSON; times are CLOCK_MONOTONIC, as in the data path.
 */
#include <errno.h>

#include "frame.h"

#define BATCH 64

struct blast {
	struct frame_spec spec;
	const char *interface;
	double pps, seconds, at;
	uint64_t count;
	int cpu;
	bool tapped;
	uint64_t seed;

	int fd;
	struct frame *frame; /* BATCH of them */
	uint64_t sent, bytes, refused;
	double start, end;
};

static const char usage[] =
	"usage: blast --interface DEV [--pps N] [--time S] [--count N] [--cpu N]\n"
	"  --pps N              0: flat out (default)\n"
	"  --time S  --count N  stop after either; 10 s where neither is given\n"
	"  --at T               start then (CLOCK_MONOTONIC); default now\n"
	"  --tapped             where tcpdump of this side sees the frames, too\n"
	"  --seed N             of random sources; default $SLUICE_SEED or the clock\n" FRAME_USAGE;

static void parse(struct blast *b, char **argv)
{
	const struct tool_option options[] = {
		{ "interface", take_text, &b->interface },
		{ "pps", take_double, &b->pps },
		{ "time", take_double, &b->seconds },
		{ "count", take_u64, &b->count },
		{ "cpu", take_int, &b->cpu },
		{ "at", take_double, &b->at },
		{ "tapped", NULL, &b->tapped },
		{ "seed", take_u64, &b->seed },
		FRAME_OPTIONS(&b->spec),
		{ 0 },
	};
	const char *seed = getenv("SLUICE_SEED");

	frame_defaults(&b->spec);
	b->cpu = -1;
	b->seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
	tool_options(argv, options, usage);
	if (!b->interface || (b->spec.src_len < 0 && !b->spec.raw_len))
		tool_usage(usage);
	if (!b->seconds && !b->count)
		b->seconds = 10;
}

static void blast_open(struct blast *b)
{
	int one = 1;

	tool_pin(b->cpu);
	b->fd = tool_socket(b->interface, 0);
	if (!b->tapped && setsockopt(b->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)))
		die("PACKET_QDISC_BYPASS");
	b->frame = calloc(BATCH, sizeof(*b->frame));
	if (!b->frame)
		die("memory");
	for (int i = 0; i < BATCH; i++)
		frame_build(&b->spec, &b->frame[i]);
}

/* Sends `n` frames, all of them unless the device refuses for a second or a signal stops us. */
static void blast_batch(struct blast *b, int n)
{
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec iov[BATCH];
	int ports = b->spec.dport_last - b->spec.dport + 1;
	double deadline = 0;
	int done = 0;

	for (int i = 0; i < n; i++) {
		uint8_t src[16];
		struct frame *f = &b->frame[i];
		uint64_t number = b->sent + i;

		frame_source(&b->spec, number, &b->seed, src);
		frame_patch(&b->spec, f, src, b->spec.dport + number % ports);
		iov[i].iov_base = f->data;
		iov[i].iov_len = f->len;
		messages[i].msg_hdr.msg_iov = &iov[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	while (done < n && !tool_stopped) {
		int sent = sendmmsg(b->fd, messages + done, n - done, 0);

		if (sent > 0) {
			for (int i = 0; i < sent; i++)
				b->bytes += iov[done + i].iov_len;
			done += sent;
			deadline = 0;
			continue;
		}
		if (errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
			die("sendmmsg");
		b->refused++;
		if (!deadline)
			deadline = tool_now() + 1;
		if (tool_now() > deadline)
			die("the device takes nothing");
	}
	b->sent += done;
}

static void sleep_until(double when)
{
	struct timespec ts = { .tv_sec = when, .tv_nsec = (when - (time_t)when) * 1e9 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static void blast_run(struct blast *b)
{
	if (b->at > tool_now())
		sleep_until(b->at);
	b->start = tool_now();
	while (!tool_stopped) {
		double elapsed = tool_now() - b->start;
		uint64_t n = BATCH;

		if (b->seconds && elapsed >= b->seconds)
			break;
		if (b->count && b->count - b->sent < n)
			n = b->count - b->sent;
		if (b->pps) {
			uint64_t due = elapsed * b->pps + 1;

			if (due <= b->sent) {
				/* A millisecond's worth, or the next frame where that is later. */
				double next = (b->sent + 1) / b->pps;

				sleep_until(b->start +
					    (next > elapsed + .001 ? next : elapsed + .001));
				continue;
			}
			if (due - b->sent < n)
				n = due - b->sent;
		}
		if (!n)
			break;
		blast_batch(b, n);
	}
	b->end = tool_now();
}

int main(int argc, char **argv)
{
	struct blast b = { 0 };
	uint64_t seed;

	parse(&b, argv);
	seed = b.seed;
	b.seed = b.seed * 0x9e3779b97f4a7c15ULL | 1;
	blast_open(&b);
	tool_stop_on_signals();
	blast_run(&b);
	printf("{\"sent\":%llu,\"bytes\":%llu,\"start\":%.6f,\"end\":%.6f,\"refused\":%llu,"
	       "\"seed\":%llu}\n",
	       (unsigned long long)b.sent, (unsigned long long)b.bytes, b.start, b.end,
	       (unsigned long long)b.refused, (unsigned long long)seed);
	free(b.frame);
	return 0;
}
