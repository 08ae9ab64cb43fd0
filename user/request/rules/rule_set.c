// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rule_set.c - files -> one rule set: which files, their order, names, series, freeing.
 *
 * A set's memory is one arena, so a failed load is freed in the same way as a set that is no
 * longer used.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/array.h"
#include "request/rules/rule_keys.h"
#include "request/rules/rule_private.h"
#include "conf/config_text.h"

#define CHUNK_BYTES (64 * 1024)
#define DIRECTORY_DEPTH_MAX 8
#define FILES_MAX 10000

/* ---- arena ---- */

struct arena_chunk {
	struct arena_chunk *before;
	size_t size;
	_Alignas(max_align_t) char bytes[];
};

void *arena_alloc(struct arena *arena, size_t size)
{
	struct arena_chunk *chunk = arena->chunk;
	size_t room;
	void *piece;

	size = (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
	if (!chunk || chunk->size - arena->used < size) {
		room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
		chunk = calloc(1, sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		chunk->size = room;
		chunk->before = arena->chunk;
		arena->chunk = chunk;
		arena->used = 0;
	}
	piece = chunk->bytes + arena->used;
	arena->used += size;
	return piece;
}

char *arena_text(struct arena *arena, const char *text, size_t len)
{
	char *copy = arena_alloc(arena, len + 1);

	if (copy)
		memcpy(copy, text, len);
	return copy;
}

void arena_free(struct arena *arena)
{
	struct arena_chunk *chunk, *before;

	for (chunk = arena->chunk; chunk; chunk = before) {
		before = chunk->before;
		free(chunk);
	}
	memset(arena, 0, sizeof(*arena));
}

/* ---- the set ---- */

static struct ruleset *set_new(void)
{
	struct ruleset *set = calloc(1, sizeof(*set));

	if (set)
		set->private = calloc(1, sizeof(*set->private));
	if (set && !set->private) {
		free(set);
		set = NULL;
	}
	return set;
}

static void rule_clear(struct rule *rule)
{
	json_decref(rule->metadata);
	override_index_free(rule->overrides);
}

int ruleset_retire(struct ruleset *set, struct rule *rule)
{
	struct retired *retired = arena_alloc(&set->private->arena, sizeof(*retired));

	if (!retired)
		return -ENOMEM;
	*retired = (struct retired){ rule, set->private->retired };
	set->private->retired = retired;
	return 0;
}

void ruleset_free(struct ruleset *set)
{
	if (!set)
		return;
	for (u32 i = 0; i < set->rule_count; i++)
		rule_clear(set->rule[i]);
	for (const struct retired *retired = set->private->retired; retired;
	     retired = retired->next)
		rule_clear(retired->rule);
	free(set->rule);
	free(set->domain);
	free(set->text);
	index_free(&set->private->trees.index);
	index_free(&set->private->names);
	index_free(&set->private->metrics);
	arena_free(&set->private->arena);
	free(set->private);
	free(set);
}

static u64 name_hash(const char *name)
{
	return hash_bytes(hash_seed(), 0, name, strlen(name));
}

/* Whether a rule's "DOMAIN/PATH" is this. */
static bool is_named(const struct rule *rule, const char *name)
{
	size_t len = strlen(rule->domain);

	return !strncmp(rule->domain, name, len) && name[len] == '/' &&
	       !strcmp(rule->path, name + len + 1);
}

/* Of two with the same name, which values with a '/' permit, the first in the files. */
const struct rule *ruleset_find(const struct ruleset *set, const char *name)
{
	const struct rule *rule;
	u64 hash = name_hash(name);
	u32 at = hash;

	while ((rule = index_next(&set->private->names, hash, &at)))
		if (is_named(rule, name))
			break;
	return rule;
}

void ruleset_rename(struct ruleset *set, const char *name, const struct rule *before,
		    struct rule *after)
{
	const struct index *names = &set->private->names;
	u32 at = name_hash(name);

	while (names->slot[at & (names->size - 1)].item != before)
		at++;
	names->slot[at & (names->size - 1)].item = after;
}

/* ---- series ---- */

static const struct metric_name *find_metric(const struct index *metrics, const char *name)
{
	const struct metric_name *metric;
	u64 hash = name_hash(name);
	u32 at = hash;

	while ((metric = index_next(metrics, hash, &at)))
		if (!strcmp(metric->name, name))
			break;
	return metric;
}

static int add_metric(struct ruleset *set, const char *name, u32 number)
{
	size_t size = strlen(name) + 1;
	struct metric_name *metric = arena_alloc(&set->private->arena, sizeof(*metric) + size);

	if (!metric)
		return -ENOMEM;
	metric->metric = number;
	memcpy(metric->name, name, size);
	if (number >= set->metric_count)
		set->metric_count = number + 1;
	return index_add(&set->private->metrics, name_hash(name), metric);
}

/* Series of the previous set, including those of removed rules, which may come back. */
static int keep_metrics(struct ruleset *set, const struct ruleset *old)
{
	const struct index *metrics = &old->private->metrics;

	set->metric_count = old->metric_count;
	for (u32 i = 0; i < metrics->size; i++) {
		const struct metric_name *metric = metrics->slot[i].item;

		if (metric && add_metric(set, metric->name, metric->metric))
			return -ENOMEM;
	}
	return 0;
}

/* The series of that name, a new one if the previous set had none. */
static int assign_metric(struct ruleset *set, const char *name, u32 *ret)
{
	const struct metric_name *metric = find_metric(&set->private->metrics, name);

	*ret = metric ? metric->metric : set->metric_count;
	return metric ? 0 : add_metric(set, name, *ret);
}

/* A candidate has a series of its own: names of limits have no line break. */
static int assign_candidate(struct ruleset *set, const struct rule *rule, struct rule_limit *limit,
			    bool add)
{
	char *name;
	int rc;

	if (limit->mode != SL_MODE_SHADOW)
		return 0;
	if (asprintf(&name, "%s/%s\n%s", rule->domain, rule->path, limit->name) < 0)
		return -ENOMEM;
	rc = add || find_metric(&set->private->metrics, name)
		     ? assign_metric(set, name, &limit->metric)
		     : -ENOENT;
	free(name);
	return rc;
}

int rule_assign_series(struct ruleset *set, struct rule *rule, bool add)
{
	int rc = 0;

	for (u32 k = 0; !rc && k < rule->limit_count; k++)
		rc = assign_candidate(set, rule, &rule->limit[k], add);
	return rc;
}

/* Names, series and numbers of all its rules. */
static int set_finish(struct ruleset *set)
{
	for (u32 i = 0; i < set->rule_count; i++) {
		struct rule *rule = set->rule[i];
		char *name;
		int rc;

		if (asprintf(&name, "%s/%s", rule->domain, rule->path) < 0)
			return -ENOMEM;
		rc = index_add(&set->private->names, name_hash(name), rule);
		if (!rc)
			rc = assign_metric(set, name, &rule->metric);
		free(name);
		if (!rc)
			rc = rule_assign_series(set, rule, true);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- files ---- */

static int add_text(struct build *b, const char *name, const char *text, size_t size)
{
	struct tree tree = { 0 };
	int rc;

	b->file = arena_text(build_arena(b), name, strlen(name));
	if (!b->file)
		return sl_err_set(b->r.err, ENOMEM, "out of memory");
	b->r.file = b->file;
	rc = tree_parse_deep(b->file, text, size, &tree, b->r.err);
	b->tree = &tree;
	if (!rc)
		rc = rule_read_file(b, tree.root);
	if (!rc)
		rc = saving_text(b, text, size);
	tree_free(&tree);
	return rc;
}

int build_note_file(struct build *b, const char *path, u64 digest)
{
	struct rule_text text = { arena_text(build_arena(b), path, strlen(path)), digest };

	return !text.path || append(b->set->text, b->set->text_count, text) ? read_no_memory(&b->r)
									    : 0;
}

static int add_file(struct build *b, const char *path)
{
	size_t size;
	char *text;
	int rc = config_text_read(path, true, &text, &size, b->r.err);

	if (rc)
		return rc;
	rc = build_note_file(b, path, config_text_digest(text, size));
	if (!rc)
		rc = add_text(b, path, text, size);
	free(text);
	return rc;
}

struct files {
	char **path;
	size_t count;
	struct sl_err *err;
};

static void files_free(struct files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->path[i]);
	free(files->path);
}

static int files_add(struct files *files, char *path)
{
	if (files->count == FILES_MAX)
		return sl_err_set(files->err, E2BIG,
				  "%s: found more than %d rule files; accepted: "
				  "fewer",
				  path, FILES_MAX);
	if (append(files->path, files->count, path))
		return sl_err_set(files->err, ENOMEM, "out of memory");
	return 0;
}

/* Names beginning with '.' belong to editors and Kubernetes ("..data"). */
static bool is_rule_file(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && dot != name && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
}

static int files_list(struct files *files, const char *dir, int depth);

static int files_visit(struct files *files, const char *dir, const char *name, int depth)
{
	struct stat st;
	char *path;
	int rc = 0;

	if (name[0] == '.')
		return 0;
	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return sl_err_set(files->err, ENOMEM, "out of memory");
	if (stat(path, &st)) {
		/* A dangling link is an error: its rules would silently be missing. */
		if (is_rule_file(name))
			rc = sl_err_at(files->err, errno, path, 0, 0, "%s", strerror(errno));
	} else if (S_ISDIR(st.st_mode)) {
		rc = files_list(files, path, depth + 1);
	} else if (is_rule_file(name)) {
		rc = files_add(files, path);
		if (!rc)
			return 0;
	}
	free(path);
	return rc;
}

static int files_list(struct files *files, const char *dir, int depth)
{
	struct dirent *entry;
	DIR *open;
	int rc = 0;

	if (depth > DIRECTORY_DEPTH_MAX)
		return sl_err_at(files->err, ELOOP, dir, 0, 0,
				 "found directories nested too deep; "
				 "accepted: up to %d levels",
				 DIRECTORY_DEPTH_MAX);
	open = opendir(dir);
	if (!open)
		return sl_err_at(files->err, errno, dir, 0, 0,
				 "%s; accepted: a directory of rule "
				 "files",
				 strerror(errno));
	while (!rc && (entry = readdir(open)))
		rc = files_visit(files, dir, entry->d_name, depth);
	closedir(open);
	return rc;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int ruleset_files(const char *dir, char ***ret, size_t *ret_count, struct sl_err *err)
{
	struct files files = { .err = err };
	int rc = files_list(&files, dir, 0);

	if (rc) {
		files_free(&files);
		return rc;
	}
	if (files.count)
		qsort(files.path, files.count, sizeof(*files.path), compare_paths);
	*ret = files.path;
	*ret_count = files.count;
	return 0;
}

/* ---- building ---- */

int build_init(struct build *b, struct sl_err *err)
{
	struct draft *usual;
	int rc = 0;

	memset(b, 0, sizeof(*b));
	b->r.err = err;
	b->r.file = "";
	b->r.subject = "";
	b->usual = usual = arena_alloc(&b->scratch, sizeof(*usual));
	for (enum rule_place place = 0; place < RULE_PLACE_COUNT && !rc; place++)
		rc = rule_keys_of(place, &b->scratch, &b->keys[place]);
	return rc || !usual || keys_init(&descriptor_keys, usual) ? -ENOMEM : 0;
}

void build_clear(struct build *b)
{
	index_free(&b->seen);
	index_free(&b->edits);
	arena_free(&b->scratch);
}

static int build_begin(struct build *b, const struct ruleset *old, struct sl_err *err)
{
	int rc = build_init(b, err);

	b->old = old;
	b->set = set_new();
	if (rc || !b->set || (old && keep_metrics(b->set, old)))
		return sl_err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int build_end(struct build *b, int rc, const struct ruleset *old, struct ruleset **ret)
{
	build_clear(b);
	for (size_t i = 0; i < b->edit_count; i++)
		if (!b->edit[i].applied && !b->edit[i].reason[0])
			snprintf(b->edit[i].reason, sizeof(b->edit[i].reason),
				 "there is no rule \"%.*s\"",
				 (int)config_text_cut(b->edit[i].rule, 200), b->edit[i].rule);
	if (!rc && set_finish(b->set))
		rc = sl_err_set(b->r.err, ENOMEM, "out of memory");
	if (rc) {
		ruleset_free(b->set);
		return rc;
	}
	b->set->generation = old ? old->generation + 1 : 1;
	*ret = b->set;
	return 0;
}

int ruleset_load(const char *dir, const struct ruleset *old, struct ruleset **ret,
		 struct sl_err *err)
{
	return ruleset_load_edited(dir, old, NULL, 0, ret, err);
}

int ruleset_load_edited(const char *dir, const struct ruleset *old, struct rule_edit *edit,
			size_t count, struct ruleset **ret, struct sl_err *err)
{
	struct files files = { .count = 0 };
	struct build b;
	int rc = build_begin(&b, old, err);

	if (!rc && index_edits(&b, edit, count))
		rc = sl_err_set(err, ENOMEM, "out of memory");
	if (!rc)
		rc = ruleset_files(dir, &files.path, &files.count, err);
	for (size_t i = 0; !rc && i < files.count; i++)
		rc = add_file(&b, files.path[i]);
	files_free(&files);
	return build_end(&b, rc, old, ret);
}

int ruleset_parse_edited(const char *name, const char *text, size_t size, const struct ruleset *old,
			 struct rule_edit *edit, size_t count, struct saving *saving,
			 struct ruleset **ret, struct sl_err *err)
{
	struct build b;
	int rc = build_begin(&b, old, err);

	b.saving = saving;
	if (!rc && index_edits(&b, edit, count))
		rc = sl_err_set(err, ENOMEM, "out of memory");
	if (!rc)
		rc = add_text(&b, name, text, size);
	return build_end(&b, rc, old, ret);
}

int ruleset_parse(const char *name, const char *text, size_t size, struct ruleset **ret,
		  struct sl_err *err)
{
	return ruleset_parse_edited(name, text, size, NULL, NULL, 0, NULL, ret, err);
}
