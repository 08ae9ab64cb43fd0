// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* names.c - the names of the configuration's values; one table for reading and writing. */
#include <stdio.h>
#include <string.h>

#include "config/model.h"
#include "limiter/algorithm.h"

const struct name interface_mode_names[] = {
	{ "auto", MODE_AUTO },
	{ "native", MODE_NATIVE },
	{ "generic", MODE_GENERIC },
	{ NULL, 0 },
};

const struct name on_removed_names[] = {
	{ "attach", ON_REMOVED_ATTACH },
	{ "replace", ON_REMOVED_REPLACE },
	{ "alarm", ON_REMOVED_ALARM },
	{ NULL, 0 },
};

const struct name algorithm_names[] = {
/* clang-format off */
#define NAME(id, row, text, kind) { text, id },
	/* clang-format on */
	ALGORITHMS_OF_PACKETS(NAME)
#undef NAME
		{ NULL, 0 },
};

const struct name accounting_names[] = {
	{ "percpu", ACCOUNTING_PERCPU },
	{ "exact", ACCOUNTING_EXACT },
	{ NULL, 0 },
};

const struct name limit_action_names[] = {
	{ "drop", SL_ACT_DROP },
	{ "tag", SL_ACT_TAG },
	{ "pass", SL_ACT_PASS },
	{ NULL, 0 },
};

const struct name limit_mode_names[] = {
	{ "enforce", SL_MODE_ENFORCE },
	{ "shadow", SL_MODE_SHADOW },
	{ "off", SL_MODE_OFF },
	{ NULL, 0 },
};

const struct name on_full_names[] = {
	{ "open", SL_FULL_OPEN },
	{ "closed", SL_FULL_CLOSED },
	{ "prefix", SL_FULL_PREFIX },
	{ NULL, 0 },
};

const struct name on_parse_error_names[] = {
	{ "pass", SL_ACT_PASS },
	{ "drop", SL_ACT_DROP },
	{ NULL, 0 },
};

const struct name fragments_names[] = {
	{ "limit", SL_FRAG_LIMIT },
	{ "pass", SL_FRAG_PASS },
	{ "drop", SL_FRAG_DROP },
	{ NULL, 0 },
};

const struct name count_names[] = { { "admitted", COUNT_ADMITTED },
				    { "all", COUNT_ALL },
				    { NULL, 0 } };
const struct name http_count_names[] = {
	{ "admitted", COUNT_ADMITTED },
	{ "all", COUNT_ALL },
	{ "debt", COUNT_DEBT },
	{ NULL, 0 },
};
const struct name scope_names[] = { { "node", 0 }, { "cluster", 1 }, { NULL, 0 } };

const struct name window_names[] = {
	{ "aligned", false },
	{ "first-request", true },
	{ NULL, 0 },
};

const struct name rounding_names[] = { { "down", false }, { "up", true }, { NULL, 0 } };

const struct name per_names[] = {
	{ "source", SL_PER_SOURCE },
	{ "dst", SL_PER_DST },
	{ "proto", SL_PER_PROTO },
	{ "dport", SL_PER_DPORT },
	{ "vlan", SL_PER_VLAN },
	{ "interface", SL_PER_IFACE },
	{ NULL, 0 },
};

const struct name proto_names[] = {
	{ "tcp", PROTO_TCP },
	{ "udp", PROTO_UDP },
	{ "icmp", PROTO_ICMP },
	{ "icmpv6", PROTO_ICMPV6 },
	{ "sctp", PROTO_SCTP },
	{ "udplite", PROTO_UDPLITE },
	{ NULL, 0 },
};

const struct name port_proto_names[] = {
	{ "tcp", PROTO_TCP },
	{ "udp", PROTO_UDP },
	{ NULL, 0 },
};

/* RFC 2474 (cs), 2597 (af), 3246 (ef), 8622 (le) */
const struct name dscp_names[] = {
	{ "cs0", 0 },	{ "cs1", 8 },	{ "cs2", 16 },	{ "cs3", 24 },	{ "cs4", 32 },
	{ "cs5", 40 },	{ "cs6", 48 },	{ "cs7", 56 },	{ "af11", 10 }, { "af12", 12 },
	{ "af13", 14 }, { "af21", 18 }, { "af22", 20 }, { "af23", 22 }, { "af31", 26 },
	{ "af32", 28 }, { "af33", 30 }, { "af41", 34 }, { "af42", 36 }, { "af43", 38 },
	{ "ef", 46 },	{ "le", 1 },	{ NULL, 0 },
};

const struct name tcp_flag_names[] = {
	{ "fin", 1 },  { "syn", 2 },  { "rst", 4 },   { "psh", 8 }, { "ack", 16 },
	{ "urg", 32 }, { "ece", 64 }, { "cwr", 128 }, { NULL, 0 },
};

/* The names of nft, which are IANA's in lower case. */
const struct name icmp_names[] = {
	{ "echo-reply", 0 },	       { "destination-unreachable", 3 },
	{ "source-quench", 4 },	       { "redirect", 5 },
	{ "echo-request", 8 },	       { "router-advertisement", 9 },
	{ "router-solicitation", 10 }, { "time-exceeded", 11 },
	{ "parameter-problem", 12 },   { "timestamp-request", 13 },
	{ "timestamp-reply", 14 },     { "info-request", 15 },
	{ "info-reply", 16 },	       { "address-mask-request", 17 },
	{ "address-mask-reply", 18 },  { NULL, 0 },
};

const struct name icmpv6_names[] = {
	{ "destination-unreachable", 1 },
	{ "packet-too-big", 2 },
	{ "time-exceeded", 3 },
	{ "parameter-problem", 4 },
	{ "echo-request", 128 },
	{ "echo-reply", 129 },
	{ "mld-listener-query", 130 },
	{ "mld-listener-report", 131 },
	{ "mld-listener-done", 132 },
	{ "nd-router-solicit", 133 },
	{ "nd-router-advert", 134 },
	{ "nd-neighbor-solicit", 135 },
	{ "nd-neighbor-advert", 136 },
	{ "nd-redirect", 137 },
	{ "router-renumbering", 138 },
	{ "ind-neighbor-solicit", 141 },
	{ "ind-neighbor-advert", 142 },
	{ "mld2-listener-report", 143 },
	{ NULL, 0 },
};

const char *on_full_name(enum sl_on_full on_full)
{
	const char *name = name_of(on_full_names, on_full);

	return name ? name : "?";
}
