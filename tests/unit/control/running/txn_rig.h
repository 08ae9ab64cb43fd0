/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* txn_rig.h - daemon_rig.h and common parts of tests of whole files. */
#ifndef SLUICE_TEST_TXN_RIG_H
#define SLUICE_TEST_TXN_RIG_H

#include "lib/daemon_rig.h"

#define ALL "limits: [{name: all, rate: 10 packets/s, burst: 10, accounting: exact}]\n"
#define FIVE "limits: [{name: all, rate: 5 packets/s, burst: 5, accounting: exact}]\n"
#define TWENTY "limits: [{name: all, rate: 20 packets/s, burst: 20, accounting: exact}]\n"
#define SET(rate) "limit set {'name':'all','pairs':['rate=" rate " packets/s','burst=" rate "']}"

/* A request as a line, until the next call. */
static const char *request(const char *command, json_t *args)
{
	static char *line;
	json_t *json = json_pack("{s:s, s:o}", "command", command, "args", args);

	free(line);
	line = json_dumps(json, 0);
	assert_non_null(line);
	json_decref(json);
	return line;
}

/* As rig_write() would have it in the file. */
static char *whole(const struct rig *rig, const char *text)
{
	char *all;

	assert_true(asprintf(&all, "state_dir: %s\ncontrol: {socket: %s/control.sock}\n%s",
			     rig->dir, rig->dir, text) > 0);
	return all;
}

static const char *apply_line(const struct rig *rig, const char *text, const char *confirm,
			      bool discard_live)
{
	char *all = whole(rig, text);
	json_t *args = json_pack("{s:s, s:s, s:b}", "path", "/lab/other.yaml", "text", all,
				 "discard_live", discard_live);

	if (confirm)
		json_object_set_new(args, "confirm", json_string(confirm));
	free(all);
	return request("apply", args);
}

static void apply(struct rig *rig, const char *text, const char *confirm)
{
	rig_do(rig, apply_line(rig, text, confirm, false));
}

/* The result of a request that is done, to be freed. */
static json_t *result_of(struct rig *rig, const char *line)
{
	json_t *response = rig_command(rig, &rig_root, line), *result;

	if (!true_at(response, "ok"))
		fail_msg("%s: %s", line, json_dumps(response, 0));
	result = json_incref(json_object_get(response, "result"));
	json_decref(response);
	return result;
}

static u64 rate_of(const struct rig *rig)
{
	const struct limit_def *def = policy_find_limit(rig->d->running.policy, "all");

	return def ? def->terms.rates.rate[0].count : 0;
}

/* The rate in the model, and that packets meet it: a source of its own each time. */
static void check_rate(struct rig *rig, u64 rate)
{
	static u8 source;

	assert_int_equal(rate_of(rig), rate);
	assert_int_equal(rig_passed(rig, ++source, 50, clock_mono_ns()), rate);
}

/* As if the deadline had passed, for the daemon. */
static void let_time_pass(struct rig *rig)
{
	assert_true(pending_is(&rig->d->running));
	rig->d->running.pending.deadline_ns = clock_mono_ns();
	pending_check(&rig->d->running);
}

#endif
