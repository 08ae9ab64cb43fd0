// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* timeline.c - see timeline.h. */
#include "replay/timeline.h"

#include <stdlib.h>
#include <string.h>

#define BARS_MAX (TIMELINE_BINS / 2)

void timeline_begin(struct timeline *line, u64 step_ns)
{
	memset(line, 0, sizeof(*line));
	line->step_ns = step_ns;
}

static void halve(struct timeline *line)
{
	for (u32 i = 0; i < TIMELINE_BINS; i++) {
		u64 *from = &line->count[i][0][0], *to = &line->count[i / 2][0][0];

		for (u32 k = 0; k < REPLAY_SIDES * OUTCOME_COUNT; k++) {
			u64 count = from[k];

			from[k] = 0;
			to[k] = i % 2 ? to[k] + count : count;
		}
	}
	line->step_ns *= 2;
	line->bins = (line->bins + 1) / 2;
}

u64 (*timeline_at(struct timeline *line, u64 ns))[OUTCOME_COUNT]
{
	u32 bin;

	while (ns / line->step_ns >= TIMELINE_BINS)
		halve(line);
	bin = ns / line->step_ns;
	if (bin >= line->bins)
		line->bins = bin + 1;
	return line->count[bin];
}

char *timeline_bars(const struct timeline *line, u32 side, enum outcome outcome)
{
	static const char *const bar[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	u32 per = line->bins > BARS_MAX ? 2 : 1, bars = (line->bins + per - 1) / per;
	char *text = calloc(bars + 1, 4);
	u64 sum[BARS_MAX] = { 0 }, most = 1;

	for (u32 i = 0; i < line->bins; i++)
		sum[i / per] += line->count[i][side][outcome];
	for (u32 i = 0; i < bars; i++)
		most = sum[i] > most ? sum[i] : most;
	for (u32 i = 0; text && i < bars; i++)
		strcat(text, bar[(sum[i] * 8 + most - 1) / most]);
	return text;
}
