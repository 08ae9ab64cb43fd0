// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* help.c - the rows as help, as lists of sluicectl(8), as completion for bash. */
#include <ctype.h>
#include <string.h>

#include "command/command.h"

#define COLUMNS 80

void help_fold(FILE *out, const char *text, size_t at, size_t indent)
{
	bool first = true;

	for (; *text; first = false) {
		size_t length = strcspn(text, " ");

		/* A bracketed option stays together with its value. */
		if (*text == '[' && !memchr(text, ']', length))
			length = strcspn(text, "]") + 1;
		if (!first && at + 1 + length > COLUMNS) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			fputc(' ', out);
			at++;
		}
		fwrite(text, 1, length, out);
		at += length;
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void write_usage(FILE *out, const char *before, const struct command *command)
{
	char usage[512];
	size_t at = (size_t)fprintf(out, "%s%s", before, command->name);

	command_usage(command, usage, sizeof(usage));
	if (usage[0])
		fputc(' ', out);
	help_fold(out, usage, at + (usage[0] != '\0'), strlen(before) + 8);
}

static const char general[] =
	"  -s, --socket SOCKET   the daemon's socket (default $SLUICE_SOCKET, else\n"
	"                        /run/sluice/control.sock)\n"
	"  -o, --output FORMAT   text, wide (text that is never cut) or json\n"
	"      --json            the same as -o json\n"
	"      --watch[=SECONDS] repeat a query, every 2 s or SECONDS; with JSON one\n"
	"                        object per line\n"
	"      --sort COLUMN     sort a table by a column: numbers from the largest\n"
	"  -h, --help            this, or the help of a command\n"
	"  -V, --version         the version\n"
	"\n"
	"exit: 0 done, 1 refused, 2 usage, 3 no daemon, 4 diff differs. See sluicectl(8).\n";

void help_write_all(FILE *out, const char *first_word)
{
	size_t length = first_word ? strlen(first_word) : 0;

	fprintf(out, "usage: sluicectl [OPTIONS] COMMAND\n\n");
	for (size_t i = 0; i < command_count; i++) {
		if (first_word && (strncmp(commands[i].name, first_word, length) ||
				   (commands[i].name[length] && commands[i].name[length] != ' ')))
			continue;
		write_usage(out, "  ", &commands[i]);
		fprintf(out, "        %s\n", commands[i].help);
	}
	fprintf(out, "\n%s", general);
}

static const char *right_text(enum command_right right)
{
	static const char *const text[] = {
		[COMMAND_READS] = "root, control.group or control.read_group",
		[COMMAND_CHANGES] = "root or control.group; recorded in the audit log",
		[COMMAND_UPDATES] = "root or control.group",
		[COMMAND_LOCAL] = "every user; needs no daemon",
	};

	return text[right];
}

void help_write_command(FILE *out, const struct command *command, const char *keys)
{
	const struct command_arg *arg = command->arg;
	char name[32], option[80];

	write_usage(out, "usage: sluicectl ", command);
	fprintf(out, "\n%c%s.\n", toupper(command->help[0]), command->help + 1);
	if (command->more)
		help_fold(out, command->more, 0, 0);
	fputc('\n', out);
	for (; arg && arg->key; arg++) {
		if (!arg->option)
			continue;
		snprintf(option, sizeof(option), "%s%c%s--%s%s%s", arg->letter ? "-" : "",
			 arg->letter ? arg->letter : ' ', arg->letter ? ", " : "   ",
			 command_option(arg, name, sizeof(name)), arg->meta ? " " : "",
			 arg->meta ? arg->meta : "");
		fprintf(out, "  %-26s", option);
		help_fold(out, arg->help, 28, 28);
	}
	if (keys) {
		fputs("  Keys: ", out);
		help_fold(out, keys, 8, 8);
	}
	fprintf(out, "  Who may use it: %s.\n", right_text(command->right));
	if (command->example)
		fprintf(out, "\nExample: sluicectl %s\n", command->example);
}

/* ------------------------------------------------------------------ sluicectl(8) */

static void write_mdoc_args(FILE *out, const struct command *command)
{
	const struct command_arg *arg = command->arg;
	char name[32];

	for (; arg && arg->key; arg++) {
		bool optional = !arg->either && (arg->option ? !arg->needed : arg->optional);

		fputs(optional ? " Oo" : "", out);
		if (arg->letter)
			fprintf(out, " Fl %c", arg->letter);
		else if (arg->option)
			fprintf(out, " Fl -%s", command_option(arg, name, sizeof(name)));
		if (arg->meta)
			fprintf(out, " Ar %s%s", arg->meta,
				arg_is_list(arg->type) && arg->type != ARG_PREFIX_FILE ? " ..."
										       : "");
		fputs(optional ? " Oc" : "", out);
		if (arg->either && arg[1].either)
			fputs(" |", out);
	}
	fputc('\n', out);
}

/* A sentence on each line, as mdoc has them; a line must not begin with a quote or a dot. */
static void write_mdoc_text(FILE *out, const char *text, const char *end)
{
	for (const char *c = text; *c; c++) {
		if ((*c == '.' || *c == '\'') && (c == text || c[-1] == '\n'))
			fputs("\\&", out);
		if (*c == '-' && c[1] == '-')
			fputs("\\-", out);
		else if (*c == '\\')
			fputs("\\e", out);
		else if (*c == ' ' && c > text && c[-1] == '.' && isupper(c[1]))
			fputc('\n', out);
		else
			fputc(*c, out);
	}
	fputs(end, out);
}

static void write_mdoc_command(FILE *out, const struct command *command)
{
	const struct command_arg *arg;
	bool options = false;
	char name[32];

	fprintf(out, ".It Cm %s", command->name);
	write_mdoc_args(out, command);
	fprintf(out, "%c", toupper(command->help[0]));
	write_mdoc_text(out, command->help + 1, ".\n");
	if (command->more)
		write_mdoc_text(out, command->more, "\n");
	for (arg = command->arg; arg && arg->key; arg++) {
		if (!arg->option)
			continue;
		fputs(options ? "" : ".Bl -tag -width Ds -compact\n", out);
		options = true;
		fprintf(out, ".It Fl %s%s%s%s\n", arg->letter ? "" : "-",
			arg->letter ? (char[]){ arg->letter, 0 }
				    : command_option(arg, name, sizeof(name)),
			arg->meta ? " Ar " : "", arg->meta ? arg->meta : "");
		write_mdoc_text(out, arg->help, "\n");
	}
	fputs(options ? ".El\n" : "", out);
}

void help_write_mdoc(FILE *out)
{
	static const struct {
		const char *title, *text;
		bool queries;
	} section[] = {
		{ "Queries", "Members of control.read_group may use these, too.", true },
		{ "Changes", "These need root or membership in control.group.", false },
	};

	for (size_t s = 0; s < 2; s++) {
		fprintf(out, ".Ss %s\n%s\n.Bl -tag -width Ds\n", section[s].title, section[s].text);
		for (size_t i = 0; i < command_count; i++) {
			enum command_right right = commands[i].right;

			if ((right == COMMAND_READS || right == COMMAND_LOCAL) ==
			    section[s].queries)
				write_mdoc_command(out, &commands[i]);
		}
		fputs(".El\n", out);
	}
}

/* ------------------------------------------------------------------ bash */

static const char bash_before[] =
	"# bash completion for sluicectl: source <(sluicectl completion bash)\n"
	"\n"
	"# What an argument may be: words, or @LIST, the first column of a list.\n"
	"_sluicectl_values() {\n"
	"	case $1 in\n"
	"	FILE) COMPREPLY=($(compgen -f -- \"$2\")) ;;\n"
	"	IFACE) COMPREPLY=($(compgen -W \"$(ls /sys/class/net 2> /dev/null)\" -- \"$2\")) ;;\n"
	"	@*) COMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" ${1#@} 2> /dev/null |\n"
	"		awk 'NR > 1 { print $1 }')\" -- \"$2\")) ;;\n"
	"	*=*) COMPREPLY=($(compgen -W \"$1\" -- \"$2\")); compopt -o nospace 2> /dev/null ;;\n"
	"	*) COMPREPLY=($(compgen -W \"$1\" -- \"$2\")) ;;\n"
	"	esac\n"
	"}\n"
	"\n"
	"_sluicectl() {\n"
	"	local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
	"	local general='--socket --output --json --watch --sort --help --version' i words=()\n"
	"	local command='' rest='' options='' valued=() places=()\n"
	"\n"
	"	COMPREPLY=()\n"
	"	for ((i = 1; i < COMP_CWORD; i++)); do\n"
	"		case ${COMP_WORDS[i]} in\n"
	"		-s | --socket | -o | --output | --sort) i=$((i + 1)) ;;\n"
	"		-*) ;;\n"
	"		*) words+=(\"${COMP_WORDS[i]}\") ;;\n"
	"		esac\n"
	"	done\n"
	"	case \"${words[0]-} ${words[1]-}\" in\n";

static const char bash_after[] =
	"	esac\n"
	"	case $previous in\n"
	"	-s | --socket) _sluicectl_values FILE \"$cur\"; return ;;\n"
	"	-o | --output) _sluicectl_values 'text wide json' \"$cur\"; return ;;\n"
	"	esac\n"
	"	for ((i = 0; i < ${#valued[@]}; i++)); do\n"
	"		[ \"${valued[i]%%=*}\" = \"$previous\" ] || continue\n"
	"		_sluicectl_values \"${valued[i]#*=}\" \"$cur\"\n"
	"		return\n"
	"	done\n"
	"	if [[ $cur == -* ]]; then\n"
	"		COMPREPLY=($(compgen -W \"$general $options\" -- \"$cur\"))\n"
	"	elif [ -z \"$command\" ]; then\n"
	"		COMPREPLY=($(compgen -W \"$rest\" -- \"$cur\"))\n"
	"	else\n"
	"		i=$((${#words[@]} - $(wc -w <<< \"$command\")))\n"
	"		# KEY=VALUE, more than once; '=' is a word of its own here.\n"
	"		case ${places[*]: -1} in *=*)\n"
	"			[ $i -lt ${#places[@]} ] || i=$((${#places[@]} - 1)) ;;\n"
	"		esac\n"
	"		[[ $cur == = || $previous == = ]] || _sluicectl_values \"${places[i]-}\" \"$cur\"\n"
	"		[ $i -gt 0 ] || COMPREPLY+=($(compgen -W \"$rest\" -- \"$cur\"))\n"
	"	fi\n"
	"}\n"
	"complete -o filenames -F _sluicectl sluicectl\n";

/* The words that may follow the first word of a name ("" where there is none): "list show set". */
static void write_next_words(FILE *out, const char *first, size_t length)
{
	const char *before = "";

	for (size_t i = 0; i < command_count; i++) {
		const char *name = commands[i].name, *word = name;

		if (length) {
			if (strncmp(name, first, length) || name[length] != ' ')
				continue;
			word = name + length + 1;
		} else if (i && !strncmp(name, commands[i - 1].name, strcspn(name, " ")) &&
			   strcspn(commands[i - 1].name, " ") == strcspn(name, " ")) {
			continue;
		}
		fprintf(out, "%s%.*s", before, (int)strcspn(word, length ? "" : " "), word);
		before = " ";
	}
}

/* command, its options, options with values, the values of its arguments by their places. */
static void write_bash_command(FILE *out, const struct command *command, const char *keys)
{
	const struct command_arg *arg;
	char name[32];

	fprintf(out, "		command='%s' options='", command->name);
	for (arg = command->arg; arg && arg->key; arg++)
		if (arg->option)
			fprintf(out, "--%s ", command_option(arg, name, sizeof(name)));
	fputs("' valued=(", out);
	for (arg = command->arg; arg && arg->key; arg++)
		if (arg->option && arg->meta)
			fprintf(out, " '--%s=%s'", command_option(arg, name, sizeof(name)),
				arg->values ? arg->values : "");
	fputs(") places=(", out);
	for (arg = command->arg; arg && arg->key; arg++)
		if (!arg->option)
			fprintf(out, " '%s'",
				arg->values			 ? arg->values
				: keys && arg->type == ARG_PAIRS ? keys
				: arg->type == ARG_FILE || arg->type == ARG_PREFIX_FILE ? "FILE"
											: "");
	fputs(")\n", out);
}

void help_write_bash(FILE *out, const char *(*pair_keys)(const char *command, const char *after))
{
	fputs(bash_before, out);
	/* Two words before one, as `rollback list` before `rollback`. */
	for (int two = 1; two >= 0; two--) {
		for (size_t i = 0; i < command_count; i++) {
			const char *name = commands[i].name;
			size_t length = strcspn(name, " ");

			if ((name[length] == ' ') != two)
				continue;
			fprintf(out, "	'%s'%s)\n", name, two ? "" : "' '*");
			write_bash_command(out, &commands[i], pair_keys(name, "="));
			if (!two) {
				fputs("		rest='", out);
				write_next_words(out, name, length);
				fputs("'\n", out);
			}
			fputs("		;;\n", out);
		}
	}
	for (size_t i = 0; i < command_count; i++) {
		size_t length = strcspn(commands[i].name, " ");

		if (!commands[i].name[length] ||
		    (i && !strncmp(commands[i].name, commands[i - 1].name, length + 1)))
			continue;
		fprintf(out, "	'%.*s '*) rest='", (int)length, commands[i].name);
		write_next_words(out, commands[i].name, length);
		fputs("' ;;\n", out);
	}
	fputs("	*) rest='", out);
	write_next_words(out, "", 0);
	fputs("' ;;\n", out);
	fputs(bash_after, out);
}
