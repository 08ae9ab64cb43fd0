// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* explain.c - the answer of `explain`, joined with the policy; see explain.h. */
#include "packet/explain/explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/json.h"
#include "config/model.h"

struct explaining {
	const struct explain_scene *scene;
	const struct explain_query *query;
	struct explain *e;
	struct sl_now now;
	struct sl_err *err;
};

static struct sl_prefix source_of(const struct explaining *a)
{
	const struct explain_packet *p = &a->query->packet;

	return (struct sl_prefix){ p->src, p->family, p->family == SL_V4 ? 32 : 128 };
}

static json_t *wait_to_json(u64 wait_ns)
{
	return wait_ns == ~0ULL ? json_null() : json_u64(wait_ns);
}

static void set_line(json_t *json, int line)
{
	if (line)
		json_object_set_new(json, "line", json_integer(line));
}

/* ------------------------------------------------------------------ the verdict */

static void set_limit(const struct explain_scene *scene, u16 index, json_t *json)
{
	if (index < scene->policy->limit_count) {
		json_object_set_new(json, "limit", json_string(scene->policy->limit[index].name));
		set_line(json, scene->policy->limit[index].pos.line);
	} else if (internal_limit_name(index)) {
		json_object_set_new(json, "limit", json_string(internal_limit_name(index)));
	}
}

json_t *explain_result_to_json(const struct explain_scene *scene,
			       const struct explain_result *answer)
{
	static const char *const step_name[] = {
		"before the order",
		"neighbours",
		"failsafe sessions",
		"exempt",
		"failsafe ports",
		"block",
		"bans",
		"limits",
	};
	bool pushed = answer->reason >= SL_R_PUSH_LIMIT && answer->reason <= SL_R_PUSH_DROP;
	json_t *json =
		json_pack("{s:s, s:s, s:i, s:s}", "action", action_name(answer->action), "reason",
			  reason_name(answer->reason), "step", answer->step, "step_name",
			  pushed ? "push-downs" : step_name[answer->step % ARRAY_SIZE(step_name)]);

	set_limit(scene, answer->limit, json);
	if (answer->tag & SL_TAG_DSCP)
		json_object_set_new(json, "dscp", json_integer(answer->dscp));
	if (answer->tag & SL_TAG_MARK)
		json_object_set_new(json, "mark", json_integer(answer->mark));
	return json;
}

/* Which CPUs are online, a byte each; all of them where that cannot be read. */
static void find_online(u8 *ret, u32 cpus)
{
	FILE *file = fopen("/sys/devices/system/cpu/online", "re");
	unsigned int first, last, found = 0;
	char next = ',';

	memset(ret, 0, cpus);
	while (file && next == ',' && fscanf(file, "%u", &first) == 1) {
		last = first;
		if (fscanf(file, "-%u", &last) < 0 || fscanf(file, "%c", &next) != 1)
			next = 0;
		for (; first <= last && first < cpus; first++)
			found += ret[first] = 1;
	}
	if (file)
		fclose(file);
	if (!found)
		memset(ret, 1, cpus);
}

static int cpu_to_json(const struct explaining *a, u32 cpu, struct explain_result *ret_answer,
		       json_t **ret)
{
	const struct explain_packet *packet = &a->query->packet;
	u64 wait_ns;
	int rc = explain_run(a->e, packet, cpu, ret_answer, a->err);

	if (!rc)
		rc = explain_wait(a->e, packet, cpu, &wait_ns, a->err);
	if (rc < 0)
		return rc;
	*ret = explain_result_to_json(a->scene, ret_answer);
	json_object_set_new(*ret, "passes_in_ns", wait_to_json(wait_ns));
	return 0;
}

/*
 * The verdict; and of each CPU, where they differ: a lease of one CPU lets a packet through
 * that is refused on another. *ret_cpu: whose it is.
 */
static int verdict_to_json(const struct explaining *a, u32 *ret_cpu,
			   struct explain_result *ret_answer, json_t *ret)
{
	u32 cpus = a->scene->dp->cpus;
	u8 *online = malloc(cpus);
	json_t *all = json_array(), *verdict = NULL, *one;
	struct explain_result answer;
	bool differ = false;
	int rc = online ? 0 : sl_err_set(a->err, ENOMEM, "out of memory");

	*ret_cpu = 0;
	if (online)
		find_online(online, cpus);
	for (u32 cpu = 0; !rc && cpu < cpus; cpu++) {
		if (!online[cpu])
			continue;
		rc = cpu_to_json(a, cpu, &answer, &one);
		if (rc < 0)
			break;
		if (!verdict) {
			verdict = json_deep_copy(one);
			*ret_answer = answer;
			*ret_cpu = cpu;
		}
		differ |= !json_equal(verdict, one);
		json_object_set_new(one, "cpu", json_integer(cpu));
		json_array_append_new(all, one);
	}
	free(online);
	if (rc < 0)
		json_decref(verdict);
	else
		json_object_set_new(ret, "verdict", verdict);
	if (!rc && differ)
		json_object_set(ret, "cpus", all);
	json_decref(all);
	return rc;
}

