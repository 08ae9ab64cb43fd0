/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * match_keys.h - the keys of a limit's `match:`, one row each. From the rows come the fields of
 * struct match_def, reading, writing, copying, the classifier's dimensions,
 * and the fields of a packet that `explain` takes and prints.
 *
 * A new key of a kind that exists is a row here; its dimension (sluice/limit.h), and where the data
 * path reads it (bpf/packet.h, bpf/parse.h, bpf/classify.h); its bytes in the frame of explain
 * (packet/explain/explain_frame.c); and an option of the command explain. Its verdicts are
 * remembered once it is part of the key there (bpf/like.h).
 */
#ifndef SLUICE_MATCH_KEYS_H
#define SLUICE_MATCH_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/addr.h"
#include "sluice/abi.h"

struct u16_range {
	u16 first, last; /* inclusive */
};

struct tcp_flags_cond {
	u8 set, clear; /* bits as in the TCP header: FIN 1 SYN 2 RST 4 PSH 8 ACK 16 URG 32 ECE 64
			  CWR 128 */
};

struct icmp_type_cond {
	u8 family; /* enum sl_family: ICMP or ICMPv6 */
	u8 type;
};

typedef char match_interface[16]; /* IFNAMSIZ */

/* What the values of a key are. */
enum match_kind {
	MATCH_PREFIXES,	  /* struct sl_prefix; also of sets */
	MATCH_PROTOS,	  /* u8, names are resolved */
	MATCH_RANGES,	  /* struct u16_range, 0 to `most` */
	MATCH_FLAGS,	  /* struct tcp_flags_cond */
	MATCH_ICMP_TYPES, /* struct icmp_type_cond; a name that both families have gives two */
	MATCH_INTERFACES, /* match_interface */
};

/* Which packets have the field; later fragments only one that all have. */
enum match_needs {
	MATCH_NEEDS_IP,
	MATCH_NEEDS_PORTS, /* TCP, UDP, UDP-Lite, SCTP */
	MATCH_NEEDS_TCP,
	MATCH_NEEDS_ICMP, /* the family's */
};

#define MATCH_PORT_RANGES "a port or a range of them, 0 to 65535, as 443 or 8000-8010"

/*
 * KEY(ID, name, type of a value, type of the field in struct explain_packet, struct match_key...).
 * In this order everywhere.
 */
#define MATCH_KEYS(KEY)                                                                            \
	KEY(SRC, src, struct sl_prefix, struct sl_addr, .kind = MATCH_PREFIXES,                    \
	    .per = SL_PER_SOURCE)                                                                  \
	KEY(DST, dst, struct sl_prefix, struct sl_addr, .kind = MATCH_PREFIXES, .per = SL_PER_DST) \
	KEY(PROTO, proto, u8, u8, .kind = MATCH_PROTOS, .dims = SL_DIMS_8(SL_DIM_PROTO),           \
	    .per = SL_PER_PROTO)                                                                   \
	KEY(SPORT, sport, struct u16_range, u16, .kind = MATCH_RANGES,                             \
	    .dims = SL_DIMS_16(SL_DIM_SPORT), .needs = MATCH_NEEDS_PORTS, .most = 65535,           \
	    .accepted = MATCH_PORT_RANGES, .one = "a port, 0 to 65535, is accepted")               \
	KEY(DPORT, dport, struct u16_range, u16, .kind = MATCH_RANGES,                             \
	    .dims = SL_DIMS_16(SL_DIM_DPORT), .needs = MATCH_NEEDS_PORTS, .most = 65535,           \
	    .accepted = MATCH_PORT_RANGES, .one = "a port, 0 to 65535, is accepted",               \
	    .per = SL_PER_DPORT)                                                                   \
	KEY(VLAN, vlan, struct u16_range, u16, .kind = MATCH_RANGES,                               \
	    .dims = SL_DIMS_16(SL_DIM_VLAN), .most = 4095,                                         \
	    .accepted = "a VLAN id or a range of them, 0 to 4095",                                 \
	    .one = "a VLAN id, 0 to 4095, or none is accepted", .none = SL_VLAN_NONE,              \
	    .usual = SL_VLAN_NONE, .per = SL_PER_VLAN)                                             \
	KEY(TCP_FLAGS, tcp_flags, struct tcp_flags_cond, u8, .kind = MATCH_FLAGS,                  \
	    .dims = SL_DIMS_8(SL_DIM_TCP_FLAGS), .needs = MATCH_NEEDS_TCP)                         \
	KEY(ICMP_TYPE, icmp_type, struct icmp_type_cond, u8, .kind = MATCH_ICMP_TYPES,             \
	    .needs = MATCH_NEEDS_ICMP, .dims = SL_DIMS_8(SL_DIM_ICMP) | SL_DIMS_8(SL_DIM_ICMPV6))  \
	KEY(LENGTH, length, struct u16_range, u32, .kind = MATCH_RANGES,                           \
	    .dims = SL_DIMS_16(SL_DIM_LENGTH), .most = 65535,                                      \
	    .accepted = "the length that IP states, in bytes, or a range of them, 0 to 65535, "    \
			"as 0-128",                                                                \
	    .one = "the length that IP states in bytes, up to 65535, is accepted")                 \
	KEY(INTERFACE, interface, match_interface, u32, .kind = MATCH_INTERFACES,                  \
	    .dims = SL_DIMS_8(SL_DIM_IFACE), .per = SL_PER_IFACE)

