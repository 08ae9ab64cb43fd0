// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rule_values.c - see rule_values.h. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config_text.h"
#include "request/rules/rule_private.h"
#include "request/rules/rule_values.h"

#define WHY_TEXT 320

/* ---- errors ---- */

/* "USER,/search": what a VALUE of the rule looks like. */
static const char *form_of(const struct rule *rule, char *buf, size_t size)
{
	struct request_descriptor form = { .count = rule->depth };
	char name[REQUEST_ENTRIES_MAX][32];
	size_t len;

	for (u32 i = 0; i < rule->depth; i++) {
		snprintf(name[i], sizeof(name[i]), "%s", rule->entry[i].key);
		for (char *c = name[i]; *c; c++)
			*c = (char)toupper((unsigned char)*c);
		form.entry[i].value = (struct bytes){ name[i], strlen(name[i]) };
	}
	len = rule_values_write(rule, &form, buf, size - 1);
	buf[len < size ? len : size - 1] = '\0';
	buf[config_text_cut(buf, 100)] = '\0';
	return rule->place == RULE_DEFAULT ? "KEY=VALUE[,KEY=VALUE]" : buf;
}

static int refuse(const struct rule *rule, struct bytes text, const char *why, struct sl_err *err)
{
	char form[256], found[104];

	if (rule_has_one_count(rule))
		return sl_err_set(err, EINVAL,
				  "found a value; accepted: none, the rule has one count for all "
				  "its requests");
	if (!text.at)
		return sl_err_set(err, EINVAL, "VALUE is missing; accepted: %s",
				  form_of(rule, form, sizeof(form)));
	snprintf(found, sizeof(found), "%.*s", (int)(text.len < 100 ? text.len : 100), text.at);
	found[config_text_cut(found, 100)] = '\0';
	return sl_err_set(err, EINVAL, "found '%s', %s; accepted: %s%s", found, why,
			  form_of(rule, form, sizeof(form)),
			  rule->depth == 1 ? "" : ", a value with a comma in double quotes");
}

/* ---- reading ---- */

/* The field at `rest`, which then is after it; *to takes what was in quotes. False: a quote is
 * wrong. */
static bool cut_field(struct bytes *rest, char **to, struct bytes *ret)
{
	const char *end = rest->at + rest->len, *at = rest->at;

	if (rest->len && *at == '"') {
		ret->at = *to;
		for (at++; at < end && (*at != '"' || (at + 1 < end && at[1] == '"')); at++) {
			at += *at == '"';
			*(*to)++ = *at;
		}
		ret->len = (size_t)(*to - ret->at);
		if (at == end || (++at < end && *at != ','))
			return false;
	} else {
		at = rest->len ? memchr(at, ',', rest->len) : NULL;
		at = at ? at : end;
		*ret = (struct bytes){ rest->at, (size_t)(at - rest->at) };
	}
	*rest = (struct bytes){ at, (size_t)(end - at) };
	return true;
}

/* Returns the number of fields, 0: not in this form. */
static u32 cut_fields(struct bytes text, char *to, struct bytes ret[REQUEST_ENTRIES_MAX])
{
	u32 count = 0;

	for (;; text.at++, text.len--) {
		if (count == REQUEST_ENTRIES_MAX || !cut_field(&text, &to, &ret[count++]))
			return 0;
		if (!text.len)
			return count;
	}
}

/* Another spelling of an address is the same value. */
static bool is_fixed(const char *fixed, struct bytes value)
{
	struct bytes own = { fixed, strlen(fixed) };
	struct sl_prefix a, b;
	const char *reason;

	return bytes_same(own, value) ||
	       (!value_network(own, &a, &reason) && !value_network(value, &b, &reason) &&
		sl_prefix_equal(&a, &b));
}

static bool put_default(const struct bytes *field, u32 count, struct request_descriptor *ret)
{
	for (ret->count = 0; ret->count < count; ret->count++) {
		struct bytes text = field[ret->count];
		const char *is = text.len ? memchr(text.at, '=', text.len) : NULL;

		if (!is)
			return false;
		ret->entry[ret->count] =
			(struct request_entry){ { text.at, (size_t)(is - text.at) },
						{ is + 1, text.len - (size_t)(is + 1 - text.at) } };
	}
	return true;
}

/* Of all entries, or of those without a value of their own. False, and why not. */
static bool put_values(const struct rule *rule, const struct bytes *field, u32 count,
		       struct request_descriptor *ret, char why[WHY_TEXT])
{
	bool all = count == rule->depth;
	u32 open = 0;

