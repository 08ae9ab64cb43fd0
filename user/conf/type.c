// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* type.c - keys whose value is a number or a name; see key.h. */
#include "conf/key.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- integers of any width ---- */

static void put(const struct key *key, void *section, u64 value)
{
	void *field = key_field(key, section);

	switch (key->size) {
	case 1:
		*(u8 *)field = (u8)value;
		break;
	case 2:
		*(u16 *)field = (u16)value;
		break;
	case 4:
		*(u32 *)field = (u32)value;
		break;
	default:
		*(u64 *)field = value;
	}
}

static u64 get(const struct key *key, const void *section)
{
	const void *field = key_field_of(key, section);

	switch (key->size) {
	case 1:
		return *(const u8 *)field;
	case 2:
		return *(const u16 *)field;
	case 4:
		return *(const u32 *)field;
	default:
		return *(const u64 *)field;
	}
}

static bool in_range(const struct key *key, u64 value)
{
	return value >= key->least && value <= key->most;
}

static void write_integer(struct writer *w, const struct key *key, const void *section)
{
	fprintf(w->out, "%llu", get(key, section));
}

static int number_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	const struct name *name = key->names ? name_find(key->names, text) : NULL;
	char buf[400];
	u64 number;
	int rc;

	if (name) {
		put(key, section, (u64)name->value);
		return 0;
	}
	rc = read_number(r, text, key->most, key_accepted(key, buf, sizeof(buf)), &number);
	if (!rc && !in_range(key, number))
		rc = key_refuse_text(r, key);
	if (!rc)
		put(key, section, number);
	return rc;
}

static void number_write(struct writer *w, const struct key *key, const void *section)
{
	const char *name = key->names ? name_of(key->names, (int)get(key, section)) : NULL;

	if (name)
		fputs(name, w->out);
	else
		write_integer(w, key, section);
}

static const char *number_accepted(const struct key *key, char *buf, size_t size)
{
	char names[300] = "";

	if (key->names)
		name_list(key->names, names, sizeof(names));
	snprintf(buf, size, "%s%s%llu to %llu", names, names[0] ? ", or " : "", key->least,
		 key->most);
	return buf;
}

const struct key_type type_number = {
	.name = "number", .text = number_read, .write = number_write, .accepted = number_accepted,
};

/* ---- numbers in a notation: what differs is how one is parsed and formatted ---- */

enum notation_id { COUNT, MODE, DURATION, PERCENT, WHOLE_PERCENT };

/* 16384, 10K, 1M */
static const char *count_format(u64 count, char *buf, size_t size)
{
	static const struct {
		u64 of;
		const char *suffix;
	} units[] = { { 1000000000, "G" }, { 1000000, "M" }, { 1000, "K" }, { 1, "" } };
	size_t i = 0;

	while (count && count % units[i].of)
		i++;
	if (!count)
		i = ARRAY_SIZE(units) - 1;
	snprintf(buf, size, "%llu%s", count / units[i].of, units[i].suffix);
	return buf;
}

/* Octal permissions, as in chmod(1). */
static int mode_parse(const char *text, u64 *ret, const char **ret_reason)
{
	if (strlen(text) > 5 || strspn(text, "01234567") != strlen(text))
		return -EINVAL;
	*ret = strtoul(text, NULL, 8);
	return 0;
}

static const char *mode_format(u64 mode, char *buf, size_t size)
{
	snprintf(buf, size, "%04llo", mode);
	return buf;
}

static int permille_parse(const char *text, u64 *ret, const char **ret_reason)
{
	u32 permille;
	int rc = percent_parse(text, &permille);

	if (!rc)
		*ret = permille;
	return rc;
}

static const char *permille_format(u64 permille, char *buf, size_t size)
{
	snprintf(buf, size, permille % 10 ? "%llu.%llu%%" : "%llu%%", permille / 10, permille % 10);
	return buf;
}

static int whole_percent_parse(const char *text, u64 *ret, const char **ret_reason)
{
	u32 permille;

	if (percent_parse(text, &permille) || permille % 10)
		return -EINVAL;
	*ret = permille / 10;
	return 0;
}

static const char *whole_percent_format(u64 percent, char *buf, size_t size)
{
	snprintf(buf, size, "%llu%%", percent);
	return buf;
}

