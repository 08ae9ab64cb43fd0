// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* timers.c - see timers.h. */
#include "daemon/timers.h"

#include <errno.h>
#include <systemd/sd-daemon.h>

#include "control/running/persist.h"
#include "lib/clock.h"
#include "daemon/elastic.h"
#include "daemon/ifaces.h"
#include "daemon/netlink.h"
#include "daemon/state_watch.h"
#include "control/running/pending.h"
#include "control/running/rules.h"
#include "control/commands/view.h"

/* Windows end when UTC says so: the data path learns how far that is from monotonic time. */
static void on_second(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;
	bool servers;

	dp_set_clock(d->dp, clock_utc_offset_ns());
	ifaces_watch(d);
	servers = protect_find_servers(d);
	if (protect_find_nodes(d) || servers)
		rules_refresh(d);
	pending_check(d);
	view_sample(d);
	elastic_watch(d);
	bans_tick(d);
	state_watch(d);
	persist_tick(d);
}

static void on_minute(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;

	rules_expire(d);
	netlink_rescan(d);
	dp_sweep(d->dp, clock_now(d->dp->ops->state(d->dp)->utc_offset_ns));
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

	if (sd_watchdog_enabled(0, &watchdog_us) > 0)
		r |= every(d, watchdog_us / 2, on_watchdog);
	return r ? sl_err_set(err, ENOMEM, "out of memory") : 0;
}
