// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* listing.c - see listing.h. */
#include "control/commands/listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"

int listing_begin(const struct command_request *request, struct listing *ret, struct sl_err *err)
{
	memset(ret, 0, sizeof(*ret));
	ret->has_after = arg_text(request, "after");
	return ret->has_after ? arg_prefix(request, "after", &ret->after, err) : 0;
}

static int compare_keys(const void *a, const void *b)
{
	return sl_prefix_compare(a, b);
}

/* The least LISTING_ROWS stay. */
static void cut(struct listing *listing)
{
	qsort(listing->key, listing->count, sizeof(*listing->key), compare_keys);
	if (listing->count <= LISTING_ROWS)
		return;
	listing->count = LISTING_ROWS;
	listing->cut = true;
	listing->last = listing->key[LISTING_ROWS - 1];
}

bool listing_pass(struct listing *listing)
{
	switch (listing->passes++) {
	case 0:
		listing->key = calloc(2 * LISTING_ROWS, sizeof(*listing->key));
		listing->failed = !listing->key;
		break;
	case 1:
		if (listing->count)
			cut(listing);
		free(listing->key);
		listing->key = NULL;
		listing->count = 0;
		break;
	default:
		return false;
	}
	return !listing->failed;
}

bool listing_wants(struct listing *listing, const struct sl_prefix *prefix)
{
	struct listing_row *row;

	if ((listing->has_after && sl_prefix_compare(prefix, &listing->after) <= 0) ||
	    (listing->cut && sl_prefix_compare(prefix, &listing->last) > 0) || listing->failed)
		return false;
	if (listing->passes == 1) {
		listing->key[listing->count++] = *prefix;
		if (listing->count == 2 * LISTING_ROWS)
			cut(listing);
		return false;
	}
	row = array_grow(listing->row, listing->count, sizeof(*row));
	listing->failed = !row;
	if (!row)
		return false;
	listing->row = row;
	listing->row[listing->count] = (struct listing_row){ *prefix, listing->count, NULL };
	return true;
}

void listing_add(struct listing *listing, json_t *row)
{
	listing->row[listing->count++].json = row;
}

static int compare_rows(const void *pa, const void *pb)
{
	const struct listing_row *a = pa, *b = pb;
	int order = sl_prefix_compare(&a->prefix, &b->prefix);

	return order ? order : (a->order > b->order) - (a->order < b->order);
}

int listing_end(struct listing *listing, json_t *result, const char *key, struct sl_err *err)
{
	json_t *list = json_array();
	char text[SL_PREFIX_TEXT];

	if (listing->count && listing->row)
		qsort(listing->row, listing->count, sizeof(*listing->row), compare_rows);
	for (size_t i = 0; listing->row && i < listing->count; i++)
		json_array_append_new(list, listing->row[i].json);
	json_object_set_new(result, key, list);
	if (listing->cut)
		json_object_set_new(
			result, "next",
			json_string(sl_prefix_format(&listing->last, text, sizeof(text))));
	free(listing->key);
	free(listing->row);
	return listing->failed ? sl_err_no_memory(err) : 0;
}
