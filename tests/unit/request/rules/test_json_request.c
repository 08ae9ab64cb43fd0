// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests out of JSON: valid ones, refused ones and the message, and what no client can break. */
#include "lib/json_text.h"
#include "lib/test.h"
#include "request/rules/json_request.h"
#include "request/rules/request_text.h"

#define ONE "'descriptors':[{'entries':[{'key':'user','value':'bob'}]}]"

typedef int (*read_fn)(const char *text, size_t len, struct json_request **ret, struct sl_err *err);

static struct json_request *good_bytes(read_fn read, const char *text, size_t len)
{
	struct json_request *request = NULL;
	struct sl_err err = { 0 };

	if (read(text, len, &request, &err))
		fail_msg("%s: %s", text, err.message);
	return request;
}

static struct json_request *good(read_fn read, const char *text)
{
	text = json_text(text);
	return good_bytes(read, text, strlen(text));
}

/* words NULL: more than can be read, which is an error of a report. */
static void bad(read_fn read, const char *text, const char *words)
{
	struct json_request *request = NULL;
	struct sl_err err = { 0 };

	text = json_text(text);
	if (read(text, strlen(text), &request, &err) != (words ? -EINVAL : -E2BIG))
		fail_msg("was read: %s", text);
	assert_null(request);
	if (words && !strstr(err.message, words))
		fail_msg("%s: \"%s\" does not say \"%s\"", text, err.message, words);
}

/* Read, and refused: beyond the bounds. */
static void beyond(read_fn read, const char *text, const char *words, size_t domain_len)
{
	struct json_request *request = good(read, text);

	assert_non_null(request->request.beyond);
	if (!strstr(request->request.beyond, words))
		fail_msg("%s: \"%s\" does not say \"%s\"", text, request->request.beyond, words);
	assert_int_equal(request->request.count, 0);
	assert_int_equal(request->request.domain.len, domain_len);
	json_request_free(request);
}

TEST(test_check)
{
	struct json_request *request =
		good(json_request_check,
		     "{'domain':'api','descriptors':["
		     "{'entries':[{'key':'user','value':'b\\u0000b'},{'key':'path','value':''}]},"
		     "{'entries':[{'key':'plan','value':'free'}],'hits':0}],"
		     "'source':'192.0.2.7','peek':true}");

	assert_true(bytes_equal(request->request.domain, "api"));
	assert_int_equal(request->request.count, 2);
	assert_int_equal(request->request.descriptor[0].count, 2);
	assert_int_equal(request->request.descriptor[0].entry[0].value.len, 3);
	assert_memory_equal(request->request.descriptor[0].entry[0].value.at, "b\0b", 3);
	assert_int_equal(request->request.descriptor[0].entry[1].value.len, 0);
	assert_true(request->request.descriptor[0].hits == 1 &&
		    request->request.descriptor[1].hits == 0);
	assert_true(request->request.peek && !request->request.report);
	assert_true(request->request.has_source && request->request.source.len == 32);
	json_request_free(request);

	request = good(json_request_check, "{'domain':'d','source':null," ONE "}");
	assert_true(!request->request.has_source && !request->request.peek);
	json_request_free(request);
	request = good(json_request_check, "{'domain':'d','source':'unix:'," ONE "}");
	assert_false(request->request.has_source);
	json_request_free(request);
}

