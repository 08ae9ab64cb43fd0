// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * check.c - sluicectl check FILE: the only part of the CLI that includes the configuration model.
 *
 * It works without a daemon and without root: in an editor, in CI, before the first start. So it
 * links the code of the daemon, and a file that passes here is accepted there (see
 * docs/decisions/0003-check-links-policy.md). Compiling finds errors that parsing cannot: rates
 * that cannot be represented, too many distinct conditions. Notes report valid settings with a
 * surprising effect: rates that rounding changes, accounting without effect, prefix lengths that
 * never bind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check_rule.h"
#include "cli/cli.h"
#include "packet/compile/compile.h"
#include "config/http_def.h"
#include "config/policy.h"

/* Any value will do: the seed and the clock do not change the result for a file. */
#define CHECK_CPUS 8

static int compile(const struct policy *policy, struct sl_image **ret, struct sl_err *err)
{
	struct sl_limit_id_info *slots = calloc(SL_LIMIT_IDS, sizeof(*slots));
	struct compile_env env = { .cpus = CHECK_CPUS, .generation = 1, .slots = slots };
	char (*names)[16] = calloc(SL_IFACES_MAX, sizeof(*names));
	int r;

	if (!slots || !names) {
		r = sl_err_set(err, 12, "out of memory");
	} else {
		for (size_t i = 0; i < policy->interface_count && i < SL_IFACES_MAX; i++)
			memcpy(names[i], policy->interface[i].name, sizeof(names[i]));
		env.iface = (const char (*)[16])names;
		r = image_compile(policy, &env, ret, err);
	}
	free(names);
	free(slots);
	return r;
}

int check_print_bad(const struct cli *cli, const struct sl_err *err)
{
	json_t *error, *answer;
	char text[sizeof(*err)];

	fprintf(stderr, "%s\n", sl_err_format(err, text, sizeof(text)));
	if (!cli->json)
		return EXIT_REFUSED;
	error = json_pack("{s:s, s:s, s:i, s:i}", "message", err->message, "file", err->file, "line",
			  err->line, "column", err->column);
	if (!error)
		error = json_pack("{s:s}", "message", "the error message is not UTF-8");
	answer = json_pack("{s:b, s:o}", "ok", 0, "error", error);
	cli_print_json(cli, answer);
	json_decref(answer);
	return EXIT_REFUSED;
}

static void add_note(void *notes, const struct limit_def *limit, const char *words)
{
	char text[320];

	if (limit)
		snprintf(text, sizeof(text), "line %d: limit \"%s\": %s", limit->pos.line, limit->name,
			 words);
	else
		snprintf(text, sizeof(text), "%s", words);
	json_array_append_new(notes, json_string(text));
}

/* Takes ownership of `notes`. */
static void print_good(const struct cli *cli, const struct policy *policy,
		       const struct sl_image *image, u32 rules, json_t *notes)
{
	json_t *json, *note;
	char http[32] = "";
	size_t i;

	if (policy->http)
		snprintf(http, sizeof(http), ", %u rule%s", rules, rules == 1 ? "" : "s");
	policy_notes(policy, image->rules, add_note, notes);
	if (!cli->json) {
		printf("%s: good: %zu interface%s, %zu limit%s, %zu blocked, %zu exempt%s\n",
		       text_of(cli->args, "file"), policy->interface_count, policy->interface_count == 1 ? "" : "s",
		       policy->limit_count, policy->limit_count == 1 ? "" : "s",
		       policy->list[LIST_BLOCK].count, policy->list[LIST_EXEMPT].count, http);
		json_array_foreach(notes, i, note)
			printf("note: %s\n", json_string_value(note));
		json_decref(notes);
		return;
	}
	json = json_pack("{s:b, s:s, s:I, s:I, s:I, s:I, s:o}", "ok", 1, "file", text_of(cli->args, "file"),
			 "interfaces", (json_int_t)policy->interface_count, "limits",
			 (json_int_t)policy->limit_count, "block",
			 (json_int_t)policy->list[LIST_BLOCK].count, "exempt",
			 (json_int_t)policy->list[LIST_EXEMPT].count, "notes", notes);
	if (policy->http)
		json_object_set_new(json, "rules", json_integer(rules));
	cli_print_json(cli, json);
	json_decref(json);
}

int cmd_check(const struct cli *cli)
{
	struct sl_err err = { .message = "" };
	struct policy *policy = NULL;
	struct sl_image *image = NULL;
	json_t *notes = json_array();
	int code = EXIT_DONE;
	u32 rules;

	if (policy_load(text_of(cli->args, "file"), &policy, &err) < 0 || compile(policy, &image, &err) < 0 ||
	    check_rules(policy, &rules, notes, &err) < 0) {
		code = check_print_bad(cli, &err);
		json_decref(notes);
	} else {
		print_good(cli, policy, image, rules, notes);
	}
	image_free(image);
	policy_free(policy);
	return code;
}
