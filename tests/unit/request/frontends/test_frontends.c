// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests of proxies (/nginx/check, /forward-auth), and responses as their replies; the server
 * and the decision core are invented. tests/http/ has the real ones.
 */
#include "frontends_rig.h"

/* ---------------------------------------------------------------- /nginx/check */

/* After begin() and its headers: what is asked, and then answered. */
static void asks_for(void (*frontend)(struct http1_request *), const char *is)
{
	frontend(&request);
	if (strcmp(asked, is))
		fail_msg("%.*s: asked \"%s\", not \"%s\" (%d %s)", (int)request.query.len,
			 request.query.at, asked, is, replied, reply_body);
	assert_int_equal(replied, frontend == nginx_check ? 204 : 200);
	end();
}

struct call {
	const char *query, *headers, *asked;
};

static void calls_ask(void (*frontend)(struct http1_request *), const struct call *call,
		      size_t count)
{
	for (; count--; call++) {
		begin_with(call->query, call->headers);
		asks_for(frontend, call->asked);
	}
}

TEST(test_nginx)
{
	static const struct call calls[] = {
		/* A value that is missing, or empty, leaves its descriptor out; all: no rule is
		   met. */
		{ "domain=api&d=user,plan&d=plan",
		  "x-sluice-v-user: \nx-sluice-v-plan: free\nx-sluice-source: unix:",
		  "api plan=free*1" },
		{ "domain=api&d=user,plan&d=plan", "", "api" },
		/* The key "source" has a header of its own, which goes before. */
		{ "domain=api&d=source", "x-sluice-source: 192.0.2.7\nx-sluice-v-source: x",
		  "api source=x*1 from 192.0.2.7" },
		/* And "path" is that of the URI, brought into one form. */
		{ "domain=api&d=path&d=path,user",
		  "x-sluice-uri: /a/%2e%2e//b?c\nx-sluice-v-user: x",
		  "api path=/b*1 | path=/b,user=x*1" },
		{ "domain=api&d=path", "x-sluice-uri: /a\nx-sluice-v-path: /%61",
		  "api path=/%61*1" },
		/* A client's own headers are ignored. */
		{ "domain=api&d=user", "user: bob\nx-user: bob", "api" },
	};

	begin("domain=api&d=User,plan&d=source&d=endpoint=lo%67in,plan&hits=2");
	header("x-sluice-v-user", "b\0b", 3);
	header("x-sluice-v-plan", "free", 4);
	header("x-sluice-source", "192.0.2.7", 9);
	nginx_check(&request);
	assert_memory_equal(asked,
			    "api User=b\0b,plan=free*2 | source=192.0.2.7*2 | "
			    "endpoint=login,plan=free*2 from 192.0.2.7",
			    60);
	assert_int_equal(replied, 204);
	end();
	calls_ask(nginx_check, calls, COUNT(calls));
}

/* A limit is of the `d` before it, also where that is omitted. */
TEST(test_query_limit)
{
	static const struct call calls[] = {
		{ "domain=api&d=user&limit=10/s&d=user,plan&limit=3/m&d=k=v&limit=1K/w&d=k=w",
		  "x-sluice-v-user: bob",
		  "api user=bob*1 limit 10/1 | k=v*1 limit 1000/7 | k=w*1" },
		/* Of several all hold: of one unit the smaller, of each unit one. */
		{ "domain=api&d=user&limit=10/s&limit=100/m&limit=5/s&limit=200/m&d=k=v&limit=7/h",
		  "x-sluice-v-user: bob",
		  "api user=bob*1 limit 5/1 | user=bob*1 limit 100/2 | k=v*1 limit 7/3" },
		{ "domain=api&d=user&limit=10/s&limit=0/m", "", "api" },
		{ "domain=api&d=plan&limit=10/s&d=user", "x-sluice-v-user: bob", "api user=bob*1" },
	};
	char many[512] = "domain=api";

	calls_ask(nginx_check, calls, COUNT(calls));
	for (int i = 0; i < 11; i++)
		strcat(many, "&d=k=v&limit=1/s&limit=1/m&limit=1/h");
	begin(many);
	asks_for(nginx_check, "api beyond: more than 32 descriptors");
	begin("domain=api&limit=1/s&d=user");
	nginx_check(&request);
	assert_non_null(strstr(reply_body, "must follow the d"));
	end();
}

