// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_user.c - user top, show, reset: users of the HTTP tier. */
#include <errno.h>
#include <string.h>

#include "daemon/clock.h"
#include "daemon/commands.h"
#include "daemon/sources.h"

#define TOP_USERS 20

int command_user_top(struct daemon *d, const struct request *request, json_t **ret,
		     struct sl_err *err)
{
	const struct refused_user *top[REFUSED_ROOM];
	const json_t *asked = json_object_get(request->args, "count");
	json_int_t count = asked ? json_integer_value(asked) : TOP_USERS;
	u64 offset_ns = clock_utc_offset_ns();
	json_t *list;
	u32 found;

	if (!d->sources || !d->sources->def)
		return sl_err_set(err, ENOENT, "there is no HTTP tier: the configuration has no http:");
	if (count < 1 || count > REFUSED_ROOM)
		return sl_err_set(err, EINVAL, "'count' is a number from 1 to %d", REFUSED_ROOM);
	sources_drain(d);
	found = refused_top(&d->sources->refused, top, (u32)count, clock_mono_ns());
	list = json_array();
	for (u32 i = 0; i < found; i++)
		json_array_append_new(list, json_pack(
			"{s:s, s:o, s:o, s:o}", "rule", top[i]->rule, "value",
			sources_text(top[i]->value, top[i]->value_len, top[i]->cut), "refused",
			json_u64(top[i]->refused), "last", json_utc(top[i]->last_ns + offset_ns)));
	*ret = json_pack("{s:o}", "users", list);
	return 0;
}
