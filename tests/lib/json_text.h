/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* json_text.h - JSON from a text whose quotes C does not escape: json_text("{'a':1}"). */
#ifndef SLUICE_TESTS_JSON_TEXT_H
#define SLUICE_TESTS_JSON_TEXT_H

#include <stdlib.h>
#include <string.h>

/* Until the next call. */
static inline const char *json_text(const char *text)
{
	static char *json;
	char *quote;

	free(json);
	json = strdup(text);
	for (quote = json; (quote = strchr(quote, '\''));)
		*quote = '"';
	return json;
}

#endif
