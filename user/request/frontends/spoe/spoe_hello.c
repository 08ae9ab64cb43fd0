// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* spoe_hello.c - HAProxy's HELLO: its versions and frame length; see spoe_hello.h. */
#include "request/frontends/spoe/spoe_hello.h"

#include <string.h>

#include "request/rules/request_text.h"

/* The pairs read so far. */
struct pairs {
	struct bytes versions, capabilities;
	u64 frame_max;
	bool has_frame_max, healthcheck;
};

/* The next of "a, b,c", without blanks; false at the end. */
static bool next_of_list(struct bytes *list, struct bytes *ret)
{
	const char *comma;
	size_t len;

	if (!list->at)
		return false;
	comma = memchr(list->at, ',', list->len);
	len = comma ? (size_t)(comma - list->at) : list->len;
	*ret = (struct bytes){ list->at, len };
	*list = comma ? (struct bytes){ comma + 1, list->len - len - 1 } : (struct bytes){ NULL, 0 };
	while (ret->len && *ret->at == ' ')
		*ret = (struct bytes){ ret->at + 1, ret->len - 1 };
	while (ret->len && ret->at[ret->len - 1] == ' ')
		ret->len--;
	return true;
}

/* A peer that supports any 2.x supports 2.0. */
static bool has_version_2(struct bytes list)
{
	struct bytes version;

	while (next_of_list(&list, &version))
		if (version.len > 2 && !memcmp(version.at, "2.", 2))
			return true;
	return false;
}

static bool has_feature(struct bytes list, const char *word)
{
	struct bytes text;

	while (next_of_list(&list, &text))
		if (bytes_equal(text, word))
			return true;
	return false;
}

/* A pair of HELLO's list; unknown ones are ignored. */
static bool take_pair(struct pairs *pairs, struct bytes name, const struct spop_value *value)
{
	if (bytes_equal(name, "supported-versions")) {
		pairs->versions = value->text;
		return value->type == SPOP_STRING;
	}
	if (bytes_equal(name, "capabilities")) {
		pairs->capabilities = value->text;
		return value->type == SPOP_STRING;
	}
	if (bytes_equal(name, "max-frame-size")) {
		pairs->frame_max = value->number;
		pairs->has_frame_max = true;
		return value->type >= SPOP_INT32 && value->type <= SPOP_UINT64;
	}
	if (bytes_equal(name, "healthcheck")) {
		pairs->healthcheck = value->number;
		return value->type == SPOP_BOOL;
	}
	return true;
}

enum spop_status spoe_hello_read(struct spop_frame *frame, struct spoe_hello *ret)
{
	struct pairs pairs = { .healthcheck = false };

	if (!(frame->flags & SPOP_FIN))
		return SPOP_FRAGMENTED;
	if (frame->stream || frame->frame)
		return SPOP_INVALID;
	while (frame->payload.at < frame->payload.end) {
		struct spop_value value;
		struct bytes name;

		if (!spop_get_text(&frame->payload, &name) ||
		    !spop_get_value(&frame->payload, &value) || !take_pair(&pairs, name, &value))
			return SPOP_INVALID;
	}
	if (!pairs.versions.at)
		return SPOP_NO_VERSION;
	if (!has_version_2(pairs.versions))
		return SPOP_BAD_VERSION;
	if (!pairs.has_frame_max)
		return SPOP_NO_FRAME_SIZE;
	if (pairs.frame_max < SPOP_FRAME_MIN || pairs.frame_max >> 32)
		return SPOP_BAD_FRAME_SIZE;
	if (!pairs.capabilities.at)
		return SPOP_NO_CAPABILITIES;
	ret->frame_max = pairs.frame_max;
	ret->pipelining = has_feature(pairs.capabilities, "pipelining");
	ret->healthcheck = pairs.healthcheck;
	return SPOP_NORMAL;
}
