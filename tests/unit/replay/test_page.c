// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The page of a replay: figures of any size, as a damaged capture or a report of hand may have
 * them. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/test.h"
#include "replay/page.h"

/* Whether the page of a report of so many packets in so many nanoseconds has `text`. */
static bool page_has(double count, double span_ns, const char *text)
{
	json_t *report =
		json_pack("{s:s, s:s, s:s, s:s, s:f, s:f}", "input", "x.pcap", "config", "c.yaml",
			  "unit", "packets", "from", "0s", "count", count, "span_ns", span_ns);
	char *page = NULL;
	size_t size = 0;
	bool has;

	FILE *out = open_memstream(&page, &size);

	replay_page(report, out);
	fclose(out);
	has = strstr(page, text);
	if (!has)
		print_message("%.300s\n", strstr(page, "<h1>"));
	free(page);
	json_decref(report);
	return has;
}

TEST(test_figures)
{
	assert_true(page_has(1234567, 1.5e9, "1,234,567 packets in 1s500ms from 0s"));
	assert_true(page_has(999, 0, "999 packets in 0s from 0s"));
	/* No cast to an integer is defined for these. */
	assert_true(page_has(-1234, -5, "-1,234 packets in 0s from 0s"));
	assert_true(page_has(1e20, 1e300, "100,000,000,000,000,000,000 packets in 0s from 0s"));
}

TEST_MAIN
