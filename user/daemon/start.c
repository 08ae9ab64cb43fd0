// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * start.c - see start.h.
 *
 * The order matters: what can fail without a trace comes first (the file, the lock, the
 * sockets), the helper is forked before there is anything it should not inherit, and
 * privileges go when the last thing that needs them is done, before any client is heard.
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
#include "daemon/elastic.h"
#include "daemon/http_tier.h"
#include "daemon/ifaces.h"
#include "control/running/live.h"
#include "daemon/metrics_listen.h"
#include "daemon/netlink.h"
#include "control/replication/nodes.h"
#include "control/running/rules.h"
#include "control/running/running_text.h"
#include "control/replication/replication.h"
#include "control/running/state.h"
#include "daemon/timers.h"
#include "control/replication/consumption.h"
#include "packet/dataplane/dp_sim.h"
#include "request/server/worker.h"
#include "lib/log.h"

#define NO_BUCKETS 64

/* ------------------------------------------------------------------ signals */

static void on_end(evutil_socket_t signal_number, short what, void *arg)
{
	struct daemon *d = arg;

	log_info("ending on signal %d; limits %s", (int)signal_number,
		 d->pins_lost ? "end with it: the pins are gone" : "go on holding");
	/* Whoever says it twice does not want to wait. */
	if (d->stopping) {
		event_base_loopbreak(d->base);
		return;
	}
	d->stopping = true;
	sd_notify(0, "STOPPING=1");
	http_tier_drain(d);
}

static void on_hangup(evutil_socket_t signal_number, short what, void *arg)
{
	struct daemon *d = arg;
	json_t *notes = json_array();
	struct sl_err err;
	u64 generation;
	int r;

	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
		   clock_read_ns(CLOCK_MONOTONIC) / 1000);
	generation = d->generation;
	r = rules_reload(d, geteuid(), getpid(), NULL, notes, &err);
	json_decref(notes);
	audit_write(d, NULL, "SIGHUP", NULL, generation, r < 0 ? &err : NULL);
	sd_notify(0, "READY=1");
}

static void on_child(evutil_socket_t signal_number, short what, void *arg)
{
	struct daemon *d = arg;

	if (waitpid(d->helper.pid, NULL, WNOHANG) != d->helper.pid)
		return;
	log_error("the attach helper has died: attach and detach are refused until sluiced is "
		  "restarted; limits go on holding");
	close(d->helper.fd);
	d->helper.fd = -1;
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
			return sl_err_set(err, ENOMEM, "cannot watch signals");
	}
	return 0;
}

/* ------------------------------------------------------------------ the steps */

static int load(struct daemon *d, struct sl_err *err)
{
	int r = config_text_read_file(d->config_path, &d->source, err);

	if (!r)
		r = config_text_parse(&d->source, &d->file, err);
	if (r < 0)
		return r;
	d->state_dir = strdup(d->file->state_dir);
	d->socket_path = strdup(d->socket_path ? d->socket_path : d->file->control_socket);
	d->started_mono_ns = clock_mono_ns();
	d->http_only = d->file->http && !d->file->interface_count;
	return d->state_dir && d->socket_path ? 0 : sl_err_set(err, ENOMEM, "out of memory");
}

static int open_sockets(struct daemon *d, struct sl_err *err)
{
	int r;

	d->base = event_base_new();
	if (!d->base)
		return sl_err_set(err, ENOMEM, "cannot make an event loop");
	r = control_start(d, d->file, err);
	if (!r)
		r = metrics_listen_start(d, d->file->metrics_listen, err);
	return r;
}

int start_lock_pins(const char *pin_dir, struct sl_err *err)
{
	int fd = open(pin_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
		close(fd);
		return sl_err_set(err, EBUSY, "another sluiced is running with pin_dir %s; a second "
				  "one needs its own", pin_dir);
	}
	return 0;	/* the descriptor stays open: it is the lock */
}

