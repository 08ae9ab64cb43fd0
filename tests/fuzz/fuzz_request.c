// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a call of each kind in JSON, and as a line of an access log: a call within its
 * bounds, whose every byte can be read, or one that is refused; or words, which hold nothing of the
 * text.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "request/rules/json_request.h"
#include "request/frontends/syslog/syslog_line.h"

static u8 seen;

static void look(struct bytes bytes)
{
	for (size_t i = 0; i < bytes.len; i++)
		seen ^= bytes.at[i];
}

static void look_at(struct json_request *json)
{
	const struct request *request = &json->request;

	look(request->domain);
	/* What is refused unread may have no domain. */
	assert((request->domain.len || request->beyond) &&
	       request->count <= REQUEST_DESCRIPTORS_MAX);
	assert(!request->beyond || (!request->count && !request->report && request->beyond[0]));
	for (const char *c = request->beyond; c && *c; c++)
		assert(*c >= ' ' && *c <= '~');
	for (u32 i = 0; i < request->count; i++) {
		const struct request_descriptor *descriptor = &request->descriptor[i];

		assert(descriptor->count <= REQUEST_ENTRIES_MAX);
		assert(!descriptor->beyond || descriptor->count == REQUEST_ENTRIES_MAX);
		for (u32 k = 0; k < descriptor->count; k++) {
			look(descriptor->entry[k].key);
			look(descriptor->entry[k].value);
		}
	}
	json_request_free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const kinds[])(const char *, size_t, struct json_request **,
				    struct sl_err *) = {
		json_request_check,
		json_request_report,
		json_request_rls,
		syslog_line_read,
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct sl_err err = { .line = 0 };
		struct json_request *json;

		if (!kinds[i]((const char *)data, size, &json, &err)) {
			look_at(json);
			continue;
		}
		assert(err.message[0]);
		for (const char *c = err.message; *c; c++)
			assert(*c >= ' ' && *c <= '~');
	}
	return 0;
}
