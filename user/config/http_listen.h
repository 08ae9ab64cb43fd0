/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* http_listen.h - the types of http.listen, grpc, spoe and syslog. */
#ifndef SLUICE_HTTP_LISTEN_H
#define SLUICE_HTTP_LISTEN_H

#include "conf/key.h"

/* Fields of struct http_def: its `listen`. */
extern const struct key_type type_listen, type_listen_grpc, type_listen_spoe, type_listen_syslog;

/* After all keys: checks listeners that other machines can reach. `map` is the http section. */
int http_check_listen(struct reader *r, const struct yaml_node *map, void *section);

#endif
