// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * differences.c - see differences.h. The message: {"digest": "16 hexadecimal digits", "all": true,
 * "list": [["limit web", "16 hexadecimal digits", "100 packets/s"], ...]}; "all": the list is
 * complete.
 */
#include "control/replication/differences.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config_text.h"
#include "control/replication/resets.h"
#include "lib/clock.h"
#include "lib/hash.h"
#include "lib/json.h"
#include "request/rules/rule.h"

#define KIND "rules"
#define EVERY_TICKS 10 /* seconds */
#define VALID_NS (3 * EVERY_TICKS * SL_NS_PER_SEC)
#define LIST_BYTES 49152 /* of a message, which has 64 KiB */
#define LIST_OVERHEAD 40 /* digest, quotes and commas of an element */
#define NODES_MAX 1024	 /* as in cluster/bus/bus_peers.h */
#define NAME_BYTES_MAX 512
#define RATE_BYTES 48
#define WHAT_BYTES 512

/* The same on every node: digests are compared. Nothing is secret or has to resist an attacker. */
static const struct sl_seed seed = { 0x72756c65732d6f66, 0x2d616c6c2d6e6f64 };

/* A limit or a rule of this node. */
struct item {
	char *name; /* "limit web", "rule api/user" */
	char rate[RATE_BYTES];
	u64 digest;
	u32 seen; /* the number of the message that has it */
};

struct peer {
	char node[CLUSTER_NODE_MAX + 1];
	u64 digest, received_ns;
	u64 since_utc_ns; /* 0: it does not differ */
	u32 count;
	char what[WHAT_BYTES];
};

struct differences {
	struct event *timer;
	struct item *item; /* in order of their names */
	u32 item_count;
	u64 digest;
	u64 generation, rules_generation; /* that the items are of */
	bool listed;			  /* the items were made once */
	u32 ticks, messages;
	bool due;	   /* to be published with the next tick */
	struct peer *peer; /* NODES_MAX */
	u32 peer_count;
};

/* ------------------------------------------------------------------ what is in force here */

static void items_free(struct differences *s)
{
	for (u32 i = 0; i < s->item_count; i++)
		free(s->item[i].name);
	free(s->item);
	s->item = NULL;
	s->item_count = 0;
}

static u64 digest_number(u64 digest, u64 number)
{
	return hash_bytes(seed, digest, &number, sizeof(number));
}

/* Overrides of files and commands, by their values. */
static u64 digest_overrides(const struct limit_def *limit, u64 digest)
{
	for (size_t i = 0; i < limit->override_count; i++) {
		const struct override_def *o = &limit->override[i];
		const struct rates *rates = &limit->override_rates[o->rates];

		if (o->derived || o->removed)
			continue;
		digest = digest_number(digest, (u64)o->src.family << 8 | o->src.len);
		digest = digest_number(digest_number(digest, o->src.addr.hi), o->src.addr.lo);
		for (u32 k = 0; k < rates->count; k++) {
			digest = digest_number(digest, rates->rate[k].count);
			digest = digest_number(digest, rates->rate[k].period_ns);
			digest = digest_number(digest, rates->rate[k].unit);
			digest = digest_number(digest, rates->burst[k]);
		}
	}
	return digest;
}

/* The digest is that of the text which `write` writes of the limit or rule. */
static int add_item(struct differences *s, const char *kind, const char *name,
		    void (*write)(const void *of, FILE *out), const void *of, struct item **ret)
{
	struct item *item = &s->item[s->item_count];
	size_t size = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return -ENOMEM;
	write(of, out);
	r = fclose(out) ? -ENOMEM : 0;
	*item = (struct item){ 0 };
	if (!r && asprintf(&item->name, "%s %s", kind, name) < 0)
		r = -ENOMEM;
	if (!r) {
		item->digest = hash_bytes(seed, 0, text, size);
		s->item_count++;
		*ret = item;
	}
	free(text);
	return r;
}

static void write_limit(const void *of, FILE *out)
{
	struct limit_def bare = *(const struct limit_def *)of;

	bare.override = NULL;
	bare.override_count = 0;
	bare.overrides_file = NULL;
	limit_write(&bare, out, 0);
}

static int add_limit(struct differences *s, const struct limit_def *limit)
{
	struct item *item;
	int r = add_item(s, "limit", limit->name, write_limit, limit, &item);

	if (r)
		return r;
	item->digest = digest_overrides(limit, item->digest);
	if (limit->terms.rates.count)
		rate_format(&limit->terms.rates.rate[0], item->rate, sizeof(item->rate));
	return 0;
}

static void write_rule(const void *of, FILE *out)
{
	rule_write(of, out, 0);
}

