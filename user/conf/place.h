/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * place.h - the bytes of each node in the text, of tree_parse_written(), for text_edit.c. Each byte
 * of the text belongs to one node at most.
 */
#ifndef SLUICE_PLACE_H
#define SLUICE_PLACE_H

#include <yaml.h>

#include "conf/tree.h"

struct yaml_place {
	size_t start;			/* the first byte: its anchor, or `begin` */
	size_t lead;			/* after its anchor; 0: it has none */
	size_t begin, end;		/* the bytes of the content */
	size_t dash;			/* of an item of a list without brackets: its '-' */
	size_t column;			/* of a list without brackets: from 0, of its dashes */
	bool flow;			/* a list or a mapping in brackets */
	const struct yaml_node *target; /* of an alias */
	const struct yaml_node *node;	/* the node at this place after the edit; NULL: removed */
};

/* The text, and the last mark: libyaml counts characters. */
struct placing {
	const char *text;
	size_t size;
	size_t index, byte;
};

/* Sets the place of a node at its event; the end of a list or mapping follows. 0 or -ENOMEM. */
int place_open(struct placing *p, struct yaml_node *node, const yaml_event_t *event,
	       const yaml_char_t *anchor);
/* Finds the dash of an item, which is linked into its list. 0 or -EINVAL. */
int place_item(const struct placing *p, const struct yaml_node *list, struct yaml_node *item);
/* Sets the bytes of a list or mapping whose last item is placed; `end` is its last mark. */
void place_close(struct placing *p, struct yaml_node *node, yaml_mark_t end);

#endif
