// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * audit.c - see audit.h.
 *
 * The file is opened for each line, so that logrotate may rename it without a signal. It is also
 * renamed to audit.log.1 at 4 MiB, and four of those are kept. A write error is logged and the
 * change is still made: with a full disk the administrator must be able to block a flood.
 */
#include "control/running/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/value_hash.h"
#include "lib/clock.h"
#include "lib/file.h"
#include "lib/log.h"
#include "packet/observe/observe.h"

#define AUDIT_SIZE_MAX (4 << 20)
#define AUDIT_KEPT 4
#define ARGS_MAX 4096

/* From /etc/passwd alone: a directory service may be behind the link that we limit. */
static json_t *user_name(uid_t uid)
{
	FILE *in = fopen("/etc/passwd", "re");
	struct passwd *entry;
	json_t *name = NULL;

	while (in && !name && (entry = fgetpwent(in)))
		if (entry->pw_uid == uid)
			name = json_string(entry->pw_name);
	if (in)
		fclose(in);
	return name ? name : json_null();
}

/* The uid of the login, before sudo or su; false if the kernel does not have it. */
static bool login_uid(pid_t pid, uid_t *ret)
{
	char path[64];
	unsigned int uid;
	FILE *in;
	bool known;

	snprintf(path, sizeof(path), "/proc/%d/loginuid", (int)pid);
	in = fopen(path, "re");
	known = in && fscanf(in, "%u", &uid) == 1 && uid != (uid_t)-1;
	if (in)
		fclose(in);
	if (known)
		*ret = uid;
	return known;
}

static void add_actor(json_t *line, const struct actor *actor)
{
	uid_t login;

	json_object_set_new(line, "uid", json_integer(actor->uid));
	json_object_set_new(line, "user", user_name(actor->uid));
	if (login_uid(actor->pid, &login) && login != actor->uid) {
		json_object_set_new(line, "login_uid", json_integer(login));
		json_object_set_new(line, "login_user", user_name(login));
	}
	json_object_set_new(line, "pid", json_integer(actor->pid));
}

static void add_args(json_t *line, const json_t *args)
{
	char *text = json_dumps(args, JSON_COMPACT);
	size_t length = text ? strlen(text) : 0, cut = ARGS_MAX;

	if (text && length > ARGS_MAX) {
		while (cut && ((unsigned char)text[cut] & 0xc0) == 0x80)
			cut--;
		json_object_set_new(line, "args",
				    json_sprintf("%.*s... (%zu bytes)", (int)cut, text, length));
	} else if (json_object_size(args)) {
		json_object_set(line, "args", (json_t *)args);
	}
	free(text);
}

static void rotate(const char *path)
{
	char from[4096], to[4096];
	struct stat st;

	if (stat(path, &st) < 0 || st.st_size < AUDIT_SIZE_MAX)
		return;
	for (int i = AUDIT_KEPT; i > 0; i--) {
		snprintf(to, sizeof(to), "%s.%d", path, i);
		if (i > 1)
			snprintf(from, sizeof(from), "%s.%d", path, i - 1);
		else
			snprintf(from, sizeof(from), "%s", path);
		if (rename(from, to) < 0 && errno != ENOENT)
			log_error("cannot rename %s: %s", from, strerror(errno));
	}
}

/* One write per line: lines are never mixed, and a killed daemon leaves no partial line. */
static void append(const char *path, const char *text)
{
	size_t size = strlen(text);
	int fd;

	rotate(path);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0 || write(fd, text, size) != (ssize_t)size || fdatasync(fd) < 0)
		log_error("cannot write %s: %s; missing line: %s", path, strerror(errno), text);
	if (fd >= 0)
		close(fd);
}

/* Which event a command is; its source is the argument `from`. */
static const struct {
	const char *command, *from;
	enum observed_kind kind;
} events[] = {
	{ "block add", "prefix", OBSERVED_BLOCK },
	{ "block del", "prefix", OBSERVED_UNBLOCK },
	{ "push-down", "source", OBSERVED_PUSHDOWN },
};

/* Arguments that an event shows without their name. */
static bool is_bare(const char *key)
{
	static const char *const bare[] = { "name",  "prefix", "prefixes", "source",	"rule",
					    "value", "pairs",  "limit",	   "interface", "step" };

	for (size_t i = 0; i < sizeof(bare) / sizeof(bare[0]); i++)
		if (!strcmp(key, bare[i]))
			return true;
	return false;
}

