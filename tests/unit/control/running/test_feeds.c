// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where sets and blocks come from: noted, reported, kept over a restart, and bounded. */
#include "txn_rig.h"

#include "control/running/feeds.h"

#define SETS "sets: {bad: [192.0.2.1], good: [192.0.2.3]}\nblock: ['@bad']\nexempt: ['@good']\n"
#define LIST "{\"command\":\"set list\"}"
#define REPORT(args) "{\"command\":\"feed report\",\"args\":{" args "}}"
#define LOAD(origin, prefixes) "{\"command\":\"block load\",\"args\":{\"origin\":\"" origin \
			       "\",\"prefixes\":[" prefixes "]}}"

static json_t *list(struct rig *rig)
{
	return rig_command(rig, &rig_reader, LIST);
}

RIG_TEST(test_changes)
{
	json_t *shown;

	rig_open(&rig, SETS);
	rig_do(&rig, "{\"command\":\"set add\",\"args\":{\"name\":\"bad\",\"prefixes\":[\"192.0.2.9\"]}}");
	rig_do(&rig, LOAD("crowdsec", "\"192.0.2.64/30\", \"192.0.2.70 1h\", \"192.0.2.80 90s ssh brute force\""));
	rig_do(&rig, LOAD("file", "\"192.0.2.90\""));
	shown = list(&rig);
	assert_int_equal(int_at(shown, "result.sets.0.count"), 2);
	assert_non_null(json_at(shown, "result.sets.0.age_ns"));
	/* The other set did not change. */
	assert_null(json_at(shown, "result.sets.1.age_ns"));
	assert_int_equal(count_at(shown, "result.origins"), 2);
	assert_string_equal(text_at(shown, "result.origins.0.name"), "crowdsec");
	assert_int_equal(int_at(shown, "result.origins.0.count"), 3);
	assert_string_equal(text_at(shown, "result.origins.1.name"), "file");
	json_decref(shown);
	rig_do(&rig, "{\"command\":\"block withdraw\",\"args\":{\"origin\":\"file\"}}");
	rig_do(&rig, "{\"command\":\"block withdraw\",\"args\":{\"origin\":\"crowdsec\",\"prefixes\":[\"192.0.2.70\",\"192.0.2.64/30\"]}}");
	shown = list(&rig);
	assert_int_equal(count_at(shown, "result.origins"), 1);
	assert_int_equal(int_at(shown, "result.origins.0.count"), 1);
	json_decref(shown);
}

RIG_TEST(test_reports)
{
	json_t *shown;

	rig_open(&rig, SETS);
	rig_refused(&rig, &rig_reader, REPORT("\"name\":\"bad\""), "permission denied");
	rig_refused(&rig, &rig_root, REPORT("\"name\":\"nix\""), "there is no set 'nix'");
	rig_refused(&rig, &rig_root, REPORT("\"name\":\"a b\",\"kind\":\"origin\""), "invalid origin 'a b'");
	rig_refused(&rig, &rig_root, REPORT("\"name\":\"bad\",\"kind\":\"x\""), "set or origin, not 'x'");
	rig_refused(&rig, &rig_root, REPORT("\"name\":\"bad\",\"error\":\"two\\nlines\""), "invalid 'error'");
	rig_do(&rig, REPORT("\"name\":\"bad\",\"source\":\"https://lists.example/bad\""));
	rig_do(&rig, REPORT("\"name\":\"bad\",\"error\":\"status 503\""));
	rig_do(&rig, REPORT("\"name\":\"crowdsec\",\"kind\":\"origin\",\"error\":\"connection refused\""));
	/* A daemon that was killed: its successor has the reports. */
	rig_restart(&rig);
	shown = list(&rig);
	assert_string_equal(text_at(shown, "result.sets.0.source"), "https://lists.example/bad");
	assert_string_equal(text_at(shown, "result.sets.0.error"), "status 503");
	assert_non_null(json_at(shown, "result.sets.0.checked_ns"));
	assert_null(json_at(shown, "result.sets.1.error"));
	assert_string_equal(text_at(shown, "result.origins.0.error"), "connection refused");
	assert_int_equal(int_at(shown, "result.origins.0.count"), 0);
	json_decref(shown);
	shown = rig_command(&rig, &rig_reader, "{\"command\":\"status\"}");
	assert_int_equal(count_at(shown, "result.failing_feeds"), 2);
	assert_int_equal(int_at(shown, "result.failing_feeds.0.count"), 1);
	json_decref(shown);
	rig_do(&rig, REPORT("\"name\":\"bad\""));
	rig_do(&rig, REPORT("\"name\":\"crowdsec\",\"kind\":\"origin\""));
	shown = rig_command(&rig, &rig_reader, "{\"command\":\"status\"}");
	assert_int_equal(count_at(shown, "result.failing_feeds"), 0);
	json_decref(shown);
}

/* More names than there is room for: the failing one of before is the oldest, and goes. */
RIG_TEST(test_bounded)
{
	struct sl_err err;
	char name[16];

	rig_open(&rig, SETS);
	assert_int_equal(feeds_report(&rig.d->running, FEED_ORIGIN, "first", NULL, "gone", &err), 0);
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
