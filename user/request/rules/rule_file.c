// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_file.c - a rule file: its domain, the rule that every request of it meets, the rule of
 * descriptors that match no other, and its descriptors.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "request/rules/rule_private.h"

const char *const rule_place_names[] = {
	[RULE_OF_DOMAIN] = "domain",
	[RULE_DEFAULT] = "default",
};

static int name_domain(struct reader *r, const char *text, const struct key *key, void *into)
{
	const struct seen *first;
	struct build *b = into;

	if (strlen(text) > REQUEST_DOMAIN_MAX)
		return text_refuse(r, "up to 255 bytes");
	if (note_seen(b, 0, text, r->at->line, &first))
		return read_no_memory(r);
	if (first)
		return refuse_again(b, r->at, "the domain", first);
	b->domain = arena_text(build_arena(b), text, strlen(text));
	if (!b->domain || append(b->set->domain, b->set->domain_count, (char *)b->domain))
		return read_no_memory(r);
	return match_add_domain(b->set, b->domain, &b->above) ? read_no_memory(r) : 0;
}

static const struct key domain_name = {
	.text = name_domain,
	.accepted = "the name of a domain, as api",
};

const struct yaml_node *rule_file_domain(const struct yaml_node *node)
{
	const struct yaml_node *name = node->kind == YAML_MAP ? yaml_node_find(node, "name") : NULL;

	return name ? name->value : node;
}

static int key_domain(struct reader *r, const struct yaml_node *node, void *into)
{
	int rc = node->kind == YAML_MAP ? read_require(r, node, "name") : 0;

	return rc ? rc : key_read(r, rule_file_domain(node), &domain_name, into);
}

/* Read once the domain is known. */
static int key_default(struct reader *r, const struct yaml_node *node, void *into)
{
	return node->kind == YAML_MAP
		       ? 0
		       : read_refuse(r, node, "a mapping, as {limits: 10 requests/m}");
}

static const struct key file_keys[] = {
	{ "domain", .read = key_domain },
	{ "default", .read = key_default },
	{ "descriptors", .read = read_rule_descriptors },
};

int rule_read_file(struct build *b, const struct yaml_node *root)
{
	const struct yaml_node *domain, *usual, *list;
	int rc = read_map(&b->r, root, file_keys, ARRAY_SIZE(file_keys), b);

	if (!rc)
		rc = read_require(&b->r, root, "domain");
	if (rc)
		return rc;
	domain = yaml_node_find(root, "domain")->value;
	usual = yaml_node_find(root, "default");
	list = yaml_node_find(root, "descriptors");
	if (domain->kind == YAML_MAP)
		rc = read_rule_placed(b, domain, RULE_OF_DOMAIN);
	if (!rc && usual)
		rc = read_rule_placed(b, usual->value, RULE_DEFAULT);
	if (!rc && list)
		rc = read_rule_children(b, list->value);
	return rc;
}
