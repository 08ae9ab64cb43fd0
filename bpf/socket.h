/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket.h - the kernel's sockets. A header only claims to belong to a connection; a socket for its
 * addresses and ports proves it, unless exactly these are forged.
 *
 * A look-up costs as much as several packets, so only rare ones pay for it: those to failsafe
 * ports, path-MTU messages, and drops that count towards a ban. Sockets are those of the
 * interface's network namespace: those of containers and behind NAT are not found.
 */
#ifndef SLUICE_BPF_SOCKET_H
#define SLUICE_BPF_SOCKET_H

#include "bpf/packet.h"

#define TCP_SEQ_OFFSET 4
#define QUOTE_OFFSET 8 /* of the packet that an ICMP error quotes */
#define QUOTE_FRAG_MASK 0x1fff

static __always_inline struct socket_tuple tuple_of(const struct packet *pkt)
{
	return (struct socket_tuple){
		.remote = pkt->src,
		.local = pkt->dst,
		.remote_port = pkt->sport,
		.local_port = pkt->dport,
		.family = pkt->family,
		.proto = pkt->proto,
	};
}

/* Of a TCP or UDP packet whose ports are known. Returns enum socket_state. */
SL_GLOBAL enum socket_state socket_of(env_ctx *ctx, const struct packet *pkt)
{
	struct socket_tuple tuple = {};

	if (!pkt)
		return SOCKET_NONE;
	tuple = tuple_of(pkt);
	return env_socket(ctx, &tuple);
}

/* Where the transport's header is; 0 where IPv6 extension headers are before it. */
static __always_inline u32 transport_offset(env_ctx *ctx, const struct packet *pkt)
{
	u8 byte;

	if (pkt->family == SL_V4) {
		if (env_load_bytes(ctx, pkt->l3_offset, &byte, 1))
			return 0;
		return pkt->l3_offset + (byte & 15) * 4;
	}
	if (env_load_bytes(ctx, pkt->l3_offset + 6, &byte, 1) || byte != pkt->proto)
		return 0;
	return pkt->l3_offset + 40;
}

/*
 * Whether a packet is a segment of an established connection of this host, as only its peer can
 * send it: the sequence number is near the receive window, which is not to be guessed blindly.
 */
SL_GLOBAL int socket_proves(env_ctx *ctx, const struct packet *pkt)
{
	struct socket_tuple tuple = {};
	u32 offset, seq;

	if (!pkt || pkt->proto != PROTO_TCP || is_l4_hidden(pkt->flags) ||
	    (pkt->flags & (PKT_L4 | PKT_LATER)) != PKT_L4)
		return 0;
	offset = transport_offset(ctx, pkt);
	if (!offset || env_load_bytes(ctx, offset + TCP_SEQ_OFFSET, &seq, sizeof(seq)))
		return 0;
	tuple = tuple_of(pkt);
	return env_socket_takes(ctx, &tuple, env_ntohl(seq));
}

static __always_inline u64 quoted_u64(const u32 *be)
{
	return (u64)env_ntohl(be[0]) << 32 | env_ntohl(be[1]);
}

/*
 * The IP header at `offset`, which this host sent: its addresses and protocol. Returns where its
 * transport header is, or 0.
 */
static __always_inline u32 quoted_header(env_ctx *ctx, u32 offset, struct socket_tuple *tuple)
{
	u32 head[10] = {}, first;

	if (env_load_bytes(ctx, offset, head, tuple->family == SL_V4 ? 20 : 40))
		return 0;
	first = env_ntohl(head[0]);
	if (tuple->family == SL_V6) {
		tuple->proto = env_ntohl(head[1]) >> 8;
		tuple->local.hi = quoted_u64(&head[2]);
		tuple->local.lo = quoted_u64(&head[4]);
		tuple->remote.hi = quoted_u64(&head[6]);
		tuple->remote.lo = quoted_u64(&head[8]);
		return first >> 28 == 6 ? offset + 40 : 0;
	}
	tuple->proto = env_ntohl(head[2]) >> 16;
	tuple->local.hi = (u64)env_ntohl(head[3]) << 32;
	tuple->remote.hi = (u64)env_ntohl(head[4]) << 32;
	if (first >> 28 != 4 || (env_ntohl(head[1]) & QUOTE_FRAG_MASK))
		return 0;
	return offset + (first >> 24 & 15) * 4;
}

/* Of the packet that an ICMP error quotes, with its addresses and ports in *tuple. */
static __always_inline enum socket_state socket_quoted(env_ctx *ctx, const struct packet *pkt,
						       struct socket_tuple *tuple)
{
	u32 offset = transport_offset(ctx, pkt);
	u16 ports[2];

	tuple->family = pkt->family;
	if (offset)
		offset = quoted_header(ctx, offset + QUOTE_OFFSET, tuple);
	if (!offset || (tuple->proto != PROTO_TCP && tuple->proto != PROTO_UDP) ||
	    env_load_bytes(ctx, offset, ports, sizeof(ports)))
		return SOCKET_NONE;
	tuple->local_port = env_ntohs(ports[0]);
	tuple->remote_port = env_ntohs(ports[1]);
	return env_socket(ctx, tuple);
}

/*
 * The limit of a path-MTU message: in sum, or where the packet that it quotes has a socket here
 * by that one's peer. An unconnected UDP socket has no peer, so any address can be quoted: such
 * messages are held by its port. From here on pkt's source and port are what they are held by.
 */
SL_GLOBAL enum sl_internal_limit path_mtu_limit(env_ctx *ctx, struct packet *pkt)
{
	struct socket_tuple tuple = {};
	enum socket_state state;

	if (!pkt)
		return SL_LIMIT_PATH_MTU;
	state = socket_quoted(ctx, pkt, &tuple);
	if (state == SOCKET_CONNECTED) {
		pkt->src = tuple.remote;
		pkt->dport = 0;
		return SL_LIMIT_PATH_MTU_SOCKET;
	}
	if (state != SOCKET_BOUND || tuple.proto != PROTO_UDP)
		return SL_LIMIT_PATH_MTU;
	pkt->src.hi = 0;
	pkt->src.lo = 0;
	pkt->dport = tuple.local_port;
	return SL_LIMIT_PATH_MTU_SOCKET;
}

#endif
