// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What sluicectl prints from the rows: every table fits 80 columns whatever its cells hold, and is
 * whole without a width; fields, alternatives and forms.
 */
#include "lib/json_text.h"
#include "lib/test.h"
#include "cli/expand.c"
#include "cli/show.c"
#include "cli/table.c"
#include "lib/rng.h"

#define SECRET "MORE" /* the end of each long text */

/* ------------------------------------------------------------------ items with extreme members */

static void set_member(json_t *item, const char *path, size_t length, json_t *value)
{
	char name[64];
	size_t n = strcspn(path, ".");

	if (n < length) {
		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		if (!json_object_get(item, name))
			json_object_set_new(item, name, json_object());
		set_member(json_object_get(item, name), path + n + 1, length - n - 1, value);
		return;
	}
	snprintf(name, sizeof(name), "%.*s", (int)length, path);
	if (json_object_get(item, name))
		json_decref(value);
	else
		json_object_set_new(item, name, value);
}

static json_t *long_text(unsigned int length)
{
	char text[256];

	memset(text, 'm', length);
	memcpy(text + length - strlen(SECRET), SECRET, strlen(SECRET) + 1);
	return json_string(text);
}

static void fill(json_t *item, const char *text, const char *end);

static json_t *value_for(const char *after, const char *end)
{
	json_t *value, *one = json_object();

	if (*after == '[') {
		fill(one, after + 1, matching(after, end));
		value = json_array();
		for (int i = 0; i < 3; i++)
			json_array_append_new(value, json_object_size(one) ? json_incref(one)
									   : json_integer(128));
		json_decref(one);
		return value;
	}
	json_decref(one);
	if (*after == ':' || *after == '+' || *after == '/')
		return json_integer((json_int_t)(rng() >> (1 + rng() % 63)));
	if (rng() % 4 == 0)
		return json_integer((json_int_t)(rng() >> 1));
	return long_text(rng() % 3 ? 63 : 8);
}

/* Each field of the text as a member of the item. */
static void fill(json_t *item, const char *text, const char *end)
{
	for (; text < end; text++) {
		size_t length;

		if (!strchr("$+/", *text))
			continue;
		length = key_length(text + 1);
		if (length)
			set_member(item, text + 1, length, value_for(text + 1 + length, end));
		if (length && text[1 + length] == '[')
			text = matching(text + 1 + length, end);
	}
}

/* ------------------------------------------------------------------ the tables */

static char *printed(const struct show_part *part, const json_t *result, int width)
{
	FILE *file = tmpfile();
	int saved = dup(STDOUT_FILENO);
	char *text = NULL;
	size_t size = 0;

	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	show_parts(part, result, width);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(file);
	if (getdelim(&text, &size, '\0', file) < 0) {
		free(text);
		text = strdup("");
	}
	fclose(file);
	return text;
}

static json_t *result_of(const struct show_part *part, int rows)
{
	const char *path = part->of, *inner = path ? strchr(path, '/') : NULL;
	json_t *result = json_object(), *list = json_array(), *outer;

	if (!path) {
		json_decref(list);
		fill(result, part->line, part->line + strlen(part->line));
		return result;
	}
	for (int i = 0; i < rows; i++) {
		json_t *item = json_object();

		for (const struct column *c = part->columns; c && c->heading; c++)
			fill(item, c->cell, c->cell + strlen(c->cell));
		if (part->line)
			fill(item, part->line, part->line + strlen(part->line));
		json_array_append_new(list, item);
	}
	if (inner) {
		size_t length = strcspn(inner + 1, "?");

		outer = json_array();
		/* An item without any of "a/b?" is a row. */
		if (rows || !inner[1 + length])
			json_array_append_new(outer, json_pack("{s%:O}", inner + 1, length, list));
		json_decref(list);
		list = outer;
	}
	set_member(result, path, inner ? (size_t)(inner - path) : strlen(path), list);
	return result;
}

