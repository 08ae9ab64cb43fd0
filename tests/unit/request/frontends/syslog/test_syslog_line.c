// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lines of access logs as reports: skipped heads, members, missing values, invalid lines. */
#include "lib/json_text.h"
#include "lib/request_print.h"
#include "lib/test.h"
#include "request/frontends/syslog/syslog_line.h"
#include "lib/rng.h"

#define BOB "{'domain':'api','d':{'user':'bob'}}"

/* A report as text: "api source=192.0.2.7 [user=bob,path=/x]*-2 status=404". */
static const char *report_text(const struct json_request *report, char *buf, size_t size)
{
	const struct request *request = &report->request;
	FILE *out = fmemopen(buf, size, "w");

	assert_true(request->report && !request->peek);
	request_print(request, out);
	if (report->http_status)
		fprintf(out, " status=%u", report->http_status);
	if (request->at_utc_ns)
		fprintf(out, " at=%llu", request->at_utc_ns);
	fclose(out);
	return buf;
}

static const struct {
	const char *line, *report;
} lines[] = {
	/* heads: none, nginx's, HAProxy's, RFC 5424 with and without data, CEE */
	{ BOB, "api [user=bob]" },
	{ BOB "\n", "api [user=bob]" },
	{ "<190>Nov 21 18:00:00 rl: " BOB, "api [user=bob]" },
	{ "<190>Nov 21 18:00:00 host nginx: " BOB, "api [user=bob]" },
	{ "<134>Nov  1 08:00:00 haproxy[4711]: " BOB "\n", "api [user=bob]" },
	{ "<134>1 2026-11-21T18:00:00.123456+01:00 host haproxy 4711 - - " BOB, "api [user=bob]" },
	{ "<134>1 2026-11-21T18:00:00Z host a 1 ID7 [x@1 a=\"{]\" b=\"\\\"]{\"][y@2 c=\"d\"] " BOB,
	  "api [user=bob]" },
	{ "<134>1 2026-11-21T18:00:00Z host a 1 - - \xef\xbb\xbf" BOB, "api [user=bob]" },
	{ "<14>Nov 21 18:00:00 host app: @cee: " BOB, "api [user=bob]" },
	/* one descriptor in the order written, or several */
	{ "{'d':{'user':'bob','path':'/x'},'domain':'api'}", "api [user=bob,path=/x]" },
	{ "{'domain':'api','d':[{'user':'bob'},{'source':'192.0.2.7'}]}",
	  "api [user=bob] [source=192.0.2.7]" },
	{ "{'domain':'api','descriptors':[{'entries':[{'key':'user','value':'bob'}],"
	  "'hits':3},{'entries':[{'key':'a','value':''}]}]}",
	  "api [user=bob]*3 [a=]" },
	/* a missing value leaves its descriptor out */
	{ "{'domain':'api','d':[{'user':''},{'source':'192.0.2.7'}]}", "api [source=192.0.2.7]" },
	{ "{'domain':'api','d':[{'user':null,'path':'/x'},{'path':'/x'}]}", "api [path=/x]" },
	{ "{'domain':'api','d':{'user':''}}", "api" },
	{ "{'domain':'api','d':[{'user':'-'},{'a':'--'}],'hits':'-','status':'-'}", "api [a=--]" },
	/* a path in one form */
	{ "{'domain':'api','d':{'path':'\\/a/.././%62?c','u':'%62'}}", "api [path=/b,u=%62]" },
	/* source, hits, status, at; quoted as proxies do */
	{ "{'domain':'api','d':{'u':'b'},'source':'192.0.2.7'}", "api source=192.0.2.7 [u=b]" },
	{ "{'domain':'api','d':{'u':'b'},'source':'unix:'}", "api [u=b]" },
	{ "{'domain':'api','d':{'u':'b'},'hits':5}", "api [u=b]*5" },
	{ "{'domain':'api','d':{'u':'b'},'hits':'5'}", "api [u=b]*5" },
	{ "{'domain':'api','d':{'u':'b'},'hits':''}", "api [u=b]" },
	{ "{'domain':'api','d':{'u':'b'},'hits':null}", "api [u=b]" },
	{ "{'domain':'api','d':{'u':'b'},'hits':-2}", "api [u=b]*-2" },
	{ "{'domain':'api','d':{'u':'b'},'hits':'-2','status':'200'}", "api [u=b]*-2 status=200" },
	{ "{'domain':'api','d':{'u':'b'},'status':429}", "api [u=b] status=429" },
	{ "{'domain':'api','d':{'u':'b'},'at':1763748000.250}",
	  "api [u=b] at=1763748000250000000" },
	{ "{'domain':'api','d':{'u':'b'},'at':'2025-11-21T18:00:00Z'}",
	  "api [u=b] at=1763748000000000000" },
	/* members for others; bytes of any kind in values */
	{ "{'time':'x','domain':'api','d':{'u':'b'},'bytes':{'a':[1,2]}}", "api [u=b]" },
	{ "{\"domain\":\"api\",\"d\":{\"u\":\"\xff\xfe\\u0001\\\"{\"}}",
	  "api [u=\xff\xfe\x01\"{]" },
};

