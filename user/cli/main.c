// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* main.c - sluicectl: parses options and runs the command. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* The options of a packet's fields, in the order of cli_packet_member. */
#define OPT_PACKET 0x100

static const struct option options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "output", required_argument, NULL, 'o' },
	{ "for", required_argument, NULL, 'f' },
	{ "reason", required_argument, NULL, 'r' },
	{ "force", no_argument, NULL, 'F' },
	{ "mode", required_argument, NULL, 'm' },
	{ "all", no_argument, NULL, 'a' },
	{ "dst", required_argument, NULL, OPT_PACKET },
	{ "proto", required_argument, NULL, OPT_PACKET + 1 },
	{ "sport", required_argument, NULL, OPT_PACKET + 2 },
	{ "dport", required_argument, NULL, OPT_PACKET + 3 },
	{ "vlan", required_argument, NULL, OPT_PACKET + 4 },
	{ "tcp-flags", required_argument, NULL, OPT_PACKET + 5 },
	{ "icmp-type", required_argument, NULL, OPT_PACKET + 6 },
	{ "length", required_argument, NULL, OPT_PACKET + 7 },
	{ "interface", required_argument, NULL, OPT_PACKET + 8 },
	{ "fragment", required_argument, NULL, OPT_PACKET + 9 },
	{ "confirm", required_argument, NULL, 'C' },
	{ "config", required_argument, NULL, 'c' },
	{ "domain", required_argument, NULL, 'D' },
	{ "entries", required_argument, NULL, 'E' },
	{ "discard-live", no_argument, NULL, 'd' },
	{ "list", no_argument, NULL, 'l' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* Names reserved for commands of later versions: not reported as unknown. */
static const char *const not_yet[] = {
	"top", "watch", "events", "cluster", "replay", "suggest", "doctor",
};

static int usage_error(const struct cli *cli, const struct command *command)
{
	return cli_refuse(cli, EXIT_USAGE, "usage: sluicectl %s %s", command->name, command->args);
}

/* 0, or an exit code. */
static int take_option(struct cli *cli, int option)
{
	if (option >= OPT_PACKET && option < OPT_PACKET + CLI_PACKET_OPTIONS) {
		cli->given |= CLI_PACKET;
		cli->packet[option - OPT_PACKET] = optarg;
		return 0;
	}
	switch (option) {
	case 's':
		cli->socket = optarg;
		return 0;
	case 'o':
		cli->json = !strcmp(optarg, "json");
		if (cli->json || !strcmp(optarg, "text"))
			return 0;
		return cli_refuse(cli, EXIT_USAGE, "-o %s: unknown format; accepted: json, text", optarg);
	case 'f':
		cli->given |= CLI_FOR;
		cli->for_text = optarg;
		return 0;
	case 'r':
		cli->given |= CLI_REASON;
		cli->reason = optarg;
		return 0;
	case 'F':
		cli->given |= CLI_FORCE;
		return 0;
	case 'm':
		cli->given |= CLI_MODE;
		cli->mode = optarg;
		return 0;
	case 'a':
		cli->given |= CLI_ALL;
		return 0;
	case 'c':
		cli->given |= CLI_CALL;
		cli->config = optarg;
		return 0;
	case 'D':
		cli->given |= CLI_CALL;
		cli->domain = optarg;
		return 0;
	case 'E':
		cli->given |= CLI_CALL;
		cli->entries = optarg;
		return 0;
	case 'C':
		cli->given |= CLI_CONFIRM;
		cli->confirm = optarg;
		return 0;
	case 'd':
		cli->given |= CLI_DISCARD_LIVE;
		return 0;
	case 'l':
		cli->given |= CLI_LIST;
		return 0;
	default:
		return cli_refuse(cli, EXIT_USAGE, "bad option; sluicectl help lists the options");
	}
}

/* How many arguments the command's name takes; 0 where they name another command. */
static int matches(const struct command *command, char **arg, int count)
{
	const char *space = strchr(command->name, ' ');
	size_t first = space ? (size_t)(space - command->name) : strlen(command->name);

	if (count < 1 || strlen(arg[0]) != first || strncmp(command->name, arg[0], first) != 0)
		return 0;
	if (!space)
		return 1;
	return count > 1 && !strcmp(space + 1, arg[1]) ? 2 : 0;
}

static int no_command(const struct cli *cli, const char *word)
{
	size_t length = strlen(word);

	for (size_t i = 0; i < sizeof(not_yet) / sizeof(not_yet[0]); i++)
		if (!strcmp(not_yet[i], word))
			return cli_refuse(cli, EXIT_REFUSED, "%s is not supported by this version",
					  word);
	for (size_t i = 0; i < command_count; i++)
		if (!strncmp(commands[i].name, word, length) && commands[i].name[length] == ' ')
			return cli_refuse(cli, EXIT_USAGE, "'%s' needs a subcommand: sluicectl help %s "
					  "lists them", word, word);
	return cli_refuse(cli, EXIT_USAGE, "unknown command '%s': sluicectl help lists the commands",
			  word);
}

int main(int argc, char **argv)
{
	struct cli cli = { .socket = getenv("SLUICE_SOCKET") };
	bool help = false, version = false;
	int option, code, words = 0;

	if (!cli.socket || !cli.socket[0])
		cli.socket = "/run/sluice/control.sock";
	while ((option = getopt_long(argc, argv, "s:o:c:hV", options, NULL)) != -1) {
		help |= option == 'h';
		version |= option == 'V';
		if (option == 'h' || option == 'V')
			continue;
		code = take_option(&cli, option);
		if (code)
			return code;
	}
	cli.arg = argv + optind;
	cli.arg_count = argc - optind;
	if (help)
		return cmd_help(&cli);
	if (version)
		return cmd_version(&cli);
	if (!cli.arg_count)
		return cli_refuse(&cli, EXIT_USAGE, "no command given: sluicectl help lists the commands");
	for (size_t i = 0; i < command_count; i++) {
		const struct command *command = &commands[i];

		words = matches(command, cli.arg, cli.arg_count);
		if (!words)
			continue;
		cli.arg += words;
		cli.arg_count -= words;
		if (cli.arg_count < command->least ||
		    (command->most >= 0 && cli.arg_count > command->most) ||
		    (cli.given & ~command->options))
			return usage_error(&cli, command);
		return command->run(&cli);
	}
	return no_command(&cli, cli.arg[0]);
}
