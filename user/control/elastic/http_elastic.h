/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* http_elastic.h - elastic limits of the HTTP tier: elastic.h's controller, published to workers. */
#ifndef SLUICE_ELASTIC_HTTP_ELASTIC_H
#define SLUICE_ELASTIC_HTTP_ELASTIC_H

#include "control/elastic/scales.h"
#include "request/rules/rule.h"

struct http_elastic;

/* Whether any limit of the rules in force is elastic. */
bool http_elastic_any(const struct scales *scales);
/* One step for each of them; `seconds` since the last. */
void http_elastic_tick(struct scales *scales, u64 now_ns, double seconds);
void http_elastic_free(struct scales *scales);

/* Whether a limit goes by this signal; adds "domain/rule" of each to `names` (NULL: not wanted). */
bool http_elastic_uses(const struct scales *scales, const char *signal, json_t *names);
/* Adds load_signal_to_json() of the signals that only rules of the HTTP tier ask for. */
void http_elastic_load_signals(const struct scales *scales, u64 now_ns, json_t *list);

/* The scale of a rule's limit now; 1 where it is not elastic. */
double http_elastic_scale(const struct scales *scales, const struct rule *rule, u32 limit);

#endif
