// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_load_signal.c - load-signal set, load-signal list; see load_signal.h. */
#include <errno.h>

#include "lib/clock.h"
#include "control/commands/commands.h"
#include "control/elastic/load_signal.h"

/* A load value is not a live change: it is not stored, and a restart drops it. */
int command_load_signal_set(struct commands *ctx, const struct command_request *request,
			    json_t **ret, struct sl_err *err)
{
	u64 now_ns = clock_mono_ns();
	const char *name = arg_text(request, "name");
	json_t *rest = json_copy(request->args);
	int r;

	if (!rest)
		return sl_err_set(err, ENOMEM, "out of memory");
	json_object_del(rest, "name");
	r = load_signal_set(ctx->scales, name, rest, now_ns, err);
	if (!r)
		*ret = load_signal_to_json(ctx->scales, name, now_ns);
	json_decref(rest);
	return r;
}

int command_load_signal_list(struct commands *ctx, const struct command_request *request,
			     json_t **ret, struct sl_err *err)
{
	*ret = json_pack("{s:o}", "load_signals",
			 load_signals_to_json(ctx->scales, clock_mono_ns()));
	return 0;
}
