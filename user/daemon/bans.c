// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bans.c - see bans.h. */
#include "daemon/bans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/json.h"
#include "daemon/daemon.h"
#include "lib/file.h"
#include "control/replication/replication.h"
#include "packet/dataplane/dp_push.h"
#include "lib/log.h"

#define FILE_NAME "bans.json"

/* Seconds between two looks; more where a look takes long: at most 1% of the time goes there. */
#define TICK_NS (5 * SL_NS_PER_SEC)
#define TICK_SHARE 100

/* ------------------------------------------------------------------ reading */

static void read_bans(struct daemon *d, u64 now_ns)
{
	struct bans *bans = &d->bans;
	struct dp_ban *ban;
	size_t count;
	int r = d->dp->ops->bans(d->dp, &ban, &count);

	if (r < 0) {
		log_error("cannot read the bans: %s", strerror(-r));
		return;
	}
	free(bans->ban);
	bans->ban = ban;
	bans->count = count;
	bans->active = 0;
	bans->read_at_ns = now_ns;
	for (size_t i = 0; i < count; i++)
		bans->active += ban[i].state.until_ns > now_ns;
}

const struct bans *bans_look(struct daemon *d)
{
	u64 now_ns = clock_mono_ns();

	if (!d->bans.read_at_ns || now_ns - d->bans.read_at_ns > SL_NS_PER_SEC)
		read_bans(d, now_ns);
	return &d->bans;
}

static struct sl_prefix prefix_of(const struct dp_ban *ban)
{
	return (struct sl_prefix){ .addr = ban->key.addr, .family = (u8)ban->key.family,
				   .len = (u8)ban->key.len };
}

const struct dp_ban *bans_find(struct daemon *d, const struct sl_prefix *source)
{
	const struct bans *bans = bans_look(d);
	const struct dp_ban *found = NULL;
	u64 now_ns = clock_mono_ns();

	for (size_t i = 0; i < bans->count; i++) {
		struct sl_prefix prefix = prefix_of(&bans->ban[i]);

		if (bans->ban[i].state.until_ns > now_ns &&
		    sl_prefix_contains(&prefix, source) &&
		    (!found || prefix.len > found->key.len))
			found = &bans->ban[i];
	}
	return found;
}

void bans_lengths(struct daemon *d, struct compile_env *env)
{
	u64 now_ns = clock_mono_ns();

	read_bans(d, now_ns);
	memset(env->ban_len_count, 0, sizeof(env->ban_len_count));
	for (size_t i = 0; i < d->bans.count; i++) {
		const struct sl_ban_key *key = &d->bans.ban[i].key;
		u32 family = key->family % SL_FAMILY_COUNT;
		bool known = d->bans.ban[i].state.until_ns <= now_ns;

		for (u32 k = 0; k < env->ban_len_count[family]; k++)
			known |= env->ban_len[family][k] == key->len;
		if (!known && env->ban_len_count[family] < SL_BAN_LENGTHS)
			env->ban_len[family][env->ban_len_count[family]++] = (u8)key->len;
	}
}

/* ------------------------------------------------------------------ lifting */

/* The drops that led to a ban: without this the source's next one would ban it again. */
static void forget_drops(struct daemon *d, const struct dp_ban *ban)
{
	const struct sl_rules *rules = d->dp->ops->rules(d->dp);
	u32 head = rules && ban->state.slot < SL_LIMIT_IDS ? rules->limit_of_id[ban->state.slot] :
							 SL_NO_LIMIT;
	u32 index = head < SL_LIMITS_MAX ? rules->limits[head].ban : SL_NO_METER;

	if (index >= SL_LIMITS_MAX || rules->ban[index].trigger >= SL_METERS_MAX)
		return;
	dp_bucket_forget(d->dp, sl_ban_trigger_key(rules, &rules->limits[rules->ban[index].trigger],
						   ban->key.addr, ban->key.family, ban->key.len));
}

static int lift(struct daemon *d, const struct dp_ban *ban)
{
	int r;

	forget_drops(d, ban);
	r = dp_ban_delete(d->dp, &ban->key);
	return r == -ENOENT ? 0 : r;
}

static void lifted(struct daemon *d)
{
	dp_bans_refilter(d->dp);
	d->bans.read_at_ns = 0;
	bans_store(d);
}

