/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * read.h - reads values from nodes; errors name the place, the text found and the accepted values.
 */
#ifndef SLUICE_CONF_READ_H
#define SLUICE_CONF_READ_H

#include "conf/name.h"
#include "conf/tree.h"
#include "lib/array.h"
#include "lib/units.h"
#include "sluice/abi.h"

/* The context of readers: the destination of errors and their first part. */
struct reader {
	const char *file;		/* "": not a file, errors have no position */
	struct sl_err *err;
	const void *model;		/* for hooks: the model that is being read */
	const char *subject;		/* "limits[0] \"web\"", or "" */
	char path[128];			/* the key being read, "match.dport" */
	char found[80];
};

struct key;	/* key.h */

/* Fails at a node, or NULL: "FILE:LINE:COLUMN: SUBJECT: PATH: message". Returns -code. */
int read_fail(struct reader *r, const struct yaml_node *at, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* "PATH: found X; accepted: Y" */
int read_refuse(struct reader *r, const struct yaml_node *at, const char *accepted);
int read_no_memory(struct reader *r);
/*
 * The node as text for an error: `"text"` (truncated), `a list`, `nothing`. Valid until the next
 * call.
 */
const char *read_found(struct reader *r, const struct yaml_node *node);

/*
 * Reads a mapping into `into`: first all keys are checked, then their values are read in the
 * order of the table, those with KEY_FIRST before the others.
 */
int read_map(struct reader *r, const struct yaml_node *map, const struct key *keys, size_t count,
	     void *into);
/* -EINVAL if a required key is missing. */
int read_require(struct reader *r, const struct yaml_node *map, const char *key);

/* Calls `read` for each item of a list, or for a value alone. */
int read_each(struct reader *r, const struct yaml_node *node,
	      int (*read)(struct reader *r, const struct yaml_node *item, void *into), void *into);

/* Values. `accepted` completes the error; outputs are untouched on failure. */
int read_text(struct reader *r, const struct yaml_node *node, const char *accepted,
	      const char **ret);
int read_name(struct reader *r, const struct yaml_node *node, const struct name *names, int *ret);
int read_number(struct reader *r, const struct yaml_node *node, u64 most, const char *accepted,
		u64 *ret);
int read_count(struct reader *r, const struct yaml_node *node, u64 *ret);
int read_rate(struct reader *r, const struct yaml_node *node, struct rate *ret);
/* Copies an absolute path of at most `most` bytes; the caller frees it. */
int read_path(struct reader *r, const struct yaml_node *node, size_t most, char **field);
/* Replaces *field by a copy of a text. */
int read_copy(struct reader *r, const char *text, char **field);
/* ADDRESS:PORT or [ADDRESS]:PORT; no names, since a resolver may not be up at start. */
bool is_listen_address(const char *text);
/* 1..63 characters of a-z 0-9 - */
int read_identifier(struct reader *r, const struct yaml_node *node, char ret[SL_NAME_MAX]);
int read_interface_name(struct reader *r, const struct yaml_node *node, char ret[16]);
/* The HTTP tier's: NUMBER requests/PERIOD. */
int read_requests(struct reader *r, const struct yaml_node *node, struct rate *ret);
/* PERCENT% as permille, `least` to `most`. */
int read_percent(struct reader *r, const struct yaml_node *node, u32 least, u32 most,
		 const char *accepted, u32 *ret_permille);
/* A duration, `least` to `most` ns. */
int read_duration(struct reader *r, const struct yaml_node *node, u64 least, u64 most,
		  const char *accepted, u64 *ret_ns);
/* NUMBER or FIRST-LAST, up to `most`. */
int read_range(struct reader *r, const struct yaml_node *node, u64 most, const char *accepted,
	       u32 *ret_first, u32 *ret_last);

#endif