TEST(test_bad)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "", "no JSON" },
		{ "{", "not closed" },
		{ "}", "a bracket too many" },
		{ "'x", "does not end" },
		{ "nonsense", "line 1" },
		{ "[]", "an array" },
		{ "{}", "descriptors: nothing" },
		{ "{" ONE "}", "domain: nothing" },
		{ "{'domain':7," ONE "}", "domain: a number" },
		{ "{'domain':''," ONE "}", "it is empty" },
		{ "{'domain':'d','descriptors':[]}", "descriptors: none" },
		{ "{'domain':'d','descriptors':{}}", "descriptors: an object" },
		{ "{'domain':'d','descriptors':[7]}", "descriptors[0]: a number" },
		{ "{'domain':'d','descriptors':[{}]}", "descriptors[0].entries: nothing" },
		{ "{'domain':'d','descriptors':[{'entries':[]}]}", "descriptors[0].entries: none" },
		{ "{'domain':'d','descriptors':[{'entries':[{'key':'','value':''}]}]}",
		  "descriptors[0].entries[0].key: it is empty" },
		{ "{'domain':'d','descriptors':[{'entries':[{'key':'k'}]}]}",
		  "entries[0].value: nothing" },
		{ "{'domain':'d','descriptors':[{'entries':[{'key':'k','value':null}]}]}",
		  "entries[0].value: null" },
		{ "{'domain':'d','descriptors':[{'entries':[{'key':'k','value':'','x':1}]}]}",
		  "unknown member; accepted: key, value" },
		{ "{'domain':'d','hit':1," ONE "}",
		  "unknown member; accepted: domain, descriptors, source, peek" },
		{ "{'domain':'d','domain':'d'," ONE "}", "twice" },
		{ "{'domain':'d','peek':1," ONE "}", "peek: a number" },
		{ "{'domain':'d','reference':7," ONE "}", "reference: a number" },
		{ "{'domain':'d','reference':''," ONE "}",
		  "reference: not such a one; a string of 1 to 256" },
		{ "{'domain':'d','reference':'a\\nb'," ONE "}", "reference: not such a one" },
		{ "{'domain':'d','source':1," ONE "}", "source: a number" },
		{ "{'domain':'d','descriptors':[{'entries':[{'key':'k','value':''}],'hits':-1}]}",
		  "descriptors[0].hits: below 0" },
		{ "{'domain':'d','descriptors':[{'entries':[{'key':'k','value':''}],'hits':1.5}]}",
		  "hits: a fraction" },
		{ "{'domain':'d','at':1," ONE "}", "unknown member" },
		{ "[[[[[[[[[1]]]]]]]]]", "deeper than 8" },
	};
	char many[20000] = "[";
	size_t i;

	for (i = 0; i < COUNT(cases); i++)
		bad(json_request_check, cases[i].text, cases[i].words);
	for (i = 0; i < 5000; i++)
		strcat(many + i * 3, "{},");
	strcat(many, "1]");
	beyond(json_request_check, many, "more than 4096", 0);
	beyond(json_request_rls, many, "more than 4096", 0);
	bad(json_request_report, many, NULL);
}

/*
 * So many descriptors and entries are decided. One entry more, and no rule matches the descriptor;
 * one descriptor more is refused; keys and values may be as long as they are.
 */
