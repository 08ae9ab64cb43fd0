/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * daemon_rig.h - the daemon's own code, all but main and start, over dp_sim and a directory of
 * its own: no root, no kernel, no interfaces. A test that needs internals of a file includes it.
 */
#ifndef SLUICE_TEST_DAEMON_RIG_H
#define SLUICE_TEST_DAEMON_RIG_H

/* A test uses a part of these. */
#pragma GCC diagnostic ignored "-Wunused-function"

#include <ftw.h>

#include "lib/test.h"
#include "lib/json_expect.h"
#include "control/running/audit.h"
#include "packet/host/bans.h"
#include "lib/clock.h"
#include "control/commands/commands.h"
#include "daemon/confine.h"
#include "control/commands/control.h"
#include "lib/cpus.h"
#include "daemon/daemon.h"
#include "control/elastic/elastic.h"
#include "packet/explain/explain.h"
#include "lib/exposition.h"
#include "lib/file.h"
#include "packet/host/gateways.h"
#include "packet/host/helper.h"
#include "control/running/history.h"
#include "control/elastic/http_elastic.h"
#include "control/metrics/http_metrics.h"
#include "control/running/http_rules.h"
#include "daemon/http_tier.h"
#include "packet/host/ifaces.h"
#include "control/running/live.h"
#include "packet/host/load.h"
#include "control/metrics/metrics.h"
#include "daemon/netlink.h"
#include "control/replication/nodes.h"
#include "control/running/override_move.h"
#include "control/running/pending.h"
#include "packet/host/protect.h"
#include "control/replication/resets.h"
#include "control/running/rules.h"
#include "packet/host/sessions.h"
#include "control/elastic/load_signal.h"
#include "control/running/running_text.h"
#include "control/mitigation/sources.h"
#include "control/replication/replication.h"
#include "control/replication/replication_private.h"
#include "control/replication/replication_table.h"
#include "daemon/start.h"
#include "packet/host/state.h"
#include "daemon/timers.h"
#include "control/replication/consumption.h"
#include "packet/host/view.h"
#include "packet/dataplane/dp_sim.h"
#include "lib/log.h"

#define RIG_CPUS 2

struct rig {
	char dir[64];
	char path[96]; /* the configuration's */
	bool fresh;    /* the data plane is new: as after a reboot */
	struct dp *dp;
	struct daemon *d;
};

static const struct peer rig_root = { .uid = 0, .pid = 1, .rights = PEER_ALL };
static const struct peer rig_reader = { .uid = 1000, .pid = 2, .rights = PEER_READ };

static void rig_write(const struct rig *rig, const char *text)
{
	FILE *out = fopen(rig->path, "w");

	assert_non_null(out);
	fprintf(out, "state_dir: %s\ncontrol: {socket: %s/control.sock}\n%s", rig->dir, rig->dir,
		text);
	assert_int_equal(fclose(out), 0);
}

