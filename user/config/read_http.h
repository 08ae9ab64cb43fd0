/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* read_http.h - shared by the readers of the `http:` section; `into` is a struct http_def. */
#ifndef SLUICE_READ_HTTP_H
#define SLUICE_READ_HTTP_H

#include "config/http_def.h"
#include "config/read.h"

/* read_http_listen.c */
int http_read_listen(struct reader *r, const struct yaml_node *node, void *into);
int http_read_grpc(struct reader *r, const struct yaml_node *node, void *into);
int http_read_spoe(struct reader *r, const struct yaml_node *node, void *into);
int http_read_syslog(struct reader *r, const struct yaml_node *node, void *into);
/* After all keys: checks listeners that other machines can reach. `map` is the section. */
int http_check_listen(struct reader *r, const struct yaml_node *map, struct http_def *http);

/* read_http_push.c */
int http_read_never_push_down(struct reader *r, const struct yaml_node *node, void *into);
int http_read_push_down(struct reader *r, const struct yaml_node *node, void *into);
int http_read_source_budget(struct reader *r, const struct yaml_node *node, void *into);

/* Values: an address or prefix, a count within bounds, a text appended to an array. */
int http_read_prefix(struct reader *r, const struct yaml_node *node, struct sl_prefix *ret);
int http_read_count(struct reader *r, const struct yaml_node *node, u64 least, u64 most,
		    const char *accepted, u64 *ret);
int http_read_string(struct reader *r, const struct yaml_node *node, const char *accepted,
		     char ***array, size_t *count);

#endif
