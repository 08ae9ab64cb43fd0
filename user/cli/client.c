// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* client.c - one request to the daemon, one response; see cli.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/show.h"
#include "cli/table.h"

/* A reload of a large file, or an attach on a slow machine, may take this long. */
#define RESPONSE_TIMEOUT_S 60

const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

long long number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

double real_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

void cli_print_json(const struct cli *cli, const json_t *json)
{
	char *text = json_dumps(json, JSON_REAL_PRECISION(15) |
					      (cli->watch_s > 0 ? JSON_COMPACT : JSON_INDENT(2)));

	cli_put(stdout, text ? text : "{}", VISIBLE_JSON);
	putchar('\n');
	free(text);
}

void cli_put(FILE *out, const char *text, enum visible form)
{
	char *visible = visible_new(text, form);

	fputs(visible ? visible : "", out);
	free(visible);
}

/* "FILE:LINE:COLUMN: message", as in the log and in HTTP. */
static int print_error(const struct cli *cli, int code, json_t *error)
{
	const char *file = text_of(error, "file");
	json_t *answer = json_pack("{s:b, s:O}", "ok", 0, "error", error);

	if (cli->json)
		cli_print_json(cli, answer);
	json_decref(answer);
	fputs("sluicectl: ", stderr);
	cli_put(stderr, file, VISIBLE_LINE);
	if (file[0] && number_of(error, "line"))
		fprintf(stderr, ":%lld:%lld: ", number_of(error, "line"),
			number_of(error, "column"));
	else if (file[0])
		fputs(": ", stderr);
	cli_put(stderr, text_of(error, "message"), VISIBLE_TEXT);
	putc('\n', stderr);
	return code;
}

/* The daemon's bound of a file, less room for the other parts of a request. */
#define FILE_MAX (64UL << 20)

static char *read_stream(FILE *in)
{
	char *text = NULL, buf[16384];
	size_t size = 0, n = 0;
	FILE *out = open_memstream(&text, &size);

	while (out && (n = fread(buf, 1, sizeof(buf), in)) > 0 && ftell(out) < (long)FILE_MAX)
		fwrite(buf, 1, n, out);
	if (!out || fclose(out) != 0 || ferror(in) || n) {
		if (n)
			errno = EFBIG;
		free(text);
		return NULL;
	}
	if (strlen(text) == size)
		return text;
	free(text);
	errno = EILSEQ; /* not text: it contains NUL bytes */
	return NULL;
}

int cli_read_file(const struct cli *cli, const char *name, char **ret_text, char **ret_path)
{
	bool standard = !strcmp(name, "-");
	FILE *in = standard ? stdin : fopen(name, "re");
	char *text = in ? read_stream(in) : NULL, *path = NULL, *here;
	int code = errno;

	here = get_current_dir_name();
	if (in && !standard)
		fclose(in);
	if (!text) {
		free(here);
		return cli_refuse(cli, EXIT_REFUSED, "%s: %s", name, strerror(code));
	}
	if (name[0] == '/' || !here)
		path = strdup(name);
	else if (asprintf(&path, "%s/%s", here, standard ? "standard input" : name) < 0)
		path = NULL;
	free(here);
	if (!path) {
		free(text);
		return cli_refuse(cli, EXIT_REFUSED, "out of memory");
	}
	*ret_text = text;
	*ret_path = path;
	return EXIT_DONE;
}

int cli_refuse(const struct cli *cli, int code, const char *format, ...)
{
	json_t *error;
	char *text;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	error = json_pack("{s:s}", "message", text ? text : "out of memory");
	if (!error) /* an argument in the message is not UTF-8 */
		error = json_pack("{s:s}", "message", "an argument is not UTF-8");
	code = print_error(cli, code, error);
	json_decref(error);
	free(text);
	return code;
}

static int connect_to(const struct cli *cli, int *ret_fd)
{
	struct timeval timeout = { .tv_sec = RESPONSE_TIMEOUT_S };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(cli->socket) >= sizeof(addr.sun_path))
		return cli_refuse(cli, EXIT_USAGE,
				  "the socket path '%s' is too long: at most "
				  "%zu characters",
				  cli->socket, sizeof(addr.sun_path) - 1);
	strcpy(addr.sun_path, cli->socket);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		int code = errno;

		if (fd >= 0)
			close(fd);
		if (code == EACCES)
			return cli_refuse(cli, EXIT_REFUSED,
					  "%s: permission denied: access "
					  "needs root or membership in control.group or "
					  "control.read_group",
					  cli->socket);
		return cli_refuse(cli, EXIT_NO_DAEMON,
				  "cannot connect to sluiced on %s (%s): "
				  "is it running? -s selects another socket",
				  cli->socket, strerror(code));
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	*ret_fd = fd;
	return EXIT_DONE;
}

static bool send_all(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t n = send(fd, text, size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		text += n;
		size -= (size_t)n;
	}
	return true;
}

