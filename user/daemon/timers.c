// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* timers.c - see timers.h. */
#include "daemon/timers.h"

#include <errno.h>
#include <systemd/sd-daemon.h>

#include "control/replication/addresses.h"
#include "control/replication/replication.h"
#include "control/running/clock_step.h"
#include "control/running/persist.h"
#include "lib/clock.h"
#include "control/elastic/elastic.h"
#include "packet/dataplane/dp_push.h"
#include "packet/host/ifaces.h"
#include "daemon/netlink.h"
#include "daemon/observer.h"
#include "daemon/status_page.h"
#include "control/running/pending.h"
#include "control/running/entries.h"
#include "control/running/rules.h"
#include "packet/host/view.h"

/* True if the addresses of the other nodes changed: bans never apply to them. */
static bool find_nodes(struct daemon *d)
{
	const struct sl_prefix *node;
	size_t count;

	if (!addresses_changed(d->nodes.addresses))
		return false;
	node = addresses_of_nodes(d->nodes.addresses, &count);
	protect_set_nodes(&d->packets, node, count);
	return true;
}

/*
 * The ring of events, which wakes nobody, is read ten times a second while events come, and twice
 * after ten seconds without one: so long that all events of a rate up to CALM_RATE, of three kinds,
 * fill three quarters of it.
 */
#define LOOK_US 100000
#define CALM_LOOK_US 500000
#define CALM_AFTER_NS (10 * SL_NS_PER_SEC)
#define CALM_RATE 2000

static struct {
	struct event *event;
	long period_us; /* 0: not at all */
} look;

static void look_each(long usec)
{
	struct timeval period = { .tv_usec = usec };

	if (usec == look.period_us)
		return;
	look.period_us = usec;
	if (usec)
		event_add(look.event, &period);
	else
		event_del(look.event);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;

	observer_tick(d);
	look_each(observer_calm_ns() < CALM_AFTER_NS || d->running.policy->events_rate > CALM_RATE
			  ? LOOK_US
			  : CALM_LOOK_US);
}

/* Only where packets can cause any. */
static void look_where_packets_come(struct daemon *d)
{
	bool any = false;

	for (u32 i = 0; i < SL_IFACES_MAX && !any; i++)
		any = d->packets.iface[i].name[0];
	if (!any)
		look_each(0);
	else if (!look.period_us)
		look_each(LOOK_US);
}

/* Windows align to UTC: the data path gets its offset from monotonic time. */
static void on_second(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;
	bool servers;

	if (clock_step_check(&d->running)) {
		bans_store(&d->packets);
		replication_outdated(&d->nodes);
	}
	dp_set_clock(d->packets.dp, clock_read_utc_offset_ns());
	if (ifaces_watch(&d->packets))
		rules_refresh(&d->running);
	servers = protect_find_servers(&d->packets);
	if (find_nodes(d) || servers)
		rules_refresh(&d->running);
	pending_check(&d->running);
	view_sample(&d->packets, d->running.policy, d->running.image);
	status_page_tick(d);
	elastic_watch(&d->scales);
	bans_tick(&d->packets);
	persist_watch(&d->running);
	if (d->running.unwritten && !d->packets.stopping)
		rules_write(&d->running);
	entries_save(&d->running);
	observer_second(d);
	look_where_packets_come(d);
}

static void on_minute(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;

	rules_expire(&d->running);
	netlink_rescan(d);
	/* Those of other nodes, where there is no HTTP tier to do it more often. */
	dp_pushes_expire(d->packets.dp, clock_mono_ns());
	dp_sweep(d->packets.dp, dp_now(d->packets.dp));
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	sd_notify(0, "WATCHDOG=1");
}

static int every(struct daemon *d, u64 usec, event_callback_fn run)
{
	struct timeval period = { .tv_sec = (time_t)(usec / 1000000),
				  .tv_usec = (suseconds_t)(usec % 1000000) };
	struct event *event = event_new(d->base, -1, EV_PERSIST, run, d);

	return event && event_add(event, &period) == 0 ? 0 : -ENOMEM;
}

int timers_start(struct daemon *d, struct sl_err *err)
{
	uint64_t watchdog_us = 0;
	int r = every(d, 1000000, on_second) | every(d, 60000000, on_minute);

	look.event = event_new(d->base, -1, EV_PERSIST, on_look, d);
	if (look.event)
		look_where_packets_come(d);
	else
		r = -ENOMEM;
	persist_watch(&d->running);
	if (sd_watchdog_enabled(0, &watchdog_us) > 0)
		r |= every(d, watchdog_us / 2, on_watchdog);
	return r ? sl_err_set(err, ENOMEM, "out of memory") : 0;
}
