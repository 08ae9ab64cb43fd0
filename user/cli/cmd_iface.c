// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_iface.c - sluicectl attach, detach. */
#include <stdio.h>

#include "cli/cli.h"

static void print_attached(const json_t *result)
{
	char what[128];

	snprintf(what, sizeof(what), "%s attached, %s", text_of(result, "interface"),
		 text_of(result, "mode"));
	print_change(what, result);
}

int cmd_attach(const struct cli *cli)
{
	json_t *args = json_pack("{s:s}", "interface", cli->arg[0]);

	if (cli->mode)
		json_object_set_new(args, "mode", json_string(cli->mode));
	return client_show(cli, "attach", args, print_attached);
}

static void print_detached(const json_t *result)
{
	char what[128];

	snprintf(what, sizeof(what), "%s detached", text_of(result, "interface"));
	print_change(what, result);
}

static void print_all_gone(const json_t *result)
{
	printf("all interfaces detached, all kernel state removed; sluiced exits\n");
}

int cmd_detach(const struct cli *cli)
{
	bool all = cli->given & CLI_ALL;

	if (all == (cli->arg_count == 1))
		return cli_refuse(cli, EXIT_USAGE, "usage: sluicectl detach IFACE | --all");
	if (all)
		return client_show(cli, "detach", json_pack("{s:b}", "all", 1), print_all_gone);
	return client_show(cli, "detach", json_pack("{s:s}", "interface", cli->arg[0]),
			   print_detached);
}