static int add_rule(struct differences *s, const struct rule *rule)
{
	char name[NAME_BYTES_MAX];
	struct item *item;
	int r;

	snprintf(name, sizeof(name), "%s/%s", rule->domain, rule->path);
	r = add_item(s, "rule", name, write_rule, rule, &item);
	if (!r && rule->limit_count)
		rate_format(&rule->limit[0].terms.rates.rate[0], item->rate, sizeof(item->rate));
	return r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);
}

static int list_items(struct differences *s, const struct policy *policy,
		      const struct ruleset *rules)
{
	size_t room = policy->limit_count + (rules ? rules->rule_count : 0);
	int r = 0;

	items_free(s);
	s->item = calloc(room + 1, sizeof(*s->item));
	if (!s->item)
		return -ENOMEM;
	for (size_t i = 0; i < policy->limit_count && !r; i++)
		r = add_limit(s, &policy->limit[i]);
	for (u32 i = 0; rules && i < rules->rule_count && !r; i++)
		r = add_rule(s, rules->rule[i]);
	if (r)
		return r;
	qsort(s->item, s->item_count, sizeof(*s->item), by_name);
	s->digest = digest_number(0, s->item_count);
	for (u32 i = 0; i < s->item_count; i++) {
		s->digest = hash_bytes(seed, s->digest, s->item[i].name, strlen(s->item[i].name));
		s->digest = digest_number(s->digest, s->item[i].digest);
	}
	return 0;
}

/* ------------------------------------------------------------------ other nodes */

static struct peer *peer_find(const struct differences *s, const char *node)
{
	for (u32 i = 0; i < s->peer_count; i++)
		if (!strcmp(s->peer[i].node, node))
			return &s->peer[i];
	return NULL;
}

/* A new node takes the place of the one that has been silent longest, if there is no other. */
static struct peer *peer_claim(struct differences *s, const char *node)
{
	struct peer *peer = peer_find(s, node), *oldest = s->peer;

	if (peer)
		return peer;
	if (s->peer_count < NODES_MAX)
		oldest = &s->peer[s->peer_count++];
	else
		for (u32 i = 1; i < s->peer_count; i++)
			if (s->peer[i].received_ns < oldest->received_ns)
				oldest = &s->peer[i];
	*oldest = (struct peer){ 0 };
	snprintf(oldest->node, sizeof(oldest->node), "%s", node);
	return oldest;
}

/* Compares the peer's digest with this node's, and notes when a difference begins or ends. */
static void peer_compare(const struct differences *s, struct peer *peer)
{
	if (peer->digest == s->digest) {
		peer->since_utc_ns = peer->count = 0;
		peer->what[0] = '\0';
	} else if (!peer->since_utc_ns) {
		peer->since_utc_ns = clock_utc_ns();
	}
}

__attribute__((format(printf, 2, 3))) static void note(struct peer *peer, const char *format, ...)
{
	size_t before = strlen(peer->what), len = before, room;
	va_list args;
	int wrote;

	peer->count++;
	if (len && len + 2 < sizeof(peer->what))
		len += (size_t)snprintf(peer->what + len, 3, "; ");
	room = sizeof(peer->what) - len;
	va_start(args, format);
	wrote = vsnprintf(peer->what + len, room, format, args);
	va_end(args);
	/* What has no room is only counted. */
	if (wrote < 0 || (size_t)wrote >= room)
		peer->what[before] = '\0';
}

/* Returns a text that another node sent. It is shown and logged, so it must be printable; else
 * NULL. */
static const char *text_at(const json_t *element, size_t i, size_t most)
{
	const json_t *value = json_array_get(element, i);
	const char *text = json_string_value(value);
	size_t len = json_string_length(value);

	return text && len < most && strlen(text) == len && config_text_printable(text, len) ? text
											     : NULL;
}

static void compare_element(struct differences *s, struct peer *peer, const json_t *element)
{
	const char *name = text_at(element, 0, NAME_BYTES_MAX + 8),
		   *digits = text_at(element, 1, 17), *rate = text_at(element, 2, RATE_BYTES);
	struct item key = { .name = (char *)name }, *own;
	u64 digest;

	if (!name || !rate || !reset_key_read(digits, &digest))
		return;
	own = s->item_count ? bsearch(&key, s->item, s->item_count, sizeof(key), by_name) : NULL;
	if (!own) {
		note(peer, "%s: there alone", name);
		return;
	}
	own->seen = s->messages;
	if (own->digest == digest)
		return;
	if (strcmp(own->rate, rate))
		note(peer, "%s: %s here, %s there", name, own->rate, rate);
	else
		note(peer, "%s", name);
}

