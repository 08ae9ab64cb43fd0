// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tally.c - see tally.h. */
#include "replay/tally.h"

#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/heaviest.h"
#include "lib/large_pages.h"
#include "sluice/key.h"

/* One cache line of hashes and one of weights: a hit reads the first and its entry. */
struct tally_set {
	u64 hash[TALLY_WAYS];	/* 0: free */
	u64 weight[TALLY_WAYS]; /* count + missed */
};

struct tally {
	struct tally_set *set;
	struct tally_entry *entry;  /* TALLY_WAYS for each set */
	char (*label)[TALLY_LABEL]; /* of each entry; NULL: sources */
	struct sl_seed seed;
	u64 subjects, replaced;
};

static const char *const outcome_names[] = {
	[OUTCOME_PASSED] = "passed", [OUTCOME_REFUSED] = "refused", [OUTCOME_TAGGED] = "tagged",
	[OUTCOME_SHADOW] = "shadow", [OUTCOME_DELAYED] = "delayed",
};

const char *outcome_name(enum outcome outcome)
{
	return outcome_names[outcome];
}

struct tally *tally_new(bool labels)
{
	struct tally *tally = calloc(1, sizeof(*tally));

	if (!tally)
		return NULL;
	tally->set = aligned_alloc(64, TALLY_SETS * sizeof(*tally->set));
	tally->entry = aligned_alloc(64, TALLY_SETS * TALLY_WAYS * sizeof(*tally->entry));
	tally->label = labels ? calloc(TALLY_SETS * TALLY_WAYS, sizeof(*tally->label)) : NULL;
	/* The same input gives the same report. */
	tally->seed = (struct sl_seed){ 0x7265706c, 0x61790001 };
	if (!tally->set || !tally->entry || (labels && !tally->label)) {
		tally_free(tally);
		return NULL;
	}
	large_pages(tally->set, TALLY_SETS * sizeof(*tally->set));
	large_pages(tally->entry, TALLY_SETS * TALLY_WAYS * sizeof(*tally->entry));
	memset(tally->set, 0, TALLY_SETS * sizeof(*tally->set));
	memset(tally->entry, 0, TALLY_SETS * TALLY_WAYS * sizeof(*tally->entry));
	return tally;
}

void tally_free(struct tally *tally)
{
	if (!tally)
		return;
	free(tally->set);
	free(tally->entry);
	free(tally->label);
	free(tally);
}

/* The place of a hash: its own, or that of the lightest of its set, cleared. */
static struct tally_entry *find(struct tally *tally, u64 hash, bool *ret_new)
{
	u32 index = (u32)(hash >> 32) & (TALLY_SETS - 1), place;
	struct tally_set *set = &tally->set[index];
	struct tally_entry *entry;
	u64 missed;

	place = heaviest_place(set->hash, set->weight, TALLY_WAYS, hash | 1, ret_new);
	entry = &tally->entry[index * TALLY_WAYS + place];
	missed = set->weight[place]++;
	if (!*ret_new)
		return entry;
	tally->replaced += missed > 0;
	tally->subjects += !missed;
	*entry = (struct tally_entry){ .missed = missed };
	return entry;
}

static struct tally_entry *count(struct tally_entry *entry, u32 bytes, u64 second)
{
	if (entry->second != second)
		entry->in_second = 0;
	entry->second = second;
	entry->count++;
	entry->bytes += bytes;
	if (++entry->in_second > entry->peak)
		entry->peak = entry->in_second;
	return entry;
}

struct tally_entry *tally_source(struct tally *tally, struct sl_addr source, u8 family, u32 bytes,
				 u64 second)
{
	struct tally_entry *entry;
	struct sl_sip sip;
	bool is_new;

	sl_sip_start(&sip, tally->seed);
	sl_sip_add(&sip, source.hi);
	sl_sip_add(&sip, source.lo ^ family);
	entry = find(tally, sl_sip_finish(&sip), &is_new);
	if (is_new)
		entry->source = (struct sl_prefix){ .addr = source,
						    .family = family,
						    .len = family == SL_V4 ? 32 : 128 };
	return count(entry, bytes, second);
}

struct tally_entry *tally_value(struct tally *tally, struct bytes label, u64 second)
{
	struct tally_entry *entry;
	bool is_new;

	entry = find(tally, hash_bytes(tally->seed, 0, label.at, label.len), &is_new);
	if (is_new) {
		char *text = tally->label[entry - tally->entry];
		size_t room = TALLY_LABEL - 1, len = label.len < room ? label.len : room;

		/* Values are bytes that clients chose; a label is text. */
		for (size_t i = 0; i < len; i++)
			text[i] = label.at[i] >= ' ' && label.at[i] < 127 ? label.at[i] : '?';
		text[len] = '\0';
		if (label.len > room)
			text[room - 1] = '~';
	}
	return count(entry, 0, second);
}

const char *tally_label(const struct tally *tally, const struct tally_entry *entry)
{
	return tally->label ? tally->label[entry - tally->entry] : "";
}

u64 tally_subjects(const struct tally *tally)
{
	return tally->subjects;
}

u64 tally_replaced(const struct tally *tally)
{
	return tally->replaced;
}

/* Below `at` in the order of the list: where the rank belongs. */
static u32 place(const double *ranks, u32 count, double rank)
{
	u32 at = count;

	while (at && ranks[at - 1] < rank)
		at--;
	return at;
}

u32 tally_top(struct tally *tally, tally_rank rank, const void *arg, struct tally_entry **ret,
	      u32 max)
{
	double *ranks = calloc(max + 1, sizeof(*ranks));
	u32 count = 0;

	for (u32 i = 0; ranks && i < TALLY_SETS * TALLY_WAYS; i++) {
		struct tally_entry *entry = &tally->entry[i];
		double weight = entry->count ? rank(entry, arg) : 0;
		u32 at;

		if (weight <= 0 || (count == max && (!max || weight <= ranks[max - 1])))
			continue;
		at = place(ranks, count, weight);
		count += count < max;
		memmove(&ranks[at + 1], &ranks[at], (count - 1 - at) * sizeof(*ranks));
		memmove(&ret[at + 1], &ret[at], (count - 1 - at) * sizeof(struct tally_entry *));
		ranks[at] = weight;
		ret[at] = entry;
	}
	free(ranks);
	return count;
}