TEST(test_most)
{
	static const read_fn read[] = { json_request_check, json_request_rls, json_request_report };
	char *text = malloc(REQUEST_VALUE_MAX * 2 + 1000);
	struct json_request *request;
	size_t d, extra, used;

	for (extra = 0; extra < 3; extra++) {
		used = sprintf(text, "{'domain':'d','descriptors':[");
		for (d = 0; d < REQUEST_DESCRIPTORS_MAX * REQUEST_ENTRIES_MAX; d++) {
			used += sprintf(text + used, "%s{'key':'k','value':''}",
					d % REQUEST_ENTRIES_MAX ? ","
					: d			? "]},{'entries':["
								: "{'entries':[");
		}
		if (extra == 1)
			used += sprintf(text + used, ",{'key':'k','value':''}");
		if (extra == 2)
			used += sprintf(text + used, "]},{'entries':[{'key':'k','value':''}");
		sprintf(text + used, "]}]}");
		for (u32 i = 0; i < COUNT(read); i++) {
			if (extra == 2 && read[i] == json_request_report) {
				bad(read[i], text, NULL);
			} else if (extra == 2) {
				beyond(read[i], text, "1 to 32", 1);
			} else {
				request = good(read[i], text);
				assert_int_equal(request->request.count, REQUEST_DESCRIPTORS_MAX);
				assert_int_equal(request->request.descriptor[31].count,
						 REQUEST_ENTRIES_MAX);
				assert_int_equal(request->request.descriptor[31].beyond,
						 extra == 1);
				assert_false(request->request.descriptor[30].beyond);
				json_request_free(request);
			}
		}
	}
	for (extra = 0; extra < 2; extra++) {
		used = sprintf(text,
			       "{'domain':'d','descriptors':[{'entries':[{'key':'k','value':'");
		memset(text + used, 'v', REQUEST_VALUE_MAX + extra);
		strcpy(text + used + REQUEST_VALUE_MAX + extra, "'}]}]}");
		request = good(json_request_check, text);
		assert_int_equal(request->request.descriptor[0].entry[0].value.len,
				 REQUEST_VALUE_MAX + extra);
		json_request_free(request);
	}
	/* A key, and hits, of a check. */
	used = sprintf(text,
		       "{'domain':'d','descriptors':[{'hits':1099511627777,'entries':[{'key':'");
	memset(text + used, 'k', REQUEST_KEY_MAX + 1);
	strcpy(text + used + REQUEST_KEY_MAX + 1, "','value':''}]}]}");
	request = good(json_request_check, text);
	assert_int_equal(request->request.descriptor[0].entry[0].key.len, REQUEST_KEY_MAX + 1);
	assert_int_equal(request->request.descriptor[0].hits, REQUEST_HITS_MAX + 1);
	json_request_free(request);
	bad(json_request_report, text, "hits: out of range");
	beyond(json_request_check, "{'domain':'d','descriptors':[{'hits':99999999999999999999}]}",
	       "too large", 0);
	free(text);
}

/* A value of a check, whose JSON holds `inside` as it is. */
static void value_is(const char *inside, const char *bytes, size_t len)
{
	char text[512];
	struct json_request *request;
	struct bytes value;

	snprintf(text, sizeof(text),
		 "{'domain':'d','descriptors':[{'entries':[{'key':'k','value':'%s'}]}]}", inside);
	request = good(json_request_check, text);
	value = request->request.descriptor[0].entry[0].value;
	if (value.len != len || memcmp(value.at, bytes, len))
		fail_msg("%s became %.*s (%zu bytes, not %zu)", inside, (int)value.len, value.at,
			 value.len, len);
	json_request_free(request);
}

TEST(test_no_utf8)
{
	unsigned char all[128 * 2 + 1];
	u32 i;

	value_is("b\xff"
		 "b",
		 "b\xff"
		 "b",
		 3);
	value_is("\x80\xbf\xc0\xff", "\x80\xbf\xc0\xff", 4);
	value_is("\xc3", "\xc3", 1); /* half a character, at the end */
	value_is("\xc3\xb6\xc3", "\xc3\xb6\xc3", 3);
	value_is("\xed\xa0\x80", "\xed\xa0\x80", 3); /* a surrogate as UTF-8 */
	value_is("\xc0\xaf", "\xc0\xaf", 2);	     /* longer than it need be */
	value_is("\xf4\x90\x80\x80", "\xf4\x90\x80\x80", 4);
	value_is("x\\udcffy", "x\xffy", 3); /* as Python escapes a byte */
	value_is("\\udce9\\udc80", "\xe9\x80", 2);
	value_is("\\ud83d", "\xef\xbf\xbd", 3); /* UTF-16 cut in two */
	value_is("\\ud83dx\\\"", "\xef\xbf\xbdx\"", 5);
	value_is("\\ud83d\\ude00", "\xf0\x9f\x98\x80", 4);
	value_is("\\ude00\\ud83d", "\xef\xbf\xbd\xef\xbf\xbd", 6);
	value_is("\\\\udcff", "\\udcff", 6); /* a backslash, and text */
	value_is("\\\\\xff", "\\\xff", 2);
	value_is("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf", 4); /* in good text it is itself */
	for (i = 0; i < 128; i++) {
		all[2 * i] = 0x80 + i;
		all[2 * i + 1] = '.';
	}
	all[256] = 0;
	value_is((char *)all, (char *)all, 256);
}

