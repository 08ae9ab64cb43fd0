// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* frame.c - byte by byte, as the RFCs draw it. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/frame.h"

#define ETHERTYPE_V4 0x0800
#define ETHERTYPE_ARP 0x0806
#define ETHERTYPE_V6 0x86dd

struct writer {
	const struct frame_spec *spec;
	struct frame *f;
	bool v6;
	bool failed;
	u8 src[16], dst[16];
};

static u8 *put(struct writer *w, u32 bytes)
{
	u8 *at = &w->f->data[w->f->length];

	if (w->f->length + bytes > FRAME_MAX) {
		w->failed = true;
		return w->f->data;
	}
	memset(at, 0, bytes);
	w->f->length += bytes;
	return at;
}

static void set16(u8 *at, u32 value)
{
	at[0] = value >> 8;
	at[1] = value;
}

/* A field that gets its correct value unless the test states another. */
static u32 or_right(u32 asked, u32 right)
{
	if (!asked)
		return right;
	return asked == FRAME_ZERO ? 0 : asked;
}

u16 frame_checksum(const u8 *bytes, u32 length)
{
	u32 sum = 0, i;

	for (i = 0; i < length; i++)
		sum += i & 1 ? bytes[i] : (u32)bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static void find_addresses(struct writer *w)
{
	const char *src = w->spec->src, *dst = w->spec->dst;

	w->v6 = w->spec->v6;
	if (src || dst)
		w->v6 = strchr(src ? src : dst, ':') != NULL;
	if (!src)
		src = w->v6 ? "2001:db8::1" : "192.0.2.1";
	if (!dst)
		dst = w->v6 ? "2001:db8:ffff::10" : "203.0.113.10";
	if (inet_pton(w->v6 ? AF_INET6 : AF_INET, src, w->src) != 1 ||
	    inet_pton(w->v6 ? AF_INET6 : AF_INET, dst, w->dst) != 1)
		w->failed = true;
}

static void put_ethernet(struct writer *w)
{
	const struct frame_spec *s = w->spec;
	const u8 macs[12] = { 2, 0, 0, 0, 0, s->mac ? s->mac : 1, 2, 0, 0, 0, 0, 2 };
	u32 i;

	memcpy(put(w, 12), macs, 12);
	for (i = 0; i < s->tags && i < FRAME_TAGS_MAX; i++) {
		u8 *tag = put(w, 4);

		set16(tag, s->ad & (1 << i) ? 0x88a8 : 0x8100);
		set16(tag + 2, s->vlan[i]);
	}
	set16(put(w, 2), s->ethertype ? s->ethertype : w->v6 ? ETHERTYPE_V6 : ETHERTYPE_V4);
}

static void put_arp(struct writer *w)
{
	static const u8 head[8] = { 0, 1, 8, 0, 6, 4, 0, 1 };
	u8 *arp = put(w, 28);

	memcpy(arp, head, sizeof(head));
	memcpy(arp + 14, w->src, 4);
	memcpy(arp + 24, w->dst, 4);
}

static u8 spec_proto(const struct frame_spec *s)
{
	return s->proto || s->proto_zero ? s->proto : 17;
}

static void put_tcp(struct writer *w)
{
	const struct frame_spec *s = w->spec;
	u32 doff = or_right(s->doff, 5);
	u8 *tcp = put(w, doff > 5 ? doff * 4 : 20);

	set16(tcp, s->sport || s->port_zero ? s->sport : 40000);
	set16(tcp + 2, s->dport || s->port_zero ? s->dport : 9);
	set16(tcp + 4, s->seq >> 16);
	set16(tcp + 6, s->seq);
	tcp[12] = doff << 4;
	tcp[13] = s->tcp_flags || s->null_flags ? s->tcp_flags : FRAME_ACK;
}

/* UDP, UDP-Lite and SCTP: the ports, and the rest of each header. */
static void put_ports(struct writer *w, u32 bytes)
{
	const struct frame_spec *s = w->spec;
	u8 *udp = put(w, bytes);

	set16(udp, s->sport || s->port_zero ? s->sport : 40000);
	set16(udp + 2, s->dport || s->port_zero ? s->dport : 9);
	set16(udp + 4, or_right(s->udp_length, bytes + s->payload));
}

static void put_quote(struct writer *w)
{
	const struct frame_spec *s = w->spec;
	struct frame *f = malloc(sizeof(*f));
	u32 length;

	if (!f || !frame_build(s->quote, f)) {
		w->failed = true;
	} else {
		length = f->length - f->l3;
		if (s->quote_length && s->quote_length < length)
			length = s->quote_length;
		memcpy(put(w, length), f->data + f->l3, length);
	}
	free(f);
}

static void put_transport(struct writer *w)
{
	const struct frame_spec *s = w->spec;
	u8 *icmp, *payload;

	w->f->l4 = w->f->length;
	if (!s->frag_offset) {
		switch (spec_proto(s)) {
		case 6:
			put_tcp(w);
			break;
		case 17:
		case 136:
			put_ports(w, 8);
			break;
		case 132:
			put_ports(w, 12);
			break;
		case 1:
		case 58:
			icmp = put(w, 8);
			icmp[0] = s->icmp_type;
			icmp[1] = s->icmp_code;
			if (s->quote)
				put_quote(w);
			break;
		}
	}
	payload = put(w, s->payload);
	if (!w->failed)
		memset(payload, 0xa5, s->payload);
}

static void put_ipv4(struct writer *w)
{
	const struct frame_spec *s = w->spec;
	u32 at = w->f->length, ihl = or_right(s->ihl, 5), header = ihl > 5 ? ihl * 4 : 20;
	u8 *ip = put(w, header);
	u32 frag = s->frag_offset | (s->frag_more ? 0x2000 : 0) | s->frag_flags;

	put_transport(w);
	if (w->failed)
		return;
	ip[0] = or_right(s->version, 4) << 4 | ihl;
	ip[1] = s->tos;
	set16(ip + 2, or_right(s->total, w->f->length - at));
	set16(ip + 4, or_right(s->frag_id, 0x1234));
	set16(ip + 6, frag);
	ip[8] = s->hop_limit ? s->hop_limit : 64;
	ip[9] = spec_proto(s);
	memcpy(ip + 12, w->src, 4);
	memcpy(ip + 16, w->dst, 4);
	if (header > 20)
		memset(ip + 20, 1, header - 20); /* no-operation options */
	set16(ip + 10, frame_checksum(ip, header) ^ s->bad_checksum);
}

/* One extension header; `next` is the value of its next-header byte. */
static void put_ext(struct writer *w, u16 kind, u32 units, u8 next)
{
	const struct frame_spec *s = w->spec;
	u8 *ext;

	if (kind == EXT_FRAGMENT) {
		ext = put(w, 8);
		set16(ext + 2, (u32)s->frag_offset << 3 | s->frag_flags | s->frag_more);
		set16(ext + 4, or_right(s->frag_id, 0x1234) >> 16);
		set16(ext + 6, or_right(s->frag_id, 0x1234));
	} else {
		/* AH counts 4-byte words less two, the others 8-byte units less one. */
		ext = put(w, kind == EXT_AH ? (units + 2) * 4 : (units + 1) * 8);
		ext[1] = units;
	}
	ext[0] = next;
}

static void put_ipv6(struct writer *w)
{
	const struct frame_spec *s = w->spec;
	u8 *ip = put(w, 40);
	u32 at = w->f->length, i;

	ip[6] = s->ext[0] ? (u8)s->ext[0] : spec_proto(s);
	for (i = 0; i < FRAME_EXT_MAX && s->ext[i]; i++) {
		u32 units = s->ext_units[i];

		if (!units && s->ext[i] == EXT_AH)
			units = 1; /* its fixed part */
		put_ext(w, s->ext[i], units, s->ext[i + 1] ? (u8)s->ext[i + 1] : spec_proto(s));
	}
	put_transport(w);
	if (w->failed)
		return;
	ip[0] = or_right(s->version, 6) << 4 | s->tos >> 4;
	ip[1] = s->tos << 4;
	set16(ip + 4, or_right(s->total, w->f->length - at));
	ip[7] = s->hop_limit ? s->hop_limit : 64;
	memcpy(ip + 8, w->src, 16);
	memcpy(ip + 24, w->dst, 16);
}

bool frame_build(const struct frame_spec *spec, struct frame *ret)
{
	struct writer w = { .spec = spec, .f = ret };

	ret->length = ret->l3 = ret->l4 = 0;
	find_addresses(&w);
	put_ethernet(&w);
	if (spec->ethertype == ETHERTYPE_ARP) {
		put_arp(&w);
	} else if (spec->ethertype && spec->ethertype != ETHERTYPE_V4 &&
		   spec->ethertype != ETHERTYPE_V6) {
		put(&w, spec->payload);
	} else {
		ret->l3 = ret->length;
		if (w.v6)
			put_ipv6(&w);
		else
			put_ipv4(&w);
	}
	put(&w, spec->pad);
	if (spec->cut && spec->cut < ret->length)
		ret->length = spec->cut;
	return !w.failed;
}

/* ------------------------------------------------------------------ words */

static bool word_is(const char *word, const char *name)
{
	return !strcmp(word, name);
}

static const struct {
	const char *name;
	u8 number;
} protocols[] = {
	{ "tcp", 6 },	  { "udp", 17 },   { "icmp", 1 },
	{ "icmpv6", 58 }, { "sctp", 132 }, { "gre", 47 },
};

static const struct {
	const char *name;
	u8 bit;
} flags[] = {
	{ "syn", FRAME_SYN },
	{ "ack", FRAME_ACK },
	{ "rst", FRAME_RST },
	{ "psh", FRAME_PSH },
};

/* A word that stands alone: a protocol or a TCP flag. */
static bool take_word(struct frame_words *words, const char *word)
{
	u32 i;

	for (i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		if (word_is(word, protocols[i].name)) {
			words->spec.proto = protocols[i].number;
			return true;
		}
	}
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (word_is(word, flags[i].name)) {
			words->spec.tcp_flags |= flags[i].bit;
			return true;
		}
	}
	return false;
}

