// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * response_json.c - see response.h: the body of /v1/check, and of a refusal by /forward-auth.
 *
 * Written straight into a buffer: a tree of jansson's for each decision would cost more than
 * the decision.
 */
#include "request/server/response.h"
#include "lib/out.h"
#include "request/rules/rule.h"

#define TYPE_QUOTA "https://iana.org/assignments/http-problem-types#quota-exceeded"
#define TYPE_REDUCED "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
#define NS_PER_MS 1000000ULL

int response_http_status(const struct response *response)
{
	return response->code == RESPONSE_OK	       ? 200
	       : response->code == RESPONSE_OVER_LIMIT ? 429
						       : 503;
}

const char *response_content_type(const struct response *response)
{
	return response->code == RESPONSE_OK ? "application/json" : "application/problem+json";
}

static void out_ms(struct out *out, u64 ns)
{
	if (ns == ~0ULL)
		out_text(out, "null");
	else
		out_u64(out, ns / NS_PER_MS + !!(ns % NS_PER_MS));
}

/* Seconds, with the fraction where a period has one: 60, 0.25 */
static void out_seconds(struct out *out, u64 ns)
{
	u64 rest = ns % SL_NS_PER_SEC, digit = SL_NS_PER_SEC / 10;

	out_u64(out, ns / SL_NS_PER_SEC);
	if (rest)
		out_char(out, '.');
	for (; rest; rest %= digit, digit /= 10)
		out_char(out, '0' + rest / digit);
}

/* {"code","rule","policy","limit","window_s","remaining","reset_ms","retry_after_ms","shadow"} */
static void out_status(struct out *out, const struct response_status *status)
{
	const struct rule *rule = status->rule;
	bool over = status->over && !status->shadow;

	out_text(out, over ? "{\"code\":\"OVER_LIMIT\",\"rule\":" : "{\"code\":\"OK\",\"rule\":");
	if (rule) {
		out_char(out, '"');
		out_json(out, rule->domain);
		out_char(out, '/');
		out_json(out, rule->path);
		out_char(out, '"');
	} else {
		out_text(out, "null");
	}
	out_text(out, ",\"policy\":");
	if (status->limit) {
		out_char(out, '"');
		out_json(out, status->limit->name ? status->limit->name : rule ? rule->path : "");
		out_char(out, '"');
	} else {
		out_text(out, "null");
	}
	/* A limit that the call itself brought has numbers and no name. */
	if (status->limit || status->window_ns) {
		out_text(out, ",\"limit\":");
		out_u64(out, status->requests);
		out_text(out, ",\"window_s\":");
		out_seconds(out, status->window_ns);
		out_text(out, ",\"remaining\":");
		out_u64(out, status->remaining);
		out_text(out, ",\"reset_ms\":");
		out_ms(out, status->reset_ns);
		out_text(out, ",\"retry_after_ms\":");
		out_ms(out, status->over ? status->retry_after_ns : 0);
	} else {
		out_text(out, ",\"limit\":null,\"window_s\":null,\"remaining\":null,"
			      "\"reset_ms\":null,\"retry_after_ms\":null");
	}
	out_text(out, status->shadow ? ",\"shadow\":true}" : ",\"shadow\":false}");
}

/* Whether it was decided by what a rule says where the store does not answer. */
static bool is_unavailable(const struct response *response)
{
	for (u32 i = 0; i < response->count; i++)
		if (response->status[i].unavailable)
			return true;
	return false;
}

static void out_detail(struct out *out, const struct response *response)
{
	char reason[1024];

	out_text(out, ",\"detail\":\"");
	if (response->code == RESPONSE_OVER_LIMIT) {
		response_reason(response, reason, sizeof(reason));
		out_text(out, "over the limit of ");
		if (reason[0])
			out_json(out, reason);
		else
			out_text(out, "the call");
		if (response->retry_after_ns == ~0ULL) {
			out_text(out, ", which never has room for it");
		} else {
			out_text(out, "; there is room again in ");
			out_u64(out, response_retry_after_s(response, 0));
			out_text(out, " s");
		}
	} else {
		out_text(out, is_unavailable(response) ? "the store of the cluster is away" :
						"no decision could be made");
		if (response->code == RESPONSE_CLOSED)
			out_text(out, ", and the rule says: closed");
	}
	out_char(out, '"');
}

static void out_problem(struct out *out, const struct response *response)
{
	bool over = response->code == RESPONSE_OVER_LIMIT, some = false;
	char name[512];
	u32 i;

	out_text(out, "{\"type\":\"");
	out_text(out, over ? TYPE_QUOTA : TYPE_REDUCED);
	out_text(out, over ? "\",\"title\":\"Quota exceeded\",\"status\":" :
			     "\",\"title\":\"Temporarily reduced capacity\",\"status\":");
	out_u64(out, response_http_status(response));
	out_detail(out, response);
	out_text(out, ",\"violated-policies\":[");
	for (i = 0; i < response->policy_count; i++) {
		if (!response->policy[i].refused)
			continue;
		out_text(out, some ? ",\"" : "\"");
		out_json(out, response_policy_name(response, i, name, sizeof(name)));
		out_char(out, '"');
		some = true;
	}
	out_text(out, "],\"code\":");
}

size_t response_json(const struct response *response, char *buf, size_t size)
{
	static const char *const code[] = {
		[RESPONSE_OK] = "\"OK\"", [RESPONSE_OVER_LIMIT] = "\"OVER_LIMIT\"",
		[RESPONSE_CLOSED] = "\"CLOSED\"", [RESPONSE_ERROR] = "\"ERROR\"",
	};
	struct out out;
	u32 i;

	out_begin(&out, buf, size);
	if (response->code == RESPONSE_OK)
		out_text(&out, "{\"code\":");
	else
		out_problem(&out, response);
	out_text(&out, code[response->code]);
	out_text(&out, ",\"statuses\":[");
	for (i = 0; i < response->count; i++) {
		if (i)
			out_char(&out, ',');
		out_status(&out, &response->status[i]);
	}
	out_text(&out, "],\"delayed_ms\":");
	out_ms(&out, response->delayed_ns);
	out_char(&out, '}');
	out_end(&out);
	return out.len;
}
