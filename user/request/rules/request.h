/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * request.h - one request to the HTTP tier, and its response, the same for all protocols.
 *
 *     a frontend decodes -> struct request -> request_submit() -> struct response -> it encodes
 *
 * Frontends: check.c (/v1/check), v1_report.c (/v1/report), rls_json.c (/json), nginx.c,
 * forward_auth.c, grpc.c, spoe.c, syslog.c. None of them decides anything; the decision core
 * (decide.c) depends on none of them.
 *
 * Text in a request is bytes: a pointer and a length, not terminated, any value. The frontend
 * owns it until the response has come.
 */
#ifndef SLUICE_HTTP_REQUEST_H
#define SLUICE_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "config/http_def.h"
#include "lib/addr.h"
#include "lib/bytes.h"
#include "sluice/types.h"

/*
 * Bounds of a decision. A request beyond them is not an error, which a proxy may treat as
 * permission: it is refused as over the limit, or decided as one that no rule matches.
 *
 *     more descriptors		call.beyond: refused as a whole
 *     more hits		refused by each limit that they meet, charged nowhere
 *     more entries		request_descriptor.beyond: no rule is so deep
 */
#define REQUEST_DESCRIPTORS_MAX 32
#define REQUEST_DESCRIPTORS_BEYOND "more than 32 descriptors"
#define REQUEST_ENTRIES_MAX 16	      /* of one descriptor */
#define REQUEST_HITS_MAX (1ULL << 40) /* of one descriptor: a terabyte */
/* Bytes of names in rule files. Requests may have longer ones, which meet no rule. */
#define REQUEST_DOMAIN_MAX 255
#define REQUEST_KEY_MAX 255
#define REQUEST_VALUE_MAX 65536
#define REQUEST_REFERENCE_MAX 256

struct request_entry {
	struct bytes key, value;
};

/* Periods as in envoy.type.v3.RateLimitUnit, with the WEEK of rls.proto. */
enum request_unit {
	REQUEST_UNIT_UNKNOWN,
	REQUEST_UNIT_SECOND,
	REQUEST_UNIT_MINUTE,
	REQUEST_UNIT_HOUR,
	REQUEST_UNIT_DAY,
	REQUEST_UNIT_MONTH, /* 30 days */
	REQUEST_UNIT_YEAR,  /* 365 days */
	REQUEST_UNIT_WEEK,  /* epoch-aligned: begins on Thursday */
	REQUEST_UNIT_COUNT,
};

/* By enum request_unit; of REQUEST_UNIT_UNKNOWN NULL and 0. */
extern const struct request_unit_row {
	const char *name, *capitals; /* "second", "SECOND" */
	u64 ns;
} request_units[REQUEST_UNIT_COUNT];

/* Returns the unit of so many ns, or REQUEST_UNIT_UNKNOWN. */
enum request_unit request_unit_of(u64 ns);

struct request_descriptor {
	struct request_entry entry[REQUEST_ENTRIES_MAX];
	u32 count;
	bool beyond; /* it has more entries than are here: no rule matches it */
	u64 hits;    /* absent: 1. 0 checks and charges nothing */
	bool refund; /* refunds `hits` instead; reports only */
	/* A limit of the request itself in place of the rule's (RateLimitDescriptor.limit). */
	u64 limit_requests;
	enum request_unit limit_unit; /* REQUEST_UNIT_UNKNOWN: none */
};

/* The frontend it came through, and its label in sluice_http_requests_total{api}. */
#define REQUEST_APIS(X)                                                                            \
	X(API_V1_CHECK, "v1_check")                                                                \
	X(API_V1_REPORT, "v1_report")                                                              \
	X(API_JSON, "json")                                                                        \
	X(API_GRPC, "grpc")                                                                        \
	X(API_NGINX, "nginx")                                                                      \
	X(API_FORWARD_AUTH, "forward_auth")                                                        \
	X(API_SPOE, "spoe")                                                                        \
	X(API_SYSLOG, "syslog")                                                                    \
	X(API_OTHER, "other")

enum request_api {
#define REQUEST_API(id, label) id,
	REQUEST_APIS(REQUEST_API)
#undef REQUEST_API
		API_COUNT,
};

/*
 * What a request in flight holds: a unit of each of these buckets of concurrency, since `at_ns`.
 * The response has it, and the report of its end; in text as by permit_format() (permit.h).
 */
#define PERMIT_UNITS_MAX 16
struct permit {
	u64 at_ns; /* of the counter table's monotonic clock */
	u64 count; /* 0: none */
	u64 key[PERMIT_UNITS_MAX];
};

