/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scales.h - elastic limits of both tiers: the present factors of their rates.
 *
 *     elastic.c       the controller; limits of the packet tier
 *     http_elastic.c  limits of the request tier's rules
 *     load_signal.c   load signals (`while: {load_signal: ...}`), set from outside
 *     load_source.c   and those that the daemon measures itself
 *
 * Knows: the running configuration, this host's load, load signals. Does not know: how a change is
 * made, commands, workers, other nodes. May use: as control/mitigation.
 */
#ifndef SLUICE_ELASTIC_SCALES_H
#define SLUICE_ELASTIC_SCALES_H

#include <event2/event.h>

#include "control/running/running.h"

struct elastic;	     /* elastic.c */
struct http_elastic; /* http_elastic.c */
struct load_signal;  /* load_signal.h */

struct scales {
	struct running *running;
	struct event_base *base;
	struct elastic *elastic;   /* NULL until some limit is elastic */
	struct http_elastic *http; /* NULL until some rule is elastic */
	struct load_signal *signal;
	size_t load_signal_count;
	unsigned long long
		sources_for; /* the generation that load_sources_watch() followed; 0: none */
};

#endif