static const struct notation {
	/* 0 or -EINVAL; the reason may stay NULL: then the error has the range. */
	int (*parse)(const char *text, u64 *ret, const char **ret_reason);
	const char *(*format)(u64 number, char *buf, size_t size);
	const char *before, *after;	/* of the range, as text */
} notations[] = {
	[COUNT] = { count_parse, count_format, "", "" },
	[MODE] = { mode_parse, mode_format, "an octal mode, ", "" },
	[DURATION] = { duration_parse, duration_format, "a duration of ", "" },
	[PERCENT] = { permille_parse, permille_format, "", "" },
	[WHOLE_PERCENT] = { whole_percent_parse, whole_percent_format, "", ", in whole percent" },
};

static int notation_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	const char *reason = NULL;
	u64 number;
	int rc = notations[key->type->variant].parse(text, &number, &reason);

	if (rc && reason)
		return text_fail(r, ": %s", reason);
	if (rc || !in_range(key, number))
		return key_refuse_text(r, key);
	put(key, section, number);
	return 0;
}

static void notation_write(struct writer *w, const struct key *key, const void *section)
{
	char text[64];

	fputs(notations[key->type->variant].format(get(key, section), text, sizeof(text)), w->out);
}

/* In quotes: without them it would be another number in YAML. */
static void mode_write(struct writer *w, const struct key *key, const void *section)
{
	fprintf(w->out, "'%04llo'", get(key, section));
}

static const char *notation_accepted(const struct key *key, char *buf, size_t size)
{
	const struct notation *of = &notations[key->type->variant];
	char least[48], most[48];

	snprintf(buf, size, "%s%s to %s%s", of->before,
		 of->format(key->least, least, sizeof(least)),
		 of->format(key->most, most, sizeof(most)), of->after);
	return buf;
}

#define TYPE_NOTATION(what, id, function)                                          \
	{ .name = what, .variant = id, .text = notation_read, .write = function,     \
	  .accepted = notation_accepted }

const struct key_type type_count = TYPE_NOTATION("count", COUNT, write_integer);
const struct key_type type_mode = TYPE_NOTATION("mode", MODE, mode_write);
const struct key_type type_duration = TYPE_NOTATION("duration", DURATION, notation_write);
const struct key_type type_percent = TYPE_NOTATION("share", PERCENT, notation_write);
const struct key_type type_whole_percent = TYPE_NOTATION("share", WHOLE_PERCENT, notation_write);

/* ---- names ---- */

static int enum_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	const struct name *name = name_find(key->names, text);

	if (!name)
		return key_refuse_text(r, key);
	put(key, section, (u64)name->value);
	return 0;
}

static void enum_write(struct writer *w, const struct key *key, const void *section)
{
	fputs(name_of(key->names, (int)get(key, section)), w->out);
}

static const char *enum_accepted(const struct key *key, char *buf, size_t size)
{
	return name_list(key->names, buf, size);
}

const struct key_type type_enum = {
	.name = "name", .text = enum_read, .write = enum_write, .accepted = enum_accepted,
};

static const struct name bool_names[] = {
	{ "true", true }, { "false", false }, { "yes", true }, { "no", false }, { NULL, 0 },
};

static int bool_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	int value, rc = read_name(r, text, bool_names, &value);

	if (!rc)
		put(key, section, (u64)value);
	return rc;
}

static void bool_write(struct writer *w, const struct key *key, const void *section)
{
	fputs(name_of(bool_names, (int)get(key, section)), w->out);
}

const struct key_type type_bool = {
	.name = "true or false", .size = sizeof(bool), .text = bool_read, .write = bool_write,
	.accepts = "true, false, yes, no",
};

static int flag_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	int value, rc = read_name(r, text, key->names, &value);

	if (rc)
		return rc;
	if (get(key, section) & (u64)value)
		return text_fail(r, " again; accepted: each once");
	put(key, section, get(key, section) | (u64)value);
	return 0;
}

static int flags_begin(struct reader *r, size_t count, const struct key *key, void *section)
{
	put(key, section, 0);
	return !count && key->least ? key_refuse_text(r, key) : 0;
}

static void flags_write(struct writer *w, const struct key *key, const void *section)
{
	const char *apart = "[";
	u64 left = get(key, section);

	for (const struct name *name = key->names; name->name; name++) {
		if (!(left & (u64)name->value))
			continue;
		fprintf(w->out, "%s%s", apart, name->name);
		left &= ~(u64)name->value;
		apart = ", ";
	}
	fputs(apart[0] == '[' ? "[]" : "]", w->out);
}

const struct key_type type_flags = {
	.name = "list", .items = flags_begin, .text = flag_read, .write = flags_write, .accepted = enum_accepted,
};
