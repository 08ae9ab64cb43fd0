/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * env.h - what the stages use of the kernel besides maps: bytes, time, sockets, tags.
 *
 * user/packet/dataplane/sim_env.h gives the same names over plain memory.
 */
#ifndef SLUICE_BPF_ENV_H
#define SLUICE_BPF_ENV_H

#include <bpf/bpf_endian.h>

#include "bpf/maps.h"
#include "bpf/evaluation.h"

typedef struct xdp_md env_ctx;

#define ENV_PASS XDP_PASS
#define ENV_DROP XDP_DROP

#define env_ntohs(x) bpf_ntohs(x)
#define env_ntohl(x) bpf_ntohl(x)

/* The kernel's tick rate; 0 where its configuration cannot be read. */
extern u32 CONFIG_HZ __kconfig __weak;

static __always_inline u32 env_hz(void)
{
	return CONFIG_HZ;
}

static __always_inline u32 env_iface_slot(void)
{
	return config.iface_slot;
}

static __always_inline u32 env_link(void)
{
	return config.link;
}

static __always_inline u32 env_cpu(void)
{
	return bpf_get_smp_processor_id();
}

static __always_inline u32 env_table_sets(void)
{
	return config.table_sets;
}

static __always_inline u32 env_fake_clock(void)
{
	return config.fake_clock;
}

static __always_inline u32 env_refusal_cache(void)
{
	return !config.no_refusal_cache;
}

/* The frame's length with all its fragments, bytes. */
static __always_inline u32 env_length(struct xdp_md *ctx)
{
	return bpf_xdp_get_buff_len(ctx);
}

/*
 * The frame's length without a helper call, where the linear part shows it: the call is a third
 * of what a drop may cost. Drivers put the rest of a jumbo frame elsewhere only
 * when the first buffer is full (1 KiB and more), or split headers off; a split frame has an
 * IP length beyond its linear part, and then parse_slowly() calls env_length().
 */
#define ENV_LINEAR_MIN 60 /* a minimum Ethernet frame */
#define ENV_LINEAR_MAX 1024
static __always_inline u32 env_linear_length(struct xdp_md *ctx)
{
	u32 linear = ctx->data_end - ctx->data;

	if (linear < ENV_LINEAR_MIN || linear >= ENV_LINEAR_MAX)
		return env_length(ctx);
	return linear;
}

/*
 * `len` bytes at `offset` where they are in the linear part, else NULL. The mask changes
 * nothing: where the offset was on the stack between check and use, 6.1 has forgotten the check
 * ("math between pkt pointer and register with unbounded min value is not allowed").
 */
static __always_inline void *env_data(struct xdp_md *ctx, u32 offset, u32 len)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (offset > 0x3fff)
		return NULL;
	OPAQUE(offset);
	offset &= 0x3fff;
	if (data + offset + len > end)
		return NULL;
	return data + offset;
}

static __always_inline int env_load_bytes(struct xdp_md *ctx, u32 offset, void *to, u32 len)
{
	return bpf_xdp_load_bytes(ctx, offset, to, len);
}

static __always_inline int env_store_bytes(struct xdp_md *ctx, u32 offset, void *from, u32 len)
{
	return bpf_xdp_store_bytes(ctx, offset, from, len);
}

static __always_inline u64 env_mono_ns(void)
{
	u32 zero = 0;
	struct sl_test_clock *fake;

	if (config.fake_clock) {
		fake = bpf_map_lookup_elem(&test_clock, &zero);
		return fake ? fake->mono_ns : 0;
	}
	return bpf_ktime_get_ns();
}

static __always_inline u32 env_random(void)
{
	return bpf_get_prandom_u32();
}

static __always_inline u64 env_jiffies(void)
{
	return bpf_jiffies64();
}

/* The kernel's form of a tuple; returns its size. */
static __always_inline u32 env_tuple(const struct socket_tuple *of, struct bpf_sock_tuple *ret)
{
	if (of->family == SL_V4) {
		ret->ipv4.saddr = bpf_htonl(of->remote.hi >> 32);
		ret->ipv4.daddr = bpf_htonl(of->local.hi >> 32);
		ret->ipv4.sport = bpf_htons(of->remote_port);
		ret->ipv4.dport = bpf_htons(of->local_port);
		return sizeof(ret->ipv4);
	}
	ret->ipv6.saddr[0] = bpf_htonl(of->remote.hi >> 32);
	ret->ipv6.saddr[1] = bpf_htonl(of->remote.hi);
	ret->ipv6.saddr[2] = bpf_htonl(of->remote.lo >> 32);
	ret->ipv6.saddr[3] = bpf_htonl(of->remote.lo);
	ret->ipv6.daddr[0] = bpf_htonl(of->local.hi >> 32);
	ret->ipv6.daddr[1] = bpf_htonl(of->local.hi);
	ret->ipv6.daddr[2] = bpf_htonl(of->local.lo >> 32);
	ret->ipv6.daddr[3] = bpf_htonl(of->local.lo);
	ret->ipv6.sport = bpf_htons(of->remote_port);
	ret->ipv6.dport = bpf_htons(of->local_port);
	return sizeof(ret->ipv6);
}

