// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random YAML texts (nested, in brackets and in lines, odd indentation, comments, quotes, anchors,
 * aliases and merge keys), each with random changes. text_edit() must succeed, which means that the
 * result reads as the changed tree. Where the change is one new value of a text without an anchor,
 * only its line differs; where there is no change, nothing.
 */
#include "lib/rng.h"
#include "lib/tree_change.h"

#define ROUNDS 4000

struct making {
	FILE *out;
	int names; /* anchors so far: a0, a1... */
	bool anchors, merges;
	int deep;
	const char *newline;
};

static void put_comment(struct making *m, int indent)
{
	if (rng_below(5))
		return;
	if (rng_below(2))
		fputs(m->newline, m->out);
	else
		fprintf(m->out, "%*s# %s%s", indent, "", rng_below(2) ? "why" : "\xe2\x82\xac: [",
			m->newline);
}

static void put_line_end(struct making *m)
{
	if (!rng_below(4))
		fputs("   # - x: '", m->out);
	fputs(m->newline, m->out);
}

static void put_text(struct making *m)
{
	static const char *const texts[] = {
		"1",   "100K packets/s", "'it''s'", "\"quo\\\"te\"",  "\xc3\xa4\xc3\xb6", "'@set'",
		"a-b", "null",		 "'null'",  "'5 requests/m'", "2001:db8::1",	  "yes",
	};

	fputs(texts[rng_below(COUNT(texts))], m->out);
}

static bool put_alias(struct making *m)
{
	if (!m->names || rng_below(5))
		return false;
	fprintf(m->out, "*a%llu", rng_below(m->names));
	return true;
}

static bool put_anchor(struct making *m)
{
	return m->anchors && m->names < 60 && !rng_below(6);
}

static void put_flow(struct making *m, int depth);

static void put_flow_of(struct making *m, int depth, bool is_map)
{
	u64 count = rng_below(4);

	fputs(is_map ? "{" : "[", m->out);
	for (u64 i = 0; i < count; i++) {
		fputs(!i ? "" : rng_below(4) ? ", " : " ,", m->out);
		if (is_map && !i && m->merges && m->names && !rng_below(3)) {
			fprintf(m->out, "<<: *a%llu ", rng_below(m->names));
			continue;
		}
		if (!rng_below(12))
			fprintf(m->out, "  # in%s      ", m->newline);
		if (is_map)
			fprintf(m->out, "k%llu: ", i);
		put_flow(m, depth + 1);
	}
	fputs(is_map ? "}" : "]", m->out);
}

static void put_flow(struct making *m, int depth)
{
	u64 kind = depth >= m->deep ? 0 : rng_below(4);

	if (put_alias(m))
		fputs(" ", m->out);
	else if (kind < 2)
		put_text(m);
	else
		put_flow_of(m, depth, kind == 2);
}

static void put_block(struct making *m, int indent, int depth, bool is_map, bool in_line);

/* Behind a key or a dash, which stand in column `column`. */
static void put_value(struct making *m, int column, int depth, bool item)
{
	u64 kind = depth >= m->deep ? rng_below(3) : rng_below(6);
	bool anchor = put_anchor(m), is_map = rng_below(2);
	int name = m->names;

	if (kind == 0 && !anchor) {
		if (rng_below(3)) {
			fputs(" ", m->out);
			if (!put_alias(m))
				put_text(m);
		}
		put_line_end(m);
		return;
	}
	fputs(" ", m->out);
	if (anchor)
		fprintf(m->out, "&a%d%s", name, kind < 3 || rng_below(2) ? " " : "");
	if (kind < 3) {
		if (rng_below(2))
			put_text(m);
		else
			put_flow_of(m, depth, is_map);
		put_line_end(m);
	} else {
		bool in_line = item && !anchor && rng_below(2);
		int indent = column;

		if (!in_line)
			put_line_end(m);
		indent += in_line ? 2 : (int)rng_below(3) + (item || is_map ? 1 : 0);
		put_block(m, indent, depth + 1, is_map, in_line);
	}
	if (anchor) {
		/* those within it may have been counted already: the names go on behind them */
		m->names = m->names == name ? name + 1 : m->names;
	}
}

static void put_block(struct making *m, int indent, int depth, bool is_map, bool in_line)
{
	u64 count = 1 + rng_below(4),
	    merge = m->merges && is_map && !rng_below(3) ? rng_below(4) : 9;

	for (u64 i = 0; i < count; i++) {
		if (!in_line) {
			put_comment(m, rng_below(2) ? indent : (int)rng_below(6));
			fprintf(m->out, "%*s", indent, "");
		}
		in_line = false;
		if (i == merge && m->names) {
			fprintf(m->out, "<<: *a%llu%s", rng_below(m->names), m->newline);
			continue;
		}
		fprintf(m->out, is_map ? "k%llu:" : "-", i);
		put_value(m, indent, depth, !is_map);
	}
}

static char *make_text(size_t *ret_size)
{
	char *text;
	struct making m = { .anchors = rng_below(2),
			    .deep = rng_below(4),
			    .newline = rng_below(6) ? "\n" : "\r\n" };

	m.out = open_memstream(&text, ret_size);
	m.merges = m.anchors && rng_below(2);
	put_comment(&m, 0);
	put_block(&m, 0, 0, true, false);
	put_comment(&m, 0);
	fclose(m.out);
	if (!rng_below(5) && *ret_size > 2 && text[*ret_size - 2] != '\r')
		text[--*ret_size] = 0;
	return text;
}

