/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* http_names.h - names of the `http:` section, for reading and writing (http_def.c). */
#ifndef SLUICE_HTTP_NAMES_H
#define SLUICE_HTTP_NAMES_H

#include "config/http_def.h"
#include "config/model.h"
#include "config/write.h"

extern const struct name listen_kind_names[], http_full_names[], push_mode_names[],
	right_names[], log_values_names[], http_bool_names[];

/* The section as read_http() reads it back; write_http.c. */
void write_http(struct writer *w, const struct http_def *http);

#endif
