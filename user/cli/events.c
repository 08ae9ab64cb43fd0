// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * events.c - sluicectl events: follows `events list`, five times a second, as text, as JSON lines
 * or as pcapng. The daemon keeps the last of each kind; what is overwritten before it is read is
 * counted on stderr.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/pcapng.h"
#include "cli/show.h"
#include "version.h"

#define PAUSE_NS 200000000
#define READ_COUNT 1000
#define FRAME_MAX 128

struct follow {
	const struct cli *cli;
	struct pcapng pcapng;
	FILE *pcap;	 /* NULL: text or JSON */
	long long after; /* the last event that was read */
	long long left;	 /* events until the end; -1: none */
};

static json_t *wanted(const struct follow *f, long long count)
{
	static const char *const passed[] = { "within", "limit", "kind" };
	json_t *args = json_object();

	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		if (json_object_get(f->cli->args, passed[i]))
			json_object_set(args, passed[i], json_object_get(f->cli->args, passed[i]));
	json_object_set_new(args, "count", json_integer(count));
	if (f->pcap)
		json_object_set_new(args, "frames", json_true());
	return args;
}

/* ------------------------------------------------------------------ output */

static uint32_t read_hex(const char *text, uint8_t *bytes, uint32_t room)
{
	uint32_t count = 0;
	unsigned int byte;

	while (count < room && sscanf(text, "%2x", &byte) == 1) {
		bytes[count++] = (uint8_t)byte;
		text += 2;
	}
	return count;
}

/* False: the event is no dropped packet with bytes. */
static bool print_packet(struct follow *f, const json_t *event)
{
	const char *limit = text_of(event, "limit");
	uint8_t frame[FRAME_MAX];
	char comment[256];
	struct pcapng_packet packet = {
		.at_ns = (uint64_t)number_of(event, "at_ns"),
		.interface = text_of(event, "interface"),
		.raw = !strcmp(text_of(event, "link"), "ip"),
		.frame = frame,
		.captured = read_hex(text_of(event, "frame"), frame, sizeof(frame)),
		.length = (uint32_t)number_of(event, "length"),
		.comment = comment,
	};

	if (strcmp(text_of(event, "kind"), "drop") != 0 || !packet.captured)
		return false;
	snprintf(comment, sizeof(comment), "sluice: %s, reason %s%s%s, 1 of %lld",
		 text_of(event, "verdict"), text_of(event, "reason"), limit[0] ? ", limit " : "",
		 limit, number_of(event, "packets") > 1 ? number_of(event, "packets") : 1);
	pcapng_write(&f->pcapng, &packet);
	return true;
}

static bool print_event(struct follow *f, json_t *event)
{
	json_t *result;
	char *text;

	if (f->pcap)
		return print_packet(f, event);
	if (f->cli->json) {
		text = json_dumps(event, JSON_COMPACT);
		cli_put(stdout, text ? text : "{}", VISIBLE_JSON);
		putchar('\n');
		free(text);
		return true;
	}
	result = json_pack("{s:[O]}", "events", event);
	show_parts(f->cli->command->show, result, f->cli->width);
	json_decref(result);
	return true;
}

static int print_events(struct follow *f, const json_t *result)
{
	json_t *event;
	size_t i;

	if (number_of(result, "missed"))
		fprintf(stderr, "sluicectl: up to %lld events came faster than they were read\n",
			number_of(result, "missed"));
	json_array_foreach(json_object_get(result, "events"), i, event)
		if (f->left && print_event(f, event) && f->left > 0)
			f->left--;
	f->after = number_of(result, "next");
	errno = 0;
	if (fflush(f->pcap ? f->pcap : stdout) == 0)
		return EXIT_DONE;
	/* The reader ended, as tcpdump -c does: no error. */
	return errno == EPIPE
		       ? EXIT_DONE
		       : cli_refuse(f->cli, EXIT_REFUSED, "cannot write: %s", strerror(errno));
}

/* ------------------------------------------------------------------ the command */

static int open_pcap(struct follow *f)
{
	const char *name = text_of(f->cli->args, "pcap");

	if (!name[0])
		return EXIT_DONE;
	if (!strcmp(name, "-") && isatty(STDOUT_FILENO))
		return cli_refuse(f->cli, EXIT_USAGE,
				  "--pcap - writes binary data: give a file, or a pipe "
				  "as in sluicectl events --pcap - | tcpdump -r -");
	f->pcap = strcmp(name, "-") ? fopen(name, "we") : stdout;
	if (!f->pcap)
		return cli_refuse(f->cli, EXIT_REFUSED, "cannot write %s: %s", name,
				  strerror(errno));
	pcapng_begin(&f->pcapng, f->pcap, FRAME_MAX, "sluicectl " SLUICE_VERSION);
	fflush(f->pcap);
	return EXIT_DONE;
}

static int read_events(struct follow *f, json_t *args)
{
	json_t *result;
	int code = client_request(f->cli, "events list", args, &result);

	if (code != EXIT_DONE)
		return code;
	code = print_events(f, result);
	json_decref(result);
	return code;
}

/* From the present on, or with --last from before. */
static int begin(struct follow *f)
{
	long long last = number_of(f->cli->args, "last"), left = f->left;
	int code;

	if (!last)
		f->left = 0; /* only where to begin */
	code = read_events(f, wanted(f, last ? last : 1));
	if (!last)
		f->left = left;
	return code;
}

int cmd_events(const struct cli *cli)
{
	const struct timespec pause = { 0, PAUSE_NS };
	struct follow f = { .cli = cli, .left = -1 };
	json_t *args;
	int code = open_pcap(&f);

	if (json_object_get(cli->args, "count"))
		f.left = number_of(cli->args, "count");
	if (code == EXIT_DONE)
		code = begin(&f);
	while (code == EXIT_DONE && f.left && !ferror(f.pcap ? f.pcap : stdout)) {
		nanosleep(&pause, NULL);
		args = wanted(&f, READ_COUNT);
		if (f.after)
			json_object_set_new(args, "after", json_integer(f.after));
		code = read_events(&f, args);
	}
	if (f.pcap && f.pcap != stdout && fclose(f.pcap) && code == EXIT_DONE)
		code = cli_refuse(cli, EXIT_REFUSED, "cannot write %s: %s",
				  text_of(cli->args, "pcap"), strerror(errno));
	return code;
}