static void check_width(const char *command, char *text, int width)
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if ((int)text_width(line, strlen(line)) > width)
			fail_msg("%s: wider than %d: %s", command, width, line);
		if (line[0] && line[strlen(line) - 1] == ' ')
			fail_msg("%s: a blank at the end: '%s'", command, line);
	}
}

TEST(test_every_table_fits)
{
	static const int widths[] = { 80, 100, 132, 200 };
	size_t tables = 0;

	rng_start("test_show");
	for (size_t i = 0; i < command_count; i++) {
		const struct show_part *part = commands[i].show;

		for (; part && (part->line || part->columns); part++) {
			struct show_part one[2] = { *part, { 0 } };

			if (!part->columns)
				continue;
			tables++;
			one[0].when = NULL;
			for (int round = 0; round < 50; round++) {
				json_t *result = result_of(part, 1 + round % 5);
				char *text;

				for (size_t w = 0; w < 4; w++) {
					text = printed(one, result, widths[w]);
					assert_null(strstr(text, "(no form"));
					assert_null(strstr(text, "(missing:"));
					check_width(commands[i].name, text, widths[w]);
					free(text);
				}
				text = printed(one, result, 0);
				assert_null(strstr(text, "…"));
				assert_null(strstr(text, "not shown"));
				free(text);
				json_decref(result);
			}
			/* Without rows one line. */
			{
				json_t *result = result_of(part, 0);
				char *text = printed(one, result, 80);

				assert_int_equal(
					strncmp(text, part->none, strcspn(part->none, "$")), 0);
				free(text);
				json_decref(result);
			}
		}
	}
	assert_in_range(tables, 15, 100);
}

/* Each line at 80 columns: as without a width but for where it is folded, and wider only by one
 * word. */
static void check_folded(const char *command, const char *whole, char *folded)
{
	const char *at = whole;

	for (char *line = strtok(folded, "\n"); line; line = strtok(NULL, "\n")) {
		char *word = line + strspn(line, " ");

		if (text_width(line, strlen(line)) > 80 && strchr(word, ' '))
			fail_msg("%s: could be folded: %s", command, line);
		at += strspn(at, " \n");
		if (strncmp(at, word, strlen(word)) != 0)
			fail_msg("%s: '%s' is not '%s'", command, word, at);
		at += strlen(word);
		if (*at && *at != '\n' && at[-1] == ' ')
			fail_msg("%s: a blank at the end: '%s'", command, line);
	}
	assert_int_equal(strspn(at, " \n"), strlen(at));
}

TEST(test_every_line_is_folded)
{
	size_t lines = 0;

	rng_start("test_show lines");
	for (size_t i = 0; i < command_count; i++) {
		const struct show_part *part = commands[i].show;

		for (; part && (part->line || part->columns); part++) {
			struct show_part one[2] = { *part, { 0 } };

			if (!part->line || part->verbatim)
				continue;
			lines++;
			one[0].when = NULL;
			for (int round = 0; round < 50; round++) {
				json_t *result = result_of(part, 1 + round % 3);
				char *whole = printed(one, result, 0),
				     *folded = printed(one, result, 80);

				check_folded(commands[i].name, whole, folded);
				free(whole);
				free(folded);
				json_decref(result);
			}
		}
	}
	assert_in_range(lines, 80, 300);
}

