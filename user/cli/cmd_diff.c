// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cmd_diff.c - sluicectl diff: live changes and changed files, or the differences to a file, by
 * diff(1). The exit code states whether there are any.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

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

static int diff_file(const struct cli *cli, const json_t *result)
{
	char *output;
	int status;

	output = run_diff(text_of(result, "running"), text_of(result, "file"),
			  text_of(cli->args, "path"), &status);
	if (!output || status < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > 1) {
		free(output);
		return cli_refuse(cli, EXIT_REFUSED,
				  "cannot run diff(1): is diffutils "
				  "installed?");
	}
	if (cli->json) {
		json_t *json =
			json_pack("{s:b, s:s}", "differs", WEXITSTATUS(status), "diff", output);

		cli_print_json(cli, json);
		json_decref(json);
	} else {
		cli_put(stdout, output, VISIBLE_TEXT);
	}
	free(output);
	return WEXITSTATUS(status) ? EXIT_DIFFERS : EXIT_DONE;
}

int cmd_diff(const struct cli *cli)
{
	json_t *result;
	int code = client_request(cli, "diff", json_incref(cli->args), &result);

	if (code != EXIT_DONE)
		return code;
	if (json_object_get(cli->args, "text")) {
		code = diff_file(cli, result);
	} else {
		client_print(cli, result);
		code = json_array_size(json_object_get(result, "changes")) ||
				       json_array_size(json_object_get(result, "differing"))
			       ? EXIT_DIFFERS
			       : EXIT_DONE;
	}
	json_decref(result);
	return code;
}
