/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * command.h - the commands of sluicectl and of the control socket, each one row of rows.h.
 *
 * From a row come: parsing and help in the CLI, completion, the commands in sluicectl(8); the
 * daemon's check of rights and arguments; the text that the CLI prints. JSON is the result as the
 * daemon sends it: columns and lines name its members.
 *
 * Knows: names, arguments, rights, help, output. Does not know: what a command does (the functions
 * in control/commands), how a text is printed (cli/show.h). May use: lib.
 */
#ifndef SLUICE_COMMAND_COMMAND_H
#define SLUICE_COMMAND_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "lib/err.h"

enum command_right {
	COMMAND_READS,	 /* control.read_group, too */
	COMMAND_CHANGES, /* root and control.group; audited */
	COMMAND_UPDATES, /* root and control.group; too frequent for the audit log */
	COMMAND_LOCAL,	 /* of sluicectl alone: needs no daemon */
};

/* On the command line, and in JSON. */
enum arg_type {
	ARG_TEXT,	 /* a string */
	ARG_FLAG,	 /* an option without a value: true */
	ARG_COUNT,	 /* a positive integer */
	ARG_LOAD,	 /* 0.63 or 63%: a number */
	ARG_PAIRS,	 /* KEY=VALUE...: an array of such strings */
	ARG_WORDS,	 /* CIDR...: an array of strings */
	ARG_PREFIX_FILE, /* FILE, one prefix a line: an array of strings */
	ARG_FILE,	 /* FILE or -: its text, and its path in the member path_key */
};

struct command_arg {
	const char *key;      /* the member of "args" */
	const char *meta;     /* "LIMIT", "10m"; NULL for a flag */
	const char *help;     /* of an option */
	const char *path_key; /* ARG_FILE */
	const char
		*values; /* completion: words, or the command whose list has them: "@limit list" */
	enum arg_type type;
	char letter;   /* also a short option */
	bool option;   /* --KEY, with '-' for '_'; else by its position */
	bool optional; /* options are, unless `needed` */
	bool needed;
	bool either; /* exactly one of those marked so */
};

/*
 * One column. `cell` is a text with fields (see below). A heading that begins with '>' aligns to
 * the right. Where the terminal is too narrow, columns with a `hide` go first, 1 before 2; the
 * texts of the others are cut, those with `keep` last. One with `some` is not there where all of it
 * is "0" or "-".
 */
struct column {
	const char *heading;
	const char *cell;
	int hide;
	bool keep, some;
};

/*
 * A part of the output: a line, a line for each item of the array `of`, or a table of it. "a/b" is
 * the array b of each item of the array a; its fields are looked up in both. "a/b?" also has a part
 * for an item of a without any b. `when` names a member that must be there and not be false;
 * "!member": the reverse.
 *
 * A text with fields: $key is a member of the item, $a.b a member's member, $ the item itself,
 * $a+b a sum, $a/b a quotient; of arrays each item, separated by ", ".
 *     $key:form       formatted; the forms are those of cli/expand.c
 *     $key[TEXT]      the text for each item of an array
 *     $key?  $key=x   nothing; a condition in braces: x is a word or a number
 *     $^              nothing; the condition that the item is the array's first
 *     {A|B|C}         the first alternative whose fields are there: not missing, null, false, ""
 *                     or []. Without one, nothing.
 * Outside of braces a member that the reply does not have is printed as "(missing:KEY)".
 * A line that is empty is not printed. One that is wider than the terminal is folded at blanks,
 * unless it is `verbatim` (YAML, to be copied; bars).
 */
struct show_part {
	const char *of, *when;
	const char *line;
	bool verbatim;
	const char *none; /* the line in place of a table without rows; with fields of the result */
	const struct column *columns;
};

/* General options and those of commands, each name once: the CLI knows them before it knows the
 * command. */
#define COMMAND_OPTIONS_MAX 64

struct command {
	const char *name; /* "limit set" */
	enum command_right right;
	const char *help;	       /* one line */
	const char *example;	       /* a line without "sluicectl", for --help */
	const char *more;	       /* sentences for --help and sluicectl(8), or NULL */
	const struct command_arg *arg; /* up to one without a key; NULL: none */
	const struct show_part
		*show; /* up to one without line and columns; NULL: printed by code */
};

/* The order of the rows is also that of help and of tables indexed by a row's number. */
extern const struct command commands[];
extern const size_t command_count;

/* The row's number, or -1. */
int command_find(const char *name);

/* The command with the nearest name, or NULL if none is near. */
const char *command_suggest(const char *name);

bool arg_is_list(enum arg_type type);
/* The name of an option, "tcp-flags"; returns buf. */
const char *command_option(const struct command_arg *arg, char *buf, size_t size);
/* "[--for DURATION]"; returns its length, as snprintf(). */
size_t command_add_arg(const struct command_arg *arg, char *buf, size_t size);
/* "LIMIT KEY=VALUE... [--for DURATION]" into buf; returns buf. */
const char *command_usage(const struct command *command, char *buf, size_t size);

/* The list of all commands; one command in full; all as the lists of sluicectl(8). */
void help_write_all(FILE *out, const char *first_word);
/* `keys`: what KEY=VALUE may have for KEY, or NULL. */
void help_write_command(FILE *out, const struct command *command, const char *keys);
void help_write_mdoc(FILE *out);
/* Words of `text` from column `at` on, folded at 80 columns and indented; ends the line. */
void help_fold(FILE *out, const char *text, size_t at, size_t indent);
/* Completion for bash. `options` are those of the program itself: "--socket --output". */
/* pair_keys(): what the KEY=VALUE of a command may have for KEY, as words "KEY="; NULL: it has
 * none. */
void help_write_bash(FILE *out, const char *(*pair_keys)(const char *command, const char *after));

/* Checks the arguments of a request: known keys, those that are needed, their types. 0 or
 * -EINVAL. */
int command_check_args(const struct command *command, const json_t *args, struct sl_err *err);

#endif
