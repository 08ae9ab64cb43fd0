// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Changes to a YAML text: the whole result of each, to the byte. That it reads back as wanted,
 * text_edit() checks itself.
 */
#include "lib/tree_change.h"

static const char *edited(const char *text, const char *const *change, struct sl_err *err)
{
	struct tree tree = { 0 };
	char *ret = NULL;
	size_t size;

	if (tree_parse_deep("x.yaml", text, strlen(text), &tree, err))
		fail_msg("%s: %s", text, err->message);
	for (; *change; change++)
		tree_change(&tree, *change);
	text_edit("x.yaml", text, strlen(text), tree.root, &ret, &size, err);
	tree_free(&tree);
	if (ret)
		assert_int_equal(strlen(ret), size);
	return ret;
}

struct example {
	const char *text, *change[4], *result;
};

static void check_examples(const struct example *example, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct sl_err err;
		const char *is = edited(example[i].text, example[i].change, &err);

		if (!is || strcmp(is, example[i].result))
			fail_msg("%s with %s\nis     %s\nwanted %s", example[i].text,
				 example[i].change[0], is ? is : err.message, example[i].result);
		free((char *)is);
	}
}

#define check(table) check_examples(table, COUNT(table))

TEST(test_values)
{
	static const struct example table[] = {
		{ "a: 100K\nb: 2\n", { NULL }, "a: 100K\nb: 2\n" },
		{ "# x\na:   100K   # why\nb: 2\n",
		  { "a=200K" },
		  "# x\na:   200K   # why\nb: 2\n" },
		{ "a: '5 /s' # x\nb: \"y\"", { "a=6 /s", "b=z" }, "a: '6 /s' # x\nb: \"z\"" },
		{ "a: '5 /s'\n", { "a='it''s'" }, "a: 'it''s'\n" },
		{ "a: 5\n", { "a=': x'" }, "a: ': x'\n" },
		{ "a:\nb: # none\nc: ~\n", { "a=1", "b=2", "c=3" }, "a: 1\nb: 2 # none\nc: 3\n" },
		{ "a: 1\n", { "a=[1, 2]" }, "a: [1, 2]\n" },
		{ "a: [1, 2]  # x\n", { "a=5" }, "a: 5  # x\n" },
		{ "a: [1,2 , 3]\n", { "a=[1, 5, 3]" }, "a: [1,5 , 3]\n" },
		{ "a:\n- 1   # one\n- 2   # two\n",
		  { "a=[1, 3]" },
		  "a:\n- 1   # one\n- 3   # two\n" },
		{ "a:\n  - 1   # one\n  - 2\nb: 1\n", { "a=x" }, "a: x\nb: 1\n" },
		{ "a: {x: 1, y: 2}\n", { "a={x: 1, y: 3}" }, "a: {x: 1, y: 3}\n" },
		{ "a: {x: 1, y: 2}\n", { "a={x: 1, z: 3}" }, "a: {x: 1, z: 3}\n" },
		{ "a: >-\n  some\n  text\nb: 2\n", { "a=5" }, "a: 5\nb: 2\n" },
		{ "a: >-\r\n  some\r\n  text\r\nb: 2\r\n", { "a=5" }, "a: 5\r\nb: 2\r\n" },
		{ "\xc3\xa4: \xe2\x82\xac # \xe2\x82\xac\nb: 1\n",
		  { "b=2" },
		  "\xc3\xa4: \xe2\x82\xac # \xe2\x82\xac\nb: 2\n" },
		{ "a: 1\r\nb:\r\n  - x\r\n  - y\r\n",
		  { "a=2", "b+=z" },
		  "a: 2\r\nb:\r\n  - x\r\n  - y\r\n  - z\r\n" },
		{ "a: 1\r\nb:\r\n  - x\r\nc: 3\r\n", { "b.0=" }, "a: 1\r\nb: []\r\nc: 3\r\n" },
	};

	check(table);
}

