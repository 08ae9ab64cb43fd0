// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* check_keys.c - `help --keys`: the keys of sluice.yaml and of rule files, for scripts/keys.py to put into documents. */
#include "cli/cli.h"
#include "conf/document.h"
#include "config/keys.h"
#include "request/rules/rule_keys.h"

void cli_write_keys(FILE *out)
{
	static const struct {
		const char *name;
		const struct keys *keys;
	} tables[] = {
		{ "policy", &policy_keys }, { "http", &http_def_keys }, { "limit", &limit_def_keys },
		{ "cluster", &cluster_def_keys }, { "redis", &redis_keys },
		{ "listen", &listen_keys }, { "descriptor", &descriptor_keys },
		{ "rate_limit", &rate_limit_keys }, { "rule_limit", &rule_limit_keys },
	};
	static const struct {
		const char *name;
		void (*write)(FILE *out, const struct keys *keys);
	} styles[] = {
		{ "table", document_table }, { "list", document_list }, { "mdoc", document_mdoc },
	};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(styles); k++) {
			fprintf(out, "@%s:%s\n", styles[k].name, tables[i].name);
			styles[k].write(out, tables[i].keys);
		}
	}
}