int bans_lift(struct daemon *d, const struct sl_prefix *source, json_t *list)
{
	bool address = source->len == (source->family == SL_V4 ? 32 : 128);
	int count = 0;

	d->bans.read_at_ns = 0;
	bans_look(d);
	for (size_t i = 0; i < d->bans.count; i++) {
		const struct dp_ban *ban = &d->bans.ban[i];
		struct sl_prefix prefix = prefix_of(ban);
		int r;

		if (!sl_prefix_contains(source, &prefix) &&
		    !(address && sl_prefix_contains(&prefix, source)))
			continue;
		r = lift(d, ban);
		if (r < 0)
			return r;
		json_array_append_new(list, bans_to_json(d, ban));
		replication_withdrawn(d, REPLICATION_BAN, &prefix);
		count++;
	}
	if (count)
		lifted(d);
	return count;
}

int bans_end(struct daemon *d, const struct sl_prefix *prefix)
{
	struct dp_ban ban = { .key = { .addr = prefix->addr, .family = prefix->family,
				       .len = prefix->len } };
	int r = d->dp->ops->ban_get(d->dp, &ban.key, &ban.state);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = lift(d, &ban);
	if (!r)
		lifted(d);
	return r < 0 ? r : 1;
}

/* ------------------------------------------------------------------ words */

const char *bans_limit(const struct daemon *d, const struct dp_ban *ban)
{
	const struct sl_limit_id_info *slots = d->dp->ops->slots(d->dp);
	u32 slot = ban->state.slot;

	return slot && slot < SL_LIMIT_IDS && slots[slot].state == SL_LIMIT_ID_BOUND ? slots[slot].name : "";
}

json_t *bans_to_json(const struct daemon *d, const struct dp_ban *ban)
{
	u64 now_ns = clock_mono_ns(), offset_ns = clock_utc_offset_ns();
	bool active = ban->state.until_ns > now_ns;
	struct sl_prefix prefix = prefix_of(ban);
	char text[SL_PREFIX_TEXT];

	return json_pack("{s:s, s:s, s:s?, s:b, s:o, s:o, s:o, s:i, s:o}", "source",
			 sl_prefix_format(&prefix, text, sizeof(text)), "limit", bans_limit(d, ban),
			 "node", replication_node(d, REPLICATION_BAN, &prefix), "active", active,
			 "since", json_utc(ban->state.since_ns + offset_ns), "until",
			 json_utc(ban->state.until_ns + offset_ns), "left_ns",
			 json_u64(active ? ban->state.until_ns - now_ns : 0), "level",
			 (int)ban->state.level, "drops", json_u64(ban->state.drops));
}

/* ------------------------------------------------------------------ the file */

/* Of what is worth writing anew for: not of the drops. Whatever order they are read in. */
static u64 digest_of(const struct bans *bans)
{
	u64 sum = bans->count;

	for (size_t i = 0; i < bans->count; i++) {
		const struct dp_ban *ban = &bans->ban[i];
		u64 mixed = ban->key.addr.hi ^ sl_rotl(ban->key.addr.lo, 17) ^
			    (u64)ban->key.len << 56 ^ sl_rotl(ban->state.until_ns, 31) ^
			    (u64)ban->state.level << 40;

		mixed *= 0x9e3779b97f4a7c15ULL;
		sum += mixed ^ mixed >> 29;
	}
	return sum;
}

static json_t *file_entry(const struct daemon *d, const struct dp_ban *ban, u64 offset_ns)
{
	struct sl_prefix prefix = prefix_of(ban);
	char text[SL_PREFIX_TEXT];

	return json_pack("{s:s, s:s, s:o, s:o, s:i, s:o}", "source",
			 sl_prefix_format(&prefix, text, sizeof(text)), "limit",
			 bans_limit(d, ban), "since_utc_ns",
			 json_u64(ban->state.since_ns + offset_ns), "until_utc_ns",
			 json_u64(ban->state.until_ns + offset_ns), "level",
			 (int)ban->state.level, "drops", json_u64(ban->state.drops));
}

void bans_store(struct daemon *d)
{
	u64 offset_ns = clock_utc_offset_ns(), digest;
	json_t *entries = json_array();
	json_t *file = json_pack("{s:i, s:o}", "version", FILE_VERSION, "bans", entries);
	char *path = file_join(d->state_dir, FILE_NAME), *text = NULL;
	struct sl_err err;
	int r;

	digest = digest_of(bans_look(d));
	for (size_t i = 0; i < d->bans.count; i++)
		json_array_append_new(entries, file_entry(d, &d->bans.ban[i], offset_ns));
	text = file ? json_dumps(file, JSON_COMPACT) : NULL;
	r = path && text ? file_replace(path, NULL, text, strlen(text), 0640, &err) :
			   sl_err_set(&err, ENOMEM, "out of memory");
	if (!r)
		d->bans.stored = digest;
	else if (!d->bans.store_failed)
		log_error("the bans would not outlive a reboot: %s", err.message);
	d->bans.store_failed = r < 0;
	json_decref(file);
	free(text);
	free(path);
}

