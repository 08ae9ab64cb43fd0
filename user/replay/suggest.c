// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* suggest.c - see suggest.h. */
#include "replay/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config_text.h"
#include "lib/array.h"
#include "lib/file.h"
#include "lib/json.h"
#include "lib/out.h"

/* Of a group: a domain, a blank, keys and commas. None of them needs quotes in YAML. */
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.- ,"
#define GROUPS_MAX 8
#define LIVE_BURST 10			/* seconds of the rate */
#define MINUTE_NS (60 * SL_NS_PER_SEC)

struct group {
	char name[128];			/* "source", "net"; of requests "api user,path" */
	bool requests;
	struct peaks peaks;
};

struct suggest {
	enum suggest_kind kind;
	struct sl_seed seed;
	u32 count;
	u64 left_out;			/* descriptors of groups beyond GROUPS_MAX */
	struct group group[GROUPS_MAX];
};

/* Of packets, by what sources are grouped. */
static const struct {
	const char *name;
	u8 len[SL_FAMILY_COUNT];
} nets[] = {
	{ "source", { 32, 64 } }, { "net", { 24, 48 } },
};

static struct group *add_group(struct suggest *suggest, const char *name)
{
	struct group *group = &suggest->group[suggest->count];

	if (suggest->count == GROUPS_MAX || peaks_open(&group->peaks))
		return NULL;
	snprintf(group->name, sizeof(group->name), "%s", name);
	suggest->count++;
	return group;
}

int suggest_open(enum suggest_kind kind, struct suggest **ret)
{
	struct suggest *suggest = calloc(1, sizeof(*suggest));

	if (!suggest)
		return -ENOMEM;
	suggest->kind = kind;
	suggest->seed = (struct sl_seed){ 0x73756767, 0x65737401 };
	for (u32 i = 0; kind != SUGGEST_REQUESTS && i < ARRAY_SIZE(nets); i++)
		if (!add_group(suggest, nets[i].name)) {
			suggest_close(suggest);
			return -ENOMEM;
		}
	*ret = suggest;
	return 0;
}

void suggest_close(struct suggest *suggest)
{
	for (u32 i = 0; suggest && i < suggest->count; i++)
		peaks_close(&suggest->group[i].peaks);
	free(suggest);
}

/* ------------------------------------------------------------------ what comes */

void suggest_packets(struct suggest *suggest, struct sl_addr source, u8 family, u64 packets,
		     u64 second)
{
	for (u32 i = 0; i < ARRAY_SIZE(nets); i++) {
		struct sl_addr net = sl_addr_mask(source, nets[i].len[family & 1]);
		struct sl_sip sip;

		sl_sip_start(&sip, suggest->seed);
		sl_sip_add(&sip, net.hi);
		sl_sip_add(&sip, net.lo ^ family);
		peaks_note(&suggest->group[i].peaks, sl_sip_finish(&sip), packets, second);
	}
}

/* "api user,path"; false: too long, or not to be written into rules as it is. */
static bool name_of(const struct request *request, const struct request_descriptor *descriptor,
		    char *buf, size_t size)
{
	struct out out;

	memset(buf, 0, size);
	out_begin(&out, buf, size);
	out_bytes(&out, request->domain.at, request->domain.len);
	for (u32 i = 0; i < descriptor->count; i++) {
		out_char(&out, i ? ',' : ' ');
		out_bytes(&out, descriptor->entry[i].key.at, descriptor->entry[i].key.len);
	}
	if (out.len >= size || strspn(buf, NAME_CHARS) < out.len)
		return false;
	buf[out.len] = '\0';
	return !memchr(request->domain.at, ' ', request->domain.len) &&
	       !memchr(request->domain.at, ',', request->domain.len);
}

static struct group *group_of(struct suggest *suggest, const char *name)
{
	struct group *group;

	for (u32 i = 0; i < suggest->count; i++)
		if (!strcmp(suggest->group[i].name, name))
			return &suggest->group[i];
	group = add_group(suggest, name);
	if (group)
		group->requests = true;
	return group;
}

static void add_text(struct sl_sip *sip, struct bytes text)
{
	for (size_t at = 0; at < text.len; at += 8) {
		u64 word = 0;

		memcpy(&word, text.at + at, text.len - at < 8 ? text.len - at : 8);
		sl_sip_add(sip, word);
	}
	sl_sip_add(sip, text.len);
}

