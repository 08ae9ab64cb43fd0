// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * replay.c - sluicectl replay: needs no daemon and no root. As check.c it links what the daemon
 * does, so that its prediction is that of the daemon.
 */
#include "replay/replay.h"

#include <stdlib.h>

#include "cli/cli.h"

#define COUNT 10			/* entries of each list */

static const char *option(const struct cli *cli, const char *key)
{
	const char *text = text_of(cli->args, key);

	return text[0] ? text : NULL;
}

int cmd_replay(const struct cli *cli)
{
	struct replay_plan plan = {
		.input = text_of(cli->args, "input"), .config = text_of(cli->args, "config"),
		.compare = option(cli, "compare"), .filter = option(cli, "filter"),
		.interface = option(cli, "interface"),
		.enforce = json_is_true(json_object_get(cli->args, "enforce")),
		.count = number_of(cli->args, "count") ? number_of(cli->args, "count") : COUNT,
	};
	struct sl_err err = { .message = "" };
	const char *damage;
	json_t *report;

	if (plan.count > 100000)
		return cli_refuse(cli, EXIT_USAGE, "--count %u: up to 100000 are accepted", plan.count);
	if (replay_run(&plan, &report, &err))
		return cli_print_bad(cli, &err);
	client_print(cli, report);
	damage = text_of(report, "damage");
	if (damage[0])
		fprintf(stderr, "%s\n", damage);
	json_decref(report);
	return damage[0] ? EXIT_REFUSED : EXIT_DONE;
}
