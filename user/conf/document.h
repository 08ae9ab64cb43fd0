/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * document.h - a table of keys as text for the documents: name, default, meaning.
 *
 * A row's `help` is Markdown; only `code` and [text](link) are supported. A row without help shares
 * that of the row above it.
 */
#ifndef SLUICE_CONF_DOCUMENT_H
#define SLUICE_CONF_DOCUMENT_H

#include <stdio.h>

#include "conf/key.h"

/* A Markdown list, the items of a list of mdoc(7). */
void document_list(FILE *out, const struct keys *keys);
void document_mdoc(FILE *out, const struct keys *keys);

#endif
