/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * capture.h - the packets of a capture (pcap or pcapng, by libpcap), as frames that XDP would see.
 *
 * Cooked captures get an Ethernet header; raw IP is judged as on an interface without one. What was
 * not captured of a frame (snaplen) reads as zeros; its length is that on the wire.
 */
#ifndef SLUICE_REPLAY_CAPTURE_H
#define SLUICE_REPLAY_CAPTURE_H

#include <stdbool.h>

#include "sluice/abi.h"
#include "replay/stream.h"

/* Bytes of a frame that are copied: headers begin within the first 4096, packet-walk.md. */
#define CAPTURE_COPY 8192
/* Of a frame's memory; longer ones count as so long. Behind CAPTURE_COPY it is never written. */
#define CAPTURE_FRAME (512 * 1024)
/* Longer ones are not of a wire: the capturing machine's card would have cut or merged them. */
#define CAPTURE_WIRE_MAX 9018

struct capture_counts {
	u64 outgoing; /* left out: cooked captures state the direction */
	u64 cut;      /* captured up to less than 128 bytes of more */
	u64 merged;   /* longer than CAPTURE_WIRE_MAX */
};

struct capture;

bool capture_is(const u8 *head, u32 len);
/* `filter` (may be NULL) is of pcap-filter(7). 0 with *ret, or -errno and err. */
int capture_open(struct stream *stream, const char *filter, struct capture **ret,
		 struct sl_err *err);
/* What its frames begin with. */
enum sl_link capture_link(const struct capture *capture);
void capture_close(struct capture *capture); /* and the stream's file; NULL is fine */

/*
 * The next packet: a frame in `frame` (zeros at first, the same at each call) of *ret_length bytes
 * on the wire. 1; 0 at the end; -EIO and
 * err with the position where the file is damaged.
 */
int capture_next(struct capture *capture, u8 *frame, u32 *ret_length, u64 *ret_utc_ns,
		 struct sl_err *err);
const struct capture_counts *capture_counts(const struct capture *capture);

#endif
