// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * check_keys.c - the keys of sluice.yaml and of rule files: `help --keys`, from which
 * scripts/keys.py makes the tables of documents, and those of KEY=VALUE, for --help and completion.
 */
#include "cli/cli.h"

#include <string.h>

#include "conf/document.h"
#include "config/keys.h"
#include "request/rules/rule_keys.h"

void cli_write_keys(FILE *out)
{
	static const struct {
		const char *name;
		const struct keys *keys;
	} tables[] = {
		{ "policy", &policy_keys },	    { "http", &http_def_keys },
		{ "limit", &limit_def_keys },	    { "cluster", &cluster_def_keys },
		{ "redis", &redis_keys },	    { "load_signal", &load_signal_keys },
		{ "listen", &listen_keys },	    { "descriptor", &descriptor_keys },
		{ "rate_limit", &rate_limit_keys }, { "rule_limit", &rule_limit_keys },
	};
	static const struct {
		const char *name;
		void (*write)(FILE *out, const struct keys *keys);
	} styles[] = {
		{ "list", document_list },
		{ "mdoc", document_mdoc },
	};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(styles); k++) {
			fprintf(out, "@%s:%s\n", styles[k].name, tables[i].name);
			styles[k].write(out, tables[i].keys);
		}
	}
}

/* The keys that a pair cannot change: what identifies the limit or rule, and what is nested in
 * it. */
static const char *const not_in_pairs[] = {
	"name", "overrides", "overrides_file", "key", "value", "descriptors",
};
static const char *const override_pairs[] = { "rate", "burst" };

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

const char *cli_pair_keys(const char *command, const char *after)
{
	static char text[1024];
	const struct keys *keys = !strcmp(command, "rule set") ? &descriptor_keys : &limit_def_keys;
	bool is_override = !strcmp(command, "override set");
	size_t used = 0;

	if (!is_override && strcmp(command, "rule set") != 0 && strcmp(command, "limit set") != 0)
		return NULL;
	for (size_t i = 0; i < keys->count; i++) {
		const struct key *key = &keys->key[i];

		if (is_override ? !is_one_of(key->name, override_pairs, ARRAY_SIZE(override_pairs))
				: is_one_of(key->name, not_in_pairs, ARRAY_SIZE(not_in_pairs)))
			continue;
		used += (size_t)snprintf(text + used, used < sizeof(text) ? sizeof(text) - used : 0,
					 "%s%s%s", used ? " " : "", key->name, after);
	}
	return text;
}