void suggest_request(struct suggest *suggest, const struct request *request, u64 utc_ns)
{
	for (u32 i = 0; i < request->count; i++) {
		const struct request_descriptor *descriptor = &request->descriptor[i];
		struct group *group;
		struct sl_sip sip;
		char name[128];

		if (descriptor->refund || !descriptor->count)
			continue;
		group = name_of(request, descriptor, name, sizeof(name)) ? group_of(suggest, name) : NULL;
		if (!group) {
			suggest->left_out++;
			continue;
		}
		sl_sip_start(&sip, suggest->seed);
		for (u32 k = 0; k < descriptor->count; k++)
			add_text(&sip, descriptor->entry[k].value);
		peaks_note(&group->peaks, sl_sip_finish(&sip), descriptor->hits, utc_ns / MINUTE_NS);
	}
}

/* "api/user/path" as "api user,path"; a rule of values, "api/user=bob", keeps its name, and gets no YAML. */
static void group_of_rule(const char *rule, char *buf, size_t size)
{
	char *c;

	snprintf(buf, size, "%s", rule);
	if (strspn(buf, NAME_CHARS "/") < strlen(buf) || strpbrk(buf, " ,") || !(c = strchr(buf, '/')))
		return;
	*c = ' ';
	while ((c = strchr(c, '/')))
		*c = ',';
}

void suggest_user(struct suggest *suggest, const char *rule, const char *value, u64 requests, u64 number)
{
	struct group *group;
	struct sl_sip sip;
	char name[128];

	group_of_rule(rule, name, sizeof(name));
	group = group_of(suggest, name);
	if (!group) {
		suggest->left_out++;
		return;
	}
	sl_sip_start(&sip, suggest->seed);
	add_text(&sip, (struct bytes){ value, strlen(value) });
	peaks_note(&group->peaks, sl_sip_finish(&sip), requests, number);
}

/* ------------------------------------------------------------------ the report */

/* Up to two digits: 1234 -> 1300. */
static u64 rounded_up(u64 value)
{
	u64 unit = 1;

	while (value / unit >= 100)
		unit *= 10;
	return (value + unit - 1) / unit * unit;
}

static void write_packets(const struct suggest *suggest, u32 i, u64 rate, FILE *out)
{
	fprintf(out, "  - name: suggested-%s\n    prefix: {ipv4: %u, ipv6: %u}\n    rate: %llu packets/s\n"
		"    burst: %llu\n    mode: shadow\n", nets[i].name, nets[i].len[SL_V4], nets[i].len[SL_V6], rate,
		rate * (suggest->kind == SUGGEST_LIVE ? LIVE_BURST : 2));
}

/* Whether a group is in the domain and below the keys of `path`, "api user,"; its next key. */
static bool next_key(const struct group *group, const char *path, struct bytes *ret)
{
	size_t len = strlen(path);

	if (strncmp(group->name, path, len))
		return false;
	*ret = (struct bytes){ group->name + len, strcspn(group->name + len, ",") };
	return true;
}

/* Rules below `path`, each key once; `rate` is of each group. */
static void write_rules(const struct suggest *suggest, const u64 *rate, const char *path, int indent,
			FILE *out)
{
	struct bytes key, other;
	char below[160];

	fprintf(out, "%*sdescriptors:\n", indent, "");
	for (u32 i = 0; i < suggest->count; i++) {
		bool again = false, deeper = false;

		if (!rate[i] || !next_key(&suggest->group[i], path, &key))
			continue;
		for (u32 k = 0; k < i; k++)
			again |= rate[k] && next_key(&suggest->group[k], path, &other) && other.len == key.len &&
				 !memcmp(other.at, key.at, key.len);
		if (again)
			continue;
		fprintf(out, "%*s- key: %.*s\n", indent + 2, "", (int)key.len, key.at);
		snprintf(below, sizeof(below), "%s%.*s", path, (int)key.len, key.at);
		for (u32 k = i; k < suggest->count; k++) {
			if (rate[k] && !strcmp(suggest->group[k].name, below))
				fprintf(out, "%*srate_limit: {unit: minute, requests_per_unit: %llu}\n"
					"%*sshadow_mode: true\n", indent + 4, "", rate[k], indent + 4, "");
			deeper |= rate[k] && !strncmp(suggest->group[k].name, below, strlen(below)) &&
				  suggest->group[k].name[strlen(below)] == ',';
		}
		strcat(below, ",");
		if (deeper)
			write_rules(suggest, rate, below, indent + 4, out);
	}
}

/* A rule file for each domain. */
static void write_domains(const struct suggest *suggest, const u64 *rate, FILE *out)
{
	for (u32 i = 0; i < suggest->count; i++) {
		int len = (int)strcspn(suggest->group[i].name, " ") + 1;
		bool again = false;
		char path[160];

		for (u32 k = 0; k < i; k++)
			again |= rate[k] && !strncmp(suggest->group[k].name, suggest->group[i].name, len);
		if (again || !rate[i])
			continue;
		snprintf(path, sizeof(path), "%.*s", len, suggest->group[i].name);
		fprintf(out, "domain: %.*s\n", len - 1, path);
		write_rules(suggest, rate, path, 0, out);
	}
}