static int read_line(const char *text, struct json_request **ret, struct sl_err *err)
{
	text = json_text(text);
	return syslog_line_read(text, strlen(text), ret, err);
}

TEST(test_lines)
{
	struct json_request *report;
	char text[1024];

	for (size_t i = 0; i < COUNT(lines); i++) {
		struct sl_err err = { .line = 0 };

		if (read_line(lines[i].line, &report, &err))
			fail_msg("%s: %s", lines[i].line, err.message);
		assert_string_equal(report_text(report, text, sizeof(text)), lines[i].report);
		json_request_free(report);
	}
}

TEST(test_latency)
{
	static const struct {
		const char *member;
		u64 ns;
	} rows[] = {
		{ "'latency':'0.250'", 250000000 }, { "'latency':1.5", 1500000000 },
		{ "'latency_ms':'12'", 12000000 },  { "'latency':'-'", ~0ULL },
		{ "'latency':''", ~0ULL },	    { "'latency':null", ~0ULL },
		{ "'status':200", ~0ULL },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct json_request *report;
		struct sl_err err = { .line = 0 };
		char line[128];

		snprintf(line, sizeof(line), "{'domain':'api','d':{'u':'b'},%s}", rows[i].member);
		assert_int_equal(read_line(line, &report, &err), 0);
		assert_true(report->latency_ns == rows[i].ns);
		json_request_free(report);
	}
}

