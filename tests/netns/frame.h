/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frame.h - Ethernet frames for the traffic tools, built from command line options.
 *
 * frame_build() lays a frame out once; frame_patch() then changes the source address and the
 * destination port of a copy and mends the checksums from precomputed sums, which is what a
 * flood can afford per packet. Frames are whatever the options state, broken ones included:
 * nothing here checks that they make sense.
 */
#ifndef TESTS_NETNS_FRAME_H
#define TESTS_NETNS_FRAME_H

#include <netinet/ether.h>

#include "tool.h"

#define FRAME_MAX 9216
#define FRAME_TAGS_MAX 8

struct frame_spec {
	uint8_t mac_src[6], mac_dst[6];
	struct {
		uint16_t tpid, vid;
	} tag[FRAME_TAGS_MAX];
	int tags;
	bool v6;
	uint8_t src[16], dst[16]; /* network order; IPv4 in the first four bytes */
	int src_len;		  /* prefix length; shorter than the address: many sources */
	bool sequential;	  /* over the prefix, else random */
	uint32_t sources;	  /* sequential: how many; 0 the whole prefix */
	int proto;
	int sport, dport, dport_last;
	int dscp, tcp_flags;
	int option_words; /* of IPv4 options (no-operations) */
	int length;	  /* of the frame, without FCS */
	uint8_t raw[FRAME_MAX];
	int raw_len; /* the frame as given; nothing else counts */
};

struct frame {
	uint8_t data[FRAME_MAX];
	int len;
	int ip, src, dport; /* offsets; 0: not there */
	int ip_csum, l4_csum;
	uint32_t ip_sum, l4_sum; /* without source address and destination port */
};

