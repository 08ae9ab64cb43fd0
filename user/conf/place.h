/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * place.h - the position of each node in a YAML text, for text_edit.c.
 *
 * Unlike the nodes of tree.h, places have aliases and merge keys as they were written, and no
 * copies: each byte of the text belongs to one place at most.
 */
#ifndef SLUICE_PLACE_H
#define SLUICE_PLACE_H

#include "conf/tree.h"

enum place_kind {
	PLACE_TEXT,
	PLACE_ALIAS,
	PLACE_LIST,
	PLACE_MAP,
};

struct place {
	enum place_kind kind : 8;
	bool flow : 1;	   /* a list or a mapping in brackets */
	bool plain : 1;	   /* text without quotes */
	int line, column;  /* from 1, as of the node of tree.h */
	size_t start;	   /* the first byte: its anchor, or `begin` */
	size_t lead;	   /* after its anchor; 0: it has none */
	size_t begin, end; /* the bytes of the content */
	size_t dash;	   /* of an item of a list without brackets: its '-' */
	size_t count;
	struct place *first, *last;   /* items, or keys */
	struct place *next;	      /* the next item or key */
	struct place *value;	      /* of a key */
	struct place *target;	      /* of an alias */
	const struct yaml_node *node; /* the node at this place after the edit; NULL: removed */
	struct place *made_before;    /* for places_free() */
	char text[];		      /* the value of a text; of an alias as a key its target's */
};

struct places {
	struct place *root;
	struct place *made_last;
};

/* The text must be one that tree_parse() accepts. 0, -ENOMEM, or -EINVAL: it cannot be parsed. */
int places_parse(const char *text, size_t size, struct places *ret);
void places_free(struct places *places);

#endif
