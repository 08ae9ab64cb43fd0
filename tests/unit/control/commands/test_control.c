/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon by its commands: changes, state that outlives it, counters, metrics, the socket.
 */
#include "lib/daemon_rig.h"
#include "control/commands/control.c"
#include "control/commands/listing.h"

#include <sys/wait.h>

#define ALL "limits: [{name: all, rate: 10 packets/s, burst: 10, accounting: exact}]\n"

static size_t live_count(const struct rig *rig)
{
	return json_array_size(rig->d->running.live);
}

/* ------------------------------------------------------------------ changes */

RIG_TEST(test_set_holds_and_survives)
{
	u64 now = clock_mono_ns();

	rig_open(&rig, ALL);
	assert_int_equal(rig_passed(&rig, 1, 50, now), 10);
	rig_do(&rig, "limit set {'name':'all','pairs':['rate=20 packets/s','burst=20']}");
	/* Empty stays empty; the neighbour gets the new burst. */
	assert_int_equal(rig_passed(&rig, 1, 50, now), 0);
	assert_int_equal(rig_passed(&rig, 2, 50, now), 20);
	rig_restart(&rig);
	assert_int_equal(live_count(&rig), 1);
	assert_int_equal(rig_passed(&rig, 1, 50, now), 0);
	assert_int_equal(rig_passed(&rig, 3, 50, now), 20);
}

RIG_TEST(test_refusals_change_nothing)
{
	static const struct {
		const char *line, *words;
	} cases[] = {
		{ "limit set {'name':'all','pairs':['rate=x']}", "accepted" },
		{ "limit set {'name':'all','pairs':['rate=5 packets/s','x=1']}", "x" },
		{ "limit set {'name':'all','pairs':[]}", "pairs" },
		{ "limit set {'name':'all','pairs':[7]}", "KEY=VALUE" },
		{ "limit set {'name':'no','pairs':['rate=5 packets/s']}", "limits: all" },
		{ "limit add {'yaml':'name: all\\nrate: 1 packets/s'}", "taken" },
		{ "limit del {}", "'name' is required" },
		{ "block add {'prefix':'0.0.0.0/0'}", "--force" },
		{ "block add {'prefix':'10.0.0.0/7'}", "/8" },
		{ "block add {'prefix':'2000::/15'}", "/16" },
		{ "block add {'prefix':'10.0.0.1/8'}", "host bits" },
		{ "block add {'prefix':'10.0.0.1','for':'10'}", "10m" },
		{ "block add {'prefix':'10.0.0.1','reason':'a\\nb'}", "control" },
		{ "block del {'prefix':'10.0.0.1'}", "10.0.0.1" },
		{ "exempt add {'prefix':'@none'}", "no set" },
		{ "attach {'interface':'no-such-0'}", "interfaces: " },
		{ "detach {'interface':'lo'}", "not configured" },
		{ "source show {'source':'10.0.0.0/8'}", "single address" },
		{ "top", "sluicectl help" },
		{ "{\"command\":3}", "'command'" },
		{ "{\"command\":\"status\",\"args\":[]}", "object" },
		{ "[", "JSON" },
		{ "", "JSON" },
		{ "{\"command\":\"status\",\"command\":\"reload\"}", "JSON" },
	};

	rig_open(&rig, ALL);
	for (size_t i = 0; i < COUNT(cases); i++)
		rig_refused(&rig, &rig_root, cases[i].line, cases[i].words);
	assert_int_equal(live_count(&rig), 0);
	assert_int_equal(rig_passed(&rig, 1, 50, clock_mono_ns()), 10);
}

RIG_TEST(test_readers_only_ask)
{
	json_t *response;

	rig_open(&rig, ALL);
	response = rig_command(&rig, &rig_reader, "status");
	assert_true(true_at(response, "ok"));
	json_decref(response);
	rig_refused(&rig, &rig_reader, "reload", "control.group");
	rig_refused(&rig, &rig_reader, "detach {'all':true}", "permission denied");
}

