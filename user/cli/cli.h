/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cli.h - sluicectl: parses a command of user/command, sends it over the socket, prints the result
 * as its row describes. Only the commands below have code of their own.
 *
 * The CLI includes lib/, command/ and speaks the socket's JSON, nothing else of sluice; the
 * exceptions are check.c, replay.c and suggest.c, which state why.
 */
#ifndef SLUICE_CLI_H
#define SLUICE_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "command/command.h"
#include "lib/visible.h"

enum exit_code {
	EXIT_DONE = 0,
	EXIT_REFUSED = 1,
	EXIT_USAGE = 2,
	EXIT_NO_DAEMON = 3,
	EXIT_DIFFERS = 4,
};

struct cli {
	const char *socket;
	bool json;	  /* -o json */
	int width;	  /* of text, 0: unlimited */
	double watch_s;	  /* 0: once */
	const char *sort; /* a heading: --sort; NULL: none */
	const struct command *command;
	json_t *args; /* of the command, by the keys of its row */
};

/*
 * Sends a request to the daemon. On EXIT_DONE *ret is the result, a new reference; else the error
 * has been printed (with -o json also as JSON). Takes ownership of `args`.
 */
int client_request(const struct cli *cli, const char *command, json_t *args, json_t **ret);

/* Sends the command, prints the result. Returns the exit code. */
int client_run(const struct cli *cli);

/* Calls `once`, with --watch again and again until it fails. Returns its last exit code. */
int client_repeat(const struct cli *cli, int (*once)(const struct cli *cli));

/* Around text that --watch repeats: a terminal shows the present state, a pipe gets all of them. */
void client_begin_text(const struct cli *cli);
void client_end_text(const struct cli *cli);

/* Prints a result: with -o json as it is, else by the command's row. */
void client_print(const struct cli *cli, const json_t *result);

/*
 * Reads a file; "-" is standard input. The caller frees *ret_text and *ret_path, which is absolute,
 * as the daemon has another working directory. Returns an exit code and prints errors.
 */
int cli_read_file(const struct cli *cli, const char *name, char **ret_text, char **ret_path);

/*
 * The command line (of `count` words behind the command's name, and the options that parse_option
 * took) as cli->args. Returns an exit code and prints errors.
 */
int parse_args(struct cli *cli, char **word, int count);
/* Records an option of a command. */
void parse_option(const char *name, const char *value);

/* Prints an error of the CLI itself to stderr, with -o json also {"ok": false, ...} to stdout. */
int cli_refuse(const struct cli *cli, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* With --watch on one line. */
void cli_print_json(const struct cli *cli, const json_t *json);
/* Text of the daemon's or of a file, made visible. */
void cli_put(FILE *out, const char *text, enum visible form);

/* Members of an object; "" or 0 without that member. */
const char *text_of(const json_t *object, const char *key);
long long number_of(const json_t *object, const char *key);
double real_of(const json_t *object, const char *key);

int cmd_check(const struct cli *cli);
/* An error of a file, as text or JSON; returns the exit code. */
int cli_print_bad(const struct cli *cli, const struct sl_err *err);
int cmd_replay(const struct cli *cli);	/* replay.c */
int cmd_suggest(const struct cli *cli); /* suggest.c */
/* The tables of keys that the documents have. */
void cli_write_keys(FILE *out);

/*
 * check_keys.c: the keys that a command's KEY=VALUE can have, each with `after` behind it,
 * separated by blanks. NULL: it takes none. Valid until the next call.
 */
const char *cli_pair_keys(const char *command, const char *after);
int cmd_top(const struct cli *cli);    /* top.c */
int cmd_events(const struct cli *cli); /* events.c */
int cmd_why(const struct cli *cli);    /* why.c */
int why_top(const struct cli *cli);    /* why.c: top --at */
int cmd_rule_test(const struct cli *cli);
int cmd_diff(const struct cli *cli);
int cmd_doctor(const struct cli *cli); /* doctor.c */
/*
 * check.c: {"interfaces": [{"name"}], "limits", "rules", "notes": [...]} of a configuration. 0, or
 * -errno and `error`.
 */
int check_facts(const char *path, json_t **ret, char *error, size_t size);

#endif
