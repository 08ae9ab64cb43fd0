// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sink - records every IP frame that arrives at an interface: what the limiter passed.
 *
 * A packet socket sees a frame after XDP and before the stack, so a frame dropped by XDP never gets
 * here. One line a frame, tab-separated, for awk:
 *
 *     TIME SRC PROTO DPORT LENGTH TAGS DSCP CHECKSUM DST
 *
 * TIME is CLOCK_MONOTONIC in seconds, by the kernel's own stamp; LENGTH of the whole frame with
 * its tags; TAGS "-" or VLAN ids, outermost first, joined by "."; CHECKSUM ok, bad or - (IPv6).
 * For some 100k frames a second; frames that the socket lost are counted ("lost" in the JSON
 * printed at the end), and a test that relies on the count must see 0 there. For floods use
 * tally. SIGTERM ends it, after queued frames were read.
 */
#include <linux/if_ether.h>
#include <poll.h>

#include "frame.h"

#define BATCH 256
#define HEAD 192 /* bytes of a frame that are read */

struct sink {
	int fd;
	FILE *log;
	struct frame_spec filter; /* src and src_len; -1: everything */
	uint64_t packets, bytes;
	double mono_minus_real;
};

struct seen {
	double time;
	int len;
	char tags[64];
	uint8_t dscp, proto, size; /* size of an address: 4 or 16 */
	uint16_t dport;
	const char *checksum;
	uint8_t src[16], dst[16];
};

static void add_tag(struct seen *seen, unsigned int tci)
{
	size_t at = strlen(seen->tags);

	snprintf(seen->tags + at, sizeof(seen->tags) - at, "%s%u", at ? "." : "", tci & 0xfff);
}

static unsigned int get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static bool parse_ipv4(struct seen *seen, const uint8_t *p, int room)
{
	int header = (p[0] & 15) * 4;

	if (room < 20 || header < 20 || header > room)
		return false;
	seen->size = 4;
	seen->dscp = p[1] >> 2;
	seen->proto = p[9];
	seen->checksum = frame_fold(frame_sum(p, header)) == 0 ? "ok" : "bad";
	memcpy(seen->src, p + 12, 4);
	memcpy(seen->dst, p + 16, 4);
	if (room >= header + 4 && !(get16(p + 6) & 0x1fff) && (p[9] == 6 || p[9] == 17))
		seen->dport = get16(p + header + 2);
	return true;
}

static bool parse_ipv6(struct seen *seen, const uint8_t *p, int room)
{
	if (room < 40)
		return false;
	seen->size = 16;
	seen->dscp = get16(p) >> 6 & 63;
	seen->proto = p[6];
	seen->checksum = "-";
	memcpy(seen->src, p + 8, 16);
	memcpy(seen->dst, p + 24, 16);
	if (room >= 44 && (p[6] == 6 || p[6] == 17))
		seen->dport = get16(p + 42);
	return true;
}

/* False: not IP. */
static bool parse(struct seen *seen, const uint8_t *p, int room)
{
	int at = 14;
	unsigned int type = get16(p + 12);

	while ((type == 0x8100 || type == 0x88a8) && room >= at + 4) {
		add_tag(seen, get16(p + at));
		type = get16(p + at + 2);
		at += 4;
	}
	if (type == 0x0800)
		return parse_ipv4(seen, p + at, room - at);
	if (type == 0x86dd)
		return parse_ipv6(seen, p + at, room - at);
	return false;
}

static bool in_prefix(const struct sink *s, const struct seen *seen)
{
	int len = s->filter.src_len;

	if (len < 0)
		return true;
	if (seen->size != frame_address_size(&s->filter))
		return false;
	for (int bit = 0; bit < len; bit++) {
		if ((seen->src[bit / 8] ^ s->filter.src[bit / 8]) & 0x80 >> bit % 8)
			return false;
	}
	return true;
}

static void control(struct sink *s, struct seen *seen, struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			struct timespec ts;

			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			seen->time = ts.tv_sec + ts.tv_nsec / 1e9 + s->mono_minus_real;
		} else if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
			struct tpacket_auxdata aux;

			/* The kernel takes the outermost tag out of the frame. */
			memcpy(&aux, CMSG_DATA(c), sizeof(aux));
			if (aux.tp_status & TP_STATUS_VLAN_VALID) {
				add_tag(seen, aux.tp_vlan_tci);
				seen->len += 4;
			}
		}
	}
}

