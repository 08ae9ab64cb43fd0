/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bans in the daemon: listed, lifted, kept over a reboot, removed when their limit is
 * gone. How the data path sets and ends them is tested by tests/bpf/test_ban.c.
 */
#include "lib/daemon_rig.h"

/* Ten packets a minute; five drops within a minute and the source is out for a minute. */
#define BANNING                                                                                    \
	"limits: [{name: all, rate: 10 packets/m, burst: 10, accounting: exact, "                  \
	"ban: {after: 5 drops/1m, for: 1m, max: 1h, spoofable: yes}}]\n"

#define SEC SL_NS_PER_SEC

/* The entry of a source in `ban list`, to be freed, or NULL. */
static json_t *listed(struct rig *rig, const char *source)
{
	json_t *response = rig_command(rig, &rig_reader, "ban list");
	json_t *found = NULL, *ban;
	size_t i;

	json_array_foreach(json_at(response, "result.bans"), i, ban)
		if (!strcmp(text_at(ban, "source"), source))
			found = json_incref(ban);
	json_decref(response);
	return found;
}

static bool has_ban(struct rig *rig, const char *source)
{
	json_t *ban = listed(rig, source);

	json_decref(ban);
	return ban;
}

static long long listed_number(struct rig *rig, const char *source, const char *key)
{
	json_t *ban = listed(rig, source);
	long long value = ban ? json_integer_value(json_object_get(ban, key)) : -1;

	json_decref(ban);
	return value;
}

static bool listed_active(struct rig *rig, const char *source)
{
	json_t *ban = listed(rig, source);
	bool active = true_at(ban, "active");

	json_decref(ban);
	return active;
}

static void expect_text(struct rig *rig, const char *line, const char *key, const char *text)
{
	json_t *response = rig_command(rig, &rig_reader, line);
	const char *found =
		json_string_value(json_object_get(json_object_get(response, "result"), key));

	if (!found != !text || (text && strcmp(found, text) != 0))
		fail_msg("%s: %s", line, json_dumps(response, 0));
	json_decref(response);
}

RIG_TEST(test_listed_and_lifted)
{
	u64 now = clock_mono_ns();

	rig_open(&rig, BANNING);
	assert_int_equal(rig_passed(&rig, 1, 15, now), 10);
	assert_false(has_ban(&rig, "192.0.2.1"));
	/* The sixth drop. */
	rig_passed(&rig, 1, 1, now);
	assert_true(listed_active(&rig, "192.0.2.1"));
	rig_passed(&rig, 1, 7, now);
	assert_int_equal(listed_number(&rig, "192.0.2.1", "drops"), 7);
	assert_int_equal(listed_number(&rig, "192.0.2.1", "level"), 0);
	assert_in_range(listed_number(&rig, "192.0.2.1", "left_ns"), 50 * SEC, 60 * SEC);
	/* Not over its limit: not banned, and source show agrees with the list. */
	assert_int_equal(rig_passed(&rig, 2, 10, now), 10);
	assert_false(has_ban(&rig, "192.0.2.2"));
	expect_text(&rig, "source show {'source':'192.0.2.2'}", "banned_until", NULL);

	rig_refused(&rig, &rig_root, "ban del {'source':'192.0.2.2'}", "not banned");
	rig_refused(&rig, &rig_root, "ban del {'source':'x'}", "x");
	rig_refused(&rig, &rig_reader, "ban del {'source':'192.0.2.1'}", "control.group");
	rig_do(&rig, "ban del {'source':'192.0.2.1'}");
	assert_false(has_ban(&rig, "192.0.2.1"));
	/* A minute later its bucket is full again: neither banned nor near it. */
	assert_int_equal(rig_passed(&rig, 1, 15, now + 60 * SEC), 10);
	assert_false(has_ban(&rig, "192.0.2.1"));
}

/* The drops that led to the ban are forgotten with it: it takes as many again. */
RIG_TEST(test_lifting_forgets_drops)
{
	u64 now = clock_mono_ns();

	rig_open(&rig, BANNING);
	rig_passed(&rig, 1, 16, now);
	assert_true(listed_active(&rig, "192.0.2.1"));
	rig_do(&rig, "ban del {'source':'192.0.2.1'}");
	rig_passed(&rig, 1, 5, now);
	assert_false(has_ban(&rig, "192.0.2.1"));
	rig_passed(&rig, 1, 1, now);
	assert_true(listed_active(&rig, "192.0.2.1"));
	/* And the level is the first again. */
	assert_int_equal(listed_number(&rig, "192.0.2.1", "level"), 0);
	/* All of a network at once. */
	rig_passed(&rig, 2, 16, now);
	rig_do(&rig, "ban del {'source':'192.0.2.0/24'}");
	assert_false(has_ban(&rig, "192.0.2.1"));
	assert_false(has_ban(&rig, "192.0.2.2"));
}

/* The kernel's memory is lost, the file is not. */
static void reboot(struct rig *rig)
{
	rig_kill(rig);
	rig->dp->ops->close(rig->dp);
	assert_int_equal(dp_sim_open(4096, RIG_CPUS, 256, &rig->dp), 0);
	rig->fresh = true;
	rig_start(rig);
}