TEST(test_report)
{
	struct json_request *request =
		good(json_request_report,
		     "{'domain':'api','descriptors':[{'entries':[{'key':'user','value':'bob'}],"
		     "'hits':-3}],'at':1700000000.5,'id':'r-1','status':401}");

	assert_true(request->request.report && request->request.descriptor[0].refund);
	assert_int_equal(request->request.descriptor[0].hits, 3);
	assert_true(request->request.at_utc_ns == 1700000000500000000ULL);
	assert_true(bytes_equal(request->id, "r-1"));
	assert_int_equal(request->http_status, 401);
	json_request_free(request);
	request = good(json_request_report,
		       "{'domain':'d','at':'2023-11-14T23:13:20+01:00'," ONE "}");
	assert_true(request->request.at_utc_ns == 1700000000000000000ULL);
	assert_int_equal(request->id.len, 0);
	json_request_free(request);

	bad(json_request_report, "{'domain':'d','peek':true," ONE "}", "unknown member");
	bad(json_request_report, "{'domain':'d','at':-1," ONE "}", "at: not a time");
	bad(json_request_report, "{'domain':'d','at':'yesterday'," ONE "}", "at: not a time");
	bad(json_request_report, "{'domain':'d','at':[]," ONE "}", "at: an array");
	bad(json_request_report, "{'domain':'d','id':''," ONE "}", "id: 0 bytes");
	bad(json_request_report, "{'domain':'d','id':7," ONE "}", "id: a number");
	request = good(json_request_report, "{'domain':'d','latency':0.25," ONE "}");
	assert_true(request->latency_ns == 250000000);
	json_request_free(request);
	request = good(json_request_report, "{'domain':'d','latency_ms':7," ONE "}");
	assert_true(request->latency_ns == 7000000);
	json_request_free(request);
	request = good(json_request_report, "{'domain':'d'," ONE "}");
	assert_true(request->latency_ns == ~0ULL);
	json_request_free(request);
	bad(json_request_report, "{'domain':'d','latency':-1," ONE "}", "latency: a number from 0");
	bad(json_request_report, "{'domain':'d','latency':'1'," ONE "}",
	    "latency: a number from 0");
	bad(json_request_report, "{'domain':'d','latency_ms':1e9," ONE "}", "latency_ms: a number");
	bad(json_request_report, "{'domain':'d','status':99," ONE "}", "status");
	bad(json_request_report, "{'domain':'d','status':'200'," ONE "}", "status: a string");
}