TEST(test_nginx_replies)
{
	static const struct {
		enum response_code code;
		int status;
	} cases[] = {
		{ RESPONSE_OK, 204 },
		{ RESPONSE_OVER_LIMIT, 403 },
		{ RESPONSE_CLOSED, 403 },
		{ RESPONSE_ERROR, 500 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin_with("domain=api&d=user", "x-sluice-v-user: bob");
		refuse();
		response.code = cases[i].code;
		nginx_check(&request);
		assert_int_equal(replied, cases[i].status);
		assert_non_null(strstr(reply_headers, i ? "ratelimit: \"user\";r=0;t=3\n"
							: "ratelimit: \"user\";r=0;t=1\n"));
		assert_int_equal(strstr(reply_headers, "retry-after: 3\n") != NULL, i > 0);
		end();
	}
	begin("domain=api&d=user");
	rights = MAY_REPORT;
	nginx_check(&request);
	assert_int_equal(replied, 403); /* the server makes 500 of it */
	end();
}

/* Errors in the administrator's configuration are a 500 with a message, and no decision.
 * (over 70 lines: a table of cases.) */
TEST(test_query_errors)
{
	static const struct {
		const char *query, *words;
	} cases[] = {
		{ "", "d: none" },
		{ "domain=api", "d: none" },
		{ "d=user", "domain is missing" },
		{ "domain=&d=user", "domain:" },
		{ "domain=a&domain=b&d=u", "domain:" },
		{ "domain=api&d=", "a key of 0" },
		{ "domain=api&d=user,", "a key of 0" },
		{ "domain=api&d=user:", "after the colon" },
		{ "domain=api&d=u&x=1", "x: unknown parameter" },
		{ "domain=api&d=u&hits=-1", "hits" },
		{ "domain=api&d=u&hits=many", "hits" },
		{ "domain=api&d=%zz", "escape" },
		{ "domain=api&d=%00", "escape" },
		{ "domain=api&d=%4", "escape" },
		{ "domain=api&d", "d: none" },
		{ "domain=api&d=u&peek", "without '='" },
		{ "domain=api&d=u&%64=x", "unknown parameter" },
		{ "domain=api&d=u:nowhere", NULL },
		{ "domain=api&d=k=v&limit=", "COUNT/UNIT" },
		{ "domain=api&d=k=v&limit=10", "COUNT/UNIT" },
		{ "domain=api&d=k=v&limit=10/x", "COUNT/UNIT" },
		{ "domain=api&d=k=v&limit=-1/s", "COUNT/UNIT" },
		{ "domain=api&d=k=v&limit=1099511627777/s", "COUNT/UNIT" },
	};
	char many[512] = "domain=api";

	undecided = 0;
	for (size_t i = 0; i < 2 * COUNT(cases); i++) {
		begin(cases[i / 2].query);
		if (i % 2)
			forward_auth(&request);
		else
			nginx_check(&request);
		if (replied != 500 || asks || undecided != i + 1)
			fail_msg("%s: %d", cases[i / 2].query, replied);
		if (cases[i / 2].words && !strstr(reply_body, cases[i / 2].words) &&
		    !(i % 2 && strstr(reply_body, "is unknown")))
			fail_msg("%s: %s", cases[i / 2].query, reply_body);
		end();
	}
	for (int i = 0; i < 33; i++)
		strcat(many, "&d=method");
	/* An error would let the request pass, if the proxy is configured so. */
	for (u32 i = 0; i < 2; i++) {
		begin(many);
		response.code = RESPONSE_OVER_LIMIT;
		response.beyond = "too many";
		response.retry_after_ns = ~0ULL;
		if (i)
			forward_auth(&request);
		else
			nginx_check(&request);
		assert_string_equal(asked, "api beyond: more than 32 descriptors");
		assert_int_equal(replied, i ? 429 : 403);
		assert_true(!i || strstr(reply_body, "\"detail\":\"the request exceeds a bound and "
						     "is refused: too many\""));
		assert_null(strstr(reply_headers, "retry-after"));
		end();
	}
	/* A client that sends its own key beside an invented one. */
	begin_with("domain=api&d=user:header(X-User)&d=method", "x-user: bob\nx-user: invented");
	response.code = RESPONSE_OVER_LIMIT;
	response.beyond = "too many";
	forward_auth(&request);
	assert_string_equal(asked, "api beyond: two different headers where one is expected");
	assert_int_equal(replied, 429);
	end();
	many[strlen(many) - strlen("&d=method")] = 0;
	begin(many);
	nginx_check(&request);
	assert_int_equal(replied, 204);
	end();
}

/* No rule matches more entries than a rule can have; hits are passed on unchanged. */
TEST(test_query_beyond)
{
	static const struct {
		const char *query, *asked;
	} cases[] = {
		{ "domain=api&d=a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9,j=a,k=b,l=c,m=d,n=e,o=f,p=g,q=h",
		  "api a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9,j=a,k=b,l=c,m=d,n=e,o=f,p=g*1" },
		{ "domain=api&d=a=1&hits=1099511627777", "api a=1*1099511627777" },
		{ "domain=api&d=a=1&hits=99999999999999999999999", "api a=1*18446744073709551615" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin(cases[i].query);
		nginx_check(&request);
		assert_string_equal(asked, cases[i].asked);
		end();
	}
}

TEST(test_delay)
{
	static const struct {
		const char *text;
		bool good;
		u64 ns;
	} cases[] = {
		{ "2s", true, 2 * SL_NS_PER_SEC },
		{ "500ms", true, SL_NS_PER_SEC / 2 },
		{ "0", true, 0 },
		{ "", true, ~0ULL },
		{ "soon", false, 0 },
		{ "2", false, 0 },
		{ "-1s", false, 0 },
		{ "1s2222222222222222222222222222222222222222222222222222", false, 0 },
	};
	u64 ns;

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin("");
		header("x-sluice-wait", cases[i].text, strlen(cases[i].text));
		assert_int_equal(frontend_wait(&request, &ns), cases[i].good);
		if (cases[i].good)
			assert_true(ns == cases[i].ns);
	}
	listener.has_max_wait = true;
	listener.max_wait_ns = 7;
	begin("");
	assert_true(frontend_wait(&request, &ns) && ns == 7);
	listener.has_max_wait = false;
}

/* A delayed response: the request stays until the reply is sent, or the client disconnects. */
TEST(test_held)
{
	begin_with("domain=api&d=user", "x-sluice-v-user: bob");
	held = (struct delayed *)&response;
	nginx_check(&request);
	assert_int_equal(replied, 0);
	assert_ptr_equal(request.delayed, held);
	held_done(held_call, &response, held_arg);
	assert_int_equal(replied, 204);
	end();

	begin("domain=api&d=user");
	held = (struct delayed *)&response;
	nginx_check(&request);
	end();
	assert_int_equal(replied, 0);
}

/* ---------------------------------------------------------------- /forward-auth */

TEST(test_forward_auth)
{
	static const struct call calls[] = {
		{ "domain=api&d=user:header(X-User),method,path&d=sid:cookie(SID)&d=host,z=1&source=none",
		  "x-user: bob\nx-forwarded-method: GET\nx-forwarded-uri: /a/../b%2Fc//d?x=1\n"
		  "x-forwarded-host: API.example.com:443\ncookie: a=b; SIDE=1; SID=x=y;SID=no\n"
		  "x-forwarded-for: 192.0.2.9",
		  "api user=bob,method=GET,path=/b/c/d*1 | sid=x=y*1 | host=api.example.com,z=1*1" },
		{ "domain=api&d=s:source&source=xff-last",
		  "x-forwarded-for: 10.0.0.1\nx-forwarded-for: 10.0.0.2,  192.0.2.9\t",
		  "api s=192.0.2.9*1 from 192.0.2.9" },
		{ "domain=api&d=source&source=xff-2",
		  "x-forwarded-for: 10.0.0.1, 192.0.2.9\nx-forwarded-for: 192.0.2.10:50001",
		  "api source=192.0.2.9*1 from 192.0.2.9" },
		{ "domain=api&d=source&source=xff-3", "x-forwarded-for: 192.0.2.9:1,192.0.2.10",
		  "api source=192.0.2.9:1*1 from 192.0.2.9" },
		{ "domain=api&d=source&source=xff-2", "", "api" },
		{ "domain=api&d=user:header(X-User)", "x-user: bob\nx-user: bob",
		  "api user=bob*1" },
		{ "source=header(X-Peer)&domain=api&d=source", "x-peer: [2001:db8::1]:7",
		  "api source=[2001:db8::1]:7*1 from 2001:db8::1" },
		{ "domain=api&d=user:header(X-User)&d=cookie(A)&d=path,host&source=xff-last", "",
		  "api" },
		{ "domain=api&d=login=1", "", "api login=1*1" },
	};

	calls_ask(forward_auth, calls, COUNT(calls));
	begin("domain=api&d=source");
	forward_auth(&request);
	assert_int_equal(replied, 500);
	begin("domain=api&d=path&source=somewhere");
	forward_auth(&request);
	assert_int_equal(replied, 500);
}

TEST(test_forward_auth_replies)
{
	begin_with("domain=api&d=path", "x-forwarded-uri: /");
	refuse();
	forward_auth(&request);
	assert_int_equal(replied, 429);
	assert_string_equal(reply_type, "application/problem+json");
	assert_non_null(strstr(reply_headers, "retry-after: 3\n"));
	assert_non_null(strstr(reply_body, "violated-policies"));
	end();
	begin("domain=api&d=path");
	response.code = RESPONSE_CLOSED;
	forward_auth(&request);
	assert_int_equal(replied, 503);
	end();
}

/* "?" is of "GET http://host?x". */
TEST(test_paths)
{
	static const struct {
		const char *uri, *path;
	} cases[] = { ITEMS({ "/", "/" }, { "/?a=/b", "/" }, { "//", "/" }, { "/a//b///", "/a/b/" },
			    { "/./a/.", "/a/" }, { "/a/..", "/" }, { "/a/../..", "/" },
			    { "/../../a", "/a" }, { "/a/b/../c", "/a/c" }, { "/%61", "/a" },
			    { "/%2e%2E/a", "/a" }, { "/a%2f..%2Fb", "/b" }, { "/%", "/%" },
			    { "/%4", "/%4" }, { "/%zz", "/%zz" }, { "/a%3Fb", "/a?b" },
			    { "/...", "/..." }, { "/a/...", "/a/..." }, { "/.a/..b/", "/.a/..b/" },
			    { "*", "*" }, { "/a/./././b", "/a/b" }, { "/a/b/../../../../c", "/c" },
			    { "/.", "/" }, { "/a.", "/a." }, { "/a..", "/a.." }, { "..", ".." },
			    { "/a#b", "/a" }, { "/a#b?c", "/a" }, { "/a?b#c", "/a" },
			    { "/a%23b", "/a#b" }, { "/#", "/" }, { "http://h/a", "/a" },
			    { "HTTPS://h:1//b?x", "/b" }, { "http://h", "/" },
			    { "http://h?a/b", "/" }, { "http://h#/b", "/" },
			    { "http:/h/a", "http:/h/a" }, { "/http://h/a", "/http:/h/a" },
			    { "://h/a", ":/h/a" }, { "h2://h/a", "h2:/h/a" }, { "http", "http" },
			    { "http:/", "http:/" }, { "?x", "/" }, { "#", "/" }, { "?", "/" }) };
	char is[512];

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin("domain=d&d=path&d=path,path");
		header("x-forwarded-uri", cases[i].uri, strlen(cases[i].uri));
		snprintf(is, sizeof(is), "d path=%s*1 | path=%s,path=%s*1", cases[i].path,
			 cases[i].path, cases[i].path);
		asks_for(forward_auth, is);
	}
}