/* A member of the group adds a limit, but root's daemon reads no file for them, nor quotes one. */
RIG_TEST(test_limit_add_of_the_group)
{
	static const struct peer member = { .uid = 1000, .pid = 3, .rights = PEER_ALL };
	char secret[] = "/tmp/sluice-secret-XXXXXX", line[300];
	int fd = mkstemp(secret);
	json_t *response;

	assert_int_equal(write(fd, "root:hash\n", 10), 10);
	close(fd);
	rig_open(&rig, "limits: []\n");
	snprintf(line, sizeof(line),
		 "limit add {'yaml': '{name: a, rate: 5 packets/s, overrides_file: %s}'}", secret);
	rig_refused(&rig, &member, line, "only root's configuration may name it");
	/* a neighbor: a limit without a file, and root's with one */
	response = rig_command(&rig, &member, "limit add {'yaml': '{name: b, rate: 5 packets/s}'}");
	assert_true(true_at(response, "ok"));
	json_decref(response);
	rig_refused(&rig, &rig_root, line, "found no comma after src");
	unlink(secret);
}

/* So many live changes there are after each of them, and after a restart. */
struct step {
	const char *line;
	size_t count;
};

static void steps_run(const struct step *step, size_t count)
{
	for (; count--; step++) {
		rig_do(&rig, step->line);
		if (live_count(&rig) != step->count)
			fail_msg("%s: %zu changes, not %zu", step->line, live_count(&rig),
				 step->count);
		rig_restart(&rig);
		assert_int_equal(live_count(&rig), step->count);
	}
}

/* Later operations remove those that they make void. */
RIG_TEST(test_the_list_stays_short)
{
	static const struct step steps[] = {
		{ "limit set {'name':'all','pairs':['rate=5 packets/s']}", 1 },
		{ "limit set {'name':'all','pairs':['rate=6 packets/s']}", 1 },
		{ "limit set {'name':'all','pairs':['mode=shadow']}", 1 },
		{ "limit add {'yaml':'name: more\\nrate: 1 packets/s'}", 2 },
		{ "limit set {'name':'more','pairs':['rate=2 packets/s']}", 3 },
		{ "limit del {'name':'more'}", 1 },
		{ "block add {'prefix':'10.0.0.1'}", 2 },
		{ "block add {'prefix':'10.0.0.1/32','for':'1h'}", 2 },
		{ "exempt add {'prefix':'10.0.0.1'}", 3 },
		{ "block del {'prefix':'10.0.0.1'}", 2 },
		{ "exempt del {'prefix':'10.0.0.1'}", 1 },
		/* In the file: its removal has to be remembered. */
		{ "block del {'prefix':'198.51.100.0/24'}", 2 },
		/* As in the file again. */
		{ "block add {'prefix':'198.51.100.0/24'}", 1 },
		{ "block add {'prefix':'198.51.100.0/24','for':'1h'}", 2 },
		{ "block del {'prefix':'198.51.100.0/24'}", 2 },
		{ "limit del {'name':'all'}", 2 },
		{ "limit add {'yaml':'name: all\\nrate: 7 packets/s'}", 3 },
		{ "limit del {'name':'all'}", 2 },
		{ "block add {'prefix':'198.51.100.0/24'}", 1 },
	};

	rig_open(&rig, "block: [198.51.100.0/24]\n" ALL);
	steps_run(steps, COUNT(steps));
	assert_int_equal(rig.d->running.policy->limit_count, 0);
}

/* The list has what differs from the file: a value that is the file's again is no change. */
RIG_TEST(test_back_to_the_file)
{
	static const struct step steps[] = {
		{ "limit set {'name':'web','pairs':['rate=5 packets/s']}", 1 },
		{ "limit set {'name':'web','pairs':['rate=10 packets/s']}", 0 },
		{ "limit set {'name':'web','pairs':['rate=5 packets/s', 'mode=shadow']}", 1 },
		{ "limit set {'name':'web','pairs':['rate=10 packets/s']}", 1 },
		{ "limit set {'name':'web','pairs':['mode=']}", 0 },
		{ "override set {'name':'web','src':'192.0.2.7','pairs':['rate=9 packets/s']}", 1 },
		{ "override set {'name':'web','src':'192.0.2.7','pairs':['rate=20 packets/s']}",
		  0 },
		{ "override del {'name':'web','src':'192.0.2.7'}", 1 },
		{ "override set {'name':'web','src':'192.0.2.7','pairs':['rate=20 packets/s']}",
		  0 },
		/* A limit that is deleted and added again is another one, whatever its keys. */
		{ "limit del {'name':'web'}", 1 },
		{ "limit add {'yaml':'{name: web, rate: 11 packets/s, burst: 10}'}", 2 },
		{ "limit set {'name':'web','pairs':['rate=10 packets/s']}", 3 },
		{ "exempt add {'prefix':'192.0.2.9'}", 3 },
		{ "exempt del {'prefix':'192.0.2.9'}", 4 },
		{ "exempt add {'prefix':'192.0.2.9'}", 3 },
	};

	rig_open(&rig, "exempt: [192.0.2.9]\nlimits: [{name: web, rate: 10 packets/s, burst: 10, "
		       "overrides: [{src: 192.0.2.7, rate: 20 packets/s}]}]\n");
	steps_run(steps, COUNT(steps));
}

