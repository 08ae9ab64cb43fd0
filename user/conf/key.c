// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* key.c - see key.h: tables of keys. */
#include "conf/key.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one key ---- */

const char *key_accepted(const struct key *key, char *buf, size_t size)
{
	if (key->accepted || !key->type)
		return key->accepted ? key->accepted : "a value";
	if (key->type->accepts || !key->type->accepted)
		return key->type->accepts ? key->type->accepts : "a value";
	return key->type->accepted(key, buf, size);
}

int key_refuse(struct reader *r, const struct yaml_node *node, const struct key *key)
{
	char buf[400];

	return read_refuse(r, node, key_accepted(key, buf, sizeof(buf)));
}

int key_refuse_text(struct reader *r, const struct key *key)
{
	return key_refuse(r, r->at, key);
}

static read_text *text_reader(const struct key *key)
{
	return key->type ? key->type->text : key->text;
}

bool key_is_text(const struct key *key)
{
	return text_reader(key);
}

/* A value, or an item of a list. */
static int read_text_at(struct reader *r, const struct yaml_node *at, const char *text,
			const struct key *key, void *section)
{
	r->at = at;
	r->text = text;
	if (!text[0] && !(key->flags & KEY_EMPTY))
		return key_refuse_text(r, key);
	return text_reader(key)(r, text, key, section);
}

static int begin_items(struct reader *r, const struct yaml_node *at, size_t count,
		       const struct key *key, void *section)
{
	r->at = at;
	return key->type->items(r, count, key, section);
}

/* A text beside the file, or of a part of KEY.PART=VALUE. */
static int read_beside(struct reader *r, const struct yaml_node *at, const char *text,
		       const struct key *key, void *section)
{
	char *copy, *rest, *item;
	size_t count = 1;
	int rc;

	if (!key->type || !key->type->items)
		return read_text_at(r, at, text, key, section);
	if (key->flags & KEY_COMMAS || !strchr(text, ',')) {
		r->text = text;
		rc = begin_items(r, at, 1, key, section);
		return rc ? rc : read_text_at(r, at, text, key, section);
	}
	copy = rest = strdup(text);
	if (!copy)
		return read_no_memory(r);
	for (const char *c = text; *c; c++)
		count += *c == ',';
	r->text = text;
	rc = begin_items(r, NULL, count, key, section);
	while (!rc && (item = strsep(&rest, ",")))
		rc = read_text_at(r, NULL, item, key, section);
	free(copy);
	return rc;
}

static int read_node(struct reader *r, const struct yaml_node *node, const struct key *key,
		     void *section)
{
	bool is_text = node->kind == YAML_TEXT,
	     has_read = key->type ? !!key->type->read : !!key->read;
	const char *text =
		yaml_node_is_null(node) && !(key->type && key->type->null) ? "" : node->text;

	if (key_is_text(key) && is_text)
		return read_text_at(r, node, text, key, section);
	if (!has_read)
		return read_text_at(r, node, "", key, section);
	return key->type ? key->type->read(r, node, key, section) : key->read(r, node, section);
}

static int read_list(struct reader *r, const struct yaml_node *node, const struct key *key,
		     void *section)
{
	bool is_list = node->kind == YAML_LIST;
	int rc = begin_items(r, node, is_list ? node->count : 1, key, section);

	if (!is_list)
		return rc ? rc : read_node(r, node, key, section);
	for (node = node->first; node && !rc; node = node->next)
		rc = read_node(r, node, key, section);
	return rc;
}

static int note_given(int rc, const struct key *key, void *section)
{
	if (!rc && key->type && key->given)
		*((bool *)((char *)section + key->given)) = true;
	return rc;
}

int key_read(struct reader *r, const struct yaml_node *node, const struct key *key, void *section)
{
	int rc = !key->type || !key->type->items ? read_node(r, node, key, section)
		 : node->beside			 ? read_beside(r, node, node->text, key, section)
						 : read_list(r, node, key, section);

	return note_given(rc, key, section);
}

int key_read_text(struct reader *r, const char *text, const struct key *key, void *section)
{
	return note_given(read_beside(r, NULL, text, key, section), key, section);
}

static bool is_given(const struct key *key, const void *section)
{
	return *((const bool *)((const char *)section + key->given));
}

bool key_equal(const struct key *key, const void *a, const void *b)
{
	if (!key->type && !key->write)
		return true;
	if (key->given && is_given(key, a) != is_given(key, b))
		return false;
	if (key->type && key->type->equal)
		return key->type->equal(key, a, b);
	return !memcmp(key_field_of(key, a), key_field_of(key, b), key->size);
}

