// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* request_text.c - see request_text.h. */
#include "request/rules/request_text.h"

#include "request/rules/permit.h"

#include <arpa/inet.h>
#include <string.h>

#include "lib/units.h"

#define ADDRESS_TEXT_MAX 128 /* with a zone, a port and blanks */

int hex_digit(unsigned char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Terminates text for C functions; false if it cannot be valid. */
static bool copy_text(const char *at, size_t len, char *buf, size_t size)
{
	if (len >= size || (len && memchr(at, 0, len)))
		return false;
	if (len)
		memcpy(buf, at, len);
	buf[len] = 0;
	return true;
}

static bool is_port(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at == end;
}

/* Cuts off what proxies write around an address: blanks, brackets, a port, a zone. */
static struct bytes bare_address(struct bytes v)
{
	const char *end, *at;

	v = bytes_trim(v);
	end = v.at + v.len;
	if (v.at < end && *v.at == '[') {
		v.at++;
		at = memchr(v.at, ']', end - v.at);
		if (!at || (at + 1 < end && (at[1] != ':' || !is_port(at + 2, end))))
			return (struct bytes){ NULL, 0 };
		end = at;
	} else {
		at = memchr(v.at, ':', end - v.at);
		if (at && memchr(v.at, '.', at - v.at) && is_port(at + 1, end))
			end = at;
	}
	at = memchr(v.at, '%', end - v.at);
	return (struct bytes){ v.at, (at ? at : end) - v.at };
}

/* Most values are names: their length or their first bytes show it. */
static bool may_be_address(struct bytes value)
{
	if (value.len > ADDRESS_TEXT_MAX)
		return false;
	for (size_t i = 0; i < value.len && i < 5; i++) {
		char c = value.at[i];

		if ((i && (c == ':' || c == '.')) || c == '[' || is_blank(c))
			return true;
		if (hex_digit(c) < 0 && c != ':')
			return false;
	}
	return false;
}

static u64 read_be64(const u8 *at)
{
	u64 word;

	memcpy(&word, at, sizeof(word));
	return __builtin_bswap64(word);
}

static __attribute__((noinline)) bool read_address(struct bytes value, struct sl_addr *ret,
						   u8 *ret_family)
{
	static const u8 mapped[12] = { [10] = 0xff, [11] = 0xff };
	char text[INET6_ADDRSTRLEN];
	u8 addr[16];

	value = bare_address(value);
	if (!copy_text(value.at, value.len, text, sizeof(text)))
		return false;
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

bool value_address(struct bytes value, struct sl_addr *ret, u8 *ret_family)
{
	return may_be_address(value) && read_address(value, ret, ret_family);
}

bool request_source_parse(struct bytes text, struct sl_prefix *ret)
{
	struct sl_prefix source;

	if (!value_address(text, &source.addr, &source.family))
		return false;
	source.len = source.family == SL_V4 ? 32 : 128;
	*ret = source;
	return true;
}

void request_add_entry(struct request_descriptor *descriptor, struct bytes key, struct bytes value)
{
	if (descriptor->count == REQUEST_ENTRIES_MAX)
		descriptor->beyond = true;
	else
		descriptor->entry[descriptor->count++] = (struct request_entry){ key, value };
}

void request_add_entry_or_source(struct request *request, struct request_descriptor *descriptor,
				 struct bytes key, struct bytes value)
{
	if (bytes_equal(key, REQUEST_RELEASE_KEY))
		permit_parse(value, &request->release);
	else if (!bytes_equal(key, REQUEST_SOURCE_KEY))
		request_add_entry(descriptor, key, value);
	else if (!request->has_source)
		request->has_source = request_source_parse(value, &request->source);
}

bool request_time_parse(struct bytes text, u64 *ret_utc_ns)
{
	u64 ns, offset_ns = 0;
	const char *reason;
	char copy[48];
	int sign = 0;
	size_t n = text.len;

	if (!copy_text(text.at, text.len, copy, sizeof(copy) - 1))
		return false;
	/* "+01:00" at its end, where "Z" may stand */
	if (n > 6 && (copy[n - 6] == '+' || copy[n - 6] == '-') && copy[n - 3] == ':' &&
	    strspn(copy + n - 5, "0123456789") == 2 && strspn(copy + n - 2, "0123456789") == 2) {
		sign = copy[n - 6] == '+' ? 1 : -1;
		offset_ns = ((copy[n - 5] - '0') * 10 + copy[n - 4] - '0') * 3600ULL +
			    ((copy[n - 2] - '0') * 10 + copy[n - 1] - '0') * 60ULL;
		offset_ns *= SL_NS_PER_SEC;
		strcpy(copy + n - 6, "Z");
	}
	if (utc_parse(copy, &ns, &reason) || (sign > 0 && ns < offset_ns))
		return false;
	*ret_utc_ns = sign > 0 ? ns - offset_ns : ns + offset_ns;
	return true;
}

/* How many dots of a segment "." or ".." end to[0..len). */
static size_t dots_at_end(const char *to, size_t len)
{
	if (len >= 2 && to[len - 1] == '.' && to[len - 2] == '/')
		return 1;
	if (len >= 3 && to[len - 1] == '.' && to[len - 2] == '.' && to[len - 3] == '/')
		return 2;
	return 0;
}

/* Removes ".", and ".." with the segment before it; the slash before them stays. */
static size_t drop_dots(const char *to, size_t len)
{
	size_t dots = dots_at_end(to, len);

	len -= dots;
	if (dots == 2 && len > 1) {
		len--;
		while (len && to[len - 1] != '/')
			len--;
	}
	return len;
}

/* Appends a slash, but none after another. */
static size_t begin_segment(char *to, size_t len)
{
	len = drop_dots(to, len);
	if (!len || to[len - 1] != '/')
		to[len++] = '/';
	return len;
}

static bool ends_path(char c)
{
	return c == '?' || c == '#';
}

/* "http://host/a", as any client may ask, is "/a": nginx's access log has the first. */
static struct bytes skip_authority(struct bytes uri)
{
	size_t i = 0;

	while (i < uri.len && (uri.at[i] | 0x20) >= 'a' && (uri.at[i] | 0x20) <= 'z')
		i++;
	if (!i || uri.len - i < 3 || memcmp(uri.at + i, "://", 3) != 0)
		return uri;
	for (i += 3; i < uri.len && uri.at[i] != '/' && !ends_path(uri.at[i]); i++)
		;
	return (struct bytes){ uri.at + i, uri.len - i };
}

size_t request_path_normal(struct bytes uri, char *to)
{
	bool is_empty = !uri.len;
	size_t len = 0, i;

	uri = skip_authority(uri);
	/* "#a" ends a path, too: nginx serves "/b#a" as "/b", and $request_uri has both. */
	for (i = 0; i < uri.len && !ends_path(uri.at[i]); i++) {
		char c = uri.at[i];

		if (c == '%' && uri.len - i > 2 && hex_digit(uri.at[i + 1]) >= 0 &&
		    hex_digit(uri.at[i + 2]) >= 0) {
			c = hex_digit(uri.at[i + 1]) << 4 | hex_digit(uri.at[i + 2]);
			i += 2;
		}
		if (c == '/')
			len = begin_segment(to, len);
		else
			to[len++] = c;
	}
	/* nginx's $request_uri of "GET http://host?a": a path that is left out is "/" (RFC 9110,
	 * 4.2.3). */
	if (!is_empty && !i)
		to[len++] = '/';
	return drop_dots(to, len);
}

size_t value_fold(struct bytes value, u32 ignore, char *to)
{
	bool params = ignore & IGNORE_PARAMS;
	size_t len = 0;

	for (size_t i = 0; i < value.len; i++) {
		char c = value.at[i];

		if (params && c == ';')
			while (i + 1 < value.len && value.at[i + 1] != '/')
				i++;
		else if (params && c == '/')
			len = begin_segment(to, len);
		else
			to[len++] = (ignore & IGNORE_CASE) && c >= 'A' && c <= 'Z' ? c | 0x20 : c;
	}
	/* "/b/..;x/a" is "/a" where parameters are removed first. */
	if (params)
		len = drop_dots(to, len);
	while ((ignore & IGNORE_TRAILING_SLASH) && len > 1 && to[len - 1] == '/')
		len--;
	return len;
}

bool request_reference_ok(struct bytes reference)
{
	for (size_t i = 0; i < reference.len; i++)
		if ((unsigned char)reference.at[i] < ' ' || reference.at[i] == 0x7f)
			return false;
	return reference.len > 0 && reference.len <= REQUEST_REFERENCE_MAX;
}
