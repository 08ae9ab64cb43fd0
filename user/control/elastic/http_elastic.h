/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* http_elastic.h - elastic limits of the HTTP tier: elastic.h's controller, published to
 * workers. */
#ifndef SLUICE_ELASTIC_HTTP_ELASTIC_H
#define SLUICE_ELASTIC_HTTP_ELASTIC_H

#include "control/elastic/scales.h"
#include "request/rules/rule.h"

struct http_elastic;

/* True if any limit of the rules in force is elastic. */
bool http_elastic_any(const struct scales *scales);
/* Takes one step for each of them; `seconds` since the last. */
void http_elastic_tick(struct scales *scales, u64 now_ns, double seconds);
void http_elastic_free(struct scales *scales);

/* True if a limit uses this load signal; adds "domain/rule" of each to `names` (may be NULL). */
bool http_elastic_uses(const struct scales *scales, const char *signal, json_t *names);
/* Adds load_signal_to_json() of the signals that only rules of the HTTP tier use. */
void http_elastic_load_signals(const struct scales *scales, u64 now_ns, json_t *list);

/* The scale in force of a rule's limit; 1 if not elastic. */
double http_elastic_scale(const struct scales *scales, const struct rule *rule, u32 limit);

#endif