static json_t *group_to_json(const struct suggest *suggest, const struct group *group, u32 permille,
			     u64 *ret_rate)
{
	struct peaks_quantiles q;
	json_t *json;

	if (peaks_quantiles(&group->peaks, &q))
		return NULL;
	*ret_rate = rounded_up(peaks_at(&q, permille / 1000.0));
	json = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f}", "group", group->name,
			 "unit", group->requests ? "requests/m" : "packets/s", "subjects",
			 json_u64(q.subjects), "sampled", json_u64(q.sampled), "p50",
			 json_u64(peaks_at(&q, 0.5)), "p90", json_u64(peaks_at(&q, 0.1)), "p99",
			 json_u64(peaks_at(&q, 0.01)), "p999", json_u64(peaks_at(&q, 0.001)), "most",
			 json_u64(peaks_at(&q, 0)), "rate", json_u64(*ret_rate), "touched",
			 peaks_above(&q, *ret_rate));
	if (q.error > 0)
		json_object_set_new(json, "error", json_real(q.error));
	free(q.peak);
	return json;
}

json_t *suggest_report(const struct suggest *suggest, u32 permille)
{
	json_t *groups = json_array(), *json = NULL;
	u64 rate[GROUPS_MAX] = { 0 }, of_rules[GROUPS_MAX] = { 0 };
	char *yaml = NULL, *rules = NULL;
	size_t size, rules_size;
	FILE *out = open_memstream(&yaml, &size), *rules_out = open_memstream(&rules, &rules_size);

	for (u32 i = 0; i < suggest->count; i++) {
		json_t *group = group_to_json(suggest, &suggest->group[i], permille, &rate[i]);

		if (group && rate[i])
			json_array_append(groups, group);
		if (suggest->group[i].requests && strchr(suggest->group[i].name, ' '))
			of_rules[i] = rate[i];
		json_decref(group);
	}
	if (rules_out) {
		write_domains(suggest, of_rules, rules_out);
		fclose(rules_out);
	}
	if (out && suggest->kind == SUGGEST_REQUESTS)
		fputs(rules ? rules : "", out);
	else if (out && rate[0])
		fputs("limits:\n", out);
	/* A network as a whole that sends no more than one source needs no limit. */
	for (u32 i = 0; out && suggest->kind != SUGGEST_REQUESTS && i < ARRAY_SIZE(nets); i++)
		if (rate[i] && (!i || rate[i] > rate[i - 1]))
			write_packets(suggest, i, rate[i], out);
	if (out && !fclose(out))
		json = json_pack("{s:b, s:O, s:s, s:f, s:o}", "ok", 1, "groups", groups, "yaml", yaml, "share",
				 permille / 1000.0, "left_out", json_u64(suggest->left_out));
	if (json && suggest->kind == SUGGEST_LIVE && rules && rules[0])
		json_object_set_new(json, "rules", json_string(rules));
	json_decref(groups);
	free(yaml);
	free(rules);
	return json;
}

/* ------------------------------------------------------------------ into a configuration */

static int put_limits(struct policy *policy, const char *yaml, struct sl_err *err)
{
	char name[SL_NAME_MAX];

	for (u32 i = 0; i < ARRAY_SIZE(nets); i++) {
		snprintf(name, sizeof(name), "suggested-%s", nets[i].name);
		if (policy_find_limit(policy, name) && policy_limit_del(policy, name, err))
			return -EINVAL;
	}
	return policy_limit_add(policy, "suggestion", yaml, strlen(yaml), err);
}

int suggest_write(const char *path, const json_t *report, struct sl_err *err)
{
	const char *yaml = json_string_value(json_object_get(report, "yaml"));
	struct policy *policy = NULL;
	char *text = NULL, *changed = NULL, *backup = NULL;
	size_t size, changed_size;
	bool whole;
	int r;

	if (!yaml || strncmp(yaml, "limits:", 7))
		return sl_err_set(err, EINVAL, "there is no limit of packets to write; rules are put into a file of "
				  "http.rules by hand");
	r = config_text_read(path, true, &text, &size, err);
	if (!r)
		r = policy_parse(path, text, size, &policy, err);
	if (!r)
		r = put_limits(policy, yaml, err);
	if (!r)
		r = policy_write_into(policy, path, text, size, &changed, &changed_size, &whole, err);
	if (!r && asprintf(&backup, "%s.bak", path) < 0) {
		backup = NULL;
		r = sl_err_set(err, ENOMEM, "out of memory");
	}
	if (!r)
		r = file_replace(path, backup, changed, changed_size, 0644, err);
	policy_free(policy);
	free(text);
	free(changed);
	free(backup);
	return r;
}