/* The line of the response, or NULL. */
static char *read_line(int fd, size_t *ret_size)
{
	char *line = NULL;
	size_t used = 0, size = 0;

	for (;;) {
		ssize_t n;

		if (used == size) {
			char *more = realloc(line, size ? size * 2 : 65536);

			if (!more)
				break;
			line = more;
			size = size ? size * 2 : 65536;
		}
		n = recv(fd, line + used, size - used, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		used += (size_t)n;
		if (line[used - 1] == '\n') {
			*ret_size = used - 1;
			return line;
		}
	}
	free(line);
	return NULL;
}

/* Sends the request; returns the response as a new reference, or NULL. */
static json_t *exchange(int fd, const json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT);
	char *line = NULL;
	json_t *answer = NULL;
	size_t size;

	/* The daemon may have sent an error before it closed the connection: read even then. */
	if (text && send_all(fd, text, strlen(text)))
		send_all(fd, "\n", 1);
	if (text)
		line = read_line(fd, &size);
	if (line)
		answer = json_loadb(line, size, 0, NULL);
	free(line);
	free(text);
	return answer;
}

/* Appends the arrays of a page to those of the pages before; "next" becomes that of the page. */
static void add_page(json_t *result, const json_t *page)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)page, key, value)
		if (json_is_array(value))
			json_array_extend(json_object_get(result, key), value);
	if (json_object_get(page, "next"))
		json_object_set(result, "next", json_object_get(page, "next"));
	else
		json_object_del(result, "next");
}

static int request_page(const struct cli *cli, const char *command, json_t *args, json_t **ret);

int client_request(const struct cli *cli, const char *command, json_t *args, json_t **ret)
{
	json_t *page, *result = NULL, *of_page;
	int code;

	args = args ? args : json_object();
	code = request_page(cli, command, json_incref(args), &result);
	while (code == EXIT_DONE && json_is_string(json_object_get(result, "next"))) {
		of_page = json_copy(args);
		json_object_set(of_page, "after", json_object_get(result, "next"));
		code = request_page(cli, command, of_page, &page);
		if (code == EXIT_DONE) {
			add_page(result, page);
			json_decref(page);
		}
	}
	json_decref(args);
	if (code == EXIT_DONE)
		*ret = result;
	else
		json_decref(result);
	return code;
}

static int request_page(const struct cli *cli, const char *command, json_t *args, json_t **ret)
{
	json_t *request = json_pack("{s:s, s:o}", "command", command, "args", args);
	json_t *answer;
	int fd = -1, code;

	if (!request)
		return cli_refuse(cli, EXIT_USAGE, "an argument is not UTF-8");
	code = connect_to(cli, &fd);
	if (code != EXIT_DONE) {
		json_decref(request);
		return code;
	}
	answer = exchange(fd, request);
	close(fd);
	json_decref(request);
	if (!answer)
		return cli_refuse(
			cli, EXIT_NO_DAEMON,
			"sluiced on %s closed the connection or did not respond within %d s",
			cli->socket, RESPONSE_TIMEOUT_S);
	if (json_is_true(json_object_get(answer, "ok")))
		*ret = json_incref(json_object_get(answer, "result"));
	else
		code = print_error(cli, EXIT_REFUSED, json_object_get(answer, "error"));
	json_decref(answer);
	return code;
}

void client_begin_text(const struct cli *cli)
{
	if (cli->watch_s > 0 && isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
}

void client_end_text(const struct cli *cli)
{
	if (cli->watch_s > 0 && !isatty(STDOUT_FILENO))
		putchar('\n');
}

void client_print(const struct cli *cli, const json_t *result)
{
	if (cli->json) {
		cli_print_json(cli, result);
		return;
	}
	client_begin_text(cli);
	show_parts(cli->command->show, result, cli->width);
	client_end_text(cli);
}

int client_run(const struct cli *cli)
{
	json_t *result;
	int code = client_request(cli, cli->command->name, json_incref(cli->args), &result);

	if (code != EXIT_DONE)
		return code;
	client_print(cli, result);
	if (cli->sort && !cli->json && !table_was_sorted())
		code = cli_refuse(cli, EXIT_USAGE,
				  "--sort %s: '%s' has no such column; accepted: a heading of "
				  "its table",
				  cli->sort, cli->command->name);
	json_decref(result);
	return code;
}

int client_repeat(const struct cli *cli, int (*once)(const struct cli *cli))
{
	const struct timespec pause = {
		(time_t)cli->watch_s, (long)((cli->watch_s - (double)(time_t)cli->watch_s) * 1e9)
	};
	int code;

	do {
		code = once(cli);
		if (fflush(stdout) != 0 || ferror(stdout))
			return EXIT_REFUSED;
	} while ((code == EXIT_DONE || code == EXIT_DIFFERS) && cli->watch_s > 0 &&
		 nanosleep(&pause, NULL) == 0);
	return code;
}
