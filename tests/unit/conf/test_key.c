// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rows of keys (conf/key.h): each type read, written, read back, copied and compared; defaults;
 * ranges and what errors name; lists, mappings, sections; which changes need a restart.
 */
#include "lib/test.h"

#include <stdlib.h>
#include <string.h>

#include "conf/key.h"
#include "lib/refused.h"

enum color { RED, GREEN = 4 };
enum { LEFT = 1, RIGHT = 2 };

struct part {
	char *name;
	u64 wait_ns;
	bool has_wait;
};

struct whole {
	bool on;
	u64 count;
	u8 small;
	u32 mode;
	u64 wait_ns;
	u32 share_permille;
	u8 whole_percent;
	enum color color;
	u32 sides;
	char *text, *path, *listen;
	char id[SL_NAME_MAX];
	char interface[16];
	struct sl_prefix prefix;
	char **word;
	size_t word_count;
	struct part *part;
	size_t part_count;
	struct part inner, *outer;
};

static const struct name color_names[] = { { "red", RED }, { "green", GREEN }, { NULL, 0 } };
static const struct name side_names[] = { { "left", LEFT }, { "right", RIGHT }, { NULL, 0 } };

static const struct key part_rows[] = {
	{ "name", KEY(struct part, name), &type_text, .flags = KEY_NEEDED | KEY_UNIQUE,
	  .accepted = "a part's name" },
	{ "wait", KEY(struct part, wait_ns), &type_duration,
	  .given = offsetof(struct part, has_wait), .most = 60 * SL_NS_PER_SEC,
	  .flags = KEY_RESTART },
};

static int check_part(struct reader *r, const struct yaml_node *node, void *section)
{
	const struct part *part = section;

	return strcmp(part->name, "bad") ? 0 : read_fail(r, node, EINVAL, "it is bad");
}

static const struct keys part_keys =
	KEYS(struct part, part_rows, .alone = "name", .check = check_part);
static const struct key part_item = { .type = &type_map, .keys = &part_keys };
static const struct key word_item = {
	.type = &type_text, .most = 5, .characters = "abcdef", .accepted = "up to 5 of a to f"
};

static const struct key rows[] = {
	{ "on", KEY(struct whole, on), &type_bool, .usual = "yes" },
	{ "count", KEY(struct whole, count), &type_count, .usual = "10K", .least = 5,
	  .most = 1000000, .flags = KEY_RESTART },
	{ "small", KEY(struct whole, small), &type_number, .most = 200 },
	{ "mode", KEY(struct whole, mode), &type_mode, .least = 0600, .most = 0777 },
	{ "wait", KEY(struct whole, wait_ns), &type_duration, .usual = "1m30s",
	  .least = SL_NS_PER_SEC, .most = 3600 * SL_NS_PER_SEC },
	{ "share", KEY(struct whole, share_permille), &type_percent, .usual = "2.5%", .least = 1,
	  .most = 1000 },
	{ "whole", KEY(struct whole, whole_percent), &type_whole_percent, .least = 1, .most = 100 },
	{ "color", KEY(struct whole, color), &type_enum, .names = color_names, .usual = "green" },
	{ "sides", KEY(struct whole, sides), &type_flags, .names = side_names, .usual = "[left]" },
	{ "text", KEY(struct whole, text), &type_text, .accepted = "a text", .usual = "usual",
	  .flags = KEY_RESTART },
	{ "path", KEY(struct whole, path), &type_path },
	{ "listen", KEY(struct whole, listen), &type_address_port },
	{ "id", KEY(struct whole, id), &type_identifier },
	{ "interface", KEY(struct whole, interface), &type_interface },
	{ "prefix", KEY(struct whole, prefix), &type_prefix },
	{ "words", KEY_LIST(struct whole, word, word_count), .item = &word_item, .most = 12 },
	{ "parts", KEY_LIST(struct whole, part, part_count), .item = &part_item, .least = 1,
	  .flags = KEY_RESTART },
	{ "inner", KEY(struct whole, inner), &type_map, .keys = &part_keys },
	{ "outer", KEY(struct whole, outer), &type_section, .keys = &part_keys,
	  .flags = KEY_RESTART },
};
static const struct keys keys = KEYS(struct whole, rows);

