// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* why.c - sluicectl why, top --at: `history read` and `history sources` with times as people write
 * them. */
#include "cli/cli.h"
#include "cli/when.h"

#define DAY_S 86400

static int bad_time(const struct cli *cli, const char *option, const char *text)
{
	return cli_refuse(cli, EXIT_USAGE, "--%s '%s' is no time; accepted: " WHEN_ACCEPTED, option,
			  text);
}

/* Asks for --at to --to, of the last day where neither is given, with the arguments named in
 * `pass`. */
static int ask(const struct cli *cli, const char *command, const char *const *pass)
{
	const char *at = text_of(cli->args, "at"), *end = text_of(cli->args, "to");
	time_t now = time(NULL), from = now - DAY_S, to = now + 1, begin;
	struct cli shown = *cli;
	json_t *args, *result;
	int code;

	if (at[0] && !when_parse(at, now, &from, &to))
		return bad_time(cli, "at", at);
	if (end[0] && !when_parse(end, now, &begin, &to))
		return bad_time(cli, "to", end);
	args = json_pack("{s:I, s:I}", "from", (json_int_t)from, "to", (json_int_t)to);
	for (; *pass; pass++)
		if (json_object_get(cli->args, *pass))
			json_object_set(args, *pass, json_object_get(cli->args, *pass));
	code = client_request(cli, command, args, &result);
	if (code != EXIT_DONE)
		return code;
	if (!cli->json)
		when_localize(result);
	shown.command = &commands[command_find(command)];
	client_print(&shown, result);
	json_decref(result);
	return code;
}

int cmd_why(const struct cli *cli)
{
	static const char *const pass[] = { "who", "value", NULL };

	return ask(cli, "history read", pass);
}

int why_top(const struct cli *cli)
{
	static const char *const pass[] = { "by", "count", NULL };

	if (json_object_get(cli->args, "within"))
		return cli_refuse(
			cli, EXIT_USAGE,
			"--within is not accepted with --at; sluicectl why PREFIX --at TIME");
	return ask(cli, "history sources", pass);
}
