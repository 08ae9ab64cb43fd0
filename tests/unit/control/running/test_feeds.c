// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where sets and blocks come from: noted, reported, kept over a restart, and bounded. */
#include "txn_rig.h"

#include "control/running/feeds.h"

#define SETS "sets: {bad: [192.0.2.1], good: [192.0.2.3]}\nblock: ['@bad']\nexempt: ['@good']\n"
#define LIST "set list"
#define REPORT(args) "feed report {" args "}"
#define LOAD(origin, prefixes) "block load {'origin':'" origin "','prefixes':[" prefixes "]}"

RIG_TEST(test_changes)
{
	rig_open(&rig, SETS);
	rig_do(&rig, "set add {'name':'bad','prefixes':['192.0.2.9']}");
	rig_do(&rig, LOAD("crowdsec",
			  "'192.0.2.64/30', '192.0.2.70 1h', '192.0.2.80 90s ssh brute force'"));
	rig_do(&rig, LOAD("file", "'192.0.2.90'"));
	/* The other set did not change. */
	rig_expect(&rig, LIST,
		   "sets.0.count=2, sets.0.age_ns=any, sets.1.age_ns=none, origins=2, "
		   "origins.0.name=crowdsec, origins.0.count=3, origins.1.name=file");
	rig_do(&rig, "block withdraw {'origin':'file'}");
	rig_do(&rig,
	       "block withdraw {'origin':'crowdsec','prefixes':['192.0.2.70','192.0.2.64/30']}");
	rig_expect(&rig, LIST, "origins=1, origins.0.count=1");
}

RIG_TEST(test_reports)
{
	rig_open(&rig, SETS);
	rig_refused(&rig, &rig_reader, REPORT("'name':'bad'"), "permission denied");
	rig_refused(&rig, &rig_root, REPORT("'name':'nix'"), "there is no set 'nix'");
	rig_refused(&rig, &rig_root, REPORT("'name':'a b','kind':'origin'"),
		    "invalid origin 'a b'");
	rig_refused(&rig, &rig_root, REPORT("'name':'bad','kind':'x'"), "set or origin, not 'x'");
	rig_refused(&rig, &rig_root, REPORT("'name':'bad','error':'two\\nlines'"),
		    "invalid 'error'");
	rig_do(&rig, REPORT("'name':'bad','source':'https://lists.example/bad'"));
	rig_do(&rig, REPORT("'name':'bad','error':'status 503'"));
	rig_do(&rig, REPORT("'name':'crowdsec','kind':'origin','error':'connection refused'"));
	/* A daemon that was killed: its successor has the reports. */
	rig_restart(&rig);
	rig_expect(&rig, LIST,
		   "sets.0.source=https://lists.example/bad, sets.0.error=status 503, "
		   "sets.0.checked_ns=any, sets.1.error=none, origins.0.error=connection refused, "
		   "origins.0.count=0");
	rig_expect(&rig, "status", "failing_feeds=2, failing_feeds.0.count=1");
	rig_do(&rig, REPORT("'name':'bad'"));
	rig_do(&rig, REPORT("'name':'crowdsec','kind':'origin'"));
	rig_expect(&rig, "status", "failing_feeds=0");
}

/* One bad line does not keep the others out; of more bad ones than good ones nothing is taken. */
RIG_TEST(test_bad_lines)
{
	rig_open(&rig, SETS);
	rig_expect(&rig, "set list", "sets.0.count=1");
	rig_do(&rig,
	       LOAD("f",
		    "'192.0.2.64', '', '192.0.2.300', '192.0.2.65 soon', '192.0.2.66 1h', '192.0.2.67'"));
	rig_expect(&rig, "block list", "entries=4");
	rig_refused(&rig, &rig_root, LOAD("f", "'192.0.2.70', 'a', 'b'"),
		    "2 of 3 lines are not accepted, so this is not taken for a list; line 2: 'a'");
	rig_expect(&rig, LIST, "origins.0.count=3");
	rig_do(&rig, "block withdraw {'origin':'f','prefixes':['192.0.2.64','x','192.0.2.66']}");
	rig_expect(&rig, LIST, "origins.0.count=1");
	rig_do(&rig,
	       "set replace {'name':'bad','prefixes':['192.0.2.1','192.0.2.1/24','192.0.2.2','0.0.0.0/7']}");
	rig_expect(&rig, LIST, "sets.0.count=2");
	rig_refused(&rig, &rig_root,
		    "set replace {'name':'bad','prefixes':['<html>','</html>','1.2.3.4']}",
		    "2 of 3 lines are not accepted");
	/* Words on a command line are all meant. */
	rig_refused(&rig, &rig_root,
		    "set add {'name':'bad','prefixes':['192.0.2.3','192.0.2.4','x']}", "'x'");
	rig_expect(&rig, LIST, "sets.0.count=2");
}

/* Who says a hundred years, or more than there are, gets ten. */
RIG_TEST(test_longest)
{
	const u64 ten_years_ns = 3650ULL * 86400 * SL_NS_PER_SEC;
	json_t *answer;
	u64 left_ns;

	rig_open(&rig, SETS);
	rig_do(&rig,
	       LOAD("f",
		    "'192.0.2.64 876000h', '192.0.2.65 99999999999999999999h', '192.0.2.66 3650d'"));
	rig_do(&rig, "block add {'prefix':'192.0.2.67','for':'99999d'}");
	answer = rig_command(&rig, &rig_reader, "block list");
	assert_int_equal(json_array_size(json_at(answer, "result.entries")), 5);
	for (size_t i = 1; i < 5; i++) {
		left_ns = (u64)json_integer_value(json_object_get(
			json_array_get(json_at(answer, "result.entries"), i), "left_ns"));
		assert_true(left_ns <= ten_years_ns && left_ns > ten_years_ns - 60 * SL_NS_PER_SEC);
	}
	json_decref(answer);
}

