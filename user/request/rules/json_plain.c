// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * json_plain.c - the usual body of /v1/check, read in place: no tree, one allocation.
 *
 * jansson's tree of such a body took 27,000 of the 47,000 instructions of a request. This reader
 * reports no errors and repairs nothing: at anything that is unusual (an escape, a byte that is not
 * printable ASCII, an unknown member or one that is there twice, a number that is no count, more
 * than can be decided) it gives up, and the tree has the last word (decision 0053).
 */
#include "request/rules/json_request.h"

#include <stdlib.h>
#include <string.h>

#include "request/rules/request_text.h"

/* Of "hits": no more than 9 digits. */
#define HITS_DIGITS_MAX 9

struct plain {
	const char *at, *end;
};

/* What a string has as it is: printable ASCII without quotes and backslashes. */
static const bool text_char[256] = {
	[' ' ... '!'] = true,
	['#' ... '['] = true,
	[']' ... '~'] = true,
};

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline void skip_space(struct plain *p)
{
	/* Most tokens follow at once, and are above all spaces. */
	while (p->at < p->end && *p->at <= ' ' && is_space(*p->at))
		p->at++;
}

/* The next token, if it is this character. */
static inline bool take(struct plain *p, char c)
{
	skip_space(p);
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

static bool take_string(struct plain *p, struct bytes *ret)
{
	const char *from, *at;

	if (!take(p, '"'))
		return false;
	from = p->at;
	for (at = from; at < p->end && text_char[(unsigned char)*at]; at++)
		;
	if (at == p->end || *at != '"')
		return false;
	*ret = (struct bytes){ from, (size_t)(at - from) };
	p->at = at + 1;
	return true;
}

static bool take_word(struct plain *p, const char *word)
{
	size_t len = strlen(word);

	skip_space(p);
	if ((size_t)(p->end - p->at) < len || memcmp(p->at, word, len))
		return false;
	p->at += len;
	return true;
}

static bool take_hits(struct plain *p, u64 *ret)
{
	const char *from;
	u64 n = 0;

	skip_space(p);
	from = p->at;
	while (p->at < p->end && *p->at >= '0' && *p->at <= '9' && p->at - from <= HITS_DIGITS_MAX)
		n = 10 * n + (u64)(*p->at++ - '0');
	*ret = n;
	return p->at > from && p->at - from <= HITS_DIGITS_MAX &&
	       (*from != '0' || p->at - from == 1);
}

/* clang-format off */
#define NAME(text) { text, sizeof(text) - 1 }
/* clang-format on */

/* A member's name and its colon: its index in `names`, -1 if it is none of them or was there
 * before. */
static int take_name(struct plain *p, const struct bytes *names, u32 *seen)
{
	struct bytes name;

	if (!take_string(p, &name) || !take(p, ':'))
		return -1;
	for (int i = 0; names[i].at; i++) {
		if (names[i].len != name.len || memcmp(names[i].at, name.at, name.len))
			continue;
		if (*seen & 1U << i)
			return -1;
		*seen |= 1U << i;
		return i;
	}
	return -1;
}

/* {"key", "value"} */
static bool take_entry(struct plain *p, struct request_descriptor *ret)
{
	static const struct bytes names[] = { NAME("key"), NAME("value"), { NULL, 0 } };
	struct bytes text[2];
	u32 seen = 0;

	if (!take(p, '{'))
		return false;
	do {
		int i = take_name(p, names, &seen);

		if (i < 0 || !take_string(p, &text[i]))
			return false;
	} while (take(p, ','));
	if (!take(p, '}') || seen != 3 || !text[0].len || ret->count == REQUEST_ENTRIES_MAX)
		return false;
	request_add_entry(ret, text[0], text[1]);
	return true;
}

static bool take_entries(struct plain *p, struct request_descriptor *ret)
{
	if (!take(p, '['))
		return false;
	do {
		if (!take_entry(p, ret))
			return false;
	} while (take(p, ','));
	return take(p, ']');
}

/* {"entries", "hits"} */
static bool take_descriptor(struct plain *p, struct request_descriptor *ret)
{
	static const struct bytes names[] = { NAME("entries"), NAME("hits"), { NULL, 0 } };
	u32 seen = 0;

	ret->hits = 1;
	if (!take(p, '{'))
		return false;
	do {
		int i = take_name(p, names, &seen);

		if (i < 0 || !(i ? take_hits(p, &ret->hits) : take_entries(p, ret)))
			return false;
	} while (take(p, ','));
	return take(p, '}') && (seen & 1);
}

static bool take_descriptors(struct plain *p, struct json_request *request)
{
	if (!take(p, '['))
		return false;
	do {
		if (request->request.count == request->made ||
		    !take_descriptor(p, &request->descriptor[request->request.count++]))
			return false;
	} while (take(p, ','));
	return take(p, ']');
}

static bool take_member(struct plain *p, int i, struct json_request *request)
{
	struct bytes text;

	switch (i) {
	case 0:
		return take_string(p, &request->request.domain) && request->request.domain.len;
	case 1:
		return take_descriptors(p, request);
	case 2:
		if (!take_string(p, &text))
			return false;
		request->request.has_source = request_source_parse(text, &request->request.source);
		return true;
	case 4:
		return take_string(p, &request->request.reference) &&
		       request_reference_ok(request->request.reference);
	default:
		request->request.peek = take_word(p, "true");
		return request->request.peek || take_word(p, "false");
	}
}

static bool take_request(struct plain *p, struct json_request *request)
{
	static const struct bytes names[] = {
		NAME("domain"), NAME("descriptors"), NAME("source"),
		NAME("peek"),	NAME("reference"),   { NULL, 0 },
	};
	u32 seen = 0;

	if (!take(p, '{'))
		return false;
	do {
		int i = take_name(p, names, &seen);

		if (i < 0 || !take_member(p, i, request))
			return false;
	} while (take(p, ','));
	if (!take(p, '}') || (seen & 3) != 3)
		return false;
	skip_space(p);
	return p->at == p->end;
}

struct json_request *json_request_plain(const char *text, size_t len)
{
	struct json_request *request;
	size_t brackets = 0, size;
	struct plain p;
	char *copy;

	if (!len) /* and maybe no address */
		return NULL;
	/* One for "descriptors", and one for each of them; more if strings have any. */
	for (const char *at = text; (at = memchr(at, '[', (size_t)(text + len - at))); at++)
		brackets++;
	if (brackets < 2 || brackets > REQUEST_DESCRIPTORS_MAX + 1)
		return NULL;
	size = sizeof(*request) + (brackets - 1) * sizeof(request->descriptor[0]);
	request = malloc(size + len);
	if (!request)
		return NULL;
	memset(request, 0, size);
	/* The body may be gone before the response comes. */
	copy = (char *)request + size;
	memcpy(copy, text, len);
	request->request.descriptor = request->descriptor;
	request->made = (u32)brackets - 1;
	request->latency_ns = ~0ULL;
	p = (struct plain){ copy, copy + len };
	if (take_request(&p, request))
		return request;
	free(request);
	return NULL;
}