/* ------------------------------------------------------------------ lists */

/* The longest entry that holds the source and is on, or null. */
static json_t *list_to_json(const struct explaining *a, enum list_kind kind)
{
	const struct list_def *list = &a->scene->policy->list[kind];
	struct sl_prefix src = source_of(a);
	const struct list_entry *best = NULL;
	char text[SL_PREFIX_TEXT];
	const struct explain_fed *fed = &a->scene->fed[kind];
	json_t *json;

	for (size_t i = 0; i < list->count; i++) {
		const struct list_entry *entry = &list->entry[i];

		if (!sl_prefix_contains(&entry->prefix, &src) ||
		    (entry->until_utc_ns && entry->until_utc_ns <= a->now.utc_ns) ||
		    (best && best->prefix.len >= entry->prefix.len))
			continue;
		best = entry;
	}
	if (fed->origin && (!best || fed->entry.prefix.len > best->prefix.len))
		best = &fed->entry;
	if (!best)
		return json_null();
	json = json_pack("{s:s, s:o, s:b}", "prefix",
			 sl_prefix_format(&best->prefix, text, sizeof(text)), "until",
			 json_utc(best->until_utc_ns), "live",
			 !best->pos.line && !best->derived && best != &fed->entry);
	if (best == &fed->entry)
		json_object_set_new(json, "origin", json_string(fed->origin));
	if (best->reason[0])
		json_object_set_new(json, "reason", json_string(best->reason));
	set_line(json, best->pos.line);
	return json;
}

/* The ban that is on, or the last one, whose level the next one's depends on; or null. */
static int ban_to_json(const struct explaining *a, json_t **ret)
{
	const struct sl_limit_id_info *slots = a->scene->dp->slots;
	u64 utc_ns = a->now.utc_ns - a->now.mono_ns;
	struct sl_prefix prefix;
	struct explain_ban ban;
	char text[SL_PREFIX_TEXT];
	int rc = explain_bans(a->scene->dp, a->scene->image->rules, &a->query->packet,
			      a->now.mono_ns, &ban, a->err);

	if (rc < 0)
		return rc;
	*ret = json_null();
	if (!ban.known)
		return 0;
	prefix = (struct sl_prefix){ ban.key.addr, ban.key.family, ban.key.len };
	*ret = json_pack("{s:s, s:b, s:s, s:o, s:o, s:i, s:o}", "prefix",
			 sl_prefix_format(&prefix, text, sizeof(text)), "on", ban.on, "limit",
			 slots[ban.state.slot % SL_LIMIT_IDS].name, "since",
			 json_utc(ban.state.since_ns + utc_ns), "until",
			 json_utc(ban.state.until_ns + utc_ns), "level", (int)ban.state.level,
			 "drops", json_u64(ban.state.drops));
	return 0;
}

/* Those that hold the source now. */
static int pushes_to_json(const struct explaining *a, json_t **ret)
{
	u64 utc_ns = a->now.utc_ns - a->now.mono_ns;
	struct explain_push push[SL_PUSH_LENGTHS];
	int count = explain_pushes(a->scene->dp, &a->query->packet, a->now.mono_ns, push, a->err);
	json_t *list = json_array(), *one;

	for (int i = 0; i < count; i++) {
		const struct sl_push *p = &push[i].push;
		struct sl_prefix prefix = { push[i].key.addr, push[i].key.family, push[i].key.len };
		struct rate rate = { p->count, p->period_ns, RATE_PACKETS };
		char source[SL_PREFIX_TEXT], text[64];

		if (!push[i].on)
			continue;
		one = json_pack("{s:s, s:s, s:o, s:o, s:o}", "prefix",
				sl_prefix_format(&prefix, source, sizeof(source)), "kind",
				push_kind_name(p->kind), "until", json_utc(p->until_ns + utc_ns),
				"packets", json_u64(p->passed + p->refused), "refused",
				json_u64(p->refused));
		if (p->kind == SL_PUSH_LIMIT)
			json_object_set_new(one, "rate",
					    json_string(rate_format(&rate, text, sizeof(text))));
		json_array_append_new(list, one);
	}
	if (count < 0)
		json_decref(list);
	else
		*ret = list;
	return count < 0 ? count : 0;
}

/* ------------------------------------------------------------------ limits */

static json_t *names_to_json(const struct name *names, u32 bits)
{
	json_t *list = json_array();

	for (; names->name; names++)
		if (bits & names->value)
			json_array_append_new(list, json_string(names->name));
	return list;
}

