// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_timer.c - timers: a heap (lib/timer_heap.h) and a timerfd.
 *
 * Not libevent's timers: without EVENT_BASE_FLAG_PRECISE_TIMER they use the coarse clock (4 ms at
 * 250 Hz) and whole milliseconds, so a deadline of 5 ms would become 5 to 10. With it they set a
 * timerfd in each turn of the loop, which costs a tenth of the decisions of a strict limit. This
 * timerfd is set again only for an earlier timer, or when it has fired: a stream of commands with
 * the same deadline costs one system call per deadline, not one each.
 */
#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cluster/redis/redis_private.h"

static void arm(struct redis_timers *timers)
{
	u64 first = timers->heap.count ? timers->heap.at[0]->at_ns : 0;
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)(first / SL_NS_PER_SEC),
						 .tv_nsec = (long)(first % SL_NS_PER_SEC) } };

	if (!first || (timers->armed_ns && timers->armed_ns <= first))
		return;
	timers->armed_ns = first;
	timerfd_settime(timers->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct redis_timers *timers = arg;
	u64 now = clock_mono_ns(), times;

	if (read(fd, &times, sizeof(times)) < 0)
		return;
	timers->armed_ns = 0;
	/*
	 * Compares with the time at entry, so a timer that sets itself again for now does not
	 * cause an endless loop.
	 */
	while (timers->heap.count && timers->heap.at[0]->at_ns <= now) {
		struct redis_timer *timer = (struct redis_timer *)timers->heap.at[0];

		timer_heap_unset(&timers->heap, &timer->timer);
		timer->fire(timer);
	}
	arm(timers);
}

int redis_timers_open(struct redis_timers *timers, struct event_base *base)
{
	*timers = (struct redis_timers){ .fd = timerfd_create(CLOCK_MONOTONIC,
							      TFD_NONBLOCK | TFD_CLOEXEC) };
	if (timers->fd < 0)
		return -errno;
	timers->event = event_new(base, timers->fd, EV_READ | EV_PERSIST, on_timer, timers);
	if (!timers->event || event_add(timers->event, NULL) < 0) {
		redis_timers_close(timers);
		return -ENOMEM;
	}
	return 0;
}

void redis_timers_close(struct redis_timers *timers)
{
	if (timers->event)
		event_free(timers->event);
	if (timers->fd >= 0)
		close(timers->fd);
	free(timers->heap.at);
	*timers = (struct redis_timers){ .fd = -1 };
}

void redis_timer_set(struct redis_timers *timers, struct redis_timer *timer, u64 at_ns)
{
	timer_heap_set(&timers->heap, &timer->timer, at_ns ? at_ns : 1);
	arm(timers);
}
