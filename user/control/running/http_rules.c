// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* http_rules.c - see http_rules.h. */
#include "control/running/http_rules.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/clock.h"
#include "lib/file.h"
#include "control/running/live.h"
#include "request/rules/rule_edit.h"
#include "lib/log.h"

/* ------------------------------------------------------------------ operations as edits */

static const struct {
	const char *op;
	enum rule_edit_what what;
} edit_names[] = {
	{ "rule set", EDIT_SET },     { "user set", EDIT_SET },	      { "user unset", EDIT_UNSET },
	{ "user block", EDIT_BLOCK }, { "user exempt", EDIT_EXEMPT },
};

static int make_edit(const json_t *op, struct rule_edit *ret)
{
	const json_t *pairs = json_object_get(op, "pairs"), *pair;
	const char **text = calloc(json_array_size(pairs) + 1, sizeof(*text));
	size_t i;

	if (!text)
		return -ENOMEM;
	*ret = (struct rule_edit){
		.rule = live_text(op, "name"),
		.pair = text,
		.pair_count = json_array_size(pairs),
		.value = json_string_value(json_object_get(op, "value")),
	};
	json_array_foreach(pairs, i, pair)
		text[i] = json_string_value(pair) ? json_string_value(pair) : "";
	for (i = 0; i < sizeof(edit_names) / sizeof(edit_names[0]); i++)
		if (!strcmp(live_text(op, "op"), edit_names[i].op))
			ret->what = edit_names[i].what;
	return 0;
}

static void edits_free(struct rule_edit *edit, size_t *at, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free((void *)edit[i].pair);
	free(edit);
	free(at);
}

/*
 * The changes to rules in a list as edits, in order, pointing into the list: *ret[i] belongs to
 * json_array_get(live, ret_at[i]). Free them with edits_free(). 0 or -ENOMEM.
 */
static int make_edits(const json_t *live, struct rule_edit **ret, size_t **ret_at,
		      size_t *ret_count)
{
	size_t size = json_array_size(live) + 1, count = 0, i;
	struct rule_edit *edit = calloc(size, sizeof(*edit));
	size_t *at = calloc(size, sizeof(*at));
	const json_t *op;
	int r = edit && at ? 0 : -ENOMEM;

	json_array_foreach((json_t *)live, i, op) {
		if (r || !live_is_rule(op))
			continue;
		r = make_edit(op, &edit[count]);
		at[count] = i;
		count += !r;
	}
	if (r < 0) {
		edits_free(edit, at, count);
		return r;
	}
	*ret = edit;
	*ret_at = at;
	*ret_count = count;
	return 0;
}

/* ------------------------------------------------------------------ in force */

/* Removes edits that did not apply from the list, the last first, so that indexes stay valid. */
static void drop_edits(json_t *live, const struct rule_edit *edit, const size_t *at, size_t count,
		       json_t *dropped)
{
	char words[256];

	for (size_t i = count; i-- > 0;) {
		if (edit[i].applied)
			continue;
		live_describe(json_array_get(live, at[i]), words, sizeof(words));
		log_warn("live change '%s' no longer applies and was dropped: %s", words,
			 edit[i].reason);
		if (dropped)
			json_array_append_new(dropped,
					      json_sprintf("%s: %s", words, edit[i].reason));
		json_array_remove(live, at[i]);
	}
}

int http_rules_build(struct running *run, json_t *live, bool must, json_t *dropped,
		     struct ruleset **ret, struct sl_err *err)
{
	struct rule_edit *edit;
	size_t *at, count;
	int r = make_edits(live, &edit, &at, &count);

	if (r < 0)
		return sl_err_no_memory(err);
	r = ruleset_load_edited(run->requests.def->rules_dir, run->requests.rules, edit, count, ret,
				err);
	if (!r && must && count && !edit[count - 1].applied) {
		r = sl_err_set(err, EINVAL, "%s", edit[count - 1].reason);
		ruleset_free(*ret);
		*ret = NULL;
	}
	if (!r)
		drop_edits(live, edit, at, count, dropped);
	edits_free(edit, at, count);
	return r;
}

int http_rules_prepare(struct running *run, json_t *live, bool must, json_t *dropped,
		       struct ruleset **ret, struct sl_err *err)
{
	json_t *wanted;
	bool same;

	*ret = NULL;
	if (!run->requests.def)
		return 0;
	wanted = live_rules(live, LIVE_ANY_TERM);
	same = run->requests.live ? json_equal(wanted, run->requests.live)
				  : !json_array_size(wanted);
	json_decref(wanted);
	return same ? 0 : http_rules_build(run, live, must, dropped, ret, err);
}

void http_rules_put(struct running *run, struct ruleset *set, const json_t *live)
{
	if (!set)
		return;
	json_decref(run->requests.live);
	run->requests.live = live_rules(live, LIVE_ANY_TERM);
	run->requests.rules = set;
	running_rules(run);
}

void http_rules_follow(struct running *run)
{
	struct ruleset *next;
	char words[768];
	struct sl_err err;

	if (http_rules_prepare(run, run->live, false, NULL, &next, &err) < 0)
		log_error(
			"http: cannot apply the live changes to the rules, keeping the previous rules: %s",
			sl_err_format(&err, words, sizeof(words)));
	else
		http_rules_put(run, next, run->live);
}

