// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* command.c - see command.h. */
#include "command/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/near.h"

/* ------------------------------------------------------------------ the words of a row */

/* clang-format off */
#define ARGS(...) .arg = (const struct command_arg[]){ __VA_ARGS__, { 0 } }
#define MORE(text) .more = text
#define EXAMPLE(text) .example = text
#define SHOW(...) .show = (const struct show_part[]){ __VA_ARGS__, { 0 } }

#define LINE(text) { .line = text }
#define LINE_WHEN(condition, text) { .when = condition, .line = text }
#define VERBATIM(text) { .line = text, .verbatim = true }
#define EACH(array, text) { .of = array, .line = text }
#define TABLE(array, without, ...) \
	{ .of = array, .none = without, .columns = (const struct column[]){ __VA_ARGS__, { 0 } } }
#define TABLE_WHEN(condition, array, without, ...) \
	{ .when = condition, .of = array, .none = without, \
	  .columns = (const struct column[]){ __VA_ARGS__, { 0 } } }
#define COL(title, text) { .heading = title, .cell = text }
#define KEEP(title, text) { .heading = title, .cell = text, .keep = true }
#define HIDE(title, text, order) { .heading = title, .cell = text, .hide = order }
/* Not there, also for pipes, where all of it is 0 or "-": of reports, whose columns no script
 * counts. */
#define SOME(title, text, order) { .heading = title, .cell = text, .hide = order, .some = true }
/* Prints a rate, with a mark if its item is `estimated`. */
#define ESTIMATED(field) "{$" field ":about$estimated?|$" field ":rate}"

