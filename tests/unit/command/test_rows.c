// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The rows of user/command: consistent with each other, with requests, with sluicectl(8). */
#include "lib/test.h"
#include "command/command.h"
#include "lib/near.h"

TEST(test_rows_agree)
{
	for (size_t i = 0; i < command_count; i++) {
		const struct command_arg *arg = commands[i].arg, *other;
		const struct show_part *part = commands[i].show;
		bool last = false;

		assert_int_equal(command_find(commands[i].name), i);
		/* A phrase without a full stop, on one line of help. */
		assert_in_range(strlen(commands[i].help), 5, 72);
		assert_int_not_equal(commands[i].help[strlen(commands[i].help) - 1], '.');
		for (; arg && arg->key; arg++) {
			assert_false(last && !arg->option); /* a list takes all words that follow */
			last |= !arg->option && arg_is_list(arg->type) &&
				arg->type != ARG_PREFIX_FILE;
			assert_true(!arg->option || arg->help);
			assert_int_equal(arg->type == ARG_FLAG, !arg->meta);
			assert_int_equal(arg->type == ARG_FILE, arg->path_key != NULL);
			/* An option takes a value in all commands, or in none. */
			for (size_t k = 0; k < command_count; k++)
				for (other = commands[k].arg; other && other->key; other++)
					if (arg->option && other->option &&
					    !strcmp(arg->key, other->key))
						assert_int_equal(!arg->meta, !other->meta);
			/* A list that completes it exists, and has no arguments. */
			if (arg->values && arg->values[0] == '@') {
				int list = command_find(arg->values + 1);

				assert_true(list >= 0);
				assert_non_null(commands[list].show->columns);
			}
		}
		for (; part && (part->line || part->columns); part++) {
			assert_true(!part->columns || (part->of && part->none));
			for (const struct column *c = part->columns; c && c->heading; c++)
				assert_non_null(c->cell);
		}
	}
}

/* The CLI has one table of options for all commands: none is taken twice, and all have room. */
TEST(test_options_have_one_meaning)
{
	static const char *const general[] = { "socket", "output",  "json", "watch",
					       "sort",	 "version", "help" };
	char letter_of[64][32] = { "" }, names[128][32], name[32];
	size_t count = 0;

	for (size_t i = 0; i < command_count; i++)
		for (const struct command_arg *arg = commands[i].arg; arg && arg->key; arg++) {
			size_t at = 0;

			if (!arg->option)
				continue;
			command_option(arg, name, sizeof(name));
			for (size_t k = 0; k < COUNT(general); k++)
				assert_string_not_equal(name, general[k]);
			while (at < count && strcmp(names[at], name) != 0)
				at++;
			if (at == count)
				strcpy(names[count++], name);
			if (!arg->letter)
				continue;
			assert_null(strchr("sojwShV", arg->letter));
			assert_true(!letter_of[arg->letter & 63][0] ||
				    !strcmp(letter_of[arg->letter & 63], name));
			strcpy(letter_of[arg->letter & 63], name);
		}
	assert_in_range(count + COUNT(general), 1, COMMAND_OPTIONS_MAX);
}

TEST(test_suggestions)
{
	assert_string_equal(command_suggest("blok add"), "block add");
	assert_string_equal(command_suggest("limit lst"), "limit list");
	assert_string_equal(command_suggest("stat"), "stats");
	assert_string_equal(command_suggest("push-downs list"), "pushdowns list");
	assert_string_equal(command_suggest("unblock"), "block del");
	assert_string_equal(command_suggest("unblock 192.0.2.1"), "block del");
	assert_string_equal(command_suggest("block remove"), "block del");
	assert_null(command_suggest("frobnicate"));
	assert_null(command_suggest(""));
	assert_true(word_is_near("fro", "for"));
	assert_false(word_is_near("reason", "for"));
}

