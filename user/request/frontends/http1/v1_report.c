// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * v1_report.c - POST /v1/report: requests that have already happened, up to 10000 in one array.
 *
 * Each item is read, checked and charged by itself; an invalid one is reported by its index and
 * does not affect others; so is what was accepted and charges nothing, with the reason. After some
 * of them the other clients of the worker have their turn. An item with status 429 was refused: it
 * is accepted and charges nothing, since a limit that counts its own refusals would never reopen.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "request/rules/request_text.h"
#include "request/engine/measure.h"
#include "request/frontends/http1/check.h"
#include "request/rules/json_request.h"
#include "request/engine/report_ids.h"
#include "lib/clock.h"

#define ITEMS_MAX 10000
#define ITEMS_AT_A_TIME 64
#define BYTES_AT_A_TIME 65536
#define AHEAD_NS (300 * SL_NS_PER_SEC) /* tolerance for wrong clocks */

struct report {
	struct http1_request *request;
	struct json_items items;
	struct event *next;
	struct evbuffer *rejected, *not_charged;
	char domain[REQUEST_DOMAIN_MAX]; /* domain and rights of the previous item */
	size_t domain_len;
	u32 rights;
	u64 index, accepted;
};

static void free_report(void *frontend)
{
	struct report *report = frontend;

	if (report->next)
		event_free(report->next);
	if (report->rejected)
		evbuffer_free(report->rejected);
	if (report->not_charged)
		evbuffer_free(report->not_charged);
	free(report);
}

/* `member` and `detail` are constants of this program: no escaping needed. */
static void add_line(struct report *report, struct evbuffer *list, const char *member,
		     const char *detail)
{
	evbuffer_add_printf(list, "%s{\"index\":%llu%s,\"detail\":\"%s\"}",
			    evbuffer_get_length(list) ? "," : "", report->index, member, detail);
}

static void reject(struct report *report, const char *detail)
{
	add_line(report, report->rejected, "", detail);
}

/* Why a descriptor that would be charged was not; NULL: it was. */
static const char *why_not_charged(const struct request_descriptor *descriptor,
				   const struct response_status *status)
{
	if (!descriptor->hits)
		return NULL;
	return !status->rule	   ? "it meets no rule, or one that another replaces"
	       : status->unlimited ? "its rule is unlimited"
	       : status->full	   ? "there is no room for its counter"
				   : NULL;
}

static void list_not_charged(struct report *report, const struct request *request,
			     const struct response *response)
{
	char member[32];

	for (u32 i = 0; i < response->count; i++) {
		const char *why = why_not_charged(&request->descriptor[i], &response->status[i]);

		snprintf(member, sizeof(member), ",\"descriptor\":%u", i);
		if (why)
			add_line(report, report->not_charged, member, why);
	}
}

static u32 rights_for(struct report *report, struct bytes domain)
{
	struct http1_request *request = report->request;
	bool bad_token = false;

	if (domain.len == report->domain_len && !memcmp(domain.at, report->domain, domain.len))
		return report->rights;
	report->rights = caller_rights(request->worker->tier, request->peer, http1_token(request),
				       domain, &bad_token);
	report->domain_len = domain.len <= sizeof(report->domain) ? domain.len : 0;
	memcpy(report->domain, domain.at, report->domain_len);
	return report->rights;
}

/* The first of its id, or without one. */
static bool is_new(struct report *report, const struct json_request *item)
{
	struct http_tier *tier = report->request->worker->tier;
	struct report_ids **ids = (struct report_ids **)&tier->shared[LISTEN_HTTP];
	struct report_ids *none = NULL, *made;

	if (!item->id.len)
		return true;
	if (!__atomic_load_n(ids, __ATOMIC_ACQUIRE)) {
		made = report_ids_new();
		if (!made)
			return true;
		if (!__atomic_compare_exchange_n(ids, &none, made, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE))
			report_ids_free(made);
	}
	return report_ids_first(__atomic_load_n(ids, __ATOMIC_ACQUIRE), item->request.domain,
				item->id, clock_read_ns(CLOCK_BOOTTIME) / SL_NS_PER_SEC);
}