TEST(test_rls)
{
	struct json_request *request =
		good(json_request_rls,
		     "{'domain':'api','hitsAddend':'4','descriptors':["
		     "{'entries':[{'key':'user'},{'key':'sluice_source','value':'2001:db8::1'}],"
		     "'limit':{'requestsPerUnit':10,'unit':'MINUTE'}},"
		     "{'entries':[{'key':'a','value':'b'}],'hits_addend':'0',"
		     "'limit':{'requests_per_unit':'7','unit':4}},"
		     "{'entries':[{'key':'a','value':null}],'hitsAddend':null,'limit':null}]}");

	assert_int_equal(request->request.count, 3);
	assert_int_equal(request->request.descriptor[0].count, 1);
	assert_int_equal(request->request.descriptor[0].entry[0].value.len, 0);
	assert_true(request->request.descriptor[0].hits == 4 &&
		    request->request.descriptor[1].hits == 0 &&
		    request->request.descriptor[2].hits == 4);
	assert_true(request->request.descriptor[0].limit_requests == 10 &&
		    request->request.descriptor[0].limit_unit == REQUEST_UNIT_MINUTE);
	assert_true(request->request.descriptor[1].limit_requests == 7 &&
		    request->request.descriptor[1].limit_unit == REQUEST_UNIT_DAY);
	assert_true(request->request.has_source && request->request.source.family == SL_V6);
	json_request_free(request);
	request = good(json_request_rls, "{'domain':'d','hits_addend':0," ONE "}");
	assert_int_equal(request->request.descriptor[0].hits, 1);
	json_request_free(request);

	bad(json_request_rls, "{'domain':'d','peek':true," ONE "}", "unknown member");
	bad(json_request_rls, "{'domain':'d','hitsAddend':1,'hits_addend':1," ONE "}",
	    "same member");
	bad(json_request_rls, "{'domain':'d','hitsAddend':-1," ONE "}", "hitsAddend");
	bad(json_request_rls, "{'domain':'d','hitsAddend':'1x'," ONE "}", "not a number");
	beyond(json_request_rls,
	       "{'domain':'d','descriptors':[{'entries':[{'key':'k'}],"
	       "'limit':{'unit':'FORTNIGHT'}}]}",
	       "descriptors[0].limit.unit: another name", 1);
	beyond(json_request_rls,
	       "{'domain':'d','descriptors':[{'entries':[{'key':'k'}],'limit':{'unit':8}}]}",
	       "descriptors[0].limit.unit: another number", 1);
	bad(json_request_rls,
	    "{'domain':'d','descriptors':[{'entries':[{'key':'k'}],'isNegativeHits':true}]}",
	    "refunds");
}

/* Requests that envoyproxy/ratelimit decides are decided, also where no rule can match. */
TEST(test_rls_odd)
{
	static const struct {
		const char *hits;
		u64 is;
	} hits[] = {
		{ "16777217", 16777217 },
		{ "'99999999999999999999'", ~0ULL },
		{ "1e30", ~0ULL },
		{ "'18446744073709551609'", 18446744073709551609ULL },
		{ "4294967295.0", 4294967295 },
	};
	struct json_request *request;
	char text[512];

	for (size_t i = 0; i < COUNT(hits); i++) {
		snprintf(text, sizeof(text), "{'domain':'d','hitsAddend':%s," ONE "}",
			 hits[i].hits);
		request = good(json_request_rls, text);
		assert_true(request->request.descriptor[0].hits == hits[i].is);
		json_request_free(request);
	}
	request = good(json_request_rls,
		       "{'domain':'d','descriptors':[{},{'entries':[]},{'entries':null},"
		       "{'entries':[{'value':'v'}]}]}");
	assert_int_equal(request->request.count, 4);
	assert_true(
		!request->request.descriptor[0].count && !request->request.descriptor[1].count &&
		!request->request.descriptor[2].count && request->request.descriptor[3].count == 1);
	assert_int_equal(request->request.descriptor[3].entry[0].key.len, 0);
	json_request_free(request);
	/* The source is no entry: beside 16 it is none too many. */
	strcpy(text, "{'domain':'d','descriptors':[{'entries':[{'key':'sluice_source',"
		     "'value':'192.0.2.7'}");
	for (u32 i = 0; i < REQUEST_ENTRIES_MAX; i++)
		strcat(text, ",{'key':'k'}");
	strcat(text, "]}]}");
	request = good(json_request_rls, text);
	assert_true(request->request.has_source &&
		    request->request.descriptor[0].count == REQUEST_ENTRIES_MAX);
	assert_false(request->request.descriptor[0].beyond);
	json_request_free(request);
}

