// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* why.c - sluicectl why: `history read` with times as people write them. */
#include "cli/cli.h"
#include "cli/when.h"

#define DAY_S 86400

static int bad_time(const struct cli *cli, const char *option, const char *text)
{
	return cli_refuse(cli, EXIT_USAGE, "--%s '%s' is no time; accepted: " WHEN_ACCEPTED, option, text);
}

int cmd_why(const struct cli *cli)
{
	const char *at = text_of(cli->args, "at"), *end = text_of(cli->args, "to");
	time_t now = time(NULL), from = now - DAY_S, to = now + 1, begin;
	json_t *args, *result;
	int code;

	if (at[0] && !when_parse(at, now, &from, &to))
		return bad_time(cli, "at", at);
	if (end[0] && !when_parse(end, now, &begin, &to))
		return bad_time(cli, "to", end);
	args = json_pack("{s:O, s:I, s:I}", "who", json_object_get(cli->args, "who"), "from",
			 (json_int_t)from, "to", (json_int_t)to);
	if (json_object_get(cli->args, "value"))
		json_object_set(args, "value", json_object_get(cli->args, "value"));
	code = client_request(cli, "history read", args, &result);
	if (code != EXIT_DONE)
		return code;
	client_print(cli, result);
	json_decref(result);
	return code;
}
