// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* clock.c - see clock.h. */
#include "lib/clock.h"

#include <stdio.h>
#include <string.h>

#define STEP_NS ((s64)SL_NS_PER_SEC / 4)
#define TRIES 5
#define CLOSE_NS 10000 /* two readings of the monotonic clock around the other one */

static u64 followed; /* atomic; 0: not read yet */

/* The closest of some readings: between two clocks this thread may have had to wait. */
u64 clock_read_utc_offset_ns(void)
{
	u64 offset_ns = 0, closest_ns = ~0ULL;

	for (int i = 0; i < TRIES && closest_ns > CLOSE_NS; i++) {
		u64 before_ns = clock_mono_ns(), utc_ns = clock_read_ns(CLOCK_REALTIME);
		u64 took_ns = clock_mono_ns() - before_ns;

		if (took_ns >= closest_ns)
			continue;
		closest_ns = took_ns;
		offset_ns = utc_ns - before_ns - took_ns / 2;
	}
	return offset_ns;
}

u64 clock_utc_offset_ns(void)
{
	u64 offset_ns = __atomic_load_n(&followed, __ATOMIC_RELAXED);

	if (offset_ns)
		return offset_ns;
	offset_ns = clock_read_utc_offset_ns();
	__atomic_store_n(&followed, offset_ns, __ATOMIC_RELAXED);
	return offset_ns;
}

s64 clock_follow(void)
{
	u64 before_ns = clock_utc_offset_ns(), offset_ns = clock_read_utc_offset_ns();
	s64 step_ns = (s64)(offset_ns - before_ns);

	if (step_ns > -STEP_NS && step_ns < STEP_NS)
		return 0;
	__atomic_store_n(&followed, offset_ns, __ATOMIC_RELAXED);
	return step_ns;
}

void clock_boot_id(char *buf, size_t size)
{
	FILE *in = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!in || !fgets(buf, (int)size, in))
		buf[0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	if (in)
		fclose(in);
}
