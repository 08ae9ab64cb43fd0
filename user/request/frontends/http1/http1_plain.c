// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * http1_plain.c - a request of the usual form, read in one pass, where all of it was received.
 *
 * libhttp-parser takes about 25 instructions a byte, since it may stop at each. This takes a line
 * at a time: GET or POST, a target of printable ASCII, HTTP/1.1, names of letters, digits, '-' and
 * '_', values without empty ones, a length of up to seven digits. At anything else it gives up
 * without an error, and the parser decides. So it has no error of its own, and no second meaning of
 * a header: tests/unit/request/frontends/http1/test_http1_plain.c compares both over changed
 * requests.
 */
#include <string.h>
#include <strings.h>

#include "request/frontends/http1/http1_private.h"

#define LENGTH_DIGITS 7

#define LETTERS(upper, lower) [upper] = lower, [lower] = lower

/* The lower case of what names are made of; 0: anything else. */
static const char name_char[256] = {
	['-'] = '-',	   ['_'] = '_',	      ['0'] = '0',	 ['1'] = '1',
	['2'] = '2',	   ['3'] = '3',	      ['4'] = '4',	 ['5'] = '5',
	['6'] = '6',	   ['7'] = '7',	      ['8'] = '8',	 ['9'] = '9',
	LETTERS('A', 'a'), LETTERS('B', 'b'), LETTERS('C', 'c'), LETTERS('D', 'd'),
	LETTERS('E', 'e'), LETTERS('F', 'f'), LETTERS('G', 'g'), LETTERS('H', 'h'),
	LETTERS('I', 'i'), LETTERS('J', 'j'), LETTERS('K', 'k'), LETTERS('L', 'l'),
	LETTERS('M', 'm'), LETTERS('N', 'n'), LETTERS('O', 'o'), LETTERS('P', 'p'),
	LETTERS('Q', 'q'), LETTERS('R', 'r'), LETTERS('S', 's'), LETTERS('T', 't'),
	LETTERS('U', 'u'), LETTERS('V', 'v'), LETTERS('W', 'w'), LETTERS('X', 'x'),
	LETTERS('Y', 'y'), LETTERS('Z', 'z'),
};

/* What is left of the input. */
struct cursor {
	const char *at, *end;
};

static bool take(struct cursor *in, const char *text, size_t len)
{
	if ((size_t)(in->end - in->at) < len || memcmp(in->at, text, len) != 0)
		return false;
	in->at += len;
	return true;
}

static bool take_line(struct cursor *in, enum http_method *ret_method, struct bytes *ret_target)
{
	static const char version[] = " HTTP/1.1\r\n";

	if (take(in, "GET ", 4))
		*ret_method = HTTP_GET;
	else if (take(in, "POST ", 5))
		*ret_method = HTTP_POST;
	else
		return false;
	ret_target->at = in->at;
	while (in->at<in->end && * in->at> ' ' && *in->at < 0x7f && *in->at != '#')
		in->at++;
	ret_target->len = in->at - ret_target->at;
	return ret_target->len && *ret_target->at == '/' && take(in, version, sizeof(version) - 1);
}

/* "NAME: VALUE\r\n". Offsets are from the target. */
static bool take_header(struct cursor *in, const char *target, struct http1_header *ret)
{
	const char *name = in->at, *at = name, *end = memchr(name, '\n', in->end - name);

	if (!end || end == name || *--end != '\r')
		return false;
	while (name_char[(unsigned char)*at])
		at++;
	if (at == name || *at != ':')
		return false;
	ret->name = (struct bytes){ (const char *)(name - target), at - name };
	for (at++; is_blank(*at); at++)
		;
	if (at >= end || is_blank(end[-1]) || memchr(at, '\r', end - at))
		return false;
	ret->value = (struct bytes){ (const char *)(at - target), end - at };
	in->at = end + 2;
	return true;
}

static bool take_length(struct bytes value, u64 *ret)
{
	*ret = 0;
	for (size_t i = 0; i < value.len; i++) {
		if (i == LENGTH_DIGITS || value.at[i] < '0' || value.at[i] > '9')
			return false;
		*ret = *ret * 10 + (u64)(value.at[i] - '0');
	}
	return true;
}

static bool is_name(struct bytes name, const char *text)
{
	return !memcmp(name.at, text, name.len);
}

/* Headers on which the end of the message depends, or what the connection does then. */
static bool take_framing(struct bytes name, struct bytes value, bool *length_known, u64 *length)
{
	switch (name.len) {
	case 7:
		return !is_name(name, "upgrade");
	case 10:
		return !is_name(name, "connection") ||
		       (value.len == 10 && !strncasecmp(value.at, "keep-alive", 10));
	case 14:
		if (!is_name(name, "content-length"))
			return true;
		if (*length_known)
			return false;
		*length_known = true;
		return take_length(value, length);
	case 16:
		return !is_name(name, "proxy-connection");
	case 17:
		return !is_name(name, "transfer-encoding");
	}
	return true;
}

/* Copies the head, names in lower case, and reads its framing. */
static bool keep_head(struct http1_conn *conn, struct bytes head, u32 count, u64 *ret_length)
{
	struct exchange *exchange = conn->exchange;
	bool length_known = false;
	char *text;

	*ret_length = 0;
	if (!text_reserve(conn->of, &exchange->text, head.len))
		return false;
	text = exchange->text.at;
	memcpy(text, head.at, head.len);
	for (u32 i = 0; i < count; i++) {
		const struct http1_header *header = &exchange->request.header[i];
		char *name = text + (size_t)header->name.at;
		struct bytes value = { text + (size_t)header->value.at, header->value.len };

		for (size_t k = 0; k < header->name.len; k++)
			name[k] = name_char[(unsigned char)name[k]];
		if (!take_framing((struct bytes){ name, header->name.len }, value, &length_known,
				  ret_length))
			return false;
	}
	exchange->text.len = head.len;
	return true;
}

bool exchange_plain(struct http1_conn *conn, struct bytes data, enum http_method *ret_method,
		    struct bytes *ret_body)
{
	struct cursor in = { data.at, data.at + data.len };
	struct exchange *exchange = conn->exchange;
	struct bytes target;
	u32 count = 0;
	u64 length;

	if (!take_line(&in, ret_method, &target))
		return false;
	while (!take(&in, "\r\n", 2))
		if (count == HTTP1_HEADERS_MAX ||
		    !take_header(&in, target.at, &exchange->request.header[count++]))
			return false;
	if (!keep_head(conn, (struct bytes){ target.at, in.at - target.at }, count, &length) ||
	    length > (size_t)(in.end - in.at))
		return false;
	exchange->target_len = target.len;
	exchange->request.header_count = count;
	*ret_body = (struct bytes){ in.at, length };
	return true;
}
