// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * counters_mend.c - repairs a table after damage or a crash: removes damaged blocks, restores
 * classes from their copies; incomplete logs count all of their requests as made now.
 */
#include <stdlib.h>
#include <string.h>

#include "counters/counters_file.h"
#include "limiter/algorithm.h"

/* ------------------------------------------------------------------ damage */

static struct block_checks checks_of(void *map, const struct counters_fixed *fixed)
{
	return (struct block_checks){
		.check_word = (void *)((char *)map + counters_checks_at(fixed)),
		.memory = (char *)map + COUNTERS_SETS_AT,
		.count = counters_blocks(fixed),
	};
}

/* A class is restored from its copy, if that is intact. */
static void mend_classes(void *map, const struct counters_fixed *fixed)
{
	struct spec_def *def = (void *)((char *)map + COUNTERS_DEFS_AT);
	const struct counters_def_copy *copy = (void *)((char *)map + counters_copies_at(fixed));

	for (u32 i = 1; i < COUNTERS_CLASSES; i++)
		if (copy[i].check == counters_def_check(&copy[i].def) &&
		    memcmp(&def[i], &copy[i].def, sizeof(*def)))
			def[i] = copy[i].def;
}

void counters_mend(struct counters *counters, void *map, const struct counters_header *head)
{
	struct block_checks checks = checks_of(map, &head->fixed);
	u32 damaged = 0, unknown = 0, number;
	u64 users = 0;

	memcpy(map, head, sizeof(*head));
	mend_classes(map, &head->fixed);
	for (u32 i = 0; i < checks.count; i++) {
		switch (block_verify(&checks, i, &number)) {
		case BLOCK_DAMAGED:
			memset((char *)checks.memory + (size_t)i * BLOCK_BYTES, 0, BLOCK_BYTES);
			damaged++;
			users += number;
			block_mark_dirty(&checks, i);
			break;
		case BLOCK_UNKNOWN:
			unknown++;
			block_mark_dirty(&checks, i);
			break;
		default:
			break;
		}
	}
	if (damaged)
		counters_note_add(
			counters,
			"%u of its %u blocks are damaged: the counts of %llu users are lost",
			damaged, checks.count, users);
	if (unknown)
		counters_note_add(
			counters,
			"the checksums of %u of its %u blocks are damaged: their content cannot be verified",
			unknown, checks.count);
}

u64 counters_log_made_now(struct counters *counters, const struct spec *spec, u64 bucket_state,
			  struct sl_now now)
{
	u64 count = request_log_count(bucket_state);
	u32 chunk;

	if (count < 1 || count > spec->capacity)
		count = spec->capacity;
	chunk = request_chunk_get(&counters->logs);
	return chunk ? request_log_add(&counters->logs, spec, 0, now, count, chunk) : 0;
}

/* ------------------------------------------------------------------ after a crash */

/*
 * Bucket states count windows modulo a power of two. A state that was not swept for longer than
 * its windows has expired, with any value.
 */
static bool has_ended(const struct spec *spec, u64 away_ns)
{
	u32 windows = algorithms[spec->algo]->windows_kept;

	return windows && away_ns / windows >= spec->params.window_ns;
}

/* Repairs a way; false: it has to be removed. */
static bool recover_way(struct counters *counters, struct counters_set *set, u32 way, u64 *mark,
			u64 away_ns, u64 *broken)
{
	const struct spec *spec = counters_spec(counters, set->class[way]);
	u64 bucket_state = set->bucket_state[way];

	if (!spec || has_ended(spec, away_ns))
		return false;
	if (!algorithm_is_log(spec->algo))
		return true;
	bucket_state = mark ? request_log_check(&counters->logs, spec, bucket_state, mark) : 0;
	if (bucket_state == set->bucket_state[way])
		return true;
	counters_touch(counters, set);
	if (!bucket_state) {
		/* Not a ring: only the number of its requests is left. */
		bucket_state = request_log_count(set->bucket_state[way]);
		++*broken;
	}
	set->bucket_state[way] = bucket_state;
	return true;
}

/* Logs without a ring get one, after the free chunks were determined. */
static u64 mend_logs(struct counters *counters, struct sl_now now)
{
	u64 lost = 0;

	for (u32 i = 0; i < counters->sets; i++) {
		struct counters_set *set = &counters->set[i];

		for (u32 way = 0; way < COUNTERS_WAYS; way++) {
			const struct spec *spec = counters_spec(counters, set->class[way]);

			if (!set->key[way] || !spec || !algorithm_is_log(spec->algo) ||
			    set->bucket_state[way] != request_log_count(set->bucket_state[way]))
				continue;
			counters_touch(counters, set);
			set->bucket_state[way] =
				counters_log_made_now(counters, spec, set->bucket_state[way], now);
			if (!set->bucket_state[way])
				set->key[way] = 0;
			lost += !set->bucket_state[way];
		}
	}
	return lost;
}

void counters_recover(struct counters *counters, struct sl_now now, u64 away_ns)
{
	u32 used = counters->head->chunks_used;
	u64 *mark = calloc(used / 64 + 1, sizeof(*mark));
	u64 broken = 0, no_class = 0, lost = 0;

	for (u32 i = 0; i < counters->sets; i++) {
		struct counters_set *set = &counters->set[i];

		for (u32 way = 0; way < COUNTERS_WAYS; way++) {
			if (!set->key[way] ||
			    recover_way(counters, set, way, mark, away_ns, &broken))
				continue;
			no_class += !counters_spec(counters, set->class[way]);
			counters_touch(counters, set);
			set->key[way] = 0;
		}
	}
	if (mark)
		request_logs_rebuild(&counters->logs, mark);
	free(mark);
	if (broken)
		lost = mend_logs(counters, now);
	if (broken)
		counters_note_add(
			counters,
			"the times of %llu sliding logs are lost: their requests count as made now",
			broken - lost);
	if (no_class + lost)
		counters_note_add(counters,
				  "the counts of %llu users are lost with their limits or logs",
				  no_class + lost);
}
