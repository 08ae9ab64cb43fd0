// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bans.c - see bans.h. */
#include "packet/host/bans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/json.h"
#include "packet/host/host.h"
#include "lib/file.h"
#include "packet/dataplane/dp_push.h"
#include "lib/log.h"

#define FILE_NAME "bans.json"

/* Between two readings of the map; more if a reading takes long: at most 1% of a CPU. */
#define TICK_NS (5 * SL_NS_PER_SEC)
#define TICK_SHARE 100

/* ------------------------------------------------------------------ reading */

static void read_bans(struct packet_host *host, u64 now_ns)
{
	struct bans *bans = &host->bans;
	struct dp_ban *ban;
	size_t count;
	int r = host->dp->ops->hash_all(host->dp, DP_BANS, &ban, &count);

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

const struct bans *bans_look(struct packet_host *host)
{
	u64 now_ns = clock_mono_ns();

	if (!host->bans.read_at_ns || now_ns - host->bans.read_at_ns > SL_NS_PER_SEC)
		read_bans(host, now_ns);
	return &host->bans;
}

struct sl_prefix bans_prefix(const struct dp_ban *ban)
{
	return (struct sl_prefix){ .addr = ban->key.addr,
				   .family = (u8)ban->key.family,
				   .len = (u8)ban->key.len };
}

const struct dp_ban *bans_find(struct packet_host *host, const struct sl_prefix *source)
{
	const struct bans *bans = bans_look(host);
	const struct dp_ban *found = NULL;
	u64 now_ns = clock_mono_ns();

	for (size_t i = 0; i < bans->count; i++) {
		struct sl_prefix prefix = bans_prefix(&bans->ban[i]);

		if (bans->ban[i].state.until_ns > now_ns && sl_prefix_contains(&prefix, source) &&
		    (!found || prefix.len > found->key.len))
			found = &bans->ban[i];
	}
	return found;
}

void bans_lengths(struct packet_host *host, struct compile_env *env)
{
	u64 now_ns = clock_mono_ns();

	read_bans(host, now_ns);
	memset(env->ban_len_count, 0, sizeof(env->ban_len_count));
	for (size_t i = 0; i < host->bans.count; i++) {
		const struct sl_ban_key *key = &host->bans.ban[i].key;
		u32 family = key->family % SL_FAMILY_COUNT;
		bool known = host->bans.ban[i].state.until_ns <= now_ns;

		for (u32 k = 0; k < env->ban_len_count[family]; k++)
			known |= env->ban_len[family][k] == key->len;
		if (!known && env->ban_len_count[family] < SL_BAN_LENGTHS)
			env->ban_len[family][env->ban_len_count[family]++] = (u8)key->len;
	}
}

/* ------------------------------------------------------------------ lifting */

/* Resets the count of drops that led to a ban: else the source's next drop would ban it again. */
static void forget_drops(struct packet_host *host, const struct dp_ban *ban)
{
	const struct sl_rules *rules = host->dp->ops->rules(host->dp);
	u32 head = rules && ban->state.slot < SL_LIMIT_IDS ? rules->limit_of_id[ban->state.slot]
							   : SL_NO_LIMIT;
	u32 index = head < SL_LIMITS_MAX ? rules->limits[head].ban : SL_NO_METER;

	if (index >= SL_LIMITS_MAX || rules->ban[index].trigger >= SL_METERS_MAX)
		return;
	dp_bucket_forget(host->dp,
			 sl_ban_trigger_key(rules, &rules->limits[rules->ban[index].trigger],
					    ban->key.addr, ban->key.family, ban->key.len));
}

static int lift(struct packet_host *host, const struct dp_ban *ban)
{
	int r;

	forget_drops(host, ban);
	r = dp_ban_delete(host->dp, &ban->key);
	return r == -ENOENT ? 0 : r;
}

static void lifted(struct packet_host *host)
{
	dp_bans_refilter(host->dp);
	host->bans.read_at_ns = 0;
	bans_store(host);
}

int bans_lift(struct packet_host *host, const struct sl_prefix *source, struct dp_ban **ret,
	      size_t *ret_count)
{
	bool address = source->len == (source->family == SL_V4 ? 32 : 128);
	size_t count = 0;
	int r = 0;

	host->bans.read_at_ns = 0;
	bans_look(host);
	*ret = calloc(host->bans.count + 1, sizeof(**ret));
	for (size_t i = 0; *ret && !r && i < host->bans.count; i++) {
		const struct dp_ban *ban = &host->bans.ban[i];
		struct sl_prefix prefix = bans_prefix(ban);

		if (!sl_prefix_contains(source, &prefix) &&
		    !(address && sl_prefix_contains(&prefix, source)))
			continue;
		r = lift(host, ban);
		if (!r)
			(*ret)[count++] = *ban;
	}
	*ret_count = count;
	if (count)
		lifted(host);
	return *ret ? r : -ENOMEM;
}

int bans_end(struct packet_host *host, const struct sl_prefix *prefix)
{
	struct dp_ban ban = {
		.key = { .addr = prefix->addr, .family = prefix->family, .len = prefix->len }
	};
	int r = host->dp->ops->hash_get(host->dp, DP_BANS, &ban.key, &ban.state);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = lift(host, &ban);
	if (!r)
		lifted(host);
	return r < 0 ? r : 1;
}

/* ------------------------------------------------------------------ bucket states */

const char *bans_limit(const struct packet_host *host, const struct dp_ban *ban)
{
	const struct sl_limit_id_info *slots = host->dp->slots;
	u32 slot = ban->state.slot;

	return slot && slot < SL_LIMIT_IDS && slots[slot].state == SL_LIMIT_ID_BOUND
		       ? slots[slot].name
		       : "";
}

json_t *bans_to_json(const struct packet_host *host, const struct dp_ban *ban, const char *node)
{
	u64 now_ns = clock_mono_ns(), offset_ns = clock_utc_offset_ns();
	bool active = ban->state.until_ns > now_ns;
	struct sl_prefix prefix = bans_prefix(ban);
	char text[SL_PREFIX_TEXT];

	return json_pack("{s:s, s:s, s:s?, s:b, s:o, s:o, s:o, s:i, s:o}", "source",
			 sl_prefix_format(&prefix, text, sizeof(text)), "limit",
			 bans_limit(host, ban), "node", node, "active", active, "since",
			 json_utc(ban->state.since_ns + offset_ns), "until",
			 json_utc(ban->state.until_ns + offset_ns), "left_ns",
			 json_u64(active ? ban->state.until_ns - now_ns : 0), "level",
			 (int)ban->state.level, "drops", json_u64(ban->state.drops));
}

/* ------------------------------------------------------------------ the file */

/* Changes with everything in the file but the drops, whatever the order of the bans. */
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

static json_t *file_entry(const struct packet_host *host, const struct dp_ban *ban, u64 offset_ns)
{
	struct sl_prefix prefix = bans_prefix(ban);
	char text[SL_PREFIX_TEXT];

	return json_pack("{s:s, s:s, s:o, s:o, s:i, s:o}", "source",
			 sl_prefix_format(&prefix, text, sizeof(text)), "limit",
			 bans_limit(host, ban), "since_utc_ns",
			 json_u64(ban->state.since_ns + offset_ns), "until_utc_ns",
			 json_u64(ban->state.until_ns + offset_ns), "level", (int)ban->state.level,
			 "drops", json_u64(ban->state.drops));
}

void bans_store(struct packet_host *host)
{
	u64 offset_ns = clock_utc_offset_ns(), digest;
	json_t *entries = json_array();
	json_t *file = json_pack("{s:i, s:o}", "version", FILE_VERSION, "bans", entries);
	char *path = file_join(host->state_dir, FILE_NAME), *text = NULL;
	struct sl_err err;
	int r;

	digest = digest_of(bans_look(host));
	for (size_t i = 0; i < host->bans.count; i++)
		json_array_append_new(entries, file_entry(host, &host->bans.ban[i], offset_ns));
	text = file ? json_dumps(file, JSON_COMPACT) : NULL;
	r = path && text ? file_replace(path, NULL, text, strlen(text), 0640, &err)
			 : sl_err_set(&err, ENOMEM, "out of memory");
	if (!r)
		host->bans.stored = digest;
	else if (!host->bans.store_failed)
		log_error("the bans would not outlive a reboot: %s", err.message);
	host->bans.store_failed = r < 0;
	json_decref(file);
	free(text);
	free(path);
}

/*
 * A ban of the file, as of now. A ban that has ended gets now as its end, and one level less for
 * each length of it that has passed: times before boot cannot be expressed.
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
	ret->key = (struct sl_ban_key){ .addr = prefix.addr,
					.family = prefix.family,
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

void bans_restore(struct packet_host *host)
{
	u64 now_ns = clock_mono_ns(), offset_ns = clock_utc_offset_ns();
	json_t *file = file_load_json(host->state_dir, FILE_NAME, "the bans from before are lost");
	struct dp_ban ban;
	json_t *entry;
	size_t i;

	host->bans.restored = json_array();
	json_array_foreach(json_object_get(file, "bans"), i, entry) {
		if (!parse_entry(entry, now_ns, offset_ns, &ban))
			continue;
		if (dp_ban_insert(host->dp, &ban) < 0)
			break;
		json_array_append(host->bans.restored, entry);
	}
	if (json_array_size(host->bans.restored))
		log_info("%zu bans from before are in force again",
			 json_array_size(host->bans.restored));
	host->bans.read_at_ns = 0;
	json_decref(file);
}

u32 bans_limit_id(const struct packet_host *host, const char *limit)
{
	const struct sl_limit_id_info *slots = host->dp->slots;

	for (u32 slot = 1; slot < SL_LIMIT_IDS && limit[0]; slot++)
		if (slots[slot].state == SL_LIMIT_ID_BOUND && !strcmp(slots[slot].name, limit))
			return slot;
	return 0;
}

void bans_name(struct packet_host *host)
{
	u64 now_ns = clock_mono_ns(), offset_ns = clock_utc_offset_ns();
	struct dp_ban ban;
	json_t *entry;
	size_t i;

	json_array_foreach(host->bans.restored, i, entry) {
		const char *limit = json_string_value(json_object_get(entry, "limit"));

		if (!limit || !parse_entry(entry, now_ns, offset_ns, &ban))
			continue;
		ban.state.slot = bans_limit_id(host, limit);
		if (ban.state.slot)
			dp_ban_insert(host->dp, &ban);
	}
	json_decref(host->bans.restored);
	host->bans.restored = NULL;
	host->bans.read_at_ns = 0;
}

/* ------------------------------------------------------------------ by itself */

void bans_tick(struct packet_host *host)
{
	u64 from_ns = clock_mono_ns(), cpu_ns = clock_cpu_ns(), spent_ns;

	if (from_ns < host->bans.next_ns)
		return;
	dp_pushes_expire(host->dp, from_ns);
	if (dp_bans_expire(host->dp, from_ns) != 0)
		host->bans.read_at_ns = 0;
	bans_look(host);
	if (digest_of(&host->bans) != host->bans.stored)
		bans_store(host);
	spent_ns = clock_cpu_ns() - cpu_ns;
	host->bans.next_ns =
		from_ns + (spent_ns * TICK_SHARE > TICK_NS ? spent_ns * TICK_SHARE : TICK_NS);
}

void bans_free(struct packet_host *host)
{
	free(host->bans.ban);
	json_decref(host->bans.restored);
	memset(&host->bans, 0, sizeof(host->bans));
}