/* Which of the limit's rates a meter is of: its slot's name is "web#2" (meters.c). */
static u32 rate_of_meter(const struct explaining *a, const struct sl_limit *meter)
{
	const char *name = a->scene->dp->slots[meter->slot].name;
	const char *number = strrchr(name, '#');
	long rate = number ? strtol(number + 1, NULL, 10) : 1;

	return rate > 0 && rate <= RATES_MAX ? rate - 1 : 0;
}

/* By how much a step of the prefix hierarchy multiplies the rate. */
static u32 scale_of_meter(const struct limit_def *def, const struct sl_limit *meter, u8 family)
{
	for (u32 i = 0; i < def->prefix.count[family]; i++)
		if (def->prefix.len[family][i] == meter->prefix[family])
			return def->prefix.scale[family][i];
	return 1;
}

static const struct override_def *override_of(const struct explaining *a,
					      const struct limit_def *def)
{
	struct sl_prefix src = source_of(a);

	return override_match(def, &src);
}

/* The override that gives the source its rates. */
static json_t *override_to_json(const struct explaining *a, const struct limit_def *def)
{
	const struct override_def *own = override_of(a, def);
	char text[SL_PREFIX_TEXT];
	json_t *json;

	if (!own)
		return json_null();
	json = json_pack("{s:s, s:b}", "src", sl_prefix_format(&own->src, text, sizeof(text)),
			 "live", !own->line);
	set_line(json, own->line);
	if (own->derived)
		json_object_set_new(json, "derived", json_true());
	if (own->csv)
		json_object_set_new(json, "file", json_string(def->overrides_file));
	return json;
}

/* What an elastic limit is multiplied by now. */
static double scale_now(const struct explaining *a, const struct sl_limit *meter)
{
	const struct sl_elastic *elastic = a->scene->dp->elastic;
	u32 head = a->scene->image->rules->limits[meter->head % SL_LIMITS_MAX].slot;

	elastic += head % SL_LIMIT_IDS;
	if (elastic->scale < SL_SCALE_MIN || a->now.mono_ns >= elastic->valid_until_ns)
		return 1;
	return (double)elastic->scale / SL_ELASTIC_ONE;
}

/* What a meter allows, as text. */
static const char *meter_text(const struct explaining *a, const struct limit_def *def,
			      const struct explain_meter *meter, char *buf, size_t size)
{
	const struct sl_limit *limit = &a->scene->image->rules->limits[meter->meter];
	const struct rates *rates = &def->terms.rates;
	const struct override_def *own;
	struct rate rate;
	char text[64];

	own = meter->overridden ? override_of(a, def) : NULL;
	if (own)
		rates = &def->override_rates[own->rates];
	rate = rates->rate[rate_of_meter(a, limit)];
	rate.count *= scale_of_meter(def, limit, a->query->packet.family);
	switch (meter->role) {
	case EXPLAIN_METER_SOFT:
		snprintf(buf, size, "soft: %g%% more", def->terms.throttle.soft_permille / 10.0);
		break;
	case EXPLAIN_METER_GRACE:
		snprintf(buf, size, "soft: for %s",
			 duration_format(def->terms.throttle.soft_for_ns, text, sizeof(text)));
		break;
	case EXPLAIN_METER_BAN:
		snprintf(buf, size, "ban: after %llu drops/%s", def->ban.after,
			 duration_format(def->ban.within_ns, text, sizeof(text)));
		break;
	default:
		rate_format(&rate, buf, size);
	}
	return buf;
}

static json_t *meter_to_json(const struct explaining *a, const struct limit_def *def,
			     const struct explain_meter *meter)
{
	static const char *const units[] = { "packets", "bytes", "connections" };
	static const char *const role_name[] = { "limit", "soft", "grace", "ban" };
	const char *unit = meter->role == EXPLAIN_METER_BAN	? "drops"
			   : meter->role == EXPLAIN_METER_GRACE ? "stretches"
								: NULL;
	const struct sl_limit *limit = &a->scene->image->rules->limits[meter->meter];
	u8 family = a->query->packet.family;
	char text[96];
	json_t *json;

	json = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:b}", "role", role_name[meter->role % 4],
			 "rate", meter_text(a, def, meter, text, sizeof(text)), "unit",
			 unit ? unit : units[limit->unit % 3], "used", json_u64(meter->used),
			 "capacity", json_u64(meter->capacity), "cost", json_u64(meter->cost),
			 "over", meter->over);
	if ((limit->per & SL_PER_SOURCE) && meter->role != EXPLAIN_METER_BAN)
		json_object_set_new(json, "prefix", json_integer(limit->prefix[family]));
	if ((limit->per & SL_PER_DST) && limit->dst_prefix[family] &&
	    meter->role != EXPLAIN_METER_BAN)
		json_object_set_new(json, "dst_prefix", json_integer(limit->dst_prefix[family]));
	if (limit->elastic)
		json_object_set_new(json, "scale", json_real(scale_now(a, limit)));
	if (meter->overridden)
		json_object_set_new(json, "override", override_to_json(a, def));
	if (limit->lease && !meter->overridden)
		json_object_set_new(json, "leased", json_u64(meter->leased));
	if (meter->over)
		json_object_set_new(json, "fits_in_ns", wait_to_json(meter->wait_ns));
	return json;
}