	for (u32 i = 0; i < rule->depth; i++)
		open += !rule->entry[i].fixed;
	if (!all && count != open) {
		snprintf(why, WHY_TEXT, "%u value%s for %u keys", count, count == 1 ? "" : "s",
			 rule->depth);
		return false;
	}
	for (ret->count = 0; ret->count < rule->depth; ret->count++) {
		const struct rule_entry *entry = &rule->entry[ret->count];
		struct bytes value = all || !entry->fixed ? *field++ : BYTES_OF("");

		if (all && entry->fixed &&
		    !is_fixed(entry->fixed, rule_value(rule, ret->count, value))) {
			snprintf(why, WHY_TEXT, "which is not for %.100s", entry->fixed);
			return false;
		}
		if (entry->fixed)
			value = (struct bytes){ entry->fixed, strlen(entry->fixed) };
		ret->entry[ret->count] =
			(struct request_entry){ { entry->key, strlen(entry->key) }, value };
	}
	return true;
}

int rule_values_read(const struct rule *rule, struct bytes text, struct rule_values *ret,
		     struct sl_err *err)
{
	struct bytes field[REQUEST_ENTRIES_MAX] = { text };
	char why[WHY_TEXT] = "with a value that has no key";
	u32 count = text.at != NULL;

	ret->descriptor = (struct request_descriptor){ .count = 0 };
	ret->unquoted = NULL;
	if (rule_has_one_count(rule))
		return text.at ? refuse(rule, text, "", err) : 0;
	if (text.len > REQUEST_VALUE_MAX)
		return refuse(rule, text, "more than 65536 bytes", err);
	if (text.at && rule->depth != 1) {
		if (memchr(text.at, '"', text.len) && !(ret->unquoted = malloc(text.len)))
			return sl_err_no_memory(err);
		count = cut_fields(text, ret->unquoted, field);
		if (!count)
			return refuse(rule, text, "where a quote is wrong, or with too many values",
				      err);
	}
	if (rule->place == RULE_DEFAULT)
		return count && put_default(field, count, &ret->descriptor)
			       ? 0
			       : refuse(rule, text, why, err);
	return put_values(rule, field, count, &ret->descriptor, why) ? 0
								     : refuse(rule, text, why, err);
}

void rule_values_free(struct rule_values *values)
{
	free(values->unquoted);
	values->unquoted = NULL;
}

int rule_values_match(const struct ruleset *set, const struct rule *rule, struct bytes text,
		      struct rule_values *ret, struct rule_match *ret_match, struct sl_err *err)
{
	int rc = rule_values_read(rule, text, ret, err);
	char why[WHY_TEXT];

	*ret_match = (struct rule_match){ .rule = rule };
	if (rc || rule_has_one_count(rule) || rule->place == RULE_OF_REQUEST)
		return rc;
	ruleset_match(set, (struct bytes){ rule->domain, strlen(rule->domain) }, &ret->descriptor,
		      ret_match);
	if (ret_match->rule == rule)
		return 0;
	if (ret_match->rule)
		snprintf(why, sizeof(why), "whose requests meet %.100s/%.150s",
			 ret_match->rule->domain, ret_match->rule->path);
	else
		snprintf(why, sizeof(why), "whose requests meet no rule");
	refuse(rule, text, why, err);
	return -ENOENT;
}

/* ---- writing ---- */

struct text {
	char *buf;
	size_t size, length;
};

static void put(struct text *text, const char *at, size_t len)
{
	size_t room = text->length < text->size ? text->size - text->length : 0;

	if (len && room)
		memcpy(text->buf + text->length, at, len < room ? len : room);
	text->length += len;
}

/* In quotes each quote is written twice. */
static void put_part(struct text *text, struct bytes part, bool in_quotes)
{
	const char *quote;

	while (in_quotes && part.len && (quote = memchr(part.at, '"', part.len))) {
		size_t len = (size_t)(quote + 1 - part.at);

		put(text, part.at, len);
		put(text, "\"", 1);
		part = (struct bytes){ part.at + len, part.len - len };
	}
	put(text, part.at, part.len);
}

static bool needs_quotes(struct bytes value)
{
	return value.len && (value.at[0] == '"' || memchr(value.at, ',', value.len));
}

struct bytes rule_value_counted(const struct rule *rule,
				const struct request_descriptor *descriptor, u32 i)
{
	const char *fixed = i < rule->depth ? rule->entry[i].fixed : NULL;

	return fixed ? (struct bytes){ fixed, strlen(fixed) }
		     : rule_value(rule, i, descriptor->entry[i].value);
}

size_t rule_values_write(const struct rule *rule, const struct request_descriptor *descriptor,
			 char *buf, size_t size)
{
	struct text text = { buf, size, 0 };

	for (u32 i = 0; !rule_has_one_count(rule) && i < descriptor->count; i++) {
		struct bytes part[] = { BYTES_OF(""), BYTES_OF(""),
					rule_value_counted(rule, descriptor, i) };
		bool quotes = false;

		if (rule->place == RULE_DEFAULT) {
			part[0] = descriptor->entry[i].key;
			part[1] = BYTES_OF("=");
		}
		for (u32 k = 0; k < 3; k++)
			quotes |= rule->depth != 1 && needs_quotes(part[k]);
		put(&text, ",", i > 0);
		put(&text, "\"", quotes);
		for (u32 k = 0; k < 3; k++)
			put_part(&text, part[k], quotes);
		put(&text, "\"", quotes);
	}
	return text.length;
}
