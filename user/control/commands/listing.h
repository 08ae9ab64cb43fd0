/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listing.h - a page of a long list of prefixes: a response has at most some thousand rows, so that
 * no request keeps the main thread long, nor fills its memory with responses that nobody reads.
 *
 * Rows are in order of their prefixes, and a page begins after the last prefix of the page before
 * ("after", "next"). So a row that is there all the time is on one page, whatever changes between
 * two. The list is walked twice: for the prefix that ends the page, and for its rows.
 *
 *     listing_begin(request, &listing, err);
 *     while (listing_pass(&listing))
 *             for (...)
 *                     if (listing_wants(&listing, &item[i].prefix))
 *                             listing_add(&listing, item_to_json(&item[i]));
 *     listing_end(&listing, result, "items");
 */
#ifndef SLUICE_COMMANDS_LISTING_H
#define SLUICE_COMMANDS_LISTING_H

#include "control/commands/commands.h"

#define LISTING_ROWS 5000

struct listing {
	int passes; /* begun */
	bool has_after, cut, failed;
	struct sl_prefix after, last; /* the page: above `after`, up to `last` if cut */
	struct sl_prefix *key;	      /* of the first pass: the least above `after` */
	struct listing_row {
		struct sl_prefix prefix;
		size_t order; /* of rows of one prefix */
		json_t *json;
	} * row;
	size_t count; /* of keys, then of rows */
};

/* Reads "after". 0, or -EINVAL with err. */
int listing_begin(const struct command_request *request, struct listing *ret, struct sl_err *err);
/* Begins a walk over the list; false: there were two. */
bool listing_pass(struct listing *listing);
/* True if a row with this prefix is on the page: then listing_add() it. */
bool listing_wants(struct listing *listing, const struct sl_prefix *prefix);
/* Takes the reference. */
void listing_add(struct listing *listing, json_t *row);
/* Puts the rows into `result` as `key`, and where there are more "next". Frees the listing. -ENOMEM
 * with err. */
int listing_end(struct listing *listing, json_t *result, const char *key, struct sl_err *err);

#endif
