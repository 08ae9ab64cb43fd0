// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* main.c - sluicectl: finds the command, parses its arguments and runs it. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/show.h"
#include "cli/table.h"
#include "lib/near.h"
#include "version.h"

#define OPTIONS_MAX COMMAND_OPTIONS_MAX
#define OPTION_OF_COMMAND 0x100
#define WATCH_S 2.0

static const struct option general[] = {
	{ "socket", required_argument, NULL, 's' }, { "output", required_argument, NULL, 'o' },
	{ "json", no_argument, NULL, 'j' },	    { "watch", optional_argument, NULL, 'w' },
	{ "sort", required_argument, NULL, 'S' },   { "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
};

#define GENERAL_COUNT (sizeof(general) / sizeof(general[0]))

/* The general options, then those of all commands, each once; one more is zero. */
static struct option options[OPTIONS_MAX + 1];
static char option_name[OPTIONS_MAX][32];
static char option_letter[OPTIONS_MAX];
static char letters[OPTIONS_MAX + 8] = "s:o:hV";

static void add_option(const struct command_arg *arg, size_t *count)
{
	char *name = option_name[*count];

	command_option(arg, name, sizeof(option_name[0]));
	for (size_t i = 0; i < *count; i++)
		if (!strcmp(options[i].name, name))
			return;
	if (*count >= OPTIONS_MAX)
		return;
	options[*count] = (struct option){ name, arg->meta ? required_argument : no_argument, NULL,
					   OPTION_OF_COMMAND + (int)*count };
	option_letter[*count] = arg->letter;
	if (arg->letter)
		snprintf(letters + strlen(letters), 3, "%c:", arg->letter);
	(*count)++;
}

static void collect_options(void)
{
	size_t count = GENERAL_COUNT;

	memcpy(options, general, sizeof(general));
	for (size_t i = 0; i < command_count; i++)
		for (const struct command_arg *arg = commands[i].arg; arg && arg->key; arg++)
			if (arg->option)
				add_option(arg, &count);
}

static int bad_option(const struct cli *cli, const char *word)
{
	const char *name = word + strspn(word, "-"), *near = NULL;
	static const char *const called[][2] = {
		{ "duration", "for" },	{ "ttl", "for" },	 { "time", "for" },
		{ "timeout", "for" },	{ "comment", "reason" }, { "limit-count", "count" },
		{ "n", "count" },	{ "since", "at" },	 { "iface", "interface" },
		{ "file", "config" },	{ "format", "output" },	 { "yes", "force" },
		{ "prefix", "within" },
	};
	unsigned int least = ~0U;
	char text[32];

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "="), name);
	for (size_t i = 0; options[i].name; i++) {
		if (!strcmp(options[i].name, text))
			return cli_refuse(cli, EXIT_USAGE,
					  options[i].has_arg == required_argument
						  ? "--%s needs a value"
						  : "--%s takes no value",
					  text);
		if (word_is_near(text, options[i].name) &&
		    word_distance(text, options[i].name) < least) {
			least = word_distance(text, options[i].name);
			near = options[i].name;
		}
	}
	for (size_t i = 0; i < sizeof(called) / sizeof(called[0]); i++)
		if (!strcmp(called[i][0], text))
			near = called[i][1];
	return cli_refuse(cli, EXIT_USAGE,
			  "unknown option '%s'%s%s%s; sluicectl help COMMAND lists the "
			  "options; a name that begins with '-' follows after --",
			  word, near ? " (did you mean --" : "", near ? near : "",
			  near ? "?)" : "");
}

static int set_output(struct cli *cli, const char *format)
{
	cli->json = !strcmp(format, "json");
	if (cli->json || !strcmp(format, "text"))
		return EXIT_DONE;
	cli->width = 0;
	if (!strcmp(format, "wide"))
		return EXIT_DONE;
	return cli_refuse(cli, EXIT_USAGE, "-o %s: unknown format; accepted: text, wide, json",
			  format);
}