RIG_TEST(test_merged_set_has_both_keys)
{
	const struct limit_def *def;

	rig_open(&rig, ALL);
	rig_do(&rig, "limit set {'name':'all','pairs':['rate=6 packets/s']}");
	rig_do(&rig, "limit set {'name':'all','pairs':['burst=3','mode=shadow']}");
	rig_restart(&rig);
	def = policy_find_limit(rig.d->running.policy, "all");
	assert_int_equal(def->terms.rates.rate[0].count, 6);
	assert_int_equal(def->terms.rates.burst[0], 3);
	assert_int_equal(def->mode, SL_MODE_SHADOW);
}

/* ------------------------------------------------------------------ lists */

RIG_TEST(test_blocks_end_by_themselves)
{
	u64 now = clock_mono_ns();

	rig_open(&rig, "limits: []\n");
	rig_do(&rig, "block add {'prefix':'192.0.2.1','for':'1h'}");
	rig_do(&rig, "block add {'prefix':'192.0.2.2'}");
	assert_true(rig_packet(&rig, 1, now));
	assert_true(rig_packet(&rig, 2, now));
	assert_false(rig_packet(&rig, 3, now));
	/* The data path does it, without the daemon. */
	assert_false(rig_packet(&rig, 1, now + 3601 * SL_NS_PER_SEC));
	assert_true(rig_packet(&rig, 2, now + 3601 * SL_NS_PER_SEC));
	assert_int_equal(live_expire(rig.d->running.live, clock_utc_ns() + 3599 * SL_NS_PER_SEC),
			 0);
	assert_int_equal(live_expire(rig.d->running.live, clock_utc_ns() + 3601 * SL_NS_PER_SEC),
			 1);
	assert_int_equal(live_count(&rig), 1);
}

RIG_TEST(test_force_blocks_wide)
{
	u64 now = clock_mono_ns();

	rig_open(&rig, "limits: []\n");
	rig_do(&rig, "block add {'prefix':'0.0.0.0/0','force':true}");
	assert_true(rig_packet(&rig, 1, now));
	rig_do(&rig, "block del {'prefix':'0.0.0.0/0'}");
	assert_false(rig_packet(&rig, 1, now));
}

RIG_TEST(test_sets_in_lists)
{
	u64 now = clock_mono_ns();

	rig_open(&rig, "sets: {bad: [192.0.2.1, 192.0.2.2]}\nlimits: []\n");
	rig_do(&rig, "block add {'prefix':'@bad'}");
	assert_true(rig_packet(&rig, 1, now));
	assert_true(rig_packet(&rig, 2, now));
	assert_false(rig_packet(&rig, 3, now));
	rig_do(&rig, "block del {'prefix':'@bad'}");
	assert_false(rig_packet(&rig, 1, now));
	assert_int_equal(live_count(&rig), 0);
}

/* The pages of a list have each row once, in order, whatever is added and removed between them. */
RIG_TEST(test_pages)
{
	const size_t count = 2 * LISTING_ROWS + 1000;
	json_t *loaded = json_array(), *args = json_object(), *response, *row;
	size_t seen = 0, pages = 0, i;
	char text[64], *line;
	const char *next;
	json_t *request;

	rig_open(&rig,
		 "sets: {bad: [10.0.0.0/16]}\nblock: ['@bad', 10.0.0.0/16, 9.9.9.9]\nlimits: []\n");
	for (i = 0; i < count; i++) { /* downwards, the worst order */
		snprintf(text, sizeof(text), "10.%zu.%zu.1", (count - i) / 256, (count - i) % 256);
		json_array_append_new(loaded, json_string(text));
	}
	request = json_pack("{s:s, s:{s:o}}", "command", "block load", "args", "prefixes", loaded);
	line = json_dumps(request, 0);
	json_decref(request);
	rig_do(&rig, line);
	free(line);
	do {
		request = json_pack("{s:s, s:O}", "command", "block list", "args", args);
		line = json_dumps(request, 0);
		json_decref(request);
		response = rig_command(&rig, &rig_reader, line);
		free(line);
		assert_true(true_at(response, "ok"));
		row = json_object_get(response, "result");
		next = json_string_value(json_object_get(row, "next"));
		assert_in_range(json_array_size(json_object_get(row, "entries")), 1,
				LISTING_ROWS + 3);
		seen += json_array_size(json_object_get(row, "entries"));
		if (next)
			json_object_set_new(args, "after", json_string(next));
		json_decref(response);
		/* Behind the page, and before it. */
		if (!pages++) {
			rig_do(&rig, "block add {'prefix':'1.2.3.4'}");
			rig_do(&rig, "block add {'prefix':'99.2.3.4'}");
		}
	} while (next);
	assert_int_equal(pages, 3);
	assert_int_equal(seen, count + 3 + 1);
	rig_refused(&rig, &rig_reader, "block list {'after':'x'}", "not an address");
	json_decref(args);
}

