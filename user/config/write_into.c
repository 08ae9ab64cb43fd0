// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * write_into.c - a policy into the text of its file.
 *
 *     text -> tree --------------------- merge -> text_edit() -> text
 *     text -> policy -> written -> tree ---|
 *             policy -> written -> tree ---'
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/text_edit.h"
#include "conf/tree_merge.h"
#include "config/policy.h"

static int written(const struct policy *policy, struct written *ret, struct sl_err *err)
{
	FILE *out = open_memstream(&ret->text, &ret->size);
	int rc;

	if (!out)
		return sl_err_no_memory(err);
	rc = policy_write(policy, out);
	return fclose(out) || rc ? sl_err_no_memory(err) : 0;
}

/* A file's text, as a policy, as it is written. */
static int rewritten(const char *path, const char *text, size_t size, struct written *ret,
		     struct sl_err *err)
{
	struct policy *policy = NULL;
	int rc = policy_parse(path, text, size, &policy, err);

	if (!rc)
		rc = written(policy, ret, err);
	policy_free(policy);
	return rc;
}

static int edit(const char *path, const char *text, size_t size, const struct written *before,
		const struct written *after, struct written *ret, struct sl_err *err)
{
	struct tree tree = { 0 };
	int rc = tree_parse(path, text, size, &tree, err);

	if (!rc)
		rc = tree_merge(&tree, &tree.root, before, after, err);
	if (!rc)
		rc = text_edit(path, text, size, tree.root, &ret->text, &ret->size, err);
	tree_free(&tree);
	return rc;
}

int policy_write_into(const struct policy *policy, const char *path, const char *text, size_t size,
		      char **ret, size_t *ret_size, bool *ret_whole, struct sl_err *err)
{
	struct written before = { 0 }, after = { 0 }, edited = { 0 }, check = { 0 };
	int rc = written(policy, &after, err);

	if (!rc) {
		*ret_whole = rewritten(path, text, size, &before, err) ||
			     edit(path, text, size, &before, &after, &edited, err) ||
			     rewritten(path, edited.text, edited.size, &check, err) ||
			     strcmp(check.text, after.text);
		*ret = *ret_whole ? after.text : edited.text;
		*ret_size = *ret_whole ? after.size : edited.size;
		*(*ret_whole ? &after : &edited) = (struct written){ 0 };
	}
	free(before.text);
	free(after.text);
	free(edited.text);
	free(check.text);
	return rc;
}
