/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* request_print.h - a request as text: "api source=192.0.2.7 [user=bob,path=/x]*-2". */
#ifndef SLUICE_TESTS_REQUEST_PRINT_H
#define SLUICE_TESTS_REQUEST_PRINT_H
#include <stdio.h>

#include "request/rules/request.h"

static inline void request_print(const struct request *request, FILE *out)
{
	char source[SL_PREFIX_TEXT];

	fprintf(out, "%.*s", (int)request->domain.len, request->domain.at);
	if (request->has_source)
		fprintf(out, " source=%s",
			sl_prefix_format(&request->source, source, sizeof(source)));
	for (u32 i = 0; i < request->count; i++) {
		const struct request_descriptor *d = &request->descriptor[i];

		fprintf(out, " [");
		for (u32 k = 0; k < d->count; k++)
			fprintf(out, "%s%.*s=%.*s", k ? "," : "", (int)d->entry[k].key.len,
				d->entry[k].key.at, (int)d->entry[k].value.len,
				d->entry[k].value.at);
		fprintf(out, "]");
		if (d->hits != 1 || d->refund)
			fprintf(out, "*%s%llu", d->refund ? "-" : "", d->hits);
	}
}

#endif
