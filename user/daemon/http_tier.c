// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * http_tier.c - see http_tier.h.
 *
 * Each listening socket is passed to systemd's FD store (FDSTORE=1) as soon as it listens, so the
 * sockets survive a killed daemon: new connections wait in the accept queue while no daemon runs.
 * Each start uses the stored sockets, or those of the daemon that it replaces (handover.h), that
 * fit the configuration, and closes the others.
 *
 * The rules directory is checked once a second, not by inotify: symbolic links may change their
 * target at any level, and so may files that the rules name.
 */
#include "daemon/http_tier.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/file.h"
#include "control/running/http_rules.h"
#include "control/running/rules.h"
#include "control/mitigation/sources.h"
#include "cluster/bus/cluster.h"
#include "request/server/callers.h"
#include "request/engine/decision_log.h"
#include "request/frontends/grpc/grpc.h"
#include "request/frontends/http1/http1.h"
#include "request/frontends/spoe/spoe.h"
#include "request/frontends/syslog/syslog.h"
#include "request/engine/delay.h"
#include "request/server/listen.h"
#include "request/rules/rule_watch.h"
#include "request/server/tier.h"
#include "request/server/tls.h"
#include "request/server/worker.h"
#include "lib/log.h"

#define DRAIN_MOST_NS (5 * SL_NS_PER_SEC)
#define BACKGROUND_NICE 5

/* The daemon's own state of the tier. */
struct http_keep {
	struct event *second, *tenth, *drain;
	u64 seen;	 /* fingerprint of the rule files when they were read */
	u64 deadline_ns; /* end of draining */
};

/* ------------------------------------------------------------------ sockets between daemons */

/* Removes stored sockets whose name is no longer that of a listener. */
static void forget_sockets(const struct http_tier *tier, char **name, int count)
{
	for (int i = 0; i < count; i++) {
		bool known = strncmp(name[i], "http-", 5) != 0;

		for (size_t k = 0; !known && tier && k < listen_count(tier->listeners); k++) {
			const char *ours;

			listen_fd(tier->listeners, k, &ours);
			known = !strcmp(ours, name[i]);
		}
		if (!known)
			sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name[i]);
	}
}

static void store_sockets(const struct http_tier *tier)
{
	for (size_t i = 0; i < listen_count(tier->listeners); i++) {
		const char *name;
		int fd = listen_fd(tier->listeners, i, &name);
		char words[256];

		snprintf(words, sizeof(words), "FDSTORE=1\nFDNAME=%s", name);
		sd_pid_notify_with_fds(0, 0, words, &fd, 1);
	}
}

static int open_tier(struct daemon *d, const int *fd, size_t count, struct sl_err *err)
{
	static const struct frontend *const frontends[] = {
		&frontend_http1,
		&frontend_grpc,
		&frontend_spoe,
		&frontend_syslog,
	};
	struct tier_plan plan = { .def = d->running.started->http,
				  .max_values = d->running.started->max_values,
				  .frontend = frontends,
				  .frontend_count = sizeof(frontends) / sizeof(frontends[0]),
				  .fd = fd,
				  .fd_count = count };
	char *path = file_join(d->running.state_dir, "http.state");
	int r;

	plan.state_path = path;
	r = path ? tier_open(&plan, &d->http, err) : sl_err_set(err, ENOMEM, "out of memory");
	free(path);
	if (r < 0)
		return r;
	d->http->owner = d;
	/* Sockets are those of the configured file; of an applied text the rest is in force. */
	if (d->running.source.applied && d->running.policy->http &&
	    tier_configure(d->http, d->running.policy->http, err) < 0)
		log_error("http: settings of the applied file are not in force: %s", err->message);
	d->running.requests.def = d->http->def;
	d->running.requests.engine = d->http->engine;
	d->running.requests.started = d->http->started;
	d->running.requests.workers = d->http->worker_count;
	r = sources_start(&d->running, d->base, d->http->worker_count, d->http->def->users,
			  &d->sources, err);
	if (r < 0)
		return r;
	d->http->engine->hook = (struct engine_hook){ aggregate_note, d->sources->aggregate };
	d->nodes.push = d->sources->push;
	d->commands.sources = d->metrics.sources = d->sources;
	return 0;
}

/* ------------------------------------------------------------------ rules */

