// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A response as headers and as JSON: each member, least and most, and names that need quoting. */
#include <jansson.h>

#include "lib/test.h"
#include "lib/json_at.h"
#include "request/server/response.h"
#include "lib/out.h"
#include "request/rules/rule.h"

#define SEC SL_NS_PER_SEC
#define MS (SEC / 1000)

static struct rule user = { .domain = "api", .path = "user" };
static struct rule path = { .domain = "api", .path = "path=/login" };
static struct rule_limit user_limit = { .name = "user" };
static struct rule_limit hourly = { .name = "hourly" }, other_hourly = { .name = "hourly" };

/* The output of response_headers(), as "name: value\n" lines. */
static char said[8192];

static void say(struct bytes name, struct bytes value, void *arg)
{
	assert_int_equal(strlen(name.at), name.len);
	assert_int_equal(strlen(value.at), value.len);
	assert_true(value.len < RESPONSE_TEXT_MAX);
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s: %s\n", name.at, value.at);
}

static const char *headers(const struct response *response, u32 jitter)
{
	said[0] = 0;
	response_headers(response, jitter, say, NULL);
	return said;
}

static json_t *body(const struct response *response)
{
	static char text[65536];
	size_t len = response_json(response, text, sizeof(text));
	json_error_t error;
	json_t *json;

	assert_true(len < sizeof(text) && len == strlen(text));
	json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	if (!json)
		fail_msg("%s at %d: %s", error.text, error.column, text);
	return json;
}

static struct response allowed(void)
{
	return (struct response){
		.code = RESPONSE_OK,
		.count = 1,
		.status = { { .rule = &user,
			      .limit = &user_limit,
			      .requests = 10,
			      .window_ns = 60 * SEC,
			      .remaining = 7,
			      .reset_ns = 1500 * MS + 1 } },
		.policy_count = 1,
		.policy = { { .rule = &user,
			      .limit = &user_limit,
			      .q = 10,
			      .w_s = 60,
			      .r = 7,
			      .t_ns = 1500 * MS,
			      .reset_ns = 42 * SEC } },
	};
}

static struct response refused(u64 wait_ns)
{
	struct response response = allowed();

	response.code = RESPONSE_OVER_LIMIT;
	response.retry_after_ns = wait_ns;
	response.status[0].over = true;
	response.status[0].remaining = 0;
	response.status[0].retry_after_ns = wait_ns;
	response.policy[0].r = 0;
	response.policy[0].refused = true;
	response.policy[0].wait_ns = wait_ns;
	return response;
}

TEST(test_allowed)
{
	struct response response = allowed();
	char text[64];
	json_t *json;

	assert_string_equal(
		headers(&response, 100),
		"x-ratelimit-limit: 10\nx-ratelimit-remaining: 7\nx-ratelimit-reset: 42\n"
		"ratelimit-policy: \"user\";q=10;w=60\nratelimit: \"user\";r=7;t=2\n");
	assert_string_equal(response_reason(&response, text, sizeof(text)), "");
	assert_int_equal(response_retry_after_s(&response, 1000), 0);
	assert_int_equal(response_http_status(&response), 200);
	assert_string_equal(response_content_type(&response), "application/json");

	response.delayed_ns = 200 * MS;
	json = body(&response);
	assert_int_equal(json_object_size(json), 3);
	assert_string_equal(text_at(json, "code"), "OK");
	assert_int_equal(int_at(json, "delayed_ms"), 200);
	json_decref(json);
	response_json(&response, said, sizeof(said));
	assert_non_null(strstr(
		said, "[{\"code\":\"OK\",\"rule\":\"api/user\",\"policy\":\"user\",\"limit\":10,"
		      "\"window_s\":60,\"remaining\":7,\"reset_ms\":1501,\"retry_after_ms\":0,"
		      "\"shadow\":false}]"));
}

TEST(test_refused)
{
	struct response response = refused(11 * SEC + 1);
	char text[64];
	json_t *json;

	assert_string_equal(
		headers(&response, 0),
		"x-ratelimit-limit: 10\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 42\n"
		"x-ratelimit-retry-after: 12\nretry-after: 12\n"
		"ratelimit-policy: \"user\";q=10;w=60\nratelimit: \"user\";r=0;t=12\n");
	assert_string_equal(response_reason(&response, text, sizeof(text)), "api/user");
	assert_int_equal(response_http_status(&response), 429);
	assert_string_equal(response_content_type(&response), "application/problem+json");
	json = body(&response);
	assert_string_equal(text_at(json, "type"),
			    "https://iana.org/assignments/http-problem-types#quota-exceeded");
	assert_int_equal(int_at(json, "status"), 429);
	assert_true(json_is_string(json_object_get(json, "title")));
	assert_true(json_is_string(json_object_get(json, "detail")));
	assert_string_equal(text_at(json, "code"), "OVER_LIMIT");
	assert_string_equal(text_at(json, "violated-policies.0"), "user");
	assert_int_equal(int_at(json, "statuses.0.retry_after_ms"), 11001);
	json_decref(json);
}