static int parse_whole(const char *text, struct whole *ret, struct sl_err *err)
{
	struct reader r = { .file = "x", .err = err, .subject = "" };
	struct tree tree = { 0 };
	int rc;

	memset(ret, 0, sizeof(*ret));
	assert_int_equal(keys_init(&keys, ret), 0);
	rc = tree_parse("x", text, strlen(text), &tree, err);
	if (!rc)
		rc = keys_read(&r, tree.root, &keys, ret);
	tree_free(&tree);
	return rc;
}

static struct whole read_whole(const char *text)
{
	struct whole whole;
	struct sl_err err;

	if (parse_whole(text, &whole, &err))
		fail_msg("%s: %d:%d: %s", text, err.line, err.column, err.message);
	return whole;
}

static char *write_whole(const struct whole *whole)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct writer w = { .out = out };

	keys_write(&w, &keys, whole);
	assert_false(w.failed);
	fclose(out);
	return text;
}

static const char full[] = "on: false\n"
			   "count: 1000000\n"
			   "small: 200\n"
			   "mode: '0640'\n"
			   "wait: 1h\n"
			   "share: 99.9%\n"
			   "whole: 70%\n"
			   "color: red\n"
			   "sides: [left, right]\n"
			   "text: 'it''s'\n"
			   "path: /a/b\n"
			   "listen: '[::1]:80'\n"
			   "id: web-1\n"
			   "interface: eth0.5\n"
			   "prefix: 192.0.2.0/24\n"
			   "words: [a, b]\n"
			   "parts:\n"
			   "  - {name: x, wait: 0s}\n"
			   "  - {name: y}\n"
			   "inner:\n"
			   "  name: z\n"
			   "outer:\n"
			   "  name: o\n"
			   "  wait: 2s\n";

TEST(test_round_trip)
{
	struct whole whole = read_whole(full), copy = whole, empty = { 0 };
	char *text = write_whole(&whole), *again;
	int rc = 0;

	assert_string_equal(text, full);
	assert_int_equal(whole.count, 1000000);
	assert_int_equal(whole.small, 200);
	assert_int_equal(whole.mode, 0640);
	assert_int_equal(whole.share_permille, 999);
	assert_int_equal(whole.sides, LEFT | RIGHT);
	assert_int_equal(whole.part_count, 2);
	assert_true(whole.part[0].has_wait);
	assert_false(whole.part[1].has_wait);
	assert_string_equal(whole.outer->name, "o");
	keys_copy(&keys, &copy, &rc);
	assert_int_equal(rc, 0);
	assert_true(keys_equal(&keys, &whole, &copy));
	keys_clear(&keys, &whole); /* the copy shares nothing with it */
	again = write_whole(&copy);
	assert_string_equal(again, full);
	/* out of memory: what was not copied is nobody's */
	whole = copy;
	rc = -ENOMEM;
	keys_copy(&keys, &whole, &rc);
	assert_null(whole.text);
	assert_null(whole.part);
	assert_null(whole.outer);
	keys_clear(&keys, &whole);
	keys_clear(&keys, &copy);
	keys_clear(&keys, &copy);
	keys_clear(&keys, &empty);
	free(text);
	free(again);
}

TEST(test_defaults)
{
	struct whole whole = read_whole("{}");
	char *text = write_whole(&whole);

	assert_string_equal(text, ""); /* what has its default is left out */
	assert_true(whole.on);
	assert_int_equal(whole.count, 10000);
	assert_int_equal(whole.wait_ns, 90 * SL_NS_PER_SEC);
	assert_int_equal(whole.share_permille, 25);
	assert_int_equal(whole.color, GREEN);
	assert_int_equal(whole.sides, LEFT);
	assert_string_equal(whole.text, "usual");
	assert_null(whole.outer);
	free(text);
	keys_clear(&keys, &whole);
	/* a list may stand alone, an empty one is none, a long one has lines */
	whole = read_whole("{words: a, parts: x, sides: []}");
	assert_int_equal(whole.word_count, 1);
	assert_string_equal(whole.part[0].name, "x");
	assert_int_equal(whole.sides, 0);
	keys_clear(&keys, &whole);
	whole = read_whole("{words: [a, b, c, d, e, f, aa, bb, cc], parts: [x, {name: y}]}");
	text = write_whole(&whole);
	assert_non_null(strstr(text, "words:\n  - a\n  - b\n"));
	free(text);
	keys_clear(&keys, &whole);
	whole = read_whole("{words: }");
	assert_int_equal(whole.word_count, 0);
	keys_clear(&keys, &whole);
}

