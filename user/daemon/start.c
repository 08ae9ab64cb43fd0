// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * start.c - see start.h.
 *
 * The order matters: steps that can fail without side effects come first (the file, the lock, the
 * sockets); the helper is started before there is anything that it should not inherit; privileges
 * are dropped after the last step that needs them and before the first client is served.
 */
#include "daemon/start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "control/running/audit.h"
#include "control/running/persist.h"
#include "lib/clock.h"
#include "daemon/confine.h"
#include "control/commands/control.h"
#include "control/elastic/elastic.h"
#include "daemon/http_tier.h"
#include "daemon/observer.h"
#include "daemon/needs.h"
#include "packet/host/ifaces.h"
#include "control/running/live.h"
#include "daemon/metrics_listen.h"
#include "daemon/netlink.h"
#include "control/replication/nodes.h"
#include "control/running/rules.h"
#include "control/running/running_text.h"
#include "control/replication/replication.h"
#include "packet/host/state.h"
#include "packet/observe/observe.h"
#include "daemon/timers.h"
#include "control/replication/consumption.h"
#include "packet/dataplane/dp_sim.h"
#include "request/server/worker.h"
#include "lib/log.h"
#include "lib/value_hash.h"

#define NO_BUCKETS 64

/* ------------------------------------------------------------------ signals */

void start_end(struct daemon *d)
{
	if (d->packets.stopping) {
		event_base_loopbreak(d->base);
		return;
	}
	d->packets.stopping = true;
	sd_notify(0, "STOPPING=1");
	http_tier_drain(d);
}

/* Says which limits hold after the exit, and which do not. */
static const char *after_exit(const struct daemon *d)
{
	if (d->packets.absent)
		return "no request gets a decision until sluiced runs again: a proxy passes or refuses all, "
		       "as it is configured";
	if (d->packets.pins_lost)
		return "the pins are gone, so limits end now";
	return d->http ? "packet limits stay in force; no request gets a decision until sluiced runs again"
		       : "limits stay in force";
}

static void on_end(evutil_socket_t signal_number, short what, void *arg)
{
	struct daemon *d = arg;

	log_info("received signal %d, exiting; %s", (int)signal_number, after_exit(d));
	start_end(d);
}

static struct event *ready_timer; /* pending: READY=1 is yet to come */

static void on_hangup(evutil_socket_t signal_number, short what, void *arg)
{
	struct daemon *d = arg;
	json_t *notes = json_array();
	struct sl_err err;
	u64 generation;
	int r;

	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", clock_read_ns(CLOCK_MONOTONIC) / 1000);
	generation = d->running.generation;
	r = rules_reload(&d->running, geteuid(), getpid(), NULL, notes, &err);
	json_decref(notes);
	audit_write(&d->running, NULL, "SIGHUP", NULL, generation, r < 0 ? &err : NULL);
	if (!event_pending(ready_timer, EV_TIMEOUT, NULL))
		sd_notify(0, "READY=1");
}

static void on_child(evutil_socket_t signal_number, short what, void *arg)
{
	struct daemon *d = arg;

	if (waitpid(d->packets.helper.pid, NULL, WNOHANG) != d->packets.helper.pid)
		return;
	log_error("the attach helper has died: attach and detach fail until sluiced is restarted; "
		  "limits stay in force");
	d->packets.helper.pid = 0;
	helper_stop(&d->packets.helper);
}

/*
 * From before the file is read: a reload that is requested during the start, or a helper that dies,
 * is handled once the loop runs.
 */
static void hold_signals(int how)
{
	sigset_t held;

	sigemptyset(&held);
	sigaddset(&held, SIGHUP);
	sigaddset(&held, SIGCHLD);
	pthread_sigmask(how, &held, NULL);
}

static int watch_signals(struct daemon *d, struct sl_err *err)
{
	static const struct {
		int number;
		event_callback_fn run;
	} watched[] = {
		{ SIGTERM, on_end },
		{ SIGINT, on_end },
		{ SIGHUP, on_hangup },
		{ SIGCHLD, on_child },
	};

	for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++) {
		struct event *event = evsignal_new(d->base, watched[i].number, watched[i].run, d);

		if (!event || event_add(event, NULL) < 0)
			return sl_err_set(err, ENOMEM, "out of memory: cannot watch signals");
	}
	hold_signals(SIG_UNBLOCK);
	return 0;
}

