// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * response.c - see response.h: headers, and the body of /v1/check and of a refusal by
 * /forward-auth.
 *
 * A policy is identified by its name in RateLimit-Policy and RateLimit alike, so within one
 * response a name means one policy: a rule that two descriptors matched is listed once, by its
 * scarcer bucket, and two rules whose limits share a name are distinguished by their paths.
 *
 * The body is written straight into a buffer: a jansson tree for each decision would cost more
 * than the decision.
 */
#include "request/server/response.h"

#include <sys/random.h>

#include "lib/out.h"
#include "request/rules/permit.h"
#include "request/rules/rule.h"

#define TYPE_QUOTA "https://iana.org/assignments/http-problem-types#quota-exceeded"
#define TYPE_REDUCED "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
#define NS_PER_MS 1000000ULL
#define SF_INTEGER_MAX 999999999999999ULL /* RFC 9651: fifteen digits */
#define NAME_CHARS_MAX 120		  /* of a name in a header: eight of them fit */

static u64 seconds_up(u64 ns)
{
	return ns / SL_NS_PER_SEC + !!(ns % SL_NS_PER_SEC);
}

static u64 later(u64 a, u64 b)
{
	return a > b ? a : b;
}

static const char *limit_name(const struct response_policy *policy)
{
	if (policy->limit && policy->limit->name)
		return policy->limit->name;
	return policy->rule ? policy->rule->path : "request"; /* a limit of the request itself */
}

const char *response_policy_name(const struct response *response, u32 i, char *buf, size_t size)
{
	const struct response_policy *policy = &response->policy[i];
	const char *name = limit_name(policy);
	struct out out;
	u32 k;

	/* Alone it is nobody else's. */
	if (response->policy_count == 1 && !policy->prefix_len && strnlen(name, size) < size)
		return name;
	out_begin(&out, buf, size);
	for (k = 0; k < response->policy_count; k++) {
		const struct response_policy *other = &response->policy[k];

		if (policy->rule && other->rule != policy->rule &&
		    !strcmp(limit_name(other), name)) {
			out_text(&out, policy->rule->path);
			out_char(&out, ':');
			break;
		}
	}
	out_text(&out, name);
	if (policy->prefix_len) {
		out_char(&out, '/');
		out_u64(&out, policy->prefix_len);
	}
	return out_end(&out);
}

static bool same_policy(const struct response_policy *a, const struct response_policy *b)
{
	return a->rule == b->rule && a->limit == b->limit && a->prefix_len == b->prefix_len;
}

/* The scarcest of the policies equal to policy i; NULL if an earlier one represents it. */
static const struct response_policy *policy_listed(const struct response *response, u32 i)
{
	const struct response_policy *listed = &response->policy[i];
	u32 k;

	for (k = 0; k < i; k++) {
		if (same_policy(&response->policy[k], listed))
			return NULL;
	}
	for (k = i + 1; i && k < response->policy_count; k++) {
		const struct response_policy *other = &response->policy[k];

		if (same_policy(other, listed) && other->r < listed->r)
			listed = other;
	}
	return listed;
}

static void out_parameter(struct out *out, const char *name, u64 value)
{
	out_text(out, name);
	out_u64(out, value < SF_INTEGER_MAX ? value : SF_INTEGER_MAX);
}

/* Ends it; its text, which may have been cut. */
static struct bytes out_end_bytes(struct out *out)
{
	const char *text = out_end(out);

	return (struct bytes){ text, out->len < out->size ? out->len : strlen(text) };
}

/* RateLimit, or without `now` RateLimit-Policy. A refused one has its quota when Retry-After is
 * over, at the earliest. */
static struct bytes list_policies(const struct response *response, bool now, u64 retry_after_s,
				  char *buf, size_t size)
{
	const struct response_policy *policy;
	struct out out;
	char name[512];
	u32 i;

	out_begin(&out, buf, size);
	for (i = 0; i < response->policy_count; i++) {
		policy = policy_listed(response, i);
		if (!policy)
			continue;
		if (out.len)
			out_text(&out, ", ");
		out_sf_string(&out, response_policy_name(response, i, name, sizeof(name)),
			      NAME_CHARS_MAX);
		if (!now) {
			out_parameter(&out, ";q=", policy->q);
			out_parameter(&out, ";w=", policy->w_s ? policy->w_s : 1);
			continue;
		}
		out_parameter(&out, ";r=", policy->r);
		if (policy->t_ns != ~0ULL)
			out_parameter(&out, ";t=",
				      later(seconds_up(policy->t_ns),
					    policy->refused ? retry_after_s : 0));
	}
	return out_end_bytes(&out);
}

const char *response_ratelimit(const struct response *response, u64 retry_after_s, char *buf,
			       size_t size)
{
	return list_policies(response, true, retry_after_s, buf, size).at;
}

