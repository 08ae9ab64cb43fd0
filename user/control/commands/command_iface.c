// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command_iface.c - attach and detach. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>

#include "control/commands/commands.h"
#include "packet/host/ifaces.h"
#include "control/running/live.h"
#include "packet/host/view.h"
#include "lib/log.h"

int command_attach(struct commands *ctx, const struct command_request *request, json_t **ret,
		   struct sl_err *err)
{
	const char *ifname = arg_text(request, "interface"), *text = arg_text(request, "mode");
	const struct iface *slot = ifaces_find(ctx->running->packets, ifname);
	const struct interface_def *def;
	enum attach_mode mode;
	char list[384];
	int r;

	if (!text)
		text = "auto";
	if (!attach_mode_parse(text, &mode))
		return sl_err_set(err, EINVAL,
				  "unknown mode '%.32s': auto, native or generic is accepted",
				  text);
	if (!if_nametoindex(ifname) && !(slot && slot->renamed[0]))
		return sl_err_set(err, ENODEV,
				  "there is no interface '%.32s' on this host; interfaces: "
				  "%s",
				  ifname, ifaces_on_host(list, sizeof(list)));
	def = policy_find_interface(ctx->running->policy, ifname);
	if (def && def->mode == mode && ifaces_find(ctx->running->packets, ifname)->attached) {
		r = ifaces_attach_again(ctx->running->packets,
					ifaces_find(ctx->running->packets, ifname), err);
		if (r < 0)
			return r;
	} else {
		r = op_run(
			ctx, request,
			op_new(request, "attach", "{s:s, s:s}", "interface", ifname, "mode", text),
			err);
		if (r < 0)
			return r;
	}
	*ret = change_result(ctx);
	json_object_set_new(*ret, "interface", json_string(ifname));
	json_object_set_new(
		*ret, "mode",
		json_string(view_iface_state(ifaces_find(ctx->running->packets, ifname))));
	return 0;
}

/* Detaches all interfaces and removes all pins; the daemon sends the reply, then exits. */
static int detach_all(struct commands *ctx, const struct command_request *request, json_t **ret,
		      struct sl_err *err)
{
	static const struct timeval soon = { .tv_usec = 200000 };
	int r = helper_purge(&ctx->running->packets->helper, err);
	char why[512];

	/* Its slot is empty and the pins are gone: putting everything back is not what was asked
	 * for. */
	if (r < 0 && dp_pins_are_there(ctx->running->packets->dp))
		return r;
	log_info("detach --all (uid %u, pid %d): %s, all pins removed, exiting", request->peer->uid,
		 request->peer->pid, r < 0 ? err->message : "all interfaces detached");
	ctx->running->packets->stopping = true;
	event_base_loopexit(ctx->base, &soon);
	if (r < 0) {
		snprintf(why, sizeof(why), "%.*s", (int)sizeof(why) - 1, err->message);
		return sl_err_set(
			err, -r,
			"%s; all else is detached, the program that stays there passes everything, and sluiced exits",
			why);
	}
	*ret = json_pack("{s:b}", "stopping", 1);
	return 0;
}

int command_detach(struct commands *ctx, const struct command_request *request, json_t **ret,
		   struct sl_err *err)
{
	const char *ifname = arg_text(request, "interface");
	char list[384] = "";
	size_t used = 0;
	int r;

	if (arg_flag(request, "all"))
		return detach_all(ctx, request, ret, err);
	if (!policy_find_interface(ctx->running->policy, ifname)) {
		for (size_t i = 0; i < ctx->running->policy->interface_count && used < sizeof(list);
		     i++)
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 i ? ", " : "",
						 ctx->running->policy->interface[i].name);
		return sl_err_set(err, ENOENT, "interface '%.32s' is not configured in sluice%s%s",
				  ifname, used ? "; configured: " : "", list);
	}
	r = op_run(ctx, request, op_new(request, "detach", "{s:s}", "interface", ifname), err);
	if (r < 0)
		return r;
	*ret = change_result(ctx);
	json_object_set_new(*ret, "interface", json_string(ifname));
	return 0;
}
