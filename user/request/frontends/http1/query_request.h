/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * query_request.h - a request from a query that a proxy's administrator wrote, with values from
 * headers: common to /nginx/check and /forward-auth.
 *
 *     domain=api & d=user,plan & d=user & limit=10/s & d=endpoint=login & hits=2
 *
 * A `d` is a descriptor, its entries are separated by commas: KEY uses the frontend's value for
 * that key, KEY:WHERE one from another place, KEY=TEXT is that text. If a client omits a value or
 * sends an empty one, its descriptor is omitted; other input from a client is only a value. So an
 * error is always in the administrator's query. A `limit` is of the `d` before it, in place of a
 * rule's; of several all hold.
 */
#ifndef SLUICE_HTTP_QUERY_REQUEST_H
#define SLUICE_HTTP_QUERY_REQUEST_H

#include "request/frontends/http1/http1.h"
#include "lib/err.h"

struct query_request {
	struct request request;
	char *text, *text_end;		 /* room for decoded text */
	struct bytes path, host, method; /* made on first use */
	u32 read;			 /* `d` so far, and further limits of them */
	struct request_descriptor *last; /* of the last `d`; NULL: it is omitted */
	struct request_descriptor descriptor[];
};

/*
 * The frontend's value of a key; `where` is "" or the text after the colon. ret->at NULL or len
 * 0: the client sent none. -EINVAL with a message: unknown place.
 */
typedef int (*query_value_fn)(const struct http1_request *request, struct query_request *rl_request,
			      const char *key, const char *where, struct bytes *ret,
			      struct sl_err *err);
/* A parameter of this frontend only. -ENOENT: unknown. */
typedef int (*query_parameter_fn)(const struct http1_request *request,
				  struct query_request *rl_request, const char *name,
				  const char *value, struct sl_err *err);

/*
 * `parameter` may be NULL. 0, -EINVAL with a message, or -ENOMEM. `room`: for
 * query_request_room(); `uri_header`: for query_request_path().
 */
int query_request_read(const struct http1_request *request, query_value_fn value,
		       query_parameter_fn parameter, size_t room, const char *uri_header,
		       struct query_request **ret, struct sl_err *err);
void query_request_free(void *rl_request);

/*
 * The path of the URI in a header: decoded, slashes merged, dots resolved, without its query. So
 * "/%61", "//a" and "/b/../a?c" are one path and no alias gets another budget.
 */
struct bytes query_request_path(const struct http1_request *request,
				struct query_request *rl_request, const char *header);

/* Memory that lives as long as the request; NULL when `room` is used up. */
char *query_request_room(struct query_request *rl_request, size_t size);

#endif
