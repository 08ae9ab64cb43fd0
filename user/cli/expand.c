// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * expand.c - see expand.h. A field that is not there makes its alternative fail, and the next one
 * is tried.
 */
#include "cli/expand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "lib/visible.h"
#include "lib/units.h"

static bool expand(const struct scope *scope, const char *text, const char *end, FILE *out);

/* ------------------------------------------------------------------ forms */

static u64 rounded(double ns, u64 unit, bool up)
{
	u64 value = ns < 0 ? 0 : (u64)ns;

	return (value + (up ? unit - 1 : 0)) / unit * unit;
}

static bool write_time(double ns, u64 unit, bool up, FILE *out)
{
	char text[64];

	fputs(duration_format(rounded(ns, unit, up), text, sizeof(text)), out);
	return true;
}

static bool form_n(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	char text[64];

	if (scope->brief && number >= 100000)
		fputs(short_rate(number, text, sizeof(text)), out);
	else
		fputs(thousands((unsigned long long)number, text, sizeof(text)), out);
	return true;
}

static bool form_some(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	return number > 0 && form_n(scope, value, number, out);
}

static bool form_rate(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	char text[64];

	fputs(short_rate(number, text, sizeof(text)), out);
	return true;
}

static bool form_about(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	fputs(number > 0 ? "~" : "", out);
	return form_rate(scope, value, number, out);
}

static bool form_changes(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	fprintf(out, "%.0f live change%s%s", number, number == 1 ? "" : "s",
		number ? " (sluicectl save writes them to the file)" : "");
	return true;
}

/* When a packet passes: to the millisecond, rounded up; all ones, -1 in JSON, is never. */
static bool form_wait(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	if (number < 0) {
		fputs("never", out);
		return true;
	}
	fputs("in ", out);
	return write_time(number, 1000000, true, out);
}

/* Until a packet passes: to the millisecond, rounded up; 0 is not there. */
static bool form_after(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	return number > 0 && write_time(number, 1000000, true, out);
}

static bool form_hour_behind(const struct scope *scope, const json_t *value, double number,
			     FILE *out)
{
	return number < -3600e9;
}

/* As the label of a line. */
static bool form_label(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	fprintf(out, "%-13s", scope->key ? scope->key : "");
	return true;
}

/* "bad_secret 3, too_old 1": the members of an object that are not 0. */
static bool form_counts(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	const char *name, *before = "";
	const json_t *count;

	json_object_foreach((json_t *)value, name, count) {
		if (json_integer_value(count) <= 0)
			continue;
		fprintf(out, "%s%s %lld", before, name, (long long)json_integer_value(count));
		before = ", ";
	}
	return before[0];
}

/* "dst, dport": the names of the members of an object. */
static bool form_names(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	const char *name, *before = "";
	const json_t *member;

	json_object_foreach((json_t *)value, name, member) {
		fprintf(out, "%s%s", before, name);
		before = ", ";
	}
	return before[0];
}

static bool write_value(const json_t *value, bool verbatim, FILE *out);

/* The members of an object as options to type, or with their names as words, without "none". */
static bool write_members(const json_t *value, bool options, FILE *out)
{
	const char *name, *before = "";
	const json_t *member;

	json_object_foreach((json_t *)value, name, member) {
		const char *text = json_string_value(member);

		if (!options && text && !strcmp(text, "none"))
			continue;
		fprintf(out, "%s%s", before, options ? "--" : "");
		for (const char *c = name; *c; c++)
			fputc(*c != '_' ? *c : options ? '-' : ' ', out);
		fputc(' ', out);
		write_value(member, false, out);
		before = " ";
	}
	return before[0];
}

/* "proto tcp dport 443" */
static bool form_fields(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	return write_members(value, false, out);
}

/* "--proto tcp --dport 443", as options to type */
static bool form_options(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	return write_members(value, true, out);
}

static bool form_hex(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	fprintf(out, "%#llx", (unsigned long long)json_integer_value(value));
	return true;
}

/* "soft 10%" of "{soft: 10%, for: 30s}"; a hard throttle is not there. */
static bool form_throttle(const struct scope *scope, const json_t *value, double number, FILE *out)
{
	char kind[16], percent[16];
	const char *text = json_string_value(value);

	if (!text || sscanf(text, "{%15[a-z]: %15[0-9.%]", kind, percent) != 2)
		return false;
	fprintf(out, "%s %s", kind, percent);
	return true;
}