/* ------------------------------------------------------------------ the steps */

static int load(struct daemon *d, struct sl_err *err)
{
	int r;

	daemon_wire(d);
	r = config_text_read_file(d->running.config_path, &d->running.source, err);
	if (!r)
		r = config_text_parse(&d->running.source, &d->running.file, err);
	if (r < 0)
		return r;
	d->running.state_dir = strdup(d->running.file->state_dir);
	d->commands.socket_path = strdup(d->commands.socket_path ? d->commands.socket_path
								 : d->running.file->control_socket);
	d->packets.state_dir = d->running.state_dir;
	d->packets.pin_dir = strdup(d->running.file->pin_dir);
	d->commands.started_mono_ns = clock_mono_ns();
	d->packets.absent = d->running.file->http && !d->running.file->interface_count;
	return d->running.state_dir && d->commands.socket_path
		       ? 0
		       : sl_err_set(err, ENOMEM, "out of memory");
}

/*
 * By its usual clock, which is up to 4 ms late, libevent wakes up early: two or three times for
 * each timer. (Workers have few timers and many events, for which the exact clock costs a system
 * call each.)
 */
static struct event_base *make_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (config && event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0)
		base = event_base_new_with_config(config);
	if (config)
		event_config_free(config);
	return base;
}

static int open_sockets(struct daemon *d, struct sl_err *err)
{
	int r;

	d->base = make_base();
	if (!d->base)
		return sl_err_set(err, ENOMEM, "out of memory: cannot create the event loop");
	d->nodes.base = d->scales.base = d->commands.base = d->base;
	r = control_start(&d->commands, d->running.file, err);
	if (!r)
		r = metrics_listen_start(d, d->running.file->metrics_listen, err);
	return r;
}