static int set_watch(struct cli *cli, const char *text)
{
	char *end = NULL;

	cli->watch_s = text ? strtod(text, &end) : WATCH_S;
	if (!text || (end != text && !*end && cli->watch_s >= 0.1 && cli->watch_s <= 86400))
		return EXIT_DONE;
	return cli_refuse(cli, EXIT_USAGE, "--watch=%s: seconds from 0.1 to 86400 are accepted",
			  text);
}

/* One option, general or of a command. */
static int take_option(struct cli *cli, int option)
{
	if (option >= OPTION_OF_COMMAND) {
		parse_option(options[option - OPTION_OF_COMMAND].name, optarg);
		return EXIT_DONE;
	}
	switch (option) {
	case 's':
		cli->socket = optarg;
		return EXIT_DONE;
	case 'o':
		return set_output(cli, optarg);
	case 'j':
		return set_output(cli, "json");
	case 'w':
		return set_watch(cli, optarg);
	case 'S':
		cli->sort = optarg;
		table_sort_by(optarg);
		return EXIT_DONE;
	}
	for (size_t i = GENERAL_COUNT; options[i].name; i++)
		if (option == option_letter[i]) {
			parse_option(options[i].name, optarg);
			return EXIT_DONE;
		}
	return EXIT_USAGE;
}

/* ------------------------------------------------------------------ commands without a daemon */

static int cmd_version(const struct cli *cli)
{
	json_t *json = json_pack("{s:s}", "version", SLUICE_VERSION);

	client_print(cli, json);
	json_decref(json);
	return EXIT_DONE;
}

static int no_command(const struct cli *cli, const char *word, const char *second)
{
	size_t length = strlen(word);
	const char *near;
	char both[128];

	snprintf(both, sizeof(both), "%s%s%s", word, second ? " " : "", second ? second : "");
	near = command_suggest(both);
	if (!near && second)
		near = command_suggest(word);
	for (size_t i = 0; !near && i < command_count; i++)
		if (!strncmp(commands[i].name, word, length) && commands[i].name[length] == ' ')
			return cli_refuse(cli, EXIT_USAGE,
					  second ? "unknown command '%s': sluicectl help "
						   "%s lists those of '%s'"
						 : "'%s' needs a subcommand: sluicectl "
						   "help %s lists those of '%s'",
					  both, word, word);
	return cli_refuse(cli, EXIT_USAGE,
			  "unknown command '%s'%s%s%s: sluicectl help lists the commands",
			  near ? both : word, near ? " (did you mean '" : "", near ? near : "",
			  near ? "'?)" : "");
}

/* The command that the words begin with, and how many of them name it. */
static const struct command *find_command(char **word, int count, int *ret_words)
{
	char name[128];
	int row;

	for (int words = count < 2 ? count : 2; words; words--) {
		snprintf(name, sizeof(name), "%s%s%s", word[0], words > 1 ? " " : "",
			 words > 1 ? word[1] : "");
		row = command_find(name);
		*ret_words = words;
		if (row >= 0)
			return &commands[row];
	}
	return NULL;
}

static int help_about(const struct cli *cli, char **word, int count)
{
	const struct command *command;
	int words;

	if (!count) {
		help_write_all(stdout, NULL);
		return EXIT_DONE;
	}
	command = find_command(word, count, &words);
	for (size_t i = 0; !command && count == 1 && i < command_count; i++)
		if (!strncmp(commands[i].name, word[0], strlen(word[0])) &&
		    commands[i].name[strlen(word[0])] == ' ') {
			help_write_all(stdout, word[0]);
			return EXIT_DONE;
		}
	if (!command)
		return no_command(cli, word[0], count > 1 ? word[1] : NULL);
	help_write_command(stdout, command, cli_pair_keys(command->name, ""));
	return EXIT_DONE;
}

static int cmd_help(const struct cli *cli)
{
	const json_t *words = json_object_get(cli->args, "command"), *word;
	char *text[8] = { NULL };
	size_t i;

	if (json_object_get(cli->args, "mdoc")) {
		help_write_mdoc(stdout);
		return EXIT_DONE;
	}
	if (json_object_get(cli->args, "keys")) {
		cli_write_keys(stdout);
		return EXIT_DONE;
	}
	json_array_foreach(words, i, word)
		if (i < 8)
			text[i] = (char *)json_string_value(word);
	return help_about(cli, text, i < 8 ? (int)i : 8);
}

