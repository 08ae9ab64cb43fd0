// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* value.c - see value.h. */
#include <arpa/inet.h>
#include <string.h>

#include "request/rules/value.h"

static u64 read_be64(const u8 *at)
{
	u64 word;

	memcpy(&word, at, sizeof(word));
	return __builtin_bswap64(word);
}

/* Most values are names: one look at them says so. */
static bool may_be_address(struct bytes value)
{
	bool colon = false;
	u32 dots = 0;

	if (value.len < 2 || value.len >= INET6_ADDRSTRLEN)
		return false;
	for (size_t i = 0; i < value.len; i++) {
		char c = value.at[i];

		if (c == ':')
			colon = true;
		else if (c == '.')
			dots++;
		else if (!((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f')))
			return false;
	}
	return colon || dots == 3;
}

bool value_address(struct bytes value, struct sl_addr *ret, u8 *ret_family)
{
	static const u8 mapped[12] = { [10] = 0xff, [11] = 0xff };
	char text[INET6_ADDRSTRLEN];
	u8 addr[16];

	if (!may_be_address(value))
		return false;
	memcpy(text, value.at, value.len);
	text[value.len] = 0;
	if (inet_pton(AF_INET, text, addr) == 1) {
		memset(addr + 4, 0, sizeof(addr) - 4);
		*ret_family = SL_V4;
	} else if (inet_pton(AF_INET6, text, addr) != 1) {
		return false;
	} else if (!memcmp(addr, mapped, sizeof(mapped))) {
		memcpy(addr, addr + 12, 4);
		memset(addr + 4, 0, sizeof(addr) - 4);
		*ret_family = SL_V4;
	} else {
		*ret_family = SL_V6;
	}
	ret->hi = read_be64(addr);
	ret->lo = read_be64(addr + 8);
	return true;
}
