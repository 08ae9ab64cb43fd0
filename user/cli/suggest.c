// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * suggest.c - sluicectl suggest: from a file as replay.c, or from live traffic, which the daemon
 * shows: its heaviest sources and users, as often as they are counted anew. It changes nothing but
 * the file of
 * --write.
 */
#include "replay/suggest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "lib/addr.h"
#include "lib/clock.h"
#include "lib/json.h"
#include "lib/units.h"
#include "sluice/heavy.h"

#define FOR_NS (60 * SL_NS_PER_SEC)
#define SOURCES_MAX 10000 /* of one look */
#define USERS_MAX 512

static const char *option(const struct cli *cli, const char *key)
{
	const char *text = text_of(cli->args, key);

	return text[0] ? text : NULL;
}

/* One look at who sends; the rates are means of the last 4 to 9 s. */
static int look(const struct cli *cli, struct suggest *suggest, u64 number)
{
	json_t *result, *source;
	size_t i;
	int code = client_request(cli, "source list",
				  json_pack("{s:i, s:b}", "count", SOURCES_MAX, "all", 1), &result);

	if (code != EXIT_DONE)
		return code;
	json_array_foreach(json_object_get(result, "sources"), i, source) {
		const json_t *passed = json_object_get(source, "passed"),
			     *dropped = json_object_get(source, "dropped");
		double rate = real_of(passed, "per_second") + real_of(dropped, "per_second");
		u64 packets = (u64)(number_of(passed, "packets") + number_of(passed, "missed") +
				    number_of(dropped, "packets") + number_of(dropped, "missed"));
		struct sl_prefix prefix;
		const char *reason;

		if (sl_prefix_parse(text_of(source, "source"), &prefix, &reason))
			continue;
		suggest_packets(suggest, prefix.addr, prefix.family, (u64)(rate + 0.999), packets,
				number);
	}
	json_decref(result);
	return EXIT_DONE;
}

/* Who requests; means of the last 5 to 10 s. */
static int look_at_users(const struct cli *cli, struct suggest *suggest, u64 number)
{
	json_t *result, *user;
	size_t i;
	int code =
		client_request(cli, "user list", json_pack("{s:i}", "count", USERS_MAX), &result);

	if (code != EXIT_DONE)
		return code;
	json_array_foreach(json_object_get(result, "users"), i, user) {
		double rate = real_of(json_object_get(user, "passed"), "per_second") +
			      real_of(json_object_get(user, "refused"), "per_second");

		suggest_user(suggest, text_of(user, "rule"), text_of(user, "value"),
			     (u64)(rate * 60 + 0.999), number);
	}
	json_decref(result);
	return EXIT_DONE;
}

static int watch_live(const struct cli *cli, u64 for_ns, u32 permille, json_t **ret)
{
	u64 began_ns = clock_mono_ns(), number = 0;
	struct suggest *suggest;
	bool packets, requests;
	json_t *result;
	/* Without a daemon: now, not after the first look. */
	int code = client_request(cli, "status", NULL, &result);

	if (code != EXIT_DONE)
		return code;
	packets = json_is_true(json_object_get(result, "packet_tier"));
	requests = json_is_object(json_object_get(result, "http"));
	json_decref(result);

	if (suggest_open(SUGGEST_LIVE, &suggest))
		return cli_refuse(cli, EXIT_REFUSED, "out of memory");
	do {
		u64 left_ns = began_ns + for_ns - clock_mono_ns();
		u64 wait_ns = for_ns && left_ns < SL_HEAVY_WINDOW_NS ? left_ns : SL_HEAVY_WINDOW_NS;
		struct timespec pause = { wait_ns / SL_NS_PER_SEC, wait_ns % SL_NS_PER_SEC };

		nanosleep(&pause, NULL);
		number++;
		code = packets || !requests ? look(cli, suggest, number) : EXIT_DONE;
		if (code == EXIT_DONE && requests)
			code = look_at_users(cli, suggest, number);
	} while (code == EXIT_DONE && clock_mono_ns() - began_ns < for_ns);
	*ret = code == EXIT_DONE ? suggest_report(suggest, permille) : NULL;
	if (*ret) {
		json_object_set_new(*ret, "input", json_string("live traffic"));
		json_object_set_new(*ret, "looks", json_u64(number));
		json_object_set_new(*ret, "span_ns", json_u64(clock_mono_ns() - began_ns));
	}
	suggest_close(suggest);
	return code;
}

static int from_file(const struct cli *cli, u32 permille, json_t **ret)
{
	struct suggest_plan plan = { .input = option(cli, "from"),
				     .filter = option(cli, "filter"),
				     .domain = option(cli, "domain"),
				     .permille = permille };
	struct sl_err err = { .message = "" };

	return suggest_run(&plan, ret, &err) ? cli_print_bad(cli, &err) : EXIT_DONE;
}

static int read_options(const struct cli *cli, u32 *ret_permille, u64 *ret_for_ns)
{
	const char *share = option(cli, "share"), *time = option(cli, "for"), *reason;

	if (share && (percent_parse(share, ret_permille) || *ret_permille > 500))
		return cli_refuse(cli, EXIT_USAGE, "--share %s: 0%% to 50%% are accepted, as 0.1%%",
				  share);
	if (time && duration_parse(time, ret_for_ns, &reason))
		return cli_refuse(cli, EXIT_USAGE, "--for %s: %s", time, reason);
	if (*ret_for_ns > 86400 * SL_NS_PER_SEC)
		return cli_refuse(cli, EXIT_USAGE, "--for %s: up to a day is accepted", time);
	return EXIT_DONE;
}

int cmd_suggest(const struct cli *cli)
{
	const char *file = option(cli, "write");
	struct sl_err err = { .message = "" };
	json_t *report = NULL;
	u64 for_ns = FOR_NS;
	u32 permille = 1;
	int code = read_options(cli, &permille, &for_ns);

	if (code == EXIT_DONE)
		code = option(cli, "from") ? from_file(cli, permille, &report)
					   : watch_live(cli, for_ns, permille, &report);
	if (code != EXIT_DONE)
		return code;
	if (!report)
		return cli_refuse(cli, EXIT_REFUSED, "out of memory");
	if (file && suggest_write(file, report, &err))
		code = cli_print_bad(cli, &err);
	else if (file)
		json_object_set_new(report, "written", json_string(file));
	if (code == EXIT_DONE)
		client_print(cli, report);
	if (code == EXIT_DONE && text_of(report, "damage")[0]) {
		fprintf(stderr, "%s\n", text_of(report, "damage"));
		code = EXIT_REFUSED;
	}
	json_decref(report);
	return code;
}