static void on_response(const struct request *rl_request, const struct response *response,
			void *arg)
{
	struct report *report = arg;

	if (response->code == RESPONSE_ERROR) {
		reject(report, "no decision possible");
	} else if (response->beyond) {
		reject(report, response->beyond);
	} else {
		report->accepted++;
		if (rl_request->release.count && !response->released)
			add_line(report, report->not_charged, "",
				 "nothing to release: its units came back before");
		list_not_charged(report, rl_request, response);
	}
}

static void accept_not_charged(struct report *report, const char *why)
{
	report->accepted++;
	add_line(report, report->not_charged, "", why);
}

static void submit(struct report *report, struct json_request *item)
{
	struct engine_thread *thread = report->request->worker->engine;

	measure_note(&thread->engine->measures, item->request.domain, item->http_status,
		     item->latency_ns, clock_read_ns(CLOCK_MONOTONIC));
	/* It charges nothing, but a request that held a unit has ended. */
	if (item->http_status == 429)
		item->request.count = 0;
	request_submit(thread, &item->request, on_response, report);
}

static void charge(struct report *report, struct json_request *item)
{
	u64 now = clock_read_ns(CLOCK_REALTIME);

	if (item->request.at_utc_ns > now + AHEAD_NS) {
		reject(report, "at: more than 5 minutes ahead");
		return;
	}
	if (item->request.at_utc_ns > now)
		item->request.at_utc_ns = 0;
	item->request.rights = rights_for(report, item->request.domain);
	item->request.api = API_V1_REPORT;
	if (!(item->request.rights & MAY_REPORT))
		reject(report, "permission denied: the caller may not report to this domain");
	else if (item->http_status == 429 && !item->request.release.count)
		accept_not_charged(report, "its status is 429");
	else if (!is_new(report, item))
		accept_not_charged(report, "its id was reported before");
	else
		submit(report, item);
}

static void finish(struct report *report)
{
	struct evbuffer *body = evbuffer_new();
	struct http1_request *request = report->request;
	size_t len;

	if (!body) {
		http1_reply_problem(request, 503, "out of memory");
		return;
	}
	evbuffer_add_printf(body, "{\"accepted\":%llu,\"rejected\":[", report->accepted);
	evbuffer_add_buffer(body, report->rejected);
	evbuffer_add_printf(body, "],\"not_charged\":[");
	evbuffer_add_buffer(body, report->not_charged);
	evbuffer_add(body, "]}", 2);
	len = evbuffer_get_length(body);
	/* Frees the report. */
	http1_reply(request, 202, "application/json", evbuffer_pullup(body, -1), len);
	evbuffer_free(body);
}

static void go_on(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval soon = { 0 };
	struct report *report = arg;
	struct json_request *item;
	struct sl_err err;
	struct bytes text;
	size_t bytes = 0;
	int n;

	for (n = 0; n < ITEMS_AT_A_TIME && bytes < BYTES_AT_A_TIME; n++, report->index++) {
		if (!json_items_next(&report->items, &text)) {
			finish(report);
			return;
		}
		bytes += text.len;
		memset(&err, 0, sizeof(err));
		if (json_request_report(text.at, text.len, &item, &err)) {
			reject(report, err.message);
			continue;
		}
		charge(report, item);
		json_request_free(item);
	}
	/* By a timer: an event that activates itself would run before all others. */
	event_add(report->next, &soon);
}

void v1_report(struct http1_request *request)
{
	struct report *report;
	struct json_items items;
	struct sl_err err = { 0 };
	int r;

	if (!http1_rights(request, (struct bytes){ NULL, 0 }, MAY_REPORT))
		return;
	r = json_items_begin(request->body.at, request->body.len, &items, &err);
	if (r) {
		frontend_reply_error(request, r, &err);
		return;
	}
	if (items.count > ITEMS_MAX) {
		http1_reply_problem(request, 413, "more than 10000 items in a report");
		return;
	}
	report = calloc(1, sizeof(*report));
	if (report) {
		*report = (struct report){ .request = request,
					   .items = items,
					   .rejected = evbuffer_new(),
					   .not_charged = evbuffer_new() };
		report->next = evtimer_new(request->worker->base, go_on, report);
	}
	if (!report || !report->rejected || !report->not_charged || !report->next) {
		if (report)
			free_report(report);
		http1_reply_problem(request, 503, "out of memory");
		return;
	}
	request->frontend = report;
	request->frontend_free = free_report;
	go_on(-1, 0, report);
}