TEST(test_arguments)
{
	static const struct {
		const char *command, *args, *words; /* words: of the error, NULL if good */
	} cases[] = {
		{ "status", "{}", NULL },
		{ "status", "{\"x\": 1}", "accepted: none" },
		{ "limit show", "{\"name\": \"a\"}", NULL },
		{ "limit show", "{}", "'name' is required: a string" },
		{ "limit show", "{\"name\": 1}", "'name' must be a string" },
		{ "limit show", "{\"nam\": \"a\"}", "no argument 'nam'; accepted: name" },
		{ "limit set", "{\"name\": \"a\", \"pairs\": [\"b=c\"]}", NULL },
		{ "limit set", "{\"name\": \"a\", \"pairs\": []}",
		  "one or more strings KEY=VALUE" },
		{ "limit set", "{\"name\": \"a\", \"pairs\": [\"b\"]}", "'b' is not KEY=VALUE" },
		{ "limit set", "{\"name\": \"a\", \"pairs\": [\"b=c\", 7]}", "item 2 of 'pairs'" },
		{ "limit add", "{\"yaml\": \"\"}", NULL },
		{ "limit add", "{\"yaml\": \"\", \"file\": 7}", "'file' must be a string" },
		{ "block add", "{\"prefix\": \"a\", \"force\": false, \"for\": \"1s\"}", NULL },
		{ "block add", "{\"prefix\": \"a\", \"force\": 1}",
		  "'force' must be true or false" },
		{ "set add", "{\"name\": \"a\", \"prefixes\": [null]}", "item 1 of 'prefixes'" },
		{ "detach", "{\"all\": true}", NULL },
		{ "detach", "{\"all\": false, \"interface\": \"a\"}", NULL },
		{ "detach", "{\"all\": true, \"interface\": \"a\"}",
		  "exactly one of: IFACE | --all" },
		{ "detach", "{}", "exactly one of" },
		{ "user top", "{\"count\": 3}", NULL },
		{ "user top", "{\"count\": 0}", "a positive integer" },
		{ "load-signal set", "{\"name\": \"a\", \"value\": 0.5}", NULL },
		{ "load-signal set", "{\"name\": \"a\", \"value\": \"1\"}", "must be a number" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		json_t *args = json_loads(cases[i].args, 0, NULL);
		struct sl_err err = { .message = "" };
		int r = command_check_args(&commands[command_find(cases[i].command)], args, &err);

		assert_int_equal(r, cases[i].words ? -EINVAL : 0);
		if (cases[i].words && !strstr(err.message, cases[i].words))
			fail_msg("%s: not '%s'", err.message, cases[i].words);
		json_decref(args);
	}
}

static char *read_whole(const char *path)
{
	FILE *in = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;

	if (!in)
		return NULL;
	assert_true(getdelim(&text, &size, '\0', in) > 0);
	fclose(in);
	return text;
}

/* Run from the tree, as all tests are. */
TEST(test_manual_is_current)
{
	char *page = read_whole("docs/man/sluicectl.8"), *commands_text = NULL;
	size_t size;
	FILE *out = open_memstream(&commands_text, &size);

	if (!page)
		skip();
	help_write_mdoc(out);
	fclose(out);
	if (!strstr(page, commands_text))
		fail_msg("docs/man/sluicectl.8 is not that of user/command/rows.h: run make man");
	free(page);
	free(commands_text);
}

static const char *no_keys(const char *command, const char *after)
{
	return NULL;
}

/* No line of help is wider than a terminal; every command is in the completion. */
TEST(test_help)
{
	char *text = NULL, *line;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	help_write_all(out, NULL);
	for (size_t i = 0; i < command_count; i++)
		help_write_command(out, &commands[i], NULL);
	fclose(out);
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strlen(line) > 80)
			fail_msg("wider than 80 columns: %s", line);
	free(text);
	out = open_memstream(&text, &size);
	help_write_bash(out, no_keys);
	fclose(out);
	for (size_t i = 0; i < command_count; i++) {
		char name[64];

		snprintf(name, sizeof(name), "command='%s'", commands[i].name);
		assert_non_null(strstr(text, name));
	}
	free(text);
}

TEST_MAIN
