// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Users behind sources in the daemon, over dp_sim: budgets as automatic overrides, and
 * push-downs that packets meet, with the sources that they never affect.
 */
#include "lib/daemon_rig.h"

#define LIMIT "limits: [{name: per-source, rate: 100 packets/s, burst: 100, accounting: exact}]\n"
#define HTTP                                                                                       \
	"http: {listen: [127.0.0.1:8180], rules: /nowhere, never_push_down: [192.0.2.64/30],\n"    \
	"  push_down: {min_requests: 5, max_share: 100%},\n"                                       \
	"  source_budget: {limit: per-source, user: [api/user], base: 50 packets/s,\n"             \
	"    packets_per_request: 40, max: 2000 packets/s}}\n"
#define RULES                                                                                                            \
	"domain: api\ndescriptors:\n  - key: user\n    limits: ['60 requests/m']\n"                                      \
	"    push_down: {after: 10 rejections/10s, steps: [limit 20 packets/s, drop], step: 10s, down: 10s, max: 10m}\n" \
	"  - key: path\n    limits: ['5 requests/m']\n"

static struct ruleset *rules;

static void http_open(struct rig *rig)
{
	char words[768];
	struct sl_err err;

	rig->d->base = event_base_new();
	if (!rules && ruleset_parse("rules.yaml", RULES, strlen(RULES), &rules, &err) < 0)
		fail_msg("%s", sl_err_format(&err, words, sizeof(words)));
	assert_int_equal(
		sources_start(&rig->d->running, rig->d->base, 1, 1000, &rig->d->sources, &err), 0);
	rig->d->commands.sources = rig->d->sources;
	sources_configure(rig->d->sources, rig->d->running.policy->http, rules);
}

static void http_close(struct rig *rig)
{
	struct event_base *base = rig->d->base;

	sources_close(rig->d->sources);
	rig->d->sources = rig->d->commands.sources = NULL;
	event_base_free(base);
	rig->d->base = NULL;
}

static void open_with(const char *text)
{
	rig_open(&rig, text);
	http_open(&rig);
}

static int sources_tear_down(void **state)
{
	if (rig.d && rig.d->sources)
		http_close(&rig);
	return rig_tear_down(state);
}

#define SOURCES_TEST(test) TEST_WITH(test, NULL, sources_tear_down)

static struct sl_prefix source(u8 last)
{
	return (struct sl_prefix){ .addr = { .hi = (u64)(0xc0000200 + last) << 32 },
				   .family = SL_V4,
				   .len = 32 };
}

/* A packet of an established connection. */
static bool established(struct rig *rig, u8 last, u64 mono_ns)
{
	_Alignas(4) u8 buf[62] = { 0,  0, 2,   0,    0, 0,    0,   1, 2,   0,	 0,    0,    0,
				   2,  8, 0,   0x45, 0, 0,    46,  0, 0,   0,	 0,    64,   6,
				   0,  0, 192, 0,    2, last, 203, 0, 113, 1,	 0x30, 0x39, 0,
				   80, 0, 0,   0,    1, 0,    0,   0, 1,   0x50, 0x10 };

	dp_sim_set_time(rig->dp, mono_ns);
	return dp_sim_packet(rig->dp, 0, 0, buf + 2, sizeof(buf) - 2).drop;
}

static void request(struct rig *rig, u8 last, const char *user, bool refused)
{
	struct request_descriptor descriptor = {
		.entry = { { { "user", 4 }, { user, strlen(user) } } }, .count = 1, .hits = 1
	};
	struct request request = { .domain = { "api", 3 },
				   .descriptor = &descriptor,
				   .count = 1,
				   .source = source(last),
				   .has_source = true,
				   .rights = MAY_CHECK | MAY_PUSH };
	struct response response = { .code = refused ? RESPONSE_OVER_LIMIT : RESPONSE_OK,
				     .count = 1,
				     .status = { { .over = refused,
						   .rule = ruleset_find(rules, "api/user") } } };

	aggregate_note(rig->d->sources->aggregate, 0, &request, &response);
}

static void many(struct rig *rig, u8 last, const char *who, int users)
{
	char name[32];

	for (int i = 0; i < users; i++) {
		snprintf(name, sizeof(name), "%s%d", who, i);
		request(rig, last, name, false);
	}
}

/* Runs a tick, at a time of ours. */
static void tick(struct rig *rig, u64 now_ns)
{
	sources_drain(rig->d->sources);
	push_tick(rig->d->sources->push, now_ns);
	while (!users_pass(rig->d->sources->users, 1, now_ns))
		;
	sources_budget(rig->d->sources, now_ns);
}