/* A node of the tree that has items or keys, at random; NULL: an empty one was met. */
static struct yaml_node *pick(struct yaml_node *node)
{
	for (;;) {
		struct yaml_node *child = node->first, *value;

		if (!child)
			return NULL;
		for (u64 i = rng_below(node->count); i; i--)
			child = child->next;
		value = node->kind == YAML_MAP ? child->value : child;
		if (value->kind == YAML_TEXT || !value->count || !rng_below(3))
			return node;
		node = value;
	}
}

static struct yaml_node *random_value(struct tree *tree)
{
	static const char *const values[] = {
		"7",
		"200K packets/s",
		"'x: y'",
		"[1, 2]",
		"{a: 1, b: [x, y z]}",
		"''",
		"null",
		"'@s'",
		"{name: long, text: [aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbb, "
		"ccccccccccccccccccccccccccccccccccccccc], next: {x: {y: z}}}",
		"[]",
		"{}",
		"[{a: 1, list: [aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, "
		"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb]}, {b: 2}]",
	};

	return tree_of_value(tree, values[rng_below(COUNT(values))]);
}

static void change(struct tree *tree)
{
	struct yaml_node *parent = pick(tree->root), *child;
	char name[24];

	if (!parent)
		return;
	child = parent->first;
	for (u64 i = rng_below(parent->count); i; i--)
		child = child->next;
	snprintf(name, sizeof(name), "k%llu", rng_below(8));
	switch (rng_below(parent->kind == YAML_MAP ? 3 : 4)) {
	case 0:
		if (parent != tree->root || parent->count > 1)
			yaml_node_remove(parent, child);
		break;
	case 1:
	case 2:
		if (parent->kind == YAML_MAP) {
			tree_put(tree, parent, rng_below(2) ? child->text : name,
				 random_value(tree));
			break;
		}
		yaml_node_append(parent, random_value(tree));
		break;
	default:
		yaml_node_remove(parent, child);
		yaml_node_append(parent, random_value(tree));
	}
}

/* False: a merge key names something else than a mapping. */
static bool read_text(const char *text, size_t size, struct tree *ret)
{
	struct sl_err err;

	if (!tree_parse_deep("x", text, size, ret, &err))
		return true;
	if (!strstr(text, "<<:"))
		fail_msg("line %d: %s:\n%s", err.line, err.message, text);
	return false;
}

/* The text of a key, at random: a change of it is one of its line. NULL: something else was met. */
static struct yaml_node *pick_text(struct tree *tree)
{
	struct yaml_node *parent = pick(tree->root), *child, *value;

	if (!parent || parent->kind != YAML_MAP)
		return NULL;
	child = parent->first;
	for (u64 i = rng_below(parent->count); i; i--)
		child = child->next;
	value = child->value;
	return value->kind == YAML_TEXT && !value->alias_line ? value : NULL;
}

/* The lines that differ, of two texts with as many lines. */
static int lines_differ(const char *a, const char *b, int *ret_line)
{
	int differ = 0;

	for (int line = 1; *a || *b; line++) {
		size_t len_a = strcspn(a, "\n"), len_b = strcspn(b, "\n");

		if (len_a != len_b || memcmp(a, b, len_a)) {
			differ++;
			*ret_line = line;
		}
		a += len_a + (a[len_a] != 0);
		b += len_b + (b[len_b] != 0);
	}
	return differ;
}

TEST(test_one_value)
{
	u64 edits = 0;

	rng_start("one value");
	for (int round = 0; round < ROUNDS; round++) {
		struct tree tree = { 0 };
		size_t size, now_size;
		char *text = make_text(&size), *now = NULL;
		struct yaml_node *value, was;
		struct sl_err err;
		int line = 0;

		value = !strchr(text, '&') && read_text(text, size, &tree) ? pick_text(&tree)
									   : NULL;
		if (value && value->text[0]) {
			was = *value;
			value->text[0] = value->text[0] == 'Z' ? 'Y' : 'Z';
			value->text[1] = 0;
			value->plain = true;
			value->line = 0;
			if (text_edit("x", text, size, tree.root, &now, &now_size, &err))
				fail_msg("round %d: %s:\n%s", round, err.message, text);
			if (lines_differ(text, now, &line) != 1 || line != was.line)
				fail_msg("round %d: line %d was to change:\n%s\nis:\n%s", round,
					 was.line, text, now);
			edits++;
		}
		free(now);
		free(text);
		tree_free(&tree);
	}
	fprintf(stderr, "# %llu edits\n", edits);
	assert_true(edits > ROUNDS / 40);
}

TEST(test_random)
{
	u64 edits = 0, bytes = 0;

	rng_start("text_edit");
	for (int round = 0; round < ROUNDS; round++) {
		struct tree tree = { 0 };
		char *text, *now = NULL;
		size_t size, now_size;
		struct sl_err err;

		text = make_text(&size);
		if (!read_text(text, size, &tree)) {
			free(text);
			continue;
		}
		/* a merge key that names a list, as one of no mappings, may be written out */
		if (text_edit("x", text, size, tree.root, &now, &now_size, &err) ||
		    (strcmp(text, now) && !strstr(text, "<<:")))
			fail_msg("round %d: nothing was to change:\n%s\nis:\n%s", round, text,
				 now ? now : err.message);
		free(now);
		now = NULL;
		for (u64 i = 1 + rng_below(4); i; i--)
			change(&tree);
		if (text_edit("x", text, size, tree.root, &now, &now_size, &err))
			fail_msg("round %d: %s:\n%s", round, err.message, text);
		edits++;
		bytes += now_size;
		free(now);
		tree_free(&tree);
		free(text);
	}
	fprintf(stderr, "# %llu edits, %llu bytes\n", edits, bytes);
}

TEST_MAIN