const char *response_ratelimit_policy(const struct response *response, char *buf, size_t size)
{
	return list_policies(response, false, 0, buf, size).at;
}

/*
 * 0..bound, from a generator of the thread's own (xorshift64*): jitter spreads clients that were
 * refused together, it is not secret.
 */
static u64 random_up_to(u64 bound)
{
	static __thread u64 state;

	if (!state && (getrandom(&state, sizeof(state), GRND_NONBLOCK) != sizeof(state) || !state))
		state = 0x9e3779b97f4a7c15ULL ^ (u64)(size_t)&state;
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned __int128)(state * 0x2545f4914f6cdd1dULL) * (bound + 1) >> 64;
}

u64 response_retry_after_s(const struct response *response, u32 jitter_permille)
{
	u64 wait = response->retry_after_ns;

	if (response->code == RESPONSE_OK || wait == ~0ULL)
		return 0;
	if (!wait)
		return response->code == RESPONSE_OVER_LIMIT ? 1 : 0;
	if (jitter_permille && wait < ~0ULL / 4000)
		wait += random_up_to(wait / 1000 *
				     (jitter_permille < 1000 ? jitter_permille : 1000));
	return seconds_up(wait);
}

const char *response_reason(const struct response *response, char *buf, size_t size)
{
	const struct rule *rule = NULL;
	struct out out;
	u32 i;

	out_begin(&out, buf, size);
	for (i = 0; response->code != RESPONSE_OK && i < response->policy_count && !rule; i++) {
		if (response->policy[i].refused)
			rule = response->policy[i].rule;
	}
	for (i = 0; response->code != RESPONSE_OK && i < response_statuses(response) && !rule;
	     i++) {
		if (response->status[i].over && !response->status[i].shadow)
			rule = response->status[i].rule;
	}
	if (rule) {
		out_text(&out, rule->domain);
		out_char(&out, '/');
		out_text(&out, rule->path);
	}
	return out_end(&out);
}

static void add_number(response_header_fn add, void *arg, struct bytes name, u64 value)
{
	struct out out;
	char text[24];

	out_begin(&out, text, sizeof(text));
	out_u64(&out, value);
	add(name, out_end_bytes(&out), arg);
}

void response_headers(const struct response *response, u32 jitter_permille, response_header_fn add,
		      void *arg)
{
	u64 retry_after = response_retry_after_s(response, jitter_permille);
	char text[RESPONSE_TEXT_MAX];

	if (response->policy_count) {
		add_number(add, arg, BYTES_OF("x-ratelimit-limit"), response->policy[0].q);
		add_number(add, arg, BYTES_OF("x-ratelimit-remaining"), response->policy[0].r);
		add_number(add, arg, BYTES_OF("x-ratelimit-reset"),
			   seconds_up(response->policy[0].reset_ns));
	}
	if (retry_after) {
		add_number(add, arg, BYTES_OF("x-ratelimit-retry-after"), retry_after);
		add_number(add, arg, BYTES_OF("retry-after"), retry_after);
	}
	if (response->policy_count) {
		add(BYTES_OF("ratelimit-policy"),
		    list_policies(response, false, 0, text, sizeof(text)), arg);
		add(BYTES_OF("ratelimit"),
		    list_policies(response, true, retry_after, text, sizeof(text)), arg);
	}
}

/* ------------------------------------------------------------------ JSON */

u64 response_unit_ns(const struct response_status *status)
{
	const struct rule_limit *limit = status->limit;

	return limit && limit->terms.calendar ? limit->terms.rates.rate[0].period_ns
					      : status->window_ns;
}

int response_http_status(const struct response *response)
{
	return response->ticket[0]		       ? 202
	       : response->code == RESPONSE_OK	       ? 200
	       : response->code == RESPONSE_OVER_LIMIT ? 429
						       : 503;
}

const char *response_content_type(const struct response *response)
{
	return response->ticket[0] || response->code == RESPONSE_OK ? "application/json"
								    : "application/problem+json";
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
	/* A limit of the request itself has numbers and no name. */
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
	if (status->ban_left_ns) {
		out_text(out, ",\"banned_ms\":");
		out_ms(out, status->ban_left_ns);
	}
	out_text(out, status->shadow ? ",\"shadow\":true}" : ",\"shadow\":false}");
}

/* Whether on_store_failure decided. */
static bool is_unavailable(const struct response *response)
{
	for (u32 i = 0; i < response_statuses(response); i++)
		if (response->status[i].unavailable)
			return true;
	return false;
}