TEST(test_methods)
{
	static const struct {
		const char *method, *is;
	} cases[] = { ITEMS({ "GET", "GET" }, { "post", "POST" }, { "pOsT", "POST" },
			    { "M-Search{z}", "M-SEARCH{Z}" }) };
	char is[512];

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin("domain=d&d=method&d=m:method,host,path");
		header("x-forwarded-method", cases[i].method, strlen(cases[i].method));
		header("x-forwarded-host", "h", 1);
		header("x-forwarded-uri", "/a", 2);
		snprintf(is, sizeof(is), "d method=%s*1 | m=%s,host=h,path=/a*1", cases[i].is,
			 cases[i].is);
		asks_for(forward_auth, is);
	}
}

TEST(test_cookies)
{
	static const struct {
		const char *cookie, *is;
	} cases[] = { ITEMS({ "SID=x", "d sid=x*1" }, { "SID=x ; a=b", "d sid=x*1" },
			    { "SID=x \t", "d sid=x*1" }, { "a=b;\tSID=x", "d sid=x*1" },
			    { "a=b; SID =x", "d sid=x*1" }, { "SID= x", "d sid=x*1" },
			    { "SID=\"x\"", "d sid=x*1" }, { "SID = \"x\" ;SID=y", "d sid=x*1" },
			    { "SID=\"", "d sid=\"*1" }, { "SID=\"x", "d sid=\"x*1" },
			    { "SID=a=b ", "d sid=a=b*1" }, { "SIDE=x; SI=x; sid=x; SID", "d" },
			    { "SID=", "d" }, { "SID= \t", "d" }, { "SID=\"\"", "d" },
			    { ";;=; =x", "d" }) };

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin("domain=d&d=sid:cookie(SID)");
		header("cookie", cases[i].cookie, strlen(cases[i].cookie));
		asks_for(forward_auth, cases[i].is);
	}
}