/* What shadow mode kept from refusing: rules and candidates; with as little room as there is still
 * a list. */
TEST(test_shadow)
{
	struct response response = allowed();
	char text[64];
	json_t *json;

	assert_string_equal(response_shadow(&response, text, sizeof(text)), "");
	response.status[0].over = response.status[0].shadow = true;
	assert_string_equal(response_shadow(&response, text, sizeof(text)), "[\"api/user\"]");
	response.code = RESPONSE_OVER_LIMIT;
	assert_string_equal(response_shadow(&response, text, sizeof(text)), "");
	response.code = RESPONSE_OK;
	response.status[0].candidates = 2;
	response.status[0].candidate[0] =
		(struct response_candidate){ .limit = response.status[0].limit };
	response.status[0].candidate[1] =
		(struct response_candidate){ .limit = response.status[0].limit, .over = true };
	assert_string_equal(response_shadow(&response, text, sizeof(text)),
			    "[\"api/user\",\"api/user:user\"]");
	for (size_t size = 1; size < sizeof(text); size++) {
		response_shadow(&response, text, size);
		json = json_loads(*text ? text : "[]", 0, NULL);
		assert_non_null(json);
		assert_in_range(json_array_size(json), size > 13 ? 1 : 0, 2);
		json_decref(json);
	}
}

/* Never and at once, no decision, and the jitter's least and most. */
TEST(test_retry_after)
{
	struct response response = refused(~0ULL);
	u64 seconds, least = ~0ULL, most = 0;
	json_t *json;
	int i;

	assert_int_equal(response_retry_after_s(&response, 100), 0);
	assert_null(strstr(headers(&response, 100), "retry-after"));
	json = body(&response);
	assert_true(json_is_null(json_at(json, "statuses.0.retry_after_ms")));
	json_decref(json);

	response = refused(0);
	assert_int_equal(response_retry_after_s(&response, 0), 1);
	response.code = RESPONSE_CLOSED;
	assert_int_equal(response_http_status(&response), 503);
	assert_int_equal(response_retry_after_s(&response, 0), 0);
	json = body(&response);
	assert_int_equal(int_at(json, "status"), 503);
	assert_string_equal(text_at(json, "code"), "CLOSED");
	json_decref(json);

	response = refused(100 * SEC);
	for (i = 0; i < 20000; i++) {
		seconds = response_retry_after_s(&response, 100);
		least = seconds < least ? seconds : least;
		most = seconds > most ? seconds : most;
	}
	assert_in_range(least, 100, 101);
	assert_in_range(most, 109, 110);
	assert_int_equal(response_retry_after_s(&response, 0), 100);
}

/* The binding one is first; names that are used twice; a ladder; one rule met twice. */
TEST(test_many)
{
	struct response response = refused(SEC);
	char name[64], text[64];

	response.policy_count = 5;
	response.policy[0] = (struct response_policy){ .rule = &user,
						       .limit = &hourly,
						       .q = 500,
						       .w_s = 3600,
						       .r = 0,
						       .t_ns = SEC,
						       .refused = true };
	response.policy[1] = (struct response_policy){
		.rule = &path, .limit = &other_hourly, .q = 50, .w_s = 3600, .r = 9, .t_ns = SEC
	};
	response.policy[2] = (struct response_policy){ .rule = &user,
						       .limit = &user_limit,
						       .q = 10,
						       .w_s = 0,
						       .r = 5,
						       .t_ns = SEC,
						       .prefix_len = 56 };
	response.policy[3] = response.policy[2];
	response.policy[3].r = 3;
	response.policy[4] =
		(struct response_policy){ .q = ~0ULL, .w_s = 1, .r = 1, .t_ns = ~0ULL };
	assert_string_equal(response_ratelimit_policy(&response, said, sizeof(said)),
			    "\"user:hourly\";q=500;w=3600, \"path=/login:hourly\";q=50;w=3600, "
			    "\"user/56\";q=10;w=1, \"request\";q=999999999999999;w=1");
	assert_string_equal(response_ratelimit(&response, 0, said, sizeof(said)),
			    "\"user:hourly\";r=0;t=1, \"path=/login:hourly\";r=9;t=1, "
			    "\"user/56\";r=3;t=1, \"request\";r=1");
	assert_string_equal(response_policy_name(&response, 1, name, sizeof(name)),
			    "path=/login:hourly");
	assert_string_equal(response_reason(&response, text, sizeof(text)), "api/user");
}

