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

static int no_memory(struct sl_err *err)
{
	return sl_err_set(err, ENOMEM, "out of memory");
}

static int written(const struct policy *policy, char **ret, size_t *ret_size, struct sl_err *err)
{
	FILE *out;
	int rc;

	*ret = NULL;
	out = open_memstream(ret, ret_size);
	if (!out)
		return no_memory(err);
	rc = policy_write(policy, out);
	if (!fclose(out) && !rc)
		return 0;
	free(*ret);
	*ret = NULL;
	return no_memory(err);
}

/* A file's text, as a policy, as it is written. */
static int rewritten(const char *path, const char *text, size_t size, char **ret, size_t *ret_size,
		     struct sl_err *err)
{
	struct policy *policy = NULL;
	int rc = policy_parse(path, text, size, &policy, err);

	*ret = NULL;
	if (!rc)
		rc = written(policy, ret, ret_size, err);
	policy_free(policy);
	return rc;
}

static int edit(const char *path, const char *text, size_t size, const char *before,
		size_t before_size, const char *after, size_t after_size, char **ret,
		size_t *ret_size, struct sl_err *err)
{
	struct tree tree = { 0 }, was = { 0 }, wanted = { 0 };
	int rc = tree_parse(path, text, size, &tree, err);

	if (!rc)
		rc = tree_parse("", before, before_size, &was, err);
	if (!rc)
		rc = tree_parse("", after, after_size, &wanted, err);
	if (!rc && tree_merge(&tree, was.root, &wanted))
		rc = no_memory(err);
	if (!rc)
		rc = text_edit(path, text, size, tree.root, ret, ret_size, err);
	tree_free(&tree);
	tree_free(&was);
	tree_free(&wanted);
	return rc;
}

int policy_write_into(const struct policy *policy, const char *path, const char *text, size_t size,
		      char **ret, size_t *ret_size, bool *ret_whole, struct sl_err *err)
{
	char *before = NULL, *after = NULL, *edited = NULL, *check = NULL;
	size_t before_size = 0, after_size = 0, edited_size = 0, check_size = 0;
	int rc = written(policy, &after, &after_size, err);

	if (rc)
		return rc;
	rc = rewritten(path, text, size, &before, &before_size, err);
	if (!rc)
		rc = edit(path, text, size, before, before_size, after, after_size, &edited,
			  &edited_size, err);
	if (!rc)
		rc = rewritten(path, edited, edited_size, &check, &check_size, err);
	*ret_whole = rc || strcmp(check, after);
	*ret = *ret_whole ? after : edited;
	*ret_size = *ret_whole ? after_size : edited_size;
	free(*ret_whole ? edited : after);
	free(before);
	free(check);
	return 0;
}