TEST(test_hosts)
{
	static const struct {
		const char *host, *is;
	} cases[] = {
		{ "A.b", "a.b" },     { "a.b:80", "a.b" },     { "a.b.", "a.b" },
		{ "a.b.:80", "a.b" }, { "[::1]:80", "[::1]" }, { "[::1]", "[::1]" },
		{ "[::A]", "[::a]" }, { "a:b", "a:b" },	       { "a:", "a" },
		{ "80", "80" },
	};
	char is[512];

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin("domain=d&d=host");
		header("x-forwarded-host", cases[i].host, strlen(cases[i].host));
		snprintf(is, sizeof(is), "d host=%s*1", cases[i].is);
		asks_for(forward_auth, is);
	}
}

/* Any bytes of a client are values: no error, and none of them in a response. */
TEST(test_client_bytes)
{
	static char junk[65000];

	for (int round = 0; round < 300; round++) {
		size_t len = round < 10 ? sizeof(junk) : (size_t)(rand() % 300);

		for (size_t i = 0; i < len; i++)
			junk[i] = round < 10  ? '/' + round
				  : round % 2 ? rand() % 256
					      : "/.%2e?;=, \"\\\0\xff"[rand() % 13];
		begin("domain=api&d=path&d=x:header(X)&d=cookie:cookie(A)&d=host,method&source=xff-last");
		header(round % 3 == 0	? "x-forwarded-uri"
		       : round % 3 == 1 ? "cookie"
					: "x-forwarded-for",
		       junk, len);
		if (round % 2)
			header("x-forwarded-host", "SECRET", 6);
		refuse();
		forward_auth(&request);
		assert_int_equal(replied, 429);
		assert_null(strstr(reply_headers, "SECRET"));
		assert_null(strstr(reply_body, "SECRET"));
		end();
	}
}

TEST_MAIN