TEST(test_keys)
{
	static const struct example table[] = {
		{ "a: 1   # x\n\n# end\n", { "b=2" }, "a: 1   # x\nb: 2\n\n# end\n" },
		{ "a: 1", { "b=2" }, "a: 1\nb: 2" },
		{ "a: 1\nb: 2\nc: 3\n", { "b=" }, "a: 1\nc: 3\n" },
		{ "a: 1\nb: 2", { "b=" }, "a: 1" },
		{ "a: {b: 1}\n", { "a.c=x y" }, "a: {b: 1, c: x y}\n" },
		{ "a: {b: 1, c: 2, d: 3}\n", { "a.b=", "a.d=" }, "a: {c: 2}\n" },
		{ "a: {b: 1}\n", { "a.b=" }, "a: {}\n" },
		{ "a: {}\nb: []\n", { "a.x=1", "b+=2" }, "a: {x: 1}\nb: [2]\n" },
		{ "l:\n   -   n: a\n       r: 5\n   -   n: b\n",
		  { "l.0.x=1", "l.1.x=2" },
		  "l:\n   -   n: a\n       r: 5\n       x: 1\n   -   n: b\n       x: 2\n" },
		/* the first one stands behind the dash */
		{ "l:\n  - n: a\n    # x\n    r: 5\n", { "l.0.n=" }, "l:\n  - r: 5\n" },
		{ "l:\n  - n: a\n    m:\n      x: 1\n    # of r\n    r: 5\n",
		  { "l.0.m=" },
		  "l:\n  - n: a\n    # of r\n    r: 5\n" },
	};

	check(table);
}

TEST(test_items)
{
	static const struct example table[] = {
		{ "b: [1, 2, 3]\n", { "b.1=" }, "b: [1, 3]\n" },
		{ "b: [1, 2, 3]\n", { "b.0=" }, "b: [2, 3]\n" },
		{ "b: [1, 2, 3]\n", { "b.2=", "b.1=" }, "b: [1]\n" },
		{ "b: [1, 2, 3]\n", { "b.2=", "b.1=", "b+=4" }, "b: [1, 4]\n" },
		{ "b: [1,   # x\n    2,   # y\n    3]  # z\n",
		  { "b.2=" },
		  "b: [1,   # x\n    2,   # y\n    ]  # z\n" },
		{ "b:\n- 1\n- 2\nc: 1\n", { "b+=3" }, "b:\n- 1\n- 2\n- 3\nc: 1\n" },
		{ "b:\n  - 1   # one\n\n  # more\nc: 1\n",
		  { "b+=3" },
		  "b:\n  - 1   # one\n  - 3\n\n  # more\nc: 1\n" },
		/* its own comment goes along, one of two stays */
		{ "b:\n  - 1\n  # two\n  - 2\n\n  # three\n  - 3\n",
		  { "b.1=" },
		  "b:\n  - 1\n\n  # three\n  - 3\n" },
		/* one that is indented further is of the item above */
		{ "b:\n  - 1\n\n      # of 1\n  - 2\n\n  - 3\n",
		  { "b.1=" },
		  "b:\n  - 1\n\n      # of 1\n\n  - 3\n" },
		{ "b:\n  - 5\n  - '5'\n", { "b.0=" }, "b:\n  - '5'\n" },
		{ "b:\n  # both\n  - 1\n  - 2\n", { "b.0=" }, "b:\n  # both\n  - 2\n" },
		{ "b:\n  - 1\nc: 1\n", { "b.0=" }, "b: []\nc: 1\n" },
		{ "b:\n  - 1\nc: 1\n", { "b.0=", "b+=7" }, "b: [7]\nc: 1\n" },
		{ "b:\n  - {n: 1}   # x\n  - n: 2\n",
		  { "b+={n: 3}" },
		  "b:\n  - {n: 1}   # x\n  - n: 2\n  - n: 3\n" },
		{ "b:\n  - {n: 1}   # x\n", { "b+={n: 3}" }, "b:\n  - {n: 1}   # x\n  - {n: 3}\n" },
		{ "- - 1\n  - 2\n- - 3\n", { "0.0=", "1+=4" }, "- - 2\n- - 3\n  - 4\n" },
		{ "b:\n  -\n    n: 1\n  -   # c\n    n: 2\n",
		  { "b.0=" },
		  "b:\n  -   # c\n    n: 2\n" },
		{ "b: {n: 1}\n", { "b=[{n: 1}, {n: 2}]" }, "b: [{n: 1}, {n: 2}]\n" },
	};

	check(table);
}