/* A file of the state directory; `mode` as of fopen(). */
static void rig_put(const struct rig *rig, const char *name, const char *mode, const char *text)
{
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
	out = fopen(path, mode);
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

/* As start.c, less the kernel. */
static void rig_start(struct rig *rig)
{
	struct daemon *d = calloc(1, sizeof(*d));
	char text[768];
	struct sl_err err;

	assert_non_null(d);
	daemon_wire(d);
	d->packets.helper.fd = -1;
	d->running.config_path = rig->path;
	d->running.state_dir = rig->dir;
	d->packets.state_dir = rig->dir;
	d->packets.dp = rig->dp;
	if (config_text_read_file(rig->path, &d->running.source, &err) < 0 ||
	    config_text_parse(&d->running.source, &d->running.file, &err) < 0)
		fail_msg("%s", sl_err_format(&err, text, sizeof(text)));
	assert_int_equal(live_load(rig->dir, &d->running.live, &d->running.record, &err), 0);
	state_load(&d->packets);
	dp_set_clock(d->packets.dp, clock_utc_offset_ns());
	if (rig->fresh)
		bans_restore(&d->packets);
	rig->fresh = false;
	http_tier_join(d);
	if (rules_start(&d->running, &err) < 0 || rules_start_install(&d->running, &err) < 0)
		fail_msg("%s", sl_err_format(&err, text, sizeof(text)));
	rig->d = d;
}

/* As kill -9 would: nothing is written at the end. The data plane stays. */
static void rig_kill(struct rig *rig)
{
	struct daemon *d = rig->d;

	packet_host_free(&d->packets);
	elastic_free(&d->scales);
	rules_free(&d->running);
	free(d);
	rig->d = NULL;
}

static void rig_restart(struct rig *rig)
{
	rig_kill(rig);
	rig_start(rig);
}

static void rig_open(struct rig *rig, const char *text)
{
	memset(rig, 0, sizeof(*rig));
	strcpy(rig->dir, "/tmp/sluice-test.XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	snprintf(rig->path, sizeof(rig->path), "%s/sluice.yaml", rig->dir);
	log_open("test", LOG_LEVEL_ERROR);
	assert_int_equal(dp_sim_open(4096, RIG_CPUS, 256, &rig->dp), 0);
	rig_write(rig, text);
	rig_start(rig);
}

static int rig_remove(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static void rig_close(struct rig *rig)
{
	rig_kill(rig);
	rig->dp->ops->close(rig->dp);
	assert_int_equal(nftw(rig->dir, rig_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* The rig of the test that runs: the test opens it. */
static struct rig rig;

static int rig_tear_down(void **state)
{
	if (rig.d)
		rig_close(&rig);
	return 0;
}

#define RIG_TEST(test) TEST_WITH(test, NULL, rig_tear_down)

/*
 * The response to one request as an object, to be freed. A request is a JSON object, or its command
 * and arguments with quotes that C does not escape: "block add {'prefix':'192.0.2.1'}".
 */
static json_t *rig_command(struct rig *rig, const struct peer *peer, const char *request)
{
	int command = (int)strcspn(request, "{");
	char *line, *quote;
	json_t *answer;

	if (*request < 'a' || *request > 'z')
		return commands_respond(&rig->d->commands, peer, request, strlen(request));
	while (command && request[command - 1] == ' ')
		command--;
	assert_true(asprintf(&line, "{\"command\":\"%.*s\",\"args\":%s}", command, request,
			     strchr(request, '{') ? strchr(request, '{') : "{}") > 0);
	for (quote = line; (quote = strchr(quote, '\''));)
		*quote = '"';
	answer = commands_respond(&rig->d->commands, peer, line, strlen(line));
	free(line);
	return answer;
}

static void rig_do(struct rig *rig, const char *line)
{
	json_t *answer = rig_command(rig, &rig_root, line);

	if (!true_at(answer, "ok"))
		fail_msg("%s: %s", line, json_dumps(answer, 0));
	json_decref(answer);
}

/* What the result of a read command must have: json_expect.h. */
static void rig_expect(struct rig *rig, const char *line, const char *wants)
{
	json_t *answer = rig_command(rig, &rig_reader, line);

	if (!true_at(answer, "ok"))
		fail_msg("%s: %s", line, json_dumps(answer, 0));
	json_expect(json_at(answer, "result"), line, wants);
	json_decref(answer);
}

/* The request must be refused, with `words` in the error, and leave everything unchanged. */
static void rig_refused(struct rig *rig, const struct peer *peer, const char *line,
			const char *words)
{
	u64 generation = rig->d->running.generation;
	json_t *live = json_deep_copy(rig->d->running.live);
	json_t *answer = rig_command(rig, peer, line);
	const char *said = text_at(answer, "error.message");

	if (true_at(answer, "ok") || !said || !strstr(said, words))
		fail_msg("%s: wanted '%s', got %s", line, words, json_dumps(answer, 0));
	assert_int_equal(rig->d->running.generation, generation);
	assert_true(json_equal(rig->d->running.live, live));
	json_decref(answer);
	json_decref(live);
}

/* A 60-byte UDP frame from 192.0.2.0 + `host`; true where it was dropped. */
static bool rig_packet(struct rig *rig, u32 host, u64 mono_ns)
{
	/* Two bytes in front put the IP header on a multiple of four, as a driver does. */
	_Alignas(4) u8 buf[62] = { 0, 0,    2,	 0, 0,	 0, 0,	  1,	2, 0,  0,  0,  0, 2,   8,
				   0, 0x45, 0,	 0, 46,	 0, 0,	  0,	0, 64, 17, 0,  0, 192, 0,
				   2, 0,    203, 0, 113, 1, 0x30, 0x39, 0, 53, 0,  26, 0, 0 };

	buf[30] += host >> 8;
	buf[31] = host;
	dp_sim_set_time(rig->dp, mono_ns);
	return dp_sim_packet(rig->dp, 0, 0, buf + 2, sizeof(buf) - 2).drop;
}

/* What the limit "all" has counted of a verdict. */
static u64 rig_counted(struct rig *rig, enum sl_limit_verdict verdict)
{
	struct limit_view view[SL_METER_FURTHER];
	struct sl_limit_stats stats;

	assert_true(view_limits(rig->d->running.policy, rig->d->running.image, view) > 0);
	assert_int_equal(state_limit_stats(&rig->d->packets, "all", view[0].slot,
					   pending_is(&rig->d->running), &stats),
			 0);
	return stats.packets[verdict];
}

/* How many of `count` packets at one instant pass. */
static int rig_passed(struct rig *rig, u32 host, int count, u64 mono_ns)
{
	int passed = 0;

	for (int i = 0; i < count; i++)
		passed += !rig_packet(rig, host, mono_ns);
	return passed;
}

#endif
