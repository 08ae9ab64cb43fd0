/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * read.h - reads values; errors name the place, the text found and the accepted values.
 *
 * Readers of mappings, and of lists of them, get a node. Readers of all else get a text: of a node,
 * whose place the reader keeps, or of KEY=VALUE (pair.h), which has none.
 */
#ifndef SLUICE_CONF_READ_H
#define SLUICE_CONF_READ_H

#include "conf/name.h"
#include "conf/tree.h"
#include "lib/addr.h"
#include "lib/array.h"
#include "lib/units.h"
#include "sluice/abi.h"

/* The context of readers: the destination of errors and their first part. */
struct reader {
	const char *file; /* "": not a file, errors have no position */
	struct sl_err *err;
	const void *model;	    /* for hooks: the model that is being read */
	const char *subject;	    /* "limits[0] \"web\"", or "" */
	const struct yaml_node *at; /* of the text being read, or its list; NULL: of no file */
	const char *text;	    /* the text being read, where `at` is NULL */
	char path[128];		    /* the key being read, "match.dport" */
	char found[80];
};

struct key; /* key.h */

/* Fails at a node, or NULL: "FILE:LINE:COLUMN: SUBJECT: PATH: message". Returns -code. */
int read_fail(struct reader *r, const struct yaml_node *at, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* "PATH: found X; accepted: Y" */
int read_refuse(struct reader *r, const struct yaml_node *at, const char *accepted);
int read_no_memory(struct reader *r);
/*
 * The node as text for an error: `"text"` (truncated), `a list`, `nothing`. Valid until the next
 * call. NULL: r->text.
 */
const char *read_found(struct reader *r, const struct yaml_node *node);
/* The same two of the text being read: "found X" and the rest of the message; "; accepted: Y". */
int text_fail(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
int text_refuse(struct reader *r, const char *accepted);

/*
 * Reads a mapping into `into`: first all keys are checked, then their values are read in the
 * order of the table, those with KEY_FIRST before the others.
 */
int read_map(struct reader *r, const struct yaml_node *map, const struct key *keys, size_t count,
	     void *into);
/* -EINVAL if a required key is missing. */
int read_require(struct reader *r, const struct yaml_node *map, const char *key);

/* Reads each item of a list, or a value alone, as of the row. */
int read_each(struct reader *r, const struct yaml_node *node, const struct key *item, void *into);

/* Values. `accepted` completes the error; outputs are untouched on failure. */
int read_number(struct reader *r, const char *text, u64 most, const char *accepted, u64 *ret);
int read_count(struct reader *r, const char *text, u64 *ret);
int read_rate(struct reader *r, const char *text, struct rate *ret);
/* The HTTP tier's: NUMBER requests/PERIOD. */
int read_requests(struct reader *r, const char *text, struct rate *ret);
int read_prefix(struct reader *r, const char *text, struct sl_prefix *ret);
/* Replaces *field by a copy of a text. */
int read_copy(struct reader *r, const char *text, char **field);
/* ADDRESS:PORT or [ADDRESS]:PORT; no names, since a resolver may not be up at start. */
bool is_listen_address(const char *text);
#define RATES "NUMBER[K|M|G] UNIT/PERIOD, as in 1000 packets/s"
#define REQUESTS "NUMBER[K|M|G] requests/PERIOD, as in 10 requests/m"
#define INTERFACE_NAMES "an interface's name, 1 to 15 characters, as eth0; no pattern"
/* 1..63 characters of a-z 0-9 - */
int read_identifier(struct reader *r, const char *text, char ret[SL_NAME_MAX]);
int read_interface_name(struct reader *r, const char *text, char ret[16]);
/* Plain digits, or hexadecimal ones after 0x; no reason is set. 0 or -EINVAL. */
int number_parse(const char *text, u64 *ret, const char **ret_reason);
/* NUMBER or FIRST-LAST, up to `most`. */
int read_range(struct reader *r, const char *text, u64 most, const char *accepted, u32 *ret_first,
	       u32 *ret_last);

#endif
