// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_match.c - finds the rule of a request's descriptor.
 *
 * Level by level, without backtracking: at each one the exact value comes first, then those that
 * ignore something (a node's value is without it, and what is looked up, too), then the smallest
 * network that an address is in, then patterns in the order of the file, then the bare key; a limit
 * counts only if the request's descriptor ends at it. This is envoyproxy/ratelimit's documented
 * order; but keys and values are distinct here (there "a_b" may be key "a" with value "b", or a
 * bare key: a client that chooses a value could choose the descriptor).
 *
 * A level costs one hash of its key if there are more than a few, and one of its value only if
 * there are exact values and it is no longer than the longest of them; patterns are tried one by
 * one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/publish.h"
#include "request/rules/request_text.h"
#include "request/rules/rule_private.h"

/* ---- hashing ---- */

static void index_put(struct index *index, u64 hash, void *item)
{
	u32 at = hash;

	while (index->slot[at & (index->size - 1)].item)
		at++;
	index->slot[at & (index->size - 1)] = (struct index_slot){ hash, item };
}

int index_add(struct index *index, u64 hash, void *item)
{
	struct index old = *index;

	if (2 * (index->count + 1) > index->size) {
		index->size = old.size ? 2 * old.size : 64;
		index->slot = calloc(index->size, sizeof(*index->slot));
		if (!index->slot) {
			*index = old;
			return -ENOMEM;
		}
		for (u32 i = 0; i < old.size; i++)
			if (old.slot[i].item)
				index_put(index, old.slot[i].hash, old.slot[i].item);
		free(old.slot);
	}
	index_put(index, hash, item);
	index->count++;
	return 0;
}

void index_free(struct index *index)
{
	free(index->slot);
	memset(index, 0, sizeof(*index));
}

/* ---- trees ---- */

/* So many domains, or keys of a level, are compared one by one: that takes less than a hash. */
#define FEW 4

enum {
	ABOVE_DOMAIN = 1,
	ABOVE_GROUP,
	ABOVE_VALUE,
	ABOVE_NET
}; /* what a hash is of, and below what */

static u64 hash_of(u32 what, u32 id, struct bytes text)
{
	return hash_bytes(hash_seed(), (u64)id << 8 | what, text.at, text.len);
}

static struct match_node *find_domain(const struct match_trees *trees, struct bytes domain)
{
	struct match_node *node;
	u64 hash;
	u32 at;

	if (trees->root_count <= FEW) {
		for (node = trees->roots; node && !bytes_same(node->domain, domain);)
			node = node->next;
		return node;
	}
	hash = hash_of(ABOVE_DOMAIN, 0, domain);
	at = hash;
	while ((node = index_next(&trees->index, hash, &at)))
		if (bytes_same(node->domain, domain))
			break;
	return node;
}

static struct match_group *find_group(const struct match_trees *trees,
				      const struct match_node *above, struct bytes key)
{
	struct match_group *group;
	u64 hash;
	u32 at;

	if (above->group_count <= FEW) {
		for (group = above->groups; group && !bytes_same(group->key, key);)
			group = group->next;
		return group;
	}
	hash = hash_of(ABOVE_GROUP, above->id, key);
	at = hash;
	while ((group = index_next(&trees->index, hash, &at)))
		if (group->above == above && bytes_same(group->key, key))
			break;
	return group;
}

static struct match_node *find_value(const struct match_trees *trees,
				     const struct match_group *group, struct bytes value,
				     u32 ignore)
{
	u64 hash = hash_of(ABOVE_VALUE | ignore << 4, group->id, value);
	struct match_node *node;
	u32 at = hash;

	while ((node = index_next(&trees->index, hash, &at)))
		if (node->group == group && node->ignore == ignore &&
		    bytes_same(node->value, value))
			break;
	return node;
}

/*
 * A value without what is ignored, then in a buffer of the thread, until the next call. Of one that
 * is longer than any in a rule the beginning.
 */
static struct bytes fold(struct bytes value, u32 ignore)
{
	static __thread char text[REQUEST_VALUE_MAX];

	if (!ignore)
		return value;
	if (value.len > sizeof(text))
		value.len = sizeof(text);
	return (struct bytes){ text, value_fold(value, ignore, text) };
}

struct bytes rule_value(const struct rule *rule, u32 i, struct bytes value)
{
	return fold(value, i < rule->depth ? rule->entry[i].ignore : 0);
}

struct bytes match_folded(struct arena *arena, struct bytes value, u32 ignore)
{
	char *text = arena_text(arena, value.at, value.len);

	if (text)
		text[value.len = value_fold(value, ignore, text)] = '\0';
	return (struct bytes){ text, value.len };
}

/* An exact value, then those that ignore something. */
static struct match_node *find_exact(const struct match_trees *trees,
				     const struct match_group *group, struct bytes value)
{
	struct match_node *node = NULL;

	for (u32 left = group->exact_ignores; left && !node; left &= left - 1) {
		u32 ignore = __builtin_ctz(left);
		struct bytes text = fold(value, ignore);

		if (text.len <= group->value_max)
			node = find_value(trees, group, text, ignore);
	}
	return node;
}

int value_network(struct bytes value, struct sl_prefix *ret, const char **ret_reason)
{
	const char *slash = memchr(value.at, '/', value.len);
	char text[SL_PREFIX_TEXT];
	struct sl_prefix ignored;

	if (!slash)
		return request_source_parse(value, ret) ? 0 : -ENOENT;
	if (value.len >= sizeof(text) ||
	    !request_source_parse((struct bytes){ value.at, slash - value.at }, &ignored))
		return -ENOENT;
	memcpy(text, value.at, value.len);
	text[value.len] = 0;
	return sl_prefix_parse(text, ret, ret_reason);
}

static struct match_node *find_net(const struct match_trees *trees, const struct match_group *group,
				   const struct sl_prefix *prefix)
{
	u64 hash = hash_of(ABOVE_NET, group->id, BYTES_OF("")) ^ sl_prefix_hash(prefix);
	struct match_net *net;
	u32 at = hash;

	while ((net = index_next(&trees->index, hash, &at)))
		if (net->group == group && sl_prefix_equal(&net->prefix, prefix))
			return net->node;
	return NULL;
}

/* The value of the smallest network that an address is in. */
static struct match_node *find_net_of(const struct match_trees *trees,
				      const struct match_group *group, struct bytes value)
{
	struct match_node *node = NULL;
	struct sl_prefix prefix;
	int len;

	if (!request_source_parse(value, &prefix))
		return NULL;
	for (len = prefix.len; !node; len--) {
		len = net_lengths_longest(&group->nets, prefix.family, len);
		if (len < 0)
			break;
		prefix.len = len;
		prefix.addr = sl_addr_mask(prefix.addr, len);
		node = find_net(trees, group, &prefix);
	}
	return node;
}

static int add_net(struct ruleset *set, struct match_group *group, const struct sl_prefix *prefix,
		   struct match_node *node)
{
	struct match_trees *trees = &set->private->trees;
	struct match_net *net;

	if (find_net(trees, group, prefix))
		return -EEXIST;
	net = arena_alloc(&set->private->arena, sizeof(*net));
	if (!net)
		return -ENOMEM;
	*net = (struct match_net){ group, *prefix, node };
	net_lengths_add(&group->nets, prefix->family, prefix->len);
	return index_add(&trees->index,
			 hash_of(ABOVE_NET, group->id, BYTES_OF("")) ^ sl_prefix_hash(prefix), net);
}

static bool match_is_glob(struct bytes text)
{
	return text.at && memchr(text.at, '*', text.len);
}

bool match_is_pattern(struct bytes value)
{
	struct sl_prefix net;
	const char *reason;

	return match_is_glob(value) || (value.at && memchr(value.at, '/', value.len) &&
					!value_network(value, &net, &reason));
}

static struct match_node *new_node(struct ruleset *set)
{
	struct match_node *node = arena_alloc(&set->private->arena, sizeof(*node));

	if (node)
		node->id = ++set->private->trees.ids;
	return node;
}

int match_add_domain(struct ruleset *set, const char *domain, struct match_node **ret)
{
	struct match_trees *trees = &set->private->trees;
	struct bytes name = { domain, strlen(domain) };

	*ret = find_domain(trees, name);
	if (*ret)
		return 0;
	*ret = new_node(set);
	if (!*ret)
		return -ENOMEM;
	(*ret)->domain = name;
	(*ret)->next = trees->roots;
	trees->roots = *ret;
	trees->root_count++;
	return index_add(&trees->index, hash_of(ABOVE_DOMAIN, 0, name), *ret);
}

/* The arena's arrays double: the abandoned copies take at most as much again. */
static int add_glob(struct ruleset *set, struct match_glob **array, u32 *count,
		    struct match_glob glob)
{
	struct match_glob *grown;

	if (!(*count & (*count - 1))) {
		grown = arena_alloc(&set->private->arena,
				    (*count ? 2 * (size_t)*count : 1) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		if (*count)
			memcpy(grown, *array, *count * sizeof(*grown));
		*array = grown;
	}
	(*array)[(*count)++] = glob;
	return 0;
}

static int add_group(struct ruleset *set, struct match_node *above, struct bytes key,
		     struct match_group **ret)
{
	struct match_trees *trees = &set->private->trees;
	struct match_group *group = find_group(trees, above, key);

	*ret = group;
	if (group)
		return 0;
	*ret = group = arena_alloc(&set->private->arena, sizeof(*group));
	if (!group)
		return -ENOMEM;
	group->above = above;
	group->key = key;
	group->id = ++trees->ids;
	group->next = above->groups;
	above->groups = group;
	above->group_count++;
	return index_add(&trees->index, hash_of(ABOVE_GROUP, above->id, key), group);
}

int match_add(struct ruleset *set, struct match_node *above, struct bytes key, struct bytes value,
	      u32 ignore, struct match_node **ret)
{
	struct match_trees *trees = &set->private->trees;
	struct match_node *node = new_node(set);
	struct match_glob glob = { .value = value, .order = trees->ids, .node = node };
	struct match_group *group;
	struct sl_prefix prefix;
	const char *reason;
	int rc = 0;

	*ret = node;

	if (!node)
		return -ENOMEM;
	if (value.at && ignore) {
		value = match_folded(&set->private->arena, value, ignore);
		if (!value.at)
			return -ENOMEM;
	}
	node->value = glob.value = value;
	node->ignore = ignore;
	if (match_is_glob(key)) {
		glob.key = key;
		return add_glob(set, &above->glob, &above->glob_count, glob);
	}
	if (add_group(set, above, key, &group))
		return -ENOMEM;
	if (!value.at) {
		group->bare = node;
		return 0;
	}
	if (match_is_glob(value))
		return add_glob(set, &group->glob, &group->glob_count, glob);
	if (find_value(trees, group, value, ignore))
		return -EEXIST;
	node->group = group;
	group->exact_ignores |= 1U << ignore;
	if (value.len > group->value_max)
		group->value_max = value.len;
	if (!value_network(value, &prefix, &reason))
		rc = add_net(set, group, &prefix, node);
	return rc ? rc
		  : index_add(&trees->index, hash_of(ABOVE_VALUE | ignore << 4, group->id, value),
			      node);
}

/* ---- matching ---- */

/*
 * '*' matches any bytes, also none. Text between two of them is searched as early as possible,
 * which finds a match if there is one: the time is that of a few memmem().
 */
static bool stars_match(struct bytes pattern, struct bytes text)
{
	const char *star = memchr(pattern.at, '*', pattern.len), *next;
	size_t len;

	if (!star)
		return bytes_same(pattern, text);
	len = star - pattern.at;
	if (text.len < len || memcmp(text.at, pattern.at, len))
		return false;
	for (;;) {
		text = (struct bytes){ text.at + len, text.len - len };
		pattern.len -= star + 1 - pattern.at;
		pattern.at = star + 1;
		next = memchr(pattern.at, '*', pattern.len);
		if (!next) /* the rest must end it */
			return text.len >= pattern.len &&
			       !memcmp(text.at + text.len - pattern.len, pattern.at, pattern.len);
		star = memmem(text.at, text.len, pattern.at, next - pattern.at);
		if (!star)
			return false;
		len = star - text.at + (next - pattern.at);
		star = next;
	}
}

/* "/foo" and all below it, but not "/foobar", match "/foo" and this. */
#define BELOW "/**"

static bool glob_matches(struct bytes pattern, struct bytes text)
{
	size_t len = pattern.len - strlen(BELOW);

	return stars_match(pattern, text) ||
	       (pattern.len >= strlen(BELOW) && !memcmp(pattern.at + len, BELOW, strlen(BELOW)) &&
		stars_match((struct bytes){ pattern.at, len }, text));
}

static const struct match_glob *find_glob(const struct match_glob *glob, u32 count,
					  const struct request_entry *entry)
{
	for (const struct match_glob *end = glob + count; glob < end; glob++)
		if ((!glob->key.at || glob_matches(glob->key, entry->key)) &&
		    (!glob->value.at ||
		     glob_matches(glob->value, fold(entry->value, glob->node->ignore))))
			return glob;
	return NULL;
}

static const struct match_node *next_node(const struct match_trees *trees,
					  const struct match_node *above,
					  const struct request_entry *entry)
{
	const struct match_glob *of_keys = NULL, *glob = NULL;
	const struct match_node *node = NULL;
	const struct match_group *group;

	if (!above->group_count && !above->glob_count)
		return NULL;
	group = find_group(trees, above, entry->key);
	if (group)
		node = find_exact(trees, group, entry->value);
	if (!node && group && group->nets.any)
		node = find_net_of(trees, group, entry->value);
	if (node)
		return node;
	if (group && group->glob_count)
		glob = find_glob(group->glob, group->glob_count, entry);
	if (above->glob_count)
		of_keys = find_glob(above->glob, above->glob_count, entry);
	if (of_keys && (!glob || of_keys->order < glob->order))
		glob = of_keys;
	if (glob)
		return glob->node;
	return group ? group->bare : NULL;
}

/* Keys are part of what a default rule counts by: they are not in its id. */
static void match_default(const struct rule *rule, const struct request_descriptor *descriptor,
			  struct rule_match *ret)
{
	ret->rule = rule;
	if (!rule || rule->share)
		return;
	ret->entry = descriptor->entry;
	ret->count = descriptor->count;
	for (u32 i = 0; i < descriptor->count; i++)
		ret->value[i] = descriptor->entry[i].value;
}

const struct match_node *ruleset_domain(const struct ruleset *set, struct bytes domain)
{
	return find_domain(&set->private->trees, domain);
}

void ruleset_match_in(const struct ruleset *set, const struct match_node *root,
		      const struct request_descriptor *descriptor, struct rule_match *ret)
{
	const struct match_trees *trees = &set->private->trees;
	const struct match_node *node = root;

	ret->rule = NULL;
	ret->count = 0;
	ret->entry = NULL;
	for (u32 i = 0; node && i < descriptor->count; i++) {
		const struct request_entry *entry = &descriptor->entry[i];

		node = next_node(trees, node, entry);
		if (node)
			ret->value[i] = node->share ? node->value : entry->value;
	}
	if (node && descriptor->count && !descriptor->beyond)
		ret->rule = publish_get(&node->rule);
	if (ret->rule)
		ret->count = descriptor->count;
	else if (root)
		match_default(publish_get(&root->by_default), descriptor, ret);
}

void ruleset_match(const struct ruleset *set, struct bytes domain,
		   const struct request_descriptor *descriptor, struct rule_match *ret)
{
	ruleset_match_in(set, ruleset_domain(set, domain), descriptor, ret);
}

const struct rule *ruleset_domain_rule(const struct match_node *root)
{
	return root ? publish_get(&root->of_domain) : NULL;
}

const struct rule *ruleset_of_domain(const struct ruleset *set, struct bytes domain)
{
	return ruleset_domain_rule(ruleset_domain(set, domain));
}
