/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dispatcher.bpf.c - a dispatcher for libxdp 1.3 that takes programs which tail-call.
 *
 * libxdp attaches several programs by loading a dispatcher that calls prog0(), prog1()...,
 * and replacing each of those by a program (freplace). Since 6.12.8 (and in other stable
 * kernels since) the verifier requires a function that "changes packet data" to replace only one
 * that does, and it counts a tail call as such a change. The functions of libxdp 1.3's own
 * dispatcher change nothing, so our stub is refused there:
 *
 *     Extension program changes packet data, while original does not
 *
 * This one differs by the call to bpf_xdp_adjust_head(), which is there to be seen, not to be run.
 * It is passed to libxdp only where its own was refused; names, section and layout are those that
 * <xdp/prog_dispatcher.h> and libxdp 1.3 agree on, so later libxdp calls accept it as theirs.
 * Test: test_dispatcher on 6.12.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <xdp/prog_dispatcher.h>

static volatile const struct xdp_dispatcher_config conf = {};

/* The branch is never taken; it shows the verifier what may replace the function. */
#define PROG(name)                                                                                 \
	__attribute__((noinline)) int name(struct xdp_md *ctx)                                     \
	{                                                                                          \
		volatile int ret = XDP_DISPATCHER_RETVAL;                                          \
                                                                                                   \
		if (ret != XDP_DISPATCHER_RETVAL)                                                  \
			bpf_xdp_adjust_head(ctx, 0);                                               \
		return ret;                                                                        \
	}

PROG(prog0)
PROG(prog1)
PROG(prog2)
PROG(prog3)
PROG(prog4)
PROG(prog5)
PROG(prog6)
PROG(prog7)
PROG(prog8)
PROG(prog9)
/* libxdp tries out here whether the kernel can replace functions at all. */
PROG(compat_test)

/* Goes on to the next program where the action of this one is in its mask. */
#define CALL(index)                                                                                \
	do {                                                                                       \
		if (count <= index)                                                                \
			return XDP_PASS;                                                           \
		action = prog##index(ctx);                                                         \
		if (!(1U << (action & 31) & conf.chain_call_actions[index]))                       \
			return action;                                                             \
	} while (0)

SEC("xdp")
int xdp_dispatcher(struct xdp_md *ctx)
{
	__u8 count = conf.num_progs_enabled;
	int action;

	CALL(0);
	CALL(1);
	CALL(2);
	CALL(3);
	CALL(4);
	CALL(5);
	CALL(6);
	CALL(7);
	CALL(8);
	CALL(9);
	if (count > MAX_DISPATCHER_ACTIONS)
		return compat_test(ctx);
	return XDP_PASS;
}

/* What libxdp puts in compat_test()'s place. */
SEC("xdp")
int xdp_pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
__uint(dispatcher_version, XDP_DISPATCHER_VERSION) SEC(XDP_METADATA_SECTION);