static inline void frame_put16(uint8_t *at, unsigned int value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static inline uint32_t frame_sum(const uint8_t *at, int len)
{
	uint32_t sum = 0;

	for (int i = 0; i < len; i++)
		sum += i & 1 ? at[i] : at[i] << 8;
	return sum;
}

static inline uint16_t frame_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* A transport header at `at`; returns its length. */
static inline int frame_transport(const struct frame_spec *spec, struct frame *f, int at, int room)
{
	uint8_t *p = f->data + at;

	switch (spec->proto) {
	case 17:
		frame_put16(p, spec->sport);
		frame_put16(p + 4, room);
		f->dport = at + 2;
		f->l4_csum = at + 6;
		return 8;
	case 6:
		frame_put16(p, spec->sport);
		p[12] = 5 << 4;
		p[13] = spec->tcp_flags;
		frame_put16(p + 14, 65535);
		f->dport = at + 2;
		f->l4_csum = at + 16;
		return 20;
	}
	return 0;
}

static inline int frame_ipv4(const struct frame_spec *spec, struct frame *f, int at, int len)
{
	uint8_t *p = f->data + at;
	int header = 20 + 4 * spec->option_words;

	p[0] = 0x40 | header / 4;
	p[1] = spec->dscp << 2;
	frame_put16(p + 2, len);
	frame_put16(p + 4, 0x5157);
	p[8] = 64;
	p[9] = spec->proto;
	memcpy(p + 16, spec->dst, 4);
	memset(p + 20, 1, 4 * spec->option_words);
	f->src = at + 12;
	f->ip_csum = at + 10;
	f->ip_sum = frame_sum(p, header);
	return header;
}

static inline int frame_ipv6(const struct frame_spec *spec, struct frame *f, int at, int len)
{
	uint8_t *p = f->data + at;

	p[0] = 0x60 | spec->dscp >> 2;
	p[1] = spec->dscp << 6;
	frame_put16(p + 4, len - 40);
	p[6] = spec->proto;
	p[7] = 64;
	memcpy(p + 24, spec->dst, 16);
	f->src = at + 8;
	return 40;
}

static inline void frame_build(const struct frame_spec *spec, struct frame *f)
{
	int at = 12, l4, room;

	memset(f, 0, sizeof(*f));
	if (spec->raw_len) {
		memcpy(f->data, spec->raw, spec->raw_len);
		f->len = spec->raw_len;
		return;
	}
	memcpy(f->data, spec->mac_dst, 6);
	memcpy(f->data + 6, spec->mac_src, 6);
	for (int i = 0; i < spec->tags; i++, at += 4) {
		frame_put16(f->data + at, spec->tag[i].tpid);
		frame_put16(f->data + at + 2, spec->tag[i].vid);
	}
	frame_put16(f->data + at, spec->v6 ? 0x86dd : 0x0800);
	f->ip = at += 2;
	f->len = spec->length;
	at += spec->v6 ? frame_ipv6(spec, f, at, f->len - at)
		       : frame_ipv4(spec, f, at, f->len - at);
	room = f->len - at;
	l4 = frame_transport(spec, f, at, room);
	if (f->len < at + l4)
		f->len = at + l4;
	f->l4_sum = frame_sum(f->data + at, room) + spec->proto + room +
		    frame_sum(spec->dst, spec->v6 ? 16 : 4);
}

/* Bytes of a source address. */
static inline int frame_address_size(const struct frame_spec *spec)
{
	return spec->v6 ? 16 : 4;
}

static inline void frame_patch(const struct frame_spec *spec, struct frame *f, const uint8_t *src,
			       uint16_t dport)
{
	int size = frame_address_size(spec);

	if (!f->src)
		return;
	memcpy(f->data + f->src, src, size);
	if (f->dport)
		frame_put16(f->data + f->dport, dport);
	if (f->ip_csum)
		frame_put16(f->data + f->ip_csum, frame_fold(f->ip_sum + frame_sum(src, size)));
	if (f->l4_csum) {
		uint16_t csum = frame_fold(f->l4_sum + dport + frame_sum(src, size));

		frame_put16(f->data + f->l4_csum, csum || spec->proto != 17 ? csum : 0xffff);
	}
}

/* xorshift64*: a flood's random numbers. */
static inline uint64_t frame_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

/* The n-th source: of the prefix in turn, or a random one of it. */
static inline void frame_source(const struct frame_spec *spec, uint64_t n, uint64_t *random,
				uint8_t *ret)
{
	int size = frame_address_size(spec);
	uint64_t low =
		spec->sequential ? (spec->sources ? n % spec->sources : n) : frame_random(random);
	uint64_t high = spec->sequential ? 0 : frame_random(random);

	memcpy(ret, spec->src, size);
	for (int bit = size * 8 - 1, i = 0; bit >= spec->src_len; bit--, i++) {
		uint64_t value = i < 64 ? low >> i : high >> (i - 64);

		if (value & 1)
			ret[bit / 8] |= 0x80 >> bit % 8;
	}
}

/* ------------------------------------------------------------------ options */

/* clang-format off */
#define FRAME_OPTIONS(spec)                                                                   \
	{ "src", frame_take_source, spec }, { "dst", frame_take_destination, spec },          \
	{ "mac", frame_take_mac, (spec)->mac_dst },                                           \
	{ "mac-src", frame_take_mac, (spec)->mac_src },                                       \
	{ "proto", frame_take_proto, spec }, { "dport", frame_take_ports, spec },             \
	{ "sport", take_int, &(spec)->sport }, { "length", take_int, &(spec)->length },       \
	{ "tag", frame_take_tag, spec }, { "dscp", take_int, &(spec)->dscp },                 \
	{ "flags", take_int, &(spec)->tcp_flags },                                            \
	{ "ip-options", take_int, &(spec)->option_words },                                    \
	{ "sequential", frame_take_sequential, spec }, { "raw", frame_take_raw, spec }
/* clang-format on */

#define FRAME_USAGE                                                                                \
	"  --src ADDR[/LEN]     source; a prefix: a random address of it for each frame\n"         \
	"  --sequential N       the first N addresses of the prefix in turn (0: all)\n"            \
	"  --dst ADDR  --mac MAC  --mac-src MAC\n"                                                 \
	"  --proto udp|tcp  --sport N  --dport N[-LAST]\n"                                         \
	"  --flags N            TCP flags (default 2: SYN)\n"                                      \
	"  --length N           of the frame (default 64)    --dscp N\n"                           \
	"  --tag TPID:VID       a VLAN tag, outermost first; repeat\n"                             \
	"  --ip-options WORDS   --raw HEX\n"

static inline void frame_defaults(struct frame_spec *spec)
{
	*spec = (struct frame_spec){
		.mac_src = { 2, 0, 0, 0, 0, 1 },
		.mac_dst = { 2, 0, 0, 0, 0, 2 },
		.proto = 17,
		.sport = 40000,
		.dport = 9,
		.dport_last = 9,
		.tcp_flags = 2,
		.length = 64,
		.src_len = -1,
	};
}

/* Takes an address into `ret`; returns whether it is of IPv6. */
static inline bool frame_take_address(const char *text, uint8_t *ret)
{
	bool v6 = strchr(text, ':') != NULL;

	if (inet_pton(v6 ? AF_INET6 : AF_INET, text, ret) != 1)
		tool_bad("address", text);
	return v6;
}

static inline void frame_take_source(const char *text, void *at)
{
	struct frame_spec *spec = at;
	char address[64];
	const char *slash = strchr(text, '/');

	snprintf(address, sizeof(address), "%.*s", (int)(slash ? slash - text : 63), text);
	spec->v6 = frame_take_address(address, spec->src);
	spec->src_len = slash ? atoi(slash + 1) : 8 * frame_address_size(spec);
}

static inline void frame_take_destination(const char *text, void *at)
{
	frame_take_address(text, ((struct frame_spec *)at)->dst);
}

static inline void frame_take_mac(const char *text, void *at)
{
	if (!ether_aton_r(text, at))
		tool_bad("MAC address", text);
}

static inline void frame_take_proto(const char *text, void *at)
{
	((struct frame_spec *)at)->proto = strcmp(text, "tcp") ? 17 : 6;
}

static inline void frame_take_ports(const char *text, void *at)
{
	struct frame_spec *spec = at;

	if (sscanf(text, "%d-%d", &spec->dport, &spec->dport_last) != 2)
		spec->dport_last = spec->dport;
}

static inline void frame_take_tag(const char *text, void *at)
{
	struct frame_spec *spec = at;
	int tpid, vid;

	if (spec->tags == FRAME_TAGS_MAX || sscanf(text, "%i:%d", &tpid, &vid) != 2)
		tool_bad("tag", text);
	spec->tag[spec->tags].tpid = tpid;
	spec->tag[spec->tags++].vid = vid;
}

static inline void frame_take_sequential(const char *text, void *at)
{
	struct frame_spec *spec = at;

	spec->sequential = true;
	spec->sources = atoi(text);
}

static inline void frame_take_raw(const char *text, void *at)
{
	struct frame_spec *spec = at;

	for (; text[0] && text[1]; text += 2) {
		if (spec->raw_len == FRAME_MAX ||
		    sscanf(text, "%2hhx", &spec->raw[spec->raw_len++]) != 1)
			tool_bad("raw frame", text);
	}
}

#endif
