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

static int count_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	u64 count;
	int rc = read_count(r, text, &count);

	if (!rc && !in_range(key, count))
		rc = key_refuse_text(r, key);
	if (!rc)
		put(key, section, count);
	return rc;
}

static const char *count_accepted(const struct key *key, char *buf, size_t size)
{
	char least[32], most[32];

	snprintf(buf, size, "%s to %s", count_format(key->least, least, sizeof(least)),
		 count_format(key->most, most, sizeof(most)));
	return buf;
}

const struct key_type type_count = {
	.name = "count", .text = count_read, .write = write_integer, .accepted = count_accepted,
};

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

/* ---- octal permissions, as in chmod(1) ---- */

static int mode_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	unsigned long mode;

	if (strlen(text) > 5 || strspn(text, "01234567") != strlen(text))
		return key_refuse_text(r, key);
	mode = strtoul(text, NULL, 8);
	if (!in_range(key, mode))
		return key_refuse_text(r, key);
	put(key, section, mode);
	return 0;
}

static void mode_write(struct writer *w, const struct key *key, const void *section)
{
	fprintf(w->out, "'%04llo'", get(key, section));
}

static const char *mode_accepted(const struct key *key, char *buf, size_t size)
{
	snprintf(buf, size, "an octal mode, %04llo to %04llo", key->least, key->most);
	return buf;
}

const struct key_type type_mode = {
	.name = "mode", .text = mode_read, .write = mode_write, .accepted = mode_accepted,
};

/* ---- durations, percentages ---- */

static int duration_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	char buf[128];
	u64 ns;
	int rc = read_duration(r, text, key->least, key->most,
			       key_accepted(key, buf, sizeof(buf)), &ns);

	if (!rc)
		put(key, section, ns);
	return rc;
}

static void duration_write(struct writer *w, const struct key *key, const void *section)
{
	char text[64];

	fputs(duration_format(get(key, section), text, sizeof(text)), w->out);
}

static const char *duration_accepted(const struct key *key, char *buf, size_t size)
{
	char least[48], most[48];

	snprintf(buf, size, "a duration of %s to %s",
		 duration_format(key->least, least, sizeof(least)),
		 duration_format(key->most, most, sizeof(most)));
	return buf;
}

const struct key_type type_duration = {
	.name = "duration", .text = duration_read, .write = duration_write,
	.accepted = duration_accepted,
};

static const char *percent_format(u64 permille, char *buf, size_t size)
{
	snprintf(buf, size, permille % 10 ? "%llu.%llu%%" : "%llu%%", permille / 10, permille % 10);
	return buf;
}

static int percent_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	char buf[64];
	u32 permille;
	int rc = read_percent(r, text, key->least, key->most,
			      key_accepted(key, buf, sizeof(buf)), &permille);

	if (!rc)
		put(key, section, permille);
	return rc;
}

static void percent_write(struct writer *w, const struct key *key, const void *section)
{
	char text[32];

	fputs(percent_format(get(key, section), text, sizeof(text)), w->out);
}

static const char *percent_accepted(const struct key *key, char *buf, size_t size)
{
	char least[32], most[32];

	snprintf(buf, size, "%s to %s", percent_format(key->least, least, sizeof(least)),
		 percent_format(key->most, most, sizeof(most)));
	return buf;
}

const struct key_type type_percent = {
	.name = "share", .text = percent_read, .write = percent_write,
	.accepted = percent_accepted,
};

static int whole_percent_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	char buf[64];
	u32 permille;
	int rc = read_percent(r, text, 10 * key->least, 10 * key->most,
			      key_accepted(key, buf, sizeof(buf)), &permille);

	if (!rc && permille % 10)
		rc = key_refuse_text(r, key);
	if (!rc)
		put(key, section, permille / 10);
	return rc;
}

static void whole_percent_write(struct writer *w, const struct key *key, const void *section)
{
	fprintf(w->out, "%llu%%", get(key, section));
}

static const char *whole_percent_accepted(const struct key *key, char *buf, size_t size)
{
	snprintf(buf, size, "%llu%% to %llu%%, in whole percent", key->least, key->most);
	return buf;
}

const struct key_type type_whole_percent = {
	.name = "share", .text = whole_percent_read, .write = whole_percent_write,
	.accepted = whole_percent_accepted,
};

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

static const char *bool_accepted(const struct key *key, char *buf, size_t size)
{
	return name_list(bool_names, buf, size);
}

const struct key_type type_bool = {
	.name = "true or false", .size = sizeof(bool), .text = bool_read, .write = bool_write,
	.accepted = bool_accepted,
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
