/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * query_request.h - a call out of a query that a proxy's administrator wrote, with values out of
 * headers: what /nginx/check and /forward-auth have in common.
 *
 *     domain=api & d=user,plan & d=endpoint=login & hits=2
 *
 * A `d` is a descriptor, its entries are separated by commas: KEY takes the front's value for
 * that key, KEY:WHERE one from another place, KEY=TEXT is that text. Whatever a client leaves
 * out or sends empty takes its descriptor out of the call; whatever it sends is a value and no
 * more. So an error is always the administrator's.
 */
#ifndef SLUICE_HTTP_QUERY_REQUEST_H
#define SLUICE_HTTP_QUERY_REQUEST_H

#include "request/frontends/http1/http1.h"
#include "lib/err.h"

struct query_request {
	struct request request;
	char *text, *text_end;		/* room for what is decoded */
	struct bytes path, host;	/* made when first asked for */
	u32 read;			/* `d` so far */
	struct request_descriptor descriptor[];
};

/*
 * The front's value of a key; `where` is "" or what stood behind the colon. ret->at NULL or
 * len 0: the client sent none. -EINVAL with words: there is no such place.
 */
typedef int (*query_value_fn)(const struct http1_request *request, struct query_request *rl_request,
			      const char *key, const char *where, struct bytes *ret,
			      struct sl_err *err);
/* A parameter that is not common. -ENOENT: not known either. */
typedef int (*query_parameter_fn)(const struct http1_request *request,
				  struct query_request *rl_request, const char *name,
				  const char *value, struct sl_err *err);

/*
 * `parameter` may be NULL. 0, -EINVAL with words, or -ENOMEM. `room`: for query_request_room();
 * `uri_header`: for query_request_path().
 */
int query_request_read(const struct http1_request *request, query_value_fn value,
		       query_parameter_fn parameter, size_t room, const char *uri_header,
		       struct query_request **ret, struct sl_err *err);
void query_request_free(void *rl_request);

/*
 * The path of the URI in a header: decoded, slashes merged, dots resolved, without its query. So
 * "/%61", "//a" and "/b/../a?c" are one path and no alias buys another budget.
 */
struct bytes query_request_path(const struct http1_request *request,
				struct query_request *rl_request, const char *header);

/* Bytes that live as long as the call; NULL where `room` is used up. */
char *query_request_room(struct query_request *rl_request, size_t size);

#endif