/* A word with a value behind it. */
static bool take_pair(struct frame_words *words, const char *word, const char *value)
{
	struct frame_spec *s = &words->spec;
	u32 number = strtoul(value, NULL, 0);

	if (word_is(word, "src")) {
		snprintf(words->src, sizeof(words->src), "%s", value);
	} else if (word_is(word, "dst")) {
		snprintf(words->dst, sizeof(words->dst), "%s", value);
	} else if (word_is(word, "dport")) {
		s->dport = number;
	} else if (word_is(word, "sport")) {
		s->sport = number;
	} else if (word_is(word, "vlan")) {
		s->vlan[s->tags++ % FRAME_TAGS_MAX] = number;
	} else if (word_is(word, "type")) {
		s->icmp_type = number;
	} else if (word_is(word, "first")) {
		s->frag_more = true;
		s->frag_id = number;
	} else if (word_is(word, "later")) {
		s->frag_offset = 9;
		s->frag_id = number;
	} else if (word_is(word, "length")) {
		words->length = number;
	} else {
		return false;
	}
	return true;
}

void frame_words_parse(struct frame_words *words, const char **at)
{
	char word[64], value[64];
	int used, more;

	memset(words, 0, sizeof(*words));
	while (sscanf(*at, " %63s%n", word, &used) == 1) {
		if (take_word(words, word)) {
			*at += used;
			continue;
		}
		if (sscanf(*at + used, " %63s%n", value, &more) != 1 ||
		    !take_pair(words, word, value))
			return;
		*at += used + more;
	}
}

bool frame_words_build(const struct frame_words *words, struct frame *ret)
{
	struct frame_spec spec = words->spec;

	if (spec.frag_id && (strchr(words->src, ':') || strchr(words->dst, ':')))
		spec.ext[0] = EXT_FRAGMENT;
	/* `words` may have been copied. */
	spec.src = words->src[0] ? words->src : NULL;
	spec.dst = words->dst[0] ? words->dst : NULL;
	if (!frame_build(&spec, ret))
		return false;
	if (!words->length)
		return true;
	if (words->length < ret->length)
		return false;
	spec.payload += words->length - ret->length;
	return frame_build(&spec, ret);
}
