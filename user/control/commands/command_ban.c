// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_ban.c - ban list, ban del; see bans.h. */
#include <errno.h>
#include <string.h>

#include "daemon/bans.h"
#include "control/commands/commands.h"
#include "lib/log.h"

int command_ban_list(struct daemon *d, const struct command_request *request, json_t **ret,
		     struct sl_err *err)
{
	json_t *list = json_array();
	const struct bans *bans;

	d->bans.read_at_ns = 0;
	bans = bans_look(d);
	for (size_t i = 0; i < bans->count; i++)
		json_array_append_new(list, bans_to_json(d, &bans->ban[i]));
	*ret = json_pack("{s:o, s:o}", "bans", list, "active", json_u64(bans->active));
	return 0;
}

/* No change of the rules: lifting a ban is like its end. */
int command_ban_del(struct daemon *d, const struct command_request *request, json_t **ret,
		    struct sl_err *err)
{
	const char *text, *reason;
	struct sl_prefix source;
	json_t *lifted;
	int r = arg_text(request, "source", true, &text, err);

	if (r < 0)
		return r;
	if (sl_prefix_parse(text, &source, &reason) < 0)
		return sl_err_set(err, EINVAL, "'%.80s': %s", text, reason);
	lifted = json_array();
	r = bans_lift(d, &source, lifted);
	if (r <= 0) {
		json_decref(lifted);
		return r ? sl_err_set(err, -r, "cannot lift the ban: %s", strerror(-r)) :
			   sl_err_set(err, ENOENT, "%.80s is not banned; sluicectl ban list shows who "
				      "is", text);
	}
	log_info("ban del %s: %d lifted (uid %u, pid %d)", text, r, request->peer->uid,
		 request->peer->pid);
	*ret = json_pack("{s:o}", "lifted", lifted);
	return 0;
}
