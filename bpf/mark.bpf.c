/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mark.bpf.c - the second half of a limit's `mark`: from XDP metadata to skb->mark.
 *
 * XDP has no mark to set, and netfilter cannot read XDP metadata. This program sits on clsact
 * ingress, before anything that looks at marks. It decides nothing: TC_ACT_UNSPEC hands the
 * packet on to the filters after it. Metadata of other programs is left alone.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#include "sluice/abi.h"

SEC("tc")
int sluice_mark(struct __sk_buff *skb)
{
	const struct sl_meta *meta = (void *)(long)skb->data_meta;
	const void *data = (void *)(long)skb->data;

	if ((const void *)(meta + 1) <= data && meta->magic == SL_META_MAGIC)
		skb->mark = meta->mark;
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
