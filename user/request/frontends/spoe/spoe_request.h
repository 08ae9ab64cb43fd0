/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spoe_request.h - what HAProxy asks as a call, and an answer as what HAProxy is told.
 *
 * Arguments of a message, as the administrator names them in the SPOE configuration:
 *
 *     domain=str(api)          the rules' domain; needed, once a NOTIFY
 *     source=src               the TCP peer, for push-down and budgets
 *     hits=int(5)              what each descriptor of the message costs; absent: 1
 *     d1_user=req.hdr(x-user)  an entry of descriptor 1, key "user"; d1_hits: its own hits
 *     path=path                an entry of the descriptor that the last dN_ began, else of one
 *                              of its own; "path" is brought into one form (request_text.h)
 *
 * Descriptors stand in the order of their first entry. A value that is not there (null) leaves
 * its descriptor out. Numbers are numbers of one message; a NOTIFY with several messages is one
 * call.
 */
#ifndef SLUICE_HTTP_SPOE_REQUEST_H
#define SLUICE_HTTP_SPOE_REQUEST_H

#include "request/rules/request.h"
#include "request/frontends/spoe/spop.h"

/* Numbers and addresses become text behind the payload. */
#define SPOE_VALUE_TEXT 48
#define SPOE_TEXT_MAX                                                                              \
	(SPOP_FRAME_MAX + REQUEST_DESCRIPTORS_MAX * REQUEST_ENTRIES_MAX * SPOE_VALUE_TEXT)

/* A call and all its bytes; large, so a worker has one, and what is held is a copy. */
struct spoe_request {
	struct request request;
	struct request_descriptor descriptor[REQUEST_DESCRIPTORS_MAX];
	size_t text_len;
	char text[SPOE_TEXT_MAX];
};

/*
 * The payload of a NOTIFY, of at most SPOP_FRAME_MAX bytes. 0; -EBADMSG: these are no messages;
 * -EINVAL: they ask what cannot be asked, *ret_reason says why, a static string for whoever
 * wrote the SPOE configuration. No value that a client sends makes it either.
 */
int spoe_request_read(struct spoe_request *ret, const void *payload, size_t size,
		      const char **ret_reason);

/* A copy needs spoe_request_size() bytes of memory, aligned as malloc's; ret_call points into it.
 */
size_t spoe_request_size(const struct spoe_request *from);
void spoe_request_copy(const struct spoe_request *from, struct request *ret_call, void *memory);

/*
 * The ACK into memory: variables txn.PREFIX.limited, reason, retry_after, limit, remaining,
 * reset, policy, ratelimit; those with nothing to say are unset. None at all where `answer` is
 * NULL or no decision could be made, so that HAProxy's own rule for that decides. Returns its
 * bytes; where that is more than `size`, texts are left out. `size` is at least
 * SPOP_FRAME_MIN + 4.
 */
size_t spoe_ack(const struct response *response, u32 jitter_permille, u64 stream, u64 frame,
		void *memory, size_t size);

#endif
