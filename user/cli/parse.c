// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* parse.c - the words and options of a command line as the arguments of its row. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define OPTIONS_MAX 32

static struct {
	const char *name, *value; /* "for", "10m" */
} given[OPTIONS_MAX];
static size_t given_count;

void parse_option(const char *name, const char *value)
{
	if (given_count == OPTIONS_MAX)
		given_count--; /* none is that often meant: the last one counts */
	given[given_count].name = name;
	given[given_count++].value = value;
}

static int usage_error(const struct cli *cli, const char *before, const char *what,
		       const char *after)
{
	char usage[512];

	return cli_refuse(cli, EXIT_USAGE, "%s%s%s; usage: sluicectl %s%s%s", before, what, after,
			  cli->command->name, cli->command->arg ? " " : "",
			  command_usage(cli->command, usage, sizeof(usage)));
}

/* The value of the CLI's own text is checked here; all others by the daemon. */
static int set_text(const struct cli *cli, const char *key, const char *text)
{
	if (json_object_set_new(cli->args, key, json_string(text)) == 0)
		return EXIT_DONE;
	return cli_refuse(cli, EXIT_USAGE, "the argument '%s' is not UTF-8", key);
}

/* "0.63" or "63%". */
static int set_load(const struct cli *cli, const char *key, const char *text)
{
	char *end;
	double value = strtod(text, &end);
	bool percent = end != text && !strcmp(end, "%");

	if (end == text || (*end && !percent) || !(value >= 0) || value > 1e9)
		return cli_refuse(cli, EXIT_USAGE,
				  "'%s' is not a load value; accepted: a number from "
				  "0, such as 0.63 or 63%%",
				  text);
	json_object_set_new(cli->args, key, json_real(percent ? value / 100 : value));
	return EXIT_DONE;
}

static int set_count(const struct cli *cli, const char *key, const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < 1)
		return cli_refuse(cli, EXIT_USAGE, "--%s '%s': a positive number is accepted", key,
				  text);
	json_object_set_new(cli->args, key, json_integer(value));
	return EXIT_DONE;
}

static int set_file(const struct cli *cli, const struct command_arg *arg, const char *name)
{
	char *text, *path;
	int code = cli_read_file(cli, name, &text, &path);

	if (code != EXIT_DONE)
		return code;
	if (json_object_set_new(cli->args, arg->key, json_string(text)) < 0 ||
	    json_object_set_new(cli->args, arg->path_key, json_string(path)) < 0)
		code = cli_refuse(cli, EXIT_REFUSED, "%s: not UTF-8", name);
	free(text);
	free(path);
	return code;
}

/*
 * Without a comment and blanks around it; empty lines stay, so that the daemon can name a line by
 * its number. It judges them: a byte that is no text is '?' there.
 */
static json_t *line_text(char *line)
{
	char *end;
	json_t *text;

	*strchrnul(line, '#') = '\0';
	line += strspn(line, " \t");
	for (end = line + strlen(line); end > line && strchr(" \t\r", end[-1]); end--)
		end[-1] = '\0';
	text = json_string(line);
	if (text)
		return text;
	for (end = line; *end; end++)
		if ((unsigned char)*end >= 0x80)
			*end = '?';
	return json_string(line);
}

static int set_prefix_file(const struct cli *cli, const struct command_arg *arg, const char *name)
{
	char *text, *path, *line, *end;
	int code = cli_read_file(cli, name, &text, &path);
	json_t *lines;

	if (code != EXIT_DONE)
		return code;
	lines = json_array();
	for (line = text; line; line = end ? end + 1 : NULL) {
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		json_array_append_new(lines, line_text(line));
	}
	json_object_set_new(cli->args, arg->key, lines);
	free(text);
	free(path);
	return EXIT_DONE;
}

static int set_list(const struct cli *cli, const struct command_arg *arg, char **word, int count)
{
	json_t *list = json_array();

	json_object_set_new(cli->args, arg->key, list);
	for (int i = 0; i < count; i++) {
		if (arg->type == ARG_PAIRS && !strchr(word[i], '='))
			return usage_error(cli, "'", word[i], "' is not KEY=VALUE");
		if (json_array_append_new(list, json_string(word[i])) < 0)
			return cli_refuse(cli, EXIT_USAGE, "an argument is not UTF-8");
	}
	return EXIT_DONE;
}

/* One argument. *ret_used is how many words it took. */
static int set_arg(const struct cli *cli, const struct command_arg *arg, char **word, int count,
		   int *ret_used)
{
	*ret_used = 1;
	switch (arg->type) {
	case ARG_TEXT:
		return set_text(cli, arg->key, word[0]);
	case ARG_FLAG:
		*ret_used = 0;
		json_object_set_new(cli->args, arg->key, json_true());
		return EXIT_DONE;
	case ARG_COUNT:
		return set_count(cli, arg->key, word[0]);
	case ARG_LOAD:
		return set_load(cli, arg->key, word[0]);
	case ARG_PAIRS:
	case ARG_WORDS:
		*ret_used = count;
		return set_list(cli, arg, word, count);
	case ARG_PREFIX_FILE:
		return set_prefix_file(cli, arg, word[0]);
	case ARG_FILE:
		return set_file(cli, arg, word[0]);
	}
	return EXIT_USAGE;
}

static const struct command_arg *find_option(const struct command *command, const char *option)
{
	const struct command_arg *arg = command->arg;
	char name[32];

	for (; arg && arg->key; arg++)
		if (arg->option && !strcmp(command_option(arg, name, sizeof(name)), option))
			return arg;
	return NULL;
}

static int parse_options(const struct cli *cli)
{
	for (size_t i = 0; i < given_count; i++) {
		const struct command_arg *arg = find_option(cli->command, given[i].name);
		char *value = (char *)given[i].value;
		int used, code;

		if (!arg)
			return usage_error(cli, "option --", given[i].name,
					   " is not accepted here");
		code = set_arg(cli, arg, &value, 1, &used);
		if (code != EXIT_DONE)
			return code;
	}
	return EXIT_DONE;
}

int parse_args(struct cli *cli, char **word, int count)
{
	const struct command_arg *arg = cli->command->arg;
	int code, used, either = 0, either_given = 0;

	cli->args = json_object();
	code = parse_options(cli);
	for (; code == EXIT_DONE && arg && arg->key; arg++) {
		bool is_given = json_object_get(cli->args, arg->key);

		if (!arg->option && count) {
			is_given = true;
			code = set_arg(cli, arg, word, count, &used);
			word += used;
			count -= used;
		} else if (!is_given && !arg->either &&
			   (arg->option ? arg->needed : !arg->optional)) {
			char text[64];

			command_add_arg(arg, text, sizeof(text));
			return usage_error(cli, text, " is missing", "");
		}
		either += arg->either;
		either_given += arg->either && is_given;
	}
	if (code != EXIT_DONE)
		return code;
	if (count)
		return usage_error(cli, "unexpected argument '", word[0], "'");
	if (either && either_given != 1)
		return usage_error(cli, "exactly one argument is accepted", "", "");
	return EXIT_DONE;
}
