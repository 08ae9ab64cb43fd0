// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* read_throttle.c - the actions of a limit above its rate: throttle and ban. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/limit_types.h"
#include "config/read.h"

#define SECOND SL_NS_PER_SEC
#define DAY_NS (24 * 3600 * SECOND)
#define LOAD_SIGNAL_PERCENT_DEFAULT 80
#define BAN_AFTER_MAX 1000000000ULL
#define BAN_REJECTIONS_MAX 1000000
#define BAN_MAX_DEFAULT DAY_NS

/* ---- throttle ---- */

#define THROTTLES "hard, {soft: 10%, for: 30s} or {elastic: 200%, while: {cpu: 70%}}"
#define THROTTLE(field) KEY(struct throttle_def, field)

/* Of a load signal that has one. */
static const struct key threshold = {
	.name = "load_signal",
	THROTTLE(load_signal_percent),
	&type_whole_percent,
	.least = 1,
	.most = 100,
};

static const struct key signal_name = { .name = "load_signal",
					THROTTLE(load_signal),
					&type_identifier };

/* NAME, or {NAME: 60%}. */
static int signal_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		       void *section)
{
	struct throttle_def *throttle = section;

	throttle->load_signal_percent = LOAD_SIGNAL_PERCENT_DEFAULT;
	if (node->kind != YAML_MAP)
		return key_read(r, node, &signal_name, throttle);
	if (node->count != 1)
		return read_fail(
			r, node, EINVAL,
			"found a mapping of %zu keys; accepted: a "
			"load signal's name, or one with its threshold, as {api-load: 60%%}",
			node->count);
	if (key_read(r, node->first, &signal_name, throttle))
		return -EINVAL;
	return key_read(r, node->first->value, &threshold, throttle);
}

/* Quoted: a load signal may be called null. */
static void signal_write(struct writer *w, const struct key *key, const void *section)
{
	const struct throttle_def *throttle = section;

	fprintf(w->out, "{'%s': %u%%}", throttle->load_signal, throttle->load_signal_percent);
}

static bool signal_equal(const struct key *key, const void *a, const void *b)
{
	return key_equal(&signal_name, a, b) && key_equal(&threshold, a, b);
}

static const struct key_type type_signal = {
	.name = "load signal",
	.read = signal_read,
	.write = signal_write,
	.equal = signal_equal,
};

static const struct key while_rows[] = {
	{ "cpu", THROTTLE(cpu_percent), &type_whole_percent, .least = 1, .most = 100 },
	{ "link", THROTTLE(link_percent), &type_whole_percent, .least = 1, .most = 100 },
	{ "load_signal", .type = &type_signal },
};

static int check_while(struct reader *r, const struct yaml_node *node, void *section)
{
	return node->count ? 0 : read_refuse(r, node, "one or more of cpu, link, load_signal");
}

static const struct keys while_keys = KEYS(struct throttle_def, while_rows, .check = check_while);

static const struct key throttle_rows[] = {
	{ "soft", THROTTLE(soft_permille), &type_percent, .least = 1, .most = 1000 },
	{ "for", THROTTLE(soft_for_ns), &type_duration, .least = SECOND, .most = 7 * DAY_NS },
	{ "elastic", THROTTLE(ceiling_percent), &type_whole_percent, .least = 100, .most = 10000,
	  .accepted = "a ceiling of 100% to 10000% of the rate, in whole percent" },
	{ "floor", THROTTLE(floor_percent), &type_whole_percent, .least = 1, .most = 99,
	  .accepted = "1% to 99% of the rate, in whole percent" },
	{ "while", .type = &type_map, .keys = &while_keys },
};

