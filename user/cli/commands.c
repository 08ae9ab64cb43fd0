// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* commands.c - the table of commands, help, version. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

const struct command commands[] = {
	{ "status", "", "daemon, interfaces, configuration, tables", 0, 0, 0, cmd_status },
	{ "stats", "[LIMIT]", "counters per limit, and packets per verdict and reason", 0, 1, 0,
	  cmd_stats },
	{ "limit list", "", "list the limits in force", 0, 0, 0, cmd_limit_list },
	{ "limit show", "NAME", "print a limit as YAML", 1, 1, 0, cmd_limit_show },
	{ "limit set", "NAME KEY=VALUE...", "change a limit live: rate='10 packets/s' mode=shadow",
	  2, -1, 0, cmd_limit_set },
	{ "limit add", "FILE|-", "add the limits of a YAML file live", 1, 1, 0, cmd_limit_add },
	{ "limit del", "NAME", "remove a limit live", 1, 1, 0, cmd_limit_del },
	{ "override set", "LIMIT SRC KEY=VALUE...", "set rates for one source or prefix: "
	  "rate='5000 packets/s' burst=9000", 3, -1, 0, cmd_override_set },
	{ "override del", "LIMIT SRC", "remove an override", 2, 2, 0, cmd_override_del },
	{ "override list", "LIMIT", "list the overrides of a limit", 1, 1, 0,
	  cmd_override_list },
	{ "block add", "CIDR|@SET [--for 10m] [--reason TEXT] [--force]",
	  "drop all packets of a source", 1, 1, CLI_FOR | CLI_REASON | CLI_FORCE, cmd_block_add },
	{ "block del", "CIDR|@SET", "remove from the blocklist", 1, 1, 0, cmd_block_del },
	{ "block list", "", "list blocked sources: expiry, origin, reason", 0, 0, 0, cmd_block_list },
	{ "exempt add", "CIDR|@SET [--for 10m] [--reason TEXT]", "exempt a source from all limits", 1, 1,
	  CLI_FOR | CLI_REASON | CLI_FORCE, cmd_exempt_add },
	{ "exempt del", "CIDR|@SET", "remove from the exempt list", 1, 1, 0, cmd_exempt_del },
	{ "exempt list", "", "list exempt sources: expiry, origin, reason", 0, 0, 0, cmd_exempt_list },
	{ "explain", "ADDRESS [--dst --proto --sport --dport --vlan --tcp-flags --icmp-type --length\n"
	  "          --interface --fragment first|later]",
	  "the verdict on its next packet, the reason, and when it would pass", 1, 1, CLI_PACKET,
	  cmd_explain },
	{ "set add", "NAME CIDR... [--force]", "add prefixes to a set; creates the set if needed",
	  2, -1, CLI_FORCE, cmd_set_add },
	{ "set del", "NAME CIDR...", "remove prefixes from a set", 2, -1, 0, cmd_set_del },
	{ "set replace", "NAME FILE|- [--force]",
	  "replace the prefixes of a set; FILE has one per line", 2, 2, CLI_FORCE,
	  cmd_set_replace },
	{ "set list", "[NAME]", "list the sets and their users, or the prefixes of one set", 0, 1, 0,
	  cmd_set_list },
	{ "source show", "ADDRESS", "the state of a source in each limit", 1, 1, 0,
	  cmd_source_show },
	{ "ban list", "", "list bans: source, limit, expiry", 0, 0, 0, cmd_ban_list },
	{ "ban del", "SOURCE", "lift a ban and reset its level", 1, 1, 0, cmd_ban_del },
	{ "pushdowns list", "", "active push-downs: source, action, rule, time left", 0, 0, 0,
	  cmd_pushdowns_list },
	{ "pushdowns clear", "[SOURCE]", "remove push-downs (of one source, or all)", 0, 1, 0,
	  cmd_pushdowns_clear },
	{ "cluster show", "", "nodes, cluster store, replication and quota", 0, 0, 0,
	  cmd_cluster_show },
	{ "rule list", "", "list the rules of the HTTP tier in force", 0, 0, 0, cmd_rule_list },
	{ "rule show", "RULE", "print a rule as YAML", 1, 1, 0, cmd_rule_show },
	{ "rule set", "RULE KEY=VALUE...", "change a rule live: limits='10 requests/m,500 requests/h'",
	  2, -1, 0, cmd_rule_set },
	{ "rule test", "-c FILE --domain D --entries user=bob,path=/x",
	  "the rule of FILE that matches, its limits and counter keys (needs no daemon)", 0, 0,
	  CLI_CALL, cmd_rule_test },
	{ "user set", "RULE VALUE KEY=VALUE... [--for 1h]",
	  "set limits for one value: limits='1000 requests/m'", 3, -1, CLI_FOR, cmd_user_set },
	{ "user unset", "RULE VALUE", "remove the override of a value", 2, 2, 0, cmd_user_unset },
	{ "user block", "RULE VALUE [--for 1h]", "refuse all requests of a value", 2, 2, CLI_FOR,
	  cmd_user_block },
	{ "user exempt", "RULE VALUE [--for 1h]", "exempt a value from the rule", 2, 2, CLI_FOR,
	  cmd_user_exempt },
	{ "user show", "RULE VALUE",
	  "what a value has left of a rule's limits: user show api/user bob", 2, 2, 0,
	  cmd_user_show },
	{ "user reset", "RULE VALUE", "reset the counters of a value", 2, 2, 0, cmd_user_reset },
	{ "user top", "", "users with the most refusals in the HTTP tier, recently", 0, 0, 0,
	  cmd_user_top },
	{ "load-signal list", "", "list the load signals that elastic limits use, and their values", 0, 0, 0,
	  cmd_load_signal_list },
	{ "load-signal set", "NAME VALUE [--for 10s]", "set an external load value: 0.63 or 63%", 2, 2, CLI_FOR,
	  cmd_load_signal },
	{ "attach", "IFACE [--mode auto|native|generic]",
	  "attach to an interface and limit its packets", 1, 1, CLI_MODE, cmd_attach },
	{ "detach", "IFACE | --all",
	  "detach from an interface; --all removes all kernel state and stops sluiced", 0, 1,
	  CLI_ALL, cmd_detach },
	{ "check", "FILE", "check a configuration file (needs no daemon and no root)", 1, 1, 0,
	  cmd_check },
	{ "diff", "[FILE]", "show live changes that are not in the file, or what FILE would change; "
	  "exit 4 if any", 0, 1, 0, cmd_diff },
	{ "apply", "FILE|- [--confirm 60s] [--discard-live]",
	  "run FILE instead of the configured file; with --confirm, revert unless confirmed in time", 1, 1,
	  CLI_CONFIRM | CLI_DISCARD_LIVE, cmd_apply },
	{ "confirm", "", "keep what was applied with --confirm", 0, 0, 0, cmd_confirm },
	{ "rollback", "[--list]", "undo the last change; repeat for up to ten changes", 0, 0, CLI_LIST,
	  cmd_rollback },
	{ "reload", "", "read the file again and keep live changes", 0, 0, 0, cmd_reload },
	{ "save", "", "write live changes to the file", 0, 0, 0, cmd_save },
	{ "version", "", "print the version", 0, 0, 0, cmd_version },
	{ "help", "[COMMAND]", "print all commands, or the usage of one", 0, 2, 0, cmd_help },
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
	       "  -o, --output json    print JSON instead of text\n"
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