#define POSITION(name, shown, kind, ...) { .key = name, .meta = shown, .type = kind, ##__VA_ARGS__ }
#define OPTION(name, shown, what, ...) \
	{ .key = name, .option = true, .meta = shown, .help = what, ##__VA_ARGS__ }
#define FLAG(name, what, ...) OPTION(name, NULL, what, .type = ARG_FLAG, ##__VA_ARGS__)

#define LIMIT(name) POSITION(name, "LIMIT", ARG_TEXT, .values = "@limit list")
#define RULE(name) POSITION(name, "RULE", ARG_TEXT, .values = "@rule list")
#define SET_NAME(...) POSITION("name", "SET", ARG_TEXT, .values = "@set list", ##__VA_ARGS__)
#define VALUE POSITION("value", "VALUE", ARG_TEXT)
#define VALUE_IF_ANY POSITION("value", "VALUE", ARG_TEXT, .optional = true)
#define PAIRS POSITION("pairs", "KEY=VALUE", ARG_PAIRS)
#define ENTRY POSITION("prefix", "CIDR|@SET", ARG_TEXT)
#define LISTED(list) POSITION("prefix", "CIDR|@SET", ARG_TEXT, .values = list)
#define SOURCE(...) POSITION("source", "SOURCE", ARG_TEXT, ##__VA_ARGS__)
#define ADDRESS POSITION("source", "ADDRESS", ARG_TEXT, .values = "@source list")
#define PREFIXES POSITION("prefixes", "CIDR", ARG_WORDS)
#define FOR OPTION("for", "DURATION", "how long: 30s, 10m, 1h30m, 2d; without it permanently")
#define REASON OPTION("reason", "TEXT", "shown in the list and in the audit log")
#define FORCE FLAG("force", "accept prefixes wider than /8 (IPv4) or /16 (IPv6), and lists that block more than four such")
#define SKIPPED LINE("{skipped $skipped:n of $lines:n lines:}"), EACH("skipped_why", "  $")

/* A verdict of explain, whose members are at the path `of`, and when such a packet passes. */
#define VERDICT(of) \
	"$" of "action ($" of "reason{, step $" of "step:some: $" of "step_name})" \
	"{, by limit $" of "limit}{, line $" of "line}{, dscp $" of "dscp}{, mark $" of "mark:hex}"
#define PASSES(of) \
	"{; passes in $" of "passes_in_ns:after|$" of "passes_in_ns?|; waiting does not help}"
/* What is known of what a source, or a value, sent and lost in the last seconds. */
#define LATELY(sent, lost) \
	"{lately   {{about $lately.estimate?}$lately.lost:percent lost in the last $lately.span_ns:seconds: " \
	"{about $lately.estimate?}$lately." lost ":n " lost ", $lately.passed:n passed" LOST_BY "|" \
	"about $lately." lost ":some " lost " in the last $lately.span_ns:seconds" LOST_BY "|" \
	"$lately." lost "?nothing lost: $lately.passed:some passed in the last $lately.span_ns:seconds|" \
	"about $lately.passed:some passed in the last $lately.span_ns:seconds, too few " lost " to be counted|" \
	"$lately." lost "?no " sent " in the last $lately.span_ns:seconds|too few " sent " to be counted}" \
	"{; of all in $lately.prefix}$lately?}"
#define LOST_BY "{, by $lately.by[{limit $limit|$reason}]}"
/* Packets of a limit, whatever it did about them short of dropping. */
#define ALL_PASSED(of) "pass+" of ".soft+" of ".tag+" of ".shadow"
/* The entry of a list that holds the source. */
#define ENTRY_OF(list) \
	"{$" list ".prefix, {line $" list ".line|$" list ".origin|live}{, until $" list ".until}{ ($" list ".reason)}|no}"

/* Sources or values of a replay. */
#define REPLAYED(array, without) \
	TABLE(array, without, KEEP("WHO", "$who"), COL(">COUNT", "$count:n"), \
	      HIDE(">PEAK/S", "$peak_per_second:n", 3), SOME(">PASSED", "$passed:n", 2), \
	      SOME(">REFUSED", "$refused:n", 2), SOME(">USED", "{$used:percent|-}", 2), SOME("OF", "{$limit|-}", 1))
#define COMPARED(array, without) \
	TABLE_WHEN("compare", array, without, KEEP("WHO", "$who"), COL(">COUNT", "$count:n"), \
		   HIDE(">PEAK/S", "$peak_per_second:n", 1), SOME(">REFUSED", "$refused:n", 2), \
		   SOME(">COMPARED", "$compare.refused:n", 2))

#define EVENTS_WANTED \
	OPTION("within", "CIDR", "only sources of this prefix"), \
	OPTION("limit", "NAME", "only of this limit, or rule", .values = "@limit list"), \
	OPTION("kind", "KIND", "only of this kind", \
	       .values = "drop over released ban unban pushdown pushdown_end block unblock refused change")
#define EVENT_LINES \
	EACH("events", "$at $kind{ $source}{ $rule}{ $value}{ limit $limit}{ $verdict}{ ($reason)}" \
	     "{ on $interface}{ $proto}{ port $sport}{ to $dst}{ port $dport}{, $length bytes}" \
	     "{, 1 of $packets}{: $detail}")

#define HISTORY_LINES \
	LINE("$who{ $value}, $from to $to"), \
	EACH("in_force", "in force since $at: $kind{ of $source}{ by limit $limit}{: $detail}"), \
	EACH("events", "$at $kind{ $source}{ by limit $limit}{ by rule $rule}{ ($reason)}" \
	     "{, $packets:about packets$estimated?|, $packets:n packets}{: $detail}"), \
	LINE("{no refusal is recorded$nothing}"), \
	LINE("{not recorded: $not_recorded|{nothing is missing: it was not refused$nothing}}")

#define HEAVIEST_LINES \
	LINE("$from to $to"), \
	TABLE("sources", "none is recorded", KEEP("SOURCE", "$source"), \
	      COL(">DROPPED", "{$dropped:about$estimated?|$dropped:n}"), COL(">PASSED", "$passed:about"), \
	      HIDE(">BYTES", "$bytes:about", 2), COL("BY", "{$by|-}")), \
	LINE("{~: estimated from samples$sources?}"), \
	LINE("{not recorded: $not_recorded}"), LINE("{the minute in progress is not recorded yet$in_progress}")
#define AT(before) \
	OPTION("at", "TIME", before "14:03, 14:03:20, yesterday, 'yesterday 14:03', 2026-03-01, " \
	       "'2026-03-01 14:03', in local time, or 2026-03-01T14:03Z, +02:00 and so on; the answer is in the " \
	       "same zone, as JSON in UTC")
#define TO OPTION("to", "TIME", "the end; without it that minute, second or day")

#define UNSAVED "NOT SAVED YET ($unsaved): it is in force, and saved once that works"
#define CHANGED "; $live_changes:changes{; " UNSAVED "}"
#define FILE_NOTES \
	EACH("dropped", "dropped: live change '$', which no longer applies"), \
	EACH("notes", "note: $")
/* Of a list whose response is a page of it: the CLI asks for all pages. */
#define AFTER OPTION("after", "CIDR", "only those after this prefix, in their order")

#define ENTRIES \
	ARGS(AFTER), \
	SHOW(TABLE("entries", "none", KEEP("PREFIX", "$prefix"), \
		   HIDE("UNTIL", "{$until|permanent}", 1), COL("LEFT", "{$left_ns:left|-}"), \
		   COL("FROM", "{$origin|node $node|live$live|file}"), COL("REASON", "$reason")))

#define COMMAND(id, name_, right_, help_, ...) \
	{ .name = name_, .right = COMMAND_##right_, .help = help_, ##__VA_ARGS__ },
const struct command commands[] = {
#include "command/rows.h"
};
#undef COMMAND
/* clang-format on */

const size_t command_count = sizeof(commands) / sizeof(commands[0]);

int command_find(const char *name)
{
	for (size_t i = 0; i < command_count; i++)
		if (!strcmp(commands[i].name, name))
			return (int)i;
	return -1;
}

/* ------------------------------------------------------------------ suggestions */

/* Other programs have another name for a command: NAME or the end of it. */
static const struct {
	const char *theirs, *ours;
} called[] = {
	{ "unblock", "block del" },
	{ "unban", "ban del" },
	{ "unexempt", "exempt del" },
	{ "ban add", "block add" },
	{ "deny", "block add" },
	{ "allow", "exempt add" },
	{ "whitelist", "exempt add" },
	{ "blacklist", "block add" },
	{ "block remove", "block del" },
	{ "block rm", "block del" },
	{ "block delete", "block del" },
	{ "exempt remove", "exempt del" },
	{ "exempt rm", "exempt del" },
	{ "exempt delete", "exempt del" },
	{ "ban remove", "ban del" },
	{ "ban delete", "ban del" },
	{ "limit remove", "limit del" },
	{ "limit delete", "limit del" },
	{ "set remove", "set del" },
	{ "set delete", "set del" },
	{ "override remove", "override del" },
	{ "override delete", "override del" },
};

const char *command_suggest(const char *name)
{
	const char *best = NULL;
	unsigned int least = WORD_MAX;

	for (size_t i = 0; i < sizeof(called) / sizeof(called[0]); i++) {
		size_t length = strlen(called[i].theirs);

		/* Also with the argument that follows it: "unblock 192.0.2.1". */
		if (!strncmp(name, called[i].theirs, length) &&
		    (!name[length] || (name[length] == ' ' && !strchr(called[i].theirs, ' '))))
			return called[i].ours;
	}

	for (size_t i = 0; i < command_count; i++) {
		unsigned int d = word_distance(name, commands[i].name);

		if (d < least && word_is_near(name, commands[i].name)) {
			least = d;
			best = commands[i].name;
		}
	}
	return best;
}

/* ------------------------------------------------------------------ usage */

bool arg_is_list(enum arg_type type)
{
	return type == ARG_PAIRS || type == ARG_WORDS || type == ARG_PREFIX_FILE;
}

const char *command_option(const struct command_arg *arg, char *buf, size_t size)
{
	snprintf(buf, size, "%s", arg->key);
	for (char *c = buf; *c; c++)
		if (*c == '_')
			*c = '-';
	return buf;
}

size_t command_add_arg(const struct command_arg *arg, char *buf, size_t size)
{
	bool optional = arg->option ? !arg->needed : arg->optional;
	char name[32], option[40] = "";

	if (arg->letter)
		snprintf(option, sizeof(option), "-%c", arg->letter);
	else if (arg->option)
		snprintf(option, sizeof(option), "--%s", command_option(arg, name, sizeof(name)));
	return (size_t)snprintf(buf, size, "%s%s%s%s%s%s", optional && !arg->either ? "[" : "",
				option, option[0] && arg->meta ? " " : "",
				arg->meta ? arg->meta : "",
				arg_is_list(arg->type) && arg->type != ARG_PREFIX_FILE ? "..." : "",
				optional && !arg->either ? "]" : "");
}

const char *command_usage(const struct command *command, char *buf, size_t size)
{
	const struct command_arg *arg = command->arg;
	size_t used = 0;

	buf[0] = '\0';
	for (; arg && arg->key && used < size; arg++) {
		if (used)
			used += (size_t)snprintf(buf + used, size - used, "%s",
						 arg->either ? " | " : " ");
		if (used < size)
			used += command_add_arg(arg, buf + used, size - used);
	}
	return buf;
}

/* ------------------------------------------------------------------ the daemon's check */

static const char *type_text(enum arg_type type)
{
	static const char *const text[] = {
		[ARG_TEXT] = "a string",
		[ARG_FLAG] = "true or false",
		[ARG_COUNT] = "a positive integer",
		[ARG_LOAD] = "a number",
		[ARG_PAIRS] = "an array of one or more strings KEY=VALUE",
		[ARG_WORDS] = "an array of strings",
		[ARG_PREFIX_FILE] = "an array of strings",
		[ARG_FILE] = "a string",
	};

	return text[type];
}

static bool has_type(enum arg_type type, const json_t *value)
{
	switch (type) {
	case ARG_FLAG:
		return json_is_boolean(value);
	case ARG_COUNT:
		return json_is_integer(value) && json_integer_value(value) > 0;
	case ARG_LOAD:
		return json_is_number(value);
	case ARG_PAIRS:
		return json_array_size(value) > 0;
	case ARG_WORDS:
	case ARG_PREFIX_FILE:
		return json_is_array(value);
	case ARG_TEXT:
	case ARG_FILE:
		return json_is_string(value);
	}
	return false;
}

static int check_arg(const struct command_arg *arg, const json_t *args, struct sl_err *err)
{
	const json_t *value = json_object_get(args, arg->key), *item;
	size_t i;

	if (!value && (arg->either || arg->optional || (arg->option && !arg->needed)))
		return 0;
	if (!value || !has_type(arg->type, value))
		return sl_err_set(err, EINVAL, "'%s' %s %s", arg->key,
				  value ? "must be" : "is required:", type_text(arg->type));
	json_array_foreach(value, i, item) {
		const char *text = json_string_value(item);

		if (arg_is_list(arg->type) && !text)
			return sl_err_set(err, EINVAL, "item %zu of '%s' is not a string%s", i + 1,
					  arg->key, arg->type == ARG_PAIRS ? " KEY=VALUE" : "");
		if (arg->type == ARG_PAIRS && !strchr(text, '='))
			return sl_err_set(err, EINVAL, "'%.80s' is not KEY=VALUE", text);
	}
	value = arg->path_key ? json_object_get(args, arg->path_key) : NULL;
	if (value && !json_is_string(value))
		return sl_err_set(err, EINVAL, "'%s' must be a string", arg->path_key);
	return 0;
}

static bool is_known(const struct command *command, const char *key)
{
	const struct command_arg *arg = command->arg;

	for (; arg && arg->key; arg++)
		if (!strcmp(arg->key, key) || (arg->path_key && !strcmp(arg->path_key, key)))
			return true;
	return false;
}

static int unknown_key(const struct command *command, const char *key, struct sl_err *err)
{
	const struct command_arg *arg = command->arg;
	char list[256] = "none";
	size_t used = 0;

	for (; arg && arg->key && used < sizeof(list); arg++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s%s%s",
					 used ? ", " : "", arg->key, arg->path_key ? ", " : "",
					 arg->path_key ? arg->path_key : "");
	return sl_err_set(err, EINVAL, "'%s' has no argument '%.64s'; accepted: %s", command->name,
			  key, list);
}

int command_check_args(const struct command *command, const json_t *args, struct sl_err *err)
{
	const struct command_arg *arg = command->arg;
	unsigned int either = 0, given = 0;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)args, key, value)
		if (!is_known(command, key))
			return unknown_key(command, key, err);
	for (; arg && arg->key; arg++) {
		int r = check_arg(arg, args, err);

		if (r < 0)
			return r;
		value = json_object_get(args, arg->key);
		either += arg->either;
		given += arg->either && value && !json_is_false(value);
	}
	if (either && given != 1) {
		char usage[256];

		return sl_err_set(err, EINVAL, "'%s' takes exactly one of: %s", command->name,
				  command_usage(command, usage, sizeof(usage)));
	}
	return 0;
}