enum match_key_id {
#define ID(id, ...) MATCH_##id,
	MATCH_KEYS(ID)
#undef ID
		MATCH_KEY_COUNT,
};

/* Sets that src or dst names; their prefixes are at the end of the key's. */
struct match_sets {
	char (*name)[SL_NAME_MAX];
	size_t count;
	size_t prefixes;
};

/*
 * A `match:`. A key with count 0 matches everything; of several values any one does. Values of one
 * key are in its field `name`, of `name`_count elements.
 */
struct match_def {
#define VALUES(id, name, type, ...)                                                                \
	type *name;                                                                                \
	size_t name##_count;
	MATCH_KEYS(VALUES)
#undef VALUES
	struct match_sets sets[MATCH_DST + 1]; /* of src and dst */
};

struct match_key {
	const char *name;
	enum match_kind kind;
	enum match_needs needs;
	u32 dims;		    /* SL_DIMS_16() or SL_DIMS_8() of its dimensions; 0: prefixes */
	u32 per;		    /* enum sl_per: what `per` counts by; 0: none */
	u32 most;		    /* MATCH_RANGES: the largest value */
	const char *accepted, *one; /* MATCH_RANGES: a condition; a packet's value */
	u32 usual;		    /* MATCH_RANGES: what explain assumes */
	u32 none; /* MATCH_RANGES: the value of a packet without the field; 0: all have it */
	size_t values, count, size; /* in struct match_def */
};

extern const struct match_key match_keys[MATCH_KEY_COUNT];

/* The key of a dimension, SL_DIMS_16(d) or SL_DIMS_8(d). */
const struct match_key *match_key_of(u32 dims);

/* The values of a key, and how many. */
const void *match_values(const struct match_def *match, const struct match_key *key,
			 size_t *ret_count);
size_t match_count(const struct match_def *match, const struct match_key *key);
/* Appends a copy of a value. 0 or -ENOMEM. */
int match_append(struct match_def *match, const struct match_key *key, const void *value);

bool match_names_set(const struct match_def *match, const char *name);

/* Whether they were written alike: sets count by their names. */
bool match_equal(const struct match_def *a, const struct match_def *b);

/* Whether each packet that `inner` matches is surely one that `outer` matches. */
bool match_covers(const struct match_def *outer, const struct match_def *inner);

/*
 * Whether one of the key's values holds the number: a protocol, a port, an ICMP type of the family,
 * the byte of TCP flags. Not for prefixes and interfaces.
 */
bool match_holds(const struct match_def *match, const struct match_key *key, enum sl_family family,
		 u32 value);
/* Whether a packet of this family and protocol has the field. */
bool match_needs_met(enum match_needs needs, enum sl_family family, u8 proto);

#endif
