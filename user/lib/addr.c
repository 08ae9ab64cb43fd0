// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* addr.c - see addr.h. inet_pton() and inet_ntop() convert addresses; this file adds prefixes. */
#include "lib/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/hash.h"

static u64 load_be64(const unsigned char *p)
{
	u64 value = 0;
	int i;

	for (i = 0; i < 8; i++)
		value = value << 8 | p[i];
	return value;
}

static void store_be64(unsigned char *p, u64 value)
{
	int i;

	for (i = 7; i >= 0; i--, value >>= 8)
		p[i] = value;
}

/* The digits after '/', without sign or leading zero; -1 if they are not a number. */
static int length_parse(const char *text)
{
	int len = 0;

	if (!*text || (text[0] == '0' && text[1]))
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || len > 128)
			return -1;
		len = len * 10 + (*text - '0');
	}
	return len;
}

static int address_parse(const char *text, size_t len, struct sl_prefix *prefix)
{
	unsigned char bytes[16] = { 0 };
	char copy[INET6_ADDRSTRLEN];

	if (len >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = 0;
	prefix->family = memchr(copy, ':', len) ? SL_V6 : SL_V4;
	if (inet_pton(prefix->family == SL_V6 ? AF_INET6 : AF_INET, copy, bytes) != 1)
		return -EINVAL;
	prefix->addr.hi = load_be64(bytes);
	prefix->addr.lo = load_be64(bytes + 8);
	return 0;
}

int sl_prefix_parse(const char *text, struct sl_prefix *ret, const char **ret_reason)
{
	const char *slash = strchr(text, '/');
	size_t address_len = slash ? (size_t)(slash - text) : strlen(text);
	struct sl_prefix prefix = { 0 };
	struct sl_addr masked;
	int len, most;

	if (address_parse(text, address_len, &prefix)) {
		*ret_reason = "not an address; accepted: 192.0.2.1, 192.0.2.0/24, 2001:db8::1 "
			      "or 2001:db8::/32";
		return -EINVAL;
	}
	most = prefix.family == SL_V6 ? 128 : 32;
	len = slash ? length_parse(slash + 1) : most;
	if (len < 0 || len > most) {
		*ret_reason =
			prefix.family == SL_V6
				? "bad prefix length; accepted after an IPv6 address: /0 to /128"
				: "bad prefix length; accepted after an IPv4 address: /0 to /32";
		return -EINVAL;
	}
	prefix.len = len;
	masked = sl_addr_mask(prefix.addr, len);
	if (masked.hi != prefix.addr.hi || masked.lo != prefix.addr.lo) {
		*ret_reason = "host bits are set; accepted: all bits after the prefix length 0, "
			      "as in 192.0.2.0/24";
		return -EINVAL;
	}
	*ret = prefix;
	return 0;
}

const char *sl_prefix_format(const struct sl_prefix *prefix, char *buf, size_t size)
{
	bool v6 = prefix->family == SL_V6;
	char text[INET6_ADDRSTRLEN];
	unsigned char bytes[16];

	store_be64(bytes, prefix->addr.hi);
	store_be64(bytes + 8, prefix->addr.lo);
	inet_ntop(v6 ? AF_INET6 : AF_INET, bytes, text, sizeof(text));
	if (prefix->len == (v6 ? 128 : 32))
		snprintf(buf, size, "%s", text);
	else
		snprintf(buf, size, "%s/%u", text, prefix->len);
	return buf;
}

bool sl_prefix_contains(const struct sl_prefix *outer, const struct sl_prefix *inner)
{
	struct sl_addr masked = sl_addr_mask(inner->addr, outer->len);

	return outer->family == inner->family && outer->len <= inner->len &&
	       masked.hi == outer->addr.hi && masked.lo == outer->addr.lo;
}

bool sl_prefix_equal(const struct sl_prefix *a, const struct sl_prefix *b)
{
	return a->family == b->family && a->len == b->len && a->addr.hi == b->addr.hi &&
	       a->addr.lo == b->addr.lo;
}

static int compare_u64(u64 a, u64 b)
{
	return (a > b) - (a < b);
}

int sl_prefix_compare(const struct sl_prefix *a, const struct sl_prefix *b)
{
	int order = a->family - b->family;

	if (!order)
		order = compare_u64(a->addr.hi, b->addr.hi);
	if (!order)
		order = compare_u64(a->addr.lo, b->addr.lo);
	return order ? order : a->len - b->len;
}

u64 sl_prefix_hash(const struct sl_prefix *prefix)
{
	return hash_bytes(hash_seed(), (u64)prefix->family << 8 | prefix->len, &prefix->addr,
			  sizeof(prefix->addr));
}
