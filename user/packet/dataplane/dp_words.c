// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* dp_words.c - see dp_words.h. All numbers are the machine's own: a file does not travel. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "packet/dataplane/dp_bucket.h"
#include "packet/dataplane/dp_words.h"

#define MAGIC "SLWORDS"
#define VERSION 1
/* A clock that was wrong when they were written, or is now: nothing is made of it. */
#define AHEAD_NS (60 * SL_NS_PER_SEC)

struct head {
	char magic[8];
	u64 check;		/* of all that follows */
	u32 version, abi;
	u64 written_utc_ns;
	struct sl_seed seed;
	u64 rows, words;
};

struct row {
	char name[SL_NAME_MAX];
	u64 kind;
	u64 tau;		/* of buckets on the limit's own rates: what a debt is a share of; else 0 */
};

struct word {
	u32 row, pad;
	u64 hash;
	u64 value;		/* the word; of a bucket when it is full again, in UTC */
};

_Static_assert(sizeof(struct head) % 8 == 0 && sizeof(struct row) == 80 &&
	       sizeof(struct word) == 24, "whole words, and DP_WORDS_BYTES_MAX");

static struct row *rows_of(const void *data)
{
	return (struct row *)((char *)data + sizeof(struct head));
}

static struct word *words_of(const void *data)
{
	const struct head *head = data;

	return (struct word *)(rows_of(data) + head->rows);
}

/* ------------------------------------------------------------------ saving */

static bool is_long(const struct sl_params *p)
{
	if (sl_is_bucket(p))
		return p->tau / SL_TICKS_PER_NS >= DP_WORDS_LONG_NS;
	return sl_is_window(p) && p->window_ns >= DP_WORDS_LONG_NS;
}

/* The long rows by slot: their number in the file, from 1; 0: none. Returns how many. */
static u32 find_rows(struct dp *dp, const struct sl_rules *rules, struct row *ret, u16 *number)
{
	const struct sl_slot_info *slots = dp->ops->slots(dp);
	u32 count = 0;

	memset(number, 0, SL_SLOTS * sizeof(*number));
	for (u32 slot = 1; slot < SL_SLOTS; slot++) {
		u32 index = rules->limit_of_slot[slot];
		const struct sl_limit *limit;

		if (index >= SL_ROWS_MAX || slots[slot].state != SL_SLOT_BOUND)
			continue;
		limit = &rules->limits[index];
		if (!is_long(&limit->params))
			continue;
		memcpy(ret[count].name, slots[slot].name, SL_NAME_MAX);
		ret[count].kind = slots[slot].kind;
		ret[count].tau = limit->of_overrides ? 0 : limit->params.tau;
		number[slot] = (u16)++count;
	}
	return count;
}

/* The debt of a bucket, also what is beyond tau. */
static u64 debt_ns(u64 word, const struct sl_params *p, struct sl_now now)
{
	u64 ticks = now.mono_ns * SL_TICKS_PER_NS, full = word >> SL_GCRA_GEN_BITS;

	if ((word & SL_GCRA_GEN_MASK) != p->gen)
		return sl_gcra_debt(word, p, ticks) / SL_TICKS_PER_NS;
	return full > ticks ? (full - ticks) / SL_TICKS_PER_NS : 0;
}

static void save_words(struct dp *dp, const struct sl_rules *rules, const u16 *number,
		       struct sl_now now, struct dp_words_saved *ret)
{
	struct head *head = ret->data;
	struct word *out = words_of(head);
	u32 sets;
	const struct sl_set *table = dp->ops->table(dp, &sets);

	for (u64 i = 0; i < (u64)sets * SL_WAYS; i++) {
		const struct sl_way *way = &table[i / SL_WAYS].way[i % SL_WAYS];
		u64 key = __atomic_load_n(&way->key, __ATOMIC_ACQUIRE), word;
		u32 slot = sl_key_slot(key);
		const struct sl_params *p;

		if (!key || slot >= SL_SLOTS || !number[slot])
			continue;
		word = __atomic_load_n(&way->word, __ATOMIC_ACQUIRE);
		p = &rules->limits[rules->limit_of_slot[slot]].params;
		if (!word || word == SL_WORD_BUSY || sl_dead(word, p, now) ||
		    __atomic_load_n(&way->key, __ATOMIC_ACQUIRE) != key)
			continue;
		ret->digest += (key ^ sl_rotl(word, 29)) * 0x9e3779b97f4a7c15ULL;
		if (head->words == DP_WORDS_MAX) {
			ret->left_out++;
			continue;
		}
		out[head->words++] = (struct word){
			.row = number[slot] - 1U,
			.hash = key & (SL_KEY_HASH_MASK | SL_KEY_REFUSED),
			.value = sl_is_bucket(p) ? now.utc_ns + debt_ns(word, p, now) : word,
		};
	}
}