int http_tier_reload(struct daemon *d, struct sl_err *err)
{
	size_t changes = json_array_size(d->running.live);
	struct ruleset *next = NULL;
	struct sl_err ignored;
	int r;

	if (!d->http)
		return 0;
	d->http_keep->seen = ruleset_fingerprint(d->http->def->rules_dir);
	r = http_rules_build(&d->running, d->running.live, false, NULL, &next, err);
	d->running.requests.reload.ok = !r;
	d->running.requests.reload.at_utc_ns = clock_utc_ns();
	if (r < 0) {
		d->running.requests.reload.err = *err;
		return r;
	}
	d->running.requests.reload.ok_utc_ns = d->running.requests.reload.at_utc_ns;
	http_rules_put(&d->running, next, d->running.live);
	if (json_array_size(d->running.live) != changes &&
	    rules_store(&d->running, &d->running.source, d->running.live, d->running.history_top,
			d->running.pending.deadline_ns, d->running.pending.deadline_utc_ns,
			&ignored) < 0)
		log_error("%s", ignored.message);
	return 0;
}

static void look_at_rules(struct daemon *d)
{
	char words[768];
	struct sl_err err;

	if (ruleset_fingerprint(d->http->def->rules_dir) == d->http_keep->seen)
		return;
	if (http_tier_reload(d, &err) < 0)
		log_error("http: reload failed, keeping the previous rules: %s",
			  sl_err_format(&err, words, sizeof(words)));
	else
		log_info("http: loaded %u rules from %s", d->running.requests.rules->rule_count,
			 d->http->def->rules_dir);
}

int http_tier_configure(struct daemon *d, const struct http_def *def, struct sl_err *err)
{
	int r;

	if (!d->http || !def)
		return 0;
	r = tier_configure(d->http, def, err);
	d->running.requests.def = d->http->def;
	if (!r)
		sources_configure(d->sources, d->http->def, d->running.requests.rules);
	return r;
}

static void look_at_certificates(struct daemon *d)
{
	struct sl_err err;

	if (!tls_changed(d->http))
		return;
	if (tls_publish(d->http, d->http->def, &err) < 0)
		log_error("http: cannot load the new certificate, keeping the previous one: %s",
			  err.message);
	else
		log_info("http: reloaded the certificate");
}

static void look_at_tokens(struct daemon *d)
{
	struct sl_err err;

	if (!callers_changed(d->http))
		return;
	if (callers_publish(d->http, d->http->def, &err) < 0)
		log_error("http: cannot load the callers' tokens, keeping the previous ones: %s",
			  err.message);
	else
		log_info("http: reloaded the callers' tokens");
}

/* ------------------------------------------------------------------ a part of what runs */

static struct daemon *daemon_of_part(struct running_part *part)
{
	return (struct daemon *)((char *)part - offsetof(struct daemon, http_part));
}

static int part_configure(struct running_part *part, const struct policy *policy,
			  struct sl_err *err)
{
	return http_tier_configure(daemon_of_part(part), policy->http, err);
}

static int part_reload(struct running_part *part, struct sl_err *err)
{
	return http_tier_reload(daemon_of_part(part), err);
}

static void part_rules(struct running_part *part)
{
	struct daemon *d = daemon_of_part(part);

	engine_rules_publish(d->http->engine, d->running.requests.rules);
	sources_configure(d->sources, d->http->def, d->running.requests.rules);
}

static const struct running_part_ops part_ops = {
	.configure = part_configure,
	.reload = part_reload,
	.rules = part_rules,
};

void http_tier_join(struct daemon *d)
{
	d->http_part.ops = &part_ops;
	running_join(&d->running, &d->http_part);
}

/* ------------------------------------------------------------------ timers */

static void log_decisions(struct daemon *d)
{
	const char *path = d->http->def->decision_log;
	int r = decision_log_drain(d->http->engine->log, path);

	if (r < 0)
		log_error("http: cannot write the decision log %s: %s; these lines are lost", path,
			  strerror(-r));
}

static bool sweep(struct daemon *d)
{
	struct counters *counters = d->http->engine->ledger.counters;

	return counters_sweep(counters, counters_now(counters));
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval tenth = { .tv_usec = 100000 };
	struct daemon *d = arg;

	look_at_rules(d);
	log_decisions(d);
	if (http_rules_expired(&d->running, clock_utc_ns()))
		rules_expire(&d->running);
	look_at_tokens(d);
	look_at_certificates(d);
	if (!event_pending(d->http_keep->tenth, EV_TIMEOUT, NULL) && sweep(d))
		event_add(d->http_keep->tenth, &tenth);
}