static void out_detail(struct out *out, const struct response *response)
{
	char reason[1024];

	out_text(out, ",\"detail\":\"");
	if (response->beyond) {
		out_text(out, "the request exceeds a bound and is refused: ");
		out_json(out, response->beyond);
	} else if (response->code == RESPONSE_OVER_LIMIT) {
		response_reason(response, reason, sizeof(reason));
		out_text(out, "over the limit of ");
		if (reason[0])
			out_json(out, reason);
		else
			out_text(out, "the request");
		if (response->retry_after_ns == ~0ULL) {
			out_text(out, ", which it can never fit");
		} else {
			out_text(out, "; retry after ");
			out_u64(out, response_retry_after_s(response, 0));
			out_text(out, " s");
		}
	} else {
		out_text(out, is_unavailable(response) ? "the cluster store is unavailable"
						       : "no decision could be made");
		if (response->code == RESPONSE_CLOSED)
			out_text(out, ", and the rule refuses in that case (closed)");
	}
	out_char(out, '"');
}

/* ["user","api:user"] */
static void out_violated(struct out *out, const struct response *response)
{
	bool some = false;
	char name[512];

	out_char(out, '[');
	for (u32 i = 0; i < response->policy_count; i++) {
		if (!response->policy[i].refused)
			continue;
		out_text(out, some ? ",\"" : "\"");
		out_json(out, response_policy_name(response, i, name, sizeof(name)));
		out_char(out, '"');
		some = true;
	}
	out_char(out, ']');
}

const char *response_violated(const struct response *response, char *buf, size_t size)
{
	struct out out;

	out_begin(&out, buf, size);
	if (response->code != RESPONSE_OK)
		out_violated(&out, response);
	return out_end(&out);
}

/* Adds DOMAIN/PATH, or DOMAIN/PATH:LIMIT, to a list that stays valid: a name without room is left
 * out. */
static void out_shadow(struct out *out, const struct rule *rule, const struct rule_limit *limit)
{
	size_t before = out->len;

	out_text(out, before ? ",\"" : "[\"");
	out_json(out, rule->domain);
	out_char(out, '/');
	out_json(out, rule->path);
	if (limit) {
		out_char(out, ':');
		out_json(out, limit->name);
	}
	out_char(out, '"');
	if (out->len + sizeof("]") > out->size)
		out->len = before;
}

const char *response_shadow(const struct response *response, char *buf, size_t size)
{
	struct out out;

	out_begin(&out, buf, size);
	for (u32 i = 0; response->code == RESPONSE_OK && i < response_statuses(response); i++) {
		const struct response_status *status = &response->status[i];

		if (status->shadow && status->rule)
			out_shadow(&out, status->rule, NULL);
		for (u32 k = 0; k < status->candidates; k++)
			if (status->candidate[k].over)
				out_shadow(&out, status->rule, status->candidate[k].limit);
	}
	if (out.len)
		out_char(&out, ']');
	return out_end(&out);
}

static void out_problem(struct out *out, const struct response *response)
{
	bool over = response->code == RESPONSE_OVER_LIMIT;

	out_text(out, "{\"type\":\"");
	out_text(out, over ? TYPE_QUOTA : TYPE_REDUCED);
	out_text(out, over ? "\",\"title\":\"Quota exceeded\",\"status\":"
			   : "\",\"title\":\"Temporarily reduced capacity\",\"status\":");
	out_u64(out, response_http_status(response));
	out_detail(out, response);
	out_text(out, ",\"violated-policies\":");
	out_violated(out, response);
	out_text(out, ",\"code\":");
}

size_t response_json(const struct response *response, char *buf, size_t size)
{
	static const char *const code[] = {
		[RESPONSE_OK] = "\"OK\"",
		[RESPONSE_OVER_LIMIT] = "\"OVER_LIMIT\"",
		[RESPONSE_CLOSED] = "\"CLOSED\"",
		[RESPONSE_ERROR] = "\"ERROR\"",
	};
	char permit[PERMIT_TEXT_MAX];
	struct out out;
	u32 i;

	out_begin(&out, buf, size);
	if (response->ticket[0]) {
		out_text(&out, "{\"code\":\"DEFERRED\",\"ticket\":\"");
		out_text(&out, response->ticket);
		out_text(&out, "\",\"position\":");
		out_u64(&out, response->position);
		out_char(&out, '}');
		out_end(&out);
		return out.len;
	}
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
	if (response->has_domain) {
		out_text(&out, "],\"domain\":");
		out_status(&out, &response->status[i]);
		out_text(&out, ",\"delayed_ms\":");
	} else {
		out_text(&out, "],\"delayed_ms\":");
	}
	out_ms(&out, response->delayed_ns);
	if (response->permit.count) {
		out_text(&out, ",\"permit\":\"");
		out_text(&out, permit_format(&response->permit, permit, sizeof(permit)));
		out_char(&out, '"');
	}
	out_char(&out, '}');
	out_end(&out);
	return out.len;
}