/* The rate of the source's override in the limit; "" where there is none. */
static const char *override_rate(struct rig *rig, u8 last)
{
	static char text[96];
	const struct limit_def *limit = policy_find_limit(rig->d->running.policy, "per-source");
	struct sl_prefix src = source(last);
	const struct override_def *def = override_find(limit, &src);

	if (!def)
		return "";
	return rate_format(&limit->override_rates[def->rates].rate[0], text, sizeof(text));
}

SOURCES_TEST(test_budgets_come_and_go)
{
	u64 now = clock_mono_ns();

	open_with(LIMIT HTTP);
	established(&rig, 7, now);
	many(&rig, 7, "user", 40);
	many(&rig, 8, "other", 40); /* the packet tier never saw this one */
	many(&rig, 9, "third", 1);
	established(&rig, 9, now);
	/* Users are listed by whole seconds, and this may have taken one. */
	tick(&rig, now);
	assert_string_equal(override_rate(&rig, 7), "");
	tick(&rig, now + 2 * SL_NS_PER_SEC);
	/* 50 + 40 users x 1 request/s x 40 packets */
	assert_string_equal(override_rate(&rig, 7), "1650 packets/s");
	assert_string_equal(override_rate(&rig, 8), "");
	/* 90 are less than the limit gives anyway. */
	assert_string_equal(override_rate(&rig, 9), "");
	assert_int_equal(rig_passed(&rig, 7, 4000, now + 2 * SL_NS_PER_SEC), 1650);
	assert_int_equal(rig_passed(&rig, 8, 4000, now + 2 * SL_NS_PER_SEC), 100);
	/* Ever more of them: up to max. */
	many(&rig, 7, "user", 100);
	tick(&rig, now + 3 * SL_NS_PER_SEC);
	assert_string_equal(override_rate(&rig, 7), "2000 packets/s");
	/* No change of an operator: not in live.json, in no file. */
	assert_int_equal(json_array_size(rig.d->running.live), 0);
	rig_do(&rig, "save");
	assert_string_equal(override_rate(&rig, 7), "2000 packets/s");
	assert_null(strstr(rig.d->running.source.text, "overrides"));
	tick(&rig, now + 90 * SL_NS_PER_SEC);
	assert_string_equal(override_rate(&rig, 7), "");
	assert_int_equal(rig_passed(&rig, 7, 4000, now + 92 * SL_NS_PER_SEC), 100);
}

SOURCES_TEST(test_budgets_and_operators)
{
	u64 now = clock_mono_ns();

	open_with(LIMIT HTTP);
	for (u8 last = 1; last < 4; last++) {
		established(&rig, last, now);
		many(&rig, last, "user", 10);
	}
	tick(&rig, now + 2 * SL_NS_PER_SEC);
	/* The same ten users behind three sources: a third at each. */
	assert_string_equal(override_rate(&rig, 1), "184 packets/s");
	/* An operator's override for a source stays, less than its budget or more. */
	rig_do(&rig, "override set {'name': 'per-source', "
		     "'src': '192.0.2.1', 'pairs': ['rate=10 packets/s']}");
	assert_string_equal(override_rate(&rig, 1), "10 packets/s");
	assert_string_equal(override_rate(&rig, 2), "184 packets/s");
	rig_expect(&rig, "override list {'name': 'per-source'}",
		   "overrides=3, overrides.0.derived=none, overrides.1.derived=true");
	/* The limit changes: budgets are made of the new one. */
	rig_do(&rig,
	       "limit set {'name': 'per-source', 'pairs': ['rate=1000 packets/10s', 'burst=200']}");
	assert_string_equal(override_rate(&rig, 2), "1840 packets/10s");
	rig_do(&rig, "reload");
	assert_string_equal(override_rate(&rig, 2), "1840 packets/10s");
	assert_string_equal(override_rate(&rig, 1), "10 packets/s");
	rig_do(&rig, "override del {'name': 'per-source', 'src': '192.0.2.1'}");
	assert_string_equal(override_rate(&rig, 1), "1840 packets/10s");
	rig_do(&rig, "limit del {'name': 'per-source'}");
	tick(&rig, now + 20 * SL_NS_PER_SEC);
}

static const struct push_entry *pushed(struct rig *rig, u8 last)
{
	struct sl_prefix group = source(last);

	return push_find(rig->d->sources->push, &group);
}

static void hammer(struct rig *rig, u8 last, const char *user)
{
	for (int i = 0; i < 20; i++)
		request(rig, last, user, true);
	sources_drain(rig->d->sources);
}

static u64 refusals(struct rig *rig, enum push_refusal reason)
{
	struct push_stats stats;

	push_stats(rig->d->sources->push, &stats);
	return stats.refused[reason];
}