/* Behind a label, behind the blanks of a line that goes on, and two further in. */
TEST(test_folds)
{
	static const struct {
		const char *text, *folded;
	} cases[] = {
		{ "file  a bb ccc dddd eeeee", "file  a bb ccc dddd\n      eeeee\n" },
		{ "two words  a bb ccc dddd", "two words  a bb ccc\n  dddd\n" },
		{ "a bb ccc dddd eeeee ffffff", "a bb ccc dddd eeeee\n  ffffff\n" },
		{ "  a bb ccc dddd eeeee", "  a bb ccc dddd\n    eeeee\n" },
		{ "          a bb ccc dddd", "          a bb ccc\n          dddd\n" },
		{ "a\nbbbbbbbbbbbbbbbbbbbbbbbbb cc", "a\nbbbbbbbbbbbbbbbbbbbbbbbbb\n  cc\n" },
		{ "aaaa \u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9 bbbbb c",
		  "aaaa \u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9 bbbbb\n  c\n" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct show_part one[] = { { .line = cases[i].text }, { 0 } };
		json_t *result = json_object();
		char *text = printed(one, result, i == 0 || i == 4 ? 20 : 19);

		assert_string_equal(text, cases[i].folded);
		free(text);
		json_decref(result);
	}
}

/* Addresses stay whole where there is any room. */
TEST(test_addresses_are_kept)
{
	const char *address = "2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff/128";
	char name[64];
	json_t *result;
	char *text;

	memset(name, 'n', 63);
	name[63] = '\0';
	result = json_pack("{s:[{s:s, s:s, s:s, s:s, s:b, s:I, s:i, s:I}]}", "bans", "source",
			   address, "limit", name, "since", "2026-03-01T12:00:00Z", "until",
			   "2026-03-01T13:00:00Z", "active", 1, "left_ns",
			   (json_int_t)3599 * 1000000000, "level", 3, "drops",
			   (json_int_t)123456789012);
	text = printed(commands[command_find("ban list")].show, result, 80);
	assert_non_null(strstr(text, address));
	assert_non_null(strstr(text, "nnnn…"));
	assert_non_null(strstr(text, "59m59s"));
	assert_non_null(strstr(text, "not shown: SINCE, UNTIL"));
	free(text);
	text = printed(commands[command_find("ban list")].show, result, 0);
	assert_non_null(strstr(text, name));
	assert_non_null(strstr(text, "123,456,789,012"));
	free(text);
	json_decref(result);
}

/* At 80 columns, what a table is read for: why an event happened, and the rate of a limit. */
TEST(test_what_stays)
{
	static const struct {
		const char *command, *result, *heading, *cell;
	} cases[] = {
		{ "events list",
		  "{\"events\": [{\"at\": \"2026-03-01T12:00:00Z\", \"kind\": \"drop\", \"source\": "
		  "\"198.51.100.17\", \"limit\": \"dns-per-client\", \"reason\": \"over\", \"proto\": \"udp\", \"sport\": 50000, "
		  "\"dst\": \"203.0.113.120\", \"dport\": 53, \"interface\": \"enp3s0f0\", \"packets\": 64}, {\"at\": "
		  "\"2026-03-01T12:00:01Z\", \"kind\": \"change\", \"detail\": \"limit set by uid 0\"}]}",
		  " REASON", "limit set by uid" },
		{ "stats",
		  "{\"interfaces\": [], \"limits\": [{\"name\": \"dns-per-client\", \"mode\": \"enforce\", \"rate\": "
		  "\"2000 packets/s\", \"sources\": {\"live\": 120000, \"over\": 4000}, \"per_second\": {\"pass\": 81000, \"soft\": 1, "
		  "\"tag\": 2, \"shadow\": 3, \"drop\": 4000}, \"packets\": {\"pass\": 123456789, \"soft\": 1, \"tag\": 2, \"shadow\": "
		  "3, \"drop\": 4000}}]}",
		  "RATE ", "2000 packets/s" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		json_t *result = json_loads(cases[i].result, 0, NULL);
		char *text = printed(commands[command_find(cases[i].command)].show, result, 80);

		if (!strstr(text, cases[i].heading) || !strstr(text, cases[i].cell))
			fail_msg("%s: no %s, %s:\n%s", cases[i].command, cases[i].heading,
				 cases[i].cell, text);
		free(text);
		text = printed(commands[command_find(cases[i].command)].show, result, 0);
		assert_true(i == 0 || strstr(text, "123,456,795")); /* all that passed */
		free(text);
		json_decref(result);
	}
}

/* A misspelled field is not silent: it is named, unless it stands in braces. */
TEST(test_missing_fields)
{
	json_t *item = json_loads("{\"a\": 1, \"l\": [{\"r\": 2}], \"none\": null}", 0, NULL);
	struct scope scope = { .item = item };
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{ "$a $b.c", "1 (missing:b.c)" }, { "$a+b:n", "(missing:b)1" },
		{ "$l[$r $s]", "2 (missing:s)" }, { "$none", "" },
		{ "{$b|$a}{; $b}", "1" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *text = expanded(&scope, cases[i].text);

		assert_string_equal(text, cases[i].expected);
		free(text);
	}
	json_decref(item);
}

/* A number is written once: of a condition it is written, too. */
TEST(test_more)
{
	static const char *const command[] = { "source list", "user list", "rule list" };
	json_t *result =
		json_pack("{s:[], s:[], s:[], s:i}", "sources", "users", "rules", "more", 4027);

	for (size_t i = 0; i < COUNT(command); i++) {
		char *text = printed(commands[command_find(command[i])].show, result, 0);

		assert_non_null(strstr(text, "\nand 4,027 more\n"));
		free(text);
	}
	json_decref(result);
}

/* Parts whose condition does not hold print nothing. */
TEST(test_conditions)
{
	const struct show_part *stats = commands[command_find("stats")].show;
	json_t *one = json_pack("{s:[{s:s, s:s, s:s}]}", "limits", "name", "web", "rate",
				"1 packets/s", "mode", "enforce");
	char *text = printed(stats, one, 80);

	assert_int_equal(strncmp(text, "web: 1 packets/s, enforce\n", 26), 0);
	assert_null(strstr(text, "LIMIT"));
	free(text);
	json_object_set_new(one, "interfaces", json_array());
	text = printed(stats, one, 80);
	assert_int_equal(strncmp(text, "LIMIT", 5), 0);
	assert_non_null(strstr(text, "no packets yet"));
	assert_null(strstr(text, "offenders"));
	free(text);
	json_decref(one);
}

/* The items of two arrays as rows: what is the outer one's stands in its first row alone. */
TEST(test_rows_of_items)
{
	static const struct show_part always[] = {
		{ .of = "a/b?", .line = "{$name$^|-}: {$n|none}" }, { 0 },
	}, only[] = {
		{ .of = "a/b", .line = "{$name$^|-}: {$n|none}" }, { 0 },
	};
	json_t *result = json_loads(
		json_text(
			"{'a': [{'name': 'x', 'b': [{'n': 1}, {'n': 2}]}, {'name': 'y', 'b': []}, "
			"{'name': 'z'}]}"),
		0, NULL);
	char *text = printed(always, result, 80);

	assert_string_equal(text, "x: 1\n-: 2\ny: none\nz: none\n");
	free(text);
	text = printed(only, result, 80);
	assert_string_equal(text, "x: 1\n-: 2\n");
	free(text);
	json_decref(result);
}

/* Results as the daemon and `check` have them, and the whole text. over 70 lines: a table */
TEST(test_whole_commands)
{
	static const struct {
		const char *command, *result, *text;
	} cases[] = {
		{ "check",
		  "{'file': 'f', 'interfaces': 1, 'limits': 2, 'block': 3, 'exempt': 0, "
		  "'notes': ['n']}",
		  "f: good: 1 interface, 2 limits, 3 blocked, 0 exempt\nnote: n\n" },
		{ "check",
		  "{'file': 'f', 'interfaces': 0, 'limits': 1, 'block': 0, 'exempt': 0, "
		  "'notes': [], 'rules': 1}",
		  "f: good: 0 interfaces, 1 limit, 0 blocked, 0 exempt, 1 rule\n" },
		{ "diff",
		  "{'changes': [{'when': 'w', 'uid': 0, 'op': 'override set', 'name': 'web', "
		  "'prefix': '192.0.2.0/24', 'pairs': ['burst=7']}, {'when': 'w', 'uid': 0, "
		  "'op': 'limit set', 'name': 'web', 'pairs': ['mode=shadow']}, {'when': 'w', "
		  "'uid': 0, 'op': 'block add', 'prefix': '192.0.2.7', 'reason': 'scan'}, "
		  "{'when': 'w', 'uid': 0, 'op': 'attach', 'interface': 's1'}]}",
		  "WHEN  UID  CHANGE        TO\n"
		  "w     0    override set  web 192.0.2.0/24 burst=7\n"
		  "w     0    limit set     web mode=shadow\n"
		  "w     0    block add     192.0.2.7 scan\n"
		  "w     0    attach        s1\n" },
		{ "rule test", "{'rule': null}", "no rule matches: the request passes\n" },
		{ "rule test",
		  "{'rule': 'a/u', 'file': 'f', 'line': 7, 'shadow': true, 'override': true, "
		  "'unlimited': false, 'limits': [{'name': 'l', 'rate': '3 requests/s', "
		  "'algorithm': 'token-bucket', 'window': '', 'at_once': 'burst 5', "
		  "'consistency': 'strict'}, {'name': 'm', 'rate': '1 requests/d', "
		  "'algorithm': 'fixed-window', 'window': 'aligned', 'burst': 0}], "
		  "'counted_by': [{'key': 'user', 'groups': [{'value': '10.0.0.0/24', "
		  "'scale': 1}, {'value': '10.0.0.0/16', 'scale': 4}]}]}",
		  "rule        a/u (f:7), shadow: never refuses\n"
		  "            with the limits of an override\n"
		  "limit       l: 3 requests/s, token-bucket, burst 5, all nodes together (strict)\n"
		  "limit       m: 1 requests/d, fixed-window, aligned\n"
		  "counted by  user=10.0.0.0/24\n"
		  "counted by  user=10.0.0.0/16, 4 times the limit\n" },
		{ "explain",
		  "{'source': '10.0.0.1', 'packet': {'dst': '10.0.0.2', 'dport': 9, "
		  "'vlan': 'none'}, 'assumed': {'dst': '10.0.0.2', 'vlan': 'none'}, "
		  "'verdict': {'action': 'drop', 'reason': 'over', 'step': 7, "
		  "'step_name': 'limits', 'limit': 'web', 'line': 3, "
		  "'passes_in_ns': 1500000001}, 'exempt': null, "
		  "'block': {'prefix': '10.0.0.0/8', 'until': null, 'live': true, "
		  "'reason': 'why'}, 'ban': {'prefix': '10.0.0.1/32', 'on': false, "
		  "'limit': 'web', 'until': 'T', 'level': 0}, 'pushdowns': [], "
		  "'limits': [{'limit': 'web', 'line': 3, 'result': 'drop', "
		  "'meters': [{'role': 'limit', 'rate': '1 packets/s', 'unit': 'packets', "
		  "'used': 4, 'capacity': 4, 'over': true, 'prefix': 32, 'fits_in_ns': null, "
		  "'leased': 2, 'override': {'src': '10.0.0.1', 'line': 5}}, {'role': 'ban', "
		  "'rate': 'ban: after 2 drops/1s', 'unit': 'drops', 'used': 0, 'capacity': 2, "
		  "'over': false}], 'bucket_depends_on': ['vlan']}, {'limit': 'none', "
		  "'result': null, 'meters': []}], "
		  "'would_change': [{'fields': {'tcp_flags': 'syn'}, 'matches': 'syn', "
		  "'line': 2, 'verdict': {'action': 'tag', 'reason': 'over', 'step': 7, "
		  "'step_name': 'limits', 'mark': 7}}, {'more': 3}]}",
		  "10.0.0.1: dst 10.0.0.2 dport 9\n"
		  "assumed: dst, vlan\n"
		  "\n"
		  "drop (over, step 7: limits), by limit web, line 3; passes in 1s501ms\n"
		  "\n"
		  "exempt   no\n"
		  "blocked  10.0.0.0/8, live (why)\n"
		  "banned   no; was 10.0.0.1/32 by limit web, up to T, level 0\n"
		  "\n"
		  "LIMIT  AT      RESULT       RATE                   USED  OF  UNIT                FITS IN\n"
		  "web    line 3  drop         1 packets/s per /32       4   4  packets (2 leased)  never\n"
		  "                            ban: after 2 drops/1s     0   2  drops\n"
		  "none   live    not counted  -                         -   -  -                   -\n"
		  "Limit web applies the rates of override 10.0.0.1 to this source, line 5.\n"
		  "web counts per vlan, which was not given: another value has another bucket.\n"
		  "\n"
		  "Fields that were not given and would change the verdict:\n"
		  "  --tcp-flags syn (matches syn, line 2): tag (over, step 7: limits), mark 0x7\n"
		  "  and 3 more\n" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		json_t *result = json_loads(json_text(cases[i].result), 0, NULL);
		char *text;

		assert_non_null(result);
		text = printed(commands[command_find(cases[i].command)].show, result, 0);
		assert_string_equal(text, cases[i].text);
		free(text);
		json_decref(result);
	}
}

TEST(test_texts)
{
	static const struct {
		const char *text, *item, *expected;
	} cases[] = {
		{ "a $x b", "{'x': '1'}", "a 1 b" },
		{ "$x.y $n", "{'x': {'y': [1, 2]}, 'n': 3}", "1, 2 3" },
		{ "{$x|$y|none}", "{'y': ''}", "none" },
		{ "{$x|$y|none}", "{'y': 0}", "0" },
		{ "{node $x|live$y|file}", "{'y': true}", "live" },
		{ "{node $x|live$y|file}", "{'y': false}", "file" },
		{ "{a {$x|b} $y}", "{'y': 1}", "a b 1" },
		{ "{is $x=gone it}|", "{'x': 'gone'}", "is  it|" },
		{ "{is $x=gone it}", "{'x': 'here'}", "" },
		{ "{$x?$y}", "{'x': 'a', 'y': 2}", "2" },
		{ "$a+b:n", "{'a': 1000, 'b': 234}", "1,234" },
		{ "$a/b:percent", "{'a': 1, 'b': 8}", "12.5%" },
		{ "$a/b:percent", "{'a': 1, 'b': 0}", "0.0%" },
		{ "$l[$r ($s)]", "{'l': [{'r': 1, 's': 2}, {'r': 3, 's': 4}]}", "1 (2), 3 (4)" },
		{ "{$l[$r]|none}", "{'l': []}", "none" },
		{ "$c:changes", "{'c': 0}", "0 live changes" },
		{ "$c:changes", "{'c': 1}",
		  "1 live change (sluicectl save writes them to the file)" },
		{ "{$c:some|0}", "{'c': 0}", "0" },
		{ "$w:wait", "{'w': -1}", "never" },
		{ "$w:wait", "{'w': 1500001}", "in 2ms" },
		{ "$w:left", "{'w': 1999999999}", "1s" },
		{ "$w:left_up", "{'w': 1000000001}", "2s" },
		{ "{; refused: $c:counts}", "{'c': {'old': 0, 'bad': 2}}", "; refused: bad 2" },
		{ "{; refused: $c:counts}", "{'c': {'old': 0}}", "" },
		{ "$t:throttle", "{'t': '{soft: 10%, for: 30s}'}", "soft 10%" },
		{ "{$n=1|s}", "{'n': 1}", "" },
		{ "{$n=1|s}", "{'n': 11}", "s" },
		{ "{in $w:after|now$w?|never}", "{'w': 1500001}", "in 2ms" },
		{ "{in $w:after|now$w?|never}", "{'w': 0}", "now" },
		{ "{in $w:after|now$w?|never}", "{}", "never" },
		{ "{$o:names|none}", "{'o': {}}", "none" },
		{ "$o:options", "{'o': {'tcp_flags': 'syn', 'vlan': 'none'}}",
		  "--tcp-flags syn --vlan none" },
		{ "$file:$line", "{'file': 'f', 'line': 3}", "f:3" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		json_t *item = json_loads(json_text(cases[i].item), 0, NULL);
		struct scope scope = { .item = item };
		char *text = expanded(&scope, cases[i].text);

		assert_string_equal(text, cases[i].expected);
		free(text);
		json_decref(item);
	}
}

TEST_MAIN
