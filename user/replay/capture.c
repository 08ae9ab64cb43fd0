// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* capture.c - see capture.h. */
#include "replay/capture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <pcap/pcap.h>
#include <pcap/sll.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"

#define HEADERS_MIN 128 /* usual headers fit */

/* How the bytes before the IP header are read. */
enum link_kind {
	LINK_ETHERNET,
	LINK_IP,
	LINK_LOOPBACK, /* four bytes of address family */
	LINK_SLL,
	LINK_SLL2,
};

static const struct {
	int type;
	enum link_kind kind;
	u32 header;
} links[] = {
	{ DLT_EN10MB, LINK_ETHERNET, 0 }, { DLT_RAW, LINK_IP, 0 },
	{ DLT_IPV4, LINK_IP, 0 },	  { DLT_IPV6, LINK_IP, 0 },
	{ DLT_NULL, LINK_LOOPBACK, 4 },	  { DLT_LOOP, LINK_LOOPBACK, 4 },
	{ DLT_LINUX_SLL, LINK_SLL, 16 },  { DLT_LINUX_SLL2, LINK_SLL2, 20 },
};

struct capture {
	struct stream *stream;
	pcap_t *pcap;
	u32 link; /* index into `links` */
	u64 packets;
	u32 dirty; /* bytes of the caller's frame that may not be zero */
	struct capture_counts counts;
};

bool capture_is(const u8 *head, u32 len)
{
	static const u8 magic[][4] = {
		{ 0xa1, 0xb2, 0xc3, 0xd4 }, { 0xd4, 0xc3, 0xb2, 0xa1 }, { 0xa1, 0xb2, 0x3c, 0x4d },
		{ 0x4d, 0x3c, 0xb2, 0xa1 }, { 0x0a, 0x0d, 0x0d, 0x0a },
	};

	for (u32 i = 0; len >= 4 && i < ARRAY_SIZE(magic); i++)
		if (!memcmp(head, magic[i], 4))
			return true;
	return false;
}

static int find_link(struct capture *capture, struct sl_err *err)
{
	int type = pcap_datalink(capture->pcap);
	const char *name = pcap_datalink_val_to_name(type);

	for (capture->link = 0; capture->link < ARRAY_SIZE(links); capture->link++)
		if (links[capture->link].type == type)
			return 0;
	return sl_err_set(err, EINVAL,
			  "%s: link type %d (%s); accepted: Ethernet, raw IP, Linux cooked "
			  "(SLL, SLL2) and loopback",
			  capture->stream->path, type, name ? name : "unknown");
}

static int set_filter(struct capture *capture, const char *filter, struct sl_err *err)
{
	struct bpf_program program;
	int r = 0;

	if (!filter)
		return 0;
	if (pcap_compile(capture->pcap, &program, filter, 1, PCAP_NETMASK_UNKNOWN))
		return sl_err_set(err, EINVAL, "filter '%s': %s (pcap-filter(7) has the syntax)",
				  filter, pcap_geterr(capture->pcap));
	if (pcap_setfilter(capture->pcap, &program))
		r = sl_err_set(err, EINVAL, "filter '%s': %s", filter, pcap_geterr(capture->pcap));
	pcap_freecode(&program);
	return r;
}

int capture_open(struct stream *stream, const char *filter, struct capture **ret,
		 struct sl_err *err)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	char text[PCAP_ERRBUF_SIZE];
	int r;

	if (!capture)
		return sl_err_set(err, ENOMEM, "out of memory");
	capture->stream = stream;
	capture->pcap = pcap_fopen_offline_with_tstamp_precision(stream->file,
								 PCAP_TSTAMP_PRECISION_NANO, text);
	if (!capture->pcap) {
		r = sl_err_set(err, EINVAL, "%s: not a readable capture, at byte %llu: %s",
			       stream->path, stream_position(stream), text);
		free(capture);
		return r;
	}
	r = find_link(capture, err);
	if (!r)
		r = set_filter(capture, filter, err);
	if (r) {
		/* The stream's file stays the caller's only where there is no capture: close
		 * both. */
		pcap_close(capture->pcap);
		stream->file = NULL;
		free(capture);
		return r;
	}
	*ret = capture;
	return 0;
}