TEST(test_anchors)
{
	static const struct example table[] = {
		/* the anchor's own place stays */
		{ "a: &x 5\nb: *x\n", { "b=6" }, "a: &x 5\nb: 6\n" },
		/* what is the same is not */
		{ "a: &x 5\nb: *x\n", { "a=6" }, "a: &x 6\nb: 5\n" },
		{ "a: &x 5\nb: *x\n", { "a=6", "b=6" }, "a: &x 6\nb: *x\n" },
		{ "a: &x 5\nb: *x\n", { "a=" }, "b: 5\n" },
		{ "a: &x {k: 1, l: 2}\nb: *x\n",
		  { "b.k=3" },
		  "a: &x {k: 1, l: 2}\nb: {k: 3, l: 2}\n" },
		{ "a: &x # c\n  k: 1\n  l: 2\nb: {<<: *x, m: 1}\n",
		  { "b.k=3" },
		  "a: &x # c\n  k: 1\n  l: 2\nb: {<<: *x, m: 1, k: 3}\n" },
		{ "a: &x {k: 1, l: 2}\nb:\n  <<: *x   # base\n  m: 1\n",
		  { "b.k=3" },
		  "a: &x {k: 1, l: 2}\nb:\n  <<: *x   # base\n  m: 1\n  k: 3\n" },
		{ "a: &x {k: 1, l: 2}\nb: {<<: *x, m: 1}\n",
		  { "b.k=" },
		  "a: &x {k: 1, l: 2}\nb: {m: 1, l: 2}\n" },
		{ "a: &x {k: 1, l: 2}\nb: {<<: *x, m: 1}\n",
		  { "a.k=7" },
		  "a: &x {k: 7, l: 2}\nb: {<<: *x, m: 1, k: 1}\n" },
		{ "- &x {k: 1}\n- *x\n- *x\n", { "1.k=2" }, "- &x {k: 1}\n- {k: 2}\n- *x\n" },
		{ "- &x {k: 1}\n- *x\n- *x\n", { "1=" }, "- &x {k: 1}\n- *x\n" },
		{ "- &x {k: 1}\n- *x\n- *x\n", { "0=" }, "- {k: 1}\n- {k: 1}\n" },
		{ "a: &x\n- 1\nb: *x\n", { "a+=2" }, "a: &x\n- 1\n- 2\nb: [1]\n" },
		{ "b: {<<: {k: 1}, m: 1}\n", { "b.m=2" }, "b: {<<: {k: 1}, m: 2}\n" },
	};

	check(table);
}

TEST(test_long)
{
	static const char longer[] =
		"l+={name: web, match: {proto: tcp, dport: [80, 443, 8080, 8443]}, rate: [100 "
		"packets/s, 5000 packets/h], burst: [20, 500]}";
	static const struct example table[] = {
		{ "l: []\n",
		  { longer },
		  "l:\n  - name: web\n    match: {proto: tcp, dport: [80, 443, 8080, 8443]}\n"
		  "    rate: [100 packets/s, 5000 packets/h]\n    burst: [20, 500]\n" },
		{ "l:\n  - {name: x}\n",
		  { longer },
		  "l:\n  - {name: x}\n  - name: web\n    match: {proto: tcp, dport: [80, 443, 8080, "
		  "8443]}\n    rate: [100 packets/s, 5000 packets/h]\n    burst: [20, 500]\n" },
	};

	check(table);
}

TEST_MAIN
