/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* request_text.h - parses parts of a request: addresses, times. For all frontends. */
#ifndef SLUICE_HTTP_REQUEST_TEXT_H
#define SLUICE_HTTP_REQUEST_TEXT_H

#include "request/rules/request.h"

/* An entry of this key is the request's source (Envoy has no other field for it). */
#define REQUEST_SOURCE_KEY "sluice_source"

/*
 * Parses an address as proxies write it: "192.0.2.7", "2001:db8::1", with blanks around it, a port
 * ("192.0.2.7:5000", "[2001:db8::1]:5000") or a zone ("fe80::1%eth0"), which do not count. An IPv4
 * address written as an IPv6 one (::ffff:192.0.2.1) is the IPv4 address. *ret is left-aligned.
 * False for anything else ("unix:", a name, a network). Rules group such values by prefix.
 */
bool value_address(struct bytes value, struct sl_addr *ret, u8 *ret_family);
/* The same as a prefix of all its bits. A request without an address has no source, which is no
 * error. */
bool request_source_parse(struct bytes text, struct sl_prefix *ret);
/* 1 to REQUEST_REFERENCE_MAX bytes, no control characters: it is a field of a stream that workers
 * read as lines. */
bool request_reference_ok(struct bytes reference);
/* Appends an entry; one too many is left out, and the descriptor matches no rule. */
void request_add_entry(struct request_descriptor *descriptor, struct bytes key, struct bytes value);
/*
 * The same, but entries of REQUEST_SOURCE_KEY and REQUEST_RELEASE_KEY (permit.h) are not entries:
 * the first that is an address becomes the source. A descriptor without entries matches no rule.
 */
void request_add_entry_or_source(struct request *request, struct request_descriptor *descriptor,
				 struct bytes key, struct bytes value);

/* RFC 3339: "2030-01-31T12:00:00Z", "2030-01-31T13:00:00.5+01:00". */
bool request_time_parse(struct bytes text, u64 *ret_utc_ns);

/* 0 to 15, or -1. */
int hex_digit(unsigned char c);
/*
 * Normalizes a path for counting: decoded, slashes merged, dots resolved, without a query or
 * fragment, so that "/%61", "//a", "/a#b" and "/b/../a?c" are one path and no alias gets another
 * budget; "?c" and "http://host" are "/". Never longer than before; `to` may be uri.at. Returns its
 * length.
 */
size_t request_path_normal(struct bytes uri, char *to);

/* What does not distinguish two values of a rule; or-ed. `ignore` of a descriptor. */
enum value_ignore {
	IGNORE_CASE = 1, /* of ASCII letters */
	IGNORE_TRAILING_SLASH = 2,
	IGNORE_PARAMS = 4, /* ";..." of a path's segments, and the dots and slashes left then */
	IGNORE_COMBINATIONS = 8,
};
/* Writes the value without what is ignored; never longer than before. Returns its length. */
size_t value_fold(struct bytes value, u32 ignore, char *to);

#endif