void capture_close(struct capture *capture)
{
	if (!capture)
		return;
	pcap_close(capture->pcap);
	capture->stream->file = NULL;
	free(capture);
}

enum sl_link capture_link(const struct capture *capture)
{
	enum link_kind kind = links[capture->link].kind;

	return kind == LINK_IP || kind == LINK_LOOPBACK ? SL_LINK_IP : SL_LINK_ETHERNET;
}

/* The EtherType of a cooked capture's packet; false: it left this machine. */
static bool read_header(const struct capture *capture, const u8 *at, u32 len, u16 *ret_type)
{
	u16 outgoing = 0;

	*ret_type = 0;
	if (len < links[capture->link].header)
		return true;
	switch (links[capture->link].kind) {
	case LINK_SLL:
		memcpy(&outgoing, at, 2);
		memcpy(ret_type, at + 14, 2);
		*ret_type = ntohs(*ret_type);
		return ntohs(outgoing) != LINUX_SLL_OUTGOING;
	case LINK_SLL2:
		memcpy(ret_type, at, 2);
		*ret_type = ntohs(*ret_type);
		return at[10] != LINUX_SLL_OUTGOING;
	default:
		return true;
	}
}

/* `len` bytes to the frame, zeros behind them. */
static void fill(struct capture *capture, u8 *frame, const u8 *at, u32 head, u32 len)
{
	u32 end;

	if (len > CAPTURE_COPY - head)
		len = CAPTURE_COPY - head;
	memcpy(frame + head, at, len);
	end = head + len;
	if (end < capture->dirty)
		memset(frame + end, 0, capture->dirty - end);
	capture->dirty = end;
}

static bool take(struct capture *capture, const struct pcap_pkthdr *packet, const u8 *at, u8 *frame,
		 u32 *ret_length)
{
	u32 header = links[capture->link].header, head = 0, length = packet->len,
	    len = packet->caplen;
	u16 type;

	if (len > length)
		len = length;
	if (links[capture->link].kind != LINK_ETHERNET) {
		if (!read_header(capture, at, len, &type)) {
			capture->counts.outgoing++;
			return false;
		}
		header = header < len ? header : len;
		if (capture_link(capture) == SL_LINK_ETHERNET) {
			head = sizeof(struct ether_header);
			memset(frame, 0, head);
			frame[12] = type >> 8;
			frame[13] = (u8)type;
		}
		at += header;
		len -= header;
		length = length - header + head;
	}
	fill(capture, frame, at, head, len);
	capture->counts.cut += packet->caplen < packet->len && packet->caplen < HEADERS_MIN;
	capture->counts.merged += length > CAPTURE_WIRE_MAX;
	*ret_length = length < CAPTURE_FRAME ? length : CAPTURE_FRAME;
	return true;
}

int capture_next(struct capture *capture, u8 *frame, u32 *ret_length, u64 *ret_utc_ns,
		 struct sl_err *err)
{
	struct pcap_pkthdr *packet;
	const u8 *at;
	int r;

	do {
		r = pcap_next_ex(capture->pcap, &packet, &at);
		if (r == PCAP_ERROR_BREAK && !capture->stream->error[0])
			return 0;
		if (r != 1)
			return sl_err_set(err, EIO,
					  "%s: damaged behind packet %llu, at byte %llu: %s",
					  capture->stream->path, capture->packets,
					  stream_position(capture->stream),
					  capture->stream->error[0] ? capture->stream->error
								    : pcap_geterr(capture->pcap));
		capture->packets++;
	} while (!take(capture, packet, at, frame, ret_length));
	*ret_utc_ns = (u64)packet->ts.tv_sec * SL_NS_PER_SEC + (u64)packet->ts.tv_usec;
	return 1;
}

const struct capture_counts *capture_counts(const struct capture *capture)
{
	return &capture->counts;
}
