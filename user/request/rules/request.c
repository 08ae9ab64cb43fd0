// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* request.c - see request.h. */
#include "request/rules/request.h"

#define DAY (86400 * SL_NS_PER_SEC)

const struct request_unit_row request_units[REQUEST_UNIT_COUNT] = {
	[REQUEST_UNIT_SECOND] = { "second", "SECOND", SL_NS_PER_SEC },
	[REQUEST_UNIT_MINUTE] = { "minute", "MINUTE", 60 * SL_NS_PER_SEC },
	[REQUEST_UNIT_HOUR] = { "hour", "HOUR", 3600 * SL_NS_PER_SEC },
	[REQUEST_UNIT_DAY] = { "day", "DAY", DAY },
	[REQUEST_UNIT_MONTH] = { "month", "MONTH", 30 * DAY },
	[REQUEST_UNIT_YEAR] = { "year", "YEAR", 365 * DAY },
	[REQUEST_UNIT_WEEK] = { "week", "WEEK", 7 * DAY },
};

enum request_unit request_unit_of(u64 ns)
{
	for (enum request_unit unit = REQUEST_UNIT_SECOND; unit < REQUEST_UNIT_COUNT; unit++)
		if (request_units[unit].ns == ns)
			return unit;
	return REQUEST_UNIT_UNKNOWN;
}