/*
 * A ban of the file as it is now. What ended before is as if it had ended now, its level less
 * one for each length of it since: before boot there is no time to say it by.
 */
static bool parse_entry(const json_t *entry, u64 now_ns, u64 offset_ns, struct dp_ban *ret)
{
	const char *text = json_string_value(json_object_get(entry, "source")), *reason;
	u64 since = (u64)json_integer_value(json_object_get(entry, "since_utc_ns"));
	u64 until = (u64)json_integer_value(json_object_get(entry, "until_utc_ns"));
	json_int_t level = json_integer_value(json_object_get(entry, "level"));
	u64 now_utc = now_ns + offset_ns;
	struct sl_prefix prefix;

	if (!text || sl_prefix_parse(text, &prefix, &reason) < 0 || until <= since || level < 0 ||
	    level >= SL_BAN_LEVELS || until - since > 3660 * 86400 * SL_NS_PER_SEC)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->key = (struct sl_ban_key){ .addr = prefix.addr, .family = prefix.family,
					.len = prefix.len };
	if (until <= now_utc) {
		u64 behaved = (now_utc - until) / (until - since);

		if (behaved > (u64)level)
			return false;
		level -= (json_int_t)behaved;
		since += now_utc - until;
		until = now_utc;
	}
	ret->state.since_ns = since - offset_ns;
	ret->state.until_ns = until - offset_ns;
	ret->state.level = (u32)level;
	ret->state.drops = (u64)json_integer_value(json_object_get(entry, "drops"));
	return true;
}

void bans_restore(struct daemon *d)
{
	u64 now_ns = clock_mono_ns(), offset_ns = clock_utc_offset_ns();
	json_t *file = file_load_json(d->state_dir, FILE_NAME, "the bans from before are lost");
	struct dp_ban ban;
	json_t *entry;
	size_t i;

	d->bans.restored = json_array();
	json_array_foreach(json_object_get(file, "bans"), i, entry) {
		if (!parse_entry(entry, now_ns, offset_ns, &ban))
			continue;
		if (dp_ban_insert(d->dp, &ban) < 0)
			break;
		json_array_append(d->bans.restored, entry);
	}
	if (json_array_size(d->bans.restored))
		log_info("%zu bans from before are in force again",
			 json_array_size(d->bans.restored));
	d->bans.read_at_ns = 0;
	json_decref(file);
}

u32 bans_limit_id(const struct daemon *d, const char *limit)
{
	const struct sl_limit_id_info *slots = d->dp->ops->slots(d->dp);

	for (u32 slot = 1; slot < SL_LIMIT_IDS && limit[0]; slot++)
		if (slots[slot].state == SL_LIMIT_ID_BOUND && !strcmp(slots[slot].name, limit))
			return slot;
	return 0;
}

void bans_name(struct daemon *d)
{
	u64 now_ns = clock_mono_ns(), offset_ns = clock_utc_offset_ns();
	struct dp_ban ban;
	json_t *entry;
	size_t i;

	json_array_foreach(d->bans.restored, i, entry) {
		const char *limit = json_string_value(json_object_get(entry, "limit"));

		if (!limit || !parse_entry(entry, now_ns, offset_ns, &ban))
			continue;
		ban.state.slot = bans_limit_id(d, limit);
		if (ban.state.slot)
			dp_ban_insert(d->dp, &ban);
	}
	json_decref(d->bans.restored);
	d->bans.restored = NULL;
	d->bans.read_at_ns = 0;
}

/* ------------------------------------------------------------------ by itself */

void bans_tick(struct daemon *d)
{
	u64 from_ns = clock_mono_ns(), spent_ns;

	if (from_ns < d->bans.next_ns)
		return;
	dp_pushes_expire(d->dp, from_ns);
	if (dp_bans_expire(d->dp, from_ns) != 0)
		d->bans.read_at_ns = 0;
	bans_look(d);
	if (digest_of(&d->bans) != d->bans.stored)
		bans_store(d);
	spent_ns = clock_mono_ns() - from_ns;
	d->bans.next_ns = from_ns + (spent_ns * TICK_SHARE > TICK_NS ? spent_ns * TICK_SHARE : TICK_NS);
}

void bans_free(struct daemon *d)
{
	free(d->bans.ban);
	json_decref(d->bans.restored);
	memset(&d->bans, 0, sizeof(d->bans));
}