TEST(test_no_report)
{
	static const struct {
		const char *line, *words;
	} bad[] = {
		{ "", "no JSON" },
		{ "<190>", "no JSON" },
		{ "<190>Nov 21 18:00:00 host: hello", "no JSON" },
		{ "<134>1 2026-11-21T18:00:00Z host a 1 - [x a=\"{", "no JSON" },
		{ "<134>1 - {", "no JSON" },
		{ "{", "" },
		{ "{}", "either \"d\" or \"descriptors\"" },
		{ "{'domain':'api','d':{'user':'bo", "" },
		{ "{'d':{'user':'bob'}}", "domain" },
		{ "{'domain':7,'d':{'user':'bob'}}", "domain" },
		{ "{'domain':'api','d':'bob'}", "d: a string" },
		{ "{'domain':'api','d':{}}", "1 to 16" },
		{ "{'domain':'api','d':[]}", "1 to 32" },
		{ "{'domain':'api','d':['bob']}", "d: a string" },
		{ "{'domain':'api','d':{'user':7}}", "a string is required" },
		{ "{'domain':'api','d':{'':'bob'}}", "a name is empty" },
		{ "{'domain':'api','d':{'u':'b'},'descriptors':[]}", "either" },
		{ "{'domain':'api','descriptors':[{'entries':[]}]}", "entries" },
		{ "{'domain':'api','d':{'u':'b'},'hits':1.5}", "hits" },
		{ "{'domain':'api','d':{'u':'b'},'hits':'many'}", "hits" },
		{ "{'domain':'api','d':{'u':'b'},'hits':' 5'}", "hits" },
		{ "{'domain':'api','d':{'u':'b'},'hits':'5x'}", "hits" },
		{ "{'domain':'api','d':{'u':'b'},'status':'ok'}", "status" },
		{ "{'domain':'api','d':{'u':'b'},'at':true}", "at" },
		{ "{'domain':'api','d':{'u':'b'},'latency':'0.1, 0.2'}", "latency" },
		{ "{'domain':'api','d':{'u':'b'},'latency':'-1'}", "latency" },
		{ BOB BOB, "" },
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct json_request *report = NULL;
		struct sl_err err = { .line = 0 };

		if (read_line(bad[i].line, &report, &err) != -EINVAL)
			fail_msg("%s: was read", bad[i].line);
		assert_null(report);
		assert_true(err.message[0]);
		if (!strstr(err.message, bad[i].words))
			fail_msg("%s: \"%s\" does not say \"%s\"", bad[i].line, err.message,
				 bad[i].words);
	}
}

/* Most members, and one more: no rule matches that; most descriptors, and one more is none. */
TEST(test_most)
{
	static char line[65536];
	struct json_request *report;
	struct sl_err err;

	for (u32 more = 0; more < 2; more++) {
		char *at = line + sprintf(line, "{'domain':'api','d':{");

		for (u32 i = 0; i < REQUEST_ENTRIES_MAX + more; i++)
			at += sprintf(at, "%s'k%u':'v'", i ? "," : "", i);
		strcpy(at, "}}");
		assert_int_equal(read_line(line, &report, &err), 0);
		assert_int_equal(report->request.descriptor[0].count, REQUEST_ENTRIES_MAX);
		assert_int_equal(report->request.descriptor[0].beyond, more);
		json_request_free(report);
		at = line + sprintf(line, "{'domain':'api','d':[");
		for (u32 i = 0; i < REQUEST_DESCRIPTORS_MAX + more; i++)
			at += sprintf(at, "%s{'k%u':'v'}", i ? "," : "", i);
		strcpy(at, "]}");
		assert_int_equal(read_line(line, &report, &err), more ? -E2BIG : 0);
		if (!more)
			json_request_free(report);
	}
}

/* A download of 20 GB counts as it is; of more than a request may have, the largest number. */
TEST(test_hits)
{
	static const char *const lines[] = {
		"{'domain':'api','d':{'u':'b'},'hits':20000000000}",
		"{'domain':'api','d':{'u':'b'},'hits':'99999999999999999999'}",
	};
	struct json_request *report;
	struct sl_err err;

	for (size_t i = 0; i < COUNT(lines); i++) {
		assert_int_equal(read_line(lines[i], &report, &err), 0);
		assert_true(i ? report->request.descriptor[0].hits > REQUEST_HITS_MAX
			      : report->request.descriptor[0].hits == 20000000000);
		json_request_free(report);
	}
}

/* Lines with bytes changed, in memory that ends where they end. */
TEST(test_random)
{
	rng_start("syslog_line");
	for (u32 i = 0; i < 20000; i++) {
		const char *line = json_text(lines[rng_below(COUNT(lines))].line);
		size_t len = rng_below(4) ? strlen(line) : rng_below(strlen(line) + 1);
		char *copy = malloc(len ? len : 1);
		struct json_request *report;
		struct sl_err err;

		memcpy(copy, line, len);
		for (u32 k = rng_below(4); k && len; k--)
			copy[rng_below(len)] = rng();
		if (!syslog_line_read(copy, len, &report, &err))
			json_request_free(report);
		free(copy);
	}
}

TEST_MAIN
