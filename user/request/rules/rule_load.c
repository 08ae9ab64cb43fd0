// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rule_load.c - ruleset_load_path(): rules by a path, whatever stands there. For tools. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "conf/config_text.h"
#include "conf/tree.h"
#include "config/policy.h"
#include "request/rules/rule.h"

static bool is_rule_file(const char *text, size_t size)
{
	struct tree tree = { 0 };
	struct sl_err ignored;
	bool rules;

	if (tree_parse_deep("", text, size, &tree, &ignored))
		return false;
	rules = yaml_node_find(tree.root, "domain");
	tree_free(&tree);
	return rules;
}

static int load_configured(const char *path, const char *text, size_t size, struct ruleset **ret,
			   struct policy **ret_policy, struct sl_err *err)
{
	struct policy *policy;
	int r = policy_parse(path, text, size, &policy, err);

	if (r)
		return r;
	r = policy->http
		    ? ruleset_load(policy->http->rules_dir, NULL, ret, err)
		    : sl_err_at(err, EINVAL, path, 0, 0, "no http: section, so there are no rules");
	if (!r && ret_policy)
		*ret_policy = policy;
	else
		policy_free(policy);
	return r;
}

int ruleset_load_path(const char *path, struct ruleset **ret, struct policy **ret_policy,
		      struct sl_err *err)
{
	struct stat st;
	size_t size;
	char *text;
	int r;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return ruleset_load(path, NULL, ret, err);
	r = config_text_read(path, false, &text, &size, err);
	if (r < 0)
		return r;
	if (is_rule_file(text, size))
		r = ruleset_parse(path, text, size, ret, err);
	else
		r = load_configured(path, text, size, ret, ret_policy, err);
	free(text);
	return r;
}