static int cmd_completion(const struct cli *cli)
{
	const char *shell = text_of(cli->args, "shell");

	if (!strcmp(shell, "zsh"))
		fputs("#compdef sluicectl\nautoload -U +X bashcompinit && bashcompinit\n", stdout);
	else if (strcmp(shell, "bash") != 0)
		return cli_refuse(cli, EXIT_USAGE, "no completion for '%s'; accepted: bash, zsh",
				  shell);
	help_write_bash(stdout, cli_pair_keys);
	return EXIT_DONE;
}

/* `source list` as JSON, again and again. */
static int cmd_watch(const struct cli *cli)
{
	struct cli list = *cli;

	list.command = &commands[command_find("source list")];
	list.json = true;
	list.watch_s = 1;
	return client_repeat(&list, client_run);
}

/* Commands with code of their own, and why --watch does not repeat one; NULL: it does. */
static const struct {
	const char *name;
	int (*run)(const struct cli *cli);
	const char *once;
} own[] = {
	{ "check", cmd_check, "it reads files once" },
	{ "rule test", cmd_rule_test, "it reads files once" },
	{ "replay", cmd_replay, "it reads files once" },
	{ "suggest", cmd_suggest, "it looks once, for the time of --for" },
	{ "diff", cmd_diff, NULL },
	{ "why", cmd_why, NULL },
	{ "doctor", cmd_doctor, NULL },
	{ "top", cmd_top, "it repeats by itself" },
	{ "watch", cmd_watch, "it repeats by itself" },
	{ "events", cmd_events, "it repeats by itself" },
	{ "version", cmd_version, "it prints what does not change" },
	{ "help", cmd_help, "it prints what does not change" },
	{ "completion", cmd_completion, "it prints what does not change" },
};

static int run(const struct cli *cli)
{
	int (*once)(const struct cli *cli) = client_run;
	enum command_right right = cli->command->right;
	const char *reason = right == COMMAND_CHANGES	? "it changes the configuration"
			     : right == COMMAND_UPDATES ? "it reports once"
							: NULL;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strcmp(own[i].name, cli->command->name)) {
			once = own[i].run;
			reason = own[i].once;
		}
	if (!strcmp(cli->command->name, "diff") && json_object_get(cli->args, "text"))
		reason = "with FILE it reads that once";
	if (cli->watch_s > 0 && reason)
		return cli_refuse(cli, EXIT_USAGE, "--watch cannot repeat '%s': %s",
				  cli->command->name, reason);
	return cli->watch_s > 0 || once == client_run ? client_repeat(cli, once) : once(cli);
}

int main(int argc, char **argv)
{
	struct cli cli = { .socket = getenv("SLUICE_SOCKET"), .width = show_width() };
	bool help = false, version = false;
	int option, code, words = 0, count;
	char **word;

	if (!cli.socket || !cli.socket[0])
		cli.socket = "/run/sluice/control.sock";
	collect_options();
	opterr = 0;
	while ((option = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		help |= option == 'h';
		version |= option == 'V';
		if (option == 'h' || option == 'V')
			continue;
		if (option == '?')
			return bad_option(&cli, argv[optind - 1]);
		code = take_option(&cli, option);
		if (code != EXIT_DONE)
			return code;
	}
	word = argv + optind;
	count = argc - optind;
	if (help)
		return help_about(&cli, word, count);
	if (!count && !version)
		return cli_refuse(&cli, EXIT_USAGE,
				  "no command given: sluicectl help lists the commands");
	cli.command =
		version ? &commands[command_find("version")] : find_command(word, count, &words);
	if (!cli.command)
		return no_command(&cli, word[0], count > 1 ? word[1] : NULL);
	code = parse_args(&cli, word + words, count - words);
	if (code == EXIT_DONE)
		code = run(&cli);
	json_decref(cli.args);
	return code;
}