/* `count` prefixes of a length from 1.0.0.0 (v6: 2000::) on, as a command. */
static char *many(const char *before, u32 count, u32 len, bool v6, const char *after)
{
	char *text = malloc(count * 64 + 400);
	size_t used = (size_t)sprintf(text, "%s[", before);

	for (u32 i = 0; i < count; i++) {
		u32 at = (1U << 24) + (i << (32 - len));

		used += (size_t)(v6 ? sprintf(text + used, "%s'%x::/%u'", i ? "," : "", 0x2000 + i,
					      len)
				    : sprintf(text + used, "%s'%u.%u.%u.%u/%u'", i ? "," : "",
					      at >> 24, at >> 16 & 255, at >> 8 & 255, at & 255,
					      len));
	}
	sprintf(text + used, "]%s", after);
	return text;
}

#define TO(command, name) command " {" name ",'prefixes':"
#define ORIGIN(name) TO("block load", "'origin':'" name "'")
#define OF_BAD(command) TO(command, "'name':'bad'")

static void many_do(const char *before, u32 count, u32 len, bool v6, const char *after)
{
	char *line = many(before, count, len, v6, after);

	rig_do(&rig, line);
	free(line);
}

static void many_refused(const char *before, u32 count, u32 len, bool v6, const char *after)
{
	char *line = many(before, count, len, v6, after);

	rig_refused(&rig, &rig_root, line, "add --force to block it anyway");
	free(line);
}

/* All of IPv4 in parts that are each narrow enough: four /8 are the most, however they come. */
RIG_TEST(test_sum)
{
	rig_open(&rig, SETS);
	many_refused(ORIGIN("all"), 223, 8, false, "}");
	many_refused(ORIGIN("all"), 5, 8, false, "}");
	many_refused(ORIGIN("all"), 9, 9, false, ",'replace':true}");
	many_refused(ORIGIN("all"), 5, 16, true, "}");
	many_refused(OF_BAD("set replace"), 223, 8, false, "}");
	many_refused(OF_BAD("set add"), 5, 8, false, "}");
	rig_expect(&rig, LIST, "sets.0.count=1, origins=0");
	/* As many as may be; and one more, by parts, by one list and the next. */
	many_do(ORIGIN("four"), 4, 8, false, "}");
	many_do(ORIGIN("six"), 4, 16, true, "}");
	many_do(ORIGIN("four"), 4, 8, false, "}");
	many_refused(TO("block load", "'origin':'six'"), 5, 16, true, "}");
	rig_refused(&rig, &rig_root, LOAD("four", "'9.0.0.0/8'"), "add --force");
	rig_expect(&rig, LIST, "origins=2, origins.0.count=4, origins.1.count=4");
	/* Hosts come first: they hold, and what is too wide beside them does not. */
	rig_do(&rig,
	       LOAD("mixed",
		    "'1.0.0.0/8', '2.0.0.0/8', '3.0.0.0/8', '4.0.0.0/8', '9.1.0.1', '9.1.0.2', "
		    "'9.1.0.3', '9.1.0.4', '9.1.0.5'"));
	rig_expect(&rig, LIST, "origins=3, origins.2.count=5");
	/* Who means it says so; a set that is no blocklist may be as wide as it likes. */
	many_do(ORIGIN("all"), 223, 8, false, ",'force':true}");
	rig_do(&rig, "block withdraw {'origin':'all'}");
	many_do(TO("set replace", "'name':'good'"), 223, 8, false, "}");
	rig_refused(&rig, &rig_root, "block add {'prefix':'@good'}", "add --force");
	many_do(OF_BAD("set replace"), 223, 8, false, ",'force':true}");
	rig_do(&rig, "set add {'name':'bad','prefixes':['224.0.0.9']}");
	rig_expect(&rig, LIST, "sets.0.count=224");
}

/* More names than there is room for: the failing one of before is the oldest, and goes. */
RIG_TEST(test_bounded)
{
	struct sl_err err;
	char name[16];

	rig_open(&rig, SETS);
	assert_int_equal(feeds_report(&rig.d->running, FEED_ORIGIN, "first", NULL, "gone", &err),
			 0);
	assert_int_equal(feeds_report(&rig.d->running, FEED_SET, "bad", NULL, NULL, &err), 0);
	for (int i = 0; i < 2 * FEEDS_MAX; i++) {
		snprintf(name, sizeof(name), "feed%d", i);
		feeds_changed(&rig.d->running, FEED_ORIGIN, name);
		feeds_changed(&rig.d->running, FEED_SET, "bad");
	}
	assert_int_equal(feeds_count(&rig.d->running), FEEDS_MAX);
	assert_null(feeds_find(&rig.d->running, FEED_ORIGIN, "first"));
	assert_non_null(feeds_find(&rig.d->running, FEED_SET, "bad"));
	feeds_tick(&rig.d->running);
	rig_restart(&rig);
	assert_int_equal(feeds_count(&rig.d->running), FEEDS_MAX);
	assert_non_null(feeds_find(&rig.d->running, FEED_SET, "bad"));
}

TEST_MAIN
