// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* request_text.c - see request_text.h. */
#include "request/rules/request_text.h"

#include <string.h>

#include "lib/units.h"

#define MAPPED_LO 0xffff00000000ULL	/* ::ffff:0:0/96 */

int hex_digit(unsigned char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool bytes_equal(struct bytes bytes, const char *text)
{
	return bytes.len == strlen(text) && (!bytes.len || !memcmp(bytes.at, text, bytes.len));
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

bool request_source_parse(struct bytes text, struct sl_prefix *ret)
{
	char copy[SL_PREFIX_TEXT + 8], *at = copy, *end;
	struct sl_prefix prefix;
	const char *reason;

	if (!text.len || !copy_text(text.at, text.len, copy, sizeof(copy)) || strchr(copy, '/'))
		return false;
	if (*at == '[') {
		end = strchr(++at, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
		*end = 0;
	} else {
		end = strchr(at, ':');
		if (end && !strchr(end + 1, ':'))
			*end = 0;
	}
	if (sl_prefix_parse(at, &prefix, &reason))
		return false;
	if (prefix.family == SL_V6 && !prefix.addr.hi && prefix.addr.lo >> 32 == MAPPED_LO >> 32) {
		prefix.family = SL_V4;
		prefix.len = 32;
		prefix.addr.hi = prefix.addr.lo << 32;
		prefix.addr.lo = 0;
	}
	*ret = prefix;
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
	if (!bytes_equal(key, REQUEST_SOURCE_KEY))
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
		if (c == '/') {
			len = drop_dots(to, len);
			if (len && to[len - 1] == '/')
				continue;
		}
		to[len++] = c;
	}
	/* nginx's $request_uri of "GET http://host?a": a path that is left out is "/" (RFC 9110, 4.2.3). */
	if (!is_empty && !i)
		to[len++] = '/';
	return drop_dots(to, len);
}