/* Checks which keys are accepted together. */
static int check_throttle(struct reader *r, const struct yaml_node *map, void *section)
{
	const struct yaml_node *soft = yaml_node_find(map, "soft"),
			       *elastic = yaml_node_find(map, "elastic");
	const struct yaml_node *stretch = yaml_node_find(map, "for"),
			       *least = yaml_node_find(map, "floor"),
			       *cond = yaml_node_find(map, "while");
	struct throttle_def *throttle = section;

	if (soft && elastic)
		return read_fail(r, elastic, EINVAL,
				 "found soft and elastic; accepted: one of them");
	if (!soft && !elastic)
		return read_refuse(r, map, THROTTLES);
	if (elastic && stretch)
		return read_fail(r, stretch, EINVAL,
				 "\"for\" sets the duration of soft; accepted "
				 "with elastic: while");
	if (soft && cond)
		return read_fail(r, cond, EINVAL,
				 "\"while\" sets the condition of elastic; accepted "
				 "with soft: for");
	if (soft && least)
		return read_fail(r, least, EINVAL,
				 "\"floor\" is the least rate of elastic; accepted "
				 "with soft: for");
	if (elastic && throttle->ceiling_percent == 100 && !least)
		return read_fail(r, elastic, EINVAL,
				 "found a ceiling of 100%%, which changes nothing; "
				 "accepted: 101%% and up, or with it a floor, as floor: 20%%");
	if (elastic && !cond)
		return read_fail(r, map, EINVAL,
				 "key \"while\" is missing: the resources that must "
				 "be free, as {cpu: 70%%, link: 80%%, load_signal: api-load}");
	throttle->kind = soft ? THROTTLE_SOFT : THROTTLE_ELASTIC;
	return 0;
}

static const struct keys throttle_keys =
	KEYS(struct throttle_def, throttle_rows, .check = check_throttle);

static int hard_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	memset(key_field(key, section), 0, sizeof(struct throttle_def));
	return strcmp(text, "hard") ? text_refuse(r, THROTTLES) : 0;
}

static int throttle_read(struct reader *r, const struct yaml_node *node, const struct key *key,
			 void *section)
{
	void *throttle = memset(key_field(key, section), 0, sizeof(struct throttle_def));

	if (node->kind != YAML_MAP)
		return read_refuse(r, node, THROTTLES);
	return keys_read(r, node, &throttle_keys, throttle);
}

static void throttle_write(struct writer *w, const struct key *key, const void *section)
{
	static const struct throttle_def hard;
	const struct throttle_def *throttle = key_field_of(key, section);

	if (throttle->kind == THROTTLE_HARD)
		fputs("hard", w->out);
	else
		keys_write_flow(w, &throttle_keys, throttle,
				keys_unlike(w, &throttle_keys, throttle, &hard));
}

static bool throttle_equal(const struct key *key, const void *a, const void *b)
{
	return keys_equal(&throttle_keys, key_field_of(key, a), key_field_of(key, b));
}

const struct key_type type_throttle = {
	.name = "throttle",
	.text = hard_read,
	.read = throttle_read,
	.accepts = THROTTLES,
	.write = throttle_write,
	.equal = throttle_equal,
};

/* ---- ban ---- */

static int after_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	struct ban_def *ban = section;
	const char *reason;

	if (!text[0])
		return text_refuse(r, ban->rejections
					      ? "NUMBER rejections/PERIOD, as in 20 rejections/10m"
					      : "NUMBER drops/PERIOD, as in 1000 drops/10s");
	if (ban->rejections ? rejections_parse(text, &ban->after, &ban->within_ns, &reason)
			    : drops_parse(text, &ban->after, &ban->within_ns, &reason))
		return text_fail(r, ": %s", reason);
	if (ban->rejections && (ban->after > BAN_REJECTIONS_MAX || ban->within_ns > DAY_NS))
		return text_refuse(r, "up to 1M rejections within a day");
	if (ban->after > BAN_AFTER_MAX || ban->within_ns > DAY_NS)
		return text_refuse(r, "up to 1G drops within a day");
	return 0;
}