/* ------------------------------------------------------------------ file and live */

RIG_TEST(test_reload_keeps_and_drops)
{
	struct sl_err err;

	rig_open(&rig, ALL);
	rig_do(&rig, "limit set {'name':'all','pairs':['rate=5 packets/s']}");
	rig_do(&rig, "block add {'prefix':'192.0.2.9'}");
	rig_write(&rig, "limits: [{name: other, rate: 3 packets/s}]\n");
	assert_int_equal(rules_reload(&rig.d->running, 0, 1, NULL, NULL, &err), 0);
	/* The set was of a removed limit; the block stays. */
	assert_int_equal(live_count(&rig), 1);
	assert_non_null(policy_find_limit(rig.d->running.policy, "other"));
	assert_null(policy_find_limit(rig.d->running.policy, "all"));
	assert_true(rig_packet(&rig, 9, clock_mono_ns()));
	rig_write(&rig, "limits: [{name: other, rate: none}]\n");
	rig_refused(&rig, &rig_root, "reload", "rate");
	assert_false(rig.d->running.reload.ok);
	assert_non_null(policy_find_limit(rig.d->running.policy, "other"));
	rig_write(&rig, ALL);
	rig_do(&rig, "reload");
	assert_true(rig.d->running.reload.ok);
}

RIG_TEST(test_save)
{
	char backup[128];

	rig_open(&rig, ALL);
	rig_do(&rig, "limit set {'name':'all','pairs':['rate=5 packets/s']}");
	rig_do(&rig,
	       "{\"command\":\"block add\",\"args\":{\"prefix\":\"192.0.2.9\",\"for\":\"1h\",\"reason\":\"it's: #1\"}}");
	chmod(rig.path, 0640);
	rig_do(&rig, "save");
	assert_int_equal(live_count(&rig), 0);
	snprintf(backup, sizeof(backup), "%s.bak", rig.path);
	assert_int_equal(access(backup, R_OK), 0);
	rig_restart(&rig);
	assert_int_equal(live_count(&rig), 0);
	assert_int_equal(policy_find_limit(rig.d->running.policy, "all")->terms.rates.rate[0].count,
			 5);
	assert_string_equal(rig.d->running.policy->list[LIST_BLOCK].entry[0].reason, "it's: #1");
	assert_true(rig_packet(&rig, 9, clock_mono_ns()));
}

RIG_TEST(test_broken_live_file)
{
	rig_open(&rig, ALL);
	rig_put(&rig, "live.json", "w", "{\"version\":1,\"changes\":[{\"op\":3}]}");
	rig_restart(&rig);
	assert_int_equal(live_count(&rig), 0);
	assert_int_equal(rig_passed(&rig, 1, 50, clock_mono_ns()), 10);
}

/* ------------------------------------------------------------------ counters */

