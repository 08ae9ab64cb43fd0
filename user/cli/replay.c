// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * replay.c - sluicectl replay: needs no daemon and no root. As check.c it links what the daemon
 * does, so that its prediction is that of the daemon.
 */
#include "replay/replay.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "lib/file.h"
#include "replay/page.h"

#define COUNT 10 /* entries of each list */

static const char *option(const struct cli *cli, const char *key)
{
	const char *text = text_of(cli->args, key);

	return text[0] ? text : NULL;
}

static int write_page(const char *path, const json_t *report, struct sl_err *err)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return sl_err_set(err, ENOMEM, "out of memory");
	replay_page(report, out);
	r = fclose(out) ? sl_err_set(err, ENOMEM, "out of memory")
			: file_replace(path, NULL, text, size, 0644, err);
	free(text);
	return r;
}

int cmd_replay(const struct cli *cli)
{
	struct replay_plan plan = {
		.input = text_of(cli->args, "input"),
		.config = text_of(cli->args, "config"),
		.compare = option(cli, "compare"),
		.filter = option(cli, "filter"),
		.interface = option(cli, "interface"),
		.domain = option(cli, "domain"),
		.enforce = json_is_true(json_object_get(cli->args, "enforce")),
		.count = number_of(cli->args, "count") ? number_of(cli->args, "count") : COUNT,
	};
	const char *damage, *html = option(cli, "html");
	struct sl_err err = { .message = "" };
	json_t *report;
	int code;

	if (plan.count > 100000)
		return cli_refuse(cli, EXIT_USAGE, "--count %u: up to 100000 are accepted",
				  plan.count);
	if (replay_run(&plan, &report, &err))
		return cli_print_bad(cli, &err);
	client_print(cli, report);
	damage = text_of(report, "damage");
	if (damage[0])
		fprintf(stderr, "%s\n", damage);
	code = damage[0] ? EXIT_REFUSED : EXIT_DONE;
	if (html && write_page(html, report, &err))
		code = cli_print_bad(cli, &err);
	json_decref(report);
	return code;
}