int dp_words_save(struct dp *dp, struct sl_now now, struct dp_words_saved *ret)
{
	const struct sl_rules *rules = dp_rules_at(dp, now.mono_ns);
	struct row *rows = calloc(SL_SLOTS, sizeof(*rows));
	u16 number[SL_SLOTS];
	struct head *head;
	u32 count, sets;
	u64 room;

	memset(ret, 0, sizeof(*ret));
	count = rows && rules ? find_rows(dp, rules, rows, number) : 0;
	dp->ops->table(dp, &sets);
	room = (u64)sets * SL_WAYS < DP_WORDS_MAX ? (u64)sets * SL_WAYS : DP_WORDS_MAX;
	/* Memory that is not touched costs nothing. */
	head = count ? malloc(sizeof(*head) + count * sizeof(*rows) + room * sizeof(struct word)) :
		       NULL;
	if (head) {
		*head = (struct head){ .magic = MAGIC, .version = VERSION, .abi = SL_ABI_VERSION,
				       .written_utc_ns = now.utc_ns,
				       .seed = rules->seed, .rows = count };
		memcpy(rows_of(head), rows, count * sizeof(*rows));
		ret->data = head;
		save_words(dp, rules, number, now, ret);
		ret->words = head->words;
		ret->size = (char *)(words_of(head) + head->words) - (char *)head;
	}
	free(rows);
	return rows && (head || !count) ? 0 : -ENOMEM;
}

/* Against tearing, not against forging: whoever can write the file is root. */
static u64 check_of(const void *data, size_t size)
{
	const u64 *at = data;
	struct sl_sip sip;

	sl_sip_start(&sip, (struct sl_seed){ 0x776f726473, VERSION });
	for (size_t i = offsetof(struct head, version) / sizeof(*at); i < size / sizeof(*at); i++)
		sl_sip_add(&sip, at[i]);
	sl_sip_add(&sip, size);
	return sl_sip_finish(&sip);
}

void dp_words_seal(void *data, size_t size)
{
	((struct head *)data)->check = check_of(data, size);
}

/* ------------------------------------------------------------------ restoring */

const char *dp_words_check(const void *data, size_t size)
{
	const struct head *head = data;

	if (size < sizeof(*head) || memcmp(head->magic, MAGIC, sizeof(head->magic)) != 0)
		return "is not one of sluice's";
	if (head->version != VERSION || head->abi != SL_ABI_VERSION)
		return "is of another version";
	if (head->rows > SL_SLOTS || head->words > DP_WORDS_MAX ||
	    size != sizeof(*head) + head->rows * sizeof(struct row) +
			    head->words * sizeof(struct word))
		return "has been cut or extended";
	if (head->check != check_of(data, size))
		return "is damaged";
	return NULL;
}

struct sl_seed dp_words_seed(const void *data)
{
	return ((const struct head *)data)->seed;
}

/* The row that is bound to this name and kind now, or SL_NO_ROW. */
static u32 find_row(struct dp *dp, const struct sl_rules *rules, const struct row *row)
{
	const struct sl_slot_info *slots = dp->ops->slots(dp);

	for (u32 slot = 1; slot < SL_SLOTS; slot++)
		if (slots[slot].state == SL_SLOT_BOUND && slots[slot].kind == row->kind &&
		    !strncmp(slots[slot].name, row->name, SL_NAME_MAX) &&
		    rules->limit_of_slot[slot] < SL_ROWS_MAX)
			return rules->limit_of_slot[slot];
	return SL_NO_ROW;
}

/* The word as it is now; 0: over. */
static u64 word_now(const struct word *word, const struct row *row, const struct sl_limit *limit,
		    u64 written_utc_ns, struct sl_now now)
{
	const struct sl_params *p = &limit->params;
	unsigned __int128 debt;

	if (!sl_is_bucket(p)) {
		/* Windows are numbered modulo a power of two: an old one might read as this one. */
		if (now.utc_ns > written_utc_ns && (now.utc_ns - written_utc_ns) / 2 >= p->window_ns)
			return 0;
		return sl_dead(word->value, p, now) ? 0 : word->value;
	}
	if (word->value <= now.utc_ns)
		return 0;
	debt = (unsigned __int128)(word->value - now.utc_ns) * SL_TICKS_PER_NS;
	if (row->tau && row->tau != p->tau)
		debt = debt * p->tau / row->tau;
	/* Beyond tau there is at most as much again: dp_bucket_charge(). */
	if (!limit->of_overrides && debt > 2 * (unsigned __int128)p->tau)
		debt = 2 * (unsigned __int128)p->tau;
	return debt < SL_BIT(61) ? sl_gcra_word(p, now.mono_ns * SL_TICKS_PER_NS, (u64)debt) : 0;
}

u64 dp_words_restore(struct dp *dp, const void *data, struct sl_now now, u64 *ret_gone)
{
	const struct sl_rules *rules = dp->ops->rules(dp);
	const struct head *head = data;
	const struct word *word = words_of(data);
	u32 index[SL_SLOTS];
	u64 put = 0;

	*ret_gone = head->words;
	if (!rules || head->written_utc_ns > now.utc_ns + AHEAD_NS)
		return 0;
	for (u64 i = 0; i < head->rows; i++)
		index[i] = find_row(dp, rules, &rows_of(data)[i]);
	for (u64 i = 0; i < head->words; i++, word++) {
		const struct sl_limit *limit;
		u64 is;

		if (word->row >= head->rows || index[word->row] >= SL_ROWS_MAX)
			continue;
		limit = &rules->limits[index[word->row]];
		is = word_now(word, &rows_of(data)[word->row], limit, head->written_utc_ns, now);
		put += is && dp_bucket_put(dp, sl_key(limit->slot, word->hash) | (word->hash & SL_KEY_REFUSED),
					   is, now);
	}
	*ret_gone -= put;
	return put;
}
