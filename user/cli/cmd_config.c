// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_config.c - sluicectl reload, apply, confirm, rollback, save, diff. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/table.h"

/* Live changes that no longer apply, and notes. */
static void print_notes(const json_t *result)
{
	const json_t *words;
	size_t i;

	json_array_foreach(json_object_get(result, "dropped"), i, words)
		printf("dropped: live change '%s', which no longer applies\n", json_string_value(words));
	json_array_foreach(json_object_get(result, "notes"), i, words)
		printf("note: %s\n", json_string_value(words));
}

static void print_reloaded(const json_t *result)
{
	char what[512];

	snprintf(what, sizeof(what), "reloaded %s: %lld limits, generation %lld",
		 text_of(result, "file"), number_of(result, "limits"),
		 number_of(result, "generation"));
	print_change(what, result);
	print_notes(result);
}

int cmd_reload(const struct cli *cli)
{
	return client_show(cli, "reload", NULL, print_reloaded);
}

static void print_applied(const json_t *result)
{
	const char *until = text_of(result, "confirm_until");
	char what[512];

	snprintf(what, sizeof(what), "applied %s: %lld limits, generation %lld",
		 text_of(result, "file"), number_of(result, "limits"),
		 number_of(result, "generation"));
	print_change(what, result);
	print_notes(result);
	if (until[0])
		printf("NOT CONFIRMED: reverts at %s unless 'sluicectl confirm' is run before\n",
		       until);
}

int cmd_apply(const struct cli *cli)
{
	char *text, *path;
	json_t *args;
	int code = cli_read_file(cli, cli->arg[0], &text, &path);

	if (code != EXIT_DONE)
		return code;
	args = json_pack("{s:s, s:s, s:b}", "path", path, "text", text, "discard_live",
			 (cli->given & CLI_DISCARD_LIVE) != 0);
	free(text);
	free(path);
	if (!args)
		return cli_refuse(cli, EXIT_REFUSED, "%s: not UTF-8", cli->arg[0]);
	if (cli->confirm)
		json_object_set_new(args, "confirm", json_string(cli->confirm));
	return client_show(cli, "apply", args, print_applied);
}

static void print_confirmed(const json_t *result)
{
	char what[512];

	snprintf(what, sizeof(what), "confirmed: %s stays in force", text_of(result, "file"));
	print_change(what, result);
}

int cmd_confirm(const struct cli *cli)
{
	return client_show(cli, "confirm", NULL, print_confirmed);
}

static void print_rolled_back(const json_t *result)
{
	char what[768];

	snprintf(what, sizeof(what), "undid: %s; generation %lld", text_of(result, "undid"),
		 number_of(result, "generation"));
	print_change(what, result);
	print_notes(result);
}

static void print_history(const json_t *result)
{
	struct table *table = table_new("WHEN|UID|CHANGE");
	const json_t *change;
	size_t i;

	json_array_foreach(json_object_get(result, "changes"), i, change) {
		table_cell(table, "%s", text_of(change, "when"));
		table_cell(table, "%lld", number_of(change, "uid"));
		table_cell(table, "%s", text_of(change, "what"));
	}
	table_print(table, "no change to undo");
}

int cmd_rollback(const struct cli *cli)
{
	if (cli->given & CLI_LIST)
		return client_show(cli, "rollback list", NULL, print_history);
	return client_show(cli, "rollback", NULL, print_rolled_back);
}

static void print_saved(const json_t *result)
{
	printf("saved %lld live changes to %s (previous file: %s.bak)\n",
	       number_of(result, "saved"), text_of(result, "file"), text_of(result, "file"));
}

int cmd_save(const struct cli *cli)
{
	return client_show(cli, "save", NULL, print_saved);
}

