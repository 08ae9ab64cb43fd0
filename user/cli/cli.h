/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cli.h - sluicectl: a table of commands, one file each (cmd_*.c), over one socket.
 *
 * The CLI includes lib/ and speaks the socket's JSON, nothing else of sluice; the exception is
 * check.c, which states why.
 */
#ifndef SLUICE_CLI_H
#define SLUICE_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum exit_code {
	EXIT_DONE = 0,
	EXIT_REFUSED = 1,
	EXIT_USAGE = 2,
	EXIT_NO_DAEMON = 3,
	EXIT_DIFFERS = 4,
};

/* Options that only some commands take; see a command's row. */
enum cli_option {
	CLI_FOR = 1 << 0,
	CLI_REASON = 1 << 1,
	CLI_FORCE = 1 << 2,
	CLI_MODE = 1 << 3,
	CLI_ALL = 1 << 4,
	CLI_PACKET = 1 << 5,	/* any of cli_packet_member */
	CLI_CONFIRM = 1 << 6,
	CLI_DISCARD_LIVE = 1 << 7,
	CLI_LIST = 1 << 8,
	CLI_CALL = 1 << 9,	/* config, domain, entries */
};

/* A packet's fields, as members of requests and responses (the options have '-' for '_'). */
#define CLI_PACKET_OPTIONS 10
extern const char *const cli_packet_member[CLI_PACKET_OPTIONS];

struct cli {
	const char *socket;
	bool json;		/* -o json */
	unsigned int given;	/* enum cli_option, or-ed */
	const char *for_text;
	const char *reason;
	const char *mode;
	const char *packet[CLI_PACKET_OPTIONS];	/* NULL: not given */
	const char *confirm;
	const char *config, *domain, *entries;
	char **arg;		/* what follows the command's name */
	int arg_count;
};

struct command {
	const char *name;	/* "limit set" */
	const char *args;	/* for the usage: "NAME KEY=VALUE..." */
	const char *help;
	int least, most;	/* arguments; most < 0: any number */
	unsigned int options;	/* enum cli_option, or-ed */
	int (*run)(const struct cli *cli);	/* an exit code */
};

extern const struct command commands[];
extern const size_t command_count;

/*
 * Sends a request to the daemon. On EXIT_DONE *ret is the result, a new reference; else the error
 * has been printed (with -o json also as JSON). Takes ownership of `args`, which may be NULL.
 */
int client_request(const struct cli *cli, const char *command, json_t *args, json_t **ret);

/*
 * Sends a request and prints the result, with -o json as it is, else by `print`. Returns the
 * exit code.
 */
int client_show(const struct cli *cli, const char *command, json_t *args,
		void (*print)(const json_t *result));

/*
 * Reads a file; "-" is standard input. The caller frees *ret_text and *ret_path, which is absolute,
 * as the daemon has another working directory. Returns an exit code and prints errors.
 */
int cli_read_file(const struct cli *cli, const char *name, char **ret_text, char **ret_path);

/* Prints an error of the CLI itself to stderr, with -o json also {"ok": false, ...} to stdout. */
int cli_refuse(const struct cli *cli, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void cli_print_json(const json_t *json);

/* Members of an object; "" or 0 without that member. */
const char *text_of(const json_t *object, const char *key);
long long number_of(const json_t *object, const char *key);
double real_of(const json_t *object, const char *key);

/* The result of a change on one line: "WHAT; 3 live changes (...)". */
void print_change(const char *what, const json_t *result);

int cmd_status(const struct cli *cli);
int cmd_stats(const struct cli *cli);
int cmd_limit_list(const struct cli *cli);
int cmd_limit_show(const struct cli *cli);
int cmd_limit_set(const struct cli *cli);
int cmd_limit_add(const struct cli *cli);
int cmd_limit_del(const struct cli *cli);
int cmd_override_set(const struct cli *cli);
int cmd_override_del(const struct cli *cli);
int cmd_override_list(const struct cli *cli);
int cmd_rule_list(const struct cli *cli);
int cmd_rule_show(const struct cli *cli);
int cmd_rule_set(const struct cli *cli);
int cmd_rule_test(const struct cli *cli);
int cmd_user_set(const struct cli *cli);
int cmd_user_unset(const struct cli *cli);
int cmd_user_block(const struct cli *cli);
int cmd_user_exempt(const struct cli *cli);
int cmd_block_add(const struct cli *cli);
int cmd_block_del(const struct cli *cli);
int cmd_block_list(const struct cli *cli);
int cmd_exempt_add(const struct cli *cli);
int cmd_exempt_del(const struct cli *cli);
int cmd_exempt_list(const struct cli *cli);
int cmd_set_add(const struct cli *cli);
int cmd_set_del(const struct cli *cli);
int cmd_set_replace(const struct cli *cli);
int cmd_set_list(const struct cli *cli);
int cmd_attach(const struct cli *cli);
int cmd_detach(const struct cli *cli);
int cmd_check(const struct cli *cli);
int cmd_reload(const struct cli *cli);
int cmd_apply(const struct cli *cli);
int cmd_confirm(const struct cli *cli);
int cmd_rollback(const struct cli *cli);
int cmd_save(const struct cli *cli);
int cmd_diff(const struct cli *cli);
int cmd_explain(const struct cli *cli);
int cmd_source_show(const struct cli *cli);
int cmd_pushdowns_list(const struct cli *cli);
int cmd_pushdowns_clear(const struct cli *cli);
int cmd_cluster_show(const struct cli *cli);
int cmd_user_top(const struct cli *cli);
int cmd_user_show(const struct cli *cli);
int cmd_user_reset(const struct cli *cli);
int cmd_ban_list(const struct cli *cli);
int cmd_ban_del(const struct cli *cli);
int cmd_load_signal(const struct cli *cli);
int cmd_load_signal_list(const struct cli *cli);
int cmd_version(const struct cli *cli);
int cmd_help(const struct cli *cli);

#endif