void key_copy(const struct key *key, void *section, int *rc)
{
	if (key->type && key->type->copy)
		key->type->copy(key, section, rc);
}

void key_clear(const struct key *key, void *section)
{
	if (key->type && key->type->clear)
		key->type->clear(key, section);
}

/* ---- which keys were given ---- */

void key_note(const struct keys *keys, size_t i, bool given, void *section)
{
	u64 *bits = (u64 *)((char *)section + keys->given);

	if (keys->given)
		*bits = given ? *bits | 1ULL << i : *bits & ~(1ULL << i);
}

bool keys_given(const struct keys *keys, const void *section, const char *name)
{
	for (size_t i = 0; i < keys->count; i++)
		if (!strcmp(keys->key[i].name, name))
			return *(const u64 *)((const char *)section + keys->given) >> i & 1;
	return false;
}

void keys_inherit(const struct keys *keys, u64 given, void *section, const void *from)
{
	for (size_t i = 0; i < keys->count; i++)
		if (!(given >> i & 1))
			memcpy(key_field(&keys->key[i], section), key_field_of(&keys->key[i], from),
			       keys->key[i].size);
}

/* ---- defaults ---- */

/* Reads a row's default: the same text and the same reader as in a file. */
static int set_usual(const struct key *key, void *section)
{
	struct sl_err err;
	struct reader r = { .file = "", .err = &err, .subject = "" };
	struct tree tree = { 0 };
	int rc;

	if (!strchr("[{", key->usual[0]))
		return read_beside(&r, NULL, key->usual, key, section);
	rc = tree_parse("", key->usual, strlen(key->usual), &tree, &err);
	if (!rc)
		rc = key->type->items ? read_list(&r, tree.root, key, section)
				      : key->type->read(&r, tree.root, key, section);
	tree_free(&tree);
	return rc;
}

int keys_init(const struct keys *keys, void *section)
{
	int rc = 0;

	for (size_t i = 0; i < keys->count && !rc; i++) {
		const struct key *key = &keys->key[i];

		if (key->type == &type_map)
			rc = keys_init(key->keys, key_field(key, section));
		else if (key->type && key->usual)
			rc = set_usual(key, section);
	}
	return rc || !keys->init ? rc : keys->init(section);
}

int key_reset(const struct key *key, void *section)
{
	int rc = 0;

	if (key->type == &type_map) {
		void *map = key_field(key, section);

		for (size_t i = 0; i < key->keys->count && !rc; i++)
			rc = key_reset(&key->keys->key[i], map);
		return rc;
	}
	if (key->given)
		*((bool *)((char *)section + key->given)) = false;
	if (key->type && key->type->clear)
		key->type->clear(key, section);
	else
		memset(key_field(key, section), 0, key->size);
	return key->type && key->usual ? set_usual(key, section) : 0;
}

/* ---- reading ---- */

int keys_refuse_elsewhere(struct reader *r, const struct yaml_node *map, const struct keys *keys)
{
	const struct key_elsewhere *of = keys->elsewhere;

	for (; of && of->name; of++) {
		const struct yaml_node *key = yaml_node_find(map, of->name);

		if (key)
			return read_fail(r, key, EINVAL, "key \"%s\": %s", of->name, of->reason);
	}
	return 0;
}

int keys_read(struct reader *r, const struct yaml_node *node, const struct keys *keys,
	      void *section)
{
	int rc = 0;

	if (keys->alone && node->kind == YAML_TEXT) {
		for (size_t i = 0; i < keys->count && !rc; i++)
			if (!strcmp(keys->key[i].name, keys->alone))
				rc = key_read(r, node, &keys->key[i], section);
	} else {
		rc = keys_refuse_elsewhere(r, node, keys);
		if (!rc)
			rc = read_map(r, node, keys->key, keys->count, section);
		for (size_t i = 0; i < keys->count && !rc; i++) {
			if (keys->key[i].flags & KEY_NEEDED)
				rc = read_require(r, node, keys->key[i].name);
			if (keys->given && yaml_node_find(node, keys->key[i].name))
				key_note(keys, i, true, section);
		}
	}
	return rc || !keys->check ? rc : keys->check(r, node, section);
}

/* ---- writing ---- */

/* A struct of defaults, to omit fields with their default; NULL: out of memory. */
static void *usual_section(struct writer *w, const struct keys *keys)
{
	void *section = calloc(1, keys->size);

	if (section && keys_init(keys, section)) {
		keys_free(keys, section);
		section = NULL;
	}
	w->failed |= !section;
	return section;
}

