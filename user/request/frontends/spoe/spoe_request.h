/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spoe_request.h - an HAProxy message as a request, and a response as variables for HAProxy.
 *
 * Arguments of a message, as the administrator names them in the SPOE configuration:
 *
 *     domain=str(api)          the rules' domain; needed, once a NOTIFY
 *     source=src               the TCP peer, for push-down and budgets
 *     hits=int(5)              what each descriptor of the message costs; absent: 1
 *     d1_user=req.hdr(x-user)  an entry of descriptor 1, key "user"; d1_hits: its own hits
 *     path=path                an entry of the descriptor that the last dN_ began, else of one
 *                              of its own; "path" is normalized (request_text.h)
 *
 * Descriptors are in the order of their first entry. A null value removes its descriptor. Numbers
 * count within one message; a NOTIFY with several messages is one request.
 */
#ifndef SLUICE_HTTP_SPOE_REQUEST_H
#define SLUICE_HTTP_SPOE_REQUEST_H

#include "request/rules/request.h"
#include "request/frontends/spoe/spop.h"

/* Numbers and addresses become text after the payload. */
#define SPOE_VALUE_TEXT 48
#define SPOE_TEXT_MAX                                                                              \
	(SPOP_FRAME_MAX + REQUEST_DESCRIPTORS_MAX * REQUEST_ENTRIES_MAX * SPOE_VALUE_TEXT)

/* A request and all its bytes; large, so a worker has one, and delayed ones are copies. */
struct spoe_request {
	struct request request;
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	size_t text_len;
	char text[SPOE_TEXT_MAX];
};

/*
 * Reads the payload of a NOTIFY, of at most SPOP_FRAME_MAX bytes. 0; -EBADMSG: malformed;
 * -EINVAL: an invalid request, *ret_reason is a static string for the author of the SPOE
 * configuration. No value that a client sends causes either.
 */
int spoe_request_read(struct spoe_request *ret, const void *payload, size_t size,
		      const char **ret_reason);

/* A copy needs spoe_request_size() bytes of memory, aligned as malloc's; ret_call points into it.
 */
size_t spoe_request_size(const struct spoe_request *from);
void spoe_request_copy(const struct spoe_request *from, struct request *ret_call, void *memory);

/*
 * Writes the ACK: variables txn.PREFIX.limited, reason, retry_after, limit, remaining, reset,
 * policy, ratelimit; empty ones stay unset. None at all if `response` is NULL or no decision
 * could be made, so that HAProxy's own rule for that decides. Returns its bytes; if that is more
 * than `size`, texts are omitted. `size` is at least SPOP_FRAME_MIN + 4.
 */
size_t spoe_ack(const struct response *response, u32 jitter_permille, u64 stream, u64 frame,
		void *memory, size_t size);

#endif