/* Fields that pick the bucket and were not given: with others it is another bucket. */
static json_t *open_fields(const struct explaining *a, u32 per)
{
	json_t *list = json_array();

	for (u32 field = QUERY_FIRST; field < MATCH_KEY_COUNT; field++)
		if ((per & match_keys[field].per) && !(a->query->given & 1U << field))
			json_array_append_new(list, json_string(query_field_name[field]));
	return list;
}

static json_t *limit_to_json(const struct explaining *a, const struct explain_limit *limit)
{
	const struct limit_def *def = &a->scene->policy->limit[limit->index];
	json_t *meters = json_array();
	json_t *json;

	for (u32 i = 0; i < limit->meter_count; i++)
		json_array_append_new(meters, meter_to_json(a, def, &limit->meter[i]));
	json = json_pack("{s:s, s:b, s:s, s:s, s:o, s:o, s:o}", "limit", def->name, "live",
			 !def->pos.line, "mode", limit_mode_name(def->mode), "action",
			 action_name(def->action), "per", names_to_json(per_names, def->per),
			 "meters", meters, "bucket_depends_on", open_fields(a, def->per));
	json_object_set_new(json, "result",
			    limit->counts ? json_string(limit_verdict_name(limit->verdict))
					  : json_null());
	if (def->terms.cluster)
		json_object_set_new(json, "scope", json_string("cluster"));
	set_line(json, def->pos.line);
	return json;
}

static int limits_to_json(const struct explaining *a, u32 cpu, json_t **ret)
{
	struct explain_limit *limit = calloc(SL_LIMITS_MAX, sizeof(*limit));
	json_t *list = json_array();
	int count;

	if (!limit)
		count = sl_err_set(a->err, ENOMEM, "out of memory");
	else
		count = explain_limits(a->e, &a->query->packet, cpu, limit, SL_LIMITS_MAX, a->err);
	for (int i = 0; i < count; i++)
		json_array_append_new(list, limit_to_json(a, &limit[i]));
	free(limit);
	if (count < 0)
		json_decref(list);
	else
		*ret = list;
	return count < 0 ? count : 0;
}

/* ------------------------------------------------------------------ all of it */

static int explain_all(const struct explaining *a, json_t *ret)
{
	struct explain_result answer;
	json_t *part;
	u32 cpu;
	int rc = verdict_to_json(a, &cpu, &answer, ret);

	if (rc < 0)
		return rc;
	json_object_set_new(ret, "exempt", list_to_json(a, LIST_EXEMPT));
	json_object_set_new(ret, "block", list_to_json(a, LIST_BLOCK));
	rc = ban_to_json(a, &part);
	if (rc < 0)
		return rc;
	json_object_set_new(ret, "ban", part);
	rc = pushes_to_json(a, &part);
	if (rc < 0)
		return rc;
	json_object_set_new(ret, "pushdowns", part);
	rc = limits_to_json(a, cpu, &part);
	if (rc < 0)
		return rc;
	json_object_set_new(ret, "limits", part);
	rc = query_changes(a->scene, a->e, a->query, cpu, &answer, &part, a->err);
	if (rc < 0)
		return rc;
	json_object_set_new(ret, "would_change", part);
	return 0;
}

int explain_to_json(const struct explain_scene *scene, const struct explain_query *query,
		    json_t **ret, struct sl_err *err)
{
	struct explaining a = { .scene = scene, .query = query, .err = err };
	struct sl_prefix src = source_of(&a);
	char text[SL_PREFIX_TEXT];
	json_t *json;
	int rc;

	a.now = dp_now(scene->dp);
	rc = explain_new(scene->dp, scene->image, a.now.mono_ns, &a.e, err);
	if (rc < 0)
		return rc;
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++)
		explain_set_link(a.e, slot, scene->iface[slot].link);
	json = json_pack("{s:s, s:s, s:o, s:o}", "source",
			 sl_prefix_format(&src, text, sizeof(text)), "file", scene->config_path,
			 "packet", query_to_json(scene, &query->packet, ~0U), "assumed",
			 query_to_json(scene, &query->packet, ~query->given));
	rc = explain_all(&a, json);
	explain_free(a.e);
	if (rc < 0)
		json_decref(json);
	else
		*ret = json;
	return rc;
}
