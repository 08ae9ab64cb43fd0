// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * spoe_ack.c - a response as the variables of an ACK; see spoe_request.h. Texts are those of
 * response.h: HAProxy puts them into headers unchanged.
 */
#include <string.h>

#include "request/rules/permit.h"
#include "request/server/response.h"
#include "request/frontends/spoe/spoe_request.h"

static void set_number(struct spop_writer *writer, const char *name, u64 number)
{
	/* HAProxy's integers are signed; "never" is a very long time. */
	struct spop_value value = {
		.type = SPOP_INT64,
		.number = number >> 63 ? ~0ULL >> 1 : number,
	};

	spop_put_set_var(writer, name, &value);
}

static void set_text(struct spop_writer *writer, const char *name, const char *text)
{
	struct spop_value value = { .type = SPOP_STRING, .text = { text, strlen(text) } };

	if (text[0])
		spop_put_set_var(writer, name, &value);
	else
		spop_put_unset_var(writer, name);
}

static u64 seconds_up(u64 ns)
{
	return ns / SL_NS_PER_SEC + !!(ns % SL_NS_PER_SEC);
}

static void put_response(struct spop_writer *writer, const struct response *response,
			 u32 jitter_permille, bool texts)
{
	struct spop_value limited = { .type = SPOP_BOOL, .number = response->code != RESPONSE_OK };
	const struct response_policy *binding =
		response->policy_count ? &response->policy[0] : NULL;
	u64 retry_after = response_retry_after_s(response, jitter_permille);
	char text[RESPONSE_TEXT_MAX];

	spop_put_set_var(writer, "limited", &limited);
	if (retry_after)
		set_number(writer, "retry_after", retry_after);
	else
		spop_put_unset_var(writer, "retry_after");
	if (binding) {
		set_number(writer, "limit", binding->q);
		set_number(writer, "remaining", binding->r);
		set_number(writer, "reset", seconds_up(binding->reset_ns));
	} else {
		spop_put_unset_var(writer, "limit");
		spop_put_unset_var(writer, "remaining");
		spop_put_unset_var(writer, "reset");
	}
	if (permit_format(&response->permit, text, sizeof(text))[0])
		set_text(writer, "permit", text);
	if (!texts)
		return;
	set_text(writer, "reason", response_reason(response, text, sizeof(text)));
	if (response_shadow(response, text, sizeof(text))[0])
		set_text(writer, "shadow", text);
	set_text(writer, "violated", response_violated(response, text, sizeof(text)));
	set_text(writer, "policy", response_ratelimit_policy(response, text, sizeof(text)));
	set_text(writer, "ratelimit",
		 response_ratelimit(response, retry_after, text, sizeof(text)));
}

size_t spoe_ack(const struct response *response, u32 jitter_permille, u64 stream, u64 frame,
		void *memory, size_t size)
{
	struct spop_writer writer = spop_frame_begin(memory, size, SPOP_ACK, stream, frame);

	if (!response || response->code == RESPONSE_ERROR)
		return spop_frame_end(&writer);
	put_response(&writer, response, jitter_permille, true);
	if (writer.full) {
		writer = spop_frame_begin(memory, size, SPOP_ACK, stream, frame);
		put_response(&writer, response, jitter_permille, false);
	}
	return spop_frame_end(&writer);
}
