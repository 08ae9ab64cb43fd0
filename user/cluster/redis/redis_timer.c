// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_timer.c - timers: a heap and a timerfd.
 *
 * Not libevent's timers: without EVENT_BASE_FLAG_PRECISE_TIMER they use the coarse clock (4 ms at
 * 250 Hz) and whole milliseconds, so a deadline of 5 ms would become 5 to 10. The timerfd is set
 * again only for an earlier timer, or when it has fired: a stream of commands with the
 * same deadline costs one system call per deadline, not one each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "cluster/redis/redis_private.h"

u64 redis_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * SL_NS_PER_SEC + (u64)now.tv_nsec;
}

static void put(struct redis_timers *timers, u32 position, struct redis_timer *timer)
{
	timers->heap[position - 1] = timer;
	timer->position = position;
}

static u64 at(const struct redis_timers *timers, u32 position)
{
	return timers->heap[position - 1]->at_ns;
}

/* Moves a timer to its position: the children of p are at 2p and 2p + 1. */
static void sift(struct redis_timers *timers, u32 position, struct redis_timer *timer)
{
	u32 child;

	while (position > 1 && at(timers, position / 2) > timer->at_ns) {
		put(timers, position, timers->heap[position / 2 - 1]);
		position /= 2;
	}
	while ((child = position * 2) <= timers->count) {
		if (child < timers->count && at(timers, child + 1) < at(timers, child))
			child++;
		if (at(timers, child) >= timer->at_ns)
			break;
		put(timers, position, timers->heap[child - 1]);
		position = child;
	}
	put(timers, position, timer);
}

static void arm(struct redis_timers *timers)
{
	u64 first = timers->count ? at(timers, 1) : 0;
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
	u64 now = redis_now_ns(), times;

	if (read(fd, &times, sizeof(times)) < 0)
		return;
	timers->armed_ns = 0;
	/*
	 * Compares with the time at entry, so a timer that sets itself again for now does not
	 * cause an endless loop.
	 */
	while (timers->count && at(timers, 1) <= now) {
		struct redis_timer *timer = timers->heap[0];

		redis_timer_unset(timers, timer);
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
	free(timers->heap);
	*timers = (struct redis_timers){ .fd = -1 };
}

int redis_timers_reserve(struct redis_timers *timers, u32 count)
{
	u32 room = timers->room ? timers->room : 64;
	struct redis_timer **heap;

	while (room < count)
		room *= 2;
	if (room == timers->room)
		return 0;
	heap = reallocarray(timers->heap, room, sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	timers->heap = heap;
	timers->room = room;
	return 0;
}

void redis_timer_set(struct redis_timers *timers, struct redis_timer *timer, u64 at_ns)
{
	if (!at_ns)
		at_ns = 1;
	if (!timer->position) {
		if (timers->count == timers->room)
			return;
		timer->position = ++timers->count;
	}
	timer->at_ns = at_ns;
	sift(timers, timer->position, timer);
	arm(timers);
}

void redis_timer_unset(struct redis_timers *timers, struct redis_timer *timer)
{
	u32 position = timer->position;
	struct redis_timer *last;

	if (!position)
		return;
	timer->position = 0;
	last = timers->heap[--timers->count];
	if (last != timer)
		sift(timers, position, last);
}