/* Arguments as words, named ones last: "192.0.2.1, for 10m". */
static void write_words(const json_t *value, FILE *out)
{
	const char *key;
	json_t *item;
	size_t i = 0;

	if (json_is_string(value))
		fputs(json_string_value(value), out);
	else if (!json_is_array(value) && !json_is_object(value))
		json_dumpf(value, out, JSON_ENCODE_ANY);
	json_array_foreach(value, i, item) {
		fputs(i ? " " : "", out);
		write_words(item, out);
	}
	for (int named = 0; named < 2; named++) {
		json_object_foreach((json_t *)value, key, item) {
			if (is_bare(key) == named || json_is_false(item) || json_is_null(item))
				continue;
			fputs(i++ ? named ? ", " : " " : "", out);
			if (named)
				fprintf(out, json_is_true(item) ? "%s" : "%s ", key);
			if (!json_is_true(item))
				write_words(item, out);
		}
	}
}

/* Returns NULL if there are none. Free the result. */
static char *words_of(const json_t *args)
{
	char *words = NULL;
	size_t size;
	FILE *out = json_object_size(args) || json_array_size(args) ? open_memstream(&words, &size)
								    : NULL;

	if (out) {
		write_words(args, out);
		fclose(out);
	}
	for (char *c = words; c && *c; c++)
		if (*c == '\n')
			*c = ' ';
	return words;
}

/* The change as an event: "limit set by uid 0: web rate=20 packets/s". */
static void observe_change(const struct running *run, const struct actor *actor,
			   const char *command, const json_t *args)
{
	const char *from = NULL, *text, *reason,
		   *rule = json_string_value(json_object_get(args, "rule"));
	char *words = words_of(args);
	char detail[OBSERVE_TEXT], who[32] = "sluiced";
	enum observed_kind kind = OBSERVED_CHANGE;
	struct sl_prefix source;
	bool has_source;

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (!strcmp(command, events[i].command)) {
			kind = events[i].kind;
			from = events[i].from;
		}
	}
	text = from ? json_string_value(json_object_get(args, from)) : NULL;
	has_source = text && !sl_prefix_parse(text, &source, &reason);
	/* A set as an entry is no single source. */
	if (from && !has_source)
		kind = OBSERVED_CHANGE;
	text = json_string_value(json_object_get(args, "event"));
	if (kind == OBSERVED_PUSHDOWN && text && !strcmp(text, "ends"))
		kind = OBSERVED_PUSHDOWN_END;
	if (actor)
		snprintf(who, sizeof(who), "uid %u", actor->uid);
	snprintf(detail, sizeof(detail), "%s by %s%s%.140s", command, who, words ? ": " : "",
		 words ? words : "");
	observe_tell(run->observe, kind, has_source ? &source : NULL,
		     kind == OBSERVED_PUSHDOWN || kind == OBSERVED_PUSHDOWN_END ? rule : NULL, NULL,
		     detail);
	free(words);
}

/* The arguments with a hash in place of a user's value; a new reference. */
static json_t *hide_value(const json_t *args)
{
	const char *value = json_string_value(json_object_get(args, "value"));
	json_t *hidden = value ? json_copy((json_t *)args) : json_incref((json_t *)args);
	char hash[VALUE_HASH_TEXT];

	if (value && hidden)
		json_object_set_new(hidden, "value",
				    json_string(value_hash(value, strlen(value), hash)));
	return hidden;
}

static void write_line(const struct running *run, const struct actor *actor, const char *command,
		       const json_t *args, u64 generation, const char *error)
{
	char when[32], *path = file_join(run->state_dir, "audit.log"), *text = NULL;
	json_t *line;

	if (!error)
		observe_change(run, actor, command, args);
	clock_format_utc(clock_utc_ns(), when, sizeof(when));
	line = json_pack("{s:s}", "at", when);
	if (actor)
		add_actor(line, actor);
	json_object_set_new(line, "command", json_string(command));
	add_args(line, args);
	json_object_set_new(
		line, "generation",
		json_pack("[I, I]", (json_int_t)generation, (json_int_t)run->generation));
	json_object_set_new(line, "ok", json_boolean(!error));
	if (error) {
		json_t *words = json_string(error);

		/* The message was cut in the middle of a character. */
		json_object_set_new(line, "error", words ? words : json_string("?"));
	}
	text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	if (text && path) {
		size_t size = strlen(text);
		char *longer = realloc(text, size + 2);

		if (longer) {
			text = longer;
			strcpy(text + size, "\n");
		}
		append(path, text);
	}
	json_decref(line);
	free(text);
	free(path);
}

void audit_write(const struct running *run, const struct actor *actor, const char *command,
		 const json_t *args, u64 generation, const struct sl_err *err)
{
	const char *value = json_string_value(json_object_get(args, "value"));
	json_t *hidden = hide_value(args);
	char words[1024];

	if (err)
		sl_err_format(err, words, sizeof(words));
	if (err && value && value[0] && strstr(words, value))
		snprintf(words, sizeof(words), "refused; the message quotes the value");
	write_line(run, actor, command, hidden, generation, err ? words : NULL);
	json_decref(hidden);
}
