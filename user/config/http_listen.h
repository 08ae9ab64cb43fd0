/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* http_listen.h - the types of the keys that have listeners: http.listen, http.grpc and so on. */
#ifndef SLUICE_HTTP_LISTEN_H
#define SLUICE_HTTP_LISTEN_H

#include "conf/key.h"
#include "config/http_def.h"

/* type_http_KEY, of struct http_def: its `listen`. */
#define LISTEN_TYPE(id, key, plain) extern const struct key_type type_http_##key;
LISTEN_KINDS(LISTEN_TYPE)
#undef LISTEN_TYPE

/* After all keys: checks listeners that other machines can reach. `map` is the http section. */
int http_check_listen(struct reader *r, const struct yaml_node *map, void *section);

#endif