static int change_value(struct running *run, const json_t *op, bool forget)
{
	struct override_index *old;
	struct rule_edit edit;
	int r;

	if (!run->requests.rules || !json_is_string(json_object_get(op, "value")) ||
	    make_edit(op, &edit) < 0)
		return 1;
	r = ruleset_edit_value(run->requests.rules, &edit, forget, &old);
	free((void *)edit.pair);
	if (r)
		return 1;
	running_rules(run);
	override_index_free(old);
	return 0;
}

static int change_keys(struct running *run, json_t *op)
{
	json_t *of_rule = live_rules_of(run->live, live_text(op, "name"), LIVE_USER);
	struct rule_edit *edit;
	size_t *at, count;
	int r = 1;

	if (run->requests.rules && !json_array_append(of_rule, op) &&
	    !make_edits(of_rule, &edit, &at, &count)) {
		r = ruleset_edit_rule(run->requests.rules, edit, count);
		edits_free(edit, at, count);
	}
	json_decref(of_rule);
	if (!r)
		running_rules(run);
	return r;
}

int http_rules_change(struct running *run, json_t *op)
{
	if (live_kind_of(op)->subject == LIVE_RULE)
		return change_keys(run, op);
	return change_value(run, op, json_is_true(json_object_get(op, "forget")));
}

void http_rules_noted(struct running *run)
{
	json_decref(run->requests.live);
	run->requests.live = live_rules(run->live, LIVE_ANY_TERM);
}

void http_rules_again(struct running *run)
{
	struct ruleset *next;
	char words[768];
	struct sl_err err;

	if (http_rules_build(run, run->live, false, NULL, &next, &err) < 0)
		log_error("http: cannot restore the rules before the change: %s",
			  sl_err_format(&err, words, sizeof(words)));
	else
		http_rules_put(run, next, run->live);
}

bool http_rules_expired(const struct running *run, u64 now_utc_ns)
{
	const json_t *op;
	size_t i;

	json_array_foreach(run->requests.live, i, op)
		if (live_expired(op, now_utc_ns))
			return true;
	return false;
}

void http_rules_expire(struct running *run, u64 now_utc_ns)
{
	const json_t *op;
	int r = 0;
	size_t i;

	json_array_foreach(run->requests.live, i, op)
		if (!r && live_expired(op, now_utc_ns))
			r = live_kind_of(op)->subject == LIVE_USER ? change_value(run, op, true)
								   : 1;
	if (r)
		http_rules_follow(run);
	else if (run->requests.rules)
		http_rules_noted(run);
}

/* ------------------------------------------------------------------ save */

/* The new text of one rule file; `path` is the target if it is a symbolic link. */
struct saved_file {
	char path[PATH_MAX];
	char *text;
	size_t size;
	mode_t mode;
};

static int prepare_file(struct running *run, const char *path, struct rule_edit *edit, size_t count,
			struct saved_file *ret, struct sl_err *err)
{
	struct stat st;

	if (!realpath(path, ret->path) || stat(ret->path, &st) < 0)
		return sl_err_at(err, errno, path, 0, 0, "%s", strerror(errno));
	ret->mode = st.st_mode & 07777;
	return rule_file_edited(path, run->requests.rules, edit, count, &ret->text, &ret->size,
				err);
}

static int write_saved(const struct saved_file *file, struct sl_err *err)
{
	char backup[PATH_MAX + 8];

	snprintf(backup, sizeof(backup), "%s.bak", file->path);
	return file_replace(file->path, backup, file->text, file->size, file->mode, err);
}

/* The files of rules with changes, each once; owned by the arena of run->requests.rules. */
static size_t files_of(const struct running *run, const struct rule_edit *edit, size_t count,
		       const char **file)
{
	size_t files = 0, k;

	for (size_t i = 0; i < count; i++) {
		const struct rule *rule = ruleset_find(run->requests.rules, edit[i].rule);

		for (k = 0; rule && k < files && strcmp(file[k], rule->file); k++)
			;
		if (rule && k == files)
			file[files++] = rule->file;
	}
	return files;
}

/* Composes all texts before writing the first. */
static int save_files(struct running *run, struct rule_edit *edit, size_t count, size_t *ret_files,
		      struct sl_err *err)
{
	const char **file = calloc(count + 1, sizeof(*file));
	struct saved_file *saved = calloc(count + 1, sizeof(*saved));
	size_t files = file && saved ? files_of(run, edit, count, file) : 0;
	int r = file && saved ? 0 : sl_err_no_memory(err);

	for (size_t i = 0; !r && i < files; i++)
		r = prepare_file(run, file[i], edit, count, &saved[i], err);
	for (size_t i = 0; !r && i < files; i++)
		if (saved[i].text)
			r = write_saved(&saved[i], err);
	for (size_t i = 0; i < files; i++)
		free(saved[i].text);
	free(saved);
	free(file);
	*ret_files = files;
	return r;
}

int http_rules_save(struct running *run, size_t *ret_files, struct sl_err *err)
{
	json_t *lasting;
	struct rule_edit *edit;
	size_t *at, count;
	int r;

	*ret_files = 0;
	if (!run->requests.def)
		return 0;
	lasting = live_rules(run->live, LIVE_LASTING);
	r = make_edits(lasting, &edit, &at, &count);
	if (r < 0)
		r = sl_err_no_memory(err);
	else {
		r = count ? save_files(run, edit, count, ret_files, err) : 0;
		edits_free(edit, at, count);
	}
	json_decref(lasting);
	return r;
}