/* A set that moves the limit to another slot, and back, never makes a counter go back. */
RIG_TEST(test_counters_never_go_back)
{
	static const char *const algorithm[] = { "fixed-window", "token-bucket", "fixed-window" };
	u64 now = clock_mono_ns();
	char line[256];

	rig_open(&rig, ALL);
	rig_passed(&rig, 1, 50, now);
	assert_int_equal(rig_counted(&rig, SL_LV_PASS), 10);
	assert_int_equal(rig_counted(&rig, SL_LV_DROP), 40);
	for (u64 i = 0; i < 3; i++) {
		snprintf(line, sizeof(line),
			 "limit set {'name':'all','pairs':['algorithm=%s','burst=']}",
			 algorithm[i]);
		rig_do(&rig, line);
		assert_int_equal(rig_counted(&rig, SL_LV_PASS) + rig_counted(&rig, SL_LV_DROP),
				 50 + 20 * i);
		rig_passed(&rig, 10 + i, 20, now);
		assert_int_equal(rig_counted(&rig, SL_LV_PASS), 20 + 10 * i);
		if (i == 1)
			rig_restart(&rig);
	}
	assert_int_equal(rig_counted(&rig, SL_LV_DROP), 70);
	/* Deleted and added again it is another limit. */
	rig_do(&rig, "limit del {'name':'all'}");
	rig_do(&rig, "limit add {'yaml':'name: all\\nrate: 1 packets/s'}");
	assert_int_equal(rig_counted(&rig, SL_LV_PASS), 0);
}

/* ------------------------------------------------------------------ metrics */

static bool promtool_likes(const char *text, size_t size)
{
	FILE *pipe = popen("promtool check metrics >/dev/null 2>&1", "w");

	assert_non_null(pipe);
	fwrite(text, 1, size, pipe);
	return pclose(pipe) == 0;
}

RIG_TEST(test_metrics)
{
	struct evbuffer *out = evbuffer_new();
	char *text;

	rig_open(&rig, ALL);
	rig_passed(&rig, 1, 50, clock_mono_ns());
	strcpy(rig.d->packets.iface[0].name, "e\"\\0");
	rig.d->packets.iface[0].wanted = true;
	metrics_write(&rig.d->metrics, out);
	evbuffer_add(out, "", 1);
	text = (char *)evbuffer_pullup(out, -1);
	assert_non_null(
		strstr(text, "\nsluice_limit_packets_total{limit=\"all\",verdict=\"drop\"} 40\n"));
	assert_non_null(strstr(text,
			       "sluice_packets_total{interface=\"e\\\"\\\\0\",verdict=\"drop\","
			       "reason=\"over\"} 40\n"));
	if (system("promtool --version >/dev/null 2>&1") == 0)
		assert_true(promtool_likes(text, evbuffer_get_length(out) - 1));
	else
		print_message("promtool is not installed: the format was not checked\n");
	evbuffer_free(out);
}

/* ------------------------------------------------------------------ the socket */

