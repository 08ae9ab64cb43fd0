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

/* ---- numbers: what differs is the notation and whether there are names instead ---- */

enum notation_id { NUMBER, HEX, COUNT, MODE, DURATION, PERCENT, WHOLE_PERCENT, NAME };

static const char *number_format(u64 number, char *buf, size_t size)
{
	snprintf(buf, size, "%llu", number);
	return buf;
}

static const char *hex_format(u64 number, char *buf, size_t size)
{
	snprintf(buf, size, "0x%llx", number);
	return buf;
}

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

/* In quotes: without them it would be another number in YAML. */
static const char *mode_quote(u64 mode, char *buf, size_t size)
{
	snprintf(buf, size, "'%04llo'", mode);
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

typedef const char *format_number(u64 number, char *buf, size_t size);

static const struct notation {
	/* 0 or -EINVAL; the reason may stay NULL: then the error has the range. */
	int (*parse)(const char *text, u64 *ret, const char **ret_reason);
	format_number *write, *format; /* in a file; in the range, as text */
	const char *before, *after;    /* of the range */
} notations[] = {
	[NUMBER] = { number_parse, number_format, number_format, "", "" },
	[HEX] = { number_parse, hex_format, hex_format, "", "" },
	[COUNT] = { count_parse, number_format, count_format, "", "" },
	[MODE] = { mode_parse, mode_quote, mode_format, "an octal mode, ", "" },
	[DURATION] = { duration_parse, duration_format, duration_format, "a duration of ", "" },
	[PERCENT] = { permille_parse, permille_format, permille_format, "", "" },
	[WHOLE_PERCENT] = { whole_percent_parse, whole_percent_format, whole_percent_format, "",
			    ", in whole percent" },
	[NAME] = { .parse = NULL },
};

static const struct name bool_names[] = {
	{ "true", true }, { "false", false }, { "yes", true }, { "no", false }, { NULL, 0 },
};

static const struct name *names_of(const struct key *key)
{
	return key->type == &type_bool ? bool_names : key->names;
}

static int value_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	const struct notation *of = &notations[key->type->variant];
	const struct name *name = names_of(key) ? name_find(names_of(key), text) : NULL;
	const char *reason = NULL;
	u64 number = 0;
	int rc = name ? 0 : of->parse ? of->parse(text, &number, &reason) : -EINVAL;

	if (rc && reason)
		return text_fail(r, ": %s", reason);
	if (rc || (!name && !in_range(key, number)))
		return key_refuse_text(r, key);
	put(key, section, name ? (u64)name->value : number);
	return 0;
}

static void value_write(struct writer *w, const struct key *key, const void *section)
{
	u64 number = get(key, section);
	const char *name = names_of(key) ? name_of(names_of(key), (int)number) : NULL;
	char text[64];

	fputs(name ? name : notations[key->type->variant].write(number, text, sizeof(text)),
	      w->out);
}

static const char *value_accepted(const struct key *key, char *buf, size_t size)
{
	const struct notation *of = &notations[key->type->variant];
	char names[300] = "", least[48], most[48];

	if (names_of(key))
		name_list(names_of(key), names, sizeof(names));
	if (of->parse)
		snprintf(buf, size, "%s%s%s%s to %s%s", names, names[0] ? ", or " : "", of->before,
			 of->format(key->least, least, sizeof(least)),
			 of->format(key->most, most, sizeof(most)), of->after);
	else
		snprintf(buf, size, "%s", names);
	return buf;
}

/* clang-format off */
#define TYPE_VALUE(what, id, ...)							\
	{ .name = what, .variant = id, .text = value_read, .write = value_write,		\
	  .accepted = value_accepted, ##__VA_ARGS__ }
/* clang-format on */

const struct key_type type_number = TYPE_VALUE("number", NUMBER);
const struct key_type type_hex = TYPE_VALUE("number", HEX);
const struct key_type type_count = TYPE_VALUE("count", COUNT);
const struct key_type type_mode = TYPE_VALUE("mode", MODE);
const struct key_type type_duration = TYPE_VALUE("duration", DURATION);
const struct key_type type_percent = TYPE_VALUE("share", PERCENT);
const struct key_type type_whole_percent = TYPE_VALUE("share", WHOLE_PERCENT);
const struct key_type type_enum = TYPE_VALUE("name", NAME);
const struct key_type type_bool = TYPE_VALUE("true or false", NAME, .size = sizeof(bool));

/* ---- flags ---- */

static int flag_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	const struct name *name = name_find(key->names, text);

	if (!name)
		return key_refuse_text(r, key);
	if (get(key, section) & (u64)name->value)
		return text_fail(r, " again; accepted: each once");
	put(key, section, get(key, section) | (u64)name->value);
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

static const char *flags_accepted(const struct key *key, char *buf, size_t size)
{
	return name_list(key->names, buf, size);
}

const struct key_type type_flags = {
	.name = "list",
	.items = flags_begin,
	.text = flag_read,
	.write = flags_write,
	.accepted = flags_accepted,
};