struct request {
	struct bytes domain;
	const char *beyond; /* why it cannot be decided: OVER_LIMIT; count is 0. NULL: it can */
	struct request_descriptor *descriptor;
	u32 count;		 /* 0..REQUEST_DESCRIPTORS_MAX */
	struct sl_prefix source; /* the proxy's TCP peer, /32 or /128 */
	bool has_source;
	bool peek;		/* the verdict only: charges and queues nothing */
	bool report;		/* already happened: charged above the limit, too */
	u64 at_utc_ns;		/* reports: when; 0 now */
	u64 max_wait_ns;	/* the caller's longest wait for a response */
	struct bytes reference; /* len 0: a refusal is final; else it may be deferred under this */
	u32 rights;		/* enum caller_right, or-ed */
	u16 caller;		/* caller_number(): owner of the limits */
	enum request_api api;
	struct permit release; /* of a request that has ended: its units are released */
	bool ends_unknown;     /* nothing would report its end: it takes no units (replay) */
};

enum response_code {
	RESPONSE_OK,
	RESPONSE_OVER_LIMIT,
	/*
	 * No decision could be made, and the rule's on_full or on_store_failure applies:
	 * closed: 503 on /v1/check and /forward-auth, 403 on /nginx/check, OVER_LIMIT on gRPC
	 * and /json. error: 503, UNAVAILABLE, 500 on nginx, no variables on SPOE.
	 */
	RESPONSE_CLOSED,
	RESPONSE_ERROR,
};

struct rule;
struct rule_limit;

/* A limit with mode: shadow: what it would have decided in place of the enforced ones of its
 * rule. */
struct response_candidate {
	const struct rule_limit *limit;
	u64 q, r;	 /* as of a response_policy */
	bool over, full; /* it would refuse; there was no room for its counter */
};
#define RESPONSE_CANDIDATES_MAX 3

/* One descriptor's part of a response; in the order of the request. */
struct response_status {
	bool over;
	bool shadow; /* over, but its rule is in shadow mode */
	bool soft;   /* above its limit, within its soft margin */
	bool unlimited;
	bool full;			/* no room for its counter: on_full decided */
	bool unavailable;		/* no reply of the store: on_store_failure decided */
	const struct rule *rule;	/* NULL: no rule matched, or it was replaced */
	const struct rule_limit *limit; /* of the rule's, the one that binds; NULL: none */
	u64 requests, window_ns;	/* that limit's rate for this value */
	u64 capacity;	    /* its burst, or its window's limit; 0: one of several prefix lengths */
	u64 remaining;	    /* whole requests that fit now, after this request */
	u64 reset_ns;	    /* until the full limit is available again */
	u64 retry_after_ns; /* over: until these hits fit; ~0: never */
	u64 ban_left_ns;    /* its value is banned for so long; 0: not */
	u8 ban_level;
	bool ban_began; /* by this request */
	u8 candidates;
	struct response_candidate candidate[RESPONSE_CANDIDATES_MAX];
};

/* One enforced limit of a request, as in RateLimit-Policy and RateLimit. */
struct response_policy {
	const struct rule *rule;
	const struct rule_limit *limit;
	u64 q;	       /* window: requests; bucket: burst */
	u64 w_s;       /* window: seconds; bucket: ceil(burst / rate) */
	u64 r;	       /* whole requests that fit now */
	u64 t_ns;      /* until more than r fits; ~0: never */
	u64 reset_ns;  /* until the full limit is available again */
	u64 wait_ns;   /* it refused: time until the hits fit; ~0 never */
	u8 prefix_len; /* this bucket's length in a prefix hierarchy; 0: none */
	bool refused;
	bool shadow; /* a candidate; of decide_show() only */
};

#define RESPONSE_POLICIES_MAX 8

/*
 * Pointers into rules are valid only during the callback that got the response; see engine.h.
 */
struct response {
	enum response_code code;
	const char *beyond; /* the request's: no rule refused it */
	u32 count;	    /* statuses: one per descriptor of the request */
	bool has_domain;    /* ... and behind them that of the domain's rule */
	struct response_status status[REQUEST_DESCRIPTORS_MAX + 1];
	u32 policy_count; /* enforced ones, the binding one first */
	struct response_policy policy[RESPONSE_POLICIES_MAX];
	u64 retry_after_ns; /* not OK: the longest wait of those that refused; no jitter */
	u64 delayed_ns;	    /* how long the response was delayed */
	/* OVER_LIMIT, and deferred: under this ticket, behind position - 1 others; "" not
	 * deferred. */
	char ticket[49];
	u64 position;
	struct permit permit; /* OK: units that it took */
	u32 released;	      /* of request.release: units that were in flight until now */
};

/* All statuses, also the one without a descriptor. */
static inline u32 response_statuses(const struct response *response)
{
	return response->count + response->has_domain;
}

#endif
