// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * top.c - sluicectl top: the heaviest networks and sources on the whole terminal, from `source
 * list`, each two seconds. Needs 40 columns and 5 lines; no color: what is selected is shown in
 * reverse.
 */
#include <curses.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/table.h"

#define REFRESH_MS 2000
#define ROWS_MAX 500
#define LINE_MAX_ 256
#define BAR 8
#define KEY_ESCAPE 27

struct top {
	const struct cli *cli;
	/* of source list, whose networks are rows like its sources; NULL: none yet */
	json_t *result;
	const char *by;
	char within[64], limit[64], interface[16]; /* "": all */
	char selected[64];			   /* the source; "": the first */
	char message[LINE_MAX_];
	bool frozen;
};

static const char *const orders[] = { "drops", "passes", "bits", "connections" };

static const json_t *sources(const struct top *top)
{
	return json_object_get(top->result, "sources");
}

/* The row of the selected source; 0 where it is no longer listed. */
static size_t selected_row(const struct top *top)
{
	const json_t *source;
	size_t i;

	json_array_foreach(sources(top), i, source)
		if (!strcmp(text_of(source, "source"), top->selected))
			return i;
	return 0;
}

static const json_t *selected_source(const struct top *top)
{
	return json_array_get(sources(top), selected_row(top));
}

static void select_row(struct top *top, long row)
{
	long count = (long)json_array_size(sources(top));

	if (row >= count)
		row = count - 1;
	snprintf(top->selected, sizeof(top->selected), "%s",
		 row < 0 ? "" : text_of(json_array_get(sources(top), (size_t)row), "source"));
}

/* ------------------------------------------------------------------ requests */

/*
 * Sends a request; errors become the message. The terminal is curses': what the client prints of an
 * error goes to a memory stream instead.
 */
static json_t *request(struct top *top, const char *command, json_t *args)
{
	char *said = NULL;
	size_t size;
	FILE *memory = open_memstream(&said, &size), *error = stderr;
	struct cli quiet = *top->cli;
	json_t *result = NULL;

	quiet.json = false;
	if (memory)
		stderr = memory;
	if (client_request(&quiet, command, args, &result) != EXIT_DONE)
		result = NULL;
	stderr = error;
	if (memory)
		fclose(memory);
	if (said && said[0])
		snprintf(top->message, sizeof(top->message), "%.*s", (int)strcspn(said, "\n"),
			 said);
	free(said);
	return result;
}

/* Takes the reply over: its networks are the first rows. */
static void take_result(struct top *top, json_t *result)
{
	json_t *rows = json_array();

	json_array_extend(rows, json_object_get(result, "networks"));
	json_array_extend(rows, json_object_get(result, "sources"));
	json_object_set_new(result, "sources", rows);
	json_decref(top->result);
	top->result = result;
}

static void refresh_sources(struct top *top)
{
	json_t *args = json_pack("{s:s, s:i}", "by", top->by, "count", ROWS_MAX), *result;

	if (top->within[0])
		json_object_set_new(args, "within", json_string(top->within));
	if (top->limit[0])
		json_object_set_new(args, "limit", json_string(top->limit));
	if (top->interface[0])
		json_object_set_new(args, "interface", json_string(top->interface));
	result = request(top, "source list", args);
	if (result)
		take_result(top, result);
}

/* ------------------------------------------------------------------ the screen */

/* A line of the screen, cut at its width and padded. */
static void put_line(int y, bool reverse, const char *text)
{
	if (y < 0 || y >= LINES)
		return;
	if (reverse)
		attron(A_REVERSE);
	mvprintw(y, 0, "%-*.*s", COLS, COLS, text);
	if (reverse)
		attroff(A_REVERSE);
}

/* "#####-----" of the bucket's fill; empty without one. */
static void put_bar(const json_t *source, char *bar)
{
	double used = (double)number_of(source, "used"), of = (double)number_of(source, "capacity");
	int full = of > 0 ? (int)(used / of * BAR + 0.5) : 0;

	memset(bar, ' ', BAR);
	if (of > 0) {
		memset(bar, '-', BAR);
		memset(bar, '#', (size_t)(full > BAR ? BAR : full));
	}
	bar[BAR] = '\0';
}

static double per_second(const json_t *source, const char *verdict)
{
	return real_of(json_object_get(source, verdict), "per_second");
}

static void put_network(int y, bool reverse, const json_t *network)
{
	const char *about = json_is_true(json_object_get(network, "estimated")) ? "~" : "";
	char dropped[32], passed[32], bits[32], opened[32], line[LINE_MAX_];

	snprintf(line, sizeof(line), "%-22s%1s %6s %6s %6s %5s %lld%s sources  %s",
		 text_of(network, "source"), about,
		 short_rate(per_second(network, "dropped"), dropped, sizeof(dropped)),
		 short_rate(per_second(network, "passed"), passed, sizeof(passed)),
		 short_rate(real_of(network, "bits_per_second"), bits, sizeof(bits)),
		 short_rate(real_of(network, "opened_per_second"), opened, sizeof(opened)),
		 number_of(network, "sources"), about[0] ? "+" : "", text_of(network, "state"));
	put_line(y, reverse, line);
}

static void put_source(int y, bool reverse, const json_t *source)
{
	char dropped[32], passed[32], bits[32], opened[32], bar[BAR + 1], line[LINE_MAX_];
	const char *limit = text_of(source, "limit");
	long long users = number_of(json_object_get(source, "users"), "users");
	char more[64] = "";

	put_bar(source, bar);
	if (users)
		snprintf(more, sizeof(more), " %lld users", users);
	snprintf(line, sizeof(line), "%-23s %6s %6s %6s %5s %s %-11.11s %-8.8s%s",
		 text_of(source, "source"),
		 short_rate(per_second(source, "dropped"), dropped, sizeof(dropped)),
		 short_rate(per_second(source, "passed"), passed, sizeof(passed)),
		 short_rate(real_of(source, "bits_per_second"), bits, sizeof(bits)),
		 short_rate(real_of(source, "opened_per_second"), opened, sizeof(opened)), bar,
		 limit[0] ? limit : text_of(source, "reason"), text_of(source, "state"), more);
	put_line(y, reverse, line);
}

static void draw(const struct top *top)
{
	size_t networks = json_array_size(json_object_get(top->result, "networks"));
	size_t count = json_array_size(sources(top)) - networks;
	size_t row = selected_row(top), first = 0, room = LINES > 4 ? (size_t)LINES - 4 : 1, i;
	char line[LINE_MAX_], clock[16];
	const json_t *source;
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	erase();
	snprintf(line, sizeof(line), "sluice top  %s  by %s%s%s%s%s%s%s%s  %zu source%s", clock,
		 top->by, top->within[0] ? "  within " : "", top->within,
		 top->limit[0] ? "  limit " : "", top->limit, top->interface[0] ? "  on " : "",
		 top->interface, top->frozen ? "  FROZEN" : "", count, count == 1 ? "" : "s");
	put_line(0, false, line);
	put_line(1, true,
		 "SOURCE                  DROP/S PASS/S  BIT/S SYN/S BUCKET   BY          STATE");
	if (row >= room)
		first = row - room + 1;
	json_array_foreach(sources(top), i, source)
		if (i >= first && i < first + room)
			(i < networks ? put_network : put_source)(2 + (int)(i - first), i == row,
								  source);
	if (!json_array_size(sources(top)))
		put_line(3, false, "no packets in the last seconds");
	put_line(LINES - 2, false, top->message);
	put_line(LINES - 1, true,
		 "q quit s sort p net l limit i iface f freeze b block e exempt o override x why");
	refresh();
}

/* A line of text, typed at the bottom; false: given up with Escape. */
static bool ask(const struct top *top, const char *question, char *ret, size_t size)
{
	size_t length = strlen(ret);
	char line[LINE_MAX_];
	int key;

	timeout(-1);
	for (;;) {
		draw(top);
		snprintf(line, sizeof(line), "%s%s", question, ret);
		put_line(LINES - 2, false, line);
		move(LINES - 2, (int)strlen(line) < COLS ? (int)strlen(line) : COLS - 1);
		refresh();
		key = getch();
		if (key == KEY_ESCAPE || key == ERR || key == '\n' || key == KEY_ENTER)
			break;
		if ((key == KEY_BACKSPACE || key == 127 || key == 8) && length)
			ret[--length] = '\0';
		if (key >= ' ' && key < 127 && length + 1 < size) {
			ret[length++] = (char)key;
			ret[length] = '\0';
		}
	}
	timeout(REFRESH_MS);
	return key == '\n' || key == KEY_ENTER;
}

static bool confirms(const struct top *top, const char *question)
{
	int key;

	timeout(-1);
	put_line(LINES - 2, true, question);
	refresh();
	key = getch();
	timeout(REFRESH_MS);
	return key == 'y' || key == 'Y';
}

/* ------------------------------------------------------------------ keys */

/* Blocks or exempts the selected source for ten minutes. */
static void list_add(struct top *top, const char *command, const char *what, const char *done)
{
	const json_t *source = selected_source(top);
	char name[64], question[LINE_MAX_];
	json_t *result;

	if (!source)
		return;
	snprintf(name, sizeof(name), "%s", text_of(source, "source"));
	snprintf(question, sizeof(question), "%s %s for 10 minutes? y/n", what, name);
	if (!confirms(top, question))
		return;
	result = request(top, command,
			 json_pack("{s:s, s:s, s:s}", "prefix", name, "for", "10m", "reason",
				   "sluicectl top"));
	if (result)
		snprintf(top->message, sizeof(top->message), "%s %s", name, done);
	json_decref(result);
}

/* An override of the limit that refused the source last. */
static void override(struct top *top)
{
	const json_t *source = selected_source(top);
	char pairs[128] = "rate=", name[64], limit[64], question[LINE_MAX_];
	json_t *result;

	if (!source || !text_of(source, "limit")[0]) {
		snprintf(top->message, sizeof(top->message), "no limit has refused the source");
		return;
	}
	snprintf(name, sizeof(name), "%s", text_of(source, "source"));
	snprintf(limit, sizeof(limit), "%s", text_of(source, "limit"));
	snprintf(question, sizeof(question), "override of %s in %s: ", name, limit);
	if (!ask(top, question, pairs, sizeof(pairs)))
		return;
	result =
		request(top, "override set",
			json_pack("{s:s, s:s, s:[s]}", "name", limit, "src", name, "pairs", pairs));
	if (result)
		snprintf(top->message, sizeof(top->message), "%.60s has %.100s in %.60s", name,
			 pairs, limit);
	json_decref(result);
}

static void explain(struct top *top)
{
	const json_t *source = selected_source(top), *verdict;
	char address[64];
	json_t *result;

	if (!source)
		return;
	/* Of a /64 its first address. */
	snprintf(address, sizeof(address), "%.*s", (int)strcspn(text_of(source, "source"), "/"),
		 text_of(source, "source"));
	result = request(top, "explain", json_pack("{s:s}", "source", address));
	verdict = json_object_get(result, "verdict");
	if (verdict)
		snprintf(top->message, sizeof(top->message), "%s: %s (%s)%s%s", address,
			 text_of(verdict, "action"), text_of(verdict, "reason"),
			 text_of(verdict, "limit")[0] ? " by limit " : "",
			 text_of(verdict, "limit"));
	json_decref(result);
}

static void next_order(struct top *top)
{
	size_t i;

	for (i = 0; i < sizeof(orders) / sizeof(orders[0]) - 1; i++)
		if (!strcmp(top->by, orders[i]))
			break;
	top->by = orders[(i + 1) % (sizeof(orders) / sizeof(orders[0]))];
}

/* Only the sources of the selected one's limit, or all again. */
static void toggle_limit(struct top *top)
{
	const char *limit = text_of(selected_source(top), "limit");

	if (top->limit[0])
		top->limit[0] = '\0';
	else
		snprintf(top->limit, sizeof(top->limit), "%s", limit);
}

/* Only the sources of the selected one's interface, or all again. */
static void toggle_interface(struct top *top)
{
	const char *interface = text_of(selected_source(top), "interface");

	if (top->interface[0])
		top->interface[0] = '\0';
	else
		snprintf(top->interface, sizeof(top->interface), "%s", interface);
}

/* Returns false to end. */
static bool take_key(struct top *top, int key)
{
	long row = (long)selected_row(top);

	if (key != ERR && key != KEY_RESIZE)
		top->message[0] = '\0';
	switch (key) {
	case 'q':
		return false;
	case KEY_DOWN:
	case 'j':
		select_row(top, row + 1);
		return true;
	case KEY_UP:
	case 'k':
		select_row(top, row ? row - 1 : 0);
		return true;
	case KEY_NPAGE:
		select_row(top, row + LINES - 4);
		return true;
	case KEY_PPAGE:
		select_row(top, row > LINES - 4 ? row - (LINES - 4) : 0);
		return true;
	case 'f':
		top->frozen = !top->frozen;
		return true;
	case 's':
		next_order(top);
		break;
	case 'l':
		toggle_limit(top);
		break;
	case 'i':
		toggle_interface(top);
		break;
	case 'p':
		ask(top, "prefix, empty for all: ", top->within, sizeof(top->within));
		break;
	case 'b':
		list_add(top, "block add", "block", "is blocked for 10 minutes");
		break;
	case 'e':
		list_add(top, "exempt add", "exempt", "is exempt for 10 minutes");
		break;
	case 'o':
		override(top);
		break;
	case 'x':
		explain(top);
		break;
	}
	if (!top->frozen && key != KEY_RESIZE)
		refresh_sources(top);
	return true;
}

int cmd_top(const struct cli *cli)
{
	struct top top = { .cli = cli, .by = "drops" };
	json_t *result;
	int code = EXIT_DONE;

	if (json_object_get(cli->args, "at") || json_object_get(cli->args, "to"))
		return why_top(cli);
	if (json_object_get(cli->args, "count"))
		return cli_refuse(cli, EXIT_USAGE, "--count is accepted with --at");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return cli_refuse(cli, EXIT_USAGE,
				  "top needs a terminal; for pipes there is sluicectl watch");
	if (text_of(cli->args, "by")[0])
		top.by = text_of(cli->args, "by");
	snprintf(top.within, sizeof(top.within), "%s", text_of(cli->args, "within"));
	/* The first request before the screen changes: its error is printed as that of any
	 * command. */
	code = client_request(cli, "source list", json_pack("{s:s}", "by", top.by), &result);
	if (code != EXIT_DONE)
		return code;
	take_result(&top, result);
	setlocale(LC_ALL, "");
	if (!initscr())
		return cli_refuse(cli, EXIT_REFUSED, "the terminal '%s' is not known",
				  getenv("TERM"));
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	timeout(REFRESH_MS);
	refresh_sources(&top);
	do
		draw(&top);
	while (take_key(&top, getch()));
	endwin();
	json_decref(top.result);
	return code;
}