static void on_rules(void *arg, const struct cluster_message *message)
{
	const json_t *list = json_object_get(message->body, "list"), *element;
	const char *digits = json_string_value(json_object_get(message->body, "digest"));
	struct nodes *nodes = arg;
	struct differences *s = nodes->differences;
	struct peer *peer;
	u64 digest;
	size_t i;

	if (!s->listed || strlen(message->node) > CLUSTER_NODE_MAX ||
	    !reset_key_read(digits, &digest))
		return;
	peer = peer_claim(s, message->node);
	/* It has to learn what differs, too: its list came with its change, this node's did not. */
	s->due |= peer->digest != digest && digest != s->digest;
	peer->digest = digest;
	peer->received_ns = clock_mono_ns();
	peer_compare(s, peer);
	if (!peer->since_utc_ns || !json_is_array(list))
		return;
	peer->count = 0;
	peer->what[0] = '\0';
	s->messages++;
	json_array_foreach(list, i, element)
		compare_element(s, peer, element);
	for (u32 k = 0; k < s->item_count && json_is_true(json_object_get(message->body, "all"));
	     k++)
		if (s->item[k].seen != s->messages)
			note(peer, "%s: here alone", s->item[k].name);
}

/* ------------------------------------------------------------------ publishing */

static bool any_differs(const struct differences *s)
{
	for (u32 i = 0; i < s->peer_count; i++)
		if (s->peer[i].since_utc_ns)
			return true;
	return false;
}

static void publish(struct nodes *nodes, bool list)
{
	struct differences *s = nodes->differences;
	json_t *body = json_object(), *elements = list ? json_array() : NULL;
	size_t bytes = 0;
	bool all = true;

	for (u32 i = 0; elements && i < s->item_count; i++) {
		const struct item *item = &s->item[i];

		bytes += strlen(item->name) + strlen(item->rate) + LIST_OVERHEAD;
		all = bytes <= LIST_BYTES;
		if (!all)
			break;
		json_array_append_new(elements,
				      json_pack("[s, o, s]", item->name,
						json_sprintf("%016llx", item->digest), item->rate));
	}
	json_object_set_new(body, "digest", json_sprintf("%016llx", s->digest));
	if (elements) {
		json_object_set_new(body, "list", elements);
		json_object_set_new(body, "all", json_boolean(all));
	}
	cluster_send(nodes->cluster, KIND, body, VALID_NS);
}

/* Returns whether other limits or rules are in force than before. */
static bool look(struct nodes *nodes)
{
	const struct running *running = nodes->running;
	const struct ruleset *rules = running->requests.rules;
	struct differences *s = nodes->differences;
	u64 before = s->digest;

	if (s->listed && s->generation == running->generation &&
	    s->rules_generation == (rules ? rules->generation : 0))
		return false;
	if (list_items(s, running->policy, rules) < 0)
		return false;
	s->generation = running->generation;
	s->rules_generation = rules ? rules->generation : 0;
	s->listed = true;
	for (u32 i = 0; i < s->peer_count && s->digest != before; i++)
		peer_compare(s, &s->peer[i]);
	return s->digest != before;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct nodes *nodes = arg;
	struct differences *s = nodes->differences;
	bool changed = look(nodes);

	if (!s->listed || !(changed || s->due || ++s->ticks >= EVERY_TICKS))
		return;
	publish(nodes, changed || s->due || any_differs(s));
	s->due = false;
	s->ticks = 0;
}

static void on_joined(void *arg, const char *node)
{
	struct nodes *nodes = arg;

	nodes->differences->due = true;
}

/* ------------------------------------------------------------------ lookups, start and end */

json_t *differences_to_json(const struct nodes *nodes, const char *node)
{
	const struct peer *peer = nodes->differences ? peer_find(nodes->differences, node) : NULL;

	if (!peer || !peer->since_utc_ns)
		return json_null();
	return json_pack("{s:o, s:i, s:s}", "since", json_utc(peer->since_utc_ns), "count",
			 (int)peer->count, "what",
			 *peer->what ? peer->what : "which is not known yet");
}

int differences_start(struct nodes *nodes, struct sl_err *err)
{
	const struct timeval second = { .tv_sec = 1 };
	struct differences *s = nodes->differences = calloc(1, sizeof(*s));

	if (s) {
		s->peer = calloc(NODES_MAX, sizeof(*s->peer));
		s->timer = event_new(nodes->base, -1, EV_PERSIST, on_tick, nodes);
	}
	if (!s || !s->peer || !s->timer || event_add(s->timer, &second) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	cluster_on(nodes->cluster, KIND, on_rules, nodes);
	cluster_on_join(nodes->cluster, on_joined, nodes);
	return 0;
}

void differences_close(struct nodes *nodes)
{
	struct differences *s = nodes->differences;

	if (!s)
		return;
	if (s->timer)
		event_free(s->timer);
	items_free(s);
	free(s->peer);
	free(s);
	nodes->differences = NULL;
}
