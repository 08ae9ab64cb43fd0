// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* commands.c - the table of commands, help, version. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

const struct command commands[] = {
	{ "status", "", "what runs, on which interfaces, since when", 0, 0, 0, cmd_status },
	{ "stats", "[LIMIT]", "counters of limits, and why packets passed or dropped", 0, 1, 0,
	  cmd_stats },
	{ "limit list", "", "limits in force", 0, 0, 0, cmd_limit_list },
	{ "limit show", "NAME", "a limit as YAML", 1, 1, 0, cmd_limit_show },
	{ "limit set", "NAME KEY=VALUE...", "change a limit live: rate='10 packets/s' mode=shadow",
	  2, -1, 0, cmd_limit_set },
	{ "limit add", "FILE|-", "add the limits of a YAML file live", 1, 1, 0, cmd_limit_add },
	{ "limit del", "NAME", "remove a limit live", 1, 1, 0, cmd_limit_del },
	{ "override set", "LIMIT SRC KEY=VALUE...", "rates of its own for a source: "
	  "rate='5000 packets/s' burst=9000", 3, -1, 0, cmd_override_set },
	{ "override del", "LIMIT SRC", "the limit's rates again", 2, 2, 0, cmd_override_del },
	{ "override list", "LIMIT", "sources with rates of their own", 1, 1, 0,
	  cmd_override_list },
	{ "block add", "CIDR|@SET [--for 10m] [--reason TEXT] [--force]",
	  "drop everything from there", 1, 1, CLI_FOR | CLI_REASON | CLI_FORCE, cmd_block_add },
	{ "block del", "CIDR|@SET", "no longer", 1, 1, 0, cmd_block_del },
	{ "block list", "", "what is blocked, until when and why", 0, 0, 0, cmd_block_list },
	{ "exempt add", "CIDR|@SET [--for 10m] [--reason TEXT]", "limit nothing from there", 1, 1,
	  CLI_FOR | CLI_REASON | CLI_FORCE, cmd_exempt_add },
	{ "exempt del", "CIDR|@SET", "no longer", 1, 1, 0, cmd_exempt_del },
	{ "exempt list", "", "what is exempt, until when and why", 0, 0, 0, cmd_exempt_list },
	{ "explain", "ADDRESS [--dst --proto --sport --dport --vlan --tcp-flags --icmp-type --length\n"
	  "          --interface --fragment first|later]",
	  "what its next packet would meet, why, and when it would pass", 1, 1, CLI_PACKET,
	  cmd_explain },
	{ "set add", "NAME CIDR... [--force]", "add to a set, wherever it is named", 2, -1, CLI_FORCE,
	  cmd_set_add },
	{ "set del", "NAME CIDR...", "take out of a set", 2, -1, 0, cmd_set_del },
	{ "set replace", "NAME FILE|- [--force]", "a set's addresses anew, one a line", 2, 2,
	  CLI_FORCE, cmd_set_replace },
	{ "set list", "[NAME]", "sets and where they are used, or a set's addresses", 0, 1, 0,
	  cmd_set_list },
	{ "source show", "ADDRESS", "a source's state in each limit, now", 1, 1, 0,
	  cmd_source_show },
	{ "ban list", "", "who is banned, by which limit, until when", 0, 0, 0, cmd_ban_list },
	{ "ban del", "SOURCE", "lift a ban and forget its level", 1, 1, 0, cmd_ban_del },
	{ "pushdowns list", "", "who is answered at the network card, how, and for which rule", 0, 0, 0,
	  cmd_pushdowns_list },
	{ "pushdowns clear", "[SOURCE]", "end it, of a source or of all", 0, 1, 0,
	  cmd_pushdowns_clear },
	{ "cluster show", "", "other nodes, the store they share, and what is agreed through it", 0, 0, 0,
	  cmd_cluster_show },
	{ "rule list", "", "rules of the HTTP tier in force", 0, 0, 0, cmd_rule_list },
	{ "rule show", "RULE", "a rule as YAML", 1, 1, 0, cmd_rule_show },
	{ "rule set", "RULE KEY=VALUE...", "change a rule live: limits='10 requests/m,500 requests/h'",
	  2, -1, 0, cmd_rule_set },
	{ "rule test", "-c FILE --domain D --entries user=bob,path=/x",
	  "which rule of FILE they meet, its limits, whom it counts together (no daemon)", 0, 0,
	  CLI_CALL, cmd_rule_test },
	{ "user set", "RULE VALUE KEY=VALUE... [--for 1h]",
	  "limits of its own for a value: limits='1000 requests/m'", 3, -1, CLI_FOR, cmd_user_set },
	{ "user unset", "RULE VALUE", "the rule's limits again", 2, 2, 0, cmd_user_unset },
	{ "user block", "RULE VALUE [--for 1h]", "refuse it", 2, 2, CLI_FOR, cmd_user_block },
	{ "user exempt", "RULE VALUE [--for 1h]", "do not limit it", 2, 2, CLI_FOR,
	  cmd_user_exempt },
	{ "user show", "RULE VALUE", "what a user has left of a rule's limits: user show api/user bob", 2, 2,
	  0, cmd_user_show },
	{ "user reset", "RULE VALUE", "forget what a user has used", 2, 2, 0, cmd_user_reset },
	{ "user top", "", "who is refused most by the HTTP tier, lately", 0, 0, 0, cmd_user_top },
	{ "signal list", "", "signals that elastic limits ask for, and their values", 0, 0, 0,
	  cmd_load_signal_list },
	{ "signal", "NAME VALUE [--for 10s]", "tell a signal: 0.63 or 63%", 2, 2, CLI_FOR,
	  cmd_load_signal },
	{ "attach", "IFACE [--mode auto|native|generic]", "limit on an interface, from now on", 1,
	  1, CLI_MODE, cmd_attach },
	{ "detach", "IFACE | --all", "no longer; --all removes everything and ends sluiced", 0, 1,
	  CLI_ALL, cmd_detach },
	{ "check", "FILE", "is this configuration good? (no daemon, no root)", 1, 1, 0,
	  cmd_check },
	{ "diff", "[FILE]", "live changes that the file does not have, or what FILE would change; "
	  "exit 4 if any", 0, 1, 0, cmd_diff },
	{ "apply", "FILE|- [--confirm 60s] [--discard-live]",
	  "put FILE in the file's place; with --confirm it reverts unless confirmed in time", 1, 1,
	  CLI_CONFIRM | CLI_DISCARD_LIVE, cmd_apply },
	{ "confirm", "", "what was applied with --confirm stays", 0, 0, 0, cmd_confirm },
	{ "rollback", "[--list]", "undo the last change; up to ten, one by one", 0, 0, CLI_LIST,
	  cmd_rollback },
	{ "reload", "", "read the file again, keeping live changes", 0, 0, 0, cmd_reload },
	{ "save", "", "write live changes into the file", 0, 0, 0, cmd_save },
	{ "version", "", "the version", 0, 0, 0, cmd_version },
	{ "help", "[COMMAND]", "this, or a command's usage", 0, 2, 0, cmd_help },
};