/* The target of an operation and its arguments. */
static void add_details(struct table *table, const json_t *op)
{
	char text[512];
	const json_t *pair;
	size_t used, i;

	used = (size_t)snprintf(text, sizeof(text), "%s%s%s%s%s%s%s", text_of(op, "name"),
				text_of(op, "value")[0] ? " " : "", text_of(op, "value"),
				text_of(op, "prefix"), text_of(op, "interface"),
				text_of(op, "reason")[0] ? " " : "", text_of(op, "reason"));
	json_array_foreach(json_object_get(op, "pairs"), i, pair)
		if (used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, " %s",
						 json_string_value(pair));
	json_array_foreach(json_object_get(op, "prefixes"), i, pair)
		if (used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, " %s",
						 json_string_value(pair));
	table_cell(table, "%s", text);
}

/* ------------------------------------------------------------------ diff FILE */

/* A text in an unlinked file; diff(1) gets it as /dev/fd/N. */
static int text_fd(const char *text)
{
	FILE *file = tmpfile();
	int fd = -1;

	if (file && fputs(text, file) >= 0 && fflush(file) == 0)
		fd = dup(fileno(file));
	if (file)
		fclose(file);
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

/* Runs diff(1) on two texts; its output, or NULL. *ret_status is its exit code. */
static char *run_diff(const char *running, const char *file, const char *label, int *ret_status)
{
	int a = text_fd(running), b = text_fd(file);
	char *command = NULL, *output = NULL, *quoted = strdup(label);
	size_t size;
	FILE *pipe = NULL, *out = open_memstream(&output, &size);
	int c;

	for (char *at = quoted; at && *at; at++)
		if (*at == '\'' || *at == '\n')
			*at = '?';
	if (a >= 0 && b >= 0 && quoted && out &&
	    asprintf(&command, "diff -u --label running --label '%s' /dev/fd/%d /dev/fd/%d", quoted,
		     a, b) >= 0)
		pipe = popen(command, "r");
	while (pipe && (c = getc(pipe)) != EOF)
		putc(c, out);
	if (out)
		fclose(out);
	*ret_status = pipe ? pclose(pipe) : -1;
	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
	free(command);
	free(quoted);
	return output;
}

static int diff_file(const struct cli *cli)
{
	char *text, *path, *output;
	json_t *args, *result;
	int status, code = cli_read_file(cli, cli->arg[0], &text, &path);

	if (code != EXIT_DONE)
		return code;
	args = json_pack("{s:s, s:s}", "path", path, "text", text);
	free(text);
	free(path);
	if (!args)
		return cli_refuse(cli, EXIT_REFUSED, "%s: not UTF-8", cli->arg[0]);
	code = client_request(cli, "diff", args, &result);
	if (code != EXIT_DONE)
		return code;
	output = run_diff(text_of(result, "running"), text_of(result, "file"), cli->arg[0],
			  &status);
	json_decref(result);
	if (!output || status < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > 1) {
		free(output);
		return cli_refuse(cli, EXIT_REFUSED, "cannot run diff(1): is diffutils "
				  "installed?");
	}
	if (cli->json) {
		result = json_pack("{s:b, s:s}", "differs", WEXITSTATUS(status), "diff", output);
		cli_print_json(result);
		json_decref(result);
	} else {
		fputs(output, stdout);
	}
	free(output);
	return WEXITSTATUS(status) ? EXIT_DIFFERS : EXIT_DONE;
}

int cmd_diff(const struct cli *cli)
{
	const json_t *op, *changes;
	struct table *table;
	json_t *result;
	size_t i;
	int code;

	if (cli->arg_count)
		return diff_file(cli);
	code = client_request(cli, "diff", NULL, &result);
	if (code != EXIT_DONE)
		return code;
	changes = json_object_get(result, "changes");
	if (cli->json) {
		cli_print_json(result);
	} else {
		table = table_new("WHEN|UID|CHANGE|");
		json_array_foreach(changes, i, op) {
			table_cell(table, "%s", text_of(op, "when"));
			table_cell(table, "%lld", number_of(op, "uid"));
			table_cell(table, "%s", text_of(op, "op"));
			add_details(table, op);
		}
		table_print(table, "no live changes: the running configuration equals the file");
	}
	code = json_array_size(changes) ? EXIT_DIFFERS : EXIT_DONE;
	json_decref(result);
	return code;
}