static bool is_written(const struct key *key, const void *section, const void *usual)
{
	if (!key->type && !key->write)
		return false;
	if (key->given)
		return is_given(key, section);
	return key->flags & KEY_NEEDED || !key_equal(key, section, usual);
}

const char *type_format(const struct key_type *type, const void *value, char *buf, size_t size)
{
	const struct key key = { .type = type };
	struct writer w = { .out = fmemopen(buf, size, "w") };

	buf[0] = 0;
	if (w.out) {
		type->write(&w, &key, value);
		fclose(w.out);
	}
	return buf;
}

static void write_one_line(struct writer *w, const struct key *key, const void *section)
{
	fprintf(w->out, "%s: ", key->name);
	if (key->type)
		key->type->write(w, key, section);
	else
		key->write(w, section);
}

static void write_key(struct writer *w, const struct key *key, const void *section)
{
	if (key->type && key->type->lines && !(key->flags & KEY_FLOW)) {
		key->type->lines(w, key, section);
		return;
	}
	write_begin(w);
	write_one_line(w, key, section);
	fputc('\n', w->out);
}

/* The table's defaults in a section of their own, or the other one. */
u64 keys_unlike(struct writer *w, const struct keys *keys, const void *section, const void *usual)
{
	void *own = usual ? NULL : usual_section(w, keys);
	u64 unlike = 0;

	if (!usual && !own)
		return 0;
	for (size_t i = 0; i < keys->count; i++)
		unlike |= (u64)is_written(&keys->key[i], section, usual ? usual : own) << i;
	keys_free(keys, own);
	return unlike;
}

static bool is_in(const struct keys *keys, size_t i, u64 given)
{
	return given >> i & 1 && (keys->key[i].type || keys->key[i].write);
}

void keys_write_given(struct writer *w, const struct keys *keys, const void *section, u64 given)
{
	for (size_t i = 0; i < keys->count; i++)
		if (is_in(keys, i, given))
			write_key(w, &keys->key[i], section);
}

void keys_write_flow(struct writer *w, const struct keys *keys, const void *section, u64 given)
{
	const char *apart = "";

	fputc('{', w->out);
	for (size_t i = 0; i < keys->count; i++) {
		if (!is_in(keys, i, given))
			continue;
		fputs(apart, w->out);
		write_one_line(w, &keys->key[i], section);
		apart = ", ";
	}
	fputc('}', w->out);
}

void keys_write(struct writer *w, const struct keys *keys, const void *section)
{
	keys_write_given(w, keys, section, keys_unlike(w, keys, section, NULL));
}

/* ---- memory, comparing ---- */

void keys_copy(const struct keys *keys, void *section, int *rc)
{
	for (size_t i = 0; i < keys->count; i++)
		key_copy(&keys->key[i], section, rc);
}

void keys_clear(const struct keys *keys, void *section)
{
	for (size_t i = 0; i < keys->count; i++)
		key_clear(&keys->key[i], section);
}

void *keys_clone(const struct keys *keys, const void *from)
{
	void *copy = malloc(keys->size);
	int rc = 0;

	if (!copy)
		return NULL;
	memcpy(copy, from, keys->size);
	keys_copy(keys, copy, &rc);
	if (!rc)
		return copy;
	keys_free(keys, copy);
	return NULL;
}

void keys_free(const struct keys *keys, void *section)
{
	if (section)
		keys_clear(keys, section);
	free(section);
}

bool keys_equal(const struct keys *keys, const void *a, const void *b)
{
	for (size_t i = 0; i < keys->count; i++)
		if (!key_equal(&keys->key[i], a, b))
			return false;
	return true;
}

void keys_changed(const struct keys *keys, const void *was, const void *now, u32 flags,
		  const char *path, void (*report)(const char *path, void *arg), void *arg)
{
	char name[128];

	for (size_t i = 0; i < keys->count; i++) {
		const struct key *key = &keys->key[i];
		const void *a = key_field_of(key, was), *b = key_field_of(key, now);

		snprintf(name, sizeof(name), "%s%s%s", path, path[0] ? "." : "", key->name);
		if (key->type == &type_section) {
			a = *(const void *const *)a;
			b = *(const void *const *)b;
		}
		if (key->type == &type_section ? a && b
					       : key->type == &type_map && !(key->flags & flags))
			keys_changed(key->keys, a, b, flags, name, report, arg);
		else if (key->flags & flags && !key_equal(key, was, now))
			report(name, arg);
	}
}
