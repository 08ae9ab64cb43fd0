/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* message.h - a call of the client as an HTTP request, and a response as a result. See
 * docs/http-api.md. */
#ifndef SLUICE_CLIENT_MESSAGE_H
#define SLUICE_CLIENT_MESSAGE_H

#include "client/exchange.h"
#include "client/sluice.h"

enum client_call {
	CLIENT_CHECK,
	CLIENT_REPORT,
};

/*
 * Writes the request into `out`, whose buffer grows where it must. `wait_ns`: how long the daemon
 * may delay its response; `token`, `id` may be NULL. 0 or -ENOMEM; then `out` is as good as before.
 */
int client_write(struct out *out, enum client_call call, const struct sluice_request *request,
		 const char *token, const char *id, u64 wait_ns);
/*
 * The return value of sluice_client_check() or sluice_client_report(), and what the headers say. Of
 * `ret` all but `admitted`. *ret_after_ns: when to retry, where the response says so, else 0.
 */
int client_read(const struct client_response *response, enum client_call call,
		struct sluice_result *ret, u64 *ret_after_ns);

#endif