TEST(test_refused)
{
	static const struct bad cases[] = {
		{ "{on: ^maybe}", "on: found \"maybe\"; accepted: true, false, yes, no" },
		{ "{count: ^4}", "count: found \"4\"; accepted: 5 to 1M" },
		{ "{count: ^1M1}", "not a number" },
		{ "{small: ^201}", "accepted: 0 to 200" },
		{ "{small: ^-1}", "accepted: 0 to 200" },
		{ "{mode: ^0500}", "accepted: an octal mode, 0600 to 0777" },
		{ "{mode: ^0888}", "accepted: an octal mode" },
		{ "{wait: ^1ms}", "accepted: a duration of 1s to 1h" },
		{ "{wait: ^5}", "found \"5\":" },
		{ "{share: ^0%}", "accepted: 0.1% to 100%" },
		{ "{whole: ^1.5%}", "accepted: 1% to 100%, in whole percent" },
		{ "{color: ^blue}", "accepted: red, green" },
		{ "{sides: [left, ^left]}", "found \"left\" again" },
		{ "{sides: [^up]}", "accepted: left, right" },
		{ "{text: ^}", "found nothing; accepted: a text" },
		{ "{path: ^a/b}", "an absolute path" },
		{ "{listen: ^a:80}", "ADDRESS:PORT" },
		{ "{id: ^A}", "a-z, 0-9" },
		{ "{interface: ^a/b}", "an interface's name" },
		{ "{prefix: ^192.0.2.1/24}", "prefix: found" },
		{ "{words: [a, ^xyz]}", "words: found \"xyz\"; accepted: up to 5 of a to f" },
		{ "{words: [a,a,a,a,a,a,a,a,a,a,a,a,^a]}", "one more; accepted: up to 12" },
		{ "{parts: ^[]}", "accepted: one or more" },
		{ "{parts: [x, y, {name: ^x}]}",
		  "found \"x\" again, first in line 1; accepted: each name once" },
		{ "{parts: [^{wait: 1s}]}", "key \"name\" is missing" },
		{ "{parts: [^{name: bad}]}", "it is bad" },
		{ "{parts: [^[x]]}", "found a list; accepted: a mapping of name, wait" },
		{ "{inner: {name: a, ^wiat: 1s}}",
		  "inner: unknown key \"wiat\" (did you mean \"wait\"?); accepted: name, wait" },
		{ "{outer: {name: a, wait: ^2m}}", "outer.wait: found \"2m\"" },
		{ "{on: yes, ^on: no}", "\"on\" again, first in line 1" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct unmarked text = unmark(cases[i].text, strlen(cases[i].text));
		struct sl_err err = { .line = -1 };
		struct whole whole;
		int rc = parse_whole(text.text, &whole, &err);

		assert_refused(&cases[i], rc, &err);
		keys_clear(&keys, &whole);
	}
}

static void note(const char *path, void *arg)
{
	strcat(strcat(arg, path), " ");
}

TEST(test_changed)
{
	static const struct {
		const char *was, *now, *report;
	} cases[] = {
		{ "{}", "{count: 10K}", "" },
		{ "{}", "{count: 11K, text: x, on: no}", "count text " },
		{ "{parts: [x]}", "{parts: [{name: x}]}", "" },
		{ "{parts: [x]}", "{parts: [x, y]}", "parts " },
		{ "{inner: {name: a}}", "{inner: {name: b}}", "" },
		{ "{inner: {name: a}}", "{inner: {name: a, wait: 0s}}", "inner.wait " },
		{ "{}", "{outer: a}", "outer " },
		{ "{outer: {name: a, wait: 1s}}", "{outer: {name: b, wait: 2s}}", "outer.wait " },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct whole was = read_whole(cases[i].was), now = read_whole(cases[i].now);
		char text[200] = "";

		keys_changed(&keys, &was, &now, KEY_RESTART, "", note, text);
		assert_string_equal(text, cases[i].report);
		keys_clear(&keys, &was);
		keys_clear(&keys, &now);
	}
}

TEST_MAIN