TEST(test_quoting)
{
	static struct rule odd = { .domain = "a\"b", .path = "k=\xc3\xb6\\\n" };
	static struct rule_limit limit = { .name = "say \"\xc3\xb6\"\\" };
	struct response response = refused(SEC);
	struct rule_limit longest = { 0 };
	char path_long[3000], small[8];
	json_t *json, *status;
	struct out out;
	u32 i;

	response.policy[0].rule = &odd;
	response.policy[0].limit = &limit;
	response.status[0].rule = &odd;
	response.status[0].limit = &limit;
	assert_string_equal(response_ratelimit(&response, 0, said, sizeof(said)),
			    "\"say \\\"%c3%b6\\\"\\\\\";r=0;t=2");
	json = body(&response);
	status = json_at(json, "statuses.0");
	assert_string_equal(text_at(status, "rule"), "a\"b/k=\xc3\xb6\\\n");
	assert_string_equal(text_at(status, "policy"), limit.name);
	json_decref(json);

	/* As many policies as there can be with names as long as can be stay within the stated
	 * length. */
	memset(path_long, 'x', sizeof(path_long) - 1);
	path_long[sizeof(path_long) - 1] = 0;
	for (i = 1; i < sizeof(path_long) - 1; i += 2)
		memcpy(path_long + i, "\xc3\xb6", 2);
	longest.name = path_long;
	response.policy_count = RESPONSE_POLICIES_MAX;
	for (i = 0; i < RESPONSE_POLICIES_MAX; i++)
		response.policy[i] = (struct response_policy){ .rule = &odd,
							       .limit = &longest,
							       .q = ~0ULL,
							       .w_s = ~0ULL,
							       .r = ~0ULL,
							       .t_ns = ~0ULL - 1,
							       .prefix_len = i,
							       .refused = true };
	assert_null(strstr(headers(&response, 0), "\xc3"));
	response.status[0].limit = &longest;
	json_decref(body(&response));

	/* Cut between characters, and counted on. */
	out_begin(&out, small, 4);
	out_text(&out, "ab\xc3\xb6");
	assert_string_equal(out_end(&out), "ab");
	assert_int_equal(out.len, 4);
	assert_int_equal(response_json(&response, small, sizeof(small)),
			 response_json(&response, said, sizeof(said)));
}

/* No rule, unlimited, shadow, several: statuses keep their order; numbers that are fractions. */
TEST(test_statuses)
{
	struct response response = { .code = RESPONSE_OK, .count = 4 };
	json_t *json, *statuses;

	response.status[1] = (struct response_status){ .rule = &user, .unlimited = true };
	response.status[2] = (struct response_status){ .rule = &path,
						       .limit = &hourly,
						       .over = true,
						       .shadow = true,
						       .requests = 5,
						       .window_ns = 250 * MS,
						       .retry_after_ns = 5 * MS };
	response.status[3] =
		(struct response_status){ .requests = 3, .window_ns = SEC, .remaining = 2 };
	assert_string_equal(headers(&response, 100), "");
	json = body(&response);
	statuses = json_object_get(json, "statuses");
	assert_int_equal(json_array_size(statuses), 4);
	assert_true(json_is_null(json_at(statuses, "0.rule")));
	assert_true(json_is_null(json_at(statuses, "0.limit")));
	assert_string_equal(text_at(statuses, "1.rule"), "api/user");
	assert_true(json_is_null(json_at(statuses, "1.remaining")));
	assert_true(true_at(statuses, "2.shadow"));
	assert_string_equal(text_at(statuses, "2.code"), "OK");
	assert_true(json_real_value(json_at(statuses, "2.window_s")) == 0.25);
	assert_int_equal(int_at(statuses, "2.retry_after_ms"), 5);
	assert_int_equal(int_at(statuses, "3.remaining"), 2);
	assert_true(json_is_null(json_at(statuses, "3.policy")));
	json_decref(json);
}

TEST_MAIN
