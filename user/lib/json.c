// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* json.c - see json.h. */
#include "lib/json.h"

#include "lib/clock.h"

json_t *json_u64(u64 value)
{
	return json_integer((json_int_t)value);
}

json_t *json_utc(u64 utc_ns)
{
	char text[32];

	return utc_ns ? json_string(clock_format_utc(utc_ns, text, sizeof(text))) : json_null();
}