static void take(struct sink *s, struct mmsghdr *m)
{
	struct sockaddr_ll *from = m->msg_hdr.msg_name;
	const uint8_t *data = m->msg_hdr.msg_iov->iov_base;
	int room = m->msg_len < HEAD ? m->msg_len : HEAD;
	struct seen seen = { .len = m->msg_len };
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];

	if (from->sll_pkttype == PACKET_OUTGOING || room < 14)
		return;
	control(s, &seen, &m->msg_hdr);
	if (!parse(&seen, data, room) || !in_prefix(s, &seen))
		return;
	s->packets++;
	s->bytes += seen.len;
	inet_ntop(seen.size == 4 ? AF_INET : AF_INET6, seen.src, src, sizeof(src));
	inet_ntop(seen.size == 4 ? AF_INET : AF_INET6, seen.dst, dst, sizeof(dst));
	fprintf(s->log, "%.6f\t%s\t%d\t%d\t%d\t%s\t%d\t%s\t%s\n", seen.time, src, seen.proto,
		seen.dport, seen.len, *seen.tags ? seen.tags : "-", seen.dscp, seen.checksum, dst);
}

static void measure_offset(struct sink *s)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	s->mono_minus_real = tool_now() - (ts.tv_sec + ts.tv_nsec / 1e9);
}

/* Reads queued frames; false where there was none. */
static bool sink_read(struct sink *s)
{
	static struct mmsghdr messages[BATCH];
	static struct iovec iov[BATCH];
	static uint8_t data[BATCH][HEAD], control_data[BATCH][256];
	static struct sockaddr_ll from[BATCH];
	int n;

	for (int i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){ data[i], HEAD };
		messages[i].msg_hdr = (struct msghdr){
			.msg_name = &from[i],
			.msg_namelen = sizeof(from[i]),
			.msg_iov = &iov[i],
			.msg_iovlen = 1,
			.msg_control = control_data[i],
			.msg_controllen = sizeof(control_data[i]),
		};
	}
	/* MSG_TRUNC: msg_len is the frame's own length. */
	n = recvmmsg(s->fd, messages, BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
	if (n <= 0)
		return false;
	measure_offset(s);
	for (int i = 0; i < n; i++)
		take(s, &messages[i]);
	return true;
}

static void sink_open(struct sink *s, const char *interface)
{
	int one = 1;

	s->fd = tool_socket(interface, ETH_P_ALL);
	if (setsockopt(s->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)) ||
	    setsockopt(s->fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)))
		die("AF_PACKET");
}

static void take_log(const char *path, void *at)
{
	FILE **log = at;

	*log = fopen(path, "w");
	if (!*log)
		die(path);
}

int main(int argc, char **argv)
{
	static const char usage[] = "usage: sink --interface DEV [--src PREFIX] [--log FILE]\n";
	struct sink s = { .log = stdout, .filter.src_len = -1 };
	struct tpacket_stats lost = { 0 };
	socklen_t size = sizeof(lost);
	const char *interface = NULL;
	const struct tool_option options[] = {
		{ "interface", take_text, &interface },
		{ "log", take_log, &s.log },
		{ "src", frame_take_source, &s.filter },
		{ 0 },
	};

	tool_options(argv, options, usage);
	if (!interface)
		tool_usage(usage);
	tool_stop_on_signals();
	sink_open(&s, interface);
	fprintf(stderr, "ready\n");
	for (;;) {
		struct pollfd p = { .fd = s.fd, .events = POLLIN };

		if (sink_read(&s))
			continue;
		fflush(s.log);
		if (tool_stopped)
			break;
		poll(&p, 1, 200);
	}
	getsockopt(s.fd, SOL_PACKET, PACKET_STATISTICS, &lost, &size);
	fclose(s.log);
	measure_offset(&s);
	printf("{\"packets\":%llu,\"bytes\":%llu,\"lost\":%u,\"utc_offset\":%.6f}\n",
	       (unsigned long long)s.packets, (unsigned long long)s.bytes, lost.tp_drops,
	       -s.mono_minus_real);
	return 0;
}