static const struct form {
	const char *name;
	bool (*write)(const struct scope *scope, const json_t *value, double number, FILE *out);
} forms[] = {
	{ "n", form_n },		     /* 1,234,567; where the terminal is narrow 1.23M */
	{ "some", form_some },		     /* the same; 0 is not there */
	{ "rate", form_rate },		     /* 1.23M */
	{ "about", form_about },	     /* ~1.23M: an estimate; 0 as it is */
	{ "changes", form_changes },	     /* 3 live changes (...) */
	{ "wait", form_wait },		     /* ns: in 1.5s, never */
	{ "after", form_after },	     /* ns: 1.5s; 0 is not there */
	{ "hour_behind", form_hour_behind }, /* ns: a condition */
	{ "label", form_label },	     /* 13 characters */
	{ "counts", form_counts },	     /* an object of counters */
	{ "names", form_names },	     /* of an object's members */
	{ "fields", form_fields },	     /* proto tcp dport 443: of an object */
	{ "options", form_options },	     /* --proto tcp --dport 443 */
	{ "hex", form_hex },		     /* 0x51 */
	{ "throttle", form_throttle },
};

/* ------------------------------------------------------------------ fields */

static size_t key_length(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");

	while (n && text[n] == '.' && text[n + 1] >= 'a' && text[n + 1] <= 'z')
		n += 1 + strspn(text + n + 1, "abcdefghijklmnopqrstuvwxyz0123456789_");
	return n;
}

static const json_t *member(const json_t *object, const char *path, size_t length)
{
	char name[64];

	while (object && length) {
		size_t n = strcspn(path, ".");

		if (n > length)
			n = length;
		if (n >= sizeof(name))
			return NULL;
		memcpy(name, path, n);
		name[n] = '\0';
		object = json_object_get(object, name);
		path += n + (n < length);
		length -= n + (n < length);
	}
	return object;
}

const json_t *scope_find(const struct scope *scope, const char *path, size_t length)
{
	const json_t *value = NULL;

	for (; scope && !value; scope = scope->outer)
		value = member(scope->item, path, length);
	return value;
}

bool is_there(const json_t *value)
{
	return value && !json_is_null(value) && !json_is_false(value) &&
	       (!json_is_string(value) || json_string_length(value)) &&
	       (!json_is_array(value) || json_array_size(value));
}

/* Of a longer list the first ones are written (-o json has all): a set may have 100,000
 * prefixes. */
#define ITEMS_MAX 16

static void write_text(const char *text, bool verbatim, FILE *out)
{
	char *visible = visible_new(text, verbatim ? VISIBLE_TEXT : VISIBLE_LINE);

	fputs(visible ? visible : "", out);
	free(visible);
}

static bool write_value(const json_t *value, bool verbatim, FILE *out)
{
	const json_t *item;
	size_t i;

	if (json_is_string(value))
		write_text(json_string_value(value), verbatim, out);
	else if (json_is_integer(value))
		fprintf(out, "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		fprintf(out, "%g", json_real_value(value));
	json_array_foreach(value, i, item) {
		if (i == ITEMS_MAX) {
			fprintf(out, " and %zu more", json_array_size(value) - i);
			break;
		}
		fputs(i ? ", " : "", out);
		write_value(item, verbatim, out);
	}
	return is_there(value);
}

static const char *matching(const char *text, const char *end)
{
	int depth = 0;

	for (; text < end; text++) {
		depth += *text == '{' || *text == '[';
		depth -= *text == '}' || *text == ']';
		if (!depth)
			break;
	}
	return text;
}

/* The text for each item of an array. */
static bool write_items(const struct scope *scope, const json_t *list, const char *text,
			const char *end, FILE *out)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) {
		const struct scope inner = { .item = item,
					     .brief = scope->brief,
					     .verbatim = scope->verbatim,
					     .optional = scope->optional };

		fputs(i ? ", " : "", out);
		expand(&inner, text, end, out);
	}
	return json_array_size(list) > 0;
}

/* Numbers: times `factor`, divided by `divisor`. */
static const struct {
	const char *name, *format;
	double factor, divisor;
} number_forms[] = {
	{ "ms", "%.0f ms", 1, 1e6 },	  /* ns: 12 ms */
	{ "seconds", "%.0f s", 1, 1e9 },  /* ns: 12 s */
	{ "offset", "%+.1f ms", 1, 1e6 }, /* ns: +1.5 ms */
	{ "percent", "%.1f%%", 100, 1 },  /* 0.125: 12.5% */
	{ "percent2", "%.2f%%", 100, 1 }, /* 0.125: 12.50% */
	{ "scale", "%.2f", 1, 1 },	  /* 1.50 */
};

