/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * load_source.h - load signals that the daemon measures itself, from reports: `load_signals:`.
 *
 * A measured value is that of the last window, as a part of what counts as full load. Without a
 * report in the window the signal is not set.
 */
#ifndef SLUICE_ELASTIC_LOAD_SOURCE_H
#define SLUICE_ELASTIC_LOAD_SOURCE_H

#include <jansson.h>

#include "config/load_def.h"
#include "control/elastic/scales.h"

/* Follows the configuration in force; each second. */
void load_sources_watch(struct scales *scales);
/* Sets the signals that are measured; with each tick of the controller. */
void load_sources_tick(struct scales *scales, u64 now_ns);

/* "errors of reports"; returns buf. */
const char *load_source_words(const struct load_signal_def *def, char *buf, size_t size);

#endif