/* Without a packet tier, rules are still compiled, checked and shown. */
static int open_no_data_plane(struct daemon *d, struct sl_err *err)
{
	if (dp_sim_open(NO_BUCKETS, 1, NO_BUCKETS, &d->packets.dp) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	dp_set_clock(d->packets.dp, clock_utc_offset_ns());
	state_load(&d->packets);
	return 0;
}

static int open_data_plane(struct daemon *d, struct sl_err *err)
{
	enum dp_pins pins;
	int r;

	if (d->packets.absent)
		return open_no_data_plane(d, err);
	r = dp_bpf_open(d->running.file->pin_dir, d->running.file->table_buckets, &d->packets.dp,
			&pins, err);
	if (!r)
		r = ifaces_lock_pins(d->running.file->pin_dir, err);
	if (r < 0)
		return r;
	d->packets.made_pins = pins == DP_PINS_MADE;
	log_info(
		pins == DP_PINS_FOUND ? "reusing the maps under %s"
		: pins == DP_PINS_MADE
			? "created the maps under %s"
			: "the maps under %s were another version's: created again; that version's program limits until this one's is attached",
		d->running.file->pin_dir);
	dp_set_clock(d->packets.dp, clock_utc_offset_ns());
	state_load(&d->packets);
	/* New maps have new counters. */
	if (pins != DP_PINS_FOUND) {
		d->packets.base_stats_count = 0;
		bans_restore(&d->packets);
	}
	ifaces_take_over(&d->packets);
	ifaces_rescan(&d->packets);
	protect_find_gateways(&d->packets);
	protect_find_servers(&d->packets);
	return 0;
}

static int start_rules(struct daemon *d, struct sl_err *err)
{
	http_tier_join(d);
	return rules_start(&d->running, err);
}

int start_all(struct daemon *d, struct sl_err *err)
{
	int r;

	hold_signals(SIG_BLOCK);
	r = load(d, err);
	if (!r && !d->packets.absent)
		r = needs_check(err);
	if (!r && !d->packets.absent)
		r = helper_start(&d->packets.helper, d->running.file->pin_dir, err);
	if (!r)
		r = handover_lock(&d->handover, d->running.state_dir, d->replace, err);
	if (!r)
		r = value_hash_open(d->running.state_dir, err);
	if (!r)
		r = live_load(d->running.state_dir, &d->running.live, &d->running.record, err);
	if (!r)
		r = open_sockets(d, err);
	if (!r)
		handover_offer(d);
	if (!r)
		r = observe_open(d->running.state_dir, d->running.file->history_size,
				 d->running.file->history_age_ns, &d->running.observe, err);
	if (!r)
		r = open_data_plane(d, err);
	if (!r)
		r = replication_open(&d->nodes, err);
	if (!r)
		r = consumption_open(&d->nodes, err);
	if (!r)
		r = start_rules(d, err);
	if (!r)
		r = http_tier_open(d, err);
	if (!r)
		r = nodes_open(&d->nodes, err);
	if (!r)
		r = http_tier_share(d, err);
	if (!r)
		r = confine_daemon(err);
	if (!r)
		r = nodes_run(&d->nodes, err);
	if (!r)
		r = http_tier_run(d, err);
	/* The kernel takes its time to check programs: requests get responses meanwhile. */
	if (!r)
		r = rules_start_install(&d->running, err);
	if (!r)
		observer_set_rate(d);
	if (!r)
		r = persist_run(&d->running, err);
	if (!r)
		r = watch_signals(d, err);
	if (!r)
		r = netlink_start(d, err);
	if (!r)
		r = timers_start(d, err);
	return r;
}

/* ------------------------------------------------------------------ ready */

#define READY_LOOK_USEC 20000
#define READY_WAIT_NS 1000000000ULL

static u64 ready_wait_from_ns;

/*
 * At boot the network is brought up only after READY=1 (sluiced.service), so a configured interface
 * whose driver is still being loaded is waited for, up to a second. Later ones are attached when
 * they appear (netlink.c).
 */
static void on_ready_look(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval look = { .tv_usec = READY_LOOK_USEC };
	struct daemon *d = arg;

	if (ifaces_are_missing(&d->packets) &&
	    clock_mono_ns() - ready_wait_from_ns < READY_WAIT_NS &&
	    event_add(ready_timer, &look) == 0)
		return;
	sd_notify(0, "READY=1");
}

int start_loop(struct daemon *d)
{
	log_info("ready: %zu limits on %zu interfaces, %zu live changes",
		 d->running.policy->limit_count, d->running.policy->interface_count,
		 json_array_size(d->running.live));
	if (d->running.policy->limit_count && !d->running.policy->interface_count)
		log_warn("interfaces is empty: no packet meets the limits");
	if (d->http)
		log_info("http: %u rules, %u workers", d->running.requests.rules->rule_count,
			 d->http->worker_count);
	ready_timer = evtimer_new(d->base, on_ready_look, d);
	ready_wait_from_ns = clock_mono_ns();
	on_ready_look(-1, 0, d);
	event_base_dispatch(d->base);
	sd_notify(0, "STOPPING=1");
	observer_flush(d);
	bans_store(&d->packets);
	return 0;
}

void start_undo(struct daemon *d)
{
	struct sl_err err;

	if (!d->packets.dp || d->packets.absent)
		return;
	if (!d->packets.made_pins)
		log_info(
			"what an earlier sluiced has attached stays attached: limits stay in force");
	else if (helper_purge(&d->packets.helper, &err) < 0)
		log_error(
			"what this start has made is left behind: %s; remove it with: sluiced -c %s --purge",
			err.message, d->running.config_path);
	else
		log_info("what this start had made was removed: programs and pins");
}

int start_purge(struct daemon *d, struct sl_err *err)
{
	int lock_fd, r = load(d, err);

	if (!r)
		r = state_lock(d->running.state_dir, &lock_fd, err);
	if (!r)
		r = dp_purge(d->running.file->pin_dir, err);
	if (!r)
		log_info("all interfaces detached, all pins under %s removed",
			 d->running.file->pin_dir);
	return r;
}

void start_revert(struct daemon *d)
{
	bool loaded;

	control_stop(&d->commands);
	handover_stop(&d->handover);
	helper_stop(&d->packets.helper);
	metrics_listen_stop();
	persist_close(&d->running);
	http_tier_finish(d);
	nodes_stop(&d->nodes);
	http_tier_close(d);
	nodes_close(&d->nodes);
	consumption_close(&d->nodes);
	elastic_free(&d->scales);
	observe_close(d->running.observe);
	packet_host_free(&d->packets);
	if (d->packets.dp)
		d->packets.dp->ops->close(d->packets.dp);
	/* Set by load(); before it, one of them may belong to the command line. */
	loaded = d->running.file;
	rules_free(&d->running); /* writes what feeds reported into state_dir */
	if (loaded) {
		free((char *)d->commands.socket_path);
		free((char *)d->running.state_dir);
		free((char *)d->packets.pin_dir);
	}
}
