// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * /v1/check, /v1/report and /json between a body and a request, a response and a reply; the server
 * and the decision core are invented.
 */
#include "frontends_rig.h"
#include "lib/json_at.h"

/* ---------------------------------------------------------------- JSON */

static void begin_post(const char *body)
{
	begin("");
	request.body = (struct bytes){ body, strlen(body) };
}

#define ENTRIES "\"entries\":[{\"key\":\"user\",\"value\":\"bob\"}]"
#define CHECK "{\"domain\":\"api\",\"descriptors\":[{" ENTRIES "}]}"

TEST(test_check)
{
	begin_post("{\"domain\":\"api\",\"descriptors\":[{" ENTRIES ",\"hits\":3}],\"peek\":true,"
		   "\"source\":\"192.0.2.7\"}");
	v1_check(&request);
	assert_string_equal(asked, "api user=bob*3 from 192.0.2.7 peek");
	assert_int_equal(replied, 200);
	assert_string_equal(reply_type, "application/json");
	end();
	begin_post(CHECK);
	refuse();
	v1_check(&request);
	assert_int_equal(replied, 429);
	end();
	begin_post("{}");
	v1_check(&request);
	assert_int_equal(replied, 400);
	begin_post(CHECK);
	rights = MAY_REPORT;
	v1_check(&request);
	assert_true(replied == 403 && !asks);
	begin_post(CHECK);
	header("x-sluice-wait", "soon", 4);
	v1_check(&request);
	assert_true(replied == 400 && !asks);
}