const size_t command_count = sizeof(commands) / sizeof(commands[0]);

int cmd_help(const struct cli *cli)
{
	printf("usage: sluicectl [-s SOCKET] [-o json] COMMAND\n\n");
	for (size_t i = 0; i < command_count; i++) {
		if (cli->arg_count && strncmp(commands[i].name, cli->arg[0], strlen(cli->arg[0])))
			continue;
		printf("  %s%s%s\n        %s\n", commands[i].name, commands[i].args[0] ? " " : "",
		       commands[i].args, commands[i].help);
	}
	printf("\n"
	       "  -s, --socket SOCKET  the daemon's socket (default $SLUICE_SOCKET, else\n"
	       "                       /run/sluice/control.sock)\n"
	       "  -o, --output json    JSON instead of text, for every command\n"
	       "\n"
	       "exit: 0 done, 1 refused, 2 usage, 3 no daemon, 4 diff differs. See sluicectl(8).\n");
	return EXIT_DONE;
}

int cmd_version(const struct cli *cli)
{
	json_t *json;

	if (!cli->json) {
		printf("sluicectl %s\n", SLUICE_VERSION);
		return EXIT_DONE;
	}
	json = json_pack("{s:s}", "version", SLUICE_VERSION);
	cli_print_json(json);
	json_decref(json);
	return EXIT_DONE;
}
