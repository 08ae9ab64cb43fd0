// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * counters_recover.c - the table of an earlier process: empties blocks that a crash of the machine
 * damaged, removes entries that are not usable, and finds the free chunks of logs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "counters/counters_file.h"
#include "limiter/algorithm.h"
#include "lib/spin.h"

/* ------------------------------------------------------------------ the checks of the blocks */

struct block_checks counters_checks_of(void *map)
{
	const struct counters_fixed *fixed = &((struct counters_header *)map)->fixed;

	return (struct block_checks){
		.check_word = (void *)((char *)map + counters_checks_at(fixed)),
		.memory = (char *)map + COUNTERS_SETS_AT,
		.count = counters_blocks(fixed),
	};
}

/* Waits until every current holder of a set's lock has released it. */
static void settle(void *arg)
{
	struct counters *counters = arg;

	for (u32 i = 0; i < counters->sets; i++)
		for (u32 turns = 0; __atomic_load_n(&counters->lock[i], __ATOMIC_SEQ_CST);)
			spin_wait(&turns);
}

/* The number of entries in a block of sets. */
static u32 users_in(void *arg, u32 block)
{
	const u32 per_block = BLOCK_BYTES / sizeof(struct counters_set);
	struct counters *counters = arg;
	u32 count = 0;

	for (u32 i = block * per_block; i < (block + 1) * per_block && i < counters->sets; i++)
		for (u32 way = 0; way < COUNTERS_WAYS; way++)
			count += __atomic_load_n(&counters->set[i].key[way], __ATOMIC_RELAXED) != 0;
	return count;
}

void counters_check_blocks(struct counters *counters)
{
	block_checks_update(&counters->checks, settle, users_in, counters);
}

void counters_verify(struct counters *counters, void *map)
{
	struct block_checks checks = counters_checks_of(map);
	u32 damaged = 0, number;
	u64 users = 0;

	for (u32 i = 0; i < checks.count; i++) {
		if (!block_is_bad(&checks, i, &number))
			continue;
		memset((char *)map + COUNTERS_SETS_AT + (size_t)i * BLOCK_BYTES, 0, BLOCK_BYTES);
		block_touch(&checks, i);
		users += number;
		damaged++;
	}
	if (damaged)
		counters_note_add(
			counters,
			"%u of its %u blocks are damaged: the counts of %llu users are lost",
			damaged, checks.count, users);
}

/* ------------------------------------------------------------------ entries */

/*
 * Bucket states count windows modulo a power of two. A state that was not swept for longer than
 * its windows has expired, with any value.
 */
static bool has_ended(const struct spec *spec, u64 away_ns)
{
	u32 windows = algorithms[spec->algo]->windows_kept;

	return windows && away_ns / windows >= spec->params.window_ns;
}

u64 counters_take_log(struct counters *counters, struct request_logs *from, const struct spec *spec,
		      u64 bucket_state, u64 *mark, struct sl_now now)
{
	u64 whole = request_log_check(from, spec, bucket_state, mark);
	u64 count = request_log_count(bucket_state);
	u32 chunk;

	if (whole)
		return from == &counters->logs ? whole
					       : request_log_copy(&counters->logs, from, whole);
	if (count < 1 || count > spec->capacity)
		count = spec->capacity;
	chunk = request_chunk_get(&counters->logs);
	if (chunk && from == &counters->logs)
		mark[chunk / 64] |= SL_BIT(chunk % 64);
	return chunk ? request_log_add(&counters->logs, spec, 0, now, count, chunk) : 0;
}

int counters_recover(struct counters *counters, struct sl_now now, u64 away_ns)
{
	u64 *mark = calloc(counters->logs.chunks / 64 + 1, sizeof(*mark)), lost = 0;

	if (!mark)
		return -ENOMEM;
	for (u32 i = 0; i < counters->sets; i++) {
		struct counters_set *set = &counters->set[i];

		for (u32 way = 0; way < COUNTERS_WAYS; way++) {
			const struct spec *spec = counters_spec(counters, set->class[way]);
			u64 bucket_state = set->bucket_state[way];
			bool ended = spec && has_ended(spec, away_ns);

			if (!set->key[way])
				continue;
			if (!spec || ended)
				bucket_state = 0;
			else if (algorithm_is_log(spec->algo))
				bucket_state = counters_take_log(counters, &counters->logs, spec,
								 bucket_state, mark, now);
			lost += !bucket_state && !ended;
			if (bucket_state == set->bucket_state[way])
				continue;
			counters_touch(counters, set);
			set->bucket_state[way] = bucket_state;
			if (!bucket_state)
				set->key[way] = 0;
		}
	}
	request_logs_rebuild(&counters->logs, mark);
	free(mark);
	if (lost)
		counters_note_add(counters,
				  "the counts of %llu users are lost with their limits or logs",
				  lost);
	return 0;
}