SOURCES_TEST(test_packets_of_pushed_down_sources)
{
	u64 now = clock_mono_ns();

	open_with(LIMIT HTTP "exempt: [192.0.2.80]\n");
	for (u8 last = 1; last < 100; last++)
		established(&rig, last, now);
	hammer(&rig, 7, "eve");
	hammer(&rig, 200, "eve");
	hammer(&rig, 65, "eve");
	hammer(&rig, 80, "eve");
	assert_non_null(pushed(&rig, 7));
	assert_int_equal(rig_passed(&rig, 7, 100, now + SL_NS_PER_SEC), 20);
	assert_int_equal(rig_passed(&rig, 8, 100, now + SL_NS_PER_SEC), 100);
	assert_null(pushed(&rig, 200));
	assert_int_equal(refusals(&rig, PUSH_UNSEEN), 2);
	assert_null(pushed(&rig, 65));
	assert_null(pushed(&rig, 80));
	assert_int_equal(refusals(&rig, PUSH_PROTECTED), 4);

	rig_expect(&rig, "pushdowns list",
		   "pushdowns=1, pushdowns.0.source=192.0.2.7, "
		   "pushdowns.0.rule=api/user, pushdowns.0.value=eve, pushdowns.0.refused=80");
	rig_refused(&rig, &rig_reader, "pushdowns clear", "permission denied");
	rig_refused(&rig, &rig_root, "pushdowns clear {'source': '192.0.2.8'}", "not pushed down");
	rig_do(&rig, "pushdowns clear {'source': '192.0.2.7'}");
	assert_int_equal(rig_passed(&rig, 7, 100, now + 3 * SL_NS_PER_SEC), 100);
}

/* A daemon that was killed: its successor takes over the push-down, and ends it in time. */
SOURCES_TEST(test_taken_over)
{
	u64 now = clock_mono_ns();

	open_with(LIMIT HTTP);
	established(&rig, 7, now);
	hammer(&rig, 7, "eve");
	assert_non_null(pushed(&rig, 7));
	http_close(&rig);
	rig_restart(&rig);
	http_open(&rig);
	assert_non_null(pushed(&rig, 7));
	assert_string_equal(pushed(&rig, 7)->rule, "api/user");
	assert_int_equal(rig_passed(&rig, 7, 100, now + SL_NS_PER_SEC), 20);
	tick(&rig, now + 5 * SL_NS_PER_SEC);
	assert_non_null(pushed(&rig, 7));
	tick(&rig, now + 12 * SL_NS_PER_SEC);
	assert_null(pushed(&rig, 7));
	assert_int_equal(rig_passed(&rig, 7, 100, now + 12 * SL_NS_PER_SEC), 100);
}

SOURCES_TEST(test_shown)
{
	u64 now = clock_mono_ns();
	json_t *response;

	open_with(LIMIT HTTP);
	established(&rig, 7, now);
	many(&rig, 7, "user", 39);
	request(&rig, 7, "mallory\x1b[31m", false);
	sources_drain(rig.d->sources);
	tick(&rig, now);
	hammer(&rig, 7, "mallory\x1b[31m");
	for (int i = 0; i < 40; i++)
		request(&rig, 7, "mallory\x1b[31m", true);
	request(&rig, 7, "bob", true);
	tick(&rig, now + 2 * SL_NS_PER_SEC);
	/* Paced, but not below the others' need: 1610, and not changed for a while. */
	rig_expect(&rig, "source show {'source': '192.0.2.7'}",
		   "http.users=40, http.well_behaved=39, http.budget_pps=1650, "
		   "http.push_down.step=limit, http.push_down.rate=1650 packets/s");
	rig_expect(&rig, "user top", "users=2, users.0.value=mallory\x1b[31m, users.0.refused=60");
	/* Allowed requests, too; by the order that was asked for. */
	rig_expect(&rig, "user list {'by': 'refused'}",
		   "users=2, users.0.value=mallory\x1b[31m, users.0.refused.requests=60");
	response = rig_command(&rig, &rig_reader,
			       "user list {'by': 'passed', 'rule': 'api/user', 'count': 5}");
	assert_int_equal(json_array_size(json_at(response, "result.users")), 5);
	assert_int_equal(int_at(json_at(response, "result.users"), "0.passed.requests") > 0, 1);
	assert_true(int_at(json_object_get(response, "result"), "more") >= 30);
	json_decref(response);
	rig_refused(&rig, &rig_reader, "user list {'by': 'size'}",
		    "requests, refused or passed, not 'size'");
	rig_refused(&rig, &rig_reader, "user list {'rule': 'api/nix'}", "no rule 'api/nix'");
}

TEST_MAIN