RIG_TEST(test_a_reboot)
{
	u64 now = clock_mono_ns();
	json_t *ban;

	rig_open(&rig, BANNING);
	rig_passed(&rig, 1, 16, now);
	bans_tick(&rig.d->packets);
	reboot(&rig);
	ban = listed(&rig, "192.0.2.1");
	assert_non_null(ban);
	assert_string_equal(text_at(ban, "limit"), "all");
	assert_in_range(int_at(ban, "left_ns"), 40 * SEC, 60 * SEC);
	json_decref(ban);
	assert_true(rig_packet(&rig, 1, now + SEC));
	assert_false(rig_packet(&rig, 2, now + SEC));
	/* It ends at its old deadline. */
	assert_false(rig_packet(&rig, 1, now + 61 * SEC));
	/* A daemon that is killed and started again leaves them alone, whatever the file has. */
	rig_do(&rig, "ban del {'source':'192.0.2.1'}");
	rig_passed(&rig, 3, 16, now);
	rig_restart(&rig);
	assert_false(has_ban(&rig, "192.0.2.1"));
	assert_true(listed_active(&rig, "192.0.2.3"));
}

RIG_TEST(test_files)
{
	u64 utc = clock_utc_ns();
	char text[1024];

	rig_open(&rig, BANNING);
	/* On; over for one of its lengths; over for three; rubbish; a limit that is gone. */
	snprintf(
		text, sizeof(text),
		"{\"version\":1,\"bans\":["
		"{\"source\":\"192.0.2.1\",\"limit\":\"all\",\"since_utc_ns\":%llu,\"until_utc_ns\":%llu,\"level\":3,\"drops\":9},"
		"{\"source\":\"192.0.2.2\",\"limit\":\"all\",\"since_utc_ns\":%llu,\"until_utc_ns\":%llu,\"level\":2,\"drops\":9},"
		"{\"source\":\"192.0.2.3\",\"limit\":\"all\",\"since_utc_ns\":%llu,\"until_utc_ns\":%llu,\"level\":2,\"drops\":9},"
		"{\"source\":\"x\"},{\"source\":\"192.0.2.4\",\"since_utc_ns\":9,\"until_utc_ns\":1,\"level\":0},7,"
		"{\"source\":\"192.0.2.5\",\"limit\":\"all\",\"since_utc_ns\":1,\"until_utc_ns\":9,\"level\":99},"
		"{\"source\":\"2001:db8::/48\",\"limit\":\"gone\",\"since_utc_ns\":%llu,\"until_utc_ns\":%llu,\"level\":0,\"drops\":1}]}",
		utc - 10 * SEC, utc + 50 * SEC, utc - 150 * SEC, utc - 90 * SEC, utc - 300 * SEC,
		utc - 240 * SEC, utc, utc + 50 * SEC);
	rig_put(&rig, "bans.json", "w", text);
	reboot(&rig);
	assert_true(listed_active(&rig, "192.0.2.1"));
	assert_int_equal(listed_number(&rig, "192.0.2.1", "level"), 3);
	assert_false(listed_active(&rig, "192.0.2.2"));
	assert_int_equal(listed_number(&rig, "192.0.2.2", "level"), 1);
	assert_false(has_ban(&rig, "192.0.2.3"));
	assert_false(has_ban(&rig, "192.0.2.4"));
	assert_false(has_ban(&rig, "192.0.2.5"));
	assert_true(listed_active(&rig, "2001:db8::/48"));
	/* Its length is looked for, though no limit groups by it. */
	assert_int_equal(rig.d->running.image->rules->ban_len[SL_V6][0], 64);
	assert_int_equal(rig.d->running.image->rules->ban_len[SL_V6][1], 48);
	/* A file that cannot be read costs the bans, and no more. */
	rig_put(&rig, "bans.json", "w", "{\"bans\":");
	log_open("test", 0);
	reboot(&rig);
	assert_false(has_ban(&rig, "192.0.2.1"));
	rig_put(&rig, "bans.json", "w", "[]");
	reboot(&rig);
	assert_false(has_ban(&rig, "192.0.2.1"));
}

RIG_TEST(test_expired_bans_are_removed)
{
	u64 now = clock_mono_ns();
	struct dp_ban ban = {
		.key = { .addr = { .hi = 0xc000020900000000ULL }, .family = SL_V4, .len = 32 },
		.state = { .since_ns = now - 30 * SEC, .until_ns = now - 20 * SEC },
	};

	rig_open(&rig, BANNING);
	/* Two lengths without a drop, at level 1: one more to come. At level 0: over. */
	ban.state.level = 2;
	assert_int_equal(dp_ban_insert(rig.dp, &ban), 0);
	ban.key.addr.hi = 0xc000020a00000000ULL;
	ban.state.level = 0;
	assert_int_equal(dp_ban_insert(rig.dp, &ban), 0);
	assert_true(has_ban(&rig, "192.0.2.10"));
	bans_tick(&rig.d->packets);
	assert_false(has_ban(&rig, "192.0.2.10"));
	assert_true(has_ban(&rig, "192.0.2.9"));
	assert_int_equal(bans_look(&rig.d->packets)->active, 0);
}

static const struct dp_ops *sim;

static int hash_after_a_stall(struct dp *dp, enum dp_hash which, void *ret, size_t *ret_count)
{
	usleep(100000);
	return sim->hash_all(dp, which, ret, ret_count);
}

/* A machine that stands still takes none of the share of a CPU: the next reading stays five seconds
 * away. */
RIG_TEST(test_a_stall)
{
	struct dp_ops stalls;
	u64 now;

	rig_open(&rig, BANNING);
	sim = rig.dp->ops;
	stalls = *sim;
	stalls.hash_all = hash_after_a_stall;
	rig.dp->ops = &stalls;
	now = clock_mono_ns();
	rig.d->packets.bans.next_ns = 0;
	bans_tick(&rig.d->packets);
	rig.dp->ops = sim;
	assert_true(clock_mono_ns() >= now + SEC / 10);
	assert_in_range(rig.d->packets.bans.next_ns, now + 4 * SEC, clock_mono_ns() + 6 * SEC);
}

TEST_MAIN