/* While requests come. */
static void on_tenth(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;

	if (!sweep(d))
		event_del(d->http_keep->tenth);
}

static int every(struct daemon *d, struct event **ret, long usec, event_callback_fn run)
{
	struct timeval period = { .tv_sec = usec / 1000000, .tv_usec = usec % 1000000 };

	*ret = event_new(d->base, -1, EV_PERSIST, run, d);
	return *ret && event_add(*ret, &period) == 0 ? 0 : -ENOMEM;
}

/* ------------------------------------------------------------------ start and end */

int http_tier_open(struct daemon *d, struct sl_err *err)
{
	char **name = NULL;
	int count = sd_listen_fds_with_names(true, &name), r = 0;
	size_t all = (size_t)(count > 0 ? count : 0) + d->handover.count;
	int *fd = calloc(all + 1, sizeof(*fd));

	if (!fd)
		return sl_err_set(err, ENOMEM, "out of memory");
	memcpy(fd, d->handover.fd, d->handover.count * sizeof(*fd));
	for (int i = 0; i < count; i++)
		fd[d->handover.count + (size_t)i] = SD_LISTEN_FDS_START + i;
	if (d->running.started->http) {
		d->http_keep = calloc(1, sizeof(*d->http_keep));
		r = d->http_keep ? open_tier(d, fd, all, err)
				 : sl_err_set(err, ENOMEM, "out of memory");
		if (!r)
			r = http_tier_reload(d, err);
	} else {
		for (size_t i = 0; i < all; i++)
			close(fd[i]);
	}
	if (!r)
		forget_sockets(d->http, name, count);
	for (int i = 0; i < count; i++)
		free(name[i]);
	free(name);
	free(fd);
	return r;
}

static int open_worker(void *arg, struct event_base *base, struct cluster_store **ret)
{
	return cluster_worker_open(arg, base, ret);
}

static void close_worker(void *arg, struct cluster_store *store)
{
	cluster_worker_close(arg, store);
}

int http_tier_share(struct daemon *d, struct sl_err *err)
{
	struct cluster *cluster = d->nodes.cluster;

	if (!d->http || !cluster)
		return 0;
	return engine_share(d->http->engine, cluster_keys(cluster)->seed, d->nodes.quotas,
			    cluster_def(cluster)->deadline_ns, open_worker, close_worker, cluster,
			    err);
}

int http_tier_run(struct daemon *d, struct sl_err *err)
{
	int r;

	if (!d->http)
		return 0;
	r = tier_run(d->http, err);
	if (r < 0)
		return r;
	/* Lowers this thread's priority: responses precede reloads, compiling and scrapes. */
	setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + BACKGROUND_NICE);
	store_sockets(d->http);
	if (every(d, &d->http_keep->second, 1000000, on_second) < 0 ||
	    every(d, &d->http_keep->tenth, 100000, on_tenth) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	return 0;
}

static void on_drain(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;

	if (tier_drained(d->http) || clock_mono_ns() >= d->http_keep->deadline_ns)
		event_base_loopbreak(d->base);
}

void http_tier_drain(struct daemon *d)
{
	if (!d->http || every(d, &d->http_keep->drain, 5000, on_drain) < 0) {
		event_base_loopbreak(d->base);
		return;
	}
	d->http_keep->deadline_ns = clock_mono_ns() + DRAIN_MOST_NS;
	tier_drain(d->http);
}

static void event_end(struct event *event)
{
	if (event)
		event_free(event);
}

void http_tier_finish(struct daemon *d)
{
	if (d->http)
		tier_finish(d->http);
}

void http_tier_close(struct daemon *d)
{
	if (d->http_keep) {
		event_end(d->http_keep->second);
		event_end(d->http_keep->tenth);
		event_end(d->http_keep->drain);
	}
	if (d->http)
		log_decisions(d);
	tier_close(d->http, getenv("NOTIFY_SOCKET") || d->handover.given);
	sources_close(d->sources);
	d->sources = d->commands.sources = d->metrics.sources = NULL;
	d->nodes.push = NULL;
	d->running.requests.started = NULL;
	free(d->http_keep);
	d->http = NULL;
	d->http_keep = NULL;
	d->running.requests.def = NULL;
	d->running.requests.engine = NULL;
	d->running.requests.rules = NULL;
	json_decref(d->running.requests.live);
	d->running.requests.live = NULL;
}
