// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Bodies that are read without a tree (json_plain.c): the same request as by the tree, or left to
 * it. */
#include "lib/rng.h"
#include "lib/test.h"
#include "request/rules/json_request.h"

#define ONE "\"descriptors\":[{\"entries\":[{\"key\":\"user\",\"value\":\"bob\"}]}]"

static bool same_bytes(struct bytes a, struct bytes b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

static bool same_descriptor(const struct request_descriptor *a, const struct request_descriptor *b)
{
	bool same = a->count == b->count && a->beyond == b->beyond && a->hits == b->hits &&
		    a->refund == b->refund && a->limit_unit == b->limit_unit;

	for (u32 i = 0; i < a->count && same; i++)
		same = same_bytes(a->entry[i].key, b->entry[i].key) &&
		       same_bytes(a->entry[i].value, b->entry[i].value);
	return same;
}

static bool same_request(const struct json_request *a, const struct json_request *b)
{
	const struct request *x = &a->request, *y = &b->request;
	bool same = same_bytes(x->domain, y->domain) && x->count == y->count && !x->beyond &&
		    !y->beyond && x->has_source == y->has_source && x->peek == y->peek &&
		    x->report == y->report && x->reference.len == y->reference.len &&
		    !memcmp(x->reference.at ? x->reference.at : "",
			    y->reference.at ? y->reference.at : "", x->reference.len) &&
		    (!x->has_source || sl_prefix_equal(&x->source, &y->source));

	for (u32 i = 0; i < x->count && same; i++)
		same = same_descriptor(&x->descriptor[i], &y->descriptor[i]);
	return same;
}

/* What is read without a tree is what the tree would have given, and the body may be gone by
 * then. */
static bool plain_is_tree(const char *text, size_t len)
{
	char *body = malloc(len + 1);
	struct json_request *plain, *tree = NULL;
	struct sl_err err = { 0 };

	memcpy(body, text, len);
	plain = json_request_plain(body, len);
	memset(body, 'x', len);
	free(body);
	if (!plain)
		return false;
	if (json_request_tree(text, len, &tree, &err))
		fail_msg("%.*s: read without a tree; %s", (int)len, text, err.message);
	if (!same_request(plain, tree))
		fail_msg("%.*s: another request than by the tree", (int)len, text);
	json_request_free(plain);
	json_request_free(tree);
	return true;
}

TEST(test_plain)
{
	static const struct {
		bool plain;
		const char *text;
	} cases[] = {
		{ true, "{\"domain\":\"d\"," ONE "}" },
		{ true,
		  " {\n\"descriptors\" : [ { \"hits\": 0, \"entries\":[{\"value\":\"\",\"key\":\"a[b]\"} ,\t"
		  "{\"key\":\"b\",\"value\":\"c\"}] },{\"entries\":[{\"key\":\"k\",\"value\":\"v\"}],\"hits\":999999999}],"
		  "\"peek\":false,\"source\":\"2001:db8::1\",\"domain\":\"d\"}\r\n " },
		{ true, "{\"domain\":\"d\",\"source\":\"unix:\",\"peek\":true," ONE "}" },
		/* Each is an error, or is for the tree. */
		{ false, "" },
		{ false, "{}" },
		{ false, "{\"domain\":\"d\"," ONE "} x" },
		{ false, "{\"domain\":\"d\"," ONE ",}" },
		{ false, "{\"domain\":\"d\"," ONE "}}" },
		{ false, "{\"domain\":\"\"," ONE "}" },
		{ false, "{\"domain\":\"d\",\"domain\":\"d\"," ONE "}" },
		{ false, "{\"domain\":\"d\",\"more\":\"d\"," ONE "}" },
		{ false, "{\"domain\":\"\\u0064\"," ONE "}" },
		{ false, "{\"domain\":\"\xc3\xa4\"," ONE "}" },
		{ false, "{\"domain\":\"d\x7f\"," ONE "}" },
		{ true, "{\"domain\":\" !#[]~\"," ONE "}" },
		/* More descriptors than brackets: there is no room for the second. */
		{ false,
		  "{\"domain\":\"d\",\"descriptors\":[{\"entries\":[{\"key\":\"a\",\"value\":\"b\"}]},{\"hits\":7}]}" },
		{ false, "{\"domain\":\"d\",\"peek\":truefalse," ONE "}" },
		{ true, "{\"domain\":\"d\",\"reference\":\"/report/7\"," ONE "}" },
		{ false, "{\"domain\":\"d\",\"reference\":\"\"," ONE "}" },
		{ false, "{\"domain\":\"d\",\"source\":null," ONE "}" },
		{ false, "{\"domain\":\"d\",\"descriptors\":[]}" },
		{ false, "{\"domain\":\"d\",\"descriptors\":[{\"entries\":[]}]}" },
		{ false,
		  "{\"domain\":\"d\",\"descriptors\":[{\"entries\":[{\"key\":\"\",\"value\":\"\"}]}]}" },
		{ false,
		  "{\"domain\":\"d\",\"descriptors\":[{\"entries\":[{\"key\":\"a\",\"value\":\"b\"}],\"hits\":01}]}" },
		{ false,
		  "{\"domain\":\"d\",\"descriptors\":[{\"entries\":[{\"key\":\"a\",\"value\":\"b\"}],\"hits\":1e3}]}" },
		{ false,
		  "{\"domain\":\"d\",\"descriptors\":[{\"entries\":[{\"key\":\"a\",\"value\":\"b\"}],\"hits\":-1}]}" },
		{ false,
		  "{\"domain\":\"d\",\"descriptors\":[{\"entries\":[{\"key\":\"a\",\"value\":\"b\"}],\"hits\":1000000000}]}" },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		if (plain_is_tree(cases[i].text, strlen(cases[i].text)) != cases[i].plain)
			fail_msg("%s: %s", cases[i].text,
				 cases[i].plain ? "a tree was needed" : "no tree was needed");
}

/* The same of many: 32 descriptors of 16 entries are read, one more of either is left to the
 * tree. */
TEST(test_plain_bounds)
{
	static const u32 counts[] = { 1, 32, 33 };

	for (size_t i = 0; i < COUNT(counts); i++) {
		for (u32 entries = 16; entries <= 17; entries++) {
			char text[65536];
			size_t len = (size_t)snprintf(text, sizeof(text),
						      "{\"domain\":\"d\",\"descriptors\":[");

			for (u32 d = 0; d < counts[i]; d++) {
				len += (size_t)sprintf(text + len, "%s{\"entries\":[",
						       d ? "," : "");
				for (u32 e = 0; e < entries; e++)
					len += (size_t)sprintf(
						text + len, "%s{\"key\":\"k%u\",\"value\":\"v\"}",
						e ? "," : "", e);
				len += (size_t)sprintf(text + len, "]}");
			}
			len += (size_t)sprintf(text + len, "]}");
			assert_int_equal(plain_is_tree(text, len),
					 counts[i] <= 32 && entries <= 16);
		}
	}
}

/* Bytes of a good body changed, removed, doubled: never another request than by the tree. */
TEST(test_plain_mutated)
{
	static const char good_body[] =
		"{\"domain\":\"api\",\"descriptors\":[{\"entries\":[{\"key\":\"user\",\"value\":\"bob\"},{\"key\":\"p\",\"value\":\"\"}]"
		",\"hits\":12},{\"entries\":[{\"key\":\"a\",\"value\":\"b\"}]}],\"source\":\"192.0.2.7\",\"peek\":false}";
	static const char bytes[] = "\"\\{}[],: 019a-e.u\x01\x7f\xc3\xff";
	u32 plain = 0;

	rng_start("json_request");
	for (u32 i = 0; i < 50000; i++) {
		char text[2 * sizeof(good_body)];
		size_t len = sizeof(good_body) - 1;

		memcpy(text, good_body, len);
		for (u32 n = rng_below(3); n; n--) {
			size_t at = rng_below(len), size = rng_below(len - at) % 40;

			switch (rng_below(4)) {
			case 0:
				text[at] = bytes[rng_below(sizeof(bytes) - 1)];
				break;
			case 1:
				memmove(text + at, text + at + size, len - at - size);
				len -= size;
				break;
			case 2:
				text[at] ^= (char)(1 << rng_below(8));
				break;
			default:
				if (len + size > sizeof(text))
					break;
				memmove(text + at + size, text + at, len - at);
				len += size;
			}
		}
		plain += plain_is_tree(text, len);
	}
	/* Some were not changed, or stayed good. */
	assert_in_range(plain, 10000, 45000);
}

TEST_MAIN