/* Errors repeat nothing of the text. */
TEST(test_silence)
{
	static const char *const texts[] = {
		"{'domain':'d','SECRET':1," ONE "}",
		"{'SECRET':SECRET}",
		"[SECRET]",
		"{'domain':'d','descriptors':'SECRET'}",
		"{'SECRET':1,'SECRET':2}",
		"{'domain':{'SECRET':1}," ONE "}",
		"SECRET",
		"{'a\\qSECRET':1}",
	};
	struct json_request *request;
	struct sl_err err;
	size_t i;

	for (i = 0; i < COUNT(texts) * 3; i++) {
		read_fn read = i % 3 ? i % 3 == 1 ? json_request_report : json_request_rls
				     : json_request_check;
		const char *text = json_text(texts[i / 3]);

		memset(&err, 0, sizeof(err));
		assert_int_equal(read(text, strlen(text), &request, &err), -EINVAL);
		assert_null(strstr(err.message, "SECRET"));
		assert_true(err.message[0]);
	}
}

TEST(test_items)
{
	static const struct {
		const char *text;
		int count;
		const char *items;
	} cases[] = {
		{ "[]", 0, "" },
		{ " [ ] ", 0, "" },
		{ "[1]", 1, "1|" },
		{ "[{\"a\":[1,2]},\"],[\",3]\n", 3, "{\"a\":[1,2]}|\"],[\"|3|" },
		{ "[1,]", 2, "1||" },
		{ "[,]", 2, "||" },
		{ "[\"\\\",\",2]", 2, "\"\\\",\"|2|" },
		{ "", -1, "" },
		{ "[", -1, "" },
		{ "{}", -1, "" },
		{ "[1]]", -1, "" },
		{ "[\"]", -1, "" },
		{ "7", -1, "" },
		{ "[1],[2]", 2, "1]|[2|" },
	};
	struct json_items items;
	struct sl_err err;
	struct bytes item;
	char got[256];
	size_t i;
	int r;

	for (i = 0; i < COUNT(cases); i++) {
		r = json_items_begin(cases[i].text, strlen(cases[i].text), &items, &err);
		if (r != (cases[i].count < 0 ? -EINVAL : 0))
			fail_msg("%s: %d", cases[i].text, r);
		if (r)
			continue;
		got[0] = 0;
		assert_int_equal(items.count, cases[i].count);
		while (json_items_next(&items, &item)) {
			strncat(got, item.at, item.len);
			strcat(got, "|");
		}
		assert_string_equal(got, cases[i].items);
	}
}

TEST(test_source)
{
	static const struct {
		const char *text, *is;
	} cases[] = { ITEMS({ "192.0.2.7", "192.0.2.7" }, { "192.0.2.7:80", "192.0.2.7" },
			    { "2001:db8::1", "2001:db8::1" }, { "[2001:db8::1]", "2001:db8::1" },
			    { "[2001:db8::1]:80", "2001:db8::1" },
			    { "::ffff:192.0.2.7", "192.0.2.7" },
			    { "[::ffff:192.0.2.7]:1", "192.0.2.7" }, { "::1", "::1" }, { "", NULL },
			    { "unix:", NULL }, { "192.0.2.0/24", NULL }, { "bob", NULL },
			    { "192.0.2.7, 192.0.2.8", NULL }, { "[::1", NULL }, { "[::1]x", NULL },
			    { "fe80::1%eth0", "fe80::1" }, { "[fe80::1%eth0]:80", "fe80::1" },
			    { " 192.0.2.7\t", "192.0.2.7" }, { "192.0.2.7:", "192.0.2.7" },
			    { "192.0.2.7:x", NULL }, { "2001:db8::1]:80", NULL }, { "1.2.3", NULL },
			    { "%eth0", NULL }) };
	struct sl_prefix prefix;
	char text[SL_PREFIX_TEXT];
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		struct bytes bytes = { cases[i].text, strlen(cases[i].text) };

		if (request_source_parse(bytes, &prefix) != (cases[i].is != NULL))
			fail_msg("%s", cases[i].text);
		if (cases[i].is)
			assert_string_equal(sl_prefix_format(&prefix, text, sizeof(text)),
					    cases[i].is);
	}
	assert_false(request_source_parse((struct bytes){ "1.2.3.4\0x", 9 }, &prefix));
	assert_false(request_source_parse((struct bytes){ NULL, 0 }, &prefix));
}

TEST_MAIN
