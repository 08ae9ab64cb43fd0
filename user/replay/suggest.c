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
#include "lib/hash.h"
#include "lib/json.h"
#include "lib/networks.h"
#include "lib/out.h"

/* Of a group: a domain, a blank, keys and commas. None of them needs quotes in YAML. */
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.- ,"
#define GROUPS_MAX 8
#define LIVE_BURST 10 /* seconds of the rate */
#define MINUTE_NS (60 * SL_NS_PER_SEC)
#define APART_TIMES 10	   /* as many packets as any other of its size */
#define APART_SOURCES 1000 /* a network of so many is a crowd */

struct group {
	char name[128]; /* "source", "net"; of requests "api user,path" */
	bool requests;
	struct peaks peaks;
};

/* Of packets, by what sources are grouped. */
static const struct {
	const char *name;
	u8 len[SL_FAMILY_COUNT];
} nets[] = {
	{ "source", { 32, 64 } },
	{ "net", { 24, 48 } },
	{ "wide", { 16, 32 } },
};
#define NETS ARRAY_SIZE(nets)

struct suggest {
	enum suggest_kind kind;
	struct sl_seed seed;
	u32 count;
	u64 left_out;			/* descriptors of groups beyond GROUPS_MAX */
	struct group group[GROUPS_MAX]; /* of packets first those of `nets` */
	bool apart[ARRAY_SIZE(nets)];	/* a network of this size is */
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
	for (u32 i = 0; kind != SUGGEST_REQUESTS && i < NETS; i++)
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
		     u64 weight, u64 second)
{
	for (u32 i = 0; i < NETS; i++) {
		u8 len = nets[i].len[family & 1];
		struct sl_addr net = sl_addr_mask(source, len);
		struct peaks_entry *entry;
		struct sl_sip sip;

		sl_sip_start(&sip, suggest->seed);
		sl_sip_add(&sip, net.hi);
		sl_sip_add(&sip, net.lo ^ family);
		entry = peaks_note(&suggest->group[i].peaks, sl_sip_finish(&sip), packets, second);
		if (!entry)
			continue;
		entry->subject = (struct sl_prefix){ net, family, len };
		entry->weight += weight;
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

void suggest_request(struct suggest *suggest, const struct request *request, u64 utc_ns)
{
	for (u32 i = 0; i < request->count; i++) {
		const struct request_descriptor *descriptor = &request->descriptor[i];
		struct group *group;
		u64 hash;
		char name[128];

		if (descriptor->refund || !descriptor->count)
			continue;
		group = name_of(request, descriptor, name, sizeof(name)) ? group_of(suggest, name)
									 : NULL;
		if (!group) {
			suggest->left_out++;
			continue;
		}
		hash = 0;
		for (u32 k = 0; k < descriptor->count; k++)
			hash = hash_bytes(suggest->seed, hash, descriptor->entry[k].value.at,
					  descriptor->entry[k].value.len);
		peaks_note(&group->peaks, hash, descriptor->hits, utc_ns / MINUTE_NS);
	}
}

/* "api/user/path" as "api user,path"; a rule of values, "api/user=bob", keeps its name, and gets no
 * YAML. */
static void group_of_rule(const char *rule, char *buf, size_t size)
{
	char *c;

	snprintf(buf, size, "%s", rule);
	if (strspn(buf, NAME_CHARS "/") < strlen(buf) || strpbrk(buf, " ,") ||
	    !(c = strchr(buf, '/')))
		return;
	*c = ' ';
	while ((c = strchr(c, '/')))
		*c = ',';
}

void suggest_user(struct suggest *suggest, const char *rule, const char *value, u64 requests,
		  u64 number)
{
	struct group *group;
	char name[128];

	group_of_rule(rule, name, sizeof(name));
	group = group_of(suggest, name);
	if (!group) {
		suggest->left_out++;
		return;
	}
	peaks_note(&group->peaks, hash_bytes(suggest->seed, 0, value, strlen(value)), requests,
		   number);
}

/* ------------------------------------------------------------------ what is apart */

static int by_source(const void *pa, const void *pb)
{
	return sl_prefix_compare(&((const struct networks_row *)pa)->source,
				 &((const struct networks_row *)pb)->source);
}

/* Every source of the sample as a row; NULL: no memory. */
static struct networks_row *sources_of(const struct peaks *peaks)
{
	struct networks_row *row = calloc(peaks->count ? peaks->count : 1, sizeof(*row)), *at = row;

	for (struct peaks_entry *entry = NULL; row && (entry = peaks_next(peaks, entry)); at++)
		*at = (struct networks_row){ .source = entry->subject,
					     .amount = { entry->weight } };
	if (row)
		qsort(row, peaks->count, sizeof(*row), by_source);
	return row;
}

static bool overlap(const struct sl_prefix *a, const struct sl_prefix *b)
{
	return sl_prefix_contains(a, b) || sl_prefix_contains(b, a);
}

/* The group of `nets` whose subjects are of the network's size: its index. */
static u32 size_of(const struct network *network)
{
	u32 i = 0;

	while (i + 1 < NETS && network->prefix.len < nets[i].len[network->prefix.family & 1])
		i++;
	return i;
}

/* The heaviest subject of a group that none of the networks overlaps; 0: there is none. */
static u64 heaviest_other(const struct peaks *peaks, const struct network *network, size_t count)
{
	u64 most = 0;

	for (struct peaks_entry *entry = NULL; (entry = peaks_next(peaks, entry));) {
		size_t i = 0;

		while (i < count && !overlap(&network[i].prefix, &entry->subject))
			i++;
		if (i == count && entry->weight > most)
			most = entry->weight;
	}
	return most;
}

/* Marks the subjects of a network that is apart. */
static void set_apart(struct suggest *suggest, const struct network *network, u64 sources)
{
	u32 size = size_of(network);
	bool one_by_one = size > 0 && sources < APART_SOURCES;

	suggest->apart[size] = true;
	for (u32 i = one_by_one ? size : 0; i < NETS; i++)
		for (struct peaks_entry *entry = NULL;
		     (entry = peaks_next(&suggest->group[i].peaks, entry));)
			entry->apart |= overlap(&network->prefix, &entry->subject);
}

/* The networks that are apart, as JSON; NULL: no memory. */
static json_t *find_apart(struct suggest *suggest)
{
	const struct peaks *peaks = &suggest->group[0].peaks;
	struct networks_row *row = sources_of(peaks);
	struct network network[NETWORKS_MAX];
	size_t count = row ? networks_find(row, peaks->count, network) : 0;
	json_t *list = row ? json_array() : NULL;
	char text[SL_PREFIX_TEXT];
	u64 total = 0;

	for (size_t i = 0; row && i < peaks->count; i++)
		total += row[i].amount[0];
	for (size_t i = 0; i < count; i++) {
		u64 sources = (u64)network[i].sources << peaks->halvings;
		u64 other =
			heaviest_other(&suggest->group[size_of(&network[i])].peaks, network, count);

		if (other ? network[i].amount[0] / APART_TIMES < other : sources < APART_SOURCES)
			continue;
		set_apart(suggest, &network[i], sources);
		json_array_append_new(
			list, json_pack("{s:s, s:o, s:f}", "source",
					sl_prefix_format(&network[i].prefix, text, sizeof(text)),
					"sources", json_u64(sources), "share",
					(double)network[i].amount[0] / (double)total));
		if (other)
			json_object_set_new(json_array_get(list, json_array_size(list) - 1),
					    "times", json_u64(network[i].amount[0] / other));
	}
	free(row);
	return list;
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
	fprintf(out,
		"  - name: suggested-%s\n    prefix: {ipv4: %u, ipv6: %u}\n    rate: %llu packets/s\n"
		"    burst: %llu\n    mode: shadow\n",
		nets[i].name, nets[i].len[SL_V4], nets[i].len[SL_V6], rate,
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
static void write_rules(const struct suggest *suggest, const u64 *rate, const char *path,
			int indent, FILE *out)
{
	struct bytes key, other;
	char below[160];

	fprintf(out, "%*sdescriptors:\n", indent, "");
	for (u32 i = 0; i < suggest->count; i++) {
		bool again = false, deeper = false;

		if (!rate[i] || !next_key(&suggest->group[i], path, &key))
			continue;
		for (u32 k = 0; k < i; k++)
			again |= rate[k] && next_key(&suggest->group[k], path, &other) &&
				 bytes_same(other, key);
		if (again)
			continue;
		fprintf(out, "%*s- key: %.*s\n", indent + 2, "", (int)key.len, key.at);
		snprintf(below, sizeof(below), "%s%.*s", path, (int)key.len, key.at);
		for (u32 k = i; k < suggest->count; k++) {
			if (rate[k] && !strcmp(suggest->group[k].name, below))
				fprintf(out,
					"%*srate_limit: {unit: minute, requests_per_unit: %llu}\n"
					"%*sshadow_mode: true\n",
					indent + 4, "", rate[k], indent + 4, "");
			deeper |= rate[k] &&
				  !strncmp(suggest->group[k].name, below, strlen(below)) &&
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
			again |= rate[k] &&
				 !strncmp(suggest->group[k].name, suggest->group[i].name, len);
		if (again || !rate[i])
			continue;
		snprintf(path, sizeof(path), "%.*s", len, suggest->group[i].name);
		fprintf(out, "domain: %.*s\n", len - 1, path);
		write_rules(suggest, rate, path, 0, out);
	}
}

static json_t *group_to_json(const struct group *group, u32 permille, u64 *ret_rate)
{
	struct peaks_quantiles q, others;
	json_t *json;

	if (peaks_quantiles(&group->peaks, false, &others))
		return NULL;
	*ret_rate = rounded_up(peaks_at(&others, permille / 1000.0));
	free(others.peak);
	if (peaks_quantiles(&group->peaks, true, &q))
		return NULL;
	json = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "group", group->name,
			 "unit", group->requests ? "requests/m" : "packets/s", "subjects",
			 json_u64(q.subjects), "sampled", json_u64(q.sampled), "p50",
			 json_u64(peaks_at(&q, 0.5)), "p90", json_u64(peaks_at(&q, 0.1)), "p99",
			 json_u64(peaks_at(&q, 0.01)), "p999", json_u64(peaks_at(&q, 0.001)),
			 "most", json_u64(peaks_at(&q, 0)), "rate", json_u64(*ret_rate));
	if (*ret_rate)
		json_object_set_new(json, "touched", json_real(peaks_above(&q, *ret_rate)));
	if (q.error > 0)
		json_object_set_new(json, "error", json_real(q.error));
	free(q.peak);
	return json;
}

/* The widest networks need a limit of their own only against one that is apart. */
static bool is_wanted(const struct suggest *suggest, u32 i)
{
	return suggest->group[i].requests || suggest->kind == SUGGEST_REQUESTS || i + 1 < NETS ||
	       suggest->apart[i];
}

json_t *suggest_report(struct suggest *suggest, u32 permille)
{
	json_t *groups = json_array(),
	       *apart = suggest->kind == SUGGEST_REQUESTS ? NULL : find_apart(suggest);
	json_t *json = NULL;
	u64 rate[GROUPS_MAX] = { 0 }, of_rules[GROUPS_MAX] = { 0 };
	char *yaml = NULL, *rules = NULL;
	size_t size, rules_size;
	FILE *out = open_memstream(&yaml, &size), *rules_out = open_memstream(&rules, &rules_size);

	for (u32 i = 0; i < suggest->count; i++) {
		json_t *group = group_to_json(&suggest->group[i], permille, &rate[i]);

		if (group && suggest->group[i].peaks.count && is_wanted(suggest, i))
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
	/* A network as a whole that sends no more than one source needs no limit, unless one is
	 * apart. */
	for (u32 i = 0; out && suggest->kind != SUGGEST_REQUESTS && i < NETS; i++)
		if (rate[i] && is_wanted(suggest, i) &&
		    (!i || rate[i] > rate[i - 1] || suggest->apart[i]))
			write_packets(suggest, i, rate[i], out);
	if (out && !fclose(out))
		json = json_pack("{s:b, s:O, s:s, s:f, s:o}", "ok", 1, "groups", groups, "yaml",
				 yaml, "share", permille / 1000.0, "left_out",
				 json_u64(suggest->left_out));
	if (json && json_array_size(apart))
		json_object_set(json, "apart", apart);
	if (json && suggest->kind == SUGGEST_LIVE && rules && rules[0])
		json_object_set_new(json, "rules", json_string(rules));
	json_decref(groups);
	json_decref(apart);
	free(yaml);
	free(rules);
	return json;
}

/* ------------------------------------------------------------------ into a configuration */

static int put_limits(struct policy *policy, const char *yaml, struct sl_err *err)
{
	char name[SL_NAME_MAX];

	for (u32 i = 0; i < NETS; i++) {
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
		return sl_err_set(
			err, EINVAL,
			"there is no limit of packets to write; rules are put into a file of "
			"http.rules by hand");
	r = config_text_read(path, true, &text, &size, err);
	if (!r)
		r = policy_parse(path, text, size, &policy, err);
	if (!r)
		r = put_limits(policy, yaml, err);
	if (!r)
		r = policy_write_into(policy, path, text, size, &changed, &changed_size, &whole,
				      err);
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
