// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where sets and blocks come from: noted, reported, kept over a restart, and bounded. */
#include "txn_rig.h"

#include "control/running/feeds.h"

#define SETS "sets: {bad: [192.0.2.1], good: [192.0.2.3]}\nblock: ['@bad']\nexempt: ['@good']\n"
#define LIST "{\"command\":\"set list\"}"
#define REPORT(args) "{\"command\":\"feed report\",\"args\":{" args "}}"
#define LOAD(origin, prefixes) "{\"command\":\"block load\",\"args\":{\"origin\":\"" origin \
			       "\",\"prefixes\":[" prefixes "]}}"

RIG_TEST(test_changes)
{
	rig_open(&rig, SETS);
	rig_do(&rig, "{\"command\":\"set add\",\"args\":{\"name\":\"bad\",\"prefixes\":[\"192.0.2.9\"]}}");
	rig_do(&rig, LOAD("crowdsec", "\"192.0.2.64/30\", \"192.0.2.70 1h\", \"192.0.2.80 90s ssh brute force\""));
	rig_do(&rig, LOAD("file", "\"192.0.2.90\""));
	/* The other set did not change. */
	rig_expect(&rig, LIST, "sets.0.count=2, sets.0.age_ns=any, sets.1.age_ns=none, origins=2, "
		   "origins.0.name=crowdsec, origins.0.count=3, origins.1.name=file");
	rig_do(&rig, "{\"command\":\"block withdraw\",\"args\":{\"origin\":\"file\"}}");
	rig_do(&rig, "{\"command\":\"block withdraw\",\"args\":{\"origin\":\"crowdsec\",\"prefixes\":[\"192.0.2.70\",\"192.0.2.64/30\"]}}");
	rig_expect(&rig, LIST, "origins=1, origins.0.count=1");
}

RIG_TEST(test_reports)
{
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
	rig_expect(&rig, LIST, "sets.0.source=https://lists.example/bad, sets.0.error=status 503, "
		   "sets.0.checked_ns=any, sets.1.error=none, origins.0.error=connection refused, "
		   "origins.0.count=0");
	rig_expect(&rig, "{\"command\":\"status\"}", "failing_feeds=2, failing_feeds.0.count=1");
	rig_do(&rig, REPORT("\"name\":\"bad\""));
	rig_do(&rig, REPORT("\"name\":\"crowdsec\",\"kind\":\"origin\""));
	rig_expect(&rig, "{\"command\":\"status\"}", "failing_feeds=0");
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
