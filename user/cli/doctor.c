// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* doctor.c - see doctor.h. */
#include "cli/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/show.h"

#define CONFIG "/etc/sluice/sluice.yaml"

static const char *const level_name[LEVEL_COUNT] = {
	[LEVEL_OK] = "ok",
	[LEVEL_WARN] = "warn",
	[LEVEL_BAD] = "bad",
	[LEVEL_UNKNOWN] = "unknown",
};

void doctor_found(struct doctor *d, enum level level, const char *mend, const char *format, ...)
{
	json_t *result;
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	d->count[level]++;
	result = json_pack("{s:s, s:s, s:s, s:s}", "level", level_name[level], "check",
			   d->now->name, "found", text, "why", d->now->why);
	if (!result) /* a name that is not UTF-8 */
		return;
	if (d->ifname)
		json_object_set_new(result, "interface", json_string(d->ifname));
	if (mend && level != LEVEL_OK)
		json_object_set_new(result, "mend", json_string(mend));
	json_array_append_new(d->results, result);
}

bool doctor_read(const char *path, char *buf, size_t size)
{
	FILE *file = fopen(path, "re");
	bool good = file && fgets(buf, (int)size, file);

	if (file)
		fclose(file);
	if (good)
		buf[strcspn(buf, "\n")] = '\0';
	return good;
}

long doctor_cpus(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count > 0 ? count : 1;
}

/* ------------------------------------------------------------------ what the checks look at */

/* Asks the daemon without printing an error: that it does not answer is a finding. */
static json_t *ask(struct doctor *d, const char *command)
{
	char *said = NULL;
	size_t size;
	FILE *memory = open_memstream(&said, &size), *error = stderr;
	struct cli quiet = *d->cli;
	json_t *result = NULL;
	int code = EXIT_REFUSED;

	quiet.json = false;
	if (memory) {
		stderr = memory;
		code = client_request(&quiet, command, NULL, &result);
		stderr = error;
		fclose(memory);
	}
	if (code != EXIT_DONE) {
		const char *words = !said				? "out of memory"
				    : !strncmp(said, "sluicectl: ", 11) ? said + 11
									: said;

		result = NULL;
		d->not_running = code == EXIT_NO_DAEMON;
		snprintf(d->no_daemon, sizeof(d->no_daemon), "%.*s", (int)strcspn(words, "\n"),
			 words);
	}
	free(said);
	return result;
}

/* The file that was given, that of the daemon, or the usual one. */
static void read_config(struct doctor *d)
{
	const char *given = text_of(d->cli->args, "config"),
		   *running = text_of(d->status, "config");
	const char *path = given[0] ? given : running[0] ? running : CONFIG;

	snprintf(d->config_path, sizeof(d->config_path), "%s", path);
	if (!given[0] && access(path, F_OK) != 0 && errno == ENOENT)
		return;
	if (check_facts(path, &d->config, d->config_error, sizeof(d->config_error)) < 0)
		d->config = NULL;
}

static void run_checks(struct doctor *d, const struct check *check)
{
	for (; check->name; check++) {
		d->now = check;
		check->run(d);
	}
}

static void run_interface(struct doctor *d, const char *name)
{
	const json_t *entry;
	size_t i;

	d->ifname = name;
	d->iface = NULL;
	json_array_foreach(json_object_get(d->status, "interfaces"), i, entry)
		if (!strcmp(text_of(entry, "name"), name))
			d->iface = entry;
	if (text_of(d->iface, "renamed")[0])
		d->ifname = text_of(d->iface, "renamed");
	run_checks(d, doctor_nic_checks);
	d->ifname = NULL;
}

/* The interfaces of the daemon, then those that only the file has. */
static void run_interfaces(struct doctor *d)
{
	const json_t *running = json_object_get(d->status, "interfaces"), *entry, *other;
	size_t i, k;

	json_array_foreach(running, i, entry)
		run_interface(d, text_of(entry, "name"));
	json_array_foreach(json_object_get(d->config, "interfaces"), i, entry) {
		bool known = false;

		json_array_foreach(running, k, other)
			known |= !strcmp(text_of(other, "name"), text_of(entry, "name"));
		if (!known)
			run_interface(d, text_of(entry, "name"));
	}
}

/* ------------------------------------------------------------------ printing */

static void print_result(const struct cli *cli, const json_t *result)
{
	static const char *const color[LEVEL_COUNT] = { "32", "33", "31", "36" };
	const char *level = text_of(result, "level"), *interface = text_of(result, "interface");
	const char *mend = text_of(result, "mend");
	char *found = visible_new(text_of(result, "found"), VISIBLE_LINE), head[256];
	int at = 0;

	while (at < LEVEL_COUNT - 1 && strcmp(level_name[at], level) != 0)
		at++;
	snprintf(head, sizeof(head), "%s%s%s: %s", interface, interface[0] ? " " : "",
		 text_of(result, "check"), "");
	show_color(color[at]);
	printf("%-8s", level);
	show_color(NULL);
	fputs(head, stdout);
	help_fold(stdout, found ? found : "", 8 + strlen(head), 8);
	free(found);
	if (at != LEVEL_OK || json_object_get(cli->args, "why")) {
		fputs("        Why: ", stdout);
		help_fold(stdout, text_of(result, "why"), 13, 13);
	}
	/* A command stays on its line, to be copied. */
	if (mend[0])
		printf("        Do:  %s\n", mend);
}

static void print(const struct doctor *d)
{
	const json_t *result;
	json_t *all;
	size_t i;

	if (d->cli->json) {
		all = json_pack("{s:O, s:i, s:i, s:i, s:i}", "checks", d->results, "ok",
				d->count[LEVEL_OK], "warn", d->count[LEVEL_WARN], "bad",
				d->count[LEVEL_BAD], "unknown", d->count[LEVEL_UNKNOWN]);
		cli_print_json(d->cli, all);
		json_decref(all);
		return;
	}
	client_begin_text(d->cli);
	json_array_foreach(d->results, i, result)
		print_result(d->cli, result);
	printf("\n%d ok, %d warn, %d bad, %d unknown\n", d->count[LEVEL_OK], d->count[LEVEL_WARN],
	       d->count[LEVEL_BAD], d->count[LEVEL_UNKNOWN]);
	client_end_text(d->cli);
}

int cmd_doctor(const struct cli *cli)
{
	struct doctor d = { .cli = cli, .results = json_array() };

	d.status = ask(&d, "status");
	if (d.status)
		d.stats = ask(&d, "stats");
	if (d.status)
		d.deferred = ask(&d, "defer list");
	read_config(&d);
	run_checks(&d, doctor_host_checks);
	run_checks(&d, doctor_daemon_checks);
	run_interfaces(&d);
	print(&d);
	json_decref(d.results);
	json_decref(d.status);
	json_decref(d.stats);
	json_decref(d.deferred);
	json_decref(d.config);
	if (cli->watch_s > 0) /* not a failure that ends it */
		return EXIT_DONE;
	return d.count[LEVEL_BAD] ? 2 : d.count[LEVEL_WARN] ? 1 : 0;
}