/*
 * Two functions, for their sockets are of two types: merged by the compiler, "same insn cannot be
 * used with different pointers".
 */
SL_GLOBAL enum socket_state env_socket_tcp(struct xdp_md *ctx, const struct socket_tuple *of)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *sk;
	u32 state;

	if (!of)
		return SOCKET_NONE;
	sk = bpf_skc_lookup_tcp(ctx, &tuple, env_tuple(of, &tuple), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return SOCKET_NONE;
	state = sk->state;
	bpf_sk_release(sk);
	switch (state) {
	case BPF_TCP_CLOSE:
	case BPF_TCP_LISTEN:
		return SOCKET_BOUND;
	case BPF_TCP_SYN_SENT:
	case BPF_TCP_SYN_RECV:
	case BPF_TCP_NEW_SYN_RECV:
		return SOCKET_OPENING;
	}
	return SOCKET_CONNECTED;
}

SL_GLOBAL enum socket_state env_socket_udp(struct xdp_md *ctx, const struct socket_tuple *of)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *sk;
	u32 state;

	if (!of)
		return SOCKET_NONE;
	sk = bpf_sk_lookup_udp(ctx, &tuple, env_tuple(of, &tuple), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return SOCKET_NONE;
	state = sk->state;
	bpf_sk_release(sk);
	return state == BPF_TCP_ESTABLISHED ? SOCKET_CONNECTED : SOCKET_BOUND;
}

static __always_inline enum socket_state env_socket(struct xdp_md *ctx,
						    const struct socket_tuple *of)
{
	return of->proto == PROTO_TCP ? env_socket_tcp(ctx, of) : env_socket_udp(ctx, of);
}

/* The kernel's, of which two members are read, wherever they are in it. */
struct tcp_sock___sluice {
	u32 rcv_nxt;
	u32 rcv_wnd;
} __attribute__((preserve_access_index));

/*
 * Whether there is a TCP socket beyond its handshake that takes a segment with this sequence
 * number, or took one within a window before.
 */
static __always_inline int env_socket_takes(struct xdp_md *ctx, const struct socket_tuple *of,
					    u32 seq)
{
	struct bpf_sock_tuple tuple = {};
	struct tcp_sock___sluice *tcp;
	struct bpf_sock *sk;
	int takes = 0;
	u32 state;

	sk = bpf_skc_lookup_tcp(ctx, &tuple, env_tuple(of, &tuple), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return 0;
	state = sk->state;
	if (state != BPF_TCP_LISTEN && state != BPF_TCP_SYN_SENT && state != BPF_TCP_SYN_RECV) {
		/* NULL for what is no full socket: in the handshake, or waiting after its end. */
		tcp = (void *)bpf_skc_to_tcp_sock(sk);
		takes = tcp && seq - tcp->rcv_nxt + tcp->rcv_wnd <= 2 * tcp->rcv_wnd;
	}
	bpf_sk_release(sk);
	return takes;
}

/* Puts a mark before the frame, for bpf/mark.bpf.c to read. */
static __always_inline int env_put_mark(struct xdp_md *ctx, u32 mark)
{
	struct sl_meta *meta;

	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*meta)))
		return -1;
	meta = (void *)(long)ctx->data_meta;
	if ((void *)(meta + 1) > (void *)(long)ctx->data)
		return -1;
	meta->magic = SL_META_MAGIC;
	meta->mark = mark;
	return 0;
}

/*
 * Goes on in another part of the program, with the packet in hand. What follows is reached
 * only where that part is not there. The index is made of read-only data: a constant to the
 * verifier, and so the jump a direct one.
 */
#define env_jump(ctx, stage)                                                                       \
	bpf_tail_call(ctx, &stages, sl_stage_at(stage, config.iface_slot, config.parity))

/*
 * The packet in hand, one per CPU: both parts of the program have it, and on the stack it
 * would leave too little of the 512 bytes that BPF has. XDP is not re-entered on a CPU. Not
 * pinned: each instance has its own, of its own layout.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct evaluation);
} packet_now SEC(".maps");

static __always_inline struct evaluation *env_evaluation(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&packet_now, &zero);
}

#endif