/* Where no packet is to be judged the stages still have rules to show and to check. */
static int open_no_data_plane(struct daemon *d, struct sl_err *err)
{
	if (dp_sim_open(NO_BUCKETS, 1, NO_BUCKETS, &d->dp) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	dp_set_clock(d->dp, clock_utc_offset_ns());
	state_load(d);
	return 0;
}

static int open_data_plane(struct daemon *d, struct sl_err *err)
{
	bool fresh;
	int r;

	if (d->http_only)
		return open_no_data_plane(d, err);
	if (geteuid() != 0)
		return sl_err_set(err, EPERM, "root is needed to load the limiter into the kernel");
	r = dp_bpf_open(d->file->pin_dir, d->file->table_buckets, &d->dp, &fresh, err);
	if (!r)
		r = start_lock_pins(d->file->pin_dir, err);
	if (r < 0)
		return r;
	log_info(fresh ? "made the maps under %s" : "took over the maps under %s",
		 d->file->pin_dir);
	dp_set_clock(d->dp, clock_utc_offset_ns());
	state_load(d);
	/* Counters died with the maps they were of. */
	if (fresh) {
		d->base_stats_count = 0;
		bans_restore(d);
		persist_restore(d);
	}
	ifaces_take_over(d);
	ifaces_rescan(d);
	protect_find_gateways(d);
	protect_find_servers(d);
	return 0;
}

int start_all(struct daemon *d, struct sl_err *err)
{
	int lock_fd, r;

	r = load(d, err);
	if (!r && !d->http_only)
		r = helper_start(&d->helper, d->file->pin_dir, err);
	if (!r)
		r = state_lock(d->state_dir, &lock_fd, err);
	if (!r)
		r = live_load(d->state_dir, &d->live, &d->record, err);
	if (!r)
		r = open_sockets(d, err);
	if (!r)
		r = persist_open(d, err);
	if (!r)
		r = open_data_plane(d, err);
	if (!r)
		r = replication_open(d, err);
	if (!r)
		r = consumption_open(d, err);
	if (!r)
		r = rules_start(d, err);
	if (!r)
		r = http_tier_open(d, err);
	if (!r)
		r = nodes_open(d, err);
	if (!r)
		r = confine_daemon(err);
	if (!r)
		r = nodes_run(d, err);
	if (!r)
		r = http_tier_run(d, err);
	if (!r)
		r = persist_run(d, err);
	if (!r)
		r = watch_signals(d, err);
	if (!r)
		r = netlink_start(d, err);
	if (!r)
		r = timers_start(d, err);
	return r;
}

int start_loop(struct daemon *d)
{
	log_info("ready: %zu limits on %zu interfaces, %zu live changes", d->running->limit_count,
		 d->running->interface_count, json_array_size(d->live));
	if (d->http)
		log_info("http: %u rules, %u workers", d->http_rules->rule_count,
			 d->http->worker_count);
	sd_notify(0, "READY=1");
	event_base_dispatch(d->base);
	sd_notify(0, "STOPPING=1");
	bans_store(d);
	return 0;
}

int start_purge(struct daemon *d, struct sl_err *err)
{
	int lock_fd, r = load(d, err);

	if (!r)
		r = state_lock(d->state_dir, &lock_fd, err);
	if (!r)
		r = dp_purge(d->file->pin_dir, err);
	if (!r)
		log_info("every interface is detached, every pin under %s is gone",
			 d->file->pin_dir);
	return r;
}

void start_revert(struct daemon *d)
{
	control_stop(d);
	metrics_listen_stop();
	nodes_stop(d);
	persist_close(d);
	http_tier_close(d);
	nodes_close(d);
	consumption_close(d);
	elastic_free(d);
	bans_free(d);
	free(d->signal);
	if (d->dp)
		d->dp->ops->close(d->dp);
	if (d->helper.fd >= 0)
		close(d->helper.fd);
	/* From load() on: before, one of them may be the command line's. */
	if (d->file) {
		free((char *)d->socket_path);
		free((char *)d->state_dir);
	}
	rules_free(d);
}