static int dial(struct rig *rig)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	strcpy(addr.sun_path, rig->d->commands.socket_path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* Sends, runs the loop until nothing more comes, and returns the whole output. */
static size_t talk(struct rig *rig, int fd, const char *text, size_t size, char *buf, size_t room)
{
	size_t sent = 0, got = 0;
	int idle = 0;

	while (idle < 50) {
		ssize_t n = sent < size ? send(fd, text + sent, size - sent, MSG_NOSIGNAL) : 0;

		if (n > 0)
			sent += (size_t)n;
		event_base_loop(rig->d->base, EVLOOP_NONBLOCK);
		idle = n > 0 ? 0 : idle + 1;
		n = recv(fd, buf + got, room - got, 0);
		if (n > 0) {
			got += (size_t)n;
			idle = 0;
		}
	}
	buf[got < room ? got : room - 1] = '\0';
	return got;
}

static size_t count_lines(const char *text)
{
	size_t lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

/* Serves the socket of a rig; clients of the socket after this. */
static void serve_socket(struct rig *rig, char path[128])
{
	struct sl_err err;

	rig_open(rig, ALL);
	snprintf(path, 128, "%s/control.sock", rig->dir);
	rig->d->commands.socket_path = path;
	rig->d->base = rig->d->commands.base = event_base_new();
	assert_int_equal(control_start(&rig->d->commands, rig->d->running.file, &err), 0);
}

/* Two requests and a part of one. */
static const char two[] = "{\"command\":\"limit list\"}\n{\"command\":\"no\"}\n{\"comm";

RIG_TEST(test_socket)
{
	char path[128], *buf = malloc(1 << 21), *big = malloc(3 << 20);
	struct sl_err err;
	int fd, other[CLIENTS_MAX + 1];

	serve_socket(&rig, path);

	fd = dial(&rig);
	talk(&rig, fd, two, strlen(two), buf, 1 << 21);
	assert_int_equal(count_lines(buf), 2);
	talk(&rig, fd, "and\":\"diff\"}\n", 13, buf, 1 << 21);
	assert_non_null(strstr(buf, "\"changes\":[]"));
	memset(big, ' ', 3 << 20);
	memcpy(big + (3 << 20) - 20, "{\"command\":\"diff\"}\n", 20);
	talk(&rig, fd, big, 3 << 20, buf, 1 << 21);
	assert_non_null(strstr(buf, "\"changes\":[]"));
	for (int i = 0; i < 43; i++)
		talk(&rig, fd, big, (3 << 20) - 20, buf, 1 << 21);
	assert_non_null(strstr(buf, "128 MiB"));
	close(fd);

	for (int i = 0; i <= CLIENTS_MAX; i++)
		other[i] = dial(&rig);
	talk(&rig, other[CLIENTS_MAX], "", 0, buf, 1 << 21);
	assert_non_null(strstr(buf, "at most 64"));
	talk(&rig, other[0], two, 25, buf, 1 << 21);
	assert_int_equal(count_lines(buf), 1);
	for (int i = 0; i <= CLIENTS_MAX; i++)
		close(other[i]);
	for (int i = 0; i < 200; i++)
		event_base_loop(rig.d->base, EVLOOP_NONBLOCK);
	assert_int_equal(control.clients, 0);

	/* A second daemon is refused, and does no harm. */
	assert_int_equal(control_start(&rig.d->commands, rig.d->running.file, &err), -EADDRINUSE);
	control_stop(&rig.d->commands);
	assert_int_not_equal(access(path, F_OK), 0);
	event_base_free(rig.d->base);
	free(buf);
	free(big);
}

RIG_TEST(test_turns)
{
	char path[128], *buf = malloc(1 << 21), *big = malloc(2500);
	u64 began_ns, lines[2];
	int other[2];
	ssize_t n;

	serve_socket(&rig, path);
	/* A reader's hundred requests in one piece do not come before one of root, or of another
	 * reader. */
	other[0] = dial(&rig);
	other[1] = dial(&rig);
	talk(&rig, other[0], two, 25, buf, 1 << 21);
	TAILQ_LAST(&control.list, client_list)->peer.rights = PEER_READ;
	talk(&rig, other[1], two, 25, buf, 1 << 21);
	TAILQ_FIRST(&control.list)->peer.rights = PEER_READ;
	for (int i = 0; i < 100; i++)
		memcpy(big + 25 * i, two, 25);
	for (int rights = PEER_READ; rights <= PEER_ALL; rights++) {
		TAILQ_LAST(&control.list, client_list)->peer.rights = rights;
		began_ns = clock_mono_ns();
		assert_int_equal(send(other[0], big, 2500, 0), 2500);
		event_base_loop(rig.d->base, EVLOOP_ONCE);
		assert_int_equal(send(other[1], two, 25, 0), 25);
		while (recv(other[1], buf, 1 << 21, 0) < 0)
			event_base_loop(rig.d->base, EVLOOP_ONCE);
		n = recv(other[0], buf, (1 << 21) - 1, 0);
		buf[n > 0 ? n : 0] = '\0';
		assert_in_range(count_lines(buf), 0, 5);
		do
			event_base_loop(rig.d->base, EVLOOP_ONCE);
		while ((n = recv(other[0], buf, 1 << 21, 0)) < 0 ||
		       control.turns[PEER_READ].waiting.tqh_first);
		/* Readers wait for as long as they were served. */
		assert_true(control.turns[PEER_READ].from_ns > began_ns);
		assert_int_equal(control.turns[PEER_ALL].from_ns, 0);
	}
	/* Two readers with a hundred requests each take turns. */
	TAILQ_LAST(&control.list, client_list)->peer.rights = PEER_READ;
	memset(lines, 0, sizeof(lines));
	for (int i = 0; i < 2; i++)
		assert_int_equal(send(other[i], big, 2500, 0), 2500);
	while (lines[0] + lines[1] < 200) {
		event_base_loop(rig.d->base, EVLOOP_ONCE);
		for (int i = 0; i < 2; i++) {
			n = recv(other[i], buf, (1 << 21) - 1, 0);
			buf[n > 0 ? n : 0] = '\0';
			lines[i] += count_lines(buf);
		}
		assert_in_range(lines[0], lines[1] > 3 ? lines[1] - 3 : 0, lines[1] + 3);
	}
	assert_int_equal(control.clients, 2);
	close(other[0]);
	close(other[1]);
	control_stop(&rig.d->commands);
	event_base_free(rig.d->base);
	free(buf);
	free(big);
}

TEST_MAIN