/* Times: times `factor` nanoseconds, rounded to `unit`. */
static const struct {
	const char *name;
	double factor;
	u64 unit;
	bool up;
} time_forms[] = {
	{ "left", 1, SL_NS_PER_SEC, false },   /* 1h30m, to the second */
	{ "left_up", 1, SL_NS_PER_SEC, true }, /* so that what was just set for 10s shows 10s */
	{ "time", 1, 1, false },	       /* 1.5s */
	{ "time_ms", 1e6, 1, false },	       /* of ms */
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool write_form(const struct scope *scope, const char *name, size_t length,
		       const json_t *value, double number, FILE *out)
{
	char form[16];

	snprintf(form, sizeof(form), "%.*s", (int)length, name);
	for (size_t i = 0; i < COUNT(forms); i++)
		if (!strcmp(forms[i].name, form))
			return forms[i].write(scope, value, number, out);
	for (size_t i = 0; i < COUNT(number_forms); i++)
		if (!strcmp(number_forms[i].name, form))
			return fprintf(out, number_forms[i].format,
				       number_forms[i].factor * number / number_forms[i].divisor);
	for (size_t i = 0; i < COUNT(time_forms); i++)
		if (!strcmp(time_forms[i].name, form))
			return write_time(time_forms[i].factor * number, time_forms[i].unit,
					  time_forms[i].up, out);
	fprintf(out, "(no form %s)", form);
	return true;
}

/* A member of the reply. Outside of braces a missing one is a mistake in the row: print its name.
 */
static const json_t *find_member(const struct scope *scope, const char *path, size_t length,
				 FILE *out)
{
	const json_t *value = scope_find(scope, path, length);

	if (!value && !scope->optional)
		fprintf(out, "(missing:%.*s)", (int)length, path);
	return value;
}

/* The field behind '$'. *ret_end is the text behind it; false if the field is not there. */
static bool write_field(const struct scope *scope, const char *text, const char *end,
			const char **ret_end, FILE *out)
{
	size_t length = key_length(text);
	bool is_key = text[0] == '@';
	const json_t *value;
	double number;
	const char *close;

	if (text[0] == '^') {
		*ret_end = text + 1;
		return scope->first;
	}
	value = is_key ? NULL : find_member(scope, text, length, out);
	number = json_number_value(value);
	text += is_key ? 1 : length;
	while ((*text == '+' || *text == '/') && key_length(text + 1)) {
		const json_t *other = find_member(scope, text + 1, key_length(text + 1), out);
		double operand = json_number_value(other);

		number = *text == '+' ? number + operand : operand > 0 ? number / operand : 0;
		text += 1 + key_length(text + 1);
	}
	*ret_end = text;
	if (*text == '[') {
		close = matching(text, end);
		*ret_end = close + 1;
		return write_items(scope, value, text + 1, close, out);
	}
	if (*text == '?') {
		*ret_end = text + 1;
		return is_there(value);
	}
	length = *text == '=' ? strspn(text + 1, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;
	if (length) {
		*ret_end = text + 1 + length;
		if (json_is_integer(value))
			return json_integer_value(value) == atoll(text + 1);
		return json_string_length(value) == length &&
		       !memcmp(json_string_value(value), text + 1, length);
	}
	if (*text == ':' && key_length(text + 1)) {
		length = key_length(text + 1);
		*ret_end = text + 1 + length;
		return (is_key || is_there(value)) &&
		       write_form(scope, text + 1, length, value, number, out);
	}
	if (is_key && scope->key)
		write_text(scope->key, false, out);
	return is_key ? scope->key != NULL : write_value(value, scope->verbatim, out);
}

/* The first alternative whose fields are there. */
static void write_group(const struct scope *scope, const char *text, const char *end, FILE *out)
{
	struct scope group = *scope;

	group.optional = true;
	while (text <= end) {
		const char *stop = text;
		char *written = NULL;
		size_t size;
		FILE *part = open_memstream(&written, &size);
		bool there;

		while (stop < end && *stop != '|')
			stop = (*stop == '{' || *stop == '[' ? matching(stop, end) : stop) + 1;
		there = part && expand(&group, text, stop, part);
		if (part)
			fclose(part);
		if (there)
			fwrite(written, 1, size, out);
		free(written);
		if (there)
			return;
		text = stop + 1;
	}
}

static bool expand(const struct scope *scope, const char *text, const char *end, FILE *out)
{
	bool there = true;

	while (text < end) {
		if (*text == '$') {
			there &= write_field(scope, text + 1, end, &text, out);
		} else if (*text == '{') {
			const char *close = matching(text, end);

			write_group(scope, text + 1, close, out);
			text = close + 1;
		} else {
			fputc(*text++, out);
		}
	}
	return there;
}

char *expanded(const struct scope *scope, const char *text)
{
	char *written = NULL;
	size_t size;
	FILE *out = open_memstream(&written, &size);

	if (out) {
		expand(scope, text, text + strlen(text), out);
		fclose(out);
	}
	if (!written) {
		fputs("sluicectl: out of memory\n", stderr);
		exit(1);
	}
	return written;
}