static void after_write(struct writer *w, const struct key *key, const void *section)
{
	const struct ban_def *ban = section;
	char text[64];

	fprintf(w->out, "%llu %s%s/%s", ban->after, ban->rejections ? "rejection" : "drop",
		ban->after == 1 ? "" : "s", duration_format(ban->within_ns, text, sizeof(text)));
}

static bool after_equal(const struct key *key, const void *a, const void *b)
{
	const struct ban_def *x = a, *y = b;

	return x->after == y->after && x->within_ns == y->within_ns;
}

static const struct key_type type_after = {
	.name = "count",
	.text = after_read,
	.write = after_write,
	.equal = after_equal,
};

static int factor_read(struct reader *r, const char *text, const struct key *key, void *section)
{
	u32 percent;

	if (factor_parse(text, &percent) || percent < key->least || percent > key->most)
		return key_refuse_text(r, key);
	((struct ban_def *)section)->factor_percent = percent;
	return 0;
}

static void factor_write(struct writer *w, const struct key *key, const void *section)
{
	u32 percent = ((const struct ban_def *)section)->factor_percent;

	fprintf(w->out, percent % 100 ? "%u.%02u" : "%u", percent / 100, percent % 100);
}

static const struct key_type type_factor = {
	.name = "factor",
	.text = factor_read,
	.write = factor_write,
};

#define BAN(field) KEY(struct ban_def, field)

static const struct key ban_rows[] = {
	{ "after", BAN(after), &type_after, .flags = KEY_NEEDED | KEY_EMPTY },
	{ "for", BAN(for_ns), &type_duration, .least = SECOND, .most = 365 * DAY_NS,
	  .flags = KEY_NEEDED },
	{ "factor", BAN(factor_percent), &type_factor, .usual = "2", .least = 100, .most = 10000,
	  .accepted = "1 to 100, as 2 or 1.5" },
	{ "max", BAN(max_ns), &type_duration, .least = SECOND, .most = 365 * DAY_NS },
	{ "spoofable", BAN(spoofable), &type_bool },
};

static int check_max(struct reader *r, const struct yaml_node *node, void *section)
{
	struct ban_def *ban = section;

	if (ban->rejections && ban->spoofable)
		return read_fail(r, yaml_node_find(node, "spoofable"), EINVAL,
				 "spoofable is about "
				 "packets; accepted: after, for, factor, max");
	if (ban->max_ns && ban->max_ns < ban->for_ns)
		return read_fail(r, yaml_node_find(node, "max"), EINVAL,
				 "max is shorter than for, the "
				 "first ban; accepted: for, or longer");
	if (!ban->max_ns)
		ban->max_ns = ban_default_max(ban->for_ns);
	return 0;
}

static const struct keys ban_keys = KEYS(struct ban_def, ban_rows, .check = check_max);

u64 ban_default_max(u64 for_ns)
{
	return for_ns > BAN_MAX_DEFAULT ? for_ns : BAN_MAX_DEFAULT;
}

static int ban_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		    void *section)
{
	struct ban_def *ban = key_field(key, section);

	if (keys_init(&ban_keys, ban))
		return read_no_memory(r);
	ban->rejections = key->type->variant;
	return keys_read(r, node, &ban_keys, ban);
}

static void ban_write(struct writer *w, const struct key *key, const void *section)
{
	const struct ban_def *ban = key_field_of(key, section);
	const struct ban_def usual = {
		.factor_percent = 200,
		.max_ns = ban_default_max(ban->for_ns),
	};

	keys_write_flow(w, &ban_keys, ban, keys_unlike(w, &ban_keys, ban, &usual));
}

static bool ban_equal(const struct key *key, const void *a, const void *b)
{
	return keys_equal(&ban_keys, key_field_of(key, a), key_field_of(key, b));
}

/* clang-format off */
#define TYPE_BAN(of_requests)								\
	{ .name = "ban", .variant = of_requests, .read = ban_read, .write = ban_write,	\
	  .equal = ban_equal }
/* clang-format on */

const struct key_type type_ban = TYPE_BAN(false), type_ban_of_requests = TYPE_BAN(true);
