// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * store_mend.c - what damage and crashes left of a store: damaged blocks are taken out, classes come
 * from their copies, logs that are in pieces count all of their requests as made now.
 */
#include <stdlib.h>
#include <string.h>

#include "counters/store_file.h"

/* ------------------------------------------------------------------ damage */

static struct block_checks checks_of(void *map, const struct store_fixed *fixed)
{
	return (struct block_checks){
		.word = (void *)((char *)map + store_checks_at(fixed)),
		.memory = (char *)map + STORE_SETS_AT,
		.count = store_blocks(fixed),
	};
}

/* A class is what its copy says, where that is whole. */
static void mend_classes(void *map, const struct store_fixed *fixed)
{
	struct spec_def *def = (void *)((char *)map + STORE_DEFS_AT);
	const struct store_def_copy *copy = (void *)((char *)map + store_copies_at(fixed));

	for (u32 i = 1; i < STORE_CLASSES; i++)
		if (copy[i].check == store_def_check(&copy[i].def) &&
		    memcmp(&def[i], &copy[i].def, sizeof(*def)))
			def[i] = copy[i].def;
}

void store_mend(struct store *store, void *map, const struct store_header *head)
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
		store_note_add(store, "%u of its %u blocks are damaged: what %llu users had used is lost",
			       damaged, checks.count, users);
	if (unknown)
		store_note_add(store, "the checksums of %u of its %u blocks are damaged: what is in these cannot be verified",
		     unknown, checks.count);
}

u64 store_log_made_now(struct store *store, const struct spec *spec, u64 word,
			struct sl_now now)
{
	u64 count = request_log_count(word);
	u32 chunk;

	if (count < 1 || count > spec->capacity)
		count = spec->capacity;
	chunk = request_chunk_get(&store->logs);
	return chunk ? request_log_add(&store->logs, spec, 0, now, count, chunk) : 0;
}

/* ------------------------------------------------------------------ after a crash */

/*
 * Words count windows modulo a power of two. One that nobody could sweep for longer than its
 * windows last has ended, however it reads now.
 */
static bool has_ended(const struct spec *spec, u64 away_ns)
{
	switch (spec->algo) {
	case HTTP_FIXED_WINDOW:
	case HTTP_SLIDING_WINDOW:
		return away_ns / 2 >= spec->params.window_ns;
	case HTTP_FIRST_REQUEST:
	case HTTP_SLIDING_LOG:
		return away_ns >= spec->params.window_ns;
	default:
		return false;
	}
}

/* What of a way is still good; false: it goes. */
static bool recover_way(struct store *store, struct store_set *set, u32 way, u64 *mark,
			u64 away_ns, u64 *broken)
{
	const struct spec *spec = store_spec(store, set->class[way]);
	u64 word = set->word[way];

	if (!spec || has_ended(spec, away_ns))
		return false;
	if (spec->algo != HTTP_SLIDING_LOG)
		return true;
	word = mark ? request_log_check(&store->logs, word, mark) : 0;
	if (word == set->word[way])
		return true;
	store_touch(store, set);
	if (!word) {
		/* No ring: what is left is how many there were. */
		word = request_log_count(set->word[way]);
		++*broken;
	}
	set->word[way] = word;
	return true;
}

/* Logs without a ring get one, now that it is known which chunks are free. */
static u64 mend_logs(struct store *store, struct sl_now now)
{
	u64 lost = 0;

	for (u32 i = 0; i < store->sets; i++) {
		struct store_set *set = &store->set[i];

		for (u32 way = 0; way < STORE_WAYS; way++) {
			const struct spec *spec = store_spec(store, set->class[way]);

			if (!set->key[way] || !spec || spec->algo != HTTP_SLIDING_LOG ||
			    set->word[way] != request_log_count(set->word[way]))
				continue;
			store_touch(store, set);
			set->word[way] = store_log_made_now(store, spec, set->word[way], now);
			if (!set->word[way])
				set->key[way] = 0;
			lost += !set->word[way];
		}
	}
	return lost;
}

void store_recover(struct store *store, struct sl_now now, u64 away_ns)
{
	u32 used = store->head->chunks_used;
	u64 *mark = calloc(used / 64 + 1, sizeof(*mark));
	u64 broken = 0, no_class = 0, lost = 0;

	for (u32 i = 0; i < store->sets; i++) {
		struct store_set *set = &store->set[i];

		for (u32 way = 0; way < STORE_WAYS; way++) {
			if (!set->key[way] ||
			    recover_way(store, set, way, mark, away_ns, &broken))
				continue;
			no_class += !store_spec(store, set->class[way]);
			store_touch(store, set);
			set->key[way] = 0;
		}
	}
	if (mark)
		request_logs_rebuild(&store->logs, mark);
	free(mark);
	if (broken)
		lost = mend_logs(store, now);
	if (broken)
		store_note_add(store, "of %llu sliding logs the times are lost: their requests count as made now",
		     broken - lost);
	if (no_class + lost)
		store_note_add(store, "what %llu users had used is lost with their limits or logs",
		     no_class + lost);
}