TEST(test_rls)
{
	json_t *json, *status;

	begin_post(CHECK);
	refuse();
	rls_json(&request);
	assert_int_equal(replied, 429);
	json = json_loads(reply_body, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	assert_string_equal(text_at(json, "overallCode"), "OVER_LIMIT");
	status = json_at(json, "statuses.0");
	assert_string_equal(text_at(status, "code"), "OVER_LIMIT");
	assert_string_equal(text_at(status, "durationUntilReset"), "2s");
	assert_int_equal(int_at(status, "currentLimit.requestsPerUnit"), 10);
	assert_string_equal(text_at(status, "currentLimit.unit"), "MINUTE");
	assert_true(json_is_integer(json_object_get(status, "limitRemaining")));
	assert_int_equal(count_at(json, "responseHeadersToAdd"), 7);
	assert_non_null(strstr(reply_headers, "ratelimit-policy: \"user\";q=10;w=60\n"));
	json_decref(json);
	end();

	begin_post(CHECK);
	refuse();
	response.code = RESPONSE_CLOSED;
	rls_json(&request);
	assert_int_equal(replied, 429);
	end();
	begin_post(CHECK);
	response.code = RESPONSE_ERROR;
	rls_json(&request);
	assert_int_equal(replied, 503);
	end();
	begin_post(CHECK);
	response.status[0].window_ns = 10 * SL_NS_PER_SEC; /* 10 s are no unit */
	rls_json(&request);
	assert_int_equal(replied, 200);
	assert_null(strstr(reply_body, "currentLimit"));
	end();
	begin_post("{\"domain\":\"api\",\"descriptors\":[]}");
	rls_json(&request);
	assert_int_equal(replied, 400);
}

/* A request beyond the bounds is refused, with no status of any descriptor. */
TEST(test_beyond)
{
	static void (*const frontend[])(struct http1_request *) = { v1_check, rls_json };
	char many[4096] = "{\"domain\":\"api\",\"descriptors\":[{" ENTRIES "}";
	json_t *json;

	for (u32 i = 0; i < REQUEST_DESCRIPTORS_MAX; i++)
		strcat(many, ",{" ENTRIES "}");
	strcat(many, "]}");
	for (u32 i = 0; i < 2; i++) {
		begin_post(many);
		response.code = RESPONSE_OVER_LIMIT;
		response.beyond = "too many";
		response.retry_after_ns = ~0ULL;
		frontend[i](&request);
		assert_string_equal(asked,
				    "api beyond: descriptors: found 33; 1 to 32 are accepted");
		assert_int_equal(replied, 429);
		assert_string_equal(reply_headers, "");
		json = json_loads(reply_body, JSON_REJECT_DUPLICATES, NULL);
		assert_int_equal(count_at(json, "statuses"), 0);
		assert_string_equal(
			json_string_value(json_object_get(json, i ? "overallCode" : "code")),
			"OVER_LIMIT");
		json_decref(json);
		end();
		/* Rights are checked first. */
		begin_post(many);
		rights = MAY_REPORT;
		frontend[i](&request);
		assert_true(replied == 403 && !asks);
	}
	for (u32 i = 0; i < 3; i++) {
		static const char *const units[] = { "", ",\"unit\":\"UNKNOWN\"", ",\"unit\":0" };

		snprintf(many, sizeof(many),
			 "{\"domain\":\"api\",\"descriptors\":[{" ENTRIES
			 ",\"limit\":{\"requestsPerUnit\":10%s}}]}",
			 units[i]);
		begin_post(many);
		response.code = RESPONSE_OVER_LIMIT;
		response.beyond = "no unit";
		response.retry_after_ns = ~0ULL;
		rls_json(&request);
		assert_non_null(strstr(asked, "api beyond: descriptors[0].limit.unit: "));
		assert_int_equal(replied, 429);
		end();
	}
}

static void report_is(const char *body, u32 charged, const char *is)
{
	begin_post(body);
	worker.base = event_base_new();
	v1_report(&request);
	while (!replied && event_base_loop(worker.base, EVLOOP_ONCE) == 0)
		;
	end();
	event_base_free(worker.base);
	if (asks != charged || !strstr(reply_body, is))
		fail_msg("%.100s: %u charged; %d %.200s", body, asks, replied, reply_body);
}

TEST(test_report)
{
	char *many = malloc(10002 * sizeof(CHECK) + 2), *at = many;

	report_is("[]", 0, "{\"accepted\":0,\"rejected\":[],\"not_charged\":[]}");
	report_is("[{\"domain\":\"api\",\"descriptors\":[{" ENTRIES ",\"hits\":-2}]}]", 1,
		  "\"accepted\":1");
	assert_string_equal(asked, "api user=bob*-2 report");
	assert_int_equal(replied, 202);
	report_is("[" CHECK ",7,{},nonsense," CHECK "]", 2,
		  "{\"accepted\":2,\"rejected\":[{\"index\":1,\"detail\":\"");
	assert_non_null(strstr(reply_body, "{\"index\":3,"));
	/* Refused already: it charges nothing */
	report_is(
		"[{\"domain\":\"api\",\"descriptors\":[{" ENTRIES "}],\"status\":429}]", 0,
		"{\"accepted\":1,\"rejected\":[],\"not_charged\":[{\"index\":0,\"detail\":\"its status is 429\"}]}");
	report_is("[{\"domain\":\"api\",\"descriptors\":[{" ENTRIES "}],\"status\":401}]", 1,
		  "\"accepted\":1");
	report_is("[{\"domain\":\"theirs\",\"descriptors\":[{" ENTRIES "}]}," CHECK "]", 1,
		  "may not report");
	report_is("[{\"domain\":\"api\",\"descriptors\":[{" ENTRIES "}],\"at\":8e9}]", 0, "ahead");
	/* The same id charges once; in another domain it is another; the id of a rejected report
	 * can be used again. */
	report_is("[{\"domain\":\"api\",\"id\":\"x\",\"descriptors\":[{" ENTRIES "}],\"at\":8e9},"
		  "{\"domain\":\"api\",\"id\":\"x\",\"descriptors\":[{" ENTRIES "}]},"
		  "{\"domain\":\"api\",\"id\":\"x\",\"descriptors\":[{" ENTRIES "}]},"
		  "{\"domain\":\"b\",\"id\":\"x\",\"descriptors\":[{" ENTRIES "}]}]",
		  2, "\"accepted\":3");
	assert_non_null(
		strstr(reply_body, "{\"index\":2,\"detail\":\"its id was reported before\"}"));
	report_is("{}", 0, "no array");
	assert_int_equal(replied, 400);

	*at++ = '[';
	for (int i = 0; i < 10000; i++)
		at += sprintf(at, "%s%s", i ? "," : "", CHECK);
	strcpy(at, "]");
	report_is(many, 10000, "\"accepted\":10000");
	strcpy(at, ",1]");
	report_is(many, 0, "more than 10000");
	assert_int_equal(replied, 413);
	free(many);

	/* The client goes in the middle. */
	many = malloc(1000 * sizeof(CHECK));
	at = many;
	*at++ = '[';
	for (int i = 0; i < 500; i++)
		at += sprintf(at, "%s%s", i ? "," : "", CHECK);
	strcpy(at, "]");
	begin_post(many);
	worker.base = event_base_new();
	v1_report(&request);
	assert_true(asks > 0 && asks < 500 && !replied);
	end();
	event_base_loop(worker.base, EVLOOP_NONBLOCK);
	assert_true(asks < 500 && !replied);
	event_base_free(worker.base);
	free(many);
	begin_post("[" CHECK "]");
	rights = MAY_CHECK;
	v1_report(&request);
	assert_int_equal(replied, 403);
	report_ids_free(tier.shared[LISTEN_HTTP]);
	tier.shared[LISTEN_HTTP] = NULL;
}

TEST(test_ids)
{
	struct report_ids *ids = report_ids_new();
	struct bytes api = { "api", 3 }, id = { NULL, 0 };
	u32 i, again = 0;
	char text[32];

	id.at = text;
	for (i = 0; i < 200000; i++) {
		id.len = sprintf(text, "id-%u", i);
		assert_true(report_ids_first(ids, api, id, 1000));
	}
	for (i = 0; i < 200000; i++) {
		id.len = sprintf(text, "id-%u", i);
		again += report_ids_first(ids, api, id, 1000 + REPORT_IDS_S - 1);
	}
	assert_in_range(again, 0, 200); /* of a fifth of the table, hardly a set is full */
	id.len = sprintf(text, "id-7");
	assert_true(report_ids_first(ids, api, id, 1000 + 2 * REPORT_IDS_S));
	assert_false(report_ids_first(ids, api, id, 1000 + 2 * REPORT_IDS_S));
	assert_true(report_ids_first(ids, (struct bytes){ "ap", 2 }, id, 1000 + 2 * REPORT_IDS_S));
	report_ids_free(ids);
}

TEST_MAIN
