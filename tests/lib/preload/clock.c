// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * clock.c - LD_PRELOAD: the time of day is the number of microseconds in the file CLOCK_FILE, which
 * a test maps and sets; or the machine's, set by the number in the file CLOCK_SET_BY. Other clocks
 * go on.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_us(void)
{
	static volatile uint64_t *file;
	const char *by = getenv("CLOCK_SET_BY");
	struct timespec real = { 0 };

	if (!file)
		file = mmap(NULL, sizeof(*file), PROT_READ, MAP_SHARED,
			    open(by ? by : getenv("CLOCK_FILE"), O_RDONLY), 0);
	if (by)
		syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
	return *file + real.tv_sec * 1000000ULL + real.tv_nsec / 1000;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	uint64_t us = now_us();

	*ret = (struct timeval){ us / 1000000, us % 1000000 };
	return 0;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	uint64_t us;

	if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
		return syscall(SYS_clock_gettime, clock, ret);
	us = now_us();
	*ret = (struct timespec){ us / 1000000, us % 1000000 * 1000 };
	return 0;
}

time_t time(time_t *ret)
{
	time_t s = now_us() / 1000000;

	if (ret)
		*ret = s;
	return s;
}
